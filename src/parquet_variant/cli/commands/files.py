"""``variant rewrite``, ``optimize`` and ``publish``: files in another layout, schema, size or format.

Owns the options, the reports, and the choice of the operation by the formats of source and destination. Leaves the work
to the methods of `Table`, and rows to tables to `pv.write`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.cli.options.common import (
    AsJson,
    Catalog,
    Column,
    EngineOption,
    PolicyOptions,
    Threads,
    WriterOptions,
)
from parquet_variant.cli.options.readers import read_schema
from parquet_variant.cli.options.sources import open_table, read_catalog, spark_session
from parquet_variant.cli.output import Progress, human_bytes, print_json
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.support.choices import DEFAULT_COMPRESSION, AnyLayout, FileMode, OnConflict, OutputFormat

if TYPE_CHECKING:
    pass


def optimize(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A Delta or Iceberg table, or a directory of Parquet or Vortex files."),
    ],
    *,
    reshred: Annotated[
        bool, typer.Option("--reshred", help="Rewrite all files with one new schema, even if that saves no space.")
    ] = False,
    schema: Annotated[
        str | None, typer.Option(help="Shredding schema: DDL, or a file of DDL, JSON or Parquet.")
    ] = None,
    policy: PolicyOptions,
    min_saving: Annotated[
        float, typer.Option(help="Re-shred only if it saves this share of the encoded bytes.", min=0.0, max=1.0)
    ] = 0.02,
    drop_shredding: Annotated[
        bool,
        typer.Option("--drop-shredding", help="Rewrite all files unshredded, and remove the table feature."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report how the data has drifted from the schema.")
    ] = False,
    file_bytes: Annotated[
        int | None, typer.Option(help="Approximate size of a file (default: 256 MiB).", min=1)
    ] = None,
    file_mb: Annotated[int | None, typer.Option(hidden=True, help="As --file-bytes, in MB.", min=1)] = None,
    column: Column = None,
    engine: EngineOption = "local",
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Compact small files, re-shredding columns where that saves space.

    Rows do not change. For a Delta table it is one commit.
    """
    from parquet_variant.files.parquet.format.files import locate
    from parquet_variant.files.parquet.operations.optimize import DEFAULT_FILE_BYTES

    if drop_shredding and (reshred or schema is not None or dry_run):
        raise typer.BadParameter("--drop-shredding excludes --reshred, --schema and --dry-run")
    options: dict[str, Any] = {
        "file_bytes": file_bytes or (file_mb * 1_000_000 if file_mb else DEFAULT_FILE_BYTES),
        "reshred": reshred,
        "policy": policy.read(),
        "min_saving": min_saving,
        "dry_run": dry_run,
    }
    opened = open_table(table, catalog)
    _check_options(opened.format, column, engine, drop_shredding=drop_shredding)
    if engine == "spark" and opened.format == "parquet":
        locate(table)  # files are found before the JVM starts
    with Progress() as progress, spark_session(progress, engine) as session:
        opened = open_table(table, catalog, engine=session, column=column)
        if drop_shredding:
            progress("optimize", 0, 1)
            result = opened.optimize(drop_shredding=True, file_bytes=options["file_bytes"], progress=progress)
        else:
            result = opened.optimize(schema=read_schema(schema), progress=progress, **options)
    _report_optimized(result, dry_run, as_json)
    return 0


def _check_options(format: str, column: str | None, engine: str, *, drop_shredding: bool) -> None:
    """Raise the error for options that the format does not have."""
    if format in ("delta", "iceberg"):
        if column is not None or (drop_shredding and engine == "spark"):
            raise typer.BadParameter(
                "--column, and --drop-shredding with --engine spark, are not supported for Delta and Iceberg tables"
            )
    elif drop_shredding:
        raise typer.BadParameter("--drop-shredding is for tables: use rewrite --layout unshredded")
    elif engine == "spark" and format == "vortex":
        raise typer.BadParameter("--engine spark is not supported for Vortex files")


def _report_optimized(result: Any, dry_run: bool, as_json: bool) -> None:
    version, drift = getattr(result, "version", None), getattr(result, "drift", None)
    if as_json:
        counts = ("files_removed", "files_added", "bytes_removed", "bytes_added")
        report = {} if version is None else {"version": version}
        report |= {name: getattr(result, name) for name in counts}
        print_json(report | {"drift": None if drift is None else drift.to_dict()})
        return
    if drift is not None and (drift.drifts or dry_run):
        print(drift)
    if dry_run:
        return
    if not result.files_removed and not result.files_added:
        print("nothing to do" + ("" if version is None else f" (version {version})"))
        return
    before = f"{counted(result.files_removed, 'file')} ({human_bytes(result.bytes_removed)})"
    after = f"{counted(result.files_added, 'file')} ({human_bytes(result.bytes_added)})"
    print(f"{before} became {after}" + ("" if version is None else f" in version {version}"))
    if version is not None and result.bytes_removed:
        print(f"{human_bytes(result.bytes_removed)} of old files remain in storage until variant vacuum")


def publish(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A Delta or Iceberg table, NAMESPACE.TABLE, a directory of Parquet files, or Vortex files.",
        ),
    ],
    *,
    format: Annotated[str, typer.Option("--as", help="The format to publish: iceberg, delta or ducklake.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="Where to publish: a directory, NAMESPACE.TABLE of --catalog, or the file of a DuckLake catalog "
            "(FILE#SCHEMA.TABLE). By default the table's directory (Vortex files: TABLE.published), or TABLE.ducklake."
        ),
    ] = None,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Publish a table in another format, without copying its files.

    Run it again after changes: only what changed is added and removed.
    """
    from parquet_variant.tables.publishing.publish import FORMATS, publish

    if format not in FORMATS:
        raise typer.BadParameter(f"--as is {format!r}: use {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    checked: Any = format
    result = publish(table, checked, to=to, catalog=read_catalog(catalog))
    if as_json:
        print_json(asdict(result))
    elif result.committed:
        vectors = f", deleted rows of {counted(result.vectors_written, 'file')}" if result.vectors_written else ""
        print(
            f"published as {result.format} in {result.table}, version {result.version}: "
            f"{counted(result.files_added, 'file')} added, {result.files_removed} removed{vectors}"
        )
    else:
        print(f"{result.table} is up to date, at version {result.version}")
    return 0


_TABLES = ("delta", "iceberg")


def rewrite(
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
    from parquet_variant.files.parquet.operations.rewrite import plan_rewrite

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
            if engine == "spark":
                plan_rewrite(source, dest, mode=mode)  # checks options before the JVM starts
            with spark_session(progress, engine) as session:
                written = open_table(source, engine=session).rewrite(
                    dest, format=target, progress=progress, threads=threads, **options, **of_files, **of_parquet
                )
    _report_files(written, dest, as_json)
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
    from parquet_variant.files.vortex.rewriting import source_files, tables_of

    if source_format in _TABLES:
        yield open_table(source, catalog).to_arrow()
    else:
        for file in source_files(source):
            yield from tables_of(file)


def _report_files(written: Any, dest: str, as_json: bool) -> None:
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
