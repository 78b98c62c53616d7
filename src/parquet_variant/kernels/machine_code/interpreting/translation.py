"""Translate the source of a kernel or helper into Python that computes as machine code does.

Owns the differences between the two: machine code has integers of 64 bits that wrap around, and reads array items as
plain numbers. Line numbers are kept, so that a debugger shows the source of the kernel. Leaves memory to
`registered_memory`, and running a kernel to `interpreter`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from parquet_variant.errors import KernelsError

_WRAPPING = (ast.Add, ast.Sub, ast.Mult, ast.LShift)


def wrap(number: Any) -> Any:
    """Return an integer as a signed one of 64 bits; anything else unchanged.

    >>> wrap(1 << 63), wrap(-5), wrap(2.5)
    (-9223372036854775808, -5, 2.5)
    """
    if type(number) is int and not -(1 << 63) <= number < 1 << 63:
        return ((number + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
    return number


def _item(value: Any) -> Any:
    """Return an item of an array as a Python number, so that it does not overflow as NumPy's small integers do."""
    return value.item() if isinstance(value, np.generic) else value


def _items(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


# NumPy's conversions refuse negative numbers; machine code takes their bits.
_NUMPY = SimpleNamespace(uint64=lambda number: int(number) & ((1 << 64) - 1), int64=wrap)


class _Translation(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("wrap", node) if isinstance(node.op, _WRAPPING) else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("wrap", node) if isinstance(node.op, ast.USub) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return self._call("item", node) if isinstance(node.ctx, ast.Load) else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Name | ast.Attribute):
            node.iter = self._call("items", node.iter)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        # In place, NumPy would compute in the type of the array.
        target: Any = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(target):
            ast.copy_location(part, node)
        value = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        assigned = ast.copy_location(ast.Assign([node.target], value), node)
        return self.generic_visit(assigned)

    @staticmethod
    def _call(name: str, argument: Any) -> ast.Call:
        function = ast.copy_location(ast.Name(f"machine_{name}", ast.Load()), argument)
        return ast.copy_location(ast.Call(function, [argument], []), argument)


def translated(function: Callable[..., Any], value_of: Callable[[Any], Any]) -> Callable[..., Any]:
    """Translate a function.

    `value_of`: called with each global value that the function uses; returns what the translation uses instead.
    Raises `KernelsError` with reason ``no-source`` if the source of the function is not available.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        raise KernelsError(
            f"the source of {function.__module__}.{function.__qualname__} is not available: run kernels in Python from "
            "a package that is not in a zip file",
            reason="no-source",
        ) from None
    module = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(module, first - 1)
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    _Translation().visit(definition)
    ast.fix_missing_locations(module)
    names: dict[str, Any] = {"machine_wrap": wrap, "machine_item": _item, "machine_items": _items}
    code = compile(module, inspect.getsourcefile(function) or "<kernel>", "exec")
    exec(code, names)
    made: Callable[..., Any] = names[function.__name__]
    for name in made.__code__.co_names:
        if name in function.__globals__:
            value = function.__globals__[name]
            names[name] = _NUMPY if value is np else value_of(value)
    return made
