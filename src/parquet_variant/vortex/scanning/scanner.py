"""`scan` and `scan_files`: read typed columns by path from Vortex files.

Owns the public operations, the ranges of rows that they skip, and the part of a filter that Vortex may apply. That part
may keep too many rows, never too few, because `scan` applies the whole filter again. `parts` knows which parts of a
column a path needs, `encodings.element_of` extracts the values, `query.predicate` owns the meaning of filters, and
`range_statistics` the statistics of a range.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import without_views
from parquet_variant.array.parts import empty_table
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantFileError
from parquet_variant.fork_safety import cached_property
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.reading.read_table import plain_storage
from parquet_variant.parquet.report_text import Report
from parquet_variant.query.predicate import And, Compare, Or, Predicate, evaluate
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.query.question import PlannedQuery, Question
from parquet_variant.query.selection import Selected
from parquet_variant.schema.path_steps import ArrowGroup, Step, walk_path
from parquet_variant.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.vortex.files.library import OpenVortexFile, open_file, vortex
from parquet_variant.vortex.files.paths import some_vortex_files
from parquet_variant.vortex.files.reader import choose_variant
from parquet_variant.vortex.files.storing import StoredLayout, unstored_rows
from parquet_variant.vortex.files.trailer import ColumnNote
from parquet_variant.vortex.logical.encodings import element_of
from parquet_variant.vortex.logical.range_statistics import RangeStatistics
from parquet_variant.vortex.scanning.parts import ColumnarPart, Part, TypedPart, group_of, part_of

_EMPTY_NOTE = ColumnNote()
# Types of columns inside Vortex's own type that its `variant_get` returns without a cast.
_UNCAST_TYPES = (pa.int64(), pa.float64(), pa.string(), pa.bool_())


@dataclass(frozen=True)
class VortexScan(PlannedQuery):
    """A planned query over a Vortex file.

    Parameters
    ----------
    file
        The file.
    selection, hidden
        Output columns, and columns that only the filter reads.
    predicate
        The bound filter; None for all rows.
    column
        The Variant column; None if no path is selected.
    pushdown
        If true, rows may be skipped before they are read; the result is the same without.
    cast
        If true, values of other types are cast.
    zone
        The session time zone of casts.
    threads
        Number of batches processed at the same time; by default one per CPU that this process may use.
    """

    file: OpenVortexFile
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]
    predicate: Predicate | None
    column: str | None
    pushdown: bool
    cast: bool
    zone: str
    threads: int | None = None

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def layout(self) -> StoredLayout | None:
        """Layout of the Variant column; None if no path is selected, or the column is not a Variant."""
        return None if self.column is None else self.file.layouts.get(self.column)

    @property
    def note(self) -> ColumnNote:
        """The writer's note on the Variant column."""
        return _EMPTY_NOTE if self.column is None else self.file.notes.get(self.column, _EMPTY_NOTE)

    @property
    def kind(self) -> pa.StructType | None:
        """The storage type of the Variant column in the file."""
        return None if self.column is None else self.file.schema.field(self.column).type

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """The parts of the Variant column and the ordinary columns to read, by short names."""
        parts: dict[Part | str, None] = {}
        for selected in self.every_column:
            parts[self._part(selected)] = None
        return {f"p{number}": part for number, part in enumerate(parts)}

    def _part(self, selected: Selected) -> Part | str:
        if selected.path is None:
            assert selected.column is not None
            return selected.column
        assert self.kind is not None
        node = None if self.note.schema is None else self.note.schema.get(selected.path)
        # For a Variant result the typed column is not enough: its null may be Variant null, a missing field or an
        # absent row.
        may_be_typed = node is not None and node.type in _UNCAST_TYPES and selected.path.segments
        if node is not None and may_be_typed and selected.type is not None and self._is_typed(selected):
            return TypedPart(tuple(map(str, selected.path.segments)), node.type)
        return part_of(self.kind, selected.path, selected.type)

    def _is_typed(self, selected: Selected) -> bool:
        """Return True if no value at the path is in bytes, in any range that is read."""
        statistics = self.note.statistics
        if statistics is None or selected.path is None or selected.path not in statistics.paths:
            return False
        unknown = statistics.paths[selected.path].unknown
        return not any(unknown[number] for number in self.range_numbers)

    # -- skipping

    @property
    def _skipping(self) -> Predicate | None:
        """The filter by which rows may be skipped."""
        return self.predicate if self.pushdown else None

    @property
    def statistics(self) -> RangeStatistics | None:
        """Statistics of ranges of rows; None without statistics."""
        return self.note.statistics

    @cached_property
    def range_numbers(self) -> list[int]:
        """The ranges in which a row can match; without statistics the file is one range."""
        ranges = self.statistics
        if ranges is None:
            return [0]
        numbers = list(range(ranges.count))
        predicate = self._skipping
        if predicate is None:
            return numbers
        by_name = {selected.name: selected for selected in self.every_column}

        def statistics_in(number: int, name: str) -> ColumnStatistics:
            selected = by_name[name]
            if selected.path is None:
                return UNKNOWN
            return ranges.of_path(selected.path, selected.type, number, cast=self.cast)

        return [number for number in numbers if may_match(predicate, partial(statistics_in, number))]

    @property
    def row_ranges(self) -> list[tuple[int, int]] | None:
        """First row and the row after the last of each run of ranges that is read; None for all rows."""
        statistics = None if self._skipping is None else self.statistics
        if statistics is None or len(self.range_numbers) == statistics.count:
            return None
        runs: list[tuple[int, int]] = []
        for start, stop in map(statistics.bounds, self.range_numbers):
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, stop))
        return runs

    @property
    def filters_in_file(self) -> bool:
        """True if Vortex applies a part of the filter, and so may skip zones of the file."""
        return self._filter() is not None

    def _filter(self) -> Any:
        if self._skipping is None or self.kind is None:
            return None
        by_name = {selected.name: selected for selected in self.every_column}
        return pushed_filter(self._skipping, by_name, self.column, self.kind)

    # -- the result

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in tables of some thousand rows.

        Raises
        ------
        VariantFileError
            If the file cannot be read.
        MalformedVariantError
            If bytes that are read are malformed.
        """
        expr = vortex().expr
        pieces = {
            name: expr.column(part) if isinstance(part, str) else part.expression(self.column)
            for name, part in self.parts.items()
        }
        batches = self.file.batches(expr.pack(pieces), self._filter(), self.row_ranges)
        batches = (batch for batch in batches if batch.num_rows)
        yield from in_order(self._result, batches, thread_count(self.threads))

    def _result(self, batch: pa.RecordBatch) -> pa.Table:
        names = {part: name for name, part in self.parts.items()}
        by_column: dict[str, pa.StructArray | ColumnarVariant] = {}
        columns = {}
        for selected in self.every_column:
            part = self._part(selected)
            name = names[part]
            if isinstance(part, str) or selected.path is None:
                columns[selected.name] = _ordinary_column(batch.column(name), selected)
                continue
            if name not in by_column:
                by_column[name] = part.column(batch.column(name))
            target = VARIANT_STORAGE if selected.type is None else selected.type
            path = part.path_within(selected.path)
            columns[selected.name] = element_of(by_column[name], path, target, cast=self.cast, zone=self.zone)
        table = pa.table([columns[selected.name] for selected in self.selection], schema=self.schema)
        if self.predicate is None:
            return table
        keep = evaluate(self.predicate, columns)
        return table.filter(pc.fill_null(keep, False))


def _ordinary_column(array: pa.Array, selected: Selected) -> pa.Array:
    """Return a column that is selected by its name."""
    if selected.type is not None:
        return array.cast(without_views(array.type, large=False))
    return plain_storage(unstored_rows(array))


def scan(
    path: Any,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    pushdown: bool = True,
    cast: bool = True,
    zone: str = "UTC",
    threads: int | None = None,
) -> VortexScan:
    """Plan a query by path over a Vortex file; the result equals that of `pv.parquet.scan` over the same rows.

    Parameters
    ----------
    path
        The file.
    columns
        Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of an
        ordinary column of the file.
    where
        A filter: text such as ``"mag > 5 and place like 'x%'"``; tuples such as ``[("mag", ">", 5)]``; or a predicate.
    column
        The Variant column, if there are several.
    pushdown
        If true, the filter may skip rows before they are read.
    cast
        If true, values of other types are cast as in Spark; otherwise they are null, as in `get_variant_element` and
        the RFC.
    zone
        The session time zone of casts.
    threads
        Number of batches processed at the same time; by default one per CPU that this process may use.

    Raises
    ------
    VariantFileError
        If the file or a column does not exist.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type is invalid.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"mag": 5.5}', '{"mag": 1}']))
    ...     scan(f"{folder}/a.vortex", {"mag": "$.mag:double"}, "mag > 2").to_table().to_pydict()
    {'mag': [5.5]}
    """
    thread_count(threads)
    question = Question.of(columns, where)
    file = open_file(path)
    bound = question.bound(_with_types(file, question.columns), zone)
    has_path = any(selected.path is not None for selected in bound.columns)
    name = choose_variant(file, column) if has_path else None
    return VortexScan(file, bound.selection, bound.hidden, bound.predicate, name, pushdown, cast, zone, threads)


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
            kind = None if selected.column in file.layouts else file.schema.field(selected.column).type
            selected = Selected(selected.name, None, kind, selected.column)
        typed.append(selected)
    return tuple(typed)


_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 differently: comparisons of doubles that depend on this order are not pushed down.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, by_name: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """Return the part of a bound filter that Vortex may apply, as an expression; None if there is no such part."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        pushed = [part for part in parts if part is not None]
        return reduce(expr.and_, pushed) if pushed else None
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        return None if any(part is None for part in parts) else reduce(expr.or_, parts)
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, by_name[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    """Return the expression for rows whose typed value satisfies the comparison, or whose value is not typed."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = group_of(storage, selected.path, selected.type)
    if isinstance(part, ColumnarPart):
        typed, kind, other_columns = _columnar_columns(part, selected, storage)
    else:
        typed, kind, other_columns = "typed_value", _typed_value(selected, storage), ["value"] if part.has_value else []
    literal = None if kind is None else _literal(compare, kind, selected.type)
    if literal is None:
        return None
    group = part.group(column)
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item(typed, group), literal)
    return reduce(expr.or_, [expr.is_not_null(expr.get_item(name, group)) for name in other_columns], comparison)


def _typed_value(selected: Selected, storage: pa.StructType) -> pa.DataType | None:
    assert selected.path is not None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    return None if end.step is not Step.FOUND or end.is_repeated or typed is None else typed.type


def _columnar_columns(
    part: ColumnarPart, selected: Selected, storage: pa.StructType
) -> tuple[str, pa.DataType | None, list[str]]:
    """Return the column of the requested type, its type, and the other columns that may hold values."""
    assert selected.path is not None
    kinds = {field.name: field.type for field in part.kind(storage) if field.name in part.names}
    family = "integer" if pa.types.is_integer(selected.type) else str(selected.type).removeprefix("large_")
    other_columns = [name for name in kinds if name not in ("discriminator", family)]
    if part.path_within(selected.path).segments or "array" in other_columns:  # lists are never null
        return family, None, []
    if "object" in other_columns:  # objects are never null
        return family, None, []
    return family, kinds.get(family), other_columns


def _literal(compare: Compare, stored: pa.DataType, requested: pa.DataType) -> Any | None:
    """Return the literal in the type of the stored column; None if the comparison could differ in that type."""
    library = vortex()
    value = compare.literal.as_py()
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(requested):
        bits = stored.bit_width
        if requested.bit_width < bits or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
        return library.expr.literal(library.int_(bits), value)
    if types.is_string(stored) and (types.is_string(requested) or types.is_large_string(requested)):
        return library.expr.literal(library.utf8(), value)
    if (
        types.is_float64(stored)
        and types.is_float64(requested)
        and compare.op in _FLOAT_OPS
        and value == value
        and value
    ):
        return library.expr.literal(library.float_(64), value)
    return None


@dataclass(frozen=True, slots=True)
class VortexFilesReport(Report):
    """How much of the files a query reads.

    Parameters
    ----------
    files, rows, bytes
        Number of files, rows and bytes in total.
    columns
        Columns read from each file: ordinary columns, and parts of the Variant column.
    filters_in_file
        True if Vortex applies a part of the filter, and so may skip zones of the files.
    layouts
        Layouts of the Variant columns.
    rows_read
        Number of rows in the ranges that statistics do not exclude.
    ranges, ranges_read
        Number of row ranges with statistics of shredded children, and of those that are read.
    """

    files: int
    rows: int
    bytes: int
    columns: tuple[str, ...]
    filters_in_file: bool
    layouts: tuple[str, ...]
    rows_read: int
    ranges: int
    ranges_read: int

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary of JSON values."""
        return {
            "files_total": self.files, "rows_total": self.rows, "bytes_total": self.bytes,
            "columns": list(self.columns), "filters_in_file": self.filters_in_file, "layouts": list(self.layouts),
            "rows_read": self.rows_read, "ranges_total": self.ranges, "ranges_read": self.ranges_read,
        }  # fmt: skip

    def __str__(self) -> str:
        columns = "\n".join(f"  {name}" for name in self.columns)
        filtered = "applied by Vortex, which may skip zones" if self.filters_in_file else "not applied by Vortex"
        ranges = f"{self.ranges_read:,} of {self.ranges:,} ranges" if self.ranges else "no range statistics"
        return (
            f"files       {self.files:,} Vortex{', ' if self.layouts else ''}{', '.join(self.layouts)}\n"
            f"rows        {self.rows_read:,} of {self.rows:,}: {ranges}\n"
            f"bytes       {self.bytes:,} in the files\n"
            f"columns     {len(self.columns)}\n{columns}\nfilter      {filtered}"
        )


@dataclass(frozen=True)
class VortexFilesScan:
    """A planned query over files; see `scan_files`."""

    scans: tuple[VortexScan, ...]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self.scans[0].schema

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result, file by file."""
        for file_scan in self.scans:
            for table in file_scan.batches():
                if len(table):
                    yield self._in_schema(file_scan, table)

    def to_table(self) -> pa.Table:
        """Return the whole result."""
        return pa.concat_tables([empty_table(self.schema), *self.batches()])

    def explain(self) -> VortexFilesReport:
        """Report how much of the files would be read."""
        rows = [len(file_scan.file) for file_scan in self.scans]
        columns = {_name(file_scan, part) for file_scan in self.scans for part in file_scan.parts.values()}
        with_ranges = [(scanned, scanned.statistics.count) for scanned in self.scans if scanned.statistics is not None]
        runs = [file_scan.row_ranges for file_scan in self.scans]
        return VortexFilesReport(
            len(rows),
            sum(rows),
            sum(Path(file_scan.path).stat().st_size for file_scan in self.scans),
            tuple(sorted(columns)),
            any(file_scan.filters_in_file for file_scan in self.scans),
            tuple(sorted({file_scan.layout for file_scan in self.scans if file_scan.layout is not None})),
            sum(
                count if run is None else sum(stop - start for start, stop in run)
                for count, run in zip(rows, runs, strict=True)
            ),
            sum(count for _, count in with_ranges),
            sum(len(scanned.range_numbers) for scanned, _ in with_ranges),
        )

    def _in_schema(self, file_scan: VortexScan, table: pa.Table) -> pa.Table:
        if table.schema.equals(self.schema):
            return table
        try:
            return table.cast(self.schema)
        except (pa.ArrowException, ValueError) as error:
            raise VariantFileError(
                f"the columns differ from those of {self.scans[0].path}: {error}",
                file=str(file_scan.path),
                reason="files-differ",
            ) from None


def _name(file_scan: VortexScan, part: Part | str) -> str:
    return part if isinstance(part, str) else ".".join((str(file_scan.column), *part.levels))


def scan_files(
    path: str | os.PathLike[str], columns: Mapping[str, Any] | Sequence[str], where: Any = None, **options: Any
) -> VortexFilesScan:
    """Plan a query by path over the Vortex files of a directory or glob, as `scan` does for one file.

    Parameters
    ----------
    path
        A file, directory or glob, as for `vortex_files`.
    columns, where, **options
        As for `scan`.

    Raises
    ------
    VariantFileError
        If no file is found, and as for `scan`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"n": 1}']))
    ...     _ = pv.vortex.write(f"{folder}/b.vortex", pv.parse_json(['{"n": 2}']), schema="n bigint")
    ...     scan_files(folder, {"n": "$.n:int"}).to_table().to_pydict()
    {'n': [1, 2]}
    """
    return VortexFilesScan(tuple(scan(file, columns, where, **options) for file in some_vortex_files(path)))
