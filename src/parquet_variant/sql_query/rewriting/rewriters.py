"""The interface of the rewriters, and the only type of the values at a path, of an output, or of an expression.

Owns looking types up, and putting a typed column in the place of a path without a cast. Leaves rewriting expressions to
`values`, and proving types to the tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.kinds import Kind
from parquet_variant.query.path_hints import missing_path_hints
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_pushdown import NO_LITERAL, literal_value
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type
from parquet_variant.sql_query.rewriting.scopes import OutputColumn, ResolvedColumn, Scope, StoredPath, TableUse
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import VariantPath

# Functions that return a value of their first argument.
FIRST_ONLY = {"any_value", "arbitrary", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead"}
FIRST_ONLY |= {"arg_min", "arg_max", "min_by", "max_by", "argmin", "argmax"}
RETURNING = {"coalesce", "ifnull", "nvl", "if", "iff"}  # functions that return any of their arguments
OF_FIRST_PART = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


# Callback: a rewritten expression and the Variants in it -> what takes its place.
Convert = Callable[[exp.Expr, Kind], exp.Expr]


@dataclass(frozen=True, slots=True)
class Getter:
    """A function in the engine's text: the value at a path of a Variant, or one of `variant_functions`."""

    name: str
    term: VariantTerm | None = None
    function: str = ""
    # For sort keys that are compared: the Variant's text, and the classes of values that are compared (all if empty).
    text: str = ""
    classes: tuple[str, ...] = ()
    constants: tuple[Any, ...] = ()  # The last arguments of the function.


class QueryRewriter(Protocol):
    """Rewrites whole queries."""

    engine: SqlEngine
    zone: str  # The session time zone.
    strict: bool  # Whether scans raise for failed casts.

    def query(self, node: exp.Expr, around: Scope) -> Sequence[OutputColumn] | None:
        """Rewrite a query in place, and return its outputs."""
        ...

    def add_warning(self, message: str) -> None:
        """Record a warning about the result."""
        ...

    def add_unknown(self, message: str) -> None:
        """Record the message for a name that is not a column, in case the engine does not know the name either."""
        ...

    def getter(
        self,
        term: VariantTerm | None = None,
        function: str = "",
        text: str = "",
        classes: tuple[str, ...] = (),
        constants: tuple[Any, ...] = (),
    ) -> str:
        """Return the name of the engine's function for a path of a Variant, or for a function over Variants.

        `text` and `classes`: for sort keys that are compared: the Variant as the user wrote it, and the classes of
          values that are compared; the other ones are counted.
        `constants`: the last arguments of the function.
        """
        ...


class ValueRewriter(ABC):
    """Rewrites the expressions of one SELECT, and knows their types."""

    scope: Scope
    engine: SqlEngine
    rewriter: QueryRewriter

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

    @abstractmethod
    def children(
        self,
        node: exp.Expr,
        allowed: Sequence[exp.Expr | None] = (),
        skip: tuple[str, ...] = (),
        convert: Convert | None = None,
    ) -> None:
        """Rewrite the parts of an expression; those in `allowed` may hold Variants, others are converted or refused."""

    @abstractmethod
    def keep(self, node: exp.Expr) -> None:
        """Record that an expression is rewritten, and holds no Variants that others may compute with."""

    @abstractmethod
    def by_key(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        """Return the sort key of a Variant."""

    @abstractmethod
    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None]) -> Kind:
        """Rewrite an expression that returns one of its parts, which must hold the same Variants."""

    @abstractmethod
    def lambda_kind(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Kind:
        """Rewrite a lambda whose first parameter is an element, and return the Variants in its result."""

    @abstractmethod
    def call(self, function: str, *arguments: exp.Expr, constants: tuple[Any, ...] = ()) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""

    @abstractmethod
    def text_of(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an argument that is text; a Variant is its cast to string."""

    @abstractmethod
    def variant_of(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        """Return a rewritten value that is not a Variant as one."""

    def typed(self, node: exp.Expr, *, getters: bool = False, nulls: bool = True) -> exp.Expr | None:
        """Return an uncast path as the type of all its values; None if the files do not prove that there is one.

        `getters`: whether ``variant_get`` without a type is such a path, too.
        `nulls`: whether values may also be Variant null, which become NULL.
        """
        while "written" in node.meta or isinstance(node, exp.Paren):
            node = node.meta.get("written", node.this)  # the path that a column took the place of
        found = self._place_of_path(node, getters)
        if found is None and nulls:
            return self._typed_output(node) or self._typed_choice(node) or self._typed_branches(node)
        if found is None:
            return None
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

    def _typed_branches(self, node: exp.Expr) -> exp.Expr | None:
        """Return an expression that returns one of several Variants, such as CASE, as the type of all of them."""
        if self.engine != "duckdb":
            return None
        rewritten = self.expression(node)[0]
        if not (values := returned_values(rewritten)):
            return None
        typed = [value if isinstance(value, exp.Null) else self.typed_or_null(value) for value in values]
        types = {self.static_type(value) for value in typed if value is not None and not isinstance(value, exp.Null)}
        if None in typed or len(types) != 1:
            return None
        copy = rewritten.copy()
        for old, new in zip(returned_values(copy), typed, strict=True):
            assert new is not None
            old.replace(new.copy())
        copy.meta["type"] = next(iter(types))
        return copy

    def typed_or_null(self, node: exp.Expr) -> exp.Expr | None:
        """Return an uncast path as `typed` does, and NULL for a path that no row has."""
        typed = self.typed(node)
        return exp.Null() if typed is None and self.missing_path_hint(node) is not None else typed

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
            return None if hit is None or hit.ambiguous else reduce(field_type, hit.fields, hit.column.type)
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


def returned_values(node: exp.Expr) -> list[exp.Expr]:
    """Return the values of which an expression returns one: the branches of CASE and IF, and arguments of COALESCE."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    parts: list[exp.Expr | None] = []
    if isinstance(node, exp.Case):
        parts = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        parts = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Coalesce):
        parts = [node.this, *node.expressions]
    elif name in RETURNING:
        parts = node.expressions[1 if name in ("if", "iff") else 0 :]
    return [part for part in parts if part is not None]


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
