"""Queries by path over the data files of a table: files are pruned first, then row groups, then leaf columns.

Owns `TableScan`, which the table formats subclass: tasks, parts that are read at once, deleted rows, and columns that a
file lacks. Leaves one file to `files.parquet.scanning`, and pruning and the matching of columns to the formats.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import pyarrow as pa

from parquet_variant.arrays.capsules import chosen_variant
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, strings_of
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.reading.read import plain_variants
from parquet_variant.files.parquet.scanning.scan import FOOTERS, Scan, tables_of_parts
from parquet_variant.files.parquet.scanning.scan_plan import FilePart, ScanReport
from parquet_variant.io.parallel import grouped, in_order, thread_count
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.predicate import And, Predicate, columns_of, evaluate, joined
from parquet_variant.query.selection import PlannedQuery, Question, Selected
from parquet_variant.support.records import Record, Report, cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.tables.columns import align_table, by_logical_name, unshredded
from parquet_variant.tables.file_rows import ColumnOfRows, DataFileColumns, file_errors
from parquet_variant.tables.pruning import Pruned
from parquet_variant.tables.storage import LocalStorage


class TableScanReport(Report, Record):
    """The files, row groups, columns and bytes of a table that a scan reads.

    Parameters
    ----------
    files_total, files_by_partition, files_by_statistics
        Number of data files of the table, and of the files that partition values and statistics of the table rule out
        before any file is opened.
    inside
        Row groups, columns and bytes of the other files.
    version
        The version of the table, or the id of the snapshot; None for an Iceberg table without snapshots.
    """

    files_total: int
    files_by_partition: int
    files_by_statistics: int
    inside: ScanReport
    version: int | None

    @property
    def files_pruned(self) -> int:
        """The number of files that are not opened."""
        return self.files_by_partition + self.files_by_statistics

    def to_dict(self) -> dict[str, object]:
        """Return the report for programs."""
        return super().to_dict() | {"files_pruned": self.files_pruned}

    def __str__(self) -> str:
        return (
            f"version     {self.version}\n"
            f"files       {self.files_total - self.files_pruned:,} of {self.files_total:,} opened; pruned by partition "
            f"values {self.files_by_partition:,}, by statistics {self.files_by_statistics:,}\n"
            f"in them:\n{self.inside}"
        )


# The description of a data file, which has its ``size`` in bytes, and whether rows of it are deleted (``has_deletes``).
File = TypeVar("File", bound=Any)


class TableScanTask(Generic[File], Record):
    """Some data files of a table, small enough to send to another process."""

    files: tuple[File, ...]  # The descriptions of the files.
    bytes: int  # The size of the files.


class _FilePlan(NamedTuple):
    """The scan of one file, and what remains to do after it."""

    scan: Scan
    columns: DataFileColumns
    remaining: Predicate | None  # The part of the filter that the scan does not evaluate.
    missing: list[Selected]  # The ordinary columns that the scan does not read.


class _Part(NamedTuple):
    """Rows of a data file that are read at once."""

    file: OpenFile
    is_last: bool
    plan: _FilePlan
    inside: FilePart | None  # None if no column of the file is read.
    live: Mask | None  # False for deleted rows of the file; None if no row is deleted.
    missing: Mapping[str, ColumnOfRows]


class TableScan(PlannedQuery, Generic[File], Record):
    """A query over a table; it reads only metadata until rows are requested."""

    file_columns: ClassVar[type[DataFileColumns]]
    # The table at one version: its columns (`struct`), those that queries may name (`columns`), its `storage`, itself
    # `for_tasks`, and the `place` of a data file: its storage, its path there, and its name for errors.
    current: Any
    question: Question  # The request, bound to the types of the columns; paths name their Variant columns.
    skipping: bool = True  # Whether to use statistics of the table and of files.
    zone: str = "UTC"  # Session time zone of casts.
    threads: int | None = None  # Number of row groups to read at the same time (default: one per CPU).
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    @classmethod
    def plan(
        cls,
        current: Any,
        columns: Mapping[str, Any] | Sequence[str],
        where: Any = None,
        *,
        column: str | None = None,
        skipping: bool = True,
        zone: str = "UTC",
        threads: int | None = None,
    ) -> Self:
        """Plan a query by path over a table; files that cannot hold a match are not opened; see `Table.scan`."""
        thread_count(threads)
        question = Question.of(columns, where)
        fields = dict(zip(question.ordinary_names, current.columns.select(question.ordinary_names).fields, strict=True))
        types = {name: None if f.type == shared.VARIANT else shared.arrow_type(f.type) for name, f in fields.items()}
        if any(selected.path is not None and selected.column is None for selected in question.columns):
            named = {f.name for f in fields.values() if f.type == shared.VARIANT}
            if column is None and len(named) == 1:  # paths are into the Variant column that is selected by name
                column = named.pop()
            column = chosen_variant(
                [".".join(way) for way in shared.reachable_variants(current.columns)], column, TableError
            )
        return cls(current, question.bound(types, zone, column), skipping, zone, threads)

    @classmethod
    def read_table(cls, current: Any, columns: Sequence[str] | None = None, *, threads: int | None = None) -> pa.Table:
        """Return whole rows of a table; see `Table.to_arrow`."""
        fields: shared.StructType = current.struct
        if columns is not None:
            fields = current.columns.select(strings_of("columns", columns))

        def read(file: File) -> pa.Table:
            return cls.file_columns.read_unshredded(current, file, fields)

        parts = list(in_order(read, cls(current, Question(()))._files(), thread_count(threads)))
        if not parts:
            return align_table(empty_table(shared.arrow_schema(fields)), fields, by_logical_name, unshredded)
        return pa.concat_tables(parts, promote_options="permissive")

    @classmethod
    def read_column(cls, current: Any, column: str | None = None, *, threads: int | None = None) -> VariantArray:
        """Return a Variant column of all rows of a table; see `Table.read`."""
        variants = [f.name for f in current.struct.fields if f.type == shared.VARIANT]
        column = chosen_variant(variants, column, cls.file_columns.error)
        return VariantArray(one_chunk(cls.read_table(current, [column], threads=threads)[column]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.question} over {self.current!r}>"

    @abstractmethod
    def _files(self) -> Iterable[File]:
        """Return the descriptions of the files that may hold a match."""

    @staticmethod
    @abstractmethod
    def parquet_files(current: Any) -> tuple[ParquetSource, ...]:
        """Return the data files of a table; none if columns have other names in the files."""

    def source(self, file: File) -> ParquetSource:
        """Return the place of a data file."""
        storage, path, _ = self.current.place(file)
        filesystem, full = storage.filesystem(path)
        return ParquetSource(full, filesystem, file.size)

    @abstractmethod
    def partitions(self) -> list[dict[str, str | None]]:
        """Return the partition of each file that may hold a match, as directory names spell the values."""

    def _open(self, file: File) -> OpenFile:
        """Open a data file."""
        with file_errors(self.current.place(file)[2], self.file_columns.error):
            return open_file(self.source(file))

    def _columns(self, file: File, opened: OpenFile) -> DataFileColumns:
        """Return the columns of an open data file."""
        return self.file_columns(opened.arrow_schema, opened.facts.rows(), self.current, file)

    @property
    @abstractmethod
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the table's metadata."""

    @cached_property
    def _places(self) -> dict[str, shared.Place]:
        return {".".join(place): place for place in shared.reachable_variants(self.current.columns)}

    def place_of(self, selected: Selected) -> shared.Place:
        """Return the place of the Variant column of a path, as names of the table."""
        name = str(selected.column)
        return self._places.get(name, (name,))

    def variant_in(self, file: File, selected: Selected, opened: OpenFile) -> str | None:
        """Return the dotted name of the Variant column of a path in an open data file; None if the file lacks it."""
        return self._columns(file, opened).variant_name(self.place_of(selected))

    def explain(self) -> TableScanReport:
        """Return how much the scan would read; this opens the footers of the files that may hold a match."""
        total = ScanReport()
        for file in self._files():
            with self._open(file) as opened:
                plan = self._plan(file, opened)
            plan.scan.explain(total)
        pruned, version = self.pruned, self.current.version
        return TableScanReport(pruned.total, pruned.by_partition, pruned.by_statistics, total, version)

    def tasks(self, task_bytes: int = 128 << 20) -> list[TableScanTask[File]]:
        """Return the work in tasks of whole files, about `task_bytes` each; pruned files are left out."""
        parts = grouped(self._files(), lambda file: file.size, task_bytes)
        return [TableScanTask(tuple(files), sum(file.size for file in files)) for files in parts]

    def read(self, task: TableScanTask[File]) -> Iterator[pa.Table]:
        """Yield the part of the result that a task reads."""
        return self._read(task.files)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts with at least one row."""
        return self._read(self._files())

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.question, self.skipping, self.zone, self.threads
        return type(self), (self.current.for_tasks(), *parts)

    def _plan(self, file: File, opened: OpenFile) -> _FilePlan:
        """Return the scan of an open file, with the part of the query that the scan does not answer."""
        columns = self._columns(file, opened)
        variant_name = cache(columns.variant_name)
        inside: list[Selected] = []
        missing: list[Selected] = []
        for selected in self.question.columns:
            if selected.path is not None:
                if (name := variant_name(self.place_of(selected))) is not None:
                    inside.append(replace(selected, column=name))
                continue
            stored = columns.stored_field(selected)
            if stored is None:
                missing.append(selected)
            elif selected.type is None or not (bool(pa.types.is_nested(selected.type)) or selected.type == pa.uuid()):
                inside.append(replace(selected, column=stored.name))
            else:
                # Nested columns are read with the file's type: a cast would not find fields by their physical names.
                stored = plain_variants(empty_table(pa.schema([stored])), opened).field(0)
                inside.append(replace(selected, column=stored.name, type=stored.type))
        # Rows that are identified by position must be completed before rows are filtered.
        positions = columns.needs_positions(missing)
        names = {selected.name for selected in inside}
        pushed: list[Predicate] = []
        remaining: list[Predicate] = []
        for condition in self.predicate.parts if isinstance(self.predicate, And) else [self.predicate]:
            if condition is None:
                continue
            (pushed if columns_of(condition) <= names and not positions else remaining).append(condition)
        scan = Scan(
            sources=(opened.source,),
            question=Question(tuple(inside), predicate=joined(And, pushed) if pushed else None),
            skipping=self.skipping and not positions,
            zone=self.zone,
            threads=self.threads,
            _bytes_read=self._bytes_read,
        )
        return _FilePlan(scan, columns, joined(And, remaining) if remaining else None, missing)

    def _read(self, files: Iterable[File]) -> Iterator[pa.Table]:
        threads = thread_count(self.threads)
        # Opening several files of this machine at once does not pay.
        at_once = 1 if threads == 1 or isinstance(self.current.storage, LocalStorage) else FOOTERS
        return tables_of_parts(in_order(self._parts, files, at_once), self._part, threads)

    def _parts(self, file: File) -> tuple[OpenFile, list[_Part]]:
        """Open a file and return the parts that are read at once."""
        opened = self._open(file)
        try:
            plan = self._plan(file, opened)
            live, missing = plan.columns.complete(plan.missing)
        except BaseException:
            opened.close()
            raise
        if not plan.scan.selection:
            return opened, [_Part(opened, True, plan, None, live, missing)]
        return opened, [_Part(opened, part.is_last, plan, part, live, missing) for part in plan.scan.parts(opened)]

    def _part(self, part: _Part) -> pa.Table | None:
        """Return the rows of a part; None if the scan skips it."""
        if part.inside is None:
            rows, start = pa.table({"": pa.nulls(part.file.facts.rows())}), 0
        else:
            rows, start = part.plan.scan.read_part(part.inside), part.inside.first_row
        if rows is None:
            return None
        count = len(rows)
        mask = None if part.live is None else pa.array(part.live[start : start + count])
        missing = {name: column(start, count) for name, column in part.missing.items()}
        if mask is not None:
            rows = rows.filter(mask)
            missing = {name: column.filter(mask) for name, column in missing.items()}
        read = {selected.name for selected in part.plan.scan.selection}
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for selected in self.question.columns:
            name, kind = selected.name, selected.field.type
            if name not in read:
                column = missing[name] if name in missing else pa.nulls(len(rows), kind)
                columns[name] = column.cast(kind) if column.type != kind else column
            elif rows[name].type != kind and selected.path is None:  # nested columns in the file's types
                chunks = [part.plan.columns.converted(chunk, selected) for chunk in rows[name].chunks]
                columns[name] = pa.chunked_array(chunks, kind)
            else:
                columns[name] = rows[name]
        table = pa.table(columns, schema=pa.schema([selected.field for selected in self.question.columns]))
        if part.plan.remaining is not None:
            table = table.filter(evaluate(part.plan.remaining, table))
        table = table.select([selected.name for selected in self.selection])
        return table.cast(self.schema) if table.schema != self.schema else table
