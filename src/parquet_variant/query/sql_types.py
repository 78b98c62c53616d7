"""The types that SQL casts a Variant to: Spark's names, and the usual names of SQL as in DuckDB.

Owns the Arrow type of each name. Leaves the type names of the other surfaces to
`layouts.type_grammar`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.layouts.storage_shape import ddl_name
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import quote_name
from parquet_variant.types.targets import VARIANT_STORAGE

_T = exp.DataType.Type
_ARROW: dict[Any, pa.DataType] = {
    _T.BOOLEAN: pa.bool_(), _T.TINYINT: pa.int8(), _T.SMALLINT: pa.int16(), _T.INT: pa.int32(), _T.BIGINT: pa.int64(),
    _T.INT128: pa.decimal128(38, 0), _T.UTINYINT: pa.uint8(), _T.USMALLINT: pa.uint16(), _T.UINT: pa.uint32(),
    _T.UBIGINT: pa.uint64(), _T.FLOAT: pa.float32(), _T.DOUBLE: pa.float64(), _T.DATE: pa.date32(),
    _T.TIME: pa.time64("us"), _T.TIMESTAMP_NS: pa.timestamp("ns"), _T.UUID: pa.uuid(),
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR), pa.string()),
    **dict.fromkeys((_T.BINARY, _T.VARBINARY, _T.BLOB), pa.binary()),
    **dict.fromkeys((_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ), pa.timestamp("us", "UTC")),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ), pa.timestamp("us")),
}  # fmt: skip
# Names that sqlglot's tokenizer does not know.
_NAMED = {"timestamp_nanos": pa.timestamp("ns", "UTC"), "timestamp_ntz_nanos": pa.timestamp("ns")}
_TYPES = (
    "boolean, tinyint, smallint, int, bigint (int8), float, double, decimal(p,s), string (varchar, text), binary, "
    "date, time, timestamp (with time zone), timestamp_ntz, timestamp_nanos, timestamp_ntz_nanos, uuid, variant, "
    "array<type>, struct<name: type>, map<string, type>"
)


def sql_type(kind: exp.DataType, engine: SqlEngine = "duckdb") -> pa.DataType | None:
    """Return the Arrow type of a parsed type; None for ``variant``.

    Raises `SqlError` with reason ``bad-type`` and the list of types, if a Variant cannot be cast to it.
    """
    arrow = _arrow(kind, engine)
    return None if arrow == VARIANT_STORAGE else arrow


def sql_type_named(name: str, engine: SqlEngine = "duckdb") -> pa.DataType | None:
    """Return the Arrow type of a type name, as in the third argument of ``variant_get``; None for ``variant``.

    >>> sql_type_named("int8"), sql_type_named("array<struct<a: text>>")
    (DataType(int64), ListType(list<element: struct<a: string>>))
    >>> sql_type_named("nope")
    Traceback (most recent call last):
    ...
    parquet_variant.query.sql_dialect.SqlError: unknown type nope: use boolean, tinyint, ...
    """
    try:
        cast = parse_sql(f"CAST(x AS {name})", engine, what="expression")
    except SqlError:
        raise _unknown_type(name) from None
    if not isinstance(cast, exp.Cast) or not isinstance(cast.to, exp.DataType):
        raise _unknown_type(name)
    return sql_type(cast.to, engine)


def sql_type_name(kind: pa.DataType) -> str:
    """Return the SQL name of a type: Spark's, or Arrow's for types that Spark lacks.

    >>> sql_type_name(pa.list_(pa.int64())), sql_type_name(pa.decimal128(9, 2))
    ('array<bigint>', 'decimal(9,2)')
    """
    if pa.types.is_list(kind):
        return f"array<{sql_type_name(kind.value_type)}>"
    if kind == VARIANT_STORAGE:
        return "variant"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"{quote_name(child.name)}: {sql_type_name(child.type)}" for child in kind)
        return f"struct<{fields}>"
    if pa.types.is_map(kind):
        return f"map<{sql_type_name(kind.key_type)}, {sql_type_name(kind.item_type)}>"
    try:
        return ddl_name(kind)
    except KeyError:
        return str(kind)


def _arrow(tree: exp.DataType, engine: SqlEngine) -> pa.DataType:
    kind, inner = tree.this, tree.expressions
    if kind == _T.VARIANT:
        return VARIANT_STORAGE
    if kind in (_T.ARRAY, _T.LIST) and len(inner) == 1 and not tree.args.get("values"):
        return pa.list_(pa.field("element", _arrow(inner[0], engine)))
    if kind == _T.MAP and len(inner) == 2:
        return pa.map_(_arrow(inner[0], engine), _arrow(inner[1], engine))
    if kind == _T.STRUCT and inner and all(isinstance(field, exp.ColumnDef) for field in inner):
        if len({field.name.lower() for field in inner}) < len(inner):
            raise SqlError(
                f"{to_sql(tree, engine)}: two fields differ only in letter case, which SQL ignores: use a map",
                reason="bad-type",
            )
        return pa.struct([pa.field(field.name, _arrow(field.args["kind"], engine)) for field in inner])
    if kind == _T.DECIMAL:
        return _decimal(tree, engine)
    named = _NAMED.get(str(tree.args.get("kind") or "").lower()) if kind == _T.USERDEFINED else _ARROW.get(kind)
    if named is None:
        raise _unknown_type(to_sql(tree, engine))
    return named


def _decimal(kind: exp.DataType, engine: SqlEngine) -> pa.DataType:
    numbers = [part.name for part in kind.expressions] or ["10"]
    if not all(number.isdecimal() and len(number) < 3 for number in numbers) or len(numbers) > 2:
        raise _unknown_type(to_sql(kind, engine))
    precision, scale = int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 0
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise SqlError(
            f"{to_sql(kind, engine)}: the precision must be 1 to 38, and the scale 0 to the precision",
            reason="bad-type",
        )
    return pa.decimal128(precision, scale)


def _unknown_type(name: str) -> SqlError:
    return SqlError(f"unknown type {name}: use {_TYPES}", reason="bad-type")
