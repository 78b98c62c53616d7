"""``variant inspect``: what is in Parquet or Vortex files with Variant columns.

Owns how the report is shown. Leaves the figures to `parquet.inspect` and `vortex.inspect`, and predictions to
`shredding.estimate`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from parquet_variant.cli.options.common import AllowOutside, Also, AsJson, Column, Path, read_types

if TYPE_CHECKING:
    from parquet_variant.parquet.operations.inspect import ColumnReport, PathReport
    from parquet_variant.shredding.costs import Also as TypedToo
    from parquet_variant.shredding.estimate import Comparison


SortBy: TypeAlias = Literal["file", "path", "bytes", "residual", "typed", "missing"]


def command(
    path: Path,
    column: Column = None,
    predict_from: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC", help="The JSON it was made of: compare the typed shares with the predicted ones."),
    ] = None,
    also: Also = None,
    top: Annotated[int | None, typer.Option(help="Only so many paths.", min=1, show_default=False)] = None,
    sort: Annotated[SortBy, typer.Option(help="The order of the paths, most first.")] = "file",
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> int:
    """Show what is shredded, how much of it, and what it weighs.

    Reads footers only; for --also the rows. Of Vortex files: how the column lies in them, and what is typed.
    """
    from parquet_variant.cli.options.tables import data_files
    from parquet_variant.cli.output.report import human_bytes, print_json
    from parquet_variant.parquet import inspect
    from parquet_variant.parquet.report_text import counted
    from parquet_variant.sql_query.paths import is_vortex

    if is_vortex(path):
        if predict_from or also:
            option = "--predict-from" if predict_from else "--also"
            raise typer.BadParameter(f"{option} is for Parquet files, not for Vortex files")
        return _inspect_vortex(path, column, as_json=as_json)

    files = data_files(path, allow_outside=allow_outside)
    report = inspect(files, column=column)
    typed_too = _typed_too(files, column, read_types(also, "--also")) if also else []
    comparisons = _compared(files, report.columns[0], predict_from) if predict_from else []
    if as_json:
        shares = [{"path": str(each.path), "predicted": each.predicted, "actual": each.actual} for each in comparisons]
        too = [{**asdict(each), "path": str(each.path), "saved": each.saved} for each in typed_too]
        told = {"predictions": shares} if predict_from else {}
        print_json(report.to_dict() | told | ({"also": too} if also else {}))
        return 0
    print(f"{counted(report.files, 'file')}, {counted(report.rows, 'row')}, {counted(report.row_groups, 'row group')}")
    print(f"{human_bytes(report.bytes)}, written by {', '.join(report.created_by)}")
    if report.other_columns:
        print(f"other columns: {', '.join(report.other_columns)}")
    for column_report in report.columns:
        print()
        _print_column(column_report, sort, top)
    if typed_too:
        from parquet_variant.shredding.explain import explain_also

        print("", *map(explain_also, typed_too), sep="\n")
    if predict_from:
        from parquet_variant.cli.output.report import print_grid

        rows = [(each.path.shorthand, _share(each.predicted), _share(each.actual)) for each in comparisons]
        print()
        print_grid(["typed share of the values", "predicted", "actual"], rows, right=["predicted", "actual"])
    return 0


def _inspect_vortex(path: str, column: str | None, *, as_json: bool) -> int:
    from parquet_variant.cli.output.report import human_bytes, print_grid, print_json
    from parquet_variant.parquet.report_text import counted
    from parquet_variant.vortex import inspect

    report = inspect(path, column)
    if as_json:
        print_json(report.to_dict())
        return 0
    print(f"{counted(report.files, 'Vortex file')}, {counted(report.rows, 'row')}, {human_bytes(report.bytes)}")
    print(f"checksums in {counted(report.checked, 'file')}")
    if report.other_columns:
        print(f"other columns: {', '.join(report.other_columns)}")
    for each in report.columns:
        layouts = ", ".join(f"{layout} in {counted(files, 'file')}" for layout, files in each.layouts.items())
        texts = f"; was JSON, {'its texts are' if each.has_texts else 'not'} kept byte by byte" if each.is_json else ""
        print(f"\n{each.name}: {each.dtype}, {layouts}; statistics of {counted(each.ranges, 'range')}{texts}")
        if each.types:
            print_grid(["path", "typed as"], [(name, ", ".join(types)) for name, types in each.types.items()])
        if each.in_bytes:
            print_grid(["not typed, in bytes", "because"], list(each.in_bytes.items()))
    return 0


def _typed_too(files: list[str], column: str | None, types: list[tuple[str, str]]) -> list[TypedToo]:
    """What typing more paths would change, from all rows."""
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.parquet import profile
    from parquet_variant.shredding.costs import also

    with Progress() as progress:
        data = profile(files, column=column, progress=progress)
    return [also(data, path, kind) for path, kind in types]


def _compared(files: list[str], column: ColumnReport, sources: list[str]) -> tuple[Comparison, ...]:
    """The typed shares that the sources promise under the files' schema, beside those of the files."""
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.parquet import profile
    from parquet_variant.parquet.format.files import locate
    from parquet_variant.schema.shredding_schema import ShreddingSchema
    from parquet_variant.shredding.estimate import compare, predict

    with Progress() as progress:
        data = profile(sources, on_error="quarantine", progress=progress)
    schema = ShreddingSchema.from_parquet(locate(files)[0].path, column.name)
    return compare(predict(data, schema), column.paths)


def _print_column(column: ColumnReport, sort: SortBy, top: int | None) -> None:
    from parquet_variant.cli.output.report import human_bytes, print_grid
    from parquet_variant.parquet.report_text import counted
    from parquet_variant.path import VariantPath

    layouts = ", ".join(f"{layout} in {counted(files, 'file')}" for layout, files in column.layouts.items())
    print(f"{column.name}: {layouts}; VARIANT annotation in {counted(column.annotated, 'file')}")
    left = sum(path.residual_bytes for path in column.paths)
    typed = [path for path in column.paths if path.bytes > path.residual_bytes]
    sizes = f"{human_bytes(sum(path.bytes for path in column.paths) - left)}, residuals {human_bytes(left)}"
    print(f"{counted(len(typed), 'typed column')} of {sizes}, dictionaries {human_bytes(column.metadata_bytes)}")
    rows = [
        (
            VariantPath.parse(path.path).shorthand,
            " or ".join(path.types),
            path.entries,
            *map(_share, (path.typed_share, path.residual_share, path.missing_share)),
            human_bytes(path.bytes - path.residual_bytes),
            human_bytes(path.residual_bytes),
        )
        for path in _sorted(column.paths, sort)[:top]
    ]
    names = ["path", "type", "values", "typed", "residual", "missing", "typed bytes", "residual bytes"]
    print_grid(names, rows, right=names[2:])


def _sorted(paths: list[PathReport], sort: SortBy) -> list[PathReport]:
    keys: dict[SortBy, Any] = {
        "path": lambda path: path.path,
        "bytes": lambda path: -path.bytes,
        "residual": lambda path: -path.residual_bytes,
        "typed": lambda path: -(path.typed_share or 0),
        "missing": lambda path: -(path.missing_share or 0),
    }
    return sorted(paths, key=keys[sort]) if sort in keys else paths


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"
