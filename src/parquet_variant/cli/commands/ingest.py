"""``variant ingest``: JSON files in; shredded Parquet files, a Delta table or Vortex files out.

Owns the options and the report. Leaves the work to `ingest.job`, on threads or on Spark.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.cli.options.common import (
    AsJson,
    BloomFilters,
    DetectTimestamps,
    Engine,
    EngineOption,
    FormatOption,
    InputFormat,
    JsonColumn,
    OnError,
    OnErrorOption,
    PageWriter,
    Parse,
    Policy,
    Queries,
    Root,
    RowGroupBytes,
    SampleOrDefault,
    Settings,
    SortBy,
    Threads,
    Types,
    read_parse,
    read_types,
    written_as,
)

if TYPE_CHECKING:
    from parquet_variant.ingest.result import IngestResult

__all__ = ["command"]


class Format(StrEnum):
    """What is written."""

    PARQUET = "parquet"
    DELTA = "delta"
    VORTEX = "vortex"


class Layout(StrEnum):
    """How the Variants lie in Vortex files."""

    AUTO = "auto"
    VARIANT = "variant"
    STRUCT = "struct"
    COLUMNAR = "columnar"


class Mode(StrEnum):
    """What to do with a destination that holds data."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"


def command(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC...", help="JSON: files, directories, globs, URIs; - for standard input.")
    ],
    dest: Annotated[str, typer.Argument(metavar="DEST", help="The directory to write; or a .parquet or .vortex file.")],
    schema: Annotated[
        str | None, typer.Option(help="What to shred: DDL, or a file of DDL or JSON. Default: inferred.")
    ] = None,
    policy: Policy = "auto",
    settings: Settings = None,
    queries: Queries = None,
    sample: SampleOrDefault = None,
    on_error: OnErrorOption = OnError.FAIL,
    engine: EngineOption = Engine.LOCAL,
    into: Annotated[
        Format, typer.Option("--format", help="Parquet files, a Delta table, or Vortex files.")
    ] = Format.PARQUET,
    mode: Annotated[Mode, typer.Option(help="If DEST holds data.")] = Mode.ERROR,
    preview: Annotated[
        bool, typer.Option("--preview", help="Of a new Delta table: name the feature variantShredding-preview.")
    ] = False,
    column: Annotated[
        str | None, typer.Option(help="Name of the variant column: v, or that of --json-column.", show_default=False)
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH:TYPE",
            help="A column out of the JSON by which rows are put into directories, such as day=$.ts:date; repeat.",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        Layout,
        typer.Option(
            help="Of Vortex files: Vortex's Variant type, a struct of typed columns, or a column a path and type."
        ),
    ] = Layout.AUTO,
    exact: Annotated[
        bool, typer.Option("--exact", help="Of Vortex files: keep the texts of --json-column byte by byte, too.")
    ] = False,
    compression: Annotated[str, typer.Option(help="Codec of the Parquet files.")] = "zstd",
    sort_by: SortBy = None,
    bloom_filters: BloomFilters = None,
    row_group_bytes: RowGroupBytes = None,
    writer: PageWriter = None,
    input_format: FormatOption = InputFormat.AUTO,
    root: Root = None,
    json_column: JsonColumn = None,
    parse: Parse = None,
    types: Types = None,
    detect_timestamps: DetectTimestamps = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> int:
    """Read JSON and write it shredded: all of it, or nothing."""
    from parquet_variant.cli.options.policy import read_policy
    from parquet_variant.cli.options.schema import read_schema
    from parquet_variant.cli.options.stdin import with_stdin
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.ingest.job import IngestJob
    from parquet_variant.ingest.request import IngestRequest
    from parquet_variant.io.filesystems import absolute
    from parquet_variant.io.thread_engine import ThreadEngine

    if preview and into is not Format.DELTA:
        raise typer.BadParameter("--preview is for --format delta")
    written = written_as(compression, sort_by, bloom_filters, row_group_bytes, writer)
    if engine is Engine.SPARK:  # whose workers may stand in another directory
        sources = [source if source == "-" else absolute(source) for source in sources]
        dest = absolute(dest)
    with with_stdin(sources) as read, Progress() as progress:
        request = IngestRequest.of(
            read,
            dest,
            format=into.value,
            schema=read_schema(schema),
            policy=read_policy(policy, settings, queries),
            sample=sample,
            column=column or json_column or "v",
            on_error=on_error.value,
            mode=mode.value,
            input_format=input_format.value,
            root=root,
            json_column=json_column,
            parse=read_parse(parse),
            types=read_types(types),
            detect_timestamps=detect_timestamps,
            preview=preview,
            partition_by=partition_by or (),
            one_file=_is_one_file(dest, into, mode) and not partition_by,
            **_for_format(into, written, layout, exact),
        )
        # What can be looked at is looked at before anyone waits for a JVM.
        job = IngestJob(request)
        if engine is Engine.SPARK:
            from parquet_variant.cli.spark_session import spark_session
            from parquet_variant.spark.engine import SparkEngine

            with spark_session(progress) as session:
                result = job.run(SparkEngine(session, progress))
        else:
            result = job.run(ThreadEngine(threads, progress))
    _report(result, into, as_json)
    return 0


def _is_one_file(dest: str, into: Format, mode: Mode) -> bool:
    """Whether one file is meant: by its name, unless there is a directory, or rows are to be added now and then."""
    import pyarrow.fs as pafs

    from parquet_variant.io.filesystems import filesystem_of

    if not dest.endswith(".parquet") or into is not Format.PARQUET:
        return False
    filesystem, path = filesystem_of(dest, None)
    kind = filesystem.get_file_info(path).type
    return kind is pafs.FileType.File or (kind is pafs.FileType.NotFound and mode is not Mode.APPEND)


def _for_format(into: Format, written: dict[str, Any], layout: Layout, exact: bool) -> dict[str, Any]:
    """The options of the files. Vortex compresses by itself, so that its files have none of the writer's."""
    if into is not Format.VORTEX:
        if exact or layout is not Layout.AUTO:
            raise typer.BadParameter(f"--{'exact' if exact else 'layout'} is for --format vortex")
        return written
    given = sorted(set(written) - {"compression"})
    if given:
        raise typer.BadParameter(f"--{given[0].replace('_', '-')} is for Parquet files, not for --format vortex")
    return {"layout": layout.value, "exact": exact}


def _report(result: IngestResult, into: Format, as_json: bool) -> None:
    from parquet_variant.cli.output.report import counted, human_bytes, print_json

    if as_json:
        print_json(result.to_dict())
        return
    written = "Vortex" if into == Format.VORTEX else "Parquet"
    sizes = f"{human_bytes(result.bytes_read)} of JSON, {human_bytes(result.bytes_written)} of {written}"
    print(f"{counted(result.rows, 'row')} in {counted(len(result.files), 'file')} in {result.dest} ({sizes})")
    if result.bad_records:
        print(f"{counted(result.bad_records, 'bad line')} in {result.bad_records_path}")
    for each in result.typed_texts:
        print(each)
    if result.schema is not None:
        print(f"shredded:\n{result.schema}")
