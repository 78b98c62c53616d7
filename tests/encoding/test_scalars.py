"""All 21 primitive ids: their bytes, their Python objects, their JSON."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from parquet_variant import Variant
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import CastError
from parquet_variant.types import PrimitiveId, VariantType

_UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
_V = VariantType

# Type, value bytes (hex), Python object, JSON.
CASES = [
    (_V.NULL, "00", None, "null"),
    (_V.BOOLEAN, "04", True, "true"),
    (_V.BOOLEAN, "08", False, "false"),
    (_V.INT8, "0c80", -128, "-128"),
    (_V.INT16, "10ff7f", 32767, "32767"),
    (_V.INT32, "1400000080", -(2**31), "-2147483648"),
    (_V.INT64, "18ffffffffffffff7f", 2**63 - 1, "9223372036854775807"),
    (_V.DOUBLE, "1c000000000000f83f", 1.5, "1.5"),
    (_V.DOUBLE, "1c000000000000f0ff", -math.inf, '"-Infinity"'),
    (_V.DECIMAL4, "2000ffc99a3b", Decimal(999_999_999), "999999999"),
    (_V.DECIMAL4, "2002 6aff ffff", Decimal("-1.50"), "-1.5"),
    (_V.DECIMAL8, "24 12 ffff 63a7 b3b6 e00d", Decimal("0.999999999999999999"), "0.999999999999999999"),
    (_V.DECIMAL16, "28 26 ffffffff3f228a097ac4865aa84c3b4b", Decimal("0." + "9" * 38), "0." + "9" * 38),
    (_V.DECIMAL16, "28 00 01000000c0dd75f6853b79a557b3c4b4", Decimal("-" + "9" * 38), "-" + "9" * 38),
    (_V.DATE, "2c00000000", dt.date(1970, 1, 1), '"1970-01-01"'),
    (_V.TIMESTAMP, "30ffffffffffffffff", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
     '"1969-12-31 23:59:59.999999+00:00"'),
    (_V.TIMESTAMP_NTZ, "3440420f0000000000", dt.datetime(1970, 1, 1, 0, 0, 1), '"1970-01-01 00:00:01"'),
    (_V.FLOAT, "38cdcc8c3f", float(np.float32(1.1)), "1.1"),
    (_V.BINARY, "3c0300000000ff10", b"\x00\xff\x10", '"AP8Q"'),
    (_V.STRING, "4001000000 61", "a", '"a"'),
    (_V.STRING, "05 61", "a", '"a"'),
    (_V.STRING, "01", "", '""'),
    (_V.TIME, "44ff5fd71d14000000", dt.time(23, 59, 59, 999_999), '"23:59:59.999999"'),
    (_V.TIMESTAMP_NANOS, "480100000000000000", np.datetime64(1, "ns"), '"1970-01-01 00:00:00.000000001+00:00"'),
    (_V.TIMESTAMP_NTZ_NANOS, "4cffffffffffffffff", np.datetime64(-1, "ns"), '"1969-12-31 23:59:59.999999999"'),
    (_V.UUID, "50" + _UUID.hex, _UUID, f'"{_UUID}"'),
]  # fmt: skip


def test_the_cases_cover_all_21_ids() -> None:
    ids = {int(value[:2], 16) >> 2 for _, value, _, _ in CASES if int(value[:2], 16) & 3 == 0}
    assert ids == {int(primitive) for primitive in PrimitiveId}


@pytest.mark.parametrize(("kind", "value", "python", "text"), CASES)
def test_decodes(kind: VariantType, value: str, python: Any, text: str) -> None:
    variant = Variant(EMPTY_METADATA, bytes.fromhex(value))
    assert variant.type == kind
    actual = variant.to_python()
    assert actual == python and type(actual) is type(python)
    assert variant.to_json() == text
    assert find_faults(variant.metadata, variant.value) == []
    assert Variant.from_python([variant])[0] == variant


@pytest.mark.parametrize(("kind", "value", "python", "text"), CASES)
def test_every_cut_is_an_error(kind: VariantType, value: str, python: Any, text: str) -> None:
    whole = bytes.fromhex(value)
    for length in range(len(whole)):
        variant = Variant(EMPTY_METADATA, whole[:length])
        faults = find_faults(variant.metadata, variant.value)
        assert [fault.reason for fault in faults] == ["truncated"]
        for read in (variant.to_python, variant.to_json, variant.validate, lambda variant=variant: hash(variant)):
            with pytest.raises(ValueError, match=r"bytes|left") as caught:
                read()
            assert caught.value.reason == "truncated"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        (_V.DATE, 2**31 - 1, "+5881580-07-11"),
        (_V.DATE, -(2**31), "-5877641-06-23"),
        (_V.TIMESTAMP, 2**63 - 1, "+294247-01-10 04:00:54.775807+00:00"),
        (_V.TIMESTAMP_NTZ, -(2**63), "-290308-12-21 19:59:05.224192"),
        (_V.TIMESTAMP_NANOS, -(2**63), "1677-09-21 00:12:43.145224192+00:00"),
        (_V.TIMESTAMP_NTZ_NANOS, 2**63 - 1, "2262-04-11 23:47:16.854775807"),
        (_V.DATE, -719_529, "-0001-12-31"),
        (_V.DATE, -719_528, "0000-01-01"),
    ],
)
def test_the_whole_range_of_time(kind: VariantType, raw: int, text: str) -> None:
    variant = Variant(EMPTY_METADATA, encode_scalar(kind, raw))
    assert variant.to_json() == f'"{text}"'
    if raw == -(2**63):
        with pytest.raises(CastError, match="NaT"):
            variant.to_python()
    else:
        again = variant.to_python()
        assert isinstance(again, np.datetime64) and int(again.astype(np.int64)) == raw


def test_dates_agree_with_numpy_over_1200_years() -> None:
    for days in range(-200_000, 250_000, 37):
        variant = Variant(EMPTY_METADATA, encode_scalar(_V.DATE, days))
        assert variant.to_json() == f'"{np.datetime64(days, "D")}"'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (0.001, "0.001"), (9999999.0, "9999999.0"),
        (1e7, "1.0E7"), (0.0001, "1.0E-4"), (1e23, "1.0E23"), (5e-324, "5.0E-324"), (1.5e-7, "1.5E-7"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (123456.789, "123456.789"), (-2.5e10, "-2.5E10"),
        (math.nan, '"NaN"'), (math.inf, '"Infinity"'), (9007199254740993.0, "9.007199254740992E15"),
    ],
)  # fmt: skip
def test_doubles_have_the_fewest_digits(number: float, text: str) -> None:
    assert Variant.from_python(number).to_json() == text
    if math.isfinite(number):
        assert float(text) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.1, "1.1"),
        (16777216.0, "1.6777216E7"),
        (3.4e38, "3.4E38"),
        (1e-45, "1.0E-45"),
        (0.1, "0.1"),
        (math.nan, '"NaN"'),
    ],
)
def test_floats_have_the_fewest_digits(number: float, text: str) -> None:
    assert Variant.from_python(np.float32(number)).to_json() == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2027000000ff", "bad-decimal"),  # scale 39
        ("2000ffffff7f", "bad-decimal"),  # decimal4 of ten digits
        ("24 00 ffffffffffffff7f", "bad-decimal"),  # decimal8 of 19 digits
        ("28 00 ffffffffffffffffffffffffffffff7f", "bad-decimal"),  # decimal16 of 39 digits
        ("440060d71d14000000", "bad-time"),  # 24:00
        ("44ffffffffffffffff", "bad-time"),
        ("54", "unknown-type"),  # id 21
        ("fc", "unknown-type"),  # id 63
        ("05ff", "bad-utf8"),
        ("40 02000000 c0af", "bad-utf8"),  # overlong
        ("0d eda080", "bad-utf8"),  # a surrogate
        ("3cffffffff", "truncated"),  # binary of 4 GiB
    ],
)
def test_bad_payloads_are_faults(value: str, reason: str) -> None:
    assert [fault.reason for fault in find_faults(EMPTY_METADATA, bytes.fromhex(value))] == [reason]
