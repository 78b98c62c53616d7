"""Metrics of a written file in the form of manifests: counts and bounds by field id.

Owns metrics modes, truncation, and the bounds of Variants as one object by path (specification, "Field-level Metrics").
Collecting metrics is `tables.file_metrics`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.files.parquet.format.facts import FileFacts, footer_metadata
from parquet_variant.files.parquet.format.footer import parse_schema
from parquet_variant.files.parquet.format.page_places import chunk_start_of
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.inference.statistics import lower_text, upper_text
from parquet_variant.tables.file_metrics import FileMetrics
from parquet_variant.tables.iceberg.metadata.manifests import METRICS
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.values import raw_values, to_bytes
from parquet_variant.tables.iceberg.writing.properties import WriteProperties, truncation
from parquet_variant.tables.path_bounds import bounds_to_bytes, complete_bounds
from parquet_variant.tables.schema import (
    VARIANT,
    ArrayType,
    Field,
    MapType,
    Place,
    PrimitiveType,
    StructType,
    TableType,
    arrow_type,
    parts,
)

# The metrics of a data file: by the names of `DataFile`'s attributes, then by field id.
ManifestMetrics: TypeAlias = "dict[str, Any]"


def manifest_metrics(
    schema: Schema, properties: WriteProperties, info: FileInfo, metrics: FileMetrics, shredded: frozenset[Place]
) -> ManifestMetrics:
    """Return the metrics of a written file.

    `metrics`: what was collected of its leaf columns.
    `shredded`: the places of Variants that the file shreds. Each has a bound, if only an empty one, because some
      readers take a Variant for unshredded if it has none.
    """
    result: ManifestMetrics = {name: {} for name in METRICS}
    for position, (place, f) in enumerate(metric_leaves(schema.struct)):
        mode = properties.metrics_mode(".".join(place), position)
        limit = truncation(mode, ".".join(place))
        column = metrics.columns.get(place)
        is_shredded = place in shredded
        if is_shredded:
            result["lower_bounds"][f.id] = result["upper_bounds"][f.id] = bounds_to_bytes({})
        if column is None or mode == "none":
            continue
        result["value_counts"][f.id] = metrics.rows
        if column.nulls is not None:
            result["null_value_counts"][f.id] = column.nulls
        if f.type in (PrimitiveType("float"), PrimitiveType("double")) and not info.may_hold_nan:
            result["nan_value_counts"][f.id] = 0
        if mode == "counts":
            continue
        if f.type == VARIANT:
            lower, upper = complete_bounds(column.paths)
            if lower:
                result["lower_bounds"][f.id], result["upper_bounds"][f.id] = (
                    bounds_to_bytes(lower),
                    bounds_to_bytes(upper),
                )
        elif isinstance(f.type, PrimitiveType) and column.lower is not None and column.upper is not None:
            _set_bounds(result, f, column.lower, column.upper, limit)
    sizes = _column_sizes(info)
    for path, number in parquet_places(schema.struct):
        size = sum(size for leaf, size in sizes.items() if leaf[: len(path)] == path)
        if size:
            result["column_sizes"][number] = size
    return result


def metric_leaves(struct: StructType, place: Place = ()) -> list[tuple[Place, Field]]:
    """Return the columns that have metrics: leaves of structs; lists and maps, which have counts, whole."""
    places: list[tuple[Place, Field]] = []
    for f in struct.fields:
        if isinstance(f.type, StructType):
            places += metric_leaves(f.type, (*place, f.name))
        else:
            places.append(((*place, f.name), f))
    return places


def _set_bounds(result: ManifestMetrics, f: Field, lower: pa.Scalar, upper: pa.Scalar, limit: int | None) -> None:
    assert isinstance(f.type, PrimitiveType)
    if f.type.family in ("geometry", "geography"):
        return
    try:
        low, high = (_raw_value(scalar, f.type) for scalar in (lower, upper))
    except (pa.ArrowException, OverflowError, ValueError):
        return
    if limit is not None:
        if isinstance(low, str):
            low = lower_text(low, limit)
        elif isinstance(low, bytes):
            low = low[:limit]
        high = _truncate_upper_bound(high, limit)
    if low is not None:
        result["lower_bounds"][f.id] = to_bytes(low, f.type)
    if high is not None:
        result["upper_bounds"][f.id] = to_bytes(high, f.type)


def _raw_value(scalar: pa.Scalar, kind: PrimitiveType) -> Any:
    target = arrow_type(kind)
    if isinstance(scalar, pa.ExtensionScalar):
        return scalar.value.as_py()
    array = pa.array([scalar.as_py()], scalar.type) if scalar.type == target else pa.array([scalar.as_py()], target)
    return raw_values(array, kind)[0]


def _truncate_upper_bound(raw: Any, limit: int) -> Any:
    if isinstance(raw, str):
        return upper_text(raw, limit)
    if not isinstance(raw, bytes) or len(raw) <= limit:
        return raw
    cut = raw[:limit].rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None


# ---- sizes of columns


def parquet_places(struct: TableType, place: Place = ()) -> list[tuple[Place, int]]:
    """Return the path in a Parquet file's schema, and the field id, of every leaf; Variants are one leaf."""
    places: list[tuple[Place, int]] = []
    for f in parts(struct):
        inner = (*place, f.name)
        if isinstance(struct, ArrayType):
            inner = (*place, "list", "element")
        elif isinstance(struct, MapType):
            inner = (*place, "key_value", f.name)
        if parts(f.type):
            places += parquet_places(f.type, inner)
        else:
            places.append((inner, f.id))
    return places


def _column_sizes(info: FileInfo) -> dict[Place, int]:
    facts = FileFacts(footer_metadata(info.footer))
    return {leaf.path: facts.size([leaf]) for leaf in parse_schema(info.footer).leaves()}


def split_offsets(info: FileInfo) -> tuple[int, ...]:
    """Return where the row groups of a file begin."""
    facts = FileFacts(footer_metadata(info.footer))
    return tuple(sorted(chunk_start_of(facts.chunk(0, group)) for group in facts.groups))
