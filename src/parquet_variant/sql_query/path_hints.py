"""Hints for paths that no row has: "did you mean …?".

Owns which keys are missing. Leaves similar keys to `schema.similar_paths`, and the keys of a table to `tables`; a table
whose keys are unknown gets no hints.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from parquet_variant.path import VariantPath
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.schema.similar_paths import missing_path_hint
from parquet_variant.sql_query.tables import BoundTable


def missing_path_hints(
    table: BoundTable, paths: Iterable[tuple[str, VariantPath]], *, as_path: bool = False
) -> list[str]:
    """Return a message for each path with a key that no object of its Variant column has.

    `paths`: Variant columns, and paths into them.
    `as_path`: write paths as ``$.a.b``, not as in SQL.
    """
    messages = []
    keys_of: dict[str, frozenset[str] | None] = {}
    for column, path in dict.fromkeys(paths):
        if column not in keys_of:
            keys_of[column] = table.keys(column)
        keys = keys_of[column]
        if keys is None:
            continue
        write = None if as_path else partial(_in_sql, column)
        if (hint := missing_path_hint(path, keys, write)) is not None:
            messages.append(hint)
    return messages


def _in_sql(column: str, path: VariantPath) -> str:
    return with_steps(column, path.segments)
