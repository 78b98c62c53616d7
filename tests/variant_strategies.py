"""Hypothesis strategies: values, valid and malformed, Python values, JSON texts, shredding schemas; and `lay_out`, the
same value in other bytes that the specification allows.

Owns the choices that the encoding leaves to a writer: widths, the order of values and of names, the long form of
strings.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from parquet_variant.encoding.header import uint_width
from parquet_variant.encoding.scalars import MAX_DIGITS, MAX_SCALE, MICROS_PER_DAY, encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import END, KEY, encode_value, walk
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import DDL_NAMES
from parquet_variant.types import DECIMAL_TYPES, EXACT_NUMERIC, TYPES, BasicType, PrimitiveId, VariantType


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of the bytes of a value; the default is the canonical layout."""

    # Bytes of the metadata's offsets, of field ids and of value offsets; more if the value needs more.
    name_width: int = 1
    id_width: int = 1
    offset_width: int = 1
    large_counts: bool = False  # Use four-byte counts for up to 255 elements too.
    reverse_values: bool = False  # Store the values of an object in the reverse order of its keys.
    reverse_names: bool = False  # Store the dictionary in reverse order, not flagged as sorted.
    extra_names: tuple[str, ...] = ()  # Names in the dictionary that no field uses.
    long_strings: bool = False  # Do not use short strings.
    # Store fields in the reverse order, which the specification does not allow and DuckDB 2.0 writes.
    unsorted_fields: bool = False


def lay_out(variant: Variant, layout: Layout | None = None) -> Variant:
    """Return a value in another layout.

    Parameters
    ----------
    variant
        A valid value.
    layout
        The layout; the canonical layout by default.

    Examples
    --------
    >>> v = Variant.from_python({"a": "x"})
    >>> other = lay_out(v, Layout(id_width=4, long_strings=True))
    >>> other.value.hex(), other == v
    ('3201000000000006400100000078', True)
    """
    layout = layout or Layout()
    events = list(walk(variant.metadata, variant.value, 0, len(variant.value)))
    names = sorted({event.raw for event in events if event.kind == KEY} | set(layout.extra_names))
    if layout.reverse_names:
        names.reverse()
    ids = {name: field_id for field_id, name in enumerate(names)}
    frames: list[tuple[list[int] | None, list[bytes]]] = [(None, [])]
    for kind, raw, start, stop in events:
        if kind == KEY:
            keys = frames[-1][0]
            assert keys is not None
            keys.append(ids[raw])
        elif kind in (VariantType.OBJECT, VariantType.ARRAY):
            frames.append(([] if kind == VariantType.OBJECT else None, []))
        elif kind == END:
            field_ids, values = frames.pop()
            frames[-1][1].append(_container(field_ids, values, layout))
        else:
            scalar = variant.value[start:stop]
            if kind == VariantType.STRING and layout.long_strings:
                text = raw.encode()
                scalar = bytes([PrimitiveId.STRING << 2]) + len(text).to_bytes(4, "little") + text
            frames[-1][1].append(scalar)
    return Variant(_metadata(names, layout), frames[0][1][0])


def _metadata(names: list[str], layout: Layout) -> bytes:
    encoded = [name.encode() for name in names]
    width = max(layout.name_width, uint_width(max(len(encoded), sum(map(len, encoded)))))
    numbers = [len(encoded), 0, *accumulate(map(len, encoded))]
    header = (width - 1) << 6 | (not layout.reverse_names) << 4 | 1
    return b"".join([bytes([header]), *(number.to_bytes(width, "little") for number in numbers), *encoded])


def _container(field_ids: list[int] | None, values: list[bytes], layout: Layout) -> bytes:
    count = len(values)
    # The index of the field at each position in the bytes.
    places = list(range(count))
    if field_ids is not None and layout.reverse_values:
        places.reverse()
    offsets = [0] * (count + 1)
    at = 0
    for index in places:
        offsets[index] = at
        at += len(values[index])
    offsets[count] = at
    fields = list(range(count))
    if field_ids is not None and layout.unsorted_fields:
        fields.reverse()
    offset_width = max(layout.offset_width, uint_width(at))
    large = layout.large_counts or count > 255
    bits = offset_width - 1
    id_bytes = b""
    if field_ids is None:
        header = (large << 2 | bits) << 2 | BasicType.ARRAY
    else:
        id_width = max(layout.id_width, uint_width(max(field_ids, default=0)))
        header = (large << 4 | (id_width - 1) << 2 | bits) << 2 | BasicType.OBJECT
        id_bytes = b"".join(field_ids[index].to_bytes(id_width, "little") for index in fields)
    offset_bytes = b"".join(offsets[index].to_bytes(offset_width, "little") for index in [*fields, count])
    body = b"".join(values[index] for index in places)
    return bytes([header]) + count.to_bytes(4 if large else 1, "little") + id_bytes + offset_bytes + body


_NUMBER = r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?"


def json_texts(*, max_leaves: int = 20) -> SearchStrategy[str]:
    """Generate valid JSON texts: whitespace, escapes, duplicate keys, long numbers, scalars at the top.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one text.

    Examples
    --------
    >>> json_texts(max_leaves=1) is not None
    True
    """
    blank = st.text(" \t\n\r", max_size=2)
    character = st.one_of(
        st.characters(codec="utf-8").map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
        st.characters(codec="utf-8").map(lambda text: json.dumps(text)[1:-1]),
        st.sampled_from([r"\/", r"\"", r"\\", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0000", r"\uD83D\uDE00"]),
    )
    string = st.lists(character, max_size=8).map(lambda parts: f'"{"".join(parts)}"')
    key = string | st.sampled_from(['"a"', '"b"', r'"\u0061"', '""'])
    number = st.from_regex(_NUMBER, fullmatch=True) | st.integers(-(2**65), 2**65).map(str)
    scalar = st.sampled_from(["null", "true", "false"]) | number | string

    def containers(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        item = st.tuples(blank, inner, blank).map("".join)
        field = st.tuples(blank, key, blank, st.just(":"), item).map("".join)
        arrays = st.one_of(blank, st.lists(item, min_size=1, max_size=5).map(",".join))
        objects = st.one_of(blank, st.lists(field, min_size=1, max_size=5).map(",".join))
        return arrays.map(lambda text: f"[{text}]") | objects.map(lambda text: f"{{{text}}}")

    texts: SearchStrategy[str] = st.tuples(blank, st.recursive(scalar, containers, max_leaves=max_leaves), blank).map(
        "".join
    )
    return texts


def python_values(*, max_leaves: int = 20) -> SearchStrategy[Any]:
    """Generate nested Python objects of every type that has a Variant type.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one object.

    Examples
    --------
    >>> python_values(max_leaves=1) is not None
    True
    """
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1),
        st.floats(),
        decimals(),
        st.text(max_size=80),
        st.binary(max_size=80),
        st.uuids(),
        st.dates(),
        st.times(),
        st.datetimes(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.integers(-(2**63) + 1, 2**63 - 1).map(lambda count: np.datetime64(count, "ns")),
    )
    return nested(scalars, max_leaves)


def nested(scalars: SearchStrategy[Any], max_leaves: int) -> SearchStrategy[Any]:
    """Generate scalars, and lists and dictionaries of them."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
        max_leaves=max_leaves,
    )


def decimals() -> SearchStrategy[Decimal]:
    """Generate decimals of up to 38 digits, and of scale 0 to 38."""
    unscaled = st.integers(0, 10**MAX_DIGITS - 1) | st.integers(0, 99_999)
    signed = st.tuples(st.integers(0, 1), unscaled, st.integers(0, MAX_SCALE))
    return signed.map(lambda one: Decimal((one[0] if one[1] else 0, tuple(map(int, str(one[1]))), -one[2])))


def shredding_schemas(variants: Sequence[Variant | None] = (), *, max_depth: int = 4) -> Any:
    """Generate schemas, most of whose nodes match the types of the values.

    Parameters
    ----------
    variants
        The values that will be shredded.
    max_depth
        The maximum number of levels of a schema.

    Examples
    --------
    >>> shredding_schemas([Variant.from_python({"a": 1})]) is not None
    True
    """

    values = [variant for variant in variants if variant is not None]
    return st.composite(lambda draw: _schema(draw, st, values, max_depth))()


def _schema(draw: Callable[[Any], Any], st: Any, values: list[Variant], depth: int) -> ShreddingSchema:
    wild = draw(st.integers(0, 11))
    if wild == 0 or (depth == 1 and wild < 4):
        return ShreddingSchema.variant()
    if wild == 1 or depth == 1 or not values:
        return ShreddingSchema.primitive(
            draw(st.sampled_from(sorted(set(DDL_NAMES.values()), key=str)) | _numeric_types(st))
        )
    model = draw(st.sampled_from(values))
    if model.type == VariantType.OBJECT:
        names = draw(st.sets(st.sampled_from([*model.keys(), "absent"]), min_size=1, max_size=5))
        objects = [dict(value.items()) for value in values if value.type == VariantType.OBJECT]
        return ShreddingSchema.object(
            {
                name: _schema(draw, st, [fields[name] for fields in objects if name in fields], depth - 1)
                for name in sorted(names)
            }
        )
    if model.type == VariantType.ARRAY:
        arrays = [value for value in values if value.type == VariantType.ARRAY]
        return ShreddingSchema.array(_schema(draw, st, [element for array in arrays for element in array], depth - 1))
    if model.type in EXACT_NUMERIC:
        return ShreddingSchema.primitive(draw(_numeric_types(st)))
    arrow = TYPES[model.type].arrow
    return ShreddingSchema.variant() if arrow is None else ShreddingSchema.primitive(arrow)


def _numeric_types(st: Any) -> Any:
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: pa.decimal128(precision, scale))
    )
    return st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64()]) | decimals


def variants(*, max_leaves: int = 20, layouts: bool = True, types: set[VariantType] | None = None) -> Any:
    """Generate Variants of every type.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one value.
    layouts
        Generate layouts other than the canonical one, too.
    types
        The scalar types to generate; all by default.

    Examples
    --------
    >>> variants(types={VariantType.INT8}) is not None
    True
    """
    canonical = nested(variant_scalars(types), max_leaves).map(lambda node: Variant(*encode_value(node)))
    if not layouts:
        return canonical
    width = st.integers(1, 4)
    flag = st.booleans()
    widths = dict.fromkeys(("name_width", "id_width", "offset_width"), width)
    flags = dict.fromkeys(("large_counts", "reverse_values", "reverse_names", "long_strings"), flag)
    layout = st.builds(Layout, extra_names=st.lists(st.text(max_size=3), max_size=3).map(tuple), **widths, **flags)
    return canonical | st.builds(lay_out, canonical, layout)


def variant_scalars(types: set[VariantType] | None = None) -> SearchStrategy[bytes]:
    """Generate the bytes of scalars of the given types (default: all), over the full range of their payloads."""
    choices = []
    for kind, info in TYPES.items():
        if not info.ids or (types is not None and kind not in types):
            continue
        raw: Any
        if kind in DECIMAL_TYPES:
            assert info.precision is not None
            limit = 10**info.precision - 1
            raw = st.tuples(st.integers(-limit, limit), st.integers(0, MAX_SCALE))
        elif info.width is None:
            raw = st.text(max_size=80) if kind == VariantType.STRING else st.binary(max_size=80)
        elif kind == VariantType.TIME:
            raw = st.integers(0, MICROS_PER_DAY - 1)
        elif kind == VariantType.UUID:
            raw = st.binary(min_size=16, max_size=16)
        elif kind in (VariantType.DOUBLE, VariantType.FLOAT):
            raw = st.floats(width=8 * info.width)
        elif kind == VariantType.BOOLEAN:
            raw = st.booleans()
        elif kind == VariantType.NULL:
            raw = st.none()
        else:
            bound = 1 << (8 * info.width - 1)
            raw = st.integers(-bound, bound - 1)
        choices.append(st.builds(encode_scalar, st.just(kind), raw))
    scalars: SearchStrategy[bytes] = st.one_of(choices)
    return scalars


def mutated_variants(*, max_leaves: int = 20, max_changes: int = 4) -> Any:
    """Generate Variants with bytes flipped, overwritten, truncated, repeated or appended; a few are still valid.

    Parameters
    ----------
    max_leaves
        The approximate maximum number of scalars in one value before the change.
    max_changes
        The maximum number of changes to one value.

    Examples
    --------
    >>> mutated_variants() is not None
    True
    """
    action = st.sampled_from(["flip", "set", "cut", "repeat", "append"])
    change = st.tuples(st.booleans(), action, st.integers(0, 1 << 16), st.integers(0, 255))
    return st.builds(_changed, variants(max_leaves=max_leaves), st.lists(change, min_size=1, max_size=max_changes))


def _changed(variant: Variant, changes: list[tuple[bool, str, int, int]]) -> Variant:
    parts = [bytearray(variant.metadata), bytearray(variant.value)]
    for in_value, action, position, byte in changes:
        part = parts[in_value]
        at = position % len(part) if part else 0
        if action == "append":
            part.append(byte)
        elif not part:
            continue
        elif action == "flip":
            part[at] ^= 1 << byte % 8
        elif action == "set":
            part[at] = byte
        elif action == "cut":
            del part[at:]
        else:
            part[at:at] = part[at:]
    return Variant(bytes(parts[0]), bytes(parts[1]))
