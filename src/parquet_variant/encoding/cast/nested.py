"""A whole Variant as a target type: lists, structs and maps around the casts of scalars.

Owns what becomes of null, arrays and objects. The result is raw: what an Arrow array stores (see `scalars`), a list for
lists, a tuple in field order for structs, pairs for maps, ``(metadata, value)`` for variants. Leaves scalars to
`scalars` and the building of arrays and Python objects to `arrow`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from parquet_variant.encoding.cast.datetimes import NANOS_PER_SECOND, offset_text, to_local
from parquet_variant.encoding.cast.scalars import NANOS_OF, cast_scalar
from parquet_variant.encoding.cast.targets import Target
from parquet_variant.encoding.json_writer import json_pieces, timestamp_text
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import Event
from parquet_variant.errors import CastError
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

_SHOWN_CHARACTERS = 80


def cast_raw(variant: Variant, target: Target, zone: dt.tzinfo, safe: bool) -> Any:
    """A Variant as a target type, raw; None for Variant null.

    Raises `CastError` if ``safe`` and the value, or one inside it, has no such cast; otherwise it becomes None where it
    stands. Raises `MalformedVariantError` if the bytes are malformed.
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
    """The error for a value that has no cast to a target."""
    text = variant.to_json()
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return CastError(
        f"{variant.type} {shown} cannot be given as {target.arrow}: use try_variant_get for null instead",
        reason="bad-cast",
    )


def json_text(variant: Variant, zone: dt.tzinfo) -> str:
    """A Variant as JSON, instants in a time zone.

    >>> json_text(Variant.from_python([dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]), dt.timezone(dt.timedelta(hours=-8)))
    '["1969-12-31 16:00:00-08:00"]'
    """
    events = variant._walk()
    return "".join(json_pieces(events if zone is dt.UTC else _localised(events, zone)))


def _localised(events: Iterator[Event], zone: dt.tzinfo) -> Iterator[Event]:
    for event in events:
        if event.kind in (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS):
            instant = event.raw * NANOS_OF[VariantType(event.kind)]
            text = timestamp_text(to_local(instant, zone), NANOS_PER_SECOND, has_zone=False)
            yield Event(VariantType.STRING, text + offset_text(instant, zone))
        else:
            yield event
