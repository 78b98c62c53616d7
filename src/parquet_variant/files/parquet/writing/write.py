"""`write` and `write_table`: write Variants, alone or with other columns, to one Parquet file.

Owns the functions of one call. Leaves the file to `VariantWriter`, and shredding to `functions`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Unpack, get_args

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_choice
from parquet_variant.files.parquet.writing.nested import Place, map_variants
from parquet_variant.files.parquet.writing.options import WriterKeywords
from parquet_variant.files.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.interop.tables import table_of
from parquet_variant.io.staging import recover
from parquet_variant.layouts.shredding_schema import ShreddingSchema
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
            columns = _shredded(columns, schema, layout, frozenset(options.get("variants", ())))
        file.write_batch(columns)
    assert file.info is not None
    return file.info


def with_layout(data: object, schema: SchemaLike | Mapping[str, SchemaLike], layout: Layout = "final") -> pa.Table:
    """Return the columns with top-level Variants shredded by the schema."""
    return _shredded(data, schema, layout, frozenset())


def _shredded(
    data: object, schema: SchemaLike | Mapping[str, SchemaLike], layout: Layout, variants: frozenset[str]
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
