"""Encodings of one logical type, and what each can answer: the RFC's question how expressions work over all of them.

Owns the logical type, the protocol of an encoding, the five encodings that there are, and converting between any two.
Leaves the expressions that dispatch over them to `get_element`.

==============  ===========================================================  =======================
encoding        is                                                           shreds
==============  ===========================================================  =======================
unshredded      Parquet variant: ``metadata`` and ``value``                  nothing
final           the final shredding layout                                   by a schema
draft-paths     the draft with all typed paths beside one residual           by a schema
draft-object    the draft with ``object``, ``array`` and ``untyped_value``   by a schema
columnar        a discriminator, and a dense child for each type             every path, every type
==============  ===========================================================  =======================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.functions.extract_path import needed_columns
from parquet_variant.functions.get_variant_element import get_variant_element as element_of_storage
from parquet_variant.functions.infer_shredding_schema import infer_shredding_schema
from parquet_variant.functions.shred_variant import shred_variant
from parquet_variant.functions.target_type import as_target
from parquet_variant.functions.variant_input import as_variant_array
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.columnar import ColumnarVariant
from parquet_variant.vortex.columnar_element import columnar_element, is_by_columns

__all__ = [
    "ENCODINGS",
    "Answer",
    "AnyVariant",
    "Encoding",
    "EncodingName",
    "VariantDType",
    "answers",
    "dtype_of",
    "encode",
    "encoding_of",
]

EncodingName = Literal["unshredded", "final", "draft-paths", "draft-object", "columnar"]
AnyVariant: TypeAlias = VariantArray | ColumnarVariant

Answer = Literal["columns", "columns-and-bytes", "bytes", "decode"]
"""How an encoding answers: from typed columns alone; from them and from Variant bytes where a value is not typed; from
bytes; or by making unshredded values of its own first."""


@dataclass(frozen=True, slots=True)
class VariantDType:
    """The logical type: a Variant, nullable or not.

    Parameters
    ----------
    nullable
        Whether rows may be absent (the outer null). A Variant null is a value, and in both.

    Examples
    --------
    >>> str(VariantDType(nullable=True))
    'variant?'
    """

    nullable: bool

    def __str__(self) -> str:
        return "variant?" if self.nullable else "variant"


class Encoding(Protocol):
    """What every encoding of Variants has to be able to do."""

    @property
    def name(self) -> str:
        """Its name."""

    def answers(self, array: Any, path: VariantPath, dtype: pa.DataType) -> Answer:
        """How it gets the values at a path as a type."""

    def get_variant_element(self, array: Any, path: VariantPath, dtype: pa.DataType) -> pa.Array:
        """The values at a path that are of a type."""

    def decode(self, array: Any) -> VariantArray:
        """The values as an unshredded array."""

    def encode(self, array: VariantArray, schema: ShreddingSchema) -> Any:
        """Values in this encoding; the schema says what is shredded, where the encoding asks."""


@dataclass(frozen=True, slots=True)
class _StorageEncoding:
    """An encoding that is a storage struct."""

    name: Literal["unshredded", "final", "draft-paths", "draft-object"]

    def answers(self, array: VariantArray, path: VariantPath, dtype: pa.DataType) -> Answer:
        if self.name == "unshredded":
            return "bytes"
        if self.name != "final":
            return "decode"
        columns = needed_columns(array.storage.type, path)
        in_bytes = [column for column in columns if column[-1] == "value"]
        if len(in_bytes) == len(columns) - 1 and ("metadata",) in columns:
            return "bytes"
        return "columns-and-bytes" if in_bytes else "columns"

    def get_variant_element(self, array: VariantArray, path: VariantPath, dtype: pa.DataType) -> pa.Array:
        return element_of_storage(array, path, dtype)

    def decode(self, array: VariantArray) -> VariantArray:
        return array.to_unshredded()

    def encode(self, array: VariantArray, schema: ShreddingSchema) -> VariantArray:
        plain = array.to_unshredded()
        return plain if self.name == "unshredded" else shred_variant(plain, schema, layout=self.name)


@dataclass(frozen=True, slots=True)
class _ColumnarEncoding:
    """`ColumnarVariant`."""

    name: Literal["columnar"] = "columnar"

    def answers(self, array: ColumnarVariant, path: VariantPath, dtype: pa.DataType) -> Answer:
        return "columns" if is_by_columns(dtype) else "decode"

    def get_variant_element(self, array: ColumnarVariant, path: VariantPath, dtype: pa.DataType) -> pa.Array:
        return columnar_element(array, path, dtype)

    def decode(self, array: ColumnarVariant) -> VariantArray:
        return array.to_variant()

    def encode(self, array: VariantArray, schema: ShreddingSchema) -> ColumnarVariant:
        return ColumnarVariant.from_variant(array)


ENCODINGS: dict[str, Encoding] = {
    "unshredded": _StorageEncoding("unshredded"),
    "final": _StorageEncoding("final"),
    "draft-paths": _StorageEncoding("draft-paths"),
    "draft-object": _StorageEncoding("draft-object"),
    "columnar": _ColumnarEncoding(),
}


def encoding_of(array: Any) -> tuple[Encoding, AnyVariant]:
    """The encoding of a column, and the column as that takes it.

    Raises
    ------
    SchemaError
        If it is no Variant column.

    Examples
    --------
    >>> encoding_of(VariantArray.from_pylist([1]))[0].name
    'unshredded'
    """
    if isinstance(array, ColumnarVariant):
        return ENCODINGS["columnar"], array
    found = as_variant_array(array)
    return ENCODINGS[found.layout], found


def dtype_of(array: Any) -> VariantDType:
    """The logical type of a column: nullable if a row is absent.

    Examples
    --------
    >>> dtype_of(VariantArray.from_pylist([1])), dtype_of(VariantArray.from_pylist([None]))
    (VariantDType(nullable=False), VariantDType(nullable=True))
    """
    return VariantDType(encoding_of(array)[1].null_count > 0)


def encode(array: Any, to: EncodingName, schema: ShreddingSchema | str | None = None) -> AnyVariant:
    """The same values in another encoding.

    Parameters
    ----------
    array
        A column in any encoding.
    to
        The encoding.
    schema
        What the shredding encodings shred: a schema, its DDL, or None to infer it (policy ``"auto"``).

    Raises
    ------
    VariantError
        For an unknown encoding (``bad-option``).
    MalformedVariantError
        For values that are no Variants.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> columnar = encode(pv.parse_json(['{"a": 1}', None]), "columnar")
    >>> encode(columnar, "final", "a bigint").schema.to_ddl()
    'a bigint'
    """
    if to not in get_args(EncodingName):
        raise VariantError(f"{to!r} is no encoding; there are {', '.join(get_args(EncodingName))}", reason="bad-option")
    encoding, column = encoding_of(array)
    plain = encoding.decode(column)
    if isinstance(schema, str):
        schema = ShreddingSchema.from_ddl(schema)
    if schema is None:
        shreds = to not in ("unshredded", "columnar")
        schema = infer_shredding_schema(plain) if shreds else ShreddingSchema.variant()
    return cast(AnyVariant, ENCODINGS[to].encode(plain, schema))


def answers(array: Any, path: str | VariantPath, dtype: str | pa.DataType) -> Answer:
    """How the encoding of a column gets the values at a path as a type.

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
    parsed = VariantPath.parse(path)
    try:
        return encoding.answers(column, parsed, as_target(dtype))
    except SchemaError:
        return "decode"
