"""`scan`: read typed columns by path from Vortex files.

Owns the parts of a stored column that a path needs in each layout, with the Vortex expression that reads a part; the
part of a filter that Vortex may apply, which may keep too many rows, never too few, because the whole filter is
applied again; and the ranges of rows that are skipped. `query.predicate` owns the meaning of filters,
`ops.columns.extract_path` extracts values, and `range_statistics` has the statistics of a range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import import_variant, is_variant_field, with_metadata, without_views
from parquet_variant.arrays.parts import columns_of, known_versions, stored_columns
from parquet_variant.arrays.variant_array import plain_storage
from parquet_variant.files.parquet.reading.read import as_in_first_file
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.files.vortex.dtype import compress_json, json_errors, unstored_rows
from parquet_variant.files.vortex.library import OpenVortexFile, open_files, vortex
from parquet_variant.files.vortex.range_statistics import RangeStatistics
from parquet_variant.files.vortex.reader import choose_variant, files_with_variant, read_schema
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.layouts.layout import Step, next_group, walk_path
from parquet_variant.layouts.storages import ArrowGroup
from parquet_variant.ops.columns.extract_path import columns_of_path
from parquet_variant.query.predicate import And, Compare, In, Or, Predicate, evaluate, joined
from parquet_variant.query.predicate import columns_of as columns_of_filter
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.query.selection import PlannedQuery, Question, Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types.forms import in_form
from parquet_variant.types.path import VariantPath


class TypedPart(Record):
    """A typed field inside Vortex's own type, at whose path no value is in bytes."""

    column_name: str
    levels: tuple[str, ...]  # The path.
    type: pa.DataType  # The column's type.

    @property
    def expression(self) -> Any:
        """See `StoragePart.expression`."""
        expr = vortex().expr
        column = expr.column(self.column_name)
        return expr.variant_get(column, list(self.levels), vortex().DType.from_arrow(self.type))

    def column(self, array: pa.Array) -> pa.StructArray:
        """See `StoragePart.column`."""
        return pa.StructArray.from_arrays([array.cast(self.type)], names=["typed_value"])


class WholePart(Record):
    """A whole column: Variants, or JSON text, which is parsed to Variants.

    A Variant inside of structs is read with all fields: vortex-data 0.93 crashes if it reads the Variant alone.
    """

    place: tuple[str, ...]  # The column, and the fields inside of structs.
    is_json: bool = False
    levels: ClassVar[tuple[str, ...]] = ()

    @property
    def column_name(self) -> str:
        """The name of the column."""
        return ".".join(self.place)

    @property
    def expression(self) -> Any:
        """See `StoragePart.expression`."""
        return vortex().expr.column(self.place[0])

    def column(self, array: pa.Array) -> pa.StructArray:
        """See `StoragePart.column`."""
        if self.is_json:
            return compress_json(array, shred=False).storage
        for name in self.place[1:]:
            array = columns_of(array)[name]
        return import_variant(array)[0] if len(array) else array


class StoragePart(Record):
    """A part of a storage struct."""

    column_name: str
    levels: tuple[str, ...]  # The fields along the path.
    only_value: bool  # True if only ``value`` of the last group is needed.
    has_metadata: bool  # True if bytes are read.
    has_value: bool  # True if the last group has a ``value`` column.

    @property
    def group(self) -> Any:
        """The expression for the last group."""
        expr = vortex().expr
        group = expr.column(self.column_name)
        for name in self.levels:
            group = expr.get_item(name, expr.get_item("typed_value", group))
        return group

    @property
    def expression(self) -> Any:
        """The expression that reads the part: a struct."""
        expr, group = vortex().expr, self.group
        column = expr.column(self.column_name)
        pieces = {}
        if self.has_metadata:
            pieces["metadata"] = expr.get_item("metadata", column)
        if not self.only_value:
            pieces["group"] = group
        elif self.has_value:
            pieces["value"] = expr.get_item("value", group)
        if not pieces:  # no row has a value, but a column is needed to know the number of rows
            pieces["nothing"] = expr.is_null(column)
        return expr.pack(pieces)

    def column(self, array: pa.Array) -> pa.StructArray:
        """Return a storage struct for which `extract_path` returns the same as for the whole column."""
        read = stored_columns(array)
        group: dict[str, pa.Array] = {"value": read.get("value", pa.nulls(len(array), pa.binary()))}
        if not self.only_value:
            group = columns_of(read["group"])
        for name in reversed(self.levels):
            child = pa.StructArray.from_arrays(list(group.values()), names=list(group))
            group = {"typed_value": pa.StructArray.from_arrays([child], names=[name])}
        if "metadata" in read:
            group = {"metadata": read["metadata"], **group}
        storage = pa.StructArray.from_arrays(list(group.values()), names=list(group))
        kind = without_views(storage.type, large=False)
        return with_metadata(storage if kind == storage.type else storage.cast(kind))


def part_of(column: str, storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> StoragePart:
    """Return the part of a stored column that a path needs as a type (None for a Variant); without levels and with all
    of the last group, it is the whole column.

    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": typed})
    >>> part_of("v", storage, VariantPath.parse("$.a"), pa.int64())
    StoragePart(column_name='v', levels=('a',), only_value=False, has_metadata=False, has_value=False)
    >>> part_of("v", storage, VariantPath.parse("$.b"), pa.int64())
    StoragePart(column_name='v', levels=(), only_value=True, has_metadata=True, has_value=True)
    """
    group, levels, step = ArrowGroup(storage), list[str](), Step.FOUND
    if group.child("typed_value") is None:
        return StoragePart(column, (), False, True, True)
    for segment in path.segments:
        step, child = next_group(group, segment)
        if child is None or not isinstance(segment, str):
            break
        levels.append(segment)
        group = child
    only_value = step is not Step.FOUND
    if only_value:
        has_metadata = step is Step.NOT_SHREDDED
    elif target is None or pa.types.is_nested(target) or isinstance(target, pa.BaseExtensionType):
        has_metadata = True  # to encode the result
    else:  # for bytes along the path
        columns = columns_of_path(storage, path)
        has_metadata = len(columns) != 1 or columns[0][-1] == "value"
    return StoragePart(column, tuple(levels), only_value, has_metadata, group.child("value") is not None)


# A part of a Variant column that answers a path.
Part: TypeAlias = TypedPart | WholePart | StoragePart


_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
_MOST_VALUES = 64  # A longer IN list is not pushed down: vortex would evaluate an expression per value.
# Vortex orders NaN and -0.0 differently: comparisons of doubles that depend on this order are not pushed down.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, by_name: Mapping[str, Selected], storage_of: Callable[[Selected], pa.StructType | None]
) -> Any | None:
    """Return the part of a bound filter that Vortex may apply, as an expression; None if there is no such part.

    `storage_of`: returns the storage type of the Variant column of a path, None if Vortex cannot read parts of it.
    """
    expr = vortex().expr
    if isinstance(predicate, And | Or):
        parts = [pushed_filter(part, by_name, storage_of) for part in predicate.parts]
        pushed = [part for part in parts if part is not None]
        if isinstance(predicate, Or):
            return None if len(pushed) < len(parts) else reduce(expr.or_, pushed)
        return reduce(expr.and_, pushed) if pushed else None
    if isinstance(predicate, In) and len(predicate.values) <= _MOST_VALUES:
        equals = [Compare(predicate.column, "=", literal) for literal in predicate.values]
        return pushed_filter(joined(Or, equals), by_name, storage_of)
    if not isinstance(predicate, Compare):
        return None
    selected = by_name[predicate.column]
    storage = None if selected.path is None else storage_of(selected)
    return None if storage is None else _compare(predicate, selected, storage)


def _compare(compare: Compare, selected: Selected, storage: pa.StructType) -> Any | None:
    """Return the expression for rows whose typed value satisfies the comparison, or whose value is not typed."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = part_of(selected.stored_name, storage, selected.path, selected.type)
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    if end.step is not Step.FOUND or end.is_repeated or typed is None:
        return None
    # The literal in the type of the stored column, if the comparison cannot differ in that type.
    library, types, value = vortex(), pa.types, compare.literal.as_py()
    stored, requested, literal = typed.type, selected.type, None
    if types.is_signed_integer(stored) and types.is_signed_integer(requested):
        bits = stored.bit_width
        if requested.bit_width >= bits and -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            literal = expr.literal(library.int_(bits), value)
    elif types.is_string(stored) and (types.is_string(requested) or types.is_large_string(requested)):
        literal = expr.literal(library.utf8(), value)
    elif types.is_float64(stored) and types.is_float64(requested) and compare.op in _FLOAT_OPS:
        literal = expr.literal(library.float_(64), value) if value == value and value else None
    if literal is None:
        return None
    group = part.group
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item("typed_value", group), literal)
    return expr.or_(expr.is_not_null(expr.get_item("value", group)), comparison) if part.has_value else comparison


# Types of columns inside Vortex's own type that its `variant_get` returns without a cast.
_UNCAST_TYPES = (pa.int64(), pa.float64(), pa.string(), pa.bool_())


class VortexScan(PlannedQuery, Record):
    """A planned query over Vortex files; see `scan`."""

    question: Question  # The request, bound to the types of all files.
    files: tuple[FileScan, ...]  # The plan of each file.
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result, file by file, in tables of some thousand rows.

        Raises `SchemaError` (``files-differ``) if a column cannot have the type that the first file with it has.
        """
        for planned in self.files:
            yield from filter(len, planned.tables(self._bytes_read))

    def explain(self) -> VortexScanReport:
        """Report how much of the files would be read."""
        report, layouts = VortexScanReport(), set[str]()
        for planned in self.files:
            file, ranges, numbers = planned.file, planned.statistics, planned.range_numbers
            report.files_total += 1
            report.files_read += bool(numbers)
            report.row_groups_total += 1 if ranges is None else ranges.count
            report.row_groups_read += len(numbers)
            report.rows_total += len(file)
            bounds = [(0, len(file))] if ranges is None else map(ranges.bounds, numbers)
            report.rows_read += sum(stop - start for start, stop in bounds)
            report.bytes_total += file.size
            report.bytes_read += file.size if numbers else 0
            report.columns_total = max(report.columns_total, len(ArrowGroup(pa.struct(list(file.schema))).leaves()))
            for part in set(planned.parts.values()):
                name = part if isinstance(part, str) else ".".join((part.column_name, *part.levels))
                report.columns[name] = report.columns.get(name, 0) + len(numbers)
            layouts |= {file.layouts[column] for column in planned.variants if column in file.layouts}
            report.filters_in_file |= planned.filter() is not None
        report.layouts = tuple(sorted(layouts))
        return report


class VortexScanReport(ScanReport, frozen=False):
    """A `ScanReport` of Vortex files: row groups are ranges of rows with statistics, and bytes are those of files.

    Parameters
    ----------
    filters_in_file
        True if Vortex applies a part of the filter, and so may skip zones of the files.
    layouts
        Layouts of the Variant columns.
    """

    filters_in_file: bool = False
    layouts: tuple[str, ...] = ()

    def __str__(self) -> str:
        filtered = "applied by Vortex, which may skip zones" if self.filters_in_file else "not applied by Vortex"
        return f"{super().__str__()}\nlayouts     {', '.join(self.layouts) or 'none'}\nfilter      {filtered}"


class FileScan(Record):
    """The plan of one file."""

    file: OpenVortexFile
    question: Question  # Bound to the types of all files; a path names its Variant column here, "" if it is missing.
    skips_by: Predicate | None  # The filter by which rows may be skipped.
    cast: bool  # Whether values of other types are cast; without, they are null.
    zone: str
    threads: int | None

    @property
    def variants(self) -> list[str]:
        """The Variant columns of the paths that the file has, those of the filter first."""
        filtered = set() if self.skips_by is None else columns_of_filter(self.skips_by)
        columns = sorted(self.question.columns, key=lambda selected: selected.name not in filtered)
        names = (str(selected.column) for selected in columns if selected.path is not None)
        return list(filter(None, dict.fromkeys(names)))

    @property
    def statistics(self) -> RangeStatistics | None:
        """The statistics by ranges of rows of the first Variant column, by which rows are skipped; None without any."""
        return self.file.note(next(iter(self.variants), None)).statistics

    def storage_of(self, selected: Selected) -> pa.StructType | None:
        """Return the storage type of the Variant column of a path; None for JSON text, and a Variant in a struct."""
        column = selected.column
        return self.file.schema.field(column).type if column in self.file.layouts else None

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """The part of the Variant column, or the ordinary column, that each column needs, if the file has it."""
        parts = {selected.name: self._part(selected) for selected in self.question.columns}
        return {name: part for name, part in parts.items() if part is not None}

    def _part(self, selected: Selected) -> Part | str | None:
        if selected.path is None:
            return selected.column if selected.column in self.file.schema.names else None
        column, storage = selected.stored_name, self.storage_of(selected)
        if not column:
            return None
        if storage is None:
            place = self.file.nested_variants.get(column)
            return WholePart(place or (column,), is_json=place is None)
        note = self.file.note(column)
        typed, ranges = note.typed_schema, note.statistics
        node = None if typed is None else typed.get(selected.path)
        # For a Variant result the typed column is not enough: its null may be Variant null, a missing field or an
        # absent row. Nor is it if a value at the path is in bytes, in a range that is read.
        if (
            node is not None
            and node.type in _UNCAST_TYPES
            and selected.path.segments
            and selected.type is not None
            and ranges is not None
            and (of_path := ranges.paths.get(selected.path)) is not None
            and not any(
                of_path.field("in_bytes")[number].as_py()
                for number in (self.range_numbers if column == self.variants[0] else range(ranges.count))
            )
        ):
            return TypedPart(column, tuple(map(str, selected.path.segments)), node.type)
        part = part_of(column, storage, selected.path, selected.type)
        return part if part.levels or part.only_value else WholePart((column,))

    @cached_property
    def range_numbers(self) -> list[int]:
        """The ranges in which a row can match; without statistics the file is one range."""
        ranges, predicate = self.statistics, self.skips_by
        if ranges is None or predicate is None:
            return list(range(1 if ranges is None else ranges.count))
        by_name = {selected.name: selected for selected in self.question.columns}

        def statistics_in(number: int, name: str) -> ColumnStatistics:
            path, kind = by_name[name].path, by_name[name].type
            if path is None or by_name[name].column != self.variants[0]:
                return UNKNOWN
            return ranges.of_path(path, kind, number, cast=self.cast and not by_name[name].exact)

        return [number for number in range(ranges.count) if may_match(predicate, partial(statistics_in, number))]

    @property
    def row_ranges(self) -> list[tuple[int, int]] | None:
        """First row and the row after the last of each run of ranges that is read; None for all rows."""
        statistics = None if self.skips_by is None else self.statistics
        if statistics is None or len(self.range_numbers) == statistics.count:
            return None
        runs: list[tuple[int, int]] = []
        for start, stop in map(statistics.bounds, self.range_numbers):
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, stop))
        return runs

    def filter(self) -> Any:
        """Return the part of the filter that Vortex applies, which may skip zones of the file; None without one."""
        by_name = {selected.name: selected for selected in self.question.columns}
        return None if self.skips_by is None else pushed_filter(self.skips_by, by_name, self.storage_of)

    def tables(self, bytes_read: list[int]) -> Iterator[pa.Table]:
        """Yield the rows of the file that match the filter, and add the bytes of their columns to a counter."""
        expr = vortex().expr
        # A file without any of the columns has rows, of which its first column knows the number.
        parts = dict.fromkeys(self.parts.values()) or self.file.schema.names[:1]
        names: dict[Part | str, str] = {part: f"p{number}" for number, part in enumerate(parts)}
        pieces = {name: expr.column(part) if isinstance(part, str) else part.expression for part, name in names.items()}

        def numbered_batches() -> Iterator[tuple[int, pa.RecordBatch]]:
            """Yield the batches that have rows, each with the number of its first row."""
            start = 0
            for batch in self.file.batches(expr.pack(pieces), self.filter(), self.row_ranges):
                bytes_read[0] += batch.nbytes
                if batch.num_rows:
                    yield start, batch
                start += batch.num_rows

        yield from in_order(partial(self._result, names), numbered_batches(), thread_count(self.threads))

    def _result(self, names: dict[Part | str, str], rows: tuple[int, pa.RecordBatch]) -> pa.Table:
        start, batch = rows
        by_part: dict[Part, pa.StructArray] = {}
        columns = {}
        for selected in self.question.columns:
            part = self.parts.get(selected.name)
            if part is None:
                columns[selected.name] = pa.nulls(batch.num_rows, selected.field.type)
                continue
            array = batch.column(names[part])
            if isinstance(part, str) or selected.path is None:
                if selected.type is None:
                    columns[selected.name] = plain_storage(unstored_rows(array))
                else:
                    array = in_form(array, without_views(array.type, large=False))
                    columns[selected.name] = as_in_first_file(str(part), array, selected.type, self.file.path)
                continue
            if part not in by_part:
                with json_errors(part.column_name, self.file.path, start=start):
                    by_part[part] = known_versions(part.column(array))
            inner = replace(selected, path=VariantPath()) if isinstance(part, TypedPart) else selected
            columns[selected.name] = inner.values_in(by_part[part], lossless=not self.cast, zone=self.zone)
        schema = pa.schema([selected.field for selected in self.question.selection])
        table = pa.table([columns[name] for name in schema.names], schema=schema)
        if self.question.predicate is None:
            return table
        return table.filter(pc.fill_null(evaluate(self.question.predicate, columns), False))


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
    question, files = Question.of(columns, where), open_files(path)
    schema = read_schema(path, question.ordinary_names)
    types = {field.name: None if is_variant_field(field) else field.type for field in schema}
    bound = question.bound(types, zone, column)
    having = {s.column: files_with_variant(files, s.column) for s in bound.columns if s.path is not None}

    def in_file(selected: Selected, file: OpenVortexFile) -> Selected:
        """Return a column with the name of the Variant column of its path in a file."""
        name = selected.column
        if selected.path is None or file not in having[name]:
            return selected if selected.path is None else replace(selected, column="")
        # A Variant, which may be inside of structs (``s.v``), or JSON text if it is named or the only choice.
        if name in file.nested_variants and name not in file.schema.names:
            return selected
        has_choice = name is not None or not file.layouts
        return replace(selected, column=choose_variant(file, name, json=has_choice and bool(file.json_columns)))

    planned = []
    for file in files:
        in_this = tuple(in_file(selected, file) for selected in bound.columns)
        count = len(bound.selection)
        # No row of JSON text is skipped, so that errors have the numbers of rows.
        is_text = any(selected.path is not None and selected.column in file.json_columns for selected in in_this)
        skips_by = bound.predicate if skipping and not is_text else None
        of_file = Question(in_this[:count], in_this[count:], bound.predicate)
        planned.append(FileScan(file, of_file, skips_by, cast, zone, threads))
    return VortexScan(bound, tuple(planned))
