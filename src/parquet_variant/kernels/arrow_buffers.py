"""Arrow buffers and arrays made of NumPy arrays, Python values and the output of kernels.

Owns turning validity bytes into bits and lengths into offsets, and choosing 32-bit or 64-bit offsets. pyarrow's
`array`, `scalar` and `to_numpy` import pandas where it is installed, which takes longer than importing pyarrow, so
values of a known type are converted here. Leaves values of unknown types to pyarrow, and shredded storages to
`shredding.schema_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.buffer_pool import acquire_result
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.types import MAX_OFFSET

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Arrow's allocator reserves its memory under a lock, at the first allocation of a process. A child that is forked at
# this moment could never allocate. This module is imported while forks wait (`support.fork_safety.loading`).
pa.allocate_buffer(1)


def bitmap(valid: npt.NDArray[np.uint8 | np.bool_] | None) -> pa.Buffer | None:
    """Return an Arrow validity buffer from one byte per entry; None (all entries are valid) is returned unchanged."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def from_numpy(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a column of booleans or numbers, null where ``missing`` is set; numbers are not copied.

    >>> from_numpy(np.array([1, 2], np.int8), np.array([False, True])).to_pylist()
    [1, None]
    """
    nulls = bitmap(~missing) if missing is not None and np.count_nonzero(missing) else None
    data = bitmap(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [nulls, data])


_NUMPY_TYPES: dict[pa.DataType, type[np.generic]] = {
    pa.from_numpy_dtype(kind): kind
    for kind in (
        np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
        np.float16, np.float32, np.float64,
    )
}  # fmt: skip


def numpy_type(arrow: pa.DataType) -> type[np.generic]:
    """Return NumPy's type of Arrow's booleans or numbers; `pyarrow.DataType.to_pandas_dtype` needs pandas before 26.

    >>> numpy_type(pa.int16())
    <class 'numpy.int16'>
    """
    return _NUMPY_TYPES[arrow]


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return the booleans or numbers of a column; entries under nulls are undefined; numbers are not copied.

    >>> to_numpy(pa.array([1, 2, 3], pa.int8())[1:])
    array([2, 3], dtype=int8)
    """
    data, start, stop = array.buffers()[1], array.offset, array.offset + len(array)
    if data is None or start == stop:
        return np.empty(0, numpy_type(array.type))
    if pa.types.is_boolean(array.type):
        first = start >> 3
        bits = np.unpackbits(np.frombuffer(data, np.uint8)[first:], count=stop - 8 * first, bitorder="little")
        return bits[start - 8 * first :].view(np.bool_)
    return np.frombuffer(data, numpy_type(array.type), stop)[start:]


def from_bytes(values: Sequence[bytes | None], arrow_type: pa.DataType) -> pa.Array:
    """Return a binary or string array of some values.

    >>> from_bytes([b"a", None], pa.string()).to_pylist()
    ['a', None]
    """
    lengths = np.array([len(value or b"") for value in values], np.int64)
    valid = np.array([value is not None for value in values], np.uint8)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    return binary_array(lengths, data, None if valid.all() else valid, arrow_type)


def scalar(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """Return the same scalar as `pa.scalar`.

    >>> scalar(3, pa.int32()), scalar("x", pa.string()), scalar(None, pa.date32())
    (<pyarrow.Int32Scalar: 3>, <pyarrow.StringScalar: 'x'>, <pyarrow.Date32Scalar: None>)
    """
    if value is None:
        return pa.nulls(1, arrow_type)[0]
    if type(value) is str and arrow_type in (pa.string(), pa.large_string()):
        return from_bytes([value.encode()], arrow_type)[0]
    if type(value) is bytes and arrow_type in (pa.binary(), pa.large_binary()):
        return from_bytes([value], arrow_type)[0]
    is_integer = pa.types.is_int64(arrow_type) or pa.types.is_int32(arrow_type)
    if type(value) is int and is_integer and value.bit_length() < arrow_type.bit_width:
        return from_numpy(np.array([value], f"i{arrow_type.bit_width // 8}"))[0]
    if (type(value), arrow_type) in ((bool, pa.bool_()), (float, pa.float64())):
        return from_numpy(np.array([value]))[0]
    return pa.scalar(value, arrow_type)


def offsets_of(lengths: npt.ArrayLike, dtype: type[np.signedinteger] = np.int64) -> npt.NDArray[Any]:
    """Return the offset of each entry, and the end of the last one, from lengths."""
    lengths = np.asarray(lengths)
    offsets = np.zeros(len(lengths) + 1, dtype)
    np.add.accumulate(lengths, dtype=dtype, out=offsets[1:])  # `cumsum` takes twice as long for few lengths
    return offsets


def row_chunks(offsets: Int64s, max_bytes: int) -> list[tuple[int, int]]:
    """Split rows into runs of at most ``max_bytes`` bytes; a longer row is a run of its own.

    No rows are one empty run.
    """
    rows = len(offsets) - 1
    chunks, start = [], 0
    while start < rows:
        stop = int(np.searchsorted(offsets, offsets[start] + max_bytes, side="right")) - 1
        stop = min(max(stop, start + 1), rows)
        chunks.append((start, stop))
        start = stop
    return chunks or [(0, 0)]


def plain_binary(array: pa.BinaryArray) -> tuple[Int64s, int]:
    """Return the offsets of a binary array with 32-bit offsets, and the address from which they count."""
    _, offsets, data = array.buffers()
    if not len(array):
        return np.zeros(1, np.int64), 0
    counted = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    return counted, buffer_address(data)


def binary_array(
    lengths: npt.NDArray[np.signedinteger],
    data: npt.NDArray[np.uint8],
    valid: npt.NDArray[np.uint8] | None,
    arrow_type: pa.DataType,
) -> pa.Array:
    """Return a binary or string array from the lengths and bytes of its values; null where ``valid`` is 0."""
    is_large = pa.types.is_large_binary(arrow_type) or pa.types.is_large_string(arrow_type)
    offsets = offsets_of(lengths, np.int64 if is_large else np.int32)
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type, len(lengths), buffers)


def binary_type(size: int) -> pa.DataType:
    """Return the type for ``size`` bytes of values: `large_binary` only if 32-bit offsets are too small."""
    return pa.large_binary() if size > MAX_OFFSET else pa.binary()


def filled_binary(
    lengths: Int64s,
    fill: Callable[[int], None],
    valid: npt.NDArray[np.uint8] | None = None,
    arrow_type: pa.DataType | None = None,
) -> pa.Array:
    """Return a binary array of values with some lengths.

    ``fill`` is called with an address and writes the values there, one after the other. Without a type, the array has
    the type of `binary_type`.
    """
    total = int(lengths.sum())
    data = acquire_result(np.uint8, total)
    fill(address_of(data))
    return binary_array(lengths, data, valid, arrow_type or binary_type(total))
