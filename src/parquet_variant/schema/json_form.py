"""A schema as JSON: ``"bigint"``, ``{"array": …}``, ``{"object": {name: …}}``.

Owns that form, which `variant infer --json` prints and `--schema` takes. Leaves the type names to `primitive_types`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parquet_variant.errors import SchemaError
from parquet_variant.schema.ddl import parse_ddl
from parquet_variant.schema.tree import node_name
from parquet_variant.schema.type_tree import MAX_DEPTH, TypeTree

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema


def schema_to_json(schema: ShreddingSchema) -> str:
    """Write a schema as JSON text.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> schema_to_json(ShreddingSchema.array(ShreddingSchema.variant()))
    '{"array": "variant"}'
    """
    return json.dumps(_plain(schema), ensure_ascii=False)


def tree_from_json(text: str | Mapping[str, Any]) -> TypeTree:
    """Read a schema from JSON text, or from the object that it parses to.

    Raises `SchemaError`: reason ``bad-json-schema``.

    >>> tree_from_json('{"object": {"a": "int"}}')
    {'a': DataType(int32)}
    """
    plain: Any = text
    if isinstance(text, str):
        try:
            plain = json.loads(text, object_pairs_hook=_unique)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SchemaError(f"the schema is not JSON: {error}", reason="bad-json-schema") from None
    return _tree(plain, 0)


def _plain(schema: ShreddingSchema) -> Any:
    if schema.kind == "object":
        return {"object": {name: _plain(child) for name, child in schema.fields}}
    return node_name(schema) if schema.element is None else {"array": _plain(schema.element)}


def _tree(plain: Any, depth: int) -> TypeTree:
    if depth > MAX_DEPTH:
        raise SchemaError(f"a shredding schema may be {MAX_DEPTH} levels deep", reason="bad-json-schema")
    if isinstance(plain, str):
        tree = parse_ddl(plain)
        if not isinstance(tree, (list, dict)):
            return tree
    elif isinstance(plain, Mapping) and len(plain) == 1:
        ((kind, below),) = plain.items()
        if kind == "array":
            return [_tree(below, depth + 1)]
        if kind == "object" and isinstance(below, Mapping):
            return {name: _tree(child, depth + 1) for name, child in below.items()}
    raise SchemaError(
        f'{json.dumps(plain, default=repr)[:80]} is not a schema node; expected a type name, {{"array": …}} or '
        '{"object": {…}}',
        reason="bad-json-schema",
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise SchemaError(f"a name is given twice in {sorted(fields)[:5]}", reason="bad-json-schema")
    return fields
