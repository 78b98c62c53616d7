"""Bounds of the paths of a Variant column in a file: an object of primitive values by normalized path.

Owns the bytes of that object (metadata followed by value) and its decoding, for one file and for a column of a million
files. Leaves computing bounds to `inference.statistics`, the text around the bytes to the formats, and conclusions to
`pruning`.

The prose of Delta's RFC, its real tables and Iceberg have metadata first: that is what is written. The two printed
examples of the RFC have value first, with an unpadded tail: they are read too. The first byte shows the order: metadata
begins with version 1 in its low four bits, an object never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.header import value_size
from parquet_variant.encoding.metadata import metadata_length
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError, VariantError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath

_VERSION_MASK = 0x0F
_VERSION = 1
_OBJECT_BITS = 0b10
_BOUNDS = pa.struct([("metadata", pa.large_binary()), ("value", pa.large_binary())])


def bounds_to_bytes(bounds: Mapping[VariantPath, Variant]) -> bytes:
    r"""Return the bounds of paths as the bytes of one Variant object: metadata, then value; the root's path is ``$``.

    >>> bounds_to_bytes({VariantPath.parse("$.key"): Variant.from_python(7)})[-1:]
    b'\x07'
    """
    return Variant.from_python({str(path): bound for path, bound in bounds.items()}).to_bytes()


def complete_bounds(
    paths: Mapping[VariantPath, ValueBounds],
) -> tuple[dict[VariantPath, Variant], dict[VariantPath, Variant]]:
    """Return the lower and the upper bounds by path: of paths with both, because both objects need the same paths."""
    lower, upper = {}, {}
    for path, sides in paths.items():
        if sides.lower is not None and sides.upper is not None:
            lower[path], upper[path] = sides.lower, sides.upper
    return lower, upper


def bounds_from_bytes(data: bytes) -> dict[VariantPath, Variant]:
    """Return the bounds by path that the bytes of an object hold.

    Raises `TableError`: reason ``"bad-stats"`` if the bytes are not an object of primitive values by path.

    >>> data = bounds_to_bytes({VariantPath.parse("$.a"): Variant.from_python(1)})
    >>> {str(path): bound.to_python() for path, bound in bounds_from_bytes(data).items()}
    {"$['a']": 1}
    """
    try:
        bounds = Variant(*split_bounds(data))
        if bounds.type != VariantType.OBJECT:
            raise TableError(f"variant statistics are of type {bounds.type}, not an object", reason="bad-stats")
        return {VariantPath.parse(name): bound for name, bound in bounds.items()}
    except TableError:
        raise
    except VariantError as error:
        raise TableError(f"variant statistics cannot be read: {error}", reason="bad-stats") from error


def split_bounds(data: bytes) -> tuple[bytes, bytes]:
    """Return metadata and value of concatenated bytes, in either order, without padding.

    Raises `MalformedVariantError` if one of them is truncated.
    """
    if data[:1] and data[0] & _VERSION_MASK == _VERSION:
        middle = metadata_length(data)
        return data[:middle], data[middle : middle + value_size(data, middle, len(data))]
    middle = value_size(data, 0, len(data))
    metadata = data[middle:]
    return metadata[: metadata_length(metadata)], data[:middle]


def bounds_array(blobs: pa.Array) -> pa.StructArray:
    """Return a column of bounds as a struct of metadata and value; unreadable bytes become null (unknown)."""
    first = blobs.offset
    offsets = np.frombuffer(blobs.buffers()[1], dtype=np.int64)[first : first + len(blobs) + 1]
    data = np.frombuffer(blobs.buffers()[2] or b"", dtype=np.uint8)
    starts, stops = offsets[:-1], offsets[1:]
    middles, ends, good = _cut(data, starts, stops)
    valid = to_numpy(blobs.is_valid())
    if not np.array_equal(good, valid):
        # The RFC's byte order, or damage: rare enough to read one by one.
        return split_rows(blobs.to_pylist())
    null = from_numpy(~valid)
    return pa.StructArray.from_arrays(
        [_slices(data, starts, middles), _slices(data, middles, ends)], ["metadata", "value"], mask=null
    )


def split_rows(rows: Sequence[bytes | None]) -> pa.StructArray:
    """Return bounds as `bounds_array` does, one by one and in either byte order."""
    pieces = []
    for data in rows:
        try:
            metadata, value = (None, None) if data is None else split_bounds(data)
            pieces.append(None if metadata is None else {"metadata": metadata, "value": value})
        except VariantError:
            pieces.append(None)
    return pa.array(pieces, _BOUNDS)


def parsed_bounds(storage: pa.StructArray) -> pa.StructArray:
    """Return bounds in Parquet form, shredded or not, as `bounds_array` returns them; damaged bounds become null."""
    try:
        unshredded = VariantArray.from_storage(storage).to_unshredded().storage
    except VariantError:
        if len(storage) == 1:
            return pa.nulls(1, _BOUNDS)
        middle = len(storage) // 2
        return pa.concat_arrays([parsed_bounds(storage.slice(0, middle)), parsed_bounds(storage.slice(middle))])
    pieces = [pc.cast(pc.struct_field(unshredded, [name]), pa.large_binary()) for name in _BOUNDS.names]
    is_known = pc.and_(unshredded.is_valid(), pc.and_(pieces[0].is_valid(), pieces[1].is_valid()))
    return pa.StructArray.from_arrays(pieces, fields=list(_BOUNDS), mask=pc.invert(is_known))


def _cut(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where the metadata and the value of each row end, and whether the row is metadata and an object."""
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
    """Return little-endian numbers of one to four bytes; zero if they would extend beyond the row."""
    number = np.zeros(len(at), dtype=np.int64)
    for k in range(int(width.max(initial=0))):
        byte, inside = _byte(data, at + k, stops)
        number += np.where(inside & (k < width), byte.astype(np.int64) << (8 * k), 0)
    return number


def _slices(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> pa.Array:
    # Slices and the gaps between them cover the data, so taking every second span returns the slices.
    bounds = np.empty(2 * len(starts) + 1, dtype=np.int64)
    bounds[0:-1:2], bounds[1::2] = starts, stops
    bounds[-1] = len(data)
    spans = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(bounds.tobytes()), pa.py_buffer(data)]
    )
    return pc.take(spans, from_numpy(np.arange(len(starts)) * 2))
