"""Conversion of JSON arrays and of documents over several lines to one value per line, block by block.

The splitters find the end of each value, for which strings, escapes, brackets and commas are enough. The parser checks
that the values are valid JSON, because it reads every byte of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import JsonError
from parquet_variant.kernels.buffer_pool import adopt

SPACE, _NEWLINE, _COMMA = 0x20, 0x0A, 0x2C
WHITESPACE = b" \t\r\n"
# The largest line, value or row.
MAX_LINE_BYTES = 256 << 20
# Starts each text of a JSON text sequence (RFC 7464).
RECORD_SEPARATOR = b"\x1e"

# Classes of bytes outside strings: opening bracket, closing bracket, comma, line end, colon.
OPENING, CLOSING, COMMA, LINE_END, COLON = 1, 2, 3, 4, 5
_CLASS = np.zeros(256, np.uint8)
_CLASS[[ord("["), ord("{")]] = OPENING
_CLASS[[ord("]"), ord("}")]] = CLOSING
_CLASS[_COMMA] = COMMA
_CLASS[[_NEWLINE, 0x0D]] = LINE_END
_CLASS_WITH_COLONS = _CLASS.copy()
_CLASS_WITH_COLONS[ord(":")] = COLON
# The change of the nesting depth, by class.
DEPTH_STEP = np.array([0, 1, -1, 0, 0, 0], np.int64)


class Splitter:
    """The state of a splitter between two blocks, and the scan of a block for marks."""

    # Whether colons are marks too.
    colons = False

    def __init__(self) -> None:
        self.elements = 0
        self.error: JsonError | None = None
        self.restart()

    def restart(self) -> None:
        """Forget the value that has begun."""
        self.text = bytearray()  # the part of the current value that earlier blocks contained
        # A trailing run of backslashes, held back because the byte that it escapes is in the next block.
        self._backslashes = b""
        self._in_string = False
        self.depth = 0

    def raise_pending_error(self) -> None:
        """Raise the error that an earlier block ended with, now that the values before it were returned."""
        if self.error is not None:
            raise self.error

    def remaining(self) -> bytes:
        """Return complete values that were held back, after an error."""
        return b""

    def scannable(self, block: bytes) -> bytes:
        """Return the text that can be scanned: the block after held-back backslashes, without those at its end."""
        block = self._backslashes + block
        length = len(block.rstrip(b"\\"))
        block, self._backslashes = block[:length], block[length:]
        return block

    def scan(self, block: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Return the bytes, and the positions and classes of the marks outside strings.

        Line ends inside strings are replaced by a byte that JSON forbids too.
        """
        from parquet_variant.kernels.json.scan import KIND_BITS, find_marks

        # A copy, because line ends are overwritten.
        data = np.frombuffer(block, np.uint8).copy()
        classes = _CLASS_WITH_COLONS if self.colons else _CLASS
        exported, self._in_string = find_marks(data, classes, self._in_string)
        marks = adopt(*exported)
        return data, marks >> KIND_BITS, (marks & ((1 << KIND_BITS) - 1)).astype(np.uint8)

    @property
    def pending(self) -> int:
        """The number of bytes of a value that has begun and not ended."""
        return len(self.text) + len(self._backslashes)

    def unfinished(self) -> bytes:
        """Return the text of a value that has begun and not ended."""
        return (bytes(self.text) + self._backslashes).strip(WHITESPACE)


class ArraySplitter(Splitter):
    r"""Convert the blocks of a JSON array to lines with one element each.

    Line ends between tokens become spaces. A raw line end inside a string, which JSON forbids, becomes another
    forbidden byte, so that the parser still refuses the element. A missing element (``[1,,2]``) becomes a line with a
    comma, which the parser refuses too.

    >>> splitter = ArraySplitter()
    >>> splitter.feed(b'[{"a": [1,')
    b''
    >>> splitter.feed(b' 2]}, 3]')
    b'{"a": [1, 2]}\n 3\n'
    >>> splitter.finish(), splitter.elements
    (b'', 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self._has_text = False

    def feed(self, block: bytes) -> bytes:
        """Return the elements that this block completes, each followed by a newline.

        Raises `JsonError` for an array that ends with ``}``, or for text after its end (``reason="trailing-text"``),
        after the elements before it were returned.
        """
        self.raise_pending_error()
        block = self.scannable(block)
        if self.closed:
            self._check_after(block)
            return b""
        from parquet_variant.kernels.json.elements import ArrayPlace, split_elements

        data = np.frombuffer(block, np.uint8).copy()
        before = ArrayPlace(self.depth, self._in_string, self._has_text)
        (self.depth, self._in_string, self._has_text), start, stop, ended, empty = split_elements(data, before)
        self.elements += ended
        self.closed = bool(ended) and block[stop - 1 : stop] != b","
        if self.closed:
            data[stop - 1] = _NEWLINE
            if block[stop - 1 : stop] == b"]":
                self._check_after(block[stop:])
            else:  # raised by the next call
                self.error = JsonError(
                    f"element {self.elements} of the JSON array is followed by }}, not by ]: fix the file"
                )
        if not ended:
            self.text += data[start:].tobytes()
            return b""
        lines = bytes(self.text) + data[start:stop].tobytes()
        self.text = bytearray() if self.closed else bytearray(data[stop:].tobytes())
        if not empty:
            return lines
        if self.closed and self.elements == 1:
            self.elements = 0
            return b""
        return b"".join(line if line.strip() else b",\n" for line in lines.splitlines(keepends=True))

    def finish(self) -> bytes:
        """Check that the array was closed at the end of the text.

        Raises `JsonError` as `feed` does, and if the array was not closed (``reason="truncated"``).
        """
        self.raise_pending_error()
        if not self.closed:
            raise JsonError(
                f"the JSON array ends after {self.elements} elements without its closing ]: the file is truncated; "
                "get a complete copy",
                reason="truncated",
            )
        return b""

    def _check_after(self, text: bytes) -> None:
        """Check the text after the array; an error is raised by the next call."""
        if text.strip(WHITESPACE):
            self.error = JsonError(
                f"text follows the end of the JSON array: {text.strip()[:40]!r}; "
                "if every line is a separate value, use input_format='ndjson'",
                reason="trailing-text",
            )


class DocumentSplitter(Splitter):
    r"""Convert the blocks of JSON documents, over many lines or several on one, to lines with one document each.

    A document is an object or array up to its last bracket. Any other value ends with its line, as in NDJSON. A line
    that closes more brackets than were opened is a document of its own, so that one invalid document does not affect
    the documents after it. In a JSON text sequence (RFC 7464) a record separator ends a document in any state.

    >>> splitter = DocumentSplitter()
    >>> splitter.feed(b'{\n  "a": 1\n}\n{"a":')
    b'{   "a": 1 }\n'
    >>> splitter.feed(b' 2}{"a": 3}\n4\n')
    b'{"a": 2}\n{"a": 3}\n4\n'
    >>> splitter.unfinished(), splitter.elements
    (b'', 4)

    >>> DocumentSplitter(is_sequence=True).feed(b'\x1e{"a": [\n1\x1e{"a":\n2}')
    b'{"a": [ 1\n{"a": 2}\n'
    """

    def __init__(self, is_sequence: bool = False) -> None:
        super().__init__()
        self._is_sequence = is_sequence

    def feed(self, block: bytes) -> bytes:
        """Return the documents that this block completes, each followed by a newline."""
        if not self._is_sequence:
            return self._feed(block)
        first, *records = block.split(RECORD_SEPARATOR)
        lines = [self._feed(first)]
        for record in records:
            lines += [self.finish(), self._feed(record)]
        return b"".join(lines)

    def _feed(self, block: bytes) -> bytes:
        data, marks, kinds = self.scan(self.scannable(block))
        depth = self.depth + np.cumsum(DEPTH_STEP[kinds])
        # A depth below zero means that more was closed than opened; the depth restarts at zero there.
        depth -= np.minimum(np.minimum.accumulate(depth), 0) if len(depth) else depth
        inside = (kinds == LINE_END) & (depth > 0)
        data[marks[inside]] = SPACE
        ends = marks[(depth == 0) & ((kinds == CLOSING) | (kinds == LINE_END))]
        if len(depth):
            self.depth = int(depth[-1])
        view = data.data
        parts: list[bytes] = []
        start = 0
        for end in (ends + 1).tolist():
            document = (bytes(self.text) + view[start:end]).strip(WHITESPACE)
            self.text.clear()
            start = end
            if document:
                self.elements += 1
                parts.append(document)
        self.text += view[start:]
        return b"\n".join([*parts, b""]) if parts else b""

    def finish(self) -> bytes:
        """Return the text after the last document as a line: a last scalar, or a truncated document."""
        text = self.unfinished()
        self.restart()
        self.elements += bool(text)
        return text + b"\n" if text else b""
