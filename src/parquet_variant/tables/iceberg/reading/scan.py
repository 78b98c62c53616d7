"""Rows of an Iceberg table: whole rows, and typed columns of paths with pruning by manifests.

Owns reading one data file without its deleted rows, and `FileColumns` (specification, "Column Projection"): field ids,
the name mapping of files without them, partition values, initial defaults and metadata columns. Leaves the query to
`tables.table_scan`, and the choice of files to `planning`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array, one_chunk
from parquet_variant.errors import IcebergError
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.query.selection import Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import cached_property
from parquet_variant.tables import file_rows
from parquet_variant.tables.columns import by_field_id, has_ids
from parquet_variant.tables.iceberg.metadata import schema as schemas
from parquet_variant.tables.iceberg.metadata.manifests import ManifestEntry
from parquet_variant.tables.iceberg.metadata.partitioning import result_types
from parquet_variant.tables.iceberg.reading.planning import parquet_files, plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableFile, deleted_positions, read_delete_file
from parquet_variant.tables.partitions import row_codes
from parquet_variant.tables.pruning import Pruned
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_field, arrow_type, fields_at
from parquet_variant.tables.table_scan import TableScan


class FileColumns(file_rows.DataFileColumns):
    """The columns of one data file; rows inherit row ids and sequence numbers where the file has none.

    Raises `IcebergError`: reason ``"bad-data-file"`` if neither the file nor a name mapping has field ids, or if the
    file has another number of rows than its manifest states.
    """

    current: Snapshot
    file: TableFile
    error = IcebergError

    def __post_init__(self) -> None:
        if self.rows != self.file.file.record_count:
            problem = f"the data file has {self.rows} rows, its manifest states {self.file.file.record_count}"
            raise IcebergError(problem, reason="bad-data-file", file=self.file.path)
        if self._names is None and len(self.arrow) and not has_ids(self.arrow):
            problem = (
                f"the data file has no field ids, and the table has no {schemas.NAME_MAPPING}: set it to name the "
                "columns"
            )
            raise IcebergError(problem, reason="bad-data-file", file=self.file.path)

    @cached_property
    def _names(self) -> schemas.NameMapping | None:
        """The names of fields where the file has no field ids; None if it has ids."""
        return None if has_ids(self.arrow) else self.current.metadata.name_mapping

    @cached_property
    def _partition(self) -> Mapping[int, tuple[Any, PrimitiveType]]:
        """Values of columns that the file's partition knows, by field id."""
        metadata, file = self.current.metadata, self.file.file
        spec = metadata.specs[file.spec_id]
        values = zip(spec.fields, file.partition, result_types(spec, metadata.schemas_newest_first), strict=True)
        return {f.source_id: (value, kind) for f, value, kind in values if f.transform.name == "identity"}

    def find(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        """See `DataFileColumns`."""
        if f.id in METADATA_IDS and self.file.file.first_row_id is None:
            return -1
        if self._names is None:
            return by_field_id(fields, f)
        names = self._names.get(f.id, ())
        count = len(fields) if isinstance(fields, pa.Schema) else fields.num_fields
        return next((index for index in range(count) if fields.field(index).name in names), -1)

    def missing(self, f: Field, rows: int) -> pa.Array:
        """Return the values of a field that the file lacks: of the partition, or its initial default, else null."""
        target = arrow_type(f.type)
        if f.id in self._partition:
            raw, kind = self._partition[f.id]
            return repeated(schemas.arrow_array([raw], kind).cast(target), rows)
        default = f.metadata.get(schemas.INITIAL_DEFAULT)
        if default is None:
            return pa.nulls(rows, target)
        if isinstance(f.type, PrimitiveType):
            return repeated(schemas.arrow_array([schemas.from_json(default, f.type)], f.type), rows)
        if isinstance(f.type, StructType) and default == {}:
            parts = [self.missing(part, rows) for part in f.type.fields]
            return pa.StructArray.from_arrays(parts, fields=[arrow_field(part) for part in f.type.fields])
        problem = f"column {f.name!r} has a default of type {schemas.type_name(f.type)}, which is not supported"
        raise IcebergError(problem, reason="unsupported-feature")

    def is_inherited(self, f: Field) -> bool:
        """See `DataFileColumns`: metadata columns, because null values of them are inherited."""
        return f.id in METADATA_IDS

    def inherited(self, f: Field) -> pa.Array:
        """See `DataFileColumns`."""
        if f.id == schemas.FILE_PATH.id:
            return repeated(pa.array([self.file.path]), self.rows)
        first = 0 if f.id == schemas.POSITION.id else self.file.file.first_row_id
        if first is None:
            return pa.nulls(self.rows, pa.int64())
        if f.id in (schemas.POSITION.id, schemas.ROW_ID.id):
            return from_numpy(np.arange(first, first + self.rows, dtype=np.int64))
        return from_numpy(np.full(self.rows, self.file.entry.sequence_number or 0, dtype=np.int64))

    def needs_positions(self, missing: Sequence[Selected]) -> bool:
        """Return whether the file has deleted rows, or a column differs from row to row."""
        return super().needs_positions(missing) or any(self.is_inherited(self._field(selected)) for selected in missing)

    def complete(self, missing: Sequence[Selected]) -> tuple[Mask | None, Mapping[str, file_rows.ColumnOfRows]]:
        """Return the rows that the delete files keep, the metadata columns, and the defaults of other columns."""
        if not self.file.deletes and not missing:
            return None, {}
        fields = {selected.name: self._field(selected) for selected in missing}
        with self.opened(self.current, self.file) as (_, parquet):
            rows = self.read(parquet, StructType(tuple({f.id: f for f in fields.values()}.values())))
            return self.live(parquet), {name: one_chunk(rows[f.name]).slice for name, f in fields.items()}

    def live(self, parquet: pq.ParquetFile) -> Mask | None:
        """Return which rows of the open file are not deleted; None if all are live."""
        if not self.file.deletes:
            return None
        live = np.ones(self.rows, dtype=bool)
        positions = deleted_positions(self.current.table.files, self.file.file, self.file.deletes)
        live[positions.astype(np.int64)] = False
        return live & ~_matches_deletes(self, parquet) if self.file.deletes.equalities else live


def repeated(value: pa.Array, rows: int) -> pa.Array:
    """Return the only value of an array for some rows."""
    return value.take(from_numpy(np.zeros(rows, dtype=np.int64)))


def _matches_deletes(columns: FileColumns, parquet: pq.ParquetFile) -> Mask:
    """Return which rows of a data file its equality deletes delete (null equals null); may raise `IcebergError`."""
    snapshot, file, rows = columns.current, columns.file, columns.rows
    deleted = np.zeros(rows, dtype=bool)
    by_columns: dict[tuple[int, ...], list[ManifestEntry]] = defaultdict(list)
    for entry in file.deletes.equalities:
        if not entry.file.equality_ids:
            problem = "the equality delete file names no columns"
            raise IcebergError(problem, reason="bad-delete-file", file=entry.file.path)
        by_columns[tuple(entry.file.equality_ids)].append(entry)
    for ids, entries in by_columns.items():
        names = [str(number) for number in ids]
        tables = [read_delete_file(snapshot.table.files, entry.file, ids, names) for entry in entries]
        keys = pa.concat_tables(tables, promote_options="permissive")
        both = []
        for number, key in zip(ids, keys.columns, strict=True):
            # The schema may be an older one.
            schema = next((s for s in snapshot.metadata.schemas_newest_first if number in s.by_id), None)
            if schema is None:
                problem = f"the equality delete file names field id {number}, which no schema of the table has"
                raise IcebergError(problem, reason="bad-delete-file", file=entries[0].file.path)
            path_fields = tuple(fields_at(schema.struct, schema.by_id[number][0]))
            kind = path_fields[-1].type
            if not isinstance(kind, PrimitiveType):
                problem = f"equality deletes of column {path_fields[-1].name!r}, a {schemas.type_name(kind)}"
                raise IcebergError(problem, reason="bad-delete-file")
            column = nested_array(columns.read(parquet, StructType(path_fields[:1])), [f.name for f in path_fields])
            target = arrow_type(kind)
            pair = (part if part.type == target else part.cast(target) for part in (column, one_chunk(key)))
            both.append(pa.concat_arrays([_comparable_array(part) for part in pair]))
        codes = row_codes(both)
        deleted |= np.isin(codes[:rows], codes[rows:])
    return deleted


def _comparable_array(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if pa.types.is_floating(array.type):
        # Equal floats have equal bits here: -0.0 counts as 0.0, and NaN as NaN.
        array = pc.add(array, pa.scalar(0.0, array.type))
        return pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    return array


METADATA_IDS = {f.id for f in schemas.METADATA_COLUMNS.values()}


class IcebergScan(TableScan[TableFile]):
    """A query over a table, made by `scan`; it reads only metadata until rows are requested."""

    current: Snapshot
    file_columns = FileColumns
    parquet_files = staticmethod(parquet_files)

    @cached_property
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the manifests."""
        return plan_files(self.current, self if self.skipping and self.predicate is not None else None)

    def _files(self) -> list[TableFile]:
        return self.pruned.files

    def partitions(self) -> list[dict[str, str | None]]:
        """See `TableScan`."""
        metadata, partitions = self.current.metadata, []
        for file in self._files():
            spec = metadata.specs[file.file.spec_id]
            kinds = result_types(spec, metadata.schemas_newest_first)
            values = zip(spec.fields, file.file.partition, kinds, strict=True)
            partitions.append({f.name: schemas.partition_text(raw, f.transform.name, kind) for f, raw, kind in values})
        return partitions
