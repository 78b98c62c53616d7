"""The dictionary of a column, built while values are met.

Owns the memory of its tables and its limit. Leaves looking values up to `pages.dictionary`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.pages.dictionary import KnownTexts, index_bytes, index_words, rehash_bytes, rehash_words
from parquet_variant.kernels.pages.levels import ByteArrays
from parquet_variant.kernels.tapes.interning import HASH_SEED
from parquet_variant.parquet.pages.leaf_values import Texts, Values

# Tables grow fourfold while they are small: each time all entries are entered anew.
_FIRST_ENTRIES, _FIRST_BYTES, _FEW = 512, 16 << 10, 1 << 16


_NOTHING, _NO_TABLE, _NO_BYTES = np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.uint8)


class Indexed(NamedTuple):
    """The number of each value, and the bytes that byte arrays among them take."""

    indices: npt.NDArray[np.int32]
    text_bytes: int


class _Words:
    """Distinct values of 4 or 8 bytes, in the order in which they were met."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._words = self._slots = _NOTHING

    @property
    def size(self) -> int:
        """Bytes of the dictionary's page."""
        return self.count * self.width

    def index(self, values: Values | Texts, most_bytes: int) -> Indexed | None:
        """Number each value; None, and nothing added, if the page would take more than so many bytes."""
        assert isinstance(values, Values)
        indices = np.empty(values.count, np.int32)
        before, done, address = self.count, 0, values.address
        if not len(self._slots):
            self._grow()
        while True:
            done, self.count = index_words(
                address, self.width, done, values.count, self.count, self._slots, HASH_SEED, self._words, indices
            )
            if self.size > most_bytes:
                self.count = before
                return None
            if done == values.count:
                return Indexed(indices, 0)
            self._grow()

    def _grow(self) -> None:
        self._words = _larger(self._words)
        self._slots = np.full(2 * len(self._words), -1, np.int64)
        if self.count:
            rehash_words(self._words, self.count, HASH_SEED, self._slots)

    def values(self) -> Values:
        """The entries; not to be used any more after `release`."""
        words = self._words[: self.count]
        return Values(self.count, self.width, (words if self.width == 8 else words.astype(np.int32)).view(np.uint8))

    def release(self) -> None:
        """Let others have the memory: here it is small."""


class _Bytes:
    """As `_Words`, of byte arrays, or values of any other width."""

    def __init__(self, width: int) -> None:
        self.width, self.count, self._used = width, 0, 0
        self._table, self._slots, self._arena = _NO_TABLE, _NOTHING, _NO_BYTES

    @property
    def size(self) -> int:
        return self._used + (0 if self.width else 4 * self.count)

    def index(self, values: Values | Texts, most_bytes: int) -> Indexed | None:
        texts = values.texts() if isinstance(values, Values) else values
        indices = np.empty(texts.present, np.int32)
        before, slot, done, text_bytes = (self.count, self._used), 0, 0, 0
        arrays = ByteArrays(*texts[:6])
        if not len(self._slots):
            self._grow()
            self._arena = acquire(np.uint8, _FIRST_BYTES)
        while True:
            known = KnownTexts(self._slots, HASH_SEED, self._table, self._arena)
            slot, done, size, self.count, self._used = index_bytes(
                arrays, known, slot, self.count, self._used, indices, done
            )
            text_bytes += size
            if self.size > most_bytes:
                break
            if slot == texts.rows:
                return Indexed(indices, text_bytes)
            if self.count == len(self._table):
                self._grow()
                continue
            needed = self._used + texts.length(slot)
            if needed > most_bytes:
                break
            arena = acquire(np.uint8, max(4 * len(self._arena), needed))
            arena[: self._used] = self._arena[: self._used]
            release(self._arena)
            self._arena = arena
        self.count, self._used = before
        return None

    def _grow(self) -> None:
        self._table = _larger(self._table)
        self._slots = np.full(2 * len(self._table), -1, np.int64)
        if self.count:
            rehash_bytes(self._table, self.count, self._slots)

    def values(self) -> Values:
        lengths = None if self.width else self._table[: self.count, 1].astype(np.int32)
        return Values(self.count, self.width, self._arena[: self._used], lengths)

    def release(self) -> None:
        release(self._arena)


Dictionary: TypeAlias = _Words | _Bytes


def new_dictionary(width: int) -> Dictionary:
    """An empty dictionary of values of a width, 0 for byte arrays."""
    return _Words(width) if width in (4, 8) else _Bytes(width)


def _larger(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    rows = max((4 if len(array) < _FEW else 2) * len(array), _FIRST_ENTRIES)
    larger = np.empty((rows, *array.shape[1:]), np.int64)
    larger[: len(array)] = array
    return larger
