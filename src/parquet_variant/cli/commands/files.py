"""``variant rewrite``, ``optimize``, ``annotate`` and ``publish``: files in another layout, schema, size or format.

Owns the options, the reports, and the choice of the operation by the formats of source and destination. Leaves the work
to the methods of `Table`, and rows to tables to `pv.write`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

from typer import Argument, BadParameter, Option

from parquet_variant.cli.options import common
from parquet_variant.cli.options.sources import open_table, read_catalog, spark_session
from parquet_variant.cli.output import print_result
from parquet_variant.io.parallel import ShownProgress
from parquet_variant.support.options import AnyLayout, FileMode, OnConflict, OutputFormat, PublishFormat
from parquet_variant.support.records import counted, human_bytes

_TABLES = ("delta", "iceberg")


def optimize(
    table: str = Argument(
        ..., metavar="TABLE", help="A Delta or Iceberg table, or a directory of Parquet or Vortex files."
    ),
    *,
    reshred: bool = Option(False, help="Rewrite all files with one new schema, even if that saves no space."),
    schema: str | None = Option(None, help="Shredding schema: DDL, or a file of DDL, JSON or Parquet."),
    policy: common.PolicyOptions,
    min_saving: float = Option(
        0.02, help="Re-shred only if it saves this share of the encoded bytes.", min=0.0, max=1.0
    ),
    drop_shredding: bool = Option(False, help="Rewrite all files unshredded, and remove the table feature."),
    dry_run: bool = Option(False, help="Only report how the data has drifted from the schema."),
    file_bytes: int | None = Option(None, help="Approximate size of a file (default: 256 MiB).", min=1),
    column: common.Column = None,
    engine: common.EngineOption = "local",
    catalog: common.Catalog = None,
    as_json: common.AsJson = False,
) -> None:
    """Compact small files, re-shredding columns where that saves space.

    Rows do not change. For a Delta table it is one commit.
    """
    from parquet_variant.files.parquet.format.files import locate
    from parquet_variant.files.parquet.operations.rewrite import DEFAULT_FILE_BYTES

    if drop_shredding and (reshred or schema is not None or dry_run):
        raise BadParameter("--drop-shredding excludes --reshred, --schema and --dry-run")
    opened = open_table(table, catalog)
    if opened.format in _TABLES:
        if column is not None or (drop_shredding and engine == "spark"):
            raise BadParameter(
                "--column, and --drop-shredding with --engine spark, are not supported for Delta and Iceberg tables"
            )
    elif drop_shredding:
        raise BadParameter("--drop-shredding is for tables: use rewrite --layout unshredded")
    elif engine == "spark" and opened.format == "vortex":
        raise BadParameter("--engine spark is not supported for Vortex files")
    if engine == "spark" and opened.format == "parquet":
        locate(table)  # files are found before the JVM starts
    if drop_shredding:
        options: dict[str, Any] = {"drop_shredding": True}
    else:
        options = {"reshred": reshred, "policy": policy.read(), "dry_run": dry_run}
        options["schema"] = common.read_schema(schema)
    with ShownProgress() as progress, spark_session(progress, engine) as session:
        opened = open_table(table, catalog, engine=session, column=column)
        size = file_bytes or DEFAULT_FILE_BYTES
        result = opened.optimize(file_bytes=size, min_saving=min_saving, progress=progress, **options)
    version, drift = result.version, result.drift
    counts = ("files_removed", "files_added", "bytes_removed", "bytes_added")
    document = {} if version is None else {"version": version}
    document |= {name: getattr(result, name) for name in counts} | {"drift": drift and drift.to_dict()}
    lines: list[Any] = [drift] if drift is not None and (drift.drifts or dry_run) else []
    lines += [] if dry_run else [result]
    if version is not None and result.bytes_removed:
        lines.append(f"{human_bytes(result.bytes_removed)} of old files remain in storage until variant vacuum")
    print_result(document, lines, as_json=as_json)


def annotate(
    path: str = Argument(..., metavar="PATH", help="A Parquet file or directory, or a Delta or Iceberg table."),
    *,
    column: list[str] | None = Option(None, help="Dotted name of a Variant column; repeatable (default: all)."),
    remove: bool = Option(False, help="Remove the annotation of all columns."),
    catalog: common.Catalog = None,
    as_json: common.AsJson = False,
) -> None:
    """Set which columns have the VARIANT annotation; pages are copied unchanged, and a table changes by one commit."""
    if remove and column:
        raise BadParameter("--remove and --column exclude each other")
    columns = open_table(path, catalog).annotate([] if remove else column or None)
    print_result({"columns": columns}, [f"annotated: {', '.join(columns) or 'no column'}"], as_json=as_json)


def publish(
    table: str = Argument(
        ...,
        metavar="TABLE",
        help="A Delta or Iceberg table, NAMESPACE.TABLE, a directory of Parquet files, or Vortex files.",
    ),
    *,
    format: PublishFormat = Option(..., "--as", help="The format to publish."),
    to: str | None = Option(
        None,
        help="Where to publish: a directory, NAMESPACE.TABLE of --catalog, or the file of a DuckLake catalog "
        "(FILE#SCHEMA.TABLE). By default the table's directory (Vortex files: TABLE.published), or TABLE.ducklake.",
    ),
    catalog: common.Catalog = None,
    as_json: common.AsJson = False,
) -> None:
    """Publish a table in another format, without copying its files.

    Run it again after changes: only what changed is added and removed.
    """
    from parquet_variant.tables.publishing.publish import publish

    result = publish(table, format, to=to, catalog=read_catalog(catalog))
    line = f"{result.table} is up to date, at version {result.version}"
    if result.committed:
        vectors = f", deleted rows of {counted(result.vectors_written, 'file')}" if result.vectors_written else ""
        line = (
            f"published as {result.format} in {result.table}, version {result.version}: "
            f"{counted(result.files_added, 'file')} added, {result.files_removed} removed{vectors}"
        )
    print_result(asdict(result), [line], as_json=as_json)


def rewrite(
    source: str = Argument(
        ..., metavar="SRC", help="Parquet or Vortex file, directory or glob, or a Delta or Iceberg table."
    ),
    dest: str = Argument(..., metavar="DEST", help="A file if SRC is one file or a table, else a directory."),
    *,
    format: OutputFormat | None = Option(
        None, "--format", help="Format of DEST (default: by its ending .parquet or .vortex, or that of SRC)."
    ),
    layout: AnyLayout | None = Option(
        None,
        help="Layout of the files (default: unchanged). Of Parquet: unshredded, final, draft-paths, draft-object; "
        "of Vortex: auto, variant, struct.",
    ),
    schema: str | None = Option(None, help="Shredding schema: DDL, or a file of DDL, JSON or Parquet."),
    reinfer: bool = Option(False, help="Infer the schema from all values."),
    annotation: bool = Option(True, help="Annotate the column as VARIANT; otherwise it is a struct."),
    on_conflict: OnConflict = Option("error", help="For values whose value and typed_value conflict."),
    writer: common.WriterOptions,
    column: common.Column = None,
    engine: common.EngineOption = "local",
    threads: common.Threads = None,
    mode: FileMode = Option("error", help="If a file or table exists."),
    catalog: common.Catalog = None,
    as_json: common.AsJson = False,
) -> None:
    """Rewrite files in another layout, schema or format: Parquet, Vortex, and the rows of tables.

    Use it for readers without support for shredding, to convert files of older drafts, and to convert between formats.
    """  # fmt: skip
    from parquet_variant.files.parquet.operations.rewrite import plan_rewrite

    if schema is not None and reinfer:
        raise BadParameter("--schema and --reinfer exclude each other")
    source_format = open_table(source, catalog if format not in _TABLES else None).format
    by_name = next((name for name in ("parquet", "vortex") if dest.endswith(f".{name}")), None)
    target: Any = format or by_name or source_format
    if source_format in _TABLES and target in _TABLES and format is None:
        raise BadParameter("name a DEST that ends in .parquet or .vortex, or set --format")
    new_schema = "infer" if reinfer else common.read_schema(schema)
    options: dict[str, Any] = {"layout": layout, "schema": new_schema, "mode": mode}
    of_files: dict[str, Any] = {"column": column, "on_conflict": on_conflict}
    of_parquet = {**writer.read(), **({} if annotation else {"annotation": False})}
    if target != "parquet":
        common.refuse(of_parquet, f"Parquet files, not to {target.capitalize()}")
    if {source_format, target} != {"parquet"} and engine == "spark":
        raise BadParameter("--engine spark rewrites Parquet files as Parquet files only")
    with ShownProgress() as progress:
        if source_format in _TABLES or target in _TABLES:
            common.refuse({name: value for name, value in of_files.items() if value not in (None, "error")}, "files")
            document, line = _write_rows(source, source_format, dest, target, catalog, **options, **of_parquet)
        else:
            if engine == "spark":
                plan_rewrite(source, dest, mode=mode)  # checks options before the JVM starts
            with spark_session(progress, engine) as session:
                document, line = _files_report(
                    open_table(source, engine=session).rewrite(
                        dest, format=target, progress=progress, threads=threads, **options, **of_files, **of_parquet
                    ),
                    dest,
                )
    print_result(document, [line], as_json=as_json)


def _write_rows(
    source: str, source_format: str, dest: str, target: Any, catalog: str | None, mode: Any, layout: Any, **write: Any
) -> tuple[dict[str, Any], str]:
    """Write the rows of a table to a file, or of files or a table to a table; return the report."""
    import pyarrow as pa

    from parquet_variant.arrays.parts import empty_table
    from parquet_variant.tables.creating import write as write_any

    if target not in _TABLES:
        write["layout"] = layout or ("auto" if target == "vortex" else "final")
        rows = open_table(source, catalog).to_arrow()
        return _files_report([write_any(dest, rows, format=target, mode=mode, **write)], dest)
    if layout is not None:
        raise BadParameter("--layout applies to Parquet and Vortex files")
    if write["schema"] == "infer":
        write["schema"] = None  # tables infer the schema of new files
    if target == "iceberg":
        mode = "error" if mode == "error" else "replace"
        write["catalog"] = read_catalog(catalog)
    opened, count = open_table(source, catalog), 0
    scan = opened.scan()
    schema = pa.schema([new.with_nullable(old.nullable) for new, old in zip(scan.schema, opened.schema, strict=True)])

    def parts() -> Iterator[pa.Table]:
        nonlocal count
        for part in chain([empty_table(schema)], scan.batches()):
            count += len(part)
            yield pa.table(part.columns, schema=schema)

    made = write_any(dest, parts(), format=target, mode=mode, **write)
    name, number = ("version", made.version) if target == "delta" else ("snapshot", made.snapshot_id)
    return {"table": dest, name: number, "rows": count}, f"{counted(count, 'row')} in {name} {number} of {dest}"


def _files_report(written: list[Any], dest: str) -> tuple[dict[str, Any], str]:
    """Return the report of written files, as a document and as a line."""
    rows, size = sum(info.rows for info in written), sum(info.bytes for info in written)
    files = [{"path": info.path, "rows": info.rows, "bytes": info.bytes} for info in written]
    line = f"{counted(rows, 'row')} in {counted(len(written), 'file')} in {dest} ({human_bytes(size)})"
    return {"files": files, "rows": rows, "bytes": size}, line
