"""Python → Variant → Python: which type gives which, nothing lost, everything else refused."""

from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from collections import OrderedDict
from decimal import Decimal, localcontext
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant import Variant
from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import CastError
from parquet_variant.types import VariantType


def _same(left: Any, right: Any) -> bool:
    """Equal with equal types, NaN equal to NaN, decimals with different digits unequal."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    if isinstance(left, int) and isinstance(right, Decimal):
        return not -(2**63) <= left < 2**63 and left == right
    return type(left) is type(right) and left == right


@given(testing.python_values())
def test_what_goes_in_comes_out(obj: Any) -> None:
    variant = Variant.from_python(obj)
    assert find_faults(variant.metadata, variant.value) == []
    assert _same(obj, variant.to_python())
    assert Variant.from_python(variant.to_python()) == variant


@given(testing.variants(types={VariantType.INT64, VariantType.STRING, VariantType.DOUBLE, VariantType.NULL}))
def test_the_same_value_has_the_same_bytes(variant: Variant) -> None:
    obj = variant.to_python()
    assert Variant.from_python(obj).to_bytes() == Variant.from_python(_shuffled(obj)).to_bytes()


def _shuffled(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {key: _shuffled(value) for key, value in reversed(obj.items())}
    return [_shuffled(item) for item in obj] if isinstance(obj, list) else obj


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (-(2**7), "int8"), (2**7 - 1, "int8"), (2**7, "int16"), (-(2**7) - 1, "int16"), (2**15 - 1, "int16"),
        (2**15, "int32"), (2**31 - 1, "int32"), (2**31, "int64"), (-(2**63), "int64"), (2**63 - 1, "int64"),
        (2**63, "decimal16"), (-(2**63) - 1, "decimal16"), (10**38 - 1, "decimal16"), (1 - 10**38, "decimal16"),
    ],
)  # fmt: skip
def test_the_narrowest_integer(number: int, kind: str) -> None:
    variant = Variant.from_python(number)
    assert (variant.type, variant.to_python()) == (kind, number)


@pytest.mark.parametrize(
    ("text", "kind", "stored"),
    [
        ("1.50", "decimal4", "1.50"), ("999999999", "decimal4", "999999999"), ("1000000000", "decimal8", "1000000000"),
        ("1E-9", "decimal4", "1E-9"), ("1E-10", "decimal8", "1E-10"),
        ("1E-19", "decimal16", "1E-19"),
        ("9" * 18, "decimal8", "9" * 18), ("9" * 19, "decimal16", "9" * 19),
        ("-" + "9" * 38, "decimal16", "-" + "9" * 38),
        ("1E+3", "decimal4", "1000"), ("1E+37", "decimal16", "1" + "0" * 37), ("-0.00", "decimal4", "0.00"),
        ("0E-50", "decimal16", "0E-38"), ("0E+99999", "decimal4", "0"),
        ("1.50" + "0" * 40, "decimal16", "1.5" + "0" * 36),
    ],
)  # fmt: skip
def test_the_narrowest_decimal(text: str, kind: str, stored: str) -> None:
    with localcontext(prec=3):  # the caller's context must not round anything
        variant = Variant.from_python(Decimal(text))
        assert variant.type == kind
        assert variant.to_python().as_tuple() == Decimal(stored).as_tuple()
        assert variant == Variant.from_python(variant.to_python())


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (10**38, "decimal-overflow"),
        pytest.param(10**5000, "decimal-overflow", id="5001 digits"),
        (Decimal("1E+38"), "decimal-overflow"),
        (Decimal("1E+999999"), "decimal-overflow"),
        (Decimal("1E-39"), "decimal-overflow"),
        (Decimal("NaN"), "unsupported-type"),
        (Decimal("-Infinity"), "unsupported-type"),
        ({1: 2}, "bad-key"),
        ({None: 2}, "bad-key"),
        ({"\ud800": 1}, "lone-surrogate"),
        (["\udfff"], "lone-surrogate"),
        (object(), "unsupported-type"),
        ({1, 2}, "unsupported-type"),
        (1j, "unsupported-type"),
        (dt.time(tzinfo=dt.UTC), "unsupported-type"),
        (dt.timedelta(1), "unsupported-type"),
        (np.timedelta64(1, "s"), "unsupported-type"),
        (np.datetime64("2024", "Y"), "unsupported-type"),
        (np.datetime64(2**62, "s"), "unsupported-type"),
        (np.datetime64(1, "ps"), "unsupported-type"),
    ],
)
def test_refuses_in_one_line(obj: Any, reason: str) -> None:
    with pytest.raises(CastError) as caught:
        Variant.from_python(obj)
    assert caught.value.reason == reason
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_depth_and_cycles() -> None:
    deep: Any = None
    for _ in range(1000):
        deep = [deep]
    assert Variant.from_python(deep).validate().type == "array"
    with pytest.raises(CastError, match="max_depth=1000"):
        Variant.from_python({"a": deep})
    assert Variant.from_python({"a": deep}, max_depth=1001).validate(max_depth=1001)
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(CastError, match="contains itself"):
        Variant.from_python(cycle)


def test_30000_levels_need_no_stack() -> None:
    deep: Any = 1
    for _ in range(30_000):
        deep = [deep]
    variant = Variant.from_python(deep, max_depth=30_000)
    assert variant.to_json() == "[" * 30_000 + "1" + "]" * 30_000
    assert hash(variant) == hash(Variant.from_bytes(variant.to_bytes()))
    found = variant.to_python()
    for _ in range(30_000):
        assert len(found) == 1
        found = found[0]


@pytest.mark.parametrize(
    ("obj", "kind", "python"),
    [
        (np.int8(5), "int8", 5),
        (np.uint64(2**64 - 1), "decimal16", Decimal(2**64 - 1)),
        (np.bool_(True), "boolean", True),
        (np.float64(0.1), "double", 0.1),
        (np.float32(0.1), "float", float(np.float32(0.1))),
        (np.float16(0.5), "float", 0.5),
        (np.str_("a"), "string", "a"),
        (np.bytes_(b"a"), "binary", b"a"),
        (bytearray(b"a"), "binary", b"a"),
        (memoryview(b"abc")[::2], "binary", b"ac"),
        (np.datetime64("2024-01-02"), "date", dt.date(2024, 1, 2)),
        (np.datetime64("2024-01-02T03", "h"), "timestamp_ntz", dt.datetime(2024, 1, 2, 3)),
        (np.datetime64("2024-01-02T03:04:05.5", "ms"), "timestamp_ntz", dt.datetime(2024, 1, 2, 3, 4, 5, 500_000)),
        (np.datetime64("2024-01-02", "ns"), "timestamp_ntz_nanos", np.datetime64("2024-01-02", "ns")),
        (np.datetime64("NaT"), "null", None),
        (np.array(7), "int8", 7),
        (np.array([[1, 2], [3, 4]], np.int64), "array", [[1, 2], [3, 4]]),
        (np.array([0.5], np.float32), "array", [0.5]),
        ((1, (2,)), "array", [1, [2]]),
        (OrderedDict(b=1, a=2), "object", {"a": 2, "b": 1}),
        (MappingProxyType({"a": 1}), "object", {"a": 1}),
        (enum.IntEnum("E", "x").x, "int8", 1),
        (enum.StrEnum("S", "x").x, "string", "x"),
        (uuid.UUID(int=1), "uuid", uuid.UUID(int=1)),
        (
            dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
            "timestamp",
            np.datetime64("0000-12-31T10", "us"),
        ),
        (dt.datetime.max, "timestamp_ntz", dt.datetime.max),
        (
            dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
            "timestamp",
            dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC),
        ),
        (dt.time(1, 2, 3, 4), "time", dt.time(1, 2, 3, 4)),
    ],
)
def test_types_that_come_back_as_another(obj: Any, kind: str, python: Any) -> None:
    variant = Variant.from_python(obj)
    assert variant.type == kind
    assert _same(variant.to_python(), python) or variant.to_python() == python


class _NanoTimestamp(dt.datetime):
    """What pandas.Timestamp is to us: a datetime with nanoseconds, and `to_datetime64` in UTC."""

    nanosecond = 789

    def to_datetime64(self) -> np.datetime64:
        naive = self.astimezone(dt.UTC).replace(tzinfo=None) if self.tzinfo else self
        return np.datetime64(naive.isoformat(), "ns") + np.timedelta64(self.nanosecond, "ns")


class _Nat(dt.datetime):
    """What pandas.NaT is: a datetime that differs from itself."""

    __hash__ = None  # type: ignore[assignment]

    def __ne__(self, other: object) -> bool:
        return True


def test_timestamps_of_pandas_keep_their_nanoseconds() -> None:
    zone = dt.timezone(dt.timedelta(hours=-5))
    nanos = Variant.from_python(_NanoTimestamp(2024, 1, 2, 3, 4, 5, 123456, tzinfo=zone))
    assert nanos.type == "timestamp_nanos"
    assert nanos.to_json() == '"2024-01-02 08:04:05.123456789+00:00"'
    assert Variant.from_python(_NanoTimestamp(2024, 1, 2)).to_json() == '"2024-01-02 00:00:00.000000789"'
    assert Variant.from_python(_Nat(2024, 1, 2)).type == "null"


def test_a_variant_inside_keeps_its_types() -> None:
    inner = Variant.from_python({"b": np.float32(1.5), "a": [np.datetime64(1, "ns"), b"x"]})
    outer = Variant.from_python({"z": inner, "a": inner["a"]})
    assert outer["z"] == inner and outer["z"]["b"].type == "float"
    assert outer["a"] == inner["a"]
    assert outer.to_bytes() == Variant.from_python({"a": inner["a"], "z": dict(inner.items())}).to_bytes()
    with pytest.raises(CastError, match="deeper"):
        Variant.from_python([inner], max_depth=2)


@given(st.floats())
def test_doubles_keep_every_bit_but_the_payload_of_nan(number: float) -> None:
    again = Variant.from_python(number).to_python()
    assert math.isnan(again) if math.isnan(number) else math.copysign(1, again) == math.copysign(1, number)
    assert math.isnan(number) or again == number
