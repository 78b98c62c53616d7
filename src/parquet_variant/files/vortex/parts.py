"""The parts of a stored column that a path needs, in each layout.

Owns the Vortex expression that reads a part, converting its result, and the part of a filter that Vortex may apply: it
may keep too many rows, never too few, because `scan` applies the whole filter again. `ops.columns.extract_path`
extracts the values at the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import import_variant, with_metadata, without_views
from parquet_variant.arrays.parts import columns_of, stored_columns
from parquet_variant.files.vortex.json_columns import compress_json
from parquet_variant.files.vortex.library import vortex
from parquet_variant.layouts.layout import Step, next_group, walk_path
from parquet_variant.layouts.storages import ArrowGroup
from parquet_variant.ops.columns.extract_path import columns_of_path
from parquet_variant.query.predicate import And, Compare, In, Or, Predicate, joined
from parquet_variant.query.selection import Selected
from parquet_variant.types.path import VariantPath


@dataclass(frozen=True, slots=True)
class TypedPart:
    """A typed field inside Vortex's own type, at whose path no value is in bytes."""

    levels: tuple[str, ...]  # The path.
    type: pa.DataType  # The column's type.

    def expression(self, column: str | None) -> Any:
        """See `StoragePart.expression`."""
        expr = vortex().expr
        return expr.variant_get(expr.column(column), list(self.levels), vortex().DType.from_arrow(self.type))

    def column(self, array: pa.Array) -> pa.StructArray:
        """See `StoragePart.column`."""
        return pa.StructArray.from_arrays([array.cast(self.type)], names=["typed_value"])


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A whole column of JSON text, which is parsed to Variants."""

    levels: ClassVar[tuple[str, ...]] = ()

    def expression(self, column: str | None) -> Any:
        """See `StoragePart.expression`."""
        return vortex().expr.column(column)

    def column(self, array: pa.Array) -> pa.StructArray:
        """See `StoragePart.column`."""
        return compress_json(array, shred=False).storage


@dataclass(frozen=True, slots=True)
class NestedPart:
    """A Variant inside of structs, read with all fields: vortex-data 0.93 crashes if it reads the Variant alone."""

    levels: ClassVar[tuple[str, ...]] = ()
    place: tuple[str, ...]

    def expression(self, column: str | None) -> Any:
        """See `StoragePart.expression`."""
        return vortex().expr.column(self.place[0])

    def column(self, array: pa.Array) -> pa.StructArray:
        """See `StoragePart.column`."""
        for name in self.place[1:]:
            array = columns_of(array)[name]
        return import_variant(array)[0] if len(array) else array


@dataclass(frozen=True, slots=True)
class StoragePart:
    """A part of a storage struct, or the whole struct."""

    levels: tuple[str, ...]  # The fields along the path.
    only_value: bool  # True if only ``value`` of the last group is needed.
    has_metadata: bool  # True if bytes are read.
    has_value: bool  # True if the last group has a ``value`` column.

    def group(self, column: str | None) -> Any:
        """Return the expression for the last group."""
        expr = vortex().expr
        group = expr.column(column)
        for name in self.levels:
            group = expr.get_item(name, expr.get_item("typed_value", group))
        return group

    def expression(self, column: str | None) -> Any:
        """Return the expression that reads the part: a struct, or the whole column."""
        expr = vortex().expr
        if self.is_whole:
            return expr.column(column)
        group = self.group(column)
        pieces = {}
        if self.has_metadata:
            pieces["metadata"] = expr.get_item("metadata", expr.column(column))
        if not self.only_value:
            pieces["group"] = group
        elif self.has_value:
            pieces["value"] = expr.get_item("value", group)
        if not pieces:  # no row has a value, but a column is needed to know the number of rows
            pieces["nothing"] = expr.is_null(expr.column(column))
        return expr.pack(pieces)

    @property
    def is_whole(self) -> bool:
        """True if the part is the whole column."""
        return not self.levels and not self.only_value

    def column(self, array: pa.Array) -> pa.StructArray:
        """Return a storage struct for which `extract_path` returns the same as for the whole column."""
        if self.is_whole:
            return import_variant(array)[0] if len(array) else array
        read = stored_columns(array)
        if self.only_value:
            group: dict[str, pa.Array] = {"value": read.get("value", pa.nulls(len(array), pa.binary()))}
        else:
            inner = read["group"]
            group = columns_of(inner)
        for name in reversed(self.levels):
            child = pa.StructArray.from_arrays(list(group.values()), names=list(group))
            group = {"typed_value": pa.StructArray.from_arrays([child], names=[name])}
        if "metadata" in read:
            group = {"metadata": read["metadata"], **group}
        storage = pa.StructArray.from_arrays(list(group.values()), names=list(group))
        kind = without_views(storage.type, large=False)
        return with_metadata(storage if kind == storage.type else storage.cast(kind))


def part_of(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> StoragePart:
    """Return the part of a stored column that a path needs as a type (None for a Variant).

    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": typed})
    >>> part_of(storage, VariantPath.parse("$.a"), pa.int64())
    StoragePart(levels=('a',), only_value=False, has_metadata=False, has_value=False)
    >>> part_of(storage, VariantPath.parse("$.b"), pa.int64())
    StoragePart(levels=(), only_value=True, has_metadata=True, has_value=True)
    """
    group = ArrowGroup(storage)
    if group.child("typed_value") is None:
        return StoragePart((), False, True, True)
    levels: list[str] = []
    for segment in path.segments:
        step, child_group = next_group(group, segment)
        has_value = group.child("value") is not None
        if child_group is None:
            return StoragePart(tuple(levels), True, step is Step.NOT_SHREDDED, has_value)
        if not isinstance(segment, str):
            return StoragePart(tuple(levels), False, _reads_bytes(storage, path, target), has_value)
        levels.append(segment)
        group = child_group
    return StoragePart(tuple(levels), False, _reads_bytes(storage, path, target), group.child("value") is not None)


def _reads_bytes(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> bool:
    """Return True if metadata is needed: for bytes along the path, or to encode the result."""
    if target is None or pa.types.is_nested(target) or isinstance(target, pa.BaseExtensionType):
        return True
    columns = columns_of_path(storage, path)
    return len(columns) != 1 or columns[0][-1] == "value"


# A part of a Variant column that answers a path.
Part: TypeAlias = TypedPart | JsonPart | NestedPart | StoragePart


# -- filters

_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 differently: comparisons of doubles that depend on this order are not pushed down.
_MOST_VALUES = 64  # A longer IN list is not pushed down: vortex would evaluate an expression per value.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, by_name: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """Return the part of a bound filter that Vortex may apply, as an expression; None if there is no such part."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        pushed = [part for part in parts if part is not None]
        return reduce(expr.and_, pushed) if pushed else None
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        return None if any(part is None for part in parts) else reduce(expr.or_, parts)
    if isinstance(predicate, In) and len(predicate.values) <= _MOST_VALUES:
        equals = [Compare(predicate.column, "=", literal) for literal in predicate.values]
        return pushed_filter(joined(Or, equals), by_name, column, storage)
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, by_name[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    """Return the expression for rows whose typed value satisfies the comparison, or whose value is not typed."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = part_of(storage, selected.path, selected.type)
    assert selected.path is not None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    kind = None if end.step is not Step.FOUND or end.is_repeated or typed is None else typed.type
    literal = None if kind is None else _literal(compare, kind, selected.type)
    if literal is None:
        return None
    group = part.group(column)
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item("typed_value", group), literal)
    return expr.or_(expr.is_not_null(expr.get_item("value", group)), comparison) if part.has_value else comparison


def _literal(compare: Compare, stored: pa.DataType, requested: pa.DataType) -> Any | None:
    """Return the literal in the type of the stored column; None if the comparison could differ in that type."""
    library = vortex()
    value = compare.literal.as_py()
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(requested):
        bits = stored.bit_width
        if requested.bit_width < bits or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
        return library.expr.literal(library.int_(bits), value)
    if types.is_string(stored) and (types.is_string(requested) or types.is_large_string(requested)):
        return library.expr.literal(library.utf8(), value)
    if (
        types.is_float64(stored)
        and types.is_float64(requested)
        and compare.op in _FLOAT_OPS
        and value == value
        and value
    ):
        return library.expr.literal(library.float_(64), value)
    return None
