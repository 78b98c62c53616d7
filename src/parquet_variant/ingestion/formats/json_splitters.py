"""Splits JSON text that is not a value a line into one that is, block by block: arrays, and documents of many lines.

Owns where a value ends: the only JSON grammar known here is strings, escapes, brackets and commas. Leaves whether a
value is valid JSON to the parser, which sees every byte of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import JsonError
from parquet_variant.kernels.buffer_pool import adopt

SPACE, _NEWLINE, _COMMA = 0x20, 0x0A, 0x2C
WHITESPACE = b" \t\r\n"

# What each byte means outside strings: bracket that opens or closes, comma, line end.
_CLASS = np.zeros(256, np.uint8)
_CLASS[[ord("["), ord("{")]] = 1
_CLASS[[ord("]"), ord("}")]] = 2
_CLASS[_COMMA] = 3
_CLASS[[_NEWLINE, 0x0D]] = 4
_WITH_COLONS = _CLASS.copy()
_WITH_COLONS[ord(":")] = 5
_DEPTH_STEP = np.array([0, 1, -1, 0, 0], np.int64)


class Splitter:
    """What all splitters know between two blocks."""

    # Whether colons are marks too.
    colons = False

    def __init__(self) -> None:
        self.elements = 0
        self.text = bytearray()  # of the value that has begun
        self._held = b""  # a trailing run of backslashes: what it escapes is not known yet
        self._in_string = False
        self.depth = 0
        self.error: JsonError | None = None

    def refuse(self) -> None:
        """Raise the error of the text before, whose good values were given."""
        if self.error is not None:
            raise self.error

    def whole(self, block: bytes) -> bytes:
        """The text that can be looked at: without a run of backslashes at its end, after the one held before."""
        block = self._held + block
        kept = len(block.rstrip(b"\\"))
        block, self._held = block[:kept], block[kept:]
        return block

    def scan(self, block: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """The bytes, with line ends inside strings made unreadable; the marks outside strings, and their classes."""
        from parquet_variant.kernels.json.scan import KIND_BITS, find_marks

        # Copied: line ends are overwritten.
        data = np.frombuffer(block, np.uint8).copy()
        classes = _WITH_COLONS if self.colons else _CLASS
        exported, self._in_string = find_marks(data, classes, self._in_string)
        marks = adopt(*exported)
        return data, marks >> KIND_BITS, (marks & ((1 << KIND_BITS) - 1)).astype(np.uint8)

    @property
    def pending(self) -> int:
        """Bytes of a value that was begun and not ended yet."""
        return len(self.text) + len(self._held)

    def rest(self) -> bytes:
        """The text of a value that was begun and never ended."""
        return (bytes(self.text) + self._held).strip(WHITESPACE)


class ArraySplitter(Splitter):
    r"""Turn the blocks of a JSON array into lines, one element each.

    Line ends between tokens become spaces. A raw line end inside a string, which JSON forbids, becomes another
    forbidden byte, so that the parser still refuses the element. A missing element (``[1,,2]``) becomes a line that
    holds a comma, which the parser refuses too.

    >>> splitter = ArraySplitter()
    >>> splitter.feed(b'[{"a": [1,')
    b''
    >>> splitter.feed(b' 2]},3]')
    b'{"a": [1, 2]}\n3\n'
    >>> splitter.finish(), splitter.elements
    (b'', 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def feed(self, block: bytes) -> bytes:
        """Give the elements that this block completes, each ended by a newline.

        Raises `JsonError` for an array that ends with ``}``, or for text after its end (``reason="trailing-text"``);
        once the elements before it were given.
        """
        self.refuse()
        block = self.whole(block)
        if self.closed:
            self._check_after(block)
            return b""
        data, marks, kinds = self.scan(block)
        data[marks[kinds == 4]] = SPACE
        depth = self.depth + np.cumsum(_DEPTH_STEP[kinds])
        ends = marks[((kinds == 3) & (depth == 1)) | ((kinds == 2) & (depth == 0))]
        closing = marks[(kinds == 2) & (depth == 0)]
        start = 0
        if self.depth == 0 and len(opening := marks[kinds == 1]):
            start = int(opening[0]) + 1  # line ends may stand before it
        if len(closing):
            self.closed = True
            ends = ends[ends <= closing[0]]
            at = int(closing[0])
            if block[at : at + 1] != b"]":
                self.error = JsonError(
                    f"element {self.elements + len(ends)} of the JSON array is followed by }}, not ]"
                )
            else:
                self._check_after(block[at + 1 :])
        elif len(marks):
            self.depth = int(depth[-1])
        return self._lines(data, start, ends)

    def finish(self) -> bytes:
        """Say that the text is at its end, where no element is left.

        Raises `JsonError` as `feed`, and when the array was never closed (``reason="truncated"``).
        """
        self.refuse()
        if not self.closed:
            raise JsonError(
                f"the JSON array ends after {self.elements} elements without its closing ]: the file is cut off",
                reason="truncated",
            )
        return b""

    def _lines(self, data: npt.NDArray[np.uint8], start: int, ends: npt.NDArray[np.int64]) -> bytes:
        view = data.data
        parts: list[bytes] = []
        for end in ends.tolist():
            element = (bytes(self.text) + view[start:end]).strip(WHITESPACE)
            self.text.clear()
            start = end + 1
            if not element:
                if self.closed and self.elements == 0 and len(ends) == 1:
                    continue  # the empty array
                element = b","
            self.elements += 1
            parts.append(element)
        if not self.closed:
            self.text += view[start:]
        return b"\n".join([*parts, b""])

    def _check_after(self, text: bytes) -> None:
        if text.strip(WHITESPACE):
            self.error = JsonError(
                f"text follows the end of the JSON array: {text.strip()[:40]!r}; "
                'if every line is a value of its own, say format="ndjson"',
                reason="trailing-text",
            )


class DocumentSplitter(Splitter):
    r"""Turn the blocks of JSON documents, over many lines or several on one, into lines, one document each.

    A document is an object or array up to its last bracket; anything else ends with its line, as in NDJSON. What
    closes more than was opened ends with its line too, so that one broken document does not take the others with it.

    >>> splitter = DocumentSplitter()
    >>> splitter.feed(b'{\n  "a": 1\n}\n{"a":')
    b'{   "a": 1 }\n'
    >>> splitter.feed(b' 2}{"a": 3}\n4\n')
    b'{"a": 2}\n{"a": 3}\n4\n'
    >>> splitter.rest(), splitter.elements
    (b'', 4)
    """

    def feed(self, block: bytes) -> bytes:
        """Give the documents that this block completes, each ended by a newline."""
        data, marks, kinds = self.scan(self.whole(block))
        steps = _DEPTH_STEP[kinds]
        depth = self.depth + np.cumsum(steps)
        # Below zero, what was never opened was closed: from there on nothing counts as open.
        depth -= np.minimum(np.minimum.accumulate(depth), 0) if len(depth) else depth
        inside = (kinds == 4) & (depth > 0)
        data[marks[inside]] = SPACE
        ends = marks[(depth == 0) & ((kinds == 2) | (kinds == 4))]
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
        """The text that is left at the end, as a line: a last scalar, or a document that is cut off."""
        rest = self.rest()
        self.text.clear()
        self.elements += bool(rest)
        return rest + b"\n" if rest else b""
