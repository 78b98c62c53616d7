"""Encodings of the logical type Variant, and the dispatch of expressions over them.

Owns the logical type, the list of encodings, conversion between any two of them, and `element_of`, which extracts paths
from arrays and files. `ops.columns.extract_path` and `columnar.element` walk the paths.

==========  ==============================================  =======================
encoding    storage                                         shreds
==========  ==============================================  =======================
unshredded  Parquet variant: ``metadata`` and ``value``     nothing
final       the final shredding layout                      by a schema
columnar    a discriminator, and one dense child per type   every path, every type
==========  ==============================================  =======================

The draft layouts belong to Parquet: arrays in a draft layout are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, check_choice
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.files.vortex.columnar.element import columnar_element, is_by_columns
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.extract_path import columns_of_path, extract_path
from parquet_variant.ops.columns.target_type import as_target
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.path import VariantPath

EncodingName = Literal["unshredded", "final", "columnar"]
AnyVariant: TypeAlias = VariantArray | ColumnarVariant

Answer = Literal["columns", "columns-and-bytes", "bytes", "decode"]
"""How an encoding answers a request: from typed columns alone; from typed columns, and from Variant bytes for values
that are not typed; from bytes; or by decoding to unshredded values first."""


@dataclass(frozen=True, slots=True)
class VariantDType:
    """The logical type: Variant, nullable or not.

    Parameters
    ----------
    nullable
        True if rows may be absent (the outer null). A Variant null is a value, so both types allow it.

    Examples
    --------
    >>> str(VariantDType(nullable=True))
    'variant?'
    """

    nullable: bool

    def __str__(self) -> str:
        return "variant?" if self.nullable else "variant"


@dataclass(frozen=True, slots=True)
class VariantEncoding:
    """An encoding, identified by its name."""

    name: EncodingName


ENCODINGS: dict[EncodingName, VariantEncoding] = {name: VariantEncoding(name) for name in get_args(EncodingName)}


def encoding_of(array: Any) -> tuple[VariantEncoding, AnyVariant]:
    """Return the encoding of a column, and the column as a `VariantArray` or `ColumnarVariant`.

    Raises
    ------
    SchemaError
        If the column is not a Variant column, or is in a draft layout (``draft-layout``).

    Examples
    --------
    >>> encoding_of(VariantArray.from_pylist([1]))[0].name
    'unshredded'
    """
    if isinstance(array, ColumnarVariant):
        return ENCODINGS["columnar"], array
    column = as_variant_array(array)
    if column.layout not in ENCODINGS:
        raise SchemaError(
            f"the array is in Parquet's draft layout {column.layout}, which Vortex does not have: convert it with "
            "shred_variant(array, array.schema) or array.to_unshredded()",
            reason="draft-layout",
        )
    return ENCODINGS[cast(EncodingName, column.layout)], column


def encode(array: Any, to: EncodingName, schema: ShreddingSchema | str | None = None) -> AnyVariant:
    """Convert a column to another encoding.

    Parameters
    ----------
    array
        A column in any encoding.
    to
        The name of the encoding.
    schema
        The shredding schema of the final layout: a schema, its DDL, or None to infer it (policy ``"auto"``).

    Raises
    ------
    VariantError
        For an unknown encoding (``bad-option``).
    MalformedVariantError
        For values that are not valid Variants.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> columnar = encode(pv.parse_json(['{"a": 1}', None]), "columnar")
    >>> encode(columnar, "final", "a bigint").schema.to_ddl()
    'a bigint'
    """
    check_choice("to", to, ENCODINGS)
    encoding, column = encoding_of(array)
    if to == encoding.name == "columnar":
        return column
    unshredded = column.to_variant() if isinstance(column, ColumnarVariant) else column.to_unshredded()
    if to == "columnar":
        return ColumnarVariant.from_variant(unshredded)
    if to == "unshredded":
        return unshredded
    return shred_variant(unshredded, infer_shredding_schema(unshredded) if schema is None else schema, layout="final")


def element_of(
    column: pa.StructArray | ColumnarVariant, path: VariantPath, target: pa.DataType, *, cast: bool, zone: str = "UTC"
) -> pa.Array:
    """Return the values at a path as an Arrow type, for any encoding; null for values without that type.

    `column`: a columnar column, or the storage of another encoding; for a file, the part that the path needs.
    `path` and `target`: the path, and the Arrow type of the result.
    `cast`: if true, values of other types are cast as Spark casts them; otherwise they are null.
    """
    extract = columnar_element if isinstance(column, ColumnarVariant) else extract_path
    return extract(column, path, target, safe=False, zone=zone, lossless=not cast)


def answers(array: Any, path: str | VariantPath, dtype: str | pa.DataType) -> Answer:
    """Return how the encoding of a column answers a request for the values at a path as a type.

    Examples
    --------
    >>> array = VariantArray.from_pylist([{"a": 1, "b": 2}])
    >>> answers(array, "$.a", "bigint")
    'bytes'
    >>> shredded = encode(array, "final", "a bigint")
    >>> answers(shredded, "$.a", "bigint"), answers(shredded, "$.b", "bigint")
    ('columns-and-bytes', 'bytes')
    >>> answers(encode(array, "columnar"), "$.b", "bigint")
    'columns'
    """
    encoding, column = encoding_of(array)
    if isinstance(column, ColumnarVariant):
        return "columns" if is_by_columns(as_target(dtype)) else "decode"
    if encoding.name == "unshredded":
        return "bytes"
    columns = columns_of_path(column.storage.type, VariantPath.parse(path))
    in_bytes = [column_path for column_path in columns if column_path[-1] == "value"]
    if len(in_bytes) == len(columns) - 1 and ("metadata",) in columns:
        return "bytes"
    return "columns-and-bytes" if in_bytes else "columns"
