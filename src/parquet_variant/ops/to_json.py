"""`to_json`: Variants to JSON text.

Owns the public operation. Columns are written by `ops.columns.json_text`, single values by
`encoding.json_writer`.
"""

from __future__ import annotations

from typing import Any, overload

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.json_text import json_column
from parquet_variant.ops.columns.null_on_error import check_errors, or_none
from parquet_variant.support.choices import Errors, OnConflict


@overload
def to_json(source: Variant, *, errors: Errors = ...) -> str | Any: ...
@overload
def to_json(
    source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None, errors: Errors = ...
) -> pa.Array: ...
def to_json(
    source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None, errors: Errors = "raise"
) -> str | pa.Array | None:
    r"""Write values as compact JSON text.

    Doubles are written as the shortest text that parses to the same double, decimals exactly, binary as base64, and
    timestamps as ISO 8601; docs/json.md has the complete table.

    Parameters
    ----------
    source
        A `Variant`, or a column of any layout.
    on_conflict
        For shredded arrays, as in `unshred_variant`.
    threads
        Number of threads for a large column (default: one per CPU of this process).
    errors
        ``"raise"``, or ``"null"``: values that would raise become null.

    Returns
    -------
    str or pyarrow.Array
        A string for a `Variant`; for a column an array of strings, null for SQL NULL.

    Raises
    ------
    MalformedVariantError
        For malformed bytes, with the row.
    ConflictError
        As in `unshred_variant`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.to_json(pv.parse_json(['{"b": [1.50, null], "a": "\u00e9"}', None])).to_pylist()
    ['{"a":"é","b":[1.5,null]}', None]
    """
    null_on_error = check_errors(errors)
    if isinstance(source, Variant):
        return or_none(source.to_json) if null_on_error else source.to_json()
    return json_column(as_variant_array(source), on_conflict, threads, null_on_error=null_on_error)
