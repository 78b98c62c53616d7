"""Values and levels as the bytes of pages.

Owns which encoding is done by which kernel and the room that it needs. Leaves the choice of an encoding to the writer,
headers and compression to `column_chunk`. Spec: ``Encodings.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.runs import delta_packed, index_runs, level_runs, most_delta_bytes, most_run_bytes
from parquet_variant.kernels.pages.values import delta_bytes, plain_bytes
from parquet_variant.parquet.format.thrift import varint
from parquet_variant.parquet.pages.leaf_types import LeafType, Physical
from parquet_variant.parquet.pages.leaf_values import Values, joined

Bytes = npt.NDArray[np.uint8]
_NUMBERS = (Physical.INT32, Physical.INT64)
# Kernels store whole words: behind the last byte there must be room for more.
_SPARE = 64
_BLOCK = 128  # Differences of a block.


class Encoding(IntEnum):
    """``Encoding`` of ``parquet.thrift``, as far as files are written in it; levels are in `Encoding.RLE`."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8


def is_encodable(encoding: Encoding, leaf: LeafType) -> bool:
    """Whether values of a type can be stored in an encoding."""
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return leaf.physical in _NUMBERS
    if encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY:
        return leaf.physical == Physical.BYTE_ARRAY
    if encoding == Encoding.DELTA_BYTE_ARRAY:
        return leaf.physical in (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY)
    return encoding == Encoding.PLAIN or (encoding == Encoding.RLE_DICTIONARY and leaf.physical != Physical.BOOLEAN)


def encode_levels(levels: npt.NDArray[np.uint8] | int, count: int, most: int) -> tuple[bytes, list[int]]:
    """Levels up to ``most`` as runs, without their length, and how often each occurs.

    >>> encoded, counts = encode_levels(1, 1000, 3)
    >>> encoded.hex(), counts
    ('d00f01', [0, 1000, 0, 0])
    """
    counts = np.zeros(most + 1, np.int64)
    if isinstance(levels, int):
        counts[levels] = count
        return varint(count << 1) + bytes([levels]) if count else b"", counts.tolist()
    width = most.bit_length()
    out = np.empty(most_run_bytes(count, width), np.uint8)
    size = level_runs(address_of(levels), count, width, address_of(out), counts)
    return out[:size].tobytes(), counts.tolist()


def encode_indices(indices: npt.NDArray[np.int32], width: int, out: Bytes) -> int:
    """Write the numbers of dictionary entries, after their width in bits; returns the bytes."""
    out[0] = width
    return int(index_runs(address_of(indices), len(indices), width, address_of(out) + 1)) + 1


def most_index_bytes(count: int, width: int) -> int:
    """Room that so many numbers of dictionary entries need."""
    return most_run_bytes(count, width) + 1


def most_value_bytes(values: Values, encoding: Encoding) -> int:
    """Room that the values of a page need."""
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return most_delta_bytes(values.count, values.width) + _SPARE
    lengths = 4 * values.count if encoding == Encoding.PLAIN else 2 * most_delta_bytes(values.count, 4)
    return len(values.data) + lengths + _SPARE


def encode_parts(parts: Sequence[Values], encoding: Encoding, leaf: LeafType, out: Bytes) -> int:
    """As `encode_values`, of values that lie in several places; they are put together only if they have to be."""
    if encoding == Encoding.PLAIN and leaf.physical != Physical.BOOLEAN:
        size = 0
        for part in parts:
            size += encode_values(part, encoding, leaf, out[size:])
        return size
    if encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY:
        lengths = np.concatenate([part.lengths for part in parts])
        size = int(delta_packed(address_of(lengths), 4, len(lengths), np.empty(_BLOCK, np.int64), address_of(out)))
        for part in parts:
            size += _copy(part.data, out[size:])
        return size
    return encode_values(joined(parts), encoding, leaf, out)


def encode_values(values: Values, encoding: Encoding, leaf: LeafType, out: Bytes) -> int:
    """Write values at an address in an encoding; returns the bytes.

    `values`: the values; `is_encodable` holds for their type.
    `encoding`: any but `Encoding.RLE_DICTIONARY`.
    `leaf`: their type.
    `out`: room for `most_value_bytes`.
    """
    at = address_of(out)
    if encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY:
        return encode_parts([values], encoding, leaf, out)
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return int(delta_packed(values.address, values.width, values.count, np.empty(_BLOCK, np.int64), at))
    if leaf.physical == Physical.BOOLEAN:
        return _copy(np.packbits(values.data, bitorder="little"), out)
    if encoding == Encoding.PLAIN and values.lengths is None:
        return _copy(values.data, out)
    lengths = np.full(values.count, values.width, np.int32) if values.lengths is None else values.lengths
    if encoding == Encoding.PLAIN:
        return int(plain_bytes(values.address, lengths, at))
    prefixes, suffixes = np.empty(values.count, np.int32), np.empty(values.count, np.int32)
    stored = address_of(prefixes), address_of(suffixes)
    return int(delta_bytes(values.address, lengths, prefixes, suffixes, *stored, np.empty(_BLOCK, np.int64), at))


def _copy(data: Bytes, out: Bytes) -> int:
    out[: len(data)] = data
    return len(data)
