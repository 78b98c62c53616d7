"""Removing rows from a file that this library wrote: row groups and pages that lose no rows are copied byte for byte.

Owns which pages are copied, and the decision between this and a full rewrite. Leaves the bytes of the new file to
`pages.file_patch` and `pages.stored_pages`, and reading the other pages to `reading.page_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import pyarrow as pa

from parquet_variant.files.parquet.format.facts import NO_NAN_KEY, footer_metadata
from parquet_variant.files.parquet.format.footer import SchemaNode, footer_bytes, parse_schema
from parquet_variant.files.parquet.format.page_places import LeafPages, leaf_pages, row_groups
from parquet_variant.files.parquet.format.thrift import ThriftError
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, Shared
from parquet_variant.files.parquet.pages.file_patch import FilePatcher, StoredPages
from parquet_variant.files.parquet.pages.file_schema import file_schema
from parquet_variant.files.parquet.pages.levels import Entries, leaf_entries
from parquet_variant.files.parquet.reading.chunk_pages import PAGE_ERRORS, ChosenPages, pages_by_rows, read_pages
from parquet_variant.files.parquet.writing.patch import StoredFile, annotated_places, has_same_leaves, is_ours
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.io.filesystems import write_errors
from parquet_variant.kernels.arrow_buffers import Mask

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
                    patcher.add_chunks(int(mask.sum()), self._shrink_row_group(leaves, mask))
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

    def _shrink_row_group(self, leaves: Sequence[LeafPages], remaining: Mask) -> list[tuple[ColumnChunk, StoredPages]]:
        """Return the column chunks of a row group that loses rows."""
        shared = Shared()
        chunks = {}
        for group in pages_by_rows(leaves, ~remaining):
            for (pages, _), chunk in zip(group, self._chunks(group, remaining, shared), strict=True):
                chunks[pages.leaf.path] = chunk
        shared.release()
        return [chunks[pages.leaf.path] for pages in leaves]

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
