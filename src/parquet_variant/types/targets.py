"""Target types of casts.

Owns the reduction of every Arrow type to a family with a few numbers, and the error for types that Variants cannot be
cast to. Leaves casting to `encoding.cast.values`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from parquet_variant.errors import CastError

# The storage of a nested target of type Variant: `array<variant>` is a list of these structs.
VARIANT_STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])

_TICK = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_FAMILIES = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), "binary"),
    pa.uuid(): "uuid",
}


class Target(NamedTuple):
    """A target type in parts."""

    # The kind of the cast: ``boolean``, ``integer``, ``float16``, ``float32``, ``float64``, ``decimal``,
    # ``string``, ``binary``, ``date``, ``time``, ``timestamp``, ``timestamp_ntz``, ``uuid``, ``list``, ``struct``,
    # ``map``, ``variant``, ``null``.
    family: str
    arrow: pa.DataType  # The Arrow type itself.
    # Bounds of an integer, or of the ticks of a time.
    low: int = -(2**63)
    high: int = 2**63 - 1
    tick: int = 1  # Nanoseconds of one unit of a time or timestamp; days, or milliseconds of a date.
    size: int = -1  # Bytes of a fixed-size binary, elements of a fixed-size list; -1 for any.
    # Digits of a decimal.
    precision: int = 0
    scale: int = 0
    children: tuple[Target, ...] = ()  # Targets of the elements, fields or map values.
    names: tuple[str, ...] = ()  # Names of a struct's fields.


def target_of(arrow: pa.DataType) -> Target:
    """Return the target of casts to an Arrow type.

    Raises `CastError` with reason ``unsupported-target`` for durations and intervals (which Spark rejects too), unions,
    maps whose keys are not strings, decimals of negative scale, and unknown extension types.
    """
    family = None if isinstance(arrow, pa.ExtensionType) else _target(arrow)
    if family is None:
        raise CastError(
            f"cannot cast a Variant to {arrow}: use a boolean, number, string, binary, date, time, timestamp or uuid, "
            "or a list, struct or map<string, …> of them",
            reason="unsupported-target",
        )
    return family


@lru_cache(maxsize=1024)
def _target(arrow: pa.DataType) -> Target | None:
    types = pa.types
    if arrow == VARIANT_STORAGE:
        return Target("variant", arrow)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return target_of(arrow.value_type)._replace(arrow=arrow)
    if (family := _FAMILIES.get(arrow)) is not None:
        return Target(family, arrow)
    if types.is_integer(arrow):
        low = -(1 << (arrow.bit_width - 1)) if types.is_signed_integer(arrow) else 0
        return Target("integer", arrow, low, low + (1 << arrow.bit_width) - 1)
    if types.is_decimal(arrow) and arrow.scale >= 0:
        return Target("decimal", arrow, precision=arrow.precision, scale=arrow.scale)
    if types.is_fixed_size_binary(arrow):
        return Target("binary", arrow, size=arrow.byte_width)
    if types.is_date32(arrow):
        return Target("date", arrow, -(2**31), 2**31 - 1)
    if types.is_date64(arrow):
        return Target("date", arrow, tick=86_400_000)
    if types.is_time(arrow):
        return Target("time", arrow, tick=_TICK[arrow.unit])
    if types.is_timestamp(arrow):
        return Target("timestamp_ntz" if arrow.tz is None else "timestamp", arrow, tick=_TICK[arrow.unit])
    if types.is_struct(arrow):
        children = tuple(target_of(field.type) for field in arrow)
        return Target("struct", arrow, children=children, names=tuple(field.name for field in arrow))
    if types.is_map(arrow):
        is_supported = target_of(arrow.key_type).family == "string"
        return Target("map", arrow, children=(target_of(arrow.item_type),)) if is_supported else None
    if types.is_fixed_size_list(arrow):
        return Target("list", arrow, size=arrow.list_size, children=(target_of(arrow.value_type),))
    is_any_list = (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    if any(is_list(arrow) for is_list in is_any_list):
        return Target("list", arrow, children=(target_of(arrow.value_type),))
    return None
