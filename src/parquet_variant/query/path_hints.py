"""Hints for paths that no row has: "did you mean …?".

Owns which keys are missing. Leaves similar keys to `layouts.similar_paths`, and the keys of a table to its readers; a
column whose keys are unknown gets no hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from parquet_variant.layouts.similar_paths import missing_path_hint
from parquet_variant.path import VariantPath
from parquet_variant.query.null_rejection import rejects_nulls
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.sql_expression import NeededColumn, SqlExpression

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
    keys_by_column: dict[str, frozenset[str] | None] = {}
    for column, path in dict.fromkeys(paths):
        if column not in keys_by_column:
            keys_by_column[column] = keys_of(column)
        keys = keys_by_column[column]
        if keys is None:
            continue
        write = None if as_path else partial(_in_sql, column)
        if (hint := missing_path_hint(path, keys, write)) is not None:
            messages.append(hint)
    return messages


def needed_path_hints(keys_of: KeysOf, condition: SqlExpression, table: str) -> list[str]:
    """Return messages for missing paths of a table if the condition is true for no row without these paths.

    A path of ``v:a = 1 OR v:b = 2`` may be missing if another path exists, and that of ``v:a IS NULL`` always.
    """
    hints = {
        name: hint
        for name, column in condition.columns.get(table, {}).items()
        if column.path is not None and column.function is None
        for hint in missing_path_hints(keys_of, [(column.column, column.path)])
    }
    if not hints or not rejects_nulls(condition.text, table, hints):
        return []
    alone = [hint for name, hint in hints.items() if rejects_nulls(condition.text, table, [name])]
    return list(dict.fromkeys(alone or hints.values()))


def is_correction(hint: str) -> bool:
    """Return whether a hint names a similar path."""
    return "did you mean" in hint


def paths_in(columns: Iterable[NeededColumn]) -> list[tuple[str, VariantPath]]:
    """Return the Variant columns and paths among needed columns."""
    return [(column.column, column.path) for column in columns if column.path is not None]


def _in_sql(column: str, path: VariantPath) -> str:
    return with_steps(column, path.segments)
