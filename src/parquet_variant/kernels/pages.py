"""Where the values of a page of byte arrays lie, so that none of them has to be copied.

Owns the PLAIN encoding of byte arrays and the RLE and bit-packed runs of dictionary indices. Every bound is checked
before a byte is read. Leaves headers, levels and compression of pages to `parquet.value_pages`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int64s, kernel
from parquet_variant.kernels.memory import load_u8, load_u32

__all__ = ["dictionary_spans", "plain_spans"]


@kernel
def plain_spans(at: int, stop: int, starts: Int64s, stops: Int64s) -> bool:
    """Where each value of a PLAIN page starts and stops; whether they fill the page, no more and no less."""
    for i in range(len(starts)):
        if at + 4 > stop:
            return False
        size = load_u32(at)
        at += 4
        if at + size > stop:
            return False
        starts[i] = at
        at += size
        stops[i] = at
    return at == stop


@kernel
def dictionary_spans(
    at: int, stop: int, width: int, from_starts: Int64s, from_stops: Int64s, starts: Int64s, stops: Int64s
) -> bool:
    """The spans of a dictionary's values that a page of indices of `width` bits names; whether it names enough."""
    done, count, size = 0, len(starts), len(from_starts)
    while done < count:
        header = shift = 0
        more = True
        while more:
            if at >= stop or shift > 28:
                return False
            byte = load_u8(at)
            at += 1
            header |= (byte & 0x7F) << shift
            shift += 7
            more = byte >= 0x80
        packed = (header & 1) == 1
        run = header >> 1
        length = run * width if packed else (width + 7) >> 3
        if at + length > stop:
            return False
        if packed:
            run *= 8
        run = min(run, count - done)
        for k in range(run):
            bit = k * width if packed else 0
            index = 0
            for b in range(((bit & 7) + width + 7) >> 3):
                index |= load_u8(at + (bit >> 3) + b) << (8 * b)
            index = (index >> (bit & 7)) & ((1 << width) - 1)
            if index >= size:
                return False
            starts[done + k] = from_starts[index]
            stops[done + k] = from_stops[index]
        done += run
        at += length
    return True
