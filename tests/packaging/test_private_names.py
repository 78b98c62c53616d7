"""A name with an underscore is its module's own: no test imports one, reads one, or sets one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
# Names of Python's, PySpark's, pyarrow's and ctypes'.
OF_OTHERS = {"_name", "_exit", "_jdf", "_import_from_c_capsule", "_DummyThread"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_") and name not in OF_OTHERS


def _private_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("parquet_variant"):
            yield from (item.name for item in node.names if _is_private(item.name))
        elif isinstance(node, ast.Attribute) and _is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            named = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            yield from (name for name in named if any(map(_is_private, name.split("."))))


@pytest.mark.parametrize("test", TESTS, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_no_test_touches_a_private_name(test: Path) -> None:
    assert list(_private_names(ast.parse(test.read_text("utf-8")))) == []
