"""What a footer, the page indexes and bloom filters say of column chunks and row groups.

Owns those structs, field by field, and the bits of filters. Leaves their encoding to `format.thrift` and the schema to
`file_schema`. Spec: ``parquet.thrift``, ``PageIndex.md``, ``BloomFilter.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.bloom_hash import set_blocks
from parquet_variant.parquet.format.field_numbers import DATA_PAGE, DICTIONARY_PAGE
from parquet_variant.parquet.format.thrift import BINARY, BOOL, I32, I64, LIST, STRUCT, encode_struct
from parquet_variant.parquet.pages.bounds import boundary_order, stored
from parquet_variant.parquet.pages.column_chunk import ColumnChunk, Page
from parquet_variant.parquet.pages.encodings import Encoding
from parquet_variant.parquet.pages.file_schema import LeafColumn
from parquet_variant.parquet.pages.leaf_types import Physical
from parquet_variant.shredding.statistics import upper_text

# Longer bounds say nothing that is worth the room: those of a chunk are left out, those of pages are cut.
_MOST_CHUNK_BOUND, _MOST_PAGE_BOUND = 4096, 64
# Of bloom filters: bytes and words of a block, the most bytes, and the share of absent values that pass all the same.
_BLOCK, _WORDS, _MOST_BLOOM_BYTES, _FALSE = 32, 8, 1 << 20, 0.01
# The one algorithm, hash and compression that are defined.
_ONLY = encode_struct((1, STRUCT, b"\x00"))


@dataclass(slots=True)
class PlacedChunk:
    """A column chunk that is in the file: what its pages say, without their bytes, and where things are."""

    leaf: LeafColumn
    chunk: ColumnChunk
    codec: int
    start: int
    dictionary_at: int | None
    page_offsets: list[int]
    size: int
    plain_size: int
    bloom_at: int | None = None
    bloom_size: int | None = None
    column_index: tuple[int, int] | None = None
    offset_index: tuple[int, int] | None = None


@dataclass(slots=True)
class CopiedChunk:
    """A column chunk whose bytes are those of another file."""

    # Where its struct is in the other file's footer, and what that says.
    position: int
    old: Mapping[int, Any]
    # Of the chunk in this file.
    start: int
    size: int
    plain_size: int
    moved: int  # How much further its pages lie than in the other file.
    encoded: bytes = b""  # Its struct in this file.


@dataclass(slots=True)
class PlacedGroup:
    """A row group that is in the file."""

    rows: int
    chunks: Sequence[PlacedChunk | CopiedChunk]


def _counted(counts: Iterable[list[int]]) -> tuple[int, list[int]] | None:
    """The counts of pages as one list; None where those of a page are not known."""
    pages = list(counts)
    return (I64, [sum(each) for each in zip(*pages, strict=True)]) if all(pages) else None


def _size_statistics(pages: Sequence[Page], leaf: LeafColumn) -> bytes:
    is_text = leaf.type.physical == Physical.BYTE_ARRAY
    return encode_struct(
        (1, I64, sum(page.text_bytes for page in pages) if is_text else None),
        # The specification lets them go where they follow from the counts of values and nulls.
        (2, LIST, _counted(page.repetition_counts for page in pages) if leaf.repetition else None),
        (3, LIST, _counted(page.definition_counts for page in pages) if leaf.definition > 1 else None),
    )


def _statistics(chunk: ColumnChunk) -> bytes | None:
    if not chunk.options.has_statistics:
        return None
    nulls, bounds = sum(page.nulls for page in chunk.pages), chunk.bounds
    low, high = (
        (None, None)
        if bounds is None
        else (bound if len(bound) <= _MOST_CHUNK_BOUND else None for bound in stored(bounds, chunk.leaf.type))
    )
    is_known = [None if bound is None else not chunk.has_cut_bounds for bound in (high, low)]
    return encode_struct(
        (3, I64, nulls), (5, BINARY, high), (6, BINARY, low), (7, BOOL, is_known[0]), (8, BOOL, is_known[1])
    )


def _column_metadata(placed: PlacedChunk) -> bytes:
    chunk, leaf = placed.chunk, placed.leaf
    pages = Counter((DATA_PAGE, page.encoding) for page in chunk.pages)
    encodings = {encoding for _, encoding in pages} | {Encoding.RLE}
    if placed.dictionary_at is not None:
        pages[DICTIONARY_PAGE, Encoding.PLAIN] = 1
        encodings.add(Encoding.PLAIN)
    counted = [
        encode_struct((1, I32, kind), (2, I32, encoding), (3, I32, count)) for (kind, encoding), count in pages.items()
    ]
    return encode_struct(
        (1, I32, leaf.type.physical),
        (2, LIST, (I32, sorted(encodings))),
        (3, LIST, (BINARY, [name.encode() for name in leaf.path])),
        (4, I32, placed.codec),
        (5, I64, sum(page.values for page in chunk.pages)),
        (6, I64, placed.plain_size),
        (7, I64, placed.size),
        (9, I64, placed.page_offsets[0]),
        (11, I64, placed.dictionary_at),
        (12, STRUCT, _statistics(chunk)),
        (13, LIST, (STRUCT, counted)),
        (14, I64, placed.bloom_at),
        (15, I32, placed.bloom_size),
        (16, STRUCT, _size_statistics(chunk.pages, leaf)),
    )


def _column_chunk(placed: PlacedChunk | CopiedChunk) -> bytes:
    if isinstance(placed, CopiedChunk):
        return placed.encoded
    column, offset = placed.column_index or (None, None), placed.offset_index or (None, None)
    return encode_struct(
        (2, I64, 0),
        (3, STRUCT, _column_metadata(placed)),
        (4, I64, offset[0]),
        (5, I32, offset[1]),
        (6, I64, column[0]),
        (7, I32, column[1]),
    )


def _row_group(group: PlacedGroup) -> bytes:
    return encode_struct(
        (1, LIST, (STRUCT, [_column_chunk(chunk) for chunk in group.chunks])),
        (2, I64, sum(chunk.plain_size for chunk in group.chunks)),
        (3, I64, group.rows),
        (5, I64, group.chunks[0].start),
        (6, I64, sum(chunk.size for chunk in group.chunks)),
    )


def encoded_footer(
    elements: Sequence[bytes],
    groups: Sequence[PlacedGroup],
    key_values: Mapping[str, str],
    created_by: str,
    leaves: int,
) -> bytes:
    """The Thrift bytes of a footer, of the encoded elements of its schema and what was written."""
    pairs = [encode_struct((1, BINARY, key.encode()), (2, BINARY, value.encode())) for key, value in key_values.items()]
    type_order = encode_struct((1, STRUCT, b"\x00"))
    return encode_struct(
        (1, I32, 2),
        (2, LIST, (STRUCT, elements)),
        (3, I64, sum(group.rows for group in groups)),
        (4, LIST, (STRUCT, [_row_group(group) for group in groups])),
        (5, LIST, (STRUCT, pairs)),
        (6, BINARY, created_by.encode()),
        (7, LIST, (STRUCT, [type_order] * leaves)),
    )


def offset_index(placed: PlacedChunk) -> bytes:
    """Where the data pages of a chunk are."""
    pages = placed.chunk.pages
    locations = [
        encode_struct((1, I64, at), (2, I32, page.size), (3, I64, page.first_row))
        for at, page in zip(placed.page_offsets, pages, strict=True)
    ]
    is_text = placed.leaf.type.physical == Physical.BYTE_ARRAY
    texts = (I64, [page.text_bytes for page in pages]) if is_text else None
    return encode_struct((1, LIST, (STRUCT, locations)), (2, LIST, texts))


def column_index(placed: PlacedChunk) -> bytes | None:
    """What values the data pages of a chunk have; None if that is not known of a page."""
    chunk, leaf = placed.chunk, placed.leaf
    pages = chunk.pages
    if not chunk.options.has_statistics or any(page.bounds is None and page.nulls < page.values for page in pages):
        return None
    known = [page.bounds for page in pages if page.bounds is not None]
    bounds = [(b"", b"") if page.bounds is None else _cut(*stored(page.bounds, leaf.type), leaf) for page in pages]
    repetition = [count for page in pages for count in page.repetition_counts] if leaf.repetition else None
    definition = [count for page in pages for count in page.definition_counts] if leaf.definition > 1 else None
    return encode_struct(
        (1, LIST, (BOOL, [page.bounds is None for page in pages])),
        (2, LIST, (BINARY, [low for low, _ in bounds])),
        (3, LIST, (BINARY, [high for _, high in bounds])),
        (4, I32, boundary_order(known)),
        (5, LIST, (I64, [page.nulls for page in pages])),
        (6, LIST, None if repetition is None else (I64, repetition)),
        (7, LIST, None if definition is None else (I64, definition)),
    )


def _cut(low: bytes, high: bytes, leaf: LeafColumn) -> tuple[bytes, bytes]:
    """The bounds of a page, where they are long a shorter one that is no greater, and one that is no less."""
    if leaf.type.physical != Physical.BYTE_ARRAY:
        return low, high
    is_text = leaf.type.logical is not None
    if len(low) > _MOST_PAGE_BOUND:
        low = low[: _boundary(low) if is_text else _MOST_PAGE_BOUND]
    if len(high) > _MOST_PAGE_BOUND:
        high = (_next_text(high) if is_text else _next_bytes(high[:_MOST_PAGE_BOUND])) or high
    return low, high


def _boundary(text: bytes) -> int:
    """Where the last character begins that does not fit."""
    at = _MOST_PAGE_BOUND
    while at > 0 and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _next_bytes(prefix: bytes) -> bytes | None:
    """The least bytes, no longer, that come after all that begin so; None if there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(text: bytes) -> bytes | None:
    """As `_next_bytes` of what fits, but UTF-8; None for what is not."""
    try:
        kept = text[: _boundary(text)].decode()
    except UnicodeDecodeError:
        return None
    following = upper_text(f"{kept}\0", len(kept))
    return None if following is None else following.encode()


def bloom_filter(hashes: Sequence[npt.NDArray[np.int64]]) -> bytes:
    """The header and the bits of a filter of some values, each of which may be there more than once."""
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *hashes]))
    bits = -_WORDS * len(distinct) / math.log(1 - _FALSE ** (1 / _WORDS))
    size = min(max(_BLOCK, 1 << math.ceil(math.log2(max(bits / 8, 1)))), _MOST_BLOOM_BYTES)
    bitset = np.zeros(size, np.uint8)
    set_blocks(distinct, size // _BLOCK, address_of(bitset))
    header = encode_struct((1, I32, size), (2, STRUCT, _ONLY), (3, STRUCT, _ONLY), (4, STRUCT, _ONLY))
    return header + bitset.tobytes()
