"""Lists, maps and structs with Variants inside: building, accessing and transforming them, and their casts.

Owns lambdas, constructors, Variants as text and JSON, and the common form of values of which an expression returns one,
such as `coalesce(v:a, 0)`. Leaves functions with a rule to `rules`, Variants themselves to `values`, and all other
expressions to `expressions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.layouts.type_grammar import wildcard_count
from parquet_variant.query.path_dialect import key_in_brackets, steps_of, with_steps
from parquet_variant.query.rewriting.scopes import unknown_name
from parquet_variant.query.rewriting.values import (
    PathRewriter,
    Value,
    VariantTerm,
    arguments_of,
    copies,
    engine_call,
    value_of,
)
from parquet_variant.query.selection import Kind, element_of, field_of, holds_variants, is_variant
from parquet_variant.query.sql_dialect import SqlError, from_template, sql_type, sql_type_named, written
from parquet_variant.query.sql_pushdown import NO_LITERAL, class_of_type, class_of_value, literal_value
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

GETTERS = {"variant_get": False, "try_variant_get": True}
STRUCTS = frozenset(["row", "struct_pack", "struct", "named_struct"])
LISTS = frozenset(["list_value", "list_pack", "array"])
TRANSFORMS = frozenset(["list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform"])
FILTERS = frozenset(["list_filter", "array_filter", "filter"])
TESTS = frozenset(["exists", "forall"])
# Callback: a Variant, and the type of its place in the target type -> what replaces it.
_Leaf = Callable[[exp.Expr, pa.DataType | None], exp.Expr]
_Around = Callable[[list[exp.Expr]], exp.Expr]  # Callback: rewritten parts -> the expression that has them.
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
        """Rewrite ``v:a``; refuse ``v->'a'``."""
        if node.args.get("variant_extract") and isinstance(node, exp.JSONExtract):
            value = self.expression(node.this)
            self._check_variant(node, value)
            return self.value_at(value, steps_of(node), node)
        if self.engine == "duckdb" and self.expression(node.this).is_variant:
            raise self._arrow_error(node)
        return None

    def read_access(self, node: exp.Expr, _: str) -> Value:
        """Rewrite ``v['a']``, ``(v:a).b``, and ``list[1]``, ``map['key']`` and ``struct.name``."""
        value, is_name = self.expression(node.this), isinstance(node.expression, exp.Identifier)
        if value.is_path and isinstance(node, exp.Bracket):
            return self.value_at(value, (_subscript(node, self.engine),), node)
        if value.is_path and is_name:
            return self.value_at(value, (node.expression.name,), node)
        field = {"expression": node.expression.copy()} if is_name else {}
        rebuilt = self.rebuild(node, this=value.sql, **field)
        if isinstance(node, exp.Dot):
            return value_of(node, rebuilt, field_of(value.kind, node.expression.name))
        if any(isinstance(part, exp.Slice) for part in node.expressions):
            return value_of(node, rebuilt, value.kind)
        if value.kind is not None and pa.types.is_struct(value.kind):
            return value_of(node, rebuilt, field_of(value.kind, node.expressions[0].name))
        return value_of(node, rebuilt, element_of(value.kind))

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

    def _arrow_error(self, node: exp.Expr) -> SqlError:
        """Return the error for ``v->'a'->>'b'``, which is JSON's."""
        outer, steps, arrows = node, list[Any](), (exp.JSONExtract, exp.JSONExtractScalar)
        while isinstance(outer.parent, arrows) and outer.parent.this is outer:
            outer = outer.parent
        inner = outer
        while isinstance(inner, arrows) and not inner.args.get("variant_extract"):
            key = inner.expression
            names = [part.this for part in key.expressions[1:]] if isinstance(key, exp.JSONPath) else [key.name]
            inner, steps = inner.this, [*names, *steps]
        if isinstance(inner, exp.JSONExtract):
            inner, steps = inner.this, [*steps_of(inner), *steps]
        cast = "::string" if isinstance(outer, exp.JSONExtractScalar) else ""
        path = with_steps(self.text(inner), steps)
        return SqlError(f"{self.text(outer)}: a path into a Variant is written {path}{cast}")

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
                target, cast = sql_type(node.to, self.engine), lambda v, part: self.cast_to(v, part or pa.string())
                rewritten = self.rebuild(node, this=_replace_variants(value.sql, value.kind, target, cast))
            return value_of(node, rewritten, _type_or_none(node.to))
        if node.args.get("format") is not None:
            raise SqlError(f"{self.text(node)}: a cast of a Variant cannot have a format")
        term, root = value.start
        typed = _cast_term(term, sql_type(node.to, self.engine), node, self.engine)
        return self.path(root, replace(typed, tries=isinstance(node, exp.TryCast)), node)

    def read_joined_lists(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite ``list || list``; None for text."""
        kind = self.expression(node.this).kind
        if kind is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
            return None
        values, kind = self.unify(node, [node.this, node.expression])
        return value_of(node, self.rebuild(node, this=values[0].sql, expression=values[1].sql), kind)

    def read_map(self, node: exp.Expr, _: str) -> Value:
        """Rewrite ``MAP {…}`` and ``MAP(keys, values)``."""
        parts = {key: self.expression(part) for key, part in node.args.items() if isinstance(part, exp.Expr)}
        if isinstance(node.args.get("keys"), exp.Literal):  # sqlglot keeps only two arguments of Spark's map
            raise SqlError("map takes a list of keys and a list of values: write MAP {'key': value}")
        if isinstance(node, exp.ToMap):
            fields = parts["this"].kind or ()
            item = next((field.type for field in fields if not pa.types.is_null(field.type)), None)
        else:
            item = element_of(parts["values"].kind) if len(parts) == 2 else None
        rebuilt = self.rebuild(node, **{key: value.sql for key, value in parts.items()})
        return value_of(node, rebuilt, None if item is None else pa.map_(pa.string(), item))

    def read_list(self, node: exp.Expr, _: str) -> Value:
        """Rewrite a constructor of a list."""
        values, item = self.unify(node, node.expressions)
        rebuilt = self.rebuild(node, expressions=[value.sql for value in values])
        if isinstance(node, exp.Anonymous) and not (node.expressions and isinstance(node.expressions[0], exp.Query)):
            rebuilt = exp.Array(expressions=rebuilt.expressions)  # array(1, 2) of Spark
        return value_of(node, rebuilt, None if item is None else pa.list_(item))

    def read_struct(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a constructor of a struct."""
        parts = node.expressions
        rebuilt = self.rebuild(node, expressions=[self.expression(part).sql for part in parts])
        named = (exp.PropertyEQ, exp.Alias, exp.Column) if name == "struct" else (exp.PropertyEQ, exp.Alias)
        # Fields without names, as those of row(…), are called "".
        names = [part.alias_or_name if isinstance(part, named) else "" for part in parts]
        if name == "named_struct":
            names, parts = [part.name for part in parts[::2]], parts[1::2]
            if self.engine == "duckdb":
                keys = [exp.to_identifier(key, quoted=True) for key in names]
                pairs = zip(keys, rebuilt.expressions[1::2], strict=True)
                rebuilt = engine_call("struct_pack", *(exp.PropertyEQ(this=k, expression=v) for k, v in pairs))
        kinds = [self.expression(part).kind for part in parts]
        fields = [pa.field(key, pa.null() if kind is None else kind) for key, kind in zip(names, kinds, strict=True)]
        return value_of(node, rebuilt, pa.struct(fields) if any(kind is not None for kind in kinds) else None)

    def read_lambda(self, node: exp.Expr, _: str = "", element: Kind = None) -> Value:
        """Rewrite a lambda or comprehension; its Variants are those of its result.

        `element`: the Variants in the first parameter.
        """
        clauses = {key: part for key in ("expressions", "expression", "position") if (part := node.args.get(key))}
        parameters = [part for value in clauses.values() for part in (value if isinstance(value, list) else [value])]
        if (iterator := node.args.get("iterator")) is not None:
            clauses["iterator"] = self.expression(iterator).sql
            element = element_of(self.expression(iterator).kind)
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
        elements, function = self.expression(arguments[0]), arguments[1]
        is_lambda = isinstance(function, exp.Lambda)
        result = self.read_lambda(function, "", element_of(elements.kind)) if is_lambda else self.expression(function)
        kind = elements.kind
        if is_lambda and name not in FILTERS:
            kind = None if result.kind is None or name in TESTS else pa.list_(result.kind)
        if isinstance(node, exp.Transform):
            return value_of(node, self.rebuild(node, this=elements.sql, expression=result.sql), kind)
        parts = [elements.sql, result.sql, *self.parts(arguments[2:])]
        return value_of(node, self.rebuild(node, expressions=parts), kind)

    # ---- values of which an expression returns one

    def is_output(self, node: exp.Expr) -> bool:
        """Return whether an expression is a column of the result of the whole query."""
        parent = node.parent
        while isinstance(parent, (exp.Alias, exp.Paren, *OF_FIRST_PART)):
            parent = parent.parent
        return self.is_result and isinstance(parent, exp.Select)

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

    def one_of(self, node: exp.Expr, parts: Sequence[exp.Expr], around: _Around, *, skips_nulls: bool = False) -> Value:
        """Rewrite an expression that returns one of its parts, such as CASE.

        `around`: returns the expression with rewritten parts.
        `skips_nulls`: whether it is the first part that is not NULL.
        """
        values, kind = self.unify(node, parts, mixes=True)
        values = [*map(self.without_nulls, values[:-1]), *values[-1:]] if skips_nulls else values

        def as_typed() -> Value | None:
            forms, types = _typed_forms(values)
            if None in forms or len(types) != 1 or None in types:
                return None
            return value_of(node, around([form.sql for form in forms if form is not None]), types.pop())

        tree = around([value.sql for value in values])
        types = {value.type for value in values}
        typed = as_typed if self.engine == "duckdb" and is_variant(kind) else None
        return Value(node, tree.copy, types.pop() if kind is None and len(types) == 1 else kind, as_typed=typed)

    def unify(self, node: exp.Expr, parts: Sequence[exp.Expr], *, mixes: bool = False) -> tuple[list[Value], Kind]:
        """Rewrite the parts of which an expression returns one; all must hold the same Variants, which are returned.

        `mixes`: whether Variants of an output may be replaced by a common form.
        """
        values = [self.expression(part) for part in parts]

        def kinds_of_values() -> list[Kind]:
            return [v.kind for v in values if not isinstance(v.source, exp.Null) and v.source != _NO_ELEMENTS]

        kinds = kinds_of_values()
        may_change = self.engine == "duckdb" and (None in kinds or (mixes and self.is_output(node)))
        if may_change and any(map(is_variant, kinds)):
            values = self._in_one_form(values)
            kinds = kinds_of_values()
        if any(kind is not None for kind in kinds) and not all(kind == kinds[0] for kind in kinds):
            raise SqlError(f"{self.text(node)} mixes a Variant with other values: cast the Variant, as in ::string")
        return values, kinds[0] if kinds else None

    def _in_one_form(self, values: Sequence[Value]) -> list[Value]:
        """Return values that have one type, or else are Variants."""
        forms, types = _typed_forms(values)
        if len(types) < 2:
            kind = next(iter(types), None)  # None if no row has the Variants
            converted = [
                form or (value if _has_type(value, kind) else None) for value, form in zip(values, forms, strict=True)
            ]
            if None not in converted:
                return [value for value in converted if value is not None]
        return [value if isinstance(value.source, exp.Null) else self.as_variant(value) for value in values]

    def without_nulls(self, value: Value) -> Value:
        """Return a value with NULL in place of Variant null, as typed values have it."""
        if not value.is_variant or self.engine != "duckdb":
            return value

        def present(variant: exp.Expr) -> exp.Expr:
            return from_template(
                "CASE WHEN NOT _0 THEN _1 END", [self.call("is_variant_null", variant.copy()), variant]
            )

        return replace(value, make=lambda: bound_once(value.sql, present))

    # ---- casts

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


def _typed_forms(values: Sequence[Value]) -> tuple[list[Value | None], set[pa.DataType | None]]:
    """Return NULLs and values as the type of all their values, None for others, and these types."""
    forms = [value if isinstance(value.source, exp.Null) else value.typed_or_null() for value in values]
    return forms, {form.type for form in forms if form is not None and not isinstance(form.sql, exp.Null)}


def _has_type(value: Value, kind: pa.DataType | None) -> bool:
    """Return whether a value has a type, or is a whole number for it; a value without Variants has the type None."""
    literal = literal_value(value.source.unnest())
    if literal is NO_LITERAL or kind is None:
        return value.kind is None if kind is None else value.type == kind
    if not isinstance(literal, (bool, int, float, Decimal, str)) or class_of_type(kind) != class_of_value(literal):
        return False
    return isinstance(literal, (bool, str)) or pa.types.is_floating(kind) or literal == int(literal)
