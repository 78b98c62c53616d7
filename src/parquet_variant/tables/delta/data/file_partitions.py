"""Partition values of a snapshot's files, as columns with one entry per file.

Leaves the text of a value to `tables.partitions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.partitions import partition_array, partition_texts
from parquet_variant.tables.schema import Field


def partition_column(files: pa.Table, field: Field) -> pa.Array:
    """Return the value of a partition column in each file.

    `files`: rows of `Snapshot.files`.
    Raises as `partition_array`.
    """
    texts = one_chunk(pc.map_lookup(files["partitionValues"], field.physical_name, "first")).dictionary_encode()
    distinct = [partition_array(text, field.type, 1) for text in texts.dictionary.to_pylist()]
    values = pa.concat_arrays(distinct) if distinct else partition_array(None, field.type, 0)
    return values.take(texts.indices)


def partition_keys(files: pa.Table, fields: Sequence[Field]) -> list[tuple[str | None, ...]]:
    """Return the partition of each file, in the spelling of `partition_text`: writers spell one value in several ways.

    `files`: rows of `Snapshot.files`.
    `fields`: the partition columns.
    """
    columns = [partition_texts(partition_column(files, field)) for field in fields]
    return list(zip(*columns, strict=True)) if columns else [()] * len(files)
