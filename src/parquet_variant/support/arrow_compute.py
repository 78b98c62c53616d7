"""``pyarrow.compute``, imported on first use, since it takes a third of the time that importing pyarrow takes.

Use it as ``from parquet_variant.support import arrow_compute as pc``, also in place of methods of arrays such as
``cast``, which import it without letting forks wait.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from parquet_variant.support.fork_safety import loading


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, getattr(_compute(), name))


@cache
def _compute() -> Any:
    with loading():
        import pyarrow as pa
        import pyarrow.compute

        # Arrow makes shared objects under locks at the first call of a function. A child that is forked meanwhile would
        # wait for them forever.
        pyarrow.compute.cast(pa.nulls(0, pa.int32()), pa.int64())
    return pyarrow.compute
