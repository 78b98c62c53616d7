"""Lists, maps and structs with Variants inside: building, accessing and transforming them, and their casts.

Owns which functions accept such values, and which take a Variant as JSON or text. Leaves Variants themselves to
`values`, and all other expressions to `expressions`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.rewriting.values import Convert, PathRewriter, Value, value_of
from parquet_variant.query.selection import Kind, element_of, field_of, holds_variants, is_variant
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_types import sql_type
from parquet_variant.types.targets import VARIANT_STORAGE

_STRUCTS = {"row", "struct_pack", "struct", "named_struct"}
_LISTS = {"list_value", "list_pack", "array"}
_EXPLODES = {"variant_explode", "variant_explode_outer"}
_PREPENDS = {"list_prepend", "array_prepend", "array_push_front"}
_ROWS = {"unnest", "explode", "explode_outer"}
_OF_SAME_KIND = """
    list_slice array_slice list_reverse array_reverse reverse list_concat array_concat list_cat array_cat list_append
    array_append array_push_back list_where list_select list_resize array_resize map_concat
"""
_ELEMENTS = "flatten element_at list_extract list_element array_extract list_first list_last"
_WITHOUT_VARIANTS = "len length array_length array_size size cardinality map_keys map_contains"
_TRANSFORMS = {"list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform"}
_FILTERS = {"list_filter", "array_filter", "filter"}
_TESTS = {"exists", "forall"}
_OF_SPARK = {"exists": "len(list_filter(list, x -> …)) > 0"}
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


class NestedRewriter(PathRewriter):
    """Rewrites expressions over values with Variants inside."""

    @abstractmethod
    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr], *, mixes: bool = False) -> tuple[list[Value], Kind]:
        """Rewrite the parts of which an expression returns one; all must hold the same Variants, which are returned.

        `mixes`: whether parts may be replaced by a common form.
        """

    def allowed(self, parts: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Rewrite parts that may hold Variants."""
        return [self.expression(part).sql for part in parts]

    def read_nested(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite an expression over nested values; None for any other expression.

        `name`: the name of the function in lower case, if sqlglot has no class for it.
        """
        arguments = node.expressions
        if isinstance(node, (exp.Bracket, exp.Dot)):
            value = self.expression(node.this)
            field = {"expression": node.expression.copy()} if isinstance(node.expression, exp.Identifier) else {}
            return value_of(node, self.rebuild(node, this=value.sql, **field), taken_from(value.kind, node))
        if name in _OF_SPARK and self.engine != "spark":
            raise SqlError(f"{name} is a function of Spark, not of DuckDB: write {_OF_SPARK[name]}")
        if isinstance(node, (exp.Struct, exp.Array, exp.ToMap, exp.Map, exp.Tuple)) or name in _STRUCTS | _LISTS:
            return self._read_constructor(node, name)
        if isinstance(node, exp.Transform):
            return self._read_by_lambda(node, name, node.this, node.expression)
        if name in _TRANSFORMS | _FILTERS | _TESTS:
            return self._read_by_lambda(node, name, *arguments[:2])
        if isinstance(node, exp.Comprehension):
            names = [part.name for part in (node.expression, node.args.get("position")) if part]
            return self.in_lambda(node, names, element_of(self.expression(node.args["iterator"]).kind))
        if isinstance(node, exp.DPipe) and _is_list(self.expression(node.this).kind):
            values, kind = self.alike(node, [node.this, node.expression])
            return value_of(node, self.rebuild(node, this=values[0].sql, expression=values[1].sql), kind)
        if name in _RULES or isinstance(node, (exp.Explode, exp.Unnest, exp.ArraySize)):
            return self._read_by_rule(node, name)
        return None

    def _read_by_rule(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a function of `_RULES`, or an expression that returns elements or their number."""
        key = "this" if isinstance(node, (exp.Explode, exp.ArraySize)) else "expressions"
        arguments = [node.this] if key == "this" else node.expressions
        if not arguments:
            return value_of(node, self.rebuild(node))
        takes_all, kind_of = _RULES[name or ("len" if isinstance(node, exp.ArraySize) else "unnest")]
        # With further arguments, such as recursive := true, unnest would split Variants into their bytes.
        splits = (isinstance(node, exp.Unnest) or name in _ROWS) and len(arguments) > 1
        count = 0 if splits else len(arguments) if takes_all else 1  # of the arguments that may hold Variants
        values = [self.expression(part) for part in arguments[: count or 1]]
        if values[0].is_variant and name not in _PREPENDS | _EXPLODES:
            text = self.text(values[0].source)
            raise SqlError(
                f"{text} is a Variant, not a list: write {text}::array<variant>, or another type of elements"
            )
        parts = [*(value.sql for value in values[:count]), *self.parts(arguments[count:])]
        rebuilt = self.rebuild(node, **{key: parts[0] if key == "this" else parts})
        return value_of(node, rebuilt, kind_of([value.kind for value in values], node))

    def _read_constructor(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a constructor of a struct, list or map."""
        if isinstance(node, exp.ToMap):
            entries = self.expression(node.this)
            kinds = [] if entries.kind is None else [field.type for field in entries.kind]
            item = next((kind for kind in kinds if not pa.types.is_null(kind)), None)
            kind = None if item is None else pa.map_(pa.string(), item)
            return value_of(node, self.rebuild(node, this=entries.sql), kind)
        if isinstance(node, exp.Map):
            maps = {key: self.expression(node.args[key]) for key in ("keys", "values") if node.args.get(key)}
            item = element_of(maps["values"].kind) if len(maps) == 2 else None
            kind = None if item is None else pa.map_(pa.string(), item)
            return value_of(node, self.rebuild(node, **{key: value.sql for key, value in maps.items()}), kind)
        if isinstance(node, exp.Array) or name in _LISTS:
            values, item = self.alike(node, node.expressions)
            rebuilt = self.rebuild(node, expressions=[value.sql for value in values])
            return value_of(node, rebuilt, None if item is None else pa.list_(item))
        parts = node.expressions
        rebuilt = self.rebuild(node, expressions=self.allowed(parts))
        named = (exp.PropertyEQ, exp.Alias, exp.Column) if name == "struct" else (exp.PropertyEQ, exp.Alias)
        # Fields without names, as those of row(…), are called "".
        names = [part.alias_or_name if isinstance(part, named) else "" for part in parts]
        if name == "named_struct":
            names, parts = [part.name for part in parts[::2]], parts[1::2]
        kinds = [self.expression(part).kind for part in parts]
        fields = [pa.field(key, pa.null() if kind is None else kind) for key, kind in zip(names, kinds, strict=True)]
        return value_of(node, rebuilt, pa.struct(fields) if any(kind is not None for kind in kinds) else None)

    def in_lambda(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Value:
        """Rewrite a lambda whose first parameter is an element; its Variants are those of its result."""
        before = self.scope.locals
        self.scope.locals = before | {name.lower(): None for name in names} | {names[0].lower(): element}
        keys = ("expressions",) if isinstance(node, exp.Lambda) else ("expression", "position")
        parameters = {key: self.copied(node.args[key]) for key in keys if node.args.get(key)}
        parameters |= {key: self.expression(node.args[key]).sql for key in ("iterator",) if node.args.get(key)}
        body = self.expression(node.this)
        rebuilt = self.rebuild(node, this=body.sql, **parameters)
        self.scope.locals = before
        return value_of(node, rebuilt, body.kind)

    def copied(self, part: Any) -> Any:
        """Return names as they are."""
        return [name.copy() for name in part] if isinstance(part, list) else part.copy()

    def _read_by_lambda(
        self, node: exp.Expr, name: str, elements: exp.Expr | None = None, function: exp.Expr | None = None
    ) -> Value:
        """Rewrite a function that transforms or filters the elements of a list by a lambda."""
        if elements is None or function is None:
            return value_of(node, self.rebuild(node))
        kind = self.expression(elements).kind
        if isinstance(function, exp.Lambda):
            result = self.in_lambda(function, [name.name for name in function.expressions], element_of(kind))
            if name not in _FILTERS:
                kind = None if result.kind is None or name in _TESTS else pa.list_(result.kind)
        else:
            result = self.expression(function)
        parts = [self.expression(elements).sql, result.sql]
        if isinstance(node, exp.Transform):
            return value_of(node, self.rebuild(node, this=parts[0], expression=parts[1]), kind)
        return value_of(node, self.rebuild(node, expressions=[*parts, *self.parts(node.expressions[2:])]), kind)

    # ---- casts

    def cast_inside(self, node: exp.Cast, value: Value) -> exp.Expr:
        """Return the cast of a value with Variants inside, each cast as the Variant itself would be."""
        if node.is_type("json"):
            return exp.Anonymous(this="to_json", expressions=[self.as_json(value)])
        if node.is_type(*exp.DataType.TEXT_TYPES):
            return self.as_text(value)
        target = sql_type(node.to, self.engine)
        inside = _replace_variants(value.sql, value.kind, target, lambda v, part: self.cast_to(v, part or pa.string()))
        return self.rebuild(node, this=inside)

    def as_json(self, value: Value) -> exp.Expr:
        """Return a value with DuckDB's JSON in place of each Variant."""
        return _replace_variants(
            value.sql, value.kind, None, lambda variant, _: exp.cast(self.call("to_json", variant), "JSON")
        )

    def as_text(self, value: Value) -> exp.Expr:
        """Return the text of a value, in which each Variant is written as its cast to string."""
        typed = value.typed()
        if typed is not None and typed.type is not None and pa.types.is_string(typed.type):
            return typed.sql
        if value.is_variant:
            return self.cast_to(value.sql, pa.string())
        inside = _replace_variants(value.sql, value.kind, None, lambda variant, _: self.cast_to(variant, pa.string()))
        return exp.cast(inside, "TEXT")

    def text_of(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an argument that is text; a Variant is its cast to string."""
        value = self.expression(node)
        return value.sql if value.kind is None else self.as_text(value)

    def variant_of(self, value: Value) -> Value:
        """Return any value as a Variant."""
        if value.kind is None or value.is_variant:
            return value if value.is_variant else self.as_variant(value)
        text = exp.cast(exp.Anonymous(this="to_json", expressions=[self.as_json(value)]), "TEXT")
        parsed = self.call("parse_json", exp.Anonymous(this="encode", expressions=[text]))
        return value_of(value.source, parsed, VARIANT_STORAGE)

    def conversion(self, node: exp.Expr, name: str) -> Convert | None:
        """Return the conversion of Variants that are arguments of an expression; None if these are refused.

        `name`: the function's name in lower case, or empty.
        """
        if self.engine != "duckdb":
            return None
        if name in _JSON_FUNCTIONS or isinstance(node, _JSON_NODES):
            return self.as_json
        return self.as_text if name in TEXT_FUNCTIONS or isinstance(node, _TEXT_NODES) else None


def taken_from(kind: Kind, node: exp.Bracket | exp.Dot) -> Kind:
    """Return the kind of ``value[…]`` or ``value.name``."""
    if isinstance(node, exp.Dot):
        return field_of(kind, node.expression.name)
    if any(isinstance(part, exp.Slice) for part in node.expressions):
        return kind
    if kind is not None and pa.types.is_struct(kind):
        return field_of(kind, node.expressions[0].name)
    return element_of(kind)


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
    if any(kind is not None for _, kind in added):
        raise SqlError(f"{written(node)}: build the struct with struct_pack, so that its fields are known")
    return None


# Functions of lists, maps and structs: whether all arguments may hold Variants, or only the first one, and what returns
# the kind of the result for the kinds of these arguments.
_RULES: dict[str, tuple[bool, Callable[[list[Kind], exp.Expr], Kind]]] = {
    **dict.fromkeys(_OF_SAME_KIND.split(), (True, lambda kinds, _: kinds[0])),
    **dict.fromkeys(_PREPENDS, (True, lambda kinds, _: kinds[-1])),
    **dict.fromkeys([*_ROWS, *_ELEMENTS.split()], (False, lambda kinds, _: element_of(kinds[0]))),
    **dict.fromkeys(_WITHOUT_VARIANTS.split(), (False, lambda kinds, _: None)),
    **dict.fromkeys(("map_values", "map_entries", "map_extract"), (False, _list_of_items)),
    **dict.fromkeys(_EXPLODES, (True, lambda kinds, _: None)),
    "map_from_entries": (False, _map_of),
    "struct_extract": (False, lambda kinds, node: field_of(kinds[0], node.expressions[-1].name)),
    "struct_insert": (True, _with_fields),
}


def _is_list(kind: Kind) -> bool:
    return kind is not None and (pa.types.is_list(kind) or pa.types.is_map(kind))


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
