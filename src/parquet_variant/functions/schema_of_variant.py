"""`schema_of_variant`: the type of each value, in Spark's words.

Owns the public operation. Leaves the types and their text to `encoding.schema_of`.
"""

from __future__ import annotations

from typing import Any, overload

import pyarrow as pa

from parquet_variant.encoding.schema_of import schema_of
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.variant_input import as_variant_array

__all__ = ["schema_of_variant"]


@overload
def schema_of_variant(array: Variant) -> str: ...
@overload
def schema_of_variant(array: Any) -> pa.StringArray: ...
def schema_of_variant(array: Any) -> str | pa.StringArray:
    """Tell the type of each value, as Spark's ``schema_of_variant`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.

    Returns
    -------
    pyarrow.StringArray or str
        Null for SQL NULL.

    Raises
    ------
    MalformedVariantError
        If a value is malformed, with its row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.schema_of_variant(pv.parse_json(['{"a": [1, 2.5]}', "null", None])).to_pylist()
    ['OBJECT<a: ARRAY<DECIMAL(21,1)>>', 'VOID', None]
    """
    if isinstance(array, Variant):
        return str(schema_of(array))
    found: list[str | None] = []
    for row, value in enumerate(as_variant_array(array)):
        try:
            found.append(None if value is None else str(schema_of(value)))
        except VariantError as error:
            raise error.at(row=row) from None
    return pa.array(found, pa.string())
