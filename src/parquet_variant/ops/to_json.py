"""`to_json`: Variants to JSON text.

Owns the public operation and its `try_` twin. Columns are written by `ops.columns.json_text`, single values by
`encoding.json_writer`.
"""

from __future__ import annotations

from typing import Any, overload

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.json_text import json_column, readable_json_column
from parquet_variant.ops.columns.null_on_error import or_none
from parquet_variant.support.choices import OnConflict


@overload
def to_json(source: Variant) -> str: ...
@overload
def to_json(source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> pa.Array: ...
def to_json(source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> str | pa.Array:
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
    if isinstance(source, Variant):
        return source.to_json()
    return json_column(as_variant_array(source), on_conflict, threads)


def try_to_json(source: Any, *, threads: int | None = None) -> str | pa.Array | None:
    r"""Write values as JSON text, as `to_json` does; null for values that would raise.

    Parameters
    ----------
    source, threads
        As for `to_json`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_to_json(pv.VariantArray.from_variants(rows)).to_pylist()
    ['[1]', None]
    """
    if isinstance(source, Variant):
        return or_none(source.to_json)
    return readable_json_column(as_variant_array(source), threads)
