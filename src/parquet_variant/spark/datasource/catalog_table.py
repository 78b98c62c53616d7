"""Options of catalog tables: ``CREATE TABLE events USING variant LOCATION '…'``.

Spark passes the location and the options of a catalog table to a Python data source only once, when a table without
columns is created. They are stored as metadata of the first column, because Spark passes the columns to every read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from parquet_variant.errors import VariantError

# The key of an internal entry, which Spark passes to reads, and removes from the columns of other tables that a query
# writes (`INTERNAL_METADATA_KEYS`). Those tables would otherwise read the files of this table.
_METADATA = "__file_source_generated_metadata_col"
_OPTION = "option."


def creation_options(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of the table that Spark is creating, or None if Spark is not creating a table.

    Raises `VariantError` with reason ``"bad-option"`` for a table without a location, or in an Iceberg catalog.
    """
    if "provider" not in options:
        return None
    of_table = {name.removeprefix(_OPTION): text for name, text in options.items() if name.startswith(_OPTION)}
    if any(name == "catalog" or name.startswith("catalog.") for name in of_table):
        raise VariantError(
            "CREATE TABLE … USING variant does not support the option catalog: use pv.spark.register_table",
            reason="bad-option",
        )
    if not options.get("path"):
        raise VariantError(
            "a catalog table USING variant requires a LOCATION with files or a table: use CREATE TABLE name USING "
            "variant LOCATION '...'",
            reason="bad-option",
        )
    return {**of_table, "path": options["path"]}


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a new table with its options."""
    first, *remaining = schema.fields
    metadata = {**(first.metadata or {}), _METADATA: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *remaining])


def read_options(schema: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a read: without a path, those of the catalog table, overridden by those of the query."""
    if options.get("path") or options.get("paths"):
        return dict(options)
    stored = [field.metadata[_METADATA] for field in schema.fields if _METADATA in (field.metadata or {})]
    return {**json.loads(stored[0]), **options} if stored else dict(options)
