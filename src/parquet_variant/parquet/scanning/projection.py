"""Which leaf columns of a file answer a path into a Variant column.

Owns which columns the end of a path needs, and which of them a row group can do without. Leaves the way there to
`schema.path_steps`, what the values say to `functions.variant_get`, and statistics themselves to
`statistics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.path import VariantPath
from parquet_variant.schema.path_steps import Step, walk_path
from parquet_variant.shredding.leaf_statistics import LeafStatistics

_VARIANT_NULL = b"\x00"


@dataclass(slots=True)
class PathColumns:
    """The columns that can hold an answer to a path."""

    group: SchemaNode  # The schema group where the path ends, or the last one that it reaches.
    reached: bool  # Whether the path ends at `group`; otherwise its rest lies inside the residual there.
    repeated: bool = False  # Whether the path goes through a list.
    residuals: list[SchemaNode] = field(default_factory=list)  # The ``value`` leaves in which an answer may be.
    typed: list[SchemaNode] = field(default_factory=list)  # The leaves of typed columns in which an answer may be.
    metadata: SchemaNode | None = None  # The dictionary column, which residuals need; None in the draft that has none.
    whole: bool = False  # Every leaf is needed: the layout is a draft.
    # Whether the whole value is asked for as a Variant: one without parts is Variant null there, and no null.
    never_missing: bool = False
    # Whether the answer is a list or struct of parts: then some leaf must be read to tell how many there are.
    shaped: bool = False

    @property
    def primitive(self) -> SchemaNode | None:
        """The typed leaf at the end of the path, if it has a primitive type."""
        typed = self.group.child("typed_value")
        return typed if self.reached and typed is not None and typed.leaf is not None else None

    def needed(self, statistics: Callable[[SchemaNode], LeafStatistics], *, scalar: bool) -> list[SchemaNode] | None:
        """The leaves to read in a part of the file; None if every row is certainly null there.

        `statistics`: what is known of a leaf in that part.
        `scalar`: whether a type is asked for of which Variant null is no value: then residuals that hold nothing but
          Variant nulls are not read.
        """
        if self.whole:
            return [*self.residuals, *self.typed, *([self.metadata] if self.metadata else [])]
        residuals = [leaf for leaf in self.residuals if not only_nulls(statistics(leaf), variant_nulls=scalar)]
        typed = self.typed
        if self.repeated or self.shaped:
            residuals = residuals if typed else self.residuals
        elif self.primitive is not None and statistics(self.primitive).all_null:
            typed = []
        if not residuals and not typed:
            if not self.never_missing:
                return None
            residuals, typed = self.residuals, self.typed
        # A typed object or list has no names of its own in the dictionary unless a Variant is to be made of it.
        with_metadata = self.metadata is not None and (residuals or not scalar)
        return [*residuals, *typed, *([self.metadata] if with_metadata and self.metadata else [])]


def only_nulls(known: LeafStatistics, *, variant_nulls: bool) -> bool:
    """Whether it is certain that a residual column holds nothing, or (if allowed) nothing but Variant nulls."""
    if known.all_null:
        return True
    bounds = (known.lower, known.upper)
    return variant_nulls and all(bound is not None and bound.as_py() == _VARIANT_NULL for bound in bounds)


def columns_of_path(column: VariantColumn, path: VariantPath, target: pa.DataType | None) -> PathColumns:
    """The leaf columns that can hold an answer to `path`, asked for as an Arrow type (None for a Variant).

    Spec, "Objects": readers can assume that a value is not an object if ``typed_value`` is null, and need not read
    ``value`` if ``typed_value`` has the field; "Arrays": an array is never in ``value`` beside a typed list. So of the
    levels above the path's end only ``typed_value`` matters.
    """
    group = column.node
    metadata = group.child("metadata")
    if column.layout not in ("unshredded", "final"):
        # The drafts keep parts of one value in several places: their readers get the whole column.
        leaves = [leaf for leaf in group.leaves() if leaf is not metadata]
        return PathColumns(group, False, typed=leaves, metadata=metadata, whole=True)
    end = walk_path(group, path)
    columns = PathColumns(end.group, end.step is Step.FOUND, end.is_repeated, metadata=metadata)
    columns.never_missing = end.group is group and columns.reached and target in (None, VARIANT_STORAGE)
    if columns.reached:
        _add_end(end.group, target, columns)
    elif (value := end.group.child("value")) is not None:
        columns.residuals.append(value)
    return columns


def _add_end(group: SchemaNode, target: pa.DataType | None, columns: PathColumns) -> None:
    """Add the columns at the end of a path: of a struct or list that is asked for, those of its parts."""
    value, typed = group.child("value"), group.child("typed_value")
    if value is not None:
        columns.residuals.append(value)
    if typed is None:
        return
    if typed.leaf is not None:
        columns.typed.append(typed)
    elif typed.is_list and target is not None and pa.types.is_list(target):
        columns.shaped = True
        _add_end(typed.element, target.value_type, columns)
    elif not typed.is_list and target is not None and pa.types.is_struct(target) and target != VARIANT_STORAGE:
        columns.shaped = True
        before = len(columns.residuals) + len(columns.typed)
        for part in target:
            below = typed.child(part.name)
            if below is not None and below.leaf is None:
                _add_end(below, part.type, columns)
        if before == len(columns.residuals) + len(columns.typed):  # Nothing else tells objects from other values.
            columns.typed.append(next(iter(typed.leaves())))
    else:
        columns.whole = True
        for leaf in typed.leaves():
            # Below a typed object or list, `value` leaves are residuals of the parts.
            is_residual = leaf.name == "value" and leaf.path[-2] != "typed_value"
            (columns.residuals if is_residual else columns.typed).append(leaf)
