"""JSON files in, shredded Parquet files, a Delta table or Vortex files out, in this process: threads, no JVM.

Owns the public operation, for each format. Leaves the options to `request`, the steps to `job`, the threads to
`io.engine`, and the same on Spark to `spark.ingest`.
"""

from __future__ import annotations

import os
from typing import Unpack

from parquet_variant.choices import OutputFormat
from parquet_variant.ingest.job import IngestJob, IngestResult
from parquet_variant.ingest.request import IngestOptions, IngestRequest, Sources
from parquet_variant.io.engine import Progress, ThreadEngine


class LocalOptions(IngestOptions, total=False):
    """The keywords of an ingest in this process."""

    threads: int | None
    progress: Progress | None


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
