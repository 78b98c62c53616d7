"""Typed columns out of a table's Variants: files pruned by manifests, then row groups, then leaf columns.

Owns the query over a table: pruning, deletes, columns that files lack. One file is scanned by `parquet.scanning`, which
files to open is decided in `planning`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.fork_safety import cached_property
from parquet_variant.iceberg.catalogs.opening import CatalogOption
from parquet_variant.iceberg.metadata.schema import METADATA_COLUMNS
from parquet_variant.iceberg.metadata.table_schema import shared_field, shared_schema
from parquet_variant.iceberg.metadata.types import NestedField, StructType, children
from parquet_variant.iceberg.reading.columns import FileColumns, find
from parquet_variant.iceberg.reading.data_files import (
    METADATA_IDS,
    Mask,
    as_stored,
    check_readable,
    check_rows,
    data_file_errors,
    file_columns,
    live_rows,
    open_data_file,
    read_columns,
)
from parquet_variant.iceberg.reading.planning import PlannedFiles, plan_files
from parquet_variant.iceberg.reading.pruning import QueryColumns
from parquet_variant.iceberg.reading.scan_report import IcebergScanReport, added_reports
from parquet_variant.iceberg.reading.snapshot import Snapshot, snapshot
from parquet_variant.iceberg.reading.table_files import TableFile
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.parquet.reading.read_table import plain_field
from parquet_variant.parquet.scanning.scan import FOOTERS, FilePart, Scan, tables_of_parts
from parquet_variant.parquet.scanning.scan_report import ScanReport
from parquet_variant.query.predicate import And, Predicate, columns_of, evaluate
from parquet_variant.query.question import PlannedQuery, Question, short_description
from parquet_variant.query.selection import Selected
from parquet_variant.tables import schema as shared
from parquet_variant.tables.scan_columns import only_variant, typed_columns, variant_place


@dataclass(frozen=True, slots=True)
class IcebergScanTask:
    """Some files of a table; small enough to send to another process."""

    files: tuple[TableFile, ...]
    bytes: int  # Their size.


class _Part(NamedTuple):
    """Rows of a data file that are read at once."""

    file: OpenFile
    is_last: bool
    columns: FileColumns
    scan: Scan
    inside: FilePart | None  # The part of the file's scan; None if no column is read from the file.
    live: Mask | None
    remaining: Predicate | None  # The part of the filter that the file's scan does not answer.
    outside: Mapping[str, pa.Array]  # Columns that are not in the file, for all of its rows.


@dataclass(frozen=True, repr=False)
class IcebergScan(PlannedQuery):
    """A query over a table: made by `scan`, it reads nothing but metadata until asked for rows.

    Parameters
    ----------
    current
        The table at a snapshot.
    selection, hidden
        The output columns, and those that only the filter uses.
    predicate
        The bound filter, or None.
    place
        Place of the Variant column, as names from the outside in; None if no path is selected.
    skipping
        Whether statistics are used, of manifests and of files.
    zone
        The session time zone of casts.
    threads
        Number of row groups that are read at the same time (default: one per CPU).
    """

    current: Snapshot
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...] = ()
    predicate: Predicate | None = None
    place: tuple[str, ...] | None = None
    skipping: bool = True
    zone: str = "UTC"
    threads: int | None = None
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<IcebergScan {short_description(self.selection, self.predicate)} over {self.current!r}>"

    @property
    def bytes_read(self) -> int:
        """Compressed bytes of the column chunks that this scan has read so far, in this process."""
        return self._bytes_read[0]

    @cached_property
    def pruned(self) -> PlannedFiles:
        """The files that are left after pruning by manifests."""
        if not self.skipping or self.predicate is None:
            return plan_files(self.current)
        by_name = {selected.name: selected for selected in self.every_column}
        return plan_files(self.current, QueryColumns(self.predicate, by_name, self.place))

    def explain(self) -> IcebergScanReport:
        """Report what the scan would read; opens the footers of the files that are left."""
        inside = ScanReport()
        for file in self.pruned.files:
            with self._open(file) as opened:
                columns = file_columns(self.current, file, opened.reader.schema_arrow)
                inner, _, _ = self._inner(file, opened, columns)
            inside = added_reports(inside, inner.explain())
        planned = self.pruned
        return IcebergScanReport(
            self.current.snapshot_id, planned.total, planned.by_partition, planned.by_statistics, inside
        )

    def tasks(self, target_bytes: int = 128 << 20) -> list[IcebergScanTask]:
        """Return the work in pieces of about `target_bytes` each, whole files; pruned files are in none of them."""
        tasks: list[IcebergScanTask] = []
        part: list[TableFile] = []
        size = 0
        for file in self.pruned.files:
            if part and size + file.size > target_bytes:
                tasks.append(IcebergScanTask(tuple(part), size))
                part, size = [], 0
            part.append(file)
            size += file.size
        if part:
            tasks.append(IcebergScanTask(tuple(part), size))
        return tasks

    def read(self, task: IcebergScanTask) -> Iterator[pa.Table]:
        """Yield the rows of a task."""
        return self._read(task.files)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in parts, each with at least one row."""
        return self._read(self.pruned.files)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.selection, self.hidden, self.predicate, self.place, self.skipping, self.zone, self.threads
        return IcebergScan, (self.current.for_tasks(), *parts)

    # ---- one file

    def _open(self, file: TableFile) -> OpenFile:
        check_readable(file)
        filesystem, path = self.current.table.files.filesystem(file.path)
        with data_file_errors(file):
            opened = open_file(ParquetSource(path, filesystem, file.size))
            check_rows(file, opened.rows)
        return opened

    def _inner(
        self, file: TableFile, opened: OpenFile, columns: FileColumns
    ) -> tuple[Scan, Predicate | None, list[NestedField]]:
        """Return the scan of one file, the part of the filter that it leaves, and the fields that it does not read."""
        variants = {name for variant in find_variants(opened.schema) for name in (variant.name, variant.node.dotted)}
        place = self._place_in(columns)
        place = place if place in variants else None
        inside, outside = self._split(columns, opened, place)
        names = {selected.name for selected in inside}
        # Deleted rows and metadata columns are found by position: no row may be skipped before.
        positions = bool(file.deletes) or any(f.id in METADATA_IDS for f in outside)
        pushed, remaining = (None, self.predicate) if positions else _split_predicate(self.predicate, names)
        scan = Scan(
            sources=(opened.source,),
            selection=tuple(inside),
            predicate=pushed,
            column=place,
            skipping=self.skipping and not positions,
            zone=self.zone,
            threads=self.threads,
            _bytes_read=self._bytes_read,
        )
        return scan, remaining, outside

    def _split(
        self, columns: FileColumns, opened: OpenFile, place: str | None
    ) -> tuple[list[Selected], list[NestedField]]:
        """Return the columns to read from the file, by their names there, and the fields that it does not read."""
        inside: list[Selected] = []
        outside: list[NestedField] = []
        for selected in self.every_column:
            if selected.path is not None:
                if place is not None:
                    inside.append(selected)
                continue
            f = self._field(selected)
            index = -1 if f.id in METADATA_IDS else columns.index(f)
            if index < 0:
                outside.append(f)
                continue
            arrow = columns.arrow.field(index)
            if not children(f.type) and selected.type is not None and selected.type != pa.uuid():
                inside.append(replace(selected, column=arrow.name))
            else:
                complete = plain_field(arrow, opened)
                inside.append(replace(selected, column=complete.name, type=complete.type))
        return inside, outside

    def _field(self, selected: Selected) -> NestedField:
        name = selected.stored_name
        f = self.current.schema.get(name) or METADATA_COLUMNS.get(name)
        assert f is not None
        return f

    def _place_in(self, columns: FileColumns) -> str | None:
        """Return the Variant column's dotted name in a file; None if the file lacks it."""
        if self.place is None:
            return None
        names = []
        fields: pa.Schema | pa.DataType = columns.arrow
        mapping = columns.mapping
        for f in self.current.schema.fields_at(self.place):
            index = find(fields, f, mapping)
            if index < 0:
                return None
            arrow = fields.field(index)
            names.append(arrow.name)
            fields = arrow.type
            mapping = None if mapping is None else mapping.parts.get(arrow.name)
        return ".".join(names)

    def _read(self, files: Iterable[TableFile]) -> Iterator[pa.Table]:
        threads = thread_count(self.threads)
        at_once = 1 if threads == 1 or self.current.table.files.is_local else FOOTERS
        return tables_of_parts(in_order(self._parts, files, at_once), self._part, threads)

    def _parts(self, file: TableFile) -> tuple[OpenFile, list[_Part]]:
        """Return the parts of a file that are read at once."""
        opened = self._open(file)
        try:
            columns = file_columns(self.current, file, opened.reader.schema_arrow)
            scan, remaining, fields = self._inner(file, opened, columns)
            live, outside = self._whole_file(file, fields)
        except BaseException:
            opened.close()
            raise
        if not scan.selection:
            return opened, [_Part(opened, True, columns, scan, None, live, remaining, outside)]
        parts = scan.parts(opened)
        return opened, [_Part(opened, part.is_last, columns, scan, part, live, remaining, outside) for part in parts]

    def _whole_file(self, file: TableFile, fields: list[NestedField]) -> tuple[Mask | None, dict[str, pa.Array]]:
        """Return which rows of a file are live, and the columns that its scan does not read."""
        if not file.deletes and not fields:
            return None, {}
        with open_data_file(self.current, file) as parquet:
            live = live_rows(self.current, file, parquet)
            return live, self._outside(file, parquet, fields)

    def _outside(self, file: TableFile, parquet: pq.ParquetFile, fields: list[NestedField]) -> dict[str, pa.Array]:
        if not fields:
            return {}
        by_id = {f.id: f for f in fields}
        rows = read_columns(self.current, file, parquet, StructType(tuple(by_id.values())), as_stored)
        return {f.name: rows[f.name].combine_chunks() for f in by_id.values()}

    def _part(self, part: _Part) -> pa.Table | None:
        """Return the rows of a part."""
        if part.inside is None:
            rows, start = pa.table({"": pa.nulls(part.file.rows)}), 0
        else:
            read = part.scan.read_part(part.inside)
            if read is None:
                return None
            rows, start = read, part.inside.first_row
        table = self._completed(rows, part, start)
        if part.live is not None:
            table = table.filter(pa.array(part.live[start : start + len(rows)]))
        if part.remaining is not None:
            table = table.filter(evaluate(part.remaining, table))
        table = table.select([selected.name for selected in self.selection])
        return table.cast(self.schema) if table.schema != self.schema else table

    def _completed(self, rows: pa.Table, part: _Part, start: int) -> pa.Table:
        """Return the rows of a part with the columns that its file lacks.

        Rows may have been left out by the filter of the file's scan; then the columns are constants.
        """
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for selected in self.every_column:
            kind = selected.field.type
            if selected.name in rows.column_names:
                column = rows[selected.name]
                if column.type != kind and selected.path is None:
                    column = self._converted(column, selected, part.columns)
                columns[selected.name] = column
            elif selected.path is not None:
                columns[selected.name] = pa.nulls(len(rows), kind)
            else:
                complete = part.outside[self._field(selected).name]
                column = complete.slice(start, len(rows))
                columns[selected.name] = column if column.type == kind else column.cast(kind)
        return pa.table(columns, schema=pa.schema([selected.field for selected in self.every_column]))

    def _converted(self, column: pa.ChunkedArray, selected: Selected, columns: FileColumns) -> pa.ChunkedArray:
        """Return a nested column of a file under the table's names and types."""
        f = self._field(selected)
        chunks = [columns.array(chunk, f, as_stored) for chunk in column.chunks]
        return pa.chunked_array(chunks, selected.field.type)


def scan(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    catalog: CatalogOption = None,
    column: str | None = None,
    snapshot_id: int | None = None,
    timestamp: int | str | datetime | None = None,
    branch: str | None = None,
    tag: str | None = None,
    skipping: bool = True,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    threads: int | None = None,
) -> IcebergScan:
    """Plan a query by path over a table; files that cannot match are never opened.

    Parameters
    ----------
    table, catalog, snapshot_id, timestamp, branch, tag, storage_options, allow_outside
        The table and its snapshot; see `snapshot`.
    columns, where
        As for `parquet.scan`: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of an
        ordinary column. ``_row_id``, ``_last_updated_sequence_number``, ``_file`` and ``_pos`` can be named, too.
    column
        The Variant column (dotted if it is inside of structs), if the table has several.
    skipping
        Use statistics, of manifests and of files; the result is the same without.
    zone
        The session time zone of casts.
    threads
        Number of row groups that are read at the same time (default: one per CPU). Rows come in order.

    Returns
    -------
    IcebergScan

    Raises
    ------
    IcebergError
        As `snapshot`; ``"unknown-column"``.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     query = pv.iceberg.scan(folder, {"n": ("$.n", "long")}, "n > 1")
    ...     query.explain().files_pruned, query.to_table().num_rows
    (1, 0)
    """
    thread_count(threads)
    current = snapshot(
        table,
        catalog=catalog,
        snapshot_id=snapshot_id,
        timestamp=timestamp,
        branch=branch,
        tag=tag,
        storage_options=storage_options,
        allow_outside=allow_outside,
    )
    question = Question.of(columns, where)
    schema = scan_schema(current)
    if column is None:
        column = only_variant(schema, question.columns)
    bound = question.bound(typed_columns(schema, question.columns, column), zone)
    has_path = any(selected.path is not None for selected in bound.columns)
    place = variant_place(schema, column) if has_path else None
    return IcebergScan(current, bound.selection, bound.hidden, bound.predicate, place, skipping, zone, threads)


def scan_schema(current: Snapshot) -> shared.StructType:
    """Return the columns that queries may name: those of the table, then the metadata columns."""
    own = shared_schema(current.schema)
    names = {f.name for f in own.fields}
    extra = tuple(shared_field(f) for name, f in METADATA_COLUMNS.items() if name not in names)
    return shared.StructType((*own.fields, *extra))


def extract(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    **options: Any,
) -> pa.Table:
    """Read paths of a table's Variant column as typed Arrow columns.

    Parameters, errors
        As for `scan`, the options too.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"mag": 5.5}', '{"mag": 1.5}'])})
    ...     pv.iceberg.extract(folder, {"mag": ("$.mag", "double")}, "mag > 2").to_pydict()
    {'mag': [5.5]}
    """
    return scan(table, columns, where, **options).to_table()


def _split_predicate(predicate: Predicate | None, inside: set[str]) -> tuple[Predicate | None, Predicate | None]:
    """Return the part of a filter that a file can answer alone, and the remaining part."""
    if predicate is None:
        return None, None
    if columns_of(predicate) <= inside:
        return predicate, None
    if not isinstance(predicate, And):
        return None, predicate
    pushed = tuple(part for part in predicate.parts if columns_of(part) <= inside)
    remaining = tuple(part for part in predicate.parts if not columns_of(part) <= inside)
    return (And(pushed) if pushed else None), And(remaining)
