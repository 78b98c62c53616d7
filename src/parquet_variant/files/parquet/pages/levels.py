"""Definition and repetition levels of every leaf of Arrow columns.

Owns the walk from a column to its leaves. Leaves with equal levels share them: fields of an object that are never
missing have the same levels, and so have fields that are always missing. Leaves loops over entries to
`kernels.pages.levels`, and values to `leaf_values`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.memory import buffer_address
from parquet_variant.kernels.pages.levels import Lists, list_levels, list_positions, optional_levels

Levels = npt.NDArray[np.uint8]
_NONE = np.zeros(0, np.uint8)
_STRUCT, _DICTIONARY, _MAP = (
    kind.id for kind in (pa.struct([]), pa.dictionary(pa.int8(), pa.int8()), pa.map_(pa.int8(), pa.int8()))
)
_LISTS = (pa.list_(pa.int8()).id, pa.large_list(pa.int8()).id, _MAP)


@dataclass(slots=True, eq=False)
class Entries:
    """The level entries of a column, or of a group that contains it."""

    count: int  # Number of entries.
    definition: Levels | int  # Definition levels, or the one level of all entries.
    repetition: Levels | None  # Repetition levels; None if all are 0.
    slot_level: int  # The lowest definition level of an entry with a slot in the Arrow array.
    present_level: int  # The definition level of an entry that is present.
    present: int  # Number of entries that are present.
    _filled: Entries | None = None
    _empty: Entries | None = None

    def optional(self, array: pa.Array) -> Entries:
        """Return the entries of an optional field inside these entries, with the slots of `array`."""
        nulls = array.null_count
        if not nulls:
            self._filled = self._filled or self._optional_field(0, 0)
            return self._filled
        if nulls == len(array) or not self.present:
            if self._empty is None:
                self._empty = Entries(
                    self.count, self.definition, self.repetition, self.slot_level, self.present_level + 1, 0
                )
            return self._empty
        return self._optional_field(buffer_address(array.buffers()[0]), array.offset)

    def _optional_field(self, bits: int, first: int) -> Entries:
        if isinstance(self.definition, int) and (self.definition < self.present_level or not bits):
            level = self.definition + (self.definition == self.present_level)
            return Entries(self.count, level, self.repetition, self.slot_level, self.present_level + 1, self.present)
        above = _NONE if isinstance(self.definition, int) else self.definition
        levels = np.empty(self.count, np.uint8)
        present = optional_levels(above, self.slot_level, self.present_level, bits, first, levels)
        return Entries(self.count, levels, self.repetition, self.slot_level, self.present_level + 1, present)

    def elements(self, array: pa.Array, nullable: bool, depth: int) -> tuple[Entries, pa.Array]:
        """Return the entries of the elements of a list, and the array of these elements.

        `array`: a list or map array with the slots of these entries.
        `nullable`: whether the list itself may be null.
        `depth`: the repetition level of every element except the first of its list.
        """
        values = array.values
        empty = self.present_level + nullable
        if array.null_count == len(array) or not self.present:
            absent = Entries(self.count, self.definition, self.repetition, empty + 1, empty + 1, 0)
            return absent, values.slice(0, 0)
        validity, offsets = array.buffers()[:2]
        width = 8 if pa.types.is_large_list(array.type) else 4
        at = buffer_address(offsets) + array.offset * width
        bits = buffer_address(validity) if nullable and array.null_count else 0
        bounds = np.frombuffer(offsets, f"<i{width}", len(array) + 1, array.offset * width)
        start, stop = int(bounds[0]), int(bounds[-1])
        lists = Lists(bits, array.offset, at, width)
        above = self._levels()
        levels, repetition = (np.empty(self.count + stop - start, np.uint8) for _ in range(2))
        repeated = _NONE if self.repetition is None else self.repetition
        count, present = list_levels(
            above, repeated, self.count, self.slot_level, self.present_level, empty, lists, depth, levels, repetition
        )
        if present == stop - start:
            values = values.slice(start, present)
        else:  # Lists that are null, or inside a null, may still have elements in Arrow.
            positions = np.empty(present, np.int64)
            list_positions(above, self.count, self.slot_level, self.present_level, lists, positions)
            values = values.take(from_numpy(positions))
        return Entries(count, levels[:count], repetition[:count], empty + 1, empty + 1, present), values

    def _levels(self) -> Levels:
        """Return the definition levels for kernels: an empty array if every entry is present."""
        if not isinstance(self.definition, int):
            return self.definition
        return _NONE if self.definition == self.present_level else np.full(self.count, self.definition, np.uint8)


class NodeEntries:
    """The level entries of columns made from nodes; columns with the same levels share one object.

    `levels`: the output of `kernels.shredding.columns`.
    """

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._cache: dict[tuple[int, ...], Any] = {}

    def of(self, row: tuple[int, ...]) -> Entries:
        """Return the entries that a row of the output table describes."""
        entries: Entries | None = self._cache.get(row)
        if entries is None:
            count, definition, repetition, slot_level, present_level, present = row
            levels = self._slice(definition, count) if definition >= 0 else -1 - definition
            repeated = self._slice(repetition, count) if repetition >= 0 else None
            entries = self._cache[row] = Entries(count, levels, repeated, slot_level, present_level, present)
        return entries

    def _slice(self, start: int, count: int) -> Levels:
        levels: Levels = self._cache.setdefault((start, count), self._levels[start : start + count])
        return levels


def leaf_entries(field: pa.Field, array: pa.Array) -> list[tuple[Entries, pa.Array]]:
    """Return the level entries and the array of each leaf of a column, in file order.

    Raises `VariantFileError` if a required field is null inside a value that is not.
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
        raise VariantFileError(
            f"field {field.name} is required but null in some rows: fill the nulls, or make the field nullable",
            reason="null-in-required",
        )
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
