"""`try_to_json`: `to_json` that gives null for values that it cannot read.

Owns the public operation. Leaves the work to `to_json`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.keep_going import readable_storage
from parquet_variant.functions.to_json import json_texts

__all__ = ["try_to_json"]


def try_to_json(source: Any) -> str | pa.Array | None:
    r"""Write values as JSON text, as `to_json` does; null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_to_json(pv.VariantArray.from_variants(rows)).to_pylist()
    ['[1]', None]
    """
    if isinstance(source, Variant):
        try:
            return source.to_json()
        except VariantError:
            return None
    return json_texts(readable_storage(source), keep_going=True)
