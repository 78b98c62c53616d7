"""Changing values of some rows in a file that this library wrote, and removing rows from it.

Owns the choice of leaf columns and pages that change, and the decision between this and a full rewrite; and the copy,
byte for byte, of unchanged row groups, columns, pages and their indexes, with the offsets that refer to them. Leaves
new chunks to `file_writer`. Spec: ``parquet.thrift``, ``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk, stored_columns
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.arrow_schema import (
    Place,
    file_schema,
    has_nan,
    is_written,
    may_have_nan,
    null_rows,
)
from parquet_variant.files.parquet.format.facts import NO_NAN_KEY, PAGE_ERRORS
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, GroupCache
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter, PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.leaf_values import Entries, leaf_entries
from parquet_variant.files.parquet.pages.stored_chunks import (
    ChosenPages,
    ReusedPages,
    StoredChunk,
    StoredFile,
    chunk_start,
    pages_by_rows,
    read_at,
)
from parquet_variant.files.parquet.writing.encodings import choose_encodings
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.inference.statistics import basic_types
from parquet_variant.io.filesystems import write_errors
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import BasicType

_CONTAINERS = {BasicType.OBJECT, BasicType.ARRAY}
# Less than the limit of an Arrow string array.
_MAX_BYTES = 1 << 30
# If a larger share of the bytes is in pages that lose rows, a full rewrite is faster.
_MAX_SHARE = 0.5
_NO_NAN = NO_NAN_KEY.decode()


class FilePatcher(PageFileWriter):
    """Write a copy of a file in which some columns are replaced.

    `sink`, `schema` and `**options`: as for `PageFileWriter`, for the columns that change: whole columns, or structs
      with only the leaves that change.
    `file`: the source file.
    """

    def __init__(self, sink: pa.NativeFile | BinaryIO, schema: pa.Schema, *, file: StoredFile, **options: Any) -> None:
        self._file = file
        self._blooms: list[tuple[PlacedChunk, int, int]] = []
        # Copied chunks, the positions and fields of their structs in the source file, and the distance they moved.
        self._copied: list[tuple[PlacedChunk, int, Mapping[int, Any], int]] = []
        first = file.row_groups[0][0] if file.row_groups else []
        chunks = [thrift.read_value(file.footer, at, thrift.STRUCT)[0][thrift.METADATA] for at in first]
        with_bloom = [b".".join(chunk[thrift.PATH]).decode() for chunk in chunks if thrift.BLOOM_AT in chunk]
        super().__init__(sink, schema, bloom_filters=with_bloom, **options)
        self._encoded_schema = [element for _, element in file.elements], len(file.schema.leaves())

    def add_row_group(self, number: int, changed: pa.Table | None) -> None:
        """Add a row group of the source file with new columns; `changed` is None to copy all of it."""
        chunks, rows = self._file.row_groups[number]
        new_chunks: dict[tuple[str, ...], ColumnChunk] = {}
        if changed is not None:
            self.write_batch(changed)
            self._for_columns(ColumnChunk.finish, self._chunks)
            new_chunks = {chunk.leaf.path: chunk for chunk in self._chunks}
            self._chunks, self._rows = [], 0
        placed: list[PlacedChunk] = []
        for at in chunks:
            old, _ = thrift.read_value(self._file.footer, at, thrift.STRUCT)
            metadata = old[thrift.METADATA]
            path = tuple(name.decode() for name in metadata[thrift.PATH])
            if path in new_chunks:
                placed.append(self._placed(new_chunks[path]))
                continue
            start, size = chunk_start(metadata), metadata[thrift.SIZE]
            copied = PlacedChunk(self._position, size, metadata[thrift.PLAIN_SIZE])
            self._copied.append((copied, at, old, self._position - start))
            self._write(read_at(self._file.source, start, size))
            placed.append(copied)
        self._groups.append(PlacedGroup(rows, placed))

    def add_chunks(self, rows: int, chunks: Sequence[tuple[ColumnChunk, ReusedPages]]) -> None:
        """Add the remaining rows of a row group of the source file, as column chunks with their stored pages."""
        placed = []
        for chunk, old in chunks:
            chunk.finish()
            placed.append(self._placed(chunk))
            placed[-1].codec = old.codec
            if old.bloom is not None:
                self._blooms.append((placed[-1], *old.bloom))
        self._groups.append(PlacedGroup(rows, placed))

    def _put_indexes(self) -> None:
        source, footer = self._file.source, self._file.footer
        for placed, at, size in self._blooms:
            placed.bloom = self._put(read_at(source, at, size))
        super()._put_indexes()
        for chunk, position, old, moved in self._copied:
            metadata, outside = old[thrift.METADATA], dict[int, Any]()
            inside = {at: metadata[at] + moved for at in (thrift.DATA_AT, thrift.DICTIONARY_AT) if at in metadata}
            if thrift.BLOOM_AT in metadata:
                bloom = read_at(source, metadata[thrift.BLOOM_AT], metadata[thrift.BLOOM_SIZE])
                inside[thrift.BLOOM_AT], _ = self._put(bloom)
            if thrift.COLUMN_INDEX in old:
                index = read_at(source, old[thrift.COLUMN_INDEX], old[thrift.COLUMN_INDEX_SIZE])
                outside[thrift.COLUMN_INDEX], _ = self._put(index)
            if thrift.OFFSET_INDEX in old:
                index = read_at(source, old[thrift.OFFSET_INDEX], old[thrift.OFFSET_INDEX_SIZE])
                places, done = bytearray(), 0
                for start, end in thrift.structs_of_list(index, thrift.find_field(index, 0, thrift.LOCATIONS)):
                    place, _ = thrift.read_value(index, start, thrift.STRUCT)
                    moved_place = thrift.with_fields(index, start, {thrift.PAGE_AT: place[thrift.PAGE_AT] + moved})
                    places += index[done:start] + moved_place
                    done = end
                moved_index = bytes(places + index[done:])
                outside[thrift.OFFSET_INDEX], outside[thrift.OFFSET_INDEX_SIZE] = self._put(moved_index)
            field = thrift.find_field(footer, position, thrift.METADATA)
            assert field is not None
            outside[thrift.METADATA] = thrift.with_fields(footer, field, inside)
            chunk.encoded = thrift.with_fields(footer, position, outside)

    def finish(self, target: FilePath, key_values: Mapping[str, str], nulls: Mapping[Place, int]) -> FileInfo:
        """Write the footer; return a description of the file."""
        footer, size = self.close(key_values)
        rows = [group.rows for group in self._groups]
        return FileInfo(
            path=str(target), rows=sum(rows), bytes=size, row_groups=len(rows), variants=self._file.annotated,
            may_hold_nan=_NO_NAN not in key_values, footer=footer, null_rows=nulls,
        )  # fmt: skip


class FilePatch(Record):
    """The plan, made by `plan_patch`, to change values of some rows of a file."""

    file: StoredFile
    rows: pa.Table  # All rows of the columns that may change, with the new values.
    places: Collection[Place]  # Schema paths of the Variants among these columns.
    changed: Mask  # The rows that change.
    part: pa.Table  # The leaves of these columns that change.

    @classmethod
    def of(
        cls, file: StoredFile, before: pa.Table, after: pa.Table, changed: Mask, places: Collection[Place]
    ) -> FilePatch:
        """Plan from all rows of some columns before, and their changed rows after."""
        order = np.arange(len(before))
        order[changed] = np.arange(len(before), len(before) + len(after))
        rows = pa.concat_tables([before, after]).combine_chunks().take(from_numpy(order))
        old = before.filter(from_numpy(changed))
        part = _changed_leaves(*(table.to_struct_array().combine_chunks() for table in (old, after, rows)))
        part_table = rows.select([]) if part is None else pa.Table.from_struct_array(part)
        return cls(file, rows, places, changed, part_table)

    def write(self, target: FilePath, compression: str) -> FileInfo:
        """Write the file; `compression` is the codec of the columns that change."""
        file, key_values = self.file, self.file.key_values
        # The footer already says whether other columns have a NaN.
        if any(has_nan(chunk) for column in self.part.columns for chunk in column.chunks):
            key_values.pop(_NO_NAN, None)
        counts = {place: null_rows(self.rows, place) for place in self.places}
        with write_errors(target), target.open("wb") as sink:
            patcher = FilePatcher(
                sink,
                self.part.schema,
                file=file,
                no_statistics=[".".join((*place, "metadata")) for place in self.places],
                compression=compression,
                **choose_encodings(self.part, compression),
            )
            start = 0
            for number, mask in file.masks(self.changed):
                is_changed = self.part.num_columns and mask.any()
                patcher.add_row_group(number, self.part.slice(start, len(mask)) if is_changed else None)
                start += len(mask)
            return patcher.finish(target, key_values, {place: n for place, n in counts.items() if n is not None})


def plan_patch(
    source: pa.NativeFile, before: pa.Table, after: pa.Table, changed: Mask, places: Collection[Place] = ()
) -> FilePatch | None:
    """Plan to change values of some rows of an open file; None if it must be rewritten as a whole.

    `before` and `after`: the columns that may change, as `conform_table` returns them: all rows before, and the changed
      rows after.
    `places`: the Variants among these columns.
    A file of another writer, or with columns that would have another Parquet schema now, cannot be patched.
    """
    file = StoredFile(source)
    if (
        not file.is_ours(len(before))
        or before.nbytes + after.nbytes > _MAX_BYTES
        or before.schema != after.schema
        or not all(is_written(field.type) for field in before.schema)
    ):
        return None
    for field in before.schema:
        elements = [element for node, element in file.elements if node.path[:1] == (field.name,)]
        if elements != file_schema(pa.schema([field]), file.annotated).elements[1:]:
            return None
    return FilePatch.of(file, before, after, changed, places)


def plan_path_patch(
    source: pa.NativeFile, paths: Sequence[Place], values: Callable[[], Sequence[VariantArray]], changed: Mask
) -> FilePatch | None:
    """Plan to change values at paths of shredded Variants, as `plan_patch` does; only the leaves of the paths are read.

    This is possible if every row has the path and no new value has keys: then neither the rest of the Variant nor its
    dictionary of keys changes. `values` returns, for each path, the values of the rows that change.
    """
    stored = StoredFile(source)
    groups = [_primitive_group(stored.schema, path) for path in paths]
    if not stored.is_ours(len(changed)) or None in groups:
        return None
    leaves = sorted({int(leaf.leaf or 0) for group in groups if group is not None for leaf in group.leaves()})
    try:
        with open_parquet(source) as file:
            before = file.reader.read_row_groups([*range(len(stored.row_groups))], column_indices=leaves)
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
    if before.schema != after.schema or not _has_same_leaves(stored, before.schema):
        return None
    return FilePatch.of(stored, before, after, changed, ())


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


def _has_same_leaves(file: StoredFile, schema: pa.Schema) -> bool:
    """Return whether leaves have the schema elements that a new file would have."""
    elements = {node.path: element for node, element in file.elements if node.is_leaf}
    new_schema = file_schema(schema, ())
    return {elements[leaf.path] for leaf in new_schema.leaves} <= set(new_schema.elements)


def _changed_leaves(before: pa.Array, after: pa.Array, rows: pa.Array) -> pa.Array | None:
    """Return `rows` with only the leaves whose values differ before and after; None if it has none of them."""
    before, after = (
        array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        for array in (one_chunk(before), one_chunk(after))
    )
    if not pa.types.is_struct(before.type):
        if pa.types.is_floating(before.type):  # Arrow's `equals` ignores the sign of zeros.
            bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[before.type.bit_width]
            before, after = before.view(bits), after.view(bits)
        return None if before.equals(after) and not may_have_nan(before.type) else rows
    if not before.is_valid().equals(after.is_valid()):  # The levels of every leaf inside differ.
        return rows
    parts = {
        child.name: part
        for index, child in enumerate(before.type)
        if (part := _changed_leaves(before.field(index), after.field(index), rows.field(index))) is not None
    }
    fields = [field.with_type(parts[field.name].type) for field in rows.type if field.name in parts]
    mask = rows.is_null() if rows.null_count else None
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=mask) if parts else None


class FileShrink(Record):
    """The plan, made by `plan_shrink`, to rewrite a file without some rows.

    `groups`: for each row group, the mask of the remaining rows, and its columns if only some rows remain.
    """

    file: StoredFile
    groups: Sequence[tuple[Mask, list[StoredChunk] | None]]

    def write(self, target: FilePath) -> FileInfo:
        """Write the file. Raises one of `PAGE_ERRORS` if a page cannot be read or has an unexpected form."""
        with write_errors(target), target.open("wb") as sink:
            patcher = FilePatcher(sink, pa.schema([]), file=self.file)
            for number, (mask, stored_chunks) in enumerate(self.groups):
                if stored_chunks is not None:
                    cache, new_chunks = GroupCache(), {}
                    for group in pages_by_rows(stored_chunks, ~mask):
                        for (stored, _), chunk in zip(group, self._chunks(group, mask, cache), strict=True):
                            new_chunks[stored.leaf.path] = chunk
                    cache.release()
                    patcher.add_chunks(int(mask.sum()), [new_chunks[stored.leaf.path] for stored in stored_chunks])
                elif mask.any():
                    patcher.add_row_group(number, None)
            return patcher.finish(target, self.file.key_values, {})

    def _chunks(
        self, group: Sequence[ChosenPages], remaining: Mask, cache: GroupCache
    ) -> Iterator[tuple[ColumnChunk, ReusedPages]]:
        """Yield the chunks of columns whose affected pages have the same rows."""
        table = self.file.read_pages(group).combine_chunks()
        columns = file_schema(table.schema, ()).leaves
        paths = [stored.leaf.path for stored, _ in group]
        if [leaf.path for leaf in columns] != paths or not _has_same_leaves(self.file, table.schema):
            raise thrift.ThriftError("the columns would have another Parquet schema")
        parts: dict[int, tuple[int, list[tuple[Entries, pa.Array]]]] = {}
        start = 0
        for place in group[0][1]:
            mask = remaining[place.first_row : place.first_row + place.rows]
            rows = table.slice(start, place.rows).filter(from_numpy(mask)).combine_chunks()
            start += place.rows
            if len(rows):
                leaves = [
                    entries
                    for field, column in zip(rows.schema, rows.columns, strict=True)
                    for entries in leaf_entries(field, column.chunk(0))
                ]
                parts[place.first_row] = len(rows), leaves
        for number, (stored, places) in enumerate(group):
            reused = ReusedPages(stored, columns[number])
            chunk = reused.new_chunk(places, cache)
            read_places = {place.first_row for place in places}
            for page, place in enumerate(stored.pages):
                if place.first_row not in read_places:
                    chunk.take_page(reused.page(page), place.rows)
                elif place.first_row in parts:
                    count, leaves = parts[place.first_row]
                    chunk.append(*leaves[number], count)
            yield chunk, reused


def plan_shrink(source: pa.NativeFile, remaining: Mask) -> FileShrink | None:
    """Plan to rewrite a file without some rows; None if only a full rewrite is possible or faster."""
    file = StoredFile(source)
    # pyarrow reads keys and values of a map together, but their pages may end at different rows.
    if not file.is_ours(len(remaining)) or any(node.logical == "MAP" for node in file.schema.walk()):
        return None
    try:
        groups = [
            (mask, file.chunks(number, file.schema.leaves()) if mask.any() and not mask.all() else None)
            for number, mask in file.masks(remaining)
        ]
    except PAGE_ERRORS:
        return None
    rewritten = sum(place.size for mask, chunks in groups for chunk in chunks or () for place in chunk.holding(~mask))
    return FileShrink(file, groups) if rewritten <= _MAX_SHARE * source.size() else None
