"""What kernels need of a storage struct, whatever Arrow form it has.

Owns bringing the many forms of a Variant column (dictionary- or run-end-encoded metadata; plain, large and view
binaries; slices) into the one that kernels read, and unshredded storages made of their parts. Leaves what a storage may
contain to `schema` and its meaning to `VariantArray`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.encoding.cast.forms import without_encoding
from parquet_variant.encoding.metadata import EMPTY_METADATA, encode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.types import MAX_OFFSET

__all__ = [
    "BinaryParts",
    "MetadataParts",
    "binary_parts",
    "joined_storages",
    "metadata_array",
    "metadata_of_all",
    "metadata_parts",
    "storage_of",
    "valid_bytes",
    "variants_of",
]


class BinaryParts(NamedTuple):
    """A binary array as a kernel reads it.

    Parameters
    ----------
    offsets
        ``int64[n + 1]`` from ``address``.
    address
        Where the bytes start.
    valid
        A byte an entry, 0 for null; empty if all are valid.
    owner
        Keeps the memory alive.
    """

    offsets: npt.NDArray[np.int64]
    address: int
    valid: npt.NDArray[np.uint8]
    owner: pa.Array


class MetadataParts(NamedTuple):
    """A metadata column: each distinct dictionary once, and which one each row has.

    Parameters
    ----------
    indices
        ``int32[n]``: index into ``dictionary``; -1 for null.
    dictionary
        The distinct metadata, plain binary.
    """

    indices: npt.NDArray[np.int32]
    dictionary: pa.BinaryArray

    @property
    def column(self) -> pa.DictionaryArray:
        """The canonical metadata column: without nulls, so a null row has any of the dictionaries."""
        return metadata_array(pa.array(np.maximum(self.indices, 0)), self.dictionary)


def metadata_array(indices: pa.Array, dictionary: pa.Array) -> pa.DictionaryArray:
    """Metadata of rows; with an entry where the dictionary has none, which the indices of null rows point at."""
    if not len(dictionary):
        dictionary = pa.array([EMPTY_METADATA], dictionary.type)
    return pa.DictionaryArray.from_arrays(indices, dictionary)


def valid_bytes(array: pa.Array) -> npt.NDArray[np.uint8]:
    """A byte an entry, 0 for null; empty if all are valid."""
    if array.null_count == 0:
        return np.empty(0, np.uint8)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :]


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary, run ends or views."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    array = without_encoding(array)
    if pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    elif pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def binary_parts(array: pa.Array) -> BinaryParts:
    """The parts of a binary or string array of any form.

    Raises
    ------
    SchemaError
        If the array holds neither bytes nor text.
    """
    array = _plain(array)
    if pa.types.is_null(array.type):
        array = array.cast(pa.binary())
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    if pa.types.is_binary(array.type) or pa.types.is_string(array.type):
        dtype: type[np.signedinteger] = np.int32
    elif pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        dtype = np.int64
    else:
        raise SchemaError(f"expected binary or string values, found {array.type}", reason="not-binary")
    _, offset_buffer, data = array.buffers()
    if offset_buffer is None or len(array) == 0:
        offsets = np.zeros(len(array) + 1, np.int64)
    else:
        itemsize = np.dtype(dtype).itemsize
        offsets = np.frombuffer(offset_buffer, dtype, len(array) + 1, array.offset * itemsize).astype(np.int64)
    return BinaryParts(offsets, data.address if data is not None else 0, valid_bytes(array), array)


def metadata_parts(array: pa.Array) -> MetadataParts:
    """The distinct dictionaries of a metadata column, and the one of each row.

    Raises
    ------
    SchemaError
        If the column does not hold bytes.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_run_end_encoded(array.type):
        array = without_encoding(array)
    if not pa.types.is_dictionary(array.type):
        plain = _plain(array)
        if not (pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type)):
            raise SchemaError(f"expected binary metadata, found {plain.type}", reason="not-binary")
        array = _one_everywhere(plain) or plain.dictionary_encode()
    dictionary = _plain(array.dictionary)
    # Under a null row of the storage an index may be any number, which nobody has checked.
    numbers = array.indices
    if numbers.type != pa.int32():
        numbers = numbers.cast(pa.int32(), safe=False)
    indices = (numbers.fill_null(-1) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)
    outside = (indices < 0) | (indices >= len(dictionary))
    if dictionary.null_count:  # a null may be an index or, behind one, a value
        outside |= np.isin(indices, np.flatnonzero(~np.asarray(dictionary.is_valid())))
        dictionary = dictionary.fill_null(EMPTY_METADATA)
    if outside.any():
        indices = np.where(outside, np.int32(-1), indices)
    if pa.types.is_large_binary(dictionary.type):
        dictionary = dictionary.cast(pa.binary())
    return MetadataParts(indices, dictionary)


def _one_everywhere(plain: pa.Array) -> pa.DictionaryArray | None:
    """The dictionary of one entry, where all rows have the same bytes, as those of one batch often have."""
    rows = len(plain)
    if not rows or plain.null_count:
        return None
    parts = binary_parts(plain)
    size = parts.offsets[1] - parts.offsets[0]
    if (np.diff(parts.offsets) != size).any():
        return None
    data = np.frombuffer(plain.buffers()[2] or b"", np.uint8)[parts.offsets[0] : parts.offsets[-1]].reshape(rows, size)
    return None if (data != data[0]).any() else pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), plain[:1])


def variants_of(storage: pa.StructArray) -> Iterator[Variant | None]:
    """The values of an unshredded storage, row by row; None for SQL NULL."""
    metadata, value = storage.field("metadata"), storage.field("value")
    for row, present in enumerate(storage.is_valid().to_pylist()):
        yield Variant(metadata[row].as_py() or b"", value[row].as_py()) if present else None


def storage_of(metadata: pa.Array, value: pa.Array, missing: pa.Array | None = None) -> pa.StructArray:
    """The storage of some values, SQL NULL where they are missing."""
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=missing)


def metadata_of_all(names: Iterable[str], rows: int) -> pa.DictionaryArray:
    """One metadata for all rows, which has the names."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([encode_metadata(names)], pa.binary()))


def joined_storages(storages: list[pa.StructArray]) -> pa.StructArray:
    """One storage of several; values get 64-bit offsets where one has them, or where all outgrow 32-bit offsets."""
    values = [storage.field("value") for storage in storages]
    if any(pa.types.is_large_binary(value.type) for value in values) or sum(v.nbytes for v in values) > MAX_OFFSET:
        storages = [storage.cast(_wide(storage.type)) for storage in storages]
    return pa.concat_arrays(storages)


def _wide(storage: pa.StructType) -> pa.StructType:
    """The storage type with 64-bit offsets of values."""
    return pa.struct([field.with_type(pa.large_binary()) if field.name == "value" else field for field in storage])
