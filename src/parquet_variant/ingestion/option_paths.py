"""What the second pass of an ingest looks for in the tapes of all rows: paths of options, and types of the table.

A path of an option that no row has is an error before anything is committed, with the most similar path of the data.
It is proved, not guessed from a sample.

A path with different types in the files of a table has no typed column. An append therefore shreds a path as the table
does, and reads strings as dates, timestamps or UUIDs where the table has these; values of other types remain readable
as Variants, and are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.files import ParquetSource, open_file
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.similar_paths import similar_path
from parquet_variant.layouts.storage_shape import TypeTree, common_numeric
from parquet_variant.query.selection import read_selection
from parquet_variant.support.report_text import counted
from parquet_variant.types import DECIMAL_IDS, EXACT_NUMERIC, INTEGER_IDS, TYPE_OF_ARROW, TYPE_OF_ID, PrimitiveId
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, parse_pattern

# The types of a table are those of at most this many files, spread over its files.
_FILES = 16
_KINDS = 32
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, PrimitiveId.FLOAT, PrimitiveId.DOUBLE)
# Kinds of values in messages.
_NAMES = {int(kind): TYPE_OF_ID[kind].type.value for kind in PrimitiveId} | {21: "array", 22: "object"}
_NAMES |= {int(kind): "number" for kind in _NUMBERS}


def table_schema(files: Sequence[ParquetSource], column: str) -> ShreddingSchema | None:
    """Return the types of the paths of a table: at each path those of most rows. None if nothing is shredded."""
    rows: Counter[ShreddingSchema] = Counter()
    for source in files[:: -(-len(files) // _FILES) or 1]:
        try:
            schema = ShreddingSchema.from_parquet(source.path, column, filesystem=source.filesystem)
        except VariantError:
            continue  # a file without the column
        with open_file(source) as file:
            rows[schema] += file.metadata.num_rows
    tree: TypeTree = None
    for schema, _ in rows.most_common():
        other = schema.type_tree()
        tree = other if tree is None else tree if other is None else _kept(tree, other, adds=True)
    return None if tree is None else ShreddingSchema.from_tree(tree)


def keep_types(schema: ShreddingSchema, table: ShreddingSchema) -> ShreddingSchema:
    """Return the schema of new files with the types that the table has; numbers get a type that holds both.

    >>> new = ShreddingSchema.from_ddl("a string, b decimal(4,2), c date")
    >>> keep_types(new, ShreddingSchema.from_ddl("a bigint, b int"))
    <ShreddingSchema a bigint, b decimal(12,2), c date>
    """
    return ShreddingSchema.from_tree(_kept(table.type_tree(), schema.type_tree(), adds=False))


def string_types(table: ShreddingSchema) -> dict[str, str]:
    """Return the types of strings, by path, that `StringTypes` has for the types of a table.

    >>> string_types(ShreddingSchema.from_ddl("at timestamp, d date, n int"))
    {'$.at': 'timestamp!', '$.d': 'date!'}
    """
    types: dict[str, str] = {}
    for path, leaf in table.leaves():
        name = leaf.to_ddl() if leaf.kind == "primitive" else ""
        if name in ("date", "timestamp", "timestamp_ntz", "uuid") and path.segments:
            types[path.shorthand] = f"{name}!"
    return types


def _kept(table: TypeTree, new: TypeTree, *, adds: bool) -> TypeTree:
    """Return the types of a table and the paths that only the new schema has; with `adds`, those of the table too."""
    if isinstance(table, dict) and isinstance(new, dict):
        names = {**table, **new} if adds else new
        return {
            name: _kept(table[name], new[name], adds=adds) if name in table and name in new else names[name]
            for name in names
        }
    if isinstance(table, list) and isinstance(new, list):
        return [_kept(table[0], new[0], adds=adds)]
    if isinstance(table, pa.DataType) and isinstance(new, pa.DataType):
        return common_numeric(table, new) or table
    return new if table is None else table


@dataclass(slots=True)
class OtherTypes:
    """Counts of values whose path is shredded as another type, by path, shredded type and kind. It can be pickled."""

    leaves: dict[VariantPath, ShreddingSchema] = field(default_factory=dict)
    counts: list[Counter[tuple[str, str, int]]] = field(default_factory=list)

    @classmethod
    def of(cls, schema: ShreddingSchema) -> OtherTypes:
        """Return counts for the typed paths of a schema."""
        return cls({path: leaf for path, leaf in schema.leaves() if leaf.kind == "primitive"})

    def look(self, tape: Tape) -> None:
        """Count the values of a tape; called by several threads."""
        if not self.leaves or not len(tape.nodes):
            return
        tags = tape.nodes[:, 0]
        tags = tags[tags & DROPPED == 0]
        table = np.bincount(path_ids(tags) * _KINDS + (tags & 0xFF), minlength=len(tape.paths) * _KINDS)
        found: Counter[tuple[str, str, int]] = Counter()
        for path, leaf in self.leaves.items():
            if (number := tape.find_path(path.segments)) is not None:
                kinds = table[number * _KINDS : (number + 1) * _KINDS]
                for kind in np.flatnonzero(kinds).tolist():
                    if kind not in _fitting(leaf.type):
                        found[path.shorthand, leaf.to_ddl(), kind] += int(kinds[kind])
        if found:
            self.counts.append(found)

    def __add__(self, other: OtherTypes) -> OtherTypes:
        return OtherTypes(self.leaves, [*self.counts, *other.counts])

    def notes(self) -> Iterator[str]:
        """Yield a line per path about values that do not have the type of the path."""
        total = sum(self.counts, Counter[tuple[str, str, int]]())
        for path, name in sorted({(path, name) for path, name, _ in total}):
            kinds = {kind: count for (other, _, kind), count in total.items() if other == path}
            shown: Counter[str] = Counter()
            for kind, count in kinds.items():
                shown[_NAMES[kind]] += count
            parts = " and ".join(counted(count, name) for name, count in shown.most_common())
            yield (
                f"{parts} at {path} {'does' if sum(kinds.values()) == 1 else 'do'} not have the type {name} of the "
                "table: typed columns are NULL there; schema_of='file' types the new files by their own values"
            )


def _fitting(type: pa.DataType | None) -> frozenset[int]:
    """Return the kinds of values that a typed column holds, and null."""
    if pa.types.is_decimal(type) or TYPE_OF_ARROW[type].type in EXACT_NUMERIC:
        kinds: Iterable[int] = (*INTEGER_IDS, *DECIMAL_IDS)
    elif pa.types.is_floating(type):
        kinds = _NUMBERS
    else:
        kinds = TYPE_OF_ARROW[type].ids
    return frozenset((*map(int, kinds), int(PrimitiveId.NULL)))


# The largest number of paths that are searched for similar ones.
_MAX_PATHS = 20_000
Segments: TypeAlias = tuple[Segment, ...]


@dataclass(slots=True)
class SeenPaths:
    """Paths of options that no row has yet, and other paths of the rows for suggestions. It can be pickled."""

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
