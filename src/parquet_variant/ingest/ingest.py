"""JSON files in, a directory of shredded Parquet files out, in this process: threads, no JVM.

Owns the public operation. Leaves the threads to `threads`, the steps to `ingest_job`, the same on Spark to
`spark.ingest`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from parquet_variant.ingest.job import Sources, run_ingest
from parquet_variant.ingest.result import IngestResult
from parquet_variant.ingest.sources import Format
from parquet_variant.ingest.task import OnError
from parquet_variant.io.engine import Progress
from parquet_variant.io.staging import Mode
from parquet_variant.io.thread_engine import ThreadEngine
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["ingest"]


def ingest(
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    schema: ShreddingSchema | str | None = None,
    policy: Any = None,
    sample: float | None = None,
    column: str = "v",
    on_error: OnError = "fail",
    mode: Mode = "error",
    input_format: Format = "auto",
    split_bytes: int | None = None,
    parse: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **write: Any,
) -> IngestResult:
    """Read JSON files and write them as a directory of shredded Parquet files.

    The text is read twice, in chunks: once to infer the schema, once to write. Memory is bounded by the threads, not by
    the input.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    dest
        The directory to write. It has all of the files in the end, or is as it was.
    schema
        What to shred, as an object or DDL. By default it is inferred from the input.
    policy
        How to infer it; see `infer_shredding_schema`.
    sample
        Share of the lines that the schema is inferred from, above 0 up to 1; by default 8 MiB of text, and of a large
        input an eighth. Which lines depends on where they lie in their file, not on how the work is divided.
    column
        Name of the variant column.
    on_error
        ``"fail"``: the first bad line ends the job and nothing is written; ``"quarantine"``: bad lines go to
        ``_bad_records`` below `dest`, with file, line number and reason, and are counted.
    mode
        If `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    input_format
        ``"ndjson"``, ``"array"`` or ``"auto"``.
    split_bytes
        Size of the parts into which plain files are cut; by default so that every thread has one, from 4 to 128 MiB.
    parse
        Options of `parse_json`.
    threads
        Threads that work; by default one a core.
    progress
        Called with the step, the tasks done and the tasks in all.
    **write
        Options of `VariantWriter`, such as ``compression="zstd"`` or ``row_group_bytes``.

    Returns
    -------
    IngestResult
        With the schema, and counts of rows, files and bad records.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, sources without a value, or a destination that holds data.
    JsonError
        For a bad line, if `on_error` is ``"fail"``, with file and line.
    """
    return run_ingest(
        ThreadEngine(threads, progress),
        sources,
        dest,
        schema=schema,
        policy=policy,
        sample=sample,
        column=column,
        on_error=on_error,
        mode=mode,
        input_format=input_format,
        split_bytes=split_bytes,
        parse=parse,
        write=write,
    )
