"""Changing values of some rows in a file that this library wrote, and removing rows from it.

Owns the choice of leaf columns and pages that change, and the decision between this and a full rewrite. Leaves the
bytes of the new file to `pages.file_patch`: unchanged columns, row groups and pages are neither decoded nor encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import stored_columns
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format.facts import (
    NO_NAN_KEY,
    OWN_WRITER,
    LeafPages,
    footer_metadata,
    leaf_pages,
    row_groups,
    writer_of,
)
from parquet_variant.files.parquet.format.footer import SchemaNode, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.nested import Place, has_nan, may_have_nan, null_rows
from parquet_variant.files.parquet.format.thrift import ThriftError
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, Shared
from parquet_variant.files.parquet.pages.file_patch import FilePatcher, StoredPages
from parquet_variant.files.parquet.pages.file_schema import file_schema, is_written
from parquet_variant.files.parquet.pages.leaf_values import Entries, leaf_entries
from parquet_variant.files.parquet.reading.chunk_pages import PAGE_ERRORS, ChosenPages, pages_by_rows, read_pages
from parquet_variant.files.parquet.writing.encodings import choose_encodings
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.inference.statistics import basic_types
from parquet_variant.io.filesystems import write_errors
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import BasicType

_CONTAINERS = {BasicType.OBJECT, BasicType.ARRAY}
# Less than the limit of an Arrow string array.
_MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class StoredFile:
    """A file of which a changed copy is planned."""

    source: pa.NativeFile  # The open source file.
    # The footer of the source file, its schema tree, and pyarrow's metadata.
    footer: bytes
    root: SchemaNode
    metadata: pq.FileMetaData

    @property
    def is_shredded(self) -> bool:
        """Whether the file has a shredded Variant column."""
        return any("typed_value" in leaf.path for leaf in self.root.leaves())

    @property
    def key_values(self) -> dict[str, str]:
        """The key-value metadata of the footer."""
        return {key.decode(): value.decode() for key, value in (self.metadata.metadata or {}).items()}


@dataclass(frozen=True)
class FilePatch(StoredFile):
    """The plan, made by `plan_patch`, to change values of some rows of a file."""

    rows: pa.Table  # All rows of the columns that may change, with the new values.
    places: Collection[Place]  # Schema paths of the Variants among these columns.
    changed: Mask  # The rows that change.
    part: pa.Table  # The leaves of these columns that change.

    def write(self, target: FilePath, compression: str) -> FileInfo:
        """Write the file; `compression` is the codec of the columns that change."""
        key_values = self.key_values
        # The footer already says whether other columns have a NaN.
        if any(has_nan(chunk) for column in self.part.columns for chunk in column.chunks):
            key_values.pop(NO_NAN_KEY.decode(), None)
        start = 0
        with write_errors(target), target.open("wb") as sink:
            patcher = FilePatcher(
                sink,
                self.part.schema,
                source=self.source,
                footer=self.footer,
                no_statistics=[".".join((*place, "metadata")) for place in self.places],
                compression=compression,
                **choose_encodings(self.part, compression),
            )
            for number in range(self.metadata.num_row_groups):
                rows = self.metadata.row_group(number).num_rows
                is_changed = self.part.num_columns and self.changed[start : start + rows].any()
                patcher.add_row_group(number, self.part.slice(start, rows) if is_changed else None)
                start += rows
            footer, size = patcher.close(key_values)
        nulls = {place: null_rows(self.rows, place) for place in self.places}
        return FileInfo(
            path=str(target),
            rows=self.metadata.num_rows,
            bytes=size,
            row_groups=self.metadata.num_row_groups,
            variants=annotated_places(self.root),
            may_hold_nan=NO_NAN_KEY.decode() not in key_values,
            footer=footer,
            null_rows={place: count for place, count in nulls.items() if count is not None},
        )


def plan_patch(
    source: pa.NativeFile, before: pa.Table, after: pa.Table, changed: Mask, places: Collection[Place] = ()
) -> FilePatch | None:
    """Plan to change values of some rows of an open file; None if it must be rewritten as a whole.

    `before` and `after`: the columns that may change, as `conform_table` returns them: all rows before, and the changed
      rows after.
    `places`: the Variants among these columns.
    A file of another writer, or with columns that would have another Parquet schema now, cannot be patched.
    """
    footer = footer_bytes(source)
    metadata, root = footer_metadata(footer), parse_schema(footer)
    if (
        not is_ours(metadata, len(before))
        or before.nbytes + after.nbytes > _MAX_BYTES
        or before.schema != after.schema
        or not all(is_written(field.type) for field in before.schema)
    ):
        return None
    for field in before.schema:
        spans = zip(root.walk(), schema_elements(footer), strict=True)
        elements = [footer[start:end] for node, (start, end, _) in spans if node.path[:1] == (field.name,)]
        if elements != file_schema(pa.schema([field]), annotated_places(root)).elements[1:]:
            return None
    rows = _with_changed_rows(before, after, changed)
    leaves = _differences(before.filter(from_numpy(changed)), after)
    return FilePatch(source, footer, root, metadata, rows, places, changed, _selected_leaves(rows, leaves))


def plan_path_patch(
    source: pa.NativeFile, paths: Sequence[Place], values: Callable[[], Sequence[VariantArray]], changed: Mask
) -> FilePatch | None:
    """Plan to change values at paths of shredded Variants, as `plan_patch` does; only the leaves of the paths are read.

    This is possible if every row has the path and no new value has keys: then neither the rest of the Variant nor its
    dictionary of keys changes. `values` returns, for each path, the values of the rows that change.
    """
    footer = footer_bytes(source)
    metadata, root = footer_metadata(footer), parse_schema(footer)
    groups = [_primitive_group(root, path) for path in paths]
    if not is_ours(metadata, len(changed)) or None in groups:
        return None
    leaves = sorted({int(leaf.leaf or 0) for group in groups if group is not None for leaf in group.leaves()})
    try:
        with open_parquet(source) as file:
            before = file.reader.read_row_groups([*range(metadata.num_row_groups)], column_indices=leaves)
    except (pa.ArrowException, OSError):
        return None  # Reading the whole columns reports the error.
    if before.nbytes > _MAX_BYTES:
        return None
    before = before.combine_chunks()
    after = before.filter(from_numpy(changed)).combine_chunks()
    for group, new in zip(groups, values(), strict=True):
        assert group is not None
        name, *place = group.path
        column = _with_values(after[name].chunk(0), place, new) if after[name].num_chunks else None
        if column is None:
            return None
        after = after.set_column(after.column_names.index(name), after.schema.field(name), column)
    if before.schema != after.schema or not has_same_leaves(footer, root, before.schema):
        return None
    rows = _with_changed_rows(before, after, changed)
    part = _selected_leaves(rows, _differences(before.filter(from_numpy(changed)), after))
    return FilePatch(source, footer, root, metadata, rows, (), changed, part)


def is_ours(metadata: pq.FileMetaData, rows: int) -> bool:
    """Return whether this library wrote a file, and the file has this number of rows."""
    return writer_of(metadata).startswith(OWN_WRITER) and bool(metadata.num_rows == rows)


def _primitive_group(root: SchemaNode, path: Place) -> SchemaNode | None:
    """Return the group of a path that is shredded as a primitive type; None for other paths."""
    node = root.child(path[0])
    if node is None or not node.annotated:
        return None
    for name in path[1:]:
        typed = node.child("typed_value")
        node = typed.child(name) if typed is not None and not typed.is_list and not typed.is_leaf else None
        if node is None:
            return None
    is_primitive = {child.name for child in node.children if child.is_leaf} == {"value", "typed_value"}
    return node if is_primitive and len(path) > 1 else None


def _with_values(array: pa.StructArray, place: Sequence[str], new: VariantArray) -> pa.StructArray | None:
    """Return rows with new values in a group; None if a row has no value there, or a new value does not fit."""
    if array.null_count:
        return None
    if place:
        children = stored_columns(array)
        child = _with_values(children[place[0]], place[1:], new)
        if child is None:
            return None
        children[place[0]] = child
    else:
        value, typed = array.field("value"), array.field("typed_value")
        storage = shred_variant(new, ShreddingSchema.primitive(typed.type)).storage
        children = {name: storage.field(name) for name in ("value", "typed_value")}
        is_missing = pc.and_(value.is_null(), typed.is_null())
        if storage.null_count or pc.any(is_missing).as_py() or basic_types(children["value"]) & _CONTAINERS:
            return None  # The key, or a key in the new value, may be missing in the dictionary of the row.
        if any(children[field.name].type != field.type for field in array.type):
            return None
    return pa.StructArray.from_arrays([children[field.name] for field in array.type], fields=list(array.type))


def has_same_leaves(footer: bytes, root: SchemaNode, schema: pa.Schema) -> bool:
    """Return whether leaves have the schema elements that a new file would have."""
    spans = zip(root.walk(), schema_elements(footer), strict=True)
    elements = {node.path: footer[start:end] for node, (start, end, _) in spans if node.is_leaf}
    new_schema = file_schema(schema, ())
    return {elements[leaf.path] for leaf in new_schema.leaves} <= set(new_schema.elements)


def annotated_places(root: SchemaNode) -> tuple[Place, ...]:
    """Return the schema paths of annotated groups."""
    return tuple(node.path for node in root.walk() if node.annotated)


def _with_changed_rows(before: pa.Table, after: pa.Table, changed: Mask) -> pa.Table:
    """Return all rows, with the changed rows replaced."""
    order = np.arange(len(before))
    order[changed] = np.arange(len(before), len(before) + len(after))
    return pa.concat_tables([before, after]).combine_chunks().take(from_numpy(order))


def _differences(before: pa.Table, after: pa.Table) -> set[Place]:
    """Return the places of leaves and lists whose bits differ between two tables."""
    places: set[Place] = set()
    for name in before.column_names:
        _find_differences(before[name].combine_chunks(), after[name].combine_chunks(), (name,), places)
    return places


def _find_differences(before: pa.Array, after: pa.Array, place: Place, places: set[Place]) -> None:
    before, after = _plain_array(before), _plain_array(after)
    if not pa.types.is_struct(before.type):
        if pa.types.is_floating(before.type):  # Arrow's `equals` ignores the sign of zeros.
            bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[before.type.bit_width]
            before, after = before.view(bits), after.view(bits)
        if not before.equals(after) or may_have_nan(before.type):
            places.add(place)
    elif before.is_valid().equals(after.is_valid()):
        for index, child in enumerate(before.type):
            _find_differences(before.field(index), after.field(index), (*place, child.name), places)
    else:  # The levels of every leaf inside differ.
        places.add(place)


def _plain_array(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _selected_leaves(rows: pa.Table, leaves: set[Place]) -> pa.Table:
    """Return the columns with only some leaves."""
    fields, columns = [], []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        chunks = [_pruned(chunk, field, (field.name,), leaves) for chunk in column.chunks]
        remaining = [chunk for chunk in chunks if chunk is not None]
        if remaining:
            fields.append(remaining[0][1])
            columns.append(pa.chunked_array([array for array, _ in remaining]))
    return pa.table(columns, schema=pa.schema(fields))


def _pruned(array: pa.Array, field: pa.Field, place: Place, leaves: set[Place]) -> tuple[pa.Array, pa.Field] | None:
    if place in leaves:
        return array, field
    if not pa.types.is_struct(field.type):
        return None
    children = [
        _pruned(array.field(index), child, (*place, child.name), leaves) for index, child in enumerate(field.type)
    ]
    remaining = [child for child in children if child is not None]
    if not remaining:
        return None
    mask = array.is_null() if array.null_count else None
    arrays, fields = [child for child, _ in remaining], [child for _, child in remaining]
    pruned = pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
    return pruned, field.with_type(pruned.type)


# If a larger share of the bytes is in pages that lose rows, a full rewrite is faster.
_MAX_SHARE = 0.5


@dataclass(frozen=True)
class FileShrink(StoredFile):
    """The plan, made by `plan_shrink`, to rewrite a file without some rows.

    `groups`: for each row group, the mask of the remaining rows, and its columns if only some rows remain.
    """

    groups: Sequence[tuple[Mask, list[LeafPages] | None]]

    def write(self, target: FilePath) -> FileInfo:
        """Write the file. Raises one of `PAGE_ERRORS` if a page cannot be read or has an unexpected form."""
        key_values = self.key_values
        with write_errors(target), target.open("wb") as sink:
            patcher = FilePatcher(sink, pa.schema([]), source=self.source, footer=self.footer)
            for number, (mask, leaves) in enumerate(self.groups):
                if leaves is not None:
                    shared, chunks = Shared(), {}
                    for group in pages_by_rows(leaves, ~mask):
                        for (pages, _), chunk in zip(group, self._chunks(group, mask, shared), strict=True):
                            chunks[pages.leaf.path] = chunk
                    shared.release()
                    patcher.add_chunks(int(mask.sum()), [chunks[pages.leaf.path] for pages in leaves])
                elif mask.any():
                    patcher.add_row_group(number, None)
            footer, size = patcher.close(key_values)
        return FileInfo(
            path=str(target),
            rows=sum(int(mask.sum()) for mask, _ in self.groups),
            bytes=size,
            row_groups=sum(bool(mask.any()) for mask, _ in self.groups),
            variants=annotated_places(self.root),
            may_hold_nan=NO_NAN_KEY.decode() not in key_values,
            footer=footer,
        )

    def _chunks(
        self, group: Sequence[ChosenPages], remaining: Mask, shared: Shared
    ) -> Iterator[tuple[ColumnChunk, StoredPages]]:
        """Yield the chunks of columns whose affected pages have the same rows."""
        table = read_pages(self.source, self.footer, self.root, group).combine_chunks()
        columns = file_schema(table.schema, ()).leaves
        paths = [pages.leaf.path for pages, _ in group]
        if [leaf.path for leaf in columns] != paths or not has_same_leaves(self.footer, self.root, table.schema):
            raise ThriftError("the columns would have another Parquet schema")
        parts: dict[int, tuple[int, list[tuple[Entries, pa.Array]]]] = {}
        start = 0
        for place in group[0][1]:
            mask = remaining[place.first_row : place.first_row + place.rows]
            rows = table.slice(start, place.rows).filter(pa.array(mask)).combine_chunks()
            start += place.rows
            if len(rows):
                leaves = [
                    entries
                    for field, column in zip(rows.schema, rows.columns, strict=True)
                    for entries in leaf_entries(field, column.chunk(0))
                ]
                parts[place.first_row] = len(rows), leaves
        for number, (pages, places) in enumerate(group):
            stored = StoredPages(self.source, pages, columns[number])
            chunk = stored.new_chunk(places, shared)
            read_places = {place.first_row for place in places}
            for page, place in enumerate(pages.pages):
                if place.first_row not in read_places:
                    chunk.take_page(stored.page(page), place.rows)
                elif place.first_row in parts:
                    count, leaves = parts[place.first_row]
                    chunk.append(*leaves[number], count)
            yield chunk, stored


def plan_shrink(source: pa.NativeFile, remaining: Mask) -> FileShrink | None:
    """Plan to rewrite a file without some rows; None if only a full rewrite is possible or faster."""
    footer = footer_bytes(source)
    metadata, root = footer_metadata(footer), parse_schema(footer)
    # pyarrow reads keys and values of a map together, but their pages may end at different rows.
    if not is_ours(metadata, len(remaining)) or any(node.logical == "MAP" for node in root.walk()):
        return None
    try:
        groups = list(_groups(source, footer, root, remaining))
    except PAGE_ERRORS:
        return None
    rewritten = sum(place.size for mask, leaves in groups for leaf in leaves or () for place in leaf.holding(~mask))
    return FileShrink(source, footer, root, metadata, groups) if rewritten <= _MAX_SHARE * source.size() else None


def _groups(
    source: pa.NativeFile, footer: bytes, root: SchemaNode, remaining: Mask
) -> Iterator[tuple[Mask, list[LeafPages] | None]]:
    start = 0
    for chunks, rows in row_groups(footer):
        mask, start = remaining[start : start + rows], start + rows
        leaves = None
        if mask.any() and not mask.all():
            pairs = zip(chunks, root.leaves(), strict=True)
            leaves = [leaf_pages(source, footer, chunk, leaf, rows) for chunk, leaf in pairs]
        yield mask, leaves
