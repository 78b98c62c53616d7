"""DuckLake tables over the data files of another table: rows of a catalog, in one transaction.

Owns the rows of a published table. DuckLake's own function ``ducklake_add_data_files`` refuses Variants, but the
extension reads the rows.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.errors import TableError
from parquet_variant.files.parquet.format.arrow_schema import FIELD_ID
from parquet_variant.tables.iceberg.locations import is_remote, normal_location
from parquet_variant.tables.iceberg.reading.snapshot import PATH_ID, POSITION_ID
from parquet_variant.tables.opening import PUBLISHED_FROM
from parquet_variant.tables.publishing.ducklake_catalog import (
    ColumnRow,
    DuckLakeCatalog,
    column_rows,
    column_statistics,
    mapping_rows,
    open_catalog,
    path_statistics,
    schema_of_rows,
)
from parquet_variant.tables.publishing.source import (
    PUBLISHED_VERSION,
    Difference,
    ListedFile,
    PublishedFile,
    PublishResult,
    Source,
    cannot_publish,
    difference_from,
)
from parquet_variant.tables.schema import leaves
from parquet_variant.tables.storage import open_storage

_AUTHOR = "parquet-variant"
_FOOTER_TAIL = 8


def publish_ducklake(source: Source, to: str | None) -> PublishResult:
    """Publish a source as a table of a DuckLake catalog.

    Raises `TableError`: reason ``"table-exists"`` or ``"changed-copy"``; and as `open_catalog`.
    """
    root = normal_location(source.default_name).rstrip("/")
    path, _, name = (f"{root}.ducklake" if to is None else to).partition("#")
    if is_remote(path):
        raise TableError(
            "a DuckLake catalog is a local file: name it with to= (--to), such as lake.ducklake", reason="bad-argument"
        )
    schema_name, _, table_name = (name or root.rpartition("/")[2]).rpartition(".")
    with open_catalog(str(Path(path).absolute())) as catalog:
        return _Publication(source, catalog, schema_name or "main", table_name).publish(path)


class _Publication:
    """One publication, in an open transaction of the catalog."""

    def __init__(self, source: Source, catalog: DuckLakeCatalog, schema_name: str, table_name: str) -> None:
        self.source, self.catalog, self.run, self.insert = source, catalog, catalog.run, catalog.insert
        self.schema_name, self.table_name = schema_name, table_name
        last = catalog.run("SELECT * EXCLUDE (snapshot_time) FROM {snapshot} ORDER BY snapshot_id DESC LIMIT 1")[0]
        self.snapshot, self.schema_version, next_catalog_id, next_file_id = last
        self.catalog_ids, self.file_ids = count(next_catalog_id), count(next_file_id)
        self.next_snapshot = self.snapshot + 1
        self.changes: list[str] = []
        self.has_new_schema = False
        self.marks = {PUBLISHED_FROM: source.format, "parquet-variant.published-location": source.location}
        self.storage = open_storage(normal_location(source.location), source.options, allow_outside=True)

    def publish(self, path: str) -> PublishResult:
        """Write the rows of the catalog at a path."""
        self.table_id = self._table()
        names = ", ".join(ColumnRow._fields)
        query = f"SELECT {names} FROM {{column}} WHERE table_id = ? AND end_snapshot IS NULL ORDER BY column_order"
        former = [ColumnRow(*row) for row in self.run(query, self.table_id)]
        ((last_id,),) = self.run("SELECT max(column_id) FROM {column} WHERE table_id = ?", self.table_id)
        self.columns = self.source.columns(schema_of_rows(former) if former else None, last_id or 0)
        # Whether values of partition columns are in the names of directories, not in files.
        self.in_directories = bool(self.columns.partition_by) and self.source.format != "iceberg"
        self._write_columns(former)
        partition_id = self._partitioning()
        if self.has_new_schema:
            self.schema_version += 1
            self.insert("schema_versions", [(self.next_snapshot, self.schema_version, self.table_id)])
            self.changes = self.changes or [f"altered_table:{self.table_id}"]
        difference = self._difference()
        removed = [*difference.removed, *difference.replaced]
        changed = [number for number, _ in difference.vectors_changed]
        self._end("data_file", "data_file_id", removed)
        self._end("delete_file", "data_file_id", [*removed, *changed])
        vectors = [(number, file) for number, file in difference.vectors_changed if file.vector_key is not None]
        if difference.added:
            vectors += self._add_files(difference.added, partition_id)
            self.changes.append(f"inserted_into_table:{self.table_id}")
        if removed or changed:
            self.changes.append(f"deleted_from_table:{self.table_id}")
        self.insert("delete_file", [self._written_vector(number, file) for number, file in vectors])
        if self.changes:
            self.snapshot = self.next_snapshot
            numbers = (self.snapshot, self.schema_version, next(self.catalog_ids), next(self.file_ids))
            self.run("INSERT INTO {snapshot} VALUES (?, now(), ?, ?, ?)", *numbers)
            notes = (f"published from {self.source.format}", f"{PUBLISHED_VERSION}={self.source.version}")
            self.insert("snapshot_changes", [(self.snapshot, ",".join(self.changes), _AUTHOR, *notes)])
        counts = (len(difference.added), len(removed), len(vectors))
        return PublishResult("ducklake", path, str(self.snapshot), *counts, committed=bool(self.changes))

    def _table(self) -> int:
        """Return the id of the table, which is created if it does not exist."""
        rows = self.run(
            "SELECT s.schema_id, t.table_id FROM {schema} s LEFT JOIN {table} t ON t.schema_id = s.schema_id AND "
            "t.table_name = ? AND t.end_snapshot IS NULL WHERE s.schema_name = ? AND s.end_snapshot IS NULL",
            *(self.table_name, self.schema_name),
        )
        if not rows:
            raise TableError(
                f"the DuckLake catalog {self.catalog.path} has no schema {self.schema_name!r}", reason="no-such-table"
            )
        schema_id, former = rows[0]
        if former is not None:
            self._check_unchanged(former)
            return int(former)
        table_id = next(self.catalog_ids)
        row = (table_id, str(uuid.uuid4()), self.next_snapshot, None, schema_id, self.table_name)
        self.insert("table", [(*row, f"{self.table_name}/", True)])
        self.insert("table_stats", [(table_id, 0, 0, 0)])
        self.insert("tag", [(table_id, self.next_snapshot, None, *mark) for mark in self.marks.items()])
        self.changes.append(f'created_table:"{self.schema_name}"."{self.table_name}"')
        return table_id

    def _check_unchanged(self, table_id: int) -> None:
        name = f"{self.schema_name}.{self.table_name} of {self.catalog.path}"
        marks = dict(self.run("SELECT key, value FROM {tag} WHERE object_id = ?", table_id))
        if not self.marks.items() <= marks.items():
            raise TableError(
                f"{name} is a table that was not published from {self.source.location}: choose another name with "
                "to= (--to), such as lake.ducklake#main.name",
                reason="table-exists",
            )
        ours = "(SELECT snapshot_id FROM {snapshot_changes} WHERE author = ?)"
        other_files = self.run(
            "SELECT path FROM {data_file} WHERE table_id = ? AND end_snapshot IS NULL AND begin_snapshot NOT IN " + ours
            + " UNION ALL SELECT path FROM {data_file} WHERE table_id = ? AND end_snapshot NOT IN " + ours
            + " UNION ALL SELECT path FROM {delete_file} WHERE table_id = ? AND begin_snapshot NOT IN " + ours
            + " UNION ALL SELECT table_name FROM {inlined_data_tables} WHERE table_id = ?",
            *(table_id, _AUTHOR) * 3,
            table_id,
        )  # fmt: skip
        if other_files:
            raise TableError(
                f"other writers changed the published table {name} ({other_files[0][0]}), and publishing would undo "
                f"it: change the {self.source.format} table instead, and drop the DuckLake table",
                reason="changed-copy",
            )

    def _write_columns(self, former: list[ColumnRow]) -> None:
        rows_of_schema = column_rows(self.columns.schema)
        if rows_of_schema == former:
            return
        unchanged = set(rows_of_schema) & set(former)
        self._end("column", "column_id", [row.column_id for row in former if row not in unchanged])
        self.insert(
            "column",
            [
                (row.column_id, self.next_snapshot, None, self.table_id, row.column_order, row.column_name,
                 row.column_type, None, "NULL", row.nulls_allowed, row.parent_column, "literal", "duckdb")
                for row in rows_of_schema if row not in unchanged
            ],
        )  # fmt: skip
        self.has_new_schema = True

    def _partitioning(self) -> int | None:
        """Return the id of the partitioning, which is written if it changed; None without partitions."""
        column_ids = [f.id for f in self.columns.partition_fields]
        current = self.run(
            "SELECT i.partition_id, list(c.column_id ORDER BY c.partition_key_index) FROM {partition_info} i "
            "JOIN {partition_column} c USING (partition_id) WHERE i.table_id = ? AND i.end_snapshot IS NULL GROUP BY 1",
            self.table_id,
        )
        if [ids for _, ids in current] == ([column_ids] if column_ids else []):
            return int(current[0][0]) if current else None
        self._end("partition_info", "partition_id", [number for number, _ in current])
        self.has_new_schema = True
        if not column_ids:
            return None
        partition_id = next(self.catalog_ids)
        keys = [(partition_id, self.table_id, *column, "identity") for column in enumerate(column_ids)]
        self.insert("partition_info", [(partition_id, self.table_id, self.next_snapshot, None)])
        self.insert("partition_column", keys)
        return partition_id

    def _difference(self) -> Difference[int]:
        rows = self.run(
            "SELECT f.path, f.data_file_id, f.file_size_bytes, epoch_ms(s.snapshot_time), d.path FROM {data_file} f "
            "JOIN {snapshot} s ON f.begin_snapshot = s.snapshot_id LEFT JOIN {delete_file} d "
            "ON f.data_file_id = d.data_file_id AND d.end_snapshot IS NULL WHERE f.table_id = ? AND "
            "f.end_snapshot IS NULL",
            self.table_id,
        )
        published = {path: PublishedFile(*row) for path, *row in rows}
        return difference_from(published, self.source.listed(), self._vector_path)

    def _vector_path(self, file: ListedFile) -> str:
        return str(self.catalog.files_directory / f"ducklake-{file.vector_id}-delete.parquet")

    def _end(self, table: str, key: str, numbers: Sequence[int]) -> None:
        """End rows of the published table by their ids."""
        self.run(
            f"UPDATE {{{table}}} SET end_snapshot = ? WHERE table_id = ? AND end_snapshot IS NULL AND {key} IN "
            "(SELECT unnest(?::BIGINT[]))",
            *(self.next_snapshot, self.table_id, list(numbers)),
        )

    def _add_files(self, listed: Sequence[ListedFile], partition_id: int | None) -> list[tuple[int, ListedFile]]:
        """Insert the rows of new files, and return those with deleted rows, with their ids."""
        by_location = {file.location: file for file in listed}
        mapping_id = None
        if self.columns.files_lack_ids or self.in_directories:
            mapping_id = next(self.file_ids)
            partition = {f.id for f in self.columns.partition_fields} if self.in_directories else set()
            self.insert("column_mapping", [(mapping_id, self.table_id, "map_by_name")])
            self.insert("name_mapping", [(mapping_id, *row) for row in mapping_rows(self.columns, partition)])
        root = normal_location(self.source.location).rstrip("/") + "/"
        (first_row,) = self.run("SELECT next_row_id FROM {table_stats} WHERE table_id = ?", self.table_id)[0]
        fields = [f for *_, f in leaves(self.columns.schema.struct)]
        files, column_stats, path_stats, partitions, vectors = [], [], [], [], []
        rows = size = 0
        for described in self.source.described(self.columns, listed):
            number = next(self.file_ids)
            key = (number, self.table_id)
            path = normal_location(described.path)
            tail = self.storage.read(path.removeprefix(root), described.size - _FOOTER_TAIL, _FOOTER_TAIL)
            files.append(
                (*key, self.next_snapshot, None, None, path, False, "parquet", described.record_count, described.size,
                 int.from_bytes(tail[:4], "little"), first_row + rows, partition_id, None, mapping_id, None)
            )  # fmt: skip
            rows, size = rows + described.record_count, size + described.size
            column_stats += [(*key, *row) for row in column_statistics(described, fields)]
            path_stats += [(*key, *row) for f in fields for row in path_statistics(described, f)]
            for index, (f, text) in enumerate(self.columns.partition_texts(described)):
                if self.in_directories and f"/{self.columns.stored_name(f)}=" not in described.path:
                    raise cannot_publish(
                        f"the file {described.path} lacks the partition column {f.name}, and DuckLake reads it from "
                        "the names of directories, such as k=1"
                    )
                partitions.append((*key, index, text))
            if by_location[described.path].vector_key is not None:
                vectors.append((number, by_location[described.path]))
        self.insert("data_file", files)
        self.insert("file_column_stats", column_stats)
        self.insert("file_variant_stats", path_stats)
        self.insert("file_partition_value", partitions)
        self.run(
            "UPDATE {table_stats} SET record_count = record_count + ?, next_row_id = next_row_id + ?, "
            "file_size_bytes = file_size_bytes + ? WHERE table_id = ?",
            *(rows, rows, size, self.table_id),
        )
        return vectors

    def _written_vector(self, number: int, file: ListedFile) -> tuple[Any, ...]:
        """Write the deleted rows of a file, and return their row of the catalog."""
        rows = self.source.deleted_rows(file)
        path = normal_location(file.location)
        fields = [("file_path", pa.string(), PATH_ID), ("pos", pa.int64(), POSITION_ID)]
        schema = pa.schema([pa.field(name, kind, metadata={FIELD_ID: str(i)}) for name, kind, i in fields])
        table = pa.table([pa.repeat(path, len(rows)), pa.array(rows.astype(np.int64))], schema)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        data = sink.getvalue()
        target = Path(self._vector_path(file))
        open_storage(str(target.parent)).put(target.name, data)
        footer = int.from_bytes(data[-_FOOTER_TAIL:-4], "little")
        return (
            next(self.file_ids), self.table_id, self.next_snapshot, None, number, str(target), False, "parquet",
            len(rows), len(data), footer, None, None,
        )  # fmt: skip
