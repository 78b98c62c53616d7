"""What a writer is given: columns by name, some of them Variants, at the top or inside structs, lists and maps.

Owns bringing that to one table with every Variant in the shape that a file needs, and naming their places. Leaves the
shape itself to `conform` and the file to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.parquet.writing.nested import Place, map_variants

__all__ = ["as_table", "incoming_columns"]


def incoming_columns(columns: Any, variants: Collection[str]) -> tuple[pa.Table, tuple[Place, ...]]:
    """A table to write, and the places of the Variants in it that may carry the annotation.

    Parameters
    ----------
    columns
        A mapping from name to Arrow array or `VariantArray`; or a pyarrow table or record batch.
    variants
        Dotted schema paths of structs that are Variants though nothing in the data says so.

    Raises
    ------
    VariantFileError
        If there are no columns, they differ in length, or a name in `variants` is not there.
    SchemaError
        If a Variant has a shape that no file may have.
    """
    named = {tuple(name.split(".")) for name in variants}
    seen: dict[Place, bool] = {}

    def conformed(storage: pa.StructArray, place: Place) -> pa.StructArray:
        variant = VariantArray(storage)
        _ = variant.schema  # Refuses a shape that no file may have.
        seen[place] = variant.layout in ("unshredded", "final")
        return conform(storage, variant.layout)

    table = map_variants(as_table(columns), conformed, named)
    for missing in sorted(named - seen.keys()):
        raise VariantFileError(
            f"{'.'.join(missing)} is not a struct column of the data, so it cannot be written as a Variant",
            reason="no-such-column",
        )
    return table, tuple(place for place, annotated in seen.items() if annotated)


def as_table(columns: Any) -> pa.Table:
    """Columns in any of the forms that a writer takes, as a table whose Variants are marked.

    Raises
    ------
    VariantFileError
        If there are no columns, or they differ in length.
    """
    if isinstance(columns, pa.RecordBatch):
        columns = pa.Table.from_batches([columns])
    if isinstance(columns, Mapping):
        columns = _of_mapping(columns)
    if not isinstance(columns, pa.Table):
        raise TypeError(f"cannot write a {type(columns).__name__}: give columns by name, or a pyarrow table")
    if not columns.num_columns:
        raise VariantFileError("there are no columns to write", reason="no-columns")
    return columns


def _of_mapping(columns: Mapping[str, Any]) -> pa.Table:
    fields, arrays = [], []
    for name, column in columns.items():
        if isinstance(column, VariantArray):
            fields.append(pa.field(name, column.storage.type, metadata=EXTENSION_METADATA))
            arrays.append(column.storage)
        elif isinstance(column, (pa.Array, pa.ChunkedArray)):
            fields.append(pa.field(name, column.type))
            arrays.append(column)
        else:
            raise TypeError(f"column {name} is a {type(column).__name__}: give a VariantArray or an Arrow array")
    if len({len(array) for array in arrays}) > 1:
        sizes = ", ".join(f"{field.name} {len(array)}" for field, array in zip(fields, arrays, strict=True))
        raise VariantFileError(f"columns must have one length, these differ: {sizes}", reason="lengths-differ")
    return pa.table(arrays, schema=pa.schema(fields))
