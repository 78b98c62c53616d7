"""Columns of values as JSON text.

Owns the choice between the kernels for shredded and for unshredded columns, and slicing a large column for threads.
Batches are written by `kernels.operations.to_json`, rows that the kernels refuse by `encoding.json_writer`.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.final_columns import assembled_nodes
from parquet_variant.arrays.parts import binary_parts, metadata_parts, valid_bytes, variant_at, with_fallback_rows
from parquet_variant.arrays.storages import unshredded_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_choice
from parquet_variant.kernels.buffer_pool import adopt_bytes, release
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.operations.to_json import QuotedNames, quote_names, write_json_nodes, write_json_rows
from parquet_variant.kernels.shredding.schema_table import schema_table
from parquet_variant.kernels.values.reading import EncodedValues, NameTable, name_table
from parquet_variant.ops.columns.arguments import joined_slices, text_column
from parquet_variant.support.options import OnConflict

_MAX_DEPTH = 1000


def json_column(array: VariantArray, on_conflict: OnConflict = "error", threads: int | None = None) -> pa.Array:
    """Return the JSON text of each row of a column of any layout, null for SQL NULL.

    Raises `MalformedVariantError` for invalid bytes and `ConflictError` for contradictory shredded columns.
    """
    check_choice("on_conflict", on_conflict, get_args(OnConflict))

    def texts_of(part: VariantArray) -> pa.Array:
        if part.layout == "final" and (json_rows := _shredded_json(part.storage)) is not None:
            return json_rows
        return _unshredded_texts(unshredded_storage(part.storage, part.layout, on_conflict))

    return joined_slices(texts_of, array, threads)


def _shredded_json(storage: pa.StructArray) -> pa.Array | None:
    """Return the JSON text of a shredded storage; None if the kernels refused a row."""
    metadata = metadata_parts(storage.field("metadata"))
    nodes, row_start, names, refused, _owner = assembled_nodes(storage, schema_table(storage.type), metadata)
    if refused.any():
        return None
    names_text, starts = _quote_names(names)
    quoted = QuotedNames(address_of(names_text), starts)
    offsets = np.empty(len(storage) + 1, np.int64)
    exported = write_json_nodes(nodes, row_start, metadata.indices, names, quoted, offsets, refused, _MAX_DEPTH)
    release(nodes)
    text = adopt_bytes(*exported)
    return None if refused.any() else text_column(text, offsets, valid_bytes(storage))


def _quote_names(names: NameTable) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return all names as JSON strings with a colon, concatenated, and the start of each."""
    starts = np.empty(len(names.address) + 1, np.int64)
    return adopt_bytes(*quote_names(names.address, names.length, starts)), starts


def _unshredded_texts(storage: pa.StructArray) -> pa.Array:
    metadata, value = metadata_parts(storage.field("metadata")), binary_parts(storage.field("value"))
    names = name_table(metadata.dictionary, repeated=True)
    names_text, starts = _quote_names(names)
    rows, valid = len(storage), valid_bytes(storage)
    offsets, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    exported = write_json_rows(
        EncodedValues(valid, value.offsets, value.address, metadata.indices), names,
        QuotedNames(address_of(names_text), starts), offsets, refused, _MAX_DEPTH,
    )  # fmt: skip
    text = text_column(adopt_bytes(*exported), offsets, valid)
    return with_fallback_rows(text, refused, lambda row: pa.array([variant_at(storage, row).to_json()]))
