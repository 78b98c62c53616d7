"""Paths that the options of an ingest name, and whether any row has them.

The second pass looks for the paths in the tapes of all rows, so that a missing path is proved, not guessed from a
sample. A path that no row has is an error before anything is committed, with the most similar path of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from parquet_variant.errors import VariantError
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.kernels.tapes.tape import PATH, Tape
from parquet_variant.layouts.similar_paths import similar_path
from parquet_variant.query.selection import read_selection
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, parse_pattern

# The largest number of paths that are searched for similar ones.
_MAX_PATHS = 20_000
Segments: TypeAlias = tuple[Segment, ...]


@dataclass(slots=True)
class SeenPaths:
    """Paths that were looked for, those that rows have, and other paths of the rows for suggestions. It can be pickled.

    `missing`: paths that no row has yet.
    `other_paths`: segments of the paths of the rows, as long as a path is missing.
    """

    missing: set[VariantPath] = field(default_factory=set)
    other_paths: set[Segments] = field(default_factory=set)

    def look(self, tape: Tape) -> None:
        """Remove the missing paths that a tape has."""
        if not self.missing or not tape.rows:
            return
        paths = _paths_of(tape)
        seen = set(paths)
        # In place, because other threads remove paths at the same time.
        for path in tuple(self.missing):
            # The path of all elements stands for positions.
            if tuple(part if isinstance(part, str) else WILDCARD for part in path.segments) in seen:
                self.missing.discard(path)
        if self.missing and len(self.other_paths) < _MAX_PATHS:
            self.other_paths.update(paths[1:_MAX_PATHS])

    def __add__(self, other: SeenPaths) -> SeenPaths:
        return SeenPaths(self.missing & other.missing, self.other_paths | other.other_paths)


def option_paths(request: IngestRequest) -> dict[VariantPath, str]:
    """Return the paths that the options of an ingest name, without patterns, and the option of each.

    >>> request = IngestRequest.of("a.json", "a", sort_by="$.id", types={"$..at": "date", "$.x.at": "date"})
    >>> [(path.shorthand, option) for path, option in option_paths(request).items()]
    [('$.id', 'sort_by'), ('$.x.at', 'types')]
    """
    named: dict[VariantPath, str] = {}
    for option, paths in _named_paths(request):
        for path in paths:
            if path.segments:
                named.setdefault(path, option)
    return named


def check_paths(request: IngestRequest, seen: SeenPaths) -> tuple[str, ...]:
    """Raise `VariantError` for a path of an option that no row has; return hints about a schema with such paths.

    A path of a schema is an error only if the data has a similar path that the schema lacks: schemas may list optional
    fields.
    """
    named = option_paths(request)
    other_paths = set(map(VariantPath, seen.other_paths)) if seen.missing else set()
    hints = []
    for path, option in named.items():
        if path not in seen.missing:
            continue
        nearest = similar_path(path, other_paths)
        if nearest in named:
            nearest = None
        message = f"{option}= names {path.shorthand}, and no row has this path"
        if nearest is not None:
            message += f": did you mean {nearest.shorthand}?"
        if option == "schema" and nearest is None:
            hints.append(message)
            continue
        raise VariantError(message, reason="no-such-path")
    return tuple(hints)


def check_bloom_filters(request: IngestRequest, paths: Iterable[VariantPath]) -> None:
    """Raise `VariantError` for a Bloom filter on a path that no sampled row has, if a sampled path is similar."""
    sampled = set(paths)
    for path, option in option_paths(request).items():
        if option == "bloom_filters" and path not in sampled and (nearest := similar_path(path, sampled)) is not None:
            raise VariantError(
                f"bloom_filters= names {path.shorthand}, and no sampled row has this path: did you mean "
                f"{nearest.shorthand}?",
                reason="no-such-path",
            )


def _named_paths(request: IngestRequest) -> Iterator[tuple[str, list[VariantPath]]]:
    for option in ("sort_by", "bloom_filters"):
        texts = request.write.get(option) or ()
        keys = (texts,) if isinstance(texts, str) else tuple(texts)
        selection = read_selection({f"key{number}": key for number, key in enumerate(keys)})
        yield option, [selected.path for selected in selection if selected.path is not None]
    if not request.partition_by.is_derived:
        yield "partition_by", [column.path for column in request.partition_by.columns if column.path is not None]
    if request.text.json_path is not None:
        yield "json_column", [request.text.json_path]
    if request.schema is not None:
        yield "schema", [path for path, _ in request.schema.leaves()]
    for pattern in request.text.texts.types:
        steps = parse_pattern(pattern)
        is_exact = not any(step.any_depth or (step.is_glob and set("*?") & set(str(step.name))) for step in steps)
        if is_exact:
            yield "types", [VariantPath(tuple(step.name for step in steps))]


def _paths_of(tape: Tape) -> list[Segments]:
    """Return the segments of all paths of a tape, the root first."""
    names = [key.decode("utf-8", "replace") for key in tape.key_list]
    paths: list[Segments] = [()]
    for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
        paths.append((*paths[parent], names[key] if key >= 0 else WILDCARD))
    return paths
