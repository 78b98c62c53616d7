"""Where a shredding schema comes from at the command line: DDL, a file of DDL or JSON, or a Parquet file.

Owns telling these apart. Leaves reading each to `ShreddingSchema`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema

_SUFFIXES = (".ddl", ".json", ".parquet", ".sql", ".txt")


def read_schema(schema: str | None) -> ShreddingSchema | None:
    """Read what ``--schema`` was given; None stays None.

    Raises `VariantError` for text that is no schema, and for a file that holds none.

    >>> read_schema("mag double, place string").to_ddl()
    'mag double, place string'
    """
    from parquet_variant.errors import SchemaError
    from parquet_variant.schema.shredding_schema import ShreddingSchema

    if schema is None:
        return None
    text = schema
    if os.path.isfile(schema):  # noqa: PTH113 - unlike Path.is_file it takes a text too long for a file name
        raw = Path(schema).read_bytes()
        if raw.startswith(b"PAR1"):
            return ShreddingSchema.from_parquet(schema)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"{schema} is no schema: give DDL or JSON text, or a Parquet file", file=schema) from None
    elif schema.endswith(_SUFFIXES):
        raise SchemaError(f"there is no schema file {schema}: check the path, or give DDL such as 'mag double'")
    text = text.strip()
    return ShreddingSchema.from_json(text) if text.startswith("{") else ShreddingSchema.from_ddl(text)
