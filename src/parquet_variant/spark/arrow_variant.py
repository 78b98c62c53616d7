"""The boundary: Spark's Arrow form of VARIANT, and the way from it to `VariantArray` and back.

Spark binds ``struct<value: binary not null, metadata: binary not null>`` by position, in that order, and knows it by
``{"variant": "true"}`` on the metadata child. Everything else in the package finds the fields by name. Owns that one
difference; nothing outside this module knows it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import in_form, struct_like
from parquet_variant.schema.storage_shape import is_list

SPARK_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def is_spark_variant(arrow_type: pa.DataType) -> bool:
    """Whether an Arrow type is Spark's form of VARIANT.

    >>> is_spark_variant(SPARK_VARIANT), is_spark_variant(pa.string())
    (True, False)
    """
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != 2:
        return False
    marks = arrow_type.field(1).metadata or {}
    return [field.name for field in arrow_type] == ["value", "metadata"] and marks.get(b"variant") == b"true"


def nested_variants(schema: pa.Schema) -> list[str]:
    """Dotted Parquet schema paths of the VARIANTs inside structs, lists and maps.

    >>> nested_variants(pa.schema({"v": SPARK_VARIANT, "s": pa.struct({"a": SPARK_VARIANT})}))
    ['s.a']
    """
    names: list[str] = []

    def look(kind: pa.DataType, path: str) -> None:
        if is_spark_variant(kind):
            names.append(path)
        elif pa.types.is_struct(kind):
            for field in kind:
                look(field.type, f"{path}.{field.name}")
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            look(kind.value_type, f"{path}.list.element")
        elif pa.types.is_map(kind):
            look(kind.item_type, f"{path}.key_value.value")

    for field in schema:
        if not is_spark_variant(field.type):
            look(field.type, field.name)
    return names


def from_spark(array: pa.StructArray) -> VariantArray:
    r"""Take a VARIANT column as Spark hands it to Python; no bytes are copied.

    >>> from_spark(pa.array([{"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}], SPARK_VARIANT))[0].to_python()
    1
    """
    # `field`, not `flatten`: the struct's own nulls stay where they are.
    storage = pa.StructArray.from_arrays(
        [array.field("metadata"), array.field("value")], names=["metadata", "value"], mask=array.is_null()
    )
    return VariantArray(storage)


def with_variants(table: pa.Table) -> pa.Table:
    """A table from Spark with its VARIANT columns as storage that says what it is; other columns as they are."""
    for index, field in enumerate(table.schema):
        if is_spark_variant(field.type):
            storage = from_spark(pa.concat_arrays(table.column(index).chunks or [pa.nulls(0, field.type)])).storage
            tagged = pa.field(field.name, storage.type, metadata=EXTENSION_METADATA)
            table = table.set_column(index, tagged, storage)
    return table


def to_spark(array: VariantArray) -> pa.StructArray:
    """Give an array in the form that Spark takes, unshredded; SQL NULL stays a null struct.

    Raises `VariantError` if the array is shredded and a row cannot be put together again.
    """
    storage = array.to_unshredded().storage
    children = []
    for name in ("value", "metadata"):
        child = storage.field(name)
        if pa.types.is_dictionary(child.type):
            child = child.dictionary_decode()
        child = child.cast(pa.binary())
        # The children must hold no null of their own, not even below a null struct.
        children.append(pc.fill_null(child, b"") if child.null_count else child)
    mask = storage.is_null() if storage.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(SPARK_VARIANT), mask=mask)


def as_spark(array: pa.Array, target: pa.DataType) -> pa.Array:
    """An array in the Arrow type that Spark wants, with every Variant storage in it, at any depth, in Spark's form.

    Raises `VariantError` if a shredded value cannot be put together.
    """
    return in_form(array, target, _in_spark_form)


def _in_spark_form(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    types = pa.types
    if is_spark_variant(target):
        return to_spark(VariantArray(array))
    if any(kind(array.type) != kind(target) for kind in (types.is_struct, types.is_map, is_list)):
        return array.cast(target)
    if types.is_struct(target) and [child.name for child in array.type] != [child.name for child in target]:
        children = [array.field(child.name) for child in target]
        fields = [pa.field(child.name, part.type) for child, part in zip(target, children, strict=True)]
        return as_spark(struct_like(array, fields, children), target)
    return None


def row_bytes(array: pa.Array, target: pa.DataType) -> np.ndarray:
    """About how many bytes each row takes for Spark; in a VARIANT every row carries its own dictionary.

    `array`: a Variant storage, or anything else.
    `target`: the type that Spark wants.
    """
    if not is_spark_variant(target):
        return np.full(len(array), array.nbytes / max(len(array), 1) + 1)
    names = [field.name for field in array.type]
    sizes = np.full(len(array), array.nbytes / max(len(array), 1))
    metadata = array.field("metadata") if "metadata" in names else pa.nulls(len(array), pa.binary())
    if pa.types.is_dictionary(metadata.type):
        of_row = pc.binary_length(metadata.dictionary).take(metadata.indices)
    else:
        of_row = pc.binary_length(metadata)
    return sizes + pc.fill_null(of_row, 0).to_numpy(zero_copy_only=False)


def slices_by_bytes(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs ``(start, stop)`` of at most `limit` bytes; a row that is larger stands alone.

    >>> list(slices_by_bytes(np.array([4, 4, 9, 1]), 8))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield start, stop
        start = stop
