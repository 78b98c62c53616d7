"""The groups of a shredded Variant column in a file's schema, and what files prove about its paths.

Owns the walk over the schema tree of every layout; and conclusions that hold for every row of several files: the only
type of a path, and the keys that occur. Leaves the columns of a path, and what statistics prove about one row group, to
`projection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.statistics import leaf_statistics, leaf_type
from parquet_variant.files.parquet.scanning.projection import columns_of_path, only_nulls
from parquet_variant.layouts.primitive_types import ddl_name
from parquet_variant.types.path import WILDCARD, VariantPath


@dataclass(frozen=True, slots=True)
class ShreddedGroup:
    """A shredded value in the file's schema."""

    path: VariantPath  # The path of the value in the Variant.
    group: SchemaNode  # The group in the file's schema.
    typed: SchemaNode | None  # The typed column or group; None if the value is not shredded.
    residual: SchemaNode | None  # The binary column of values of other types; None if it is missing.

    @property
    def type_name(self) -> str:
        """``object``, ``array``, ``variant``, or the type of the typed column as DDL spells it."""
        if self.typed is None:
            return "variant"
        if self.typed.leaf is not None:
            arrow = leaf_type(self.typed)
            try:
                return self.typed.spelled() if arrow is None else ddl_name(arrow)
            except KeyError:
                return self.typed.spelled()
        return "array" if self.typed.is_list else "object"


def shredded_groups(column: VariantColumn) -> Iterator[ShreddedGroup]:
    """Yield the shredded values of a column, parents first; the root alone for an unshredded column."""
    if column.layout == "draft-object":
        yield from _draft_object(column.node, VariantPath())
    elif column.layout == "draft-paths":
        paths = column.node.child("paths")
        yield ShreddedGroup(VariantPath(), column.node, paths, column.node.child("value"))
        if paths is not None:
            yield from _draft_paths(paths, VariantPath(), root=True)
    else:
        yield from _final_groups(column.node, VariantPath())


def _final_groups(group: SchemaNode, path: VariantPath) -> Iterator[ShreddedGroup]:
    typed = group.child("typed_value")
    yield ShreddedGroup(path, group, typed, group.child("value"))
    if typed is None or typed.leaf is not None:
        return
    if typed.is_list:
        yield from _final_groups(typed.element, path / WILDCARD)
        return
    for child in typed.children:
        yield from _final_groups(child, path / child.name)


def _draft_object(group: SchemaNode, path: VariantPath) -> Iterator[ShreddedGroup]:
    parts = {child.name: child for child in group.children}
    typed = parts.get("object") or parts.get("array") or parts.get("typed_value")
    yield ShreddedGroup(path, group, typed, parts.get("untyped_value"))
    for child in parts["object"].children if "object" in parts else ():
        yield from _draft_object(child, path / child.name)
    if "array" in parts:
        yield from _draft_object(parts["array"].element, path / WILDCARD)


def _draft_paths(group: SchemaNode, path: VariantPath, *, root: bool = False) -> Iterator[ShreddedGroup]:
    names = {child.name: child for child in group.children}
    if (
        names
        and names.keys() <= {"typed_value", "untyped_value"}
        and any(child.leaf is not None for child in group.children)
    ):
        if not root:
            yield ShreddedGroup(path, group, names.get("typed_value"), names.get("untyped_value"))
    elif group.is_list:
        yield from _draft_paths(group.element, path / WILDCARD)
    else:
        for child in group.children:
            yield from _draft_paths(child, path / child.name)


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
            file_type = _type_in_file(file, column, path, nulls)
        if file_type is None or (common is not None and file_type != common):
            return None
        common = file_type
    return common


def _type_in_file(file: OpenFile, column: str, path: VariantPath, nulls: bool) -> pa.DataType | None:
    columns = columns_of_path(choose_column(file.schema, column, file.name), path, None)
    leaf = columns.primitive
    if leaf is None or columns.repeated or columns.needs_all:
        return None
    return leaf_type(leaf) if all(_is_empty(file, residual, nulls) for residual in columns.residuals) else None


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
    if residual is not None and not _is_empty(file, residual):
        return {}
    candidates = [path / WILDCARD, *(path / WILDCARD / key for key in _typed_keys(typed.element))]
    sizes: dict[VariantPath, tuple[int, pa.DataType]] = {}
    for candidate in candidates:
        part = columns_of_path(variant, candidate, None)
        if part.primitive is None or not all(_is_empty(file, leaf) for leaf in part.residuals):
            continue
        assert part.primitive.leaf is not None
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        size = sum(group.column(part.primitive.leaf).total_compressed_size for group in groups)
        if (kind := leaf_type(part.primitive)) is not None:
            sizes[candidate] = size, kind
    return {candidate: sizes[candidate][1] for candidate in sorted(sizes, key=lambda key: sizes[key][0])}


def _typed_keys(element: SchemaNode) -> list[str]:
    typed = element.child("typed_value")
    return [] if typed is None or typed.is_leaf or typed.is_list else [child.name for child in typed.children]


def _is_empty(file: OpenFile, residual: SchemaNode, variant_nulls: bool = False) -> bool:
    """Return whether the footer proves that a residual column has no value, or (if allowed) only Variant nulls."""
    assert residual.leaf is not None
    groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
    return all(
        only_nulls(leaf_statistics(group.column(residual.leaf), residual), variant_nulls=variant_nulls)
        for group in groups
    )


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
            for number in range(file.metadata.num_row_groups if value is not None else 0):
                assert value is not None
                assert value.leaf is not None
                chunk = file.metadata.row_group(number).column(value.leaf)
                if not only_nulls(leaf_statistics(chunk, value), variant_nulls=True):
                    read = partial(_residual_values, source, number, columns.metadata, value)
                    groups.append((chunk.total_compressed_size, read))
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
                for number in range(file.metadata.num_row_groups):
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
