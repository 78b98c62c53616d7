"""What a data file of a table shreds.

Owns reading that from its footer, or from rows that were left as it has them. Leaves rows to `read`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.array.empty_table import empty_table
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.columns import Matcher, align_table, by_field_id, by_name
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.schema import StructType
from parquet_variant.schema.shredding_schema import ShreddingSchema


def shredded_schemas(current: Snapshot, path: str) -> dict[str, str]:
    """What a file shreds, as JSON, by dotted column name; its footer tells."""
    match = by_field_id if current.column_mapping == "id" else by_name
    with pq.ParquetFile(current.storage.open(path)) as file:
        schemas = _seen(file.schema_arrow, current.schema, match)
    return {name: schema.to_json() for name, schema in schemas.items()}


def shredded_in(rows: pa.Table, schema: StructType) -> dict[str, ShreddingSchema]:
    """What the file shreds whose rows these are, in a table's columns, or in some of them."""
    there = StructType(tuple(f for f in schema.fields if f.name in rows.column_names))
    return _seen(rows.schema, there, lambda fields, column: int(fields.get_field_index(column.name)))


def _seen(present: pa.Schema, schema: StructType, match: Matcher) -> dict[str, ShreddingSchema]:
    schemas: dict[str, ShreddingSchema] = {}

    def see(place: tuple[str, ...], array: VariantArray) -> VariantArray:
        schemas[".".join(place)] = array.schema or ShreddingSchema.variant()
        return array

    align_table(empty_table(present), schema, match, see)
    return schemas
