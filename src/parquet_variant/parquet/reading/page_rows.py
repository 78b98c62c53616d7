"""Some rows of a file, out of the pages that hold them: other pages are neither read nor decompressed.

Owns the small files in memory that have these pages, a file for all columns whose pages end at the same rows, and
putting structs and lists together again whose fields came from several. Leaves reading them to pyarrow, and where pages
are to `format.page_places`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.parquet.format.footer import MAGIC, SchemaNode, footer_bytes, parse_schema, schema_elements
from parquet_variant.parquet.format.page_places import (
    LeafPages,
    PagePlace,
    leaf_pages,
    page_header,
    read_at,
    row_groups,
)
from parquet_variant.parquet.format.thrift import BINARY, I32, I64, LIST, STRUCT, encode_struct, with_numbers
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS
from parquet_variant.schema.parquet_reader import open_parquet

Mask = npt.NDArray[np.bool_]
# A column chunk, and some of its pages.
ChosenPages: TypeAlias = tuple[LeafPages, tuple[PagePlace, ...]]
# Where more of a file is asked for, pyarrow reads it whole in less time.
_MOST = 0.5
_CHILDREN = 5


def rows_of_pages(source: pa.NativeFile, columns: Collection[str], chosen: Mask) -> pa.Table | None:
    """Some rows of a file, in the order of the file; None if they are to be read with all others."""
    try:
        footer = footer_bytes(source)
        root = parse_schema(footer)
        nodes = [node for node in root.children if node.name in columns]
        leaves = [leaf for node in nodes for leaf in node.leaves()]
        tables: list[pa.Table] = []
        start = 0
        for spans, rows in row_groups(footer):
            mask, start = chosen[start : start + rows], start + rows
            if mask.any():
                known = [leaf_pages(source, footer, spans[leaf.leaf or 0], leaf, rows) for leaf in leaves]
                size = sum(place.size for each in known for place in each.holding(mask))
                if size > _MOST * sum(place.size for each in known for place in each.pages):
                    return None
                tables.append(_rows(source, footer, root, known, mask))
        if start != len(chosen) or not tables:
            return None
        return pa.concat_tables(tables)
    except PAGE_ERRORS:
        return None  # Whoever reads the columns whole says what is wrong.


def _rows(source: pa.NativeFile, footer: bytes, root: SchemaNode, leaves: Sequence[LeafPages], mask: Mask) -> pa.Table:
    tables = []
    for group in alike(leaves, mask):
        chosen = np.concatenate([mask[place.first_row : place.first_row + place.rows] for place in group[0][1]])
        tables.append(read_pages(source, footer, root, group).filter(from_numpy(chosen)).combine_chunks())
    fields, columns = [], []
    for node in root.children:
        parts = [table for table in tables if node.name in table.column_names]
        if parts:
            columns.append(_joined(node, [table[node.name].chunk(0) for table in parts]))
            fields.append(parts[0].schema.field(node.name).with_type(columns[-1].type))
    return pa.table(columns, schema=pa.schema(fields))


def alike(leaves: Sequence[LeafPages], mask: Mask) -> list[list[ChosenPages]]:
    """The pages of columns that hold some rows of a row group: together those that hold the same rows."""
    by_rows: dict[tuple[tuple[int, int], ...], list[ChosenPages]] = {}
    for each in leaves:
        places = each.holding(mask)
        by_rows.setdefault(tuple((place.first_row, place.rows) for place in places), []).append((each, places))
    return list(by_rows.values())


def _joined(node: SchemaNode, parts: Sequence[pa.Array]) -> pa.Array:
    """A column of which each part has some leaves."""
    first = parts[0]
    if len(parts) == 1:
        return first
    mask = first.is_null() if first.null_count else None
    if pa.types.is_struct(first.type):
        children, fields = [], []
        for child in node.children:
            having = [part for part in parts if part.type.get_field_index(child.name) >= 0]
            if having:
                children.append(_joined(child, [part.field(child.name) for part in having]))
                fields.append(having[0].type.field(child.name).with_type(children[-1].type))
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if not pa.types.is_list(first.type):
        raise TypeError(f"parts of {first.type} are not put together")
    values = _joined(node.element, [part.flatten() for part in parts])
    lengths = pc.fill_null(first.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    kind = pa.list_(first.type.value_field.with_type(values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def read_pages(
    source: pa.NativeFile,
    footer: bytes,
    root: SchemaNode,
    chosen: Sequence[ChosenPages],
) -> pa.Table:
    """All rows of some pages of some columns of a row group, which are the same rows in each of these."""
    body = bytearray(MAGIC)
    chunks = []
    for each, places in chosen:
        start = len(body)
        values = plain = 0
        dictionary = read_at(source, each.start, each.pages[0].start - each.start)
        body += dictionary
        for place in places:
            page = read_at(source, place.start, place.size)
            header = page_header(page)
            values, plain = values + header.values, plain + header.size + header.plain
            body += page
        chunks.append(_chunk(each, start, len(dictionary), len(body) - start, values, plain))
    rows = sum(place.rows for place in chosen[0][1])
    told = _footer(footer, root, {each.leaf.path for each, _ in chosen}, rows, chunks)
    body += told + len(told).to_bytes(4, "little") + MAGIC
    # As the files of tables are read; without threads, since types made in Python must not end with one.
    with open_parquet(pa.BufferReader(body), coerce_int96_timestamp_unit="us") as file:
        return file.read(use_threads=False)


def _chunk(each: LeafPages, start: int, dictionary: int, size: int, values: int, plain: int) -> bytes:
    told = each.metadata
    metadata = encode_struct(
        (1, I32, told[1]),
        (2, LIST, (I32, told[2])),
        (3, LIST, (BINARY, told[3])),
        (4, I32, told[4]),
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
    """The footer of a file with some leaves of another one."""
    above = {path[:length] for path in leaves for length in range(len(path) + 1)}
    elements = []
    for node, (start, end, _) in zip(root.walk(), schema_elements(footer), strict=True):
        if node.path in above:
            children = sum(child.path in above for child in node.children)
            elements.append(footer[start:end] if node.is_leaf else with_numbers(footer, start, {_CHILDREN: children}))
    group = encode_struct((1, LIST, (STRUCT, list(chunks))), (2, I64, 0), (3, I64, rows))
    return encode_struct((1, I32, 2), (2, LIST, (STRUCT, elements)), (3, I64, rows), (4, LIST, (STRUCT, [group])))
