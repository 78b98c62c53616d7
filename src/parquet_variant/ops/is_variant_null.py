"""`is_variant_null`: which values are Variant null.

Owns the public operation. `ops.columns.shredded_walk` follows the path.
"""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import in_final_layout
from parquet_variant.ops.columns.null_on_error import check_errors, or_none, or_null
from parquet_variant.ops.columns.shredded_walk import Group, follow
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.ops.variant_type import type_of
from parquet_variant.path import AnyPath, Segment, VariantPath
from parquet_variant.support.choices import Errors
from parquet_variant.types import PrimitiveId, VariantType


@overload
def is_variant_null(array: Variant, path: AnyPath = ..., *, errors: Errors = ...) -> bool | Any: ...
@overload
def is_variant_null(array: Any, path: AnyPath = ..., *, errors: Errors = ...) -> pa.BooleanArray: ...
def is_variant_null(array: Any, path: AnyPath = "$", *, errors: Errors = "raise") -> bool | pa.BooleanArray | None:
    """Return which values are Variant null, as opposed to SQL NULL and missing fields.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        The path of the values, without wildcards.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.BooleanArray or bool
        False for SQL NULL and missing paths, as in Spark; null only for rows with errors.

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
    null_on_error = check_errors(errors)
    segments = VariantPath.parse(path).segments
    if isinstance(array, Variant):
        is_null = partial(_is_null, array, segments)
        return or_none(is_null, MalformedVariantError) if null_on_error else is_null()
    column = as_variant_array(array)
    return or_null(column, partial(_nulls, segments=segments)) if null_on_error else _nulls(column, segments)


def _is_null(variant: Variant, segments: tuple[Segment, ...]) -> bool:
    value = variant.get(VariantPath(segments))
    return value is not None and type_of(value) == VariantType.NULL


def _nulls(column: VariantArray, segments: tuple[Segment, ...]) -> pa.BooleanArray:
    return follow(Group.of_storage(in_final_layout(column.storage)), segments, _IsNull()).fill_null(False)


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
