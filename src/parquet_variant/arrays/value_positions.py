"""Positions of values inside a column of Variants, slots, the form that every cast reads, and node tables.

Owns `ValuePositions`, its creation from a storage struct, its steps down a path, and raising the errors that kernels
report; `ScalarSlots`; and columns as node tables, for edits, comparison, types of values and drafts: canonical field
order, and one numbering of names for several columns. `kernels.operations.get` reads the bytes,
`kernels.values.value_nodes` makes nodes, and `ops.columns.slot_casts` converts typed columns and casts slots.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import (
    BinaryParts,
    MetadataParts,
    binary_parts,
    metadata_parts,
    storage_of,
    valid_mask,
)
from parquet_variant.encoding.metadata import EMPTY_METADATA, dictionary_of
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, VariantError
from parquet_variant.kernels.arrow_buffers import (
    Int64s,
    Mask,
    filled_binary,
    from_bytes,
    from_numpy,
    offsets_of,
    row_chunks,
    to_numpy,
)
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.memory import address_of, copy_spans
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.values.reading import SORTED, UNUSABLE, NameTable, name_table
from parquet_variant.kernels.values.scalar_slots import decimal_slots, measure_slots, write_slots
from parquet_variant.kernels.values.value_nodes import canonical_nodes as kernel
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import BasicType, PrimitiveId
from parquet_variant.types.path import Segment

# The bytes of a Variant null, for rows that are present without bytes.
_NULL_VALUE = np.zeros(1, np.uint8)


class MetadataDictionaries:
    """The distinct metadata of a column, with the ids of the keys that were looked up."""

    def __init__(self, read: Callable[[], MetadataParts]) -> None:
        self._read = read
        self._ids: dict[bytes, Int64s] = {}

    @cached_property
    def metadata(self) -> MetadataParts:
        """The distinct metadata, and the one of each row."""
        return self._read()

    @cached_property
    def parts(self) -> BinaryParts:
        """The distinct metadata as kernels read them."""
        return binary_parts(self.metadata.dictionary)

    def ids(self, key: bytes) -> Int64s:
        """Return the id of a key in each metadata (negative: see `kernels.operations.get.resolve_key`)."""
        ids = self._ids.get(key)
        if ids is None:
            ids = self._ids[key] = np.empty(len(self.metadata.dictionary), np.int64)
            name = np.frombuffer(key or b"\0", np.uint8)
            get.resolve_key(self.parts.offsets, self.parts.address, address_of(name), len(key), ids)
        return ids

    @cached_property
    def _name_table(self) -> tuple[pa.Array, Int64s, Int64s]:
        """All distinct names; the position of each name in them, -1 for an unreadable name; and the first name of each
        metadata in these positions. A metadata with a bad header has no names.
        """
        numbers: dict[str, int] = {}
        positions: list[int] = []
        starts = [0]
        for metadata in self.metadata.dictionary.to_pylist():
            with suppress(MalformedVariantError):
                dictionary = dictionary_of(metadata)
                for field_id in range(len(dictionary)):
                    positions.append(-1)
                    with suppress(MalformedVariantError):
                        positions[-1] = numbers.setdefault(dictionary.name(field_id), len(numbers))
            starts.append(len(positions))
        return pa.array(list(numbers), pa.string()), np.array(positions, np.int64), np.array(starts, np.int64)

    @property
    def sizes(self) -> Int64s:
        """The number of names of each metadata."""
        return np.diff(self._name_table[2])

    @property
    def distinct_names(self) -> pa.Array:
        """All distinct names of all metadata."""
        return self._name_table[0]

    def name_numbers(self, metas: npt.NDArray[np.int32], ids: Int64s) -> Int64s:
        """Return the positions in `distinct_names` of some ids; -1 for an unreadable name."""
        _, positions, starts = self._name_table
        return positions[starts[metas] + ids]

    def blob(self, index: int) -> bytes:
        """Return the bytes of one metadata; empty for the index of a null."""
        return bytes(self.metadata.dictionary[index].as_py()) if index >= 0 else b""


class ScalarSlots(Record, eq=False):
    """Decoded values: kinds and payloads as on the tape (`kernels.tapes.tape`)."""

    # One entry per value; the kind is ``MISSING`` where it is absent.
    kinds: npt.NDArray[np.uint8]
    a: Int64s
    b: Int64s
    scales: npt.NDArray[np.uint8]
    value_positions: ValuePositions | None = None  # Positions of arrays and objects; None if all are scalars.
    rows: Int64s | None = None  # The row of each entry; None if entry i belongs to row i.
    owner: Any = None  # Keeps the bytes alive that payloads point to.

    def __len__(self) -> int:
        return len(self.kinds)

    def row(self, position: int) -> int:
        """Return the row of an entry."""
        return position if self.rows is None else int(self.rows[position])

    def encoded(self, positions: Int64s | None = None) -> pa.Array:
        """Return the scalars, or those at some positions, as encoded values of their own types; Variant null for
        missing ones.
        """
        at = slice(None) if positions is None else positions
        kinds, a, b, scales = self.kinds[at], self.a[at], self.b[at], self.scales[at]
        offsets = np.empty(len(kinds) + 1, np.int64)
        measure_slots(kinds, b, offsets)
        return filled_binary(np.diff(offsets), partial(write_slots, kinds, a, b, scales, offsets))

    def variant(self, position: int) -> Variant:
        """Return a copy of the value of an entry that is not missing."""
        if self.value_positions is None:
            return Variant(EMPTY_METADATA, self.encoded(np.array([position]))[0].as_py())
        variant = self.value_positions.variant(position)
        assert variant is not None
        return variant

    def refuse(self, position: int, message: str, reason: str) -> NoReturn:
        """Raise the error for an entry: the first fault of the value that contains it, if that is known."""
        if self.value_positions is not None:
            self.value_positions.refuse(position, message, reason)
        raise MalformedVariantError(message, reason=reason, row=self.row(position))

    def as_decimals(self, precision: int, scale: int, *, rounds: bool) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """Return the exact numbers as 16-byte decimals, and a mask of those that the decimal type holds.

        With ``rounds``, numbers that the type holds after rounding count, too.
        """
        kinds = self.kinds
        is_int = (kinds >= PrimitiveId.INT8) & (kinds <= PrimitiveId.INT64)
        numbers = np.flatnonzero(is_int | ((kinds >= PrimitiveId.DECIMAL4) & (kinds <= PrimitiveId.DECIMAL16)))
        data, done = np.zeros(2 * len(self), np.int64), np.zeros(len(self), np.bool_)
        decimal_slots(numbers, kinds, self.a, self.b, self.scales, precision, scale, rounds, address_of(data), done)
        return data, done


# Positions by key: starts, stops, and the positions below. A `ValuePositions` would refer to itself by its root, and
# the garbage collector does not notice how much memory such cycles hold.
_Keys: TypeAlias = "dict[str, tuple[Int64s, Int64s, _Keys]]"


class ValuePositions(Record, eq=False):
    """A column of positions of values."""

    # Absolute addresses of the first byte of each value and of the end of its bytes; start 0 for an absent value.
    starts: Int64s
    stops: Int64s
    metas: npt.NDArray[np.int32]  # Index of each value's metadata.
    dictionaries: MetadataDictionaries  # The metadata.
    rows: Int64s | None = None  # The row of each entry; None if entry i belongs to row i.
    owner: Any = None  # Keeps the bytes alive.
    # The top-level values that the walk began with, for error messages.
    root: ValuePositions | None = None
    _keys: _Keys = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of_column(
        cls,
        values: pa.Array,
        metadata: MetadataParts,
        dictionaries: MetadataDictionaries | None = None,
        rows: Int64s | None = None,
        present: npt.NDArray[np.bool_] | None = None,
    ) -> ValuePositions:
        """Return the values of a binary column, null where absent, with the metadata of the rows.

        A row that is ``present`` has a value: Variant null if its bytes are null.
        """
        parts = binary_parts(values)
        starts = parts.offsets[:-1] + parts.address
        stops = parts.offsets[1:] + parts.address
        if len(parts.valid):
            starts = np.where(parts.valid != 0, starts, get.ABSENT)
        if present is not None:
            empty = present & (starts == get.ABSENT)
            null_at = address_of(_NULL_VALUE)
            starts = np.where(present, np.where(empty, null_at, starts), get.ABSENT)
            stops = np.where(empty, null_at + 1, stops)
        return cls.at(starts, stops, metadata, parts.owner, dictionaries, rows)

    @classmethod
    def at(
        cls,
        starts: Int64s,
        stops: Int64s,
        metadata: MetadataParts,
        owner: Any,
        dictionaries: MetadataDictionaries | None = None,
        rows: Int64s | None = None,
    ) -> ValuePositions:
        """Return the values at some addresses, with the metadata of the same rows."""
        # Writable, because a read-only array has another type in Numba.
        metas = metadata.indices if metadata.indices.flags.writeable else metadata.indices.copy()
        return cls(starts, stops, metas, dictionaries or MetadataDictionaries(lambda: metadata), rows, owner)

    @classmethod
    def of_storage(cls, storage: pa.StructArray, present: Mask | None = None) -> ValuePositions:
        """Return the values of an unshredded storage, absent where not present (default: SQL NULL)."""
        metadata, present = (
            metadata_parts(storage.field("metadata")),
            valid_mask(storage) if present is None else present,
        )
        return cls.of_column(storage.field("value"), metadata, present=present)

    @property
    def is_present(self) -> Mask:
        """The mask of the values that are not absent."""
        return self.starts > 0

    @property
    def valid(self) -> npt.NDArray[np.uint8] | None:
        """One byte per value, 0 for an absent value; None if all values are present."""
        return None if self.is_present.all() else self.is_present.astype(np.uint8)

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, position: int) -> int:
        """Return the row of an entry."""
        return position if self.rows is None else int(self.rows[position])

    def _of_rows(self, starts: Int64s, stops: Int64s) -> ValuePositions:
        """Return values of the same rows. Called for each step of a path, in which `replace` takes longer than it."""
        return ValuePositions(starts, stops, self.metas, self.dictionaries, self.rows, self.owner, self.root or self)

    def key(self, name: str) -> ValuePositions:
        """Return the value of a key in each object; absent elsewhere."""
        if name not in self._keys:
            self._find([name])
        starts, stops, nested_keys = self._keys[name]
        positions = self._of_rows(starts, stops)
        object.__setattr__(positions, "_keys", nested_keys)
        return positions

    def look_up(self, paths: Iterable[tuple[Segment, ...]]) -> None:
        """Find the first keys of several paths, and then theirs below.

        All keys of an object are found at once, because fetching its bytes takes longer than searching them.
        """
        levels = [(self, paths)]
        for values, paths_here in levels:  # which grows, because a path may have more keys than Python can recurse
            segments_of_key: dict[str, list[tuple[Segment, ...]]] = {}
            for segments in paths_here:
                if segments and isinstance(segments[0], str):
                    segments_of_key.setdefault(segments[0], []).append(segments[1:])
            values._find([name for name in segments_of_key if name not in values._keys])
            levels += [(values.key(name), paths_below) for name, paths_below in segments_of_key.items()]

    def _find(self, names: Sequence[str]) -> None:
        keys = {}
        for name in names:
            try:
                keys[name] = name.encode()
            except UnicodeEncodeError:  # a UTF-8 dictionary cannot have a lone surrogate
                self._keys[name] = np.zeros(len(self), np.int64), self.stops, {}
        if not keys:
            return
        starts, stops = np.empty((2, len(keys), len(self)), np.int64)
        raw = [np.frombuffer(key or b"\0", np.uint8) for key in keys.values()]
        parts = self.dictionaries.parts
        get.find_keys(
            self.starts, self.stops, self.metas, get.Keys(
                np.array([self.dictionaries.ids(key) for key in keys.values()]),
                np.array([address_of(key) for key in raw]),
                np.array([len(key) for key in keys.values()]),
            ), parts.offsets, parts.address, starts, stops,
        )  # fmt: skip
        for number, name in enumerate(keys):
            self._keys[name] = starts[number], stops[number], {}

    def index(self, position: int) -> ValuePositions:
        """Return the element at a position of each array; absent elsewhere."""
        starts, stops = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        get.find_index(self.starts, self.stops, position, starts, stops)
        return self._of_rows(starts, stops)

    def elements(self) -> tuple[Int64s, npt.NDArray[np.bool_], ValuePositions]:
        """Return the offsets of the elements of each array, a mask of the arrays, and the elements.

        Raises `MalformedVariantError` if an array is malformed.
        """
        offsets, is_array, _, elements = self._children(BasicType.ARRAY, np.zeros(0, np.int64))
        return offsets, is_array, elements

    def fields(self) -> tuple[Int64s, npt.NDArray[np.bool_], Int64s, ValuePositions]:
        """Return the offsets of the fields of each object, a mask of the objects, the field ids, and the values.

        Raises `MalformedVariantError` if an object is malformed.
        """
        offsets, is_object, ids, values = self._children(BasicType.OBJECT, self.dictionaries.sizes)
        names = self.dictionaries.name_numbers(values.metas, ids)
        # Fields whose object has a field of the same name before them.
        parents = np.repeat(np.arange(len(self)), np.diff(offsets))
        order = np.lexsort((names, parents))
        same = (names[order][1:] == names[order][:-1]) & (parents[order][1:] == parents[order][:-1])
        faults = [*np.flatnonzero(names < 0)[:1].tolist(), *order[1:][same].tolist()]
        if faults:
            self._refuse(int(np.searchsorted(offsets, min(faults), "right")) - 1)
        return offsets, is_object, ids, values

    def child_counts(self, basic: BasicType) -> Int64s:
        """Return the number of children of each array, or of each object; -1 for other values.

        Raises `MalformedVariantError` if a header is malformed.
        """
        counts = np.empty(len(self), np.int64)
        self._refuse(get.count_children(self.starts, self.stops, int(basic), counts))
        return counts

    def _children(
        self, basic: BasicType, sizes: Int64s
    ) -> tuple[Int64s, npt.NDArray[np.bool_], Int64s, ValuePositions]:
        counts = self.child_counts(basic)
        offsets = offsets_of(np.maximum(counts, 0))
        starts, stops, parents, ids = (np.empty(int(offsets[-1]), np.int64) for _ in range(4))
        self._refuse(
            get.find_children(
                self.starts, self.stops, self.metas, int(basic), offsets, sizes, starts, stops, parents, ids
            )
        )
        return offsets, counts >= 0, ids, self.take(parents)._of_rows(starts, stops)

    def take(self, positions: Int64s) -> ValuePositions:
        """Return the entries at some positions."""
        rows = positions if self.rows is None else self.rows[positions]
        starts, stops, metas = self.starts[positions], self.stops[positions], self.metas[positions]
        return ValuePositions(starts, stops, metas, self.dictionaries, rows, self.owner, self.root or self)

    def slots(self) -> ScalarSlots:
        """Return the kind and payload of every value.

        Raises `MalformedVariantError` if a value is malformed, or was reached through malformed bytes.
        """
        size = len(self)
        kinds, scales = np.empty(size, np.uint8), np.empty(size, np.uint8)
        a, b = np.empty(size, np.int64), np.empty(size, np.int64)
        self._refuse(get.read_slots(self.starts, self.stops, kinds, a, b, scales))
        return ScalarSlots(kinds, a, b, scales, self, self.rows, self.owner)

    def spans(self) -> ScalarSlots:
        """Return the bytes of every value: the address in ``a``, the length in ``b``.

        Raises `MalformedVariantError` if a value is malformed, or was reached through malformed bytes.
        """
        sizes = np.empty(len(self), np.int64)
        self._refuse(get.measure(self.starts, self.stops, sizes))
        empty = np.empty(0, np.uint8)
        return ScalarSlots(empty, self.starts, sizes, empty, self, self.rows, self.owner)

    def storage(self) -> pa.StructArray:
        """Return a copy of the values with their metadata as an unshredded storage, null where absent."""
        spans = self.spans()
        value = filled_binary(spans.b, partial(copy_spans, spans.a, spans.b))
        metadata = MetadataParts(self.metas, self.dictionaries.metadata.dictionary).column
        return storage_of(metadata, value, from_numpy(self.starts == get.ABSENT))

    def variant(self, position: int) -> Variant | None:
        """Return a copy of the value of an entry; None if it is absent."""
        start = int(self.starts[position])
        if start == get.ABSENT:
            return None
        end = get.value_end(start, int(self.stops[position]))
        if start < 0 or end < 0:
            self._refuse(position)
        metadata = self.dictionaries.blob(int(self.metas[position]))
        return Variant(metadata, ctypes.string_at(start, end - start))

    def _refuse(self, position: int) -> None:
        if position >= 0:
            self.refuse(position, "a value is malformed: its bytes end early or have an unknown type")

    def refuse(self, position: int, message: str, reason: str = "malformed") -> NoReturn:
        """Raise the error for an entry: the first fault of the top-level value that contains it, else the message."""
        row = self.row(position)
        root = self.root or self
        entries = np.flatnonzero((root.rows if root.rows is not None else np.arange(len(root))) == row)
        for index in entries:
            start, stop = int(root.starts[index]), int(root.stops[index])
            if start > 0:
                metadata = root.dictionaries.blob(int(root.metas[index]))
                try:
                    Variant(metadata, ctypes.string_at(start, stop - start)).validate()
                except VariantError as fault:
                    raise fault.at(row=row) from None
        raise MalformedVariantError(message, reason=reason, row=row)


# Bytes of values in one kernel call: bounds the size of its node table.
CHUNK_BYTES = 64 << 20


def value_chunks(storage: pa.StructArray) -> list[tuple[int, int]]:
    """Split an unshredded storage into row ranges that are each small enough for one node table.

    Returns one empty range without rows.
    """
    return row_chunks(binary_parts(storage.field("value")).offsets, CHUNK_BYTES)


class NameNumbers:
    """All names of several batches, and additional keys, numbered in byte order.

    `maps` has, for each batch, the index of the first name of each dictionary, and the number of each name.
    """

    def __init__(self, batches: Sequence[ValuePositions], keys: Sequence[str] = ()) -> None:
        tables = [name_table(batch.dictionaries.metadata.dictionary) for batch in batches]
        raw = from_bytes([key.encode() for key in keys], pa.large_binary())
        counts, parts = [], []
        for table in tables:
            # A malformed dictionary has no names here, so the kernel refuses the rows that use it.
            counts.append(np.where(table.state != UNUSABLE, np.diff(table.starts), 0))
            is_readable = np.repeat(counts[-1] > 0, np.diff(table.starts))
            address, length = table.address[is_readable], table.length[is_readable]
            parts.append(filled_binary(length, partial(copy_spans, address, length), arrow_type=pa.large_binary()))
        encoded = pa.concat_arrays([*parts, raw]).dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        rank_of = np.empty(len(order), np.int64)
        rank_of[to_numpy(order)] = np.arange(len(order))
        ranks = rank_of[to_numpy(encoded.indices)]
        self.values = encoded.dictionary.take(order)
        self.rank = dict(zip(keys, ranks[len(ranks) - len(keys) :].tolist(), strict=True))
        self.maps: list[tuple[Int64s, Int64s]] = []
        first = 0
        for count in counts:
            starts = offsets_of(count)
            self.maps.append((starts, ranks[first : first + int(starts[-1])]))
            first += int(starts[-1])

    @property
    def table(self) -> NameTable:
        """The names as the name table of a single dictionary."""
        names, numbers = binary_parts(self.values), np.arange(len(self.values))
        starts, states = np.array([0, len(numbers)]), np.array([SORTED], np.uint8)
        address, length = names.offsets[:-1] + names.address, np.diff(names.offsets)
        return NameTable(starts, address, length, numbers, numbers, states, names.owner)


def canonical_nodes(
    batch: ValuePositions, map_of_names: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Return the nodes of a batch, the first node of each row, and a flag for each row that the kernel refused."""
    row_start, refused = np.empty(len(batch) + 1, np.int64), np.zeros(len(batch), np.uint8)
    starts = np.where(batch.is_present, batch.starts, -1)
    exported = kernel(starts, batch.stops, batch.metas, *map_of_names, row_start, refused)
    return adopt(*exported), row_start, refused
