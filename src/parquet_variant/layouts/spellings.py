"""The text forms of a schema: DDL (``a bigint, b struct<c: string>, v variant``), JSON and a printed tree.

Owns the types of a schema: Spark's names, in any case, with ``int8`` … ``int64``, ``float32``, ``float64``, ``bool``,
``time``, ``uuid``, ``timestamp_nanos`` and ``timestamp_ntz_nanos``, arrays and structs; and the JSON form, which
`variant infer --json` prints and `--schema` accepts: ``"bigint"``, ``{"array": …}``, ``{"object": {name: …}}``. Leaves
the grammar to `type_grammar`, and the list of types to `primitive_types`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.layouts.primitive_types import ddl_name
from parquet_variant.layouts.storage_shape import MAX_DEPTH, SchemaNode, TypeTree
from parquet_variant.layouts.type_grammar import ParsedColumn, TypeParser
from parquet_variant.path import VariantPath, quote_name


def parse_ddl(text: str) -> TypeTree:
    """Parse a shredding schema in DDL: columns separated by commas, or one type.

    Raises `SchemaError` (``bad-ddl``) with the byte offset (UTF-8) of the fault.

    >>> parse_ddl("a bigint, b struct<c: string>")
    {'a': DataType(int64), 'b': {'c': DataType(string)}}
    >>> parse_ddl("a bigint, b strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: unknown type 'strin': did you mean 'string'? (byte offset 12)
    """
    tree, string_types = parse_ddl_with_strings(text)
    if string_types:
        raise SchemaError(
            f"the DDL has the type {next(iter(string_types.values()))}, which types strings while JSON is parsed: pass "
            "the DDL as schema= of ingest or parse_json, or remove the '!'",
            reason="bad-ddl",
        )
    return tree


def parse_ddl_with_strings(text: str) -> tuple[TypeTree, dict[str, str]]:
    """Read a shredding schema from DDL in which ``!`` marks types of strings: ``at timestamp!, n bigint!``.

    Returns the tree, and the types of strings by path, as in ``types=`` of `parse_json`. Raises `SchemaError` as
    `parse_ddl`.

    >>> parse_ddl_with_strings("at timestamp!, n bigint")
    ({'at': TimestampType(timestamp[us, tz=UTC]), 'n': DataType(int64)}, {"$['at']": 'timestamp!'})
    """
    parser = _Parser(text)
    # The second token decides: `date` is a type, `date date` is a column of that name.
    second = parser.tokens[min(1, len(parser.tokens) - 1)]
    is_type = parser.token.kind == "word" and (second.kind == "end" or second.text in ("<", "(", "!"))
    tree = parser.complete(parser.type() if is_type else parser.struct(parser.columns()))
    return tree, parser.string_types


class _Parser(TypeParser[TypeTree]):
    """Parser that makes the tree of a schema."""

    error = SchemaError
    reason = "bad-ddl"
    max_depth = MAX_DEPTH
    too_deep = "the shredding schema is nested deeper than {} levels"

    def __init__(self, text: str) -> None:
        self.string_types: dict[str, str] = {}
        super().__init__(text)

    def marked(self, kind: pa.DataType) -> None:
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            name = "number"
        elif pa.types.is_timestamp(kind):
            name = "timestamp_ntz" if kind.tz is None else "timestamp"
        elif pa.types.is_date(kind) or kind == pa.uuid():
            name = ddl_name(kind)
        else:
            self.fail(f"unexpected '!': strings cannot be parsed as {ddl_name(kind)}")
        self.string_types[str(VariantPath(tuple(self.path)))] = f"{name}!"

    def variant(self) -> TypeTree:
        return None

    def array(self, element: TypeTree) -> TypeTree:
        return [element]

    def struct(self, columns: list[ParsedColumn]) -> TypeTree:
        if not columns:
            self.fail("a struct without fields cannot be shredded: use variant")
        fields: dict[str, TypeTree] = {}
        for column in columns:
            if column.name in fields:
                self.fail(f"duplicate field {column.name!r}", column.offset)
            fields[column.name] = column.type
        return fields


def render_ddl(schema: SchemaNode) -> str:
    """Return a schema as DDL: an object as columns, any other node as one type."""
    if schema.kind == "object":
        return ", ".join(f"{quote_name(name)} {_type(child)}" for name, child in schema.fields)
    return _type(schema)


def _type(schema: SchemaNode) -> str:
    if schema.kind == "object":
        return "struct<" + ", ".join(f"{quote_name(name)}: {_type(child)}" for name, child in schema.fields) + ">"
    if schema.element is not None:
        return f"array<{_type(schema.element)}>"
    return "variant" if schema.type is None else ddl_name(schema.type)


def schema_to_json(schema: SchemaNode) -> str:
    """Return a schema as JSON text."""
    return json.dumps(_json_node(schema), ensure_ascii=False)


def tree_from_json(text: str | Mapping[str, Any]) -> TypeTree:
    """Parse a schema from JSON text, or from a parsed JSON object.

    Raises `SchemaError` (``bad-json-schema``).
    """
    plain: Any = text
    if isinstance(text, str):
        try:
            plain = json.loads(text, object_pairs_hook=_unique_fields)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SchemaError(f"the schema is not valid JSON: {error}", reason="bad-json-schema") from None
    return _json_tree(plain, 0)


def _json_node(schema: SchemaNode) -> Any:
    if schema.kind == "object":
        return {"object": {name: _json_node(child) for name, child in schema.fields}}
    return node_name(schema) if schema.element is None else {"array": _json_node(schema.element)}


def _json_tree(plain: Any, depth: int) -> TypeTree:
    if depth > MAX_DEPTH:
        raise SchemaError(f"the shredding schema is nested deeper than {MAX_DEPTH} levels", reason="bad-json-schema")
    if isinstance(plain, str):
        tree = parse_ddl(plain)
        if not isinstance(tree, (list, dict)):
            return tree
    elif isinstance(plain, Mapping) and len(plain) == 1:
        ((kind, children),) = plain.items()
        if kind == "array":
            return [_json_tree(children, depth + 1)]
        if kind == "object" and isinstance(children, Mapping):
            return {name: _json_tree(child, depth + 1) for name, child in children.items()}
    raise SchemaError(
        f'{json.dumps(plain, default=repr)[:80]} is not a schema node: use a type name, {{"array": …}} or '
        '{"object": {…}}',
        reason="bad-json-schema",
    )


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise SchemaError(f"duplicate field names among {sorted(fields)[:5]}", reason="bad-json-schema")
    return fields


def node_name(schema: SchemaNode) -> str:
    """Return the name of a node without its children: its DDL type, ``array``, ``object`` or ``variant``."""
    return schema.kind if schema.type is None else ddl_name(schema.type)


def render_tree(schema: SchemaNode) -> str:
    """Return a schema as a tree, with one line per node."""
    return "\n".join([node_name(schema), *_lines(schema)])


def _lines(schema: SchemaNode) -> list[str]:
    children = list(schema.fields) if schema.element is None else [("[*]", schema.element)]
    lines = []
    for position, (name, child) in enumerate(children):
        last = position == len(children) - 1
        label = name if name.isprintable() and name else repr(name)
        lines.append(f"{'└─' if last else '├─'} {label}: {node_name(child)}")
        lines.extend(("   " if last else "│  ") + line for line in _lines(child))
    return lines
