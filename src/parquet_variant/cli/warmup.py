"""``variant warmup``: compile every kernel now, so that no later command waits for it.

Owns the report. Leaves what there is to compile to `parquet.warmup`.
"""

from __future__ import annotations

import time

from parquet_variant.cli.options import AsJson

__all__ = ["command"]


def command(as_json: AsJson = False) -> int:
    """Compile the kernels and keep them in the cache: for images, clusters and CI."""
    from parquet_variant.cli.output import print_json
    from parquet_variant.cli.progress import Progress
    from parquet_variant.ingest.warmup import warmup
    from parquet_variant.machine_code.cache import cache_home

    begun = time.monotonic()
    with Progress() as progress:
        warmup(progress)
    seconds = round(time.monotonic() - begun, 1)
    if as_json:
        print_json({"seconds": seconds, "cache": cache_home()})
    else:
        print(f"kernels compiled in {seconds} s, kept in {cache_home()}")
    return 0
