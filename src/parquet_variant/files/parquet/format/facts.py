"""Facts of a Parquet file that its footer states, by leaf column and row group.

Owns the only walk over row groups and column chunks: rows, bytes, statistics, encodings, and the meaning of level
histograms for the values at a path. Scans, reports and metrics of files filter or format these facts. Owns also the
rule that a doubtful bound is ignored. Leaves pages to `pages` and `reading`, the columns of a path to `columns` and
`scanning.projection`, and conclusions to `query.prune`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from typing import Any, NamedTuple, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.encoding.metadata import EMPTY_METADATA, NULL_VALUE
from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.footer import MAGIC, SchemaNode, parse_schema
from parquet_variant.files.parquet.format.footer_cache import Reader
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support.records import cached_property
from parquet_variant.types import TYPE_OF_ARROW

# The errors of damaged or unsupported pages: pyarrow then reads the column, and reports any error.
PAGE_ERRORS = (
    thrift.ThriftError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError,
    OverflowError,
)  # fmt: skip


def chunk_start_of(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the offset of a column chunk from pyarrow's metadata."""
    start: int = chunk.data_page_offset
    return min(start, chunk.dictionary_page_offset or start) if chunk.has_dictionary_page else start


# Key-value metadata of this library's writer: no float or double column of the file contains a NaN.
NO_NAN_KEY = b"parquet_variant.no_nan"
# How ``created_by`` begins in files of this library; the version follows.
OWN_WRITER = "parquet-variant version"
# A Variant null as a residual of the final layout, and of the drafts.
_VARIANT_NULLS = (NULL_VALUE, EMPTY_METADATA + NULL_VALUE)

_TYPES: dict[str, pa.DataType] = {row.parquet: arrow for arrow, row in TYPE_OF_ARROW.items()} | {
    "INT32 INT(32, true)": pa.int32(),
    "INT64 INT(64, true)": pa.int64(),
}


def leaf_type(node: SchemaNode) -> pa.DataType | None:
    """Return the Arrow type of a leaf if the shredding specification lists its type, else None.

    >>> leaf_type(SchemaNode("typed_value", ("v", "typed_value"), "optional", "INT64", "DECIMAL(12, 2)"))
    Decimal128Type(decimal128(12, 2))
    """
    if node.logical.startswith("DECIMAL("):
        precision, scale = node.logical[8:-1].split(", ")
        return pa.decimal128(int(precision), int(scale)) if 1 <= int(precision) <= 38 else None
    return _TYPES.get(node.spelled())


def _scalar(raw: Any, arrow: pa.DataType) -> pa.Scalar | None:
    """Return a bound as a scalar; None if it is NaN or does not fit the type."""
    try:
        if pa.types.is_floating(arrow):
            if math.isnan(raw):
                return None
            return scalar(raw, arrow)
        if pa.types.is_decimal(arrow):
            unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            if abs(unscaled) >= 10**arrow.precision:
                return None
            data = pa.py_buffer(unscaled.to_bytes(16, "little", signed=True))
            return pa.Array.from_buffers(arrow, 1, [None, data])[0]
        if pa.types.is_temporal(arrow):
            width = pa.int32() if pa.types.is_date32(arrow) else pa.int64()
            return scalar(raw, width).cast(arrow)
        if arrow == pa.uuid():
            return pa.scalar(bytes(raw), pa.binary(16)).cast(arrow) if len(raw) == 16 else None
        if pa.types.is_string(arrow):
            # A bound that was truncated inside a character is not valid UTF-8, so it is unknown.
            return scalar(raw if isinstance(raw, str) else raw.decode("utf-8"), arrow)
        return scalar(raw, arrow)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None


def _statistics_of(chunk: pq.ColumnChunkMetaData, node: SchemaNode) -> LeafStatistics:
    """Return the statistics of a column chunk, with bounds only if their order is the order of values."""
    # pyarrow crashes on a damaged footer in which the types of a column contradict each other.
    statistics = chunk.statistics if chunk.physical_type == node.physical and chunk.is_stats_set else None
    values, arrow = chunk.num_values, leaf_type(node)
    if statistics is None:
        return LeafStatistics(values)
    nulls = statistics.null_count if statistics.has_null_count and 0 <= statistics.null_count <= values else None
    if nulls == values and statistics.has_min_max:
        return LeafStatistics(values)  # bounds without values: the count or the bounds are wrong
    if statistics.has_min_max and arrow is not None:
        bounds = _scalar(statistics.min_raw, arrow), _scalar(statistics.max_raw, arrow)
        return LeafStatistics(values, nulls, *(bounds if None not in bounds else ()))
    return LeafStatistics(values, nulls)


def footer_metadata(footer: bytes) -> pq.FileMetaData:
    """Return pyarrow's metadata of the Thrift bytes of a footer, without reading a file."""
    return open_parquet(pa.BufferReader(MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC)).metadata


def only_nulls(residual: LeafStatistics, *, variant_nulls: bool) -> bool:
    """Return whether a residual column certainly has no value, or (with `variant_nulls`) only Variant nulls."""
    if residual.all_null:
        return True
    bounds = (residual.lower, residual.upper)
    return variant_nulls and all(bound is not None and bound.as_py() in _VARIANT_NULLS for bound in bounds)


Plan = TypeVar("Plan")
_PLANS = 16
# Fields of SizeStatistics.
_TEXT_BYTES, _REPETITION, _DEFINITION = 1, 2, 3


class LevelCounts(NamedTuple):
    """Entries of a column chunk by definition and by repetition level, and bytes of its strings; None if unknown."""

    definition: list[int] | None
    repetition: list[int] | None
    text_bytes: int | None


class FileFacts:
    """Facts of one file that its footer states, shared by all threads that read the file: entries are only added.

    `metadata`: pyarrow's metadata of the footer.
    `footer`: the Thrift bytes of the footer, because pyarrow returns neither groups of the schema nor histograms.
    `schema`: the schema tree; callers must not modify it.
    `dictionaries`: the numbers of the leaf columns that are read as dictionaries.
    `groups`: the numbers of the row groups.
    """

    def __init__(
        self, metadata: pq.FileMetaData, footer: bytes, schema: SchemaNode, dictionaries: frozenset[int] = frozenset()
    ) -> None:
        self.metadata, self.footer, self.schema, self.dictionaries = metadata, footer, schema, dictionaries
        self.groups = range(metadata.num_row_groups)
        self.idle_readers: list[Reader] = []
        self.plans: dict[Hashable, Any] = {}
        self._statistics: dict[tuple[int | None, int], LeafStatistics] = {}
        self._levels: dict[tuple[int | None, int], LevelCounts] = {}

    @classmethod
    def of(cls, footer: bytes, file: str | None = None) -> Self:
        """Return the facts of the Thrift bytes of a footer; `file` is the name of the file in errors."""
        return cls(footer_metadata(footer), footer, parse_schema(footer, file))

    @cached_property
    def row_groups(self) -> list[tuple[list[int], int]]:
        """The offsets of the column chunk structs in the footer, and the number of rows, of each row group."""
        groups = []
        for start, _ in thrift.structs_of_list(self.footer, thrift.find_field(self.footer, 0, thrift.ROW_GROUPS)):
            fields = {field.id: field for field in thrift.struct_fields(self.footer, start)}
            rows, _ = thrift.read_value(self.footer, fields[thrift.NUM_ROWS].start, fields[thrift.NUM_ROWS].type)
            chunks = thrift.structs_of_list(self.footer, fields[thrift.COLUMNS].start)
            groups.append(([at for at, _ in chunks], rows))
        return groups

    @property
    def writer(self) -> str:
        """The library that wrote the file; empty if unknown."""
        try:
            return self.metadata.created_by or ""
        except UnicodeDecodeError:
            return ""

    @property
    def may_hide_nan(self) -> bool:
        """Whether a float column may contain a NaN outside its bounds.

        Arrow's writers ignore NaN in bounds. parquet-mr (Spark) writes no bounds for a column with a NaN.
        """
        if (self.metadata.metadata or {}).get(NO_NAN_KEY) == b"true":
            return False
        return not self.writer.startswith("parquet-mr")

    def plan(self, key: Hashable, make: Callable[[], Plan]) -> Plan:
        """Return the cached plan of a key, or make it; the result must not be modified."""
        plan: Plan | None = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= _PLANS:
                self.plans.clear()
            plan = self.plans[key] = make()
        return plan

    def rows(self, groups: Iterable[int] | None = None) -> int:
        """Return the number of rows of row groups (default: all), because some writers do not store the total."""
        return sum(self.metadata.row_group(group).num_rows for group in (self.groups if groups is None else groups))

    def chunk(self, leaf: SchemaNode | int, group: int) -> pq.ColumnChunkMetaData:
        """Return pyarrow's metadata of a column chunk."""
        return self.metadata.row_group(group).column(leaf if isinstance(leaf, int) else leaf.leaf)

    def size(
        self,
        leaves: Iterable[SchemaNode | int] | None = None,
        groups: Iterable[int] | None = None,
        *,
        plain: bool = False,
    ) -> int:
        """Return the compressed bytes, or with `plain` the decompressed ones, of leaf columns in row groups.

        `leaves` and `groups`: the leaf columns and the numbers of row groups (default: all).
        """
        numbers = range(self.metadata.num_columns) if leaves is None else list(leaves)
        total = 0
        for group in map(self.metadata.row_group, self.groups if groups is None else groups):
            chunks = (group.column(leaf if isinstance(leaf, int) else leaf.leaf) for leaf in numbers)
            total += sum(chunk.total_uncompressed_size if plain else chunk.total_compressed_size for chunk in chunks)
        return total

    def statistics(self, leaf: SchemaNode, group: int | None = None) -> LeafStatistics:
        """Return the statistics of a leaf column in a row group, or in the whole file."""
        if group is None:
            of_groups = (self.statistics(leaf, number) for number in self.groups)
            return reduce(LeafStatistics.merge, of_groups, LeafStatistics(0, 0))
        key = leaf.leaf, group
        if key not in self._statistics:
            self._statistics[key] = _statistics_of(self.chunk(leaf, group), leaf)
        return self._statistics[key]

    def is_empty(
        self, residual: SchemaNode, *, variant_nulls: bool = False, groups: Iterable[int] | None = None
    ) -> bool:
        """Return whether a residual column certainly has no value, or (with `variant_nulls`) only Variant nulls."""
        statistics = (self.statistics(residual, group) for group in (self.groups if groups is None else groups))
        return all(only_nulls(leaf, variant_nulls=variant_nulls) for leaf in statistics)

    def level_counts(self, leaf: SchemaNode, group: int) -> LevelCounts:
        """Return the entries of a column chunk by level, from its histograms or from its null count."""
        key = leaf.leaf, group
        if key not in self._levels:
            metadata = thrift.find_field(self.footer, self.row_groups[group][0][leaf.leaf or 0], thrift.METADATA)
            start = None if metadata is None else thrift.find_field(self.footer, metadata, thrift.SIZE_STATISTICS)
            sizes = {} if start is None else thrift.read_value(self.footer, start, thrift.STRUCT)[0]
            statistics = self.statistics(leaf, group)
            definition: list[int] | None = sizes.get(_DEFINITION)
            if definition is None and leaf.max_definition == 1 and statistics.nulls is not None:
                definition = [statistics.nulls, statistics.values - statistics.nulls]
            elif definition is None and leaf.max_definition == 0:
                definition = [statistics.values]
            # A histogram counts if it has every level and every entry.
            histograms = (definition, leaf.max_definition), (sizes.get(_REPETITION), leaf.max_repetition)
            definition, repetition = (
                counts if counts and len(counts) == max_level + 1 and sum(counts) == statistics.values else None
                for counts, max_level in histograms
            )
            self._levels[key] = LevelCounts(definition, repetition, sizes.get(_TEXT_BYTES))
        return self._levels[key]

    def present(self, node: SchemaNode, group: int) -> int | None:
        """Return the number of entries in which a node that is not a list is present; None if unknown."""
        # A leaf outside of further lists has one entry for each of the node's.
        leaves = (leaf for leaf in node.leaves() if leaf.max_repetition == node.max_repetition)
        counts = (self._reaching(leaf, node.max_definition, group) for leaf in leaves)
        return next((count for count in counts if count is not None), None)

    def lists(self, typed: SchemaNode, group: int) -> tuple[int | None, int | None]:
        """Return the numbers of lists and of elements in a list node; None if unknown."""
        repeated = typed.children[0] if typed.children else typed
        depth = repeated.max_repetition
        for leaf in repeated.leaves():
            definition, repetition, _ = self.level_counts(leaf, group)
            elements = self._reaching(leaf, repeated.max_definition, group)
            if leaf.max_repetition == depth and elements is not None and definition and repetition:
                return elements - repetition[depth] + definition[typed.max_definition], elements
        return None, None

    def _reaching(self, leaf: SchemaNode, level: int, group: int) -> int | None:
        """Return the number of entries of a leaf in which a definition level is reached; None if unknown."""
        statistics, definition = self.statistics(leaf, group), self.level_counts(leaf, group).definition
        if level == 0:
            return statistics.values
        if definition is not None:
            return sum(definition[level:])
        if level == leaf.max_definition and statistics.nulls is not None:
            return statistics.values - statistics.nulls
        return None
