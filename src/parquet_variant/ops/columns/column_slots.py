"""Slots of typed columns, and the entries of such columns that their type does not allow.

Owns the conversion of each stored Arrow type to slots. `layouts.storage_shape` decides which types may be stored, and
`slot_casts` casts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts, valid_bytes
from parquet_variant.errors import MalformedVariantError, SchemaError
from parquet_variant.kernels.arrow_buffers import Int64s, to_numpy
from parquet_variant.kernels.memory import KIND, buffer_address
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.pages.values import are_ascii
from parquet_variant.layouts.storage_shape import is_list, stored_primitive
from parquet_variant.ops.columns.value_positions import ScalarSlots
from parquet_variant.types import TYPE_OF_ARROW, TYPES, PrimitiveId, decimal_type_for_precision

_P = PrimitiveId
_IN_MEMORY = (_P.STRING, _P.BINARY, _P.UUID)


def slots_of_column(array: pa.Array, rows: Int64s | None = None) -> ScalarSlots:
    """Return the slots of a shredded column; null entries are missing. Without ``rows``, entry i belongs to row i.

    Raises `SchemaError` if the type cannot be a shredded column; `MalformedVariantError` as `refuse_faulty_slots`.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = kind_of_column(array.type)
    refuse_faulty_slots(array, rows)
    valid = valid_bytes(array)
    b, scales = np.zeros(len(array), np.int64), np.zeros(len(array), np.uint8)
    if pa.types.is_boolean(array.type):
        bits = to_numpy(array.fill_null(False)).view(np.uint8)
        kinds, a = np.where(bits, _P.TRUE, _P.FALSE).astype(np.uint8), np.zeros(len(array), np.int64)
        owner = None
    elif pa.types.is_decimal(array.type):
        wide = array.cast(pa.decimal128(38, array.type.scale))
        pairs = np.frombuffer(wide.buffers()[1], np.int64, 2 * len(wide), 16 * wide.offset)
        kinds, a, b = np.full(len(array), _P.DECIMAL16, np.uint8), pairs[::2].copy(), pairs[1::2].copy()
        scales[:] = array.type.scale
        owner = wide
    else:
        kinds = np.full(len(array), kind, np.uint8)
        if kind in _IN_MEMORY:
            parts = binary_parts(array)
            a, b, owner = parts.offsets[:-1] + parts.address, np.diff(parts.offsets), parts.owner
        else:
            width = array.type.bit_width // 8
            dtype, offset = np.dtype(f"{'u' if kind == _P.FLOAT else 'i'}{width}"), array.offset * width
            a = np.frombuffer(array.buffers()[1] or b"", dtype, len(array), offset).astype(np.int64)
            owner = array
    if len(valid):
        kinds[valid == 0] = get.MISSING
    return ScalarSlots(kinds, a, b, scales, rows=rows, owner=owner)


def kind_of_column(arrow: pa.DataType) -> int:
    """Return the kind of the values of a typed column."""
    if pa.types.is_struct(arrow) or is_list(arrow):
        return KIND.OBJECT if pa.types.is_struct(arrow) else KIND.ARRAY
    stored = stored_primitive(arrow)
    if stored is None:
        raise SchemaError(f"typed_value is {arrow}, which is not a shredded value type", reason="unsupported-type")
    if pa.types.is_decimal(stored):
        return TYPES[decimal_type_for_precision(stored.precision)].ids[0]
    return TYPE_OF_ARROW[stored].ids[0]


def refuse_faulty_slots(array: pa.Array, rows: Int64s | None = None) -> None:
    """Raise an error for the first of `faulty_slots`, with its row.

    Raises `MalformedVariantError` with reason ``bad-time``, ``bad-decimal`` or ``bad-utf8``.
    """
    for position, reason, message in faulty_slots(array):
        row = position if rows is None else int(rows[position])
        raise MalformedVariantError(message, reason=reason, row=row)


def faulty_slots(array: pa.Array) -> Iterator[tuple[int, str, str]]:
    """Yield position, reason and message of each entry of a leaf column that its type does not allow.

    Invalid are times outside the day, decimals with too many digits and strings that are not UTF-8.
    """
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        if next(faulty_slots(array.dictionary), None) is not None:
            yield from faulty_slots(array.dictionary_decode())
        return
    if types.is_time(kind):
        reason, message = "bad-time", "a typed_value is not a time of day"
    elif types.is_decimal(kind):
        reason, message = "bad-decimal", f"a typed_value has too many digits for {kind}"
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        reason, message = "bad-utf8", "a typed_value is not UTF-8"
    else:
        return
    pending = [(0, len(array))] if len(array) else []
    while pending:
        first, stop = pending.pop()
        if _is_sound(array.slice(first, stop - first)):
            continue
        if stop - first == 1:
            yield first, reason, message
            continue
        middle = (first + stop) // 2
        pending += [(middle, stop), (first, middle)]


def _is_sound(array: pa.Array) -> bool:
    if pa.types.is_string(array.type):
        # One pass over the joint bytes instead of one per string: most strings are ASCII.
        _, offsets, data = array.buffers()
        stops = (
            np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4) if len(array) else np.zeros(1, np.int32)
        )
        if are_ascii(stops, buffer_address(data), 0 if data is None else data.size):
            return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
