"""Cells as encoded values, and through them as JSON text.

Owns calling the kernels that encode. Leaves which cells those are to its callers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.functions.located import Cells
from parquet_variant.functions.to_json import to_json
from parquet_variant.kernels.encode_cells import measure_cells, write_cells
from parquet_variant.kernels.memory import address_of

__all__ = ["encoded_cells", "json_of_scalars"]


def encoded_cells(cells: Cells) -> pa.Array:
    """Scalars as encoded values, in the types that they have; what is missing is Variant null."""
    offsets = np.empty(len(cells) + 1, np.int64)
    measure_cells(cells.kinds, cells.b, offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    write_cells(cells.kinds, cells.a, cells.b, cells.scales, offsets, address_of(data))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(cells), buffers)
    return values.cast(pa.binary()) if len(data) < 2**31 - 1 else values


def json_of_scalars(cells: Cells, positions: npt.NDArray[np.int64]) -> pa.Array:
    """The JSON text of some scalars."""
    chosen = Cells(cells.kinds[positions], cells.a[positions], cells.b[positions], cells.scales[positions])
    indices = pa.array(np.zeros(len(positions), np.int32))
    metadata = pa.DictionaryArray.from_arrays(indices, pa.array([EMPTY_METADATA], pa.binary()))
    storage = pa.StructArray.from_arrays([metadata, encoded_cells(chosen)], names=["metadata", "value"])
    return to_json(VariantArray(storage))
