"""Storages of the final layout: shredding and unshredding, a batch at a time; and values with other ids of names.

Owns calling `kernels.shredding.shred` and `unshred`, building the address tables of the latter from a storage struct
(of any Arrow form and with any missing columns), and inserting the rows that only the scalar reference decides. Owns
also calling `kernels.operations.edit` for columns whose values get the ids of a common dictionary or metadata of their
own; and the names of shredded fields in the metadata, which are appended where a row lacks them, so that existing ids
stay valid. Leaves the drafts to `storages`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import (
    MetadataParts,
    binary_parts,
    columns_of,
    joined_storages,
    metadata_parts,
    storage_of,
    storage_of_variants,
    valid_bytes,
    variants_of,
    with_columns,
    with_fallback_rows,
)
from parquet_variant.arrays.value_positions import ValuePositions, canonical_nodes
from parquet_variant.encoding.metadata import decode_metadata, extend_metadata
from parquet_variant.kernels.arrow_buffers import Int64s, filled_binary, from_numpy, to_numpy
from parquet_variant.kernels.buffer_pool import acquire_block, adopt, release
from parquet_variant.kernels.memory import address_of, buffer_address, copy_spans
from parquet_variant.kernels.operations.edit import least_metadata, metadata_sizes
from parquet_variant.kernels.shredding.schema_table import FilledBuffers, SchemaTable, ShreddedRows, schema_table
from parquet_variant.kernels.shredding.unshred import INPUT, ShreddedColumns, assemble
from parquet_variant.kernels.values.reading import EncodedValues, NameTable, mark_lacking, name_table
from parquet_variant.kernels.values.value_nodes import RAW, value_array
from parquet_variant.layouts.reference import rows as scalar
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import OnConflict
from parquet_variant.types.forms import list_elements
from parquet_variant.types.path import WILDCARD, Wildcard


class NeedsReference(Exception):  # noqa: N818 - not an error
    """The kernels cannot convert some rows: the scalar reference must convert them."""


def needs_reference_if(condition: bool | np.bool_) -> None:
    """Raise `NeedsReference` if a condition is true."""
    if condition:
        raise NeedsReference


def split_combined(array: pa.Array) -> ValuePositions:
    """Return the values in ``metadata ‖ value`` binaries."""
    binaries = ValuePositions.of_column(array, MetadataParts(np.empty(0, np.int32), array[:0]))
    starts, sizes = np.where(binaries.is_present, binaries.starts, -1), np.empty(len(array), np.int64)
    metadata_sizes(starts, binaries.stops, sizes)
    needs_reference_if(np.any(sizes < 0))
    parts = metadata_parts(filled_binary(sizes, partial(copy_spans, starts, sizes), binaries.valid))
    metadata = parts._replace(indices=np.maximum(parts.indices, 0))
    return ValuePositions.at(binaries.starts + sizes, binaries.stops, metadata, binaries.owner)


def decided_nodes(spans: ValuePositions, map_of_names: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Return the nodes of values, and the first node of each; see `value_positions.canonical_nodes`."""
    nodes, row_start, refused = canonical_nodes(spans, map_of_names)
    needs_reference_if(refused.any())
    return nodes, row_start


def with_minimal_metadata(spans: ValuePositions, names: NameTable) -> tuple[pa.Array, pa.Array]:
    """Return the values with minimal metadata of only the names that each uses: the metadata, and the values."""
    nodes, row_start = decided_nodes(spans, (names.starts, names.rank))
    metadata = least_metadata(nodes, row_start, spans.metas, names, spans.valid)
    return metadata.dictionary_decode(), value_array(nodes, row_start, spans.valid)


def shredded_final(storage: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return an unshredded storage in the final layout; see `storages.shredded_storage`."""
    # Imported here because readers do not need the kernels that write.
    from parquet_variant.kernels.shredding.shred import shred_rows

    table = schema_table(schema)
    metadata = metadata_parts(storage.field("metadata"))
    value = binary_parts(storage.field("value"))
    names = name_table(metadata.dictionary)
    valid, rows = valid_bytes(storage), len(storage)
    values = EncodedValues(valid, value.offsets, value.address, metadata.indices)
    refused = np.zeros(rows, np.uint8)
    filled = FilledBuffers.of(table)
    shred_rows(values, table.named, names, refused, filled)
    shredded = ShreddedRows(table, metadata.column, valid if len(valid) else None, filled).storage()

    def by_fallback(row: int) -> pa.StructArray:
        return scalar.shredded_storage(variants_of(storage.slice(row, 1)), schema, "final")

    return with_fallback_rows(shredded, refused, by_fallback)


_NONE_VALID = -1


class TypedInputs:
    """The address table of a storage of the final layout, under its schema: ``int64[schema nodes, columns]``."""

    def __init__(self, storage: pa.StructArray, table: SchemaTable) -> None:
        self._table = table
        self._owners: list[Any] = []
        self.addresses = np.zeros((len(table.nodes), len(INPUT)), np.int64)
        self.addresses[:, (INPUT.VALUE_VALID, INPUT.TYPED_VALID)] = _NONE_VALID
        self._group(0, storage, optional=False)

    def _address(self, array: npt.NDArray[Any]) -> int:
        self._owners.append(array)
        return address_of(array)

    def _valid_address(self, array: pa.Array) -> int:
        if array.null_count == len(array):
            return _NONE_VALID if len(array) else 0
        valid = valid_bytes(array)
        return self._address(valid) if len(valid) else 0

    def _group(self, s: int, group: pa.StructArray, *, optional: bool = True) -> None:
        if optional:
            self.addresses[s, INPUT.GROUP_VALID] = self._valid_address(group)
        if (index := group.type.get_field_index("value")) >= 0:
            value = group.field(index)
            self.addresses[s, INPUT.VALUE_VALID] = self._valid_address(value)
            if self.addresses[s, INPUT.VALUE_VALID] != _NONE_VALID:
                parts = binary_parts(value)
                self._owners.append(parts.owner)
                self.addresses[s, INPUT.VALUE_OFFSETS] = self._address(parts.offsets)
                self.addresses[s, INPUT.VALUE_DATA] = parts.address
        index = group.type.get_field_index("typed_value")
        if index >= 0 and self._table.schemas[s].kind != "variant":
            self._typed_column(s, group.field(index))

    def _typed_column(self, s: int, typed: pa.Array) -> None:
        self.addresses[s, INPUT.TYPED_VALID] = self._valid_address(typed)
        schema = self._table.schemas[s]
        if schema.kind == "object":
            for child in self._table.children[s]:
                self._group(child, typed.field(self._table.names[child]))
        elif schema.kind == "array":
            if not (pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)):
                typed = typed.cast(pa.large_list(typed.type.value_field))
            self.addresses[s, INPUT.TYPED_OFFSETS] = self._address(to_numpy(typed.offsets).astype(np.int64))
            self._group(s + 1, typed.values)
        elif self.addresses[s, INPUT.TYPED_VALID] != _NONE_VALID:
            self._primitive(s, typed, schema.type)

    def _primitive(self, s: int, typed: pa.Array, target: pa.DataType | None) -> None:
        if not self._table.widths[s]:
            parts = binary_parts(typed)
            self._owners.append(parts.owner)
            self.addresses[s, INPUT.TYPED_OFFSETS] = self._address(parts.offsets)
            self.addresses[s, INPUT.TYPED_DATA] = parts.address
            return
        if pa.types.is_dictionary(typed.type) or pa.types.is_run_end_encoded(typed.type):
            typed = typed.cast(typed.type.value_type)
        if isinstance(typed.type, pa.BaseExtensionType):
            typed = typed.storage
        elif typed.type != target and not pa.types.is_fixed_size_binary(typed.type):
            typed = pc.cast(typed, target)
        self._owners.append(typed)
        data = typed.buffers()[1]
        if pa.types.is_boolean(typed.type):
            bits = np.frombuffer(data, np.uint8)
            slots = np.unpackbits(bits, count=typed.offset + len(typed), bitorder="little")[typed.offset :]
            self.addresses[s, INPUT.SLOTS] = self._address(slots)
        else:
            self.addresses[s, INPUT.SLOTS] = buffer_address(data) + typed.offset * self._table.widths[s]


def unshredded_final(storage: pa.StructArray, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return a shredded storage of the final layout as an unshredded one; see `storages.unshredded_storage`."""
    table = schema_table(storage.type)
    metadata = metadata_parts(storage.field("metadata"))
    plain, refused = assembled_storage(storage, table, metadata)
    if refused.any():
        # A writer may leave out names that no residual uses: the refused rows are read again with the names of fields.
        rows = np.flatnonzero(refused)
        named = with_field_names(storage.take(from_numpy(rows)))
        stored, completed = (
            MetadataParts(metadata.indices[rows], metadata.dictionary),
            metadata_parts(named.field("metadata")),
        )
        assembled, refused[rows] = assembled_storage(named, table, completed, stored)
        positions = np.arange(len(plain))
        positions[rows] = len(plain) + np.arange(len(rows))
        plain = joined_storages([plain, assembled]).take(from_numpy(positions))

    def by_fallback(row: int) -> pa.StructArray:
        return storage_of_variants(scalar.variants_of_storage(storage.slice(row, 1), on_conflict))

    return with_fallback_rows(plain, refused, by_fallback)


def with_field_names(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage of the final layout with the names of its shredded fields in the metadata.

    Spec, "Variant Metadata": "All field names of a Variant, whether shredded or not, must be present in the metadata."
    """
    columns = columns_of(storage)
    if "typed_value" not in columns:
        return storage
    metadata = metadata_parts(storage.field("metadata"))
    # The names of fields that rows have, but their metadata lacks, by dictionary entry.
    names = name_table(metadata.dictionary, repeated=True)
    missing_names: dict[int, list[str]] = defaultdict(list)
    pending: list[tuple[pa.Array, npt.NDArray[np.int32]]] = [(columns["typed_value"], metadata.indices)]
    while pending:
        for name, group, entry_of in groups_below(*pending.pop()):
            parts = columns_of(group)
            if "typed_value" in parts:
                pending.append((parts["typed_value"], entry_of))
            if not isinstance(name, str):
                continue
            encoded, lacks = np.frombuffer(name.encode() + b"\0", np.uint8), np.zeros(len(names.state), np.uint8)
            mark_lacking(address_of(encoded), len(encoded) - 1, names, lacks)
            if lacks.any():
                has_field = np.zeros(len(entry_of), np.bool_)
                for part in {"value", "typed_value"} & parts.keys():
                    has_field |= to_numpy(parts[part].is_valid())
                has_field &= (entry_of >= 0) & (lacks[entry_of] != 0)
                for entry in np.unique(entry_of[has_field]).tolist():
                    missing_names[entry].append(name)
    if not missing_names:
        return storage
    blobs = metadata.dictionary.to_pylist()
    for entry, missing in missing_names.items():
        blobs[entry] = extend_metadata(blobs[entry], missing)
    extended = MetadataParts(metadata.indices, pa.array(blobs, pa.binary()))
    return with_columns(storage, columns | {"metadata": extended.column})


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
    """Return every key of the objects in the storage of unshredded Variants."""
    metadata = storage.field("metadata")
    values = metadata.dictionary if pa.types.is_dictionary(metadata.type) else metadata.unique()
    return frozenset(key for value in values.to_pylist() if value is not None for key in decode_metadata(value))


class AssembledNodes(NamedTuple):
    """The rows of a shredded storage as nodes (see `kernels.values.value_nodes`)."""

    # The nodes, and the position of the first node of each row.
    nodes: npt.NDArray[np.int64]
    row_start: npt.NDArray[np.int64]
    names: NameTable  # The names of the dictionaries.
    refused: npt.NDArray[np.uint8]  # A flag for each row that the kernel does not decide; such a row has no nodes.
    owner: TypedInputs  # Keeps the bytes alive that nodes point to; dictionary columns are copied.


def assembled_nodes(storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts) -> AssembledNodes:
    """Return the rows as nodes."""
    rows = len(storage)
    inputs = TypedInputs(storage, table)
    names = name_table(metadata.dictionary, repeated=True)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    exported = assemble(
        ShreddedColumns(valid_bytes(storage), metadata.indices, inputs.addresses),
        table.named,
        names,
        row_start,
        refused,
        table.schema.depth,
        acquire_block(),
    )
    return AssembledNodes(adopt(*exported)[: row_start[-1]], row_start, names, refused, inputs)


def assembled_storage(
    storage: pa.StructArray, table: SchemaTable, metadata: MetadataParts, stored_metadata: MetadataParts | None = None
) -> tuple[pa.StructArray, np.ndarray]:
    """Return the rows that the kernel decides, and a flag for each other row.

    ``stored_metadata`` is the metadata of the rows, if ``metadata`` has additional names, which no field of a residual
    may use.
    """
    nodes, row_start, _, refused, inputs = assembled_nodes(storage, table, metadata)
    if stored_metadata is not None:
        pieces = nodes[nodes[:, 0] & 0xFF == RAW]
        rows = np.searchsorted(row_start, np.flatnonzero(nodes[:, 0] & 0xFF == RAW), "right") - 1
        names = name_table(stored_metadata.dictionary, repeated=True)
        starts = pieces[:, 1].copy()
        metadata_of_pieces = stored_metadata._replace(indices=stored_metadata.indices[rows])
        spans = ValuePositions.at(starts, starts + pieces[:, 2], metadata_of_pieces, inputs)
        refused[rows[canonical_nodes(spans, (names.starts, names.rank))[2] != 0]] = 1
    valid, value = valid_bytes(storage), value_array(nodes, row_start)
    release(nodes)
    return storage_of(metadata.column, value, from_numpy(valid == 0) if len(valid) else None), refused
