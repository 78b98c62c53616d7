"""`lay_out`: the same value in other bytes that the specification allows, or that older writers produce.

Owns the choices that the encoding leaves to a writer: widths, the order of values and of names, the long form of
strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from parquet_variant.encoding.header import uint_width
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import END, KEY, walk
from parquet_variant.types import BasicType, PrimitiveId, VariantType


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of the bytes of a value; the default is the canonical layout.

    Parameters
    ----------
    name_width, id_width, offset_width
        Bytes of the metadata's offsets, of field ids and of value offsets; more if the value needs more.
    large_counts
        Use four-byte counts for up to 255 elements too.
    reverse_values
        Store the values of an object in the reverse order of its keys.
    reverse_names
        Store the dictionary in reverse order, not flagged as sorted.
    extra_names
        Names in the dictionary that no field uses.
    long_strings
        Do not use short strings.
    unsorted_fields
        Store fields in the reverse order, which the specification does not allow and DuckDB 2.0 writes.
    """

    name_width: int = 1
    id_width: int = 1
    offset_width: int = 1
    large_counts: bool = False
    reverse_values: bool = False
    reverse_names: bool = False
    extra_names: tuple[str, ...] = ()
    long_strings: bool = False
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
