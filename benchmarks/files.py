"""The files that several works read: ours, shredded and not, made once a run; and plain columns, the limit.

Owns making them. Leaves what is read from them to `works`.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

import parquet_variant as pv
from benchmarks.data import DataSet, scratch
from benchmarks.peers import ROW_GROUP_ROWS


@cache
def schema_of(data: DataSet) -> pv.ShreddingSchema:
    """What the default policy shreds."""
    return pv.infer_shredding_schema(pv.parse_json(data.lines, dictionary="batch"))


@cache
def our_file(data: DataSet) -> str:
    """A shredded file of the default policy."""
    path = str(scratch() / f"{data.name}-shredded.parquet")
    pv.write(path, pv.parse_json(data.lines, schema=schema_of(data), dictionary="batch"))
    return path


@cache
def unshredded_file(data: DataSet) -> str:
    """The same values, unshredded."""
    path = str(scratch() / f"{data.name}-unshredded.parquet")
    pv.write(path, pv.parse_json(data.lines, dictionary="batch"))
    return path


@cache
def plain_file(data: DataSet) -> str:
    """The values at the data set's paths as plain columns, written by pyarrow."""
    array = pv.parse_json(data.lines)
    columns = {f"c{i}": pv.variant_get(array, path, kind, errors="null") for i, (path, kind) in enumerate(data.paths)}
    path = str(scratch() / f"{data.name}-plain.parquet")
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return path
