"""The pages of a column chunk, made while batches arrive.

Owns the size of pages, the dictionary and its fallback, page headers, compression, and the statistics of pages and
chunks. At most one page of values is held before it is encoded. Leaves the bytes of values and levels to `encodings`,
and the places of pages in the file to `file_writer`. Spec: ``parquet.thrift``.
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from threading import get_ident
from typing import NamedTuple, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.files.parquet.format.arrow_schema import LeafColumn, Physical
from parquet_variant.files.parquet.format.thrift import BOOL, DATA_PAGE, DICTIONARY_PAGE, I32, STRUCT, encode_struct
from parquet_variant.files.parquet.pages import encodings
from parquet_variant.files.parquet.pages.encodings import Codec, Dictionary, Encoding
from parquet_variant.files.parquet.pages.leaf_values import (
    Bounds,
    Entries,
    LeafValues,
    bounds_of,
    leaf_values,
    present_array,
    union,
)
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.pages.runs import most_run_bytes
from parquet_variant.support.records import Record

Bytes: TypeAlias = "bytes | pa.Buffer"
# An array with a value or null per slot, or values without nulls.
Slots: TypeAlias = "pa.Array | LeafValues"
_ROOM_BYTES = 4 << 20
# With `use_dictionary=None`, a dictionary may take this fraction of the bytes of the first values,
_DICTIONARY_SHARE = 4
# and is decided by at least this many values.
_MIN_SAMPLE = 1_000
_NO_INDEX = np.zeros(0, np.int32)


class ColumnOptions(Record):
    """Options for writing a column."""

    # Whether to use a dictionary until it exceeds ``dictionary_bytes``; None: only if the first values repeat enough
    # that the dictionary takes a small fraction of their bytes.
    use_dictionary: bool | None = True
    encoding: Encoding = Encoding.PLAIN  # The encoding of values outside the dictionary.
    compress: Codec | None = None  # The codec; None for no compression.
    dictionary_bytes: int = 8 << 20
    page_bytes: int = 2 << 20  # Bytes of values at which a page is full.
    has_statistics: bool = True  # Whether null counts and bounds are written.
    keeps_hashes: bool = False  # Whether a bloom filter is written.


class Page(NamedTuple):
    """A data page: its bytes, its rows, and its statistics."""

    header: bytes
    body: Bytes
    plain_bytes: int
    encoding: Encoding
    first_row: int
    nulls: int
    values: int
    bounds: Bounds
    text_bytes: int
    definition_counts: list[int]
    repetition_counts: list[int]
    size: int


class GroupCache:
    """A cache shared by the columns of a row group: encoded levels and pages of nulls.

    The key is the identity of the source arrays, which are kept alive. Threads that need the same entry at the same
    time may both compute it.
    """

    def __init__(self) -> None:
        # Encoded levels and the count of each level, with the source arrays, whose identity is the key.
        self.levels: dict[tuple[int, ...], tuple[bytes, list[int], tuple[object, ...]]] = {}
        self.nulls: dict[tuple[int, ...], tuple[Page, list[Entries]]] = {}
        self._rooms: dict[int, npt.NDArray[np.uint8]] = {}

    def room(self, size: int) -> npt.NDArray[np.uint8]:
        """Return this thread's memory for a page; its content is kept until it grows."""
        thread = get_ident()
        room = self._rooms.get(thread)
        if room is None or size > len(room):
            if room is not None:
                release(room)
            room = self._rooms[thread] = acquire(np.uint8, max(_ROOM_BYTES, 2 * size))
        return room

    def release(self) -> None:
        """Let others have the memory."""
        release(*self._rooms.values())
        self._rooms.clear()

    def encoded(
        self, pieces: list[tuple[int, npt.NDArray[np.uint8] | int | None]], max_level: int
    ) -> tuple[bytes, list[int]]:
        """Return the levels of pieces, each with a number of entries, up to ``max_level``, and the count of each."""
        # Constant levels are not negative, so that they differ from the identities of arrays.
        identities = (levels or 0 if not isinstance(levels, np.ndarray) else -1 - id(levels) for _, levels in pieces)
        key = (max_level, *(count for count, _ in pieces), *identities)
        if key not in self.levels:
            levels = pieces[0][1]
            if len(pieces) > 1 and any(isinstance(part, np.ndarray) or part != levels for _, part in pieces):
                levels = np.concatenate(
                    [part if isinstance(part, np.ndarray) else np.full(n, part or 0, np.uint8) for n, part in pieces]
                )
            count = sum(count for count, _ in pieces)
            level_pages = encodings.encode_levels(0 if levels is None else levels, count, max_level)
            self.levels[key] = *level_pages, tuple(levels for _, levels in pieces)
        return self.levels[key][:2]


class ColumnChunk(Record, frozen=False):
    """A column chunk of a row group that is being written."""

    leaf: LeafColumn  # The leaf column.
    options: ColumnOptions  # The options for writing it.
    cache: GroupCache  # The cache shared with the other columns of the row group.
    pages: list[Page] = field(default_factory=list)
    dictionary_page: tuple[bytes, Bytes, int] | None = None
    hashes: list[npt.NDArray[np.int64]] = field(default_factory=list)
    rows: int = 0
    # Whether it contains pages of another file, whose bounds may be truncated.
    has_cut_bounds: bool = False
    # Whether it began with a dictionary; None if there were too few values to decide.
    has_dictionary: bool | None = None
    _entries: list[Entries] = field(default_factory=list)
    _values: list[LeafValues] = field(default_factory=list)
    _indices: list[npt.NDArray[np.int32]] = field(default_factory=list)
    _dictionary: Dictionary | None = None
    _is_indexing: bool = False
    # Bytes of indexed values that are not in a page yet, and whether they use every entry of the dictionary.
    _text_bytes: int = 0
    _uses_all: bool = True
    # Number of entries of the dictionary of another file.
    _copied_entries: int = 0
    _waiting_bytes: int = 0
    _waiting_rows: int = 0

    def __post_init__(self) -> None:
        if self.options.use_dictionary is not False and encodings.is_encodable(Encoding.RLE_DICTIONARY, self.leaf.type):
            self._dictionary = encodings.new_dictionary(self.leaf.type.width)
            self._is_indexing = True

    def append(self, entries: Entries, slots: Slots, rows: int) -> None:
        """Add the level entries of some rows, with an array of their slots or their values without nulls."""
        if entries.present:
            if isinstance(slots, pa.Array):
                slots = present_array(slots, entries)
            indices = self._indexed(slots) if self._is_indexing else None
            if indices is not None:
                self._indices.append(indices)
                self._waiting_bytes += indices.nbytes
            else:
                if self._indices:  # Values that are indexed already become a page.
                    self.flush()
                values = self._values_of(slots)
                self._values.append(values)
                self._waiting_bytes += len(values.data) + 4 * values.count * (values.lengths is not None)
        elif self._is_indexing and _has_dictionary(slots):
            # pyarrow's reader uses the first entry for null rows, so the dictionary must not be empty.
            self._index_entries(slots.dictionary)
        self._entries.append(entries)
        self._waiting_rows += rows
        if self._waiting_bytes >= self.options.page_bytes:
            self.flush()

    def _indexed(self, slots: Slots) -> npt.NDArray[np.int32] | None:
        """Return dictionary indices; None, and no indices from now on, if the dictionary would become too large."""
        indices: npt.NDArray[np.int32] | None
        if _has_dictionary(slots) and len(slots.dictionary) <= len(slots):
            indices = self._index_entries(slots.dictionary)
            if indices is not None:
                assert self._dictionary is not None
                indices = indices[to_numpy(slots.indices.drop_null() if slots.null_count else slots.indices)]
                lengths = self._dictionary.values().lengths
                if lengths is not None:
                    self._text_bytes += int(lengths[indices].sum(dtype=np.int64))
        else:
            is_requested = self.options.use_dictionary is not None or self.has_dictionary is not None
            count = slots.count if isinstance(slots, LeafValues) else len(slots) - slots.null_count
            if not is_requested and count < _MIN_SAMPLE:
                self._is_indexing = False
                return None
            assert self._dictionary is not None
            values = self._values_of(slots)
            max_bytes = self.options.dictionary_bytes
            if not is_requested:
                max_bytes = min(max_bytes, len(values.data) // _DICTIONARY_SHARE)
            indices = self._dictionary.index(values, max_bytes)
            self._text_bytes += 0 if indices is None else len(values.data)
        self._is_indexing = indices is not None
        if self.has_dictionary is None:
            self.has_dictionary = self._is_indexing
        return indices

    def _index_entries(self, entries: pa.Array) -> npt.NDArray[np.int32] | None:
        assert self._dictionary is not None
        self._uses_all = False
        return self._dictionary.index(leaf_values(entries, self.leaf.type), self.options.dictionary_bytes)

    def _values_of(self, slots: Slots) -> LeafValues:
        if isinstance(slots, LeafValues):
            return slots
        return leaf_values(slots.dictionary_decode() if _has_dictionary(slots) else slots, self.leaf.type)

    def flush(self) -> None:
        """Make a page of the pending values."""
        if not self._entries:
            return
        has_dictionary = self._is_indexing and self._dictionary is not None and self._dictionary.count > 0
        if has_dictionary or any(entries.present for entries in self._entries):
            page = self._next_page(has_values=True)
        else:
            key = self.leaf.definition, self.leaf.repetition, self.rows, self._waiting_rows, *map(id, self._entries)
            if key not in self.cache.nulls:
                self.cache.nulls[key] = self._next_page(has_values=False), self._entries
            page, _ = self.cache.nulls[key]
        self.pages.append(page)
        self.rows += self._waiting_rows
        self._entries, self._values, self._indices = [], [], []
        self._waiting_bytes = self._waiting_rows = 0

    def _next_page(self, *, has_values: bool) -> Page:
        leaf = self.leaf
        definition = self.cache.encoded([(entry.count, entry.definition) for entry in self._entries], leaf.definition)
        repetition = self.cache.encoded([(entry.count, entry.repetition) for entry in self._entries], leaf.repetition)
        count = sum(entry.count for entry in self._entries)
        present = sum(entry.present for entry in self._entries)
        both = ((repetition, leaf.repetition), (definition, leaf.definition))
        encoded_levels = (encoded for (encoded, _), max_level in both if max_level)
        levels = b"".join(len(encoded).to_bytes(4, "little") + encoded for encoded in encoded_levels)
        size, encoding, bounds, text_bytes = 0, Encoding.PLAIN, None, 0
        if has_values:
            size, encoding, bounds, text_bytes = self._encode_page(len(levels))
        plain = self.cache.room(len(levels) + size)[: len(levels) + size]
        plain[: len(levels)] = np.frombuffer(levels, np.uint8)
        body = (self.options.compress or bytes)(plain)
        details = encode_struct((1, I32, count), (2, I32, encoding), (3, I32, Encoding.RLE), (4, I32, Encoding.RLE))
        header = encode_struct((1, I32, DATA_PAGE), (2, I32, len(plain)), (3, I32, len(body)), (5, STRUCT, details))
        return Page(
            header=header,
            body=body,
            size=len(header) + len(body),
            plain_bytes=len(plain),
            encoding=encoding,
            first_row=self.rows,
            values=count,
            nulls=count - present,
            bounds=bounds,
            text_bytes=text_bytes,
            definition_counts=definition[1],
            repetition_counts=repetition[1],
        )

    def _encode_page(self, start: int) -> tuple[int, Encoding, Bounds, int]:
        """Encode values into the shared memory; return their size, encoding, bounds, and the bytes of byte arrays."""
        leaf, options = self.leaf, self.options
        if self._values:
            parts = self._values
            max_size = sum(encodings.max_value_bytes(part, options.encoding) for part in parts)
            size = encodings.encode_values(
                parts, options.encoding, leaf.type, self.cache.room(start + max_size)[start:]
            )
            if options.keeps_hashes:
                self.hashes += map(LeafValues.hashes, parts)
            bounds = None
            if options.has_statistics:
                bounds = reduce(union, (bounds_of(part, leaf.type) for part in parts))
            return size, options.encoding, bounds, sum(len(part.data) for part in parts)
        assert self._dictionary is not None
        indices = self._indices[0] if len(self._indices) == 1 else np.concatenate([_NO_INDEX, *self._indices])
        width = max((self._dictionary.count - 1).bit_length(), 1)
        out = self.cache.room(start + 1 + most_run_bytes(len(indices), width))[start:]
        size = encodings.encode_indices(indices, width, out)
        entries = self._dictionary.values()
        bounds = None
        if options.has_statistics:
            if not self._uses_all:
                is_used = np.zeros(entries.count, np.bool_)
                is_used[indices] = True
                entries = entries.filter(is_used)
            bounds = bounds_of(entries, leaf.type)
        text_bytes, self._text_bytes, self._uses_all = self._text_bytes, 0, False
        return size, Encoding.RLE_DICTIONARY, bounds, text_bytes

    def take_dictionary(self, page: bytes, plain_bytes: int, entries: LeafValues | None) -> None:
        """Begin with the dictionary page of another file, and its uncompressed size; no value is added to it.

        `entries`: its values, or None if no new page uses it.
        """
        self.dictionary_page = b"", page, plain_bytes
        if entries is not None and self._dictionary is not None:
            indices = self._dictionary.index(entries, self.options.dictionary_bytes)
            if indices is None or self._dictionary.count != entries.count:
                raise ValueError("a dictionary has a value twice")
            self._uses_all, self._copied_entries = False, entries.count

    def take_page(self, page: Page, rows: int) -> None:
        """Add a page of another file, with its number of rows."""
        self.flush()
        self.pages.append(page._replace(first_row=self.rows))
        self.rows += rows
        self.has_cut_bounds |= self.leaf.type.physical == Physical.BYTE_ARRAY

    def pending_bytes(self) -> int:
        """Return the bytes of the values and the dictionary that `finish` compresses."""
        return self._waiting_bytes + (0 if self._dictionary is None else self._dictionary.size)

    def finish(self) -> None:
        """Make the last data page and the dictionary page."""
        self.flush()
        dictionary = self._dictionary
        if dictionary is None or not dictionary.count:
            return
        if self.dictionary_page is not None:
            if dictionary.count != self._copied_entries:
                raise ValueError("a page has values that are not in its dictionary")
            dictionary.release()
            return
        entries = dictionary.values()
        if self.options.keeps_hashes:
            self.hashes.append(entries.hashes())
        out = self.cache.room(encodings.max_value_bytes(entries, Encoding.PLAIN))
        plain = out[: encodings.encode_values([entries], Encoding.PLAIN, self.leaf.type, out)]
        body = (self.options.compress or bytes)(plain)
        details = encode_struct((1, I32, entries.count), (2, I32, Encoding.PLAIN), (3, BOOL, False))
        sizes = (1, I32, DICTIONARY_PAGE), (2, I32, len(plain)), (3, I32, len(body))
        self.dictionary_page = encode_struct(*sizes, (7, STRUCT, details)), body, len(plain)
        dictionary.release()
        self._dictionary = None

    @property
    def bounds(self) -> Bounds:
        """The bounds of the chunk; None if they are unknown."""
        return reduce(union, (page.bounds for page in self.pages), None)


def _has_dictionary(slots: Slots) -> TypeGuard[pa.DictionaryArray]:
    return isinstance(slots, pa.Array) and pa.types.is_dictionary(slots.type)
