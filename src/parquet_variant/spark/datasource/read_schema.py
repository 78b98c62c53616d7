"""The schema of a read, in Spark's types, if the user did not set one: from the options and the files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader
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

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    SUPPORTS_LIMITS = True
except ImportError:  # Spark 4.1
    SupportsTriggerAvailableNow = object
    SUPPORTS_LIMITS = False


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The maximum of files, and of their bytes, in one micro-batch; None for no maximum."""

    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """Whether a micro-batch takes all new files."""
        return self.max_files is None and self.max_bytes is None

    def admits(self, files: int, size: int) -> bool:
        """Return whether a micro-batch may have that many files and bytes; one file is always admitted."""
        is_over = (self.max_files is not None and files > self.max_files) or (
            self.max_bytes is not None and size > self.max_bytes
        )
        return files == 1 or not is_over


class LimitedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader whose options limit micro-batches."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        names = {"maxFilesPerTrigger": options.max_files, "maxBytesPerTrigger": options.max_bytes}
        option = next((name for name, value in names.items() if value is not None), None)
        if option is not None and not SUPPORTS_LIMITS:
            raise VariantError(
                f"the option {option} requires Spark 4.2 or newer, because Spark {pyspark.__version__} does not limit "
                "micro-batches of Python data sources: remove the option",
                reason="bad-option",
            )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - the name in Spark's interface
        """Return the limit from the options."""
        if self.options.max_files is not None:
            return ReadMaxFiles(self.options.max_files)
        return ReadAllAvailable() if self.options.max_bytes is None else ReadMaxBytes(self.options.max_bytes)

    def batch_limit(self, limit: ReadLimit | None) -> BatchLimit:
        """Return the limit of a micro-batch. Spark passes one limit, but the options may set both."""
        if limit is None or isinstance(limit, ReadAllAvailable):
            return BatchLimit()
        return BatchLimit(
            limit.max_files if isinstance(limit, ReadMaxFiles) else self.options.max_files,
            limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes,
        )


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
        from parquet_variant.spark.datasource.delta_reader import table_schema

        return table_schema(options)
    if options.format == "iceberg":
        from parquet_variant.spark.datasource.iceberg_reader import table_columns

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
