"""Two schemas: their union, the join of a lattice whose top is "untyped", and how one differs from the other.

Owns both, and the numeric widening: integers and decimals hold each other where no digit is lost; float and double
never meet them, nor each other (spec draft 1, "Shredding Semantics"). Leaves the weighing of types by frequency to
`shredding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.primitive_types import MAX_PRECISION
from parquet_variant.schema.spellings import render_ddl

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema

# Decimal digits that hold every value of an integer type.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def common_numeric(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Give the least int or decimal type that holds every value of both, or None if there is none.

    >>> common_numeric(pa.int8(), pa.int32()), common_numeric(pa.int64(), pa.decimal128(5, 2))
    (DataType(int32), Decimal128Type(decimal128(21, 2)))
    >>> common_numeric(pa.int64(), pa.float64()) is None
    True
    """
    if a == b:
        return a
    if a in _DIGITS and b in _DIGITS:
        return max(a, b, key=_DIGITS.__getitem__)
    whole, fraction = 0, 0
    for arrow in (a, b):
        if arrow in _DIGITS:
            whole = max(whole, _DIGITS[arrow])
        elif pa.types.is_decimal(arrow):
            whole, fraction = max(whole, arrow.precision - arrow.scale), max(fraction, arrow.scale)
        else:
            return None
    return pa.decimal128(whole + fraction, fraction) if whole + fraction <= MAX_PRECISION else None


def merge_schemas(a: ShreddingSchema, b: ShreddingSchema) -> ShreddingSchema:
    """Unite two schemas."""
    if a == b:
        return a
    if a.kind == b.kind == "object":
        fields = dict(a.fields)
        for name, child in b.fields:
            fields[name] = merge_schemas(fields[name], child) if name in fields else child
        return a.object(fields)
    if a.element is not None and b.element is not None:
        return a.array(merge_schemas(a.element, b.element))
    if a.type is not None and b.type is not None:
        common = common_numeric(a.type, b.type)
        if common is not None:
            return a.primitive(common)
    return a.variant()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Parameters
    ----------
    path
        Where; ``[*]`` is every element.
    before, after
        The node there; None where the schema does not go.
    """

    path: VariantPath
    before: ShreddingSchema | None
    after: ShreddingSchema | None

    def __str__(self) -> str:
        before, after = _shown(self.before), _shown(self.after)
        return f"{self.path}: {before} -> {after}"


def diff_schemas(before: ShreddingSchema, after: ShreddingSchema) -> list[SchemaChange]:
    """List the differences, the topmost of each kind only."""
    changes: list[SchemaChange] = []
    _compare(VariantPath(), before, after, changes)
    return changes


def _compare(
    path: VariantPath, a: ShreddingSchema | None, b: ShreddingSchema | None, changes: list[SchemaChange]
) -> None:
    if a == b:
        return
    if a is not None and b is not None and a.kind == b.kind == "object":
        for name in sorted({*dict(a.fields), *dict(b.fields)}):
            _compare(path / name, a.field(name), b.field(name), changes)
    elif a is not None and b is not None and a.kind == b.kind == "array":
        _compare(path / WILDCARD, a.element, b.element, changes)
    else:
        changes.append(SchemaChange(path, a, b))


def _shown(schema: ShreddingSchema | None) -> str:
    if schema is None:
        return "(not shredded)"
    return f"struct<{render_ddl(schema)}>" if schema.kind == "object" else render_ddl(schema)
