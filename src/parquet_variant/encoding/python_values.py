"""Python objects to Variant values and back.

Owns the mapping between Python types and Variant types. Leaves bytes to `scalars` and `walk`.

====================================================  =================================================
Python                                                Variant
====================================================  =================================================
None, NaT                                             null
bool, numpy.bool                                      boolean
int, numpy integers                                   narrowest int; beyond int64 decimal16, 38 digits
float, numpy.float64                                  double
numpy.float32, numpy.float16                          float
decimal.Decimal                                       narrowest decimal; digits and scale are kept
str                                                   string
bytes, bytearray, memoryview                          binary
uuid.UUID                                             uuid
datetime.date, numpy.datetime64[D]                    date
datetime.time                                         time
datetime.datetime with a zone                         timestamp (UTC)
datetime.datetime without, numpy.datetime64[s,ms,us]  timestamp_ntz
numpy.datetime64[ns]                                  timestamp_ntz_nanos
pandas.Timestamp that has nanoseconds                 timestamp_nanos, timestamp_ntz_nanos
list, tuple, numpy.ndarray                            array
mapping with str keys                                 object
Variant                                               itself
====================================================  =================================================

In the other direction, float and double become `float`; nanosecond timestamps become ``numpy.datetime64[ns]`` (in UTC
if they have a zone, which numpy does not store); dates and timestamps outside the years 1 to 9999 become
``numpy.datetime64``.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parquet_variant.encoding.scalars import (
    MAX_DIGITS,
    MAX_SCALE,
    Scalar,
    encode_scalar,
    narrowest_decimal,
    narrowest_integer,
)
from parquet_variant.encoding.walk import Node, check_depth, encode_value, put
from parquet_variant.errors import CastError, check_count
from parquet_variant.types import VariantType

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 1000

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH_DAY = _EPOCH.toordinal()
_LIMIT = 10**MAX_DIGITS


def build_python(obj: Any, node_of: Callable[[Any, int], Node | None], max_depth: int) -> tuple[bytes, bytes]:
    """Return the metadata and value bytes of a Python object.

    `obj`: see the table above.
    `node_of`: returns the nodes of an object that is a Variant, up to a depth; None for any other object.
    `max_depth`: the maximum depth of nested containers.
    Raises `CastError` for an object without a Variant type, a number of more than 38 digits, a string with a lone
    surrogate, or a structure deeper than ``max_depth`` (or that contains itself).
    """
    check_count("max_depth", max_depth)
    root: list[Node] = []
    # The open containers, and the remaining pairs of key and child of each.
    pending: list[tuple[list[Node] | dict[str, Node], Iterator[tuple[str, Any]]]] = [(root, iter([("", obj)]))]
    while pending:
        container, children = pending[-1]
        step = next(children, None)
        if step is None:
            pending.pop()
            continue
        key, child = step
        node = node_of(child, max_depth - len(pending) + 1)
        if isinstance(child, np.ndarray):
            child = list(child) if child.ndim else child[()]
        if node is not None:
            pass
        elif isinstance(child, Mapping):
            node = {}
            pending.append((node, ((_checked_key(name), item) for name, item in child.items())))
        elif isinstance(child, (list, tuple)):
            node = []
            pending.append((node, (("", item) for item in child)))
        else:
            node = encode_scalar(*_scalar_of(child))
        put(container, key, node)
        check_depth(len(pending) - 1, max_depth)
    return encode_value(root[0])


def _checked_key(name: Any) -> str:
    if not isinstance(name, str):
        raise CastError(
            f"key {name!r} is a {type(name).__name__}: keys of a Variant object must be strings", reason="bad-key"
        )
    return _checked_text(name)


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as err:
        message = f"the string {text[:40]!r} has a lone surrogate at character {err.start} and no UTF-8 form"
        raise CastError(message, reason="lone-surrogate") from None
    return str(text)


def _scalar_of(obj: Any) -> Scalar:
    if obj is None:
        return Scalar(VariantType.NULL, None)
    if isinstance(obj, (bool, np.bool_)):
        return Scalar(VariantType.BOOLEAN, bool(obj))
    if isinstance(obj, (int, np.integer)) and not isinstance(obj, np.timedelta64):
        return narrowest_integer(int(obj))
    if isinstance(obj, (np.float32, np.float16)):
        return Scalar(VariantType.FLOAT, float(obj))
    if isinstance(obj, float):
        return Scalar(VariantType.DOUBLE, float(obj))
    if isinstance(obj, str):
        return Scalar(VariantType.STRING, _checked_text(obj))
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return Scalar(VariantType.BINARY, bytes(obj))
    if isinstance(obj, Decimal):
        return _decimal_of(obj)
    if isinstance(obj, uuid.UUID):
        return Scalar(VariantType.UUID, obj.bytes)
    if isinstance(obj, dt.datetime):
        return _datetime_of(obj)
    if isinstance(obj, dt.date):
        return Scalar(VariantType.DATE, obj.toordinal() - _EPOCH_DAY)
    if isinstance(obj, dt.time):
        if obj.tzinfo is not None:
            message = f"time {obj} has a time zone, which Variant's time type does not store: remove the zone"
            raise CastError(message, reason="unsupported-type")
        seconds = (obj.hour * 60 + obj.minute) * 60 + obj.second
        return Scalar(VariantType.TIME, seconds * 1_000_000 + obj.microsecond)
    if isinstance(obj, np.datetime64):
        return _datetime64_of(obj)
    message = f"{type(obj).__module__}.{type(obj).__qualname__} has no Variant type: convert {repr(obj)[:60]} first"
    raise CastError(message, reason="unsupported-type")


def _decimal_of(number: Decimal) -> Scalar:
    if not number.is_finite():
        raise CastError(f"decimal {number} is not finite: use a float for NaN and Infinity", reason="unsupported-type")
    sign, digits, power = number.as_tuple()
    exponent = int(power)
    if exponent > MAX_SCALE or len(digits) > 10_000:
        # Expanding 1E+1000000 would build a million digits before the error.
        return narrowest_decimal(0, -1) if number else narrowest_decimal(0, 0)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    if exponent > 0:
        unscaled, exponent = unscaled * 10**exponent, 0
    # Trailing zeros of a fraction do not change the value: the number may fit without them.
    while unscaled and exponent < 0 and unscaled % 10 == 0 and (-exponent > MAX_SCALE or abs(unscaled) >= _LIMIT):
        unscaled, exponent = unscaled // 10, exponent + 1
    if not unscaled:
        exponent = max(exponent, -MAX_SCALE)
    return narrowest_decimal(unscaled, -exponent)


def _datetime_of(moment: dt.datetime) -> Scalar:
    if moment != moment:
        return Scalar(VariantType.NULL, None)
    has_zone = moment.utcoffset() is not None
    epoch = _EPOCH_UTC if has_zone else _EPOCH
    nanosecond = getattr(moment, "nanosecond", 0)
    if nanosecond:
        # A pandas.Timestamp; its numpy value is exact and in UTC.
        nanos = int(moment.to_datetime64().astype("datetime64[ns]").astype(np.int64))  # type: ignore[attr-defined]
        return Scalar(VariantType.TIMESTAMP_NANOS if has_zone else VariantType.TIMESTAMP_NTZ_NANOS, nanos)
    plain = dt.datetime.combine(moment.date(), moment.time(), moment.tzinfo).replace(fold=moment.fold)
    micros = (plain - epoch) // _MICROSECOND
    return Scalar(VariantType.TIMESTAMP if has_zone else VariantType.TIMESTAMP_NTZ, micros)


def _datetime64_of(moment: np.datetime64) -> Scalar:
    if np.isnat(moment):
        return Scalar(VariantType.NULL, None)
    unit, step = np.datetime_data(moment.dtype)
    if unit == "D" and step == 1:
        return Scalar(VariantType.DATE, int(moment.astype(np.int64)))
    if unit in ("ns", "us", "ms", "s", "m", "h") and step == 1:
        kind = VariantType.TIMESTAMP_NTZ_NANOS if unit == "ns" else VariantType.TIMESTAMP_NTZ
        micros = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1, "ns": 1}[unit]
        count = int(moment.astype(np.int64)) * micros
        if -(1 << 63) <= count < 1 << 63:
            return Scalar(kind, count)
    message = f"numpy.datetime64 {moment} with unit {unit!r} has no exact Variant type: convert it to days, µs or ns"
    raise CastError(message, reason="unsupported-type")


def scalar_to_python(kind: VariantType | str, raw: Any) -> Any:
    """Return the Python object of a scalar's type and raw payload.

    Raises `CastError` for the lowest timestamp of each unit, which numpy uses for NaT.

    >>> scalar_to_python(VariantType.DECIMAL4, (150, 2)), scalar_to_python(VariantType.DATE, 1)
    (Decimal('1.50'), datetime.date(1970, 1, 2))
    """
    match kind:
        case VariantType.DECIMAL4 | VariantType.DECIMAL8 | VariantType.DECIMAL16:
            unscaled, scale = raw
            return Decimal(f"{unscaled}E-{scale}")  # arithmetic would round to the context's 28 digits
        case VariantType.DATE:
            if 1 <= raw + _EPOCH_DAY <= dt.date.max.toordinal():
                return dt.date.fromordinal(raw + _EPOCH_DAY)
            return np.datetime64(raw, "D")
        case VariantType.TIME:
            return (_EPOCH + raw * _MICROSECOND).time()
        case VariantType.TIMESTAMP | VariantType.TIMESTAMP_NTZ:
            try:
                return (_EPOCH_UTC if kind == VariantType.TIMESTAMP else _EPOCH) + dt.timedelta(microseconds=raw)
            except OverflowError:
                return _datetime64(raw, "us")
        case VariantType.TIMESTAMP_NANOS | VariantType.TIMESTAMP_NTZ_NANOS:
            return _datetime64(raw, "ns")
        case VariantType.UUID:
            return uuid.UUID(bytes=raw)
        case _:
            return raw


def _datetime64(count: int, unit: Literal["us", "ns"]) -> np.datetime64:
    instant = np.datetime64(count, unit)
    if np.isnat(instant):
        message = f"timestamp {count} {unit} has no Python object, since numpy uses it for NaT: use to_json"
        raise CastError(message, reason="no-python-value")
    return instant
