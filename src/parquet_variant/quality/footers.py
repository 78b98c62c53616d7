"""Facts about the paths of a shredded column that the footer of a file proves: counts, types, bounds and lengths.

Owns reading a footer and nothing else of a file, the meaning of level histograms and null counts for values at a path,
and reading ``value`` columns within a limit on bytes: in a well-shredded file they are a small part of the bytes, and
together with the footer they describe every value. Leaves combining files to `summaries`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.files.parquet.format.footer import (
    MAGIC,
    TAIL,
    SchemaNode,
    check_chunks,
    footer_bytes,
    parse_schema,
)
from parquet_variant.files.parquet.format.footer_cache import Handle, Reader, footer_for_pyarrow
from parquet_variant.files.parquet.format.page_places import row_groups
from parquet_variant.files.parquet.format.statistics import footer_metadata, leaf_statistics
from parquet_variant.files.parquet.format.thrift import (
    METADATA,
    STRUCT,
    ThriftError,
    ThriftField,
    find_field,
    read_value,
)
from parquet_variant.files.parquet.scanning.path_facts import ShreddedGroup, shredded_groups
from parquet_variant.files.parquet.scanning.projection import only_nulls
from parquet_variant.inference.statistics import LeafStatistics, merge_statistics
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.path import WILDCARD, VariantPath

# Fields of ColumnMetaData and SizeStatistics.
_SIZE_STATISTICS = 16
_TEXT_BYTES, _REPETITION, _DEFINITION = 1, 2, 3


@dataclass(frozen=True, slots=True)
class FileFooter:
    """The footer of a Parquet file.

    `source`: the file.
    `size`: bytes of the footer: all that was read.
    `metadata`, `schema`: pyarrow's metadata, and the schema tree.
    `chunks`: the places of the column chunks in the footer, for each row group.
    `thrift`: the bytes of the footer.
    """

    source: ParquetSource
    size: int
    metadata: pq.FileMetaData
    schema: SchemaNode
    chunks: Sequence[Sequence[ThriftField]]
    thrift: bytes


def read_footer(source: ParquetSource) -> FileFooter:
    """Read the footer of a file, in two reads of exactly its size.

    Raises `VariantFileError` if the file cannot be read or is not a Parquet file.
    """
    try:
        with source.filesystem.open_input_file(source.path) as stream:
            size = stream.size()
            tail = bytes(stream.read_at(TAIL, max(size - TAIL, 0)))
            length = int.from_bytes(tail[: TAIL - len(MAGIC)], "little")
            if tail[-len(MAGIC) :] != MAGIC or length + TAIL + len(MAGIC) > size:
                footer_bytes(stream, source.path)  # raises the error
            footer = bytes(stream.read_at(length, size - TAIL - length))
        schema = parse_schema(footer, source.path)
        check_chunks(footer, schema, source.path)
        metadata = footer_metadata(footer_for_pyarrow(footer, schema) or footer)
        chunks = [spans for spans, _ in row_groups(footer)]
    except (OSError, pa.ArrowException, ThriftError) as error:
        raise VariantFileError(
            f"cannot read the footer of {source.path}: {error}; check that it is a Parquet file and readable",
            reason="bad-footer",
            file=source.path,
        ) from None
    return FileFooter(source, length + TAIL, metadata, schema, chunks, footer)


class Residual(Enum):
    """The values in the ``value`` column of a shredded group."""

    # No value: every value is in ``typed_value``.
    EMPTY = auto()
    # Only Variant nulls.
    NULLS = auto()
    # Values that the footer does not describe: of other types, or objects with further fields.
    OPEN = auto()


@dataclass(slots=True)
class GroupFacts:
    """Facts about the values of a path in one file.

    `group`: the columns of the path.
    `typed`: number of values in the typed column or group; None if unknown.
    `stored`: number of values in the ``value`` column; None if unknown. For an object it includes objects with fields
      that are not shredded.
    `residual`: the kind of values in the ``value`` column.
    `bounds`: the statistics of the typed column.
    `text_bytes`, `elements`: bytes of the strings in the typed column, elements of the typed arrays; None if unknown.
    `open_groups`: the row groups whose ``value`` column is `Residual.OPEN`.
    """

    group: ShreddedGroup
    typed: int | None = 0
    stored: int | None = 0
    residual: Residual = Residual.EMPTY
    bounds: LeafStatistics = field(default_factory=lambda: LeafStatistics(0, 0))
    text_bytes: int | None = 0
    elements: int | None = 0
    open_groups: list[int] = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        """Whether the path is shredded as a primitive type."""
        return self.group.typed is not None and self.group.typed.leaf is not None

    @property
    def is_object(self) -> bool:
        """Whether the path is shredded as an object."""
        return self.group.typed is not None and self.group.typed.leaf is None and not self.group.typed.is_list


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about a Variant column in one file: rows, NULL rows (None if unknown), and its groups by path."""

    footer: FileFooter
    column: VariantColumn
    rows: int
    null_rows: int | None
    groups: dict[VariantPath, GroupFacts]

    def places(self, path: VariantPath) -> int | None:
        """Return the number of places for a value at a path whose parent is shredded; None if unknown."""
        if not path.segments:
            return None if self.null_rows is None else self.rows - self.null_rows
        parent = self.groups.get(path.parent)
        if parent is None:
            return None
        return parent.elements if path.segments[-1] is WILDCARD else parent.typed


def file_facts(footer: FileFooter, column: str) -> FileFacts | None:
    """Return what a footer proves about a Variant column; None for the layouts of the drafts.

    Raises `VariantFileError` and `SchemaError` as `choose_column` does.
    """
    variant = choose_column(footer.schema, column, footer.source.path)
    if variant.layout not in ("unshredded", "final") or variant.repeated:
        return None
    levels = _Levels(variant.node, footer.schema)
    groups = {group.path: GroupFacts(group) for group in shredded_groups(variant)}
    rows, null_rows = 0, list[int | None]()
    for number in range(footer.metadata.num_row_groups):
        row_group = _RowGroup(footer, number, levels)
        rows += footer.metadata.row_group(number).num_rows
        null_rows.append(row_group.missing(variant.node))
        for facts in groups.values():
            row_group.add_to(facts)
    return FileFacts(footer, variant, rows, _sum(null_rows), groups)


def _sum(counts: Sequence[int | None]) -> int | None:
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if len(known_counts) == len(counts) else None


class _Levels:
    """The definition and repetition levels of the nodes of a column."""

    def __init__(self, node: SchemaNode, root: SchemaNode) -> None:
        self._levels: dict[tuple[str, ...], tuple[int, int]] = {}
        definition = repetition = 0
        at = root
        for name in node.path:
            child = at.child(name)
            assert child is not None
            at = child
            definition, repetition = _child_levels(at, definition, repetition)
        remaining = [(at, definition, repetition)]
        while remaining:
            at, definition, repetition = remaining.pop()
            self._levels[at.path] = definition, repetition
            remaining += ((inner, *_child_levels(inner, definition, repetition)) for inner in at.children)

    def definition(self, node: SchemaNode) -> int:
        """Return the number of optional and repeated nodes down to a node."""
        return self._levels[node.path][0]

    def repetition(self, node: SchemaNode) -> int:
        """Return the number of repeated nodes down to a node."""
        return self._levels[node.path][1]


def _child_levels(child: SchemaNode, definition: int, repetition: int) -> tuple[int, int]:
    return definition + (child.repetition != "required"), repetition + (child.repetition == "repeated")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The counts of a column chunk: statistics, and entries by definition and repetition level if they are known."""

    statistics: LeafStatistics
    text_bytes: int | None
    repetition: list[int] | None
    definition: list[int] | None


class _RowGroup:
    """The column chunks of a Variant in a row group."""

    def __init__(self, footer: FileFooter, number: int, levels: _Levels) -> None:
        self.number = number
        self._footer, self._levels = footer, levels
        self._group = footer.metadata.row_group(number)
        self._chunks: dict[int, _Chunk] = {}

    def _chunk(self, leaf: SchemaNode) -> _Chunk:
        assert leaf.leaf is not None
        if leaf.leaf not in self._chunks:
            statistics = leaf_statistics(self._group.column(leaf.leaf), leaf)
            self._chunks[leaf.leaf] = self._with_levels(leaf, statistics)
        return self._chunks[leaf.leaf]

    def _with_levels(self, leaf: SchemaNode, statistics: LeafStatistics) -> _Chunk:
        sizes = _size_statistics(self._footer.thrift, self._footer.chunks[self.number][leaf.leaf or 0])
        definition: list[int] | None = sizes.get(_DEFINITION)
        highest = self._levels.definition(leaf)
        if definition is None and highest == 1 and statistics.nulls is not None:
            definition = [statistics.nulls, statistics.values - statistics.nulls]
        elif definition is None and highest == 0:
            definition = [statistics.values]
        if definition is not None and (len(definition) != highest + 1 or sum(definition) != statistics.values):
            definition = None
        repetition: list[int] | None = sizes.get(_REPETITION)
        if repetition is not None and sum(repetition) != statistics.values:
            repetition = None
        return _Chunk(statistics, sizes.get(_TEXT_BYTES), repetition, definition)

    def _reaching(self, leaf: SchemaNode, level: int) -> int | None:
        """Return the number of entries of a leaf in which a level is present; None if unknown."""
        chunk = self._chunk(leaf)
        if level == 0:
            return chunk.statistics.values
        if chunk.definition is not None:
            return sum(chunk.definition[level:])
        if level == self._levels.definition(leaf) and chunk.statistics.nulls is not None:
            return chunk.statistics.values - chunk.statistics.nulls
        return None

    def _leaves_of(self, node: SchemaNode, repetition: int) -> Iterator[SchemaNode]:
        """Yield the leaves below a node that are inside of a number of lists."""
        return (leaf for leaf in node.leaves() if self._levels.repetition(leaf) == repetition)

    def present(self, node: SchemaNode) -> int | None:
        """Return the number of entries in which a node that is not a list is present; None if unknown."""
        level = self._levels.definition(node)
        # A leaf outside of further lists has one entry for each of the node's.
        counts = (self._reaching(leaf, level) for leaf in self._leaves_of(node, self._levels.repetition(node)))
        return next((count for count in counts if count is not None), None)

    def missing(self, node: SchemaNode) -> int | None:
        """Return the number of rows in which a node outside of lists is missing; None if unknown."""
        present = self.present(node)
        return None if present is None else self._group.num_rows - present

    def _list_counts(self, typed: SchemaNode) -> tuple[int | None, int | None]:
        """Return the numbers of lists and of elements; None if unknown."""
        repeated = typed.children[0] if typed.children else typed
        depth = self._levels.repetition(repeated)
        for leaf in self._leaves_of(repeated, depth):
            chunk, elements = self._chunk(leaf), self._reaching(leaf, self._levels.definition(repeated))
            if elements is not None and chunk.definition is not None and chunk.repetition is not None:
                empty = chunk.definition[self._levels.definition(typed)]
                return elements - chunk.repetition[depth] + empty, elements
        return None, None

    def add_to(self, facts: GroupFacts) -> None:
        """Add the counts of the row group to the facts of a path."""
        group = facts.group
        typed: int | None = 0
        elements: int | None = 0
        if group.typed is not None and group.typed.is_list:
            typed, elements = self._list_counts(group.typed)
        elif group.typed is not None:
            typed = self.present(group.typed)
        if facts.is_leaf:
            assert group.typed is not None
            chunk = self._chunk(group.typed)
            facts.bounds = merge_statistics([facts.bounds, chunk.statistics])
            facts.text_bytes = _sum([facts.text_bytes, chunk.text_bytes])
        facts.typed, facts.elements = _sum([facts.typed, typed]), _sum([facts.elements, elements])
        self._add_residual(facts)

    def _add_residual(self, facts: GroupFacts) -> None:
        residual = facts.group.residual
        if residual is None:
            return
        facts.stored = _sum([facts.stored, self.present(residual)])
        statistics = self._chunk(residual).statistics
        if only_nulls(statistics, variant_nulls=False):
            return
        if only_nulls(statistics, variant_nulls=True):
            facts.residual = Residual.NULLS if facts.residual is Residual.EMPTY else facts.residual
        else:
            facts.residual = Residual.OPEN
            facts.open_groups.append(self.number)


def _size_statistics(footer: bytes, span: ThriftField) -> dict[int, Any]:
    metadata = find_field(footer, span.start, METADATA)
    start = None if metadata is None else find_field(footer, metadata, _SIZE_STATISTICS)
    return {} if start is None else read_value(footer, start, STRUCT)[0]


def open_paths(facts: FileFacts) -> Iterator[tuple[VariantPath, GroupFacts]]:
    """Yield the paths of a file whose ``value`` columns hold values that the footer does not describe."""
    return ((path, group) for path, group in facts.groups.items() if group.residual is Residual.OPEN)


# Names of the levels of a list in the schema of a file.
_LIST_LEVELS = 2


class CountedHandle(Handle):
    """A file for pyarrow that counts the bytes that are read."""

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__(stream)
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        data = super().read(size)
        self.bytes_read += len(data)
        return data


class ResidualValues(NamedTuple):
    """Values of one path in the ``value`` column, without nulls, and their row in the file."""

    path: VariantPath
    values: VariantArray
    rows: npt.NDArray[np.int64]


def residual_sizes(facts: FileFacts) -> dict[VariantPath, int]:
    """Return the compressed bytes of the ``value`` columns that the footer does not describe, by path."""
    metadata = facts.footer.metadata
    return {
        path: sum(
            metadata.row_group(number).column(residual.leaf).total_compressed_size for number in group.open_groups
        )
        for path, group in open_paths(facts)
        for residual in (group.group.residual,)
        if residual is not None
    }


def dictionary_bytes(facts: FileFacts) -> int:
    """Return the compressed bytes of the column with the names of fields, which values need."""
    metadata, node = facts.footer.metadata, facts.column.node.child("metadata")
    if node is None:
        return 0
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(group.column(node.leaf).total_compressed_size for group in groups)


def read_residuals(facts: FileFacts, paths: Collection[VariantPath]) -> Iterator[ResidualValues]:
    """Yield the values at some paths that the footer does not describe."""
    first_row = 0
    for number in range(facts.footer.metadata.num_row_groups):
        columns = {
            path: group.group.residual
            for path, group in open_paths(facts)
            if number in group.open_groups and path in paths and group.group.residual is not None
        }
        if columns:
            yield from _read(facts, number, columns, first_row)
        first_row += facts.footer.metadata.row_group(number).num_rows


def has_old_list(facts: FileFacts, path: VariantPath) -> bool:
    """Return whether a path is in a list without the three levels of the specification."""
    residual = facts.groups[path].group.residual
    if residual is None or not path.has_wildcard:
        return False
    names = residual.path
    return any(names[at + 1] != "element" for at, name in enumerate(names[:-1]) if name == "list" and at)


def _read(
    facts: FileFacts, number: int, columns: Mapping[VariantPath, SchemaNode], first_row: int
) -> Iterator[ResidualValues]:
    nodes = [facts.column.node.child("metadata"), *columns.values()]
    leaves = [node.leaf for node in nodes if node is not None and node.leaf is not None]
    table = read_leaves(facts.footer, number, leaves, leaves[:1])
    top = nested_array(table, facts.column.path)
    metadata = pc.struct_field(top, ["metadata"])
    for path, residual in columns.items():
        rows = np.arange(len(top), dtype=np.int64)
        values, rows = _flattened(top, residual.path[len(facts.column.path) :], rows)
        is_value = np.asarray(values.is_valid())
        values, rows = values.filter(pa.array(is_value)), rows[is_value]
        storage = pa.StructArray.from_arrays([metadata.take(pa.array(rows)), values], ["metadata", "value"])
        yield ResidualValues(path, VariantArray.from_storage(storage), rows + first_row)


def read_leaves(
    footer: FileFooter, row_group: int, leaves: Sequence[int], dictionaries: Sequence[int] = ()
) -> pa.Table:
    """Read some leaf columns of a row group, some of them as dictionaries.

    Raises `VariantFileError` if the columns are damaged.
    """
    source = footer.source
    try:
        with source.filesystem.open_input_file(source.path) as stream:
            reader = Reader(Handle(stream), footer.metadata, dictionaries)
            return reader.reader.read_row_group(row_group, column_indices=sorted(leaves), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise VariantFileError(
            f"cannot read the data of {source.path}: {error}; write the file again", reason="bad-data", file=source.path
        ) from None


def _flattened(
    array: pa.Array, names: Sequence[str], rows: npt.NDArray[np.int64]
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return a nested column as a flat array, null where a parent is null, and the row of each entry."""
    at = 0
    while at < len(names):
        if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            rows = rows[np.asarray(pc.list_parent_indices(array))]
            array = pc.list_flatten(array)
            at += _LIST_LEVELS
        else:
            array = pc.struct_field(array, [names[at]])
            at += 1
    return array, rows
