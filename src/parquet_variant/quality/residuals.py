"""The values in the ``value`` columns of a shredded file, read without its typed columns.

Owns reading these columns within a limit on bytes, and the rows of their values. In a well-shredded file they are a
small part of the bytes, and together with the footer they describe every value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.footer_cache import Handle, Reader
from parquet_variant.path import VariantPath
from parquet_variant.quality.footers import FileFacts, FileFooter, open_paths
from parquet_variant.support import arrow_compute as pc

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


def residual_sizes(facts: FileFacts) -> dict[VariantPath, int]:
    """Return the compressed bytes of the ``value`` columns that the footer does not describe, by path."""
    metadata = facts.footer.metadata
    return {
        path: sum(
            metadata.row_group(number).column(residual.leaf).total_compressed_size for number in group.open_groups
        )
        for path, group in open_paths(facts)
        for residual in (group.group.residual,)
        if residual is not None
    }


def dictionary_bytes(facts: FileFacts) -> int:
    """Return the compressed bytes of the column with the names of fields, which values need."""
    numbers = range(facts.footer.metadata.num_row_groups)
    return _chunk_bytes(facts, facts.column.node.child("metadata"), numbers)


def _chunk_bytes(facts: FileFacts, node: SchemaNode | None, row_groups: Iterable[int]) -> int:
    metadata = facts.footer.metadata
    if node is None:
        return 0
    return sum(metadata.row_group(number).column(node.leaf).total_compressed_size for number in row_groups)


def read_residuals(facts: FileFacts, paths: Collection[VariantPath]) -> Iterator[ResidualValues]:
    """Yield the values at some paths that the footer does not describe."""
    first_row = 0
    for number in range(facts.footer.metadata.num_row_groups):
        columns = {
            path: group.group.residual
            for path, group in open_paths(facts)
            if number in group.open_groups and path in paths and group.group.residual is not None
        }
        if columns:
            yield from _read(facts, number, columns, first_row)
        first_row += facts.footer.metadata.row_group(number).num_rows


def has_old_list(facts: FileFacts, path: VariantPath) -> bool:
    """Return whether a path is in a list without the three levels of the specification."""
    residual = facts.groups[path].group.residual
    if residual is None or not path.has_wildcard:
        return False
    names = residual.path
    return any(names[at + 1] != "element" for at, name in enumerate(names[:-1]) if name == "list" and at)


def _read(
    facts: FileFacts, number: int, columns: Mapping[VariantPath, SchemaNode], first_row: int
) -> Iterator[ResidualValues]:
    nodes = [facts.column.node.child("metadata"), *columns.values()]
    leaves = [node.leaf for node in nodes if node is not None and node.leaf is not None]
    table = read_leaves(facts.footer, number, leaves, leaves[:1])
    top = nested_array(table, facts.column.path)
    metadata = pc.struct_field(top, ["metadata"])
    for path, residual in columns.items():
        rows = np.arange(len(top), dtype=np.int64)
        values, rows = _flattened(top, residual.path[len(facts.column.path) :], rows)
        is_value = np.asarray(values.is_valid())
        values, rows = values.filter(pa.array(is_value)), rows[is_value]
        storage = pa.StructArray.from_arrays([metadata.take(pa.array(rows)), values], ["metadata", "value"])
        yield ResidualValues(path, VariantArray.from_storage(storage), rows + first_row)


def read_leaves(
    footer: FileFooter, row_group: int, leaves: Sequence[int], dictionaries: Sequence[int] = ()
) -> pa.Table:
    """Read some leaf columns of a row group, some of them as dictionaries.

    Raises `VariantFileError` if the columns are damaged.
    """
    source = footer.source
    try:
        with source.filesystem.open_input_file(source.path) as stream:
            reader = Reader(Handle(stream), footer.metadata, dictionaries)
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
