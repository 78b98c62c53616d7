"""Run operations of every family of kernels, and fail each of their allocations once.

Usage: ``python failing_operations.py [NAME …]``, with the first letters of the operations.

Prints the number of allocations of each operation. Ends with an error if a failed allocation is not a `MemoryError`, if
a block is left behind, or if the operation has another result afterwards.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parquet_variant as pv
from parquet_variant.kernels import buffer_pool
from parquet_variant.kernels.machine_code import checks
from parquet_variant.kernels.machine_code.entry_points import machine_code


class Checked:
    """Allocations of kernels in checked mode."""

    def __init__(self) -> None:
        self.count = self.failing = 0
        self._realloc = checks.raw_realloc
        checks.raw_realloc = self._reallocate

    def _reallocate(self, block: int, size: int) -> int:
        self.count += 1
        return 0 if self.count == self.failing else self._realloc(block, size)

    def fail(self, number: int) -> None:
        self.count, self.failing = 0, number

    def live(self) -> int:
        return len(checks.OWNED_BLOCKS)


class Preloaded:
    """Allocations of machine code, which `failing_allocations.c` intercepts."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])

    @property
    def count(self) -> int:
        return self._library.allocation_count()

    def fail(self, number: int) -> None:
        self._library.fail_allocation(number)

    def live(self) -> int:
        # Without those that wait for the next batch.
        return self._library.live_blocks() - len(buffer_pool.spare_blocks) - len(buffer_pool.returned_blocks)


def operations(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return operations by name, each with what makes its result comparable."""
    deep: Any = 1
    for i in range(70):
        deep = [deep] if i % 2 else {"k": deep}
    rows = [
        json.dumps({"i": i, "s": f"t{i % 3}" * 4, "l": [i, None, {"x": i / 4}], f"key{i:04}": {"d": "2024-01-02"}})
        for i in range(270)
    ]
    rows = rows if machine_code().mode == "built" else rows[:3]
    rows += ['{"b":1,"b":2,"a":[12345678901234567890123.5,null]}', json.dumps(deep), '{"i":"x","l":[[1]],"z":{}}']
    schema = "struct<i: bigint, s: string, l: array<struct<x: double>>>"
    array = pv.parse_json(rows)
    shredded = pv.shred_variant(array, schema)
    lines = folder / "rows.ndjson"
    lines.write_text("\n".join(rows) + "\n")
    files = iter(range(1 << 30))

    def written(value: Any) -> Path:
        path = folder / f"{next(files)}.parquet"
        pv.write(path, {"v": value}, mode="overwrite")
        return path

    def ingested() -> Path:
        path = folder / f"{next(files)}.parquet"
        pv.ingest(lines, path, threads=1)
        return path

    file = written(shredded)
    text = lambda values: pv.to_json(values).to_pylist()  # noqa: E731
    plain = lambda values: values.to_pylist()  # noqa: E731
    read = lambda path: text(pv.open(path).read())  # noqa: E731
    return {
        "parse_json": (lambda: pv.parse_json(rows), text),
        "parse_json, one dictionary": (lambda: pv.parse_json(rows, dictionary="batch"), text),
        "shred_variant": (lambda: pv.shred_variant(array, schema), text),
        "unshred_variant": (lambda: pv.unshred_variant(shredded), text),
        "to_json": (lambda: pv.to_json(array), plain),
        "to_json of shredded values": (lambda: pv.to_json(shredded), plain),
        "variant_get": (lambda: pv.variant_get(array, "$.l", "array<variant>", errors="null"), str),
        "parquet.extract": (lambda: pv.open(file).scan({"x": "$.l[2].x:double", "z": "$.z:variant"}).to_arrow(), str),
        "infer_shredding_schema": (lambda: pv.infer_shredding_schema(array), str),
        "schema_of_variant": (lambda: pv.schema_of_variant(array), plain),
        "validate": (lambda: pv.validate(array).num_rows, str),
        "equals": (lambda: pv.equals(array, shredded), plain),
        "variant_set": (lambda: pv.variant_set(array, "$.q[2].r", 5, errors="null"), text),
        "strip_nulls": (lambda: pv.strip_nulls(array), text),
        "parquet.write": (lambda: written(shredded), read),
        "parquet.ingest": (ingested, read),
    }


def fail_each(allocations: Any, call: Callable[[], Any], comparable: Callable[[Any], Any]) -> int:
    """Fail each allocation of an operation once; return their number."""
    expected = comparable(call())
    # Only what is made from now on is collected, which saves most of the time.
    gc.collect()
    gc.freeze()
    before = allocations.live()
    number = 0
    while True:
        number += 1
        allocations.fail(number)
        error: str | None = None
        result = None
        try:
            result = call()
        except MemoryError as failed:
            error = str(failed)
        has_failed = allocations.count >= number
        allocations.fail(0)
        if not has_failed:
            assert error is None
            assert comparable(result) == expected
            return number - 1
        assert error is not None, f"allocation {number} has failed, and nothing was raised"
        assert "work on fewer rows at a time" in error, error
        gc.collect()
        assert allocations.live() == before, f"{allocations.live() - before} blocks are left by allocation {number}"


def main() -> None:
    allocations = Preloaded() if machine_code().mode == "built" else Checked()
    with tempfile.TemporaryDirectory() as folder:
        for name, (call, comparable) in operations(Path(folder)).items():
            if name.startswith(tuple(sys.argv[1:]) or ""):
                print(name, fail_each(allocations, call, comparable), flush=True)


if __name__ == "__main__":
    main()
