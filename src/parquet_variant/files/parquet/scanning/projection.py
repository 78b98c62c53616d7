"""The leaf columns of a file that are needed to extract a path from a Variant column.

Owns which columns the end of a path needs, and which of these columns a row group does not need. Leaves the walk to
the end of the path to `layouts.path_steps`, the extraction of values to `compute`, and reading statistics to
`format.statistics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from parquet_variant.encoding.metadata import NULL_VALUE
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.inference.leaf_statistics import LeafStatistics
from parquet_variant.layouts.path_steps import Step, walk_path
from parquet_variant.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE


@dataclass(slots=True)
class PathColumns:
    """The columns that can hold values of a path."""

    group: SchemaNode  # The schema group where the path ends, or the last one that it reaches.
    reached: bool  # Whether the path ends at `group`; otherwise the remaining steps are in its residual.
    repeated: bool = False  # Whether the path passes through a list.
    residuals: list[SchemaNode] = field(default_factory=list)  # ``value`` leaves that may hold values of the path.
    typed: list[SchemaNode] = field(default_factory=list)  # Leaves of typed columns that may hold values of it.
    metadata: SchemaNode | None = None  # The dictionary that residuals need; None in a draft.
    needs_all: bool = False  # Whether every leaf is needed, as in the layouts of the drafts.
    # Whether the whole value is requested as a Variant: a value without parts is then Variant null, not NULL.
    never_missing: bool = False
    # Whether the result is a list or struct: then a leaf must be read to count elements and present objects.
    shaped: bool = False

    @property
    def primitive(self) -> SchemaNode | None:
        """The typed leaf at the end of the path; None if its type is not primitive."""
        typed = self.group.child("typed_value")
        return typed if self.reached and typed is not None and typed.leaf is not None else None

    def needed(self, statistics: Callable[[SchemaNode], LeafStatistics], *, scalar: bool) -> list[SchemaNode] | None:
        """Return the leaves to read in a row group; None if the path is null in every row.

        `statistics`: returns the statistics of a leaf in the row group.
        `scalar`: whether the requested type is scalar: Variant null is NULL then, so residuals that contain only
          Variant nulls are not read.
        """
        if self.needs_all:
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
        # The names in the dictionary are needed for residuals, and to build a Variant from a typed object or list.
        with_metadata = self.metadata is not None and (residuals or not scalar)
        return [*residuals, *typed, *([self.metadata] if with_metadata and self.metadata else [])]


def only_nulls(residual: LeafStatistics, *, variant_nulls: bool) -> bool:
    """Return whether a residual column certainly has no value, or (with `variant_nulls`) only Variant nulls."""
    if residual.all_null:
        return True
    bounds = (residual.lower, residual.upper)
    return variant_nulls and all(bound is not None and bound.as_py() == NULL_VALUE for bound in bounds)


def columns_of_path(column: VariantColumn, path: VariantPath, target: pa.DataType | None) -> PathColumns:
    """Return the leaf columns that can hold values of `path`, requested as an Arrow type (None for a Variant).

    Spec, "Objects": readers can assume that a value is not an object if ``typed_value`` is null, and need not read
    ``value`` if ``typed_value`` has the field; "Arrays": an array is never in ``value`` next to a typed list. So only
    ``typed_value`` of the levels above the end of the path matters.
    """
    group = column.node
    metadata = group.child("metadata")
    if column.layout not in ("unshredded", "final"):
        # Drafts store parts of a value in several places, so the whole column is read.
        leaves = [leaf for leaf in group.leaves() if leaf is not metadata]
        return PathColumns(group, False, typed=leaves, metadata=metadata, needs_all=True)
    end = walk_path(group, path)
    columns = PathColumns(end.group, end.step is Step.FOUND, end.is_repeated, metadata=metadata)
    columns.never_missing = end.group is group and columns.reached and target in (None, VARIANT_STORAGE)
    if columns.reached:
        _add_end(end.group, target, columns)
    elif (value := end.group.child("value")) is not None:
        columns.residuals.append(value)
    return columns


def _add_end(group: SchemaNode, target: pa.DataType | None, columns: PathColumns) -> None:
    """Add the columns at the end of a path; for a requested struct or list, the columns of its parts."""
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
        count = len(columns.residuals) + len(columns.typed)
        for part in target:
            child = typed.child(part.name)
            if child is not None and child.leaf is None:
                _add_end(child, part.type, columns)
        if count == len(columns.residuals) + len(columns.typed):  # One leaf must show which values are objects.
            columns.typed.append(next(iter(typed.leaves())))
    else:
        columns.needs_all = True
        for leaf in typed.leaves():
            # `value` leaves inside a typed object or list are residuals of its parts.
            is_residual = leaf.name == "value" and leaf.path[-2] != "typed_value"
            (columns.residuals if is_residual else columns.typed).append(leaf)
