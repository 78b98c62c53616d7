"""Names of target types: ``bigint``, ``array<struct<a: double>>``, ``map<string, variant>``.

Owns which names a target has beside those of a schema. Leaves the grammar to `schema.type_grammar`, and which types can
be a target to `encoding.cast`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import CastError, SchemaError
from parquet_variant.schema.type_grammar import Column, TypeParser


def as_target(target: str | pa.DataType) -> pa.DataType:
    """The Arrow type of a target: the type itself, or what its name stands for.

    Names are Spark's in any case (``bigint``, ``decimal(10,2)``, ``array<…>``, ``struct<a: int, b string>``,
    ``map<string, …>``, ``variant``), those of `ShreddingSchema`'s DDL (``uuid``, ``timestamp_nanos``, …), and pyarrow's
    own aliases (``uint8``, ``large_string``). ``variant`` is a struct of ``metadata`` and ``value``. Raises `CastError`
    with reason ``bad-type`` and the offset of what cannot be read.

    >>> as_target("array<struct<a: int, b: decimal(5,2)>>")
    ListType(list<element: struct<a: int32, b: decimal128(5, 2)>>)
    >>> as_target("strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: unknown type 'strin': did you mean 'string'? (byte offset 0)
    """
    if isinstance(target, pa.DataType):
        return target
    if not isinstance(target, str):
        raise CastError(f"a type is given by its name or as a pyarrow type, not as {target!r}", reason="bad-type")
    parser = _Parser(target)
    return parser.whole(parser.type())


class _Parser(TypeParser[pa.DataType]):
    """Makes Arrow types."""

    error = CastError
    reason = "bad-type"
    max_depth = 100
    too_deep = "a target type may be {} levels deep"
    nested = ("array", "struct", "map")
    faults_at_start = False

    def variant(self) -> pa.DataType:
        return VARIANT_STORAGE

    def array(self, element: pa.DataType) -> pa.DataType:
        return pa.list_(pa.field("element", element))

    def struct(self, columns: list[Column]) -> pa.DataType:
        return pa.struct([pa.field(column.name, column.type) for column in columns])

    def map(self, key: pa.DataType, value: pa.DataType) -> pa.DataType:
        if pa.types.is_null(key):
            raise SchemaError("a map has keys of a type: NULL is none", reason="bad-type")
        return pa.map_(key, value)

    def other(self, name: str) -> pa.DataType | None:
        try:
            return pa.type_for_alias(name)
        except ValueError:
            return None
