"""`scan`: read typed columns by path from Vortex files.

Owns the public operation, its report, and the ranges of rows that it skips. `parts` finds the parts of a column that a
path needs and the part of a filter that Vortex may apply, `query.predicate` owns the meaning of filters, and
`range_statistics` the statistics of a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import without_views
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.reading.read import plain_storage
from parquet_variant.files.vortex.dtype import unstored_rows
from parquet_variant.files.vortex.json_columns import json_errors
from parquet_variant.files.vortex.library import OpenVortexFile, open_files, vortex
from parquet_variant.files.vortex.parts import JsonPart, NestedPart, Part, TypedPart, part_of, pushed_filter
from parquet_variant.files.vortex.reader import choose_path_column, tagged_inside
from parquet_variant.files.vortex.trailer import ColumnNote
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.ops.columns.extract_path import extract_path
from parquet_variant.query.predicate import Predicate, evaluate
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.query.selection import PlannedQuery, Question, Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.report_text import Report
from parquet_variant.types.forms import in_form, with_fields
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

# Types of columns inside Vortex's own type that its `variant_get` returns without a cast.
_UNCAST_TYPES = (pa.int64(), pa.float64(), pa.string(), pa.bool_())


@dataclass(frozen=True, slots=True)
class VortexScanReport(Report):
    """How much of the files a query reads.

    Parameters
    ----------
    files_total, rows_total, bytes_total
        Number of files, rows and bytes in total.
    columns
        Columns read from each file: ordinary columns, and parts of the Variant column.
    filters_in_file
        True if Vortex applies a part of the filter, and so may skip zones of the files.
    layouts
        Layouts of the Variant columns.
    rows_read
        Number of rows in the ranges that statistics do not exclude.
    ranges_total, ranges_read
        Number of row ranges with statistics of shredded children, and of those that are read.
    """

    files_total: int
    rows_total: int
    bytes_total: int
    columns: tuple[str, ...]
    filters_in_file: bool
    layouts: tuple[str, ...]
    rows_read: int
    ranges_total: int
    ranges_read: int

    def __str__(self) -> str:
        columns = "\n".join(f"  {name}" for name in self.columns)
        filtered = "applied by Vortex, which may skip zones" if self.filters_in_file else "not applied by Vortex"
        ranges = f"{self.ranges_read:,} of {self.ranges_total:,} ranges" if self.ranges_total else "no range statistics"
        return (
            f"files       {self.files_total:,} Vortex{', ' if self.layouts else ''}{', '.join(self.layouts)}\n"
            f"rows        {self.rows_read:,} of {self.rows_total:,}: {ranges}\n"
            f"bytes       {self.bytes_total:,} in the files\n"
            f"columns     {len(self.columns)}\n{columns}\nfilter      {filtered}"
        )


@dataclass(frozen=True)
class VortexScan(PlannedQuery):
    """A planned query over Vortex files; see `scan`."""

    selection: tuple[Selected, ...]  # The output columns.
    hidden: tuple[Selected, ...]  # The columns that only the filter reads.
    predicate: Predicate | None  # The bound filter; None for all rows.
    files: tuple[FileScan, ...]  # The plan of each file.
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    @property
    def bytes_read(self) -> int:
        """The bytes of the columns, in Arrow's representation, that this scan has read so far."""
        return self._bytes_read[0]

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result, file by file, in tables of some thousand rows.

        Raises `VariantFileError` (``files-differ``) if the columns of a file differ from those of the first file.
        """
        for planned in self.files:
            for table in planned.tables(self._bytes_read):
                if not len(table):
                    continue
                try:
                    yield table if table.schema.equals(self.schema) else table.cast(self.schema)
                except (pa.ArrowException, ValueError) as error:
                    raise VariantFileError(
                        f"the columns differ from those of {self.files[0].file.path}: {error}",
                        file=planned.file.path,
                        reason="files-differ",
                    ) from None

    def explain(self) -> VortexScanReport:
        """Report how much of the files would be read."""
        with_statistics = [(planned, planned.note.statistics) for planned in self.files]
        counted = [(planned, statistics) for planned, statistics in with_statistics if statistics is not None]
        names = (planned.name_of(part) for planned in self.files for part in planned.parts.values())
        return VortexScanReport(
            files_total=len(self.files),
            rows_total=sum(len(planned.file) for planned in self.files),
            bytes_total=sum(planned.file.size for planned in self.files),
            columns=tuple(sorted(set(names))),
            filters_in_file=any(planned.filter() is not None for planned in self.files),
            layouts=tuple(sorted({str(planned.layout) for planned in self.files if planned.layout is not None})),
            rows_read=sum(planned.rows_read for planned in self.files),
            ranges_total=sum(statistics.count for _, statistics in counted),
            ranges_read=sum(len(planned.range_numbers) for planned, _ in counted),
        )


@dataclass(frozen=True)
class FileScan:
    """The plan of one file."""

    file: OpenVortexFile
    question: Question  # Bound to the types of the file.
    column: str | None  # The Variant column; None if no path is selected.
    skipping: bool  # Whether rows may be skipped.
    cast: bool  # Whether values of other types are cast; without, they are null.
    zone: str
    threads: int | None

    @property
    def layout(self) -> str | None:
        """Layout of the Variant column; None if no path is selected, or the column is not a Variant."""
        return None if self.column is None else self.file.layouts.get(self.column)

    @property
    def note(self) -> ColumnNote:
        """The writer's note on the Variant column."""
        return self.file.note(self.column)

    @property
    def kind(self) -> pa.StructType | None:
        """The storage type of the Variant column in the file; None for JSON text, and for a Variant in a struct."""
        return self.file.schema.field(self.column).type if self.column in self.file.layouts else None

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """The parts of the Variant column and the ordinary columns to read, by short names."""
        parts = dict.fromkeys(self._parts_of_columns.values())
        return {f"p{number}": part for number, part in enumerate(parts)}

    @cached_property
    def _parts_of_columns(self) -> dict[str, Part | str]:
        return {selected.name: self._part(selected) for selected in self.question.columns}

    def name_of(self, part: Part | str) -> str:
        """Return the name of a part in reports."""
        return part if isinstance(part, str) else ".".join((str(self.column), *part.levels))

    def _part(self, selected: Selected) -> Part | str:
        if selected.path is None:
            assert selected.column is not None
            return selected.column
        if self.kind is None:
            place = self.file.nested_variants.get(str(self.column))
            return JsonPart() if place is None else NestedPart(place)
        typed, statistics = self.note.typed_schema, self.note.statistics
        node = None if typed is None else typed.get(selected.path)
        # For a Variant result the typed column is not enough: its null may be Variant null, a missing field or an
        # absent row. Nor is it if a value at the path is in bytes, in a range that is read.
        if (
            node is not None
            and node.type in _UNCAST_TYPES
            and selected.path.segments
            and selected.type is not None
            and statistics is not None
            and selected.path in statistics.paths
            and not any(statistics.paths[selected.path].in_bytes[number] for number in self.range_numbers)
        ):
            return TypedPart(tuple(map(str, selected.path.segments)), node.type)
        return part_of(self.kind, selected.path, selected.type)

    # -- skipping

    @property
    def _skipping(self) -> Predicate | None:
        """The filter by which rows may be skipped."""
        return self.question.predicate if self.skipping else None

    @cached_property
    def range_numbers(self) -> list[int]:
        """The ranges in which a row can match; without statistics the file is one range."""
        ranges, predicate = self.note.statistics, self._skipping
        if ranges is None or predicate is None:
            return list(range(1 if ranges is None else ranges.count))
        by_name = {selected.name: selected for selected in self.question.columns}

        def statistics_in(number: int, name: str) -> ColumnStatistics:
            selected = by_name[name]
            if selected.path is None:
                return UNKNOWN
            return ranges.of_path(selected.path, selected.type, number, cast=self.cast and not selected.exact)

        return [number for number in range(ranges.count) if may_match(predicate, partial(statistics_in, number))]

    @property
    def row_ranges(self) -> list[tuple[int, int]] | None:
        """First row and the row after the last of each run of ranges that is read; None for all rows."""
        statistics = None if self._skipping is None else self.note.statistics
        if statistics is None or len(self.range_numbers) == statistics.count:
            return None
        runs: list[tuple[int, int]] = []
        for start, stop in map(statistics.bounds, self.range_numbers):
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, stop))
        return runs

    @property
    def rows_read(self) -> int:
        """Number of rows in the ranges that are read."""
        ranges = self.row_ranges
        return len(self.file) if ranges is None else sum(stop - start for start, stop in ranges)

    def filter(self) -> Any:
        """Return the part of the filter that Vortex applies, which may skip zones of the file; None without one."""
        if self._skipping is None or self.kind is None:
            return None
        by_name = {selected.name: selected for selected in self.question.columns}
        return pushed_filter(self._skipping, by_name, self.column, self.kind)

    # -- the result

    def tables(self, bytes_read: list[int]) -> Iterator[pa.Table]:
        """Yield the rows of the file that match the filter, and add the bytes of their columns to a counter."""
        expr = vortex().expr
        pieces = {
            name: expr.column(part) if isinstance(part, str) else part.expression(self.column)
            for name, part in self.parts.items()
        }

        def numbered_batches() -> Iterator[tuple[int, pa.RecordBatch]]:
            """Yield the batches that have rows, each with the number of its first row."""
            start = 0
            for batch in self.file.batches(expr.pack(pieces), self.filter(), self.row_ranges):
                bytes_read[0] += batch.nbytes
                if batch.num_rows:
                    yield start, batch
                start += batch.num_rows

        yield from in_order(self._result, numbered_batches(), thread_count(self.threads))

    def _result(self, rows: tuple[int, pa.RecordBatch]) -> pa.Table:
        start, batch = rows
        names = {part: name for name, part in self.parts.items()}
        by_column: dict[str, pa.StructArray] = {}
        columns = {}
        for selected in self.question.columns:
            part = self._parts_of_columns[selected.name]
            name = names[part]
            if isinstance(part, str) or selected.path is None:
                columns[selected.name] = _ordinary_column(batch.column(name), selected)
                continue
            if name not in by_column:
                # No row of a file with JSON text is skipped, so that the number of the row is right.
                with json_errors(str(self.column), self.file.path, start=start):
                    by_column[name] = part.column(batch.column(name))
            target = VARIANT_STORAGE if selected.type is None else selected.type
            path = VariantPath() if isinstance(part, TypedPart) else selected.path
            columns[selected.name] = extract_path(
                by_column[name],
                path,
                target,
                safe=False,
                zone=self.zone,
                lossless="numbers" if selected.exact else not self.cast,
            )
        outputs = self.question.selection
        schema = pa.schema([selected.field for selected in outputs])
        table = pa.table([columns[selected.name] for selected in outputs], schema=schema)
        if self.question.predicate is None:
            return table
        keep = evaluate(self.question.predicate, columns)
        return table.filter(pc.fill_null(keep, False))


def _ordinary_column(array: pa.Array, selected: Selected) -> pa.Array:
    """Return a column that is selected by its name."""
    if selected.type is not None:
        return in_form(array, without_views(array.type, large=False))
    return plain_storage(unstored_rows(array))


def scan(
    path: Any,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    skipping: bool = True,
    cast: bool = True,
    zone: str = "UTC",
    threads: int | None = None,
) -> VortexScan:
    """Plan a query by path over Vortex files; the result equals that of `Table.scan` over the same rows.

    See `Table.scan`.
    """
    thread_count(threads)
    question = Question.of(columns, where)
    files = []
    for file in open_files(path):
        bound = question.bound(_with_types(file, question.columns), zone)
        has_path = any(selected.path is not None for selected in bound.columns)
        name = choose_path_column(file, column) if has_path else None
        files.append(FileScan(file, bound, name, skipping, cast, zone, threads))
    first = files[0].question
    return VortexScan(first.selection, first.hidden, first.predicate, tuple(files))


def _with_types(file: OpenVortexFile, selection: tuple[Selected, ...]) -> tuple[Selected, ...]:
    """Return the selection with the types of ordinary columns in the file."""
    typed = []
    for selected in selection:
        if selected.path is None:
            if selected.column not in file.schema.names:
                raise VariantFileError(
                    f"column {selected.column!r} does not exist: the columns are {', '.join(file.schema.names)}, and a "
                    "path starts with $",
                    file=file.path,
                    reason="no-such-column",
                )
            stored = file.schema.field(selected.column).type
            kind = None if selected.column in file.layouts else with_fields(stored, tagged_inside)
            selected = Selected(selected.name, None, kind, selected.column)
        typed.append(selected)
    return tuple(typed)
