"""Conversions of storages between layouts, a batch at a time.

Owns the choice of the conversion by layout. The drafts are converted through the final layout, whose kernels do the
work, or by the scalar reference if their columns do not decide a value. Leaves the final layout to `final_columns`, and
the columns of the drafts to `draft_columns`. Each is imported on use.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import Layout, OnConflict


def shredded_storage(storage: pa.StructArray, schema: ShreddingSchema, layout: Layout) -> pa.StructArray:
    """Return an unshredded storage shredded in any layout; ``"unshredded"`` returns the storage itself.

    Raises `MalformedVariantError` with the row.

    >>> from parquet_variant.arrays.variant_array import VariantArray
    >>> plain = VariantArray.from_pylist([{"a": 1}, {"a": "x"}, None]).storage
    >>> draft = shredded_storage(plain, ShreddingSchema.from_ddl("a bigint"), "draft-object")
    >>> draft.field("object").field("a").field("typed_value").to_pylist()
    [1, None, None]
    """
    if layout == "unshredded":
        return storage
    from parquet_variant.arrays.final_columns import shredded_final

    if layout == "final":
        return shredded_final(storage, schema)
    from parquet_variant.arrays.draft_columns import draft_object_of_final, draft_paths_of_final
    from parquet_variant.arrays.final_columns import NeedsReference
    from parquet_variant.arrays.parts import variants_of
    from parquet_variant.layouts.reference import storages as scalar

    try:
        if layout == "draft-object":
            return draft_object_of_final(shredded_final(storage, schema), schema)
        if schema.kind != "variant":
            return draft_paths_of_final(shredded_final(storage, schema), schema)
    except NeedsReference:
        pass
    return scalar.shredded_storage(variants_of(storage), schema, layout)


def unshredded_storage(storage: pa.StructArray, layout: Layout, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return a storage of any layout as an unshredded storage; the rows of a draft share one dictionary.

    Raises `ConflictError` or `MalformedVariantError` with row and path.

    >>> from parquet_variant.arrays.variant_array import VariantArray
    >>> plain = VariantArray.from_pylist([{"a": 1}, {"a": "x"}, None])
    >>> draft = shredded_storage(plain.storage, ShreddingSchema.from_ddl("a bigint"), "draft-paths")
    >>> VariantArray(unshredded_storage(draft, "draft-paths")).to_pylist()
    [{'a': 1}, {'a': 'x'}, None]
    """
    if layout == "unshredded":
        return storage
    from parquet_variant.arrays.final_columns import assembled_storage, unshredded_final

    if layout == "final":
        return unshredded_final(storage, on_conflict)
    from parquet_variant.arrays.draft_columns import final_of_draft_object, final_of_draft_paths
    from parquet_variant.arrays.final_columns import NeedsReference
    from parquet_variant.arrays.parts import metadata_parts
    from parquet_variant.kernels.shredding.schema_table import schema_table
    from parquet_variant.layouts.reference import storages as scalar

    try:
        final = (final_of_draft_object if layout == "draft-object" else final_of_draft_paths)(storage)
    except NeedsReference:
        return scalar.unshredded_storage(storage, on_conflict)
    table = schema_table(ShreddingSchema.from_storage(final.type))
    plain, refused = assembled_storage(final, table, metadata_parts(final.field("metadata")))
    return scalar.unshredded_storage(storage, on_conflict) if refused.any() else plain
