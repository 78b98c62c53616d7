"""Rows of a Delta table: whole rows, typed columns of paths with pruning by the log, and changes between versions.

Owns the steps from an add action to rows (path, deletion vector, column mapping, partition values, row ids), and the
columns of a data file. Also reads commits one by one, for rows that changed (PROTOCOL.md, "Add CDC File") and files
that appends added. Leaves the query to `tables.table_scan`, and the choice of files to `pruning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import DeltaError, TableError, check_count, strings_of
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource
from parquet_variant.files.parquet.format.footer_cache import without_views
from parquet_variant.files.parquet.format.nested import FIELD_ID
from parquet_variant.files.parquet.reading.chunk_pages import rows_of_pages
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.query.selection import Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.columns import (
    align_column,
    align_table,
    by_field_id,
    by_logical_name,
    by_name,
    stored_name,
    unchanged,
    unshredded,
)
from parquet_variant.tables.delta.file_locations import deleted_rows, partition_keys, relative_path
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines, no_files, split_commits
from parquet_variant.tables.delta.log.segment import commit_path, commit_times, in_commit_time
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Cdc, DeletionVector, Remove
from parquet_variant.tables.delta.protocol.features import in_commit_since, partition_names
from parquet_variant.tables.delta.protocol.schema_merging import CHANGE_COLUMNS
from parquet_variant.tables.delta.reading.pruning import Pruned, prune_files
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.schema import Field, Place, PrimitiveType, StructType, arrow_schema, fields_at
from parquet_variant.tables.storage import LocalStorage, Storage
from parquet_variant.tables.table_scan import ColumnOfRows, TableScan, TableScanReport, named_variant

# The columns of `Snapshot.files` that are needed to read a file.
PLACES = ["path", "partitionValues", "deletionVector", "size"]


def read_table(current: Snapshot, columns: Sequence[str] | None = None, *, threads: int | None = None) -> pa.Table:
    """Return all rows of a table; see `Table.to_arrow`."""
    schema = current.schema
    if columns is not None:
        names = strings_of("columns", columns)
        known = [f.name for f in schema.fields]
        if unknown := [name for name in names if schema.get(name) is None]:
            raise DeltaError(
                f"the table has no column {unknown[0]!r}: its columns are {', '.join(known)}", reason="unknown-column"
            )
        schema = StructType(tuple(field for name in names if (field := schema.get(name)) is not None))
    parts = [part for _, part in iter_files(current, schema, threads=thread_count(threads))]
    if not parts:
        return align_table(empty_table(arrow_schema(schema)), schema, by_logical_name, unshredded)
    return pa.concat_tables(parts, promote_options="permissive")


def read(current: Snapshot, column: str | None = None, *, threads: int | None = None) -> VariantArray:
    """Return a Variant column of all rows; see `Table.read`."""
    column = named_variant(current.schema, column, DeltaError)
    return VariantArray.from_storage(one_chunk(read_table(current, [column], threads=threads)[column]))


def iter_files(
    current: Snapshot, schema: StructType, files: pa.Table | None = None, *, threads: int = 1
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the path in the storage and the rows of each file (default: all files), in order.

    Memory holds the files that the threads read, and one more.
    """
    files = current.files if files is None else files

    def rows_of(file: Add) -> tuple[str, pa.Table]:
        return relative_path(current.storage, file.path), read_file(current, schema, file)

    yield from in_order(rows_of, iter_adds(files.select(PLACES)), threads)


def read_file(
    current: Snapshot,
    schema: StructType,
    file: Add,
    *,
    row_mask: Mask | None = None,
    shredded: bool = False,
) -> pa.Table:
    """Return rows of one data file in the columns of a schema.

    `row_mask`: the rows to read, by position (default: the rows that are not deleted).
    `shredded`: return Variants as the file stores them; by default they are unshredded.
    """
    partitions = {name.lower() for name in current.partition_columns}
    stored = StructType(tuple(f for f in schema.fields if f.name.lower() not in partitions))
    match = by_field_id if current.column_mapping == "id" else by_name
    path = relative_path(current.storage, file.path)
    try:
        # As nanoseconds, pyarrow's default for INT96, times outside of 1677 to 2262 would overflow silently.
        with open_parquet(current.storage.open(path), coerce_int96_timestamp_unit="us") as parquet:
            present = parquet.schema_arrow
            if current.column_mapping == "id" and not any(FIELD_ID in (f.metadata or {}) for f in present):
                raise DeltaError("the table maps columns by id, but the file has no field ids", reason="bad-data-file")
            names = [present.field(i).name for i in (match(present, f) for f in stored.fields) if i >= 0]
            data = _read_masked_rows(current, path, present, names, row_mask)
            mask = None
            if data is None:
                data = pa.table({"": pa.nulls(parquet.metadata.num_rows)})
                if names:
                    data = without_views(parquet.read(columns=names), parquet.metadata)
                mask = live_rows(current, file.deletion_vector, len(data)) if row_mask is None else row_mask
    except FileNotFoundError:
        raise DeltaError(f"data file {path} is missing", reason="missing-file", file=path) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DeltaError(f"data file {path} cannot be read: {error}", reason="bad-data-file", file=path) from error
    except TableError as error:
        raise error.at(file=path) from None
    if mask is not None:
        # Filter before converting, because a change may need few rows of a file.
        data = data.filter(pa.array(mask))
    rows = align_table(data, stored, match, unchanged if shredded else unshredded)
    for at, f in enumerate(schema.fields):
        if f.name.lower() in partitions:
            column = partition_array(file.partition_values.get(f.physical_name), f.type, len(data))
            rows = rows.add_column(at, pa.field(f.name, column.type, f.nullable), column)
    return rows


def _read_masked_rows(
    current: Snapshot, path: str, present: pa.Schema, names: list[str], row_mask: Mask | None
) -> pa.Table | None:
    """Return the rows of a mask if only the pages with these rows of a local file need to be read, else None."""
    if row_mask is None or not names or not isinstance(current.storage, LocalStorage):
        return None
    with current.storage.open(path) as source:
        rows = rows_of_pages(source, names, row_mask)
    kinds = [field.type for field in present if field.name in names]
    return rows if rows is not None and rows.schema.types == kinds else None


def data_files(current: Snapshot) -> list[str]:
    """Return paths or URLs of the Parquet files of a version; see `Table.data_files`.

    Raises `TableError`: ``"outside-table"`` if a file is outside of the table, perhaps through a link.
    """
    root, files = current.storage.uri.rstrip("/"), []
    for path in current.files["path"].to_pylist():
        relative = relative_path(current.storage, path)
        current.storage.filesystem(relative)  # refuses links to files outside of the table
        files.append(relative if "://" in relative or relative.startswith("/") else f"{root}/{relative}")
    return files


def parquet_files(current: Snapshot) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot; none if its columns have other names in the files."""
    if current.column_mapping != "none":
        return ()
    sources = []
    for row in current.files.select(["path", "size"]).to_pylist():
        filesystem, path = current.storage.filesystem(relative_path(current.storage, row["path"]))
        sources.append(ParquetSource(path, filesystem, row["size"]))
    return tuple(sources)


def live_rows(current: Snapshot, vector: DeletionVector | None, rows: int) -> Mask | None:
    """Return a mask that is False for the rows of a deletion vector; None if there is no vector.

    Raises `TableError`: reason ``"bad-deletion-vector"`` for a damaged vector, or one of another file.
    """
    if vector is None:
        return None
    deleted = deleted_rows(current.storage, vector) if vector.cardinality <= rows else None
    if deleted is None or (len(deleted) and int(deleted[-1]) >= rows):
        raise DeltaError(
            f"a deletion vector marks more rows than the {rows} rows of its file", reason="bad-deletion-vector"
        )
    mask = np.ones(rows, dtype=bool)
    mask[deleted.astype(np.int64)] = False
    return mask


def tracked_rows(current: Snapshot, file: Add, live: Mask | None = None, *, shredded: bool = False) -> pa.Table:
    """Return rows of a file with all columns, and with their ids and commit versions; see `read_file`."""
    rows = read_file(current, current.schema, file, row_mask=live, shredded=shredded)
    names = current.row_tracking_columns
    if names is None:
        return rows
    with open_parquet(current.storage.open(relative_path(current.storage, file.path))) as parquet:
        stored_names = [name for name in names if name in parquet.schema_arrow.names]
        stored = parquet.read(columns=stored_names) if stored_names else None
        count = parquet.metadata.num_rows
    if live is None:
        live = live_rows(current, file.deletion_vector, count)
    base, version = file.base_row_id, file.default_row_commit_version
    defaults = (
        pa.nulls(count, pa.int64()) if base is None else pa.array(np.arange(count, dtype=np.int64) + base),
        pa.repeat(pa.scalar(version, pa.int64()), count),
    )
    for name, default in zip(names, defaults, strict=True):
        column = default if stored is None or name not in stored.column_names else pc.coalesce(stored[name], default)
        column = pa.chunked_array([column] if isinstance(column, pa.Array) else column.chunks)
        rows = rows.append_column(name, column if live is None else column.filter(pa.array(live)))
    return rows


@dataclass(frozen=True)
class DeltaScanReport(TableScanReport):
    """The files, row groups, columns and bytes of a table that a scan reads.

    Parameters
    ----------
    version
        The table's version.
    """

    version: int
    STATISTICS: ClassVar[str] = "statistics of the log"

    def __str__(self) -> str:
        return f"version     {self.version}\n{super().__str__()}"


@dataclass(frozen=True, repr=False)
class DeltaScan(TableScan[Add]):
    """A query over a table, made by `scan`; it reads only the log until rows are requested."""

    current: Snapshot

    @staticmethod
    def known_columns(current: Snapshot) -> StructType:
        """See `TableScan`."""
        return current.schema

    @cached_property
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the log."""
        if not self.skipping:
            return Pruned(self.current.files, self.current.num_files)
        return prune_files(
            self.current, self.predicate, {column.name: column for column in self.every_column}, self.place
        )

    def _files(self) -> Iterator[Add]:
        return iter_adds(self.pruned.files.select(PLACES))

    def _is_local(self) -> bool:
        return isinstance(self.current.storage, LocalStorage)

    def source(self, file: Add) -> ParquetSource:
        """See `TableScan`."""
        filesystem, path = self.current.storage.filesystem(relative_path(self.current.storage, file.path))
        return ParquetSource(path, filesystem, file.size)

    def has_deletes(self, file: Add) -> bool:
        """See `TableScan`."""
        return file.deletion_vector is not None

    def partitions(self) -> list[dict[str, str | None]]:
        """See `TableScan`."""
        fields = [f for f in self.current.schema.fields if f.name in self.current.partition_columns]
        names = [f.name for f in fields]
        return [dict(zip(names, key, strict=True)) for key in partition_keys(self.pruned.files, fields)]

    def _columns(self, file: Add, opened: OpenFile) -> _FileColumns:
        return _FileColumns(self.current, file, opened)

    def _report(self, inside: ScanReport) -> DeltaScanReport:
        pruned = self.pruned
        return DeltaScanReport(pruned.total, pruned.by_partition, pruned.by_statistics, inside, self.current.version)

    def _snapshot_for_tasks(self) -> Snapshot:
        return self.current.without_files()


@dataclass(frozen=True)
class _FileColumns:
    """The columns of an open data file; implements `TableFileColumns`."""

    current: Snapshot
    add: Add
    opened: OpenFile

    def stored_field(self, selected: Selected) -> pa.Field | None:
        """See `TableFileColumns`."""
        f, arrow = self._field(selected), self.opened.arrow_schema
        index = -1 if self._is_partition(f) else self._match(arrow, f)
        return None if index < 0 else arrow.field(index)

    def variant_name(self, place: Place) -> str | None:
        """See `TableFileColumns`."""
        return stored_name(self.opened.arrow_schema, fields_at(self.current.schema, place), self._match)

    def needs_positions(self, missing: Sequence[Selected]) -> bool:
        """Return whether the file has deleted rows."""
        return self.add.deletion_vector is not None

    def complete(self, missing: Sequence[Selected]) -> tuple[Mask | None, Mapping[str, ColumnOfRows]]:
        """Return the rows that the deletion vector keeps, and the partition columns."""
        fields = {selected.name: self._field(selected) for selected in missing}
        columns = {name: self._partition_column(f) for name, f in fields.items() if self._is_partition(f)}
        return live_rows(self.current, self.add.deletion_vector, self.opened.rows), columns

    def converted(self, column: pa.Array, selected: Selected) -> pa.Array:
        """See `TableFileColumns`."""
        f = self._field(selected)
        return align_column(column, f.type, self._match, unchanged, (f.name,))

    def _field(self, selected: Selected) -> Field:
        f = self.current.schema.get(selected.stored_name)
        assert f is not None
        return f

    def _is_partition(self, f: Field) -> bool:
        return f.name.lower() in {name.lower() for name in self.current.partition_columns}

    def _partition_column(self, f: Field) -> ColumnOfRows:
        value = self.add.partition_values.get(f.physical_name)
        return lambda start, count: partition_array(value, f.type, count)

    def _match(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        match = by_field_id if self.current.column_mapping == "id" else by_name
        return match(fields, f)


_FileAction = TypeVar("_FileAction", Add, Remove)
_TYPE, _VERSION, _TIME = CHANGE_COLUMNS


def changes(storage: Storage, since: int, until: int | None = None) -> pa.Table:
    """Return the rows that versions inserted, deleted and updated; see `DeltaTable.changes`."""
    check_count("since", since)
    newest = snapshot(storage, version=until)
    for field in newest.schema.fields:
        if field.name.lower() in CHANGE_COLUMNS:
            raise DeltaError(
                f"the table has a column {field.name!r}, a name that its change data would use too: rename the column",
                reason="bad-schema",
            )
    times = commit_times(newest.storage) if since <= newest.version else {}
    own_times_since = in_commit_since(newest.protocol, newest.metadata)
    parts = []
    for version in range(since, newest.version + 1):
        commit = _commit_bytes(newest, version)
        has_own_time = own_times_since is not None and version >= own_times_since
        timestamp = (in_commit_time(commit) if has_own_time else None) or times.get(version, 0)
        for change_type, rows in _changed_rows(newest, version, log_lines(commit)):
            if len(rows):
                if change_type is not None:
                    rows = rows.append_column(_TYPE, pa.repeat(pa.scalar(change_type), len(rows)))
                rows = rows.append_column(_VERSION, pa.repeat(pa.scalar(version, pa.int64()), len(rows)))
                micros = pa.scalar(timestamp * 1000, pa.timestamp("us", "UTC"))
                parts.append(rows.append_column(_TIME, pa.repeat(micros, len(rows))))
    if parts:
        return pa.concat_tables(parts, promote_options="permissive")
    types = (pa.string(), pa.int64(), pa.timestamp("us", "UTC"))
    columns = [pa.field(name, kind) for name, kind in zip(CHANGE_COLUMNS, types, strict=True)]
    return empty_table(pa.schema([*arrow_schema(newest.schema), *columns]))


def _commit_bytes(newest: Snapshot, version: int) -> bytes:
    try:
        return newest.storage.read(commit_path(version))
    except FileNotFoundError:
        raise DeltaError(
            f"the log no longer holds version {version}: start again from a complete snapshot",
            reason="no-such-version",
            file=newest.storage.uri,
        ) from None


def _changed_rows(
    newest: Snapshot, version: int, actions: list[dict[str, Any]]
) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield changed rows with their change type; None if the rows have a column with it."""
    change_files = [Cdc.from_dict(action["cdc"]) for action in actions if action.get("cdc")]
    if change_files:
        columns = StructType((*newest.schema.fields, Field(_TYPE, PrimitiveType("string"))))
        for file in change_files:
            yield None, read_file(newest, columns, _as_add(file.path, file.partition_values))
        return
    adds, removes = _with_changed_rows(Add, actions), _with_changed_rows(Remove, actions)
    values: dict[str, Mapping[str, str | None]] = {}
    if newest.partition_columns and not all(remove.partition_values for remove in removes.values()):
        # Partition values are optional in a remove action.
        before = iter_adds(load_snapshot(newest.storage, version - 1).files.select(PLACES))
        values = {unquote(add.path): add.partition_values for add in before}
    for path, remove in removes.items():
        old = _as_add(remove.path, remove.partition_values or values.get(path, {}), remove.deletion_vector)
        if path in adds:
            yield from _changed_marks(newest, old, adds[path])
        else:
            yield "delete", read_file(newest, newest.schema, old)
    for path, add in adds.items():
        if path not in removes:
            yield "insert", read_file(newest, newest.schema, add)


def _with_changed_rows(kind: type[_FileAction], actions: list[dict[str, Any]]) -> dict[str, _FileAction]:
    """Return the actions of a kind that change rows, by unquoted path: writers differ in what they escape."""
    files = [kind.from_dict({"dataChange": True} | action[kind.key]) for action in actions if action.get(kind.key)]
    return {unquote(file.path): file for file in files if file.data_change}


def _as_add(path: str, values: Mapping[str, str | None], vector: DeletionVector | None = None) -> Add:
    return Add(path, values, 0, 0, True, deletion_vector=vector)


def _changed_marks(newest: Snapshot, old: Add, new: Add) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows that a changed deletion vector deletes, and those that it restores."""
    before, after = (
        deleted_rows(newest.storage, file.deletion_vector) if file.deletion_vector else np.empty(0, dtype=np.uint64)
        for file in (old, new)
    )
    rows = read_file(newest, newest.schema, replace(new, deletion_vector=None))
    for change_type, positions in (("delete", np.setdiff1d(after, before)), ("insert", np.setdiff1d(before, after))):
        yield change_type, rows.take(pa.array(positions))


def added(storage: Storage, since: int, until: int | None = None, *, ignore_changes: bool = False) -> Snapshot:
    """Return a snapshot that holds only the files added after a version; see `DeltaTable.added`."""
    check_count("since", since, -1)
    newest = snapshot(storage, version=until)
    names = partition_names(newest.protocol, newest.metadata)
    parts = [no_files()]
    for version in range(since + 1, newest.version + 1):
        files = split_commits(_commit_bytes(newest, version)).table(names)
        changed = files.filter(pc.fill_null(files["dataChange"], True))
        removed = changed.filter(pc.invert(changed["isAdd"]))
        if len(removed) and not ignore_changes:
            raise DeltaError(
                f"version {version} removed rows, which a reader of added rows does not see: pass ignore_changes=True "
                "to read on, or use changes()",
                reason="rows-removed",
                file=newest.storage.uri,
            )
        parts.append(changed.filter(changed["isAdd"]))
    return replace(newest, files=pa.concat_tables(parts), tombstones=no_files())
