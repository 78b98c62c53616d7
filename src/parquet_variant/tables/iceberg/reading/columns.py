"""Columns of data files under the table's schema: found by field id, with the values of fields that a file lacks.

Owns `FileColumns` (specification, "Column Projection"): field ids, the name mapping of files without them, partition
values, and initial defaults. Types are converted by `tables.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.format.nested import FIELD_ID
from parquet_variant.tables.columns import align_column, align_table, by_field_id, unchanged
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec
from parquet_variant.tables.iceberg.metadata.schema import INITIAL_DEFAULT, NAME_MAPPING, NameMapping, type_name
from parquet_variant.tables.iceberg.metadata.values import arrow_array, from_json
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_field, arrow_type


@dataclass(frozen=True)
class FileColumns:
    """The columns of one data file.

    `arrow`: the file's schema.
    `names`: the names of fields where the file has no field ids; None if it has ids.
    `partition`: values of columns that the file's partition knows, by field id.
    """

    arrow: pa.Schema
    names: NameMapping | None
    partition: Mapping[int, tuple[Any, PrimitiveType]]

    @classmethod
    def of(
        cls,
        arrow: pa.Schema,
        names: NameMapping | None,
        spec: PartitionSpec,
        values: tuple[Any, ...],
        types: tuple[PrimitiveType, ...],
        path: str,
    ) -> FileColumns:
        """Return the columns of a file.

        `names`: the table's name mapping.
        `spec`, `values`, `types`: the partition of the file.
        Raises `IcebergError`: reason ``"bad-data-file"`` if neither the file nor a name mapping has field ids.
        """
        has_ids = any(FIELD_ID in (f.metadata or {}) for f in arrow)
        if not has_ids and names is None and len(arrow):
            raise IcebergError(
                f"the data file has no field ids, and the table has no {NAME_MAPPING}: set it to name the columns",
                reason="bad-data-file",
                file=path,
            )
        identities = {
            f.source_id: (value, kind)
            for f, value, kind in zip(spec.fields, values, types, strict=True)
            if f.transform.name == "identity"
        }
        return cls(arrow, None if has_ids else names, identities)

    def find(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        """Return the index of a field among those of the file's schema, or of a struct in it; -1 if it is missing."""
        if self.names is None:
            return by_field_id(fields, f)
        names = self.names.get(f.id, ())
        count = len(fields) if isinstance(fields, pa.Schema) else fields.num_fields
        return next((index for index in range(count) if fields.field(index).name in names), -1)

    def aligned(self, rows: pa.Table, fields: tuple[Field, ...]) -> pa.Table:
        """Return columns of the file in the table's types, with Variants as the file shreds them."""
        return align_table(rows, StructType(fields), self.find, unchanged, self.missing)

    def array(self, column: pa.Array, f: Field) -> pa.Array:
        """Return one column of the file as `aligned` does."""
        return align_column(column, f.type, self.find, unchanged, (f.name,), self.missing)

    def missing(self, f: Field, rows: int) -> pa.Array:
        """Return the values of a field that the file lacks: of the partition, or its initial default, else null."""
        target = arrow_type(f.type)
        if f.id in self.partition:
            raw, kind = self.partition[f.id]
            return repeated(arrow_array([raw], kind).cast(target), rows)
        default = f.metadata.get(INITIAL_DEFAULT)
        if default is None:
            return pa.nulls(rows, target)
        if isinstance(f.type, PrimitiveType):
            return repeated(arrow_array([from_json(default, f.type)], f.type), rows)
        if isinstance(f.type, StructType) and default == {}:
            parts = [self.missing(part, rows) for part in f.type.fields]
            return pa.StructArray.from_arrays(parts, fields=[arrow_field(part) for part in f.type.fields])
        raise IcebergError(
            f"column {f.name!r} has a default of type {type_name(f.type)}, which is not supported",
            reason="unsupported-feature",
        )


def repeated(value: pa.Array, rows: int) -> pa.Array:
    """Return the only value of an array for some rows."""
    return value.take(pa.array(np.zeros(rows, dtype=np.int64)))
