"""``variant rewrite``: files in another layout, schema or format.

Owns the options, the report, and the choice of the operation by the formats of source and destination. Leaves the work
to `Table.rewrite`, and rows to tables to `pv.write`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.cli.options.common import AsJson, Catalog, Column, EngineOption, Threads, WriterOptions
from parquet_variant.support.choices import DEFAULT_COMPRESSION, AnyLayout, FileMode, OnConflict, OutputFormat

if TYPE_CHECKING:
    from parquet_variant.cli.output import Progress

_TABLES = ("delta", "iceberg")


def command(
    source: Annotated[
        str,
        typer.Argument(metavar="SRC", help="Parquet or Vortex file, directory or glob, or a Delta or Iceberg table."),
    ],
    dest: Annotated[
        str, typer.Argument(metavar="DEST", help="A file if SRC is one file or a table, else a directory.")
    ],
    *,
    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            help="Format of DEST (default: by its ending .parquet or .vortex, or that of SRC).",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        AnyLayout | None,
        typer.Option(
            help="Layout of the files (default: unchanged). Of Parquet: unshredded, final, draft-paths, draft-object; "
            "of Vortex: auto, variant, struct.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="Shredding schema: DDL, or a file of DDL, JSON or Parquet.")
    ] = None,
    reinfer: Annotated[bool, typer.Option("--reinfer", help="Infer the schema from all values.")] = False,
    annotation: Annotated[bool, typer.Option(help="Annotate the column as VARIANT; otherwise it is a struct.")] = True,
    on_conflict: Annotated[OnConflict, typer.Option(help="For values whose value and typed_value conflict.")] = "error",
    writer: WriterOptions,
    column: Column = None,
    engine: EngineOption = "local",
    threads: Threads = None,
    mode: Annotated[FileMode, typer.Option(help="If a file or table exists.")] = "error",
    overwrite: Annotated[bool, typer.Option("--overwrite", hidden=True, help="As --mode overwrite.")] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Rewrite files in another layout, schema or format: Parquet, Vortex, and the rows of tables.

    Use it for readers without support for shredding, to convert files of older drafts, and to convert between formats.
    """  # fmt: skip
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.cli.output import Progress

    if schema is not None and reinfer:
        raise typer.BadParameter("--schema and --reinfer exclude each other")
    source_format = open_table(source, catalog if format not in _TABLES else None).format
    target = _target_format(source_format, dest, format)
    options: dict[str, Any] = {
        "layout": layout,
        "schema": "infer" if reinfer else read_schema(schema),
        "mode": "overwrite" if overwrite else mode,
    }
    of_files: dict[str, Any] = {"column": column, "on_conflict": on_conflict}
    of_parquet = {**writer.read(), **({} if annotation else {"annotation": False})}
    if target != "parquet":
        of_parquet = {name: value for name, value in of_parquet.items() if value != DEFAULT_COMPRESSION}
        _refuse(of_parquet, f"Parquet files, not to {target.capitalize()}")
    if {source_format, target} != {"parquet"} and engine == "spark":
        raise typer.BadParameter("--engine spark rewrites Parquet files as Parquet files only")
    with Progress() as progress:
        if source_format in _TABLES or target in _TABLES:
            _refuse({name: value for name, value in of_files.items() if value not in (None, "error")}, "files")
            written = _write_rows(source, source_format, dest, target, catalog, **options, **of_parquet)
        else:
            with _session(engine, source, dest, mode, progress) as session:
                written = open_table(source, engine=session).rewrite(
                    dest, format=target, progress=progress, threads=threads, **options, **of_files, **of_parquet
                )
    _report(written, dest, as_json)
    return 0


def _target_format(source_format: str, dest: str, format: str | None) -> Any:
    by_name = next((name for name in ("parquet", "vortex") if dest.endswith(f".{name}")), None)
    target = format or by_name or source_format
    if source_format in _TABLES and target in _TABLES and format is None:
        raise typer.BadParameter("name a DEST that ends in .parquet or .vortex, or set --format")
    return target


def _refuse(options: dict[str, Any], formats: str) -> None:
    if options:
        name = next(iter(options)).replace("_", "-").replace("bloom-filters", "bloom-filter")
        raise typer.BadParameter(f"--{'no-' * (name == 'annotation')}{name} applies to {formats}")


# -- the rewrite


@contextmanager
def _session(engine: str, source: str, dest: str, mode: Any, progress: Progress) -> Iterator[Any]:
    """Yield a Spark session for the engine ``spark``, else None; options are checked before the JVM starts."""
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.files.parquet.operations.rewrite import plan_rewrite

    if engine != "spark":
        yield None
        return
    plan_rewrite(source, dest, mode=mode)
    with spark_session(progress) as session:
        yield session


class _Rows:
    """The rows of files as tables, counted while they are read."""

    def __init__(self, tables: Iterable[Any]) -> None:
        self.tables, self.rows = tables, 0

    def __iter__(self) -> Iterator[Any]:
        for table in self.tables:
            self.rows += len(table)
            yield table


def _write_rows(
    source: str,
    source_format: str,
    dest: str,
    target: Any,
    catalog: str | None,
    *,
    mode: Any,
    layout: Any,
    **write: Any,
) -> Any:
    """Write the rows of files or a table to a file or a table; return the file, or the name of the version and rows."""
    import pyarrow as pa

    from parquet_variant.cli.options.sources import read_catalog
    from parquet_variant.tables.creating import write as write_any

    rows = _Rows(_tables(source, source_format, catalog))
    if target not in _TABLES:
        default: Any = "auto" if target == "vortex" else "final"
        data = pa.concat_tables(rows)
        return [write_any(dest, data, format=target, layout=layout or default, mode=mode, **write)]
    if layout is not None:
        raise typer.BadParameter("--layout applies to Parquet and Vortex files")
    if write["schema"] == "infer":
        write["schema"] = None  # tables infer the schema of new files
    if target == "iceberg":
        mode = "error" if mode == "error" else "replace"
        write["catalog"] = read_catalog(catalog)
    made = write_any(dest, rows, format=target, mode=mode, **write)
    return (f"version {made.version}" if target == "delta" else f"snapshot {made.snapshot_id}"), rows.rows


def _tables(source: str, source_format: str, catalog: str | None) -> Iterator[Any]:
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.files.vortex.rewriting import source_files, tables_of

    if source_format in _TABLES:
        yield open_table(source, catalog).to_arrow()
    else:
        for file in source_files(source):
            yield from tables_of(file)


def _report(written: Any, dest: str, as_json: bool) -> None:
    from parquet_variant.cli.output import human_bytes, print_json
    from parquet_variant.files.parquet.report_text import counted

    if isinstance(written, tuple):
        version, rows = written
        name, number = version.split()
        if as_json:
            print_json({"table": dest, name: int(number), "rows": rows})
        else:
            print(f"{counted(rows, 'row')} in {version} of {dest}")
        return
    rows, size = sum(info.rows for info in written), sum(info.bytes for info in written)
    if as_json:
        files = [{"path": info.path, "rows": info.rows, "bytes": info.bytes} for info in written]
        print_json({"files": files, "rows": rows, "bytes": size})
    else:
        print(f"{counted(rows, 'row')} in {counted(len(written), 'file')} in {dest} ({human_bytes(size)})")
