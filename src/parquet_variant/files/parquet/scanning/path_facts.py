"""What files prove about the paths of a Variant column, for every row of several files.

Owns these conclusions: the only type of a path, and the keys that occur. Leaves the facts of a file to `format.facts`,
and the columns of a path to `projection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.scanning.projection import columns_of_path
from parquet_variant.types.path import WILDCARD, VariantPath


def common_type(
    sources: Iterable[ParquetSource], column: str, path: VariantPath, *, nulls: bool = True
) -> pa.DataType | None:
    """Return the Arrow type of every value at a path, or None if the footers do not prove that there is one.

    They prove it where each file shreds the path as that type, and no residual holds a value of another type.
    `nulls`: whether values may also be Variant null.
    """
    common: pa.DataType | None = None
    for source in sources:
        with open_file(source) as file:
            columns = columns_of_path(choose_column(file.schema, column, file.name), path, None)
            leaf = columns.primitive
            if leaf is None or columns.repeated or columns.needs_all:
                return None
            if not all(file.facts.is_empty(residual, variant_nulls=nulls) for residual in columns.residuals):
                return None
        file_type = leaf_type(leaf)
        if file_type is None or common not in (None, file_type):
            return None
        common = file_type
    return common


def leaf_of_elements(
    sources: Iterable[ParquetSource], column: str, path: VariantPath
) -> tuple[VariantPath, pa.DataType] | None:
    """Return a typed path inside the elements of the arrays at a path, if the footers prove that all values are arrays.

    The list of its values has one entry per element. Of several such paths, the one with the smallest column is chosen.
    """
    leaves: dict[VariantPath, pa.DataType] | None = None
    for source in sources:
        with open_file(source) as file:
            of_file = _leaves_of_elements(file, column, path)
        leaves = of_file if leaves is None else {p: kind for p, kind in leaves.items() if of_file.get(p) == kind}
        if not leaves:
            return None
    return next(iter(leaves.items())) if leaves else None


def _leaves_of_elements(file: OpenFile, column: str, path: VariantPath) -> dict[VariantPath, pa.DataType]:
    """Return the typed paths inside the elements of arrays, the smallest column first; none if not all are arrays."""
    variant = choose_column(file.schema, column, file.name)
    columns = columns_of_path(variant, path, None)
    typed, residual = columns.group.child("typed_value"), columns.group.child("value")
    if not columns.reached or columns.repeated or typed is None or typed.is_leaf or not typed.is_list:
        return {}
    if residual is not None and not file.facts.is_empty(residual):
        return {}
    inner = typed.element.child("typed_value")
    fields = {} if inner is None or inner.is_leaf else inner.fields
    candidates = [path / WILDCARD, *(path / WILDCARD / key for key in fields)]
    sizes: dict[VariantPath, tuple[int, pa.DataType]] = {}
    for candidate in candidates:
        part = columns_of_path(variant, candidate, None)
        if part.primitive is None or not all(file.facts.is_empty(leaf) for leaf in part.residuals):
            continue
        if (kind := leaf_type(part.primitive)) is not None:
            sizes[candidate] = file.facts.size([part.primitive]), kind
    return {candidate: sizes[candidate][1] for candidate in sorted(sizes, key=lambda key: sizes[key][0])}


def residual_objects(
    sources: Iterable[ParquetSource], column: str, path: VariantPath
) -> list[tuple[int, Callable[[], pa.StructArray]]] | None:
    """Return the row groups that may have fields of objects at a shredded path outside of the typed columns.

    Each is the compressed size of the residual values, and a function that reads them as unshredded Variants. None if
    a file does not shred the path as an object.
    """
    groups: list[tuple[int, Callable[[], pa.StructArray]]] = []
    for source in sources:
        with open_file(source) as file:
            columns = columns_of_path(choose_column(file.schema, column, file.name), path, None)
            typed, value = columns.group.child("typed_value"), columns.group.child("value")
            if not columns.reached or columns.repeated or columns.metadata is None or typed is None:
                return None
            for number in file.facts.groups if value is not None else ():
                assert value is not None
                if not file.facts.is_empty(value, variant_nulls=True, groups=[number]):
                    read = partial(_residual_values, source, number, columns.metadata, value)
                    groups.append((file.facts.size([value], [number]), read))
    return groups


def _residual_values(source: ParquetSource, number: int, metadata: SchemaNode, value: SchemaNode) -> pa.StructArray:
    with open_file(source) as file:
        leaves = [node.leaf for node in (metadata, value) if node.leaf is not None]
        parts = [_flat_leaf(file.read_leaves([number], [leaf])) for leaf in leaves]
    storage = [part.cast(pa.binary()) for part in parts]
    return pa.StructArray.from_arrays(storage, ["metadata", "value"], mask=parts[1].is_null())


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
                for number in file.facts.groups:
                    metadata |= _distinct(file.read_leaves([number], [leaf.leaf]))
    for dictionary in metadata:
        try:
            keys.update(decode_metadata(dictionary))
        except VariantError:  # whoever reads the row reports it
            continue
    return frozenset(keys)


def _flat_leaf(table: pa.Table) -> pa.Array:
    column = one_chunk(table.column(0))
    while pa.types.is_struct(column.type):
        column = column.flatten()[0]
    return column


def _distinct(table: pa.Table) -> set[bytes]:
    column = _flat_leaf(table)
    values = column.dictionary if pa.types.is_dictionary(column.type) else column.unique()
    return {bytes(value) for value in values.to_pylist() if value is not None}
