"""The data that commands name (tables, files, JSON in place of Parquet, standard input), and their Spark session.

Owns private files that are removed when the command ends: a copy of standard input, which is read twice because a
schema is inferred first, and Parquet files made of JSON; and the lifetime of a session: the active one, or one that
ends with the command. Leaves formats to `pv.open`, and settings of a session to `spark.session`.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.io.parallel import ShownProgress
    from parquet_variant.tables.table.table import Table


def open_table(path: str, catalog: Any = None, **options: Any) -> Table:
    """Open what a command names; options as for `pv.open`, with the text of ``--catalog``."""
    from parquet_variant.tables.opening import open as open_any

    return open_any(path, catalog=read_catalog(catalog), **options)


def read_catalog(text: Any) -> Any:
    """Return the catalog that ``--catalog`` names, as `pv.open` takes it.

    >>> read_catalog("http://127.0.0.1:8181")
    {'type': 'rest', 'uri': 'http://127.0.0.1:8181'}
    """
    if text is None or not text.startswith(("{", "http://", "https://")):
        return text
    if text.startswith("http"):
        return {"type": "rest", "uri": text}
    try:
        return json.loads(text)
    except ValueError as error:
        from parquet_variant.errors import bad_option

        raise bad_option(f"--catalog is not JSON: {error}") from None


def data_files(path: Any, *, allow_outside: bool = False) -> list[str]:
    """Return the files of a Delta or Iceberg table; any other path is returned unchanged.

    Raises `VariantFileError` for Vortex files and a table without files, and `TableError` for files outside the table.
    """
    from parquet_variant.errors import VariantFileError
    from parquet_variant.tables.table.reporting import table_of_files

    table = open_table(path, allow_outside=allow_outside, input_format="auto")  # rows of CSV are not read
    if table.format == "vortex":
        problem = f"{table.uri} is a Vortex file, and this command needs Parquet: use query or cat"
        raise VariantFileError(problem, reason="not-parquet", file=table.uri)
    source = table_of_files(table).source
    return source if isinstance(source, list) else [source]


@contextmanager
def with_stdin(sources: list[str]) -> Iterator[list[str]]:
    """Replace ``-`` and pipes in the sources by private files, which are removed at the end.

    Raises `VariantFileError` if standard input is a terminal, or is named twice.

    >>> with with_stdin(["a.ndjson"]) as sources:
    ...     sources
    ['a.ndjson']
    """
    from parquet_variant.errors import VariantFileError
    from parquet_variant.ingestion.sources.input_files import InputFile, is_pipe

    if sources.count("-") > 1:
        raise VariantFileError("- is given twice: standard input can be read only once", reason="bad-option")
    if "-" in sources and (sys.stdin is None or sys.stdin.isatty()):
        raise VariantFileError(
            "- reads standard input, which is a terminal: pipe JSON into the command", reason="no-rows"
        )
    with ExitStack() as stack:
        copies: dict[str, InputFile] = {}
        for source in dict.fromkeys(sources):
            if source == "-" or is_pipe(source):
                copies[source] = InputFile.of_pipe(source, sys.stdin.buffer if source == "-" else None)
                name = "standard input" if source == "-" else source
                stack.enter_context(called(str(copies[source].copy), name))
        yield [str(copies[source].copy) if source in copies else source for source in sources]


@contextmanager
def called(file: str, name: str) -> Iterator[None]:
    """Replace the name of a private file in errors.

    >>> from parquet_variant.errors import JsonError
    >>> with called("/tmp/x/stdin", "standard input"):
    ...     raise JsonError("line 3 of /tmp/x/stdin is not JSON", file="/tmp/x/stdin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.JsonError: line 3 of standard input is not JSON (file standard input)
    """
    from parquet_variant.errors import VariantError

    try:
        yield
    except VariantError as error:
        error.message = error.message.replace(file, name)
        error.file = name if error.file == file else error.file
        raise


@contextmanager
def queryable(path: str, threads: int | None = None, *, accepts_json: bool = False, **options: Any) -> Iterator[Table]:
    """Open a path that is queried: JSON as a private Parquet file, unless `accepts_json`; ``-`` is standard input.

    Raises `JsonError` or `VariantFileError` as `pv.ingest`.
    """
    # Only `variant ingest` writes a file in which invalid lines can be quarantined.
    advice = called("skip invalid lines with on_error=", "skip invalid lines with `variant ingest`, on_error=")
    with advice, with_stdin([path]) as (source,):
        table = open_table(source, **options)
        if accepts_json or table.format != "json":
            yield table
            return
        from parquet_variant.ingestion.ingest import ingest

        with tempfile.TemporaryDirectory(prefix="variant-") as folder:
            dest = f"{folder}/json.parquet"
            ingest(source, dest, one_file=True, threads=threads, compression="lz4", row_group_bytes=16 << 20)
            with called(dest, path):
                yield open_table(dest, column=table.options.column)


@contextmanager
def spark_session(progress: ShownProgress, engine: str = "spark") -> Iterator[Any]:
    """Yield a local session, which is stopped at the end unless it was active before; None for the engine local."""
    if engine != "spark":
        yield None
        return
    from parquet_variant.spark.session import local_session

    progress("start Spark", 0, 1)
    was_active = False
    with suppress(ImportError):  # `local_session` reports what to install
        from pyspark.sql import SparkSession

        was_active = SparkSession.getActiveSession() is not None
    session = local_session("variant")
    from pyspark.logger import PySparkLogger

    # PySpark logs errors in queries to stderr as JSON before it raises them, and the command prints them.
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield session
    finally:
        logger.setLevel(level)
        if not was_active:
            session.stop()
