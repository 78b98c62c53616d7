"""`matching_rows`: a comparison over a column in memory, which ranges its statistics rule out.

Owns the public operation. Files are asked by `scan`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.functions.columns.target_type import as_target
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Compare, Operator, bind, evaluate
from parquet_variant.vortex.logical.encodings import encoding_of
from parquet_variant.vortex.logical.get_element import get_variant_element
from parquet_variant.vortex.logical.range_statistics import RangeStatistics


def matching_rows(
    array: Any,
    path: str | VariantPath,
    dtype: str | pa.DataType,
    op: Operator,
    literal: Any,
    statistics: RangeStatistics | None = None,
) -> pa.Array:
    """The numbers of the rows whose value at a path is of a type and compares with a literal as asked.

    Parameters
    ----------
    array
        A column in any encoding.
    path, dtype
        As in `get_variant_element`.
    op, literal
        ``"="``, ``"<>"``, ``"<"``, ``"<="``, ``">"`` or ``">="``, and what the value is compared with.
    statistics
        Ranges that they exclude are not looked at. The answer is the same without.

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
    ranges = [(0, len(column))] if statistics is None else statistics.ranges(path, target, op, literal)
    rows = [np.zeros(0, np.int64)]
    for start, stop in ranges:
        part = get_variant_element(column[start:stop], path, target)
        hits = evaluate(predicate, {"x": part}).fill_null(False)
        rows.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + start)
    return pa.array(np.concatenate(rows))
