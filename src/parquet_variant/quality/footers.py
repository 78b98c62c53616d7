"""Facts about the paths of a shredded column that the footer of a file proves: counts, types, bounds and lengths.

Owns reading a footer and nothing else of a file, the meaning of level histograms and null counts for values at a path,
and reading ``value`` columns within a limit on bytes: in a well-shredded file they are a small part of the bytes, and
together with the footer they describe every value. Leaves combining files to `summaries`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.columns import ShreddedGroup, VariantColumn, choose_column, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts as ColumnFacts
from parquet_variant.files.parquet.format.facts import footer_metadata
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
from parquet_variant.files.parquet.format.thrift import ThriftError
from parquet_variant.inference.statistics import LeafStatistics, merge_statistics
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.path import WILDCARD, VariantPath


@dataclass(frozen=True, slots=True)
class FileFooter:
    """The footer of a Parquet file.

    `source`: the file.
    `size`: bytes of the footer: all that was read.
    `metadata`, `schema`: pyarrow's metadata, and the schema tree.
    `facts`: the facts by leaf column and row group.
    """

    source: ParquetSource
    size: int
    metadata: pq.FileMetaData
    schema: SchemaNode
    facts: ColumnFacts


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
    except (OSError, pa.ArrowException, ThriftError) as error:
        raise VariantFileError(
            f"cannot read the footer of {source.path}: {error}; check that it is a Parquet file and readable",
            reason="bad-footer",
            file=source.path,
        ) from None
    return FileFooter(source, length + TAIL, metadata, schema, ColumnFacts(metadata, footer))


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
    groups = {group.path: GroupFacts(group) for group in shredded_groups(variant)}
    rows = footer.facts.rows()
    present = _sum([footer.facts.present(variant.node, number) for number in footer.facts.groups])
    for number in footer.facts.groups:
        for path_facts in groups.values():
            _add_row_group(path_facts, footer.facts, number)
    return FileFacts(footer, variant, rows, None if present is None else rows - present, groups)


def _sum(counts: Sequence[int | None]) -> int | None:
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if len(known_counts) == len(counts) else None


def _add_row_group(path_facts: GroupFacts, facts: ColumnFacts, number: int) -> None:
    """Add the counts of a row group to the facts of a path."""
    group = path_facts.group
    typed: int | None = 0
    elements: int | None = 0
    if group.typed is not None and group.typed.is_list:
        typed, elements = facts.lists(group.typed, number)
    elif group.typed is not None:
        typed = facts.present(group.typed, number)
    if path_facts.is_leaf:
        assert group.typed is not None
        path_facts.bounds = merge_statistics([path_facts.bounds, facts.statistics(group.typed, number)])
        path_facts.text_bytes = _sum([path_facts.text_bytes, facts.level_counts(group.typed, number).text_bytes])
    path_facts.typed, path_facts.elements = _sum([path_facts.typed, typed]), _sum([path_facts.elements, elements])
    if (residual := group.residual) is None:
        return
    path_facts.stored = _sum([path_facts.stored, facts.present(residual, number)])
    if facts.is_empty(residual, groups=[number]):
        return
    if not facts.is_empty(residual, variant_nulls=True, groups=[number]):
        path_facts.residual = Residual.OPEN
        path_facts.open_groups.append(number)
    elif path_facts.residual is Residual.EMPTY:
        path_facts.residual = Residual.NULLS


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
