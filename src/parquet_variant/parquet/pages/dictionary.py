"""The dictionary of a column, built while values are met.

Owns the memory of its tables and its limit. Leaves looking values up to `pages.dictionary`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.dictionary import index_bytes, index_words, rehash_bytes, rehash_words
from parquet_variant.kernels.tapes.interning import HASH_SEED
from parquet_variant.parquet.pages.leaf_values import Values

__all__ = ["Dictionary", "new_dictionary"]

Indices = npt.NDArray[np.int32]
# Tables grow fourfold while they are small: each time all entries are entered anew.
_FIRST_ENTRIES, _FIRST_BYTES, _FEW = 512, 16 << 10, 1 << 16


_NOTHING, _NO_BYTES = np.zeros(0, np.int64), np.zeros(0, np.uint8)


class Dictionary(Protocol):
    """Distinct values in the order in which they were met."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def size(self) -> int:
        """Bytes of the dictionary's page."""

    def index(self, values: Values, most_bytes: int) -> Indices | None:
        """The number of each value; None, and nothing added, if the page would take more than so many bytes."""

    def values(self) -> Values:
        """The entries; not to be used any more after `release`."""

    def release(self) -> None:
        """Let others have the memory."""


class _Words:
    """Values of 4 or 8 bytes."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self._words = self._slots = _NOTHING

    @property
    def size(self) -> int:
        return self.count * self.width

    def index(self, values: Values, most_bytes: int) -> Indices | None:
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
                return indices
            self._grow()

    def _grow(self) -> None:
        self._words = _larger(self._words)
        self._slots = np.full(2 * len(self._words), -1, np.int64)
        if self.count:
            rehash_words(self._words, self.count, HASH_SEED, self._slots)

    def values(self) -> Values:
        words = self._words[: self.count]
        return Values(self.count, self.width, (words if self.width == 8 else words.astype(np.int32)).view(np.uint8))

    def release(self) -> None:
        """As `Dictionary`: small."""


class _Texts:
    """Byte arrays, or values of any other width."""

    def __init__(self, width: int) -> None:
        self.width, self.count, self._used = width, 0, 0
        self._hashes = self._sizes = self._starts = self._slots = _NOTHING
        self._arena = _NO_BYTES

    @property
    def size(self) -> int:
        return self._used + (0 if self.width else 4 * self.count)

    def index(self, values: Values, most_bytes: int) -> Indices | None:
        lengths = np.full(values.count, self.width, np.int32) if values.lengths is None else values.lengths
        indices = np.empty(values.count, np.int32)
        before, done, address = (self.count, self._used), 0, values.address
        if not len(self._slots):
            self._grow()
            self._arena = acquire(np.uint8, _FIRST_BYTES)
        while True:
            done, address, self.count, self._used = index_bytes(
                address, lengths, done, self.count, self._used, self._slots, HASH_SEED, self._hashes, self._sizes,
                self._starts, address_of(self._arena), len(self._arena), indices,
            )  # fmt: skip
            if self.size > most_bytes:
                self.count, self._used = before
                return None
            if done == values.count:
                return indices
            if self.count == len(self._hashes):
                self._grow()
            elif self._used + int(lengths[done]) > most_bytes:
                self.count, self._used = before
                return None
            else:
                arena = acquire(np.uint8, max(4 * len(self._arena), self._used + int(lengths[done])))
                arena[: self._used] = self._arena[: self._used]
                release(self._arena)
                self._arena = arena

    def _grow(self) -> None:
        self._hashes, self._sizes, self._starts = map(_larger, (self._hashes, self._sizes, self._starts))
        self._slots = np.full(2 * len(self._hashes), -1, np.int64)
        if self.count:
            rehash_bytes(self._hashes, self.count, self._slots)

    def values(self) -> Values:
        lengths = None if self.width else self._sizes[: self.count].astype(np.int32)
        return Values(self.count, self.width, self._arena[: self._used], lengths)

    def release(self) -> None:
        release(self._arena)


def new_dictionary(width: int) -> Dictionary:
    """An empty dictionary of values of a width, 0 for byte arrays."""
    return _Words(width) if width in (4, 8) else _Texts(width)


def _larger(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    larger = np.empty(max((4 if len(array) < _FEW else 2) * len(array), _FIRST_ENTRIES), np.int64)
    larger[: len(array)] = array
    return larger
