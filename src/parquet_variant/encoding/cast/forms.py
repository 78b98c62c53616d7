"""Arrow types that say how values are stored, not what they are: views, dictionaries, run ends, narrow decimals.

Owns the plain form of each type, which every pyarrow function takes, and the way there and back. Leaves the values
themselves to its callers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.types import MAX_OFFSET

__all__ = ["cast_values", "in_form", "plain_form", "without_encoding"]


def plain_form(arrow: pa.DataType, *, stored: bool = False) -> pa.DataType:
    """The type of the same values without views, dictionaries, run ends and narrow decimals, at any depth.

    With ``stored``, dictionaries and narrow decimals, which files have, too, are kept.

    Examples
    --------
    >>> plain_form(pa.list_view(pa.dictionary(pa.int8(), pa.string_view())))
    ListType(list<item: large_string>)
    """
    types = pa.types
    if types.is_dictionary(arrow) and stored:
        return pa.dictionary(arrow.index_type, plain_form(arrow.value_type, stored=True), arrow.ordered)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return plain_form(arrow.value_type, stored=stored)
    if types.is_string_view(arrow):
        return pa.large_string()
    if types.is_binary_view(arrow):
        return pa.large_binary()
    if not stored and (types.is_decimal32(arrow) or types.is_decimal64(arrow)):
        return pa.decimal128(arrow.precision, arrow.scale)

    def plain(field: pa.Field) -> pa.Field:
        return field.with_type(plain_form(field.type, stored=stored))

    if types.is_struct(arrow):
        return pa.struct([plain(field) for field in arrow])
    if types.is_map(arrow):
        return pa.map_(plain(arrow.key_field), plain(arrow.item_field), arrow.keys_sorted)
    if types.is_fixed_size_list(arrow):
        return pa.list_(plain(arrow.value_field), arrow.list_size)
    if types.is_list(arrow) or types.is_list_view(arrow):
        return pa.list_(plain(arrow.value_field))
    if types.is_large_list(arrow) or types.is_large_list_view(arrow):
        return pa.large_list(plain(arrow.value_field))
    return arrow


def without_encoding(array: pa.Array) -> pa.Array:
    """A dictionary- or run-end-encoded array with one value a row, in 64-bit offsets where 32 might not do.

    pyarrow 26 refuses a dictionary that gives over 2 GiB of text in one array, and writes past the end for run ends.

    Examples
    --------
    >>> without_encoding(pa.array(["a", "a"]).dictionary_encode()).to_pylist()
    ['a', 'a']
    """
    types = pa.types
    if types.is_run_end_encoded(array.type):
        values, run_ends = array.values, array.run_ends
        kind = pa.run_end_encoded(run_ends.type, pa.int64())
        children = [run_ends, pa.array(np.arange(len(values)))]
        indices = pc.run_end_decode(
            pa.Array.from_buffers(kind, len(array), [None], offset=array.offset, children=children)
        )
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


def in_form(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """An array of one form of a type in another: from the plain form, or to it.

    Examples
    --------
    >>> in_form(pa.array(["a", "a"], pa.large_string()), pa.dictionary(pa.int8(), pa.string())).indices.type
    DataType(int8)
    """
    types = pa.types
    if array.type == arrow:
        return array
    if types.is_run_end_encoded(array.type):
        return in_form(without_encoding(array), arrow)
    if types.is_dictionary(array.type):
        if not types.is_dictionary(arrow):
            return in_form(without_encoding(array), arrow)
        values = in_form(array.dictionary, arrow.value_type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered).cast(arrow)
    if types.is_dictionary(arrow):
        return in_form(array, arrow.value_type).dictionary_encode().cast(arrow)
    if types.is_run_end_encoded(arrow):
        return pc.run_end_encode(in_form(array, arrow.value_type), run_end_type=arrow.run_end_type)
    if types.is_struct(arrow):
        children = [in_form(array.field(index), arrow.field(index).type) for index in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=array.is_null())
    if types.is_map(arrow):
        keys, items = in_form(array.keys, arrow.key_type), in_form(array.items, arrow.item_type)
        return pa.MapArray.from_arrays(_offsets(array, np.int32), keys, items, type=arrow, mask=array.is_null())
    if types.is_fixed_size_list(arrow):
        # The values under null lists are there too, unlike in the other lists.
        first, last = array.offset * arrow.list_size, (array.offset + len(array)) * arrow.list_size
        values = in_form(array.values[first:last], arrow.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=arrow, mask=array.is_null())
    if types.is_list(arrow) or types.is_large_list(arrow):
        kind = pa.ListArray if types.is_list(arrow) else pa.LargeListArray
        width = np.int32 if types.is_list(arrow) else np.int64
        values = in_form(list_elements(array), arrow.value_type)
        return kind.from_arrays(_offsets(array, width), values, type=arrow, mask=array.is_null())
    if types.is_list_view(arrow) or types.is_large_list_view(arrow):
        kind = pa.ListViewArray if types.is_list_view(arrow) else pa.LargeListViewArray
        width = np.int32 if types.is_list_view(arrow) else np.int64
        values, offsets = in_form(list_elements(array), arrow.value_type), _offsets(array, width)
        sizes = pa.array(np.diff(offsets.to_numpy()))
        return kind.from_arrays(offsets[:-1], sizes, values, type=arrow, mask=array.is_null())
    return array.cast(arrow)


def cast_values(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """As `array.cast`; whole numbers become decimals whose digits hold the values, if not all of their type.

    Examples
    --------
    >>> cast_values(pa.array([12]), pa.decimal128(3, 1)).to_pylist()
    [Decimal('12.0')]
    """
    if pa.types.is_integer(array.type) and pa.types.is_decimal(arrow):
        array = array.cast(pa.decimal256(76, arrow.scale))
    return array.cast(arrow)


def list_elements(array: pa.Array) -> pa.Array:
    """The elements of all lists of a column, one after the other, without those under null lists.

    Examples
    --------
    >>> list_elements(pa.array([[1, 2], None, [3]])).to_pylist()
    [1, 2, 3]
    """
    # pyarrow cannot make an empty array of some types (uuid), which is what flattening nothing but nulls gives.
    return array.values[:0] if array.null_count == len(array) else array.flatten()


def _offsets(array: pa.Array, width: type[np.signedinteger]) -> pa.Array:
    """Offsets into the flattened values."""
    offsets = np.zeros(len(array) + 1, width)
    if pa.types.is_map(array.type):
        sizes = np.diff(array.offsets.to_numpy())
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    else:
        sizes = pc.list_value_length(array).fill_null(0).to_numpy()
    np.cumsum(sizes, out=offsets[1:])
    return pa.array(offsets)
