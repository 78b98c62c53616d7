"""The leaf columns of Arrow data that is written to a file.

Owns their paths, the Arrow types that a reader recovers without an Arrow schema, and the search for NaN. Leaves writing
to `writer`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from parquet_variant.files.parquet.pages.file_schema import FIELD_ID
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import list_elements, with_fields

_RECOVERED = (
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    pa.time64("us"),
    pa.uuid(),
    pa.dictionary(pa.int32(), pa.binary()),
)


def leaf_paths(field: pa.Field, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the schema paths of the leaf columns of a field."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = [(child, (*path, child.name)) for child in kind]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = [(kind.value_field, (*path, "list", "element"))]
    elif pa.types.is_map(kind):
        children = [(kind.key_field, (*path, "key_value", "key")), (kind.item_field, (*path, "key_value", "value"))]
    else:
        return [path]
    return [leaf for child in children for leaf in leaf_paths(*child)]


def is_recovered(kind: pa.DataType) -> bool:
    """Return whether the Arrow type follows from the Parquet type, so that the file needs no Arrow schema."""
    if pa.types.is_struct(kind):
        return all(is_recovered(child.type) for child in kind)
    if pa.types.is_list(kind):
        return is_recovered(kind.value_type)
    if pa.types.is_timestamp(kind):
        return kind.unit in ("us", "ns") and kind.tz in (None, "UTC")
    number = pa.types.is_integer(kind) or pa.types.is_decimal128(kind) or kind in (pa.float32(), pa.float64())
    return bool(number) or kind in _RECOVERED


def schema_for_others(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema to store in the file, without dictionaries, which other Variant readers do not expect.

    Field ids are kept, because readers of Rust take them from this schema: without them, Sail reads null.
    """
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind) and pa.types.is_binary(kind.value_type):
        kind = kind.value_type
    ids = {name: value for name, value in (field.metadata or {}).items() if name == FIELD_ID}
    return pa.field(field.name, with_fields(kind, _plain_field), field.nullable, ids or None)


def null_rows(table: pa.Table, place: tuple[str, ...]) -> int | None:
    """Return the number of rows where the struct at a place or an ancestor is null; None inside a list or map."""
    column = table.column(place[0])
    for name in place[1:]:
        if not pa.types.is_struct(column.type):
            return None
        column = pc.struct_field(column, [name])
    return int(column.null_count)


def leaf_arrays(array: pa.Array, path: str = "") -> Iterator[tuple[str, pa.Array]]:
    """Yield the leaf columns of an array with their dotted paths."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from leaf_arrays(array.storage, path)
    elif pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from leaf_arrays(array.field(index), f"{path}.{kind.field(index).name}")
    elif pa.types.is_map(kind):
        yield from leaf_arrays(array.keys, f"{path}.key_value.key")
        yield from leaf_arrays(array.items, f"{path}.key_value.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from leaf_arrays(list_elements(array), f"{path}.list.element")
    else:
        yield path, array


def may_have_nan(kind: pa.DataType) -> bool:
    """Return whether a type is, or contains, a floating-point type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return pa.types.is_floating(kind) or any(may_have_nan(kind.field(at).type) for at in range(kind.num_fields))


def has_nan(array: pa.Array) -> bool:
    """Return whether a column contains, or may contain, a NaN: unusual lists and encodings are not searched."""
    for _, leaf in leaf_arrays(array):
        values = leaf.dictionary if pa.types.is_dictionary(leaf.type) else leaf
        is_float = pa.types.is_floating(values.type)
        if pc.any(pc.is_nan(values)).as_py() if is_float else may_have_nan(values.type):
            return True
    return False
