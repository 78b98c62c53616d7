"""The table of Variant types: encoding ids, widths, and their names in Arrow, Parquet, table formats and Spark.

Owns every fact of the form "type X is called Y by Z". `targets` and `forms` have what casts need
to know about Arrow types. Leaves byte layouts to `encoding` and casts to `encoding.cast`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import TypeVar

import pyarrow as pa

from parquet_variant.support.records import Record

Entry = TypeVar("Entry")
# The largest 32-bit offset: the bytes of a string column, or the elements of a list column.
MAX_OFFSET = 2**31 - 1


class BasicType(IntEnum):
    """The low two bits of a value's first byte (spec: "Basic Type")."""

    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3


class PrimitiveId(IntEnum):
    """The ``primitive_header`` ids (spec: "Encoding types"; 17 to 20 from Parquet's VariantEncoding)."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME = 17
    TIMESTAMP_NANOS = 18
    TIMESTAMP_NTZ_NANOS = 19
    UUID = 20


class VariantType(StrEnum):
    """The type of a Variant value, as `Variant.type` returns it. A member equals its name as a string.

    Examples
    --------
    >>> VariantType.INT8 == "int8"
    True
    """

    NULL = "null"
    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL4 = "decimal4"
    DECIMAL8 = "decimal8"
    DECIMAL16 = "decimal16"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    TIMESTAMP_NANOS = "timestamp_nanos"
    TIMESTAMP_NTZ_NANOS = "timestamp_ntz_nanos"
    BINARY = "binary"
    STRING = "string"
    UUID = "uuid"
    ARRAY = "array"
    OBJECT = "object"


class TypeInfo(Record):
    """The facts about one Variant type."""

    type: VariantType
    ids: tuple[PrimitiveId, ...]  # The ``primitive_header`` ids; empty for arrays and objects.
    width: int | None  # Bytes of value data after the header byte; None where a length or count is stored.
    # The Arrow type of the shredded ``typed_value``; for decimals, the type with the largest precision and scale 0;
    # None for null, arrays and objects.
    arrow: pa.DataType | None
    parquet: str  # The ``typed_value`` type in the notation of the shredding specification.
    spark: str | None  # The SQL name of Spark's ``schema_of_variant``; None if Spark 4.3 does not have the type.
    # The names in a Delta schema string, in Iceberg's metadata and in a DuckLake catalog; None if the format does not
    # have the type. Iceberg has no integers below 32 bits: they are its ``int``.
    delta: str | None = None
    iceberg: str | None = None
    ducklake: str | None = None
    precision: int | None = None  # For decimals, the largest number of digits.
    ddl: tuple[str, ...] = ()  # The names in DDL, the preferred name first; decimals are written with their digits.


_P = PrimitiveId
_V = VariantType
_ROWS = (
    TypeInfo(_V.NULL, (_P.NULL,), 0, None, "", "VOID"),
    TypeInfo(_V.BOOLEAN, (_P.TRUE, _P.FALSE), 0, pa.bool_(), "BOOLEAN", "BOOLEAN",
             "boolean", "boolean", "boolean", ddl=("boolean", "bool")),
    TypeInfo(_V.INT8, (_P.INT8,), 1, pa.int8(), "INT32 INT(8, true)", "BIGINT",
             "byte", "int", "int8", ddl=("tinyint", "byte", "int8")),
    TypeInfo(_V.INT16, (_P.INT16,), 2, pa.int16(), "INT32 INT(16, true)", "BIGINT",
             "short", "int", "int16", ddl=("smallint", "short", "int16")),
    TypeInfo(_V.INT32, (_P.INT32,), 4, pa.int32(), "INT32", "BIGINT",
             "integer", "int", "int32", ddl=("int", "integer", "int32")),
    TypeInfo(_V.INT64, (_P.INT64,), 8, pa.int64(), "INT64", "BIGINT",
             "long", "long", "int64", ddl=("bigint", "long", "int64")),
    TypeInfo(_V.FLOAT, (_P.FLOAT,), 4, pa.float32(), "FLOAT", "FLOAT",
             "float", "float", "float32", ddl=("float", "real", "float32")),
    TypeInfo(_V.DOUBLE, (_P.DOUBLE,), 8, pa.float64(), "DOUBLE", "DOUBLE",
             "double", "double", "float64", ddl=("double", "float64")),
    TypeInfo(_V.DECIMAL4, (_P.DECIMAL4,), 5, pa.decimal128(9), "INT32 DECIMAL(P, S)", "DECIMAL",
             "decimal", "decimal", "decimal", precision=9),
    TypeInfo(_V.DECIMAL8, (_P.DECIMAL8,), 9, pa.decimal128(18), "INT64 DECIMAL(P, S)", "DECIMAL",
             "decimal", "decimal", "decimal", precision=18),
    TypeInfo(_V.DECIMAL16, (_P.DECIMAL16,), 17, pa.decimal128(38), "BYTE_ARRAY DECIMAL(P, S)", "DECIMAL",
             "decimal", "decimal", "decimal", precision=38),
    TypeInfo(_V.DATE, (_P.DATE,), 4, pa.date32(), "INT32 DATE", "DATE", "date", "date", "date", ddl=("date",)),
    TypeInfo(_V.TIME, (_P.TIME,), 8, pa.time64("us"), "INT64 TIME(false, MICROS)", None,
             None, "time", "time", ddl=("time",)),
    TypeInfo(_V.TIMESTAMP, (_P.TIMESTAMP,), 8, pa.timestamp("us", "UTC"), "INT64 TIMESTAMP(true, MICROS)", "TIMESTAMP",
             "timestamp", "timestamptz", "timestamptz", ddl=("timestamp", "timestamp_ltz")),
    TypeInfo(_V.TIMESTAMP_NTZ, (_P.TIMESTAMP_NTZ,), 8, pa.timestamp("us"), "INT64 TIMESTAMP(false, MICROS)",
             "TIMESTAMP_NTZ", "timestamp_ntz", "timestamp", "timestamp", ddl=("timestamp_ntz",)),
    TypeInfo(_V.TIMESTAMP_NANOS, (_P.TIMESTAMP_NANOS,), 8, pa.timestamp("ns", "UTC"), "INT64 TIMESTAMP(true, NANOS)",
             None, None, "timestamptz_ns", ddl=("timestamp_nanos",)),
    TypeInfo(_V.TIMESTAMP_NTZ_NANOS, (_P.TIMESTAMP_NTZ_NANOS,), 8, pa.timestamp("ns"), "INT64 TIMESTAMP(false, NANOS)",
             None, None, "timestamp_ns", "timestamp_ns", ddl=("timestamp_ntz_nanos",)),
    TypeInfo(_V.BINARY, (_P.BINARY,), None, pa.binary(), "BYTE_ARRAY", "BINARY",
             "binary", "binary", "blob", ddl=("binary",)),
    TypeInfo(_V.STRING, (_P.STRING,), None, pa.string(), "BYTE_ARRAY STRING", "STRING",
             "string", "string", "varchar", ddl=("string",)),
    TypeInfo(_V.UUID, (_P.UUID,), 16, pa.uuid(), "FIXED_LEN_BYTE_ARRAY(16) UUID", "UUID",
             None, "uuid", "uuid", ddl=("uuid",)),
    TypeInfo(_V.ARRAY, (), None, None, "GROUP LIST", "ARRAY", "array", "list"),
    TypeInfo(_V.OBJECT, (), None, None, "GROUP", "OBJECT", "struct", "struct"),
)  # fmt: skip

TYPES: dict[VariantType, TypeInfo] = {row.type: row for row in _ROWS}
# By the Arrow type of ``typed_value``. Decimals are not in it: they have one Arrow type per precision and scale.
TYPE_OF_ARROW: dict[pa.DataType, TypeInfo] = {
    row.arrow: row for row in _ROWS if row.arrow is not None and row.precision is None
}
TYPE_OF_ID: dict[PrimitiveId, TypeInfo] = {primitive: row for row in _ROWS for primitive in row.ids}

INTEGERS = (VariantType.INT8, VariantType.INT16, VariantType.INT32, VariantType.INT64)
DECIMAL_TYPES = (VariantType.DECIMAL4, VariantType.DECIMAL8, VariantType.DECIMAL16)
INTEGER_IDS, DECIMAL_IDS = (
    tuple(number for kind in kinds for number in TYPES[kind].ids) for kinds in (INTEGERS, DECIMAL_TYPES)
)
INSTANT_TYPES = (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS)
LOCAL_TYPES = (VariantType.TIMESTAMP_NTZ, VariantType.TIMESTAMP_NTZ_NANOS)
# Nanoseconds of one unit of each temporal type.
NANOS_OF = {
    VariantType.DATE: 86_400_000_000_000,
    **dict.fromkeys((VariantType.TIME, VariantType.TIMESTAMP, VariantType.TIMESTAMP_NTZ), 1000),
    **dict.fromkeys((VariantType.TIMESTAMP_NANOS, VariantType.TIMESTAMP_NTZ_NANOS), 1),
}
# The specification's "Exact Numeric" logical type: one number, whatever its width.
EXACT_NUMERIC = frozenset(INTEGERS + DECIMAL_TYPES)


def decimal_type_for_precision(precision: int) -> VariantType:
    """Return the narrowest decimal type for a number of digits (spec: the decimal table)."""
    for variant_type in DECIMAL_TYPES:
        limit = TYPES[variant_type].precision
        if limit is not None and 1 <= precision <= limit:
            return variant_type
    raise ValueError(f"decimal precision {precision} is outside 1 to 38")


def of_arrow(table: Mapping[pa.DataType, Entry], arrow: pa.DataType) -> Entry | None:
    """Return the entry of a table for an Arrow type; None for extension types defined in Python, which have no hash."""
    return None if isinstance(arrow, pa.ExtensionType) else table.get(arrow)
