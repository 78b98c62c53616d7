"""`write`: write one file from data in memory; comparison of schemas by the size of their files.

Owns the functions of one call. Leaves the file to `VariantWriter`, and shredding to `ops`. Shredding a few rows can
make a file larger: every column has metadata in the footer, and its values are compressed apart from the other values
of their rows. No estimate from a profile predicts that, so small data is written with several schemas; `ingestion`
decides when it is worth the time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack, get_args

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_choice
from parquet_variant.files.parquet.format.nested import Place, map_variants
from parquet_variant.files.parquet.writing.conform import WriterKeywords
from parquet_variant.files.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.inference.policies.decision import InferenceResult, schema_of_leaves
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import recover
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import table_of
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.support.choices import Layout
from parquet_variant.support.keywords import with_keywords

SchemaLike = ShreddingSchema | str | None


@with_keywords(WriterKeywords, VariantWriter)
def write(
    path: str | os.PathLike[str],
    data: object,
    *,
    column: str = "v",
    schema: SchemaLike | Mapping[str, SchemaLike] = None,
    layout: Layout = "final",
    **options: Unpack[WriterKeywords],
) -> FileInfo:
    """Write a Parquet file with Variant columns; see `pv.write`."""
    check_choice("layout", layout, get_args(Layout))
    columns = {column: data} if isinstance(data, VariantArray) else data
    recover([path], options.get("filesystem"))
    with VariantWriter(path, **options) as file:
        if schema is not None or layout != "final":
            columns = with_layout(columns, schema, layout, frozenset(options.get("variants", ())))
        file.write_batch(columns)
    assert file.info is not None
    return file.info


def with_layout(
    data: object,
    schema: SchemaLike | Mapping[str, SchemaLike],
    layout: Layout = "final",
    variants: Collection[str] = frozenset(),
) -> pa.Table:
    """Return the columns with top-level Variants shredded by the schema."""

    def shredded(storage: pa.StructArray, place: Place) -> pa.StructArray:
        if len(place) > 1:
            return storage
        column_schema = schema.get(place[0]) if isinstance(schema, Mapping) else schema
        return shredded_as(VariantArray(storage), column_schema, layout).storage

    return map_variants(table_of(data), shredded, {(name,) for name in variants})


def shredded_as(array: VariantArray, schema: SchemaLike, layout: Layout) -> VariantArray:
    """Return the array in a layout and schema; with None, it keeps its schema.

    Raises `SchemaError` if the DDL is invalid.
    """
    if layout == "unshredded":
        return array.to_unshredded()
    if schema is None:
        if array.schema is None:
            return array
        schema = array.schema.limited_to()
    if schema == "infer":
        schema = infer_shredding_schema(array)
    return shred_variant(array, schema, layout=layout)


# Numbers of columns, those that save most, that are tried if all columns of a result make the file larger.
_FEWER_COLUMNS = (40, 20, 5)


def compared_with_unshredded(
    result: InferenceResult, files: Sequence[VariantArray], options: Mapping[str, Any], threads: int = 1
) -> InferenceResult:
    """Return the result, or with fewer columns or none if the files would be larger than unshredded.

    `files`: the rows of each file.
    `options`: the options of `pv.write` for the file.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"name": "%d", "url": "https://example.com/%d"}' % (n, n) for n in range(40)])
    >>> compared_with_unshredded(infer(rows), [rows], {}).schema.to_ddl()
    'variant'
    """
    unshredded = ShreddingSchema.variant()
    if result.schema == unshredded:
        return result
    with tempfile.TemporaryDirectory() as directory:

        def file_bytes(schema: ShreddingSchema) -> int:
            name = f"{directory}/{schema.kind}-{hash(schema)}"
            return sum(
                write(f"{name}-{number}.parquet", rows, schema=schema, **options).bytes
                for number, rows in enumerate(files)
            )

        shredded_bytes, unshredded_bytes = in_order(file_bytes, (result.schema, unshredded), threads)
        if shredded_bytes <= unshredded_bytes:
            return result
        saved = {decision.path: decision.bytes_saved for decision in result.decisions}
        leaves = sorted(result.schema.leaves(), key=lambda leaf: (-saved.get(leaf[0], 0), str(leaf[0])))
        schemas = (schema_of_leaves(dict(leaves[:count])) for count in _FEWER_COLUMNS if count < len(leaves))
        schema = next((schema for schema in schemas if file_bytes(schema) <= unshredded_bytes), unshredded)
    share = shredded_bytes / unshredded_bytes - 1
    return result.narrowed(schema, f"all columns of the schema would make the file {share:.0%} larger than without any")
