"""How functions and operators take Variants and what they return: tables by name, or by class of sqlglot.

Owns the tables. Leaves rewriting to `expressions`, which has a reader for each expression that needs more than a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.selection import Kind, element_of, field_of, only_variants
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.support.records import Record
from parquet_variant.types import DECIMAL_TYPES, INSTANT_TYPES, INTEGERS, LOCAL_TYPES, VariantType

_Value = TypeVar("_Value")
_KindOf = Callable[[list[Kind], exp.Expr], Kind]


class Rule(Record):
    """The form in which an expression takes Variants, and the Variants in its result."""

    # Casts to string or JSON, points in time, sort keys, values of which only the presence counts, the Variants
    # themselves, or only those inside of lists, maps and structs.
    takes: Literal["text", "json", "moment", "key", "presence", "same", "inside"]
    returns: _KindOf = lambda kinds, node: None
    only_first: bool = False  # Whether only the first argument may hold Variants.


def _map_of(kinds: list[Kind], _: exp.Expr) -> Kind:
    fields = list(element_of(kinds[0]) or ())
    return pa.map_(pa.string(), fields[1].type) if len(fields) == 2 else None


def _list_of_items(kinds: list[Kind], node: exp.Expr) -> Kind:
    item = element_of(kinds[0])
    if item is not None and node.name.lower() == "map_entries":
        item = pa.struct([pa.field("key", pa.null()), pa.field("value", item)])
    return None if item is None else pa.list_(item)


def _with_fields(kinds: list[Kind], node: exp.Expr) -> Kind:
    names = [part.name if isinstance(part, exp.PropertyEQ) else "" for part in node.expressions[1:]]
    added = [(name, kind) for name, kind in zip(names, kinds[1:], strict=True) if name]
    if kinds[0] is not None:
        return pa.struct([*kinds[0], *(pa.field(name, pa.null() if kind is None else kind) for name, kind in added)])
    if any(only_variants(kind) for _, kind in added):
        raise SqlError(f"{written(node)}: build the struct with struct_pack, so that its fields are known")
    return None


def assign(value: _Value, names: str = "", nodes: Iterable[type[exp.Expr]] = ()) -> dict[Any, _Value]:
    """Return a table with one value for some names, which spaces separate, and some classes of expressions."""
    return dict.fromkeys([*names.split(), *nodes], value)


_ELEMENT: _KindOf = lambda kinds, _: element_of(kinds[0])  # noqa: E731
PREPENDS = "list_prepend array_prepend array_push_front"
_LENGTHS = "len length array_length array_size size cardinality"
UNNESTS = frozenset(["unnest", "explode", "explode_outer", exp.Explode, exp.Unnest])
RULES: dict[Any, Rule] = {
    **assign(Rule("key"), "approx_count_distinct entropy grouping grouping_id", [exp.Ordered]),
    **assign(Rule("presence"), "count", [exp.Is, exp.Exists]),
    **assign(
        Rule("moment"),
        """date_trunc datetrunc date_part datepart date_diff datediff date_sub datesub date_add strftime time_bucket age
        epoch_ns epoch_us year month day hour minute second millisecond microsecond quarter week weekofyear dayofmonth
        dayofweek dayofyear weekday isodow isoyear yearweek century decade millennium era epoch dayname monthname
        last_day""",
        [exp.Extract, exp.AtTimeZone, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate],
    ),
    **assign(
        Rule("json"),
        """to_json json json_quote json_array json_object json_group_array json_group_object row_to_json array_to_json
        json_pretty json_structure json_type json_valid json_merge_patch json_each json_tree json_extract
        json_extract_string json_value json_contains json_exists""",
        [exp.JSONObject, exp.JSONArray, exp.JSONObjectAgg, exp.JSONArrayAgg, exp.JSONKeyValue],
    ),
    **assign(
        Rule("inside", lambda kinds, _: kinds[0]),
        """list_slice array_slice list_reverse array_reverse reverse list_append array_append array_push_back list_where
        list_select list_resize array_resize""",
    ),
    **assign(Rule("same", lambda kinds, _: kinds[-1]), PREPENDS),
    **assign(
        Rule("inside", _ELEMENT, only_first=True),
        "flatten element_at list_extract list_element array_extract list_first list_last",
    ),
    **dict.fromkeys(UNNESTS, Rule("inside", _ELEMENT, only_first=True)),
    **assign(Rule("inside", only_first=True), f"{_LENGTHS} map_keys map_contains", [exp.ArraySize]),
    **assign(Rule("inside", _list_of_items, only_first=True), "map_values map_entries map_extract"),
    **assign(Rule("same"), "variant_explode variant_explode_outer"),
    "map_from_entries": Rule("inside", _map_of, only_first=True),
    "struct_extract": Rule(
        "inside", lambda kinds, node: field_of(kinds[0], node.expressions[-1].name), only_first=True
    ),
    "struct_insert": Rule("inside", _with_fields),
}
# Of a Variant; some of these names are also those of functions of lists.
TEXT_RULES = assign(
    Rule("text"),
    """concat concat_ws format printf lower lcase upper ucase length len strlen char_length character_length substring
    substr trim ltrim rtrim replace left right lpad rpad repeat instr strpos position contains starts_with ends_with
    prefix suffix split split_part string_split str_split string_to_array regexp_matches regexp_replace regexp_extract
    regexp_extract_all regexp_full_match regexp_split_to_array string_agg listagg group_concat md5 sha1 sha256 ascii ord
    unicode translate levenshtein editdist3 jaccard jaro_similarity like_escape ilike_escape base64 initcap
    strip_accents soundex reverse bar hash array_to_string list_to_string""",
    [exp.DPipe, exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.RegexpILike, exp.Glob, exp.Substring, exp.Trim,
     exp.StrPosition, exp.GroupConcat, exp.Concat, exp.ConcatWs, exp.StartsWith, exp.EndsWith, exp.Escape, exp.Lower,
     exp.Upper],
)  # fmt: skip
# Functions of Spark that take Variants; `to_json` also takes values with Variants inside.
SPARK_RULES = assign(Rule("same"), "to_json is_variant_null schema_of_variant schema_of_variant_agg")


_DECIMALS = (*INTEGERS, *DECIMAL_TYPES)
_DOUBLES = (*_DECIMALS, VariantType.FLOAT, VariantType.DOUBLE)
# The end of the name of a test -> the types of its values, and the SQL type of the result; empty for a Variant.
_TESTS: dict[str, tuple[Iterable[VariantType], str]] = {
    "array": ([VariantType.ARRAY], ""),
    "object": ([VariantType.OBJECT], ""),
    "boolean": ([VariantType.BOOLEAN], "BOOLEAN"),
    "integer": (INTEGERS, "BIGINT"),
    **dict.fromkeys(("decimal", "number"), (_DECIMALS, "DECIMAL(38, 0)")),
    **dict.fromkeys(("double", "real"), (_DOUBLES, "DOUBLE")),
    **dict.fromkeys(("char", "varchar", "string"), ([VariantType.STRING], "TEXT")),
    "binary": ([VariantType.BINARY], "BLOB"),
    "date": ([VariantType.DATE], "DATE"),
    "time": ([VariantType.TIME], "TIME"),
    **dict.fromkeys(("timestamp_ltz", "timestamp_tz"), (INSTANT_TYPES, "TIMESTAMPTZ")),
    "timestamp_ntz": (LOCAL_TYPES, "TIMESTAMP_NTZ"),
}


def _is_one_of(types: Iterable[VariantType]) -> str:
    return f"variant_type(_0) IN ({', '.join(repr(str(kind)) for kind in types)})"


# Functions that are written as other SQL, in which _0, _1, … are the arguments.
MACROS: dict[str, str] = {
    **{f"is_{end}": f"({_is_one_of(types)})" for end, (types, _) in _TESTS.items()},
    # An integer that is stored among decimals is a decimal without a fraction.
    "is_integer": f"({_is_one_of(INTEGERS)} OR {_is_one_of(DECIMAL_TYPES)} AND NOT _0::TEXT LIKE '%.%')",
    **{
        f"as_{end}": f"CASE WHEN is_{end}(_0) THEN {f'TRY_CAST(_0 AS {result})' if result else '_0'} END"
        for end, (_, result) in _TESTS.items()
    },
    **dict.fromkeys(["len", "length"], "coalesce(array_size(_0), character_length(_0))"),
    "nullif": "CASE WHEN _0 = _1 THEN NULL ELSE _0 END",
    "typeof": "'VARIANT'",
    "variant_exists": "(_0 IS NOT NULL)",
    "variant_from_entries": (
        "variant_from_arrays(list_transform(_0, lambda _entry: (_entry).key), "
        "list_transform(_0, lambda _entry: (_entry).value))"
    ),
}
