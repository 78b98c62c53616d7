"""Arrow's buffers of what kernels fill: validity, offsets, and arrays of bytes.

Owns a byte an entry made a bit, lengths made offsets, and when offsets take 64 bits. Leaves shredded storages to
`shredding.columns`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.memory import address_of
from parquet_variant.types import MAX_OFFSET

__all__ = ["binary_array", "binary_type", "bitmap", "filled_binary", "offsets_of", "row_chunks"]

Int64s = npt.NDArray[np.int64]


def bitmap(valid: npt.NDArray[np.uint8] | None) -> pa.Buffer | None:
    """An Arrow validity buffer from a byte an entry; None (all valid) stays None."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def offsets_of(lengths: npt.ArrayLike) -> Int64s:
    """Where each entry begins, and where the last one ends, from lengths."""
    lengths = np.asarray(lengths)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def row_chunks(offsets: Int64s, most: int) -> list[tuple[int, int]]:
    """Runs of rows that hold at most so many bytes, or one row where that is longer; one empty run of none."""
    rows = len(offsets) - 1
    chunks, start = [], 0
    while start < rows:
        stop = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = min(max(stop, start + 1), rows)
        chunks.append((start, stop))
        start = stop
    return chunks or [(0, 0)]


def binary_array(
    lengths: npt.NDArray[np.signedinteger],
    data: npt.NDArray[np.uint8],
    valid: npt.NDArray[np.uint8] | None,
    arrow_type: pa.DataType,
) -> pa.Array:
    """A binary or string array from the lengths and the bytes of its values; null where ``valid`` is 0."""
    is_large = pa.types.is_large_binary(arrow_type) or pa.types.is_large_string(arrow_type)
    offsets = np.zeros(len(lengths) + 1, np.int64 if is_large else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(lengths), buffers)


def binary_type(size: int) -> pa.DataType:
    """The type of so many bytes of values: `large_binary` only if they outgrow 32-bit offsets."""
    return pa.large_binary() if size > MAX_OFFSET else pa.binary()


def filled_binary(
    lengths: Int64s,
    fill: Callable[[int], None],
    valid: npt.NDArray[np.uint8] | None = None,
    arrow_type: pa.DataType | None = None,
) -> pa.Array:
    """A binary array of values of some lengths, which ``fill`` writes one after the other at the address that it gets.

    Without a type it has that of `binary_type`.
    """
    total = int(lengths.sum())
    data = np.empty(total, np.uint8)
    fill(address_of(data))
    return binary_array(lengths, data, valid, arrow_type or binary_type(total))
