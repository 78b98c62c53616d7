"""Levels and values of leaf columns as pages need them, with the minimum and maximum of the values.

Owns the walk from a column to its leaves, with their definition and repetition levels: leaves with equal levels share
them, such as the fields of an object that are never missing, or always missing. Owns also the removal of nulls, the
physical form of each type, and its order. Values are not copied if Arrow stores them in this form. A NaN is not a
bound; values that are all NaN have no bounds. Leaves encodings to `encodings`, and loops over entries to
`kernels.pages.levels`. Spec: ``parquet.thrift``, ``ColumnOrder``.
"""

from __future__ import annotations

import struct
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.arrow_schema import LeafType, Physical
from parquet_variant.kernels.arrow_buffers import bitmap, from_numpy, offsets_of
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.kernels.pages import values as value_kernels
from parquet_variant.kernels.pages.levels import ByteArrays, Lists, list_levels, list_positions, optional_levels
from parquet_variant.kernels.shredding import schema_table
from parquet_variant.support.records import Record
from parquet_variant.types import MAX_OFFSET

Levels = npt.NDArray[np.uint8]
_NONE = np.zeros(0, np.uint8)
_STRUCT, _DICTIONARY, _MAP = (
    kind.id for kind in (pa.struct([]), pa.dictionary(pa.int8(), pa.int8()), pa.map_(pa.int8(), pa.int8()))
)
_LISTS = (pa.list_(pa.int8()).id, pa.large_list(pa.int8()).id, _MAP)


class Entries(Record, frozen=False, eq=False):
    """The level entries of a column, or of a group that contains it."""

    count: int  # Number of entries.
    definition: Levels | int  # Definition levels, or the one level of all entries.
    repetition: Levels | None  # Repetition levels; None if all are 0.
    slot_level: int  # The lowest definition level of an entry with a slot in the Arrow array.
    present_level: int  # The definition level of an entry that is present.
    present: int  # Number of entries that are present.
    _filled: Entries | None = None
    _empty: Entries | None = None

    def optional(self, array: pa.Array) -> Entries:
        """Return the entries of an optional field inside these entries, with the slots of `array`."""
        return self.optional_slots(len(array), array.null_count, array.buffers()[0], array.offset)

    def optional_slots(self, slots: int, nulls: int, validity: pa.Buffer | None, first: int = 0) -> Entries:
        """Return the entries of an optional field; its validity begins at the bit `first`."""
        if not nulls:
            self._filled = self._filled or self._optional_field(0, 0)
            return self._filled
        if nulls == slots or not self.present:
            if self._empty is None:
                self._empty = Entries(
                    self.count, self.definition, self.repetition, self.slot_level, self.present_level + 1, 0
                )
            return self._empty
        return self._optional_field(buffer_address(validity), first)

    def _optional_field(self, bits: int, first: int) -> Entries:
        if isinstance(self.definition, int) and (self.definition < self.present_level or not bits):
            level = self.definition + (self.definition == self.present_level)
            return Entries(self.count, level, self.repetition, self.slot_level, self.present_level + 1, self.present)
        above = _NONE if isinstance(self.definition, int) else self.definition
        levels = np.empty(self.count, np.uint8)
        present = optional_levels(above, self.slot_level, self.present_level, bits, first, levels)
        return Entries(self.count, levels, self.repetition, self.slot_level, self.present_level + 1, present)

    def elements(self, array: pa.Array, nullable: bool, depth: int) -> tuple[Entries, pa.Array]:
        """Return the entries of the elements of a list, and the array of these elements.

        `array`: a list or map array with the slots of these entries.
        `nullable`: whether the list itself may be null.
        `depth`: the repetition level of every element except the first of its list.
        """
        values = array.values
        if array.null_count == len(array):
            return self.list_elements(None, 0, nullable, depth), values.slice(0, 0)
        validity, offsets = array.buffers()[:2]
        width = 8 if pa.types.is_large_list(array.type) else 4
        at = buffer_address(offsets) + array.offset * width
        bits = buffer_address(validity) if nullable and array.null_count else 0
        bounds = np.frombuffer(offsets, f"<i{width}", len(array) + 1, array.offset * width)
        start, stop = int(bounds[0]), int(bounds[-1])
        lists = Lists(bits, array.offset, at, width)
        entries = self.list_elements(lists, stop - start, nullable, depth)
        if entries.present == stop - start:
            return entries, values.slice(start, entries.present)
        # Lists that are null, or inside a null, may still have elements in Arrow.
        positions = np.empty(entries.present, np.int64)
        list_positions(self._levels(), self.count, self.slot_level, self.present_level, lists, positions)
        return entries, values.take(from_numpy(positions))

    def list_elements(self, lists: Lists | None, max_elements: int, nullable: bool, depth: int) -> Entries:
        """Return the entries of at most `max_elements` elements of lists; None if no list is valid."""
        empty = self.present_level + nullable
        if lists is None or not self.present:
            return Entries(self.count, self.definition, self.repetition, empty + 1, empty + 1, 0)
        levels, repetition = (np.empty(self.count + max_elements, np.uint8) for _ in range(2))
        count, present = list_levels(
            self._levels(), _NONE if self.repetition is None else self.repetition, self.count, self.slot_level,
            self.present_level, empty, lists, depth, levels, repetition,
        )  # fmt: skip
        return Entries(count, levels[:count], repetition[:count], empty + 1, empty + 1, present)

    def _levels(self) -> Levels:
        """Return the definition levels for kernels: an empty array if every entry is present."""
        if not isinstance(self.definition, int):
            return self.definition
        return _NONE if self.definition == self.present_level else np.full(self.count, self.definition, np.uint8)


def leaf_entries(field: pa.Field, array: pa.Array) -> list[tuple[Entries, pa.Array]]:
    """Return the level entries and the array of each leaf of a column, in file order.

    Raises `VariantFileError` if a required field is null inside a value that is not.
    """
    leaves: list[tuple[Entries, pa.Array]] = []
    _walk(Entries(len(array), 0, None, 0, 0, len(array)), field, array, 0, leaves)
    return leaves


def _walk(above: Entries, field: pa.Field, array: pa.Array, depth: int, leaves: list[tuple[Entries, pa.Array]]) -> None:
    kind, nullable = array.type, field.nullable
    shape = kind.id
    if shape == _DICTIONARY and array.dictionary.null_count:
        array = array.dictionary_decode()
    if not nullable and array.null_count and above.optional(array).present < above.present:
        problem = f"field {field.name} is required but null in some rows: fill the nulls, or make the field nullable"
        raise VariantFileError(problem, reason="null-in-required")
    if shape == _STRUCT:
        entries = above.optional(array) if nullable else above
        for number in range(kind.num_fields):
            _walk(entries, kind.field(number), array.field(number), depth, leaves)
    elif shape in _LISTS:
        entries, values = above.elements(array, nullable, depth + 1)
        if shape == _MAP:
            _walk(entries, kind.key_field, values.field(0), depth + 1, leaves)
            _walk(entries, kind.item_field, values.field(1), depth + 1, leaves)
        else:
            _walk(entries, kind.value_field, values, depth + 1, leaves)
    else:
        leaves.append((above.optional(array) if nullable else above, array))


def node_entries(rows: schema_table.ShreddedRows) -> tuple[Entries, list[tuple[Entries, schema_table.NodeColumn]]]:
    """Return the level entries of rows of nodes, and those and the column of each leaf except the metadata."""
    group = Entries(len(rows), 0, None, 0, 0, len(rows)).optional_slots(len(rows), rows.null_count, bitmap(rows.valid))
    leaves: list[tuple[Entries, schema_table.NodeColumn]] = []
    typed: list[tuple[Entries, int]] = []  # the entries inside each schema node, and their repetition depth
    for s, (kind, parent) in enumerate(zip(rows.table.kinds, rows.table.parents, strict=True)):
        above, depth = typed[parent] if s else (group, 0)
        value = rows.column(s, False)
        required = rows.is_required(s)
        leaves.append((above if required else above.optional_slots(value.slots, value.nulls, value.validity), value))
        if kind == schema_table.VARIANT_NODE:
            typed.append((above, depth))
            continue
        column = rows.column(s, True)
        if kind == schema_table.ARRAY_NODE and column.lengths is not None:
            offsets = offsets_of(column.lengths)
            lists = Lists(buffer_address(column.validity), 0, address_of(offsets), 8)
            typed.append((above.list_elements(lists, int(offsets[-1]), True, depth + 1), depth + 1))
        elif kind == schema_table.ARRAY_NODE:
            typed.append((above.list_elements(None, 0, True, depth + 1), depth + 1))
        else:
            typed.append((above.optional_slots(column.slots, column.nulls, column.validity), depth))
        if kind == schema_table.PRIMITIVE_NODE:
            leaves.append((typed[s][0], column))
    return group, leaves


_DTYPES = {Physical.INT32: np.int32, Physical.INT64: np.int64, Physical.FLOAT: np.float32, Physical.DOUBLE: np.float64}


class LeafValues(Record):
    """Contiguous values of a leaf column, without nulls."""

    count: int  # Number of values.
    width: int  # Bytes per value; 0 for byte arrays.
    data: npt.NDArray[np.uint8]  # The bytes of all values: numbers are little-endian, a boolean takes one byte.
    lengths: npt.NDArray[np.int32] | None = None  # Lengths of byte arrays; None for values of one width.

    @property
    def address(self) -> int:
        """The address of the bytes."""
        return address_of(self.data)

    @property
    def byte_lengths(self) -> npt.NDArray[np.int32]:
        """The number of bytes of each value."""
        return np.full(self.count, self.width, np.int32) if self.lengths is None else self.lengths

    def numbers(self, leaf: LeafType) -> npt.NDArray[Any]:
        """Return integers and floats as a NumPy array."""
        dtype = _DTYPES[leaf.physical]
        return self.data.view(f"u{leaf.width}" if leaf.order == "unsigned" else dtype)

    def hashes(self) -> npt.NDArray[np.int64]:
        """Return the hashes of the values for Bloom filters."""
        hashes = np.empty(self.count, np.int64)
        if self.lengths is None:
            value_kernels.hash_values(self.address, self.width, hashes)
        else:
            value_kernels.hash_byte_arrays(self.address, self.lengths, hashes)
        return hashes

    def filter(self, mask: npt.NDArray[np.bool_]) -> LeafValues:
        """Return some of the values."""
        if mask.all():
            return self
        if self.lengths is None:
            data = self.data.reshape(self.count, self.width)[mask].reshape(-1)
            return LeafValues(int(mask.sum()), self.width, data)
        lengths = self.lengths[mask]
        return LeafValues(len(lengths), 0, self.data[np.repeat(mask, self.lengths)], lengths)


def present_array(array: pa.Array, entries: Entries) -> pa.Array:
    """Return the array without the slots whose parents are null or empty."""
    if entries.present == len(array) - array.null_count:
        return array
    assert not isinstance(entries.definition, int)
    levels = entries.definition[entries.definition >= entries.slot_level]
    return array.take(from_numpy(np.flatnonzero(levels == entries.present_level)))


def leaf_values(array: pa.Array, leaf: LeafType) -> LeafValues:
    """Return the values of an array without nulls.

    Raises `VariantFileError` if a decimal has more digits than its type, or values take more than 2 GiB.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if leaf.physical == Physical.BYTE_ARRAY:
        return _byte_arrays(array)
    if leaf.physical == Physical.BOOLEAN:
        validity, data = array.buffers()
        bits = _bits(data, array.offset, len(array))
        if array.null_count:
            bits = bits[_bits(validity, array.offset, len(array)).view(bool)]
        return LeafValues(len(bits), 1, bits)
    width = kind.bit_width // 8
    return stored_numbers(_fixed(array, width), leaf)


def node_values(column: schema_table.NodeColumn, leaf: LeafType) -> LeafValues:
    """Return the values of a column of nodes without nulls."""
    if column.lengths is None and not column.width:
        return LeafValues(0, leaf.width, _NONE, None if leaf.width else np.zeros(0, np.int32))
    slots, width = (column.data, column.width) if column.lengths is None else (column.lengths.view(np.uint8), 4)
    if column.validity is not None:
        slots = _without_nulls(address_of(slots), width, column.validity, 0, column.slots, column.present)
    if column.lengths is None:
        return stored_numbers(LeafValues(column.present, width, slots), leaf)
    return LeafValues(column.present, 0, column.data, slots.view(np.int32))


def stored_numbers(values: LeafValues, leaf: LeafType) -> LeafValues:
    """Return values of Arrow's width in the physical form of the file.

    Raises `VariantFileError` if a decimal has more digits than its type.
    """
    if leaf.precision is not None:
        return _decimals(values, leaf)
    if values.width >= leaf.width:
        return values
    narrow = values.data.view(f"{'u' if leaf.order == 'unsigned' else 'i'}{values.width}")
    return LeafValues(values.count, leaf.width, narrow.astype(np.int32).view(np.uint8))


def _fixed(array: pa.Array, width: int) -> LeafValues:
    validity, data = array.buffers()[:2]
    count = len(array) - array.null_count
    if not count:
        return LeafValues(0, width, _NONE)
    start = array.offset * width
    if not array.null_count:
        return LeafValues(count, width, np.frombuffer(data, np.uint8, count * width, start))
    source = buffer_address(data) + start
    return LeafValues(count, width, _without_nulls(source, width, validity, array.offset, len(array), count))


def _without_nulls(source: int, width: int, validity: pa.Buffer, first: int, slots: int, count: int) -> Levels:
    """Return the bytes of the values of one width that are valid; the validity begins at the bit `first`."""
    target = np.empty(count * width, np.uint8)
    value_kernels.valid_values(source, width, buffer_address(validity), first, slots, address_of(target))
    return target


def _byte_arrays(array: pa.Array) -> LeafValues:
    count, nulls = len(array) - array.null_count, array.null_count
    lengths = np.empty(count, np.int32)
    if not count:
        return LeafValues(0, 0, _NONE, lengths)
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary() if pa.types.is_binary_view(array.type) else pa.large_string())
    validity, offsets, data = array.buffers()
    is_large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    first, width = array.offset, 8 if is_large else 4
    start, stop = np.frombuffer(offsets, f"<i{width}", len(array) + 1, first * width)[[0, -1]].tolist()
    if stop - start > MAX_OFFSET:
        problem = "the values of a row take more than 2 GiB, the limit of a Parquet page: split the row"
        raise VariantFileError(problem, reason="too-large")
    bits, at = buffer_address(validity) if nulls else 0, buffer_address(offsets) + first * width
    arrays = ByteArrays(buffer_address(data), at, width, bits, first, len(array))
    _, total = value_kernels.valid_lengths(arrays, lengths)
    if total == stop - start:
        return LeafValues(count, 0, np.frombuffer(data, np.uint8, total, start) if total else _NONE, lengths)
    gathered = np.empty(total, np.uint8)  # The slots of nulls have bytes.
    value_kernels.gather_bytes(arrays, address_of(gathered))
    return LeafValues(count, 0, gathered, lengths)


def _bits(buffer: pa.Buffer, first: int, count: int) -> Levels:
    packed = np.frombuffer(buffer, np.uint8)[first >> 3 : (first + count + 7) >> 3]
    return np.unpackbits(packed, bitorder="little")[first & 7 : (first & 7) + count]


def _decimals(values: LeafValues, leaf: LeafType) -> LeafValues:
    """Convert decimals of 16 bytes to integers, or to big-endian bytes of the width that the precision needs."""
    words = values.data.view(np.int64).reshape(-1, 2)
    if leaf.physical != Physical.FIXED_LEN_BYTE_ARRAY:
        numbers = words[:, 0].astype(_DTYPES[leaf.physical])
        if not np.array_equal(numbers, words[:, 0]) or not np.array_equal(words[:, 0] >> 63, words[:, 1]):
            raise VariantFileError(
                f"a decimal has more than the {leaf.precision} digits of its type: cast it to a larger precision first",
                reason="value-out-of-range",
            )
        return LeafValues(values.count, leaf.width, numbers.view(np.uint8))
    slots = values.data.reshape(-1, 16)[:, ::-1][:, 16 - leaf.width :]
    return LeafValues(values.count, leaf.width, np.ascontiguousarray(slots).reshape(-1))


# Minimum and maximum, as numbers or bytes that compare in the order of the column.
Bounds: TypeAlias = "tuple[Any, Any] | None"
_FORMS = {Physical.FLOAT: "<f", Physical.DOUBLE: "<d"}
# The order of bytes of integers, and whether they have a sign.
_INTEGERS: dict[str, tuple[Literal["big", "little"], bool]] = {
    "signed": ("little", True), "unsigned": ("little", False), "boolean": ("little", False), "decimal": ("big", True),
}  # fmt: skip


def bounds_of(values: LeafValues, leaf: LeafType) -> Bounds:
    """Return the bounds of values; None without values or if all are NaN."""
    if not values.count:
        return None
    if leaf.order in ("signed", "unsigned"):
        numbers = values.numbers(leaf)
        return int(numbers.min()), int(numbers.max())
    if leaf.order == "boolean":
        return int(values.data.min()), int(values.data.max())
    if leaf.order == "float":
        numbers = values.numbers(leaf)
        low, high = float(np.fmin.reduce(numbers)), float(np.fmax.reduce(numbers))
        return None if low != low else (low, high)
    data = values.data
    if leaf.order == "decimal":  # Big-endian signed integers compare as bytes if the sign bit is flipped.
        data = data.copy()
        data[:: values.width] ^= 0x80
    low_at, low_size, high_at, high_size = value_kernels.byte_bounds(address_of(data), values.byte_lengths)
    bounds = (values.data[low_at : low_at + low_size].tobytes(), values.data[high_at : high_at + high_size].tobytes())
    return loaded(bounds, leaf)


def union(left: Bounds, right: Bounds) -> Bounds:
    """Return bounds that include both."""
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])


def stored(bounds: tuple[Any, Any], leaf: LeafType) -> tuple[bytes, bytes]:
    """Return bounds in PLAIN encoding, with signs of zero that include both zeros."""
    low, high = bounds
    if leaf.order == "bytes":
        return low, high
    if leaf.order == "float":
        form = _FORMS[leaf.physical]
        return struct.pack(form, low or -0.0), struct.pack(form, high or 0.0)
    order, signed = _INTEGERS[leaf.order]
    return tuple(number.to_bytes(leaf.width, order, signed=signed) for number in bounds)


def loaded(bounds: tuple[bytes, bytes], leaf: LeafType) -> tuple[Any, Any]:
    """Return the bounds that `stored` encoded."""
    if leaf.order == "bytes":
        return bounds
    if leaf.order == "float":
        low, high = (struct.unpack(_FORMS[leaf.physical], bound)[0] for bound in bounds)
        return low, high
    order, signed = _INTEGERS[leaf.order]
    low, high = (int.from_bytes(bound, order, signed=signed) for bound in bounds)
    return low, high
