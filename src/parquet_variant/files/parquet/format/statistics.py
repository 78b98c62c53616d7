"""Statistics of leaf columns in a Parquet file: counts and bounds, each of which may be unknown.

Owns reading the statistics of row groups as Arrow scalars, and the rule that a doubtful bound is ignored. Leaves
conclusions to `query.prune`.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.encoding.metadata import EMPTY_METADATA, NULL_VALUE
from parquet_variant.files.parquet.format.footer import MAGIC, SchemaNode
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.types import TYPE_OF_ARROW

# Key-value metadata of this library's writer: no float or double column of the file contains a NaN.
NO_NAN_KEY = b"parquet_variant.no_nan"
# How ``created_by`` begins in files of this library; the version follows.
OWN_WRITER = "parquet-variant version"
# A Variant null as a residual of the final layout, and of the drafts.
_VARIANT_NULLS = (NULL_VALUE, EMPTY_METADATA + NULL_VALUE)

_TYPES: dict[str, pa.DataType] = {row.parquet: arrow for arrow, row in TYPE_OF_ARROW.items()} | {
    "INT32 INT(32, true)": pa.int32(),
    "INT64 INT(64, true)": pa.int64(),
}


def leaf_type(node: SchemaNode) -> pa.DataType | None:
    """Return the Arrow type of a leaf if the shredding specification lists its type, else None.

    >>> leaf_type(SchemaNode("typed_value", ("v", "typed_value"), "optional", "INT64", "DECIMAL(12, 2)"))
    Decimal128Type(decimal128(12, 2))
    """
    if node.logical.startswith("DECIMAL("):
        precision, scale = node.logical[8:-1].split(", ")
        return pa.decimal128(int(precision), int(scale)) if 1 <= int(precision) <= 38 else None
    return _TYPES.get(node.spelled())


def leaf_statistics(chunk: pq.ColumnChunkMetaData, node: SchemaNode) -> LeafStatistics:
    """Return the statistics of a column chunk, with bounds only if their order is the order of values."""
    # pyarrow crashes on a damaged footer in which the types of a column contradict each other.
    statistics = chunk.statistics if chunk.physical_type == node.physical and chunk.is_stats_set else None
    values = chunk.num_values
    if statistics is None:
        return LeafStatistics(values)
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and not 0 <= nulls <= values:
        nulls = None
    if nulls == values and statistics.has_min_max:
        return LeafStatistics(values)  # bounds without values: the count or the bounds are wrong
    arrow = leaf_type(node)
    if not statistics.has_min_max or arrow is None:
        return LeafStatistics(values, nulls)
    lower, upper = _scalar(statistics.min_raw, arrow), _scalar(statistics.max_raw, arrow)
    if lower is None or upper is None:
        return LeafStatistics(values, nulls)
    return LeafStatistics(values, nulls, lower, upper)


def _scalar(raw: Any, arrow: pa.DataType) -> pa.Scalar | None:
    """Return a bound as a scalar; None if it is NaN or does not fit the type."""
    try:
        if pa.types.is_floating(arrow):
            if math.isnan(raw):
                return None
            return scalar(raw, arrow)
        if pa.types.is_decimal(arrow):
            unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            if abs(unscaled) >= 10**arrow.precision:
                return None
            data = pa.py_buffer(unscaled.to_bytes(16, "little", signed=True))
            return pa.Array.from_buffers(arrow, 1, [None, data])[0]
        if pa.types.is_temporal(arrow):
            width = pa.int32() if pa.types.is_date32(arrow) else pa.int64()
            return scalar(raw, width).cast(arrow)
        if arrow == pa.uuid():
            return pa.scalar(bytes(raw), pa.binary(16)).cast(arrow) if len(raw) == 16 else None
        if pa.types.is_string(arrow):
            # A bound that was truncated inside a character is not valid UTF-8, so it is unknown.
            return scalar(raw if isinstance(raw, str) else raw.decode("utf-8"), arrow)
        return scalar(raw, arrow)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None


def may_hide_nan(metadata: pq.FileMetaData) -> bool:
    """Return whether a float column of the file may contain a NaN outside its bounds.

    Arrow's writers ignore NaN in bounds. parquet-mr (Spark) writes no bounds for a column with a NaN.
    """
    if (metadata.metadata or {}).get(NO_NAN_KEY) == b"true":
        return False
    return not writer_of(metadata).startswith("parquet-mr")


def footer_metadata(footer: bytes) -> pq.FileMetaData:
    """Return pyarrow's metadata of the Thrift bytes of a footer, without reading a file."""
    return open_parquet(pa.BufferReader(MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC)).metadata


def writer_of(metadata: pq.FileMetaData) -> str:
    """Return the library that wrote a file, from the footer; empty if unknown."""
    try:
        return metadata.created_by or ""
    except UnicodeDecodeError:
        return ""


def only_nulls(residual: LeafStatistics, *, variant_nulls: bool) -> bool:
    """Return whether a residual column certainly has no value, or (with `variant_nulls`) only Variant nulls."""
    if residual.all_null:
        return True
    bounds = (residual.lower, residual.upper)
    return variant_nulls and all(bound is not None and bound.as_py() in _VARIANT_NULLS for bound in bounds)
