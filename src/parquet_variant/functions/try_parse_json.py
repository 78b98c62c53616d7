"""`try_parse_json`: JSON text to Variants, null where the text is not JSON.

Owns the public operation. Leaves the work to `parse_json`.
"""

from __future__ import annotations

from typing import Any, Literal

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import JsonError
from parquet_variant.functions.parse_json import ONE_TEXT, parse_json, parse_json_array
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["try_parse_json"]


def try_parse_json(
    source: Any,
    *,
    schema: ShreddingSchema | str | None = None,
    dictionary: Literal["row", "batch"] = "row",
    **options: Any,
) -> Variant | VariantArray | None:
    """Parse JSON text as `parse_json` does, but give null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_parse_json("{") is None
    True
    >>> pv.try_parse_json(["[1]", "[1", None]).to_pylist()
    [[1], None, None]
    """
    if isinstance(source, ONE_TEXT):
        try:
            return parse_json(source, **options)
        except JsonError:
            return None
    return parse_json_array(source, schema=schema, per_batch=dictionary == "batch", keep_going=True, options=options)[0]
