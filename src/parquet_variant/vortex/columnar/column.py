"""The values at a path in the columnar encoding: a discriminator and one dense child for each type, nested by path.

Owns the shape (as ClickHouse's Variant and Dynamic; a path costs nothing in rows that do not have it), choosing values
and putting columns one after the other. Leaves rows, some of which are SQL NULL, to `columnar`.

Values may be a thousand levels deep: everything that goes down a column is a list of jobs, not recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import offsets_of
from parquet_variant.kernels.kinds import KIND
from parquet_variant.types import TYPE_OF_ID, PrimitiveId, VariantType

Int64s = npt.NDArray[np.int64]

# The code of both booleans; other codes are a kind of the tape, with a decimal's scale above.
BOOLEAN = int(PrimitiveId.TRUE)


def code_of(kind: Any, scale: Any = 0) -> Any:
    """The code of a child, or of many: kind, and a decimal's scale."""
    return kind | scale << 8


@dataclass(frozen=True, eq=False)
class Field:
    """A field of the objects of a column."""

    positions: Int64s | None  # The objects that have it, ascending; None if all do.
    column: Column  # Its values there.

    def places(self, objects: int) -> Int64s:
        """The positions, spelled out."""
        return np.arange(objects) if self.positions is None else self.positions


@dataclass(frozen=True, eq=False)
class Child:
    """The values of one type."""

    code: int  # Kind and decimal scale (see `code_of`).
    size: int  # How many there are.
    values: pa.Array | None = None  # Scalars, dense; None for nulls, arrays and objects.
    # Of arrays: where each begins among the elements of all.
    offsets: Int64s | None = None
    elements: Column | None = None
    fields: dict[str, Field] = field(default_factory=dict)  # Of objects: by name, in the order of their UTF-8 bytes.

    @property
    def kind(self) -> int:
        """The kind, as on the tape."""
        return self.code & 0xFF

    @property
    def type(self) -> VariantType:
        """The Variant type."""
        if self.kind >= KIND.ARRAY:
            return VariantType.ARRAY if self.kind == KIND.ARRAY else VariantType.OBJECT
        return TYPE_OF_ID[PrimitiveId(self.kind)].type


@dataclass(frozen=True, eq=False)
class Column:
    """The values at one path."""

    size: int  # How many there are.
    children: tuple[Child, ...] = ()  # One for each type that is there.
    # For each value the index of its child; None if there is one child only.
    types: npt.NDArray[np.uint8] | None = None

    def positions(self, index: int) -> Int64s:
        """The positions of a child's values."""
        return np.arange(self.size) if self.types is None else np.flatnonzero(self.types == index)

    def child(self, kind: int) -> tuple[Child, Int64s] | None:
        """The child of arrays or of objects with its positions; None if there is none."""
        for index, child in enumerate(self.children):
            if child.kind == kind:
                return child, self.positions(index)
        return None

    def take(self, indices: Int64s) -> Column:
        """The values at some positions, in that order."""
        jobs: list[tuple[Column, Int64s]] = [(self, np.asarray(indices, np.int64))]
        # The list of jobs grows while it is read.
        return _built([_plan_take(column, rows, jobs) for column, rows in jobs])

    @classmethod
    def concat(cls, columns: Sequence[Column]) -> Column:
        """Columns one after the other."""
        jobs: list[list[Column]] = [list(columns)]
        return _built([_plan_concat(parts, jobs) for parts in jobs])


# -- children whose columns are jobs yet to be done


@dataclass(frozen=True, eq=False)
class _Taken:
    """A child in the making: the numbers of jobs stand for columns."""

    code: int
    size: int
    values: pa.Array | None = None
    offsets: Int64s | None = None
    elements: int = -1
    fields: tuple[tuple[str, Int64s | None, int], ...] = ()


_Plan: TypeAlias = tuple[int, list[_Taken], "npt.NDArray[np.uint8] | None"]


def _built(plans: list[_Plan]) -> Column:
    done: list[Column] = [Column(0)] * len(plans)
    for number in range(len(plans) - 1, -1, -1):  # a job is after the one that asked for it
        size, children, types = plans[number]
        made = tuple(
            Child(
                child.code,
                child.size,
                child.values,
                child.offsets,
                done[child.elements] if child.elements >= 0 else None,
                {name: Field(positions, done[job]) for name, positions, job in child.fields},
            )
            for child in children
        )
        done[number] = Column(size, made, types)
    return done[0]


def _plan_take(column: Column, rows: Int64s, jobs: list[tuple[Column, Int64s]]) -> _Plan:
    kept: list[_Taken] = []
    types = None if column.types is None else column.types[rows]
    renumbered = np.zeros(len(column.children), np.uint8)
    for index, child in enumerate(column.children):
        if column.types is None or types is None:
            inner = rows
        else:
            rank = np.cumsum(column.types == index) - 1
            inner = rank[rows[types == index]]
        if not len(inner):
            continue
        renumbered[index] = len(kept)
        kept.append(_take_child(child, inner, jobs))
    return len(rows), kept, renumbered[types] if types is not None and len(kept) > 1 else None


def _take_child(child: Child, inner: Int64s, jobs: list[tuple[Column, Int64s]]) -> _Taken:
    if child.values is not None:
        return _Taken(child.code, len(inner), child.values.take(pa.array(inner)))
    if child.offsets is not None and child.elements is not None:
        offsets, elements = nested_ranges(child.offsets, inner)
        jobs.append((child.elements, elements))
        return _Taken(child.code, len(inner), offsets=offsets, elements=len(jobs) - 1)
    fields = []
    for name, child_field in child.fields.items():
        if child_field.positions is None:
            places, entries = None, inner
        else:
            at = np.searchsorted(child_field.positions, inner)
            there = at < len(child_field.positions)
            there[there] = child_field.positions[at[there]] == inner[there]
            places, entries = np.flatnonzero(there), at[there]
            if not len(places):
                continue
            places = None if len(places) == len(inner) else places
        jobs.append((child_field.column, entries))
        fields.append((name, places, len(jobs) - 1))
    return _Taken(child.code, len(inner), fields=tuple(fields))


def nested_ranges(offsets: Int64s, chosen: Int64s) -> tuple[Int64s, Int64s]:
    """Offsets of the chosen arrays one after the other, and the positions of their elements."""
    starts = offsets[chosen]
    lengths = offsets[chosen + 1] - starts
    ends = offsets_of(lengths)
    return ends, np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


def _plan_concat(parts: list[Column], jobs: list[list[Column]]) -> _Plan:
    codes = list(dict.fromkeys(child.code for part in parts for child in part.children))
    size = sum(part.size for part in parts)
    types = None
    if len(codes) > 1:
        number = {code: index for index, code in enumerate(codes)}
        stretches = []
        for part in parts:
            own = np.array([number[child.code] for child in part.children], np.uint8)
            stretches.append(np.repeat(own, part.size) if part.types is None else own[part.types])
        types = np.concatenate(stretches)
    children = [[child for part in parts for child in part.children if child.code == code] for code in codes]
    return size, [_concat_child(same, jobs) for same in children], types


def _concat_child(parts: list[Child], jobs: list[list[Column]]) -> _Taken:
    code, size = parts[0].code, sum(part.size for part in parts)
    if parts[0].values is not None:
        return _Taken(code, size, pa.concat_arrays([part.values for part in parts]))
    if code == KIND.ARRAY:
        ends: list[Int64s] = [np.zeros(1, np.int64)]
        columns = []
        for part in parts:
            assert part.offsets is not None
            assert part.elements is not None
            ends.append(part.offsets[1:] + ends[-1][-1])
            columns.append(part.elements)
        jobs.append(columns)
        return _Taken(code, size, offsets=np.concatenate(ends), elements=len(jobs) - 1)
    fields = []
    for name in sorted({name for part in parts for name in part.fields}):
        places, columns, start = [], [], 0
        for part in parts:
            if name in part.fields:
                places.append(part.fields[name].places(part.size) + start)
                columns.append(part.fields[name].column)
            start += part.size
        jobs.append(columns)
        joined = np.concatenate(places)
        fields.append((name, None if len(joined) == size else joined, len(jobs) - 1))
    return _Taken(code, size, fields=tuple(fields))
