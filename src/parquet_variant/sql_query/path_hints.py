"""Hints for paths that no row has: "did you mean …?".

Owns which keys are missing, and the most similar keys. Leaves the keys of a table to `tables`; a table whose keys are
unknown gets no hints.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from parquet_variant.path import VariantPath
from parquet_variant.query.path_dialect import with_steps
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


def similar_key(key: str, keys: Iterable[str]) -> str | None:
    """Return the most similar key: one that differs only in letter case or separators, or else by a few letters.

    >>> similar_key("propertes", ["properties", "place"]), similar_key("UserID", ["user_id"]), similar_key("x", ["abc"])
    ('properties', 'user_id', None)
    """
    by_letters: dict[str, str] = {}
    for candidate in sorted(keys):
        by_letters.setdefault(_letters(candidate), candidate)
    letters = _letters(key)
    if letters in by_letters:
        return by_letters[letters]
    matches = get_close_matches(letters, by_letters, n=1, cutoff=0.7)
    return by_letters[matches[0]] if matches else None


def _letters(key: str) -> str:
    return "".join(sign for sign in key.lower() if sign not in "_- .")
