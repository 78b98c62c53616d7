"""Facts about the paths of a shredded column that the footer of a file proves, and samples of rows for the others.

Owns the sum of the facts of row groups by path, and reading ``value`` columns: in a well-shredded file they are a small
part of the bytes, and together with the footer they describe every value. Also owns bounded samples of rows: the choice
of row groups within a limit on bytes. Leaves row groups and column chunks to `files.parquet.format.facts`, and
combining files to `summaries`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.columns import ShreddedGroup, VariantColumn, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts, leaf_type
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer_cache import Handle
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.quality.sources import RowBatch
from parquet_variant.quality.value_figures import arrow_type_name
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths

Item = TypeVar("Item")
# Rows that are sampled at most, and the row groups that they come from.
SAMPLE_ROWS = 20_000
SAMPLE_ROW_GROUPS = 8
# The bytes of the first page of a column, at most; larger pages are rare.
_PAGE_BYTES = 1 << 20
_BATCH_ROWS = 1024
# Granularity of reads inside a column chunk.
_BUFFER = 8 << 10


class PathFacts(Record):
    """Facts about the values of a path in one file; a count is None if it is unknown."""

    group: ShreddedGroup  # The columns of the path.
    typed: int | None  # Values in the typed column or group.
    elements: int | None  # Elements of the typed arrays.
    text_bytes: int | None  # Bytes of the strings in the typed column.
    stored: int | None  # Values in the ``value`` column, with objects that are partly shredded.
    has_residual: bool = False  # Whether the ``value`` column has values, perhaps only Variant nulls.
    # The row groups whose ``value`` column has values that the footer does not describe: of other types, or objects
    # with further fields.
    open_groups: tuple[int, ...] = ()

    @property
    def arrow(self) -> pa.DataType | None:
        """The Arrow type of the typed column; None for objects, arrays and untyped paths."""
        typed = self.group.typed
        return None if typed is None or typed.leaf is None else leaf_type(typed)

    @property
    def is_leaf(self) -> bool:
        """Whether the path is shredded as a primitive type."""
        return self.group.typed is not None and self.group.typed.leaf is not None

    @property
    def type_name(self) -> str | None:
        """The name of the type of the typed column or group in summaries; None for other types, and without one."""
        if self.group.typed is None or self.is_leaf:
            return None if self.arrow is None else arrow_type_name(self.arrow)
        return "array" if self.group.typed.is_list else "object"


class VariantFacts(Record):
    """Facts about a Variant column in one file."""

    file: OpenFile  # Closed: to be opened again with `OpenFile.reopened`.
    column: VariantColumn
    columns: FileFacts  # By leaf column and row group.
    null_rows: int | None  # SQL NULL rows; None if unknown.
    paths: dict[VariantPath, PathFacts]  # Parents first.

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.columns.rows()

    def places(self, path: VariantPath) -> int | None:
        """Return the number of places for a value at a path whose parent is shredded; None if unknown."""
        if not path.segments:
            return None if self.null_rows is None else self.rows - self.null_rows
        parent = self.paths.get(path.parent)
        if parent is None:
            return None
        return parent.elements if path.segments[-1] is WILDCARD else parent.typed

    def open_paths(self) -> dict[VariantPath, int]:
        """Return the paths whose ``value`` columns the footer does not describe, with the bytes of these columns."""
        return {
            path: self.columns.size([facts.group.residual], facts.open_groups)
            for path, facts in self.paths.items()
            if facts.open_groups and facts.group.residual is not None
        }


def variant_facts(opened: OpenFile, column: VariantColumn) -> VariantFacts | None:
    """Return what the footer of an open file proves about a Variant column; None for the layouts of the drafts."""
    if column.layout not in ("unshredded", "final") or column.repeated:
        return None
    facts = opened.facts
    paths = {group.path: _path_facts(group, facts) for group in shredded_groups(column)}
    present = total(facts.present(column.node, number) for number in facts.groups)
    null_rows = None if present is None else facts.rows() - present
    return VariantFacts(replace(opened, _reader=None), column, facts, null_rows, paths)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown.

    >>> total([1, 2]), total([1, None])
    (3, None)
    """
    known_counts = list(counts)
    return None if None in known_counts else sum(count or 0 for count in known_counts)


def _path_facts(group: ShreddedGroup, facts: FileFacts) -> PathFacts:
    typed: int | None = 0
    elements: int | None = 0
    text_bytes: int | None = 0
    if group.typed is not None and group.typed.is_list:
        lists = [facts.lists(group.typed, number) for number in facts.groups]
        typed, elements = total(count for count, _ in lists), total(count for _, count in lists)
    elif group.typed is not None:
        typed = total(facts.present(group.typed, number) for number in facts.groups)
        if group.typed.leaf is not None:
            text_bytes = total(facts.level_counts(group.typed, number).text_bytes for number in facts.groups)
    residual = group.residual
    if residual is None:
        return PathFacts(group, typed, elements, text_bytes, 0)
    stored = total(facts.present(residual, number) for number in facts.groups)
    filled = [number for number in facts.groups if not facts.is_empty(residual, groups=[number])]
    open_groups = [number for number in filled if not facts.is_empty(residual, variant_nulls=True, groups=[number])]
    return PathFacts(group, typed, elements, text_bytes, stored, bool(filled), tuple(open_groups))


class PathValues(NamedTuple):
    """Values at one path (the root for whole rows), and their rows in the file."""

    path: VariantPath
    values: VariantArray
    rows: npt.NDArray[np.int64]
    file: str | None


def read_residuals(facts: VariantFacts, paths: Collection[VariantPath]) -> Iterator[PathValues]:
    """Yield the values in the ``value`` columns of some paths that the footer does not describe, without nulls."""
    pairs = [(path, facts.paths[path]) for path in facts.open_paths() if path in paths]
    metadata = facts.column.node.child("metadata")
    if not pairs or metadata is None:
        return
    with facts.file.reopened() as file:
        for number in facts.columns.groups:
            nodes = {path: of.group.residual for path, of in pairs if number in of.open_groups and of.group.residual}
            if not nodes:
                continue
            leaves = [node.leaf for node in (metadata, *nodes.values()) if node.leaf is not None]
            column = nested_array(file.read_leaves([number], sorted(leaves)), facts.column.path)
            names, first_row = pc.struct_field(column, ["metadata"]), facts.columns.rows(range(number))
            for path in nodes:
                # The values, without nulls, and the row of each.
                values, rows = column, np.arange(len(column), dtype=np.int64)
                for segment in path.segments:
                    values = pc.struct_field(values, ["typed_value"])
                    if segment is WILDCARD:
                        rows, values = rows[np.asarray(pc.list_parent_indices(values))], pc.list_flatten(values)
                    else:
                        values = pc.struct_field(values, [segment])
                values = pc.struct_field(values, ["value"])
                rows, values = rows[np.asarray(values.is_valid())], values.drop_null()
                storage = pa.StructArray.from_arrays([names.take(pa.array(rows)), values], ["metadata", "value"])
                yield PathValues(path, VariantArray(storage), rows + first_row, facts.file.name)


class RowSample(Record, frozen=False):
    """Some rows of a data set."""

    batches: list[RowBatch] = field(default_factory=list)
    bytes_read: int = 0
    # Paths whose columns were not read, because they are large and the footers describe them.
    omitted: frozenset[VariantPath] = frozenset()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(batch.values) for batch in self.batches)


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Return that many items at most, evenly distributed.

    >>> evenly([1, 2, 3, 4, 5], 2)
    [1, 3]
    """
    if len(items) <= count:
        return list(items)
    return [items[at * len(items) // count] for at in range(count)]


def sampled_rows(files: Sequence[VariantFacts], size: int) -> RowSample:
    """Read rows from the beginning of some row groups: at most `size` bytes, except that some rows are always read."""
    groups = [(facts, group) for facts in files for group in facts.columns.groups if facts.columns.rows([group])]
    places = []
    for facts, group in evenly(groups, SAMPLE_ROW_GROUPS):
        leaves = [leaf.leaf for leaf in facts.column.node.leaves() if leaf.leaf is not None]
        places.append((facts, group, {leaf: min(facts.columns.size([leaf], [group]), _PAGE_BYTES) for leaf in leaves}))
    while len(places) > 1 and sum(sum(costs.values()) for *_, costs in places) > size:
        places = evenly(places, len(places) - 1)
    sample, omitted = RowSample(), set[VariantPath]()
    for facts, group, costs in places:
        omitted |= _drop_large(facts, costs, size // len(places))
        first_row = facts.columns.rows(range(group))
        with facts.file.reopened() as file:
            handle = _CountedHandle(file.stream)
            for values in first_rows(file, facts.column, group, SAMPLE_ROWS // len(places), costs, handle):
                sample.batches.append(RowBatch(values, file.name, first_row))
                first_row += len(values)
        sample.bytes_read += handle.bytes_read
    sample.omitted = frozenset(omitted)
    return sample


class _CountedHandle(Handle):
    """A file for pyarrow that counts the bytes that are read."""

    bytes_read = 0

    def read(self, size: int) -> bytes:
        data = super().read(size)
        self.bytes_read += len(data)
        return data


def first_rows(
    file: OpenFile, column: VariantColumn, group: int, rows: int, leaves: Collection[int], stream: Any = None
) -> Iterator[VariantArray]:
    """Yield the first rows of a row group from the first pages of some leaf columns, in small batches."""
    metadata = [node.leaf for node in column.node.leaves() if node.name == "metadata" and node.leaf in leaves]
    # The metadata of a row has the keys of many rows: as a dictionary it is not repeated.
    names = [file.metadata.schema.column(leaf).path for leaf in metadata]
    try:
        opened = open_parquet(
            stream or file.stream, metadata=file.metadata, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=names,
        )  # fmt: skip
        reader: Any = opened.reader
        indices = sorted(leaves)
        for batch in reader.iter_batches(min(rows, _BATCH_ROWS), [group], column_indices=indices, use_threads=False):
            table = file.in_file_types(pa.table(batch), indices)
            values = VariantArray(nested_array(table, column.path))[:rows]
            yield values
            rows -= len(values)
            if rows <= 0:
                return
    except (pa.ArrowException, OSError) as error:
        raise file.damaged(error) from None


def _drop_large(facts: VariantFacts, costs: dict[int, int], size: int) -> set[VariantPath]:
    """Remove the largest columns from `costs` until their bytes are within a limit, and return their paths; every
    object and array keeps a column, because it would seem to be missing otherwise.
    """
    candidates = []
    remaining: Counter[VariantPath] = Counter()
    for path, of_path in facts.paths.items():
        if of_path.is_leaf or of_path.open_groups:
            remaining.update(outer_paths(path))
        if of_path.is_leaf and not of_path.open_groups:
            nodes = (of_path.group.typed, of_path.group.residual)
            leaves = [node.leaf for node in nodes if node is not None and node.leaf is not None]
            candidates.append((sum(costs[leaf] for leaf in leaves), path, leaves))
    dropped: set[VariantPath] = set()
    for _, path, leaves in sorted(candidates, key=lambda candidate: -candidate[0]):
        if sum(costs.values()) <= size:
            break
        if all(remaining[ancestor] > 1 for ancestor in outer_paths(path)):
            remaining.subtract(outer_paths(path))
            dropped.add(path)
            for leaf in leaves:
                del costs[leaf]
    return dropped
