"""Variant statistics in Delta's log: an object of bounds by path, as bytes and as Z85 text.

Owns the form of `minValues` and `maxValues` of a Variant column (RFC "Variant Shredding", "Statistics for Variant
Columns"), for one file and for a column of a million files. Leaves computing bounds to `shredding.statistics` and
concluding from them to `pruning`.

The RFC's prose and real tables have metadata, then value, zero-padded to four bytes: that is what is written. The RFC's
two printed examples have value, then metadata, with an unpadded tail: they are read too. Which one it is shows in the
first byte: metadata begins with version 1 in its low four bits, an object never does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta import z85
from parquet_variant.encoding.header import value_size
from parquet_variant.encoding.metadata import metadata_length
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

_VERSION_MASK = 0x0F
_VERSION = 1
_OBJECT_BITS = 0b10
_BOUNDS = pa.struct([("metadata", pa.large_binary()), ("value", pa.large_binary())])


def encode_bounds(bounds: Mapping[VariantPath, Variant]) -> str:
    """Bounds as the log holds them in JSON.

    `bounds`: a primitive Variant for each path; the root's path is ``$``.
    Returns Z85 of metadata and value, padded with zero bytes to a multiple of four.

    >>> encode_bounds({VariantPath.parse("$.key"): Variant.from_python(7)})
    '5DI>qbWhTiwQbUe0S-o30T]ql'
    """
    return z85.encode(Variant.from_python({str(path): bound for path, bound in bounds.items()}).to_bytes())


def decode_bounds(text: str) -> dict[VariantPath, Variant]:
    """The bounds in a Z85 text, by path.

    Raises `DeltaError`: reason ``"bad-z85"`` or ``"bad-stats"`` if the text holds no object of primitive values by
    path.

    >>> bounds = decode_bounds("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu")
    >>> {str(path): bound.to_python() for path, bound in bounds.items()}
    {"$['a']": 'min-string', "$['b']['c']": 1}
    """
    data = z85.decode(text)
    try:
        bounds = Variant(*split_bounds(data))
        if bounds.type != VariantType.OBJECT:
            raise DeltaError(f"variant statistics are a {bounds.type}, not an object", reason="bad-stats")
        return {VariantPath.parse(name): bound for name, bound in bounds.items()}
    except DeltaError:
        raise
    except VariantError as error:
        raise DeltaError(f"variant statistics cannot be read: {error}", reason="bad-stats") from error


def split_bounds(data: bytes) -> tuple[bytes, bytes]:
    """Metadata and value of concatenated bytes, in either order, without the padding.

    Raises `MalformedVariantError` if one of them is cut off.
    """
    if data[:1] and data[0] & _VERSION_MASK == _VERSION:
        middle = metadata_length(data)
        return data[:middle], data[middle : middle + value_size(data, middle, len(data))]
    middle = value_size(data, 0, len(data))
    rest = data[middle:]
    return rest[: metadata_length(rest)], data[:middle]


def decode_bounds_array(texts: pa.Array) -> pa.StructArray:
    """A column of Z85 texts as a struct of metadata and value; what cannot be read is null, since it is then unknown.

    `texts`: a string array.
    Returns ``struct<metadata: large_binary, value: large_binary>``.
    """
    try:
        blobs = z85.decode_array(texts)
    except DeltaError:
        return _row_by_row(texts)
    offsets = np.frombuffer(blobs.buffers()[1], dtype=np.int64)[: len(blobs) + 1]
    data = np.frombuffer(blobs.buffers()[2] or b"", dtype=np.uint8)
    starts, stops = offsets[:-1], offsets[1:]
    middles, ends, good = _cut(data, starts, stops)
    valid = to_numpy(texts.is_valid())
    if not np.array_equal(good, valid):
        # The RFC's byte order, or damage: rare enough for one at a time.
        return _row_by_row(texts)
    null = from_numpy(~valid)
    return pa.StructArray.from_arrays(
        [_slices(data, starts, middles), _slices(data, middles, ends)], ["metadata", "value"], mask=null
    )


def parsed_bounds(storage: pa.StructArray) -> pa.StructArray:
    """Bounds in Parquet form, shredded or not, as `decode_bounds_array` gives them; what is damaged is null."""
    try:
        plain = VariantArray.from_storage(storage).to_unshredded().storage
    except VariantError:
        if len(storage) == 1:
            return pa.nulls(1, _BOUNDS)
        middle = len(storage) // 2
        return pa.concat_arrays([parsed_bounds(storage.slice(0, middle)), parsed_bounds(storage.slice(middle))])
    pieces = [pc.cast(pc.struct_field(plain, name), pa.large_binary()) for name in _BOUNDS.names]
    known = pc.and_(plain.is_valid(), pc.and_(pieces[0].is_valid(), pieces[1].is_valid()))
    return pa.StructArray.from_arrays(pieces, fields=list(_BOUNDS), mask=pc.invert(known))


def _cut(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where each row's metadata ends and its value ends, and whether the row is metadata and an object."""
    header, inside = _byte(data, starts, stops)
    good = inside & (header & _VERSION_MASK == _VERSION)
    width = (header >> 6).astype(np.int64) + 1
    count = _uint(data, starts + 1, width, stops)
    middles = starts + 1 + (count + 2) * width + _uint(data, starts + 1 + (count + 1) * width, width, stops)
    good &= middles < stops
    head, inside = _byte(data, middles, stops)
    good &= inside & (head & 0b11 == _OBJECT_BITS)
    offset_width = ((head >> 2) & 0b11).astype(np.int64) + 1
    id_width = ((head >> 4) & 0b11).astype(np.int64) + 1
    count_width = np.where(head >> 6 & 1, 4, 1)
    fields = _uint(data, middles + 1, count_width, stops)
    last = middles + 1 + count_width + fields * (id_width + offset_width)
    ends = last + offset_width + _uint(data, last, offset_width, stops)
    good &= ends <= stops
    return np.where(good, middles, starts), np.where(good, ends, starts), good


def _byte(
    data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    inside = at < stops
    if not len(data):
        return np.zeros(len(at), dtype=np.uint8), inside
    return np.where(inside, data[np.where(inside, at, 0)], np.uint8(0)), inside


def _uint(
    data: npt.NDArray[np.uint8],
    at: npt.NDArray[np.int64],
    width: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Little-endian numbers of one to four bytes; zero where they would leave the row."""
    number = np.zeros(len(at), dtype=np.int64)
    for k in range(int(width.max(initial=0))):
        byte, inside = _byte(data, at + k, stops)
        number += np.where(inside & (k < width), byte.astype(np.int64) << (8 * k), 0)
    return number


def _slices(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> pa.Array:
    # Alternating keep and drop spans cover the data: taking every second gives the slices in one call.
    bounds = np.empty(2 * len(starts) + 1, dtype=np.int64)
    bounds[0:-1:2], bounds[1::2] = starts, stops
    bounds[-1] = len(data)
    spans = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(bounds.tobytes()), pa.py_buffer(data)]
    )
    return pc.take(spans, from_numpy(np.arange(len(starts)) * 2))


def _row_by_row(texts: pa.Array) -> pa.StructArray:
    rows = []
    for text in texts.to_pylist():
        try:
            metadata, value = split_bounds(z85.decode(text)) if text is not None else (None, None)
            rows.append(None if metadata is None else {"metadata": metadata, "value": value})
        except VariantError:
            rows.append(None)
    return pa.array(rows, _BOUNDS)
