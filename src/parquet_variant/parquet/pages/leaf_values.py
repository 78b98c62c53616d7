"""The values of a leaf's Arrow array as Parquet counts them: those that are there, one after the other.

Owns leaving nulls out, and the physical form of each type. Nothing is copied where Arrow holds it so already. Leaves
encodings to `encodings` and levels to `levels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.bloom_hash import hash_byte_arrays, hash_values
from parquet_variant.kernels.pages.levels import ByteArrays, present_slots
from parquet_variant.kernels.pages.values import gather_bytes, valid_lengths, valid_values
from parquet_variant.parquet.pages.leaf_types import LeafType, Physical
from parquet_variant.parquet.pages.levels import Entries
from parquet_variant.types import MAX_OFFSET

Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int32]
_DTYPES = {Physical.INT32: np.int32, Physical.INT64: np.int64, Physical.FLOAT: np.float32, Physical.DOUBLE: np.float64}
_NOTHING = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a leaf column."""

    count: int  # How many there are.
    width: int  # Bytes of each; 0 for byte arrays.
    data: Bytes  # All their bytes: little-endian numbers, a byte for a boolean.
    lengths: Lengths | None = None  # Of byte arrays.

    @property
    def address(self) -> int:
        """Where the bytes are."""
        return address_of(self.data)

    def numbers(self, leaf: LeafType) -> npt.NDArray[Any]:
        """Integers and floats as such."""
        dtype = _DTYPES[leaf.physical]
        return self.data.view(f"u{leaf.width}" if leaf.order == "unsigned" else dtype)

    @property
    def span(self) -> int:
        """All their bytes."""
        return len(self.data)

    def hashes(self) -> npt.NDArray[np.int64]:
        """The hash of each, as bloom filters take it."""
        hashes = np.empty(self.count, np.int64)
        if self.lengths is None:
            hash_values(self.address, self.width, hashes)
        else:
            hash_byte_arrays(self.address, self.lengths, hashes)
        return hashes

    def texts(self) -> Texts:
        """Each as a byte array, also those of one width."""
        bounds = np.full(self.count + 1, self.width, np.int32)
        if self.lengths is not None:
            bounds[1:] = self.lengths
        bounds[0] = 0
        np.cumsum(bounds, out=bounds)
        return Texts(self.address, address_of(bounds), 4, 0, 0, self.count, self.count, bounds, self)


class Texts(NamedTuple):
    """Byte arrays as Arrow has them, those that are null among them."""

    # Addresses of the bytes and of the first slot's offset, and bytes of an offset.
    data: int
    offsets: int
    width: int
    # Address of the validity, 0 where all are there, and the bit of the first slot.
    validity: int
    first: int
    # How many slots there are, and how many of them have a value.
    rows: int
    present: int
    bounds: npt.NDArray[Any]  # The offsets.
    owner: Any  # What keeps all that alive.

    @property
    def span(self) -> int:
        """The bytes from the first slot to the last, whether they are there or not."""
        return int(self.bounds[-1]) - int(self.bounds[0])

    def length(self, slot: int) -> int:
        """Bytes of one."""
        return int(self.bounds[slot + 1]) - int(self.bounds[slot])


def joined(parts: Sequence[Values]) -> Values:
    """Values one after the other."""
    if len(parts) == 1:
        return parts[0]
    lengths = None if parts[0].lengths is None else np.concatenate([part.lengths for part in parts])
    data = np.concatenate([part.data for part in parts])
    return Values(sum(part.count for part in parts), parts[0].width, data, lengths)


def present_array(array: pa.Array, entries: Entries) -> pa.Array:
    """The array without the values that lie under something that is not there."""
    if entries.present == len(array) - array.null_count:
        return array
    positions = np.empty(entries.present, np.int64)
    assert not isinstance(entries.definition, int)
    present_slots(entries.definition, entries.least, entries.most, positions)
    return array.take(from_numpy(positions))


def leaf_values(array: pa.Array, leaf: LeafType) -> Values:
    """The values of an array that are not null.

    Raises `VariantFileError` if a decimal has more digits than its type, or values take more than 2 GiB.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if leaf.physical == Physical.BYTE_ARRAY:
        return _byte_arrays(array)
    if leaf.physical == Physical.BOOLEAN:
        return _booleans(array)
    width = kind.bit_width // 8
    return stored_numbers(_fixed(array, width), leaf)


def stored_numbers(values: Values, leaf: LeafType) -> Values:
    """Values of one width, as wide as Arrow has them, in the form in which files have them.

    Raises `VariantFileError` if a decimal has more digits than its type.
    """
    if leaf.precision is not None:
        return _decimals(values, leaf)
    if values.width >= leaf.width:
        return values
    narrow = values.data.view(f"{'u' if leaf.order == 'unsigned' else 'i'}{values.width}")
    return Values(values.count, leaf.width, narrow.astype(np.int32).view(np.uint8))


def _fixed(array: pa.Array, width: int) -> Values:
    validity, data = array.buffers()[:2]
    count = len(array) - array.null_count
    if not count:
        return Values(0, width, _NOTHING)
    start = array.offset * width
    if not array.null_count:
        return Values(count, width, np.frombuffer(data, np.uint8, count * width, start))
    target = np.empty(count * width, np.uint8)
    valid_values(data.address + start, width, validity.address, array.offset, len(array), address_of(target))
    return Values(count, width, target)


def texts_of(array: pa.Array) -> Texts:
    """The byte arrays of an array of texts or bytes that has rows.

    Raises `VariantFileError` if they take more than 2 GiB.
    """
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary() if pa.types.is_binary_view(array.type) else pa.large_string())
    validity, offsets, data = array.buffers()
    rows, nulls, first = len(array), array.null_count, array.offset
    width = 8 if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type) else 4
    texts = Texts(
        data=data.address if data is not None else 0,
        offsets=offsets.address + first * width,
        width=width,
        validity=validity.address if nulls else 0,
        first=first,
        rows=rows,
        present=rows - nulls,
        bounds=np.frombuffer(offsets, f"<i{width}", rows + 1, first * width),
        owner=array,
    )
    if texts.span > MAX_OFFSET:
        raise VariantFileError("the values of one row take more than 2 GiB, which no page can hold", reason="too-large")
    return texts


def _byte_arrays(array: pa.Array) -> Values:
    count = len(array) - array.null_count
    lengths = np.empty(count, np.int32)
    if not count:
        return Values(0, 0, _NOTHING, lengths)
    texts = texts_of(array)
    arrays = ByteArrays(*texts[:6])
    _, total = valid_lengths(arrays, lengths)
    if total == texts.span:
        data = np.frombuffer(texts.owner.buffers()[2], np.uint8, total, int(texts.bounds[0])) if total else _NOTHING
        return Values(count, 0, data, lengths)
    data = np.empty(total, np.uint8)
    gather_bytes(arrays, address_of(data))
    return Values(count, 0, data, lengths)


def _booleans(array: pa.Array) -> Values:
    rows, first = len(array), array.offset
    validity, data = array.buffers()
    slots = _bits(data, first, rows)
    if array.null_count:
        slots = slots[_bits(validity, first, rows).view(bool)]
    return Values(len(slots), 1, slots)


def _bits(buffer: pa.Buffer, first: int, count: int) -> Bytes:
    packed = np.frombuffer(buffer, np.uint8)[first >> 3 : (first + count + 7) >> 3]
    return np.unpackbits(packed, bitorder="little")[first & 7 : (first & 7) + count]


def _decimals(values: Values, leaf: LeafType) -> Values:
    """Decimals of 16 bytes, as integers or as many bytes, the greatest first, as they need."""
    words = values.data.view(np.int64).reshape(-1, 2)
    if leaf.physical != Physical.FIXED_LEN_BYTE_ARRAY:
        numbers = words[:, 0].astype(_DTYPES[leaf.physical])
        if not np.array_equal(numbers, words[:, 0]) or not np.array_equal(words[:, 0] >> 63, words[:, 1]):
            raise VariantFileError(
                f"a decimal has more than the {leaf.precision} digits of its type", reason="value-out-of-range"
            )
        return Values(values.count, leaf.width, numbers.view(np.uint8))
    slots = values.data.reshape(-1, 16)[:, ::-1][:, 16 - leaf.width :]
    return Values(values.count, leaf.width, np.ascontiguousarray(slots).reshape(-1))
