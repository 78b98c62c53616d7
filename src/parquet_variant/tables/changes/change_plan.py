"""The interface of row changes to a table format: `ChangeableTable` on the driver, and `ChangePlan` in every task.

Owns the interfaces and the records that pass between them. A format implements both; the operations are in
`operations`, the changes of one file in `row_changes` and `patching`.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from itertools import compress
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.predicate import And, Constant, In, Predicate, columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.columns import (
    align_table,
    by_logical_name,
    shredding_schemas,
    unshredded,
    with_other_columns,
)
from parquet_variant.tables.file_metrics import FileMetrics
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_field
from parquet_variant.tables.storage import Storage, open_storage
from parquet_variant.tables.table_scan import TableScan, TableScanTask
from parquet_variant.tables.write_plan import File, TableWritePlan

# A format's collection of data files: a list, or what only the format looks into and that has a length.
FileSet: TypeAlias = Any
NeededColumns: TypeAlias = "Mapping[str, Selected]"


class FileChange(Generic[File], Record):
    """The effect of a change on one data file."""

    file: File
    is_changed: bool = False
    added: tuple[File, ...] = ()  # The files that replace it.
    change_data: tuple[Any, ...] = ()  # The format's files of change data.
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_copied: int = 0
    # For a merge: the positions of the source rows that matched a row of the file.
    matched: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    context: CallContext = field(default_factory=CallContext)  # What the conditions found in the file.


class FileLayout(Record):
    """What decides with which other files a file is rewritten."""

    partition: Hashable  # Files that are rewritten together have the same one.
    size: int
    must_rewrite: bool  # It has deleted rows, or a former partitioning.
    millis: int | None  # The time at which it was written.


class TableChange(Generic[File], Record):
    """A change planned on one version of a table: the input of `ChangeableTable.commit`."""

    opened: FileSet  # The files that were inspected.
    files: Sequence[FileChange[File]]  # What happens to each of them.
    # Return whether files that another commit added may hold rows that this change would have read; None if it reads
    # no rows.
    reads: Callable[[FileSet], bool] | None
    added: Sequence[File] = ()  # New files that replace no other file.
    change_data: Sequence[Any] = ()
    rows_inserted: int = 0  # Rows of `added`.
    source_rows: int = 0  # Of a merge.
    parameters: Mapping[str, Any] = field(default_factory=dict)  # Recorded in the history.
    changes_rows: bool = True  # False if the new files hold the same rows.
    hints: Sequence[str] = ()  # See `ChangeResult`.

    @property
    def changed(self) -> list[FileChange[File]]:
        """The files that the change removes or replaces."""
        return [change for change in self.files if change.is_changed]

    @property
    def rows(self) -> dict[str, int]:
        """The numbers of rows by what happened to them; ``source``: the rows of the source of a merge."""
        names = ("deleted", "updated", "copied")
        counts = {name: sum(getattr(file, f"rows_{name}") for file in self.changed) for name in names}
        return counts | {"inserted": self.rows_inserted, "source": self.source_rows}


class _ScansVersion:
    """Plans scans of `current`, a version of the table, of the format's class `scan`."""

    scan: ClassVar[type[TableScan[Any]]]
    current: Any

    def query(self, columns: NeededColumns, zone: str) -> TableScan[Any]:
        """Return the scan of columns that expressions need."""
        return self.scan.plan(self.current, columns, zone=zone)


class ChangePlan(ABC, _ScansVersion, Generic[File], Record):
    """The plan by which every task of a change changes one file; can be pickled.

    A plan that `erases` keeps nothing of deleted rows: it rewrites files as a whole, because dictionary pages hold
    values, and infers their schemas from the rows that are left, because schemas and metadata name keys.
    """

    current: Any  # The table without its list of files.
    write: TableWritePlan[File]  # The plan by which new files are written.
    uses_vectors: bool  # Whether deletion vectors mark deleted rows.
    records_changes: bool = False  # Whether changed rows are also written as change data.
    erases: bool = False
    # The columns whose change moves a row to another file, such as partition columns, in lower case.
    fixed_columns: frozenset[str] = frozenset()

    @property
    def storage(self) -> Storage:
        """The directory of new files."""
        return open_storage(self.write.uri, self.write.storage_options)

    @property
    def schema(self) -> StructType:
        """The table's columns."""
        return self.write.schema

    def path(self, file: File) -> str:
        """Return the path of a file, or its location."""
        return str(self.current.place(file)[2])

    @abstractmethod
    def with_every_row(self, file: File) -> File:
        """Return the description of a file without the description of its deleted rows."""

    def live_rows(self, file: Any, rows: int | None) -> Mask:
        """Return a mask that is False for deleted rows; `rows`: the number of rows of the file, if it is known."""
        live = None
        if rows is None or file.has_deletes:
            with self.scan.file_columns.opened(self.current, file) as (columns, parquet):
                rows, live = columns.rows, columns.live(parquet)
        return np.ones(rows, dtype=bool) if live is None else live

    def read_columns(self, file: File, columns: NeededColumns, zone: str) -> tuple[pa.Table, Mask]:
        """Read the columns that expressions need, of all rows of a file, as a `numbered` table, and its `live_rows`."""
        from parquet_variant.tables.expressions import numbered

        every_row: Any = self.with_every_row(file)
        read = pa.table({})
        if columns:
            query = self.query(columns, zone)
            parts = list(query.read(TableScanTask((every_row,), every_row.size)))
            read = pa.concat_tables(parts) if parts else empty_table(query.schema)
        live = self.live_rows(file, len(read) if columns else None)
        return numbered(dict(zip(read.column_names, read.columns, strict=True)), len(live)), live

    def read_rows(self, file: File, row_mask: Mask | None, columns: StructType | None = None) -> pa.Table:
        """Read rows (default: those that are not deleted) with Variants as the file shreds them.

        Without `columns`, all columns are read, with the hidden columns that the table needs to keep.
        """
        table_columns, kind = self.current.columns, PrimitiveType("long")
        hidden = [] if columns else [table_columns.get(name) or Field(name, kind) for name in self.write.hidden_columns]
        fields = columns or StructType((*self.schema.fields, *hidden))
        rows = self.scan.file_columns.read_file(self.current, file, fields, row_mask)
        for f in hidden:
            rows = rows.set_column(rows.column_names.index(f.name), arrow_field(f, with_ids=True), rows[f.name])
        return rows

    def unshredded(self, rows: pa.Table, columns: StructType | None = None) -> pa.Table:
        """Return rows that `read_rows` returned with their Variants unshredded."""
        return with_other_columns(align_table(rows, columns or self.schema, by_logical_name, unshredded), rows)

    def like_file(self, rows: pa.Table) -> TableWritePlan[File]:
        """Return the write plan that shreds new files as the file that `read_rows` read the rows from."""
        present = StructType(tuple(f for f in self.schema.fields if f.name in rows.column_names))
        return replace(self.write, shredding=shredding_schemas(rows.schema, present) if self.write.shred else {})

    @abstractmethod
    def with_deleted(self, file: File, deleted: Mask) -> File:
        """Write a deletion vector and return the file with it; the mask holds all deleted rows, by position."""

    def write_changes(self, write: TableWritePlan[File], changes: Mapping[str, pa.Table | None]) -> tuple[Any, ...]:
        """Write rows by change type (``insert``, ``delete``, ``update_preimage``, ``update_postimage``)."""
        return ()

    def with_replaced_columns(
        self, file: File, path: str, info: FileInfo, metrics: FileMetrics, columns: StructType
    ) -> File:
        """Return the description of a copy of a file in which some columns, under the table's names, are new.

        `metrics`: those of the new columns.
        Files are copied in parts only if they have no hidden columns, also for the methods below.
        """
        raise NotImplementedError

    @abstractmethod
    def copied(self, file: File, path: str, size: int) -> tuple[File, ...]:
        """Return the description of a copy of a file with the same rows and pages, and of its deleted rows."""

    @abstractmethod
    def partition(self, file: File) -> Any:
        """Return the partition of a file, in the form that `write.new_path` takes."""

    def known_metrics(self, file: File) -> FileMetrics:
        """Return the null counts of a file's columns, and the paths of its Variants that have bounds."""
        raise NotImplementedError


class ChangeableTable(ABC, _ScansVersion, Generic[File]):
    """A table at one version, on the driver: finds files, plans changes and commits them."""

    # The application and number under which the table records a change, so that it is committed once, even without
    # rows; None to record none.
    batch: tuple[str, int] | None = None
    # Whether files keep their shredding schema when they are rewritten, unless another one is asked for.
    keeps_schema: ClassVar[bool] = False
    # Whether `commit` also changes the table's definition, so that it is needed even if no file changes.
    changes_definition: ClassVar[bool] = False

    schema: StructType  # The table's columns.
    version: int  # The version, or the id of the snapshot; 0 for a table without any.
    uri: str  # The location, for errors.
    files: FileSet  # All data files.

    @cached_property
    def job(self) -> str:
        """The beginning of the names of the files that the change writes; see `TableWritePlan.job`."""
        return f"{uuid.uuid4().hex}-"

    @contextmanager
    def writing(self, *, may_write: bool = True) -> Iterator[None]:
        """If the block fails, remove the files that the change has written; `may_write`: whether there may be any."""
        try:
            yield
        except BaseException:
            if may_write:  # to find the files, all of the table are listed
                with suppress(Exception):
                    self.plan({}).write.remove_files()
            raise

    @abstractmethod
    def plan(self, options: Mapping[str, Any]) -> ChangePlan[File]:
        """Return the plan of a change with options of `VariantWriter`; raise if this library cannot write the table."""

    @abstractmethod
    def prune(self, files: FileSet, query: TableScan[Any]) -> FileSet:
        """Return those of some files that may hold a row for which the filter of a scan is true."""

    def candidates(self, files: FileSet, predicate: Predicate | None, columns: NeededColumns, zone: str) -> FileSet:
        """Return those of some files that may hold a row for which a predicate over some columns is true."""
        for part in predicate.parts if isinstance(predicate, And) else (predicate,):
            if part is None:
                continue
            needed = {name: columns[name] for name in columns_of(part)}
            query = self.query(needed, zone)
            files = self.prune(files, replace(query, question=replace(query.question, predicate=part).bound({}, zone)))
        return files

    @abstractmethod
    def file_layouts(self) -> list[FileLayout]:
        """Return what decides how each file is rewritten, in the order of `to_files(files)`."""

    def holding_keys(self, files: FileSet, needed: Selected, name: str, keys: Any, zone: str) -> FileSet:
        """Return those of some files in which a column may hold one of some keys."""
        query = self.query({name: needed}, zone)
        kind = query.selection[0].output
        if kind is None or pa.types.is_nested(kind):
            return files
        try:
            values = pc.drop_null(pc.unique(one_chunk(keys).cast(pa.binary(16) if kind == pa.uuid() else kind)))
        except pa.ArrowException:
            return files
        values = values.take(pc.sort_indices(values))
        predicate = In(name, values) if len(values) else Constant(name, False)
        return self.prune(files, replace(query, question=replace(query.question, predicate=predicate)))

    def filtered(self, files: FileSet, mask: Mask) -> FileSet:
        """Return the files for which a mask is True."""
        return list(compress(files, mask))

    def to_files(self, files: FileSet) -> list[File]:
        """Return the descriptions that tasks get."""
        return list(files)

    def removed_bytes(self, change: FileChange[Any]) -> int:
        """Return the size of a file that a change removes; 0 if the file is kept, with a deletion vector."""
        return 0 if any(file.path == change.file.path for file in change.added) else int(change.file.size)

    def numbered(self, rows: Iterable[pa.Table]) -> Iterable[pa.Table]:
        """Return new rows with the columns that the table numbers itself."""
        return rows

    def refuse_assignment(self, columns: Iterable[str]) -> None:
        """Refuse to set columns that the table generates itself."""

    @abstractmethod
    def commit(self, operation: str, change: TableChange[File]) -> int:
        """Commit a change and return the new version; without a commit, remove the files that it has written.

        Raises `TableError`: reason ``"conflict"`` if another commit changed what the change relies on.
        """

    @abstractmethod
    def reload(self) -> ChangeableTable[File]:
        """Return the newest version of the table."""
