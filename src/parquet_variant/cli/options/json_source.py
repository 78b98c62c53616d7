"""JSON where a command queries Parquet: ingested for as long as the command runs.

Owns the file that is made, and that it goes. Leaves making it to `ingest`, and standard input to `stdin`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from parquet_variant.cli.options.stdin import called, with_stdin

__all__ = ["queryable"]


@contextmanager
def queryable(path: str, threads: int | None = None) -> Iterator[str]:
    """A path that can be queried: the one given, or a private Parquet file of the JSON that it names; ``-`` is stdin.

    Raises
    ------
    JsonError, VariantFileError
        As `pv.parquet.ingest`.

    Examples
    --------
    >>> with queryable("events/") as path:
    ...     path
    'events/'
    """
    from parquet_variant.sql_query.paths import is_delta, is_json, is_vortex

    with with_stdin([path]) as (source,):
        if not source or is_delta(source) or is_vortex(source) or not is_json(source):
            yield source
            return
        from parquet_variant.ingest.ingest import ingest

        with tempfile.TemporaryDirectory(prefix="variant-") as folder:
            dest = f"{folder}/json.parquet"
            # Lines that are no JSON are put aside only by an ingest that is kept.
            with called("put bad lines aside: on_error=", "put bad lines aside with `variant ingest`: on_error="):
                ingest(source, dest, one_file=True, threads=threads, compression="lz4", row_group_bytes=16 << 20)
            with called(dest, path):
                yield dest
