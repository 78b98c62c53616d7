"""`get_variant_element`: the values at a path that are of a type, by the rules of Vortex's RFC for Variant.

Owns the public operation. Leaves the walk to `extract_path` and what counts as the same value to `lossless`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.functions.columns.target_type import as_target
from parquet_variant.functions.inputs.variant_input import as_variant_array
from parquet_variant.functions.walks.extract_path import extract_path
from parquet_variant.path import VariantPath


def get_variant_element(array: Any, path: str | VariantPath, dtype: str | pa.DataType) -> pa.Array:
    """Get the values at a path that are of a type; null for everything else.

    Missing, of another type, and Variant null all become null, and nothing is cast: a string is no number here. What
    `variant_get` would give unchanged is of the type: exact numbers in any integer or decimal type that holds them
    exactly (1.00 is 1), float in double, timestamps in a unit that holds them exactly, a list or struct element by
    element.

    Parameters
    ----------
    array
        A `VariantArray` of any layout.
    path
        Where the values are; every ``[*]`` gives a list.
    dtype
        The type, by name or as a pyarrow type.

    Returns
    -------
    pyarrow.Array
        Always nullable, whether the column is or not.

    Raises
    ------
    CastError
        For a type that no Variant can be given as.
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1.0}', '{"a": "1"}', '{"a": null}', "{}", None])
    >>> pv.get_variant_element(array, "$.a", "bigint").to_pylist()
    [1, None, None, None, None]
    """
    storage = as_variant_array(array).storage
    return extract_path(storage, path, as_target(dtype), safe=False, lossless=True)
