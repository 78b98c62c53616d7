"""The parts of storage structs as kernels read them, and helpers for Arrow tables and for single rows.

Owns the conversion of the forms of a Variant column (dictionary- or run-end-encoded metadata; plain, large and view
binaries; slices) to the form that kernels read, and building unshredded storages from such parts; empty tables, columns
as one array, and fields of structs, where pyarrow fails or copies; and functions of one value, applied to the rows that
a kernel does not decide. Owns also the check of Arrow data from outside, before a kernel or pyarrow follows its offsets
and indices: ``pyarrow.Array.validate()`` accepts offsets that decrease, or an index beyond its dictionary. pyarrow's
full validation finds those, but also rejects the whole array for strings that are not UTF-8 and numbers out of range,
which are faults of single rows here. Leaves those faults to the functions that read the rows, the allowed content of a
storage to `layouts`, and its meaning to `VariantArray`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.encoding.metadata import EMPTY_METADATA, VERSION, check_version, encode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, VariantError, VariantFileError, first_line
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_bytes, from_numpy, numpy_type, scalar, to_numpy
from parquet_variant.kernels.memory import buffer_address
from parquet_variant.layouts.storage_shape import is_binary
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import in_form, plain_form


def refuse_unsound(array: pa.Array) -> None:
    """Raise `SchemaError` (``bad-arrow``, with the path of the child) if buffers of an array point outside the data.

    The reason is ``too-deep`` for hundreds of levels.
    """
    try:
        array.validate()
    except pa.ArrowException as error:
        raise _damaged(first_line(error), "$") from None
    try:
        _check(array, "$")
    except RecursionError:
        raise SchemaError("the Arrow data is nested too deeply to be checked", reason="too-deep") from None


def refuse_bad_indices(array: pa.Array) -> None:
    """Raise as `refuse_unsound` for an index outside its dictionary, in an array that pyarrow has read itself."""
    _check(array, "$", nested_only=True)


def _damaged(problem: str, path: str) -> SchemaError:
    return SchemaError(f"the Arrow data is damaged: {problem}", reason="bad-arrow", path=path)


def _check(array: pa.Array, path: str, rows: pa.Array | None = None, *, nested_only: bool = False) -> None:
    """Check the rows of an array that the mask ``rows`` selects; ``nested_only`` skips the buffers of strings and
    numbers.
    """
    kind = array.type
    types = pa.types
    check = partial(_check, nested_only=nested_only)
    if (width := _OFFSETS.get(type(array))) is not None:
        if not nested_only:
            data = array.buffers()[2]
            _check_offsets(_offsets(array, width), 0 if data is None else int(data.size), path)
    elif isinstance(kind, pa.BaseExtensionType):
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
        offsets = _offsets(array, np.dtype(np.int64 if types.is_large_list(kind) else np.int32))
        elements = array.values
        if types.is_map(kind):
            elements = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        _check_offsets(offsets, len(elements), path)
        if len(offsets):
            check(elements.slice(int(offsets[0]), int(offsets[-1] - offsets[0])), f"{path}[*]")
    elif types.is_fixed_size_list(kind):
        check(array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size), f"{path}[*]")
    elif nested_only:
        return
    elif types.is_string_view(kind):
        _check_fully(array.view(pa.binary_view()), path)
    elif not (
        # pyarrow has checked the buffers of numbers.
        types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind) or types.is_null(kind)
    ):
        _check_fully(array, path)


# Arrays of plain bytes and strings, with the type of their offsets.
_OFFSETS: dict[type[pa.Array], np.dtype[np.signedinteger]] = {
    **dict.fromkeys((pa.BinaryArray, pa.StringArray), np.dtype(np.int32)),
    **dict.fromkeys((pa.LargeBinaryArray, pa.LargeStringArray), np.dtype(np.int64)),
}


def _offsets(array: pa.Array, width: np.dtype[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    buffer = array.buffers()[1]
    # An empty array needs no offsets, but pyarrow reads the first offset (`nbytes`) if there is one.
    if buffer is None or (not len(array) and buffer.size < (array.offset + 1) * width.itemsize):
        return np.empty(0, width)
    return np.frombuffer(buffer, width, len(array) + 1, array.offset * width.itemsize)


def _check_offsets(offsets: npt.NDArray[np.signedinteger], size: int, path: str) -> None:
    if len(offsets) and (offsets[0] < 0 or offsets[-1] > size or np.count_nonzero(offsets[1:] < offsets[:-1])):
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
        raise _damaged(first_line(error), path) from None


class BinaryParts(NamedTuple):
    """A binary array as a kernel reads it."""

    offsets: npt.NDArray[np.int64]  # ``int64[n + 1]``, relative to ``address``.
    address: int  # The address of the bytes.
    valid: npt.NDArray[np.uint8]  # One byte per entry, 0 for null; empty if all entries are valid.
    owner: pa.Array  # The array that keeps the memory alive.


class MetadataParts(NamedTuple):
    """The distinct dictionaries of a metadata column, and the dictionary of each row."""

    indices: npt.NDArray[np.int32]  # ``int32[n]``: index into ``dictionary``; -1 for null.
    dictionary: pa.BinaryArray  # The distinct metadata, plain binary.

    @property
    def column(self) -> pa.DictionaryArray:
        """The canonical metadata column. It has no nulls: a null row has any of the dictionaries."""
        return metadata_array(from_numpy(np.maximum(self.indices, 0)), self.dictionary)


def metadata_array(indices: pa.Array, dictionary: pa.Array) -> pa.DictionaryArray:
    """Return a metadata column; an empty dictionary gets an entry for the indices of null rows."""
    if not len(dictionary):
        dictionary = from_bytes([EMPTY_METADATA], dictionary.type)
    return pa.DictionaryArray.from_arrays(indices, dictionary)


def valid_bytes(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return one byte per entry, 0 for null; an empty array if all entries are valid."""
    if array.null_count == 0:
        return np.empty(0, np.uint8)
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :]


def valid_mask(array: pa.Array) -> Mask:
    """Return the mask of the entries that are not null."""
    valid = valid_bytes(array)
    return valid != 0 if len(valid) else np.ones(len(array), np.bool_)


def _without_encodings(array: pa.Array) -> pa.Array:
    """Return an array without dictionaries, run ends or views."""
    if type(array) in _OFFSETS:
        return array
    array = one_chunk(array)
    array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    return in_form(array, plain_form(array.type))


def columns_of(group: pa.StructArray) -> dict[str, pa.Array]:
    """Return the columns of a group by name, null where the group is null."""
    return dict(zip(group.type.names, group.flatten(), strict=True))


def stored_columns(group: pa.StructArray) -> dict[str, pa.Array]:
    """Return the columns of a group by name, as they are stored: a value under a null group may be any value."""
    return {field.name: group.field(index) for index, field in enumerate(group.type)}


def with_columns(group: pa.StructArray, columns: Mapping[str, pa.Array]) -> pa.StructArray:
    """Return a group with other columns; a new name adds a column, and a missing name removes it."""
    names = group.type.names
    fields = [
        (group.type.field(name) if name in names else pa.field(name, column.type)).with_type(column.type)
        for name, column in columns.items()
    ]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=group.is_null())


def binary_parts(array: pa.Array) -> BinaryParts:
    """Return the parts of a binary or string array of any form.

    Raises `SchemaError` (``not-binary``) for an array of another type.
    """
    array = _without_encodings(array)
    if type(array) in (pa.NullArray, pa.FixedSizeBinaryArray):
        array = array.cast(pa.binary())
    width = _OFFSETS.get(type(array))
    if width is None:
        raise SchemaError(f"expected binary or string values, got {array.type}", reason="not-binary")
    offsets = _offsets(array, width).astype(np.int64) if len(array) else np.zeros(1, np.int64)
    return BinaryParts(offsets, buffer_address(array.buffers()[2]), valid_bytes(array), array)


def metadata_parts(array: pa.Array) -> MetadataParts:
    """Return the distinct dictionaries of a metadata column, and the dictionary of each row.

    Raises `SchemaError` (``not-binary``) if the column does not hold bytes.
    """
    array = one_chunk(array)
    if pa.types.is_run_end_encoded(array.type):
        array = in_form(array, pa.dictionary(pa.int32(), plain_form(array.type)))
    if not pa.types.is_dictionary(array.type):
        plain = _bytes_of(_without_encodings(array))
        if not (pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type)):
            raise SchemaError(f"expected binary metadata, got {plain.type}", reason="not-binary")
        array = _single_entry_dictionary(plain) or plain.dictionary_encode()
    dictionary = _bytes_of(_without_encodings(array.dictionary))
    # The index of a null row may be any number, and was not checked.
    numbers = array.indices
    if numbers.type != pa.int32():
        numbers = numbers.cast(pa.int32(), safe=False)
    indices = to_numpy(numbers.fill_null(scalar(-1, pa.int32())) if numbers.null_count else numbers)
    outside = (indices < 0) | (indices >= len(dictionary))
    if dictionary.null_count:  # a row is null if its index or its dictionary entry is null
        outside |= np.isin(indices, np.flatnonzero(~to_numpy(dictionary.is_valid())))
        dictionary = dictionary.fill_null(EMPTY_METADATA)
    if outside.any():
        indices = np.where(outside, np.int32(-1), indices)
    if pa.types.is_large_binary(dictionary.type):
        dictionary = dictionary.cast(pa.binary())
    return MetadataParts(indices, dictionary)


def _single_entry_dictionary(plain: pa.Array) -> pa.DictionaryArray | None:
    """Return a dictionary of one entry if all rows have the same bytes, as rows of one batch often have; else None."""
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
    """Yield the values of an unshredded storage; None for SQL NULL."""
    metadata, value = _bytes_of(storage.field("metadata")), _bytes_of(storage.field("value"))
    for row, present in enumerate(storage.is_valid().to_pylist()):
        yield Variant(metadata[row].as_py() or b"", value[row].as_py()) if present else None


_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def _bytes_of(array: pa.Array) -> pa.Array:
    """Return strings as bytes, also in a dictionary; any other array is returned unchanged."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, _bytes_of(array.dictionary), safe=False)
    return array.view(_BYTES[array.type]) if array.type in _BYTES else array


def variant_at(storage: pa.StructArray, row: int) -> Variant:
    """Return the value of a row of an unshredded storage that is not SQL NULL."""
    metadata, value = storage.field("metadata")[row].as_py(), storage.field("value")[row].as_py()
    return Variant(metadata or b"", value or b"")


def struct_of(columns: Mapping[str, pa.Array], missing: pa.Array | None = None) -> pa.StructArray:
    """Return a struct of optional fields, null where `missing` is true."""
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns), mask=missing)


def storage_of(metadata: pa.Array, value: pa.Array, missing: pa.Array | None = None) -> pa.StructArray:
    """Return the storage of values; rows that are `missing` are SQL NULL."""
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=False)]
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=missing)


def storage_of_variants(variants: Iterable[Variant | None]) -> pa.StructArray:
    """Return the storage of values with their bytes unchanged; None is SQL NULL."""
    values = list(variants)
    numbers: dict[bytes, int] = {}  # Of the distinct metadata: `dictionary_encode` imports pyarrow.compute.
    of_rows = [numbers.setdefault(EMPTY_METADATA if v is None else v.metadata, len(numbers)) for v in values]
    metadata = metadata_array(from_numpy(np.array(of_rows, np.int32)), from_bytes(list(numbers), pa.binary()))
    value = from_bytes([b"" if v is None else v.value for v in values], pa.binary())
    missing = np.array([v is None for v in values], np.bool_)
    return storage_of(metadata, value, from_numpy(missing) if missing.any() else None)


def metadata_of_all(names: Iterable[str], rows: int) -> pa.DictionaryArray:
    """Return a metadata column in which all rows have one dictionary of the names."""
    dictionary = from_bytes([encode_metadata(names)], pa.binary())
    return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(rows, np.int32)), dictionary)


def joined_storages(storages: list[pa.StructArray]) -> pa.StructArray:
    """Return several unshredded storages as one, with wider offsets or plain metadata where that is necessary."""
    values = [storage.field("value") for storage in storages]
    if any(pa.types.is_large_binary(value.type) for value in values) or sum(v.nbytes for v in values) > MAX_OFFSET:
        wide = [
            pa.struct([f.with_type(pa.large_binary()) if f.name == "value" else f for f in storage.type])
            for storage in storages
        ]
        storages = list(map(in_form, storages, wide))
    if any(storage.type != storages[0].type for storage in storages):
        plain = pa.struct([("metadata", pa.binary()), ("value", storages[0].type.field("value").type)])
        storages = [in_form(storage, plain) for storage in storages]
    return pa.concat_arrays(storages)


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return an empty table; unlike `pyarrow.Schema.empty_table`, also for lists and structs of extension types."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def one_chunk(column: Any) -> pa.Array:
    """Return a column as one array. Joining the chunks copies them, even if there is only one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def column_at(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """Return the column at a path of struct fields, null where one of the structs is null."""
    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, [name])
    return column


def nested_array(table: pa.Table, path: Sequence[str]) -> pa.Array:
    """Return the column at a path of struct fields as one array; see `column_at`.

    Raises `VariantFileError` if the column is too large for one Arrow array.
    """
    column = column_at(table, path)
    try:
        return one_chunk(column)
    except pa.ArrowInvalid as error:
        raise VariantFileError(
            f"column {path[0]} has more than 2 GiB in a row group ({error}): rewrite the file with smaller row groups",
            reason="too-large",
        ) from None


T = TypeVar("T")


def row_by_row(rows: Iterable[int], of_row: Callable[[int], T], *, null_on_error: bool = False) -> list[T | None]:
    """Return the result of a function for each row number; an error has its row, or is None with ``null_on_error``."""
    results: list[T | None] = []
    for row in rows:
        try:
            results.append(of_row(row))
        except VariantError as error:
            if not null_on_error:
                error.row = row
                raise
            results.append(None)
    return results


def known_versions(storage: pa.StructArray, *, null_on_error: bool = False) -> pa.StructArray:
    """Return a storage whose rows all have metadata of version 1; other rows are an error (``bad-version``) or null."""
    at = storage.type.get_field_index("metadata")
    if at < 0 or not is_binary(storage.type.field(at).type):
        return storage
    indices, dictionary = metadata_parts(storage.field(at))
    offsets, _, _, owner = binary_parts(dictionary)
    is_known = offsets[1:] == offsets[:-1]
    headers = np.frombuffer(owner.buffers()[2] or b"", np.uint8)[offsets[:-1][~is_known]]
    is_known[~is_known] = headers & 0x0F == VERSION
    if is_known.all():
        return storage
    unknown = valid_mask(storage) & (indices >= 0) & ~is_known[indices]
    if not null_on_error:
        first = np.flatnonzero(unknown)[:1].tolist()
        row_by_row(first, lambda row: check_version(dictionary[int(indices[row])].as_py()))
    columns, missing = list(stored_columns(storage).values()), from_numpy(unknown | ~valid_mask(storage))
    return pa.StructArray.from_arrays(columns, fields=list(storage.type), mask=missing)


def patched(base: pa.Array, positions: Int64s, replacement: pa.Array) -> pa.Array:
    """Return the base array with other values at some positions."""
    if len(positions) == 0:
        return base
    if len(positions) == len(base):
        return replacement
    if pa.types.is_nested(base.type) or isinstance(base.type, pa.BaseExtensionType):
        order = np.arange(len(base))
        order[positions] = np.arange(len(base), len(base) + len(positions))
        return pa.concat_arrays([base, replacement]).take(from_numpy(order))
    mask = np.zeros(len(base), np.bool_)
    mask[positions] = True
    return pc.replace_with_mask(base, from_numpy(mask), replacement)


def scatter(array: pa.Array, positions: Int64s, size: int) -> pa.Array:
    """Return a longer array with the entries at some positions, null elsewhere."""
    if len(positions) == size:
        return array
    if not len(positions):
        return array.take(pa.nulls(size, pa.int64()))
    places = np.full(size, -1, np.int64)
    places[positions] = np.arange(len(positions))
    return array.take(from_numpy(places, places < 0))


def with_fallback_rows(
    column: pa.Array, refused: npt.NDArray[Any], by_fallback: Callable[[int], pa.Array], *, null_on_error: bool = False
) -> pa.Array:
    """Return a column made by a kernel with its refused rows replaced; the function returns an array of one row.

    Rows for which the function raises become null with ``null_on_error``; otherwise the error names the row.
    """
    rows = np.flatnonzero(refused)
    if not len(rows):
        return column
    pieces = row_by_row(rows.tolist(), lambda row: by_fallback(row).cast(column.type), null_on_error=null_on_error)
    replacement = pa.concat_arrays([pa.nulls(1, column.type) if piece is None else piece for piece in pieces])
    return patched(column, rows, replacement)
