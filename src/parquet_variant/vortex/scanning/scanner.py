"""`scan` and `scan_files`: typed columns by path from Vortex files, reading only what the paths and the filter need.

Owns the public operations, which ranges of rows they leave out, and which part of a filter Vortex may apply itself: it
may keep too many rows, never too few, since `scan` applies the whole filter again. Leaves which parts of a stored
column a path needs to `parts`, the values there to `encodings.element_of`, the meaning of filters to `query.predicate`,
and what is known of a range to `range_statistics`.
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
from parquet_variant.vortex.files.library import OpenFile, open_file, vortex
from parquet_variant.vortex.files.paths import some_vortex_files
from parquet_variant.vortex.files.reader import choose_variant
from parquet_variant.vortex.files.storing import StoredLayout, unstored_rows
from parquet_variant.vortex.files.trailer import ColumnNote
from parquet_variant.vortex.logical.encodings import element_of
from parquet_variant.vortex.logical.range_statistics import RangeStatistics
from parquet_variant.vortex.scanning.parts import ColumnarPart, Part, TypedPart, group_of, part_of

# Typed columns inside of Vortex's own type that `variant_get` gives as they are.
_NOTHING = ColumnNote()
_GIVEN_TYPED = (pa.int64(), pa.float64(), pa.string(), pa.bool_())


@dataclass(frozen=True)
class VortexScan(PlannedQuery):
    """A planned query.

    Parameters
    ----------
    file
        The file.
    selection, hidden
        Output columns, and those that only the filter looks at.
    predicate
        The filter, bound; None for all rows.
    column
        The Variant column; None if no path is asked for.
    pushdown
        Whether rows may be left out before they are read; the answer is the same without.
    cast
        Whether values of other types are cast.
    zone
        The session time zone of casts.
    threads
        How many batches are worked on at the same time; by default one for each CPU that this process may use.
    """

    file: OpenFile
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
        """Where the file is."""
        return self.file.path

    @property
    def layout(self) -> StoredLayout | None:
        """How the Variant column lies in the file; None if no path is asked for, or it is no Variant."""
        return None if self.column is None else self.file.layouts.get(self.column)

    @property
    def note(self) -> ColumnNote:
        """What its writer noted of it."""
        return _NOTHING if self.column is None else self.file.notes.get(self.column, _NOTHING)

    @property
    def kind(self) -> pa.StructType | None:
        """Its storage type in the file."""
        return None if self.column is None else self.file.schema.field(self.column).type

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """What is read, by a short name each: parts of the Variant column, and ordinary columns."""
        parts: dict[Part | str, None] = {}
        for each in self.every_column:
            parts[self._wanted(each)] = None
        return {f"p{number}": part for number, part in enumerate(parts)}

    def _wanted(self, each: Selected) -> Part | str:
        if each.path is None:
            assert each.column is not None
            return each.column
        assert self.kind is not None
        typed = None if self.note.schema is None else self.note.schema.get(each.path)
        # As a Variant the column does not tell: a null there may be Variant null, a missing field or an absent row.
        may_be_typed = typed is not None and typed.type in _GIVEN_TYPED and each.path.segments and each.type is not None
        if typed is not None and may_be_typed and self._is_typed(each):
            return TypedPart(tuple(map(str, each.path.segments)), typed.type)
        return part_of(self.kind, each.path, each.type)

    def _is_typed(self, each: Selected) -> bool:
        """Whether nothing at a path is in bytes, in any range that is read."""
        statistics = self.note.statistics
        known = None if statistics is None or each.path is None else statistics.paths.get(each.path)
        return known is not None and not any(known.unknown[number] for number in self.range_numbers)

    # -- what is left out

    @property
    def _skipping(self) -> Predicate | None:
        """The filter by which rows may be left out."""
        return self.predicate if self.pushdown else None

    @property
    def statistics(self) -> RangeStatistics | None:
        """What is known of ranges of rows; None if nothing is."""
        return self.note.statistics

    @cached_property
    def range_numbers(self) -> list[int]:
        """The ranges in which a row can match; the file is one range where nothing is known."""
        ranges = self.statistics
        if ranges is None:
            return [0]
        numbers = list(range(ranges.count))
        predicate = self._skipping
        if predicate is None:
            return numbers
        named = {each.name: each for each in self.every_column}

        def column_in(number: int, name: str) -> ColumnStatistics:
            each = named[name]
            return UNKNOWN if each.path is None else ranges.of_path(each.path, each.type, number, cast=self.cast)

        return [number for number in numbers if may_match(predicate, partial(column_in, number))]

    @property
    def row_ranges(self) -> list[tuple[int, int]] | None:
        """First row and the row after the last of each run that is read; None for all rows."""
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
        """Whether Vortex applies a part of the filter, and so may skip zones of the file."""
        return self._filter() is not None

    def _filter(self) -> Any:
        if self._skipping is None or self.kind is None:
            return None
        named = {each.name: each for each in self.every_column}
        return pushed_filter(self._skipping, named, self.column, self.kind)

    # -- the answer

    def batches(self) -> Iterator[pa.Table]:
        """The answer, some thousand rows at a time.

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
        yield from in_order(self._answer, batches, thread_count(self.threads))

    def _answer(self, batch: pa.RecordBatch) -> pa.Table:
        names = {part: name for name, part in self.parts.items()}
        by_column: dict[str, pa.StructArray | ColumnarVariant] = {}
        columns = {}
        for each in self.every_column:
            part = self._wanted(each)
            name = names[part]
            if isinstance(part, str) or each.path is None:
                columns[each.name] = _whole(batch.column(name), each)
                continue
            if name not in by_column:
                by_column[name] = part.column(batch.column(name))
            target = VARIANT_STORAGE if each.type is None else each.type
            place = part.below(each.path)
            columns[each.name] = element_of(by_column[name], place, target, cast=self.cast, zone=self.zone)
        table = pa.table([columns[each.name] for each in self.selection], schema=self.schema)
        if self.predicate is None:
            return table
        keep = evaluate(self.predicate, columns)
        return table.filter(pc.fill_null(keep, False))


def _whole(array: pa.Array, each: Selected) -> pa.Array:
    """A column that is given as it is."""
    if each.type is not None:
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
    """Plan a query by path over a Vortex file; the answer is that of `pv.parquet.scan` over the same rows.

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
        Whether rows may be skipped by the filter.
    cast
        Whether values of other types are cast, as Spark casts; otherwise they are null, as `get_variant_element` and
        the RFC have it.
    zone
        The session time zone of casts.
    threads
        How many batches are worked on at the same time; by default one for each CPU that this process may use.

    Raises
    ------
    VariantFileError
        If the file or a column is not there.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type cannot be read.

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
    asked = question.bound(_with_types(file, question.columns), zone)
    name = choose_variant(file, column) if any(each.path is not None for each in asked.columns) else None
    return VortexScan(file, asked.selection, asked.hidden, asked.predicate, name, pushdown, cast, zone, threads)


def _with_types(file: OpenFile, selection: tuple[Selected, ...]) -> tuple[Selected, ...]:
    """The selection with the types that ordinary columns have in the file."""
    typed = []
    for each in selection:
        if each.path is None:
            if each.column not in file.schema.names:
                raise VariantFileError(
                    f"there is no column {each.column!r} in {', '.join(file.schema.names)}; a path starts with $",
                    file=file.path,
                    reason="no-such-column",
                )
            kind = None if each.column in file.layouts else file.schema.field(each.column).type
            each = Selected(each.name, None, kind, each.column)
        typed.append(each)
    return tuple(typed)


_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 in its own way: of doubles only what cannot depend on that is pushed down.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, named: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """The part of a bound filter that Vortex may apply, as an expression; None if there is none."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        known = [part for part in parts if part is not None]
        return reduce(expr.and_, known) if known else None
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, named, column, storage) for part in predicate.parts]
        return None if any(part is None for part in parts) else reduce(expr.or_, parts)
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, named[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    """The rows of which the typed column compares so, and those that have a value elsewhere."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = group_of(storage, selected.path, selected.type)
    if isinstance(part, ColumnarPart):
        typed, kind, others = _columnar_columns(part, selected, storage)
    else:
        typed, kind, others = "typed_value", _typed_value(selected, storage), ["value"] if part.has_value else []
    literal = None if kind is None else _literal(compare, kind, selected.type)
    if literal is None:
        return None
    group = part.group(column)
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item(typed, group), literal)
    return reduce(expr.or_, [expr.is_not_null(expr.get_item(name, group)) for name in others], comparison)


def _typed_value(selected: Selected, storage: pa.StructType) -> pa.DataType | None:
    assert selected.path is not None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    return None if end.step is not Step.FOUND or end.is_repeated or typed is None else typed.type


def _columnar_columns(
    part: ColumnarPart, selected: Selected, storage: pa.StructType
) -> tuple[str, pa.DataType | None, list[str]]:
    """The column of the type that is asked for with its type, and the others that may have values."""
    assert selected.path is not None
    kinds = {field.name: field.type for field in part.kind(storage) if field.name in part.names}
    family = "integer" if pa.types.is_integer(selected.type) else str(selected.type).removeprefix("large_")
    others = [name for name in kinds if name not in ("discriminator", family)]
    if part.below(selected.path).segments or "array" in others:  # lists are never null
        return family, None, []
    if "object" in others:  # nor are objects
        return family, None, []
    return family, kinds.get(family), others


def _literal(compare: Compare, stored: pa.DataType, asked: pa.DataType) -> Any | None:
    """The literal in the type of the stored column; None if a comparison there could mean something else."""
    library = vortex()
    value = compare.literal.as_py()
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(asked):
        bits = stored.bit_width
        if asked.bit_width < bits or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
        return library.expr.literal(library.int_(bits), value)
    if types.is_string(stored) and (types.is_string(asked) or types.is_large_string(asked)):
        return library.expr.literal(library.utf8(), value)
    if types.is_float64(stored) and types.is_float64(asked) and compare.op in _FLOAT_OPS and value == value and value:
        return library.expr.literal(library.float_(64), value)
    return None


@dataclass(frozen=True, slots=True)
class VortexFilesReport(Report):
    """What a query reads, of how much.

    Parameters
    ----------
    files, rows, bytes
        In all.
    columns
        What is asked of each file: ordinary columns, and parts of the Variant column.
    filters_in_file
        Whether Vortex applies a part of the filter, and so may skip zones of the files.
    layouts
        How the Variant columns lie in the files.
    rows_read
        Rows of the ranges that statistics do not rule out.
    ranges, ranges_read
        Ranges of rows with statistics of shredded children, and those that are left.
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
        """The report for machines."""
        return {
            "files_total": self.files, "rows_total": self.rows, "bytes_total": self.bytes,
            "columns": list(self.columns), "filters_in_file": self.filters_in_file, "layouts": list(self.layouts),
            "rows_read": self.rows_read, "ranges_total": self.ranges, "ranges_read": self.ranges_read,
        }  # fmt: skip

    def __str__(self) -> str:
        columns = "\n".join(f"  {name}" for name in self.columns)
        filtered = "Vortex skips zones by it" if self.filters_in_file else "none that Vortex can apply"
        ranges = f"{self.ranges_read:,} of {self.ranges:,} ranges" if self.ranges else "no statistics of ranges"
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
        """The schema of the answer."""
        return self.scans[0].schema

    def batches(self) -> Iterator[pa.Table]:
        """The answer, file by file."""
        for each in self.scans:
            for table in each.batches():
                if len(table):
                    yield self._alike(each, table)

    def to_table(self) -> pa.Table:
        """The whole answer."""
        return pa.concat_tables([empty_table(self.schema), *self.batches()])

    def explain(self) -> VortexFilesReport:
        """What would be read, of how much."""
        rows = [len(each.file) for each in self.scans]
        columns = {_name(each, part) for each in self.scans for part in each.parts.values()}
        known = [(each, each.statistics.count) for each in self.scans if each.statistics is not None]
        runs = [each.row_ranges for each in self.scans]
        return VortexFilesReport(
            len(rows),
            sum(rows),
            sum(Path(each.path).stat().st_size for each in self.scans),
            tuple(sorted(columns)),
            any(each.filters_in_file for each in self.scans),
            tuple(sorted({each.layout for each in self.scans if each.layout is not None})),
            sum(
                count if run is None else sum(stop - start for start, stop in run)
                for count, run in zip(rows, runs, strict=True)
            ),
            sum(count for _, count in known),
            sum(len(each.range_numbers) for each, _ in known),
        )

    def _alike(self, each: VortexScan, table: pa.Table) -> pa.Table:
        if table.schema.equals(self.schema):
            return table
        try:
            return table.cast(self.schema)
        except (pa.ArrowException, ValueError) as error:
            raise VariantFileError(
                f"columns differ from those of {self.scans[0].path}: {error}",
                file=str(each.path),
                reason="files-differ",
            ) from None


def _name(each: VortexScan, part: Part | str) -> str:
    return part if isinstance(part, str) else ".".join((str(each.column), *part.levels))


def scan_files(
    path: str | os.PathLike[str], columns: Mapping[str, Any] | Sequence[str], where: Any = None, **options: Any
) -> VortexFilesScan:
    """Plan a query by path over the Vortex files of a directory or glob, as `scan` does over one.

    Parameters
    ----------
    path
        What `vortex_files` takes.
    columns, where, **options
        As for `scan`.

    Raises
    ------
    VariantFileError
        If there are no files, and as `scan`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"n": 1}']))
    ...     _ = pv.vortex.write(f"{folder}/b.vortex", pv.parse_json(['{"n": 2}']), schema="n bigint")
    ...     scan_files(folder, {"n": "$.n:int"}).to_table().to_pydict()
    {'n': [1, 2]}
    """
    return VortexFilesScan(tuple(scan(each, columns, where, **options) for each in some_vortex_files(path)))
