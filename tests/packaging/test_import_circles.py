"""No module imports itself through others, counting imports inside functions and under ``TYPE_CHECKING``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PACKAGE = "parquet_variant"
# The modules that import modules of this package by a computed name, and why.
IMPORTS_BY_STRING = {
    "parquet_variant.support.lazy_names": "loads public names and registered methods on first use",
    "parquet_variant.kernels.machine_code.functions": "discovers the kernels of a package",
    "parquet_variant.kernels.machine_code.frontend": "loads the instructions of intrinsics (Numba)",
    "parquet_variant.quality.compatibility.engine_programs": "imports an engine, and nothing of this package",
}


def _modules(sources: Path) -> dict[str, list[Path]]:
    """Return the source files of each module: its ``.py`` file, and its stub if it has one."""
    modules: dict[str, list[Path]] = {}
    for path in sorted(sources.joinpath(PACKAGE).rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            parts = path.relative_to(sources).with_suffix("").parts
            modules.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), []).append(path)
    return modules


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(sources: Path = SOURCES) -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, wherever in the module the import is."""
    modules = _modules(sources)
    graph: dict[str, set[str]] = {}
    for module, paths in modules.items():
        imported = graph[module] = set()
        for path in paths:
            for name in _imported_names(ast.parse(path.read_text("utf-8"))):
                while name and name not in modules:
                    name = name.rpartition(".")[0]
                imported.add(name)
        imported -= {module, ""}
    return graph


def find_circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other: repeatedly remove what imports nothing that is left.

    >>> find_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    [['b', 'c']]
    """
    left = {module: set(imported) for module, imported in graph.items()}
    for _ in range(2):  # once for modules that import no circle, once for modules that no circle imports
        while done := {module for module, imported in left.items() if not imported}:
            left = {module: imported - done for module, imported in left.items() if module not in done}
        reverse: dict[str, set[str]] = {module: set() for module in left}
        for module, imported in left.items():
            for name in imported:
                reverse[name].add(module)
        left = reverse
    reachable = {module: _reachable(left, module) for module in left}
    groups = {tuple(sorted(name for name in reachable[module] if module in reachable[name])) for module in left}
    return sorted(map(list, groups - {()}))


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(graph[module])
    return found


def test_no_module_imports_itself_through_others() -> None:
    assert find_circles(import_graph()) == []


def test_a_circle_of_deferred_and_type_checking_imports_is_found(tmp_path: Path) -> None:
    package = tmp_path / PACKAGE
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from parquet_variant.second import B\n"
    )
    (package / "second.py").write_text("def load():\n    from parquet_variant import first\n    return first\n")
    (package / "third.py").write_text("import parquet_variant.first\n")
    assert find_circles(import_graph(tmp_path)) == [["parquet_variant.first", "parquet_variant.second"]]


def _imports_by_string(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield calls of ``import_module`` and ``__import__`` that may import modules of this package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            is_foreign = isinstance(name, ast.Constant) and not str(name.value).startswith(PACKAGE)
            if not is_foreign:
                yield node


def test_only_listed_modules_below_the_command_line_import_by_string() -> None:
    found = {
        module
        for module, paths in _modules(SOURCES).items()
        if not module.startswith(f"{PACKAGE}.cli")
        for path in paths
        for _ in _imports_by_string(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(IMPORTS_BY_STRING)
