"""The structs of the footer, page indexes and Bloom filters that describe column chunks and row groups.

Owns the fields of these structs and the bits of filters. Leaves the Thrift encoding to `format.thrift`, and the schema
to `file_schema`. Spec: ``parquet.thrift``, ``PageIndex.md``, ``BloomFilter.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.files.parquet.format.thrift import (
    BINARY,
    BOOL,
    DATA_PAGE,
    DICTIONARY_PAGE,
    I32,
    I64,
    LIST,
    STRUCT,
    encode_struct,
)
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, Page
from parquet_variant.files.parquet.pages.encodings import Encoding
from parquet_variant.files.parquet.pages.file_schema import LeafColumn, Physical
from parquet_variant.files.parquet.pages.leaf_values import boundary_order, stored
from parquet_variant.inference.statistics import upper_text
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.values import set_blocks

# Longer bounds of a chunk are omitted, and longer bounds of a page are truncated.
_MAX_CHUNK_BOUND, _MAX_PAGE_BOUND = 4096, 64
# Bloom filters: bytes and words of a block, the size limit, and the rate of false positives.
_BLOCK, _WORDS, _MAX_BLOOM_BYTES, _FALSE_POSITIVES = 32, 8, 1 << 20, 0.01
# The order of a column, and the only algorithm, hash and compression of Bloom filters that the specification defines.
_FIRST_CHOICE = encode_struct((1, STRUCT, b"\x00"))


@dataclass(slots=True)
class PlacedChunk:
    """A column chunk written to the file: the statistics of its pages and the places of its parts."""

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
    """A column chunk whose bytes are copied from another file."""

    # The position of its struct in the footer of the other file, and the fields of the struct.
    position: int
    old: Mapping[int, Any]
    # Place and sizes in this file.
    start: int
    size: int
    plain_size: int
    moved: int  # The distance that its pages moved, relative to the other file.
    encoded: bytes = b""  # Its encoded struct in this file.


@dataclass(slots=True)
class PlacedGroup:
    """A row group written to the file."""

    rows: int
    chunks: Sequence[PlacedChunk | CopiedChunk]


def _level_counts(counts: Iterable[list[int]]) -> tuple[int, list[int]] | None:
    """Return the sums of level counts of pages; None if the counts of a page are unknown."""
    pages = list(counts)
    return (I64, [sum(column) for column in zip(*pages, strict=True)]) if all(pages) else None


def _size_statistics(pages: Sequence[Page], leaf: LeafColumn) -> bytes:
    is_text = leaf.type.physical == Physical.BYTE_ARRAY
    return encode_struct(
        (1, I64, sum(page.text_bytes for page in pages) if is_text else None),
        # Omitted, as the specification allows, where the counts follow from the counts of values and nulls.
        (2, LIST, _level_counts(page.repetition_counts for page in pages) if leaf.repetition else None),
        (3, LIST, _level_counts(page.definition_counts for page in pages) if leaf.definition > 1 else None),
    )


def _statistics(chunk: ColumnChunk) -> bytes | None:
    if not chunk.options.has_statistics:
        return None
    nulls, bounds = sum(page.nulls for page in chunk.pages), chunk.bounds
    low, high = (
        (None, None)
        if bounds is None
        else (bound if len(bound) <= _MAX_CHUNK_BOUND else None for bound in stored(bounds, chunk.leaf.type))
    )
    is_exact = [None if bound is None else not chunk.has_cut_bounds for bound in (high, low)]
    return encode_struct(
        (3, I64, nulls), (5, BINARY, high), (6, BINARY, low), (7, BOOL, is_exact[0]), (8, BOOL, is_exact[1])
    )


def _column_metadata(placed: PlacedChunk) -> bytes:
    chunk, leaf = placed.chunk, placed.leaf
    pages = Counter((DATA_PAGE, page.encoding) for page in chunk.pages)
    encodings = {encoding for _, encoding in pages} | {Encoding.RLE}
    if placed.dictionary_at is not None:
        pages[DICTIONARY_PAGE, Encoding.PLAIN] = 1
        encodings.add(Encoding.PLAIN)
    encoding_stats = [
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
        (13, LIST, (STRUCT, encoding_stats)),
        (14, I64, placed.bloom_at),
        (15, I32, placed.bloom_size),
        (16, STRUCT, _size_statistics(chunk.pages, leaf)),
    )


def _column_chunk(placed: PlacedChunk | CopiedChunk) -> bytes:
    if isinstance(placed, CopiedChunk):
        return placed.encoded
    column, offset = placed.column_index or (None, None), placed.offset_index or (None, None)
    places = ((4, I64, offset[0]), (5, I32, offset[1]), (6, I64, column[0]), (7, I32, column[1]))
    return encode_struct((2, I64, 0), (3, STRUCT, _column_metadata(placed)), *places)


def encoded_footer(
    elements: Sequence[bytes],
    groups: Sequence[PlacedGroup],
    key_values: Mapping[str, str],
    created_by: str,
    leaves: int,
) -> bytes:
    """Return the Thrift bytes of a footer from the encoded schema elements and the row groups."""
    pairs = [encode_struct((1, BINARY, key.encode()), (2, BINARY, value.encode())) for key, value in key_values.items()]
    row_groups = [
        encode_struct(
            (1, LIST, (STRUCT, [_column_chunk(chunk) for chunk in group.chunks])),
            (2, I64, sum(chunk.plain_size for chunk in group.chunks)),
            (3, I64, group.rows),
            (5, I64, group.chunks[0].start),
            (6, I64, sum(chunk.size for chunk in group.chunks)),
        )
        for group in groups
    ]
    return encode_struct(
        (1, I32, 2),
        (2, LIST, (STRUCT, elements)),
        (3, I64, sum(group.rows for group in groups)),
        (4, LIST, (STRUCT, row_groups)),
        (5, LIST, (STRUCT, pairs)),
        (6, BINARY, created_by.encode()),
        (7, LIST, (STRUCT, [_FIRST_CHOICE] * leaves)),
    )


def offset_index(placed: PlacedChunk) -> bytes:
    """Return the encoded offset index of a chunk."""
    pages = placed.chunk.pages
    locations = [
        encode_struct((1, I64, at), (2, I32, page.size), (3, I64, page.first_row))
        for at, page in zip(placed.page_offsets, pages, strict=True)
    ]
    is_text = placed.leaf.type.physical == Physical.BYTE_ARRAY
    texts = (I64, [page.text_bytes for page in pages]) if is_text else None
    return encode_struct((1, LIST, (STRUCT, locations)), (2, LIST, texts))


def column_index(placed: PlacedChunk) -> bytes | None:
    """Return the encoded column index of a chunk; None if the bounds of a page are unknown."""
    chunk, leaf = placed.chunk, placed.leaf
    pages = chunk.pages
    if not chunk.options.has_statistics or any(page.bounds is None and page.nulls < page.values for page in pages):
        return None
    page_bounds = [page.bounds for page in pages if page.bounds is not None]
    bounds = [
        (b"", b"") if page.bounds is None else _truncated(*stored(page.bounds, leaf.type), leaf) for page in pages
    ]
    repetition = [count for page in pages for count in page.repetition_counts] if leaf.repetition else None
    definition = [count for page in pages for count in page.definition_counts] if leaf.definition > 1 else None
    return encode_struct(
        (1, LIST, (BOOL, [page.bounds is None for page in pages])),
        (2, LIST, (BINARY, [low for low, _ in bounds])),
        (3, LIST, (BINARY, [high for _, high in bounds])),
        (4, I32, boundary_order(page_bounds)),
        (5, LIST, (I64, [page.nulls for page in pages])),
        (6, LIST, None if repetition is None else (I64, repetition)),
        (7, LIST, None if definition is None else (I64, definition)),
    )


def _truncated(low: bytes, high: bytes, leaf: LeafColumn) -> tuple[bytes, bytes]:
    """Return the bounds of a page; long ones become a shorter lower bound and a shorter upper bound."""
    if leaf.type.physical != Physical.BYTE_ARRAY:
        return low, high
    is_text = leaf.type.logical is not None
    if len(low) > _MAX_PAGE_BOUND:
        low = low[: _boundary(low) if is_text else _MAX_PAGE_BOUND]
    if len(high) > _MAX_PAGE_BOUND:
        if is_text:
            # The next string after all with the prefix that fits; text that is not UTF-8 is kept.
            with suppress(UnicodeDecodeError):
                prefix = high[: _boundary(high)].decode()
                high = (upper_text(f"{prefix}\0", len(prefix)) or "").encode() or high
        elif stem := high[:_MAX_PAGE_BOUND].rstrip(b"\xff"):
            high = stem[:-1] + bytes([stem[-1] + 1])
    return low, high


def _boundary(text: bytes) -> int:
    """Return where the first character begins that does not fit."""
    at = _MAX_PAGE_BOUND
    while at > 0 and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def bloom_filter(hashes: Sequence[npt.NDArray[np.int64]]) -> bytes:
    """Return header and bits of a Bloom filter from hashes, which may repeat."""
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *hashes]))
    bits = -_WORDS * len(distinct) / math.log(1 - _FALSE_POSITIVES ** (1 / _WORDS))
    size = min(max(_BLOCK, 1 << math.ceil(math.log2(max(bits / 8, 1)))), _MAX_BLOOM_BYTES)
    bitset = np.zeros(size, np.uint8)
    set_blocks(distinct, size // _BLOCK, address_of(bitset))
    header = encode_struct(
        (1, I32, size), (2, STRUCT, _FIRST_CHOICE), (3, STRUCT, _FIRST_CHOICE), (4, STRUCT, _FIRST_CHOICE)
    )
    return header + bitset.tobytes()
