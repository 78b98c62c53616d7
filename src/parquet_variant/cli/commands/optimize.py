"""``variant optimize``: compacting and re-shredding files; ``variant rewrite``: another layout or schema.

Owns the options and the reports. Leaves the work to `delta.optimize`, `parquet.optimize` and `parquet.rewrite`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from parquet_variant.choices import FileMode, Layout, OnConflict
from parquet_variant.cli.options.common import (
    AsJson,
    Catalog,
    Column,
    EngineOption,
    PolicyOptions,
    Threads,
    WriterOptions,
)

if TYPE_CHECKING:
    from parquet_variant.cli.output import Progress
    from parquet_variant.parquet.writing.writer import FileInfo

Reshred: TypeAlias = Annotated[
    bool, typer.Option("--reshred", help="Rewrite all files with one new schema, even if that saves no space.")
]
MinSaving: TypeAlias = Annotated[
    float, typer.Option(help="Re-shred only if it saves this share of the encoded bytes.", min=0.0, max=1.0)
]


def optimize(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A Delta table, or a directory of Parquet files: path or URI.")
    ],
    *,
    reshred: Reshred = False,
    schema: Annotated[
        str | None, typer.Option(help="Shredding schema: DDL, or a file of DDL, JSON or Parquet.")
    ] = None,
    policy: PolicyOptions,
    min_saving: MinSaving = 0.02,
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
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.output import Progress
    from parquet_variant.parquet.operations.optimize import DEFAULT_FILE_BYTES
    from parquet_variant.sql_query.paths import is_delta, is_iceberg

    if drop_shredding and (reshred or schema is not None or dry_run):
        raise typer.BadParameter("--drop-shredding excludes --reshred, --schema and --dry-run")
    options: dict[str, Any] = {
        "file_bytes": file_bytes or (file_mb * 1_000_000 if file_mb else DEFAULT_FILE_BYTES),
        "reshred": reshred,
        "policy": policy.read(),
        "min_saving": min_saving,
        "dry_run": dry_run,
    }
    with Progress() as progress:
        if catalog is None and is_delta(table):
            if column is not None or (drop_shredding and engine == "spark"):
                raise typer.BadParameter(
                    "--column, and --drop-shredding with --engine spark, are not supported for Delta tables"
                )
            from parquet_variant import delta

            if drop_shredding:
                progress("optimize", 0, 1)
                result: Any = delta.drop_shredding(table, file_bytes=options["file_bytes"])
            elif engine == "spark":
                result = _on_spark(table, progress, schema=read_schema(schema), **options)
            else:
                result = delta.optimize(table, schema=read_schema(schema), progress=progress, **options)
        elif catalog is not None or is_iceberg(table):
            result = _of_iceberg(table, catalog, progress, schema, options, drop_shredding=drop_shredding)
        elif drop_shredding:
            raise typer.BadParameter("--drop-shredding is for Delta tables: use rewrite --layout unshredded")
        else:
            run = _on_spark if engine == "spark" else _in_process
            result = run(table, progress, schema=read_schema(schema), column=column, **options)
    _report(result, dry_run, as_json)
    return 0


def _of_iceberg(
    table: str, catalog: str | None, progress: Progress, schema: str | None, options: Any, *, drop_shredding: bool
) -> Any:
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.options.tables import read_catalog
    from parquet_variant.iceberg import optimize

    if drop_shredding or options["dry_run"]:
        raise typer.BadParameter("--drop-shredding and --dry-run are not supported for Iceberg tables")
    kept = {name: options[name] for name in ("file_bytes", "reshred", "policy")}
    return optimize(
        table, schema=read_schema(schema), progress=progress, catalog=read_catalog(catalog), threads=None, **kept
    )


def _in_process(path: str, progress: Progress, **options: Any) -> Any:
    from parquet_variant.parquet import optimize

    return optimize(path, progress=progress, **options)


def _on_spark(path: str, progress: Progress, **options: Any) -> Any:
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.parquet.format.files import locate
    from parquet_variant.spark.operations.change import optimize
    from parquet_variant.sql_query.paths import is_delta

    if not is_delta(path):
        locate(path)  # before the JVM starts
    with spark_session(progress) as session:
        return optimize(session, path, progress=progress, **options)


def _report(result: Any, dry_run: bool, as_json: bool) -> None:
    from parquet_variant.cli.output import human_bytes, print_json
    from parquet_variant.parquet.report_text import counted

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


def rewrite(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A Parquet file, directory, glob or URI.")],
    dest: Annotated[str, typer.Argument(metavar="DEST", help="A file if SRC is one file, else a directory.")],
    *,
    layout: Annotated[
        Layout | None, typer.Option(help="Layout of the files (default: unchanged).", show_default=False)
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
    mode: Annotated[FileMode, typer.Option(help="If a file exists.")] = "error",
    overwrite: Annotated[bool, typer.Option("--overwrite", hidden=True, help="As --mode overwrite.")] = False,
    as_json: AsJson = False,
) -> int:
    """Rewrite files in another layout or with another schema.

    Use it for readers without support for shredding, and to convert files of older drafts.
    """
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.output import Progress, human_bytes, print_json
    from parquet_variant.parquet import rewrite
    from parquet_variant.parquet.report_text import counted

    if schema is not None and reinfer:
        raise typer.BadParameter("--schema and --reinfer exclude each other")
    options: dict[str, Any] = {
        "layout": layout,
        "schema": "infer" if reinfer else read_schema(schema),
        "column": column,
        "annotation": annotation,
        "on_conflict": on_conflict,
        "mode": "overwrite" if overwrite else mode,
        **writer.read(),
    }
    with Progress() as progress:
        if engine == "spark":
            written = _rewrite_on_spark(source, dest, progress=progress, **options)
        else:
            written = rewrite(source, dest, progress=progress, threads=threads, **options)
    rows, size = sum(info.rows for info in written), sum(info.bytes for info in written)
    if as_json:
        files = [{"path": info.path, "rows": info.rows, "bytes": info.bytes} for info in written]
        print_json({"files": files, "rows": rows, "bytes": size})
    else:
        print(f"{counted(rows, 'row')} in {counted(len(written), 'file')} in {dest} ({human_bytes(size)})")
    return 0


def _rewrite_on_spark(source: str, dest: str, *, progress: Progress, **options: Any) -> list[FileInfo]:
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.parquet.operations.rewrite import plan_rewrite
    from parquet_variant.spark.operations.change import rewrite

    plan_rewrite(source, dest, mode=options["mode"])  # before the JVM starts
    with spark_session(progress) as session:
        return rewrite(session, source, dest, progress=progress, **options)
