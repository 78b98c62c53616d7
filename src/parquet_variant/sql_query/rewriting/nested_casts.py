"""Casts of values with Variants inside: JSON, text, or typed lists and structs, where a Variant itself is cast so.

Owns the expression that replaces each Variant inside a list, map or struct, and which functions take JSON or text.
Leaves functions over Variants to `variant_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.kinds import Kind, holds_variants, is_variant
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.query.sql_types import sql_type
from parquet_variant.sql_query.rewriting.rewriters import Convert, ValueRewriter
from parquet_variant.types.path import VariantPath

# Functions that take JSON, and those that take text: a Variant is given to them as its cast to that.
_JSON_FUNCTIONS = frozenset(
    ["to_json", "json", "json_quote", "json_array", "json_object", "json_group_array", "json_group_object",
     "row_to_json", "array_to_json", "json_pretty", "json_structure", "json_type", "json_valid", "json_merge_patch",
     "json_each", "json_tree", "json_extract", "json_extract_string", "json_value", "json_contains", "json_exists"]
)  # fmt: skip
_JSON_NODES = (exp.JSONObject, exp.JSONArray, exp.JSONObjectAgg, exp.JSONArrayAgg, exp.JSONKeyValue)
TEXT_FUNCTIONS = frozenset(
    ["concat", "concat_ws", "format", "printf", "lower", "lcase", "upper", "ucase", "length", "len", "strlen",
     "char_length", "character_length", "substring", "substr", "trim", "ltrim", "rtrim", "replace", "left", "right",
     "lpad", "rpad", "repeat", "instr", "strpos", "position", "contains", "starts_with", "ends_with", "prefix",
     "suffix", "split", "split_part", "string_split", "str_split", "string_to_array", "regexp_matches",
     "regexp_replace", "regexp_extract", "regexp_extract_all", "regexp_full_match", "regexp_split_to_array",
     "string_agg", "listagg", "group_concat", "md5", "sha1", "sha256", "ascii", "ord", "unicode", "translate",
     "levenshtein", "editdist3", "jaccard", "jaro_similarity", "like_escape", "ilike_escape", "base64", "initcap",
     "strip_accents", "soundex", "reverse", "bar", "hash", "array_to_string", "list_to_string"]
)  # fmt: skip
_TEXT_NODES = (
    exp.DPipe, exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike, exp.Glob, exp.Substring, exp.Trim,
    exp.StrPosition, exp.GroupConcat, exp.Concat, exp.ConcatWs, exp.StartsWith, exp.EndsWith, exp.Escape, exp.Lower,
    exp.Upper,
)  # fmt: skip
# Callback: a Variant, and the type of its place in the target type -> what replaces it.
_Leaf = Callable[[exp.Expr, pa.DataType | None], exp.Expr]
_PARAMETERS = count(1)


def as_json(values: ValueRewriter, value: exp.Expr, kind: Kind) -> exp.Expr:
    """Return a value with DuckDB's JSON in place of each Variant."""
    return _replace_variants(value, kind, None, lambda variant, _: exp.cast(_call(values, variant, "to_json"), "JSON"))


def as_text(values: ValueRewriter, value: exp.Expr, kind: Kind) -> exp.Expr:
    """Return the text of a value, in which each Variant is written as its cast to string."""
    text = partial(_cast_variant, values)
    if is_variant(kind):
        return text(value, pa.string())
    return exp.cast(_replace_variants(value, kind, None, lambda variant, _: text(variant, pa.string())), "TEXT")


def cast_inside(values: ValueRewriter, node: exp.Cast, value: exp.Expr, kind: Kind) -> exp.Expr:
    """Return the cast of a list, map or struct with Variants inside, each cast as the Variant itself would be."""
    if node.is_type("json"):
        return exp.Anonymous(this="to_json", expressions=[as_json(values, value, kind)])
    if node.is_type(*exp.DataType.TEXT_TYPES):
        return as_text(values, value, kind)
    target = sql_type(node.to, values.engine)
    inside = _replace_variants(
        value, kind, target, lambda variant, part: _cast_variant(values, variant, part or pa.string())
    )
    copy = node.copy()
    copy.set("this", inside)
    return copy


def _cast_variant(values: ValueRewriter, variant: exp.Expr, kind: pa.DataType) -> exp.Expr:
    term = VariantTerm(variant, VariantPath(), kind, cast=True)
    return exp.Anonymous(this=values.rewriter.getter(term), expressions=[variant])


def _call(values: ValueRewriter, variant: exp.Expr, function: str) -> exp.Expr:
    return exp.Anonymous(this=values.rewriter.getter(function=function), expressions=[variant])


def _replace_variants(value: exp.Expr, kind: Kind, target: pa.DataType | None, leaf: _Leaf) -> exp.Expr:
    """Return a value with each Variant replaced; `target` is the type that the whole is cast to, if there is one."""
    if kind is None or not holds_variants(kind):
        return value
    if is_variant(kind):
        return leaf(value, target)
    if pa.types.is_map(kind):
        return _replaced_map(value, kind, target, leaf)
    if pa.types.is_struct(kind):
        return bound_once(value, lambda struct: _replaced_struct(struct, kind, target, leaf))
    inner = target.value_type if target is not None and pa.types.is_list(target) else None
    return _list_transform(value, lambda element: _replace_variants(element, kind.value_type, inner, leaf))


def _replaced_map(value: exp.Expr, kind: pa.MapType, target: pa.DataType | None, leaf: _Leaf) -> exp.Expr:
    inner = target.item_type if target is not None and pa.types.is_map(target) else None
    entries = exp.Anonymous(this="map_entries", expressions=[value])

    def entry(pair: exp.Expr) -> exp.Expr:
        parts = {
            "key": _field(pair, "key"),
            "value": _replace_variants(_field(pair, "value"), kind.item_type, inner, leaf),
        }
        return _struct(parts)

    return exp.Anonymous(this="map_from_entries", expressions=[_list_transform(entries, entry)])


def _replaced_struct(struct: exp.Expr, kind: pa.StructType, target: pa.DataType | None, leaf: _Leaf) -> exp.Expr:
    unnamed = all(not field.name for field in kind)
    parts = []
    for number, field in enumerate(kind, 1):
        part = (
            exp.Anonymous(this="struct_extract_at", expressions=[struct.copy(), exp.Literal.number(number)])
            if unnamed
            else _field(struct, field.name)
        )
        parts.append(_replace_variants(part, field.type, _part_of(target, field.name, number), leaf))
    made = (
        exp.Anonymous(this="row", expressions=parts)
        if unnamed
        else _struct({field.name: part for field, part in zip(kind, parts, strict=True)})
    )
    is_null = exp.Is(this=struct.copy(), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=made)


def _part_of(target: pa.DataType | None, name: str, number: int) -> pa.DataType | None:
    if target is None or not pa.types.is_struct(target):
        return None
    by_name = [field.type for field in target if field.name.lower() == name.lower()]
    return by_name[0] if by_name else target.field(number - 1).type if number <= target.num_fields else None


def _struct(parts: dict[str, exp.Expr]) -> exp.Expr:
    if len({name.lower() for name in parts}) < len(parts):
        raise SqlError(f"a struct with the fields {', '.join(parts)} cannot be cast: two names differ only in case")
    pairs = [exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=part) for name, part in parts.items()]
    return exp.Anonymous(this="struct_pack", expressions=pairs)


def _field(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Dot(this=exp.Paren(this=value.copy()), expression=exp.to_identifier(name, quoted=True))


def bound_once(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return an expression over a value that is computed once, however often `body` names it."""
    if isinstance(value, (exp.Column, exp.Identifier)):
        return body(value)
    lists = _list_transform(exp.Array(expressions=[value]), body)
    return exp.Anonymous(this="list_extract", expressions=[lists, exp.Literal.number(1)])


def _list_transform(lists: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    name = exp.to_identifier(f"_element_{next(_PARAMETERS)}")
    return exp.Anonymous(this="list_transform", expressions=[lists, exp.Lambda(this=body(name), expressions=[name])])


def conversion(values: ValueRewriter, node: exp.Expr, name: str) -> Convert | None:
    """Return the conversion of Variants that are arguments of an expression; None if these are refused.

    `name`: the function's name in lower case, or empty.
    """
    if values.engine != "duckdb":
        return None
    if name in _JSON_FUNCTIONS or isinstance(node, _JSON_NODES):
        return partial(as_json, values)
    if name in TEXT_FUNCTIONS or isinstance(node, _TEXT_NODES):
        return partial(as_text, values)
    return None
