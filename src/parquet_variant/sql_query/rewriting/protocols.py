"""Interfaces through which the modules that rewrite parts of a query call the modules above them.

Owns the two interfaces, so that no module imports the one that calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.sql_query.kinds import Kind
from parquet_variant.sql_query.rewriting.scopes import OutputColumn, Scope
from parquet_variant.support.choices import SqlEngine

# Callback: a rewritten expression and the Variants in it -> what takes its place.
Convert = Callable[[exp.Expr, Kind], exp.Expr]


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
        self, term: VariantTerm | None = None, function: str = "", text: str = "", classes: tuple[str, ...] = ()
    ) -> str:
        """Return the name of the engine's function for a path of a Variant, or for a function over Variants.

        `text` and `classes`: for sort keys that are compared: the Variant as the user wrote it, and the classes of
          values that are compared; the other ones are counted.
        """
        ...


class ValueRewriter(Protocol):
    """Rewrites the expressions of one SELECT."""

    engine: SqlEngine
    scope: Scope
    rewriter: QueryRewriter

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Rewrite an expression, and return it with the Variants in its result."""
        ...

    def children(
        self,
        node: exp.Expr,
        allowed: Sequence[exp.Expr | None] = (),
        skip: tuple[str, ...] = (),
        convert: Convert | None = None,
    ) -> None:
        """Rewrite the parts of an expression; those in `allowed` may hold Variants, others are converted or refused."""
        ...

    def call(self, function: str, *arguments: exp.Expr) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""
        ...

    def keep(self, node: exp.Expr) -> None:
        """Record that an expression is rewritten, and holds no Variants that others may compute with."""
        ...

    def by_key(self, value: exp.Expr, kind: Kind) -> exp.Expr:
        """Return the sort key of a Variant."""
        ...

    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None]) -> Kind:
        """Rewrite an expression that returns one of its parts, which must hold the same Variants."""
        ...

    def typed(self, node: exp.Expr, *, getters: bool = False, nulls: bool = True) -> exp.Expr | None:
        """Return an uncast path as the type of all its values; None if the files do not prove that there is one.

        `getters`: whether ``variant_get`` without a type is such a path, too.
        `nulls`: whether values may also be Variant null, which become NULL.
        """
        ...

    def elements(self, node: exp.Expr) -> exp.Expr | None:
        """Return a typed list with an entry for each element of an uncast path; None if not all values are arrays."""
        ...

    def static_type(self, node: exp.Expr | None) -> pa.DataType | None:
        """Return the Arrow type of an expression where it is known without the engine."""
        ...

    def lambda_kind(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Kind:
        """Rewrite a lambda whose first parameter is an element, and return the Variants in its result."""
        ...
