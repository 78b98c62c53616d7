"""Definition and repetition levels of every leaf of Arrow columns.

Owns the walk down from a column to its leaves. What many leaves share is made once: fields of an object that are never
missing have the same levels, and so have all that are always missing. Leaves loops over entries to `pages.levels`, and
values to `leaf_values`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.pages.levels import list_levels, list_positions, optional_levels

Levels = npt.NDArray[np.uint8]
_NONE = np.zeros(0, np.uint8)
_STRUCT, _DICTIONARY, _MAP = (
    kind.id for kind in (pa.struct([]), pa.dictionary(pa.int8(), pa.int8()), pa.map_(pa.int8(), pa.int8()))
)
_LISTS = (pa.list_(pa.int8()).id, pa.large_list(pa.int8()).id, _MAP)


@dataclass(slots=True, eq=False)
class Entries:
    """The entries of a column, or of what holds it."""

    count: int  # How many there are.
    definition: Levels | int  # The definition level of each, or the one that all have.
    repetition: Levels | None  # The repetition level of each; None where all are 0.
    least: int  # The level from which on an entry has a slot in the Arrow array.
    most: int  # The level of an entry that is there.
    present: int  # How many are there.
    _filled: Entries | None = None
    _empty: Entries | None = None

    def optional(self, array: pa.Array) -> Entries:
        """The entries of an optional field that these hold, whose slots are those of ``array``."""
        nulls = array.null_count
        if not nulls:
            self._filled = self._filled or self._below(0, 0)
            return self._filled
        if nulls == len(array) or not self.present:
            if self._empty is None:
                self._empty = Entries(self.count, self.definition, self.repetition, self.least, self.most + 1, 0)
            return self._empty
        return self._below(array.buffers()[0].address, array.offset)

    def _below(self, bits: int, first: int) -> Entries:
        if isinstance(self.definition, int) and (self.definition < self.most or not bits):
            level = self.definition + (self.definition == self.most)
            return Entries(self.count, level, self.repetition, self.least, self.most + 1, self.present)
        above = _NONE if isinstance(self.definition, int) else self.definition
        levels = np.empty(self.count, np.uint8)
        present = optional_levels(above, self.least, self.most, bits, first, levels)
        return Entries(self.count, levels, self.repetition, self.least, self.most + 1, present)

    def elements(self, array: pa.Array, nullable: bool, depth: int) -> tuple[Entries, pa.Array]:
        """The entries of a list's elements, and the elements that are theirs.

        `array`: a list or map array, whose slots these entries have.
        `nullable`: whether the list itself may be null.
        `depth`: the repetition level of an element that is not its list's first.
        """
        values = array.values
        empty = self.most + nullable
        if array.null_count == len(array) or not self.present:
            below = Entries(self.count, self.definition, self.repetition, empty + 1, empty + 1, 0)
            return below, values.slice(0, 0)
        validity, offsets = array.buffers()[:2]
        width = 8 if pa.types.is_large_list(array.type) else 4
        at = offsets.address + array.offset * width
        bits = validity.address if nullable and validity is not None and array.null_count else 0
        bounds = np.frombuffer(offsets, f"<i{width}", len(array) + 1, array.offset * width)
        start, stop = int(bounds[0]), int(bounds[-1])
        above = self._levels()
        levels, repetition = (np.empty(self.count + stop - start, np.uint8) for _ in range(2))
        repeated = _NONE if self.repetition is None else self.repetition
        count, present = list_levels(
            above, repeated, self.count, self.least, self.most, empty, bits, array.offset, at, width, depth, levels,
            repetition,
        )  # fmt: skip
        if present == stop - start:
            values = values.slice(start, present)
        else:  # Lists that are null, or under something that is, hold elements all the same.
            positions = np.empty(present, np.int64)
            list_positions(above, self.count, self.least, self.most, bits, array.offset, at, width, positions)
            values = values.take(from_numpy(positions))
        return Entries(count, levels[:count], repetition[:count], empty + 1, empty + 1, present), values

    def _levels(self) -> Levels:
        """The definition levels as `pages.levels` takes them: none where all are there."""
        if not isinstance(self.definition, int):
            return self.definition
        return _NONE if self.definition == self.most else np.full(self.count, self.definition, np.uint8)


class NodeEntries:
    """The entries of columns that were made of nodes; those with the same levels are one object.

    `levels` are what `kernels.shredding.node_levels` has written.
    """

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._known: dict[tuple[int, ...], Any] = {}

    def of(self, row: tuple[int, ...]) -> Entries:
        """The entries that a row of its table describes."""
        entries: Entries | None = self._known.get(row)
        if entries is None:
            count, definition, repetition, least, most, present = row
            own = self._at(definition, count) if definition >= 0 else -1 - definition
            repeated = self._at(repetition, count) if repetition >= 0 else None
            entries = self._known[row] = Entries(count, own, repeated, least, most, present)
        return entries

    def _at(self, start: int, count: int) -> Levels:
        levels: Levels = self._known.setdefault((start, count), self._levels[start : start + count])
        return levels


def leaf_entries(field: pa.Field, array: pa.Array) -> list[tuple[Entries, pa.Array]]:
    """The entries of each leaf of a column, in file order, and the array that has their slots.

    Raises `VariantFileError` if a required field is null where what holds it is not.
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
        raise VariantFileError(f"{field.name} is required, but null in some rows", reason="null-in-required")
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
