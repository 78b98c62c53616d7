"""`try_schema_of_variant`: `schema_of_variant` that gives null for values that it cannot read.

Owns the public operation. Leaves the work to `schema_of_variant`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.schema_of import schema_of
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.keep_going import readable_storage
from parquet_variant.functions.schema_of_variant import type_texts

__all__ = ["try_schema_of_variant"]


def try_schema_of_variant(array: Any) -> str | pa.StringArray | None:
    r"""Tell the type of each value, as `schema_of_variant` does; null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_schema_of_variant(pv.VariantArray.from_variants(rows)).to_pylist()
    ['ARRAY<BIGINT>', None]
    """
    if isinstance(array, Variant):
        try:
            return str(schema_of(array))
        except VariantError:
            return None
    return type_texts(readable_storage(array), keep_going=True)
