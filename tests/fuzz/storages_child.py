"""Hostile columns through every operation, under the guarding allocator; `test_storages` starts it as its own process.

Prints the number of each case before it is tried, so that one that ends the process is known.
"""

from __future__ import annotations

import ctypes
import faulthandler
import sys

import pyarrow as pa

import parquet_variant as pv
from fuzz.operations import OPERATIONS, ended
from fuzz.samples import damaged_array, damaged_bytes, random_array
from fuzz.seeds import random_source, tries


def _guard(on: bool) -> int:
    library = ctypes.CDLL(None)
    if not hasattr(library, "guard_set"):
        return 0
    library.guard_set(int(on))
    return int(library.guard_count())


def main(suite: str) -> None:
    """``storages``: damaged Arrow data; ``values``: damaged values and texts; ``prove``: write past the end."""
    faulthandler.enable(all_threads=False)
    for operation in OPERATIONS.values():  # compiled before the guard is on
        with random_source("warm", 0) as source:
            ended(operation, source, random_array(source, rows=3))
    _guard(True)
    if suite == "prove":
        from parquet_variant.kernels.buffer_pool import acquire

        array = acquire("u1", 5000)
        ctypes.memset(array.ctypes.data + 5000, 0, 4096)
    for number in tries(suite, 12):
        with random_source(suite, number) as source:
            print(number, flush=True)
            column = random_array(source)
            if suite == "storages":
                try:
                    hostile = damaged_array(source, column.storage)
                except pa.ArrowException:
                    continue
            else:
                values = [
                    value and pv.Variant(damaged_bytes(source, value.metadata, 1), damaged_bytes(source, value.value))
                    for value in column
                ]
                hostile = pv.VariantArray.from_variants(values).storage
            for name, operation in OPERATIONS.items():
                print(name, end=" ", flush=True)
                ended(operation, source, hostile)
            print(flush=True)
    print(f"guarded allocations: {_guard(False)}")


if __name__ == "__main__":
    main(sys.argv[1])
