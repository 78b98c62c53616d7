"""The most similar keys and paths, for "did you mean …?" in messages.

Owns similarity. Leaves which keys and paths the data has to the readers of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from operator import attrgetter

from parquet_variant.types.path import WILDCARD, Segment, VariantPath


def similar_key(key: str, keys: Iterable[str]) -> str | None:
    """Return the most similar key: one that differs only in letter case or separators, or else by a few letters.

    >>> similar_key("propertes", ["properties", "place"]), similar_key("UserID", ["user_id"]), similar_key("x", ["abc"])
    ('properties', 'user_id', None)
    """
    by_letters: dict[str, str] = {}
    for candidate in sorted(keys, key=lambda name: (name != key, name)):
        by_letters.setdefault(_letters(candidate), candidate)
    letters = _letters(key)
    if letters in by_letters:
        return by_letters[letters]
    matches = get_close_matches(letters, by_letters, n=1, cutoff=0.7)
    return by_letters[matches[0]] if matches else None


def similar_path(path: VariantPath, paths: Iterable[VariantPath]) -> VariantPath | None:
    """Return the most similar of the paths that the data has: one with similar keys, or else one that ends alike."""
    candidates = [other.segments for other in sorted(paths, key=lambda other: (-len(other), str(other)))]
    prefix: tuple[Segment, ...] = ()
    for segment in path.segments:
        siblings = [other[-1] for other in candidates if other and other[:-1] == prefix]
        step: Segment | None = WILDCARD if isinstance(segment, int) else segment
        if step not in siblings:
            names = [key for key in siblings if isinstance(key, str)]
            step = similar_key(step, names) if isinstance(step, str) else None
        if step is None:
            break
        prefix = (*prefix, step)
    else:
        return VariantPath(prefix)
    ends = {key: other for other in candidates for key in other[-1:] if isinstance(key, str)}  # the shortest path
    similar = similar_key(last, ends) if isinstance(last := path.segments[-1], str) else None
    return None if similar is None else VariantPath(ends[similar])


def missing_path_hint(
    path: VariantPath,
    keys: Collection[str],
    write: Callable[[VariantPath], str] | None = None,
    elsewhere: Callable[[], VariantPath | None] = lambda: None,
) -> str | None:
    """Return a message if a path has a key that no object of the data has, with a similar path; else None.

    `keys`: every key of the data.
    `write`: returns a path as the user wrote it (default: ``$.a.b``).
    `elsewhere`: returns the path that is meant if no similar keys are.
    """
    steps = _with_dotted_keys(path.segments, keys)
    missing = [step for step in steps if isinstance(step, str) and step not in keys]
    nearest = {key: similar_key(key, keys) for key in missing}
    better = VariantPath(tuple(nearest.get(step) or step if isinstance(step, str) else step for step in steps))
    meant = better if better != path else elsewhere() or path
    if meant == path and not missing:
        return None
    shown, suggested = map(write or attrgetter("shorthand"), (path, meant))
    hint = f"did you mean {suggested}?" if meant != path else f"no object has the key {missing[0]!r}"
    return f"no row has the path {shown}: {hint}"


def _with_dotted_keys(steps: Sequence[Segment], keys: Collection[str]) -> list[Segment]:
    """Return steps in which neighbors are one key with dots, if the data has it, and not the first of them.

    >>> _with_dotted_keys(("http", "status", "x"), {"http.status", "x"})
    ['http.status', 'x']
    """
    for start, step in enumerate(steps):
        for stop in range(len(steps), start + 1, -1) if step not in keys else ():
            if (key := ".".join(map(str, steps[start:stop]))) in keys:
                return [*steps[:start], key, *_with_dotted_keys(steps[stop:], keys)]
    return list(steps)


def _letters(key: str) -> str:
    return "".join(sign for sign in key.lower() if sign not in "_- .")
