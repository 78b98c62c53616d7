"""Extraction of one path as Variant: the sub-values of a column, without a cast.

Owns what remains a Variant at the end of a path: shredded columns stay as they are, bytes are copied with the metadata
of their row. Leaves the way there to `shredded_walk`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.columns.value_positions import ValuePositions
from parquet_variant.functions.walks.extract_path import final_storage
from parquet_variant.functions.walks.shredded_walk import Group, follow
from parquet_variant.path import VariantPath


def extract_variant(storage: pa.StructArray, path: str | VariantPath) -> VariantArray:
    """The values at a path without wildcards of a storage in any layout; SQL NULL where nothing is at the path.

    The metadata is that of the rows: it may name keys that the sub-values do not have. Raises `MalformedVariantError`
    if bytes that are read are malformed; `SchemaError` if the struct is not a Variant storage.

    >>> import parquet_variant as pv
    >>> extract_variant(pv.parse_json(['{"a": null}', '{"a": [1]}', '[]']).storage, "$.a")
    <VariantArray unshredded, 3 rows: [null, [1], NULL]>
    """
    parsed = VariantPath.parse(path)
    if not parsed.segments:
        return VariantArray(storage)
    return VariantArray(follow(Group.of_storage(final_storage(storage)), parsed.segments, _AsVariant()))


class _AsVariant:
    """Ends a path with a storage struct."""

    def of_group(self, group: Group) -> pa.Array:
        return group.storage()

    def of_positions(self, value_positions: ValuePositions) -> pa.Array:
        return value_positions.storage()
