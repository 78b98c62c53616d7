"""`is_variant_null`: which values are Variant null.

Owns the public operation and its `try_` twin. `ops.columns.shredded_walk` follows the path.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import in_final_layout
from parquet_variant.ops.columns.null_on_error import or_none, or_null
from parquet_variant.ops.columns.shredded_walk import Group, follow
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.ops.variant_type import type_of
from parquet_variant.path import AnyPath, VariantPath
from parquet_variant.types import PrimitiveId, VariantType


@overload
def is_variant_null(array: Variant, path: AnyPath = ...) -> bool: ...
@overload
def is_variant_null(array: Any, path: AnyPath = ...) -> pa.BooleanArray: ...
def is_variant_null(array: Any, path: AnyPath = "$") -> bool | pa.BooleanArray:
    """Return which values are Variant null, as opposed to SQL NULL and missing fields.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        The path of the values, without wildcards.

    Returns
    -------
    pyarrow.BooleanArray or bool
        Never null: False for SQL NULL and missing paths, as in Spark.

    Raises
    ------
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.is_variant_null(pv.parse_json(["null", '{"a": null}', None])).to_pylist()
    [True, False, False]
    >>> pv.is_variant_null(pv.parse_json(["null", '{"a": null}', None]), "$.a").to_pylist()
    [False, True, False]
    """
    parsed = VariantPath.parse(path)
    if isinstance(array, Variant):
        value = array.get(parsed)
        return value is not None and type_of(value) == VariantType.NULL
    storage = in_final_layout(as_variant_array(array).storage)
    return follow(Group.of_storage(storage), parsed.segments, _IsNull()).fill_null(False)


def try_is_variant_null(array: Any, path: AnyPath = "$") -> bool | pa.BooleanArray | None:
    r"""Return which values are Variant null, as `is_variant_null` does; null for rows that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python(None), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_is_variant_null(pv.VariantArray.from_variants(rows)).to_pylist()
    [True, None]
    """
    path = VariantPath.parse(path)
    if isinstance(array, Variant):
        return or_none(lambda: is_variant_null(array, path), MalformedVariantError)
    return or_null(array, lambda column: is_variant_null(column, path))


class _IsNull:
    """Ends a path with a test for Variant null."""

    def of_positions(self, value_positions: ValuePositions) -> pa.Array:
        return from_numpy(value_positions.slots().kinds == PrimitiveId.NULL)

    def of_group(self, group: Group) -> pa.Array:
        positions, value_positions = group.in_bytes()
        nulls = np.zeros(group.size, np.bool_)
        if group.is_required:
            # A required value that is in neither column is Variant null.
            typed = None if group.typed is None else group.typed_valid()
            nulls[:] = group.typed is None if typed is None else ~typed
            if group.present is not None:
                nulls &= group.present
        nulls[positions] = value_positions.slots().kinds == PrimitiveId.NULL
        return from_numpy(nulls)
