"""Paths into Variants in SQL expressions, with the types that they are cast to.

Owns the ways to write them: ``v:a.b``, ``v['a']``, ``variant_get(v, '$.a', 'int')``, and casts of these. Leaves which
names are Variant columns to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from parquet_variant.ops.columns.target_type import wildcard_count
from parquet_variant.query.path_dialect import key_in_brackets, steps_of
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_dialect import SqlError, to_sql, written
from parquet_variant.query.sql_types import sql_type, sql_type_named
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_GETTERS = {"variant_get": False, "try_variant_get": True}


@dataclass(frozen=True, slots=True)
class VariantTerm:
    """A path into a Variant column, and the type that an expression casts it to."""

    column: exp.Expr  # The Variant: a column, or another expression whose value is a Variant.
    path: VariantPath  # The path.
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


def read_term(
    node: exp.Expr, is_variant: Callable[[exp.Expr], bool], engine: SqlEngine = "duckdb"
) -> VariantTerm | None:
    """Read an expression as a path into a Variant; None if it is not one.

    `node`: the expression; a cast of a path belongs to it, an expression around the cast does not.
    `is_variant`: returns whether a column, or another expression that is neither a path nor a cast, is a Variant.
    `engine`: the engine whose type names are used.
    Raises `SqlError` for an unknown type, or arguments of ``variant_get`` other than path and type in quotes;
    `PathError` for an invalid path.

    >>> from parquet_variant.query.sql_dialect import parse_sql
    >>> term = read_term(parse_sql("v:a['b c'][0]::int", what="expression"), lambda column: column.name == "v")
    >>> str(term.path), term.type
    ("$['a']['b c'][0]", DataType(int32))
    """
    if isinstance(node, exp.Paren):
        return read_term(node.this, is_variant, engine)
    if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
        return _extend_term(read_term(node.this, is_variant, engine), steps_of(node))
    if isinstance(node, exp.Bracket) or (isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier)):
        inner = read_term(node.this, is_variant, engine)
        if inner is not None and inner.type is None:  # v['a'].b
            return _extend_term(
                inner, (_subscript(node, engine) if isinstance(node, exp.Bracket) else node.expression.name,)
            )
    if isinstance(node, exp.Cast) and not node.is_type("json"):  # JSON is a type of the engine, not of Variants
        inner = read_term(node.this, is_variant, engine)
        if inner is None or inner.cast:
            return None
        if node.args.get("format") is not None:
            raise SqlError(f"{written(node, engine)}: a cast of a Variant cannot have a format")
        return replace(_cast(inner, sql_type(node.to, engine), node, engine), tries=isinstance(node, exp.TryCast))
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in _GETTERS:
        return _getter(node, is_variant, engine)
    return VariantTerm(node, VariantPath()) if is_variant(node) else None


def _extend_term(term: VariantTerm | None, segments: tuple[Segment, ...]) -> VariantTerm | None:
    if term is None or (term.cast and term.type is not None):
        return None
    return VariantTerm(term.column, VariantPath((*term.path.segments, *segments)))


def _cast(term: VariantTerm, kind: pa.DataType | None, node: exp.Expr, engine: SqlEngine) -> VariantTerm:
    """Add a cast to a term; with wildcards the type is that of the whole list, as in ``v:items[*].n::array<int>``."""
    for _ in range(wildcard_count(term.path) if kind is not None else 0):
        if kind is None or not pa.types.is_list(kind):
            raise SqlError(
                f"{written(node, engine)}: the result of a path with [*] is an array: cast it to array<type>",
                reason="bad-type",
            )
        kind = kind.value_type
    return replace(term, type=kind, cast=True)


def _subscript(node: exp.Bracket, engine: SqlEngine) -> Segment:
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


def _getter(node: exp.Anonymous, is_variant: Callable[[exp.Expr], bool], engine: SqlEngine) -> VariantTerm | None:
    arguments = node.expressions
    inner = read_term(arguments[0], is_variant, engine) if arguments else None
    if inner is None:
        return None
    texts = [part.name for part in arguments[1:] if isinstance(part, exp.Literal) and part.is_string]
    if len(texts) != len(arguments) - 1 or len(texts) not in (1, 2):
        raise SqlError(
            f"{written(node, engine)}: write {str(node.this).lower()}(column, '$.path', 'type') with both in quotes"
        )
    term = _extend_term(inner, VariantPath.parse(texts[0]).segments)
    if term is None:
        raise SqlError(f"{to_sql(arguments[0], engine)} is no longer a Variant, because it is cast: remove the cast")
    term = _cast(term, sql_type_named(texts[1], engine) if len(texts) == 2 else None, node, engine)
    return replace(term, tries=_GETTERS[str(node.this).lower()])
