"""The option ``partitionBy`` of a write: columns of the DataFrame, or JSON paths of the Variant column.

Distinguishes the two and checks them on the driver. `ingestion.partition_by` evaluates the paths; the writers decide
into which files the rows go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from parquet_variant.errors import VariantError
from parquet_variant.ingestion.partition_by import (
    PartitionBy,
    check_partition_names,
    existing_partitions,
    split_columns,
)


class Partitioning:
    """The partition columns of a write; pickled into every task.

    Parameters
    ----------
    columns
        Names of columns, or paths such as ``day=$.ts:date``.
    transforms
        Whether `columns` may contain transforms of Iceberg, such as ``bucket(16, id)``, which the table checks.
    schema
        The schema of the DataFrame.
    column
        The Variant column.

    Raises
    ------
    VariantError
        With reason ``"bad-option"`` for a column that does not exist, or whose values cannot be names of directories.
    """

    def __init__(self, columns: Sequence[str], schema: StructType, column: str, *, transforms: bool = False) -> None:
        self.column = column
        self.paths = PartitionBy.of([text for text in columns if "=" in text])
        self.names = tuple(text.partition("=")[0] for text in columns)
        types = {field.name: field.dataType for field in schema.fields}
        for name in self.names:
            if transforms and name.endswith(")"):
                continue
            if name in self.paths.names:
                if name in types:
                    raise _bad_partitioning(
                        f"the DataFrame already has a column {name!r}: choose another name for the path"
                    )
                continue
            if name not in types:
                raise _bad_partitioning(
                    f"unknown column {name!r}: choose from {', '.join(types)}, or write {name}=$.path:type"
                )
            if name == column or isinstance(types[name], VariantType | StructType | ArrayType | MapType):
                raise _bad_partitioning(
                    f"column {name!r} is not a scalar: partition by a path, such as {name}=$.path:type"
                )
        if self.names and set(types) <= set(self.names):
            raise _bad_partitioning("the files would contain no column: remove one of the partition columns")

    @property
    def new_fields(self) -> list[StructField]:
        """The partition columns that the DataFrame does not contain."""
        return [StructField(field.name, from_arrow_type(field.type)) for field in self.paths.fields]

    def with_paths(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch, and the partition columns extracted from paths."""
        return {**columns, **(self.paths.values(columns[self.column]) if self.paths else {})}

    def split(self, columns: Mapping[str, Any]) -> Iterator[tuple[dict[str, str | None], dict[str, Any]]]:
        """Yield the rows of a batch by partition, without the partition columns."""
        file_columns = self.with_paths(columns)
        if not self.names:
            yield {}, file_columns
            return
        keys: dict[str, pa.Array] = {name: file_columns.pop(name) for name in self.names}
        yield from split_columns(keys, file_columns)


def appended_partitions(dest: str, columns: tuple[str, ...], schema: StructType) -> tuple[str, ...]:
    """Return the option ``partitionBy`` for an append to a directory; without the option, the directory's columns.

    Raises `VariantError` with reason ``"bad-option"`` for other columns than those of the directory, and
    ``"missing-column"`` if the DataFrame lacks a column of the directory.
    """
    existing = existing_partitions(dest)
    if existing is None:
        return columns
    if columns:
        check_partition_names([text.partition("=")[0] for text in columns], list(existing), dest, "option partitionBy")
        return columns
    missing = [name for name in existing if name not in schema.names]
    if missing:
        raise VariantError(
            f"{dest} is partitioned by {', '.join(existing)}, and the DataFrame has no column {missing[0]!r}: add the "
            f"column, or set the option partitionBy to {missing[0]}=$.path:type",
            reason="missing-column",
        )
    return tuple(existing)


def _bad_partitioning(message: str) -> VariantError:
    return VariantError(f"option partitionBy: {message}", reason="bad-option")
