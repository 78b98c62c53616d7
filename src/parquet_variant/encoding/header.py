"""The byte layout of values and containers, in both directions.

Owns unsigned integers of 1 to 4 bytes, container headers, and the size of a value; every read is checked against the
end of the bytes. Leaves the payload of scalars to `scalars` and the dictionary to `metadata`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from parquet_variant.errors import MalformedVariantError
from parquet_variant.types import TYPE_OF_ID, BasicType, PrimitiveId, TypeInfo

MAX_SHORT_STRING = 63
_MAX_SMALL_COUNT = 255
_LAST_TYPE_ID = max(PrimitiveId)
_TYPES = tuple(TYPE_OF_ID[number] for number in PrimitiveId)  # by their ids


def read_uint(data: bytes, at: int, width: int, stop: int) -> int:
    """Return the little-endian unsigned integer of ``width`` bytes at ``at``.

    Raises `MalformedVariantError` with reason ``truncated`` if it would end after ``stop``.
    """
    if at + width > stop:
        available = max(stop - at, 0)
        message = f"expected {width} bytes, found {available}: the value is truncated"
        raise MalformedVariantError(message, reason="truncated", offset=at)
    return int.from_bytes(data[at : at + width], "little")


def uint_width(largest: int) -> int:
    """Return the smallest number of bytes, 1 to 4, that holds ``largest``."""
    return max(1, (largest.bit_length() + 7) // 8)


class Container(NamedTuple):
    """The positions of the parts of an object or array (spec: "Value Data for Object", "Value Data for Array")."""

    is_object: bool
    size: int
    ids_at: int
    id_size: int
    offsets_at: int
    offset_size: int
    values_at: int
    stop: int
    """The position after the last value, according to the last offset."""

    def ids(self, data: bytes) -> list[int]:
        """Return the dictionary id of each field."""
        starts = range(self.ids_at, self.ids_at + self.size * self.id_size, self.id_size)
        return [int.from_bytes(data[at : at + self.id_size], "little") for at in starts]

    def value_at(self, data: bytes, index: int) -> int:
        """Return the position of value ``index``. Raises `MalformedVariantError` if it is outside the container."""
        slot = self.offsets_at + index * self.offset_size
        offset = read_uint(data, slot, self.offset_size, self.values_at)
        if self.values_at + offset >= self.stop:
            message = f"offset {offset} of element {index} is beyond the {self.stop - self.values_at} bytes of values"
            raise MalformedVariantError(message, reason="offset-out-of-range", offset=slot)
        return self.values_at + offset


def read_container(data: bytes, at: int, stop: int) -> Container | None:
    """Return the layout of the object or array at ``at``; None for a scalar.

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
        message = f"the header of a container of {count} elements needs {values_at - at} bytes, found {stop - at}"
        raise MalformedVariantError(message, reason="truncated", offset=at)
    last = read_uint(data, values_at - offset_size, offset_size, stop)
    if values_at + last > stop:
        message = f"the values end at offset {last}, beyond the remaining {stop - values_at} bytes"
        raise MalformedVariantError(message, reason="offset-out-of-range", offset=values_at - offset_size)
    return Container(is_object, count, ids_at, id_size, offsets_at, offset_size, values_at, values_at + last)


def primitive_info(number: int, at: int) -> TypeInfo:
    """Return the type of the primitive at ``at`` by its id. Raises `MalformedVariantError` for an unknown id."""
    if number > _LAST_TYPE_ID:
        message = f"unknown primitive type id {number}: 0 to {_LAST_TYPE_ID} are defined"
        raise MalformedVariantError(message, reason="unknown-type", offset=at)
    return _TYPES[number]


def value_size(data: bytes, at: int, stop: int) -> int:
    """Return the number of bytes of the value at ``at``, header included.

    Raises `MalformedVariantError` if it would end after ``stop``, or its type id is unknown.

    >>> value_size(bytes.fromhex("0c01ff"), 0, 3)
    2
    """
    header = data[at] if at < stop else read_uint(data, at, 1, stop)
    basic, bits = header & 3, header >> 2
    if basic == BasicType.SHORT_STRING:
        size = 1 + bits
    elif basic == BasicType.PRIMITIVE:
        width = primitive_info(bits, at).width
        size = 5 + read_uint(data, at + 1, 4, stop) if width is None else 1 + width
    else:
        container = read_container(data, at, stop)
        assert container is not None
        size = container.stop - at
    if at + size > stop:
        raise MalformedVariantError(
            f"a value of {size} bytes starts here, but only {stop - at} bytes remain", reason="truncated", offset=at
        )
    return size


def object_bytes(ids: list[int], values: list[bytes]) -> bytes:
    r"""Return the bytes of an object with the narrowest widths; ids and encoded values are in the order of the keys.

    >>> object_bytes([0], [b"\x00"]).hex()
    '020100000100'
    """
    id_size = uint_width(max(ids, default=0))
    id_list = b"".join(field_id.to_bytes(id_size, "little") for field_id in ids)
    large = len(ids) > _MAX_SMALL_COUNT
    return _container_bytes(large << 4 | (id_size - 1) << 2, BasicType.OBJECT, id_list, values)


def array_bytes(values: list[bytes]) -> bytes:
    """Return the bytes of an array of encoded values with the narrowest widths."""
    return _container_bytes((len(values) > _MAX_SMALL_COUNT) << 2, BasicType.ARRAY, b"", values)


def _container_bytes(bits: int, basic: BasicType, id_list: bytes, values: list[bytes]) -> bytes:
    offsets = [0, *accumulate(map(len, values))]
    offset_size = uint_width(offsets[-1])
    header = bytes([(bits | (offset_size - 1)) << 2 | basic])
    count = len(values).to_bytes(4 if len(values) > _MAX_SMALL_COUNT else 1, "little")
    return b"".join([header, count, id_list, *(offset.to_bytes(offset_size, "little") for offset in offsets), *values])
