"""The expressions of a query: what a path, a cast, a function, or another expression makes of Variants.

Owns the reader of each expression that needs more than a rule of `rules`: casts and paths, aggregates, functions of
Variants, and expressions that return one of their parts. Leaves the select list and the clauses to `select_list`, and
the functions themselves to `variant_functions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.rewriting.comparisons import ARITHMETIC, COMPARISONS, ComparisonRewriter
from parquet_variant.query.rewriting.nested import FILTERS, GETTERS, LISTS, OF_FIRST_PART, STRUCTS, TESTS, TRANSFORMS
from parquet_variant.query.rewriting.rules import MACROS, RULES, SPARK_RULES, TEXT_RULES, UNNESTS, Rule, assign
from parquet_variant.query.rewriting.values import (
    Value,
    VariantTerm,
    arguments_of,
    common_type,
    copies,
    engine_call,
    list_of,
    made_of,
    subset_of,
    value_of,
)
from parquet_variant.query.sql_dialect import SqlError, from_template
from parquet_variant.query.sql_pushdown import NO_LITERAL, class_of_type, literal_value
from parquet_variant.query.variant_functions import (
    AGGREGATES,
    EDIT_NAMES,
    EDITS,
    FUNCTIONS,
    OF_ONE_VARIANT,
    PARSERS,
    VARIANT,
)
from parquet_variant.support.records import counted
from parquet_variant.types.targets import VARIANT_STORAGE

# Functions that return a value of their first argument.
_FIRST_ONLY = "any_value arbitrary first last first_value last_value nth_value lag lead"
_EXTREMES_BY = "arg_min arg_max min_by max_by argmin argmax"  # whose third argument is the number of values
_LISTS_OF_ROWS = "list array_agg collect_list"
_SKIP_NULLS = ("any_value", *_EXTREMES_BY.split())
_TYPES: dict[Any, pa.DataType] = {
    **dict.fromkeys(["today", exp.CurrentDate], pa.date32()),
    **dict.fromkeys(["now", "get_current_timestamp", exp.CurrentTimestamp], pa.timestamp("us", "UTC")),
}
_EXTRACTS = frozenset(["variant_extract", "variant_extract_string", "get_path", "get"])
_INDEX_BASES = {"variant_extract": 1, "get": 0}  # the index of the first element in DuckDB, and in Snowflake
_NULL_TEST = re.compile("is_variant_null|is_null_value", re.IGNORECASE)
_DATE = re.compile(r"\d{4} - \d\d - \d\d")
_SIZES = frozenset(["array_size", "variant_array_length", "cardinality"])


class ExpressionRewriter(ComparisonRewriter):
    """Rewrites the expressions of one SELECT."""

    def read(self, node: exp.Expr) -> Value:
        """See `PathRewriter.read`."""
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        key: Any = name or type(node)
        for readers in (_DUCKDB_READERS, _READERS) if self.engine == "duckdb" else (_READERS,):
            if (reader := readers.get(key)) is not None and (value := reader(self, node, name)) is not None:
                return value
        if isinstance(node, exp.Binary) and node.this.is_star:
            raise SqlError("* LIKE … is not for tables with Variants: list the columns")
        if (rule := self._rule(node, key)) is not None:
            return self._by_rule(node, key, rule)
        return value_of(node, self.rebuild(node), _TYPES.get(key))

    def _rule(self, node: exp.Expr, key: Any) -> Rule | None:
        if self.engine == "spark":
            rule = SPARK_RULES.get(key) or RULES.get(key)
            return rule if rule is not None and rule.takes in ("same", "inside", "presence") else None
        if key not in TEXT_RULES or key not in RULES:
            return RULES.get(key) or TEXT_RULES.get(key)
        arguments = arguments_of(node)
        is_text = bool(arguments) and self.expression(arguments[0]).is_variant
        return TEXT_RULES[key] if is_text else RULES[key]

    def _by_rule(self, node: exp.Expr, key: Any, rule: Rule) -> Value:
        arguments = arguments_of(node)
        if rule.takes not in ("same", "inside"):
            of_keys = rule.takes == "presence" and any(isinstance(part, exp.Distinct) for part in arguments)
            forms: dict[str, Any] = {"text": self.as_text, "json": self.as_json, "moment": self.as_moment}
            forms["presence"] = partial(self._presence, node)
            return value_of(node, self.rebuild(node, self.by_key if of_keys else forms.get(rule.takes, self.by_key)))
        if not arguments:
            return value_of(node, self.rebuild(node))
        values = [self.expression(part) for part in (arguments[:1] if rule.only_first else arguments)]
        if rule.takes == "inside":
            self.refuse_as_list(values[0])
        rest = [self.plain(part) for part in arguments[len(values) :]]
        if rest and key in UNNESTS:  # such as recursive := true, which would split Variants into their bytes
            values = [value_of(values[0].source, self.plain(arguments[0]))]
        around = lambda parts: self.with_arguments(node, [*parts, *copies(rest)])  # noqa: E731
        return made_of(values, node, around, lambda kinds: rule.returns(kinds, node))

    def _presence(self, node: exp.Expr, value: Value) -> exp.Expr:
        """Return a value of which only the presence counts: its only type means the same."""
        typed, place = value.typed(nulls=False), value.place
        if typed is None and place is not None and isinstance(node, exp.Is) and not self.context.is_condition:
            nulls, text = place.table.json_nulls(place.column, place.path, place.inside), self.text(value.source)
            hint = f"{counted(nulls, 'JSON null')} at {text}: IS NULL is false there, is_variant_null({text}) is true"
            query = node.find_ancestor(exp.Select)
            if nulls and hint not in self.context.warnings and not (query and _NULL_TEST.search(self.text(query))):
                self.context.warnings.append(hint)
        return (typed or value).sql

    def as_moment(self, value: Value) -> exp.Expr:
        """Return a Variant as a point in time: of its only type, unless it is a string, or cast to timestamp."""
        if not value.is_variant:
            raise self.untyped(value)
        typed = value.typed()
        if typed is None or typed.type is None or pa.types.is_string(typed.type):
            return self.expression(exp.cast(value.source.copy(), "TIMESTAMPTZ")).sql
        return typed.sql

    def _read_query(self, node: exp.Expr, _: str) -> Value:
        tree, outputs = self.context.query(node, self.scope)
        if not outputs or len(outputs) != 1:
            return value_of(node, tree)
        output, common = outputs[0], outputs[0].common
        value = Value(node, tree.copy, output.type)
        if common is None or not output.is_variant or self.engine != "duckdb":
            return value
        return replace(value, as_typed=lambda: value_of(node, self.cast_to(tree.copy(), common), common))

    def _read_chain(self, node: exp.Expr, _: str) -> Value:
        """Rewrite arithmetic, the left operand first, so that a long sum does not recurse per operand."""
        if isinstance(node.this, exp.Sub) and node.this.this.is_number and _DATE.fullmatch(self.text(node)):
            raise SqlError(f"{self.text(node)} is a subtraction: write a date in quotes, as in DATE '2026-01-31'")
        chain = [node]
        while isinstance(chain[-1].this, ARITHMETIC):
            chain.append(chain[-1].this)
        value = self.expression(chain[-1].this)
        sql = None
        for part in reversed(chain):
            right = self.expression(part.expression)
            by_interval = isinstance(part, (exp.Add, exp.Sub)) and any(
                isinstance(operand.source, exp.Interval) for operand in (value, right)
            )
            convert = self.as_moment if by_interval and self.engine == "duckdb" else None
            left = self.plain(part.this, convert) if sql is None else sql
            sql = self.rebuild(part, this=left, expression=self.plain(part.expression, convert))
            is_moment = value.type is not None and pa.types.is_temporal(value.type)
            keeps_type = isinstance(part, (exp.Add, exp.Sub)) and not isinstance(value.source.unnest(), exp.Column)
            kind = pa.float64() if _is_number(value) and _is_number(right) else None
            value = value_of(part, sql, value.type if is_moment and keeps_type else kind)
        return value

    def _read_named(self, node: exp.Expr, _: str) -> Value:
        key = "expression" if isinstance(node, exp.PropertyEQ) else "this"
        value = self.expression(node.args[key])
        names = {k: part for k, part in node.args.items() if k != key and isinstance(part, exp.Identifier)}
        around = lambda parts: self.rebuild(node, **copies(names), **{key: parts[0]})  # noqa: E731
        return made_of([value], node, around, common_type)

    def _read_around(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite an expression that returns a value of its first part, or a list of its values."""
        arguments = arguments_of(node)
        if not arguments:
            return None
        first, *further = arguments
        if name in ("lag", "lead") and len(further) == 2:  # the value of another row, or a default
            distance, default = further
            around = lambda parts: self.with_arguments(node, [parts[0], self.plain(distance), parts[1]])  # noqa: E731
            return self.one_of(node, [first, default], around)
        by_key = self.by_key if self.engine == "duckdb" else None
        value, parts = self.expression(first), self.parts(further, by_key)
        if isinstance(node, exp.IgnoreNulls) or name in _SKIP_NULLS:
            value = self.without_nulls(value)
        around = lambda inner: self.with_arguments(node, [*inner, *copies(parts)], by_key)  # noqa: E731
        names_of_lists = _EXTREMES_BY if len(further) == 2 else _LISTS_OF_ROWS
        if isinstance(node, exp.ArrayAgg) or name in names_of_lists.split():
            return made_of([value], node, around, list_of)
        result = subset_of(value, node, around)
        return replace(result, term=value.term, root=value.root) if isinstance(node, exp.Paren) else result

    def _read_columns(self, node: exp.Expr, _: str) -> Value:
        relations = self.scope.visible()
        if any(r.use is not None or r.is_open or any(c.kind is not None for c in r.columns) for r in relations):
            raise SqlError("COLUMNS(…) is not for tables with Variants: list the columns")
        return value_of(node, node)

    def _read_truth(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite ``v:a IS TRUE`` of values of several types, of which only booleans are true or false."""
        if not isinstance(node.expression, exp.Boolean) or not self.expression(node.this).is_variant:
            return None
        negation = "NOT " if node.args.get("negate") else ""
        return self.expanded(node, f"(_0 = _1) IS {negation}TRUE", node.this, node.expression)

    def _read_date_format(self, node: exp.Expr, _: str) -> None:
        """Refuse the letters of strftime in date_format, which returns them unchanged."""
        if "%%" in node.text("format"):
            text = node.text("format").replace("%%", "%")
            raise SqlError(f"date_format takes letters such as 'yyyy-MM-dd': write strftime(x::timestamp, '{text}')")

    def _read_macro(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite a function that is written as other SQL."""
        arguments, template = node.expressions, MACROS[name]
        value = self.variant_argument(arguments[0]) if arguments else None
        if value is None or not (name == "variant_from_entries" or value.is_variant):
            return None
        if name in ("len", "length") and (typed := value.typed()) is not None and typed.type == pa.string():
            return None  # the rule of text reads only the typed column
        if "_1" not in template and (digits := [part.name for part in arguments[1:]]):
            if name not in ("as_decimal", "as_number") or not all(part.is_int for part in arguments[1:]):
                raise SqlError(f"{self.text(node)}: {name} takes one Variant")
            template = template.replace("38, 0", ", ".join([*digits, "0"][:2]))
        return self.expanded(node, template, *arguments)

    def _read_function_of_variant(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite a call of a function over a Variant, whose second argument may be a path into it."""
        arguments = [part for part in (*arguments_of(node), node.expression) if part is not None]  # array_size(v, path)
        read = self.expression if name == "typeof" else self.variant_argument
        value = read(arguments[0]) if arguments else None
        if value is None or not value.is_variant:
            return None
        if None in map(literal_value, arguments[1:2]):  # as in Spark and DuckDB
            return value_of(node, exp.Null())
        first, *further = arguments
        if isinstance(node, exp.ArraySize):
            name = "cardinality" if node.meta.get("function") == "size" else "array_size"
        if name == "variant_contains":
            if len(further) != 1:
                raise SqlError(f"{self.text(node)}: variant_contains takes a Variant and the value to look for")
            return value_of(node, self.call(name, value.sql, self.as_variant(self.expression(further[0])).sql))
        if further and isinstance(further[0], exp.Array):  # several paths
            calls = [engine_call(name, first.copy(), path) for path in further[0].expressions]
            return value_of(node, exp.Array(expressions=[self.expression(call).sql for call in calls]))
        if further:
            path, base = further[0], _INDEX_BASES.get(name)
            if base is not None and isinstance(path, exp.Literal) and path.is_int and int(path.name) >= base:
                path = exp.Literal.string(f"$[{int(path.name) - base}]")
            if len(further) > 1 or not (isinstance(path, exp.Literal) and path.is_string):
                raise SqlError(f"{self.text(node)}: the second argument of {name} is a path in quotes")
            kinds = [exp.Literal.string("string")] if name == "variant_extract_string" else []
            first = engine_call("variant_get", first.copy(), exp.Literal.string(path_argument(path.name)), *kinds)
            value = self.expression(first)
        if name in _EXTRACTS:
            return value
        if name in MACROS:
            return self.expanded(node, MACROS[name], first)
        function = OF_ONE_VARIANT.get(name, name)
        if (from_columns := self._of_typed_columns(node, value, function)) is not None:
            return from_columns
        kind = VARIANT_STORAGE if FUNCTIONS[function].result == VARIANT else None
        return value_of(node, self.call(function, value.sql), kind)

    def _of_typed_columns(self, node: exp.Expr, value: Value, function: str) -> Value | None:
        """Return the result of a function that the typed column of a path knows; None if there is no such column."""
        hit = None if value.root is None else value.root.column
        use = None if hit is None else hit.relation.use
        if function in _SIZES and value.term is not None and hit is not None and use is not None:
            path = value.term.path
            leaf = use.table.leaf_of_elements(hit.column.name or "", path) if path.segments else None
            if leaf is not None:  # a typed list with an entry for each element
                elements = self.table_column(hit, use, VariantTerm(leaf[0], leaf[1], cast=True))
                return value_of(node, exp.cast(engine_call("len", elements), "BIGINT"))
        typed = value.typed(nulls=False) if function in ("variant_type", "is_variant_null") else None
        if typed is None:
            return None
        if function == "is_variant_null":
            return value_of(node, exp.Boolean(this=False))
        name = class_of_type(typed.type)
        if name not in ("boolean", "string", "date"):  # the name of the others depends on the width of the values
            return None
        return value_of(node, from_template(f"CASE WHEN _0 IS NOT NULL THEN '{name}' END", [typed.sql]))

    def _read_variant_aggregate(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite an aggregate that returns a Variant or a schema, perhaps with FILTER or OVER, over a list of rows."""
        rows = node.copy()
        call = rows
        while isinstance(call, (exp.Window, exp.Filter)):
            call = call.this
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if len(call.expressions) != AGGREGATES.get(name):
            return None
        value = call.expressions[-1]
        while isinstance(value, (exp.Distinct, exp.Order)):
            value = value.this or value.expressions[0]
        value.replace(exp.cast(value.copy(), "VARIANT"))
        if name == "variant_group_object":
            key, field = exp.cast(call.expressions[0].copy(), "TEXT"), call.expressions[1]
            field = field.this if isinstance(field, exp.Order) else field  # an object has no order
            call.set("expressions", [from_template("{key: _0, value: _1}", [key, field])])
        call.set("this", "list")
        if name == "variant_group_object":
            return self.expanded(node, "variant_from_entries(_0)", rows)
        rows.parent = node.parent
        kind = VARIANT_STORAGE if FUNCTIONS[name].result == VARIANT else None
        return value_of(node, self.call(name, self.expression(rows).sql), kind)

    def _read_extreme(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite min or max of a Variant: the value, or the first values, in the order of sort keys."""
        if not node.expressions:
            return None
        argument, *number = node.expressions
        if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
            argument = argument.expressions[0]
        value = self.expression(argument)
        if not value.is_variant:
            return None
        key = self.call("sort_key", value.sql, constants=(self.text(argument), (), True))
        extreme = engine_call(f"arg_{name}", value.sql, key, *number)
        kind = pa.list_(VARIANT_STORAGE) if number else VARIANT_STORAGE
        typed = subset_of(value, node, lambda inner: engine_call(name, *inner, *copies(number)))
        return replace(typed, make=extreme.copy, type=kind)

    def _read_ordered_set(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite ``mode() WITHIN GROUP (ORDER BY v:a)``; other such aggregates interpolate, or return a value."""
        keys = [ordered.this for ordered in node.expression.expressions if isinstance(ordered, exp.Ordered)]
        untyped = [value for value in map(self.expression, keys) if value.is_variant and value.typed() is None]
        if not untyped:
            return None
        if node.this.name.lower() == "mode" and len(keys) == 1:
            return self.expanded(node, "mode(_0)", keys[0])
        text = self.text(untyped[0].source)
        raise SqlError(f"{node.this.name} needs values of one type, and {text} is a Variant: write {text}::double")

    def _read_by_equality(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite mode or a list of different values: values that are equal get one form."""
        holder = node.expressions[0] if node.expressions and isinstance(node.expressions[0], exp.Distinct) else node
        value = self.expression(holder.expressions[0]) if len(holder.expressions) == 1 else None
        is_list = name != "mode"
        if value is None or not value.is_variant or value.typed() is not None or (is_list and holder is node):
            return None
        form = self.call("variant_form", value.sql)
        argument = form if holder is node else self.rebuild(holder, expressions=[form])
        kind = pa.list_(VARIANT_STORAGE) if is_list else VARIANT_STORAGE
        return value_of(node, self.rebuild(node, expressions=[argument]), kind)

    def parsed_column(self, node: exp.Expr, name: str) -> Value | None:
        """Return the Variants that a function makes of a column of text if a scan can parse it; None for other text."""
        return None

    def _read_builder(self, node: exp.Expr, name: str) -> Value | None:
        arguments = node.expressions
        if len(arguments) != (2 if name == "variant_from_arrays" else 1):
            return None
        if name in PARSERS:
            if (parsed := self.parsed_column(node, name)) is not None:
                return parsed
            text = self.expression(arguments[0])
            built = self.call(name, text.sql if text.kind is None else self.as_text(text))
            place = text.place
            if text.root is not None and text.term is not None and text.type == pa.string():
                place = text.root.place and text.root.place.extended(text.term.path)
            return Value(node, built.copy, VARIANT_STORAGE, place=place and place.opened("text"))
        *names, values = arguments
        built = self.as_variant(self.expression(values)).sql
        if names:
            built = self.call(name, self.expression(exp.cast(names[0].copy(), "TEXT[]")).sql, built)
        return value_of(node, built, VARIANT_STORAGE)

    def _read_edit(self, node: exp.Expr, name: str) -> Value:
        """Rewrite a function that returns a changed Variant; paths and switches are constants."""
        function = name.removeprefix("try_")
        first, *further = node.expressions or [exp.true()]
        roles: Sequence[str] = EDITS[function]
        value = self.variant_argument(first)
        usage = SqlError(f"{self.text(node)}: write {name}({', '.join(('variant', *roles))}), with paths in quotes")
        if roles[-1] == "…":
            roles = ("path",) * len(further)
        has_switch = roles[-1:] in (("create_if_missing",), ("include_arrays",))  # optional, and true by default
        if not value.is_variant or not len(roles) - has_switch <= len(further) <= len(roles):
            raise usage
        arguments, constants = [value.sql], []
        for role, part in zip(roles, further, strict=False):
            constant = literal_value(part.unnest())
            if role == "value":
                arguments.append(self.as_variant(self.expression(part)).sql)
            elif role == "path" and constant is None:  # as in Spark
                if roles == EDITS[function]:
                    return value_of(node, exp.cast(exp.Null(), VARIANT), VARIANT_STORAGE)
            elif isinstance(constant, str if role == "path" else bool):
                constants.append(path_argument(str(constant)) if role == "path" else constant)
            else:
                raise usage
        constants += [True] * (len(roles) - len(further))
        changed = self.call(function, *arguments, constants=(*constants, "null" if name != function else "raise"))
        return value_of(node, changed, VARIANT_STORAGE)


_Reader = Callable[[Any, Any, str], Value | None]
_R = ExpressionRewriter


# Readers by the name of a function in lower case, or the class of the expression; a reader returns None for what a rule
# is enough for.
_READERS: dict[Any, _Reader] = {
    exp.Column: lambda self, node, _: self.read_column(node),
    exp.Identifier: lambda self, node, _: value_of(node, node, self.scope.locals.get(node.name.lower())),
    **assign(_R.read_cast, nodes=[exp.Cast, exp.TryCast]),
    **assign(_R._read_chain, nodes=ARITHMETIC),
    **assign(_R.read_getter, " ".join(GETTERS)),
    **assign(_R.read_extraction, nodes=[exp.JSONExtract, exp.JSONExtractScalar]),
    **assign(_R.read_access, nodes=[exp.Bracket, exp.Dot]),
    **assign(_R._read_query, nodes=[exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery]),
    exp.Star: lambda self, node, _: value_of(node, node),
    exp.Columns: _R._read_columns,
    **assign(_R._read_named, nodes=[exp.Alias, exp.PropertyEQ]),
    **assign(_R._read_around, f"{_FIRST_ONLY} {_EXTREMES_BY} {_LISTS_OF_ROWS}", [exp.ArrayAgg, exp.Paren, exp.Order]),
    **assign(_R._read_around, nodes=OF_FIRST_PART),
    **assign(_R.read_one_of, "coalesce ifnull nvl if iff", [exp.Coalesce, exp.If]),
    exp.Case: _R.read_case,
    **assign(_R.read_lambda, nodes=[exp.Lambda, exp.Comprehension]),
    **assign(_R.read_by_lambda, " ".join((*TRANSFORMS, *FILTERS, *TESTS)), [exp.Transform]),
    **assign(_R.read_struct, " ".join(STRUCTS), [exp.Struct, exp.Tuple]),
    **assign(_R.read_list, " ".join(LISTS), [exp.Array]),
    **assign(_R.read_map, nodes=[exp.ToMap, exp.Map]),
    **assign(_R.read_joined_lists, "list_concat array_concat list_cat array_cat map_concat", [exp.DPipe]),
}
# Readers of what the engine alone computes.
_DUCKDB_READERS: dict[Any, _Reader] = {
    **assign(_R.read_comparison, nodes=COMPARISONS),
    exp.Is: _R._read_truth,
    exp.TimeToStr: _R._read_date_format,
    **assign(_R._read_macro, " ".join(MACROS)),
    **assign(_R._read_function_of_variant, " ".join([*OF_ONE_VARIANT, *_EXTRACTS]), [exp.ArraySize]),
    **assign(_R._read_function_of_variant, "variant_contains variant_exists to_json typeof"),
    **assign(_R._read_variant_aggregate, " ".join(AGGREGATES), [exp.Window, exp.Filter]),
    **assign(_R._read_extreme, "min max"),
    exp.WithinGroup: _R._read_ordered_set,
    **assign(_R._read_by_equality, "mode list array_agg"),
    **assign(_R._read_builder, " ".join([*PARSERS, "to_variant_object", "variant_from_arrays"])),
    **assign(_R._read_edit, " ".join(EDIT_NAMES)),
}


def _is_number(value: Value) -> bool:
    if value.type is not None:
        return class_of_type(value.type) == "number"
    literal = literal_value(value.source)
    return literal is not NO_LITERAL and hasattr(literal, "real") and not isinstance(literal, bool)


def path_argument(text: str) -> str:
    """Return a path as ``variant_get`` takes it; ``$.`` may be missing, as in DuckDB: ``a.b``, or `` for the value.

    >>> path_argument("a.b"), path_argument("[0]"), path_argument("")
    ('$.a.b', '$[0]', '$')
    """
    return text if text.startswith("$") else f"${'.' if text and text[0] != '[' else ''}{text}"
