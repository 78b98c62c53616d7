"""Facts that files prove about the paths of a Variant column: the only type of a path, and the keys that occur.

Owns conclusions that hold for every row of several files. Leaves the columns of a path to `projection`, and what
statistics prove about one row group to `path_statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from parquet_variant.array.parts import one_chunk
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.parquet.format.columns import choose_column
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.parquet.format.statistics import leaf_statistics, leaf_type
from parquet_variant.parquet.scanning.projection import columns_of_path, only_nulls
from parquet_variant.path import VariantPath


def common_type(sources: Iterable[ParquetSource], column: str, path: VariantPath) -> pa.DataType | None:
    """Return the Arrow type of every value at a path, or None if the footers do not prove that there is one.

    They prove it where each file shreds the path as that type, and no residual holds a value of another type or a
    Variant null.
    """
    common: pa.DataType | None = None
    for source in sources:
        with open_file(source) as file:
            file_type = _type_in_file(file, column, path)
        if file_type is None or (common is not None and file_type != common):
            return None
        common = file_type
    return common


def _type_in_file(file: OpenFile, column: str, path: VariantPath) -> pa.DataType | None:
    columns = columns_of_path(choose_column(file.schema, column, file.name), path, None)
    leaf = columns.primitive
    if leaf is None or columns.repeated or columns.needs_all:
        return None
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for residual in columns.residuals:
            assert residual.leaf is not None
            if not only_nulls(leaf_statistics(group.column(residual.leaf), residual), variant_nulls=False):
                return None
    return leaf_type(leaf)


def keys_of_files(sources: Sequence[ParquetSource], column: str | None) -> frozenset[str]:
    """Return every key of the objects in a Variant column, from shredded columns and metadata dictionaries."""
    keys: set[str] = set()
    metadata: set[bytes] = set()
    for source in sources:
        with open_file(source) as file:
            variant = choose_column(file.schema, column, file.name)
            keys |= {node.name for node in variant.node.walk()}  # a key of a typed object needs no dictionary entry
            leaf = variant.node.child("metadata")
            if leaf is not None and leaf.leaf is not None:
                for number in range(file.metadata.num_row_groups):
                    metadata |= _distinct(file.read_leaves([number], [leaf.leaf]))
    for dictionary in metadata:
        try:
            keys.update(decode_metadata(dictionary))
        except VariantError:  # whoever reads the row reports it
            continue
    return frozenset(keys)


def _distinct(table: pa.Table) -> set[bytes]:
    column = one_chunk(table.column(0))
    while pa.types.is_struct(column.type):
        column = column.flatten()[0]
    values = column.dictionary if pa.types.is_dictionary(column.type) else column.unique()
    return {bytes(value) for value in values.to_pylist() if value is not None}
