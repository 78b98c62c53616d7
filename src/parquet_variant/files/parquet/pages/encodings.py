"""Encoding values and levels to the bytes of pages.

Owns the kernel and the memory for each encoding. Leaves the choice of an encoding to the writer, and headers and
compression to `column_chunk`. Spec: ``Encodings.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from parquet_variant.files.parquet.format.thrift import varint
from parquet_variant.files.parquet.pages.leaf_types import LeafType, Physical
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, concatenated
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.runs import delta_packed, index_runs, level_runs, most_delta_bytes, most_run_bytes
from parquet_variant.kernels.pages.values import delta_bytes, plain_bytes

Bytes = npt.NDArray[np.uint8]
_NUMBERS = (Physical.INT32, Physical.INT64)
# Kernels store whole words, so they may write behind the last byte.
_SPARE = 64
_BLOCK = 128  # Differences per block.


class Encoding(IntEnum):
    """The encodings of ``parquet.thrift`` that are written; levels are in `Encoding.RLE`."""

    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8


def is_encodable(encoding: Encoding, leaf: LeafType) -> bool:
    """Return whether values of a type can be stored in an encoding."""
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return leaf.physical in _NUMBERS
    if encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY:
        return leaf.physical == Physical.BYTE_ARRAY
    if encoding == Encoding.DELTA_BYTE_ARRAY:
        return leaf.physical in (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY)
    return encoding == Encoding.PLAIN or (encoding == Encoding.RLE_DICTIONARY and leaf.physical != Physical.BOOLEAN)


def encode_levels(levels: npt.NDArray[np.uint8] | int, count: int, max_level: int) -> tuple[bytes, list[int]]:
    """Encode levels up to `max_level` as runs, without a length prefix, and count each level.

    >>> encoded, counts = encode_levels(1, 1000, 3)
    >>> encoded.hex(), counts
    ('d00f01', [0, 1000, 0, 0])
    """
    counts = np.zeros(max_level + 1, np.int64)
    if isinstance(levels, int):
        counts[levels] = count
        return varint(count << 1) + bytes([levels]) if count else b"", counts.tolist()
    width = max_level.bit_length()
    out = np.empty(most_run_bytes(count, width), np.uint8)
    size = level_runs(address_of(levels), count, width, address_of(out), counts)
    return out[:size].tobytes(), counts.tolist()


def encode_indices(indices: npt.NDArray[np.int32], width: int, out: Bytes) -> int:
    """Write dictionary indices, preceded by their width in bits; return the number of bytes."""
    out[0] = width
    return int(index_runs(address_of(indices), len(indices), width, address_of(out) + 1)) + 1


def max_index_bytes(count: int, width: int) -> int:
    """Return the bytes that `count` encoded dictionary indices take at most."""
    return most_run_bytes(count, width) + 1


def max_value_bytes(values: LeafValues, encoding: Encoding) -> int:
    """Return the bytes that the encoded values of a page take at most."""
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return most_delta_bytes(values.count, values.width) + _SPARE
    lengths = 4 * values.count if encoding == Encoding.PLAIN else 2 * most_delta_bytes(values.count, 4)
    return len(values.data) + lengths + _SPARE


def encode_parts(parts: Sequence[LeafValues], encoding: Encoding, leaf: LeafType, out: Bytes) -> int:
    """Write values that are stored in several parts; they are concatenated only if the encoding requires it."""
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
    return encode_values(concatenated(parts), encoding, leaf, out)


def encode_values(values: LeafValues, encoding: Encoding, leaf: LeafType, out: Bytes) -> int:
    """Write values in an encoding; return the number of bytes.

    `values`: the values; `is_encodable` is true for their type.
    `encoding`: any encoding except `Encoding.RLE_DICTIONARY`.
    `leaf`: the type of the values.
    `out`: at least `max_value_bytes` bytes of memory.
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
