"""The compressor: a column of JSON text becomes a shredded Variant column, and back, one call each way.

Owns the two public calls. Leaves parsing, inference, shredding and printing to `functions`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.functions.arrow_input import as_arrow
from parquet_variant.functions.infer_shredding_schema import infer_shredding_schema
from parquet_variant.functions.parse_json import parse_json
from parquet_variant.functions.shred_variant import shred_variant
from parquet_variant.functions.to_json import to_json
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import Policy
from parquet_variant.vortex.encodings import AnyVariant, EncodingName, encode, encoding_of

__all__ = ["compress_json", "decompress_json"]


def compress_json(
    column: Any, policy: str | Policy | ShreddingSchema = "auto", *, encoding: EncodingName = "final"
) -> AnyVariant:
    """Make Variants of a column of JSON text, shredded as a policy chooses.

    Parameters
    ----------
    column
        Strings of any Arrow form, plain or ``arrow.json``; null is SQL NULL.
    policy
        A shredding policy by name or as an instance, or a schema that is chosen already.
    encoding
        Which encoding.

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
    """
    texts = as_arrow(column, pa.string())
    if isinstance(texts.type, pa.BaseExtensionType) and texts.type.extension_name == "arrow.json":
        texts = texts.storage
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or _is_view(texts.type)):
        raise SchemaError(
            f"a column of {texts.type} is no JSON text; for other values there is cast_to_variant", reason="not-json"
        )
    plain = parse_json(texts)
    if encoding == "unshredded" or encoding == "columnar":
        return encode(plain, encoding)
    schema = policy if isinstance(policy, ShreddingSchema) else infer_shredding_schema(plain, policy)
    return shred_variant(plain, schema, layout=encoding)


def decompress_json(array: Any, *, extension: bool = True) -> pa.Array:
    """Give a Variant column in any encoding as JSON text.

    Parameters
    ----------
    array
        The column.
    extension
        Whether the text is marked as ``arrow.json``; otherwise it is plain strings.

    Raises
    ------
    MalformedVariantError
        For values that are no Variants.

    Examples
    --------
    >>> decompress_json(compress_json(['{"a": 1.50}', None]), extension=False).to_pylist()
    ['{"a":1.5}', None]
    """
    encoding, found = encoding_of(array)
    texts = to_json(encoding.decode(found))
    return pa.ExtensionArray.from_storage(pa.json_(texts.type), texts) if extension else texts


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind))
