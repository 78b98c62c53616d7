"""The expressions of a query: paths become columns, and each place that a Variant can be in is decided.

Owns which expressions may hold a Variant, and what a function makes of one. Leaves the select list and the clauses to
`select_list`, values with Variants inside to `nested` and `nested_casts`, and comparing them to `comparisons`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.kinds import Kind, field_of, is_variant, only_variants
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_expression import check_fields, column_name
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.query.variant_functions import unknown_function
from parquet_variant.sql_query.rewriting.comparisons import as_variant, in_one_form, key_of, refuse_as_list
from parquet_variant.sql_query.rewriting.computations import rewrite_computation
from parquet_variant.sql_query.rewriting.nested import NOT_NESTED, nested_kind, taken_from
from parquet_variant.sql_query.rewriting.nested_casts import (
    TEXT_FUNCTIONS,
    as_json,
    as_text,
    cast_inside,
    conversion,
)
from parquet_variant.sql_query.rewriting.rewriters import (
    FIRST_ONLY,
    OF_FIRST_PART,
    RETURNING,
    Convert,
    QueryRewriter,
    ValueRewriter,
    is_getter,
)
from parquet_variant.sql_query.rewriting.scopes import (
    OutputColumn,
    Relation,
    ResolvedColumn,
    Scope,
    TableUse,
    check_distinct,
    unknown_name,
)
from parquet_variant.sql_query.rewriting.syntax import chain_below, select_rows_alone
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

USE = "table_use"
_HAND_ON = FIRST_ONLY | RETURNING
_NO_ELEMENTS = exp.Array(expressions=[])
# Functions of Spark that take Variants; `to_json` also takes values with Variants inside.
_SPARK_FUNCTIONS = frozenset(["to_json", "is_variant_null", "schema_of_variant", "schema_of_variant_agg"])
_LISTS_OF_ROWS = frozenset(["list", "array_agg", "collect_list"])


class ExpressionRewriter(ValueRewriter):
    """Rewrites the expressions of one SELECT."""

    def __init__(self, rewriter: QueryRewriter, scope: Scope) -> None:
        self.rewriter, self.scope, self.engine = rewriter, scope, rewriter.engine
        # By the id of a node: the node, which is kept so that no other one gets its id, and its rewritten form.
        self.done: dict[int, tuple[exp.Expr, exp.Expr, Kind]] = {}
        self.in_having = False
        # Whether the outputs are those of the whole query. Those of a subquery remain Variants, whatever the data is,
        # because functions and paths may need Variants.
        self.is_result = False

    # ---- expressions

    def value(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression that may not hold Variants."""
        rewritten, kind = self.expression(node)
        if kind is not None:
            typed = self.typed(node) if is_variant(kind) else None
            if typed is not None:
                return typed
            is_condition = isinstance(node.parent, (exp.Where, exp.Having, exp.Join))
            raise self._untyped(node, kind, is_condition=is_condition)
        return rewritten

    def _untyped(self, node: exp.Expr, kind: Kind, *, is_condition: bool = False) -> SqlError:
        text = written(node, self.engine)
        call = node.parent if isinstance(node.parent, exp.Anonymous) and self.engine == "duckdb" else None
        if call is not None and (message := unknown_function(call.name)) is not None:
            return SqlError(message)
        if (hint := self.missing_path_hint(node)) is not None:
            return SqlError(hint)
        if not is_variant(kind):
            return SqlError(
                f"{text} holds Variants, which cannot be computed with: give them types, as in ::array<string>"
            )
        cast = f"({text})" if " " in text else text
        kinds = f"{cast}::boolean" if is_condition else f"{cast}::string or {cast}::double"
        return SqlError(f"{text} is a Variant, which cannot be computed with: write a type, as in {kinds}")

    def is_variant(self, node: exp.Expr) -> bool:
        """Return whether an expression that is neither a path nor a cast is a Variant."""
        if isinstance(node, exp.Column):
            return not isinstance(node.this, exp.Star) and is_variant(self._kind(node))
        if isinstance(node, (exp.Bracket, exp.Dot)):
            return is_variant(taken_from(self.expression(node.this)[1], node))
        if isinstance(node, (exp.JSONExtract, exp.Cast)) or is_getter(node):
            return False  # of a Variant, these are terms
        return is_variant(self.expression(node)[1])

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Rewrite an expression, and return it with the Variants in its result."""
        entry = self.done.get(id(node))
        if entry is None:
            for part in chain_below(node):  # so that a long sum does not recurse per operand
                self.expression(part)
            entry = self.done[id(node)] = (node, *self._expression(node))
            self.done[id(entry[1])] = entry
        return entry[1:]

    def _expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        if isinstance(node, exp.Cast) and self.engine == "duckdb" and (cast := self._cast_inside(node)) is not None:
            return cast, None
        asks = isinstance(node, (exp.Column, exp.JSONExtract, exp.Bracket, exp.Dot, exp.Cast)) or is_getter(node)
        term = read_term(node, self.is_variant, self.engine) if asks else None
        if term is not None:
            rewritten = self._term(term)
            if rewritten is not node:
                rewritten.meta["written"] = node
            return rewritten, VARIANT_STORAGE if term.output is None else only_variants(term.output)
        if isinstance(node, exp.Column):
            return self._column(node), self._kind(node)
        if isinstance(node, exp.Identifier):
            return node, self.scope.locals.get(node.name.lower())
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            raise self._no_variant(node, node.this)
        if is_getter(node) and node.expressions and self.engine == "duckdb":
            raise self._no_variant(node, node.expressions[0])
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
            outputs = self.rewriter.query(node, self.scope)
            if not outputs or len(outputs) != 1:
                return node, None
            node.meta["common_type"] = outputs[0].common
            return node, outputs[0].kind
        if isinstance(node, exp.Lambda):
            return node, self.lambda_kind(node, [name.name for name in node.expressions])
        if isinstance(node, exp.Star):
            return node, None
        if isinstance(node, exp.Columns):
            if any(relation.may_hold_variants for relation in self.scope.visible()):
                raise SqlError("COLUMNS(…) is not for tables with Variants: list the columns")
            return node, None
        if isinstance(node, exp.Binary) and node.this.is_star:
            raise SqlError("* LIKE … is not for tables with Variants: list the columns")
        return self._handing_on(node)

    def _cast_inside(self, node: exp.Cast) -> exp.Expr | None:
        """Rewrite a cast of a Variant to JSON, or of a value with Variants inside; None for any other cast."""
        if not node.is_type("json"):
            if isinstance(node.this.unnest(), (exp.Column, exp.JSONExtract)) and self.is_path(node.this):
                return None
            value, kind = self.expression(node.this)
            return None if kind is None or is_variant(kind) else cast_inside(self, node, value, kind)
        value, kind = self.expression(node.this)
        if kind is None:
            return None
        return cast_inside(self, node, value, kind)

    def is_path(self, node: exp.Expr) -> bool:
        """Return whether an expression is a path into a Variant, or a Variant itself."""
        return read_term(node, self.is_variant, self.engine) is not None

    def _handing_on(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Rewrite an expression by what it makes of Variants: returns, compares, converts or refuses them."""
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if self.engine == "duckdb" and (result := rewrite_computation(self, node, name)) is not None:
            return result
        if isinstance(node, (exp.Paren, exp.Alias, exp.PropertyEQ)):
            key = "expression" if isinstance(node, exp.PropertyEQ) else "this"
            value, kind = self.expression(node.args[key])
            node.set(key, value)
            names = [part for part in node.iter_expressions() if isinstance(part, exp.Identifier)]
            self.children(node, names, skip=(key,))
            return node, kind
        if isinstance(node, exp.Exists):
            select_rows_alone(node.this)
        if isinstance(node, (exp.Is, exp.Exists)) or name == "count":
            return self._presence(node), None
        if self.engine == "spark" and name in _SPARK_FUNCTIONS:
            self.children(node, node.expressions)
            return node, None
        if (name in _LISTS_OF_ROWS and node.expressions) or isinstance(node, exp.ArrayAgg):
            first = node.this if isinstance(node, exp.ArrayAgg) else node.expressions[0]
            element = first.this if isinstance(first, exp.Order) else first
            typed = self.typed(element) if self._is_output(node) else None
            if typed is not None:
                element.replace(typed)
                self.keep(typed)
                self.children(node)
                return node, None
            kind = self.expression(first)[1]
            self.children(node, [first])
            return node, None if kind is None else pa.list_(kind)
        if isinstance(node, exp.Coalesce):
            return node, self.alike(node, [node.this, *node.expressions], mixes=True)
        if isinstance(node, exp.Case):
            if node.this is not None and is_variant(self.expression(node.this)[1]):
                for branch in node.args.get("ifs") or ():
                    branch.set("this", exp.EQ(this=node.this.copy(), expression=branch.this))
                node.set("this", None)
            branches = [branch.args["true"] for branch in node.args.get("ifs") or ()] + [node.args.get("default")]
            return node, self.alike(node, branches, mixes=True)
        if isinstance(node, exp.If):
            return node, self.alike(node, [node.args["true"], node.args.get("false")], mixes=True)
        if name in _HAND_ON:
            first = 1 if name in ("if", "iff") else 0
            return node, self.alike(node, node.expressions[first : 1 if name in FIRST_ONLY else None], mixes=True)
        if isinstance(node, (exp.ArgMax, exp.ArgMin)):
            kind = self.alike(node, [node.this], mixes=True)
            return node, None if kind is None else pa.list_(kind) if node.args.get("count") else kind
        if isinstance(node, OF_FIRST_PART) or (isinstance(node, exp.Order) and node.this):
            kind = self.expression(node.this)[1]
            self.children(node, [node.this], convert=self.by_key)
            return node, kind
        if name in TEXT_FUNCTIONS and node.expressions and is_variant(self.expression(node.expressions[0])[1]):
            kind = NOT_NESTED
        else:
            kind = nested_kind(self, node, name)
        if kind is not NOT_NESTED:
            return node, kind
        self.children(node, convert=conversion(self, node, name))
        return node, None

    def _is_output(self, node: exp.Expr) -> bool:
        """Return whether an expression is a column of the result of the whole query."""
        parent = node.parent
        while isinstance(parent, (exp.Alias, exp.Paren, exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            parent = parent.parent
        return self.is_result and isinstance(parent, exp.Select)

    def _presence(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression that only asks whether a value is there: its only type means the same."""
        operands = node.expressions or [part for part in [node.this] if isinstance(part, exp.Expr)]  # count() has none
        typed = [self.typed(operand, nulls=False) for operand in operands]
        self.children(node, [*node.iter_expressions()])
        if node.expressions:
            node.set(
                "expressions", [old if new is None else new for new, old in zip(typed, node.expressions, strict=True)]
            )
        elif typed and typed[0] is not None:
            node.set("this", typed[0])
        return node

    def call(self, function: str, *arguments: exp.Expr, constants: tuple[Any, ...] = ()) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""
        name = self.rewriter.getter(function=function, constants=constants)
        return exp.Anonymous(this=name, expressions=list(arguments))

    def text_of(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an argument that is text; a Variant is its cast to string."""
        value, kind = self.expression(node)
        return value if kind is None else as_text(self, value, kind)

    def variant_of(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        """Return a rewritten value that is not a Variant as one."""
        if kind is None:
            return as_variant(self, value)
        text = exp.cast(exp.Anonymous(this="to_json", expressions=[as_json(self, value, kind)]), "TEXT")
        return self.call("parse_json", exp.Anonymous(this="encode", expressions=[text]))

    def keep(self, node: exp.Expr) -> None:
        """Record that an expression is rewritten, and holds no Variants that others may compute with."""
        self.done[id(node)] = (node, node, None)

    def by_key(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        """Return the sort key of a Variant."""
        if not is_variant(kind):
            raise self._untyped(value, kind)
        return key_of(self, value)

    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None], *, mixes: bool = False) -> Kind:
        """Rewrite an expression that returns one of its parts, which must hold the same Variants; return these.

        `mixes`: whether parts may be replaced by a common form.
        """
        text = written(node, self.engine)
        values = [
            part for part in parts if part is not None and not isinstance(part, exp.Null) and part != _NO_ELEMENTS
        ]
        kinds = [self.expression(value)[1] for value in values]
        may_change = (
            mixes
            and self.engine == "duckdb"
            and (self._is_output(node) or None in kinds)
            and any(map(is_variant, kinds))
        )
        if may_change and any(map(is_variant, kinds)) and (new := in_one_form(self, values)) is not None:
            for old, value in zip(values, new, strict=True):
                if old is not value:
                    old.replace(value)
                    self.done[id(value)] = (value, value, value.meta.get("kind"))
            kinds = [self.expression(value)[1] for value in new]
            replaced = dict(zip(map(id, values), new, strict=True))
            parts = [part if part is None else replaced.get(id(part), part) for part in parts]
        if any(kind is not None for kind in kinds) and not all(kind == kinds[0] for kind in kinds):
            raise SqlError(f"{text} mixes a Variant with other values: cast the Variant, as in ::string")
        for branch in node.args.get("ifs") or ():
            self.children(branch, [branch.args["true"]])
        orders = isinstance(node, (exp.Anonymous, exp.ArgMax, exp.ArgMin))
        convert = self.by_key if self.engine == "duckdb" and orders else None
        self.children(node, parts, skip=("ifs",), convert=convert)
        return kinds[0] if kinds else None

    def children(
        self,
        node: exp.Expr,
        allowed: Sequence[exp.Expr | None] = (),
        skip: tuple[str, ...] = (),
        convert: Convert | None = None,
    ) -> None:
        """Rewrite the parts of an expression; others than `allowed` are converted or refused if they hold Variants."""
        ids = {id(part) for part in allowed}
        for key, argument in list(node.args.items()):
            if key in skip:
                continue
            if isinstance(argument, exp.Expr):
                node.set(key, self._child(argument, ids, convert))
            elif isinstance(argument, list):
                node.set(key, [self._child(part, ids, convert) for part in argument])

    def _child(self, node: Any, allowed: set[int], convert: Convert | None) -> Any:
        if not isinstance(node, exp.Expr) or isinstance(node, (exp.DataType, exp.Var)):
            return node
        if convert is not None and isinstance(node, (exp.Order, exp.Distinct)) and id(node) not in allowed:
            return self._ordered(node, convert)
        value, kind = self.expression(node)
        if kind is None or id(node) in allowed:
            return value
        if is_variant(kind) and (typed := self._typed_for(node, convert)) is not None:
            return typed
        if convert is None:
            is_condition = isinstance(node.parent, (exp.And, exp.Or, exp.Not))
            if _takes_list(node.parent):
                refuse_as_list(self, node)
            raise self._untyped(node, kind, is_condition=is_condition)
        return convert(value, kind)

    def _ordered(self, node: exp.Order | exp.Distinct, convert: Convert) -> exp.Expr:
        """Rewrite an argument of an aggregate that has ORDER BY or DISTINCT; the argument itself is converted."""
        if isinstance(node, exp.Distinct):
            node.set("expressions", [self._child(part, set(), convert) for part in node.expressions])
        else:
            node.set("this", self._child(node.this, set(), convert))
            node.set("expressions", [self.expression(key)[0] for key in node.expressions])
        self.keep(node)
        return node

    def _typed_for(self, node: exp.Expr, convert: Convert | None) -> exp.Expr | None:
        """Return a Variant as its only type, where a function that takes it means the same."""
        if convert is None or convert == self.by_key:
            return self.typed(node)
        if isinstance(convert, partial) and convert.func is as_text:
            typed = self.typed(node)
            kind = self.static_type(typed)
            return typed if kind is not None and pa.types.is_string(kind) else None
        return None

    def lambda_kind(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Kind:
        """Rewrite a lambda whose first parameter is an element, and return the Variants in its result."""
        before = self.scope.locals
        self.scope.locals = before | {name.lower(): None for name in names} | {names[0].lower(): element}
        parameters = ("expressions",) if isinstance(node, exp.Lambda) else ("expression", "position")
        self.children(node, [node.this, node.args.get("iterator")], skip=parameters)
        kind = self.expression(node.this)[1]
        self.scope.locals = before
        self.done[id(node)] = (node, node, kind)
        return kind

    # ---- columns and paths

    def _term(self, term: VariantTerm) -> exp.Expr:
        if term.tries and self.rewriter.strict and term.type is not None:
            names = all(isinstance(step, (str, int)) for step in term.path.segments)
            variant = VariantTerm(term.column, term.path if names else VariantPath())
            return self.get(self._term(variant), replace(term, path=VariantPath()) if names else term)
        if isinstance(term.column, exp.Column):
            hit = self.scope.resolve(term.column)
            if hit is not None and hit.ambiguous and hit.column.is_variant:
                tables = " or ".join(match.relation.alias for match in self.scope.everywhere(term.column.name))
                raise SqlError(
                    f"{term.column.name} is ambiguous: {tables} has such a column; write the table before it"
                )
            if hit is not None and hit.relation.use is not None and not hit.fields:
                return self.table_column(hit, hit.relation.use, term)
            inner = self._column(term.column).copy()
        elif isinstance(term.column, (exp.Bracket, exp.Dot)):
            inner = self._handing_on(term.column)[0]
        else:
            inner = self.expression(term.column)[0]
        return inner if not term.path.segments and not term.cast else self.get(inner, term)

    def table_column(self, hit: ResolvedColumn, use: TableUse, term: VariantTerm) -> exp.Expr:
        """See `ValueRewriter.table_column`."""
        column = hit.column.name or ""
        name = column_name(term, column)
        if name == column:
            use.named.add(name)
        else:
            name = f"{use.number}.{name}"
        use.needed[name] = use.table.needs(column, term.path, term.type)
        return _reference(hit.relation, name, use, type=term.output)

    def get(self, inner: exp.Expr, term: VariantTerm) -> exp.Expr:
        """See `ValueRewriter.get`."""
        if self.engine == "spark":
            kind = "variant" if term.type is None else sql_type_name(term.type)
            arguments = [inner, exp.Literal.string(str(term.path)), exp.Literal.string(kind)]
            return exp.Anonymous(this="try_variant_get", expressions=arguments)
        return exp.Anonymous(this=self.rewriter.getter(term), expressions=[inner])

    def is_local(self, node: exp.Column) -> bool:
        """See `ValueRewriter.is_local`."""
        return node.parts[0].name.lower() in self.scope.locals

    def _kind(self, node: exp.Column) -> Kind:
        """Return the Variants in a column, a lambda's parameter or an output."""
        if self.is_local(node):
            first, *fields = (part.name for part in node.parts)
            return reduce(field_of, fields, self.scope.locals[first.lower()])
        hit = self.scope.resolve(node)
        if hit is not None:
            return hit.kind
        alias = self._alias(node)
        return None if alias is None else alias.kind

    def _column(self, node: exp.Column) -> exp.Expr:
        if isinstance(node.this, exp.Star) or self.is_local(node):
            return node
        hit = self.scope.resolve(node)
        if hit is None:
            if not self.scope.is_known(node):
                self.rewriter.add_unknown(unknown_name(self.scope, node, self.engine))
            elif self.scope.is_whole_table(node):
                raise SqlError(f"{node.name} is a table, not a column: name a column, or write {node.name}.*")
            return node
        use = hit.relation.use
        if use is None:
            check_distinct(hit.column.name or "", [column.name or "" for column in hit.relation.columns])
            return node
        name = hit.column.name or ""
        use.named.add(name)
        for match in self.scope.everywhere(node.parts[0].name) if hit.ambiguous else [hit]:
            if (table_use := match.relation.use) is not None:
                column = match.column.name or ""
                table_use.needed[column] = table_use.table.needs(column)
        if hit.ambiguous:
            return node
        use.needed[name] = use.table.needs(name)
        if self.in_having and self._alias(node) is not None:
            return node  # an output's name, unless the column is grouped by: the engine knows
        kind = None if hit.fields else use.table.columns.ordinary.get(name)
        reference = _reference(hit.relation, name, use, written=node, type=kind)
        check_fields(use.table.columns.ordinary.get(name), name, hit.fields)
        for part in hit.fields:
            reference = exp.Dot(this=exp.Paren(this=reference), expression=exp.to_identifier(part, quoted=True))
        return reference

    def _alias(self, node: exp.Expr) -> OutputColumn | None:
        """Return the output that a name is the alias of, if it is one."""
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            return None
        if (twins := self.scope.twins.get(node.name.lower())) is not None:
            check_distinct(node.name, twins)
        return self.scope.aliases.get(node.name.lower())

    def _no_variant(self, node: exp.Expr, inner: exp.Expr) -> SqlError:
        if isinstance(inner, exp.Column) and self.scope.resolve(inner) is None and not self.scope.is_known(inner):
            return SqlError(unknown_name(self.scope, inner, self.engine))
        slices = "; a slice is written list_slice(list, 1, 2)" if node.find_ancestor(exp.Bracket) else ""
        return SqlError(
            f"{written(inner, self.engine)} is not a Variant column, and only Variants have paths such as "
            f"{written(node, self.engine)}{slices}"
        )


def _takes_list(node: exp.Expr | None) -> bool:
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, (exp.Any, exp.All)) or name.startswith(("list_", "array_"))


def _reference(relation: Relation, name: str, use: TableUse, **facts: object) -> exp.Expr:
    """Return a column of a table, with the facts that later steps need."""
    column = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(relation.alias, quoted=True))
    column.meta.update(facts, **{USE: use.number})
    return column
