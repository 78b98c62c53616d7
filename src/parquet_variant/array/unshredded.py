"""Unshredded storages, made of their parts.

Owns their form: metadata and value, neither of which is null. Leaves the values' bytes to the kernels that write them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.metadata import encode_metadata
from parquet_variant.types import MAX_OFFSET

__all__ = ["joined_storages", "metadata_of_all", "storage_of"]


def storage_of(metadata: pa.Array, value: pa.Array, missing: pa.Array | None = None) -> pa.StructArray:
    """The storage of some values, SQL NULL where they are missing."""
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=missing)


def metadata_of_all(names: Iterable[str], rows: int) -> pa.DictionaryArray:
    """One metadata for all rows, which has the names."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([encode_metadata(names)], pa.binary()))


def joined_storages(storages: list[pa.StructArray]) -> pa.StructArray:
    """One storage of several; values get 64-bit offsets where one has them, or where all outgrow 32-bit offsets."""
    values = [storage.field("value") for storage in storages]
    if any(pa.types.is_large_binary(value.type) for value in values) or sum(v.nbytes for v in values) > MAX_OFFSET:
        storages = [storage.cast(_wide(storage.type)) for storage in storages]
    return pa.concat_arrays(storages)


def _wide(storage: pa.StructType) -> pa.StructType:
    """The storage type with 64-bit offsets of values."""
    return pa.struct([field.with_type(pa.large_binary()) if field.name == "value" else field for field in storage])
