"""Hints for paths that no row has: "did you mean …?".

Owns which keys are missing. Leaves similar keys to `query.similar_paths`, and the keys of a table to `tables`; a table
whose keys are unknown gets no hints.
"""

from __future__ import annotations

from collections.abc import Iterable

from parquet_variant.path import VariantPath
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.similar_paths import similar_key
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
        missing = [segment for segment in path.segments if isinstance(segment, str) and segment not in keys]
        if not missing:
            continue
        nearest = {key: similar_key(key, keys) for key in missing}
        better = VariantPath(
            tuple(nearest.get(step) or step if isinstance(step, str) else step for step in path.segments)
        )
        shown, suggested = (text.shorthand if as_path else with_steps(column, text.segments) for text in (path, better))
        hint = f"did you mean {suggested}?" if better != path else f"no object has the key {missing[0]!r}"
        messages.append(f"no row has the path {shown}: {hint}")
    return messages
