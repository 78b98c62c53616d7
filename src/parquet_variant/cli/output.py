"""What commands print to stdout: tables and text for people, JSON for machines.

Owns how Arrow tables are shown and how Python values become JSON. Leaves what is printed to the commands, and errors to
`failure`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["human_bytes", "print_grid", "print_json", "print_rows", "write_rows"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def print_json(value: Any) -> None:
    """Print one JSON document, on one line."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def print_rows(table: pa.Table) -> None:
    """Print a table's rows as compact JSON objects, one a line; decimals keep all their digits."""
    from parquet_variant import Variant

    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    for batch in table.to_batches(max_chunksize=4096):
        columns = [[Variant.from_python(value).to_json() for value in column.to_pylist()] for column in batch.columns]
        write_rows(names, columns)


def write_rows(names: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    """Write JSON objects, one a line, from columns of JSON texts; `names` are JSON texts too."""
    for texts in zip(*columns, strict=True):
        fields = ",".join(f"{name}:{text}" for name, text in zip(names, texts, strict=True))
        sys.stdout.write(f"{{{fields}}}\n")


def print_grid(header: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = ()) -> None:
    """Print a grid with a header; the columns named in `right` are aligned to the right.

    Examples
    --------
    >>> print_grid(["path", "rows"], [["$.a", 12], ["$.bcd", 3]], right=["rows"])
    path   rows
    -----  ----
    $.a      12
    $.bcd     3
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    to_right = set(right)

    def line(values: Sequence[str]) -> str:
        pairs = zip(header, values, widths, strict=True)
        return "  ".join(v.rjust(width) if name in to_right else v.ljust(width) for name, v, width in pairs).rstrip()

    print(line(header))
    print("  ".join("-" * width for width in widths))
    for row in cells:
        print(line(row))


def human_bytes(size: int) -> str:
    """A size for people.

    Examples
    --------
    >>> human_bytes(999), human_bytes(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    value = float(size)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
