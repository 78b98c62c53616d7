"""Vectorized casts of slots with NumPy and kernels.

Owns the casts that are frequent and exact for every slot: same types, numbers to numbers, timestamps in UTC, ISO
strings to timestamps. Each cast returns an array and a mask of the slots that it cast; it must never cast a slot to
another result than the scalar fallback. `slot_casts` handles all other slots.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_of_all, scatter, storage_of
from parquet_variant.arrays.value_positions import ScalarSlots
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import CastError
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, bitmap, filled_binary, from_numpy, numpy_type, to_numpy
from parquet_variant.kernels.memory import KIND, copy_spans
from parquet_variant.kernels.values.scalar_slots import iso_timestamps
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import INSTANT_TYPES, LOCAL_TYPES, NANOS_OF, TYPES, VariantType
from parquet_variant.types.targets import Target

Column = tuple[pa.Array, Mask]

_INSTANTS, _LOCALS = ({TYPES[kind].ids[0]: NANOS_OF[kind] for kind in kinds} for kinds in (INSTANT_TYPES, LOCAL_TYPES))
# Powers of ten that a double holds exactly: dividing by them rounds once.
_POWERS = 10.0 ** np.arange(23)
_EXACT_IN_DOUBLE = 2**53
_INTEGER_POWERS = 10 ** np.arange(16)
# Extended floats, where the machine has floats longer than doubles.
_LONG_POWERS = np.array([f"1e{scale}" for scale in range(39)], np.longdouble)
_HAS_LONG_FLOATS = np.finfo(np.longdouble).nmant >= 63
_LOW_WORD = np.longdouble(2) ** 64
# Strings that Arrow parses as Spark does.
_INTEGER_TEXT = r"^-?[0-9]{1,18}$"
_FLOAT_TEXT = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"


def cast_column(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    """Return the slots as an array of the target type, null where not cast, and a mask of those that were cast."""
    cast = _CASTS.get(target.family)
    if cast is None or not len(slots):
        return pa.nulls(len(slots), target.arrow), np.zeros(len(slots), np.bool_)
    return cast(slots, target, zone)


def bytes_of_slots(slots: ScalarSlots, positions: Int64s, *, as_text: bool) -> pa.Array:
    """Return the bytes that slots point to, as binary or strings, large ones only beyond 2 GiB.

    Raises `MalformedVariantError`, with the row, if a string is not UTF-8.
    """
    sizes = slots.b[positions]
    array = filled_binary(sizes, partial(copy_spans, slots.a[positions], sizes))
    if not as_text:
        return array
    try:
        text = array.view(pa.string() if pa.types.is_binary(array.type) else pa.large_string())
        text.validate(full=True)
        return text
    except pa.ArrowInvalid:
        for position, string in zip(positions.tolist(), array, strict=True):
            try:
                string.as_py().decode()
            except UnicodeDecodeError as error:
                slots.refuse(position, f"the string is not UTF-8: {error.reason}", "bad-utf8")
        raise


def _of_kinds(slots: ScalarSlots, *kinds: int) -> Mask:
    matches: Mask = slots.kinds == kinds[0]
    for kind in kinds[1:]:
        matches |= slots.kinds == kind
    return matches


def _integers(slots: ScalarSlots) -> Mask:
    return (slots.kinds >= KIND.INT8) & (slots.kinds <= KIND.INT64)


def _decimals(slots: ScalarSlots) -> Mask:
    return (slots.kinds >= KIND.DECIMAL4) & (slots.kinds <= KIND.DECIMAL16)


def _number_column(values: npt.NDArray[np.generic], done: Mask, arrow: pa.DataType) -> Column:
    return from_numpy(values.astype(numpy_type(arrow), copy=False), ~done), done


def _boolean(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_bool, is_int = _of_kinds(slots, KIND.TRUE, KIND.FALSE), _integers(slots)
    values = np.where(is_bool, slots.kinds == KIND.TRUE, slots.a != 0)
    return _number_column(values, is_bool | is_int, target.arrow)


def _whole_numbers(slots: ScalarSlots, is_int: Mask) -> tuple[Int64s, Mask]:
    """Return every value that a cast makes an integer of 64 bits, and a mask of them."""
    is_bool, is_double = _of_kinds(slots, KIND.TRUE, KIND.FALSE), slots.kinds == KIND.DOUBLE
    values, done = slots.a, is_int
    if is_bool.any():
        values = np.where(is_bool, (slots.kinds == KIND.TRUE).astype(np.int64), values)
        done = done | is_bool
    if is_double.any():
        doubles = np.where(is_double, slots.a, 0).view(np.float64)
        # Beyond 2**62 comparing the bounds as doubles is inexact: the scalar fallback decides, as for NaN.
        safe = is_double & (np.abs(doubles) < 2.0**62)
        values = np.where(safe, np.trunc(np.where(safe, doubles, 0.0)).astype(np.int64), values)
        done = done | safe
    if (is_decimal := _decimals(slots)).any():
        # Up to 15 digits a double distinguishes every decimal from an integer, so Spark's cast through double is exact.
        short = is_decimal & (slots.scales <= 15) & (np.abs(slots.a) < 10**15) & (slots.b == slots.a >> 63)
        wholes = np.abs(slots.a) // _INTEGER_POWERS[np.where(short, slots.scales, 0)] * np.sign(slots.a)
        values, done = np.where(short, wholes, values), done | short
    return _with_strings(slots, values, done, _INTEGER_TEXT, pa.int64())


def _integer(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    values, done = slots.a, _integers(slots)
    if not done.all():
        values, done = _whole_numbers(slots, done)
    if target.high < 2**63 - 1:
        done = done & (values >= target.low) & (values <= target.high)
        values = np.where(done, values, 0)
    elif target.low == 0:
        done = done & (values >= 0)
        values = np.where(done, values, 0)
    return _number_column(values, done, target.arrow)


def _doubles(slots: ScalarSlots) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return every number and boolean that one rounding makes a double, and a mask of them."""
    is_int, is_double, is_decimal = _integers(slots), slots.kinds == KIND.DOUBLE, _decimals(slots)
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
    is_float = slots.kinds == KIND.FLOAT
    if is_float.any():
        with np.errstate(invalid="ignore"):  # values that are not floats are converted, too
            floats = slots.a.astype(np.uint32).view(np.float32).astype(np.float64)
        values = np.where(is_float, floats, values)
        done = done | is_float
    is_bool = _of_kinds(slots, KIND.TRUE, KIND.FALSE)
    if is_bool.any():
        values = np.where(is_bool, (slots.kinds == KIND.TRUE).astype(np.float64), values)
        done = done | is_bool
    return values, done


def _long_quotients(slots: ScalarSlots, positions: Int64s) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return decimals at some positions as doubles, and a mask of those that are certainly the nearest double."""
    high, low, scales = slots.b[positions], slots.a[positions].view(np.uint64), slots.scales[positions]
    sure = scales < len(_LONG_POWERS)
    long = (high * _LOW_WORD + low) / _LONG_POWERS[np.where(sure, scales, 0)]
    quotients = long.astype(np.float64)
    # Close to the middle of two doubles, earlier roundings may have crossed it: the scalar fallback rounds once.
    error, gap = np.abs(long - quotients), np.spacing(np.abs(quotients))
    between = np.minimum(np.abs(2 * error - gap), np.abs(4 * error - gap)) < gap / 128
    return quotients, sure & ~between


def _with_strings(
    slots: ScalarSlots, values: npt.NDArray[Any], done: Mask, pattern: str, arrow: pa.DataType
) -> tuple[npt.NDArray[Any], Mask]:
    """Add the numbers of strings that match a pattern, each rounded once."""
    positions = np.flatnonzero(slots.kinds == KIND.STRING)
    if len(positions):
        strings = bytes_of_slots(slots, positions, as_text=True)
        matches = pc.match_substring_regex(strings, pattern)
        positions, values, done = positions[to_numpy(matches)], values.copy(), done.copy()
        values[positions], done[positions] = to_numpy(strings.filter(matches).cast(arrow)), True
    return values, done


def _float32(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    values, done = _doubles(slots)
    is_double = slots.kinds == KIND.DOUBLE
    # A double in the middle of two floats may be the result of a rounding: the scalar fallback rounds once.
    tie = (values.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    subnormal = (np.abs(values) < 2.0**-126) & (values != 0)
    done = done & (is_double | ~(tie | subnormal))
    with np.errstate(over="ignore", under="ignore"):
        singles = values.astype(np.float32)
    return _number_column(*_with_strings(slots, singles, done, _FLOAT_TEXT, target.arrow), target.arrow)


def _decimal(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    if not pa.types.is_decimal128(target.arrow):
        return pa.nulls(len(slots), target.arrow), np.zeros(len(slots), np.bool_)
    data, done = slots.as_decimals(target.precision, target.scale, rounds=True)
    buffers = [None if done.all() else bitmap(done), pa.py_buffer(data)]
    return pa.Decimal128Array.from_buffers(target.arrow, len(slots), buffers), done


def _bytes(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    kind = {"string": KIND.STRING, "binary": KIND.BINARY, "uuid": KIND.UUID}[target.family]
    done = slots.kinds == kind
    if kind == KIND.BINARY and target.size >= 0:
        done &= slots.b == target.size
    positions = np.flatnonzero(done)
    taken = bytes_of_slots(slots, positions, as_text=kind == KIND.STRING)
    if len(taken) == 0:
        return pa.nulls(len(slots), target.arrow), done
    if target.family == "uuid":
        taken = taken.cast(pa.binary(16))
    if taken.type in (pa.large_string(), pa.large_binary()) and target.arrow in (pa.string(), pa.binary()):
        limit = f"{taken.nbytes:,} bytes exceed the limit of a {target.arrow} array"
        raise CastError(f"{limit}: use the type large_{target.arrow}", reason="too-large")
    return scatter(taken if taken.type == target.arrow else taken.cast(target.arrow), positions, len(done)), done


def _string(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_string, is_int = slots.kinds == KIND.STRING, _integers(slots)
    if is_string.all():
        return _bytes(slots, target, zone)
    array, done = _bytes(slots, target._replace(arrow=pa.large_string()), zone)
    if is_int.any():
        array = pc.coalesce(array, from_numpy(slots.a, ~is_int).cast(pa.large_string()))
        done = done | is_int
    # JSON writes these as a cast to string does, except for quotes and the offset of instants.
    instants = _INSTANTS if zone is dt.UTC else ()
    by_json = _decimals(slots) | _of_kinds(
        slots, KIND.TRUE, KIND.FALSE, KIND.DOUBLE, KIND.DATE, KIND.TIME, KIND.UUID, *_LOCALS, *instants
    )
    if by_json.any():
        from parquet_variant.ops.columns.json_text import json_column  # few casts need it

        encoded = slots.encoded(np.flatnonzero(by_json))
        storage = storage_of(metadata_of_all((), len(encoded)), encoded)
        strings = json_column(VariantArray(storage)).cast(pa.large_string())
        strings = pc.utf8_trim(pc.replace_substring(strings, '+00:00"', '"'), '"')
        array, done = pc.replace_with_mask(array, from_numpy(by_json), strings), done | by_json
    return array.cast(target.arrow), done


def _ticks(values: Int64s, done: Mask, target: Target) -> Column:
    """Return numbers as dates or times; 4-byte values are known to fit."""
    arrow = target.arrow
    values = np.where(done, values, 0)
    if arrow.bit_width == 32:
        values = values.astype(np.int32)
    return from_numpy(values, ~done).view(arrow), done


def _date(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    done = slots.kinds == KIND.DATE
    values = np.where(done, slots.a, 0)
    for kind, nanos in (_LOCALS | (_INSTANTS if zone is dt.UTC else {})).items():
        if (of_kind := slots.kinds == kind).any():
            values = np.where(of_kind, slots.a // (NANOS_OF[VariantType.DATE] // nanos), values)
            done = done | of_kind
    return _ticks(values * target.tick, done, target)


def _time(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    return _ticks(slots.a * 1000 // target.tick, slots.kinds == KIND.TIME, target)


def _timestamp(slots: ScalarSlots, target: Target, zone: dt.tzinfo) -> Column:
    is_instant = target.family == "timestamp"
    kinds = _INSTANTS if is_instant else _LOCALS
    if zone is dt.UTC:
        kinds = _INSTANTS | _LOCALS
    values, done = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.bool_)
    for kind, nanos in kinds.items():
        if (of_kind := slots.kinds == kind).any():
            ticks, fits = _rescale_ticks(slots.a, nanos, target.tick)
            values, done = np.where(of_kind, ticks, values), done | (of_kind & fits)
    if (is_string := slots.kinds == KIND.STRING).any():
        micros, extra = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        read = np.zeros(len(slots), np.bool_)
        needs_zone = is_instant and zone is not dt.UTC
        iso_timestamps(np.flatnonzero(is_string), slots.a, slots.b, needs_zone, micros, extra, read)
        ticks, fits = _rescale_ticks(micros, 1000, target.tick)
        values, done = np.where(read, ticks + (extra if target.tick == 1 else 0), values), done | (read & fits)
    return _ticks(values, done, target)


def _rescale_ticks(values: Int64s, nanos: int, tick: int) -> tuple[Int64s, Mask]:
    """Return ticks of ``nanos`` nanoseconds as ticks of ``tick`` nanoseconds, rounded down, and a mask of those that
    fit.
    """
    if nanos <= tick:
        return values // (tick // nanos), np.ones(len(values), np.bool_)
    factor = nanos // tick
    limit = (2**63 - 1000) // factor
    return values * factor, (values <= limit) & (values >= -limit)


_CASTS: dict[str, Callable[[ScalarSlots, Target, dt.tzinfo], Column]] = {
    "boolean": _boolean,
    "integer": _integer,
    "float32": _float32,
    "float64": lambda slots, target, zone: _number_column(
        *_with_strings(slots, *_doubles(slots), _FLOAT_TEXT, target.arrow), target.arrow
    ),
    "decimal": _decimal,
    "string": _string,
    "binary": _bytes,
    "uuid": _bytes,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
