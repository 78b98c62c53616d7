"""``is_integer``, ``as_integer`` and the like: tests of the type of a value, and values of one type.

Owns the names, as Snowflake has them, and the types that each one accepts. Leaves types of values to
`ops.value_types`, and casts to `values`.
"""

from __future__ import annotations

from sqlglot import exp

from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.kinds import Kind, is_variant
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter
from parquet_variant.types import DECIMAL_TYPES, INTEGERS, VariantType
from parquet_variant.types.targets import VARIANT_STORAGE

_INTEGERS = tuple(INTEGERS)
_DECIMALS = (*_INTEGERS, *DECIMAL_TYPES)
_DOUBLES = (*_DECIMALS, VariantType.FLOAT, VariantType.DOUBLE)
_ZONED = (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS)
_LOCAL = (VariantType.TIMESTAMP_NTZ, VariantType.TIMESTAMP_NTZ_NANOS)
# The end of a name -> the types of its values, and the SQL type of the result; empty for a Variant.
_TYPES: dict[str, tuple[tuple[VariantType, ...], str]] = {
    "array": ((VariantType.ARRAY,), ""),
    "object": ((VariantType.OBJECT,), ""),
    "boolean": ((VariantType.BOOLEAN,), "BOOLEAN"),
    "integer": (_INTEGERS, "BIGINT"),
    "decimal": (_DECIMALS, "DECIMAL(38, 0)"),
    "number": (_DECIMALS, "DECIMAL(38, 0)"),
    "double": (_DOUBLES, "DOUBLE"),
    "real": (_DOUBLES, "DOUBLE"),
    "char": ((VariantType.STRING,), "TEXT"),
    "varchar": ((VariantType.STRING,), "TEXT"),
    "string": ((VariantType.STRING,), "TEXT"),
    "binary": ((VariantType.BINARY,), "BLOB"),
    "date": ((VariantType.DATE,), "DATE"),
    "time": ((VariantType.TIME,), "TIME"),
    "timestamp_ltz": (_ZONED, "TIMESTAMPTZ"),
    "timestamp_tz": (_ZONED, "TIMESTAMPTZ"),
    "timestamp_ntz": (_LOCAL, "TIMESTAMPNTZ"),
}
TYPE_FUNCTIONS = frozenset(f"{start}_{end}" for end in _TYPES for start in ("is", "as"))


def _is_one_of(value: exp.Expr, types: tuple[VariantType, ...]) -> exp.In:
    type_name = exp.Anonymous(this="variant_type", expressions=[value.copy()])
    return exp.In(this=type_name, expressions=[exp.Literal.string(str(kind)) for kind in types])


def rewrite_type_function(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite ``is_…(v)`` or ``as_…(v)``; None if the argument is not a Variant, or the function is not one of them."""
    if name not in TYPE_FUNCTIONS or not node.expressions or not is_variant(values.expression(node.expressions[0])[1]):
        return None
    start, end = name.split("_", 1)
    value, *digits = node.expressions
    types, result = _TYPES[end]
    if digits and not (name in ("as_decimal", "as_number") and all(part.is_int for part in digits)):
        raise SqlError(f"{written(node, values.engine)}: {name} takes one Variant")
    if digits:
        result = f"DECIMAL({', '.join(part.name for part in (*digits, exp.Literal.number(0))[:2])})"
    is_type = exp.Paren(this=_is_one_of(value, types))
    if end == "integer":  # an integer that is stored among decimals is a decimal without a fraction
        fraction = exp.Like(this=exp.cast(value.copy(), "TEXT"), expression=exp.Literal.string("%.%"))
        is_whole = exp.and_(_is_one_of(value, tuple(DECIMAL_TYPES)), exp.not_(fraction))
        is_type = exp.Paren(this=exp.or_(is_type, is_whole))
    if start == "is":
        return values.expression(is_type)
    test = values.expression(is_type)[0]
    if not result:
        return exp.Case(ifs=[exp.If(this=test, true=values.expression(value)[0].copy())]), VARIANT_STORAGE
    typed = values.expression(exp.TryCast(this=value.copy(), to=exp.DataType.build(result)))[0]
    return exp.Case(ifs=[exp.If(this=test, true=typed)]), None
