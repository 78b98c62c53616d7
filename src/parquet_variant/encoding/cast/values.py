"""Casts of one Variant to another type: the readable reference of every cast.

Owns a function for each family of target types, lists, structs and maps around them, and which Variant types can be
cast to which target: the casts of Spark 4.3's ``variant_get``, and casts of types that Spark lacks (``docs/casts.md``).
A function takes a scalar's type and raw payload (see `encoding.scalars`) and returns the raw result, which is the value
that an Arrow array stores: a bool, an int (number, unscaled decimal, ticks), a float, a str or bytes, a list for lists,
a tuple in field order for structs, pairs for maps, ``(metadata, value)`` for variants; None if the cast is not
possible. Owns also Arrow arrays of raw results. Leaves storage forms of types to `forms`, and columns to
`ops.columns.slot_casts`.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.cast import strings
from parquet_variant.encoding.json_writer import json_pieces, timestamp_text
from parquet_variant.encoding.python_values import scalar_to_python
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.encoding.variant import Variant, elements_of_array
from parquet_variant.encoding.walk import Event
from parquet_variant.errors import CastError
from parquet_variant.types import DECIMAL_TYPES, INSTANT_TYPES, INTEGERS, LOCAL_TYPES, NANOS_OF, VariantType
from parquet_variant.types.forms import number_form, plain_form
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import Target, target_of

_V = VariantType
_FLOATS = (_V.FLOAT, _V.DOUBLE)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def cast_variant(variant: Variant, target: pa.DataType, *, zone: str = "UTC", safe: bool = True) -> Any:
    """Return a Variant as the Python object that ``pyarrow.Scalar.as_py`` returns for a type; None for Variant null.

    `target`: the Arrow type; a struct of non-nullable binaries ``metadata`` and ``value`` stands for Variant.
    `safe`: raise an error for a value that cannot be cast; without it, the value becomes None.
    Raises `CastError`: ``bad-cast`` if the value cannot be cast; ``unsupported-target`` for a type that Variants cannot
    be cast to; ``bad-zone``; ``out-of-python`` for dates outside the years 1 to 9999, which Arrow holds but Python does
    not.

    >>> cast_variant(Variant.from_python([1, "2", None]), pa.list_(pa.int8()))
    [1, 2, None]
    """
    target_of(target)  # the error names the type itself, not its plain form
    compiled = target_of(plain_form(target))
    raw = cast_raw(variant, compiled, strings.zone_of(zone), safe)
    try:
        return array_of_raw([raw], compiled)[0].as_py()
    except (OverflowError, ValueError) as err:
        message = f"the {target} is outside the years 1 to 9999 of Python's datetime ({err}): cast an array instead"
        raise CastError(message, reason="out-of-python") from None


def cast_scalar(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> Any:
    """Return a scalar cast to a target type; None if the cast is not possible or the value does not fit."""
    return _CASTS[target.family](kind, raw, target, zone)


def _boolean(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> bool | None:
    if kind == _V.STRING:
        return strings.text_to_bool(raw)
    if kind in DECIMAL_TYPES:
        return bool(raw[0])
    return bool(raw) if kind in (_V.BOOLEAN, *INTEGERS, *_FLOATS) else None  # NaN is true


def _integer(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    low, high = target.low, target.high
    number: int | None = None
    if kind in INTEGERS or kind == _V.BOOLEAN:
        number = int(raw)
    elif kind in _FLOATS:
        return strings.integer_of_float(raw, low, high)
    elif kind in DECIMAL_TYPES:
        unscaled, scale = raw
        if low < 0 and high < 2**31:
            # Spark casts decimals to the small integers through a double.
            return strings.integer_of_float(_ratio(unscaled, scale), low, high)
        number = abs(unscaled) // 10**scale * (-1 if unscaled < 0 else 1)
    elif kind == _V.STRING:
        number = strings.text_to_integer(raw)
    elif kind in INSTANT_TYPES:
        number = raw * NANOS_OF[kind] // 1_000_000_000
    return number if number is not None and low <= number <= high else None


def _double(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> float | None:
    if kind in _FLOATS or kind in INTEGERS or kind == _V.BOOLEAN:
        return float(raw)
    if kind in DECIMAL_TYPES:
        return _ratio(*raw)
    if kind == _V.STRING:
        return strings.text_to_double(raw)
    if kind in INSTANT_TYPES:
        return float(raw * NANOS_OF[kind] // 1000) / 1e6
    return None


def _float32(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> float | None:
    if kind == _V.STRING:
        return strings.text_to_float32(raw)
    if kind in INTEGERS:
        return strings.nearest_float32(Fraction(raw))
    if kind in DECIMAL_TYPES:
        return strings.nearest_float32(Fraction(raw[0], 10 ** raw[1]))
    return _narrow_float(_double(kind, raw, target, zone), np.float32)


def _narrow_float(double: float | None, to: type[np.floating[Any]]) -> float | None:
    return None if double is None else strings.narrow_float(double, to)


def _ratio(unscaled: int, scale: int) -> float:
    return unscaled / 10**scale  # dividing Python integers rounds only once


def _decimal(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    exact: Decimal | None = None
    if kind in _FLOATS:
        if np.isfinite(raw):
            exact = Decimal(repr(raw))  # a float counts as the double that it widens to, as in Spark
    elif kind in INTEGERS or kind == _V.BOOLEAN:
        exact = Decimal(int(raw))
    elif kind in DECIMAL_TYPES:
        exact = scalar_to_python(kind, raw)
    elif kind == _V.STRING:
        exact = strings.text_to_decimal(raw)
    elif kind in INSTANT_TYPES:
        exact = Decimal(raw).scaleb(-6 if NANOS_OF[kind] == 1000 else -9)
    return None if exact is None else strings.round_to_decimal(exact, target.precision, target.scale)


def _string(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> str | None:
    if kind == _V.STRING:
        return str(raw)
    if kind == _V.BINARY:
        try:
            return bytes(raw).decode()
        except UnicodeDecodeError:
            return None
    event = Event(kind, raw)
    if kind in INSTANT_TYPES:
        event = Event(_V.TIMESTAMP_NTZ_NANOS, strings.to_local(raw * NANOS_OF[kind], zone))
    return "".join(json_pieces(iter([event]))).strip('"')


def _binary(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> bytes | None:
    if kind == _V.BINARY or (kind == _V.UUID and target.size >= 0):
        data = bytes(raw)
    elif kind == _V.STRING:
        data = raw.encode()
    else:
        return None
    return data if target.size in (-1, len(data)) else None


def _uuid(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> bytes | None:
    if kind == _V.UUID or (kind == _V.BINARY and len(raw) == 16):
        return bytes(raw)
    if kind == _V.STRING and _UUID.fullmatch(raw):
        return uuid.UUID(raw).bytes
    return None


def _date(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    if kind == _V.DATE:
        days = raw
    elif kind == _V.STRING:
        days = strings.parse_date(raw)
    else:
        local = _local(kind, raw, zone)
        days = None if local is None else local // strings.NANOS_PER_DAY
    return _in_range(days if days is None else days * target.tick, target)


def _time(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    if kind == _V.TIME:
        nanos = raw * 1000
    elif kind == _V.STRING:
        nanos = strings.parse_time_of_day(raw)
    else:
        local = _local(kind, raw, zone) if kind != _V.DATE else None
        nanos = None if local is None else local % strings.NANOS_PER_DAY
    return None if nanos is None else nanos // target.tick


def _timestamp(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    nanos: int | None = None
    if kind in INTEGERS:
        nanos = raw * 1_000_000_000
    elif kind in _FLOATS:
        micros = strings.integer_of_float(raw * 1e6, -(2**63), 2**63 - 1)
        nanos = None if micros is None else micros * 1000
    elif kind in DECIMAL_TYPES:
        unscaled, scale = raw
        ticks = abs(unscaled) * 10**9 // (10**scale * target.tick)
        return _in_range(-ticks if unscaled < 0 else ticks, target)
    elif kind in INSTANT_TYPES:
        nanos = raw * NANOS_OF[kind]
    elif kind == _V.STRING:
        parsed = strings.parse_timestamp(raw)
        if parsed is not None:
            nanos = strings.local_to_instant(parsed.local, parsed.zone or zone)
    elif kind in LOCAL_TYPES or kind == _V.DATE:
        nanos = strings.local_to_instant(raw * NANOS_OF[kind], zone)
    return _in_range(None if nanos is None else nanos // target.tick, target)


def _timestamp_ntz(kind: VariantType, raw: Any, target: Target, zone: dt.tzinfo) -> int | None:
    parsed = strings.parse_timestamp(raw) if kind == _V.STRING else None
    nanos = _local(kind, raw, zone) if parsed is None else parsed.local
    return _in_range(None if nanos is None else nanos // target.tick, target)


def _local(kind: VariantType, raw: Any, zone: dt.tzinfo) -> int | None:
    """Return the local time of a date or timestamp in nanoseconds since 1970; None for other types."""
    if kind in INSTANT_TYPES:
        return strings.to_local(raw * NANOS_OF[kind], zone)
    if kind in LOCAL_TYPES or kind == _V.DATE:
        nanos: int = raw * NANOS_OF[kind]
        return nanos
    return None


def _in_range(number: int | None, target: Target) -> int | None:
    return number if number is not None and target.low <= number <= target.high else None


_CASTS: dict[str, Callable[[VariantType, Any, Target, dt.tzinfo], Any]] = {
    "null": lambda kind, raw, target, zone: None,  # Variant null itself is null for every target
    "boolean": _boolean,
    "integer": _integer,
    "float16": lambda *value: _narrow_float(_double(*value), np.float16),
    "float32": _float32,
    "float64": _double,
    "decimal": _decimal,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "uuid": _uuid,
}


_PREVIEW_CHARACTERS = 80


def cast_raw(variant: Variant, target: Target, zone: dt.tzinfo, safe: bool) -> Any:
    """Return a Variant cast to a target type, as a raw result; None for Variant null.

    Raises `CastError` if ``safe`` and the value or a nested value cannot be cast; without ``safe`` such a value becomes
    None. Raises `MalformedVariantError` if the bytes are malformed.
    """
    if target.family == "variant":
        canonical = Variant.from_python(variant)
        return canonical.metadata, canonical.value
    kind = variant.type
    if kind == VariantType.NULL:
        return None
    raw: Any = None
    if kind == VariantType.ARRAY:
        if target.family == "list" and target.size in (-1, len(variant)):
            return [cast_raw(element, target.children[0], zone, safe) for element in elements_of_array(variant)]
    elif kind == VariantType.OBJECT:
        if target.family == "struct":
            fields = [variant.get(VariantPath((name,))) for name in target.names]
            return tuple(
                None if field is None else cast_raw(field, child, zone, safe)
                for field, child in zip(fields, target.children, strict=True)
            )
        if target.family == "map":
            return [(key, cast_raw(value, target.children[0], zone, safe)) for key, value in variant.items()]
    elif not target.children and target.family != "struct":
        raw = cast_scalar(kind, read_scalar(variant._data, variant._start, variant._stop).raw, target, zone)
    if raw is None and kind in (VariantType.ARRAY, VariantType.OBJECT) and target.family == "string":
        raw = json_text(variant, zone)
    if raw is None and safe:
        raise no_cast(variant, target)
    return raw


def preview(variant: Variant) -> str:
    """Return a value with its type, for messages."""
    return f"{variant.type} {variant.preview(_PREVIEW_CHARACTERS)}"


def no_cast(variant: Variant, target: Target) -> CastError:
    """Return the error for a value that cannot be cast to a target."""
    problem = f'cannot cast {preview(variant)} to {target.arrow}: use errors="null" to get null instead'
    return CastError(problem, reason="bad-cast")


def json_text(variant: Variant, zone: dt.tzinfo) -> str:
    """Return a Variant as JSON, with instants in a time zone."""
    events = variant._walk()
    return "".join(json_pieces(events if zone is dt.UTC else _with_local_times(events, zone)))


def _with_local_times(events: Iterator[Event], zone: dt.tzinfo) -> Iterator[Event]:
    for event in events:
        if event.kind in INSTANT_TYPES:
            instant = event.raw * NANOS_OF[VariantType(event.kind)]
            text = timestamp_text(strings.to_local(instant, zone), has_zone=False)
            yield Event(VariantType.STRING, text + strings.offset_text(instant, zone))
        else:
            yield event


def array_of_raw(raws: Sequence[Any], target: Target) -> pa.Array:
    """Return an Arrow array of the target's type, in plain form (see `forms`), from raw results; None becomes null."""
    if target.children or target.names or target.family in ("variant", "decimal", "float16"):
        raws = [_arrow_object(raw, target) for raw in raws]
    return pa.array(raws, number_form(target.arrow)).cast(target.arrow)


def _arrow_object(raw: Any, target: Target) -> Any:
    """Return the object from which pyarrow makes the value of a raw result."""
    if raw is None:
        return None
    match target.family:
        case "list":
            return [_arrow_object(element, target.children[0]) for element in raw]
        case "struct":  # pairs, because names may occur twice
            return list(zip(target.names, map(_arrow_object, raw, target.children), strict=True))
        case "map":
            return [(key, _arrow_object(value, target.children[0])) for key, value in raw]
        case "variant":
            return dict(zip(("metadata", "value"), raw, strict=True))
        case "decimal":
            return scalar_to_python(VariantType.DECIMAL16, (raw, target.scale))
        case "float16":
            return np.float16(raw)
        case _:
            return raw
