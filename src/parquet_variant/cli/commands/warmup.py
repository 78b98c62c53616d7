"""``variant warmup``: see to it that no later command compiles kernels.

Owns the report. Leaves what there is to compile to `machine_code.entry_points`.
"""

from __future__ import annotations

import time

from parquet_variant.cli.options.common import AsJson


def command(as_json: AsJson = False) -> int:
    """Compile kernels that were not built with the package: there are some only in a checkout, or on rare platforms."""
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.cli.output.report import print_json
    from parquet_variant.machine_code.cache import cache_home
    from parquet_variant.machine_code.entry_points import machine_code, warmup

    begun = time.monotonic()
    with Progress() as progress:
        compiled = warmup(progress)
    seconds, level = round(time.monotonic() - begun, 1), machine_code().level
    if as_json:
        cache = cache_home() if compiled else None
        print_json({"kernels": machine_code().way, "level": level, "seconds": seconds, "cache": cache})
    elif compiled:
        print(f"kernels compiled for {level} in {seconds} s, kept in {cache_home()}")
    else:
        print(f"nothing to do: the kernels were built with the package, for {level}")
    return 0
