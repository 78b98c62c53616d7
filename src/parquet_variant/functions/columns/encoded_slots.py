"""Slots as encoded values, and through them as JSON text.

Owns calling the kernels that encode. Leaves which slots those are to its callers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.unshredded import metadata_of_all, storage_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.columns.value_positions import ScalarSlots
from parquet_variant.kernels.arrow_buffers import binary_array, binary_type
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.values.encode_slots import measure_slots, write_slots

__all__ = ["encoded_slots", "json_of_scalars"]


def encoded_slots(slots: ScalarSlots) -> pa.Array:
    """Scalars as encoded values, in the types that they have; what is missing is Variant null."""
    offsets = np.empty(len(slots) + 1, np.int64)
    measure_slots(slots.kinds, slots.b, offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    write_slots(slots.kinds, slots.a, slots.b, slots.scales, offsets, address_of(data))
    return binary_array(np.diff(offsets), data, None, binary_type(len(data)))


def json_of_scalars(slots: ScalarSlots, positions: npt.NDArray[np.int64]) -> pa.Array:
    """The JSON text of some scalars."""
    from parquet_variant.functions.json.to_json import to_json  # not needed by most casts

    chosen = ScalarSlots(slots.kinds[positions], slots.a[positions], slots.b[positions], slots.scales[positions])
    return to_json(VariantArray(storage_of(metadata_of_all((), len(positions)), encoded_slots(chosen))))
