"""Expressions over lists, maps and structs with Variants inside: building them, accessing them, and transforming them.

Owns which functions accept such values. Leaves Variants themselves, and all other expressions, to `values`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.kinds import Kind, element_of, field_of, is_variant
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.rewriting.rewriters import ValueRewriter

NOT_NESTED: Any = object()
_STRUCTS = {"row", "struct_pack", "struct", "named_struct"}
_LISTS = {"list_value", "list_pack", "array"}
_SAME = {"list_slice", "array_slice", "list_reverse", "array_reverse", "reverse", "list_concat", "array_concat"}
_SAME |= {"list_cat", "array_cat", "list_append", "array_append", "array_push_back", "list_where", "list_select"}
_SAME |= {"list_resize", "array_resize", "map_concat"}
_PREPENDS = {"list_prepend", "array_prepend", "array_push_front"}
_ROWS = {"unnest", "explode", "explode_outer"}
_ELEMENTS = (
    _ROWS | {"flatten", "element_at"} | {"list_extract", "list_element", "array_extract", "list_first", "list_last"}
)
_TYPED = {"len", "length", "array_length", "array_size", "size", "cardinality", "map_keys", "map_contains"}
_MAP_PARTS = {"map_values", "map_entries", "map_extract", "map_from_entries"}
_TRANSFORMS = {"list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform"}
_FILTERS = {"list_filter", "array_filter", "filter"}
_TESTS = {"exists", "forall"}
_VARIANT_EXPLODES = {"variant_explode", "variant_explode_outer"}
_OF_SPARK = {"exists": "len(list_filter(list, x -> …)) > 0"}


def taken_from(kind: Kind, node: exp.Bracket | exp.Dot) -> Kind:
    """Return the kind of ``value[…]`` or ``value.name``."""
    if isinstance(node, exp.Dot):
        return field_of(kind, node.expression.name)
    if any(isinstance(part, exp.Slice) for part in node.expressions):
        return kind
    if kind is not None and pa.types.is_struct(kind):
        return field_of(kind, node.expressions[0].name)
    return element_of(kind)


def nested_kind(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite an expression over nested values, and return the Variants in its result; `NOT_NESTED` for others.

    `name`: the name of the function in lower case, if sqlglot has no class for it.
    """
    if isinstance(node, (exp.Bracket, exp.Dot)):
        kind = values.expression(node.this)[1]
        values.children(node, [node.this, node.args.get("expression")])
        return taken_from(kind, node)
    if name in _OF_SPARK and values.engine != "spark":
        raise SqlError(f"{name} is a function of Spark, not of DuckDB: write {_OF_SPARK[name]}")
    if name in _VARIANT_EXPLODES:
        values.children(node, node.expressions)
        return None
    if isinstance(node, (exp.Struct, exp.Array, exp.ToMap, exp.Map, exp.Tuple)) or name in _STRUCTS | _LISTS:
        return _rewrite_constructor(values, node, name)
    if isinstance(node, exp.Transform) or name in _TRANSFORMS | _FILTERS | _TESTS:
        return _by_lambda(values, node, name)
    if isinstance(node, exp.Comprehension):
        names = [part.name for part in (node.expression, node.args.get("position")) if part]
        return values.lambda_kind(node, names, element_of(values.expression(node.args["iterator"])[1]))
    if isinstance(node, exp.DPipe) and _is_list(values.expression(node.this)[1]):
        return values.alike(node, [node.this, node.expression])
    if name in _PREPENDS and len(node.expressions) == 2:
        kind = values.expression(node.expressions[1])[1]
        values.children(node, node.expressions)
        return kind
    if name in _MAP_PARTS and node.expressions:
        return _of_map(values, node, name)
    if name in ("struct_extract", "struct_insert") and node.expressions:
        return _of_struct(values, node, name)
    takes = name in _SAME | _ELEMENTS | _TYPED
    if takes or isinstance(node, (exp.Explode, exp.Unnest, exp.ArraySize)):
        return _rewrite_accessor(values, node, name)
    return NOT_NESTED


def _is_list(kind: Kind) -> bool:
    return kind is not None and (pa.types.is_list(kind) or pa.types.is_map(kind))


def _of_map(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite a function over a map, and return the Variants in its result."""
    kind = values.expression(node.expressions[0])[1]
    values.children(node, node.expressions[:1])
    if kind is None:
        return None
    if name == "map_from_entries":
        fields = list(element_of(kind) or ())
        return pa.map_(pa.string(), fields[1].type) if len(fields) == 2 else None
    item = element_of(kind)
    if name == "map_entries":
        return pa.list_(pa.struct([pa.field("key", pa.null()), pa.field("value", item)]))
    return pa.list_(item)


def _of_struct(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite a function over a struct, and return the Variants in its result."""
    struct, *further = node.expressions
    kind = values.expression(struct)[1]
    if name == "struct_extract":
        values.children(node, [struct])
        return field_of(kind, further[0].name) if further else None
    values.children(node, node.expressions)
    added = [(part.name, values.expression(part)[1]) for part in further if isinstance(part, exp.PropertyEQ)]
    if kind is None and all(part is None for _, part in added):
        return None
    if kind is None:
        raise SqlError(
            f"{written(node, values.engine)}: build the struct with struct_pack, so that its fields are known"
        )
    return pa.struct([*kind, *(pa.field(key, pa.null() if part is None else part) for key, part in added)])


def _rewrite_constructor(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite a constructor of a struct, list or map."""
    if isinstance(node, exp.ToMap):
        entries = values.expression(node.this)[1]
        kinds = [field.type for field in entries] if entries is not None else []
        return pa.map_(pa.string(), next(kind for kind in kinds if not pa.types.is_null(kind))) if kinds else None
    parts = node.expressions
    if isinstance(node, exp.Map):
        parts = [part for part in (node.args.get("keys"), node.args.get("values")) if part is not None]
    named = (exp.PropertyEQ, exp.Alias, exp.Column) if name == "struct" else (exp.PropertyEQ, exp.Alias)
    # Fields without names, as those of row(…), are called "".
    names = [part.alias_or_name if isinstance(part, named) else "" for part in parts]
    if name == "named_struct":
        names, parts = [part.name for part in parts[::2]], parts[1::2]
    if isinstance(node, exp.Array) or name in _LISTS:
        kind = values.alike(node, parts)
        return None if kind is None else pa.list_(kind)
    values.children(node, parts)
    kinds = [values.expression(part)[1] for part in parts]
    if isinstance(node, exp.Map):
        kind = element_of(kinds[1]) if len(kinds) == 2 else None
        return None if kind is None else pa.map_(pa.string(), kind)
    if all(kind is None for kind in kinds):
        return None
    return pa.struct(
        [pa.field(key, pa.null() if kind is None else kind) for key, kind in zip(names, kinds, strict=True)]
    )


def _by_lambda(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite a function that transforms or filters the elements of a list by a lambda."""
    if isinstance(node, exp.Transform):
        elements, function = node.this, node.expression
    else:
        elements, function = (*node.expressions, None, None)[:2]
    kind = None if elements is None else values.expression(elements)[1]
    if kind is not None and isinstance(function, exp.Lambda):
        result = values.lambda_kind(function, [name.name for name in function.expressions], element_of(kind))
        if name not in _FILTERS:
            kind = None if result is None or name in _TESTS else pa.list_(result)
    values.children(node, [elements, function])
    return kind


def _rewrite_accessor(values: ValueRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite a function that returns elements of a list or map, or part of it."""
    first = node.this if isinstance(node, (exp.Explode, exp.ArraySize)) else (*node.expressions, None)[0]
    kind = None if first is None else values.expression(first)[1]
    if is_variant(kind):
        text = written(first, values.engine)
        raise SqlError(f"{text} is a Variant, not a list: write {text}::array<variant>, or another type of elements")
    # With further arguments, such as recursive := true, unnest would split Variants into their bytes.
    is_unnest = isinstance(node, exp.Unnest) or name in _ROWS
    splits = is_unnest and len(node.expressions) > 1
    values.children(node, [] if splits else node.expressions if name in _SAME else [first])
    if name in _SAME:
        return kind
    return None if isinstance(node, exp.ArraySize) or name in _TYPED else element_of(kind)
