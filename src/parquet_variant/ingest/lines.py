"""Chunks of text as lines.

Owns cutting a chunk. Leaves reading files to `sources`, and what a line says to the parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.ingest.sources import Chunk
from parquet_variant.types import MAX_OFFSET


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a chunk that are not blank, as an Arrow array without a copy.

    ``text[i]`` is line ``chunk.first_line + number[i]`` of the file; the line's newline is part of the text.
    """

    text: pa.Array
    number: np.ndarray[Any, np.dtype[np.int64]]


def split_lines(chunk: Chunk) -> Lines:
    r"""Cut a chunk into its lines as an Arrow string array over the chunk's own bytes; blank lines are left out.

    The text is not checked to be UTF-8: the parser does that.

    >>> lines = split_lines(Chunk("a.json", b'{"a": 1}\n\n[2]'))
    >>> lines.text.to_pylist(), lines.number.tolist()
    (['{"a": 1}\n', '[2]'], [0, 2])
    """
    ends = chunk.ends
    offsets = np.concatenate([[0], ends]).astype(np.int32 if len(chunk.data) <= MAX_OFFSET else np.int64)
    kind = pa.string() if offsets.dtype == np.int32 else pa.large_string()
    text = pa.Array.from_buffers(kind, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(chunk.data)])
    number = np.arange(len(ends))
    blank = _blank_lines(chunk.data, offsets)
    if len(blank):
        number = np.delete(number, blank)
        text = text.take(pa.array(number))
    return Lines(text, number)


def _blank_lines(data: bytes | npt.NDArray[np.uint8], offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Indexes of the lines that hold whitespace only."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    # A line of JSON can be as short as one digit: only lines that begin with whitespace need a look.
    first = np.frombuffer(data, np.uint8)[starts] if len(starts) else np.zeros(0, np.uint8)
    maybe = np.flatnonzero((first == 0x0A) | (first == 0x20) | (first == 0x0D) | (first == 0x09))
    blank = [i for i in maybe.tolist() if not bytes(data[starts[i] : starts[i] + lengths[i]]).strip(b" \t\r\n")]
    return np.array(blank, np.int64)
