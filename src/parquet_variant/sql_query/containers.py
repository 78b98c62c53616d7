"""Keys and sizes of the arrays and objects in a column, as functions of local SQL return them.

Owns the results for values that are not containers. Leaves reading the bytes to `ops.columns.value_positions`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.operations import get
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.types import BasicType


def keys_of_objects(values: VariantArray, *, otherwise_empty: bool) -> pa.ListArray:
    """Return the keys of each object; for other values an empty list or null, and null for SQL NULL.

    Raises `MalformedVariantError` if an object is malformed.

    >>> import parquet_variant as pv
    >>> values = pv.parse_json(['{"a": 1, "b": 2}', "[1]", None, "{}"])
    >>> keys_of_objects(values, otherwise_empty=True).to_pylist()
    [['a', 'b'], [], None, []]
    """
    positions = ValuePositions.of_storage(values.to_unshredded().storage)
    positions.spans()  # raises for truncated values, which would count as scalars below
    offsets, is_object, ids, fields = positions.fields()
    numbers = fields.dictionaries.name_numbers(fields.metas, ids)
    names = fields.dictionaries.distinct_names.take(from_numpy(numbers))
    has_keys = positions.starts != get.ABSENT if otherwise_empty else is_object
    return pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32)), names, mask=from_numpy(~has_keys))


def field_names(values: VariantArray) -> set[str]:
    """Return the names of the fields of all objects.

    >>> import parquet_variant as pv
    >>> sorted(field_names(pv.parse_json(['{"b": {"x": 1}}', "[1]", None, '{"a": 1, "b": 2}'])))
    ['a', 'b']
    """
    return set(keys_of_objects(values, otherwise_empty=True).values.unique().to_pylist())


def sizes_of(values: VariantArray, *kinds: BasicType, otherwise: int | None = None) -> pa.Int64Array:
    """Return the number of children of each array or object; `otherwise` for other values, and null for SQL NULL.

    Raises `MalformedVariantError` if a value is malformed.

    >>> import parquet_variant as pv
    >>> values = pv.parse_json(["[1, 2]", '{"a": 1}', "5", None])
    >>> sizes_of(values, BasicType.ARRAY, BasicType.OBJECT).to_pylist()
    [2, 1, None, None]
    >>> sizes_of(values, BasicType.ARRAY, otherwise=0).to_pylist()
    [2, 0, 0, None]
    """
    positions = ValuePositions.of_storage(values.to_unshredded().storage)
    positions.spans()
    counts = np.maximum.reduce([positions.child_counts(kind) for kind in kinds])
    is_other = counts < 0
    if otherwise is None:
        return from_numpy(counts, is_other)
    return from_numpy(np.where(is_other, otherwise, counts), positions.starts == get.ABSENT)
