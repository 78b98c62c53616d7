"""The byte layouts of values and containers, written once for each direction.

Owns unsigned integers of 1 to 4 bytes, container headers, and the size of a value; every read is checked against the
end of its bytes. Leaves the payload of scalars to `scalars` and the dictionary to `metadata`.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.errors import MalformedVariantError
from parquet_variant.types import TYPE_OF_ID, BasicType, PrimitiveId

MAX_SHORT_STRING = 63
_MAX_SMALL_COUNT = 255


def read_uint(data: bytes, at: int, width: int, stop: int) -> int:
    """The little-endian unsigned integer of ``width`` bytes at ``at``.

    Raises `MalformedVariantError` with reason ``truncated`` if it would end after ``stop``.
    """
    if at + width > stop:
        raise MalformedVariantError(
            f"{width} bytes are needed, {max(stop - at, 0)} are there: the bytes are cut off",
            reason="truncated",
            offset=at,
        )
    return int.from_bytes(data[at : at + width], "little")


def uint_width(largest: int) -> int:
    """The narrowest of 1 to 4 bytes that holds ``largest``.

    >>> [uint_width(n) for n in (0, 255, 256, 65_536, 16_777_216)]
    [1, 1, 2, 3, 4]
    """
    return max(1, (largest.bit_length() + 7) // 8)


class Container(NamedTuple):
    """Where the parts of an object or array lie (spec: "Value Data for Object", "… for Array")."""

    is_object: bool
    size: int
    ids_at: int
    id_size: int
    offsets_at: int
    offset_size: int
    values_at: int
    stop: int
    """The byte after the last value, by the last offset."""

    def field_id(self, data: bytes, index: int) -> int:
        """The dictionary id of field ``index``."""
        return read_uint(data, self.ids_at + index * self.id_size, self.id_size, self.offsets_at)

    def value_at(self, data: bytes, index: int) -> int:
        """Where value ``index`` starts, inside the container."""
        slot = self.offsets_at + index * self.offset_size
        offset = read_uint(data, slot, self.offset_size, self.values_at)
        if self.values_at + offset >= self.stop:
            raise MalformedVariantError(
                f"offset {offset} of element {index} is outside the {self.stop - self.values_at} bytes of values",
                reason="offset-out-of-range",
                offset=slot,
            )
        return self.values_at + offset


def read_container(data: bytes, at: int, stop: int) -> Container | None:
    """The layout of the object or array at ``at``; None if the value there is a scalar.

    Raises `MalformedVariantError` if its header, ids, offsets or values would end after ``stop``.
    """
    header = read_uint(data, at, 1, stop)
    basic, bits = header & 3, header >> 2
    if basic not in (BasicType.OBJECT, BasicType.ARRAY):
        return None
    is_object = basic == BasicType.OBJECT
    offset_size = (bits & 3) + 1
    id_size = ((bits >> 2) & 3) + 1 if is_object else 0
    is_large = bits >> (4 if is_object else 2) & 1
    count_size = 4 if is_large else 1
    count = read_uint(data, at + 1, count_size, stop)
    ids_at = at + 1 + count_size
    offsets_at = ids_at + count * id_size
    values_at = offsets_at + (count + 1) * offset_size
    if values_at > stop:
        raise MalformedVariantError(
            f"a header for {count} elements needs {values_at - at} bytes, {stop - at} are there",
            reason="truncated",
            offset=at,
        )
    last = read_uint(data, values_at - offset_size, offset_size, stop)
    if values_at + last > stop:
        raise MalformedVariantError(
            f"the values end at offset {last}, but only {stop - values_at} bytes are there",
            reason="offset-out-of-range",
            offset=values_at - offset_size,
        )
    return Container(is_object, count, ids_at, id_size, offsets_at, offset_size, values_at, values_at + last)


def value_size(data: bytes, at: int, stop: int) -> int:
    """The number of bytes of the value at ``at``, header included.

    Raises `MalformedVariantError` if it would end after ``stop``, or its type id is unknown.

    >>> value_size(bytes.fromhex("0c01ff"), 0, 3)
    2
    """
    header = read_uint(data, at, 1, stop)
    basic, bits = header & 3, header >> 2
    if basic == BasicType.SHORT_STRING:
        size = 1 + bits
    elif basic == BasicType.PRIMITIVE:
        if bits > max(PrimitiveId):
            raise MalformedVariantError(
                f"primitive type id {bits} is unknown: 0 to {max(PrimitiveId)} are defined",
                reason="unknown-type",
                offset=at,
            )
        width = TYPE_OF_ID[PrimitiveId(bits)].width
        size = 5 + read_uint(data, at + 1, 4, stop) if width is None else 1 + width
    else:
        container = read_container(data, at, stop)
        assert container is not None
        size = container.stop - at
    if at + size > stop:
        raise MalformedVariantError(
            f"a value of {size} bytes starts here, but only {stop - at} are left", reason="truncated", offset=at
        )
    return size


def _count_bytes(count: int) -> bytes:
    return count.to_bytes(4 if count > _MAX_SMALL_COUNT else 1, "little")


def _offset_bytes(values: list[bytes], width: int) -> bytes:
    offset = 0
    parts = [offset.to_bytes(width, "little")]
    for value in values:
        offset += len(value)
        parts.append(offset.to_bytes(width, "little"))
    return b"".join(parts)


def object_bytes(ids: list[int], values: list[bytes]) -> bytes:
    r"""An object: dictionary ids and encoded values, both in the order of the keys; narrowest widths.

    >>> object_bytes([0], [b"\x00"]).hex()
    '020100000100'
    """
    id_size = uint_width(max(ids, default=0))
    offset_size = uint_width(sum(map(len, values)))
    large = len(ids) > _MAX_SMALL_COUNT
    header = (large << 4 | (id_size - 1) << 2 | (offset_size - 1)) << 2 | BasicType.OBJECT
    id_list = b"".join(field_id.to_bytes(id_size, "little") for field_id in ids)
    return b"".join([bytes([header]), _count_bytes(len(ids)), id_list, _offset_bytes(values, offset_size), *values])


def array_bytes(values: list[bytes]) -> bytes:
    r"""An array of encoded values; narrowest widths.

    >>> array_bytes([b"\x0c\x01"]).hex()
    '030100020c01'
    """
    offset_size = uint_width(sum(map(len, values)))
    large = len(values) > _MAX_SMALL_COUNT
    header = (large << 2 | (offset_size - 1)) << 2 | BasicType.ARRAY
    return b"".join([bytes([header]), _count_bytes(len(values)), _offset_bytes(values, offset_size), *values])
