"""Rows of a Delta table: whole rows, typed columns of paths with pruning by the log, and changes between versions.

Owns the steps from an add action to rows (path, deletion vector, column mapping, partition values, row ids), the files
that may hold a match, by columns of statistics with one entry per file, because a table may have a million files, and
rows that commits changed (PROTOCOL.md, "Add CDC File"). Leaves the query to `tables.table_scan`, statistics to
`tables.pruning`, and reasoning to `query.prune`. Unknown statistics never prune.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import DeltaError, check_count
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, scalar, to_numpy
from parquet_variant.query.predicate import columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import cached_property
from parquet_variant.tables import pruning
from parquet_variant.tables.columns import by_field_id, by_name, has_ids
from parquet_variant.tables.delta.file_locations import deleted_rows, partition_column, partition_keys, relative_path
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines, no_files, split_commits
from parquet_variant.tables.delta.log.segment import commit_path, commit_times, in_commit_time
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Cdc, Remove, was_float
from parquet_variant.tables.delta.protocol.features import in_commit_since, partition_names
from parquet_variant.tables.delta.protocol.schema_merging import CHANGE_COLUMNS
from parquet_variant.tables.delta.statistics import StatsTable, decode_bounds_array, read_stats
from parquet_variant.tables.file_rows import ColumnOfRows, DataFileColumns
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.pruning import Pruned, parsed_bounds
from parquet_variant.tables.row_input import spread
from parquet_variant.tables.schema import VARIANT, Field, Place, PrimitiveType, StructType, arrow_schema, fields_at
from parquet_variant.tables.storage import Storage
from parquet_variant.tables.table_scan import TableScan


def _statistics(
    current: Snapshot, files: pa.Table, place_of: Callable[[Selected], Place], selection: Mapping[str, Selected]
) -> dict[str, pruning.FileStatistics]:
    """Return the statistics of stored columns in some files, from the log."""
    variants = {
        selected.column: tuple(f.physical_name for f in fields_at(current.schema, place_of(selected)))
        for selected in selection.values()
        if selected.path is not None
    }
    fields = {name: current.schema.get(s.stored_name) for name, s in selection.items() if s.path is None}
    places = [(f.physical_name,) for f in fields.values() if f is not None]
    stats = read_stats(files, current.schema, [*places, *variants.values()])
    bounds = cache(lambda variant: [_variants(stats, kind, variant) for kind in ("minValues", "maxValues")])
    by_column = {}
    for name, selected in selection.items():
        field = fields.get(name)
        if selected.path is not None:
            variant = variants[selected.column]
            lower, upper = bounds(variant)
            by_column[name] = pruning.path_statistics(selected, lower, upper, len(files), _nulls(stats, variant)[1])
        elif field is not None:
            column, lower, upper = (field.physical_name,), None, None
            if selected.type is not None and field.type != VARIANT:
                lower, upper = _statistic(stats, "minValues", column), _statistic(stats, "maxValues", column)
            if upper is not None and pa.types.is_timestamp(upper.type):
                upper = pruning.shifted_times(upper)
            if selected.type is not None and pa.types.is_floating(selected.type):
                is_known = not was_float(field)
                lower, upper = (
                    pruning.double_bounds(bound) if is_known and bound is not None else None for bound in (lower, upper)
                )
            by_column[name] = pruning.FileStatistics(len(files), lower, upper, *_nulls(stats, column))
    return by_column


def _nulls(stats: StatsTable, place: Place) -> tuple[bool | Mask, bool | Mask]:
    """Return whether the column of each file may hold a null, and whether it may hold another value."""
    nulls = _statistic(stats, "nullCount", place)
    if nulls is None:
        return True, True
    may_be_null = pruning.true_or_unknown(pc.not_equal(nulls, scalar(0, nulls.type)))
    return may_be_null, pruning.true_or_unknown(pc.not_equal(nulls, one_chunk(stats.num_records)))


def _variants(stats: StatsTable, kind: str, place: Place) -> list[VariantArray]:
    """Return the bounds of the Variant column: those of the log's JSON, then those of checkpoints."""
    encoded, parsed = _statistic(stats, kind, place), stats.parsed_variant(kind, place)
    sources = [] if encoded is None else [decode_bounds_array(encoded)]
    sources += [] if parsed is None else [parsed_bounds(parsed)]
    return [VariantArray(source) for source in sources]


def _statistic(stats: StatsTable, kind: str, place: Place) -> pa.Array | None:
    try:
        return one_chunk(stats.get(kind, place))
    except (KeyError, pa.ArrowException):
        return None


def _partition_statistics(current: Snapshot, files: pa.Table, selected: Selected) -> pruning.FileStatistics | None:
    """Return the statistics of a partition column; None for other columns and for paths."""
    field = None if selected.path is not None else current.schema.get(selected.stored_name)
    if field is None or field.name.lower() not in {name.lower() for name in current.partition_columns}:
        return None
    values = partition_column(files, field)
    is_null = to_numpy(values.is_null())
    bounds = values.cast(pa.float64()) if pa.types.is_floating(values.type) else values
    return pruning.FileStatistics(len(values), bounds, bounds, is_null, ~is_null)


# The columns of `Snapshot.files` that are needed to read a file.
PLACES = ["path", "partitionValues", "deletionVector", "size"]


def rows_of_file(current: Snapshot, file: Add, columns: StructType | None = None) -> pa.Table:
    """Return the rows of a file that are not deleted, unshredded, in some columns (default: those of the table)."""
    return FileColumns.read_unshredded(current, file, columns or current.schema)


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


def parquet_files(current: Snapshot, limit: int | None = None) -> tuple[ParquetSource, ...]:
    """Return the data files of a snapshot, or `limit` of them; none if its columns have other names in the files."""
    if current.column_mapping != "none":
        return ()
    sources, files = [], current.files.select(["path", "size"])
    for row in files.take(from_numpy(np.asarray(spread(range(len(files)), limit), np.int64))).to_pylist():
        filesystem, path = current.storage.filesystem(relative_path(current.storage, row["path"]))
        sources.append(ParquetSource(path, filesystem, row["size"]))
    return tuple(sources)


class FileColumns(DataFileColumns):
    """The columns of one data file; rows inherit partition values, and row ids where the file has none."""

    current: Snapshot
    file: Add
    error = DeltaError

    def __post_init__(self) -> None:
        if self.current.column_mapping == "id" and not has_ids(self.arrow):
            raise DeltaError("the table maps columns by id, but the file has no field ids", reason="bad-data-file")

    def find(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        """See `DataFileColumns`; files need not have partition columns."""
        if isinstance(fields, pa.Schema) and self._is_partition(f):
            return -1
        return (by_field_id if self.current.column_mapping == "id" else by_name)(fields, f)

    def is_inherited(self, f: Field) -> bool:
        """See `DataFileColumns`."""
        return self._is_partition(f) or f.name in (self.current.row_tracking_columns or ())

    def inherited(self, f: Field) -> pa.Array:
        """See `DataFileColumns`."""
        if self._is_partition(f):
            return partition_array(self.file.partition_values.get(f.physical_name), f.type, self.rows)
        if f.name != (self.current.row_tracking_columns or ("",))[0]:
            return pa.repeat(pa.scalar(self.file.default_row_commit_version, pa.int64()), self.rows)
        base = self.file.base_row_id
        return pa.nulls(self.rows, pa.int64()) if base is None else from_numpy(np.arange(base, base + self.rows))

    def live(self, parquet: Any = None) -> Mask | None:
        """Return the rows that the deletion vector keeps, which may be damaged, or of another file."""
        vector = self.file.deletion_vector
        if vector is None:
            return None
        deleted = deleted_rows(self.current.storage, vector) if vector.cardinality <= self.rows else None
        if deleted is None or (len(deleted) and int(deleted[-1]) >= self.rows):
            problem = f"a deletion vector marks more rows than the {self.rows} rows of its file"
            raise DeltaError(problem, reason="bad-deletion-vector")
        mask = np.ones(self.rows, dtype=bool)
        mask[deleted.astype(np.int64)] = False
        return mask

    def complete(self, missing: Sequence[Selected]) -> tuple[Mask | None, Mapping[str, ColumnOfRows]]:
        """Return the rows that the deletion vector keeps, and the partition columns."""
        fields = {selected.name: self._field(selected) for selected in missing}
        return self.live(), {name: self.inherited(f).slice for name, f in fields.items() if self._is_partition(f)}

    def _is_partition(self, f: Field) -> bool:
        return f.name.lower() in {name.lower() for name in self.current.partition_columns}


class DeltaScan(TableScan[Add]):
    """A query over a table, made by `scan`; it reads only the log until rows are requested."""

    current: Snapshot
    file_columns = FileColumns
    parquet_files = staticmethod(parquet_files)

    @cached_property
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the log."""
        current, predicate = self.current, self.predicate
        pruned = Pruned(current.files, current.num_files)
        if not self.skipping or predicate is None or not current.num_files:
            return pruned
        names, remaining = columns_of(predicate), []
        selection = {column.name: column for column in self.question.columns if column.name in names}
        for start in range(0, current.num_files, pruning.FILES_AT_ONCE):
            files = current.files.slice(start, pruning.FILES_AT_ONCE)
            by_name = {name: _partition_statistics(current, files, column) for name, column in selection.items()}
            statistics = {name: column for name, column in by_name.items() if column is not None}
            mask = pruning.may_match_files(predicate, statistics, len(files))
            candidates = files if mask.all() else files.filter(from_numpy(mask))
            pruned.by_partition += len(files) - len(candidates)
            selected = {name: column for name, column in selection.items() if name not in statistics}
            if selected and len(candidates):
                statistics = {name: column.part(mask) for name, column in statistics.items()}
                statistics |= _statistics(current, candidates, self.place_of, selected)
                mask = pruning.may_match_files(predicate, statistics, len(candidates))
                pruned.by_statistics += len(candidates) - int(mask.sum())
                candidates = candidates.filter(from_numpy(mask))
            remaining.append(candidates)
        pruned.files = pa.concat_tables(remaining)
        return pruned

    def _files(self) -> Iterator[Add]:
        return iter_adds(self.pruned.files.select(PLACES))

    def partitions(self) -> list[dict[str, str | None]]:
        """See `TableScan`."""
        fields = [f for f in self.current.schema.fields if f.name in self.current.partition_columns]
        names = [f.name for f in fields]
        return [dict(zip(names, key, strict=True)) for key in partition_keys(self.pruned.files, fields)]


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
                    rows = rows.append_column(_TYPE, pa.repeat(scalar(change_type, pa.string()), len(rows)))
                rows = rows.append_column(_VERSION, pa.repeat(scalar(version, pa.int64()), len(rows)))
                micros = scalar(timestamp * 1000, pa.int64()).cast(pa.timestamp("us", "UTC"))
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
        problem = f"the log no longer holds version {version}: start again from a complete snapshot"
        raise DeltaError(problem, reason="no-such-version", file=newest.storage.uri) from None


def _changed_rows(
    newest: Snapshot, version: int, actions: list[dict[str, Any]]
) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield changed rows with their change type; None if the rows have a column with it."""
    change_files = [Cdc.from_dict(action["cdc"]) for action in actions if action.get("cdc")]
    if change_files:
        columns = StructType((*newest.schema.fields, Field(_TYPE, PrimitiveType("string"))))
        for file in change_files:
            yield None, rows_of_file(newest, Add(file.path, file.partition_values, 0, 0, True), columns)
        return
    adds, removes = _with_changed_rows(Add, actions), _with_changed_rows(Remove, actions)
    values: dict[str, Mapping[str, str | None]] = {}
    if newest.partition_columns and not all(remove.partition_values for remove in removes.values()):
        # Partition values are optional in a remove action.
        before = iter_adds(load_snapshot(newest.storage, version - 1).files.select(PLACES))
        values = {unquote(add.path): add.partition_values for add in before}
    for path, remove in removes.items():
        partition = remove.partition_values or values.get(path, {})
        old = Add(remove.path, partition, 0, 0, True, deletion_vector=remove.deletion_vector)
        if path not in adds:
            yield "delete", rows_of_file(newest, old)
            continue
        # The rows that a changed deletion vector deletes, and those that it restores.
        vectors = (old.deletion_vector, adds[path].deletion_vector)
        former, after = (np.empty(0, np.uint64) if v is None else deleted_rows(newest.storage, v) for v in vectors)
        rows = rows_of_file(newest, replace(adds[path], deletion_vector=None))
        yield "delete", rows.take(from_numpy(np.setdiff1d(after, former)))
        yield "insert", rows.take(from_numpy(np.setdiff1d(former, after)))
    for path, add in adds.items():
        if path not in removes:
            yield "insert", rows_of_file(newest, add)


def _with_changed_rows(kind: type[_FileAction], actions: list[dict[str, Any]]) -> dict[str, _FileAction]:
    """Return the actions of a kind that change rows, by unquoted path: writers differ in what they escape."""
    files = [kind.from_dict({"dataChange": True} | action[kind.key]) for action in actions if action.get(kind.key)]
    return {unquote(file.path): file for file in files if file.data_change}


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
            problem = (
                f"version {version} removed rows, which a reader of added rows does not see: pass ignore_changes=True "
                "to read on, or use changes()"
            )
            raise DeltaError(problem, reason="rows-removed", file=newest.storage.uri)
        parts.append(changed.filter(changed["isAdd"]))
    return replace(newest, files=pa.concat_tables(parts), tombstones=no_files())
