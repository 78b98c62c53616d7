"""What a data file of a table shreds.

Owns reading that from its footer. Leaves rows to `read`.
"""

from __future__ import annotations

import pyarrow.parquet as pq

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.columns import by_field_id, by_name, conform_table
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["shredded_schemas"]


def shredded_schemas(current: Snapshot, path: str) -> dict[str, str]:
    """What a file shreds, as JSON, by dotted column name; its footer tells."""
    found: dict[str, str] = {}

    def see(place: tuple[str, ...], array: VariantArray) -> VariantArray:
        found[".".join(place)] = (array.schema or ShreddingSchema.variant()).to_json()
        return array

    match = by_field_id if current.column_mapping == "id" else by_name
    with pq.ParquetFile(current.storage.open(path)) as file:
        conform_table(file.schema_arrow.empty_table(), current.schema, match, see)
    return found
