"""The most similar keys and paths, for "did you mean …?" in messages.

Owns similarity. Leaves which keys and paths the data has to the readers of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from operator import attrgetter

from parquet_variant.types.path import WILDCARD, Segment, VariantPath


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


def similar_path(path: VariantPath, paths: Collection[VariantPath]) -> VariantPath | None:
    """Return the most similar of the paths that the data has: one with similar keys, or else one that ends alike."""
    segments_of_paths = {known_path.segments for known_path in paths}
    children: dict[tuple[Segment, ...], set[Segment]] = {}
    for segments in segments_of_paths:
        if segments:
            children.setdefault(segments[:-1], set()).add(segments[-1])
    prefix: tuple[Segment, ...] = ()
    for segment in path.segments:
        next_segments = children.get(prefix, set())
        step: Segment = WILDCARD if isinstance(segment, int) else segment
        if step not in next_segments:
            siblings = [key for key in next_segments if isinstance(key, str)]
            similar = similar_key(step, siblings) if isinstance(step, str) else None
            if similar is None:
                last = path.segments[-1]
                if not isinstance(last, str):
                    return None
                ends = sorted((other for other in segments_of_paths if other and isinstance(other[-1], str)), key=len)
                keys = [str(segments[-1]) for segments in ends]
                key = last if last in keys else similar_key(last, keys)
                return next((VariantPath(segments) for segments in ends if segments[-1] == key), None)
            step = similar
        prefix = (*prefix, step)
    return VariantPath(prefix)


def missing_path_hint(
    path: VariantPath, keys: Collection[str], write: Callable[[VariantPath], str] | None = None
) -> str | None:
    """Return a message if a path has a key that no object of the data has, with a similar path; else None.

    `keys`: every key of the data.
    `write`: returns a path as the user wrote it (default: ``$.a.b``).
    """
    missing = [segment for segment in path.segments if isinstance(segment, str) and segment not in keys]
    if not missing:
        return None
    nearest = {key: similar_key(key, keys) for key in missing}
    better = VariantPath(tuple(nearest.get(step) or step if isinstance(step, str) else step for step in path.segments))
    shown, suggested = map(write or attrgetter("shorthand"), (path, better))
    hint = f"did you mean {suggested}?" if better != path else f"no object has the key {missing[0]!r}"
    return f"no row has the path {shown}: {hint}"


def _letters(key: str) -> str:
    return "".join(sign for sign in key.lower() if sign not in "_- .")
