"""Casts of whole columns of slots with NumPy and kernels.

Owns the casts that are common and have one meaning for every slot: same types, numbers among each other, timestamps in
UTC, ISO texts as timestamps. Each gives an array and which slots it took; it must never take a slot that the scalar
fallback would answer differently. Leaves all other slots to `slot_casts`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import metadata_of_all, storage_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.value_positions import ScalarSlots
from parquet_variant.encoding.cast.targets import Target
from parquet_variant.errors import CastError, MalformedVariantError
from parquet_variant.kernels.arrow_buffers import bitmap, filled_binary, from_numpy, to_numpy
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.kernels.values.slot_columns import iso_timestamps
from parquet_variant.types import MAX_OFFSET, PrimitiveId

_P = PrimitiveId
Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Column = tuple[pa.Array, Bools]

_DAY_IN_NANOS = 86_400_000_000_000
_INSTANTS = {_P.TIMESTAMP: 1000, _P.TIMESTAMP_NANOS: 1}
_LOCALS = {_P.TIMESTAMP_NTZ: 1000, _P.TIMESTAMP_NTZ_NANOS: 1}
# Powers of ten that a double holds exactly: dividing by them rounds once.
_POWERS = 10.0 ** np.arange(23)
_EXACT_IN_DOUBLE = 2**53
_INTEGER_POWERS = 10 ** np.arange(16)
# The machine's longest floats, where they are longer than doubles.
_LONG_POWERS = np.array([f"1e{scale}" for scale in range(39)], np.longdouble)
_HAS_LONG_FLOATS = np.finfo(np.longdouble).nmant >= 63
_LOW_WORD = np.longdouble(2) ** 64
# Texts that Arrow reads as Spark does.
_INTEGER_TEXT = r"^-?[0-9]{1,18}$"
_FLOAT_TEXT = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"


def cast_column(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    """The slots as an array of the target's type, and which of them it took; null where it did not."""
    cast = _CASTS.get(target.family)
    if cast is None or not len(slots):
        return pa.nulls(len(slots), target.arrow), np.zeros(len(slots), np.bool_)
    return cast(slots, target, zone)


def take_bytes(slots: ScalarSlots, positions: Int64s, *, as_text: bool) -> pa.Array:
    """The bytes that slots point to, as large binary or large string.

    Raises `MalformedVariantError` if a text is not UTF-8, with its row.
    """
    sizes = slots.b[positions]
    array = filled_binary(sizes, partial(copy_spans, slots.a[positions], sizes), arrow_type=pa.large_binary())
    if not as_text:
        return array
    try:
        return array.cast(pa.large_string())
    except pa.ArrowInvalid:
        _refuse_text(slots, positions, array)
        raise


def _refuse_text(slots: ScalarSlots, positions: Int64s, array: pa.Array) -> None:
    for position, text in zip(positions.tolist(), array, strict=True):
        try:
            text.as_py().decode()
        except UnicodeDecodeError as error:
            if slots.value_positions is not None:
                slots.value_positions.refuse(position, f"the string is not UTF-8: {error.reason}", "bad-utf8")
            raise MalformedVariantError(
                f"the string is not UTF-8: {error.reason}", reason="bad-utf8", row=slots.row(position)
            ) from None


def _scatter(slots: ScalarSlots, done: Bools, taken: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The taken values at their places, null elsewhere."""
    if taken.nbytes > MAX_OFFSET and (pa.types.is_string(arrow) or pa.types.is_binary(arrow)):
        raise CastError(
            f"{taken.nbytes} bytes may be too many for a {arrow} array: ask for large_{arrow}", reason="too-large"
        )
    taken = taken.cast(arrow)
    if len(taken) == len(slots):
        return taken
    places = np.cumsum(done) - 1
    return taken.take(from_numpy(places, ~done))


def _are(slots: ScalarSlots, *kinds: int) -> Bools:
    matches: Bools = slots.kinds == kinds[0]
    for kind in kinds[1:]:
        matches |= slots.kinds == kind
    return matches


def _integers(slots: ScalarSlots) -> Bools:
    return (slots.kinds >= _P.INT8) & (slots.kinds <= _P.INT64)


def _decimals(slots: ScalarSlots) -> Bools:
    return (slots.kinds >= _P.DECIMAL4) & (slots.kinds <= _P.DECIMAL16)


def _numbers(values: npt.NDArray[np.generic], done: Bools, arrow: pa.DataType) -> Column:
    return from_numpy(values.astype(arrow.to_pandas_dtype(), copy=False), ~done), done


def _boolean(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_bool, is_int = _are(slots, _P.TRUE, _P.FALSE), _integers(slots)
    values = np.where(is_bool, slots.kinds == _P.TRUE, slots.a != 0)
    return _numbers(values, is_bool | is_int, target.arrow)


def _integer(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_bool, is_int, is_double = _are(slots, _P.TRUE, _P.FALSE), _integers(slots), slots.kinds == _P.DOUBLE
    values = slots.a
    done = is_int
    if is_bool.any():
        values = np.where(is_bool, (slots.kinds == _P.TRUE).astype(np.int64), values)
        done = done | is_bool
    if is_double.any():
        doubles = np.where(is_double, slots.a, 0).view(np.float64)
        # Beyond 2**62 the bounds are compared as doubles: left to the scalar fallback, like NaN.
        safe = is_double & (np.abs(doubles) < 2.0**62)
        values = np.where(safe, np.trunc(np.where(safe, doubles, 0.0)).astype(np.int64), values)
        done = done | safe
    if (is_decimal := _decimals(slots)).any():
        # Up to 15 digits a double tells every decimal from a whole number: Spark's detour makes no difference.
        short = is_decimal & (slots.scales <= 15) & (np.abs(slots.a) < 10**15) & (slots.b == slots.a >> 63)
        wholes = np.abs(slots.a) // _INTEGER_POWERS[np.where(short, slots.scales, 0)] * np.sign(slots.a)
        values, done = np.where(short, wholes, values), done | short
    texts = _numbers_in_text(slots, _INTEGER_TEXT, pa.int64())
    if texts is not None:
        positions, numbers = texts
        values, done = values.copy(), done.copy()
        values[positions], done[positions] = numbers, True
    if target.high < 2**63 - 1:
        done = done & (values >= target.low) & (values <= target.high)
        values = np.where(done, values, 0)
    elif target.low == 0:
        done = done & (values >= 0)
        values = np.where(done, values, 0)
    return _numbers(values, done, target.arrow)


def _doubles(slots: ScalarSlots) -> tuple[npt.NDArray[np.float64], Bools]:
    """Every number and boolean that becomes a double by one rounding, and which those are."""
    is_int, is_double, is_decimal = _integers(slots), slots.kinds == _P.DOUBLE, _decimals(slots)
    values = slots.a.view(np.float64)
    if not is_double.all():
        values = np.where(is_double, values, 0.0)
    done = is_int | is_double
    if is_int.any():
        values = np.where(is_int, slots.a.astype(np.float64), values)
    if is_decimal.any():
        exact = (
            is_decimal & (slots.scales < len(_POWERS)) & (slots.a < _EXACT_IN_DOUBLE) & (slots.a > -_EXACT_IN_DOUBLE)
        )
        exact &= slots.b == (slots.a >> 63)  # the high half is only the sign
        quotients = slots.a.astype(np.float64) / _POWERS[np.where(exact, slots.scales, 0)]
        values = np.where(exact, quotients, values)
        done = done | exact
        if _HAS_LONG_FLOATS and len(long := np.flatnonzero(is_decimal & ~exact)):
            values[long], done[long] = _long_quotients(slots, long)
    is_float = slots.kinds == _P.FLOAT
    if is_float.any():
        with np.errstate(invalid="ignore"):  # what is no float is looked at, too
            floats = slots.a.astype(np.uint32).view(np.float32).astype(np.float64)
        values = np.where(is_float, floats, values)
        done = done | is_float
    is_bool = _are(slots, _P.TRUE, _P.FALSE)
    if is_bool.any():
        values = np.where(is_bool, (slots.kinds == _P.TRUE).astype(np.float64), values)
        done = done | is_bool
    return values, done


def _long_quotients(slots: ScalarSlots, positions: Int64s) -> tuple[npt.NDArray[np.float64], Bools]:
    """Decimals at some positions as doubles, and which of them are surely the nearest."""
    high, low, scales = slots.b[positions], slots.a[positions].view(np.uint64), slots.scales[positions]
    sure = scales < len(_LONG_POWERS)
    long = (high * _LOW_WORD + low) / _LONG_POWERS[np.where(sure, scales, 0)]
    quotients = long.astype(np.float64)
    # Nearly between two doubles, the roundings before may have moved it over: the scalar fallback rounds once.
    off, gap = np.abs(long - quotients), np.spacing(np.abs(quotients))
    between = np.minimum(np.abs(2 * off - gap), np.abs(4 * off - gap)) < gap / 128
    return quotients, sure & ~between


def _numbers_in_text(
    slots: ScalarSlots, pattern: str, arrow: pa.DataType
) -> tuple[Int64s, npt.NDArray[np.generic]] | None:
    """Positions of strings of a plain form, and the numbers that they stand for."""
    positions = np.flatnonzero(slots.kinds == _P.STRING)
    if not len(positions):
        return None
    texts = take_bytes(slots, positions, as_text=True)
    plain = pc.match_substring_regex(texts, pattern)
    cast = to_numpy(texts.filter(plain).cast(arrow))
    return positions[to_numpy(plain)], cast


def _with_texts(slots: ScalarSlots, values: npt.NDArray[np.generic], done: Bools, arrow: pa.DataType) -> Column:
    """Floats with those that stand in plain texts, each rounded once."""
    texts = _numbers_in_text(slots, _FLOAT_TEXT, arrow)
    if texts is not None:
        positions, numbers = texts
        values, done = values.copy(), done.copy()
        values[positions], done[positions] = numbers, True
    return _numbers(values, done, arrow)


def _float64(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    values, done = _doubles(slots)
    return _with_texts(slots, values, done, target.arrow)


def _float32(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    values, done = _doubles(slots)
    is_double = slots.kinds == _P.DOUBLE
    # A double that lies between two floats may have been rounded there: the scalar fallback rounds once.
    tie = (values.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    subnormal = (np.abs(values) < 2.0**-126) & (values != 0)
    done = done & (is_double | ~(tie | subnormal))
    with np.errstate(over="ignore", under="ignore"):
        singles = values.astype(np.float32)
    return _with_texts(slots, singles, done, target.arrow)


def _decimal(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    if not pa.types.is_decimal128(target.arrow):
        return pa.nulls(len(slots), target.arrow), np.zeros(len(slots), np.bool_)
    data, done = slots.as_decimals(target.precision, target.scale, rounds=True)
    buffers = [None if done.all() else bitmap(done), pa.py_buffer(data)]
    return pa.Decimal128Array.from_buffers(target.arrow, len(slots), buffers), done


def _bytes(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    kind = {"string": _P.STRING, "binary": _P.BINARY, "uuid": _P.UUID}[target.family]
    done = slots.kinds == kind
    if kind == _P.BINARY and target.size >= 0:
        done &= slots.b == target.size
    taken = take_bytes(slots, np.flatnonzero(done), as_text=kind == _P.STRING)
    if target.family == "uuid":
        fixed = pa.ExtensionArray.from_storage(pa.uuid(), taken.cast(pa.binary()).cast(pa.binary(16)))
        return fixed.take(from_numpy(np.cumsum(done) - 1, ~done)), done
    if len(taken) == 0:
        return pa.nulls(len(slots), target.arrow), done
    return _scatter(slots, done, taken, target.arrow), done


def _json_of(slots: ScalarSlots, positions: Int64s) -> pa.Array:
    """The JSON text of some scalars."""
    from parquet_variant.compute.json_text import json_column  # not needed by most casts

    chosen = ScalarSlots(slots.kinds[positions], slots.a[positions], slots.b[positions], slots.scales[positions])
    return json_column(VariantArray(storage_of(metadata_of_all((), len(positions)), chosen.encoded())))


def _string(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_text, is_int = slots.kinds == _P.STRING, _integers(slots)
    if is_text.all():
        return _bytes(slots, target, zone)
    array, done = _bytes(slots, target._replace(arrow=pa.large_string()), zone)
    if is_int.any():
        array = pc.coalesce(array, from_numpy(slots.a, ~is_int).cast(pa.large_string()))
        done = done | is_int
    # JSON spells these as a cast to string does, some in quotes, and instants with their offset.
    instants = _INSTANTS if zone is dt.UTC else ()
    same = _decimals(slots) | _are(slots, _P.TRUE, _P.FALSE, _P.DOUBLE, _P.DATE, _P.TIME, _P.UUID, *_LOCALS, *instants)
    if same.any():
        texts = _json_of(slots, np.flatnonzero(same)).cast(pa.large_string())
        texts = pc.utf8_trim(pc.replace_substring(texts, '+00:00"', '"'), '"')
        array, done = pc.replace_with_mask(array, from_numpy(same), texts), done | same
    return array.cast(target.arrow), done


def _ticks(values: Int64s, done: Bools, target: Target) -> Column:
    """Numbers as dates or times; 4-byte ones have been checked to fit."""
    arrow = target.arrow
    values = np.where(done, values, 0)
    if arrow.bit_width == 32:
        values = values.astype(np.int32)
    return from_numpy(values, ~done).view(arrow), done


def _date(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    done = slots.kinds == _P.DATE
    values = np.where(done, slots.a, 0)
    for kind, nanos in (_LOCALS | (_INSTANTS if zone is dt.UTC else {})).items():
        if (same := slots.kinds == kind).any():
            values = np.where(same, slots.a // (_DAY_IN_NANOS // nanos), values)
            done = done | same
    return _ticks(values * target.tick, done, target)


def _time(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    return _ticks(slots.a * 1000 // target.tick, slots.kinds == _P.TIME, target)


def _timestamp(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_instant = target.family == "timestamp"
    kinds = _INSTANTS if is_instant else _LOCALS
    if zone is dt.UTC:
        kinds = _INSTANTS | _LOCALS
    values, done = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.bool_)
    for kind, nanos in kinds.items():
        if (same := slots.kinds == kind).any():
            ticks, fits = _rescaled(slots.a, nanos, target.tick)
            values, done = np.where(same, ticks, values), done | (same & fits)
    if (is_text := slots.kinds == _P.STRING).any():
        micros, extra = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        read = np.zeros(len(slots), np.bool_)
        needs_zone = is_instant and zone is not dt.UTC
        iso_timestamps(np.flatnonzero(is_text), slots.a, slots.b, needs_zone, micros, extra, read)
        ticks, fits = _rescaled(micros, 1000, target.tick)
        values, done = np.where(read, ticks + (extra if target.tick == 1 else 0), values), done | (read & fits)
    return _ticks(values, done, target)


def _rescaled(values: Int64s, nanos: int, tick: int) -> tuple[Int64s, Bools]:
    """Ticks of ``nanos`` as ticks of ``tick`` nanoseconds, rounded down, and which of them fit."""
    if nanos <= tick:
        return values // (tick // nanos), np.ones(len(values), np.bool_)
    factor = nanos // tick
    limit = (2**63 - 1000) // factor
    return values * factor, (values <= limit) & (values >= -limit)


_CASTS: dict[str, Callable[[ScalarSlots, Target, dt.tzinfo], Column]] = {
    "boolean": _boolean,
    "integer": _integer,
    "float32": _float32,
    "float64": _float64,
    "decimal": _decimal,
    "string": _string,
    "binary": _bytes,
    "uuid": _bytes,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
