"""What a writer is given: columns by name, some of them Variants, at the top or inside structs, lists and maps.

Owns giving every Variant the shape that a file needs, and naming their places. Leaves which data are rows to
`interop.table_of`, the shape itself to `conform` and the file to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.interop.table_of import table_of
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.parquet.writing.nested import Place, map_variants

__all__ = ["conform_table"]


def conform_table(
    columns: Any, variants: Collection[str], *, value_first: bool = False
) -> tuple[pa.Table, tuple[Place, ...]]:
    """A table to write, and the places of the Variants in it that may carry the annotation.

    Parameters
    ----------
    columns
        Whatever `table_of` takes.
    variants
        Dotted schema paths of structs that are Variants though nothing in the data says so.
    value_first
        See `conform`.

    Raises
    ------
    VariantFileError
        If there are no columns, they differ in length, or a name in `variants` is not there.
    SchemaError
        If a Variant has a shape that no file may have.
    """
    if not variants and not value_first and isinstance(columns, Mapping):
        arrays = {name: each for name, each in columns.items() if isinstance(each, VariantArray) and each.fits_files}
        if arrays and len(arrays) == len(columns):
            return table_of(arrays), tuple((name,) for name in arrays)
    named = {tuple(name.split(".")) for name in variants}
    seen: dict[Place, bool] = {}

    def conformed(storage: pa.StructArray, place: Place) -> pa.StructArray:
        variant = VariantArray(storage)
        _ = variant.schema  # Refuses a shape that no file may have.
        seen[place] = variant.layout in ("unshredded", "final")
        return conform(storage, variant.layout, value_first=value_first)

    table = map_variants(table_of(columns), conformed, named)
    for missing in sorted(named - seen.keys()):
        raise VariantFileError(
            f"{'.'.join(missing)} is not a struct column of the data, so it cannot be written as a Variant",
            reason="no-such-column",
        )
    return table, tuple(place for place, annotated in seen.items() if annotated)
