"""The differences from `vortex.expr.variant_get`, as docs/vortex.md lists them.

`python -m tests.vortex.test_differences` prints the table for the page.
"""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest

import parquet_variant as pv

_VALUES = {
    "boolean": [True, False],
    "integer": [1, -5],
    "decimal": [Decimal("1.5"), Decimal("2.00")],
    "double": [1.5, 2.0],
    "string": ["x", "1"],
    "null": [None],
}
_TYPES = ("boolean", "bigint", "double", "string")
_PAGE = Path(__file__).parents[2] / "docs" / "vortex.md"


def differences() -> list[str]:
    """Return a line of the table for each pair of types for which the results differ."""
    import vortex
    from vortex import expr

    targets = {
        "boolean": vortex.bool_(nullable=True),
        "bigint": vortex.int_(64, nullable=True),
        "double": vortex.float_(64, nullable=True),
        "string": vortex.utf8(nullable=True),
    }
    lines = []
    for kind, values in _VALUES.items():
        array = pv.VariantArray.from_pylist([{"a": value} for value in values])
        with tempfile.TemporaryDirectory() as folder:
            pv.write(f"{folder}/a.vortex", array, layout="variant")
            file = vortex.open(f"{folder}/a.vortex")
            for name in _TYPES:
                request = expr.pack({"x": expr.variant_get(expr.column("v"), ["a"], targets[name])})
                theirs = file.to_repeated_scan(request).execute().to_arrow().read_all()["x"].to_pylist()
                ours = pv.get_variant_element(array, "$.a", name).to_pylist()
                cast = pv.get_variant_element(array, "$.a", name, cast=True).to_pylist()
                if theirs != ours:
                    lines.append(
                        "| " + " | ".join([f"{kind}: {_row(values)}", name, *map(_row, (theirs, ours, cast))]) + " |"
                    )
    return lines


def _row(values: list[object]) -> str:
    return ", ".join("null" if value is None else str(value).lower() for value in values)


def test_the_page_lists_all_differences_from_the_expression_of_vortex() -> None:
    pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
    table = _PAGE.read_text().partition("| values | requested |")[2].partition("\n\n")[0]
    assert differences() == [line for line in table.splitlines()[2:] if line.startswith("|")]


if __name__ == "__main__":
    print("\n".join(differences()))
