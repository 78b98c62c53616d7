"""`get_variant_element` and `get_variant_scalar` of the RFC, and `matching_rows`, over any encoding in memory.

Owns the public operations. `encodings` dispatches over the encodings, also for scans of files;
`ops.get_variant_element` makes the result of a scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import in_target_form
from parquet_variant.files.vortex.logical.encodings import element_of, encoding_of
from parquet_variant.files.vortex.logical.range_statistics import RangeStatistics
from parquet_variant.ops.columns.target_type import as_target, value_target
from parquet_variant.ops.get_variant_element import VariantScalar
from parquet_variant.ops.get_variant_element import get_variant_scalar as scalar_of_storage
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Compare, Operator, bind, evaluate


def get_variant_element(
    array: Any, path: str | VariantPath, dtype: str | pa.DataType, *, cast: bool = False, zone: str = "UTC"
) -> pa.Array:
    """Return the values at a path that have a type; null if the path is missing, has another type, or is Variant null.

    Parameters
    ----------
    array
        A column in any encoding: a `VariantArray`, or a `ColumnarVariant`.
    path, dtype, cast, zone, result and errors
        As for `parquet_variant.get_variant_element`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1}', '{"a": "1"}', '{"a": null}', "{}", None])
    >>> for encoding in pv.vortex.ENCODINGS:
    ...     encoded = pv.vortex.encode(array, encoding, "a bigint")
    ...     assert get_variant_element(encoded, "$.a", "bigint").to_pylist() == [1, None, None, None, None]
    """
    _, column = encoding_of(array)
    storage = column.storage if isinstance(column, VariantArray) else column
    parsed, target = VariantPath.parse(path), as_target(dtype)
    values_type = value_target(target, parsed)
    result = element_of(storage, parsed, values_type, cast=cast, zone=zone)
    return result if values_type == target else in_target_form(result, target)


def get_variant_scalar(
    array: Any,
    index: int,
    path: str | VariantPath = "$",
    dtype: str | pa.DataType = "variant",
    *,
    cast: bool = False,
    zone: str = "UTC",
) -> VariantScalar:
    """Return the value of one row at a path as a type, distinguishing all kinds of null.

    Parameters
    ----------
    array
        A column in any encoding.
    index, path, dtype, cast, zone and errors
        As for `parquet_variant.get_variant_scalar`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.vortex.ColumnarVariant.from_variant(pv.parse_json(['{"a": 1}', '{"a": null}', "{}", None]))
    >>> [get_variant_scalar(array, row, "$.a", "string").state for row in range(4)]
    ['other-type', 'variantnull', 'missing', 'null']
    """
    _, column = encoding_of(array)
    if isinstance(column, VariantArray):
        return scalar_of_storage(column, index, path, dtype, cast=cast, zone=zone)
    row = index + len(column) if index < 0 else index
    if not 0 <= row < len(column):
        raise IndexError(f"row {index} is out of bounds for a column with {len(column)} rows")
    variant = column.take(np.array([row])).to_variant()
    return scalar_of_storage(variant, 0, path, dtype, cast=cast, zone=zone)


def matching_rows(
    array: Any,
    path: str | VariantPath,
    dtype: str | pa.DataType,
    op: Operator,
    literal: Any,
    statistics: RangeStatistics | None = None,
    *,
    cast: bool = False,
    zone: str = "UTC",
) -> pa.Array:
    """Return the numbers of the rows whose value at a path has a type and compares with a literal.

    Parameters
    ----------
    array
        A column in any encoding.
    path, dtype
        As in `get_variant_element`.
    op, literal
        ``"="``, ``"<>"``, ``"<"``, ``"<="``, ``">"`` or ``">="``, and the value to compare with.
    statistics
        Statistics of the column. Ranges that they exclude are not read; the result is the same without them. They are
        not used with `cast`, because they describe the values without casts.
    cast, zone
        As for `get_variant_element`.

    Raises
    ------
    PredicateError
        For a literal that cannot be compared with the type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> matching_rows(pv.parse_json(['{"a": 1}', '{"a": "7"}', '{"a": 7}']), "$.a", "bigint", ">=", 7).to_pylist()
    [2]
    """
    target = as_target(dtype)
    _, column = encoding_of(array)
    predicate = bind(Compare("x", op, literal), {"x": target})
    ranges = [(0, len(column))] if statistics is None or cast else statistics.ranges(path, target, op, literal)
    rows = [np.zeros(0, np.int64)]
    for start, stop in ranges:
        part = get_variant_element(column[start:stop], path, target, cast=cast, zone=zone)
        hits = evaluate(predicate, {"x": part}).fill_null(False)
        rows.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + start)
    return pa.array(np.concatenate(rows))
