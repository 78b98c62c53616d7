"""Arrow data with hundreds of levels, and Variant groups with duplicate names, are refused with an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def _lists(array: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays([0, 1], array)


def _structs(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], ["a"])


def _maps(array: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays([0, 1], pa.array(["k"]), array)


@pytest.mark.parametrize("levels", [150, 250, 500, 2000])
@pytest.mark.parametrize("nest", [_lists, _structs, _maps])
def test_deep_arrow_data(nest: Callable[[pa.Array], pa.Array], levels: int) -> None:
    array = pa.array([1])
    for _ in range(levels if nest is not _maps else levels // 2):
        array = nest(array)
    if levels == 150:
        assert len(pv.cast_to_variant(array)) == 1
        return
    for convert in (pv.cast_to_variant, pv.to_json, pv.VariantArray.from_arrow):
        with pytest.raises(pv.SchemaError):
            convert(array)
    for use in (lambda: pv.ShreddingSchema.from_arrow(array.type), lambda: pv.variant_get(VALUES, "$", array.type)):
        with pytest.raises(pv.SchemaError, match="nested more than 200 levels deep"):
            use()


VALUES = pv.parse_json(["1"])
METADATA, VALUE, TYPED = pa.array([b"\1\0\0"]), pa.array([b"\x0c\1"]), pa.array([5])


def _struct(*fields: tuple[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays([array for _, array in fields], names=[name for name, _ in fields])


TWICE = _struct(("typed_value", TYPED), ("typed_value", TYPED))
KEYS = _struct(("a", _struct(("typed_value", TYPED))), ("a", _struct(("typed_value", TYPED))))
GROUPS = {
    "two typed values": _struct(("metadata", METADATA), ("typed_value", TYPED), ("typed_value", TYPED)),
    "two values": _struct(("metadata", METADATA), ("value", VALUE), ("value", VALUE)),
    "two metadata": _struct(("metadata", METADATA), ("metadata", METADATA), ("typed_value", TYPED)),
    "two typed values of a field": _struct(("metadata", METADATA), ("typed_value", _struct(("a", TWICE)))),
    "two values of a field": _struct(
        ("metadata", METADATA), ("typed_value", _struct(("a", _struct(("value", VALUE), ("value", VALUE)))))
    ),
    "a key twice": _struct(("metadata", METADATA), ("typed_value", KEYS)),
    "two typed values of an element": _struct(("metadata", METADATA), ("typed_value", _lists(TWICE))),
    "draft 1": _struct(("metadata", METADATA), ("value", VALUE), ("paths", _struct(("a", TWICE)))),
    "draft 1, a key twice": _struct(("metadata", METADATA), ("value", VALUE), ("paths", KEYS)),
    "draft 2": _struct(("untyped_value", VALUE), ("object", _struct(("a", TWICE)))),
    "draft 2, a key twice": _struct(("untyped_value", VALUE), ("object", KEYS)),
}


@pytest.mark.parametrize("name", GROUPS)
def test_duplicate_names_in_a_variant_group(name: str) -> None:
    storage = GROUPS[name]
    uses: list[Callable[[], Any]] = [
        lambda: pv.VariantArray(storage),
        lambda: pv.VariantArray.from_arrow(pa.table({"v": storage})),
        lambda: pv.variant_get(storage, "$.a", "bigint"),
        lambda: pv.to_json(storage),
        lambda: pv.ShreddingSchema.from_storage(storage.type),
    ]
    for use in uses:
        with pytest.raises(pv.SchemaError, match="duplicate"):
            use()
