"""Partition transforms: the specification's hash values, truncation, calendar units, and ranges read backwards."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.metadata.partitioning import Transform, hash_values
from parquet_variant.tables.iceberg.metadata.schema import (
    arrow_array,
    from_bytes,
    from_json,
    parse_type,
    raw_values,
    to_bytes,
    to_json,
)
from parquet_variant.tables.schema import PrimitiveType, arrow_type


def primitive_of(name: str) -> PrimitiveType:
    primitive = parse_type(name)
    assert isinstance(primitive, PrimitiveType)
    return primitive


MOMENT = datetime(2017, 11, 16, 22, 31, 8)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("date", date(2017, 11, 16), -653330422),
        ("time", time(22, 31, 8), -662762989),
        ("timestamp", MOMENT, -2047944441),
        ("timestamp", MOMENT.replace(microsecond=1), -1207196810),
        ("timestamptz", MOMENT.replace(tzinfo=UTC), -2047944441),
        ("timestamp_ns", MOMENT, -2047944441),
        ("timestamp_ns", MOMENT.replace(microsecond=1), -1207196810),
        ("string", "iceberg", 1210000089),
        ("uuid", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
        ("fixed[4]", bytes([0, 1, 2, 3]), -188683207),
        ("binary", bytes([0, 1, 2, 3]), -188683207),
    ],
)
def test_hashes_are_those_of_the_specification(kind: str, value: Any, expected: int) -> None:
    primitive = primitive_of(kind)
    stored = value.bytes if isinstance(value, uuid.UUID) else value
    array = pa.array([stored, None], pa.binary(16) if kind == "uuid" else arrow_type(primitive))
    assert int(hash_values(array, primitive)[0]) == expected
    bucket = Transform("bucket", 16).apply(array, primitive)
    assert bucket.to_pylist() == [(expected & 0x7FFFFFFF) % 16, None]


def test_hashes_of_many_strings_are_those_of_each() -> None:
    texts = ["", "a", "ab", "abc", "abcd", "abcde", "hällo wörld", "x" * 31, "", "abc"]
    together = hash_values(pa.array(texts), primitive_of("string"))
    alone = [int(hash_values(pa.array([text]), primitive_of("string"))[0]) for text in texts]
    assert together.tolist() == alone
    assert hash_values(pa.array(["skip", *texts]).slice(1), primitive_of("string")).tolist() == alone


def test_murmur3_equals_another_implementation() -> None:
    mmh3 = pytest.importorskip("mmh3")
    texts = ["", "a", "iceberg", "ab" * 50, "ß∂ƒ"]
    assert hash_values(pa.array(texts), primitive_of("string")).tolist() == [mmh3.hash(text) for text in texts]


@pytest.mark.parametrize(
    ("kind", "width", "values", "expected"),
    [
        ("int", 10, [1, -1, 10, None], [0, -10, 10, None]),
        ("long", 10, [1, -1, 2**40 + 3], [0, -10, 2**40 + 3 - (2**40 + 3) % 10]),
        ("decimal(9,2)", 50, [Decimal("10.65"), Decimal("-0.01")], [Decimal("10.50"), Decimal("-0.50")]),
        ("int", 10, [-(2**31), 2**31 - 1], [2**31 - 2, 2**31 - 8]),
        ("decimal(2,0)", 10, [Decimal(-99)], [Decimal(-100)]),
        ("string", 3, ["iceberg", "ic", "日本語だ"], ["ice", "ic", "日本語"]),
        ("binary", 3, [b"\x01\x02\x03\x04\x05"], [b"\x01\x02\x03"]),
    ],
)
def test_truncate(kind: str, width: int, values: list[Any], expected: list[Any]) -> None:
    primitive = primitive_of(kind)
    assert (
        Transform("truncate", width).apply(pa.array(values, arrow_type(primitive)), primitive).to_pylist() == expected
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("year", datetime(1969, 12, 31, 23), -1),
        ("year", datetime(2017, 11, 16), 47),
        ("month", datetime(1969, 12, 31), -1),
        ("month", datetime(2017, 11, 16), 47 * 12 + 10),
        ("day", datetime(2017, 11, 16, 23), date(2017, 11, 16)),
        ("day", datetime(1969, 12, 31, 23, 59, 59), date(1969, 12, 31)),
        ("hour", datetime(1970, 1, 1, 1, 30), 1),
        ("hour", datetime(1969, 12, 31, 23, 30), -1),
    ],
)
def test_calendar_units_count_from_1970(name: str, value: datetime, expected: Any) -> None:
    for kind in ("timestamp", "timestamp_ns"):
        primitive = primitive_of(kind)
        assert Transform(name).apply(pa.array([value, None], arrow_type(primitive)), primitive).to_pylist() == [
            expected,
            None,
        ]
    if name != "hour":
        day = primitive_of("date")
        assert Transform(name).apply(pa.array([value.date()]), day).to_pylist() == [expected]


KINDS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "decimal(20,3)": st.integers(-(10**19), 10**19),
    "string": st.text(max_size=6),
    "date": st.integers(-100_000, 100_000),
    "timestamp": st.integers(-(2**62), 2**62),
    "timestamptz_ns": st.integers(-(2**62), 2**62),
}
TRANSFORMS = ["identity", "truncate[3]", "truncate[1000]", "year", "month", "day", "hour", "bucket[7]", "void"]


@given(st.data())
def test_a_value_lies_in_the_range_of_its_partition(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    primitive, raw = primitive_of(kind), data.draw(KINDS[kind])
    transform = Transform.parse(data.draw(st.sampled_from(TRANSFORMS)))
    try:
        transform.check_source(primitive, "c")
    except IcebergError:
        return
    result = transform.apply(arrow_array([raw], primitive), primitive)
    (value,) = raw_values(result, transform.result_type(primitive))
    if value is None:
        assert transform.name == "void"
        return
    bounds = transform.source_range(value, primitive)
    assert bounds.lower is None or bounds.lower <= raw
    assert bounds.upper is None or raw <= bounds.upper


def test_transforms_that_do_not_fit_a_column_are_refused() -> None:
    for transform, kind in [("hour", "date"), ("year", "string"), ("bucket[4]", "double"), ("identity", "variant")]:
        with pytest.raises(IcebergError) as caught:
            Transform.parse(transform).check_source(primitive_of(kind), "c")
        assert caught.value.reason == "bad-partitioning"
    assert not Transform.parse("zorder[3]").is_known


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_single_values_survive_bytes_and_json(kind: str, data: st.DataObject) -> None:
    primitive, raw = primitive_of(kind), data.draw(KINDS[kind])
    assert from_bytes(to_bytes(raw, primitive), primitive) == raw
    if kind == "timestamp" and not -60_000_000_000_000_000 < raw < 200_000_000_000_000_000:
        return  # years that ISO dates of Python do not have
    assert from_json(to_json(raw, primitive), primitive) == raw
    assert raw_values(arrow_array([raw, None], primitive), primitive) == [raw, None]


def test_bounds_of_promoted_columns_are_read_as_their_former_type() -> None:
    assert from_bytes(to_bytes(7, primitive_of("int")), primitive_of("long")) == 7
    assert from_bytes(to_bytes(1.5, primitive_of("float")), primitive_of("double")) == 1.5
    assert from_bytes(to_bytes(2, primitive_of("date")), primitive_of("timestamp")) == 2 * 86_400_000_000
    assert from_bytes(b"\x00" * 3, primitive_of("long")) is None
