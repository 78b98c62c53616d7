"""The compressor of the RFC: converts a column of JSON text to a Variant column, and back.

Owns both calls, and keeping the original spelling of a text. `functions` parses, infers, shreds and prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, overload

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import JsonError, SchemaError, VariantError
from parquet_variant.files.vortex.dtype import final_variant
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.arguments import as_arrow
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import is_json_type

AnyPolicy: TypeAlias = "str | Policy | ShreddingSchema"


@dataclass(frozen=True, eq=False)
class JsonColumn:
    """JSON text as Variants, with the original text where it differs from the canonical text.

    Parameters
    ----------
    values
        The Variants.
    texts
        The original texts that differ from the canonical texts of the values, null for all other rows; None if the
        original texts were not kept.
    """

    values: VariantArray
    texts: pa.Array | None = None

    @classmethod
    def of(cls, values: VariantArray, texts: pa.Array) -> JsonColumn:
        """Make the column from values and the texts that they were parsed from."""
        texts = (texts.storage if is_json_type(texts.type) else texts).cast(pa.large_string())
        printed = to_json(values).cast(pa.large_string())
        is_canonical = pc.equal(texts, printed).fill_null(True)
        return cls(values, pc.if_else(is_canonical, pa.scalar(None, pa.large_string()), texts))

    def __len__(self) -> int:
        return len(self.values)


@overload
def compress_json(
    column: Any, policy: AnyPolicy = ..., *, shred: bool = ..., exact: Literal[False] = ...
) -> VariantArray: ...
@overload
def compress_json(
    column: Any, policy: AnyPolicy = ..., *, shred: bool = ..., exact: bool
) -> VariantArray | JsonColumn: ...
def compress_json(
    column: Any, policy: AnyPolicy = "auto", *, shred: bool = True, exact: bool = False
) -> VariantArray | JsonColumn:
    """Convert a column of JSON text to Variants, shredded by a policy.

    Parameters
    ----------
    column
        Strings of any Arrow form, plain or ``arrow.json``; null is SQL NULL.
    policy
        A shredding policy, by name (``"auto"``, ``"hints"``, …) or as an instance, or a shredding schema.
    shred
        If false, the result is unshredded.
    exact
        Keep each text byte for byte; the result is then a `JsonColumn`.

    Raises
    ------
    JsonError
        For text that is not valid JSON, with its row and byte offset.
    SchemaError
        For a column that is not text (``not-json``).

    Examples
    --------
    >>> texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"id": %d}' % n for n in range(200)]))
    >>> column = compress_json(texts)
    >>> column.schema.to_ddl()
    'id bigint'
    >>> decompress_json(column).type, decompress_json(column)[7].as_py()
    (JsonType(extension<arrow.json>), '{"id":7}')
    >>> decompress_json(compress_json(texts, exact=True), exact=True)[7].as_py()
    '{"id": 7}'
    """
    texts = as_arrow(column, pa.string())
    if is_json_type(texts.type):
        texts = texts.storage
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not (
        pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or pa.types.is_string_view(texts.type)
    ):
        raise SchemaError(
            f"the column has the type {texts.type}, not JSON text: use cast_to_variant for other values",
            reason="not-json",
        )
    unshredded = values = parse_json(texts)
    if shred:
        schema = policy if isinstance(policy, ShreddingSchema) else infer_shredding_schema(unshredded, policy)
        values = shred_variant(unshredded, schema, layout="final")
    return JsonColumn(values, JsonColumn.of(unshredded, texts).texts) if exact else values


@contextmanager
def json_errors(column: str, file: str | None = None, *, start: int = 0) -> Iterator[None]:
    """Raise a `JsonError` of a part of a column that begins at the row ``start`` with the column and the file."""
    try:
        yield
    except JsonError as error:
        row = None if error.row is None else start + error.row
        raise JsonError(
            f"column {column!r} holds invalid JSON: {error.message}; fix the row, or ingest the column and quarantine "
            "invalid rows",
            reason=error.reason,
            file=file,
            row=row,
            offset=error.offset,
        ) from None


def decompress_json(array: Any, *, extension: bool = True, exact: bool = False) -> pa.Array:
    """Return a Variant column as JSON text.

    Parameters
    ----------
    array
        The column, or a `JsonColumn`.
    extension
        If true, the result has the type ``arrow.json``; otherwise it is strings.
    exact
        If true, return the original texts, byte for byte; otherwise canonical JSON.

    Raises
    ------
    VariantError
        If `exact` is true and the original texts were not kept (``no-texts``).
    MalformedVariantError
        For values that are not valid Variants.

    Examples
    --------
    >>> decompress_json(compress_json(['{"a": 1.50}', None]), extension=False).to_pylist()
    ['{"a":1.5}', None]
    """
    originals = array.texts if isinstance(array, JsonColumn) else None
    if exact and originals is None:
        raise VariantError(
            "the original texts were not kept: compress or write the column with exact=True", reason="no-texts"
        )
    texts = to_json(final_variant(array.values if isinstance(array, JsonColumn) else array))
    if originals is not None and exact:
        texts = pc.coalesce(originals.cast(pa.large_string()), texts.cast(pa.large_string())).cast(texts.type)
    return pa.ExtensionArray.from_storage(pa.json_(texts.type), texts) if extension else texts
