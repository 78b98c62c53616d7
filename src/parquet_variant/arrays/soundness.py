"""The check of Arrow data from outside, before a kernel or pyarrow follows its offsets and indices.

Owns the check of offsets, dictionary indices, views and run ends, a column at a time. ``pyarrow.Array.validate()``
accepts offsets that decrease, or an index beyond its dictionary. pyarrow's full validation finds those, but also
rejects the whole array for strings that are not UTF-8 and numbers out of range, which are faults of single rows here.
Leaves those faults to the functions that read the rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import numpy_type
from parquet_variant.support import arrow_compute as pc


def refuse_unsound(array: pa.Array) -> None:
    """Raise an error if buffers of an array point outside the data.

    Raises `SchemaError` with reason ``bad-arrow`` and the path of the child, and ``too-deep`` for hundreds of levels.

    >>> import numpy as np
    >>> offsets = pa.py_buffer(np.array([0, 4, 0], np.int32))
    >>> refuse_unsound(pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abcd")]))
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: the Arrow data is damaged: offsets decrease or exceed the data (path $)
    """
    try:
        array.validate()
    except pa.ArrowException as error:
        raise _damaged(str(error).split("\n", maxsplit=1)[0], "$") from None
    try:
        _check(array, "$")
    except RecursionError:
        raise SchemaError("the Arrow data is nested too deeply to be checked", reason="too-deep") from None


def refuse_bad_indices(array: pa.Array) -> None:
    """Raise if an index of a dictionary in an array, or in its structs and lists, is outside of the dictionary.

    For data that pyarrow has read itself, whose other buffers are valid. Raises `SchemaError` with reason ``bad-arrow``
    and the path of the child.
    """
    _check(array, "$", nested_only=True)


def _damaged(problem: str, path: str) -> SchemaError:
    return SchemaError(f"the Arrow data is damaged: {problem}", reason="bad-arrow", path=path)


def _check(array: pa.Array, path: str, rows: pa.Array | None = None, *, nested_only: bool = False) -> None:
    """Check an array.

    ``rows`` is the mask of the rows to check, for the fields of a struct with nulls; ``nested_only`` skips the buffers
    of strings and numbers.
    """
    kind = array.type
    types = pa.types
    check = partial(_check, nested_only=nested_only)
    if isinstance(kind, pa.BaseExtensionType):
        check(array.storage, path)
    elif types.is_struct(kind):
        if array.null_count:
            rows = array.is_valid() if rows is None else pc.and_(rows, array.is_valid())
        for number, field in enumerate(kind):
            check(array.field(number), f"{path}.{field.name}", rows)
    elif types.is_dictionary(kind):
        # The index of a null row has no meaning: engines write 0 there, even for an empty dictionary.
        _check_indices(array.indices if rows is None else array.indices.filter(rows), len(array.dictionary), path)
        check(array.dictionary, path)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = _offsets(array, np.int64 if types.is_large_list(kind) else np.int32)
        elements = array.values
        if types.is_map(kind):
            elements = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        _check_offsets(offsets, len(elements), path)
        if len(offsets):
            check(elements.slice(int(offsets[0]), int(offsets[-1] - offsets[0])), f"{path}[*]")
    elif types.is_fixed_size_list(kind):
        check(array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size), f"{path}[*]")
    elif not nested_only:
        _check_leaf(array, path)


def _check_leaf(array: pa.Array, path: str) -> None:
    """Check the buffers of strings; pyarrow has checked those of numbers."""
    kind = array.type
    types = pa.types
    is_large = types.is_large_binary(kind) or types.is_large_string(kind)
    if is_large or types.is_binary(kind) or types.is_string(kind):
        data = array.buffers()[2]
        offsets = _offsets(array, np.int64 if is_large else np.int32)
        _check_offsets(offsets, 0 if data is None else int(data.size), path)
    elif types.is_string_view(kind):
        _check_fully(array.view(pa.binary_view()), path)
    elif not (
        types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind) or types.is_null(kind)
    ):
        _check_fully(array, path)


def _offsets(array: pa.Array, width: type[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    buffer, item = array.buffers()[1], np.dtype(width).itemsize
    # An empty array needs no offsets, but pyarrow reads the first offset (`nbytes`) if there is one.
    if buffer is None or (not len(array) and buffer.size < (array.offset + 1) * item):
        return np.empty(0, width)
    return np.frombuffer(buffer, width, len(array) + 1, array.offset * item)


def _check_offsets(offsets: npt.NDArray[np.signedinteger], size: int, path: str) -> None:
    if len(offsets) and (offsets[0] < 0 or offsets[-1] > size or (offsets[1:] < offsets[:-1]).any()):
        raise _damaged("offsets decrease or exceed the data", path)


def _check_indices(indices: pa.Array, size: int, path: str) -> None:
    if not len(indices):
        return
    dtype = np.dtype(numpy_type(indices.type))
    numbers = np.frombuffer(indices.buffers()[1], dtype, len(indices), indices.offset * dtype.itemsize)
    if numbers.min() >= 0 and numbers.max() < size:
        return
    bounds = pc.min_max(indices).as_py()  # without null indices
    if bounds["min"] is not None and (bounds["min"] < 0 or bounds["max"] >= size):
        raise _damaged(f"a dictionary index is outside the {size} entries", path)


def _check_fully(array: pa.Array, path: str) -> None:
    """Check views, run ends and unions, which are rare, with pyarrow's own validation."""
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        raise _damaged(str(error).split("\n", maxsplit=1)[0], path) from None
