"""The expressions of a query: what a cast, a function, or another expression makes of Variants.

Owns the choice among the other rewriters, and expressions that hand on one of their parts. Leaves the select list and
the clauses to `select_list`.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.path_dialect import steps_of
from parquet_variant.query.rewriting.functions import FunctionRewriter
from parquet_variant.query.rewriting.nested import TEXT_FUNCTIONS
from parquet_variant.query.rewriting.scopes import unknown_name
from parquet_variant.query.rewriting.values import (
    GETTERS,
    Value,
    VariantTerm,
    cast_term,
    chosen,
    getter_arguments,
    subscript,
    value_of,
)
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_pushdown import NO_LITERAL, literal_value
from parquet_variant.query.sql_types import sql_type, sql_type_named
from parquet_variant.types.path import Segment, VariantPath

# Functions that return a value of their first argument.
_FIRST_ONLY = {"any_value", "arbitrary", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead"}
_FIRST_ONLY |= {"arg_min", "arg_max", "min_by", "max_by", "argmin", "argmax"}
_RETURNING = {"coalesce", "ifnull", "nvl", "if", "iff"}  # functions that return any of their arguments
_OF_FIRST_PART = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
# Functions of Spark that take Variants; `to_json` also takes values with Variants inside.
_SPARK_FUNCTIONS = frozenset(["to_json", "is_variant_null", "schema_of_variant", "schema_of_variant_agg"])
_LISTS_OF_ROWS = frozenset(["list", "array_agg", "collect_list"])
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_NOW = {"today": pa.date32(), "now": pa.timestamp("us", "UTC"), "get_current_timestamp": pa.timestamp("us", "UTC")}


class ExpressionRewriter(FunctionRewriter):
    """Rewrites the expressions of one SELECT."""

    # Whether the outputs are those of the whole query. Those of a subquery remain Variants, whatever the data is,
    # because functions and paths may need Variants.
    is_result = False

    def read(self, node: exp.Expr) -> Value:
        """See `PathRewriter.read`."""
        if isinstance(node, exp.Column):
            return self.read_column(node)
        if isinstance(node, exp.Identifier):
            return value_of(node, node, self.scope.locals.get(node.name.lower()))
        if isinstance(node, exp.Cast):
            return self._read_cast(node)
        if isinstance(node, _ARITHMETIC):
            return self._read_chain(node)
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if (path := self._read_path(node, name)) is not None:
            return path
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
            return self._read_query(node)
        if isinstance(node, exp.Lambda):
            return self.in_lambda(node, [parameter.name for parameter in node.expressions])
        if isinstance(node, exp.Star):
            return value_of(node, node)
        if isinstance(node, exp.Columns):
            if any(relation.may_hold_variants for relation in self.scope.visible()):
                raise SqlError("COLUMNS(…) is not for tables with Variants: list the columns")
            return value_of(node, node)
        if isinstance(node, exp.Binary) and node.this.is_star:
            raise SqlError("* LIKE … is not for tables with Variants: list the columns")
        if self.engine == "duckdb" and (value := self.read_function(node, name)) is not None:
            return value
        if (value := self._handing_on(node, name)) is not None:
            return value
        is_text = name in TEXT_FUNCTIONS and node.expressions and self.expression(node.expressions[0]).is_variant
        if not is_text and (value := self.read_nested(node, name)) is not None:
            return value
        return value_of(node, self.rebuild(node, self.conversion(node, name)), None, _type_of(node, name))

    # ---- paths and casts

    def _read_path(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite ``v:a``, ``v['a']``, ``v.a`` after such a path, or ``variant_get(v, '$.a')``; None for others."""
        if name in GETTERS and node.expressions:
            value = self.expression(node.expressions[0])
            if not value.is_path and self.engine == "spark":
                return None
            self._check_variant(node, value)
            path, kind = getter_arguments(node, self.engine)
            below = self.below(value, path.segments, node)
            assert below.term is not None and below.root is not None
            typed = cast_term(
                below.term, None if kind is None else sql_type_named(kind, self.engine), node, self.engine
            )
            return self.path(below.root, replace(typed, tries=GETTERS[name]), node)
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            value = self.expression(node.this)
            self._check_variant(node, value)
            return self.below(value, steps_of(node), node)
        if isinstance(node, exp.Bracket) and self.expression(node.this).is_path:
            return self.below(self.expression(node.this), (subscript(node, self.engine),), node)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            value = self.expression(node.this)
            return self.below(value, (node.expression.name,), node) if value.is_path else None
        return None

    def below(self, value: Value, steps: tuple[Segment, ...], source: exp.Expr) -> Value:
        """Return the value at a path of a Variant."""
        term, root = value.start
        return self.path(root, VariantTerm(VariantPath((*term.path.segments, *steps))), source)

    def _check_variant(self, node: exp.Expr, value: Value) -> None:
        """Raise `SqlError` if the value before a path is not a Variant."""
        if value.is_path:
            return
        inner = value.source
        if isinstance(inner, exp.Column) and self.resolve(inner) is None and not self.scope.is_known(inner):
            raise SqlError(unknown_name(self.scope, inner, self.engine))
        slices = "; a slice is written list_slice(list, 1, 2)" if node.find_ancestor(exp.Bracket) else ""
        raise SqlError(
            f"{self.text(inner)} is not a Variant column, and only Variants have paths such as "
            f"{self.text(node)}{slices}"
        )

    def _read_cast(self, node: exp.Cast) -> Value:
        value, is_json = self.expression(node.this), node.is_type("json")
        if value.kind is None or (self.engine == "spark" and (is_json or not value.is_path)):
            return value_of(node, self.rebuild(node), None, _type_or_none(node.to))
        if is_json or not value.is_path:
            return value_of(node, self.cast_inside(node, value), None, _type_or_none(node.to))
        if node.args.get("format") is not None:
            raise SqlError(f"{self.text(node)}: a cast of a Variant cannot have a format")
        term, root = value.start
        typed = cast_term(term, sql_type(node.to, self.engine), node, self.engine)
        return self.path(root, replace(typed, tries=isinstance(node, exp.TryCast)), node)

    # ---- other expressions

    def _read_query(self, node: exp.Expr) -> Value:
        assert self.context.rewrite is not None
        tree, outputs = self.context.rewrite(node, self.scope)
        if not outputs or len(outputs) != 1:
            return value_of(node, tree)
        output = outputs[0]

        def as_typed(nulls: bool) -> Value | None:
            common = output.common if nulls else None
            return None if common is None else value_of(node, self.cast_to(tree.copy(), common), None, common)

        typed = as_typed if output.is_variant and self.engine == "duckdb" else None
        return Value(node, tree.copy, output.kind, None if output.kind is not None else output.type, as_typed=typed)

    def _read_chain(self, node: exp.Expr) -> Value:
        """Rewrite arithmetic, the left operand first, so that a long sum does not recurse per operand."""
        chain = [node]
        while isinstance(chain[-1].this, _ARITHMETIC):
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
            value = value_of(part, sql, None, _type_of_arithmetic(part, value, right))
        return value

    def _handing_on(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite an expression that returns one of its parts, or asks whether they exist; None for any other one."""
        arguments = node.expressions
        if isinstance(node, exp.Paren):
            return self._around(node, self.expression(node.this))
        if isinstance(node, (exp.Alias, exp.PropertyEQ)):
            key = "expression" if isinstance(node, exp.PropertyEQ) else "this"
            value = self.expression(node.args[key])
            names = {k: part.copy() for k, part in node.args.items() if isinstance(part, exp.Identifier)}
            return value_of(node, self.rebuild(node, **(names | {key: value.sql})), value.kind)
        if isinstance(node, (exp.Is, exp.Exists)) or name == "count":
            return value_of(node, self._presence(node))
        if self.engine == "spark" and name in _SPARK_FUNCTIONS:
            return value_of(node, self.rebuild(node, expressions=self.allowed(arguments)))
        if (name in _LISTS_OF_ROWS and arguments) or isinstance(node, exp.ArrayAgg):
            return self._list_of_rows(node)
        if isinstance(node, exp.Coalesce):
            return self.one_of(
                node, [node.this, *arguments], lambda parts: self.rebuild(node, this=parts[0], expressions=parts[1:])
            )
        if isinstance(node, exp.Case):
            return self._read_case(node)
        if isinstance(node, exp.If):
            keys = [key for key in ("true", "false") if node.args.get(key) is not None]
            parts = [node.args[key] for key in keys]
            return self.one_of(node, parts, lambda parts: self.rebuild(node, **dict(zip(keys, parts, strict=True))))
        if name in _RETURNING:
            start = 1 if name in ("if", "iff") else 0
            before = self.parts(arguments[:start])
            return self.one_of(node, arguments[start:], lambda parts: self.rebuild(node, expressions=[*before, *parts]))
        by_key = self.by_key if self.engine == "duckdb" else None
        if name in _FIRST_ONLY and arguments:
            further = self.parts(arguments[1:], by_key)
            value = self.expression(arguments[0])
            return chosen(value, node, lambda first: self.rebuild(node, expressions=[first, *further]))
        if isinstance(node, (exp.ArgMax, exp.ArgMin)):
            value = self.expression(node.this)
            result = chosen(value, node, lambda first: self.rebuild(node, by_key, this=first))
            if not node.args.get("count") or value.kind is None:
                return result
            typed = result.typed() if self.is_output(node) else None
            return typed or replace(result, kind=pa.list_(value.kind), as_typed=None)
        if isinstance(node, _OF_FIRST_PART) or (isinstance(node, exp.Order) and node.this):
            return self._around(node, self.expression(node.this))
        return None

    def _around(self, node: exp.Expr, value: Value) -> Value:
        """Return an expression around another one, whose values it hands on."""
        by_key = self.by_key if self.engine == "duckdb" else None
        result = chosen(value, node, lambda inner: self.rebuild(node, by_key, this=inner))
        return replace(result, term=value.term, root=value.root) if isinstance(node, exp.Paren) else result

    def _presence(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression that only asks whether a value is there: its only type means the same."""

        def present(part: exp.Expr) -> exp.Expr:
            value = self.expression(part)
            typed = value.typed(nulls=False)
            return (value if typed is None else typed).sql

        if node.expressions:
            return self.rebuild(node, expressions=[present(part) for part in node.expressions])
        return self.rebuild(node, this=present(node.this)) if isinstance(node.this, exp.Expr) else self.rebuild(node)

    def _list_of_rows(self, node: exp.Expr) -> Value:
        """Rewrite an aggregate that lists its values."""
        first = node.this if isinstance(node, exp.ArrayAgg) else node.expressions[0]
        value = self.expression(first)
        typed = value.typed() if self.is_output(node) else None
        sql = (value if typed is None else typed).sql
        if isinstance(node, exp.ArrayAgg):
            rebuilt = self.rebuild(node, this=sql)
        else:
            rebuilt = self.rebuild(node, expressions=[sql, *self.parts(node.expressions[1:])])
        return value_of(node, rebuilt, None if typed is not None or value.kind is None else pa.list_(value.kind))

    def _read_case(self, node: exp.Case) -> Value:
        branches, operand = node.args.get("ifs") or [], node.this
        by_value = operand is not None and self.expression(operand).is_variant
        conditions = [
            self.plain(exp.EQ(this=operand.copy(), expression=branch.this.copy()) if by_value else branch.this)
            for branch in branches
        ]
        given = {} if by_value or operand is None else {"this": self.parts(operand)}
        default = node.args.get("default")

        def around(parts: list[exp.Expr]) -> exp.Expr:
            ifs = [exp.If(this=c.copy(), true=part) for c, part in zip(conditions, parts, strict=False)]
            rest = {} if default is None else {"default": parts[-1]}
            return exp.Case(ifs=ifs, **{key: part.copy() for key, part in given.items()}, **rest)

        parts = [branch.args["true"] for branch in branches]
        return self.one_of(node, parts if default is None else [*parts, default], around)

    def is_output(self, node: exp.Expr) -> bool:
        """See `ComparisonRewriter.is_output`."""
        parent = node.parent
        while isinstance(parent, (exp.Alias, exp.Paren, *_OF_FIRST_PART)):
            parent = parent.parent
        return self.is_result and isinstance(parent, exp.Select)


def _type_of(node: exp.Expr, name: str) -> pa.DataType | None:
    """Return the Arrow type of an expression where it is known without the engine."""
    if isinstance(node, (exp.Lower, exp.Upper)):
        return pa.string()
    if isinstance(node, exp.CurrentDate):
        return _NOW["today"]
    return _NOW["now"] if isinstance(node, exp.CurrentTimestamp) else _NOW.get(name)


def _type_of_arithmetic(node: exp.Expr, left: Value, right: Value) -> pa.DataType | None:
    is_moment = left.type is not None and pa.types.is_temporal(left.type)
    if isinstance(node, (exp.Add, exp.Sub)) and is_moment and not isinstance(left.source.unnest(), exp.Column):
        return left.type
    return pa.float64() if _is_number(left) and _is_number(right) else None


def _is_number(value: Value) -> bool:
    kind = value.type
    if kind is not None:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
    literal = literal_value(value.source)
    return literal is not NO_LITERAL and hasattr(literal, "real") and not isinstance(literal, bool)


def _type_or_none(node: exp.DataType) -> pa.DataType | None:
    """Return the Arrow type of a type in SQL; None if only the engine has the type."""
    try:
        return sql_type(node)
    except SqlError:
        return None
