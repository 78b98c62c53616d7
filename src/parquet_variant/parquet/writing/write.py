"""`write` and `write_table`: Variants, alone or beside other columns, into one Parquet file.

Owns the one-call forms. Leaves the file to `VariantWriter`, and what is shredded to the functions below.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import Layout
from parquet_variant.interop.table_of import table_of
from parquet_variant.io.temporaries import sweep_temporaries
from parquet_variant.keywords import with_keywords
from parquet_variant.parquet.writing.nested import Place, map_variants
from parquet_variant.parquet.writing.options import WriterKeywords
from parquet_variant.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.schema.shredding_schema import ShreddingSchema

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
    """Write a Parquet file with Variant columns.

    Parameters
    ----------
    path
        The file to make; its directory is created. Nothing is there until all is written.
    data
        A `VariantArray`; a mapping of column names to `VariantArray` or Arrow arrays; or a pyarrow table whose Variant
        columns are structs with the extension name ``arrow.parquet.variant`` (or are named in `variants`).
    column
        The column's name, if `data` is one `VariantArray`.
    schema
        What to shred: a `ShreddingSchema`, its DDL, or ``"infer"``; for several Variant columns also a mapping by name.
        None writes each as it is, shredded or not. Applies to Variants at the top of `data`, not inside lists.
    layout
        ``"final"``, ``"unshredded"``, ``"draft-paths"`` or ``"draft-object"``.
    **options
        Those of `VariantWriter`: ``compression`` (``"zstd"``), ``compression_level``, ``row_group_bytes``,
        ``annotation`` (without, readers that know no Variant see a struct), ``sort_by`` and ``bloom_filters`` (paths),
        ``variants`` (structs that are Variants though their Arrow fields do not say so), ``writer``, ``filesystem``,
        and ``mode`` if a file is there: ``"error"``, or ``"overwrite"``.

    Returns
    -------
    FileInfo
        Rows, bytes, and statistics of each leaf column.

    Raises
    ------
    VariantFileError
        If the file exists already or cannot be made.
    SchemaError
        If the schema cannot be read, or the data does not have one shape.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', "null", None]), schema="a bigint")
    >>> info.rows, info.variants
    (3, (('v',),))
    """
    named = {column: data} if isinstance(data, VariantArray) else data
    with VariantWriter(path, **options) as file:
        sweep_temporaries(file.filesystem, [file.path])
        if schema is not None or layout != "final":
            named = _shredded(named, schema, layout, frozenset(options.get("variants", ())))
        file.write_batch(named)
    assert file.info is not None
    return file.info


def write_table(table: object, where: str | os.PathLike[str], **options: Any) -> FileInfo:
    """Write a table with Variant and ordinary columns as a Parquet file; `read_table` reads it back.

    The arguments come in the order that ``pyarrow.parquet.write_table`` has.

    Parameters
    ----------
    table
        An Arrow table, a data frame of pandas or polars, or columns by name.
    where
        The file.
    **options
        Those of `write`.

    Raises
    ------
    VariantFileError, SchemaError
        As `write`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write_table({"id": [1, 2], "v": pv.parse_json(["1", '"x"'])}, f"{folder}/a.parquet")
    ...     pv.parquet.read_table(f"{folder}/a.parquet").column_names
    ['id', 'v']
    """
    return write(where, table, **options)


def _shredded(
    data: object, schema: SchemaLike | Mapping[str, SchemaLike], layout: Layout, variants: frozenset[str]
) -> pa.Table:
    """The columns with the top-level Variants shredded as asked."""

    def shredded(storage: pa.StructArray, place: Place) -> pa.StructArray:
        if len(place) > 1:
            return storage
        what = schema.get(place[0]) if isinstance(schema, Mapping) else schema
        return shredded_as(VariantArray(storage), what, layout).storage

    return map_variants(table_of(data), shredded, {(name,) for name in variants})


def shredded_as(array: VariantArray, schema: SchemaLike, layout: Layout) -> VariantArray:
    """The array in a layout under a schema: inferred, given, or (None) the one that it has.

    Raises `SchemaError` if the DDL cannot be read.
    """
    from parquet_variant.functions.shred_variant import shred_variant

    if layout == "unshredded":
        return array.to_unshredded()
    if schema is None:
        if array.schema is None:
            return array
        schema = array.schema.limited_to()
    if schema == "infer":
        from parquet_variant.functions.shred_variant import infer_shredding_schema

        schema = infer_shredding_schema(array)
    return shred_variant(array, schema, layout=layout)
