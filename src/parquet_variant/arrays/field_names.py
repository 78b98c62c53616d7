"""Metadata with the names of all shredded fields, as the specification requires.

Owns finding names of shredded fields that the metadata of a row lacks, and appending them, so that existing ids stay
valid. Malformed metadata is not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import MetadataParts, columns_of, metadata_parts, with_columns
from parquet_variant.encoding.metadata import decode_metadata, extend_metadata
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.values.reading import mark_lacking, name_table
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import list_elements
from parquet_variant.types.path import WILDCARD, Wildcard


def with_field_names(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage of the final layout with the names of its shredded fields in the metadata.

    Spec, "Variant Metadata": "All field names of a Variant, whether shredded or not, must be present in the metadata."
    """
    columns = columns_of(storage)
    if "typed_value" not in columns:
        return storage
    metadata = metadata_parts(storage.field("metadata"))
    missing_names = _missing_names(columns["typed_value"], metadata)
    if not missing_names:
        return storage
    blobs = metadata.dictionary.to_pylist()
    for entry, names in missing_names.items():
        blobs[entry] = extend_metadata(blobs[entry], names)
    extended = MetadataParts(metadata.indices, pa.array(blobs, pa.binary()))
    return with_columns(storage, columns | {"metadata": extended.column})


def _missing_names(typed: pa.Array, metadata: MetadataParts) -> dict[int, list[str]]:
    """Return, by dictionary entry, the names of fields that its rows have but the entry lacks."""
    names = name_table(metadata.dictionary, repeated=True)
    missing_names: dict[int, list[str]] = defaultdict(list)
    pending: list[tuple[pa.Array, npt.NDArray[np.int32]]] = [(typed, metadata.indices)]
    while pending:
        for name, group, entry_of in groups_below(*pending.pop()):
            columns = columns_of(group)
            if "typed_value" in columns:
                pending.append((columns["typed_value"], entry_of))
            if not isinstance(name, str):
                continue
            encoded, lacks = np.frombuffer(name.encode() + b"\0", np.uint8), np.zeros(len(names.state), np.uint8)
            mark_lacking(address_of(encoded), len(encoded) - 1, names, lacks)
            if lacks.any():
                has_field = np.zeros(len(entry_of), np.bool_)
                for part in {"value", "typed_value"} & columns.keys():
                    has_field |= to_numpy(columns[part].is_valid())
                has_field &= (entry_of >= 0) & (lacks[entry_of] != 0)
                for entry in np.unique(entry_of[has_field]).tolist():
                    missing_names[entry].append(name)
    return missing_names


def groups_below(
    typed: pa.Array, rows: npt.NDArray[Any]
) -> Iterator[tuple[str | Wildcard, pa.StructArray, npt.NDArray[Any]]]:
    """Yield the groups of fields, or of elements, in a ``typed_value``, with the row of each entry."""
    if is_list(typed.type):
        lengths = np.where(to_numpy(typed.is_valid()), to_numpy(pc.list_value_length(typed)), 0)
        groups: dict[str | Wildcard, pa.Array] = {WILDCARD: list_elements(typed)}
        rows = np.repeat(rows, lengths)
    else:
        groups = dict(columns_of(typed).items()) if pa.types.is_struct(typed.type) else {}
    return ((name, group, rows) for name, group in groups.items() if pa.types.is_struct(group.type))


def keys_of_storage(storage: pa.StructArray) -> frozenset[str]:
    """Return every key of the objects in the storage of unshredded Variants.

    Raises `MalformedVariantError` for malformed metadata.
    """
    metadata = storage.field("metadata")
    values = metadata.dictionary if pa.types.is_dictionary(metadata.type) else metadata.unique()
    return frozenset(key for value in values.to_pylist() if value is not None for key in decode_metadata(value))
