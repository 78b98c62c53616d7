"""Text is cut at lines, whatever the sizes of pieces, reads and ranges, also where its memory is used again."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.ingestion.sources.splits import Fill, line_chunks, range_text, stream_text
from parquet_variant.kernels.buffer_pool import release

TEXTS = st.lists(st.sampled_from([b"", b"a", b"bc", b"x" * 40, b"\n", b"\n\n", b"d\n"]), max_size=30).map(b"".join)


def pieces_of(fill: Fill, size: int, most: int = 1 << 20) -> list[bytes]:
    pieces = []
    for piece in line_chunks(fill, size, most):
        pieces.append(piece.tobytes())
        piece[:] = 0  # what the next user of the memory may do
        release(piece)
    return pieces


@given(TEXTS, st.integers(0, 50), st.integers(1, 70))
def test_pieces_are_the_text_and_end_at_lines(text: bytes, head: int, size: int) -> None:
    pieces = pieces_of(stream_text(text[:head], io.BytesIO(text[head:])), size)

    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


@given(TEXTS, st.lists(st.integers(0, 200), max_size=5), st.integers(1, 70))
def test_ranges_share_the_lines_out(text: bytes, cuts: list[int], size: int) -> None:
    starts = [0, *(at + 1 for at, byte in enumerate(text) if byte == 0x0A)]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    found = b""
    for start, end in pairwise(bounds):
        first = next((at for at in starts if at >= start), len(text))
        if first < end:
            found += b"".join(pieces_of(range_text(io.BytesIO(text), first, end), size))

    assert found == text


def test_a_newline_is_found_however_far_away_it_is() -> None:
    text = b"x" * 200_000 + b"\n" + b"y" * 200_000
    assert pieces_of(stream_text(b"", io.BytesIO(text)), 500_000) == [text[:200_001], text[200_001:]]
    assert pieces_of(range_text(io.BytesIO(text), 0, 10), 500_000) == [text[:200_001]]


def test_a_line_that_is_too_long_is_refused() -> None:
    with pytest.raises(OverflowError):
        pieces_of(stream_text(b"", io.BytesIO(b"x" * 1000)), 64, most=500)


def test_pieces_lie_in_the_memory_of_earlier_pieces() -> None:
    places = []
    for piece in line_chunks(stream_text(b"", io.BytesIO(b"12345678901234\n" * 70_000)), 1 << 16, 1 << 20):
        places.append(piece.ctypes.data)
        release(piece)

    assert len(places) > 10
    assert len(set(places)) <= 4
