"""Slots as encoded values, and through them as JSON text.

Owns calling the kernels that encode. Leaves which slots those are to its callers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.functions.columns.value_positions import ScalarSlots
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.values.encode_slots import measure_slots, write_slots

__all__ = ["encoded_slots", "json_of_scalars"]


def encoded_slots(slots: ScalarSlots) -> pa.Array:
    """Scalars as encoded values, in the types that they have; what is missing is Variant null."""
    offsets = np.empty(len(slots) + 1, np.int64)
    measure_slots(slots.kinds, slots.b, offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    write_slots(slots.kinds, slots.a, slots.b, slots.scales, offsets, address_of(data))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(slots), buffers)
    return values.cast(pa.binary()) if len(data) < 2**31 - 1 else values


def json_of_scalars(slots: ScalarSlots, positions: npt.NDArray[np.int64]) -> pa.Array:
    """The JSON text of some scalars."""
    from parquet_variant.functions.json.to_json import to_json  # not needed by most casts

    chosen = ScalarSlots(slots.kinds[positions], slots.a[positions], slots.b[positions], slots.scales[positions])
    indices = pa.array(np.zeros(len(positions), np.int32))
    metadata = pa.DictionaryArray.from_arrays(indices, pa.array([EMPTY_METADATA], pa.binary()))
    storage = pa.StructArray.from_arrays([metadata, encoded_slots(chosen)], names=["metadata", "value"])
    return to_json(VariantArray(storage))
