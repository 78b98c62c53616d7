"""Paths into Variants in SQL expressions, with the types that they are cast to.

Owns the ways to write their steps and types. Leaves what a path begins at to `values`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from parquet_variant.ops.columns.target_type import wildcard_count
from parquet_variant.query.path_dialect import key_in_brackets
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

GETTERS = {"variant_get": False, "try_variant_get": True}


@dataclass(frozen=True, slots=True)
class VariantTerm:
    """A path into a Variant, and the type that an expression casts it to."""

    path: VariantPath = VariantPath()  # noqa: RUF009 - immutable
    type: pa.DataType | None = None  # The Arrow type of the result; None for a Variant.
    cast: bool = False  # Whether there is a cast; ``::variant`` is a cast, too.
    tries: bool = False  # Whether a value that cannot be cast is NULL even where failed casts are errors.

    @property
    def key(self) -> str | None:
        """The last key of the path, which names the output column."""
        keys = [segment for segment in self.path.segments if isinstance(segment, str)]
        return keys[-1] if keys else None

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the result, a list for each wildcard; None for a Variant."""
        return Selected("", self.path, self.type).output


def cast_term(term: VariantTerm, kind: pa.DataType | None, node: exp.Expr, engine: SqlEngine) -> VariantTerm:
    """Add a cast to a term; with wildcards the type is that of the whole list, as in ``v:items[*].n::array<int>``."""
    for _ in range(wildcard_count(term.path) if kind is not None else 0):
        if kind is None or not pa.types.is_list(kind):
            raise SqlError(
                f"{written(node, engine)}: the result of a path with [*] is an array: cast it to array<type>",
                reason="bad-type",
            )
        kind = kind.value_type
    return replace(term, type=kind, cast=True)


def subscript(node: exp.Bracket, engine: SqlEngine) -> Segment:
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


def getter_arguments(node: exp.Expr, engine: SqlEngine) -> tuple[VariantPath, str | None]:
    """Return the path and the type name of ``variant_get(v, '$.a', 'int')``."""
    texts = [part.name for part in node.expressions[1:] if isinstance(part, exp.Literal) and part.is_string]
    if len(texts) != len(node.expressions) - 1 or len(texts) not in (1, 2):
        raise SqlError(
            f"{written(node, engine)}: write {str(node.this).lower()}(column, '$.path', 'type') with both in quotes"
        )
    return VariantPath.parse(texts[0]), texts[1] if len(texts) == 2 else None
