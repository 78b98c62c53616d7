"""`variant_type`: the type of each value.

Owns the public operation. `types` has the types.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.header import value_size
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.operations import get
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import assembled_values, in_final_layout
from parquet_variant.ops.columns.null_on_error import check_errors, or_none, or_null
from parquet_variant.ops.columns.shredded_walk import Group
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.support.choices import Errors
from parquet_variant.types import TYPE_OF_ID, VariantType

_NAMES = [member.value for member in VariantType]
_NUMBER_OF_KIND = np.full(256, -1, np.int32)
for _kind, _info in TYPE_OF_ID.items():
    _NUMBER_OF_KIND[_kind] = _NAMES.index(_info.type)
_NUMBER_OF_KIND[KIND.ARRAY] = _NAMES.index(VariantType.ARRAY)
_NUMBER_OF_KIND[KIND.OBJECT] = _NAMES.index(VariantType.OBJECT)


@overload
def variant_type(array: Variant, *, errors: Errors = ...) -> VariantType | Any: ...
@overload
def variant_type(array: Any, *, errors: Errors = ...) -> pa.StringArray: ...
def variant_type(array: Any, *, errors: Errors = "raise") -> VariantType | pa.StringArray | None:
    """Return the type of each value, as a name of `VariantType`.

    Integers and decimals of every width are separate types; `schema_of_variant` describes arrays and objects further.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.StringArray or VariantType
        Null for SQL NULL; ``"null"`` for Variant null.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.variant_type(pv.parse_json(['{"a": 1}', "1.5", "null", None])).to_pylist()
    ['object', 'decimal4', 'null', None]
    """
    null_on_error = check_errors(errors)
    if isinstance(array, Variant):
        return or_none(lambda: type_of(array)) if null_on_error else type_of(array)
    column = as_variant_array(array)
    return or_null(column, _types) if null_on_error else _types(column)


def _types(column: VariantArray) -> pa.StringArray:
    group = Group.of_storage(in_final_layout(column.storage))
    typed = group.typed
    if typed is not None and (pa.types.is_struct(typed.type) or is_list(typed.type)):
        valid = group.typed_valid()
        kinds = np.full(group.size, get.MISSING, np.uint8)
        kinds[slice(None) if valid is None else valid] = KIND.OBJECT if pa.types.is_struct(typed.type) else KIND.ARRAY
        positions, value_positions = group.in_bytes()
        kinds[positions] = value_positions.slots().kinds
    else:
        value_positions = ValuePositions.of_storage(group.storage()) if typed is None else assembled_values(group)
        kinds = value_positions.slots().kinds
    if group.present is None:
        kinds[kinds == get.MISSING] = 0  # a value that is in neither column is Variant null
    else:
        kinds[(kinds == get.MISSING) & group.present] = 0
    numbers = _NUMBER_OF_KIND[kinds]
    return pa.DictionaryArray.from_arrays(from_numpy(numbers, numbers < 0), pa.array(_NAMES)).dictionary_decode()


def type_of(variant: Variant) -> VariantType:
    """Return the type of one value, after checking that its bytes are complete; children and UTF-8 are not checked."""
    kind, value = variant.type, variant.value
    if kind in (VariantType.OBJECT, VariantType.ARRAY, VariantType.STRING):
        value_size(value, 0, len(value))
        return kind
    return read_scalar(value, 0, len(value)).type
