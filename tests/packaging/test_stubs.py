"""The stubs of the public packages say what their tables say, and every name in them exists."""

from __future__ import annotations

import ast
from importlib import import_module

import pytest
from tests.packaging.stubs import STUBBED, stub_lines, stub_path


def _statements(text: str) -> set[str]:
    """Return the statements of a stub, one for each imported name, whatever their formatting."""
    statements = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            statements |= {f"from {node.module} import {name.name} as {name.asname}" for name in node.names}
        elif isinstance(node, ast.Assign):
            statements |= {f"__all__ has {name}" for name in ast.literal_eval(node.value)}
        else:
            statements.add(ast.unparse(node))
    return statements


@pytest.mark.parametrize("package", STUBBED)
def test_a_stub_is_current(package: str) -> None:
    current = _statements(stub_path(package).read_text("utf-8")) == _statements("\n".join(stub_lines(package)))
    assert current, "the table of names changed: run python -m tests.packaging.stubs --update"


@pytest.mark.parametrize("package", STUBBED)
def test_a_package_lists_its_names(package: str) -> None:
    module = import_module(package)
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
