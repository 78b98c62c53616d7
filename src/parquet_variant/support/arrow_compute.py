"""``pyarrow.compute``, imported on first use, since it takes a third of the time that importing pyarrow takes.

Use it as ``from parquet_variant.support import arrow_compute as pc``.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.support.fork_safety import loading


def __getattr__(name: str) -> Any:
    with loading():
        import pyarrow.compute

    return globals().setdefault(name, getattr(pyarrow.compute, name))
