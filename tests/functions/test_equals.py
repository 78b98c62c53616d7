"""`equals` is `Variant.__eq__`, row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.types import VariantType as T
from variant_strategies import mutated_variants, variants

SCALARS: list[tuple[T, Any]] = [
    (T.INT8, 1), (T.INT64, 1), (T.DECIMAL4, (100, 2)), (T.DECIMAL16, (1, 0)), (T.DECIMAL16, (10**38 - 1, 38)),
    (T.DECIMAL8, (10, 1)), (T.DECIMAL16, (-100, 2)), (T.INT16, -1), (T.DOUBLE, 1.0), (T.FLOAT, 1.0), (T.DOUBLE, 0.0),
    (T.DOUBLE, -0.0), (T.DOUBLE, float("nan")), (T.FLOAT, float("nan")), (T.INT8, 0), (T.DECIMAL16, (0, 5)),
    (T.DECIMAL4, (0, 9)), (T.INT64, -(2**63)), (T.DECIMAL16, (-(2**63) * 100, 2)), (T.TIMESTAMP, 5),
    (T.TIMESTAMP_NANOS, 5000), (T.TIMESTAMP_NANOS, 5001), (T.TIMESTAMP_NTZ, 5), (T.TIMESTAMP_NTZ_NANOS, 5000),
    (T.TIMESTAMP, -5), (T.TIMESTAMP_NANOS, -5000), (T.TIMESTAMP_NANOS, -5001), (T.TIMESTAMP, 2**62), (T.DATE, 5),
    (T.TIME, 5), (T.BOOLEAN, True), (T.BOOLEAN, False), (T.NULL, None), (T.STRING, "a"), (T.STRING, "x" * 70),
    (T.BINARY, b"a"), (T.UUID, b"1" * 16), (T.UUID, b"2" * 16),
]  # fmt: skip


def test_every_pair_of_scalars() -> None:
    scalars = [pv.Variant(b"\x11\x00\x00", encode_scalar(kind, raw)) for kind, raw in SCALARS]
    left = [one for one in scalars for _ in scalars]
    right = [other for _ in scalars for other in scalars]
    found = pv.equals(pv.VariantArray.from_variants(left), pv.VariantArray.from_variants(right)).to_pylist()
    assert found == [one == other for one, other in zip(left, right, strict=True)]
    assert found.count(True) == 76


@given(st.data())
def test_rows_are_equal_where_the_values_are(data: st.DataObject) -> None:
    left = data.draw(st.lists(st.none() | variants() | mutated_variants(max_changes=1), min_size=1, max_size=3))
    right: list[Any] = []
    for value in left:
        other = value
        how = data.draw(st.integers(0, 3))
        if how == 0 or value is None:
            other = data.draw(st.none() | variants())
        elif how == 1:
            try:
                other = pv.variant_normalize(value)
            except pv.MalformedVariantError:
                other = value
        elif how == 2 and value.value:
            changed = bytearray(value.value)
            changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            other = pv.Variant(value.metadata, bytes(changed))
        right.append(other)
    expected: list[Any] = []
    for one, other in zip(left, right, strict=True):
        try:
            expected.append(None if one is None or other is None else one == other)
        except pv.MalformedVariantError as error:
            expected.append(error)
    ours, theirs = pv.VariantArray.from_variants(left), pv.VariantArray.from_variants(right)
    assert pv.equals(ours, theirs, errors="null").to_pylist() == [
        None if isinstance(one, pv.VariantError) else one for one in expected
    ]
    broken = [row for row, one in enumerate(expected) if isinstance(one, pv.VariantError)]
    if broken:
        with pytest.raises(pv.MalformedVariantError) as caught:
            pv.equals(ours, theirs)
        assert caught.value.row == broken[0]
    else:
        assert pv.equals(ours, theirs).to_pylist() == expected


def test_layouts_single_values_and_lengths() -> None:
    rows = pv.parse_json(['{"a":1}', '{"a":1.0}', "[]", None])
    assert pv.equals(pv.shred_variant(rows, "struct<a int>"), rows).to_pylist() == [True, True, True, None]
    one = pv.parse_json('{"a":1}')
    for found in (pv.equals(rows, one), pv.equals(one, rows)):
        assert found.type == pa.bool_() and found.to_pylist() == [True, True, False, None]
    assert pv.equals(one, pv.parse_json('{"a":1.00}')) is True
    assert pv.equals(rows[:0], rows[:0]).to_pylist() == []
    with pytest.raises(pv.SchemaError, match="same length"):
        pv.equals(rows, rows[:1])
