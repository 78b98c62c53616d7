"""Conversion of Variants that are arguments of functions, to JSON or to text; and the types of simple expressions.

Owns the tables of functions. Leaves the casts to `nested_casts`, and functions over Variants to `variant_functions`.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_pushdown import NO_LITERAL, literal_value
from parquet_variant.query.sql_types import sql_type
from parquet_variant.sql_query.rewriting.nested_casts import as_json, as_text
from parquet_variant.sql_query.rewriting.protocols import Convert, ValueRewriter

# Functions that take JSON, and those that take text: a Variant is given to them as its cast to that.
_JSON_FUNCTIONS = frozenset(
    ["to_json", "json", "json_quote", "json_array", "json_object", "json_group_array", "json_group_object",
     "row_to_json", "array_to_json", "json_pretty", "json_structure", "json_type", "json_valid", "json_merge_patch",
     "json_extract", "json_extract_string", "json_value", "json_contains", "json_exists"]
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


def field_type(kind: pa.DataType | None, name: str) -> pa.DataType | None:
    """Return the type of a field of a struct; None if there is no such field."""
    if kind is None or not pa.types.is_struct(kind):
        return None
    return next((child.type for child in kind if child.name.lower() == name.lower()), None)


def type_or_none(node: exp.DataType) -> pa.DataType | None:
    """Return the Arrow type of a type in SQL; None if only the engine has the type."""
    try:
        return sql_type(node)
    except SqlError:
        return None


def type_of_literal(node: exp.Expr) -> pa.DataType | None:
    """Return the Arrow type of a number; None for any other expression."""
    value = literal_value(node)
    number = value is not NO_LITERAL and value is not None and not isinstance(value, (bool, str))
    return pa.float64() if number and not hasattr(value, "isoformat") else None


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is a number."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
