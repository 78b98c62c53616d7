"""Paths through shredded columns: the group that holds the value of a path, or the bytes that may hold it.

Owns the step from a group to the group of a field or element, over an interface that nodes of a Parquet footer and
Arrow types implement. By the specification ("Objects", "Arrays"), a shredded field is never stored in the ``value``
above it. Leaves the drafts, which keep a value in several places, to their readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, Protocol, Self, TypeVar

import pyarrow as pa

from parquet_variant.layouts.storage_shape import is_binary, is_list
from parquet_variant.types.path import Segment, VariantPath


class Step(Enum):
    """The result of a step of a path."""

    FOUND = auto()  # The value has its own group of columns.
    NOT_SHREDDED = auto()  # The value may be in the bytes of the group's ``value``.
    MISSING = auto()  # The value does not exist: the group has no ``value`` column.


class ColumnGroup(Protocol):
    """A column or group of columns: a node of a Parquet footer, or an Arrow type."""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a column, not a group."""

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""

    @property
    def is_binary(self) -> bool:
        """Whether it is a column of bytes."""

    @property
    def element(self) -> Self:
        """The element of a list."""

    @property
    def fields(self) -> Mapping[str, Self]:
        """The fields of a group by name; empty for anything else."""

    @property
    def field_count(self) -> int:
        """The number of fields, including fields of the same name."""

    def child(self, name: str) -> Self | None:
        """Return a field of a group by name, or None."""


Columns = TypeVar("Columns", bound=ColumnGroup)


@dataclass(frozen=True, slots=True)
class ArrowGroup:
    """An Arrow type, and the names on the path to it from the top."""

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
    def field_count(self) -> int:
        """The number of fields of a struct, including fields of the same name."""
        return int(self.type.num_fields) if pa.types.is_struct(self.type) else 0

    @property
    def element(self) -> ArrowGroup:
        """The element of a list."""
        return ArrowGroup(self.type.value_type, (*self.path, self.type.value_field.name))

    def child(self, name: str) -> ArrowGroup | None:
        """Return a field of a struct by name; None if it does not exist or is a column of nulls only."""
        indices = self.type.get_all_field_indices(name) if pa.types.is_struct(self.type) else []
        kind = self.type.field(indices[0]).type if indices else pa.null()
        return None if pa.types.is_null(kind) else ArrowGroup(kind, (*self.path, name))

    def leaves(self) -> list[tuple[str, ...]]:
        """Return the leaf columns inside it, each as the names from the top."""
        if self.is_list:
            return self.element.leaves()
        if self.is_leaf:
            return [self.path]
        return [leaf for field in self.type for leaf in ArrowGroup(field.type, (*self.path, field.name)).leaves()]


def next_group(group: Columns, segment: Segment) -> tuple[Step, Columns | None]:
    """Return the result of a step from a group with ``value`` and ``typed_value``, and the group of the value if it is
    found.

    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> group = ArrowGroup(pa.struct({"value": pa.binary(), "typed_value": typed}))
    >>> next_group(group, "a")[0], next_group(group, "b")[0], next_group(group.child("typed_value").child("a"), "c")[0]
    (<Step.FOUND: 1>, <Step.NOT_SHREDDED: 2>, <Step.MISSING: 3>)
    """
    typed = group.child("typed_value")
    if typed is not None and typed.is_list != isinstance(segment, str):
        group_of_value = typed.child(segment) if isinstance(segment, str) else typed.element
        if group_of_value is not None:
            return Step.FOUND, group_of_value
    return (Step.MISSING if group.child("value") is None else Step.NOT_SHREDDED), None


@dataclass(frozen=True, slots=True)
class PathEnd(Generic[Columns]):
    """The end of a path in a schema."""

    group: Columns  # The group of the value, or the last group that the path reaches.
    step: Step  # `Step.FOUND` if `group` is the group of the value, else the result of the next step from `group`.
    is_repeated: bool  # Whether the path passes through a list.


def walk_path(group: Columns, path: VariantPath) -> PathEnd[Columns]:
    """Follow a path from the group of a Variant column."""
    is_repeated = False
    for segment in path.segments:
        step, child = next_group(group, segment)
        if child is None or child.is_leaf:  # a column in place of a group, which the specification does not allow
            return PathEnd(group, Step.NOT_SHREDDED if child else step, is_repeated)
        is_repeated = is_repeated or not isinstance(segment, str)
        group = child
    return PathEnd(group, Step.FOUND, is_repeated)
