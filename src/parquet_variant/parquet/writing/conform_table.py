"""What a writer is given: columns by name, some of them Variants, at the top or inside structs, lists and maps.

Owns giving every Variant the shape that a file needs, and naming their places. Leaves which data are rows to
`interop.table_of`, the shape itself to `conform` and the file to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.array.chunked_array import variant_table
from parquet_variant.array.field_names import with_field_names
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.interop.table_of import table_of
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.parquet.writing.nested import Place, map_variants


def conform_table(
    columns: Any, variants: Collection[str], *, value_first: bool = False
) -> tuple[pa.Table, tuple[Place, ...]]:
    """A table to write, of whatever `table_of` takes, and the places of the Variants that may carry the annotation.

    `variants` are dotted schema paths of structs that are Variants though nothing in the data says so; one that is not
    there is a `VariantFileError`, and a Variant in a shape that no file may have a `SchemaError`.
    """
    if not variants and not value_first and isinstance(columns, Mapping):
        arrays = {name: each for name, each in columns.items() if isinstance(each, VariantArray) and each.fits_files}
        if arrays and len(arrays) == len(columns) and len(set(map(len, arrays.values()))) == 1:
            return variant_table(arrays), tuple((name,) for name in arrays)
    named = {tuple(name.split(".")) for name in variants}
    seen: dict[Place, bool] = {}

    def conformed(storage: pa.StructArray, place: Place) -> pa.StructArray:
        variant = VariantArray(storage)
        _ = variant.schema  # Refuses a shape that no file may have.
        seen[place] = variant.layout in ("unshredded", "final")
        named = with_field_names(storage) if variant.layout == "final" else storage
        return conform(named, variant.layout, value_first=value_first)

    table = map_variants(table_of(columns), conformed, named)
    for missing in sorted(named - seen.keys()):
        raise VariantFileError(
            f"{'.'.join(missing)} is not a struct column of the data, so it cannot be written as a Variant",
            reason="no-such-column",
        )
    return table, tuple(place for place, annotated in seen.items() if annotated)
