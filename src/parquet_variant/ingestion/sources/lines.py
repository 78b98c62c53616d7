"""`split_lines`: the lines of a chunk as an Arrow array, without blank lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.ingestion.sources.chunks import Chunk
from parquet_variant.types import MAX_OFFSET

_SPACE, _RECORD_SEPARATOR = 0x20, 0x1E
_IS_BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
# Bytes of a line that are looked at in all lines at once.
_INDENTATION = 16


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a chunk that are not blank.

    Parameters
    ----------
    text
        The lines as an Arrow array over the bytes of the chunk, including their newlines.
    number
        ``text[i]`` is line ``chunk.first_line + number[i]`` of the file.
    """

    text: pa.Array
    number: npt.NDArray[np.int64]


def split_lines(chunk: Chunk) -> Lines:
    r"""Split a chunk into its lines, as an Arrow string array over the bytes of the chunk, without blank lines.

    The text is not checked to be UTF-8, because the parser does that. A record separator at the start of a line, as in
    JSON text sequences (RFC 7464), becomes a space.

    >>> from parquet_variant.ingestion.sources.input_files import InputFile
    >>> lines = split_lines(Chunk(InputFile("a.json"), b'{"a": 1}\n\n[2]'))
    >>> lines.text.to_pylist(), lines.number.tolist()
    (['{"a": 1}\n', '[2]'], [0, 2])
    """
    ends = chunk.ends
    offsets = np.concatenate([[0], ends]).astype(np.int32 if len(chunk.data) <= MAX_OFFSET else np.int64)
    string_type = pa.string() if offsets.dtype == np.int32 else pa.large_string()
    data = np.frombuffer(chunk.data, np.uint8)
    starts = offsets[:-1]
    first_bytes = data[starts] if len(starts) else np.zeros(0, np.uint8)
    separators = starts[first_bytes == _RECORD_SEPARATOR]
    if len(separators):
        data = data.copy()
        data[separators] = _SPACE
        first_bytes = data[starts]
    text = pa.Array.from_buffers(string_type, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    number = np.arange(len(ends))
    blank = _blank_lines(data, offsets, first_bytes)
    if len(blank):
        number = np.delete(number, blank)
        text = text.take(pa.array(number))
    return Lines(text, number)


def _blank_lines(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[Any], first_bytes: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]:
    """Return the indexes of the lines that contain only whitespace."""
    candidates = np.flatnonzero(_IS_BLANK[first_bytes])
    for distance in range(1, _INDENTATION):  # most lines that begin with whitespace are indented, not blank
        places = offsets[candidates] + distance
        ends = places >= offsets[candidates + 1]
        candidates = candidates[ends | _IS_BLANK[data[np.where(ends, 0, places)]]]
    is_blank = [not data[offsets[i] : offsets[i + 1]].tobytes().strip(b" \t\r\n") for i in candidates.tolist()]
    return candidates[np.array(is_blank, np.bool_)]
