"""Values found inside a column, as a storage struct of their own.

Owns the copying of their bytes; the metadata of their rows goes with them as it is. Leaves finding them to
`value_positions`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant.array.parts import metadata_array
from parquet_variant.functions.columns.column_casts import take_bytes
from parquet_variant.functions.columns.value_positions import ValuePositions
from parquet_variant.kernels.operations import get

__all__ = ["position_storage"]


def position_storage(value_positions: ValuePositions) -> pa.StructArray:
    """An unshredded storage struct of some positions, null where there is no value."""
    there = value_positions.starts != get.ABSENT
    value = take_bytes(value_positions.spans(), np.arange(len(value_positions)), as_text=False)
    if value.nbytes < 2**31 - 1:
        value = value.cast(pa.binary())
    metadata = metadata_array(pa.array(np.maximum(value_positions.metas, 0)), value_positions.dictionaries.array)
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=pa.array(~there))
