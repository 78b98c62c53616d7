"""Variant columns through Arrow's PyCapsule interface.

Owns the name of the canonical extension, the capsules (schema, array, stream) that carry it, and finding the Variant
column in data of another library. Leaves the Arrow forms of a storage to `parts`, and chunks to `chunked_array`.

pyarrow's capsule of a chunked array has no field, and therefore no metadata. `stream_capsule` replaces ``get_schema``
of the stream by its own function; pyarrow provides the chunks, null rows included, and their release.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import refuse_unsound
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.errors import SchemaError, VariantError, rows_of_errors
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.layouts.layout import find_layout
from parquet_variant.layouts.storage_shape import is_binary, is_list
from parquet_variant.layouts.storages import ArrowGroup
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.types import MAX_OFFSET, forms

# Arrow's canonical extension type. It is field metadata here and never a registered pyarrow type: pyarrow's Parquet
# writer crashes on a Python extension type of this name.
EXTENSION_NAME = "arrow.parquet.variant"
EXTENSION_METADATA = {"ARROW:extension:name": EXTENSION_NAME, "ARROW:extension:metadata": ""}
_NAME_KEY = b"ARROW:extension:name"
_EINVAL = 22


_GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
# One function per storage type, never freed, since a stream may outlive everything that it was made from.
_getters: dict[pa.DataType, Any] = {}


def variant_field(storage: pa.DataType) -> pa.Field:
    """Return the field of a storage for a table: its type, with the extension's name as metadata."""
    return pa.field("", storage, metadata=EXTENSION_METADATA)


def stream_capsule(storages: list[pa.StructArray], storage_type: pa.DataType, requested_schema: Any = None) -> Any:
    """Return the capsule of a stream of Variant storages, with the extension's name in its schema.

    `storages`: the chunks, all of the storage type.
    `requested_schema`: a capsule of the schema that the consumer requests; used if it requests the same children in
      another encoding.
    """
    if requested_schema is not None:
        requested = _requested(requested_schema)
        storages = [_as_requested(storage, requested) for storage in storages or [pa.nulls(0, storage_type)]]
        storage_type = storages[0].type
    storages = [_without_offsets(storage) for storage in storages]
    capsule = pa.chunked_array(storages, storage_type).__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    getter = _getters.get(storage_type)
    if getter is None:
        field = variant_field(storage_type)

        def get_schema(_stream: int, out: int) -> int:
            try:
                field._export_to_c(out)
            except Exception:
                return _EINVAL
            return 0

        getter = _getters[storage_type] = _GET_SCHEMA(get_schema)
    # `get_schema` is the first member of ``struct ArrowArrayStream``.
    ctypes.c_void_p.from_address(pointer(capsule, b"arrow_array_stream")).value = ctypes.cast(
        getter, ctypes.c_void_p
    ).value
    return capsule


def array_capsules(storage: pa.StructArray, requested_schema: Any = None) -> tuple[Any, Any]:
    """Return the schema capsule, with the extension's name, and the array capsule of a storage."""
    if requested_schema is not None:
        storage = _as_requested(storage, _requested(requested_schema))
    _, array = _without_offsets(storage).__arrow_c_array__()
    return variant_field(storage.type).__arrow_c_schema__(), array


def _without_offsets(array: pa.Array) -> pa.Array:
    """Return an array with the offset of a slice moved into its children: arro3 0.9 panics on nested structs with an
    offset.
    """
    if pa.types.is_struct(array.type) and not len(array):
        return pa.nulls(0, array.type)
    if not pa.types.is_struct(array.type) or (array.offset == 0 and len(array.field(0)) == len(array)):
        return array
    children = [_without_offsets(array.field(index)) for index in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())


def _requested(capsule: Any) -> pa.DataType:
    return _plain_type(pa.Field._import_from_c_capsule(capsule).type)


def _as_requested(storage: pa.StructArray, kind: pa.DataType) -> pa.StructArray:
    """Return a storage with the encodings of a requested type; unchanged if the type has other fields."""
    if not pa.types.is_struct(kind) or {f.name for f in kind} != {f.name for f in storage.type}:
        return storage
    columns, fields = [], []
    for field in kind:
        column = storage.field(field.name)
        if column.type != field.type:
            try:
                column = forms.in_form(column, field.type)
            except pa.ArrowException:
                return storage
        columns.append(column)
        fields.append(storage.type.field(field.name).with_type(column.type))
    return pa.StructArray.from_arrays(columns, fields=fields, mask=storage.is_null())


def plain_metadata(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage with plain binary metadata."""
    fields = [field.with_type(pa.binary()) if field.name == "metadata" else field for field in storage.type]
    return _as_requested(storage, pa.struct(fields))


def import_variant(obj: Any, column: str | None = None) -> list[pa.StructArray]:
    """Return the storages, one per chunk, of the Variant column in an Arrow object of any library.

    `column`: the column, if the object is a table. None: the object is the column, or a table with one Variant column.
      A column of JSON text (``arrow.json``) is parsed. Raises `SchemaError` if the object is not Arrow data
      (``not-arrow``), if there is not exactly one such column (``not-a-variant``), or for damaged data (``bad-arrow``).
    """
    chunks, kind = _chunks_of(obj)
    for chunk in chunks:
        refuse_unsound(chunk)
    # Empty chunks are dropped: pyarrow 26 cannot concatenate an imported empty chunk that has an offset.
    chunks = [chunk for chunk in chunks if len(chunk)]
    if not (column is None and (is_storage(kind) or forms.is_json_type(kind))):
        fields = list(kind) if pa.types.is_struct(kind) else []
        if column is not None:
            numbers = [number for number, field in enumerate(fields) if field.name == column]
        else:
            names = named_variants(fields) or [field.name for field in fields if forms.is_json_type(field.type)]
            numbers = [number for number, field in enumerate(fields) if field.name in names]
        if len(numbers) != 1:
            problem = (
                f"no column {column!r}" if column is not None else f"{len(numbers)} Variant columns instead of one"
            )
            raise SchemaError(
                f"the data has {problem}: its type is {str(kind)[:200]}; name a Variant column with column=, or "
                "convert columns with cast_to_variant",
                reason="not-a-variant",
            )
        index = numbers[0]
        kind, chunks = kind.field(index).type, [_child(chunk, index) for chunk in chunks]
    if forms.is_json_type(kind):
        return _parsed(chunks or [pa.nulls(0, kind)])
    return [_storage_of(chunk) for chunk in chunks] or [pa.nulls(0, _plain_type(kind))]


def _parsed(chunks: list[pa.Array]) -> list[pa.StructArray]:
    """Return the storages of columns of JSON text; an error has the row of the whole column."""
    storages, first_row = [], 0
    for chunk in chunks:
        with rows_of_errors(first_row.__add__):
            storages.append(registered_method("VariantArray.parse_json")(chunk.storage).storage)
        first_row += len(chunk)
    return storages


def _chunks_of(obj: Any) -> tuple[list[pa.Array], pa.DataType]:
    if isinstance(obj, pa.Array):
        return [obj], obj.type
    if isinstance(obj, (pa.Table, pa.RecordBatch)):
        batches = obj.to_batches() if isinstance(obj, pa.Table) else [obj]
        return [batch.to_struct_array() for batch in batches], pa.struct(list(obj.schema))
    if not isinstance(obj, pa.ChunkedArray):
        if not is_arrow(obj):
            raise SchemaError(
                f"{type(obj).__name__} is not Arrow data: it has neither __arrow_c_array__ nor __arrow_c_stream__; use "
                "VariantArray.from_pylist for Python objects",
                reason="not-arrow",
            )
        obj = imported(obj)
    return list(obj.chunks), obj.type


def is_arrow(obj: Any) -> bool:
    """Return whether an object has Arrow's PyCapsule interface."""
    return hasattr(obj, "__arrow_c_array__") or hasattr(obj, "__arrow_c_stream__")


def imported(obj: Any) -> pa.ChunkedArray:
    """Return an object with Arrow's PyCapsule interface as a pyarrow array; raises `SchemaError` (``bad-data``)."""
    refuse_objects(obj)
    try:
        return pa.chunked_array([pa.array(obj)] if hasattr(obj, "__arrow_c_array__") else obj)
    except pa.ArrowException as error:
        raise SchemaError(
            f"cannot convert the {type(obj).__name__} to an Arrow array ({error}): cast it to a type of Arrow, or use "
            "from_python for Python objects",
            reason="bad-data",
        ) from None


def refuse_objects(obj: Any) -> None:
    """Raise `SchemaError` (``bad-data``) for polars columns that Arrow cannot have: Python objects, wide integers."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(obj, (polars.Series, polars.DataFrame)):
        return
    for column in [obj] if isinstance(obj, polars.Series) else obj.get_columns():
        if column.dtype == polars.Object:
            raise SchemaError(
                f"column {column.name!r} has Python objects (pl.Object), which polars cannot convert to Arrow: use "
                "from_python(column.to_list())",
                reason="bad-data",
            )
        if column.dtype in [getattr(polars, name) for name in ("Int128", "UInt128") if hasattr(polars, name)]:
            raise SchemaError(
                f"column {column.name!r} has the type {column.dtype}, which Arrow lacks: cast it to "
                "pl.Decimal(38, 0), or to pl.String",
                reason="bad-data",
            )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _storage_of(chunk: pa.Array) -> pa.StructArray:
    # The process may have registered an extension type of this name.
    storage = chunk.storage if isinstance(chunk.type, pa.BaseExtensionType) else chunk
    if not pa.types.is_struct(storage.type):
        return storage  # the constructor of VariantArray raises the error
    return with_metadata(in_offsets(storage))


def in_offsets(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage without run ends and without views of strings, bytes and lists: kernels read offsets.

    pyarrow 26 casts list views incorrectly. Run ends of metadata become dictionary indices.
    """
    if not forms.has_encodings(storage.type, forms.VIEWS) and len(storage):
        return storage
    large = bool(len(storage)) and _viewed_bytes(storage) > MAX_OFFSET
    fields = [
        field.with_type(
            pa.dictionary(pa.int32(), plain)
            if field.name == "metadata" and pa.types.is_run_end_encoded(field.type)
            else plain
        )
        for field, plain in ((field, without_views(field.type, large=large, lists=True)) for field in storage.type)
    ]
    if not len(storage):
        return pa.nulls(0, pa.struct(fields))  # an empty array may not have offsets
    return forms.in_form(storage, pa.struct(fields))


def _viewed_bytes(storage: pa.Array) -> int:
    """Return the bytes of the largest view column of an array when stored with offsets; views may share bytes."""
    longest, remaining = 0, [storage]
    while remaining:
        array = remaining.pop()
        kind = array.type
        if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):
            lengths = np.frombuffer(array.buffers()[1], np.int32, 4 * len(array), 16 * array.offset)[::4]
            # A null row may have any number in the place of its length.
            longest = max(longest, int(np.abs(lengths, dtype=np.int64).sum()))
        elif pa.types.is_struct(kind):
            remaining += [array.field(index) for index in range(kind.num_fields)]
        elif is_list(kind):
            remaining.append(forms.list_elements(array))
    return longest


def with_metadata(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage with metadata in every row: many libraries make the children of a null struct null."""
    index = storage.type.get_field_index("metadata")
    column = storage.field(index) if index >= 0 else None
    if column is None or column.null_count == 0 or pa.types.is_run_end_encoded(column.type):
        return storage
    if not is_binary(column.type):  # the constructor of VariantArray raises the error
        return storage
    if pa.types.is_dictionary(column.type):
        column = forms.without_encoding(column)
    columns = [storage.field(number) for number in range(storage.type.num_fields)]
    columns[index] = column.fill_null(pa.scalar(EMPTY_METADATA, column.type))
    names = [field.name for field in storage.type]
    return pa.StructArray.from_arrays(columns, names=names, mask=storage.is_null())


def without_views(kind: pa.DataType, *, large: bool, lists: bool = False) -> pa.DataType:
    """Return a type without run ends, and with offsets instead of views; with ``lists``, of list views too."""
    if not forms.has_encodings(kind, forms.VIEWS):
        return kind
    if forms.is_json_type(kind):
        return pa.json_(without_views(kind.storage_type, large=large))
    if pa.types.is_binary_view(kind):
        return pa.large_binary() if large else pa.binary()
    if pa.types.is_string_view(kind):
        return pa.large_string() if large else pa.string()
    if pa.types.is_run_end_encoded(kind):
        return without_views(kind.value_type, large=large, lists=lists)
    if not lists and (pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
        return kind
    return forms.with_fields(kind, lambda field: field.with_type(without_views(field.type, large=large, lists=lists)))


def is_storage(kind: pa.DataType) -> bool:
    """Return whether a type has the shape of a Variant storage in any layout."""
    return find_layout(ArrowGroup(_plain_type(kind))) is not None


def named_variants(fields: Iterable[pa.Field]) -> list[str]:
    """Return the names of the fields that are marked as Variants; if there are none, of those with the shape of a
    Variant.
    """
    fields = list(fields)
    names = [field.name for field in fields if is_variant_field(field)]
    return names or [field.name for field in fields if is_storage(field.type)]


def variant_places(fields: Iterable[pa.Field], is_variant: Callable[[pa.Field], bool]) -> Iterator[tuple[str, ...]]:
    """Yield the names of each Variant and of the structs around it; lists and maps are not searched."""
    for child in fields:
        if is_variant(child):
            yield (child.name,)
        elif pa.types.is_struct(child.type):
            yield from ((child.name, *place) for place in variant_places(child.type, is_variant))


def chosen_variant(
    names: Sequence[str], column: str | None, error: type[VariantError], reason: str = "unknown-column"
) -> str:
    """Return the Variant column that a user chose from those of some data, or the only one."""
    if column is None and len(names) == 1:
        return names[0]
    if isinstance(column, str) and column in names:
        return column
    problem = f"the table has {'several Variant columns' if names else 'no Variant column'}"
    problem = problem if column is None else f"{column} is not a Variant column of the table"
    raise error(f"{problem}: choose one with column=, from {', '.join(names) or 'none'}", reason=reason)


def is_variant_field(field: pa.Field) -> bool:
    """Return whether a field is marked as a Variant, by the Arrow extension or as Spark marks its Variants.

    The extension's name is in the metadata of the field, or its type is the registered extension type, which writers
    must unwrap, because pyarrow's Parquet writer crashes on it.
    """
    name = (field.metadata or {}).get(_NAME_KEY, b"").decode("utf-8", "replace")
    return EXTENSION_NAME in (name, getattr(field.type, "extension_name", None)) or is_marked_by_spark(field.type)


def with_marks(field: pa.Field, is_variant: Callable[[pa.DataType], bool]) -> pa.Field:
    """Return a field in which Variants, at any depth, are marked by the Arrow extension; `is_variant`: their types."""
    if is_variant(field.type):
        return field.with_metadata({**(field.metadata or {}), **EXTENSION_METADATA})
    return field.with_type(forms.with_fields(field.type, partial(with_marks, is_variant=is_variant)))


def is_marked_by_spark(kind: pa.DataType) -> bool:
    """Return whether a type is the struct of ``value`` and ``metadata`` that Spark makes of a Variant column."""
    index = kind.get_field_index("metadata") if pa.types.is_struct(kind) else -1
    mark = (kind.field(index).metadata or {}) if index >= 0 else {}
    return mark.get(b"variant") == b"true" and kind.get_field_index("value") >= 0


def with_extension(field: pa.Field) -> pa.Field:
    """Return a field in which each Variant that Spark has marked is marked by the Arrow extension, nested ones too.

    A field without such Variants is returned itself.
    """
    if not _holds_mark(field.type):
        return field
    if not is_marked_by_spark(field.type):
        return field.with_type(forms.with_fields(field.type, with_extension))
    children = [child.remove_metadata() if child.name == "metadata" else child for child in field.type]
    return field.with_type(pa.struct(children)).with_metadata({**(field.metadata or {}), **EXTENSION_METADATA})


def _holds_mark(kind: pa.DataType) -> bool:
    children = (kind.field(index) for index in range(kind.num_fields))
    return is_marked_by_spark(kind) or any(_holds_mark(child.type) for child in children)


def _child(chunk: pa.StructArray, index: int) -> pa.Array:
    """Return a child column, null where the struct is null."""
    child = chunk.field(index)
    return child if chunk.null_count == 0 else child.take(pa.array(range(len(chunk)), mask=to_numpy(chunk.is_null())))
