"""Conversion between Spark's Arrow representation of VARIANT and `VariantArray`.

Spark binds ``struct<value: binary not null, metadata: binary not null>`` by position, in that order, and recognizes it
by ``{"variant": "true"}`` on the metadata child. All other code of the package finds the fields by name, and only this
module handles the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas import types
from pyspark.sql.types import DataType, StructType

from parquet_variant.arrays.capsules import is_marked_by_spark
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.arrow_schema import Place, map_variants
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types.forms import in_form, struct_like

# Spark 4.1 marks timestamps as UTC by default and has no parameter for the time zone.
_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(types.to_arrow_type).parameters else {}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark exchanges values of a type with Python."""
    return types.to_arrow_type(data_type, **_UTC)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges rows with Python."""
    return types.to_arrow_schema(schema, **_UTC)


SPARK_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def nested_variants(schema: pa.Schema) -> list[str]:
    """Return the dotted Parquet schema paths of the VARIANTs inside structs, lists and maps.

    >>> nested_variants(pa.schema({"v": SPARK_VARIANT, "s": pa.struct({"a": SPARK_VARIANT})}))
    ['s.a']
    """
    places: list[Place] = []

    def collect(storage: pa.StructArray, place: Place) -> pa.StructArray:
        places.append(place)
        return storage

    map_variants(schema.empty_table(), collect)
    return [".".join(place) for place in places if len(place) > 1]


def from_spark(array: pa.StructArray) -> VariantArray:
    r"""Return a VARIANT column from Spark as an array, without copying bytes.

    >>> from_spark(pa.array([{"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}], SPARK_VARIANT))[0].to_python()
    1
    """
    # `field` instead of `flatten`, because the nulls of the struct are passed as the mask.
    storage = pa.StructArray.from_arrays(
        [array.field("metadata"), array.field("value")], names=["metadata", "value"], mask=array.is_null()
    )
    return VariantArray(storage)


def to_spark(array: VariantArray) -> pa.StructArray:
    """Return an array in Spark's representation, unshredded; SQL NULL is a null struct."""
    storage = array.to_unshredded().storage
    children = []
    for name in ("value", "metadata"):
        child = storage.field(name)
        if pa.types.is_dictionary(child.type):
            child = child.dictionary_decode()
        child = child.cast(pa.binary())
        # The children must not contain nulls, not even inside null structs.
        children.append(pc.fill_null(child, b"") if child.null_count else child)
    mask = storage.is_null() if storage.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(SPARK_VARIANT), mask=mask)


def as_spark(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return an array in the Arrow type that Spark expects, with Variants at any depth in its representation."""
    return in_form(array, target, _converted)


def _converted(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    types = pa.types
    if is_marked_by_spark(target):
        return to_spark(VariantArray(array))
    if any(is_kind(array.type) != is_kind(target) for is_kind in (types.is_struct, types.is_map, is_list)):
        return array.cast(target)
    if types.is_struct(target) and [child.name for child in array.type] != [child.name for child in target]:
        children = [array.field(child.name) for child in target]
        fields = [pa.field(field.name, child.type) for field, child in zip(target, children, strict=True)]
        return as_spark(struct_like(array, fields, children), target)
    return None


def row_bytes(array: pa.Array, target: pa.DataType) -> np.ndarray:
    """Return the approximate size of each row in Spark's representation, where every VARIANT has its own dictionary."""
    if not is_marked_by_spark(target):
        return np.full(len(array), array.nbytes / max(len(array), 1) + 1)
    names = [field.name for field in array.type]
    sizes = np.full(len(array), array.nbytes / max(len(array), 1))
    metadata = array.field("metadata") if "metadata" in names else pa.nulls(len(array), pa.binary())
    if pa.types.is_dictionary(metadata.type):
        metadata_bytes = pc.binary_length(metadata.dictionary).take(metadata.indices)
    else:
        metadata_bytes = pc.binary_length(metadata)
    return sizes + pc.fill_null(metadata_bytes, 0).to_numpy(zero_copy_only=False)


def slices_by_bytes(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Yield runs of rows ``(start, stop)`` of at most `limit` bytes; a larger row is a run of its own.

    >>> list(slices_by_bytes(np.array([4, 4, 9, 1]), 8))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        bytes_before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, bytes_before + limit, side="right")))
        yield start, stop
        start = stop
