"""Hints for paths that no row has: "did you mean …?".

Owns which keys are missing. Leaves similar keys to `layouts.similar_paths`, and the keys of a table to its readers; a
column whose keys are unknown gets no hints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache, partial

from sqlglot import exp

from parquet_variant.layouts.similar_paths import missing_path_hint
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.selection import TableFacts
from parquet_variant.query.sql_dialect import parse_sql
from parquet_variant.types.path import VariantPath

KeysOf = Callable[[str], "frozenset[str] | None"]


def missing_path_hints(
    keys_of: KeysOf, paths: Iterable[tuple[str, VariantPath]], *, as_path: bool = False
) -> list[str]:
    """Return a message for each path with a key that no object of its Variant column has.

    `keys_of`: returns the keys of the objects in a column; None if they are unknown.
    `paths`: Variant columns, and paths into them.
    `as_path`: write paths as ``$.a.b``, not as in SQL.

    >>> missing_path_hints(lambda column: frozenset(["user", "id"]), [("v", VariantPath.parse("$.usr.id"))])
    ['no row has the path v:usr.id: did you mean v:user.id?']
    """
    messages = []
    keys_of_column = cache(keys_of)
    for column, path in dict.fromkeys(paths):
        keys = keys_of_column(column)
        shown = None if as_path else partial(_in_sql, column)
        if keys is not None and (hint := missing_path_hint(path, keys, shown)) is not None:
            messages.append(hint)
    return messages


def _in_sql(column: str, path: VariantPath) -> str:
    return with_steps(column, path.segments)


def hint_of_other_depth(table: TableFacts, column: str, path: VariantPath) -> str | None:
    """Return a message for a path that no row has, if its last key has another path in the table."""
    if (meant := table.path_elsewhere(column, path)) is None:
        return None
    return f"no row has the path {_in_sql(column, path)}: did you mean {_in_sql(column, meant)}?"


def is_correction(hint: str) -> bool:
    """Return whether a hint names a similar path."""
    return "did you mean" in hint


# ---- conditions that cannot be true where some columns are null

# Operators and functions that are null if one of their operands is null.
_OPERATORS = (
    exp.Paren, exp.Cast, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike,
)  # fmt: skip
_FUNCTIONS = {
    "lower", "upper", "trim", "length", "substring", "substr", "starts_with", "ends_with", "contains", "abs", "round",
    "floor", "ceil", "year", "month", "day", "hour", "date_trunc", "date_part", "regexp_matches",
}  # fmt: skip


def rejects_nulls(condition: str, table: str, columns: Collection[str]) -> bool:
    """Return whether a condition in DuckDB's SQL is true for no row in which the columns of a table are all null.

    >>> rejects_nulls("t.a > 1 AND t.b = 2", "t", ["a"]), rejects_nulls("t.a > 1 OR t.b = 2", "t", ["a"])
    (True, False)
    >>> rejects_nulls("NOT LOWER(t.a) = 'x'", "t", ["a"]), rejects_nulls("COALESCE(t.a, 1) = 1", "t", ["a"])
    (True, False)
    """
    return _excludes(parse_sql(condition, what="expression"), True, table, columns)


def _excludes(node: exp.Expr, truth: bool, table: str, columns: Collection[str]) -> bool:
    """Return whether a condition never has a truth value."""
    if isinstance(node, exp.Paren):
        return _excludes(node.this, truth, table, columns)
    if isinstance(node, exp.Not):
        return _excludes(node.this, not truth, table, columns)
    if isinstance(node, (exp.And, exp.Or)):
        parts = [_excludes(part, truth, table, columns) for part in (node.this, node.expression)]
        return any(parts) if isinstance(node, exp.And) == truth else all(parts)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        is_true = not node.args.get("negate")
        return is_true != truth and _is_null(node.this, table, columns)
    return _is_null(node, table, columns)


def _is_null(node: exp.Expr, table: str, columns: Collection[str]) -> bool:
    if isinstance(node, exp.Column):
        return node.table == table and node.name in columns
    if isinstance(node, (exp.Between, exp.In)):
        return _is_null(node.this, table, columns)
    is_strict = node.name.lower() in _FUNCTIONS if isinstance(node, exp.Anonymous) else isinstance(node, _OPERATORS)
    return is_strict and any(_is_null(part, table, columns) for part in node.iter_expressions())
