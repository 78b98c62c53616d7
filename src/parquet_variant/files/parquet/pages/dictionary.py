"""The dictionary of a column, built while values are added.

Owns the memory of its tables and its limit. Leaves the lookup of values to `kernels.pages.dictionary`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.files.parquet.pages.leaf_values import ArrowByteArrays, LeafValues
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.memory import HASH_SEED
from parquet_variant.kernels.pages.dictionary import (
    DistinctStrings,
    index_bytes,
    index_words,
    rehash_bytes,
    rehash_words,
)
from parquet_variant.kernels.pages.levels import ByteArrays

# Small tables grow fourfold, because every entry is hashed again when a table grows.
_FIRST_ENTRIES, _FIRST_BYTES, _SMALL_TABLE = 512, 16 << 10, 1 << 16


_NOTHING, _NO_TABLE, _NO_BYTES = np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.uint8)


class Indexed(NamedTuple):
    """The dictionary indices of values, and the bytes of byte arrays."""

    indices: npt.NDArray[np.int32]
    text_bytes: int


class _Words:
    """Distinct values of 4 or 8 bytes, in order of first occurrence."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._words = self._slots = _NOTHING

    @property
    def size(self) -> int:
        """The bytes of the dictionary page."""
        return self.count * self.width

    def index(self, values: LeafValues | ArrowByteArrays, max_bytes: int) -> Indexed | None:
        """Return indices of values; None, with nothing added, if the page would exceed `max_bytes`."""
        assert isinstance(values, LeafValues)
        indices = np.empty(values.count, np.int32)
        before, done, address = self.count, 0, values.address
        if not len(self._slots):
            self._grow()
        while True:
            done, self.count = index_words(
                address, self.width, done, values.count, self.count, self._slots, HASH_SEED, self._words, indices
            )
            if self.size > max_bytes:
                self.count = before
                return None
            if done == values.count:
                return Indexed(indices, 0)
            self._grow()

    def _grow(self) -> None:
        self._words = _enlarge_table(self._words)
        self._slots = np.full(2 * len(self._words), -1, np.int64)
        if self.count:
            rehash_words(self._words, self.count, HASH_SEED, self._slots)

    def values(self) -> LeafValues:
        """Return the entries, which are valid until `release`."""
        words = self._words[: self.count]
        return LeafValues(self.count, self.width, (words if self.width == 8 else words.astype(np.int32)).view(np.uint8))

    def release(self) -> None:
        """Return pooled memory; there is none."""


class _Bytes:
    """Distinct byte arrays, or values of other widths, in order of first occurrence."""

    def __init__(self, width: int) -> None:
        self.width, self.count, self._arena_bytes = width, 0, 0
        self._table, self._slots, self._arena = _NO_TABLE, _NOTHING, _NO_BYTES

    @property
    def size(self) -> int:
        return self._arena_bytes + (0 if self.width else 4 * self.count)

    def index(self, values: LeafValues | ArrowByteArrays, max_bytes: int) -> Indexed | None:
        byte_arrays = values.texts() if isinstance(values, LeafValues) else values
        indices = np.empty(byte_arrays.present, np.int32)
        before, slot, done, text_bytes = (self.count, self._arena_bytes), 0, 0, 0
        arrays = ByteArrays(*byte_arrays[:6])
        if not len(self._slots):
            self._grow()
            self._arena = acquire(np.uint8, _FIRST_BYTES)
        while True:
            known_texts = DistinctStrings(self._slots, HASH_SEED, self._table, self._arena)
            slot, done, size, self.count, self._arena_bytes = index_bytes(
                arrays, known_texts, slot, self.count, self._arena_bytes, indices, done
            )
            text_bytes += size
            if self.size > max_bytes:
                break
            if slot == byte_arrays.rows:
                return Indexed(indices, text_bytes)
            if self.count == len(self._table):
                self._grow()
                continue
            needed = self._arena_bytes + byte_arrays.length(slot)
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
            rehash_bytes(self._table, self.count, self._slots)

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
