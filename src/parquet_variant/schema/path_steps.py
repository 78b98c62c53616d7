"""The way of a path through shredded columns: which group answers it, or in which bytes it must be looked up.

Owns the step from a group to the group of a field or element, over a small view that a Parquet footer and an Arrow type
both give. By the specification ("Objects", "Arrays") what has a column of its own is never in the ``value`` above it.
Leaves the drafts, which keep a value in several places, to their readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, Protocol, Self, TypeVar

import pyarrow as pa

from parquet_variant.path import Segment, VariantPath
from parquet_variant.schema.storage_shape import is_binary, is_list


class Step(Enum):
    """Where a step of a path leads."""

    FOUND = auto()  # to a group of columns of its own
    NOT_SHREDDED = auto()  # into the bytes of the group's ``value``
    MISSING = auto()  # nowhere: the group has no ``value`` that could hold it


class ColumnGroup(Protocol):
    """What a step needs to know of a column or group of columns."""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a column, not a group."""

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""

    @property
    def element(self) -> Self:
        """The element of a list."""

    def child(self, name: str) -> Self | None:
        """A part of a group by its name."""


Columns = TypeVar("Columns", bound=ColumnGroup)


@dataclass(frozen=True, slots=True)
class ArrowGroup:
    """An Arrow type, and the names from the top down to it."""

    type: pa.DataType
    path: tuple[str, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether it is a column, not a group."""
        return not (pa.types.is_struct(self.type) or self.is_list)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return is_list(self.type)

    @property
    def is_binary(self) -> bool:
        """Whether it is a column of bytes."""
        return is_binary(self.type)

    @property
    def fields(self) -> dict[str, ArrowGroup]:
        """The fields of a struct by name; empty for anything else."""
        if not pa.types.is_struct(self.type):
            return {}
        return {field.name: ArrowGroup(field.type, (*self.path, field.name)) for field in self.type}

    @property
    def element(self) -> ArrowGroup:
        """The element of a list."""
        return ArrowGroup(self.type.value_type, (*self.path, self.type.value_field.name))

    def child(self, name: str) -> ArrowGroup | None:
        """A part of a struct by its name; a column that never has a value is as good as none."""
        indices = self.type.get_all_field_indices(name) if pa.types.is_struct(self.type) else []
        kind = self.type.field(indices[0]).type if indices else pa.null()
        return None if pa.types.is_null(kind) else ArrowGroup(kind, (*self.path, name))

    def leaves(self) -> list[tuple[str, ...]]:
        """The columns below it, each as the names from the top."""
        if self.is_list:
            return self.element.leaves()
        if self.is_leaf:
            return [self.path]
        return [leaf for field in self.type for leaf in ArrowGroup(field.type, (*self.path, field.name)).leaves()]


def next_group(group: Columns, segment: Segment) -> tuple[Step, Columns | None]:
    """Where a step leads from a group with ``value`` and ``typed_value``, and the group that it finds.

    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> group = ArrowGroup(pa.struct({"value": pa.binary(), "typed_value": typed}))
    >>> next_group(group, "a")[0], next_group(group, "b")[0], next_group(group.child("typed_value").child("a"), "c")[0]
    (<Step.FOUND: 1>, <Step.NOT_SHREDDED: 2>, <Step.MISSING: 3>)
    """
    typed = group.child("typed_value")
    if typed is not None and typed.is_list != isinstance(segment, str):
        below = typed.child(segment) if isinstance(segment, str) else typed.element
        if below is not None:
            return Step.FOUND, below
    return (Step.MISSING if group.child("value") is None else Step.NOT_SHREDDED), None


@dataclass(frozen=True, slots=True)
class PathEnd(Generic[Columns]):
    """Where a path ends in a schema."""

    group: Columns  # The group that answers it, or the last one on the way.
    step: Step  # `Step.FOUND` if `group` answers it, else where the rest of the path leads from there.
    is_repeated: bool  # Whether the way goes through a list.


def walk_path(group: Columns, path: VariantPath) -> PathEnd[Columns]:
    """Follow a path from the group of whole values."""
    is_repeated = False
    for segment in path.segments:
        step, below = next_group(group, segment)
        if below is None or below.is_leaf:  # A column in the place of a group: not what the specification says.
            return PathEnd(group, Step.NOT_SHREDDED if below else step, is_repeated)
        is_repeated = is_repeated or not isinstance(segment, str)
        group = below
    return PathEnd(group, Step.FOUND, is_repeated)
