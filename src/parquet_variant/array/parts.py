"""What kernels need of a storage struct, whatever Arrow form it has; and tables of Arrow as one needs them.

Owns bringing the many forms of a Variant column (dictionary- or run-end-encoded metadata; plain, large and view
binaries; slices) into the one that kernels read, and unshredded storages made of their parts; tables without rows, a
column as one array, what is inside of structs, where pyarrow refuses or copies. Leaves what a storage may contain to
`schema` and its meaning to `VariantArray`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.encoding.cast.forms import in_form, plain_form, without_encoding
from parquet_variant.encoding.metadata import EMPTY_METADATA, encode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.kernels.arrow_buffers import from_bytes, from_numpy, scalar, to_numpy
from parquet_variant.types import MAX_OFFSET


class BinaryParts(NamedTuple):
    """A binary array as a kernel reads it."""

    offsets: npt.NDArray[np.int64]  # ``int64[n + 1]`` from ``address``.
    address: int  # Where the bytes start.
    valid: npt.NDArray[np.uint8]  # A byte an entry, 0 for null; empty if all are valid.
    owner: pa.Array  # Keeps the memory alive.


class MetadataParts(NamedTuple):
    """A metadata column: each distinct dictionary once, and which one each row has."""

    indices: npt.NDArray[np.int32]  # ``int32[n]``: index into ``dictionary``; -1 for null.
    dictionary: pa.BinaryArray  # The distinct metadata, plain binary.

    @property
    def column(self) -> pa.DictionaryArray:
        """The canonical metadata column: without nulls, so a null row has any of the dictionaries."""
        return metadata_array(from_numpy(np.maximum(self.indices, 0)), self.dictionary)


def metadata_array(indices: pa.Array, dictionary: pa.Array) -> pa.DictionaryArray:
    """Metadata of rows; with an entry where the dictionary has none, which the indices of null rows point at."""
    if not len(dictionary):
        dictionary = from_bytes([EMPTY_METADATA], dictionary.type)
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


def columns_of(group: pa.StructArray) -> dict[str, pa.Array]:
    """The columns of a group by name, null where the group is."""
    return dict(zip(group.type.names, group.flatten(), strict=True))


def stored_columns(group: pa.StructArray) -> dict[str, pa.Array]:
    """The columns of a group by name, as they lie: what is under a null group is whatever it is."""
    return {field.name: group.field(index) for index, field in enumerate(group.type)}


def with_columns(group: pa.StructArray, columns: Mapping[str, pa.Array]) -> pa.StructArray:
    """The group with other columns under the names of its own, of which some may be left out, or under new ones."""
    own = group.type.names
    fields = [
        (group.type.field(name) if name in own else pa.field(name, column.type)).with_type(column.type)
        for name, column in columns.items()
    ]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=group.is_null())


def binary_parts(array: pa.Array) -> BinaryParts:
    """The parts of a binary or string array of any form.

    Raises `SchemaError` if the array holds neither bytes nor text.
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

    Raises `SchemaError` if the column does not hold bytes.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_run_end_encoded(array.type):
        array = in_form(array, pa.dictionary(pa.int32(), plain_form(array.type)))
    if not pa.types.is_dictionary(array.type):
        plain = _bytes_of(_plain(array))
        if not (pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type)):
            raise SchemaError(f"expected binary metadata, found {plain.type}", reason="not-binary")
        array = _one_everywhere(plain) or plain.dictionary_encode()
    dictionary = _bytes_of(_plain(array.dictionary))
    # Under a null row of the storage an index may be any number, which nobody has checked.
    numbers = array.indices
    if numbers.type != pa.int32():
        numbers = numbers.cast(pa.int32(), safe=False)
    indices = to_numpy(numbers.fill_null(scalar(-1, pa.int32())) if numbers.null_count else numbers)
    outside = (indices < 0) | (indices >= len(dictionary))
    if dictionary.null_count:  # a null may be an index or, behind one, a value
        outside |= np.isin(indices, np.flatnonzero(~to_numpy(dictionary.is_valid())))
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
    return (
        None
        if (data != data[0]).any()
        else pa.DictionaryArray.from_arrays(from_numpy(np.zeros(rows, np.int32)), plain[:1])
    )


def variants_of(storage: pa.StructArray) -> Iterator[Variant | None]:
    """The values of an unshredded storage, row by row; None for SQL NULL."""
    metadata, value = _bytes_of(storage.field("metadata")), _bytes_of(storage.field("value"))
    for row, present in enumerate(storage.is_valid().to_pylist()):
        yield Variant(metadata[row].as_py() or b"", value[row].as_py()) if present else None


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def _bytes_of(array: pa.Array) -> pa.Array:
    """Texts as the bytes that they are, also those of a dictionary; other arrays as they are."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, _bytes_of(array.dictionary), safe=False)
    return array.view(_BYTES[array.type]) if array.type in _BYTES else array


def storage_of(metadata: pa.Array, value: pa.Array, missing: pa.Array | None = None) -> pa.StructArray:
    """The storage of some values, SQL NULL where they are missing."""
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=missing)


def metadata_of_all(names: Iterable[str], rows: int) -> pa.DictionaryArray:
    """One metadata for all rows, which has the names."""
    dictionary = from_bytes([encode_metadata(names)], pa.binary())
    return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(rows, np.int32)), dictionary)


def joined_storages(storages: list[pa.StructArray]) -> pa.StructArray:
    """One storage of several; values get 64-bit offsets where one has them, or where all outgrow 32-bit offsets."""
    values = [storage.field("value") for storage in storages]
    if any(pa.types.is_large_binary(value.type) for value in values) or sum(v.nbytes for v in values) > MAX_OFFSET:
        wide = [
            pa.struct([f.with_type(pa.large_binary()) if f.name == "value" else f for f in storage.type])
            for storage in storages
        ]
        storages = list(map(in_form, storages, wide))
    return pa.concat_arrays(storages)


def empty_table(schema: pa.Schema) -> pa.Table:
    """What `pyarrow.Schema.empty_table` gives, also for lists and structs of extension types, which that refuses.

    >>> empty_table(pa.schema({"ids": pa.list_(pa.uuid())})).num_rows
    0
    """
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def one_chunk(column: Any) -> pa.Array:
    """A column, which may be one array already, as one array: joining chunks copies them, even if there is only one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """The array at a path of struct fields, null wherever one of the structs is.

    Raises `VariantFileError` if the column is too large for one Arrow array.
    """
    try:
        array = one_chunk(table.column(path[0]))
    except pa.ArrowInvalid as error:
        raise VariantFileError(
            f"column {path[0]} has more than 2 GiB in a row group ({error}): rewrite it with smaller row groups",
            reason="too-large",
        ) from None
    for name in path[1:]:
        array = pc.struct_field(array, [name])
    return array
