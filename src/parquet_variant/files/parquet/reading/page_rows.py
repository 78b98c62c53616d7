"""Reading some rows of a file from the pages that contain them; other pages are neither read nor decompressed.

Owns small in-memory files with these pages, one per set of columns whose pages end at the same rows, and joining
structs and lists whose fields come from several such files. Leaves reading them to pyarrow, and the places of pages to
`format.page_places`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format.footer import MAGIC, SchemaNode, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.page_places import (
    LeafPages,
    PagePlace,
    leaf_pages,
    page_header,
    read_at,
    row_groups,
)
from parquet_variant.files.parquet.format.thrift import BINARY, I32, I64, LIST, STRUCT, encode_struct, with_numbers
from parquet_variant.files.parquet.reading.chunk_pages import PAGE_ERRORS
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support import arrow_compute as pc

# A column chunk and some of its pages.
ChosenPages: TypeAlias = tuple[LeafPages, tuple[PagePlace, ...]]
# For a larger share of the bytes, pyarrow reads the whole file faster.
_MAX_SHARE = 0.5
_CHILDREN = 5


def rows_of_pages(source: pa.NativeFile, columns: Collection[str], row_mask: Mask) -> pa.Table | None:
    """Return some rows of a file in order; None if the whole file must be read instead."""
    try:
        footer = footer_bytes(source)
        root = parse_schema(footer)
        nodes = [node for node in root.children if node.name in columns]
        leaves = [leaf for node in nodes for leaf in node.leaves()]
        tables: list[pa.Table] = []
        start = 0
        for spans, rows in row_groups(footer):
            mask, start = row_mask[start : start + rows], start + rows
            if mask.any():
                columns_pages = [leaf_pages(source, footer, spans[leaf.leaf or 0], leaf, rows) for leaf in leaves]
                size = sum(place.size for pages in columns_pages for place in pages.holding(mask))
                if size > _MAX_SHARE * sum(place.size for pages in columns_pages for place in pages.pages):
                    return None
                tables.append(_rows_of_group(source, footer, root, columns_pages, mask))
        if start != len(row_mask) or not tables:
            return None
        return pa.concat_tables(tables)
    except PAGE_ERRORS:
        return None  # Reading the whole columns reports the error.


def _rows_of_group(
    source: pa.NativeFile, footer: bytes, root: SchemaNode, leaves: Sequence[LeafPages], mask: Mask
) -> pa.Table:
    tables = []
    for group in pages_by_rows(leaves, mask):
        page_mask = np.concatenate([mask[place.first_row : place.first_row + place.rows] for place in group[0][1]])
        tables.append(read_pages(source, footer, root, group).filter(from_numpy(page_mask)).combine_chunks())
    fields, columns = [], []
    for node in root.children:
        parts = [table for table in tables if node.name in table.column_names]
        if parts:
            columns.append(_merged_column(node, [table[node.name].chunk(0) for table in parts]))
            fields.append(parts[0].schema.field(node.name).with_type(columns[-1].type))
    return pa.table(columns, schema=pa.schema(fields))


def pages_by_rows(leaves: Sequence[LeafPages], mask: Mask) -> list[list[ChosenPages]]:
    """Group the pages that contain some rows of a row group: columns whose pages have the same rows together."""
    by_rows: dict[tuple[tuple[int, int], ...], list[ChosenPages]] = {}
    for pages in leaves:
        places = pages.holding(mask)
        by_rows.setdefault(tuple((place.first_row, place.rows) for place in places), []).append((pages, places))
    return list(by_rows.values())


def _merged_column(node: SchemaNode, parts: Sequence[pa.Array]) -> pa.Array:
    """Merge the parts of a column, each of which has some of its leaves."""
    first = parts[0]
    if len(parts) == 1:
        return first
    mask = first.is_null() if first.null_count else None
    if pa.types.is_struct(first.type):
        children, fields = [], []
        for child in node.children:
            child_parts = [part for part in parts if part.type.get_field_index(child.name) >= 0]
            if child_parts:
                children.append(_merged_column(child, [part.field(child.name) for part in child_parts]))
                fields.append(child_parts[0].type.field(child.name).with_type(children[-1].type))
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if not pa.types.is_list(first.type):
        raise TypeError(f"cannot merge parts of {first.type}")
    values = _merged_column(node.element, [part.flatten() for part in parts])
    lengths = pc.fill_null(first.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    kind = pa.list_(first.type.value_field.with_type(values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def read_pages(
    source: pa.NativeFile,
    footer: bytes,
    root: SchemaNode,
    columns: Sequence[ChosenPages],
) -> pa.Table:
    """Return all rows of some pages; the pages of every column have the same rows."""
    body = bytearray(MAGIC)
    chunks = []
    for column, places in columns:
        start = len(body)
        values = plain = 0
        dictionary = read_at(source, column.start, column.pages[0].start - column.start)
        body += dictionary
        for place in places:
            page = read_at(source, place.start, place.size)
            header = page_header(page)
            values, plain = values + header.values, plain + header.size + header.plain
            body += page
        chunks.append(_chunk(column, start, len(dictionary), len(body) - start, values, plain))
    rows = sum(place.rows for place in columns[0][1])
    new_footer = _footer(footer, root, {column.leaf.path for column, _ in columns}, rows, chunks)
    body += new_footer + len(new_footer).to_bytes(4, "little") + MAGIC
    # INT96 as in `Reader`; without threads, because types registered in Python must not be destroyed in one.
    with open_parquet(pa.BufferReader(body), coerce_int96_timestamp_unit="us") as file:
        return file.read(use_threads=False)


def _chunk(column: LeafPages, start: int, dictionary: int, size: int, values: int, plain: int) -> bytes:
    old = column.metadata
    metadata = encode_struct(
        (1, I32, old[1]),
        (2, LIST, (I32, old[2])),
        (3, LIST, (BINARY, old[3])),
        (4, I32, old[4]),
        (5, I64, values),
        (6, I64, plain + dictionary),
        (7, I64, size),
        (9, I64, start + dictionary),
        (11, I64, start if dictionary else None),
    )
    return encode_struct((2, I64, 0), (3, STRUCT, metadata))


def _footer(
    footer: bytes, root: SchemaNode, leaves: Collection[tuple[str, ...]], rows: int, chunks: Sequence[bytes]
) -> bytes:
    """Return the footer of a file that has some leaves of another file."""
    ancestors = {path[:length] for path in leaves for length in range(len(path) + 1)}
    elements = []
    for node, (start, end, _) in zip(root.walk(), schema_elements(footer), strict=True):
        if node.path in ancestors:
            children = sum(child.path in ancestors for child in node.children)
            elements.append(footer[start:end] if node.is_leaf else with_numbers(footer, start, {_CHILDREN: children}))
    group = encode_struct((1, LIST, (STRUCT, list(chunks))), (2, I64, 0), (3, I64, rows))
    return encode_struct((1, I32, 2), (2, LIST, (STRUCT, elements)), (3, I64, rows), (4, LIST, (STRUCT, [group])))
