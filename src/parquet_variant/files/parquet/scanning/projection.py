"""The leaf columns that a path of a Variant column needs, and what their statistics prove about the path as a type.

Owns which columns the end of a path needs, which of them a row group does not need, and the rules that keep pruning
correct: bounds of ``typed_value`` apply only if no residual can hold a value of the path, and only through casts that
preserve order. Owns also what files prove for every row: the only type of a path, and the keys that occur. Leaves the
facts of a file to `format.facts`, the walk to `layouts.layout`, and the evaluation of filters to `query.prune`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.arrow_schema import only_leaf
from parquet_variant.files.parquet.format.columns import VariantColumn, final_form
from parquet_variant.files.parquet.format.facts import leaf_type, only_nulls
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.reading.read import variant_in
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.layouts.layout import Step, walk_path
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, cast_keeps_order, is_exact
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

# The statistics of a leaf column, in a row group or file.
Statistics: TypeAlias = Callable[[SchemaNode], LeafStatistics]


class PathColumns(Record, frozen=False):
    """The columns that can hold values of a path."""

    group: SchemaNode  # The schema group where the path ends, or the last one that it reaches.
    reached: bool  # Whether the path ends at `group`; otherwise the remaining steps are in its residual.
    target: pa.DataType | None  # The requested type; None for a Variant.
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

    @property
    def is_scalar(self) -> bool:
        """Whether the requested type is scalar: Variant null is NULL then."""
        return self.target is not None and not pa.types.is_nested(self.target)

    def needed(self, statistics: Statistics) -> list[SchemaNode] | None:
        """Return the leaves to read in a row group; None if the path is null in every row."""
        if self.needs_all:
            return [*self.residuals, *self.typed, *([self.metadata] if self.metadata else [])]
        nulls = self.is_scalar and self.metadata is not None  # in a draft, a Variant null next to a value is a conflict
        residuals = [leaf for leaf in self.residuals if not only_nulls(statistics(leaf), variant_nulls=nulls)]
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
        with_metadata = self.metadata is not None and (residuals or not self.is_scalar)
        return [*residuals, *typed, *([self.metadata] if with_metadata and self.metadata else [])]


def columns_of_path(column: VariantColumn, path: VariantPath, target: pa.DataType | None) -> PathColumns:
    """Return the leaf columns that can hold values of `path`, requested as an Arrow type (None for a Variant).

    Spec, "Objects": readers can assume that a value is not an object if ``typed_value`` is null, and need not read
    ``value`` if ``typed_value`` has the field; "Arrays": an array is never in ``value`` next to a typed list. So only
    ``typed_value`` of the levels above the end of the path matters.
    """
    if column.node.is_leaf:  # JSON text
        return PathColumns(column.node, False, target, typed=[column.node], needs_all=True)
    group, metadata = final_form(column), column.node.child("metadata")
    end = walk_path(group, path)
    if column.layout not in ("unshredded", "final"):
        if column.layout == "draft-object":
            # Both layouts store a field that the schema has only in its own group, and an array only in its list.
            is_final = all(sum(c.name == "typed_value" for c in node.children) < 2 for node in group.walk())
        else:
            # A path with an ``untyped_value`` is not in the ``value`` at the top. Other paths need the whole column.
            parts = end.group.children if end.step is Step.FOUND and not end.is_repeated else []
            is_final = all(part.is_leaf for part in parts) and any(
                part.path[-1] == "untyped_value" and part.is_binary for part in parts
            )
        if not is_final:
            leaves = [leaf for leaf in column.node.leaves() if leaf is not metadata]
            return PathColumns(column.node, False, target, typed=leaves, metadata=metadata, needs_all=True)
        metadata = None
    columns = PathColumns(end.group, end.step is Step.FOUND, target, end.is_repeated, metadata=metadata)
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


_ONLY_NULL = ColumnStatistics(may_be_null=True, may_be_value=False, may_be_nan=False)


def path_statistics(columns: PathColumns, statistics: Statistics, *, hidden_nan: bool) -> ColumnStatistics:
    """Return statistics of the values of a path in a row group or file.

    Failed casts are null. With `hidden_nan`, a float column may hold a NaN outside its bounds.
    """
    target = columns.target
    if columns.repeated or columns.needs_all or not columns.is_scalar:
        if columns.needed(statistics) is None:
            return _ONLY_NULL
        typed, residual = columns.group.child("typed_value"), columns.group.child("value")
        is_text = target is None or pa.types.is_string(target) or pa.types.is_large_string(target)
        # A path that holds only objects or arrays is null for every scalar type except string.
        is_nested = columns.reached and not columns.repeated and typed is not None and typed.leaf is None
        if not columns.is_scalar or is_text or not is_nested:
            return UNKNOWN
        if residual is not None and not only_nulls(statistics(residual), variant_nulls=True):
            return UNKNOWN
        return _ONLY_NULL
    if not all(only_nulls(statistics(leaf), variant_nulls=True) for leaf in columns.residuals):
        return UNKNOWN
    leaf = columns.primitive
    leaf_values = None if leaf is None else statistics(leaf)
    if leaf is None or leaf_values is None or leaf_values.all_null:
        return _ONLY_NULL
    stored = leaf_type(leaf)
    if stored is None or target is None:
        return UNKNOWN
    return scalar_statistics(leaf_values, stored, target, hidden_nan=hidden_nan)


def scalar_statistics(
    stored_statistics: LeafStatistics, stored: pa.DataType, target: pa.DataType, *, hidden_nan: bool
) -> ColumnStatistics:
    """Return statistics of stored scalars that are cast to another type; failed casts are null."""
    families = {_family(target), "date" if pa.types.is_date(target) else "time" if pa.types.is_time(target) else ""}
    if stored_statistics.all_null or not families.isdisjoint(_IMPOSSIBLE_CASTS.get(_family(stored), ())):
        return _ONLY_NULL
    if not cast_keeps_order(stored, target):
        return UNKNOWN
    lower = _cast(stored_statistics.lower, stored, target, -math.inf)
    upper = _cast(stored_statistics.upper, stored, target, math.inf)
    # A failed cast is null; a cast that succeeds for both bounds succeeds for every value between them.
    never_fails = stored == target or pa.types.is_floating(target) or (lower is not None and upper is not None)
    return ColumnStatistics(
        lower=lower if never_fails else None,
        upper=upper if never_fails else None,
        may_be_null=stored_statistics.nulls != 0 or not never_fails,
        may_be_nan=hidden_nan and pa.types.is_floating(stored),
    )


def constant_statistics(value: pa.Scalar) -> ColumnStatistics:
    """Return statistics of a column that has one value in every row."""
    if not value.is_valid:
        return _ONLY_NULL
    is_nan = pa.types.is_floating(value.type) and math.isnan(value.as_py())
    bound = None if is_nan else value
    return ColumnStatistics(bound, bound, may_be_null=False, may_be_nan=is_nan)


def _cast(bound: pa.Scalar | None, stored: pa.DataType, target: pa.DataType, away: float) -> pa.Scalar | None:
    """Return a bound as the target type (double for float); None if it does not fit."""
    if bound is None:
        return None
    if pa.types.is_floating(target):
        value = float(bound.as_py())
        if pa.types.is_decimal(stored):
            value = math.nextafter(value, away)  # Division by a power of ten may be off by the last bit.
        if pa.types.is_float32(target):
            value = float(np.nextafter(np.float32(value), np.float32(away)))
        return scalar(value, pa.float64())
    try:
        if pa.types.is_decimal(stored) and not pa.types.is_decimal(target):
            return scalar(int(bound.as_py()), target)
        return bound if stored == target else pc.cast(bound, target)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


# Type families between which every cast is null.
_IMPOSSIBLE_CASTS = {
    "bool": ("temporal", "binary", "uuid"),
    "number": ("binary", "uuid", "date", "time"),
    "temporal": ("bool", "binary", "uuid"),
    "binary": ("bool", "number", "temporal", "uuid"),
    "uuid": ("bool", "number", "temporal"),
}


def _family(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "bool"
    if is_exact(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "temporal"
    if kind == pa.uuid():
        return "uuid"
    return "binary" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "text"


def _in_files(
    sources: Iterable[ParquetSource], column: str | None, path: VariantPath
) -> Iterator[tuple[OpenFile, VariantColumn, PathColumns]]:
    """Yield each file with a Variant column while it is open, the column, and the columns of a path."""
    for source in sources:
        with open_file(source) as file:
            if (variant := variant_in(file, column)) is not None:
                yield file, variant, columns_of_path(variant, path, None)


def common_type(
    sources: Iterable[ParquetSource], column: str, path: VariantPath, *, nulls: bool = True
) -> pa.DataType | None:
    """Return the Arrow type of every value at a path, or None if the footers do not prove that there is one.

    They prove it where each file shreds the path as that type, and no residual holds a value of another type.
    `nulls`: whether values may also be Variant null.
    """
    common: pa.DataType | None = None
    for file, _, columns in _in_files(sources, column, path):
        leaf = columns.primitive
        if leaf is None or columns.needs_all:
            return None
        if not all(file.facts.is_empty(residual, variant_nulls=nulls) for residual in columns.residuals):
            return None
        file_type = leaf_type(leaf)
        if file_type is None or common not in (None, file_type):
            return None
        common = file_type
    return common


def leaf_of_elements(
    sources: Iterable[ParquetSource], column: str, path: VariantPath
) -> tuple[VariantPath, pa.DataType] | None:
    """Return a typed path inside the elements of the arrays at a path, if the footers prove that all values are arrays.

    The list of its values has one entry per element. Of several such paths, the one with the smallest column is chosen.
    """
    leaves: dict[VariantPath, pa.DataType] | None = None
    for file, variant, columns in _in_files(sources, column, path):
        sizes: dict[VariantPath, tuple[int, pa.DataType]] = {}
        facts, typed, residual = file.facts, columns.group.child("typed_value"), columns.group.child("value")
        if not columns.reached or columns.repeated or typed is None or typed.is_leaf or not typed.is_list:
            return None
        if residual is not None and not facts.is_empty(residual):
            return None
        inner = typed.element.child("typed_value")
        fields = {} if inner is None or inner.is_leaf else inner.fields
        for candidate in (path / WILDCARD, *(path / WILDCARD / key for key in fields)):
            part = columns_of_path(variant, candidate, None)
            kind = None if part.primitive is None else leaf_type(part.primitive)
            if part.primitive is not None and kind is not None and all(map(facts.is_empty, part.residuals)):
                sizes[candidate] = facts.size([part.primitive]), kind
        of_file = {candidate: sizes[candidate][1] for candidate in sorted(sizes, key=lambda key: sizes[key][0])}
        leaves = of_file if leaves is None else {p: kind for p, kind in leaves.items() if of_file.get(p) == kind}
        if not leaves:
            return None
    return next(iter(leaves.items())) if leaves else None


def residual_objects(
    sources: Iterable[ParquetSource], column: str, path: VariantPath
) -> list[tuple[int, Callable[[], pa.StructArray]]] | None:
    """Return the row groups that may have fields of objects at a shredded path outside of the typed columns.

    Each is the compressed size of the residual values, and a function that reads them as unshredded Variants. None if
    a file does not shred the path as an object.
    """

    def residual_values(source: ParquetSource, number: int, *nodes: SchemaNode) -> pa.StructArray:
        with open_file(source) as file:
            parts = [_leaf_values(file, node, number).cast(pa.binary()) for node in nodes]
        return pa.StructArray.from_arrays(parts, ["metadata", "value"], mask=parts[1].is_null())

    groups: list[tuple[int, Callable[[], pa.StructArray]]] = []
    for file, _, columns in _in_files(sources, column, path):
        typed, value = columns.group.child("typed_value"), columns.group.child("value")
        if not columns.reached or columns.repeated or columns.metadata is None or typed is None:
            return None
        for number in file.facts.groups if value is not None else ():
            assert value is not None
            if not file.facts.is_empty(value, variant_nulls=True, groups=[number]):
                read = partial(residual_values, file.source, number, columns.metadata, value)
                groups.append((file.facts.size([value], [number]), read))
    return groups


def _leaf_values(file: OpenFile, leaf: SchemaNode, group: int) -> pa.Array:
    return only_leaf(one_chunk(file.read_leaves([group], [leaf.leaf or 0]).column(0)))


def keys_of_files(sources: Sequence[ParquetSource], column: str | None) -> frozenset[str]:
    """Return every key of the objects in a Variant column, from shredded columns and metadata dictionaries."""
    keys: set[str] = set()
    metadata: set[bytes] = set()
    for file, variant, _ in _in_files(sources, column, VariantPath()):
        keys |= {node.name for node in variant.node.walk()}  # a key of a typed object needs no dictionary entry
        leaf = variant.node.child("metadata")
        if leaf is not None and leaf.leaf is not None:
            for number in file.facts.groups:
                entries = _leaf_values(file, leaf, number)
                values = entries.dictionary if pa.types.is_dictionary(entries.type) else entries.unique()
                metadata |= {bytes(value) for value in values.to_pylist() if value is not None}
    for dictionary in metadata:
        try:
            keys.update(decode_metadata(dictionary))
        except VariantError:  # whoever reads the row reports it
            continue
    return frozenset(keys)
