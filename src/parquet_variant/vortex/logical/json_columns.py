"""The compressor: a column of JSON text becomes a Variant column, and back, one call each way.

Owns the calls, and keeping a text's own spelling. Leaves parsing, inference, shredding and printing to `functions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.arrow_input import as_arrow
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.functions.parse_json import parse_json
from parquet_variant.functions.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.functions.to_json import to_json
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.policies.decision import Policy
from parquet_variant.vortex.logical.encodings import AnyVariant, EncodingName, encode, encoding_of


@dataclass(frozen=True, eq=False)
class JsonColumn:
    """JSON text as Variants, with its own spelling where that is not the canonical one.

    Parameters
    ----------
    values
        The Variants.
    texts
        The texts that the values do not print as, null for all others; None if the spelling was not kept.
    """

    values: AnyVariant
    texts: pa.Array | None = None

    @classmethod
    def of(cls, values: VariantArray, texts: pa.Array) -> JsonColumn:
        """The column of values and the texts that they were parsed from."""
        texts = (texts.storage if is_json(texts) else texts).cast(pa.large_string())
        printed = to_json(values).cast(pa.large_string())
        own = pc.if_else(pc.equal(texts, printed).fill_null(True), pa.scalar(None, pa.large_string()), texts)
        return cls(values, own)

    def __len__(self) -> int:
        return len(self.values)


def is_json(values: Any) -> bool:
    """Whether an Arrow column has the type ``arrow.json``."""
    kind = getattr(values, "type", None)
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


@overload
def compress_json(
    column: Any, policy: str | Policy | ShreddingSchema = ..., *, encoding: EncodingName = ...
) -> AnyVariant: ...
@overload
def compress_json(
    column: Any, policy: str | Policy | ShreddingSchema = ..., *, encoding: EncodingName = ..., exact: bool
) -> AnyVariant | JsonColumn: ...
def compress_json(
    column: Any,
    policy: str | Policy | ShreddingSchema = "auto",
    *,
    encoding: EncodingName = "final",
    exact: bool = False,
) -> AnyVariant | JsonColumn:
    """Make Variants of a column of JSON text, shredded as a policy chooses.

    Parameters
    ----------
    column
        Strings of any Arrow form, plain or ``arrow.json``; null is SQL NULL.
    policy
        A shredding policy by name (``"auto"``, ``"tiles"``, ``"hints"``, ...) or as an instance, or a schema that is
        chosen already.
    encoding
        Which encoding.
    exact
        Keep every text byte by byte; the result is a `JsonColumn` then.

    Raises
    ------
    JsonError
        For text that is no JSON, with its row and byte offset.
    SchemaError
        For a column that is no text (``not-json``).

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
    if is_json(texts):
        texts = texts.storage
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not (
        pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or pa.types.is_string_view(texts.type)
    ):
        raise SchemaError(
            f"a column of {texts.type} is no JSON text; for other values there is cast_to_variant", reason="not-json"
        )
    plain = parse_json(texts)
    values: AnyVariant
    if encoding == "unshredded" or encoding == "columnar":
        values = encode(plain, encoding)
    else:
        schema = policy if isinstance(policy, ShreddingSchema) else infer_shredding_schema(plain, policy)
        values = shred_variant(plain, schema, layout=encoding)
    return JsonColumn(values, JsonColumn.of(plain, texts).texts) if exact else values


def decompress_json(array: Any, *, extension: bool = True, exact: bool = False) -> pa.Array:
    """Give a Variant column in any encoding as JSON text.

    Parameters
    ----------
    array
        The column, or a `JsonColumn`.
    extension
        Whether the text is marked as ``arrow.json``; otherwise it is plain strings.
    exact
        Whether to give the texts as they were, byte by byte; otherwise they are canonical JSON.

    Raises
    ------
    VariantError
        If `exact` and the spelling was not kept (``no-texts``).
    MalformedVariantError
        For values that are no Variants.

    Examples
    --------
    >>> decompress_json(compress_json(['{"a": 1.50}', None]), extension=False).to_pylist()
    ['{"a":1.5}', None]
    """
    own = array.texts if isinstance(array, JsonColumn) else None
    if exact and own is None:
        raise VariantError(
            "the texts' own spelling was not kept: compress or write them with exact=True", reason="no-texts"
        )
    _, variants = encoding_of(array.values if isinstance(array, JsonColumn) else array)
    texts = to_json(variants if isinstance(variants, VariantArray) else variants.to_variant())
    if own is not None and exact:
        texts = pc.coalesce(own.cast(pa.large_string()), texts.cast(pa.large_string())).cast(texts.type)
    return pa.ExtensionArray.from_storage(pa.json_(texts.type), texts) if extension else texts
