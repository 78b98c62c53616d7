"""Facts about a column of Variants in memory: the keys of objects, and the only type of a path.

Leaves conclusions from footers to `files.parquet.scanning.projection`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.field_names import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.records import KIND
from parquet_variant.ops.columns.extract_path import extract_variant
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.ops.value_types import variant_type
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPE_OF_ID, TYPES, PrimitiveId, VariantType
from parquet_variant.types.path import VariantPath

_NOT_TYPED = (VariantType.NULL, VariantType.ARRAY, VariantType.OBJECT)


def keys_of_values(column: pa.ChunkedArray) -> frozenset[str]:
    """Return every key of the objects in a column of Variants."""
    storages = (VariantArray(chunk).to_unshredded().storage for chunk in column.chunks)
    return frozenset(key for storage in storages for key in keys_of_storage(storage))


def common_type(column: pa.ChunkedArray, path: VariantPath) -> tuple[pa.DataType | None, bool]:
    """Return the type that every value at a path has, as a shredded column would, and whether some are Variant null.

    The type is None if there is none.
    Raises `MalformedVariantError` if the bytes of a value are malformed.

    >>> import parquet_variant as pv
    >>> rows = pa.chunked_array([pv.parse_json(['{"a": 1, "b": 1}', '{"a": null, "b": "x"}']).storage])
    >>> common_type(rows, VariantPath.parse("$.a")), common_type(rows, VariantPath.parse("$.b"))
    ((DataType(int64), True), (None, False))
    """
    if not all(isinstance(step, (str, int)) for step in path.segments):
        return None, False
    types = {kind for chunk in column.chunks for kind in _types_at(chunk, path)}
    has_null = VariantType.NULL in types
    types.discard(VariantType.NULL)
    if types <= set(INTEGERS):
        return pa.int64() if types else None, has_null
    if not types <= set(EXACT_NUMERIC):
        only = next(iter(types)) if len(types) == 1 else VariantType.NULL
        return None if only in _NOT_TYPED else TYPES[only].arrow, has_null
    values = (extract_variant(VariantArray(chunk).storage, path) for chunk in column.chunks)
    profile = reduce(Profile.merge, map(Profile.of_array, values), Profile()).root
    best = None if profile is None else best_column(profile)  # decimals need the digits of all values
    return None if best is None or best.share < 1 else best.arrow, has_null


def _types_at(chunk: pa.Array, path: VariantPath) -> set[VariantType]:
    """Return the types of the values at a path."""
    storage = VariantArray(chunk).storage
    if VariantArray(chunk).layout == "unshredded":
        positions = ValuePositions.of_storage(storage)
        for step in path.segments:
            assert isinstance(step, (str, int))
            positions = positions.key(step) if isinstance(step, str) else positions.index(step)
        return {_type_of_kind(kind) for kind in np.unique(positions.slots().kinds).tolist() if kind != get.MISSING}
    names = pc.unique(variant_type(extract_variant(storage, path))).to_pylist()
    return {VariantType(name) for name in names if name is not None}


def _type_of_kind(kind: int) -> VariantType:
    if kind in (KIND.ARRAY, KIND.OBJECT):
        return VariantType.ARRAY if kind == KIND.ARRAY else VariantType.OBJECT
    return TYPE_OF_ID[PrimitiveId(kind)].type
