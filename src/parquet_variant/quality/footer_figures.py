"""Figures of a shredded data set that footers and residual columns prove, and bounded samples of rows for the others.

Owns combining the facts of files, which paths they describe completely, and the choice of row groups and columns within
a limit on bytes. Leaves one footer, and the values in residual columns, to `footers`, and figures to `value_figures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.footer_cache import with_wide_decimals, without_views
from parquet_variant.files.parquet.format.page_places import chunk_start_of
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.quality.footers import (
    CountedHandle,
    FileFacts,
    GroupFacts,
    Residual,
    ResidualValues,
    dictionary_bytes,
    file_facts,
    has_old_list,
    open_paths,
    read_footer,
    read_residuals,
    residual_sizes,
)
from parquet_variant.quality.sources import DataSet, RowBatch, has_column
from parquet_variant.quality.value_figures import PathFigures, Range, ValueFigures, add_all, type_name
from parquet_variant.types import TYPE_OF_ARROW, VariantType
from parquet_variant.types.path import VariantPath, outer_paths

Item = TypeVar("Item")
# Rows that are sampled at most, and the row groups that they come from.
_ROWS = 20_000
_ROW_GROUPS = 8
# Bytes that are read of a page header, and the field of the size that follows it.
_HEADER_BYTES, _COMPRESSED_SIZE = 512, 3
_BATCH_ROWS = 1024
# Granularity of reads inside a column chunk.
_BUFFER = 8 << 10


@dataclass(slots=True)
class RowSample:
    """Some rows of a data set.

    `batches`: the rows.
    `bytes_read`: bytes that were read for the sample.
    `omitted`: paths whose columns were not read, because they are large and the footers describe them.
    `is_complete`: whether the sample has all rows.
    """

    batches: list[RowBatch] = field(default_factory=list)
    bytes_read: int = 0
    omitted: frozenset[VariantPath] = frozenset()
    is_complete: bool = False

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(batch.values) for batch in self.batches)


def first_batches(data: DataSet, size: int) -> RowSample:
    """Return the first rows of a data set, up to a number of bytes in memory."""
    sample = RowSample()
    for batch in data.batches():
        sample.batches.append(batch)
        sample.bytes_read += batch.values.storage.nbytes
        if sample.bytes_read >= size or sample.rows >= _ROWS:
            return sample
    sample.is_complete = True
    return sample


def sampled_rows(files: Sequence[FileFacts], size: int) -> RowSample:
    """Read rows from the beginning of some row groups.

    `files`: the files, with what their footers prove.
    `size`: the number of bytes to read at most, except that some rows are always read.
    """
    places = [(facts, number) for facts in files for number in range(facts.footer.metadata.num_row_groups)]
    places = [place for place in places if place[0].footer.metadata.row_group(place[1]).num_rows]
    if not places:
        return RowSample()
    row_groups = evenly(places, _ROW_GROUPS)
    costs = [_costs(facts, number) for facts, number in row_groups]
    while len(row_groups) > 1 and sum(sum(leaves.values()) for leaves in costs) > size:
        row_groups, costs = evenly(row_groups, len(row_groups) - 1), evenly(costs, len(costs) - 1)
    sample = RowSample()
    omitted: set[VariantPath] = set()
    for (facts, number), leaf_costs in zip(row_groups, costs, strict=True):
        leaves, dropped = _within(facts, leaf_costs, size // len(row_groups))
        omitted |= dropped
        sample.bytes_read += _read(facts, number, leaves, _ROWS // len(row_groups), sample.batches)
    sample.omitted = frozenset(omitted)
    return sample


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Return that many items at most, evenly distributed.

    >>> evenly([1, 2, 3, 4, 5], 2)
    [1, 3]
    """
    if len(items) <= count:
        return list(items)
    return [items[at * len(items) // count] for at in range(count)]


def _costs(facts: FileFacts, number: int) -> dict[int, int]:
    """Return the bytes of the dictionary and of the first data page of each column chunk of a row group."""
    group = facts.footer.metadata.row_group(number)
    source = facts.footer.source
    with _data_errors(source.path), source.filesystem.open_input_file(source.path) as stream:
        leaves = [leaf.leaf for leaf in facts.column.node.leaves() if leaf.leaf is not None]
        return {leaf: _first_page_end(group.column(leaf), stream) for leaf in leaves}


def _first_page_end(chunk: pq.ColumnChunkMetaData, stream: pa.NativeFile) -> int:
    """Return the number of bytes of a column chunk up to the end of its first data page."""
    size: int = chunk.total_compressed_size
    before = min(max(chunk.data_page_offset - chunk_start_of(chunk), 0), size)
    try:
        header, header_size = read_value(bytes(stream.read_at(_HEADER_BYTES, chunk.data_page_offset)), 0, STRUCT)
        return min(before + header_size + int(header[_COMPRESSED_SIZE]), size)
    except (ThriftError, KeyError):
        return size


def _within(facts: FileFacts, costs: dict[int, int], size: int) -> tuple[list[int], set[VariantPath]]:
    """Return the columns to read within a limit, and the paths that are left out.

    `costs`: the bytes of each column; those that are left out are removed.

    Only columns that the footer describes may be left out, the largest first. Every object and array keeps a column,
    because it would seem to be missing otherwise.
    """
    candidates = []
    remaining: Counter[VariantPath] = Counter()
    for path, group in facts.groups.items():
        if group.is_leaf or group.residual is Residual.OPEN:
            remaining.update(outer_paths(path))
        if group.is_leaf and group.residual is not Residual.OPEN:
            nodes = (group.group.typed, group.group.residual)
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
    return sorted(costs), dropped


def _read(facts: FileFacts, number: int, leaves: Sequence[int], rows: int, batches: list[RowBatch]) -> int:
    """Add the first rows of a row group to a sample, and return the bytes that were read."""
    source, metadata, every = facts.footer.source, facts.footer.metadata, facts.footer.schema.leaves()
    first_row = sum(metadata.row_group(before).num_rows for before in range(number))
    with _data_errors(source.path), source.filesystem.open_input_file(source.path) as stream:
        handle = CountedHandle(stream)
        file = open_parquet(
            handle, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False, coerce_int96_timestamp_unit="us"
        )
        for batch in file.reader.iter_batches(_BATCH_ROWS, [number], column_indices=list(leaves), use_threads=False):
            nodes = [every[leaf] for leaf in leaves]
            table = with_wide_decimals(without_views(pa.table(batch), metadata), nodes, source.path)
            values = VariantArray(nested_array(table, facts.column.path))[:rows]
            batches.append(RowBatch(values, source.path, first_row))
            first_row, rows = first_row + len(values), rows - len(values)
            if rows <= 0:
                break
        return handle.bytes_read


@contextmanager
def _data_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise VariantFileError(
            f"cannot read the data of {path}: {error}; write the file again", reason="bad-data", file=path
        ) from None


# Footers of more files are not read: their number is then estimated from these.
_MAX_FILES = 4096


@dataclass(frozen=True, slots=True)
class _Coverage:
    """The shredded paths of a file, those with incomplete figures, and those below which other paths are unknown."""

    shredded: frozenset[VariantPath]
    unproved: frozenset[VariantPath]
    unknown_below: frozenset[VariantPath]

    def proves(self, path: VariantPath) -> bool:
        """Return whether the file proves the figures of a path, shredded or not."""
        if path in self.shredded:
            return path not in self.unproved
        outer = next((outer for outer in reversed(outer_paths(path)) if outer in self.shredded), None)
        return outer is not None and outer not in self.unknown_below


@dataclass(slots=True)
class FooterFigures:
    """The figures that footers and residual columns prove, for all files together.

    `figures`: figures by path; those for which `is_proved` is false are incomplete.
    `rows`, `null_rows`: number of rows and of SQL NULL rows; None if unknown.
    `files`: the facts of each file.
    `footer_bytes`, `residual_bytes`: bytes that were read.
    `read_paths`: the paths whose ``value`` columns were read.
    `residuals`: the values that were read from them, with the name of the file.
    `is_complete`: whether the footers of all files were read, and all have a known layout.
    """

    figures: dict[VariantPath, PathFigures] = field(default_factory=dict)
    rows: int = 0
    null_rows: int | None = 0
    files: list[FileFacts] = field(default_factory=list)
    footer_bytes: int = 0
    residual_bytes: int = 0
    is_complete: bool = True
    coverages: set[_Coverage] = field(default_factory=set)
    read_paths: frozenset[VariantPath] = frozenset()
    residuals: list[tuple[str, ResidualValues]] = field(default_factory=list)

    def is_proved(self, path: VariantPath) -> bool:
        """Return whether the figures of a path are complete; of a path without figures, that it does not exist."""
        return self.is_complete and all(coverage.proves(path) for coverage in self.coverages)

    @property
    def is_closed(self) -> bool:
        """Whether every path that exists has figures."""
        return self.is_complete and not any(coverage.unproved or coverage.unknown_below for coverage in self.coverages)


def footer_figures(data: DataSet, residual_limit: int) -> FooterFigures:
    """Return what the footers of a data set prove.

    `residual_limit`: number of bytes of residual columns to read at most; the smallest are read.
    """
    result = FooterFigures()
    sources = evenly(data.files, _MAX_FILES)
    result.is_complete = len(sources) == len(data.files)
    for source in sources:
        footer = read_footer(source)
        result.footer_bytes += footer.size
        if not has_column(footer.schema, data.column):
            rows = sum(footer.metadata.row_group(number).num_rows for number in range(footer.metadata.num_row_groups))
            result.rows += rows
            result.null_rows = None if result.null_rows is None else result.null_rows + rows
            continue
        facts = file_facts(footer, data.column)
        if facts is None:
            result.is_complete = False
            continue
        result.files.append(facts)
        result.rows += facts.rows
        unknown = result.null_rows is None or facts.null_rows is None
        result.null_rows = None if unknown else (result.null_rows or 0) + (facts.null_rows or 0)
    result.read_paths, result.residual_bytes = _affordable(result.files, residual_limit)
    for facts in result.files:
        _add_file(result, facts)
    return result


def _affordable(files: Sequence[FileFacts], limit: int) -> tuple[frozenset[VariantPath], int]:
    """Return the paths whose ``value`` columns can be read within a limit, the smallest first, and their bytes."""
    sizes: Counter[VariantPath] = Counter()
    dictionaries = 0
    for facts in files:
        sizes.update(residual_sizes(facts))
        dictionaries += dictionary_bytes(facts) if any(open_paths(facts)) else 0
    total, paths = dictionaries, set[VariantPath]()
    for path, size in sorted(sizes.items(), key=lambda entry: entry[1]):
        if total + size > limit:
            break
        total += size
        paths.add(path)
    return frozenset(paths), total if paths else 0


def _add_file(result: FooterFigures, facts: FileFacts) -> None:
    unproved: set[VariantPath] = set()
    unknown_below: set[VariantPath] = set()
    read = frozenset(path for path in result.read_paths if path in facts.groups and not has_old_list(facts, path))
    for path, group in facts.groups.items():
        figures, is_complete = _of_group(path, group)
        is_unread = group.residual is Residual.OPEN and path not in read
        if is_unread or not is_complete:
            unknown_below.add(path)
            # If every value is a shredded object, the ``value`` column has only their other fields.
            if not is_complete or not group.is_object or group.typed != facts.places(path):
                unproved.add(path)
        add_all(result.figures, [(path, figures)])
    for residual in read_residuals(facts, read):
        result.residuals.append((facts.footer.source.path, residual))
        if not _add_residual(result.figures, residual, facts.groups[residual.path]):
            unproved.add(residual.path)
    result.coverages.add(_Coverage(frozenset(facts.groups), frozenset(unproved), frozenset(unknown_below)))


def _add_residual(figures: dict[VariantPath, PathFigures], residual: ResidualValues, group: GroupFacts) -> bool:
    """Add the figures of values in a ``value`` column; return False if they contradict the typed columns."""
    parts = ValueFigures.of_array(residual.values).by_path(residual.path)
    objects = 0
    if group.is_object and residual.path in parts:
        # An object next to a shredded object has its other fields, and is not another value.
        objects = parts[residual.path].types.pop("object", 0)
    for path, part in parts.items():
        if residual.path.has_wildcard or path.has_wildcard:
            part.rows = None
        elif path == residual.path:
            part.rows = part.count
    add_all(figures, parts.items())
    return group.typed is None or objects <= group.typed


def _of_group(path: VariantPath, group: GroupFacts) -> tuple[PathFigures, bool]:
    """Return the figures of the typed values and of the nulls of a path, and whether they are complete.

    Values in a ``value`` column that the footer does not describe are not included.
    """
    figures = PathFigures()
    name = None if group.group.typed is None else _type_of(group)
    if group.stored is None or group.typed is None or (name is None and group.typed):
        return figures, False
    types: Counter[str] = Counter({name: group.typed} if name is not None else {})
    if group.residual is Residual.NULLS:
        types["null"] += group.stored
    figures.types = +types
    figures.rows = None if path.has_wildcard else figures.count
    figures.elements = group.elements or 0
    if group.is_leaf:
        figures.ranges = _ranges(group.bounds)
        is_text = name in ("string", "binary") and group.typed
        figures.string_bytes = group.text_bytes if is_text else 0
    return figures, group.elements is not None


def _type_of(group: GroupFacts) -> str | None:
    typed = group.group.typed
    if typed is None or typed.leaf is None:
        return group.group.type_name
    arrow = leaf_type(typed)
    if arrow is None:
        return None
    if pa.types.is_decimal(arrow):
        return "decimal" if arrow.scale else "integer"
    info = TYPE_OF_ARROW.get(arrow)
    return None if info is None else type_name(VariantType(info.type))


def _ranges(bounds: LeafStatistics) -> dict[str, Range]:
    low, high = bounds.lower, bounds.upper
    if low is None or high is None:
        return {}
    kind = low.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"number": (low.as_py(), high.as_py())}
    if pa.types.is_date(kind):
        return {"date": (low.as_py(), high.as_py())}
    if pa.types.is_timestamp(kind):
        name = "timestamp" if kind.tz is not None else "timestamp_ntz"
        micros = kind if kind.unit == "us" else pa.timestamp("us", kind.tz)
        return {name: (low.cast(micros, safe=False).as_py(), high.cast(micros, safe=False).as_py())}
    return {}
