"""Sort keys of Variants: bytes whose order and equality are the order and equality of the values.

Owns the one order of Variants: boolean < number < string < binary < date < time < timestamp < timestamp_ntz < uuid <
array < object. Numbers compare by value, whatever their width (``1``, ``1.0`` and ``1e0`` are equal); a float or double
is the number that its JSON shows, and NaN is above every number. Timestamps of both units compare by instant. Arrays
compare element by element, objects by their fields in the order of their names. Null has no key.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import END, KEY, walk
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.types import VariantType

_T = VariantType
_CLASSES: dict[Any, int] = {
    _T.NULL: 0x08,
    _T.BOOLEAN: 0x10,
    **dict.fromkeys((_T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE), 0x18),
    **dict.fromkeys((_T.DECIMAL4, _T.DECIMAL8, _T.DECIMAL16), 0x18),
    _T.STRING: 0x20,
    _T.BINARY: 0x28,
    _T.DATE: 0x30,
    _T.TIME: 0x38,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMP_NANOS), 0x40),
    **dict.fromkeys((_T.TIMESTAMP_NTZ, _T.TIMESTAMP_NTZ_NANOS), 0x48),
    _T.UUID: 0x50,
    _T.ARRAY: 0x58,
    _T.OBJECT: 0x60,
}
_STRING_CLASS = bytes([_CLASSES[_T.STRING]])
_NEXT, _LAST = b"\x01", b"\x00"  # before each element or field, and after all of them
_NEGATIVE_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY, _NAN = (bytes([byte]) for byte in range(6))
_EXACT = Context(prec=60)
_INVERTED = bytes(255 - byte for byte in range(256))
_EXPONENT_BIAS = 1 << 15
_SHORT_STRING = 1  # the basic type, in the two lowest bits of a value, of a string of up to 63 bytes
_MICROSECOND_TYPES = (_T.TIMESTAMP, _T.TIMESTAMP_NTZ)


def sort_keys(values: VariantArray) -> pa.BinaryArray:
    """Return the sort key of each value; null for SQL NULL and for Variant null.

    Raises `MalformedVariantError` if the bytes of a value are malformed.

    >>> import parquet_variant as pv
    >>> keys = sort_keys(pv.parse_json(["2", "10", "1.0", "1", '"a"', "null", "[1]", "[1,0]", "true"])).to_pylist()
    >>> keys[2] == keys[3] < keys[0] < keys[1] < keys[4] < keys[6] < keys[7], keys[8] < keys[3], keys[5]
    (True, True, None)
    """
    storage = values.to_unshredded().storage
    encoded = storage.field("value").cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    valid = storage.is_valid().to_numpy(zero_copy_only=False)
    # Keys of arrays and objects need the dictionary of their row; those of scalars need the bytes of the value alone.
    nested = np.array([value[:1] != b"" and value[0] & 3 >= 2 for value in distinct] or [False])
    keys = [b"" if is_nested else _scalar_key(value) for value, is_nested in zip(distinct, nested, strict=False)]
    result = [keys[index] if ok else None for index, ok in zip(indices.tolist(), valid.tolist(), strict=True)]
    if nested.any():
        rows = np.flatnonzero(valid & nested[indices])
        keys_of_nested: dict[tuple[bytes, bytes], bytes | None] = {}
        for row, value in zip(rows.tolist(), VariantArray(storage.take(from_numpy(rows))), strict=True):
            assert value is not None
            place = value.metadata, value.value
            if place not in keys_of_nested:
                keys_of_nested[place] = sort_key(value)
            result[row] = keys_of_nested[place]
    return pa.array(result, pa.binary())


def sort_key(value: Variant) -> bytes | None:
    """Return the sort key of one value; None for Variant null."""
    parts: list[bytes] = []
    open_containers: list[bool] = []  # for each open container, whether it is an array
    for kind, raw, _, _ in walk(value.metadata, value.value, 0, len(value.value), by_key=True):
        if kind == END:
            open_containers.pop()
            parts.append(_LAST)
            continue
        if kind == KEY:
            parts += (_NEXT, _with_end(raw.encode("utf-8", "surrogatepass")))
            continue
        if open_containers and open_containers[-1]:
            parts.append(_NEXT)
        parts.append(bytes([_CLASSES[kind]]))
        if kind in (_T.ARRAY, _T.OBJECT):
            open_containers.append(kind == _T.ARRAY)
        else:
            parts.append(_payload(VariantType(kind), raw, bool(open_containers)))
    key = b"".join(parts)
    return None if key[0] == _CLASSES[_T.NULL] else key


def python_sort_key(value: Any) -> bytes:
    """Return the sort key that a Python value has as a Variant; numbers may have any number of digits."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return bytes([_CLASSES[_T.INT8]]) + number_key(value)
    key = sort_key(Variant.from_python(value))
    assert key is not None
    return key


def number_key(number: int | float | Decimal) -> bytes:
    """Return the sort key of a number: sign, decimal exponent, and digits, for any width and scale.

    >>> number_key(1) == number_key(1.0) == number_key(Decimal("1.00")), number_key(-2) < number_key(-1.5)
    (True, True)
    >>> number_key(0.1) == number_key(Decimal("0.1")), number_key(2**60) < number_key(2**60 + 1)
    (True, True)
    """
    if isinstance(number, float):
        if number != number:
            return _NAN
        if number in (float("inf"), float("-inf")):
            return _INFINITY if number > 0 else _NEGATIVE_INFINITY
        number = Decimal(repr(number))
    sign, digits, exponent = Decimal(number).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return _ZERO
    assert isinstance(exponent, int)
    magnitude = (len(text) + exponent + _EXPONENT_BIAS).to_bytes(2, "big") + text.rstrip("0").encode() + _LAST
    return _NEGATIVE + magnitude.translate(_INVERTED) if sign else _POSITIVE + magnitude


def _scalar_key(value: bytes) -> bytes | None:
    if value and value[0] & 3 == _SHORT_STRING and value[0] >> 2 == len(value) - 1:
        return _STRING_CLASS + value[1:]
    return sort_key(Variant(b"\x11\x00\x00", value))


def _payload(kind: VariantType, raw: Any, is_inside: bool) -> bytes:
    """Return the part of a scalar's key after its class; inside a container its end is marked."""
    if kind == _T.NULL:
        return b""
    if kind == _T.BOOLEAN:
        return bytes([raw])
    if kind == _T.FLOAT:
        return number_key(float(str(np.float32(raw))))
    if _CLASSES[kind] == _CLASSES[_T.INT8]:
        return number_key(Decimal(raw[0]).scaleb(-raw[1], _EXACT) if isinstance(raw, tuple) else raw)
    if kind in (_T.STRING, _T.BINARY):
        data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw)
        return _with_end(data) if is_inside else data
    if kind == _T.UUID:
        return bytes(raw)
    units = raw * 1000 if kind in _MICROSECOND_TYPES else raw
    return int(units + (1 << 95)).to_bytes(12, "big")


def _with_end(data: bytes) -> bytes:
    """Mark the end of a string so that a prefix sorts first, and no byte of the string looks like the end."""
    return data.replace(b"\x00", b"\x00\xff") + b"\x00\x00"
