"""Columns as tapes, and Python objects from tapes.

Owns decoding a column in batches of some megabytes, and building the objects of a tape. Leaves scalars of Python types
such as `datetime` to `encoding.python_values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts, known_versions, metadata_parts, row_by_row, valid_bytes
from parquet_variant.encoding.python_values import scalar_to_python
from parquet_variant.encoding.scalars import MAX_SCALE, MICROS_PER_DAY
from parquet_variant.errors import MalformedVariantError, VariantError
from parquet_variant.kernels.arrow_buffers import Int64s, filled_binary
from parquet_variant.kernels.memory import KIND, copy_spans
from parquet_variant.kernels.tapes.decode import decode_values
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.kernels.values.reading import EncodedValues, name_table
from parquet_variant.types import DECIMAL_TYPES, INTEGER_IDS, TYPE_OF_ID, PrimitiveId, VariantType

if TYPE_CHECKING:
    from parquet_variant.arrays.variant_array import VariantArray

# Bytes that are decoded at a time, which limits the size of the tape.
_BYTES = 16 << 20
_P = PrimitiveId


def array_tapes(array: VariantArray, first_row: int) -> Iterator[Tape]:
    """Yield the tapes of an array, some megabytes at a time; ``first_row`` is the number of its first row in errors."""
    storage = array.to_unshredded().storage
    metadata = metadata_parts(storage.field("metadata"))
    value = binary_parts(storage.field("value"))
    names = name_table(metadata.dictionary, repeated=True)
    values = EncodedValues(valid_bytes(storage), value.offsets, value.address, metadata.indices)
    start = 0
    while start < len(array):
        stop = int(np.searchsorted(value.offsets, value.offsets[start] + _BYTES, "right")) - 1
        stop = min(max(stop, start + 1), len(array))
        try:
            yield decode_values(values, names, start, stop, (metadata.dictionary, value.owner))
        except MalformedVariantError as error:
            error.row = first_row + (error.row or 0)
            raise
        start = stop


def python_objects(array: VariantArray, *, null_on_error: bool = False) -> list[Any]:
    """Return the Python object of each row; None for SQL NULL and Variant null.

    With ``null_on_error``, also None for malformed rows; otherwise the first error is raised, with its row.
    """
    unshredded = array.to_unshredded()
    try:
        known_versions(unshredded.storage)
        return [item for tape in array_tapes(unshredded, 0) for item in _objects_of(tape)]
    except (VariantError, pa.ArrowInvalid, UnicodeDecodeError):
        values = list(unshredded)
    return row_by_row(
        range(len(values)),
        lambda row: None if (value := values[row]) is None else value.to_python(),
        null_on_error=null_on_error,
    )


def _objects_of(tape: Tape) -> list[Any]:
    """Return the object of each row of a tape. Raises errors of several types if the scalar functions must decide a
    row.
    """
    names = [key.decode() for key in tape.key_list]
    kinds = tape.nodes[:, 0] & 0xFF
    keys = tape.paths[path_ids(tape.nodes[:, 0]), PATH.KEY].tolist()
    roots: list[Any] = []
    open_containers: list[tuple[Any, int]] = []
    parent, stop = None, -1
    for n, (kind, item, key, end) in enumerate(
        zip(kinds.tolist(), scalar_objects(tape.nodes), keys, tape.nodes[:, 3].tolist(), strict=True)
    ):
        while n == stop:
            parent, stop = open_containers.pop()
        if kind >= KIND.ARRAY:
            item = [] if kind == KIND.ARRAY else {}
        if parent is None:
            roots.append(item)
        elif key < 0:
            parent.append(item)
        else:
            parent[names[key]] = item
        if kind >= KIND.ARRAY and end > n + 1:
            open_containers.append((parent, stop))
            parent, stop = item, end
    values = iter(roots)
    return [next(values) if size else None for size in np.diff(tape.row_start).tolist()]


def scalar_objects(nodes: Int64s) -> list[Any]:
    """Return the object of each scalar node of a tape, and None for containers."""
    kinds = nodes[:, 0] & 0xFF
    items = np.full(len(kinds), None, object)
    for kind in np.flatnonzero(np.bincount(kinds)[: KIND.ARRAY]).tolist():
        at = np.flatnonzero(kinds == kind)
        scalars = np.empty(len(at), object)
        scalars[:] = _objects_of_kind(nodes[at], _P(kind))
        items[at] = scalars
    return items.tolist()


def _objects_of_kind(nodes: Int64s, kind: _P) -> list[Any]:
    match TYPE_OF_ID[kind].type:
        case VariantType.NULL:
            return [None] * len(nodes)
        case VariantType.BOOLEAN:
            return [kind == _P.TRUE] * len(nodes)
        case VariantType.FLOAT:
            return nodes[:, 1].astype(np.uint32).view(np.float32).tolist()
        case VariantType.DOUBLE:
            return nodes[:, 1].copy().view(np.float64).tolist()
        case VariantType.STRING | VariantType.BINARY | VariantType.UUID:
            sizes, stored = nodes[:, 2].copy(), pa.large_string() if kind == _P.STRING else pa.large_binary()
            data = filled_binary(sizes, partial(copy_spans, nodes[:, 1].copy(), sizes), arrow_type=stored)
            raws: Iterable[Any] = data.to_pylist()
        case decimal if decimal in DECIMAL_TYPES:
            scales = (nodes[:, 0] >> 8 & 0xFF).tolist()
            if max(scales) > MAX_SCALE:
                message = f"the scale of a decimal is greater than {MAX_SCALE}"
                raise MalformedVariantError(message, reason="bad-decimal")
            words = zip(nodes[:, 2].tolist(), nodes[:, 1].view(np.uint64).tolist(), strict=True)
            raws = zip(((high << 64) + low for high, low in words), scales, strict=True)
        case _:
            raws = nodes[:, 1].tolist()
            if kind == _P.TIME and not all(0 <= raw < MICROS_PER_DAY for raw in raws):
                raise MalformedVariantError("a time is outside a day", reason="bad-time")
    if kind in (*INTEGER_IDS, _P.STRING, _P.BINARY):
        return list(raws)
    variant_type = TYPE_OF_ID[kind].type
    return [scalar_to_python(variant_type, raw) for raw in raws]
