"""``variant inspect``: what is in Parquet files with Variant columns.

Owns how the report is shown. Leaves the figures to `parquet.inspect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.cli.options import AsJson, Column, Path

if TYPE_CHECKING:
    from parquet_variant.parquet.inspect import ColumnReport

__all__ = ["command"]


def command(path: Path, column: Column = None, as_json: AsJson = False) -> int:
    """Show what is shredded, as which type, how much of it is typed, and what it weighs; reads footers only."""
    from parquet_variant.cli.output import counted, human_bytes, print_json
    from parquet_variant.cli.tables import data_files
    from parquet_variant.parquet import inspect

    report = inspect(data_files(path), column=column)
    if as_json:
        print_json(report.to_dict())
        return 0
    print(f"{counted(report.files, 'file')}, {counted(report.rows, 'row')}, {counted(report.row_groups, 'row group')}")
    print(f"{human_bytes(report.bytes)}, written by {', '.join(report.created_by)}")
    if report.other_columns:
        print(f"other columns: {', '.join(report.other_columns)}")
    for found in report.columns:
        print()
        _print_column(found)
    return 0


def _print_column(column: ColumnReport) -> None:
    from parquet_variant.cli.output import counted, human_bytes, print_grid

    layouts = ", ".join(f"{layout} in {counted(files, 'file')}" for layout, files in column.layouts.items())
    print(f"{column.name}: {layouts}; VARIANT annotation in {counted(column.annotated, 'file')}")
    rows = [
        (
            path.path,
            " or ".join(path.types),
            path.entries,
            _share(path.typed_share),
            _share(path.residual_share),
            path.bytes,
        )
        for path in column.paths
    ]
    print_grid(
        ["path", "type", "values", "typed", "residual", "bytes"],
        [(*row[:-1], human_bytes(row[-1])) for row in rows],
        right=["values", "typed", "residual", "bytes"],
    )
    print(f"dictionaries: {human_bytes(column.metadata_bytes)}")


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
