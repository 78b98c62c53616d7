"""The union of two shredding schemas: the join of a lattice whose top is the untyped variant.

Owns the union and the numeric widening it uses: integers and decimals widen to a type that holds every value of both;
float and double do not widen, neither to exact types nor to each other (spec draft 1, "Shredding Semantics"). Leaves
weighing types by frequency to `shredding`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.layouts.primitive_types import MAX_PRECISION
from parquet_variant.layouts.storage_shape import TypeTree

# Decimal digits that hold every value of an integer type.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def common_numeric(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the narrowest integer or decimal type that holds every value of both types, or None.

    >>> common_numeric(pa.int8(), pa.int32()), common_numeric(pa.int64(), pa.decimal128(5, 2))
    (DataType(int32), Decimal128Type(decimal128(21, 2)))
    >>> common_numeric(pa.int64(), pa.float64()) is None
    True
    """
    if a == b:
        return a
    if a in _DIGITS and b in _DIGITS:
        return max(a, b, key=_DIGITS.__getitem__)
    integer_digits, fraction_digits = 0, 0
    for arrow in (a, b):
        if arrow in _DIGITS:
            integer_digits = max(integer_digits, _DIGITS[arrow])
        elif pa.types.is_decimal(arrow):
            integer_digits = max(integer_digits, arrow.precision - arrow.scale)
            fraction_digits = max(fraction_digits, arrow.scale)
        else:
            return None
    precision = integer_digits + fraction_digits
    return pa.decimal128(precision, fraction_digits) if precision <= MAX_PRECISION else None


def merge_trees(a: TypeTree, b: TypeTree) -> TypeTree:
    """Return the union of two schemas.

    >>> merge_trees({"a": pa.int32(), "b": pa.date32()}, {"a": pa.int64(), "c": [pa.string()]})
    {'a': DataType(int64), 'b': DataType(date32[day]), 'c': [DataType(string)]}
    """
    if a == b:
        return a
    if isinstance(a, dict) and isinstance(b, dict):
        fields = dict(a)
        for name, child in b.items():
            fields[name] = merge_trees(fields[name], child) if name in fields else child
        return fields
    if isinstance(a, list) and isinstance(b, list):
        return [merge_trees(a[0], b[0])]
    if isinstance(a, pa.DataType) and isinstance(b, pa.DataType):
        return common_numeric(a, b)
    return None
