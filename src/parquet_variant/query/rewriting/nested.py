"""Lists, maps and structs with Variants inside: building, accessing and transforming them, and their casts.

Owns lambdas, constructors, Variants as text and JSON, and the common form of values of which an expression returns one,
such as `coalesce(v:a, 0)`. Leaves functions with a rule to `rules`, Variants themselves to `values`, and all other
expressions to `expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.layouts.type_grammar import wildcard_count
from parquet_variant.query.path_dialect import key_in_brackets, steps_of
from parquet_variant.query.rewriting.scopes import unknown_name
from parquet_variant.query.rewriting.values import (
    Around,
    PathRewriter,
    Value,
    VariantTerm,
    arguments_of,
    classes_of,
    common_type,
    copies,
    engine_call,
    list_of,
    made_of,
    value_of,
)
from parquet_variant.query.selection import Kind, element_of, field_of, holds_variants, is_variant, only_variants
from parquet_variant.query.sql_dialect import SqlError, from_template, sql_type, sql_type_named, written
from parquet_variant.query.sql_pushdown import NO_LITERAL, class_of_type, class_of_value, literal_value
from parquet_variant.support.options import SqlEngine
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

GETTERS = {"variant_get": False, "try_variant_get": True}
STRUCTS = frozenset(["row", "struct_pack", "struct", "named_struct"])
LISTS = frozenset(["list_value", "list_pack", "array"])
TRANSFORMS = frozenset(["list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform"])
FILTERS = frozenset(["list_filter", "array_filter", "filter"])
TESTS = frozenset(["exists", "forall"])
# Callback: a Variant, and the type of its place in the target type -> what replaces it.
_Leaf = Callable[[exp.Expr, pa.DataType | None], exp.Expr]
OF_FIRST_PART = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_NO_ELEMENTS = exp.Array(expressions=[])


class NestedRewriter(PathRewriter):
    """Rewrites expressions over values with Variants inside."""

    # Whether the outputs are those of the whole query. Those of a subquery remain Variants, whatever the data is,
    # because functions and paths may need Variants.
    is_result = False

    def read_getter(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite ``variant_get(v, '$.a')``."""
        if not node.expressions:
            return None
        value = self.variant_argument(node.expressions[0])
        if not value.is_path and self.engine == "spark":
            return None
        path, *types = map(literal_value, node.expressions[1:] or [node])
        if len(types) > 1 or not isinstance(path, str | None) or not all(isinstance(part, str) for part in types):
            raise SqlError(f"{self.text(node)}: write {name}(column, '$.path', 'type') with both in quotes")
        if path is None:
            value, path = self.as_variant(value_of(node, exp.Null())), "$"
        self._check_variant(node, value)
        term, root = self.value_at(value, VariantPath.parse(path).segments, node).start
        kind = sql_type_named(types[0], self.engine) if types else None
        return self.path(root, replace(_cast_term(term, kind, node, self.engine), tries=GETTERS[name]), node)

    def read_extraction(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite ``v:a``, and ``v->'a'`` and ``v->>'a'``, a string."""
        value = self.expression(node.this)
        if node.args.get("variant_extract") and isinstance(node, exp.JSONExtract):
            self._check_variant(node, value)
        elif self.engine != "duckdb" or not isinstance(node.expression, exp.JSONPath) or not value.is_path:
            return None
        found = self.value_at(value, steps_of(node), node)
        is_text, (term, root) = isinstance(node, exp.JSONExtractScalar), found.start
        return self.path(root, replace(term, type=pa.string(), cast=True), node) if is_text else found

    def read_access(self, node: exp.Expr, _: str) -> Value:
        """Rewrite ``v['a']``, ``(v:a).b``, and ``list[1]``, ``map['key']`` and ``struct.name``."""
        value, is_name = self.expression(node.this), isinstance(node.expression, exp.Identifier)
        if value.is_path and isinstance(node, exp.Bracket):
            return self.value_at(value, (_subscript(node, self.engine),), node)
        if value.is_path and is_name:
            return self.value_at(value, (node.expression.name,), node)
        field = {"expression": node.expression.copy()} if is_name else {}

        def type_of(types: list[Kind]) -> Kind:
            if isinstance(node, exp.Dot) or (types[0] is not None and pa.types.is_struct(types[0])):
                return field_of(types[0], node.expression.name if is_name else node.expressions[0].name)
            is_slice = any(isinstance(part, exp.Slice) for part in node.expressions)
            return types[0] if is_slice else element_of(types[0])

        return made_of([value], node, lambda parts: self.rebuild(node, this=parts[0], **copies(field)), type_of)

    def value_at(self, value: Value, steps: tuple[Segment, ...], source: exp.Expr) -> Value:
        """Return the value at a path of a Variant."""
        term, root = value.start
        return self.path(root, VariantTerm(VariantPath((*term.path.segments, *steps))), source)

    def _check_variant(self, node: exp.Expr, value: Value) -> None:
        """Raise `SqlError` if the value before a path is not a Variant."""
        inner = value.source
        if value.is_path:
            return
        if isinstance(inner, exp.Column) and self.resolve(inner) is None and not self.scope.is_known(inner):
            key, names = steps_of(node)[0] if isinstance(node, exp.JSONExtract) else None, self.scope.names()
            hint = f"; {key} is a column, written without {inner.name}:" if key in names else ""
            raise SqlError(unknown_name(self.scope, inner, self.engine) + hint)
        if value.type is not None and pa.types.is_string(value.type):
            text = self.text(inner)
            raise SqlError(f"{text} is not a Variant, but a string: write parse_json({text}):a if it is JSON")
        slices = "; a slice is written list_slice(list, 1, 2)" if node.find_ancestor(exp.Bracket) else ""
        problem = f"{self.text(inner)} is not a Variant column, and only Variants have paths such as {self.text(node)}"
        raise SqlError(problem + slices)

    def read_cast(self, node: exp.Cast, _: str) -> Value:
        """Rewrite a cast."""
        value, is_json = self.expression(node.this), node.is_type(exp.DataType.Type.JSON)
        if node.is_type(exp.DataType.Type.VARIANT) and self.engine == "duckdb" and not value.is_path:
            return replace(self.as_variant(value), source=node)
        if value.kind is None or (self.engine == "spark" and (is_json or not value.is_path)):
            return value_of(node, self.rebuild(node), _type_or_none(node.to))
        if is_json or not value.is_path:
            if is_json:
                rewritten: exp.Expr = engine_call("to_json", self.as_json(value))
            elif node.is_type(*exp.DataType.TEXT_TYPES):
                rewritten = self.as_text(value)
            else:
                target = sql_type(node.to, self.engine)
                cast = lambda v, part: self.cast_to(v, part or pa.string(), node.this)  # noqa: E731
                rewritten = self.rebuild(node, this=_replace_variants(value.sql, value.kind, target, cast))
            return value_of(node, rewritten, _type_or_none(node.to))
        if node.args.get("format") is not None:
            raise SqlError(f"{self.text(node)}: a cast of a Variant cannot have a format")
        term, root = value.start
        typed = _cast_term(term, sql_type(node.to, self.engine), node, self.engine)
        return self.path(root, replace(typed, tries=isinstance(node, exp.TryCast)), node)

    def read_joined_lists(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite ``list || list`` and ``list_concat(list, …)``; None for text."""
        sides = arguments_of(node)
        kinds = [self.expression(side).kind for side in sides]
        if not any(kind is not None and (pa.types.is_list(kind) or pa.types.is_map(kind)) for kind in kinds):
            return None
        return made_of(self.unify(node, sides), node, lambda parts: self.with_arguments(node, parts), common_type)

    def read_map(self, node: exp.Expr, _: str) -> Value:
        """Rewrite ``MAP {…}`` and ``MAP(keys, values)``."""
        if isinstance(node.this, exp.Bracket):  # sqlglot reads MAP {…}['a'] as the map of {…}['a']
            entries, keys = copies(node.this.this), copies(node.this.expressions)
            return self.expression(exp.Bracket(this=exp.ToMap(this=entries), expressions=keys))
        if isinstance(node.args.get("keys"), exp.Literal):  # sqlglot keeps only two arguments of Spark's map
            raise SqlError("map takes a list of keys and a list of values: write MAP {'key': value}")

        def map_of(types: Iterable[Kind]) -> Kind:
            item = common_type(types)
            return None if item is None else pa.map_(pa.string(), item)

        if isinstance(node, exp.Map):
            if (values := node.args.get("values")) is None:  # MAP()
                return value_of(node, self.rebuild(node))
            with_values = lambda parts: self.rebuild(node, values=parts[0])  # noqa: E731
            return made_of([self.expression(values)], node, with_values, lambda types: map_of(map(element_of, types)))
        pairs = node.this.expressions

        def with_entries(parts: list[exp.Expr]) -> exp.Expr:
            entries = [self.rebuild(pair, expression=part) for pair, part in zip(pairs, parts, strict=True)]
            return exp.ToMap(this=exp.Struct(expressions=entries))

        return made_of(self.unify(node, [pair.expression for pair in pairs]), node, with_entries, map_of, alike=True)

    def read_list(self, node: exp.Expr, _: str) -> Value:
        """Rewrite a constructor of a list."""
        values = self.unify(node, node.expressions)
        # array(1, 2) of Spark, but not array(SELECT …)
        is_call = isinstance(node, exp.Anonymous) and not isinstance(next(iter(node.expressions), None), exp.Query)
        around = lambda p: exp.Array(expressions=p) if is_call else self.rebuild(node, expressions=p)  # noqa: E731
        return made_of(values, node, around, list_of, alike=True)

    def read_struct(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a constructor of a struct."""
        parts = node.expressions
        if name == "named_struct" and self.engine == "duckdb":
            keys = (exp.to_identifier(key.name, quoted=True) for key in parts[::2])
            pairs = zip(keys, copies(parts[1::2]), strict=True)
            return self.expression(
                engine_call("struct_pack", *(exp.PropertyEQ(this=k, expression=v) for k, v in pairs))
            )
        named = (exp.PropertyEQ, exp.Alias, exp.Column) if name == "struct" else (exp.PropertyEQ, exp.Alias)
        # Fields without names, as those of row(…), are called "".
        names = [part.alias_or_name if isinstance(part, named) else "" for part in parts]
        if name == "named_struct":
            names[1::2] = [part.name for part in parts[::2]]

        def type_of(types: list[Kind]) -> Kind:
            is_known = all(names) and None not in types
            fields = [pa.field(n, pa.null() if kind is None else kind) for n, kind in zip(names, types, strict=True)]
            return pa.struct(fields) if is_known or any(map(only_variants, types)) else None

        return made_of(list(map(self.expression, parts)), node, lambda p: self.rebuild(node, expressions=p), type_of)

    def read_lambda(self, node: exp.Expr, _: str = "", element: Kind = None) -> Value:
        """Rewrite a lambda or comprehension; its Variants are those of its result.

        `element`: the Variants in the first parameter.
        """
        clauses = {key: part for key in ("expressions", "expression", "position") if (part := node.args.get(key))}
        parameters = [part for value in clauses.values() for part in (value if isinstance(value, list) else [value])]
        if (iterator := node.args.get("iterator")) is not None:
            elements = self.expression(iterator).typed() or self.expression(iterator)
            clauses["iterator"], element = elements.sql, element_of(elements.type)
        before = self.scope.locals
        names = [parameter.name.lower() for parameter in parameters]
        self.scope.locals = before | dict.fromkeys(names) | {names[0]: element}
        body = self.expression(node.this)
        rebuilt = self.rebuild(node, **(copies(clauses) | {"this": body.sql}))
        self.scope.locals = before
        return value_of(node, rebuilt, body.kind)

    def read_by_lambda(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a function that transforms or filters the elements of a list by a lambda."""
        if name == "exists" and self.engine != "spark":
            raise SqlError(f"{name} is a function of Spark, not of DuckDB: write len(list_filter(list, x -> …)) > 0")
        arguments = [node.this, node.expression] if isinstance(node, exp.Transform) else node.expressions
        if len(arguments) < 2:
            return value_of(node, self.rebuild(node))
        elements, function = self.expression(arguments[0]).typed() or self.expression(arguments[0]), arguments[1]
        is_lambda = isinstance(function, exp.Lambda)
        result = self.read_lambda(function, "", element_of(elements.type)) if is_lambda else self.expression(function)
        kind = elements.type
        if is_lambda and name not in FILTERS:
            kind = None if result.kind is None or name in TESTS else pa.list_(result.kind)
        if isinstance(node, exp.Transform):
            return value_of(node, self.rebuild(node, this=elements.sql, expression=result.sql), kind)
        parts = [elements.sql, result.sql, *self.parts(arguments[2:])]
        return value_of(node, self.rebuild(node, expressions=parts), kind)

    def read_one_of(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a function that returns any of its arguments, but for the condition of ``if``."""
        if isinstance(node, exp.If):
            keys = [key for key in ("true", "false") if node.args.get(key) is not None]
            parts = [node.args[key] for key in keys]
            return self.one_of(node, parts, lambda parts: self.rebuild(node, **dict(zip(keys, parts, strict=True))))
        arguments, start = arguments_of(node), int(name in ("if", "iff"))
        before = self.parts(arguments[:start])
        around = lambda parts: self.with_arguments(node, [*before, *parts])  # noqa: E731
        return self.one_of(node, arguments[start:], around, skips_nulls=not start)

    def read_case(self, node: exp.Expr, _: str) -> Value:
        """Rewrite CASE."""
        branches, operand = node.args.get("ifs") or [], node.this
        by_value = operand is not None and self.expression(operand).is_variant
        conditions = [
            self.plain(exp.EQ(this=operand.copy(), expression=branch.this.copy()) if by_value else branch.this)
            for branch in branches
        ]
        operand_part = {} if by_value or operand is None else {"this": self.parts(operand)}
        default = node.args.get("default")

        def around(parts: list[exp.Expr]) -> exp.Expr:
            ifs = [exp.If(this=c.copy(), true=part) for c, part in zip(conditions, parts, strict=False)]
            default_part = {} if default is None else {"default": parts[-1]}
            return exp.Case(ifs=ifs, **{key: part.copy() for key, part in operand_part.items()}, **default_part)

        parts = [branch.args["true"] for branch in branches]
        return self.one_of(node, parts if default is None else [*parts, default], around)

    def one_of(self, node: exp.Expr, parts: Sequence[exp.Expr], around: Around, *, skips_nulls: bool = False) -> Value:
        """Rewrite an expression that returns one of its parts, such as CASE.

        `around`: returns the expression with rewritten parts.
        `skips_nulls`: whether it is the first part that is not NULL.
        """
        values = self.unify(node, parts)
        values = [*map(self.without_nulls, values[:-1]), *values[-1:]] if skips_nulls else values
        return made_of(values, node, around, common_type, alike=True)

    def unify(self, node: exp.Expr, parts: Sequence[exp.Expr]) -> list[Value]:
        """Rewrite the parts of which an expression returns one: in one type, or else as the same Variants."""
        values = [self.expression(part) for part in parts]
        is_mixed = any(kind != other for kind, other in pairwise(_kinds_of(values)))
        if self.engine == "duckdb" and any(value.is_variant for value in values) and is_mixed:
            forms = [value if isinstance(value.source, exp.Null) else value.typed_or_null() for value in values]
            if len(classes := classes_of(forms)) < 2:
                kind = next(iter(classes), None)  # None if no row has the Variants
                pairs = zip(values, forms, strict=True)
                forms = [form or (value if _has_type(value, kind) else None) for value, form in pairs]
            typed = [form for form in forms if form is not None]
            if len(typed) == len(values):
                return typed
            values = [value if isinstance(value.source, exp.Null) else self.as_variant(value) for value in values]
        if any(kind != other for kind, other in pairwise(_kinds_of(values))):
            forms = [value if value.kind is None else value.typed() for value in values]
            if None not in forms:  # lists and structs, which the engine gives one type
                return [form for form in forms if form is not None]
            raise SqlError(f"{self.text(node)} mixes a Variant with other values: cast the Variant, as in ::string")
        return values

    def without_nulls(self, value: Value) -> Value:
        """Return a value with NULL in place of Variant null, as typed values have it."""
        if not value.is_variant or self.engine != "duckdb":
            return value

        def present(variant: exp.Expr) -> exp.Expr:
            return from_template(
                "CASE WHEN NOT _0 THEN _1 END", [self.call("is_variant_null", variant.copy()), variant]
            )

        return replace(value, make=lambda: bound_once(value.sql, present))

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

    def variant_argument(self, node: exp.Expr) -> Value:
        """Rewrite an argument that should be a Variant, as a NULL without a type is."""
        value = self.expression(node)
        return self.as_variant(value) if literal_value(node.unnest()) is None else value


def _replace_variants(value: exp.Expr, kind: Kind, target: pa.DataType | None, leaf: _Leaf) -> exp.Expr:
    """Return a value with each Variant replaced; `target` is the type that the whole is cast to, if there is one."""
    if kind is None or not holds_variants(kind):
        return value
    if is_variant(kind):
        return leaf(value, target)
    if pa.types.is_list(kind):
        inner = target.value_type if target is not None and pa.types.is_list(target) else None
        return _list_transform(value, lambda element: _replace_variants(element, kind.value_type, inner, leaf))
    if pa.types.is_map(kind):
        entry, into = pa.struct([("key", pa.null()), ("value", kind.item_type)]), None
        if target is not None and pa.types.is_map(target):
            into = pa.list_(pa.struct([("key", pa.null()), ("value", target.item_type)]))
        entries = _replace_variants(engine_call("map_entries", value), pa.list_(entry), into, leaf)
        return engine_call("map_from_entries", entries)
    names = [field.name for field in kind]
    if any(names) and len({name.lower() for name in names}) < len(names):
        raise SqlError(f"a struct with the fields {', '.join(names)} cannot be cast: two names differ only in case")
    fields = list(target) if target is not None and pa.types.is_struct(target) else []
    types = {field.name.lower(): field.type for field in reversed(fields)}

    def made(struct: exp.Expr) -> exp.Expr:
        parts = []
        for number, (name, field) in enumerate(zip(names, kind, strict=True)):
            part: exp.Expr = engine_call("struct_extract_at", struct.copy(), exp.Literal.number(number + 1))
            if any(names):
                part = exp.Dot(this=exp.Paren(this=struct.copy()), expression=exp.to_identifier(name, quoted=True))
            into = types.get(name.lower(), fields[number].type if number < len(fields) else None)
            part = _replace_variants(part, field.type, into, leaf)
            key = exp.to_identifier(name, quoted=True)
            parts.append(exp.PropertyEQ(this=key, expression=part) if any(names) else part)
        packed = engine_call("struct_pack" if any(names) else "row", *parts)
        return from_template("CASE WHEN _0 IS NULL THEN NULL ELSE _1 END", [struct, packed])

    return bound_once(value, made)


def bound_once(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return an expression over a value that is computed once, however often `body` names it."""
    if isinstance(value, (exp.Column, exp.Identifier)):
        return body(value)
    lists = _list_transform(exp.Array(expressions=[value]), body)
    return engine_call("list_extract", lists, exp.Literal.number(1))


def _list_transform(lists: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    # Equal expressions have equal names, so that the engine knows them in GROUP BY.
    around = [int(part.name[9:]) for part in lists.find_all(exp.Identifier) if part.name.startswith("_element_")]
    name = exp.to_identifier(f"_element_{max(around, default=0) + 1}")
    return engine_call("list_transform", lists, exp.Lambda(this=body(name), expressions=[name]))


def _type_or_none(node: exp.DataType) -> pa.DataType | None:
    """Return the Arrow type of a type in SQL; None for the engine's own types, of which VARIANT is one."""
    try:
        kind = sql_type(node)
    except SqlError:
        return None
    return None if kind is None or holds_variants(kind) else kind


def _cast_term(term: VariantTerm, kind: pa.DataType | None, node: exp.Expr, engine: SqlEngine) -> VariantTerm:
    """Add a cast to a term; with wildcards the type is that of the whole list, as in ``v:items[*].n::array<int>``."""
    for _ in range(wildcard_count(term.path) if kind is not None else 0):
        if kind is None or not pa.types.is_list(kind):
            problem = f"{written(node, engine)}: the result of a path with [*] is an array: cast it to array<type>"
            raise SqlError(problem, reason="bad-type")
        kind = kind.value_type
    return replace(term, type=kind, cast=True)


def _subscript(node: exp.Bracket, engine: SqlEngine) -> Segment:
    """Return the step of ``v[…]``."""
    (index, *more) = node.expressions
    if not more and isinstance(index, exp.Literal):
        if index.is_string:
            return key_in_brackets(index.name)
        if index.name.isdecimal():
            return int(index.name[:20])
    if not more and isinstance(index, exp.Column) and index.this.quoted and not index.table:
        return index.name  # v["a"] where double quotes delimit names
    if not more and isinstance(index, exp.Star):
        return WILDCARD
    raise SqlError(f"{written(node, engine)}: a subscript of a Variant is [0], ['key'] or [*]", reason="bad-path")


def _kinds_of(values: Sequence[Value]) -> list[Kind]:
    """Return the Variants in each value, but for NULL and lists without elements, which fit all others."""
    return [v.kind for v in values if not isinstance(v.source, exp.Null) and v.source != _NO_ELEMENTS]


def _has_type(value: Value, kind: Any) -> bool:
    """Return whether a value has a class, or a type without one, or is one of the engine whose type is not known."""
    literal = literal_value(value.source.unnest())
    if literal is NO_LITERAL or kind is None:
        is_unknown = value.kind is None and (kind is None or value.type is None)
        return is_unknown or (kind is not None and (class_of_type(value.type) or value.type) == kind)
    return isinstance(literal, (bool, int, float, Decimal, str)) and kind == class_of_value(literal)
