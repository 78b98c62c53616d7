"""A file of ours without some of its rows: row groups and pages that lose none are copied as the bytes that they are.

Owns which pages these are, and whether it is worth while. Leaves the new file's bytes to `pages.file_patch` and
`pages.stored_pages`, and reading the other pages to `reading.page_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.io.filesystems import write_errors
from parquet_variant.parquet.format.footer import SchemaNode, footer_bytes, parse_schema
from parquet_variant.parquet.format.page_places import LeafPages, leaf_pages, row_groups
from parquet_variant.parquet.format.statistics import NO_NAN_KEY, footer_metadata
from parquet_variant.parquet.format.thrift import ThriftError
from parquet_variant.parquet.pages.column_chunk import ColumnChunk, Shared
from parquet_variant.parquet.pages.file_patch import FilePatcher
from parquet_variant.parquet.pages.file_schema import file_schema
from parquet_variant.parquet.pages.levels import Entries, leaf_entries
from parquet_variant.parquet.pages.stored_pages import StoredPages
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS
from parquet_variant.parquet.reading.page_rows import ChosenPages, alike, read_pages
from parquet_variant.parquet.writing.patch import StoredFile, annotated_places, has_same_leaves, is_ours
from parquet_variant.parquet.writing.writer import FileInfo

Mask = npt.NDArray[np.bool_]
# Where more of a file's bytes are in pages that lose rows, it is quicker to write it as a whole.
_MOST = 0.5


@dataclass(frozen=True)
class FileShrink(StoredFile):
    """A file that is to be written anew without some rows: made by `plan_shrink`.

    `groups` says which rows of each row group stay; and its columns, if some do and some do not.
    """

    groups: Sequence[tuple[Mask, list[LeafPages] | None]]

    def write(self, target: FilePath) -> FileInfo:
        """Write it; one of `PAGE_ERRORS` where a page cannot be read, or is not as pages are written here."""
        key_values = self.key_values
        with write_errors(target), target.open("wb") as sink:
            patcher = FilePatcher(sink, pa.schema([]), source=self.source, footer=self.footer)
            for number, (mask, leaves) in enumerate(self.groups):
                if leaves is not None:
                    patcher.add_chunks(int(mask.sum()), self._shrunk(leaves, mask))
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

    def _shrunk(self, leaves: Sequence[LeafPages], kept: Mask) -> list[tuple[ColumnChunk, StoredPages]]:
        """The column chunks of a row group that loses rows."""
        shared = Shared()
        chunks = {}
        for group in alike(leaves, ~kept):
            for (each, _), chunk in zip(group, self._chunks(group, kept, shared), strict=True):
                chunks[each.leaf.path] = chunk
        shared.release()
        return [chunks[each.leaf.path] for each in leaves]

    def _chunks(
        self, group: Sequence[ChosenPages], kept: Mask, shared: Shared
    ) -> Iterator[tuple[ColumnChunk, StoredPages]]:
        """The chunks of columns of which the same rows are read."""
        table = read_pages(self.source, self.footer, self.root, group).combine_chunks()
        columns = file_schema(table.schema, ()).leaves
        there = [each.leaf.path for each, _ in group]
        if [leaf.path for leaf in columns] != there or not has_same_leaves(self.footer, self.root, table.schema):
            raise ThriftError("columns would be stored in another way now")
        parts: dict[int, tuple[int, list[tuple[Entries, pa.Array]]]] = {}
        at = 0
        for place in group[0][1]:
            mask = kept[place.first_row : place.first_row + place.rows]
            rows = table.slice(at, place.rows).filter(pa.array(mask)).combine_chunks()
            at += place.rows
            if len(rows):
                leaves = [
                    entries
                    for field, column in zip(rows.schema, rows.columns, strict=True)
                    for entries in leaf_entries(field, column.chunk(0))
                ]
                parts[place.first_row] = len(rows), leaves
        for number, (each, places) in enumerate(group):
            stored = StoredPages(self.source, each, columns[number])
            chunk = stored.new_chunk(places, shared)
            made = {place.first_row for place in places}
            for page, place in enumerate(each.pages):
                if place.first_row not in made:
                    chunk.take_page(stored.page(page), place.rows)
                elif place.first_row in parts:
                    count, leaves = parts[place.first_row]
                    chunk.append(*leaves[number], count)
            yield chunk, stored


def plan_shrink(source: pa.NativeFile, kept: Mask) -> FileShrink | None:
    """How a file is written anew without some rows; None if it is quicker, or only possible, to write it as a whole."""
    footer = footer_bytes(source)
    metadata, root = footer_metadata(footer), parse_schema(footer)
    # pyarrow reads keys and values of a map together, whose pages may end at different rows.
    if not is_ours(metadata, len(kept)) or any(node.logical == "MAP" for node in root.walk()):
        return None
    try:
        groups = list(_groups(source, footer, root, kept))
    except PAGE_ERRORS:
        return None
    made = sum(place.size for mask, leaves in groups for each in leaves or () for place in each.holding(~mask))
    return FileShrink(source, footer, root, metadata, groups) if made <= _MOST * source.size() else None


def _groups(
    source: pa.NativeFile, footer: bytes, root: SchemaNode, kept: Mask
) -> Iterator[tuple[Mask, list[LeafPages] | None]]:
    start = 0
    for spans, rows in row_groups(footer):
        mask, start = kept[start : start + rows], start + rows
        leaves = None
        if mask.any() and not mask.all():
            pairs = zip(spans, root.leaves(), strict=True)
            leaves = [leaf_pages(source, footer, span, leaf, rows) for span, leaf in pairs]
        yield mask, leaves
