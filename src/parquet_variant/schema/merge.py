"""The union of two schemas: the join of a lattice whose top is "untyped".

Owns the numeric widening: integers and decimals hold each other where no digit is lost; float and double never meet
them, nor each other (spec draft 1, "Shredding Semantics"). Leaves the weighing of types by frequency to `shredding`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from parquet_variant.schema.primitive_types import MAX_PRECISION

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
        return max(a, b, key=lambda arrow: _DIGITS[arrow])
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
    """Unite two schemas.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> ddl = ShreddingSchema.from_ddl
    >>> merge_schemas(ddl("a struct<x: int>"), ddl("a struct<y: int>, b string")).to_ddl()
    'a struct<x: int, y: int>, b string'
    """
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
