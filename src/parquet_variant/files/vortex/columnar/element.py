"""Typed extraction from the columnar encoding, which reads only the columns along the path and no Variant bytes.

Owns the walk down a path, and combining the children of a column. `ops.columns.slot_casts` decides which values count
as equal. Targets without a column here (maps, fixed-size lists, Variants) are extracted by `extract_path` from the
decoded values at the end of the path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.cast.forms import in_target_form, plain_form
from parquet_variant.encoding.cast.targets import Target, target_of
from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.files.vortex.columnar.column import Child, Int64s, PathColumn
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.kernels.kinds import KIND
from parquet_variant.ops.columns.column_slots import slots_of_column
from parquet_variant.ops.columns.extract_path import extract_path
from parquet_variant.ops.columns.shredded_walk import scatter
from parquet_variant.ops.columns.slot_casts import CastOptions, array_of_slots, list_array
from parquet_variant.path import Segment, VariantPath, Wildcard


class _CastRules(NamedTuple):
    """Casts of values of other types: for columns of scalars, and the time zone for `extract_path`."""

    casts: CastOptions
    zone: str


def is_by_columns(target: pa.DataType) -> bool:
    """Return True if a target type is built from columns; otherwise the values at the path are decoded first."""
    return _by_columns(target_of(plain_form(target)))


def _by_columns(target: Target) -> bool:
    if target.family in ("map", "variant") or (target.family == "list" and target.size >= 0):
        return False
    if target.family == "struct" and not target.names:
        return False
    return all(map(_by_columns, target.children))


def columnar_element(
    array: ColumnarVariant,
    path: str | VariantPath,
    target: pa.DataType,
    *,
    safe: bool = False,
    zone: str = "UTC",
    lossless: bool = True,
) -> pa.Array:
    """Return the values at a path as a type; parameters and result are those of `extract_path`.

    Raises `CastError` for a type to which Variants cannot be cast.

    >>> import parquet_variant as pv
    >>> rows = ['{"a": [1, 2.50]}', '{"a": ["x"]}', None]
    >>> array = ColumnarVariant.from_variant(pv.parse_json(rows))
    >>> columnar_element(array, "$.a[*]", pa.decimal128(4, 2)).to_pylist()
    [[Decimal('1.00'), Decimal('2.50')], [None], None]
    """
    parsed = VariantPath.parse(path)
    target_of(target)  # raises for the requested type, not for its plain form
    plain_target = target_of(plain_form(target))
    rules = _CastRules(CastOptions(zone_of(zone), safe=safe, path=str(parsed), lossless=lossless), zone)
    values = scatter(_follow(array.column, parsed.segments, plain_target, rules), array.present, len(array))
    for segment in parsed.segments:
        if isinstance(segment, Wildcard):
            target = pa.list_(pa.field("element", target))
    return in_target_form(values, target)


def _follow(column: PathColumn, segments: tuple[Segment, ...], target: Target, rules: _CastRules) -> pa.Array:
    """Return the values at a path below a column, one entry per value of the column."""
    if not segments:
        return _as_type(column, target, rules)
    segment, following = segments[0], segments[1:]
    if isinstance(segment, str):
        objects = column.child(KIND.OBJECT)
        field = objects[0].fields.get(segment) if objects is not None else None
        if objects is None or field is None:
            return _nulls(_follow(PathColumn(0), following, target, rules), column.size)
        positions = objects[1][field.object_positions(objects[0].size)]
        return scatter(_follow(field.column, following, target, rules), positions, column.size)
    arrays = column.child(KIND.ARRAY)
    child, positions = (Child(KIND.ARRAY, 0), np.empty(0, np.int64)) if arrays is None else arrays
    offsets = np.zeros(1, np.int64) if child.offsets is None else child.offsets
    elements = PathColumn(0) if child.elements is None else child.elements
    if isinstance(segment, int):
        long_enough = np.flatnonzero(np.diff(offsets) > segment)
        values = _follow(elements.take(offsets[long_enough] + segment), following, target, rules)
        return _scatter(values, positions[long_enough], column.size)
    values = _follow(elements, following, target, rules)
    kind = pa.list_(pa.field("element", values.type))
    return _scatter(list_array(offsets, values, np.ones(child.size, np.bool_), kind), positions, column.size)


def _nulls(like: pa.Array, size: int) -> pa.Array:
    return like.take(pa.nulls(size, pa.int64()))


def _scatter(values: pa.Array, positions: Int64s, size: int) -> pa.Array:
    return scatter(values, positions, size) if len(positions) else _nulls(values, size)


def _as_type(column: PathColumn, target: Target, rules: _CastRules) -> pa.Array:
    """Return the values of a column as a type, converted child by child."""
    if not _by_columns(target) and target.family not in ("list", "struct"):
        return _decoded(column, target, rules)
    pieces, indices = [], np.full(column.size, -1, np.int64)
    filled = 0
    for index, child in enumerate(column.children):
        piece = _child_as_type(child, target, rules)
        if piece is None:
            continue
        if len(piece) == column.size:
            return piece
        indices[column.positions(index)] = np.arange(filled, filled + len(piece))
        filled += len(piece)
        pieces.append(piece)
    if not pieces:
        return pa.nulls(column.size, target.arrow)
    values = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    return values.take(pa.array(indices, mask=indices < 0))


def _child_as_type(child: Child, target: Target, rules: _CastRules) -> pa.Array | None:
    """Return the values of a child as a type; None if no value of the child can have the type."""
    if child.values is not None:
        if target.family in ("list", "struct"):
            return None
        return array_of_slots(slots_of_column(child.values), target, rules.casts)
    if child.kind in (KIND.ARRAY, KIND.OBJECT) and not rules.casts.lossless:
        return _decoded(PathColumn(child.size, (child,)), target, rules)
    if child.elements is not None and child.offsets is not None:
        if target.family != "list":
            return None
        if target.size >= 0:
            return _decoded(PathColumn(child.size, (child,)), target, rules)
        elements = _as_type(child.elements, target.children[0], rules)
        return list_array(child.offsets, elements, np.ones(child.size, np.bool_), target.arrow)
    if child.kind != KIND.OBJECT or target.family != "struct":
        return None
    if not target.names:
        return _decoded(PathColumn(child.size, (child,)), target, rules)
    columns = []
    for name, inner in zip(target.names, target.children, strict=True):
        field = child.fields.get(name)
        if field is None:
            columns.append(pa.nulls(child.size, inner.arrow))
        else:
            columns.append(
                scatter(_as_type(field.column, inner, rules), field.object_positions(child.size), child.size)
            )
    fields = [target.arrow.field(index) for index in range(len(columns))]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _decoded(column: PathColumn, target: Target, rules: _CastRules) -> pa.Array:
    storage = ColumnarVariant(column.size, column).to_variant().storage
    casts = rules.casts
    return extract_path(storage, "$", target.arrow, safe=casts.safe, zone=rules.zone, lossless=casts.lossless)
