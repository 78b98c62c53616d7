"""The values in the ``value`` columns of a shredded file, read without its typed columns.

Owns reading these columns within a limit on bytes, and the rows of their values. In a well-shredded file they are a
small part of the bytes, and together with the footer they describe every value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.footer_cache import Handle, Reader
from parquet_variant.path import VariantPath
from parquet_variant.quality.footers import FileFacts, FileFooter, open_paths

# Names of the levels of a list in the schema of a file.
_LIST_LEVELS = 2


class CountedHandle(Handle):
    """A file for pyarrow that counts the bytes that are read."""

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__(stream)
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        data = super().read(size)
        self.bytes_read += len(data)
        return data


class ResidualValues(NamedTuple):
    """Values of one path in the ``value`` column, without nulls, and their row in the file."""

    path: VariantPath
    values: VariantArray
    rows: npt.NDArray[np.int64]


def residual_bytes(facts: FileFacts) -> int:
    """Return the number of compressed bytes that `read_residuals` reads."""
    return sum(
        facts.footer.metadata.row_group(number).column(leaf).total_compressed_size
        for number, leaves in _leaves_by_group(facts)
        for leaf in leaves
    )


def _leaves_by_group(facts: FileFacts) -> Iterator[tuple[int, list[int]]]:
    """Yield the row groups with values that the footer does not describe, and the columns that hold them."""
    metadata = facts.column.node.child("metadata")
    for number in range(facts.footer.metadata.num_row_groups):
        nodes = [facts.residual for _, facts in _open_in(facts, number)]
        leaves = [node.leaf for node in (metadata, *nodes) if node is not None and node.leaf is not None]
        if nodes:
            yield number, leaves


class _Open(NamedTuple):
    path: VariantPath
    residual: SchemaNode


def _open_in(facts: FileFacts, number: int) -> list[tuple[VariantPath, _Open]]:
    return [
        (path, _Open(path, group.group.residual))
        for path, group in open_paths(facts)
        if number in group.open_groups and group.group.residual is not None
    ]


def read_residuals(facts: FileFacts) -> Iterator[ResidualValues] | None:
    """Yield the values that the footer does not describe; None if a column is stored in an unknown form of list."""
    if any(_is_in_old_list(facts, path, group.group.residual) for path, group in open_paths(facts)):
        return None
    return _read(facts)


def _is_in_old_list(facts: FileFacts, path: VariantPath, residual: SchemaNode | None) -> bool:
    """Return whether a column is in a list without the three levels of the specification."""
    if residual is None or not path.has_wildcard:
        return False
    names = residual.path
    return any(names[at + 1] != "element" for at, name in enumerate(names[:-1]) if name == "list" and at)


def _read(facts: FileFacts) -> Iterator[ResidualValues]:
    footer = facts.footer
    first_row = 0
    starts = []
    for number in range(footer.metadata.num_row_groups):
        starts.append(first_row)
        first_row += footer.metadata.row_group(number).num_rows
    for number, leaves in _leaves_by_group(facts):
        table = read_leaves(footer, number, leaves)
        top = one_chunk(table.column(facts.column.path[0]))
        rows = np.arange(len(top), dtype=np.int64)
        for name in facts.column.path[1:]:
            top = pc.struct_field(top, [name])
        metadata = pc.struct_field(top, ["metadata"])
        depth = len(facts.column.path)
        for path, found in _open_in(facts, number):
            values, at = _flattened(top, found.residual.path[depth:], rows)
            is_value = np.asarray(values.is_valid())
            values, at = values.filter(pa.array(is_value)), at[is_value]
            storage = pa.StructArray.from_arrays([metadata.take(pa.array(at)), values], ["metadata", "value"])
            yield ResidualValues(path, VariantArray.from_storage(storage), at + starts[number])


def read_leaves(footer: FileFooter, row_group: int, leaves: Sequence[int]) -> pa.Table:
    """Read some leaf columns of a row group; raises `VariantFileError` if they are damaged."""
    source = footer.source
    try:
        with source.filesystem.open_input_file(source.path) as stream:
            reader = Reader(Handle(stream), footer.metadata)
            return reader.reader.read_row_group(row_group, column_indices=sorted(leaves), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise VariantFileError(
            f"cannot read the data of {source.path}: {error}; write the file again", reason="bad-data", file=source.path
        ) from None


def _flattened(
    array: pa.Array, names: Sequence[str], rows: npt.NDArray[np.int64]
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return a nested column as a flat array, null where a parent is null, and the row of each entry."""
    at = 0
    while at < len(names):
        if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            rows = rows[np.asarray(pc.list_parent_indices(array))]
            array = pc.list_flatten(array)
            at += _LIST_LEVELS
        else:
            array = pc.struct_field(array, [names[at]])
            at += 1
    return array, rows
