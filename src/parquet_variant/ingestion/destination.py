"""`Destination`: where the tasks of a job write files, and how the result becomes visible as a whole or not at all.

`pv.ingest` on any engine and the data source of Spark write with it. The base class is a directory whose files are
staged; `FileDestination` is one file, and `TableDestination` a table whose files the driver commits once. The modules
in `destinations` implement the output formats. A destination records the source files that an ingest with ``only_new``
has loaded, together with their rows: a directory in a file per load in ``_loads``.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.errors import VariantError, VariantFileError, without_secrets
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.ingestion.sources.input_files import InputFile
from parquet_variant.io.commit_journal import visible_files
from parquet_variant.io.filesystems import absolute, filesystem_of, info_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, LOADS, StagedFile, Staging, check_target, staging_beside, sweep
from parquet_variant.io.temporaries import keep_mode, linked_file
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import Mode, OutputFormat
from parquet_variant.support.records import Record
from parquet_variant.tables.commits import CommitSteps, commit_steps
from parquet_variant.tables.row_input import Batch
from parquet_variant.tables.schema import StructType, arrow_schema
from parquet_variant.tables.write_plan import TableWritePlan

# A file can be written again with the same modification time: stores count seconds, and clocks differ.
_CLOCK_SECONDS = 3


class LoadedFile(Record):
    """A source file as it was when it was loaded: absolute path or URI, bytes, and times as ISO text in UTC.

    `etag`: of an object in a store that was written shortly before, so that a later write can have the same time.
    """

    path: str
    size: int
    modified: str | None = None
    loaded: str | None = None
    etag: str | None = None

    @classmethod
    def of(cls, file: InputFile) -> LoadedFile:
        """Return the record of a file that is about to be read."""
        now, written = time.time(), None if file.modified is None else file.modified.timestamp()
        modified = None if written is None else iso_time(written)
        etag = None if written is None or now - written > _CLOCK_SECONDS else file.etag()
        return cls(without_secrets(absolute(file.name)), file.size, modified, iso_time(now), etag)

    def to_text(self) -> str:
        """Return the record as one line of JSON."""
        record = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(record, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, loaded: str | None = None) -> list[LoadedFile]:
        """Return the record in a text, in a list that is empty if another program wrote the text.

        >>> LoadedFile.from_text(LoadedFile("/a.json", 3).to_text()), LoadedFile.from_text("[]")
        ([LoadedFile(path='/a.json', size=3, modified=None, loaded=None, etag=None)], [])
        """
        try:
            record = json.loads(text)
            place = record["path"], record["size"]
            return [cls(*place, record.get("modified"), record.get("loaded") or loaded, record.get("etag"))]
        except (ValueError, KeyError, TypeError):
            return []

    def to_dict(self) -> dict[str, Any]:
        """Return the record as `Table.loads` lists it, with times as datetimes."""
        times = {name: getattr(self, name) for name in ("modified", "loaded")}
        return asdict(self) | {name: text and datetime.fromisoformat(text) for name, text in times.items()}


def iso_time(seconds: float) -> str:
    """Return seconds since 1970 as ISO text in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def new_files(
    files: Iterable[InputFile], loaded: Iterable[LoadedFile]
) -> tuple[dict[InputFile, LoadedFile], int, tuple[str, ...]]:
    """Return the files that were not loaded before with their records, and the number of those that were loaded.

    Also returns the files that were written again after a load, whose rows would be in the table twice. Raises
    `VariantFileError` for a pipe.
    """
    by_path = {file.path: file for file in loaded}
    new, changed, skipped = dict[InputFile, LoadedFile](), list[str](), 0
    for file in files:
        if file.copy is not None:
            problem = f"{file.name} is a pipe, which cannot be known again: leave out only_new="
            raise VariantFileError(problem, reason="bad-option")
        record = LoadedFile.of(file)
        before = by_path.get(record.path)
        if before is None:
            new[file] = record
        elif (before.size, before.modified) == (record.size, record.modified) and before.etag in (None, file.etag()):
            skipped += 1
        else:
            changed.append(record.path)
    return new, skipped, tuple(changed)


def directory_load_files(dest: str) -> dict[str, list[LoadedFile]]:
    """Return the records of a directory of Parquet files, by the name of the file that has them."""
    filesystem, root = filesystem_of(dest)
    folder, loads = f"{root.rstrip('/')}/{LOADS}/", dict[str, list[LoadedFile]]()
    if isinstance(filesystem, pafs.LocalFileSystem) and not Path(folder).exists():
        return loads  # without a listing of the directory
    for info in sorted(visible_files(filesystem, root), key=lambda info: info.path):
        if info.path.startswith(folder):
            with filesystem.open_input_stream(info.path) as stream:
                lines = stream.read().decode("utf-8", "replace").splitlines()
            loads[info.path.removeprefix(folder)] = [record for line in lines for record in LoadedFile.from_text(line)]
    return loads


def directory_loads(dest: str) -> list[LoadedFile]:
    """Return the records of a directory of Parquet files."""
    return [record for records in directory_load_files(dest).values() for record in records]


Fields: TypeAlias = "pa.Schema | StructType"
# The columns of some rows by name: Arrow arrays, `VariantArray`, or Variants as the shredding kernel returns them.
Columns: TypeAlias = "Mapping[str, Any]"
# The name, which no column has, of the JSON text of the Variants.
JSON_TEXT = "/json"


class WriteRequest(Record, kw_only=True):
    """The destination of rows, and the options of its files. It can be pickled.

    `column`: the Variant column, with the paths of `partition_by`.
    `columns`: the names of the other columns of the rows; None if they are not known yet.
    `write`: options of the data files.
    `branch`: the branch of an Iceberg table; by default ``main``.
    """

    dest: str
    format: OutputFormat = "parquet"
    mode: Mode = "error"
    column: str = "v"
    columns: tuple[str, ...] | None = ()
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    one_file: bool = False
    preview: bool = False
    catalog: Any = field(default=None, repr=False)
    branch: str | None = None
    write: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> Destination | None:
        """Check and open the destination; return None if it holds data and the mode is ``"ignore"``."""
        destination: Destination | None = registered_method(f"ingest.{self.format}")(self)
        return destination


class Written(Record):
    """Files that a task wrote and that are not visible yet: staged files, or files as a table describes them."""

    files: tuple[Any, ...] = ()
    rows: int = 0
    bytes: int = 0


class Destination:
    """A directory of files that tasks stage and the driver commits. It can be pickled.

    The driver calls `begin`, tasks call `write`, and the driver calls `commit` or `abort`. A destination may complete
    its `request`, for example by its partition columns.
    """

    def __init__(self, request: WriteRequest, staging: Staging) -> None:
        self.dest = request.dest
        self.request, self.staging = request, staging
        self.records: Sequence[LoadedFile] = ()  # The source files that the job loads, if they are to be recorded.
        self._known_loads: tuple[str, ...] | None = None  # The names of the files with the records of a directory.
        self._options: Mapping[str, Any] = {}

    @property
    def bad_records_path(self) -> str:
        """The directory of quarantined lines."""
        return f"{self.staging.dest.rstrip('/')}/{BAD_RECORDS}"

    @property
    def holds_data(self) -> bool:
        """Whether the columns of the destination are known, because it holds files or is a table."""
        return any(visible_files(*filesystem_of(self.dest)))

    def data_files(self) -> Sequence[ParquetSource]:
        """Return Parquet files that the destination holds before the job: `FILES_WITH_TYPES` of a table are enough."""
        return ()

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that were loaded into the directory; a commit of this job checks them again."""
        loads = directory_load_files(self.dest)
        self._known_loads = tuple(loads)
        return [record for records in loads.values() for record in records]

    def columns(self) -> pa.Schema:
        """Return the columns that the destination has before an append, of a directory those of some files.

        Raises `TableError` if a table has no such Variant column, or an option is invalid.
        """
        return pa.schema([])

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise `SchemaError` if the destination has no place for a column of the rows; tables check it themselves."""

    def begin(
        self, schema: ShreddingSchema | None, columns: Fields | None = None, stream: str | None = None, **options: Any
    ) -> None:
        """Start the job before its first task.

        `schema`: the shredding schema; None if the Variants arrive shredded.
        `columns`: the columns of the rows, for a new table.
        `stream`: the name of a stream, one of whose batches the job may be. Its commits are made by other processes.
        `options`: further options of the data files.
        """
        self._options = options
        if stream is None:
            self.staging = self.staging.begin()
        else:
            # Every commit removes the staging directory, so that its absence does not mean that the job has ended.
            self.staging = replace(replace(self.staging, job=stream).begin(), begun=False)

    @abstractmethod
    def write(self, batches: Iterable[Columns], task: int, attempt: int | str) -> Written:
        """Write the rows of a task; `attempt` separates its files from those of its other attempts."""

    def write_no_rows(self, columns: Columns) -> Written:
        """Write what a job without rows leaves: a file that has the columns, unless the directory keeps its files."""
        keeps_files = self.request.mode == "append" and self.holds_data
        return Written() if keeps_files or self.request.partition_by else self.write([columns], 0, "empty")

    def commit(
        self, files: Sequence[Any], quarantine: Sequence[StagedFile] = (), batch: Batch | None = None
    ) -> list[str]:
        """Make the files of all tasks visible, and return the paths of the data files relative to `dest`.

        A destination that has `loads` records `records` in the same commit.

        `quarantine`: the staged files of quarantined lines.
        `batch`: name of the stream and number of its batch; a batch that was committed before is not added again.
        """
        root, loads, by = self.dest.rstrip("/") + "/", self._known_loads, self.request.partition_by
        staged = [*files, *quarantine]
        if loads is not None:
            staged.append(StagedFile(self.staging.attempt(0, "loads"), f"{LOADS}/{self.staging.job}.ndjson"))
            filesystem, path = filesystem_of(staged[-1].path)
            with write_errors(self.dest):
                filesystem.create_dir(path.rpartition("/")[0], recursive=True)
                with filesystem.open_output_stream(path) as stream:
                    stream.write("".join(f"{record.to_text()}\n" for record in self.records).encode())
        names = self.staging.commit(staged, partition_types=by.types_to_declare | by.paths, loads=loads, batch=batch)
        hidden = (f"{root}{BAD_RECORDS}/", f"{root}{LOADS}/")
        return [name.removeprefix(root) for name in names if not name.startswith(hidden)]

    def abort(self, files: Iterable[Any] = (), *, may_be_committed: bool = False) -> None:
        """Restore the state before the job. Files that other processes wrote meanwhile are kept.

        `files`: the files of tasks, if the job is a batch of a stream.
        `may_be_committed`: whether a commit was tried, by this process or another.
        """
        self.staging.abort()


class FileDestination(Destination):
    """One file, which one task writes, and next to it a file of quarantined lines if there are any.

    The staging area is next to the file.
    """

    holds_data = False  # The file is replaced.

    @classmethod
    def open(cls, request: WriteRequest) -> FileDestination | None:
        """Open the destination; return None if the file exists and the mode is ``"ignore"``."""
        dest, mode = request.dest, request.mode
        filesystem, path = filesystem_of(dest)
        if mode in ("append", "ignore") and info_of(filesystem, path).type == pafs.FileType.File:
            if mode == "ignore":
                return None
            problem = f"{dest} already exists: rows cannot be appended to a file: name a directory or another path"
            raise VariantFileError(problem, reason="exists", file=dest)
        check_target(filesystem, path, "overwrite" if mode == "overwrite" else "error")
        return cls(request, staging_beside(dest))

    @property
    def bad_records_path(self) -> str:
        """The file of quarantined lines."""
        return f"{self.dest}.bad_records.ndjson"

    def refuse_sources(self, files: Iterable[InputFile]) -> None:
        """Refuse a source that the job would replace. Raises `VariantFileError`: reason ``"bad-option"``."""
        replaced = set(map(os.path.realpath, map(absolute, (self.dest, self.bad_records_path))))
        for file in files:
            if os.path.realpath(absolute(file.name)) in replaced:
                problem = f"{file.name} is a source and would be replaced: write to another path"
                raise VariantFileError(problem, reason="bad-option", file=file.name)

    def commit(
        self, files: Sequence[Any], quarantine: Sequence[StagedFile] = (), batch: Batch | None = None
    ) -> list[str]:
        """Move the file to its final path; permissions of a file there and a symbolic link to it are kept."""
        if not files:
            raise VariantFileError(
                f"no line is valid JSON: nothing was written to {self.dest}; check the sources", reason="no-rows"
            )
        for file, target in [*((bad, self.bad_records_path) for bad in quarantine), (files[0], self.dest)]:
            filesystem, path = filesystem_of(file.path)
            with write_errors(target):
                place = linked_file(filesystem, filesystem_of(target)[1])
                keep_mode(filesystem, path, place)
                filesystem.move(path, place)
        self.staging.abort()
        return [self.dest.rpartition("/")[2]]


class TableDestination(Destination):
    """A table that a job appends to or overwrites. A new table is planned when the job begins.

    Data files are written to their final place, because no reader sees them before the commit. Only quarantined lines
    are staged, below the table's location.
    """

    holds_data = False
    _plan: TableWritePlan[Any] | None = None
    _commit: CommitSteps | None = None  # The commit of this job, which may name its files.

    def __init__(self, request: WriteRequest, location: str, *, exists: bool) -> None:
        super().__init__(request, Staging(location))
        self.holds_data = exists

    @abstractmethod
    def _plan_table(self, columns: Fields, *, at_once: bool) -> None:
        """Plan the table that the commit will create, or create it at once."""

    @abstractmethod
    def _plan_write(self, schema: ShreddingSchema | None, **options: Any) -> TableWritePlan[Any]:
        """Return the plan by which tasks write files."""

    @abstractmethod
    def _commit_files(self, files: list[Any], batch: Batch | None) -> bool:
        """Commit the files of all tasks at once; return False if the batch was committed before."""

    @abstractmethod
    def _paths(self, files: Iterable[Any]) -> list[str]:
        """Return the paths of files relative to the table."""

    @abstractmethod
    def _delete_files(self, files: Iterable[Any]) -> None:
        """Delete files that no version of the table will contain."""

    def columns(self) -> pa.Schema:
        """Return the columns of the table without partition columns, which rows may lack."""
        held = self.holds_data
        return arrow_schema(self._plan_write(ShreddingSchema.variant()).unpartitioned) if held else pa.schema([])

    def begin(
        self, schema: ShreddingSchema | None, columns: Fields | None = None, stream: str | None = None, **options: Any
    ) -> None:
        """Plan the table and its files."""
        if not self.holds_data:
            assert columns is not None
            self._plan_table(columns, at_once=stream is not None)
        self._plan = self._plan_write(schema, **options)
        if schema is None and self.request.mode == "append":
            self._plan = self._plan.keeping_types(self.data_files)
        if stream is None:
            sweep(self.staging.dest)
            is_new = info_of(*filesystem_of(self.staging.dest)).type == pafs.FileType.NotFound
            self.staging = Staging(self.staging.dest, made=is_new)
            self._plan = replace(self._plan, job=f"{self.staging.job}-")
            self.staging = self.staging.begin()

    def write(self, batches: Iterable[Columns], task: int, attempt: int | str) -> Written:
        """Write the data files of a task; a task that outlives its job removes them."""
        assert self._plan is not None
        row_count, column = 0, self.request.column

        def columns() -> Iterable[Columns]:
            nonlocal row_count
            for batch in map(arrays_of, batches):
                row_count += len(batch[column])
                yield {**batch, **self.request.partition_by.values(batch[column])}

        files = self._plan.write_files(columns())
        try:
            self.staging.check_running()
        except VariantError:
            self._remove(files)
            raise
        return Written(tuple(files), row_count, sum(file.size for file in files))

    def write_no_rows(self, columns: Columns) -> Written:
        """Return no files; the commit creates the table."""
        return Written()

    def commit(
        self, files: Sequence[Any], quarantine: Sequence[StagedFile] = (), batch: Batch | None = None
    ) -> list[str]:
        """Commit the files of all tasks as one version of the table."""
        with commit_steps(self.dest, partial(self._remove, files)) as self._commit:
            is_committed = self._commit.swap(partial(self._commit_files, list(files), batch))
        if not is_committed:
            self._remove(files)
        try:
            if quarantine:
                self.staging.commit(quarantine, marker=False)
            elif self.staging.begun:
                self.staging.abort()
        except VariantError as error:  # the rows are committed
            warnings.warn(
                f"the rows are committed to {self.dest}, but the quarantined lines could not be written there: {error}",
                UserWarning,
                stacklevel=2,
            )
        return self._paths(files)

    def abort(self, files: Iterable[Any] = (), *, may_be_committed: bool = False) -> None:
        """Remove the files that this job wrote, unless a commit may name them; they are then left for maintenance."""
        is_batch = self._plan is not None and bool(self._plan.job)
        if is_batch:
            # The staging area is removed first, so that a running task notices the end of the job.
            self.staging.abort()
        if self._plan is None or may_be_committed or (self._commit is not None and self._commit.may_have_happened):
            return
        if is_batch:
            with suppress(OSError, VariantError):
                self._plan.remove_files()
            self.staging.abort()  # removes the directory, which is empty now
        else:
            self._remove(files)

    def _remove(self, files: Iterable[Any]) -> None:
        """Delete the files of tasks; maintenance of the table removes files that cannot be deleted here."""
        with suppress(OSError, VariantError):
            self._delete_files(files)


def arrays_of(columns: Columns) -> dict[str, Any]:
    """Return the columns with all Variants as arrays; the rows of the kernel must not be used afterwards."""
    return {
        name: trusted_array(column.storage(), fits_files=True) if isinstance(column, ShreddedRows) else column
        for name, column in columns.items()
    }
