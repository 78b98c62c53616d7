"""Typed cells that their column's type cannot hold: one error in every operation, never another value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

_METADATA = pv.Variant.from_python(None).metadata


def _storage(typed: pa.Array) -> pv.VariantArray:
    columns = [pa.array([_METADATA] * len(typed)), pa.nulls(len(typed), pa.binary()), typed]
    return pv.VariantArray(pa.StructArray.from_arrays(columns, ["metadata", "value", "typed_value"]))


def _decimals(kind: pa.DataType, *unscaled: int) -> pa.Array:
    data = b"".join(item.to_bytes(16, "little", signed=True) for item in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(data)])


def _times(*ticks: int) -> pa.Array:
    return pa.Array.from_buffers(pa.time64("us"), len(ticks), [None, pa.py_buffer(np.array(ticks, np.int64))])


COLUMNS = {
    "decimal4": (_decimals(pa.decimal128(5, 2), 1, 10**30), "bad-decimal"),
    "decimal4, one digit too many": (_decimals(pa.decimal128(5, 2), 1, -(10**5)), "bad-decimal"),
    "decimal8": (_decimals(pa.decimal128(18, 0), 1, 10**18), "bad-decimal"),
    "decimal16": (_decimals(pa.decimal128(38, 10), 1, 10**38), "bad-decimal"),
    "time": (_times(1, 86_400_000_000), "bad-time"),
    "time below zero": (_times(1, -1), "bad-time"),
}
OPERATIONS: dict[str, Callable[[pv.VariantArray], Any]] = {
    "to_json": pv.to_json,
    "unshred_variant": pv.unshred_variant,
    "to_python": pv.to_python,
    "variant_get": lambda array: pv.variant_get(array, "$", "string"),
    "variant_get as it is": lambda array: pv.variant_get(array, "$", array.storage.type.field("typed_value").type),
    "variant_get of decimals": lambda array: pv.variant_get(array, "$", "decimal(38, 10)", errors="null"),
    "variant_type": pv.variant_type,
    "shred_variant": lambda array: pv.shred_variant(array, "string"),
    "element": lambda array: array[1],
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_operation_refuses(column: str, operation: str) -> None:
    cells, reason = COLUMNS[column]
    with pytest.raises(pv.MalformedVariantError) as caught:
        OPERATIONS[operation](_storage(cells))
    assert caught.value.reason == reason
    assert caught.value.row in (1, 0 if operation == "element" else 1)


@pytest.mark.parametrize("column", COLUMNS)
def test_validate_names_the_row(column: str, tmp_path: Path) -> None:
    cells, reason = COLUMNS[column]
    found = pv.validate(_storage(cells)).to_pylist()
    assert [(fault["row"], fault["reason"]) for fault in found] == [(1, reason)]
    if column in ("decimal4, one digit too many", "decimal8", "time"):  # what else pyarrow writes cut off, or refuses
        pq.write_table(pa.table({"v": _storage(cells).storage}), tmp_path / "v.parquet")
        report = pv.open(tmp_path / "v.parquet").validate()
        assert (reason, 1) in [(violation.reason, violation.row) for violation in report.violations]


def test_a_time_outside_the_day_in_bytes() -> None:
    value = pv.Variant(_METADATA, bytes([17 << 2]) + (10**12).to_bytes(8, "little"))
    array = pv.VariantArray.from_variants([value])
    with pytest.raises(pv.MalformedVariantError, match="day"):
        pv.to_json(array)
    time = pv.ShreddingSchema.from_arrow(pa.time64("us"))
    with pytest.raises(pv.MalformedVariantError, match="day"):
        pv.shred_variant(array, time)
    assert pv.to_json(array, errors="null").to_pylist() == [None]


def test_columns_beyond_arrows_limit_are_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    array = pv.parse_json(['{"a": "' + "x" * 90 + '"}'] * 2)
    monkeypatch.setattr("parquet_variant.kernels.shredding.schema_table.MAX_OFFSET", 100)
    text = '"' + "x" * 101 + '"'
    for work in (lambda: pv.shred_variant(array, "struct<a string>"), lambda: pv.parse_json([text], threads=1)):
        with pytest.raises(pv.VariantError, match="fewer rows") as caught:
            work()
        assert caught.value.reason == "too-large"
