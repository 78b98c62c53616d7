"""The values at a path in the columnar encoding: a discriminator and one dense child per type, nested by path.

Owns the structure, which resembles ClickHouse's Variant and Dynamic (a path costs nothing in rows without it),
selecting values and concatenating columns. `columnar_variant` owns rows, some of which are SQL NULL.

Values may be a thousand levels deep, so every traversal of a column is a list of jobs instead of recursion.
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

# The code of both booleans; other codes are a kind of the tape, with a decimal's scale in the high byte.
BOOLEAN = int(PrimitiveId.TRUE)


def code_of(kind: Any, scale: Any = 0) -> Any:
    """Return the code of a child, or an array of codes: kind, and a decimal's scale."""
    return kind | scale << 8


@dataclass(frozen=True, eq=False)
class ObjectField:
    """A field of the objects of a column."""

    positions: Int64s | None  # The objects that have the field, ascending; None for all objects.
    column: PathColumn  # The values of the field in these objects.

    def object_positions(self, objects: int) -> Int64s:
        """Return the positions of the objects that have the field, out of `objects` objects."""
        return np.arange(objects) if self.positions is None else self.positions


@dataclass(frozen=True, eq=False)
class Child:
    """The values of one type."""

    code: int  # Kind and decimal scale (see `code_of`).
    size: int  # Number of values.
    values: pa.Array | None = None  # Scalars without gaps; None for nulls, arrays and objects.
    # For arrays: the offset of each array in the column of all elements.
    offsets: Int64s | None = None
    elements: PathColumn | None = None
    fields: dict[str, ObjectField] = field(default_factory=dict)  # For objects: by name, in the order of UTF-8 bytes.

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
class PathColumn:
    """The values at one path."""

    size: int  # Number of values.
    children: tuple[Child, ...] = ()  # One per type that occurs.
    # The index of the child of each value; None if there is only one child.
    types: npt.NDArray[np.uint8] | None = None

    def positions(self, index: int) -> Int64s:
        """Return the positions of the values of a child."""
        return np.arange(self.size) if self.types is None else np.flatnonzero(self.types == index)

    def child(self, kind: int) -> tuple[Child, Int64s] | None:
        """Return the child of arrays or of objects with its positions; None if there is no such child."""
        for index, child in enumerate(self.children):
            if child.kind == kind:
                return child, self.positions(index)
        return None

    def take(self, indices: Int64s) -> PathColumn:
        """Return the values at positions, in that order."""
        jobs: list[tuple[PathColumn, Int64s]] = [(self, np.asarray(indices, np.int64))]
        # The list of jobs grows while it is processed.
        return _build([_plan_take(column, rows, jobs) for column, rows in jobs])

    @classmethod
    def concat(cls, columns: Sequence[PathColumn]) -> PathColumn:
        """Concatenate columns."""
        jobs: list[list[PathColumn]] = [list(columns)]
        return _build([_plan_concat(parts, jobs) for parts in jobs])


# -- children whose columns are unfinished jobs


@dataclass(frozen=True, eq=False)
class _PlannedChild:
    """A child whose columns are given as numbers of jobs."""

    code: int
    size: int
    values: pa.Array | None = None
    offsets: Int64s | None = None
    elements: int = -1
    fields: tuple[tuple[str, Int64s | None, int], ...] = ()


_Plan: TypeAlias = tuple[int, list[_PlannedChild], "npt.NDArray[np.uint8] | None"]


def _build(plans: list[_Plan]) -> PathColumn:
    finished: list[PathColumn] = [PathColumn(0)] * len(plans)
    for number in range(len(plans) - 1, -1, -1):  # each job comes after the job that needs its result
        size, children, types = plans[number]
        built_children = tuple(
            Child(
                child.code,
                child.size,
                child.values,
                child.offsets,
                finished[child.elements] if child.elements >= 0 else None,
                {name: ObjectField(positions, finished[job]) for name, positions, job in child.fields},
            )
            for child in children
        )
        finished[number] = PathColumn(size, built_children, types)
    return finished[0]


def _plan_take(column: PathColumn, rows: Int64s, jobs: list[tuple[PathColumn, Int64s]]) -> _Plan:
    planned: list[_PlannedChild] = []
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
        renumbered[index] = len(planned)
        planned.append(_take_child(child, inner, jobs))
    return len(rows), planned, renumbered[types] if types is not None and len(planned) > 1 else None


def _take_child(child: Child, inner: Int64s, jobs: list[tuple[PathColumn, Int64s]]) -> _PlannedChild:
    if child.values is not None:
        return _PlannedChild(child.code, len(inner), child.values.take(pa.array(inner)))
    if child.offsets is not None and child.elements is not None:
        offsets, elements = nested_ranges(child.offsets, inner)
        jobs.append((child.elements, elements))
        return _PlannedChild(child.code, len(inner), offsets=offsets, elements=len(jobs) - 1)
    fields = []
    for name, child_field in child.fields.items():
        if child_field.positions is None:
            positions, entries = None, inner
        else:
            child_rows = np.searchsorted(child_field.positions, inner)
            has_field = child_rows < len(child_field.positions)
            has_field[has_field] = child_field.positions[child_rows[has_field]] == inner[has_field]
            positions, entries = np.flatnonzero(has_field), child_rows[has_field]
            if not len(positions):
                continue
            positions = None if len(positions) == len(inner) else positions
        jobs.append((child_field.column, entries))
        fields.append((name, positions, len(jobs) - 1))
    return _PlannedChild(child.code, len(inner), fields=tuple(fields))


def nested_ranges(offsets: Int64s, arrays: Int64s) -> tuple[Int64s, Int64s]:
    """Return the offsets of the selected arrays when concatenated, and the positions of their elements."""
    starts = offsets[arrays]
    lengths = offsets[arrays + 1] - starts
    ends = offsets_of(lengths)
    return ends, np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


def _plan_concat(parts: list[PathColumn], jobs: list[list[PathColumn]]) -> _Plan:
    codes = list(dict.fromkeys(child.code for part in parts for child in part.children))
    size = sum(part.size for part in parts)
    types = None
    if len(codes) > 1:
        number = {code: index for index, code in enumerate(codes)}
        types_by_part = []
        for part in parts:
            new_numbers = np.array([number[child.code] for child in part.children], np.uint8)
            part_types = np.repeat(new_numbers, part.size) if part.types is None else new_numbers[part.types]
            types_by_part.append(part_types)
        types = np.concatenate(types_by_part)
    children = [[child for part in parts for child in part.children if child.code == code] for code in codes]
    return size, [_concat_child(of_one_code, jobs) for of_one_code in children], types


def _concat_child(parts: list[Child], jobs: list[list[PathColumn]]) -> _PlannedChild:
    code, size = parts[0].code, sum(part.size for part in parts)
    if parts[0].values is not None:
        return _PlannedChild(code, size, pa.concat_arrays([part.values for part in parts]))
    if code == KIND.ARRAY:
        ends: list[Int64s] = [np.zeros(1, np.int64)]
        columns = []
        for part in parts:
            assert part.offsets is not None
            assert part.elements is not None
            ends.append(part.offsets[1:] + ends[-1][-1])
            columns.append(part.elements)
        jobs.append(columns)
        return _PlannedChild(code, size, offsets=np.concatenate(ends), elements=len(jobs) - 1)
    fields = []
    for name in sorted({name for part in parts for name in part.fields}):
        positions, columns, start = [], [], 0
        for part in parts:
            if name in part.fields:
                positions.append(part.fields[name].object_positions(part.size) + start)
                columns.append(part.fields[name].column)
            start += part.size
        jobs.append(columns)
        all_positions = np.concatenate(positions)
        fields.append((name, None if len(all_positions) == size else all_positions, len(jobs) - 1))
    return _PlannedChild(code, size, fields=tuple(fields))
