"""The only type of the values at a path, of an output of a subquery, or of an expression.

Owns looking them up, and putting a typed column in the place of a path without a cast. Leaves rewriting expressions to
`values`, and proving types to the tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from parquet_variant.path import VariantPath
from parquet_variant.query.path_hints import missing_path_hints
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.sql_query.kinds import Kind
from parquet_variant.sql_query.rewriting.conversions import field_type, is_number, type_of_literal, type_or_none
from parquet_variant.sql_query.rewriting.scopes import ResolvedColumn, Scope, StoredPath, TableUse
from parquet_variant.support.choices import SqlEngine

# Functions that return a value of their first argument.
FIRST_ONLY = {"any_value", "arbitrary", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead"}
FIRST_ONLY |= {"arg_min", "arg_max", "min_by", "max_by", "argmin", "argmax"}
OF_FIRST_PART = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


class PathTypes(ABC):
    """The part of an `ExpressionRewriter` that knows types."""

    scope: Scope
    engine: SqlEngine

    @abstractmethod
    def is_variant(self, node: exp.Expr) -> bool:
        """Return whether an expression that is neither a path nor a cast is a Variant."""

    @abstractmethod
    def expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Rewrite an expression, and return it with the Variants in its result."""

    @abstractmethod
    def table_column(self, hit: ResolvedColumn, use: TableUse, term: VariantTerm) -> exp.Expr:
        """Return the column of a scan for a term."""

    @abstractmethod
    def get(self, inner: exp.Expr, term: VariantTerm) -> exp.Expr:
        """Return the call that takes a term out of an expression."""

    @abstractmethod
    def is_local(self, node: exp.Column) -> bool:
        """Return whether a name is a parameter of a lambda."""

    def typed(self, node: exp.Expr, *, getters: bool = False, nulls: bool = True) -> exp.Expr | None:
        """Return an uncast path as the type of all its values; None if the files do not prove that there is one.

        `getters`: whether ``variant_get`` without a type is such a path, too.
        `nulls`: whether values may also be Variant null, which become NULL.
        """
        node = node.meta.get("written", node)  # the path that a column took the place of
        while isinstance(node, exp.Paren):
            node = node.this
        found = self._place_of_path(node, getters)
        if found is None:
            return (self._typed_output(node) or self._typed_choice(node)) if nulls else None
        term, hit, place = found
        common = place.common_type(nulls=nulls)
        if common is None:
            return None
        if hit.relation.use is not None:
            typed = self.table_column(hit, hit.relation.use, replace(term, type=common, cast=True))
        else:
            typed = self.get(self.expression(term.column)[0].copy(), replace(term, type=common, cast=True))
        typed.meta.update(type=common, written=node)
        return typed

    def common_type(self, node: exp.Expr) -> pa.DataType | None:
        """Return the type of all values of a Variant: a path, an output of a subquery, or the extremes of one."""
        node = node.meta.get("written", node)
        if (chosen := _chosen_argument(node)) is not None:
            return self.common_type(chosen)
        if (found := self._place_of_path(node, False)) is not None:
            return found[2].common_type()
        hit_of_output = self._output_of_subquery(node)
        return None if hit_of_output is None else hit_of_output.column.only_type

    def _typed_choice(self, node: exp.Expr) -> exp.Expr | None:
        """Return an aggregate or window that returns one value of its argument as the type of all these values."""
        chosen = _chosen_argument(node) if self.engine == "duckdb" else None
        inner = None if chosen is None else self.typed(chosen)
        if inner is None:
            return None
        typed = type(node)() if isinstance(node, (exp.Min, exp.Max)) else self.expression(node)[0].copy()
        if not isinstance(typed, exp.Anonymous):
            typed.set("this", inner)
        elif isinstance(typed.expressions[0], exp.Order):
            typed.expressions[0].set("this", inner)
        else:
            typed.expressions[0].replace(inner)
        typed.meta["type"] = self.static_type(inner)
        return typed

    def _output_of_subquery(self, node: exp.Expr) -> ResolvedColumn | None:
        """Return the output of a subquery that a name refers to, if it is a Variant."""
        if self.engine != "duckdb" or not isinstance(node, exp.Column) or self.is_local(node):
            return None
        hit = self.scope.resolve(node)
        if hit is None or hit.ambiguous or hit.fields or hit.relation.use is not None or not hit.column.is_variant:
            return None
        return hit

    def _typed_output(self, node: exp.Expr) -> exp.Expr | None:
        """Return an output of a subquery, or a subquery with one, as the type of all its values, if that is known."""
        hit = self._output_of_subquery(node)
        common = hit.column.only_type if hit is not None else node.meta.get("common_type")
        if common is None or self.engine != "duckdb":
            return None
        column = self.expression(node)[0].copy()
        if hit is not None and isinstance(column, exp.Column) and not column.table and hit.relation.alias:
            column.set("table", exp.to_identifier(hit.relation.alias, quoted=True))  # not an output of this SELECT
        typed = self.get(column, VariantTerm(node, VariantPath(), type=common, cast=True))
        typed.meta["type"] = common
        return typed

    def stored_path(self, node: exp.Expr) -> StoredPath | None:
        """Return where the values of an uncast path, or of a Variant column, are stored; None for other expressions."""
        if (found := self._place_of_path(node, False)) is not None:
            return found[2]
        hit = self.scope.resolve(node) if isinstance(node, exp.Column) and not self.is_local(node) else None
        return None if hit is None or hit.ambiguous or hit.fields else hit.column.place

    def missing_path_hint(self, node: exp.Expr) -> str | None:
        """Return the hint for a path that no row has; None for a path that exists, and for other expressions."""
        node = node.meta.get("written", node)
        if (chosen := _chosen_argument(node)) is not None:
            return self.missing_path_hint(chosen)
        place = self.stored_path(node)
        if place is None or place.inside is not None:
            return None
        return next(iter(missing_path_hints(place.table.keys, [(place.column, place.path)])), None)

    def elements(self, node: exp.Expr) -> exp.Expr | None:
        """Return a typed list with an entry for each element of an uncast path; None if not all values are arrays."""
        found = self._place_of_path(node, True)
        if found is None or (use := found[1].relation.use) is None:
            return None
        term, hit, _ = found
        leaf = use.table.leaf_of_elements(hit.column.name or "", term.path)
        if leaf is None:
            return None
        return self.table_column(hit, use, replace(term, path=leaf[0], type=leaf[1], cast=True))

    def _place_of_path(self, node: exp.Expr, getters: bool) -> tuple[VariantTerm, ResolvedColumn, StoredPath] | None:
        """Return an uncast path into a column, with the column and the place of its values; None for anything else."""
        term = read_term(node, self.is_variant, self.engine) if self.engine == "duckdb" else None
        is_cast = term is not None and term.cast and not (getters and term.type is None and is_getter(node))
        if term is None or is_cast or not term.path.segments or not isinstance(term.column, exp.Column):
            return None
        hit = self.scope.resolve(term.column)
        if hit is None or hit.ambiguous or hit.fields or hit.column.place is None:
            return None
        return term, hit, hit.column.place.below(term.path)

    def static_type(self, node: exp.Expr | None) -> pa.DataType | None:
        """Return the Arrow type of an expression where it is known without the engine."""
        node = None if node is None else node.unnest()
        if node is None:
            return None
        if isinstance(node.meta.get("type"), pa.DataType):
            return node.meta["type"]
        if isinstance(node, exp.Cast):
            term = read_term(node, self.is_variant, self.engine)
            return term.output if term is not None else type_or_none(node.to)
        if isinstance(node, exp.Column):
            hit = self.scope.resolve(node)
            if hit is None or hit.relation.use is None:
                return None
            kind = hit.relation.use.table.columns.ordinary.get(hit.column.name or "")
            return reduce(field_type, hit.fields, kind)
        if isinstance(node, (exp.Add, exp.Sub)) and (time := self._type_of_time(node.this)) is not None:
            return time
        if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
            parts = [self.static_type(part) or type_of_literal(part) for part in (node.this, node.expression)]
            numbers = all(kind is not None and is_number(kind) for kind in parts)
            return pa.float64() if numbers else None
        return pa.string() if isinstance(node, (exp.Lower, exp.Upper)) else self._type_of_time(node)

    def _type_of_time(self, node: exp.Expr) -> pa.DataType | None:
        """Return the Arrow type of a point in time, such as ``now()`` or ``current_date - 7``."""
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.CurrentDate) or name == "today":
            return pa.date32()
        if isinstance(node, exp.CurrentTimestamp) or name in ("now", "get_current_timestamp"):
            return pa.timestamp("us", tz="UTC")
        kind = self.static_type(node) if isinstance(node, (exp.Cast, exp.Add, exp.Sub)) else None
        return kind if kind is not None and pa.types.is_temporal(kind) else None


def is_getter(node: exp.Expr) -> bool:
    """Return whether an expression is `variant_get` or `try_variant_get`."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in ("variant_get", "try_variant_get")


def _chosen_argument(node: exp.Expr) -> exp.Expr | None:
    """Return the argument of which an expression returns one value; None for other expressions."""
    if isinstance(node, (exp.Min, exp.Max, exp.ArgMin, exp.ArgMax)):
        return None if node.args.get("count") else node.this
    if isinstance(node, (*OF_FIRST_PART, exp.Paren)):
        return node.this
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in FIRST_ONLY and node.expressions:
        first = node.expressions[0]
        return first.this if isinstance(first, exp.Order) else first
    return None
