"""``variant rewrite``: Parquet files into another layout, schema or annotation.

Owns the options and the report. Leaves the work to `parquet.rewrite`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.choices import FileMode, Layout, OnConflict
from parquet_variant.cli.options.common import AsJson, Column, EngineOption, Threads
from parquet_variant.cli.options.groups import WriterOptions

if TYPE_CHECKING:
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.parquet.writing.writer import FileInfo


def command(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A Parquet file, directory, glob or URI.")],
    dest: Annotated[str, typer.Argument(metavar="DEST", help="A file for one file; else a directory.")],
    *,
    layout: Annotated[Layout | None, typer.Option(help="Default: each column's own.", show_default=False)] = None,
    schema: Annotated[str | None, typer.Option(help="What to shred: DDL, or a file of DDL, JSON or Parquet.")] = None,
    reinfer: Annotated[bool, typer.Option("--reinfer", help="Choose what to shred from all the values.")] = False,
    annotation: Annotated[bool, typer.Option(help="Put the VARIANT annotation on; without, it is a struct.")] = True,
    on_conflict: Annotated[OnConflict, typer.Option(help="If value and typed_value contradict each other.")] = "error",
    writer: WriterOptions,
    column: Column = None,
    engine: EngineOption = "local",
    threads: Threads = None,
    mode: Annotated[FileMode, typer.Option(help="If a file is there.")] = "error",
    overwrite: Annotated[bool, typer.Option("--overwrite", hidden=True, help="As --mode overwrite.")] = False,
    as_json: AsJson = False,
) -> int:
    """Rewrite files in another layout or under another schema.

    The way out for readers that know no shredding, and the way in from the older drafts.
    """
    from parquet_variant.cli.options.schema import read_schema
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.cli.output.report import human_bytes, print_json
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
            written = _on_spark(source, dest, progress=progress, **options)
        else:
            written = rewrite(source, dest, progress=progress, threads=threads, **options)
    rows, size = sum(info.rows for info in written), sum(info.bytes for info in written)
    if as_json:
        files = [{"path": info.path, "rows": info.rows, "bytes": info.bytes} for info in written]
        print_json({"files": files, "rows": rows, "bytes": size})
    else:
        print(f"{counted(rows, 'row')} in {counted(len(written), 'file')} in {dest} ({human_bytes(size)})")
    return 0


def _on_spark(source: str, dest: str, *, progress: Progress, **options: Any) -> list[FileInfo]:
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.parquet.operations.rewrite import plan_rewrite
    from parquet_variant.spark.operations.change import rewrite

    plan_rewrite(source, dest, mode=options["mode"])  # before anyone waits for a JVM
    with spark_session(progress) as session:
        return rewrite(session, source, dest, progress=progress, **options)
