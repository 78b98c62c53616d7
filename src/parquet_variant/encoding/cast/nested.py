"""Casts of whole Variants to a target type, and Arrow arrays of their results.

Owns casts of null, arrays and objects: lists, structs and maps around the casts of scalars; and how each target type
stores the results. A raw result is the value that an Arrow array stores (see `scalars`), a list for lists, a tuple in
field order for structs, pairs for maps, ``(metadata, value)`` for variants. Leaves scalars to `scalars`, and storage
forms of types to `forms`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.cast.datetimes import NANOS_PER_SECOND, offset_text, to_local
from parquet_variant.encoding.cast.forms import fixed_size_lists
from parquet_variant.encoding.cast.scalars import NANOS_OF, cast_scalar
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE, Target
from parquet_variant.encoding.json_writer import json_pieces, timestamp_text
from parquet_variant.encoding.python_values import scalar_to_python
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import Event
from parquet_variant.errors import CastError
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

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
            return [cast_raw(element, target.children[0], zone, safe) for element in variant]
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


def no_cast(variant: Variant, target: Target) -> CastError:
    """Return the error for a value that cannot be cast to a target."""
    text = variant.to_json()
    preview = text if len(text) <= _PREVIEW_CHARACTERS else text[:_PREVIEW_CHARACTERS] + "…"
    return CastError(
        f'cannot cast {variant.type} {preview} to {target.arrow}: use errors="null" to get null instead',
        reason="bad-cast",
    )


def json_text(variant: Variant, zone: dt.tzinfo) -> str:
    """Return a Variant as JSON, with instants in a time zone.

    >>> json_text(Variant.from_python([dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]), dt.timezone(dt.timedelta(hours=-8)))
    '["1969-12-31 16:00:00-08:00"]'
    """
    events = variant._walk()
    return "".join(json_pieces(events if zone is dt.UTC else _with_local_times(events, zone)))


def _with_local_times(events: Iterator[Event], zone: dt.tzinfo) -> Iterator[Event]:
    for event in events:
        if event.kind in (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS):
            instant = event.raw * NANOS_OF[VariantType(event.kind)]
            text = timestamp_text(to_local(instant, zone), NANOS_PER_SECOND, has_zone=False)
            yield Event(VariantType.STRING, text + offset_text(instant, zone))
        else:
            yield event


def array_of_raw(raws: Sequence[Any], target: Target) -> pa.Array:
    """Return an Arrow array of the target's type, in plain form (see `forms`), from raw results; None becomes null.

    >>> from parquet_variant.encoding.cast.targets import target_of
    >>> array_of_raw([1, None], target_of(pa.date32())).to_pylist()
    [datetime.date(1970, 1, 2), None]
    """
    arrow = target.arrow
    match target.family:
        case "list":
            return _lists(raws, target)
        case "struct":
            return _structs(raws, target)
        case "map":
            return _maps(raws, target)
        case "variant":
            return _variants(raws)
        case "decimal":
            kind, scale = VariantType.DECIMAL16, target.scale
            return pa.array([None if raw is None else scalar_to_python(kind, (raw, scale)) for raw in raws], arrow)
        case "date" | "time" | "timestamp" | "timestamp_ntz":
            ticks = pa.int32() if arrow.bit_width == 32 else pa.int64()
            return pa.array(raws, ticks).view(arrow)
        case "uuid":
            return pa.ExtensionArray.from_storage(arrow, pa.array(raws, pa.binary(16)))
        case "float16":
            halves = [None if raw is None else np.float16(raw) for raw in raws]
            return pa.array(halves, arrow)
        case _:
            return pa.array(raws, arrow)


def _mask(raws: Sequence[Any]) -> pa.Array:
    return pa.array([raw is None for raw in raws], pa.bool_())


def _lists(raws: Sequence[Any], target: Target) -> pa.Array:
    arrow = target.arrow
    if target.size >= 0:
        padded = chain.from_iterable([None] * target.size if raw is None else raw for raw in raws)
        elements = array_of_raw(list(padded), target.children[0])
        return fixed_size_lists(elements, arrow, _mask(raws))
    elements = array_of_raw(list(chain.from_iterable(raw or () for raw in raws)), target.children[0])
    offsets = np.zeros(len(raws) + 1, np.int64)
    np.cumsum([len(raw or ()) for raw in raws], out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements, mask=_mask(raws))
    return lists.cast(pa.large_list(arrow.value_field)).cast(arrow)


def _structs(raws: Sequence[Any], target: Target) -> pa.Array:
    columns = [
        array_of_raw([None if raw is None else raw[index] for raw in raws], child)
        for index, child in enumerate(target.children)
    ]
    fields = [target.arrow.field(index) for index in range(target.arrow.num_fields)]
    if not fields:
        return pa.array([None if raw is None else {} for raw in raws], target.arrow)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=_mask(raws))


def _maps(raws: Sequence[Any], target: Target) -> pa.Array:
    pairs = list(chain.from_iterable(raw or () for raw in raws))
    offsets = np.zeros(len(raws) + 1, np.int32)
    np.cumsum([len(raw or ()) for raw in raws], out=offsets[1:])
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array([key for key, _ in pairs], target.arrow.key_type),
        array_of_raw([item for _, item in pairs], target.children[0]),
        type=target.arrow,
        mask=_mask(raws),
    )


def _variants(raws: Sequence[Any]) -> pa.Array:
    parts = [pa.array([b"" if raw is None else raw[index] for raw in raws], pa.binary()) for index in (0, 1)]
    fields = [VARIANT_STORAGE.field(index) for index in (0, 1)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(raws))
