"""Standard input in place of a file (``-``), and JSON in place of Parquet.

Owns private files that are removed when the command ends: a copy of standard input, which is read twice because a
schema is inferred first, and Parquet files made of JSON. Leaves their content to the readers of files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def with_stdin(sources: list[str]) -> Iterator[list[str]]:
    """Replace ``-`` and pipes in the sources by private files, which are removed at the end.

    Raises `VariantFileError` if standard input is a terminal, or is named twice.

    >>> with with_stdin(["a.ndjson"]) as sources:
    ...     sources
    ['a.ndjson']
    """
    from parquet_variant.errors import VariantFileError
    from parquet_variant.ingestion.sources.input_files import is_pipe
    from parquet_variant.io.filesystems import write_errors

    if sources.count("-") > 1:
        raise VariantFileError("- is given twice: standard input can be read only once", reason="bad-option")
    if "-" in sources and (sys.stdin is None or sys.stdin.isatty()):
        raise VariantFileError(
            "- reads standard input, which is a terminal: pipe JSON into the command", reason="no-rows"
        )
    with ExitStack() as stack:
        copies: dict[str, str] = {}
        for number, source in enumerate(dict.fromkeys(sources)):
            if source != "-" and not is_pipe(source):
                continue
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="variant-"))
            copies[source] = f"{folder}/stdin{number or ''}"
            pipe = sys.stdin.buffer if source == "-" else stack.enter_context(Path(source).open("rb"))
            with write_errors(copies[source]), Path(copies[source]).open("wb") as target:
                shutil.copyfileobj(pipe, target, 1 << 20)
            stack.enter_context(called(copies[source], "standard input" if source == "-" else source))
        yield [copies.get(source, source) for source in sources]


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
def queryable(
    path: str, threads: int | None = None, catalog: str | None = None, *, accepts_json: bool = False
) -> Iterator[str]:
    """Yield a path that can be queried: the same one, or a private Parquet file made of JSON; ``-`` is standard input.

    `catalog`: with a catalog, `path` is the name of a table.
    `accepts_json`: whether the query reads JSON itself.

    Raises `JsonError` or `VariantFileError` as `pv.ingest`.

    >>> with queryable("events/") as path:
    ...     path
    'events/'
    """
    from parquet_variant.tables.opening import is_delta, is_json, is_vortex

    # Only `variant ingest` writes a file in which invalid lines can be quarantined.
    advice = called("skip invalid lines with on_error=", "skip invalid lines with `variant ingest`, on_error=")
    with advice, with_stdin([path]) as (source,):
        is_table = not source or catalog is not None or is_delta(source) or is_vortex(source)
        if accepts_json or is_table or not is_json(source):
            yield source
            return
        from parquet_variant.ingestion.ingest import ingest

        with tempfile.TemporaryDirectory(prefix="variant-") as folder:
            dest = f"{folder}/json.parquet"
            ingest(source, dest, one_file=True, threads=threads, compression="lz4", row_group_bytes=16 << 20)
            with called(dest, path):
                yield dest
