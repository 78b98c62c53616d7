"""`try_variant_get`: `variant_get` that gives null for what cannot be cast.

Owns the public operation. Leaves everything to `variant_get`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.functions.variant_get import get_values
from parquet_variant.path import VariantPath

__all__ = ["try_variant_get"]


def try_variant_get(
    array: Any, path: str | VariantPath, type: str | pa.DataType = "variant", *, zone: str = "UTC"
) -> Any:
    """Get the values at a path as a type; null for a value, at any depth, that has no such cast.

    Parameters, results and errors are those of `variant_get`, without the CastError for values.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"a": [1, "x"]}'])
    >>> pv.try_variant_get(array, "$.a", "int").to_pylist()
    [1, None, None]
    >>> pv.try_variant_get(array, "$.a", "array<int>").to_pylist()
    [None, None, [1, None]]
    """
    return get_values(array, path, type, safe=False, zone=zone)
