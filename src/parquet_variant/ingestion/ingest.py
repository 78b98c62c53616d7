"""The public operations over JSON files, in this process: threads, no JVM.

Owns `ingest` for each format, `profile` and `infer` (which take Parquet files, too), and `read_json`. Leaves the
options to `request`, the steps to `job`, the threads to `io.engine`, and the same on Spark to `spark.ingest`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import InputFormat, OutputFormat
from parquet_variant.errors import VariantFileError, check_choice, check_names
from parquet_variant.ingestion.job import IngestJob, IngestResult, profile_sources
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, Sources, TextKeywords, TextOptions
from parquet_variant.ingestion.sources import expand_sources, whole_splits
from parquet_variant.ingestion.task import read_arrays
from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.keywords import renamed, with_keywords
from parquet_variant.parquet.format.files import locate
from parquet_variant.parquet.reading.read import profile_column
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import infer as infer_from_profile
from parquet_variant.shredding.policies.decision import InferenceResult
from parquet_variant.shredding.profile import Profile


class LocalOptions(IngestOptions, total=False):
    """The keywords of an ingest in this process."""

    threads: int | None
    progress: Progress | None


@with_keywords(IngestOptions, IngestRequest, TextOptions)
def ingest(
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    format: OutputFormat = "parquet",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read JSON files and write them as a directory of shredded Parquet files, a Delta table or Vortex files.

    The text is read twice, in chunks: once to infer the schema, once to write. Memory is bounded by the threads, not by
    the input.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of JSON; plain, gzip, zstd, bz2 or lz4. With `json_column` tables, also a data
        frame or Arrow table in memory.
    dest
        The directory or table to write. It has all of the rows in the end, or is as it was.
    format
        ``"parquet"``: a directory of files; ``"delta"``: a Delta table, made if it is not there, in one commit;
        ``"vortex"``: a directory of Vortex files, or one file if the name ends in ``.vortex``.
    threads
        Threads that work; by default one a core.
    progress
        Called with the step, the tasks done and the tasks in all.
    schema
        What to shred, as an object or DDL. By default it is inferred from the input.
    policy
        How to infer it; see `infer_shredding_schema`.
    readers
        Engines that read the files by themselves, and are to find paths fast: ``"duckdb"`` (docs/interop.md).
    sample
        Share of the lines that the schema is inferred from, above 0 up to 1; by default 8 MiB of text, and of a large
        input an eighth. Which lines depends on where they lie in their file, not on how the work is divided.
    column
        Name of the variant column.
    on_error
        ``"fail"``: the first bad line ends the job and nothing is written; ``"quarantine"``: bad lines go to
        ``_bad_records`` below `dest`, with file, line number and reason, and are counted; ``"null"``: they are
        SQL NULL, and not counted.
    mode
        If `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (over many lines, or several on one) or ``"auto"``, which tells these
        apart; ``"csv"``, ``"xml"``: a row or an element is an object, as Spark's ``singleVariantColumn`` reads them.
    root
        Where the rows are in documents, such as ``$.items[*]``: what stands around them is left out.
    json_column
        The sources are tables (Parquet, Arrow, CSV, Delta, or one in memory), and this column of theirs holds JSON as
        text or bytes. Its Variants take its place, under the name `column` if that is given; others stay as they are
        (text, of CSV). Null stays null.
    types
        Strings that are to be ``date``, ``timestamp``, ``timestamp_ntz``, ``uuid`` or ``binary`` (base64), by path or
        pattern: ``{"$.created_at": "timestamp", "$..*_id": "uuid"}``. A string is typed only if `to_json` gives exactly
        its text back, and counted; others stay strings.
    detect_timestamps
        Type strings that are dates or timestamps wherever they are; by default of CSV only, as Spark does.
    split_bytes
        Size of the parts into which plain files are cut; by default so that every thread has one, from 4 to 128 MiB.
    parse
        Options of `parse_json`; of CSV ``delimiter``, ``quote_char``, ``header`` and ``null_values``; of XML
        ``row_tag``, ``attribute_prefix`` and ``value_tag``.
    preview
        For a new Delta table: name the feature ``variantShredding-preview``, for readers that know no other.
    partition_by
        Columns out of JSON paths by which rows are put into directories (``day=2026-01-31/``), or a Delta table that is
        made is partitioned: ``"day=$.ts:date"``, a list of such, or a mapping. What cannot be cast is in the partition
        of null. Readers see the columns beside the variant column, and read only the partitions that a filter allows.
    one_file
        `dest` is to be one Parquet file, not a directory; bad lines go to ``dest + ".bad_records.ndjson"``.
    compression, compression_level, row_group_bytes, annotation, sort_by, bloom_filters
        Of Parquet files, also those of a Delta table: see `VariantWriter`.
    file_bytes
        Of a Delta table: about how large a file may become.
    layout, compact, exact
        Of Vortex files: see `pv.vortex.write`; `exact` with `json_column`.

    Returns
    -------
    IngestResult
        With the schema, and counts of rows, files and bad records.

    Raises
    ------
    VariantError
        For an option that cannot be, before anything is read.
    VariantFileError
        For a source that is missing or cannot be read, sources without a value, or a destination that holds data.
    DeltaError
        For a table that is there already, or that this package may not write.
    JsonError
        For a bad line, if `on_error` is ``"fail"``, with file and line.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = pv.parquet.ingest("examples/usgs_earthquakes.ndjson", f"{folder}/quakes", compression="snappy")
    ...     result.rows, len(pv.parquet.read(f"{folder}/quakes"))
    (1707, 1707)
    """
    request = IngestRequest.of(sources, dest, format=format, **options)
    return IngestJob(request).run(ThreadEngine(threads, progress))


def ingest_delta(sources: Sources, dest: str | os.PathLike[str], **options: Unpack[LocalOptions]) -> IngestResult:
    """Read JSON files and write them as a Delta table, in one commit: `pv.parquet.ingest` with ``format="delta"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.ingest("examples/usgs_earthquakes.ndjson", folder)
    ...     _ = pv.delta.ingest("examples/usgs_earthquakes.ndjson", folder, mode="append")
    ...     len(pv.delta.read(folder))
    3414
    """
    return ingest(sources, dest, format="delta", **options)


def ingest_vortex(sources: Sources, dest: str | os.PathLike[str], **options: Unpack[LocalOptions]) -> IngestResult:
    """Read JSON files and write them as Vortex files, or one: `pv.parquet.ingest` with ``format="vortex"``."""
    return ingest(sources, dest, format="vortex", **options)


# Decorated, they would have no type where `pv.delta` and `pv.vortex` name them, in mypy's order of modules.
for _function in (ingest_delta, ingest_vortex):
    with_keywords(LocalOptions, IngestRequest, TextOptions, ingest)(_function)


@with_keywords(TextKeywords, TextOptions)
def profile(
    sources: Sources,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **text: Unpack[TextKeywords],
) -> Profile:
    """Count what is at which path: types, shares, ranges, lengths.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    column
        The Variant column of Parquet files, if they have several.
    threads, progress
        As for `ingest`.
    **text
        How JSON is read. ``sample``: share of the text, above 0 up to 1, by default all of it; ``on_error``:
        ``"fail"``, or a bad line is passed over (``"quarantine"``) or SQL NULL (``"null"``); ``input_format``,
        ``root``, ``json_column``, ``types``, ``detect_timestamps``, ``parse`` as for `ingest`.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, or sources without a value.
    JsonError
        For a bad line, if `on_error` is ``"fail"``.

    Examples
    --------
    >>> paths = profile("examples/usgs_earthquakes.ndjson")
    >>> paths.rows, len(list(paths))
    (1707, 34)
    """
    files = [os.fspath(sources)] if isinstance(sources, str | os.PathLike) else list(sources)
    check_names("option", text, TextKeywords.__annotations__)
    text.setdefault("sample", 1.0)
    of_text = TextOptions.of(**text)
    if of_text.json_column is None:
        files = expand_sources(files)
    if of_text.json_column is not None or not all(map(_is_parquet, files)):
        return profile_sources(ThreadEngine(threads, progress), files, of_text)
    total = Profile()
    for source in locate(files):
        total = total.merge(profile_column(source, column))
    return total


def _is_parquet(file: str) -> bool:
    filesystem, path = filesystem_of(file)
    with filesystem.open_input_stream(path, compression=None) as stream:
        return bool(stream.read(4) == b"PAR1")


def infer(sources: Sources, policy: Any = None, **options: Any) -> InferenceResult:
    """Choose what to shred of files, as `ingest` would.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    policy
        A policy or its name; see `infer_shredding_schema`.
    **options
        As for `profile`: ``sample``, ``column``, ``on_error``, ``input_format``, ``root``, ``json_column``,
        ``parse``, ``threads``, ``progress``.

    Returns
    -------
    InferenceResult
        The schema, and a decision with its reason for every path.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, or sources without a value.
    JsonError
        For a bad line, if ``on_error`` is ``"fail"``.
    VariantError
        For an unknown policy.

    Examples
    --------
    >>> result = infer("examples/usgs_earthquakes.ndjson")
    >>> result.rows, result.decision("$.properties.mag").shredded
    (1707, True)
    """
    return infer_from_profile(profile(sources, **options), policy)


@renamed(errors=("on_error", {"raise": "fail"}))
def read_json(
    sources: Sources,
    *,
    schema: ShreddingSchema | str | None = None,
    on_error: Literal["fail", "null"] = "fail",
    input_format: InputFormat = "auto",
    root: str | None = None,
    types: Mapping[str, str] | None = None,
    detect_timestamps: bool | None = None,
    **parse: Any,
) -> VariantArray:
    """Read JSON files into one array, a value a row.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    schema
        What to shred, as an object or DDL; nothing by default.
    on_error
        ``"fail"``: a bad line is an error; ``"null"``: it is SQL NULL.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (over many lines, or several on one), ``"csv"``, ``"xml"`` or
        ``"auto"``.
    root
        Where the rows are in documents, such as ``$.items[*]``.
    types, detect_timestamps
        Strings that are to be dates, timestamps, UUIDs or binary; see `pv.parquet.ingest`.
    **parse
        Options of `parse_json`, of CSV or XML; see `pv.parquet.ingest`.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read.
    JsonError
        For a bad line, with file and line, unless ``on_error="null"``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> quakes = pv.read_json("examples/usgs_earthquakes.ndjson")
    >>> len(quakes), quakes["properties"]["mag"][0].to_python()
    (1707, 2)
    """
    check_choice("on_error", on_error, ("fail", "null"))
    options = TextOptions.of(on_error=on_error, input_format=input_format, root=root, parse=parse,
        types=types, detect_timestamps=detect_timestamps,
    )  # fmt: skip
    schema = None if schema is None else ShreddingSchema.of(schema)
    filled = [rows.variants for rows in read_arrays(whole_splits(sources), schema, options) if len(rows)]
    if not filled:
        raise VariantFileError("no JSON value in the sources: name files that hold some", reason="no-rows")
    return VariantArray.concat(filled)
