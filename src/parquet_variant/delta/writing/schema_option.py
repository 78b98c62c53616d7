"""The option ``schema=`` of writes: what to shred in the variant columns of a table.

Owns its forms, and its former name. Leaves what a schema means to `schema.ShreddingSchema`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, TypeAlias

from parquet_variant.delta.protocol.schema import StructType, variant_paths
from parquet_variant.errors import DeltaError
from parquet_variant.schema.shredding_schema import ShreddingSchema

SchemaOption: TypeAlias = "Mapping[str, ShreddingSchema | str] | ShreddingSchema | str | None"


def schema_option(schema: SchemaOption, options: dict[str, Any]) -> SchemaOption:
    """The schema that was given, also under the former name ``shredding``, which is taken out of the options."""
    if "shredding" not in options:
        return schema
    warnings.warn("shredding= is now called schema=", DeprecationWarning, stacklevel=3)
    former: SchemaOption = options.pop("shredding")
    if schema is not None and former is not None:
        raise DeltaError("schema= and its former name shredding= are both given", reason="bad-argument")
    return former if schema is None else schema


def schemas_by_column(schema: SchemaOption, columns: StructType) -> dict[str, ShreddingSchema]:
    """The schemas by dotted name of the variant column.

    Raises `DeltaError`: reason ``"bad-argument"`` for a name that is no variant column, or one schema for several
    columns.
    """
    if schema is None:
        return {}
    places = [".".join(place) for place in variant_paths(columns)]
    if isinstance(schema, (ShreddingSchema, str)):
        if len(places) != 1:
            raise DeltaError(
                f"the table has {len(places)} variant columns: give schemas by name", reason="bad-argument"
            )
        schema = {places[0]: schema}
    unknown = sorted(set(schema) - set(places))
    if unknown:
        raise DeltaError(f"{unknown[0]!r} is no variant column: {', '.join(places)}", reason="bad-argument")
    return {name: ShreddingSchema.of(schema_of_column) for name, schema_of_column in schema.items()}
