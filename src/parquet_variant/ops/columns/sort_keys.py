"""Sort keys of Variants: bytes whose order and equality are the order and equality of the values.

Owns the one order of Variants: boolean < number < string < binary < date < time < timestamp < timestamp_ntz < uuid <
array < object. Numbers compare by value, whatever their width (``1``, ``1.0`` and ``1e0`` are equal); a float or double
is the number that its JSON shows, and NaN is above every number. Timestamps of both units compare by instant. Arrays
compare element by element, objects by their fields in the order of their names. Null has no key. Owns also the form
that equal values share, for aggregates that compare values for equality and return them, such as ``mode``.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_of_all, storage_of, variants_of
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import END, KEY, encode_value, tree_of_events, walk
from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.ops.columns.json_text import json_column
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import DECIMAL_TYPES, INSTANT_TYPES, INTEGERS, LOCAL_TYPES, NANOS_OF, TYPES, VariantType

_T = VariantType
_NUMBERS = (*INTEGERS, _T.FLOAT, _T.DOUBLE, *DECIMAL_TYPES)
# The classes in their order, with their types. The first byte of a key is the class: 0x08 for the first, 0x10, …
_TYPES_OF_CLASS = {
    "null": (_T.NULL,),
    "boolean": (_T.BOOLEAN,),
    "number": _NUMBERS,
    "string": (_T.STRING,),
    "binary": (_T.BINARY,),
    "date": (_T.DATE,),
    "time": (_T.TIME,),
    "timestamp": INSTANT_TYPES,
    "timestamp_ntz": LOCAL_TYPES,
    "uuid": (_T.UUID,),
    "array": (_T.ARRAY,),
    "object": (_T.OBJECT,),
}
_CLASSES: dict[Any, int] = {
    kind: 8 * number for number, kinds in enumerate(_TYPES_OF_CLASS.values(), 1) for kind in kinds
}
# The first byte of a key -> the name of its class.
CLASS_NAMES = {8 * number: name for number, name in enumerate(_TYPES_OF_CLASS, 1) if name != "null"}
_STRING_CLASS = bytes([_CLASSES[_T.STRING]])
_MICROS = {_T.TIMESTAMP_NANOS: _T.TIMESTAMP, _T.TIMESTAMP_NTZ_NANOS: _T.TIMESTAMP_NTZ}
_NEXT, _LAST = b"\x01", b"\x00"  # before each element or field, and after all of them
_NEGATIVE_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY, _NAN = (bytes([byte]) for byte in range(6))
_EXACT = Context(prec=60)
_INVERTED = bytes(255 - byte for byte in range(256))
_EXPONENT_BIAS = 1 << 15
_SHORT_STRING = 1  # the basic type, in the two lowest bits of a value, of a string of up to 63 bytes
_INVERTED_BYTES = np.frombuffer(_INVERTED, np.uint8)
# The first bytes of numbers: the type of a primitive is in the six highest bits.
_NUMBER_HEADERS = [header << 2 for kind in _NUMBERS for header in TYPES[kind].ids]
_NUMBER = r"^(?P<sign>-?)(?P<integer>[0-9]*)(?:\.(?P<fraction>[0-9]+))?(?:[eE](?P<exponent>[-+]?[0-9]+))?$"


def sort_keys(values: VariantArray) -> pa.BinaryArray:
    """Return the sort key of each value; null for SQL NULL and for Variant null.

    >>> import parquet_variant as pv
    >>> keys = sort_keys(pv.parse_json(["2", "10", "1.0", "1", '"a"', "null", "[1]", "[1,0]", "true"])).to_pylist()
    >>> keys[2] == keys[3] < keys[0] < keys[1] < keys[4] < keys[6] < keys[7], keys[8] < keys[3], keys[5]
    (True, True, None)
    """
    storage = values.to_unshredded().storage
    encoded = pc.struct_field(storage, ["value"]).cast(pa.large_binary()).dictionary_encode()  # null where a row is
    indices = to_numpy(encoded.indices.fill_null(0)).astype(np.int64)
    valid = to_numpy(storage.is_valid())
    distinct = encoded.dictionary.to_pylist()
    headers = np.array([value[0] if value else 0 for value in distinct], np.uint8)
    # Keys of arrays and objects need the dictionary of their row; those of scalars need the bytes of the value alone.
    nested = headers & 3 >= 2
    keys: list[bytes | None] = [None] * len(distinct)
    numbers = np.flatnonzero(np.isin(headers, _NUMBER_HEADERS))
    if len(numbers):
        storage_of_numbers = storage_of(metadata_of_all((), len(numbers)), encoded.dictionary.take(from_numpy(numbers)))
        json_numbers = json_column(VariantArray(storage_of_numbers))
        for number, key in zip(numbers.tolist(), number_keys(json_numbers).to_pylist(), strict=True):
            keys[number] = key  # None for NaN
    for number in np.flatnonzero(~nested).tolist():
        value = distinct[number]
        if value and value[0] & 3 == _SHORT_STRING and value[0] >> 2 == len(value) - 1:
            keys[number] = _STRING_CLASS + value[1:]
        elif keys[number] is None:
            keys[number] = sort_key(Variant(EMPTY_METADATA, value))
    result = [keys[index] if ok else None for index, ok in zip(indices.tolist(), valid.tolist(), strict=True)]
    rows = np.flatnonzero(valid & nested[indices]) if len(distinct) else np.zeros(0, np.int64)
    for row, variant in zip(rows.tolist(), variants_of(storage.take(from_numpy(rows))), strict=True):
        assert variant is not None
        result[row] = _nested_key(variant.metadata, variant.value)
    return pa.array(result, pa.binary())


def class_codes(keys: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the class of each sort key: a key of `CLASS_NAMES`, and 0 for null."""
    firsts = pc.binary_slice(keys, 0, 1).fill_null(b"\x00").cast(pa.binary())
    return np.frombuffer(b"".join(firsts.to_pylist()), np.uint8)


def number_keys(numbers: pa.Array) -> pa.BinaryArray:
    """Return the sort keys of numbers in JSON, with their class; null for other strings.

    >>> keys = number_keys(pa.array(["1", "1.0", "-2e3", "-2000.5", "NaN", "0.0"])).to_pylist()
    >>> keys[0] == keys[1] == bytes([0x18]) + number_key(1), keys[3] < keys[2] < keys[5] < keys[0], keys[4]
    (True, True, None)
    """
    parts = pc.extract_regex(pc.cast(numbers, pa.string()), _NUMBER)
    sign, integer, fraction, exponent = (parts.field(name) for name in ("sign", "integer", "fraction", "exponent"))
    digits = pc.utf8_ltrim(pc.binary_join_element_wise(integer, fraction, ""), "0")
    shift = pc.cast(pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")), pa.int64())
    places = pc.add(pc.subtract(pc.binary_length(digits), pc.binary_length(fraction)), shift)
    biased = to_numpy(pc.fill_null(places, 0)).astype(np.int64) + _EXPONENT_BIAS
    positions = np.ascontiguousarray(biased.astype(">u2")).view(np.uint8)
    places_bytes = pa.Array.from_buffers(pa.binary(2), len(numbers), [None, pa.py_buffer(positions)]).cast(pa.binary())
    shown = pc.cast(pc.utf8_rtrim(digits, "0"), pa.binary())
    magnitude = pc.binary_join_element_wise(places_bytes, shown, pa.scalar(_LAST), pa.scalar(b""))
    offsets, data = magnitude.buffers()[1:]
    inverted = pa.Array.from_buffers(
        pa.binary(), len(numbers), [None, offsets, pa.py_buffer(_INVERTED_BYTES[np.frombuffer(data or b"", np.uint8)])]
    )
    number_class = bytes([_CLASSES[_T.INT8]])
    heads = [pa.scalar(number_class + head) for head in (_NEGATIVE, _ZERO, _POSITIVE)]
    negative, positive = (
        pc.binary_join_element_wise(head, part, pa.scalar(b""))
        for head, part in ((heads[0], inverted), (heads[2], magnitude))
    )
    keys = pc.if_else(pc.equal(sign, "-"), negative, positive)
    keys = pc.if_else(pc.equal(digits, ""), heads[1], keys)
    return pc.if_else(parts.is_valid(), keys, pa.scalar(None, pa.binary()))


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


@lru_cache(maxsize=1 << 16)  # the engine calls with a few thousand rows at a time, which often repeat
def _nested_key(metadata: bytes, value: bytes) -> bytes | None:
    return sort_key(Variant(metadata, value))


def _payload(kind: VariantType, raw: Any, is_inside: bool) -> bytes:
    """Return the part of a scalar's key after its class; inside a container its end is marked."""
    if kind == _T.NULL:
        return b""
    if kind == _T.BOOLEAN:
        return bytes([raw])
    if kind in _NUMBERS:
        return number_key(_shown_number(kind, raw))
    if kind in (_T.STRING, _T.BINARY):
        data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw)
        return _with_end(data) if is_inside else data
    if kind == _T.UUID:
        return bytes(raw)
    units = raw if kind == _T.DATE or kind == _T.TIME else raw * NANOS_OF[kind]
    return int(units + (1 << 95)).to_bytes(12, "big")


def _shown_number(kind: VariantType, raw: Any) -> int | float | Decimal:
    """Return the number that the JSON of a value shows."""
    if kind == _T.FLOAT:
        return float(str(np.float32(raw)))
    return Decimal(raw[0]).scaleb(-raw[1], _EXACT) if isinstance(raw, tuple) else raw


def _with_end(data: bytes) -> bytes:
    """Mark the end of a string so that a prefix sorts first, and no byte of the string looks like the end."""
    return data.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def equal_forms(values: VariantArray) -> VariantArray:
    """Return the form of each value; SQL NULL for Variant null. Numbers become the narrowest integer or decimal.

    >>> import parquet_variant as pv
    >>> pv.to_json(equal_forms(pv.parse_json(["1", "1.0", "1e0", "[1.50]", "null", '"a"']))).to_pylist()
    ['1', '1', '1', '[1.5]', None, '"a"']
    """
    rows = (None if value is None or value.type == _T.NULL else value for value in values)
    return VariantArray.from_variants([row and _form(row.metadata, row.value) for row in rows])


@lru_cache(maxsize=1 << 16)
def _form(metadata: bytes, value: bytes) -> Variant:
    def of_scalar(kind: VariantType, raw: Any, start: int, stop: int) -> bytes:
        if kind in _NUMBERS:
            return _equal_number(_shown_number(kind, raw))
        if kind in _MICROS and raw % 1000 == 0:
            return encode_scalar(_MICROS[kind], raw // 1000)
        return encode_scalar(kind, raw) if kind == _T.STRING else value[start:stop]

    return Variant(*encode_value(tree_of_events(walk(metadata, value, 0, len(value)), of_scalar)))


def _equal_number(shown: int | float | Decimal) -> bytes:
    number = Decimal(repr(shown)) if isinstance(shown, float) else Decimal(shown)
    try:
        is_whole = number == number.to_integral_value()
        return Variant.from_python(int(number) if is_whole else number.normalize(_EXACT)).value
    except (VariantError, ArithmeticError):  # more digits than a decimal has, or not finite
        return encode_scalar(_T.DOUBLE, float(number))
