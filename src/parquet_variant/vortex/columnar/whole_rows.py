"""The struct of a columnar column as whole rows, without columns for what lies there as bytes.

Owns giving all bytes one dictionary, and putting them among the other values as they are. Leaves the struct to
`storage`, and the other values to `decode`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from parquet_variant.array.parts import metadata_of_all, storage_of
from parquet_variant.array.remapping import Undecided, dictionary_names, remapped, spans_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.columns.value_positions import ValuePositions
from parquet_variant.kernels.kinds import OBJECT
from parquet_variant.kernels.values.value_nodes import RAW
from parquet_variant.vortex.columnar.column import Child, Column, Field
from parquet_variant.vortex.columnar.decode import decode_columnar
from parquet_variant.vortex.columnar.storage import from_storage


def whole_rows(storage: pa.StructArray) -> VariantArray:
    """The values of a columnar column, unshredded.

    >>> import parquet_variant as pv
    >>> from parquet_variant.vortex.columnar.storage import to_storage
    >>> rows = pv.parse_json(['{"a": 1, "b": [1, "x"]}', None, '{"a": {"b": null}}'])
    >>> whole_rows(to_storage(pv.vortex.encode(rows, "columnar"))).to_pylist()
    [{'a': 1, 'b': [1, 'x']}, None, {'a': {'b': None}}]
    """
    try:
        names = sorted(set(_names(storage)))
        columnar = from_storage(storage, partial(_as_bytes, names))
    except Undecided:  # bytes whose names cannot be given other ids: they must become columns
        return from_storage(storage).to_variant()
    return decode_columnar(columnar.size, columnar.column, columnar.present, names)


def _names(group: pa.StructArray) -> Iterator[str]:
    """All names of fields, those of columns and those in bytes."""
    for field in group.type:
        if field.name == "object":
            below = group.field("object")
            for index, each in enumerate(below.type):
                yield each.name
                yield from _names(below.field(index))
        elif field.name == "array":
            yield from _names(group.field("array").values)
        elif field.name == "rest":
            for names in _dictionaries(group.field("rest"))[1]:
                yield from names


def _dictionaries(rest: pa.StructArray) -> tuple[pa.DictionaryArray, list[list[str]]]:
    metadata = rest.field("metadata")
    encoded = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
    return encoded, dictionary_names(encoded.dictionary.cast(pa.binary()).filter(encoded.dictionary.is_valid()))


def _as_bytes(names: list[str], rest: pa.StructArray) -> Column:
    """Objects whose fields are encoded values, or other values that are: under the ids of `names`."""
    encoded, own = _dictionaries(rest)
    id_of = {name: number for number, name in enumerate(names)}
    indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    value = remapped(spans_of(rest.field("value"), indices), [[id_of[name] for name in each] for each in own])
    storage = storage_of(metadata_of_all(names, len(value)), value)
    offsets, are_objects, ids, values_of_fields = ValuePositions.of_storage(storage).fields()
    if not are_objects.any():
        return Column(len(value), (Child(RAW, len(value), values=value),))
    order = np.argsort(ids, kind="stable")
    values = values_of_fields.storage().field("value").take(pa.array(order))
    rows, ids = np.repeat(np.arange(len(value)), np.diff(offsets))[order], ids[order]
    bounds = np.flatnonzero(np.diff(ids, prepend=-1, append=-1))
    fields = {}
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values_of_name = Child(RAW, stop - start, values=values.slice(start, stop - start))
        fields[names[ids[start]]] = Field(rows[start:stop], Column(stop - start, (values_of_name,)))
    return Column(len(value), (Child(OBJECT, len(value), fields=fields),))
