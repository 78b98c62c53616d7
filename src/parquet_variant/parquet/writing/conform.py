"""A Variant's storage as the file must have it: which groups and columns are required, and no encodings Parquet lacks.

Owns nullability and field names of the storage struct on its way into a file. Leaves values alone: nothing is decoded.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.encoding.cast.forms import without_encoding

__all__ = ["conform"]

_EMPTY_METADATA = b"\x01\x00\x00"
_VARIANT_NULL = b"\x00"


def conform(storage: pa.StructArray, layout: str, *, value_first: bool = False) -> pa.StructArray:
    """The same values in the shape that the specification asks of a file.

    Parameters
    ----------
    storage
        The storage of a VariantArray.
    layout
        ``"unshredded"`` or ``"final"``; the drafts, whose columns are all optional, come back unchanged.
    value_first
        Put ``value`` before ``metadata`` in the unshredded layout, as some readers that go by position ask for.

    Notes
    -----
    Spec, "Value Shredding": ``metadata`` is required; ``value`` is required if there is no ``typed_value``;
    "Objects": field groups are required; "Arrays": the element group is required. A row or element that must have a
    value and has none gets Variant null, as readers must take it.
    """
    if layout not in ("unshredded", "final"):
        return storage
    names = [field.name for field in storage.type]
    children = dict(zip(names, storage.flatten(), strict=True))
    metadata = _dictionary(_filled(_plain(children["metadata"]), _EMPTY_METADATA))
    value = _binary(children["value"]) if "value" in children else pa.nulls(len(storage), pa.binary())
    shredded = "typed_value" in children
    if not shredded:
        value = _filled(value, _VARIANT_NULL)
    arrays: list[pa.Array] = [metadata, value]
    fields = [pa.field("metadata", metadata.type, nullable=False), pa.field("value", value.type, nullable=shredded)]
    if shredded:
        typed = _typed(children["typed_value"])
        fields.append(pa.field("typed_value", typed.type))
        arrays.append(typed)
    elif value_first:
        arrays.reverse()
        fields.reverse()
    mask = storage.is_null() if storage.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _plain(array: pa.Array) -> pa.Array:
    return without_encoding(array) if pa.types.is_run_end_encoded(array.type) else array


def _binary(value: pa.Array) -> pa.Array:
    """A residual as plain binary, large only if it must be."""
    value = without_encoding(value)
    if value.type == pa.binary() or (pa.types.is_large_binary(value.type) and value.nbytes >= 2**31 - 1):
        return value
    return value.cast(pa.binary())


def _dictionary(metadata: pa.Array) -> pa.Array:
    """Metadata in the one form that lets batches of any origin share a file."""
    kind = pa.dictionary(pa.int32(), pa.binary())
    if metadata.type == kind:
        return metadata
    if pa.types.is_dictionary(metadata.type):
        dictionary, indices = metadata.dictionary.cast(pa.binary()), metadata.indices.cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    return metadata.cast(pa.binary()).dictionary_encode()


def _filled(array: pa.Array, filler: bytes) -> pa.Array:
    """No nulls: also where the whole row is null, since a required column under an absent group must not have any."""
    if not array.null_count:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
        return _filled(array, filler).dictionary_encode()
    return pc.fill_null(array, pa.scalar(filler, array.type))


def _pair(group: pa.StructArray) -> pa.StructArray:
    """A field or element group: required, always with ``value``, since some readers miss it otherwise."""
    # Flattening hands a null group's absence down to both columns: missing, as the specification writes it.
    arrays = group.flatten() if group.null_count else _children(group)
    columns = dict(zip((field.name for field in group.type), arrays, strict=True))
    value = _binary(columns["value"]) if "value" in columns else pa.nulls(len(group), pa.binary())
    pair = {"value": value}
    if "typed_value" in columns:
        pair["typed_value"] = _typed(columns["typed_value"])
    return pa.StructArray.from_arrays(
        list(pair.values()), fields=[pa.field(name, child.type) for name, child in pair.items()]
    )


def _children(group: pa.StructArray) -> list[pa.Array]:
    return [group.field(index) for index in range(group.type.num_fields)]


def _typed(array: pa.Array) -> pa.Array:
    if pa.types.is_struct(array.type):
        named = [
            (field.name, _pair(child))
            for field, child in zip(array.type, _children(array), strict=True)
            if not field.name.startswith("_") or pa.types.is_struct(field.type)
        ]
        fields = [pa.field(name, child.type, nullable=False) for name, child in named]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays([child for _, child in named], fields=fields, mask=mask)
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        large = pa.types.is_large_list_view(array.type)
        array = array.cast((pa.large_list if large else pa.list_)(array.type.value_type))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        large = pa.types.is_large_list(array.type)
        elements = _pair(array.values)
        list_type = (pa.large_list if large else pa.list_)(pa.field("element", elements.type, nullable=False))
        # Same offsets and validity over the conformed elements: swap the child, keep the rest.
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(list_type, len(array), buffers, array.null_count, array.offset, [elements])
    return array
