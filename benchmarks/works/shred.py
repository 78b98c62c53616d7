"""`shred_variant` and `unshred_variant` against copying the same bytes, one thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

import parquet_variant as pv
from benchmarks.data import data_sets
from benchmarks.files import schema_of
from benchmarks.harness import OURS, Work


def works() -> Iterator[Work]:
    for data in data_sets():
        plain = pv.parse_json(data.lines, dictionary="batch")
        shredded = pv.shred_variant(plain, schema_of(data))
        for name, work, array in (
            ("shred_variant", partial(pv.shred_variant, plain, schema_of(data), threads=1), plain),
            ("unshred_variant", partial(pv.unshred_variant, shredded, threads=1), shredded),
        ):
            buffers = [np.frombuffer(buffer, np.uint8) for buffer in _buffers(array.storage) if buffer]
            yield Work(
                f"shred: {name}, 1 thread, {data.name}",
                {OURS: work, "memory copy": partial(_copy, buffers)},
                {"memory copy": 1 / 8},
                size=array.nbytes,
            )


def _buffers(array: pa.Array) -> list[pa.Buffer | None]:
    found = list(array.buffers())
    if pa.types.is_dictionary(array.type):
        found += array.dictionary.buffers()
    elif pa.types.is_struct(array.type):
        found += array.field("metadata").dictionary.buffers() if "metadata" in array.type.names else []
    return found


def _copy(buffers: list[np.ndarray]) -> list[np.ndarray]:
    return [buffer.copy() for buffer in buffers]
