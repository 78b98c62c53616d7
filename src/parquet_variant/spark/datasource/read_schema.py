"""The schema of a read, in Spark's types, if the user did not set one: from the options and the files."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from parquet_variant.arrays.capsules import EXTENSION_NAME
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.files import locate, open_file
from parquet_variant.files.parquet.reading.read import partitioned_table
from parquet_variant.query.kinds import holds_variants
from parquet_variant.query.selection import arrow_type
from parquet_variant.spark.arrow_variant import to_arrow_schema
from parquet_variant.spark.datasource.options import ReadOptions, is_ordinary


def read_schema(options: ReadOptions) -> StructType:
    """Return the typed paths of a read, or the columns of the first file (of all files with ``mergeSchema``).

    Raises `VariantError` for a path without a type, or a column of a type that Spark does not support.
    """
    if options.paths is not None:
        ordinary: dict[str, DataType] = {}
        if any(map(is_ordinary, options.paths.values())):
            ordinary = {field.name: field.dataType for field in _all_columns(options).fields}
        fields = []
        for name, typed_path in options.paths.items():
            if is_ordinary(typed_path) and typed_path[0] in ordinary:
                fields.append(StructField(name, ordinary[typed_path[0]]))
            else:
                fields.append(StructField(name, _type_of_path(name, *typed_path)))
        return StructType(fields)
    schema = _all_columns(options)
    variants = [field.name for field in to_arrow_schema(schema) if holds_variants(field.type)]
    if options.column is not None and not {options.column, options.column.partition(".")[0]} & set(variants):
        raise VariantError(
            f"{options.column} is not a VARIANT column: choose from {', '.join(variants) or 'none'}",
            reason="no-such-column",
        )
    return schema


def _all_columns(options: ReadOptions) -> StructType:
    """Return all columns of a directory or table.

    Raises `VariantError` for a column of a type that Spark does not support, and for files whose types differ.
    """
    if options.format == "delta":
        from parquet_variant.spark.datasource.delta import table_schema

        return table_schema(options)
    if options.format == "iceberg":
        from parquet_variant.spark.datasource.iceberg import table_columns

        return StructType([StructField(field.name, _spark_type(field)) for field in table_columns(options)])
    files = locate(options.sources)
    fields: dict[str, StructField] = {}
    for source in files if options.merge_schema else files[:1]:
        with open_file(source if options.partitions else replace(source, partition=())) as file:
            for field in partitioned_table(file, []).schema:
                column = StructField(field.name, _spark_type(field))
                if fields.setdefault(field.name, column) != column:
                    raise VariantError(
                        f"column {field.name} is {column.dataType.simpleString()} in {source.path}, and "
                        f"{fields[field.name].dataType.simpleString()} in other files: name the columns in schema()",
                        reason="files-differ",
                    )
    return StructType(list(fields.values()))


def _type_of_path(name: str, path: str, type_name: str | None) -> DataType:
    if type_name is None:
        raise VariantError(
            f"column {name} has no type: set one in the option columns, as [path, type], or in schema()",
            reason="bad-option",
        )
    arrow = arrow_type(type_name)
    if arrow is not None and holds_variants(arrow):
        raise VariantError(
            f"Spark cannot cast {path} to {type_name}, a type that contains VARIANTs: use a type without variant, cast "
            "to variant and use variant_explode, or use the engine duckdb",
            reason="unsupported-type",
        )
    return VariantType() if arrow is None else from_arrow_type(arrow)


def _spark_type(field: pa.Field) -> DataType:
    data_type = field.type
    if (field.metadata or {}).get(b"ARROW:extension:name") == EXTENSION_NAME.encode():
        return VariantType()
    if pa.types.is_struct(data_type):
        return StructType([StructField(child.name, _spark_type(child), child.nullable) for child in data_type])
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return ArrayType(_spark_type(data_type.value_field), data_type.value_field.nullable)
    if pa.types.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return MapType(_spark_type(key), _spark_type(item), item.nullable)
    try:
        return from_arrow_type(data_type)
    except Exception as error:
        raise VariantError(
            f"column {field.name} is {data_type}, which Spark does not support: name the other columns in schema()",
            reason="unsupported-type",
        ) from error
