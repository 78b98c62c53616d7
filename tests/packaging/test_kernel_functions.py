"""Kernels and helpers stay readable: typed, few parameters, named records instead of long tuples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import parquet_variant

KERNELS = Path(parquet_variant.__file__).parent / "kernels"
MOST_PARAMETERS = 10
MOST_RESULTS = 6


def _is_compiled(function: ast.FunctionDef) -> bool:
    names = (getattr(part, "func", part) for part in function.decorator_list)
    return any(isinstance(name, ast.Name) and name.id in ("kernel", "helper") for name in names)


def _tuple_sizes(function: ast.FunctionDef) -> Iterator[int]:
    """Yield the number of parts of each tuple that a function declares, returns or takes apart."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple" and isinstance(node.slice, ast.Tuple):
            yield len(node.slice.elts)
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            yield len(node.value.elts)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from (len(target.elts) for target in node.targets if isinstance(target, ast.Tuple))


def _problems(source: str) -> Iterator[str]:
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or not _is_compiled(function):
            continue
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if len(parameters) > MOST_PARAMETERS:
            yield f"{function.name} has {len(parameters)} parameters"
        if function.returns is None or any(parameter.annotation is None for parameter in parameters):
            yield f"{function.name} is not typed"
        if max(_tuple_sizes(function), default=0) > MOST_RESULTS:
            yield f"{function.name} has a tuple of {max(_tuple_sizes(function))}: make it a named tuple"


def test_kernels_and_helpers_are_typed_with_few_parameters_and_named_records() -> None:
    found = [
        f"{path.relative_to(KERNELS)}: {problem}"
        for path in sorted(KERNELS.rglob("*.py"))
        for problem in _problems(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_the_rules_find_what_breaks_them() -> None:
    wide = ", ".join(f"p{i}: int" for i in range(11))
    source = f"""
@kernel
def wide({wide}) -> int: ...
@helper(inline=True)
def untyped(a, b: int) -> int: ...
@helper
def long() -> tuple[int, int, int, int, int, int, int]: ...
@helper
def takes() -> int:
    a, b, c, d, e, f, g = call()
def plain({wide}): ...
"""
    assert [problem.split()[0] for problem in _problems(source)] == ["wide", "untyped", "long", "takes"]
