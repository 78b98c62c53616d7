"""``variant inspect``: what is in files with Variant columns; ``validate``: by the rules; ``explore``: as a page.

Owns how the reports are shown, the exit code, and where a page goes. Leaves the figures to `parquet.inspect` and
`vortex.inspect`, predictions to `shredding.estimate`, the rules to `parquet.validate`, and the page to `explorer`.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from parquet_variant.cli.failure import DATA_PROBLEM
from parquet_variant.cli.options.common import AllowOutside, Also, AsJson, Column, Path, Threads, read_types

if TYPE_CHECKING:
    from parquet_variant.parquet.operations.inspect import ColumnReport, PathReport
    from parquet_variant.shredding.costs import PathEstimate
    from parquet_variant.shredding.estimate import Comparison

SortBy: TypeAlias = Literal["file", "path", "bytes", "residual", "typed", "missing"]


def inspect(
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
    from parquet_variant.cli.output import human_bytes, print_json
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
        from parquet_variant.shredding.explain import explain_estimate

        print("", *map(explain_estimate, typed_too), sep="\n")
    if predict_from:
        from parquet_variant.cli.output import print_grid

        rows = [(each.path.shorthand, _share(each.predicted), _share(each.actual)) for each in comparisons]
        print()
        print_grid(["typed share of the values", "predicted", "actual"], rows, right=["predicted", "actual"])
    return 0


def _inspect_vortex(path: str, column: str | None, *, as_json: bool) -> int:
    from parquet_variant.cli.output import human_bytes, print_grid, print_json
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


def _typed_too(files: list[str], column: str | None, types: list[tuple[str, str]]) -> list[PathEstimate]:
    """What typing more paths would change, from all rows."""
    from parquet_variant.cli.output import Progress
    from parquet_variant.ingestion.ingest import profile
    from parquet_variant.shredding.costs import estimate_path

    with Progress() as progress:
        data = profile(files, column=column, progress=progress)
    return [estimate_path(data, path, kind) for path, kind in types]


def _compared(files: list[str], column: ColumnReport, sources: list[str]) -> tuple[Comparison, ...]:
    """The typed shares that the sources promise under the files' schema, beside those of the files."""
    from parquet_variant.cli.output import Progress
    from parquet_variant.ingestion.ingest import profile
    from parquet_variant.parquet.format.files import locate
    from parquet_variant.schema.shredding_schema import ShreddingSchema
    from parquet_variant.shredding.estimate import compare, predict

    with Progress() as progress:
        data = profile(sources, on_error="quarantine", progress=progress)
    schema = ShreddingSchema.from_parquet(locate(files)[0].path, column.name)
    return compare(predict(data, schema), column.paths)


def _print_column(column: ColumnReport, sort: SortBy, top: int | None) -> None:
    from parquet_variant.cli.output import human_bytes, print_grid
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


def validate(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Parquet files, directories, globs or URIs, or Delta tables.")
    ],
    column: Column = None,
    limit: Annotated[int, typer.Option(help="Violations to list for each column of a file.", min=1)] = 1000,
    threads: Threads = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> int:
    """Check every value of Parquet files.

    The exit code is 1 if one breaks the specification. Also says which engines will not read the files, and why.
    """
    from parquet_variant.cli.options.tables import data_files
    from parquet_variant.cli.output import Progress, print_json
    from parquet_variant.parquet import validate

    with Progress() as progress:
        progress("validate", 0, 1)
        files = [file for path in paths for file in data_files(path, allow_outside=allow_outside)]
        report = validate(files, column=column, limit=limit, threads=threads)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report)
    return 0 if report.ok else DATA_PROBLEM


def explore(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Parquet, Delta, Vortex, or JSON before any ingest.")],
    html: Annotated[
        FilePath, typer.Option(metavar="FILE", help="The page to write: one file that needs nothing else.")
    ] = FilePath("explore.html"),
    serve: Annotated[bool, typer.Option("--serve", help="Serve the page here, with rows and SQL.")] = False,
    port: Annotated[int, typer.Option(help="With --serve: the port; 0 for any.", min=0, max=65535)] = 0,
    compare: Annotated[str | None, typer.Option(metavar="OTHER", help="What it was before: shown beside it.")] = None,
    version: Annotated[int | None, typer.Option(help="A version of a Delta table.", show_default=False)] = None,
    column: Column = None,
    as_json: AsJson = False,
) -> int:
    """Show what is typed, what the rest costs, what a query would read: a page to look at.

    Reads footers and a sample of at most 20,000 rows.
    """
    from parquet_variant.cli.options.stdin import with_stdin
    from parquet_variant.cli.output import human_bytes, print_json
    from parquet_variant.explorer.explore import explore

    with with_stdin([path]) as (source,):
        report = explore(source, column=column, compare=compare, version=version)
    if as_json:
        print_json(report.to_dict())
        return 0
    if not serve:
        size = report.save(html).stat().st_size
        print(f"{html}: {human_bytes(size)}; open it in a browser")
        return 0
    from parquet_variant.explorer.serve import ExploreServer

    server = ExploreServer(report, port)
    print(f"{server.url}\nread-only, for this machine alone; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.close()
    return 0
