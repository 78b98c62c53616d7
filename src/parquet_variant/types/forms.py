"""Storage forms of Arrow types: views, dictionaries, run ends, narrow decimals.

Owns the plain form of each type, which every pyarrow function accepts, and conversions to and from it. Leaves the
values to its callers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

import numpy as np
import pyarrow as pa

from parquet_variant.errors import CastError, first_line
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import MAX_OFFSET

# Callback: (array, type) -> the array in that type, or None.
Change = Callable[[pa.Array, pa.DataType], pa.Array | None]

_lib = pa.lib
# Ids of types that do not have offsets or entries for each row, and of all types that may have another plain form.
VIEWS = {
    *(_lib.Type_RUN_END_ENCODED, _lib.Type_STRING_VIEW, _lib.Type_BINARY_VIEW),
    *(_lib.Type_LIST_VIEW, _lib.Type_LARGE_LIST_VIEW),
}
ENCODINGS = VIEWS | {_lib.Type_DICTIONARY, _lib.Type_FIXED_SIZE_LIST, _lib.Type_DECIMAL32, _lib.Type_DECIMAL64}


def is_json_type(arrow: pa.DataType) -> bool:
    """Return True for Arrow's canonical type of JSON text, ``arrow.json``."""
    return isinstance(arrow, pa.BaseExtensionType) and arrow.extension_name == "arrow.json"


def holds_json(arrow: pa.DataType) -> bool:
    """Return True for ``arrow.json``, and for types with it inside."""
    return any(is_json_type(kind) for kind, _ in nested_types(arrow))


def plain_form(arrow: pa.DataType, *, stored: bool = False) -> pa.DataType:
    """Return the type of the same values without views, dictionaries, run ends and narrow decimals, at any depth.

    With ``stored``, dictionaries and narrow decimals are kept, since files have them too; fixed-size lists of size zero
    become lists.

    >>> plain_form(pa.list_view(pa.dictionary(pa.int8(), pa.string_view())))
    ListType(list<item: large_string>)
    """
    types = pa.types
    if not has_encodings(arrow):
        return arrow
    if types.is_dictionary(arrow) and stored and not types.is_null(arrow.value_type):
        return pa.dictionary(arrow.index_type, plain_form(arrow.value_type, stored=True), arrow.ordered)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return plain_form(arrow.value_type, stored=stored)
    if is_json_type(arrow):
        return pa.json_(plain_form(arrow.storage_type))
    if types.is_string_view(arrow):
        return pa.large_string()
    if types.is_binary_view(arrow):
        return pa.large_binary()
    if not stored and (types.is_decimal32(arrow) or types.is_decimal64(arrow)):
        return pa.decimal128(arrow.precision, arrow.scale)
    if stored and types.is_fixed_size_list(arrow) and not arrow.list_size:
        arrow = pa.list_(arrow.value_field)  # pyarrow 26 writes nulls instead of empty lists
    return with_fields(arrow, lambda field: field.with_type(plain_form(field.type, stored=stored)))


def has_encodings(arrow: pa.DataType, ids: Container[int] = ENCODINGS) -> bool:
    """Return whether a type, or a type nested in it, may have another plain form, or has one of some type ids."""
    return any(kind.id in ids for kind, _ in nested_types(arrow))


def nested_types(arrow: pa.DataType) -> Iterator[tuple[pa.DataType, int]]:
    """Yield a type and the types nested in it, each with its depth, from 1.

    Without recursion, since files nest types hundreds of levels deep.
    """
    remaining = [(arrow, 1)]
    while remaining:
        kind, depth = remaining.pop()
        yield kind, depth
        if isinstance(kind, pa.BaseExtensionType):
            remaining.append((kind.storage_type, depth))
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            remaining.append((kind.value_type, depth + 1))
        else:
            remaining += [(kind.field(number).type, depth + 1) for number in range(kind.num_fields)]


def with_fields(arrow: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a nested type with changed fields, list views as lists; a type without fields is returned unchanged.

    >>> with_fields(pa.list_(pa.int8()), lambda field: field.with_nullable(False))
    ListType(list<item: int8 not null>)
    """
    types = pa.types
    if types.is_struct(arrow):
        return pa.struct([change(field) for field in arrow])
    if types.is_map(arrow):
        return pa.map_(change(arrow.key_field), change(arrow.item_field), arrow.keys_sorted)
    if types.is_fixed_size_list(arrow):
        return pa.list_(change(arrow.value_field), arrow.list_size)
    if types.is_list(arrow) or types.is_list_view(arrow):
        return pa.list_(change(arrow.value_field))
    if types.is_large_list(arrow) or types.is_large_list_view(arrow):
        return pa.large_list(change(arrow.value_field))
    return arrow


def number_form(arrow: pa.DataType, is_number: Callable[[pa.DataType], bool] = pa.types.is_temporal) -> pa.DataType:
    """Return the type that stores the same values as numbers and bytes: dates and times, or only some, as integers."""
    if is_number is not pa.types.is_temporal and not any(is_number(kind) for kind, _ in nested_types(arrow)):
        return arrow  # files nest types hundreds of levels deep
    if isinstance(arrow, pa.BaseExtensionType):
        return number_form(arrow.storage_type)
    if is_number(arrow):
        return pa.int32() if arrow.bit_width == 32 else pa.int64()
    return with_fields(arrow, lambda field: field.with_type(number_form(field.type, is_number)))


def without_encoding(array: pa.Array) -> pa.Array:
    """Return a dictionary- or run-end-encoded array with one value per row, with 64-bit offsets if 32 bits may not
    suffice.

    pyarrow 26 cannot decode a dictionary to more than 2 GiB of text, and writes past the end of the buffer for run
    ends.
    """
    types = pa.types
    if types.is_run_end_encoded(array.type):
        values, indices = array.values, _run_indices(array)
    elif types.is_dictionary(array.type):
        values, indices = array.dictionary, array.indices
    else:
        return array
    values = in_form(values, plain_form(values.type))  # Arrow cannot take from views.
    if types.is_binary(values.type) or types.is_string(values.type):
        longest = pc.max(pc.binary_length(values)).as_py() or 0
        if longest * len(array) > MAX_OFFSET:
            values = values.cast(pa.large_binary() if types.is_binary(values.type) else pa.large_string())
    return values.take(indices)


def _run_indices(array: pa.Array) -> pa.Array:
    """Return the index of the run of each row of a run-end-encoded array."""
    children = [array.run_ends, pa.array(np.arange(len(array.values)))]
    kind = pa.run_end_encoded(array.run_ends.type, pa.int64())
    return pc.run_end_decode(pa.Array.from_buffers(kind, len(array), [None], offset=array.offset, children=children))


def in_form(array: pa.Array, arrow: pa.DataType, change: Change | None = None) -> pa.Array:
    """Return an array in another form of its type: from the plain form, or to it.

    `change`: called first, at any depth; it returns the converted array, or None to use the default conversion.

    >>> in_form(pa.array(["a", "a"], pa.large_string()), pa.dictionary(pa.int8(), pa.string())).indices.type
    DataType(int8)
    """
    types = pa.types
    if change is not None and (changed := change(array, arrow)) is not None:
        return changed
    if array.type.equals(arrow, check_metadata=True):
        return array
    if types.is_null(array.type):
        return pa.nulls(len(array), arrow)
    if types.is_run_end_encoded(array.type):
        if not types.is_dictionary(arrow):
            return in_form(without_encoding(array), arrow, change)
        array = pa.DictionaryArray.from_arrays(_run_indices(array), array.values)
    if types.is_dictionary(array.type):
        if not types.is_dictionary(arrow):
            return in_form(without_encoding(array), arrow, change)
        values = in_form(array.dictionary, arrow.value_type, change)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered).cast(arrow)
    if types.is_dictionary(arrow):
        return in_form(array, arrow.value_type, change).dictionary_encode().cast(arrow)
    if types.is_run_end_encoded(arrow):
        return pc.run_end_encode(in_form(array, arrow.value_type, change), run_end_type=arrow.run_end_type)
    if is_json_type(arrow):
        text = array.storage if is_json_type(array.type) else array
        return pa.ExtensionArray.from_storage(arrow, in_form(text, arrow.storage_type, change))
    if types.is_struct(arrow):
        children = [in_form(array.field(index), arrow.field(index).type, change) for index in range(arrow.num_fields)]
        return struct_like(array, list(arrow), children)
    if types.is_map(arrow):
        keys, items = entry_lists(array)
        offsets = _offsets(keys, np.int32)
        keys = in_form(list_elements(keys), arrow.key_type, change)
        items = in_form(list_elements(items), arrow.item_type, change)
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow, mask=array.is_null())
    if types.is_fixed_size_list(arrow):
        # Unlike other lists, fixed-size lists have values under null lists too.
        first, last = array.offset * arrow.list_size, (array.offset + len(array)) * arrow.list_size
        values = in_form(array.values[first:last], arrow.value_type, change)
        return fixed_size_lists(values, arrow, array.is_null())
    if types.is_list(arrow) or types.is_large_list(arrow):
        kind = pa.ListArray if types.is_list(arrow) else pa.LargeListArray
        width = np.int32 if types.is_list(arrow) else np.int64
        values = in_form(list_elements(array), arrow.value_type, change)
        return kind.from_arrays(_offsets(array, width), values, type=arrow, mask=array.is_null())
    if types.is_list_view(arrow) or types.is_large_list_view(arrow):
        kind = pa.ListViewArray if types.is_list_view(arrow) else pa.LargeListViewArray
        width = np.int32 if types.is_list_view(arrow) else np.int64
        values, offsets = in_form(list_elements(array), arrow.value_type, change), _offsets(array, width)
        sizes = pa.array(np.diff(offsets.to_numpy()))
        return kind.from_arrays(offsets[:-1], sizes, values, type=arrow, mask=array.is_null())
    return array.cast(arrow)


def in_target_form(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the result of a cast in another form, as `in_form` does.

    Raises `CastError` if pyarrow does not have the form, or the form does not hold the values.
    """
    try:
        return in_form(array, target)
    except pa.ArrowException as error:
        raise CastError(f"{first_line(error)}: cannot store the values as {target}", reason="bad-type") from None


def chunks_in_form(column: pa.ChunkedArray, arrow: pa.DataType, change: Change | None = None) -> pa.ChunkedArray:
    """Return a column in another form, as `in_form` does; pyarrow 26's `cast` breaks lists of nulls even without a
    change.
    """
    return pa.chunked_array([in_form(chunk, arrow, change) for chunk in column.chunks], arrow)


def without_null_entries(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dictionaries with nulls among the indices, not the values: pyarrow does not join or write the latter."""
    is_dictionary = isinstance(column.type, pa.DictionaryType)
    if not is_dictionary or not any(chunk.dictionary.null_count for chunk in column.chunks):
        return column
    return chunks_in_form(chunks_in_form(column, column.type.value_type), column.type)


def cast_values(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return `array.cast`, but integers become decimals if the values fit, though not all of their type would."""
    if pa.types.is_integer(array.type) and pa.types.is_decimal(arrow):
        array = array.cast(pa.decimal256(76, arrow.scale))
    return array.cast(arrow)


def struct_like(array: pa.StructArray, fields: list[pa.Field], children: list[pa.Array]) -> pa.StructArray:
    """Return a struct of other fields that is null where `array` is null."""
    if not children:
        return pa.array([None if bad else {} for bad in array.is_null().to_pylist()], pa.struct([]))
    # `StructArray.from_arrays` would not accept nulls in children that are not nullable, even under a null struct.
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.struct(fields), len(array), [validity], array.null_count, 0, children)


def fixed_size_lists(elements: pa.Array, arrow: pa.FixedSizeListType, missing: pa.BooleanArray) -> pa.Array:
    """Return lists of a fixed size, some of them null; pyarrow's constructor divides by the size, which may be zero."""
    valid = pc.invert(missing)
    validity = valid.buffers()[1] if not pc.all(valid).as_py() else None
    return pa.Array.from_buffers(arrow, len(missing), [validity], children=[elements])


def list_elements(array: pa.Array) -> pa.Array:
    """Return the concatenated elements of all lists of a column, without the elements under null lists."""
    # Flattening only nulls makes an empty array, which pyarrow cannot make for some types (uuid).
    if array.null_count == len(array):
        return array.values[:0]
    if array.null_count or type(array) not in (pa.ListArray, pa.LargeListArray):
        return array.flatten()
    return array.values[array.offsets[0].as_py() : array.offsets[len(array)].as_py()]


def entry_lists(array: pa.MapArray) -> tuple[pa.ListArray, pa.ListArray]:
    """Return the list of keys and the list of items of each map of a column."""
    # For a slice, pyarrow's `keys` and `items` are those of all rows.
    buffers, nulls = array.buffers()[:2], array.null_count
    keys, items = (
        pa.Array.from_buffers(pa.list_(part.type), len(array), buffers, nulls, array.offset, [part])
        for part in (array.keys, array.items)
    )
    return keys, items


def _offsets(array: pa.Array, width: type[np.signedinteger]) -> pa.Array:
    """Return the offsets of lists into their flattened values."""
    offsets = np.zeros(len(array) + 1, width)
    np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy(), out=offsets[1:])
    return pa.array(offsets)
