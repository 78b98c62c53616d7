"""Arrow's buffers of what kernels fill: validity, offsets, and arrays of bytes.

Owns a byte an entry made a bit, and lengths made offsets. Leaves shredded storages to `shredding.columns`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["binary_array", "bitmap", "offsets_of"]


def bitmap(valid: npt.NDArray[np.uint8] | None) -> pa.Buffer | None:
    """An Arrow validity buffer from a byte an entry; None (all valid) stays None."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def offsets_of(lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Arrow offsets from lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def binary_array(
    lengths: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    valid: npt.NDArray[np.uint8] | None,
    arrow_type: pa.DataType,
) -> pa.Array:
    """A binary or string array from the lengths and the bytes of its values; null where ``valid`` is 0."""
    buffers = [bitmap(valid), pa.py_buffer(offsets_of(lengths)), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(lengths), buffers)
