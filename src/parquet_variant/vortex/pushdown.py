"""What a path needs of a stored column, and which part of a filter Vortex may apply itself.

Owns both as Vortex expressions. A filter that is pushed down may keep too many rows, never too few: it compares a typed
column with a literal of its own type, and keeps every row whose residual holds a value; `scan` applies the whole filter
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import import_variant, with_metadata, without_views
from parquet_variant.functions.extract_path import needed_columns
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import And, Compare, Or, Predicate
from parquet_variant.query.selection import Selected
from parquet_variant.schema.path_steps import ArrowGroup, Step, next_group, walk_path
from parquet_variant.vortex.library import vortex

__all__ = ["Part", "part_of", "pushed_filter", "storage_of_part"]

_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 in its own way: of doubles only what cannot depend on that is pushed down.
_FLOAT_OPS = ("=", "<", "<=")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a Variant column that answers a path.

    Parameters
    ----------
    levels
        The shredded fields on the way.
    only_value
        Whether of the last group only ``value`` is needed.
    has_metadata
        Whether bytes are read.
    has_value
        Whether the last group has a ``value`` at all.
    """

    levels: tuple[str, ...]
    only_value: bool
    has_metadata: bool
    has_value: bool

    def group(self, column: str | None) -> Any:
        """The last group, as an expression."""
        expr = vortex().expr
        found = expr.column(column)
        for name in self.levels:
            found = expr.get_item(name, expr.get_item("typed_value", found))
        return found

    def expression(self, column: str | None) -> Any:
        """What is read, as an expression: a struct, or the whole column."""
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
        if not pieces:  # nothing can be there: any column tells how many rows there are
            pieces["nothing"] = expr.is_null(expr.column(column))
        return expr.pack(pieces)

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole column."""
        return not self.levels and not self.only_value


def part_of(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> Part:
    """The part of a storage that a path needs.

    Examples
    --------
    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": typed})
    >>> part_of(storage, VariantPath.parse("$.a"), pa.int64())
    Part(levels=('a',), only_value=False, has_metadata=False, has_value=False)
    >>> part_of(storage, VariantPath.parse("$.b"), pa.int64())
    Part(levels=(), only_value=True, has_metadata=True, has_value=True)
    """
    group = ArrowGroup(storage)
    if group.child("typed_value") is None:
        return Part((), False, True, True)
    levels: list[str] = []
    for segment in path.segments:
        step, below = next_group(group, segment)
        has_value = group.child("value") is not None
        if below is None:
            return Part(tuple(levels), True, step is Step.NOT_SHREDDED, has_value)
        if not isinstance(segment, str):
            return Part(tuple(levels), False, _reads_bytes(storage, path, target), has_value)
        levels.append(segment)
        group = below
    return Part(tuple(levels), False, _reads_bytes(storage, path, target), group.child("value") is not None)


def _reads_bytes(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> bool:
    """Whether metadata is needed: for bytes on the way, or to make bytes of."""
    if target is None or pa.types.is_nested(target) or isinstance(target, pa.BaseExtensionType):
        return True
    columns = needed_columns(storage, path)
    return len(columns) != 1 or columns[0][-1] == "value"


def storage_of_part(part: Part, found: pa.StructArray) -> pa.StructArray:
    """A storage struct of what was read, with which `extract_path` gives what it gives of the whole column."""
    if part.is_whole:
        return import_variant(found)[0] if len(found) else found
    read = {field.name: found.field(index) for index, field in enumerate(found.type)}
    if part.only_value:
        group: dict[str, pa.Array] = {"value": read.get("value", pa.nulls(len(found), pa.binary()))}
    else:
        inner = read["group"]
        group = {field.name: column for field, column in zip(inner.type, inner.flatten(), strict=True)}
    for name in reversed(part.levels):
        child = pa.StructArray.from_arrays(list(group.values()), names=list(group))
        group = {"typed_value": pa.StructArray.from_arrays([child], names=[name])}
    if "metadata" in read:
        group = {"metadata": read["metadata"], **group}
    storage = pa.StructArray.from_arrays(list(group.values()), names=list(group))
    wanted = without_views(storage.type, large=False)
    return with_metadata(storage if wanted == storage.type else storage.cast(wanted))


# -- filters


def pushed_filter(
    predicate: Predicate, named: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """The part of a bound filter that Vortex may apply, as an expression; None if there is none."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        known = [part for part in parts if part is not None]
        found = known[0] if known else None
        for part in known[1:]:
            found = expr.and_(found, part)
        return found
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        if any(part is None for part in parts):
            return None
        found = parts[0]
        for part in parts[1:]:
            found = expr.or_(found, part)
        return found
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, named[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    if end.step is not Step.FOUND or end.is_repeated or typed is None:
        return None
    part = part_of(storage, selected.path, selected.type)
    literal = _literal(compare, typed.type, selected.type)
    if literal is None:
        return None
    place = part.group(column)
    found = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item("typed_value", place), literal)
    return expr.or_(found, expr.is_not_null(expr.get_item("value", place))) if part.has_value else found


def _literal(compare: Compare, stored: pa.DataType, asked: pa.DataType) -> Any | None:
    """The literal in the type of the stored column; None if a comparison there could mean something else."""
    library = vortex()
    value = compare.literal.as_py()
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(asked):
        bits = stored.bit_width
        if asked.bit_width < bits or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
        return library.expr.literal(library.int_(bits), value)
    if types.is_string(stored) and (types.is_string(asked) or types.is_large_string(asked)):
        return library.expr.literal(library.utf8(), value)
    if types.is_float64(stored) and types.is_float64(asked) and compare.op in _FLOAT_OPS and value == value and value:
        return library.expr.literal(library.float_(64), value)
    return None
