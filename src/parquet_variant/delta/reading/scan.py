"""Typed columns from a table's Variants: pruning of files by the log, then of row groups, then of leaf columns.

Owns the query over a table: deletion vectors, partition columns, column mapping. Leaves a single file to
`parquet.scanning`, the choice of files to `pruning`, the types of columns to `scan_columns`, and casts to `functions`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.file_actions import iter_adds
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.reading.pruning import Pruned, prune_files
from parquet_variant.delta.reading.read import PLACES, Mask, live_rows
from parquet_variant.delta.reading.scan_report import DeltaScanReport, add_reports
from parquet_variant.fork_safety import cached_property
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.parquet.reading.read_table import plain_field
from parquet_variant.parquet.scanning.scan import FOOTERS, FilePart, Scan, tables_of_parts
from parquet_variant.parquet.scanning.scan_report import ScanReport
from parquet_variant.query.predicate import And, Predicate, columns_of, evaluate
from parquet_variant.query.question import PlannedQuery, Question, short_description
from parquet_variant.query.selection import Selected
from parquet_variant.tables.columns import align_column, by_field_id, by_name, unchanged
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.scan_columns import only_variant, typed_columns, variant_place
from parquet_variant.tables.schema import Field, PrimitiveType, TableType, fields_at
from parquet_variant.tables.storage import LocalStorage


@dataclass(frozen=True, slots=True)
class DeltaScanTask:
    """Some files of a table at a version, small enough to send to another process.

    Parameters
    ----------
    files
        The files: path, partition values, deletion vector, size.
    bytes
        The size of the files.
    """

    files: tuple[Add, ...]
    bytes: int


# Columns that a file does not have: type and text of a partition value, or None for a column of nulls.
_Outside: TypeAlias = "dict[str, tuple[TableType, str | None] | None]"


class _Part(NamedTuple):
    """Rows of a data file that are read at once, with what remains to do after the scan of the file."""

    file: OpenFile
    is_last: bool
    scan: Scan
    inside: FilePart | None  # None if no column of the file is read.
    live: Mask | None  # False for deleted rows; None if no row is deleted.
    remaining: Predicate | None  # The part of the filter that the file's scan does not evaluate.
    outside: _Outside


@dataclass(frozen=True, repr=False)
class DeltaScan(PlannedQuery):
    """A query over a table, made by `scan`; it reads only the log until rows are requested.

    Parameters
    ----------
    current
        The table.
    selection, hidden
        The output columns, and the columns that only the filter needs.
    predicate
        The bound filter, or None.
    place
        The place of the Variant column, as logical names; None if no path is selected.
    skipping
        Whether to use statistics of the log and of files.
    zone
        Session time zone of casts.
    threads
        Number of row groups to read at the same time (default: one per CPU).
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
        return f"<DeltaScan {short_description(self.selection, self.predicate)} over {self.current!r}>"

    @property
    def bytes_read(self) -> int:
        """The compressed bytes of column chunks that this scan has read so far in this process."""
        return self._bytes_read[0]

    @cached_property
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the log."""
        if not self.skipping:
            return Pruned(self.current.files, self.current.num_files)
        return prune_files(
            self.current, self.predicate, {column.name: column for column in self.every_column}, self.place
        )

    def explain(self) -> DeltaScanReport:
        """Return how much the scan would read; this opens the footers of the files that may hold a match."""
        inside = ScanReport()
        for add in self._files():
            with self._open(add) as file:
                inner, _, _ = self._inner(add, file)
            inside = add_reports(inside, inner.explain())
        pruned = self.pruned
        return DeltaScanReport(self.current.version, pruned.total, pruned.by_partition, pruned.by_statistics, inside)

    def tasks(self, target_bytes: int = 128 << 20) -> list[DeltaScanTask]:
        """Return the work in tasks of whole files, about `target_bytes` each; pruned files are left out."""
        tasks: list[DeltaScanTask] = []
        part: list[Add] = []
        size = 0
        for file in self._files():
            if part and size + file.size > target_bytes:
                tasks.append(DeltaScanTask(tuple(part), size))
                part, size = [], 0
            part.append(file)
            size += file.size
        if part:
            tasks.append(DeltaScanTask(tuple(part), size))
        return tasks

    def read(self, task: DeltaScanTask) -> Iterator[pa.Table]:
        """Yield the part of the result that a task reads."""
        return self._read(task.files)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts with at least one row."""
        return self._read(self._files())

    def __reduce__(self) -> tuple[Any, ...]:
        bare = self.current.without_files()
        parts = self.selection, self.hidden, self.predicate, self.place, self.skipping, self.zone, self.threads
        return DeltaScan, (bare, *parts)

    # ---- one file

    def _files(self) -> Iterator[Add]:
        return iter_adds(self.pruned.files.select(PLACES))

    def _open(self, add: Add) -> OpenFile:
        filesystem, full = self.current.storage.filesystem(relative_path(self.current.storage, add.path))
        return open_file(ParquetSource(full, filesystem, add.size))

    def _inner(self, add: Add, file: OpenFile) -> tuple[Scan, Predicate | None, _Outside]:
        """Return the scan of one file, the part of the filter that it does not evaluate, and the columns it lacks."""
        arrow = file.arrow_schema
        variants = {name for variant in find_variants(file.schema) for name in (variant.name, variant.node.dotted)}
        place = self._place_in(arrow)
        inside, outside = self._split(file, place if place in variants else None, add)
        names = {column.name for column in inside}
        # Deleted rows are identified by position, so they must be removed before rows are filtered.
        has_deleted = add.deletion_vector is not None
        pushed, remaining = (None, self.predicate) if has_deleted else _split_predicate(self.predicate, names)
        scan = Scan(
            sources=(file.source,),
            selection=tuple(inside),
            predicate=pushed,
            column=place,
            skipping=self.skipping and not has_deleted,
            zone=self.zone,
            threads=self.threads,
            _bytes_read=self._bytes_read,
        )
        return scan, remaining, outside

    def _split(self, file: OpenFile, place: str | None, add: Add) -> tuple[list[Selected], _Outside]:
        """Return the columns to read from the file, by their names in the file, and the columns that it lacks."""
        partitions = {name.lower() for name in self.current.partition_columns}
        arrow = file.arrow_schema
        inside: list[Selected] = []
        outside: _Outside = {}
        for selected in self.every_column:
            if selected.path is not None:
                if place is None:
                    outside[selected.name] = None
                else:
                    inside.append(selected)
                continue
            f = self.current.schema.get(selected.stored_name)
            assert f is not None
            index = self._match(arrow, f)
            if f.name.lower() in partitions:
                outside[selected.name] = f.type, add.partition_values.get(f.physical_name)
            elif index < 0:
                outside[selected.name] = None
            elif isinstance(f.type, PrimitiveType):
                inside.append(replace(selected, column=arrow.field(index).name))
            else:
                # Nested columns are read with the file's type: a cast would not find fields by their physical names.
                stored = plain_field(arrow.field(index), file)
                inside.append(replace(selected, column=stored.name, type=stored.type))
        return inside, outside

    def _match(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        match = by_field_id if self.current.column_mapping == "id" else by_name
        return match(fields, f)

    def _place_in(self, arrow: pa.Schema) -> str | None:
        """Return the dotted name of the Variant column in a file; None if the file lacks it."""
        if self.place is None:
            return None
        names = []
        fields: pa.Schema | pa.DataType = arrow
        for f in fields_at(self.current.schema, self.place):
            index = self._match(fields, f)
            if index < 0:
                return None
            names.append(fields.field(index).name)
            fields = fields.field(index).type
        return ".".join(names)

    def _read(self, files: Iterable[Add]) -> Iterator[pa.Table]:
        threads = thread_count(self.threads)
        at_once = 1 if threads == 1 or isinstance(self.current.storage, LocalStorage) else FOOTERS
        return tables_of_parts(in_order(self._parts, files, at_once), self._part, threads)

    def _parts(self, add: Add) -> tuple[OpenFile, list[_Part]]:
        """Open a file and return the parts that are read at once."""
        file = self._open(add)
        try:
            scan, remaining, outside = self._inner(add, file)
            live = live_rows(self.current, add.deletion_vector, file.rows)
        except BaseException:
            file.close()
            raise
        if not scan.selection:
            return file, [_Part(file, True, scan, None, live, remaining, outside)]
        return file, [_Part(file, part.is_last, scan, part, live, remaining, outside) for part in scan.parts(file)]

    def _part(self, part: _Part) -> pa.Table | None:
        """Return the rows of a part; None if the scan skips it."""
        if part.inside is None:
            rows, start = pa.table({"": pa.nulls(part.file.rows)}), 0
        else:
            rows, start = part.scan.read_part(part.inside), part.inside.first_row
        if rows is None:
            return None
        if part.live is not None:
            rows = rows.filter(pa.array(part.live[start : start + len(rows)]))
        table = self._completed(rows, part.outside)
        if part.remaining is not None:
            table = table.filter(evaluate(part.remaining, table))
        table = table.select([selected.name for selected in self.selection])
        return table.cast(self.schema) if table.schema != self.schema else table

    def _completed(self, part: pa.Table, outside: _Outside) -> pa.Table:
        """Return rows with the columns that the file lacks, and with nested columns in the table's types."""
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for selected in self.every_column:
            name, kind = selected.name, selected.field.type
            if name in outside:
                value = outside[name]
                column = pa.nulls(len(part)) if value is None else partition_array(value[1], value[0], len(part))
                columns[name] = column.cast(kind) if column.type != kind else column
            elif part[name].type != kind and selected.path is None:
                columns[name] = self._with_table_names(part[name], selected)
            else:
                columns[name] = part[name]
        return pa.table(columns, schema=pa.schema([selected.field for selected in self.every_column]))

    def _with_table_names(self, column: pa.ChunkedArray, selected: Selected) -> pa.ChunkedArray:
        """Return a nested column of a file under the table's names."""
        f = self.current.schema.get(selected.stored_name)
        assert f is not None
        kind = selected.field.type
        chunks = [align_column(chunk, f.type, self._match, unchanged, (f.name,)) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind)


def scan(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    skipping: bool = True,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    threads: int | None = None,
) -> DeltaScan:
    """Plan a query by path over a table; files that cannot hold a match are not opened.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    columns, where
        As for `parquet.scan`: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of an
        ordinary column, partition columns among them.
    column
        The Variant column, by its dotted name if it is inside structs; needed if the table has several.
    version, timestamp
        The version to read (default: the newest; see `snapshot`).
    skipping
        Whether to use statistics of the log and of files; the result is the same without them.
    zone
        Session time zone of casts.
    storage_options
        Configuration of the object store.
    allow_outside
        Also read files outside of the table that its log names (shallow clones); by default these are refused.
    threads
        Number of row groups to read at the same time (default: one per CPU). Rows are returned in order, and memory
        holds at most one row group more than there are threads.

    Returns
    -------
    DeltaScan

    Raises
    ------
    TableError
        As `snapshot`; ``"unknown-column"``.
    PathError, PredicateError, SchemaError
        A path, the filter or a type cannot be parsed.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     query = pv.delta.scan(folder, {"n": ("$.n", "long")}, "n > 1")
    ...     query.explain().files_pruned, query.to_table().num_rows
    (1, 0)
    """
    thread_count(threads)
    current = snapshot(
        table, version=version, timestamp=timestamp, storage_options=storage_options, allow_outside=allow_outside
    )
    question = Question.of(columns, where)
    if column is None:
        column = only_variant(current.schema, question.columns)
    bound = question.bound(typed_columns(current.schema, question.columns, column), zone)
    has_paths = any(selected.path is not None for selected in bound.columns)
    place = variant_place(current.schema, column) if has_paths else None
    return DeltaScan(current, bound.selection, bound.hidden, bound.predicate, place, skipping, zone, threads)


def extract(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    **options: Any,
) -> pa.Table:
    """Read paths of a table's Variant column as typed Arrow columns.

    Parameters
    ----------
    table, columns, where, **options
        As for `scan`, which also lists the errors.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"mag": 5.5}', '{"mag": 1.5}'])})
    ...     pv.delta.extract(folder, {"mag": ("$.mag", "double")}, "mag > 2").to_pydict()
    {'mag': [5.5]}
    """
    return scan(table, columns, where, **options).to_table()


def _split_predicate(predicate: Predicate | None, inside: set[str]) -> tuple[Predicate | None, Predicate | None]:
    """Return the part of a filter that needs only columns of a file, and the remaining part."""
    if predicate is None:
        return None, None
    if columns_of(predicate) <= inside:
        return predicate, None
    if not isinstance(predicate, And):
        return None, predicate
    pushed = tuple(part for part in predicate.parts if columns_of(part) <= inside)
    remaining = tuple(part for part in predicate.parts if not columns_of(part) <= inside)
    return (And(pushed) if pushed else None), And(remaining)
