"""How a Variant column lies in a Vortex file: what the library holds without loss.

Owns the two layouts, the way of a column into one of them, and the comparison of what was read back. Leaves the file to
`write` and `read`.

``"variant"``: unshredded, with Vortex's own Variant type: every Vortex reader sees a Variant. ``"struct"``: the storage
struct as Arrow has it, typed columns beside the residual; to a foreign reader it is that struct. Under its Variant type
vortex-data 0.90 keeps a shredded column only in part: it fails on shredded lists and loses values of corpus case 38.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_variant.array.capsules import import_variant, is_named, is_storage
from parquet_variant.array.chunked_array import variant_table
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.schema.storage_shape import is_list

__all__ = ["StoredLayout", "first_difference", "stored_column", "variant_names"]

StoredLayout = Literal["variant", "struct"]


def variant_names(schema: pa.Schema) -> list[str]:
    """The names of the Variant columns of a file: those of Vortex's type, and structs with a storage's fields."""
    return [field.name for field in schema if is_named(field) or is_storage(field.type)]


def stored_column(array: VariantArray, layout: StoredLayout) -> tuple[pa.Field, pa.StructArray]:
    """The field (its name is not set) and the array that go into a file.

    Parameters
    ----------
    array
        An array of the final layout, or an unshredded one.
    layout
        How it lies in the file.

    Examples
    --------
    >>> field, _ = stored_column(VariantArray.from_pylist([{"a": 1}]), "variant")
    >>> field.metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    if layout == "variant":
        # Vortex has no dictionary-encoded metadata in its Variant type; it compresses the column itself.
        table = variant_table({"": array.to_unshredded()}, plain=True)
        return table.schema.field(0), table.column(0).combine_chunks()
    storage = _without_empty_values(array.storage)
    return pa.field("", storage.type), storage


def _without_empty_values(group: pa.Array) -> pa.Array:
    """The storage without ``value`` columns that hold nothing: where there is none, nothing has to be read."""
    if is_list(group.type):
        elements = _without_empty_values(group.values)
        kind = (pa.large_list if pa.types.is_large_list(group.type) else pa.list_)(
            group.type.value_field.with_type(elements.type)
        )
        return pa.Array.from_buffers(
            kind, len(group), group.buffers()[:2], group.null_count, group.offset, children=[elements]
        )
    if not pa.types.is_struct(group.type):
        return group
    columns = dict(zip((field.name for field in group.type), _fields(group), strict=True))
    if "typed_value" in columns and "value" in columns and columns["value"].null_count == len(group):
        del columns["value"]
    done = {name: _without_empty_values(column) for name, column in columns.items()}
    fields = [group.type.field(name).with_type(column.type) for name, column in done.items()]
    return pa.StructArray.from_arrays(list(done.values()), fields=fields, mask=group.is_null())


def _fields(group: pa.StructArray) -> list[pa.Array]:
    return [group.field(index) for index in range(group.type.num_fields)]


def first_difference(given: pa.Array, found: pa.Array, *, is_variant: bool) -> int | None:
    """The first row of a column that was read back as something else; None if all are the same.

    Values of a Variant column are compared by their bytes, and where these differ by meaning.
    """
    if len(given) != len(found):
        return min(len(given), len(found))
    if not is_variant:
        return _first(_same_cells(given, found))
    left = VariantArray(given).to_unshredded().storage
    (storage,) = import_variant(found) if len(found) else (given,)
    right = VariantArray(storage).to_unshredded().storage
    same = _same_cells(left.is_null(), right.is_null())
    for name in ("metadata", "value"):
        same &= _same_cells(_binary(left.field(name)), _binary(right.field(name))) | left.is_null().to_numpy(False)
    for row in np.flatnonzero(~same).tolist():
        if VariantArray(left)[row] != VariantArray(right)[row]:
            return int(row)
    return None


def _binary(array: pa.Array) -> pa.Array:
    return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(pa.large_binary())


def _first(same: np.ndarray) -> int | None:
    return None if same.all() else int(np.argmin(same))


def _same_cells(given: pa.Array, found: pa.Array) -> np.ndarray:
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if given.equals(found):
        return np.ones(len(given), np.bool_)
    if pa.types.is_nested(given.type) or isinstance(given.type, pa.BaseExtensionType):
        pairs = zip(given.to_pylist(), found.to_pylist(), strict=True)
        return np.array([repr(left) == repr(right) for left, right in pairs], np.bool_)
    found = found.cast(given.type)
    same = pc.equal(given, found).fill_null(False)
    if pa.types.is_floating(given.type):
        same = pc.or_(same, pc.and_(pc.is_nan(given), pc.is_nan(found)).fill_null(False))
    return pc.or_(same, pc.and_(given.is_null(), found.is_null())).to_numpy(zero_copy_only=False)
