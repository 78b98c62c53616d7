"""``variant inspect``: what is in Parquet files with Variant columns.

Owns how the report is shown. Leaves the figures to `parquet.inspect`, and predictions to `shredding.estimate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parquet_variant.cli.options import AsJson, Column, Path

if TYPE_CHECKING:
    from parquet_variant.parquet.operations.inspect import ColumnReport
    from parquet_variant.shredding.estimate import Comparison

__all__ = ["command"]


def command(
    path: Path,
    column: Column = None,
    predict_from: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC", help="The JSON it was made of: compare the typed shares with the predicted ones."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what is shredded, how much of it, and what it weighs.

    Reads footers only.
    """
    from parquet_variant.cli.output import counted, human_bytes, print_json
    from parquet_variant.cli.tables import data_files
    from parquet_variant.parquet import inspect

    report = inspect(data_files(path), column=column)
    comparisons = _compared(data_files(path), report.columns[0], predict_from) if predict_from else []
    if as_json:
        shares = [{"path": str(each.path), "predicted": each.predicted, "actual": each.actual} for each in comparisons]
        print_json(report.to_dict() | ({"predictions": shares} if predict_from else {}))
        return 0
    print(f"{counted(report.files, 'file')}, {counted(report.rows, 'row')}, {counted(report.row_groups, 'row group')}")
    print(f"{human_bytes(report.bytes)}, written by {', '.join(report.created_by)}")
    if report.other_columns:
        print(f"other columns: {', '.join(report.other_columns)}")
    for found in report.columns:
        print()
        _print_column(found)
    if predict_from:
        from parquet_variant.cli.output import print_grid

        rows = [(each.path, _share(each.predicted), _share(each.actual)) for each in comparisons]
        print()
        print_grid(["typed share of the values", "predicted", "actual"], rows, right=["predicted", "actual"])
    return 0


def _compared(files: list[str], column: ColumnReport, sources: list[str]) -> tuple[Comparison, ...]:
    """The typed shares that the sources promise under the files' schema, beside those of the files."""
    from parquet_variant.cli.progress import Progress
    from parquet_variant.parquet import profile
    from parquet_variant.parquet.format.files import locate
    from parquet_variant.schema.shredding_schema import ShreddingSchema
    from parquet_variant.shredding.estimate import compare, predict

    with Progress() as progress:
        found = profile(sources, on_error="quarantine", progress=progress)
    schema = ShreddingSchema.from_parquet(locate(files)[0].path, column.name)
    return compare(predict(found, schema), column.paths)


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
