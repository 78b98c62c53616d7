"""Which part of a filter Vortex may apply itself, and so skip zones of the file by.

Owns it as a Vortex expression. It may keep too many rows, never too few: it compares a typed column with a literal of
its own type, and keeps every row with a value that is elsewhere; `scan` applies the whole filter again.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa

from parquet_variant.query.predicate import And, Compare, Or, Predicate
from parquet_variant.query.selection import Selected
from parquet_variant.schema.path_steps import ArrowGroup, Step, walk_path
from parquet_variant.vortex.files.library import vortex
from parquet_variant.vortex.scanning.parts import ColumnarPart, group_of

_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 in its own way: of doubles only what cannot depend on that is pushed down.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, named: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """The part of a bound filter that Vortex may apply, as an expression; None if there is none."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        known = [part for part in parts if part is not None]
        return reduce(expr.and_, known) if known else None
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        return None if any(part is None for part in parts) else reduce(expr.or_, parts)
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, named[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    """The rows of which the typed column compares so, and those that have a value elsewhere."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = group_of(storage, selected.path, selected.type)
    if isinstance(part, ColumnarPart):
        typed, kind, others = _columnar_columns(part, selected, storage)
    else:
        typed, kind, others = "typed_value", _typed_value(selected, storage), ["value"] if part.has_value else []
    literal = None if kind is None else _literal(compare, kind, selected.type)
    if literal is None:
        return None
    group = part.group(column)
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item(typed, group), literal)
    return reduce(expr.or_, [expr.is_not_null(expr.get_item(name, group)) for name in others], comparison)


def _typed_value(selected: Selected, storage: pa.StructType) -> pa.DataType | None:
    assert selected.path is not None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    return None if end.step is not Step.FOUND or end.is_repeated or typed is None else typed.type


def _columnar_columns(
    part: ColumnarPart, selected: Selected, storage: pa.StructType
) -> tuple[str, pa.DataType | None, list[str]]:
    """The column of the type that is asked for with its type, and the others that may have values."""
    assert selected.path is not None
    kinds = {field.name: field.type for field in part.kind(storage) if field.name in part.names}
    family = "integer" if pa.types.is_integer(selected.type) else str(selected.type).removeprefix("large_")
    others = [name for name in kinds if name not in ("discriminator", family)]
    if part.below(selected.path).segments or "array" in others:  # lists are never null
        return family, None, []
    if "object" in others:  # nor are objects
        return family, None, []
    return family, kinds.get(family), others


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
