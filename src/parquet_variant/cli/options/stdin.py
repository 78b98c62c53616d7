"""Standard input where a file is asked for (``-``), and JSON where Parquet is.

Owns private files that are there until the command ends: what is piped in, since a schema is inferred before the rows
are written, and what JSON is ingested into. Leaves what is in them to whoever reads files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def with_stdin(sources: list[str]) -> Iterator[list[str]]:
    """The sources with a file in the place of ``-``, private and gone at the end.

    Raises `VariantFileError` if standard input is a terminal, or named twice.

    >>> with with_stdin(["a.ndjson"]) as sources:
    ...     sources
    ['a.ndjson']
    """
    from parquet_variant.errors import VariantFileError

    if "-" not in sources:
        yield sources
        return
    if sources.count("-") > 1:
        raise VariantFileError("- is named twice: standard input can be read once", reason="bad-option")
    if sys.stdin is None or sys.stdin.isatty():
        raise VariantFileError("- is standard input, and nothing is piped into it", reason="no-rows")
    with tempfile.TemporaryDirectory(prefix="variant-") as folder:
        file = Path(folder) / "stdin"
        with file.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
        with called(str(file), "standard input"):
            yield [str(file) if source == "-" else source for source in sources]


@contextmanager
def called(file: str, name: str) -> Iterator[None]:
    """Errors about a private file name what it stands for.

    >>> from parquet_variant.errors import JsonError
    >>> with called("/tmp/x/stdin", "standard input"):
    ...     raise JsonError("line 3 of /tmp/x/stdin is no JSON", file="/tmp/x/stdin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.JsonError: line 3 of standard input is no JSON (file standard input)
    """
    from parquet_variant.errors import VariantError

    try:
        yield
    except VariantError as error:
        error.message = error.message.replace(file, name)
        error.file = name if error.file == file else error.file
        raise


@contextmanager
def queryable(path: str, threads: int | None = None) -> Iterator[str]:
    """A path that can be queried: the one given, or a private Parquet file of the JSON that it names; ``-`` is stdin.

    Raises `JsonError` or `VariantFileError` as `pv.ingest`.

    >>> with queryable("events/") as path:
    ...     path
    'events/'
    """
    from parquet_variant.sql_query.paths import is_delta, is_json, is_vortex

    with with_stdin([path]) as (source,):
        if not source or is_delta(source) or is_vortex(source) or not is_json(source):
            yield source
            return
        from parquet_variant.ingestion.ingest import ingest

        with tempfile.TemporaryDirectory(prefix="variant-") as folder:
            dest = f"{folder}/json.parquet"
            # Lines that are no JSON are put aside only by an ingest that is kept.
            with called("put bad lines aside: on_error=", "put bad lines aside with `variant ingest`: on_error="):
                ingest(source, dest, one_file=True, threads=threads, compression="lz4", row_group_bytes=16 << 20)
            with called(dest, path):
                yield dest
