"""DDL in and out: ``a bigint, b struct<c: string>, tags array<string>, v variant``.

Owns which types a schema has: Spark's names, any case, plus ``int8`` … ``int64``, ``float32``, ``float64``, ``bool``,
``time``, ``uuid``, ``timestamp_nanos`` and ``timestamp_ntz_nanos``, arrays and structs. Leaves the grammar to
`type_grammar`, and which types exist to `primitive_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.errors import SchemaError
from parquet_variant.path import quote_name
from parquet_variant.schema.primitive_types import ddl_name
from parquet_variant.schema.type_grammar import Column, TypeParser
from parquet_variant.schema.type_tree import MAX_DEPTH, TypeTree

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema


def parse_ddl(text: str) -> TypeTree:
    """Read a shredding schema from DDL: columns separated by commas, or one type.

    Raises `SchemaError`: reason ``bad-ddl``, with the byte offset (UTF-8) of the first thing that does not fit.

    >>> parse_ddl("a bigint, b struct<c: string>")
    {'a': DataType(int64), 'b': {'c': DataType(string)}}
    >>> parse_ddl("a bigint, b strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: unknown type 'strin': did you mean 'string'? (byte offset 12)
    """
    parser = _Parser(text)
    # `date` is a type, `date date` a column of that name: the second token tells.
    second = parser.tokens[min(1, len(parser.tokens) - 1)]
    is_type = parser.token.kind == "word" and (second.kind == "end" or second.text in ("<", "("))
    return parser.whole(parser.type() if is_type else parser.struct(parser.columns()))


class _Parser(TypeParser[TypeTree]):
    """Makes the tree of a schema."""

    error = SchemaError
    reason = "bad-ddl"
    max_depth = MAX_DEPTH
    too_deep = "a shredding schema may be {} levels deep"

    def variant(self) -> TypeTree:
        return None

    def array(self, element: TypeTree) -> TypeTree:
        return [element]

    def struct(self, columns: list[Column]) -> TypeTree:
        if not columns:
            self.fail("a struct needs a field; use variant")
        fields: dict[str, TypeTree] = {}
        for column in columns:
            if column.name in fields:
                self.fail(f"field {column.name!r} is given twice", column.offset)
            fields[column.name] = column.type
        return fields


def render_ddl(schema: ShreddingSchema) -> str:
    """Write a schema as DDL: an object as columns, anything else as one type.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> render_ddl(ShreddingSchema.from_ddl("struct<b string, a array<struct<c: int>>>"))
    'a array<struct<c: int>>, b string'
    """
    if schema.kind == "object":
        return ", ".join(f"{quote_name(name)} {_type(child)}" for name, child in schema.fields)
    return _type(schema)


def _type(schema: ShreddingSchema) -> str:
    if schema.kind == "object":
        return "struct<" + ", ".join(f"{quote_name(name)}: {_type(child)}" for name, child in schema.fields) + ">"
    if schema.element is not None:
        return f"array<{_type(schema.element)}>"
    return "variant" if schema.type is None else ddl_name(schema.type)
