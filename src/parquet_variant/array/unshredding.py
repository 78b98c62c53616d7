"""Shredded storages (final layout) to unshredded ones, a batch at a time.

Owns calling `kernels.shredding.unshred` and putting in the rows that only the scalar fallback decides. Leaves the
drafts to `storages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import MetadataParts, metadata_parts, storage_of, valid_bytes
from parquet_variant.array.row_by_row import with_fallback_rows
from parquet_variant.array.typed_inputs import TypedInputs
from parquet_variant.choices import OnConflict
from parquet_variant.encoding.metadata import extend_metadata
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.buffer_pool import acquire_block, adopt, release
from parquet_variant.kernels.operations.canonical_nodes import canonical_nodes
from parquet_variant.kernels.shredding.schema_table import SchemaTable, schema_table
from parquet_variant.kernels.shredding.unshred import ShreddedRows, assemble
from parquet_variant.kernels.values.name_tables import NameTable, name_table
from parquet_variant.kernels.values.value_nodes import RAW, value_array
from parquet_variant.layouts import storages as scalar
from parquet_variant.schema.shredding_schema import ShreddingSchema


def unshredded_final(storage: pa.StructArray, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Put the values of a shredded storage of the final layout together; see `storages.unshredded_storage`."""
    table = schema_table(ShreddingSchema.from_storage(storage.type))
    metadata = metadata_parts(storage.field("metadata"))
    plain, refused = assembled_storage(storage, table, metadata)
    if refused.any():
        plain, refused = _with_names_of_fields(storage, table, metadata, plain, refused)
    return with_fallback_rows(plain, refused, lambda row: scalar.unshredded_storage(storage.slice(row, 1), on_conflict))


def _with_names_of_fields(
    storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts, plain: pa.StructArray, refused: np.ndarray
) -> tuple[pa.StructArray, np.ndarray]:
    """Look at the refused rows once more, now with metadata that has the names of all shredded fields.

    A writer may leave out of it what is in no residual.
    """
    rows = np.flatnonzero(refused)
    names = [name for name in table.names if name is not None]
    used = np.unique(metadata.indices[rows])
    used = used[used >= 0]
    extended = MetadataParts(
        np.where(metadata.indices[rows] < 0, -1, np.searchsorted(used, metadata.indices[rows])).astype(np.int32),
        pa.array([_extended(metadata.dictionary[d].as_py(), names) for d in used.tolist()], pa.binary()),
    )
    own = MetadataParts(metadata.indices[rows], metadata.dictionary)
    again, still_refused = assembled_storage(storage.take(from_numpy(rows)), table, extended, own)
    where = np.arange(len(plain))
    where[rows] = len(plain) + np.arange(len(rows))
    known = plain.field("metadata").dictionary
    indices = np.concatenate([plain.field("metadata").indices, np.maximum(extended.indices, 0) + len(known)])
    joined = MetadataParts(indices.astype(np.int32)[where], pa.concat_arrays([known, extended.column.dictionary]))
    values = [plain.field("value"), again.field("value")]
    if values[0].type != values[1].type:
        values = [value.cast(pa.large_binary()) for value in values]
    refused = np.zeros(len(plain), np.uint8)
    refused[rows] = still_refused
    valid = valid_bytes(storage)
    value = pa.concat_arrays(values).take(from_numpy(where))
    return _struct(joined, value, valid if len(valid) else None), refused


def _extended(metadata: bytes, names: Sequence[str]) -> bytes:
    """With the names, unless it is malformed: the scalar fallback tells how."""
    try:
        return extend_metadata(metadata, names)
    except MalformedVariantError:
        return metadata


class AssembledNodes(NamedTuple):
    """The rows of a shredded storage as nodes (see `kernels.values.value_nodes`)."""

    # The nodes, and where each row's start.
    nodes: npt.NDArray[np.int64]
    row_start: npt.NDArray[np.int64]
    names: NameTable  # The names of the dictionaries.
    refused: npt.NDArray[np.uint8]  # A flag for each row that the kernel leaves; it has no nodes.


def assembled_nodes(storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts) -> AssembledNodes:
    """Put the rows together as nodes."""
    rows = len(storage)
    inputs = TypedInputs(storage, table)
    names = name_table(metadata.dictionary, repeated=True)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    scratch = np.empty(3 * storage.nbytes + 64, np.uint8)  # hardly ever touched, so hardly ever memory
    exported = assemble(
        ShreddedRows(valid_bytes(storage), metadata.indices, inputs.addresses),
        table.named,
        names,
        row_start,
        refused,
        table.schema.depth,
        scratch,
        acquire_block(),
    )
    return AssembledNodes(adopt(*exported)[: row_start[-1]], row_start, names, refused)


def assembled_storage(
    storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts, own: MetadataParts | None = None
) -> tuple[pa.StructArray, np.ndarray]:
    """The rows that the kernel decides, and a flag for each of the others.

    ``own`` is the metadata that the rows have, if ``metadata`` has more names: they name no field of a residual.
    """
    nodes, row_start, _, refused = assembled_nodes(storage, table, metadata)
    if own is not None:
        refused[_rows_of_unsound_pieces(nodes, row_start, own)] = 1
    valid, value = valid_bytes(storage), value_array(nodes, row_start)
    release(nodes)
    return _struct(metadata, value, valid if len(valid) else None), refused


def _rows_of_unsound_pieces(
    nodes: npt.NDArray[np.int64], row_start: npt.NDArray[np.int64], own: MetadataParts
) -> npt.NDArray[np.int64]:
    """The rows with bytes to be copied that are malformed, or have ids that their own metadata does not have."""
    pieces = nodes[nodes[:, 0] & 0xFF == RAW]
    rows = np.searchsorted(row_start, np.flatnonzero(nodes[:, 0] & 0xFF == RAW), "right") - 1
    names = name_table(own.dictionary, repeated=True)
    piece_start, unsound = np.empty(len(pieces) + 1, np.int64), np.zeros(len(pieces), np.uint8)
    starts = pieces[:, 1].copy()
    exported = canonical_nodes(
        starts, starts + pieces[:, 2], own.indices[rows], names.starts, names.rank, piece_start, unsound
    )
    adopt(*exported)
    return rows[unsound != 0]


def _struct(metadata: MetadataParts, value: pa.Array, valid: np.ndarray | None) -> pa.StructArray:
    return storage_of(metadata.column, value, None if valid is None else from_numpy(valid == 0))
