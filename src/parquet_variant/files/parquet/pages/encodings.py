"""Encodings of the values in pages, the dictionary of a column, and compression.

Owns the kernel and the memory for each encoding, the tables and limit of a dictionary, the names and numbers of codecs,
and the zstd contexts of every thread, with windows as wide as pages. Leaves the lookup of values to
`kernels.pages.values`, the choice of an encoding and level to the writer, and headers to `column_chunk`. Spec:
``Encodings.md``, ``Compression.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache, partial
from importlib.util import find_spec
from threading import local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.arrow_schema import LeafType, Physical
from parquet_variant.files.parquet.format.thrift import varint
from parquet_variant.files.parquet.pages.leaf_values import LeafValues
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.memory import HASH_SEED, address_of
from parquet_variant.kernels.pages import values as value_kernels
from parquet_variant.kernels.pages.levels import ByteArrays
from parquet_variant.kernels.pages.runs import index_runs, level_runs, most_delta_bytes, most_run_bytes, put_deltas

# The bytes of a page, and the function that compresses them.
Bytes: TypeAlias = npt.NDArray[np.uint8]
Int32s: TypeAlias = npt.NDArray[np.int32]
PageBytes: TypeAlias = "bytes | pa.Buffer | Bytes"
Codec: TypeAlias = Callable[[PageBytes], "bytes | pa.Buffer"]
# ``CompressionCodec`` of ``parquet.thrift``, and pyarrow's name.
_CODECS = {
    "none": (0, None),
    "uncompressed": (0, None),
    "snappy": (1, "snappy"),
    "gzip": (2, "gzip"),
    "brotli": (4, "brotli"),
    "zstd": (6, "zstd"),
    "lz4": (7, "lz4_raw"),
    "lz4_raw": (7, "lz4_raw"),
}


def codec_number(name: str) -> int:
    """Return the number of a codec in files. Raises `VariantFileError` for an unknown codec."""
    try:
        return _CODECS[name.lower()][0]
    except KeyError:
        names = ", ".join(sorted(_CODECS))
        raise VariantFileError(f"unknown compression codec {name!r}: use one of {names}", reason="bad-option") from None


def codec_name(number: int) -> str:
    """Return pyarrow's name of a codec number, or ``"none"``. Raises `ValueError` for an unknown number."""
    for codec, name in _CODECS.values():
        if codec == number:
            return name or "none"
    raise ValueError(f"no codec has the number {number}")


# zstd's fast levels have windows of 512 KiB to 2 MiB, smaller than some pages: larger data gets a wide window.
_NARROW_BYTES, _WINDOW_LOG = 512 << 10, 23
_LEVELS = range(1, 23)


# The zstd contexts of a thread, by level and whether the window is wide.
_contexts = local()


def compressor(name: str, level: int | None) -> Codec | None:
    """Return a function that compresses pages in any thread; None for no compression."""
    number, codec = codec_number(name), _CODECS[name.lower()][1]
    if number == 0:
        return None
    if codec == "zstd" and level is not None and level in _LEVELS and has_zstandard():
        return partial(_wide_zstd, level)
    # pyarrow's codecs have state and threads share this function, so each page gets its own codec.
    return lambda data: pa.Codec(codec, level).compress(data)


@cache
def has_zstandard() -> bool:
    """Return whether the package zstandard is installed."""
    return find_spec("zstandard") is not None


def _wide_zstd(level: int, data: PageBytes) -> bytes:
    key = level, len(data) > _NARROW_BYTES
    contexts: dict[tuple[int, bool], Any] = vars(_contexts).setdefault("by_level", {})
    context: Any = contexts.get(key)
    if context is None:
        from zstandard import ZstdCompressionParameters, ZstdCompressor

        context = ZstdCompressor(level)
        if len(data) > _NARROW_BYTES:
            window = max(_WINDOW_LOG, ZstdCompressionParameters.from_level(level).window_log)
            parameters = ZstdCompressionParameters.from_level(level, window_log=window)
            context = ZstdCompressor(compression_params=parameters)
        contexts[key] = context
    return bytes(context.compress(data))


# Small tables grow fourfold, because every entry is hashed again when a table grows.
_FIRST_ENTRIES, _FIRST_BYTES, _SMALL_TABLE = 512, 16 << 10, 1 << 16


_NOTHING, _NO_TABLE, _NO_BYTES = np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.uint8)


class _Words:
    """Distinct values of 4 or 8 bytes, in order of first occurrence."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._words = self._slots = _NOTHING

    @property
    def size(self) -> int:
        """The bytes of the dictionary page."""
        return self.count * self.width

    def index(self, values: LeafValues, max_bytes: int) -> Int32s | None:
        """Return indices of values; None, with nothing added, if the page would exceed `max_bytes`."""
        indices = np.empty(values.count, np.int32)
        before, done, address = self.count, 0, values.address
        if not len(self._slots):
            self._grow()
        while True:
            done, self.count = value_kernels.index_words(
                address, self.width, done, values.count, self.count, self._slots, HASH_SEED, self._words, indices
            )
            if self.size > max_bytes:
                self.count = before
                return None
            if done == values.count:
                return indices
            self._grow()

    def _grow(self) -> None:
        self._words = _enlarge_table(self._words)
        self._slots = np.full(2 * len(self._words), -1, np.int64)
        if self.count:
            value_kernels.rehash_words(self._words, self.count, HASH_SEED, self._slots)

    def values(self) -> LeafValues:
        """Return the entries, which are valid until `release`."""
        words = self._words[: self.count]
        return LeafValues(self.count, self.width, (words if self.width == 8 else words.astype(np.int32)).view(np.uint8))

    def release(self) -> None:
        """Do nothing: the words are not pooled memory."""


class _Bytes:
    """Distinct byte arrays, or values of other widths, in order of first occurrence."""

    def __init__(self, width: int) -> None:
        self.width, self.count, self._arena_bytes = width, 0, 0
        self._table, self._slots, self._arena = _NO_TABLE, _NOTHING, _NO_BYTES

    @property
    def size(self) -> int:
        return self._arena_bytes + (0 if self.width else 4 * self.count)

    def index(self, values: LeafValues, max_bytes: int) -> Int32s | None:
        indices, bounds = np.empty(values.count, np.int32), np.zeros(values.count + 1, np.int32)
        np.cumsum(values.byte_lengths, out=bounds[1:])
        before, slot = (self.count, self._arena_bytes), 0
        arrays = ByteArrays(values.address, address_of(bounds), 4, 0, 0, values.count)
        if not len(self._slots):
            self._grow()
            self._arena = acquire(np.uint8, _FIRST_BYTES)
        while True:
            known_texts = value_kernels.DistinctStrings(self._slots, HASH_SEED, self._table, self._arena)
            slot, _, _, self.count, self._arena_bytes = value_kernels.index_bytes(
                arrays, known_texts, slot, self.count, self._arena_bytes, indices, slot
            )
            if self.size > max_bytes:
                break
            if slot == values.count:
                return indices
            if self.count == len(self._table):
                self._grow()
                continue
            needed = self._arena_bytes + int(bounds[slot + 1] - bounds[slot])
            if needed > max_bytes:
                break
            arena = acquire(np.uint8, max(4 * len(self._arena), needed))
            arena[: self._arena_bytes] = self._arena[: self._arena_bytes]
            release(self._arena)
            self._arena = arena
        self.count, self._arena_bytes = before
        return None

    def _grow(self) -> None:
        self._table = _enlarge_table(self._table)
        self._slots = np.full(2 * len(self._table), -1, np.int64)
        if self.count:
            value_kernels.rehash_bytes(self._table, self.count, self._slots)

    def values(self) -> LeafValues:
        lengths = None if self.width else self._table[: self.count, 1].astype(np.int32)
        return LeafValues(self.count, self.width, self._arena[: self._arena_bytes], lengths)

    def release(self) -> None:
        release(self._arena)


Dictionary: TypeAlias = _Words | _Bytes


def new_dictionary(width: int) -> Dictionary:
    """Make an empty dictionary for values of a width; 0 for byte arrays."""
    return _Words(width) if width in (4, 8) else _Bytes(width)


def _enlarge_table(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    rows = max((4 if len(array) < _SMALL_TABLE else 2) * len(array), _FIRST_ENTRIES)
    enlarged = np.empty((rows, *array.shape[1:]), np.int64)
    enlarged[: len(array)] = array
    return enlarged


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
    """Write dictionary indices, preceded by their width in bits; return the number of bytes.

    `out`: at least ``1 + most_run_bytes(len(indices), width)`` bytes of memory.
    """
    out[0] = width
    return int(index_runs(address_of(indices), len(indices), width, address_of(out) + 1)) + 1


def max_value_bytes(values: LeafValues, encoding: Encoding) -> int:
    """Return the bytes that the encoded values of a page take at most."""
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return most_delta_bytes(values.count, values.width) + _SPARE
    lengths = 4 * values.count if encoding == Encoding.PLAIN else 2 * most_delta_bytes(values.count, 4)
    return len(values.data) + lengths + _SPARE


def encode_values(parts: Sequence[LeafValues], encoding: Encoding, leaf: LeafType, out: Bytes) -> int:
    """Write values that are stored in one or several parts in an encoding; return the number of bytes.

    `encoding`: any encoding except `Encoding.RLE_DICTIONARY` for which `is_encodable` is true.
    `out`: at least `max_value_bytes` bytes of memory for each part.
    """
    at, differences = address_of(out), np.empty(_BLOCK, np.int64)
    if encoding == Encoding.PLAIN and leaf.physical != Physical.BOOLEAN:
        size = 0
        for part in parts:
            if part.lengths is None:
                size += _copy(part.data, out[size:])
            else:
                size += int(value_kernels.plain_bytes(part.address, part.lengths, at + size))
        return size
    data = parts[0].data if len(parts) == 1 else np.concatenate([part.data for part in parts])
    count, width = sum(part.count for part in parts), parts[0].width
    if leaf.physical == Physical.BOOLEAN:
        return _copy(np.packbits(data, bitorder="little"), out)
    if encoding == Encoding.DELTA_BINARY_PACKED:
        return int(put_deltas(address_of(data), width, count, differences, at)) - at
    lengths = np.concatenate([part.byte_lengths for part in parts])
    if encoding == Encoding.DELTA_LENGTH_BYTE_ARRAY:
        size = int(put_deltas(address_of(lengths), 4, count, differences, at)) - at
        return size + _copy(data, out[size:])
    prefixes, suffixes = np.empty(count, np.int32), np.empty(count, np.int32)
    stored = address_of(prefixes), address_of(suffixes)
    return int(value_kernels.delta_bytes(address_of(data), lengths, prefixes, suffixes, *stored, differences, at))


def _copy(data: Bytes, out: Bytes) -> int:
    out[: len(data)] = data
    return len(data)
