"""`scan`: read typed columns by path from a Vortex file.

Owns the public operation and the ranges of rows that it skips. `pushdown` finds the part of a filter that Vortex may
apply, `parts` the parts of a column that a path needs, `encodings.element_of` extracts the values, `query.predicate`
owns the meaning of filters, and `range_statistics` the statistics of a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import without_views
from parquet_variant.encoding.cast.forms import in_form
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.reading.read_table import plain_storage
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.files.vortex.files.library import OpenVortexFile, open_file, vortex
from parquet_variant.files.vortex.files.reader import choose_path_column
from parquet_variant.files.vortex.files.storing import StoredLayout, unstored_rows
from parquet_variant.files.vortex.files.trailer import ColumnNote
from parquet_variant.files.vortex.logical.encodings import element_of
from parquet_variant.files.vortex.logical.json_columns import json_errors
from parquet_variant.files.vortex.logical.range_statistics import RangeStatistics
from parquet_variant.files.vortex.scanning.parts import JsonPart, NestedPart, Part, TypedPart, part_of
from parquet_variant.files.vortex.scanning.pushdown import pushed_filter
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.query.predicate import Predicate, evaluate
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.query.question import PlannedQuery, Question
from parquet_variant.query.selection import Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property

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
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    @property
    def bytes_read(self) -> int:
        """The bytes of the columns, in Arrow's representation, that this scan has read so far."""
        return self._bytes_read[0]

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
        """The storage type of the Variant column in the file; None for JSON text, and for a Variant in a struct."""
        return self.file.schema.field(self.column).type if self.column in self.file.layouts else None

    @cached_property
    def parts(self) -> dict[str, Part | str]:
        """The parts of the Variant column and the ordinary columns to read, by short names."""
        parts = dict.fromkeys(self._parts_of_columns.values())
        return {f"p{number}": part for number, part in enumerate(parts)}

    @cached_property
    def _parts_of_columns(self) -> dict[str, Part | str]:
        return {selected.name: self._part(selected) for selected in self.every_column}

    def _part(self, selected: Selected) -> Part | str:
        if selected.path is None:
            assert selected.column is not None
            return selected.column
        if self.kind is None:
            place = self.file.nested_variants.get(str(self.column))
            return JsonPart() if place is None else NestedPart(place)
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
        children = not any(
            part in self.file.layouts if isinstance(part, str) else part.is_whole for part in self.parts.values()
        )
        batches = self.file.batches(expr.pack(pieces), self._filter(), self.row_ranges, children=children)
        yield from in_order(self._result, _with_first_rows(batches), thread_count(self.threads))

    def _result(self, rows: tuple[int, pa.RecordBatch]) -> pa.Table:
        start, batch = rows
        self._bytes_read[0] += batch.nbytes
        names = {part: name for name, part in self.parts.items()}
        by_column: dict[str, pa.StructArray | ColumnarVariant] = {}
        columns = {}
        for selected in self.every_column:
            part = self._parts_of_columns[selected.name]
            name = names[part]
            if isinstance(part, str) or selected.path is None:
                columns[selected.name] = _ordinary_column(batch.column(name), selected)
                continue
            if name not in by_column:
                # No row of a file with JSON text is skipped, so that the number of the row is right.
                with json_errors(str(self.column), self.path, start=start):
                    by_column[name] = part.column(batch.column(name))
            target = VARIANT_STORAGE if selected.type is None else selected.type
            path = part.path_within(selected.path)
            columns[selected.name] = element_of(by_column[name], path, target, cast=self.cast, zone=self.zone)
        table = pa.table([columns[selected.name] for selected in self.selection], schema=self.schema)
        if self.predicate is None:
            return table
        keep = evaluate(self.predicate, columns)
        return table.filter(pc.fill_null(keep, False))


def _with_first_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches that have rows, each with the number of its first row."""
    start = 0
    for batch in batches:
        if batch.num_rows:
            yield start, batch
        start += batch.num_rows


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
        The Variant column, if there are several. It may be inside of structs (``s.v``), or a column of the type
        ``vortex.json``, whose texts are parsed.
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
    name = choose_path_column(file, column) if has_path else None
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
