"""`try_schema_of_variant_agg`: `schema_of_variant_agg` that leaves out values that it cannot read.

Owns the public operation. Leaves the work to `schema_of_variant_agg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.keep_going import only_rows, readable_storage
from parquet_variant.functions.schema_of_variant import type_texts
from parquet_variant.functions.schema_of_variant_agg import schema_of_variant_agg

__all__ = ["try_schema_of_variant_agg"]


def try_schema_of_variant_agg(array: Any) -> str:
    r"""Tell the one type that holds all values that can be read, as `schema_of_variant_agg` does.

    Rows for which `try_schema_of_variant` gives null do not count, as if they were SQL NULL.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_schema_of_variant_agg(pv.VariantArray.from_variants(rows))
    'ARRAY<BIGINT>'
    """
    if isinstance(array, Variant):
        array = VariantArray.from_variants([array])
    try:
        return schema_of_variant_agg(array)
    except VariantError:
        storage = readable_storage(array)
    readable = np.asarray(type_texts(storage, keep_going=True).is_valid())
    return schema_of_variant_agg(only_rows(storage, readable))
