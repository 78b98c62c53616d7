"""The reference of casts, where Spark is no oracle: our own types, rounding, zones, the calendar's ends."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.encoding.cast.strings import (
    NANOS_PER_SECOND,
    local_to_instant,
    nearest_float32,
    parse_date,
    parse_timestamp,
    round_to_decimal,
    text_to_float32,
    to_local,
    zone_of,
)
from parquet_variant.encoding.cast.values import cast_variant
from parquet_variant.encoding.json_writer import date_text, timestamp_text
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import CastError
from parquet_variant.types import VariantType

ZONES = ["Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo"]
UUID = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
NANOS = Variant(EMPTY_METADATA, encode_scalar(VariantType.TIMESTAMP_NANOS, 1_600_000_000_123_456_789))


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (UUID, pa.uuid(), UUID),
        (UUID, pa.string(), str(UUID)),
        (UUID, pa.binary(16), UUID.bytes),
        (str(UUID).upper(), pa.uuid(), UUID),
        (UUID.hex, pa.uuid(), None),
        (UUID.bytes, pa.uuid(), UUID),
        (b"abc", pa.uuid(), None),
        (b"abc", pa.binary(3), b"abc"),
        (b"abc", pa.binary(4), None),
        (255, pa.uint8(), 255),
        (-1, pa.uint8(), None),
        (2**64 - 1, pa.uint64(), 2**64 - 1),
        ("18446744073709551615", pa.uint64(), 2**64 - 1),
        (1.9, pa.uint16(), 1),
        (0.1, pa.float16(), float(np.float16(0.1))),
        (dt.time(1, 2, 3, 4), pa.time64("ns"), dt.time(1, 2, 3, 4)),
        (dt.time(1, 2, 3, 4), pa.time32("ms"), dt.time(1, 2, 3)),
        (dt.time(1, 2, 3, 4), pa.string(), "01:02:03.000004"),
        (dt.time(1, 2, 3), pa.timestamp("us"), None),
        ("24:00:00", pa.time64("us"), None),
        (dt.date(2020, 1, 2), pa.date64(), dt.date(2020, 1, 2)),
        (dt.date(2020, 1, 2), pa.time64("us"), None),
        (NANOS, pa.string(), "2020-09-13 12:26:40.123456789"),
        (NANOS, pa.timestamp("us", "UTC"), dt.datetime(2020, 9, 13, 12, 26, 40, 123456, dt.UTC)),
        (NANOS, pa.timestamp("s", "UTC"), dt.datetime(2020, 9, 13, 12, 26, 40, tzinfo=dt.UTC)),
        (NANOS, pa.int64(), 1_600_000_000),
        (NANOS, pa.decimal128(20, 9), Decimal("1600000000.123456789")),
        (dt.datetime(2300, 1, 1), pa.timestamp("ns"), None),
        ("0.05", pa.decimal256(76, 1), Decimal("0.1")),
        ([1, "2"], pa.list_(pa.int8(), 2), [1, 2]),
        ([1], pa.list_(pa.int8(), 2), None),
        ({"a": [1]}, pa.map_(pa.string(), pa.list_(pa.string())), [("a", ["1"])]),
        ({"a": 1}, pa.struct([]), {}),
        ("x", pa.struct([]), None),
        ("a", pa.dictionary(pa.int8(), pa.string()), "a"),
        (1, pa.string_view(), "1"),
    ],
)
def test_types_beyond_spark(value: Any, target: pa.DataType, expected: Any) -> None:
    variant = value if isinstance(value, Variant) else Variant.from_python(value)
    assert cast_variant(variant, target, safe=False) == expected
    if expected is None:
        with pytest.raises(CastError):
            cast_variant(variant, target)


@pytest.mark.parametrize(
    "target",
    [
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.map_(pa.int64(), pa.string()),
        pa.decimal128(5, -2),
        pa.list_(pa.duration("us")),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
)
def test_targets_that_no_variant_can_be_are_refused(target: pa.DataType) -> None:
    with pytest.raises(CastError) as caught:
        cast_variant(Variant.from_python(None), target, safe=False)
    assert caught.value.reason == "unsupported-target"


def test_as_null_type_only_null_can_be_given() -> None:
    assert cast_variant(Variant.from_python(None), pa.null()) is None
    assert cast_variant(Variant.from_python([None]), pa.list_(pa.null())) == [None]
    for value in (1, "x", [], {}):
        assert cast_variant(Variant.from_python(value), pa.null(), safe=False) is None
        with pytest.raises(CastError, match="to null"):
            cast_variant(Variant.from_python(value), pa.null())


def test_dates_that_python_lacks_are_distinguished_from_failed_casts() -> None:
    with pytest.raises(CastError) as caught:
        cast_variant(Variant.from_python("10000-01-01"), pa.date32())
    assert caught.value.reason == "out-of-python"


@given(st.integers(-(10**60), 10**60), st.integers(0, 60), st.integers(1, 38), st.integers(0, 38))
def test_decimals_round_half_up(unscaled: int, scale: int, precision: int, to_scale: int) -> None:
    exact = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    scaled = abs(Fraction(unscaled, 10**scale)) * 10**to_scale
    rounded = math.floor(scaled + Fraction(1, 2)) * (-1 if unscaled < 0 else 1)
    expected = rounded if abs(rounded) < 10**precision else None
    assert round_to_decimal(exact, precision, to_scale) == expected


@pytest.mark.parametrize("text", ["1e-999999999", "0e999999", "0.00000000000000000000000000000000000000000001"])
def test_tiny_numbers_round_to_zero_or_are_refused_without_expanding_them(text: str) -> None:
    assert cast_variant(Variant.from_python(text), pa.decimal128(10, 2), safe=False) in (Decimal("0.00"), None)


@pytest.mark.parametrize("text", ["1e999999999", "-1e100", "9" * 5000])
def test_huge_numbers_are_refused_quickly(text: str) -> None:
    assert cast_variant(Variant.from_python(text), pa.decimal128(38, 0), safe=False) is None
    assert cast_variant(Variant.from_python(text), pa.int64(), safe=False) is None


@given(st.fractions().filter(lambda number: abs(number) < 10**38))
def test_the_nearest_float_is_nearest(number: Fraction) -> None:
    found = np.float32(nearest_float32(number))
    distance = abs(Fraction(float(found)) - number)
    for other in (np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(-np.inf))):
        assert distance <= abs(Fraction(float(other)) - number)


def test_a_text_becomes_a_float_by_one_rounding() -> None:
    # The double nearest to this text is the tie between two floats; the text itself is above the tie.
    text = "1.00000005960464477539062500000001"
    assert text_to_float32(text) == float(np.nextafter(np.float32(1), np.float32(2)))


@given(st.dates(), st.times())
def test_texts_that_we_write_are_read_back(date: dt.date, time: dt.time) -> None:
    days = (date - dt.date(1970, 1, 1)).days
    assert parse_date(date_text(days)) == days
    micros = (dt.datetime.combine(date, time) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    parsed = parse_timestamp(timestamp_text(micros * 1000, has_zone=False))
    assert parsed is not None
    assert parsed.local == micros * 1000


@given(
    st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)), st.sampled_from(["Europe/Berlin", "Asia/Kolkata"])
)
def test_local_times_are_those_of_the_zone(moment: dt.datetime, name: str) -> None:
    instant = int((moment - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1)) * NANOS_PER_SECOND
    local = to_local(instant, zone_of(name))
    expected = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=instant // NANOS_PER_SECOND)
    wall = expected.astimezone(ZoneInfo(name)).replace(tzinfo=None)
    assert local // NANOS_PER_SECOND == (wall - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)


def test_a_local_time_in_a_gap_moves_on_and_one_that_comes_twice_is_the_earlier() -> None:
    zone = zone_of("America/Los_Angeles")

    def instant(text: str) -> str:
        parsed = parse_timestamp(text)
        assert parsed is not None
        return timestamp_text(local_to_instant(parsed.local, zone), has_zone=False)

    assert instant("2023-03-12 02:30:00") == "2023-03-12 10:30:00"
    assert instant("2023-11-05 01:30:00") == "2023-11-05 08:30:00"


def test_years_beyond_pythons_follow_the_rules_of_the_zone() -> None:
    zone = zone_of("America/Los_Angeles")
    for text, local in (
        ("+12023-07-01 12:00:00", "+12023-07-01 05:00:00"),
        ("+12023-01-01 12:00:00", "+12023-01-01 04:00:00"),
    ):
        parsed = parse_timestamp(text[1:].replace("+", ""))
        assert parsed is not None
        assert timestamp_text(to_local(parsed.local, zone), has_zone=False) == local


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("Z", 0), ("+1", 3600), ("-01", -3600), ("+0130", 5400), ("+01:30:15", 5415), ("UTC-3", -10800),
     ("GMT+03:00", 10800), ("UT+1", 3600), ("EST", -18000), ("+18:00", 64800)],
)  # fmt: skip
def test_offsets_are_read(name: str, seconds: int) -> None:
    assert zone_of(name).utcoffset(None) == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize("name", ["", "z", "+19", "+01:60", "+1:234", "Mars/Olympus", "utc", "UTC+", "../etc/passwd"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(CastError) as caught:
        zone_of(name)
    assert caught.value.reason == "bad-zone"
