"""Planning a query over one file, and reading the selected columns of the row groups that may match.

Owns the plan, made from the footer alone, with the rule for exact statistics, by which a query for minimum and maximum
is answered; tasks of row groups, and the report of a scan; and `FilePart`, with the choice for each column between leaf
values, spans of values, and pyarrow's tables. Leaves statistics of paths to
`projection`, the evaluation of filters over them to `query.prune`, extraction and casts to `ops.columns`, and the order
of reading to `scan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.parts import nested_array
from parquet_variant.files.parquet.format.columns import VariantColumn, top_column
from parquet_variant.files.parquet.format.facts import OWN_WRITER, leaf_type
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.reading.column_values import DICTIONARY, absent_values, column_values, value_spans
from parquet_variant.files.parquet.reading.read import as_in_first_file, plain_variants, variant_in, variant_storage
from parquet_variant.files.parquet.scanning import projection
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.io.parallel import in_threads
from parquet_variant.kernels.arrow_buffers import scalar, to_numpy
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.query.selection import Selected
from parquet_variant.support.records import Record, Report, counted

if TYPE_CHECKING:
    from parquet_variant.arrays.value_positions import ValuePositions
    from parquet_variant.files.parquet.reading.column_values import UnshreddedValues
    from parquet_variant.ops.columns.extract_path import Group


# Types whose values a file stores as Arrow does in memory.
_INSTANTS = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
_DIRECT = frozenset(
    [pa.bool_(), pa.string(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), *_INSTANTS]
)


class GroupPlan(Record):
    """A row group that may contain matching rows."""

    number: int  # The number of the row group.
    # For each output column, the numbers of the leaf columns to read; None if every row is null there.
    leaves: tuple[tuple[int, ...] | None, ...]
    # The exact minimum and maximum of each output column, if no more is needed and nothing has to be read.
    bounds: tuple[tuple[pa.Scalar, pa.Scalar], ...] | None = None

    def leaves_of(self, outputs: Iterable[int]) -> list[int]:
        """Return the leaf columns that some outputs need, sorted."""
        return sorted({leaf for output in outputs for leaf in self.leaves[output] or ()})


class Output(Record):
    """A selected column in one file: the columns of a path, an ordinary column, or a partition value."""

    selected: Selected
    variant: VariantColumn | None = None  # The Variant column of the path.
    path: projection.PathColumns | None = None
    node: SchemaNode | None = None
    constant: pa.Scalar | None = None
    direct: SchemaNode | None = None  # The leaf that holds the values of the path, if it needs no other column.

    def leaves(self, statistics: projection.Statistics) -> tuple[int, ...] | None:
        """Return the numbers of the leaf columns to read in a row group; None if every row is null there."""
        if self.path is not None:
            needed = self.path.needed(statistics)
            return None if needed is None else tuple(leaf.leaf for leaf in needed if leaf.leaf is not None)
        if self.constant is not None:
            return ()
        assert self.node is not None
        return tuple(leaf.leaf for leaf in self.node.leaves() if leaf.leaf is not None)

    def pruning_statistics(self, statistics: projection.Statistics, hidden_nan: bool) -> ColumnStatistics:
        """Return what the statistics of the leaf columns prove about the values."""
        if self.path is not None:
            bounds_of_path = projection.path_statistics(self.path, statistics, hidden_nan=hidden_nan)
            return replace(bounds_of_path, may_be_null=True) if self.selected.exact else bounds_of_path
        if self.constant is not None:
            return projection.constant_statistics(self.constant)
        assert self.node is not None
        kind = self.selected.type
        if self.node.leaf is None or kind is None or self.node.repetition == "repeated":
            return UNKNOWN
        values = statistics(self.node)
        if not values.all_null and leaf_type(self.node) != kind:
            return ColumnStatistics(may_be_null=values.nulls != 0)
        return projection.scalar_statistics(values, kind, kind, hidden_nan=hidden_nan)

    @property
    def exact_leaf(self) -> SchemaNode | None:
        """The leaf that holds the values of the output, so that its Bloom filter applies to them."""
        return self.path.primitive if self.path is not None and not self.path.repeated else self.node

    def exact_bounds(self, statistics: projection.Statistics) -> tuple[pa.Scalar, pa.Scalar] | None:
        """Return minimum and maximum, null without values; None if they are unknown, or perhaps not values.

        Statistics of integers, dates and timestamps are exact, if a cast does not change them.
        """
        kind, leaf = self.selected.type, self.exact_leaf
        stored = leaf_type(leaf) if self.constant is None and leaf is not None else kind
        values = self.pruning_statistics(statistics, True)
        if kind is None or stored is None:
            return None
        if not values.may_be_value:
            return scalar(None, kind), scalar(None, kind)
        if pa.types.is_signed_integer(kind):
            is_exact = pa.types.is_signed_integer(stored)
        else:
            is_exact = stored == kind and (pa.types.is_date32(kind) or pa.types.is_timestamp(kind))
        bounds = values.lower, values.upper
        return bounds if is_exact and None not in bounds else None


class FilePlan(Record, frozen=False):
    """The plan of a query over a file: the selected columns in it, and the row groups to read."""

    outputs: list[Output]
    groups: list[GroupPlan]

    def direct_leaf(self, number: int, group: GroupPlan) -> SchemaNode | None:
        """Return the leaf that holds the values of an output in a row group, if no other leaf is read for it."""
        leaf = self.outputs[number].direct
        return leaf if leaf is not None and group.leaves[number] == (leaf.leaf,) else None

    def chunk_bytes(self, file: OpenFile, groups: Sequence[GroupPlan], outputs: Iterable[int]) -> int:
        """Return the compressed bytes of the column chunks that some outputs need from some row groups."""
        numbers = list(outputs)
        return sum(file.facts.size(group.leaves_of(numbers), [group.number]) for group in groups)


def plan_file(
    file: OpenFile,
    selection: Sequence[Selected],
    predicate: Predicate | None,
    *,
    skipping: bool = True,
    only_bounds: bool = False,
) -> FilePlan:
    """Plan the query over one file: its output columns, those that only the predicate needs, and the bound predicate.

    `skipping`: whether to use statistics; without them, every row group and every residual is read.
    `only_bounds`: whether only the minimum and maximum of the columns are needed.
    """
    outputs = _outputs_in(file, selection)
    facts, named = file.facts, {item.name: output for item, output in zip(selection, outputs, strict=True)}
    pruning = predicate if skipping else None

    def matches(predicate: Predicate, statistics: projection.Statistics, number: int | None = None) -> bool:
        stats = {name: named[name].pruning_statistics(statistics, facts.may_hide_nan) for name in columns_of(predicate)}
        if not may_match(predicate, stats.__getitem__):
            return False
        if number is None:
            return True
        for name, values in stats.items():
            leaf = named[name].exact_leaf
            # With unknown statistics, a residual or a cast may produce values that are not in the Bloom filter.
            if leaf is not None and leaf.leaf is not None and values is not UNKNOWN:
                stats[name] = replace(values, excludes=absent_values(file, number, leaf))
        return bool(may_match(predicate, stats.__getitem__))

    groups = []
    # Statistics of the whole file may rule out every row group.
    for number in facts.groups if pruning is None or matches(pruning, facts.statistics) else ():
        statistics = partial(facts.statistics, group=number) if skipping else lambda _: LeafStatistics(0)
        # Other writers may store bounds that are not values of the column.
        if only_bounds and facts.writer.startswith(OWN_WRITER) and facts.rows([number]):
            bounds = [output.exact_bounds(partial(facts.statistics, group=number)) for output in outputs]
            exact = tuple(pair for pair in bounds if pair is not None)
            if len(exact) == len(outputs):
                groups.append(GroupPlan(number, ((),) * len(outputs), exact))
                continue
        if pruning is None or matches(pruning, statistics, number):
            groups.append(GroupPlan(number, tuple(output.leaves(statistics) for output in outputs)))
    return FilePlan(outputs, groups)


def _outputs_in(file: OpenFile, selection: Sequence[Selected]) -> list[Output]:
    """Return the columns of each output in a file; a missing column is null."""
    variants = {name: variant_in(file, name) for name in {i.column for i in selection if i.path is not None}}
    outputs, partition, stored = [], dict(file.source.partition), file.column_names
    is_local = isinstance(file.source.filesystem, fs.LocalFileSystem)  # few requests matter more on object stores
    for item in selection:
        name = item.stored_name
        if item.path is not None and (variant := variants[item.column]) is not None:
            path = projection.columns_of_path(variant, item.path, item.type)
            leaf = path.primitive if is_local and not path.repeated else None
            kind = None if leaf is None else leaf_type(leaf)
            outputs.append(Output(item, variant, path, direct=leaf if kind in _DIRECT and kind == item.type else None))
        elif item.path is not None or name not in stored:
            outputs.append(Output(item, constant=pa.scalar(None, item.field.type)))
        elif (constant := partition.get(name)) is not None:
            outputs.append(Output(item, constant=constant))
        else:
            outputs.append(Output(item, node=top_column(file.schema, name, file.name)))
    return outputs


class ScanTask(Record):
    """Some row groups of one file: the unit of work that is sent to other processes."""

    source: ParquetSource  # The file.
    row_groups: tuple[int, ...]  # The numbers of the row groups.
    rows: int  # Rows of the row groups, before any filter.
    bytes: int  # Compressed bytes of the column chunks that are read.


class ScanReport(Report, Record, frozen=False):
    """Files, row groups, rows, columns and bytes that a scan reads, and their totals.

    Parameters
    ----------
    files_read, files_total
        Files with a row group that is read, and all files.
    row_groups_read, row_groups_total
        Row groups that may contain a matching row, and all row groups.
    rows_read, rows_total
        Rows of these row groups.
    bytes_read, bytes_total
        Compressed bytes of the column chunks that are read, and of all column chunks.
    columns
        Number of row groups in which each leaf column is read.
    columns_total
        Number of leaf columns of the widest file.
    residuals
        Number of row groups in which each residual column that may hold values is read.
    """

    files_read: int = 0
    files_total: int = 0
    row_groups_read: int = 0
    row_groups_total: int = 0
    rows_read: int = 0
    rows_total: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    columns_total: int = 0
    residuals: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        files = f"{self.files_read:,} of {self.files_total:,} files"
        return f"<ScanReport {files}, {self.rows_read:,} of {self.rows_total:,} rows, {self.bytes_read:,} bytes>"

    def add(self, file: OpenFile, plan: FilePlan) -> None:
        """Add what is read of a file to the counts."""
        metadata, groups = file.metadata, [group for group in plan.groups if group.bounds is None]
        outputs = range(len(plan.outputs))
        self.files_total += 1
        self.files_read += bool(groups)
        self.row_groups_total += metadata.num_row_groups
        self.row_groups_read += len(groups)
        self.rows_total += file.facts.rows()
        self.columns_total = max(self.columns_total, metadata.num_columns)
        self.bytes_read += plan.chunk_bytes(file, groups, outputs)
        names = {leaf.leaf: leaf.dotted for leaf in file.schema.leaves()}
        residuals = {leaf.leaf for output in plan.outputs if output.path for leaf in output.path.residuals}
        for residual in residuals:
            self.residuals.setdefault(names[residual], 0)
        self.bytes_total += file.facts.size()
        self.rows_read += file.facts.rows(planned.number for planned in groups)
        for planned in groups:
            for leaf in planned.leaves_of(outputs):
                self.columns[names[leaf]] = self.columns.get(names[leaf], 0) + 1
                if leaf in residuals:
                    self.residuals[names[leaf]] += 1

    def __str__(self) -> str:
        share = f" ({self.bytes_read / self.bytes_total:.1%})" if self.bytes_total else ""
        lines = [
            f"files       {self.files_read:,} of {self.files_total:,}",
            f"row groups  {self.row_groups_read:,} of {self.row_groups_total:,}",
            f"rows        {self.rows_read:,} of {self.rows_total:,}",
            f"bytes       {self.bytes_read:,} of {self.bytes_total:,}{share}",
            f"columns     {len(self.columns):,} of {self.columns_total:,}",
            *(f"  {name} in {counted(count, 'row group')}" for name, count in sorted(self.columns.items())),
        ]
        for name, count in sorted(self.residuals.items()):
            need = f"needed in {counted(count, 'row group')}" if count else "ruled out"
            lines.append(f"residual    {name}: {need}")
        return "\n".join(lines)


_SMALL_DICTIONARY = 1 << 10


class FilePart(Record, frozen=False):
    """Row groups of an open file that are read together."""

    file: OpenFile
    plan: FilePlan
    groups: list[GroupPlan]
    is_last: bool  # Whether it is the last part of the file.
    selected: Sequence[Selected]  # The columns of the query; a plan can be that of an earlier query.
    safe: bool  # Whether a value that cannot be cast is an error.
    zone: str  # The session time zone of casts.
    dictionaries: frozenset[int]  # Numbers of string columns that may be read as dictionaries.
    threads: int = 1  # The number of threads that read columns.
    bytes_read: int = 0  # Compressed bytes of the column chunks that were read.

    @property
    def first_row(self) -> int:
        """The number of the first row, counted from the start of the file."""
        return self.file.facts.rows(range(self.groups[0].number))

    def columns(self, outputs: list[int], mask: pa.BooleanArray | None = None) -> dict[int, pa.Array]:
        """Return some selected columns by number, of the rows where `mask` is true.

        A column is read from its pages if it is the values of one leaf column, else from tables that pyarrow reads.
        """
        plan, group = self.plan, self.groups[0]
        rows = None if mask is None else to_numpy(mask)

        def values_of(number: int) -> pa.Array | None:
            leaf, kind = plan.direct_leaf(number, group), plan.outputs[number].selected.type
            if number in self.dictionaries and kind == pa.string():
                kind = DICTIONARY
            return None if leaf is None or kind is None else column_values(self.file, group.number, leaf, kind, rows)

        direct = outputs if len(self.groups) == 1 else []
        arrays = zip(direct, in_threads(values_of, direct, self.threads), strict=True)
        columns = {number: array for number, array in arrays if array is not None}
        self.bytes_read += sum(plan.chunk_bytes(self.file, [group], [number]) for number in columns)
        nested = self._columns_of_tables([number for number in outputs if number not in columns])
        return columns | {number: array if mask is None else array.filter(mask) for number, array in nested.items()}

    def _columns_of_tables(self, outputs: list[int]) -> dict[int, pa.Array]:
        """Return some selected columns by number, from tables that pyarrow reads."""
        from parquet_variant.ops.columns.extract_path import storage_group

        file, plan, first = self.file, self.plan, self.groups[0]
        rows = file.facts.rows(group.number for group in self.groups)
        requested, leaves = [plan.outputs[number] for number in outputs], first.leaves_of(outputs)
        variants = {output.variant.name: output.variant for output in requested if output.variant is not None}
        spans: dict[str, UnshreddedValues | None] = {}
        for name, variant in variants.items():
            spans[name], leaves = self._spans(variant, requested, leaves)
        table: pa.Table | None = None
        if leaves:
            table = file.read_leaves([group.number for group in self.groups], leaves)
            self.bytes_read += plan.chunk_bytes(file, self.groups, outputs)

        @cache  # shared by all paths, so that each distinct metadata is decoded once
        def values_of(name: str) -> tuple[pa.StructArray, Group | ValuePositions]:
            assert table is not None
            storage, values = variant_storage(table, variants[name]), spans[name]
            if values is None:
                return storage, storage_group(storage)
            group = values(storage.field("metadata"))
            paths = [o.selected.path for o in requested if o.variant is not None and o.variant.name == name]
            group.look_up(path.segments for path in paths if path is not None)
            return storage, group

        columns: dict[int, pa.Array] = {}
        for number in outputs:
            output = plan.outputs[number]
            selected, constant = self.selected[number], output.constant
            if constant is not None:
                columns[number] = pa.repeat(constant, rows)
            elif table is None or first.leaves[number] is None:
                columns[number] = pa.nulls(rows, selected.field.type)
            elif selected.path is None:
                name = selected.stored_name
                column = nested_array(plain_variants(table.select([name]), file), [name])
                columns[number] = as_in_first_file(name, column, selected.field.type)
            else:
                assert output.variant is not None
                values = values_of(output.variant.name)[selected.output is not None]
                columns[number] = selected.values_in(values, safe=self.safe, zone=self.zone)
        return columns

    def _spans(
        self, column: VariantColumn, outputs: Sequence[Output], leaves: list[int]
    ) -> tuple[UnshreddedValues | None, list[int]]:
        """Return the spans of unshredded values, if they need not be copied, and the leaves that pyarrow must read."""
        if column.layout != "unshredded" or len(self.groups) > 1:
            return None, leaves
        top, metadata, value = column.path[0], column.node.child("metadata"), column.node.child("value")
        # Whole values, of a path or of the column, are copied.
        values = [output for output in outputs if output.selected.output is None or output.variant is None]
        copied = (o.selected.stored_name == top if o.variant is None else o.variant.name == column.name for o in values)
        if any(copied) or metadata is None or value is None or not {metadata.leaf, value.leaf} <= set(leaves):
            return None, leaves
        spans = value_spans(self.file, self.groups[0].number, column)
        return spans, leaves if spans is None else [leaf for leaf in leaves if leaf != value.leaf]


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return strings as plain strings, or as a dictionary that is not much larger than the rows."""
    from parquet_variant.files.parquet.reading.column_values import without_dictionary

    is_dictionary = pa.types.is_dictionary(column.type)
    if pa.types.is_dictionary(kind):
        if is_dictionary and len(column.dictionary) <= max(len(column), _SMALL_DICTIONARY):
            return column
        return (without_dictionary(column) if is_dictionary else column).dictionary_encode()
    return without_dictionary(column) if is_dictionary else column
