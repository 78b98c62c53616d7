"""`TextLayout`: how JSON values are arranged in a text (lines, an array, documents, a path, or CSV rows).

This module checks the options, detects the layout from the start of a text, and converts arrays and documents over
several lines to one value per line, block by block. `wrapped` and `csv_rows` convert the other layouts. The splitters
find the end of each value, for which strings, escapes, brackets and commas are enough. The parser checks that the
values are valid JSON, because it reads every byte of them.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import JsonError, VariantFileError, bad_option, check_choice
from parquet_variant.ingestion.formats.csv_rows import BOM, CsvOptions
from parquet_variant.io.directories import VORTEX_MAGIC
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.support.options import InputFormat
from parquet_variant.support.records import Record
from parquet_variant.types.path import Segment, VariantPath, Wildcard

SPACE, _NEWLINE, _COMMA = 0x20, 0x0A, 0x2C
WHITESPACE = b" \t\r\n"
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
        self._before_error = b""  # the values of a block with an error
        self.restart()

    def restart(self) -> None:
        """Forget the value that has begun."""
        self.text = bytearray()  # the part of the current value that earlier blocks contained
        # A trailing run of backslashes, held back because the byte that it escapes is in the next block.
        self._backslashes = b""
        self._in_string = False
        self.depth = 0

    def remaining(self) -> bytes:
        """Return the values before an error that were not returned."""
        return self._before_error

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
        """Return the elements that this block completes, each followed by a newline. Raises `JsonError` after them."""
        block = self.scannable(block)
        if self.closed:
            _check_after(block)
            return b""
        from parquet_variant.kernels.json.scan import split_elements

        data = np.frombuffer(block, np.uint8).copy()
        place, start, stop, ended, empty = split_elements(data, self.depth, self._in_string, self._has_text)
        self.depth, self._in_string, self._has_text = place
        self.elements += ended
        self.closed = bool(ended) and block[stop - 1 : stop] != b","
        if not ended:
            self.text += data[start:].tobytes()
            return b""
        if self.closed:
            data[stop - 1] = _NEWLINE
        lines, number = bytes(self.text) + data[start:stop].tobytes(), self.elements
        self.text = bytearray() if self.closed else bytearray(data[stop:].tobytes())
        if empty and self.closed and number == 1:
            lines, self.elements = b"", 0
        elif empty:
            lines = b"".join(line if line.strip() else b",\n" for line in lines.splitlines(keepends=True))
        if self.closed:
            self._before_error = lines
            if block[stop - 1 : stop] != b"]":
                raise JsonError(f"element {number} of the JSON array is followed by }}, not by ]: fix the file")
            _check_after(block[stop:])
            self._before_error = b""
        return lines

    def finish(self) -> bytes:
        """Check that the array was closed at the end of the text."""
        if not self.closed:
            raise JsonError(
                f"the JSON array ends after element {self.elements} without its closing ]: the file is truncated; "
                "get a complete copy",
                reason="truncated",
            )
        return b""


def _check_after(text: bytes) -> None:
    """Check the text after an array."""
    if text.strip(WHITESPACE):
        raise JsonError(
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


_SPARK_NAMES = {"sep": "delimiter", "quote": "quote_char", "nullValue": "null_values"}


class TextLayout(Record):
    """The arrangement of JSON values in a text, and the options of CSV; `root` is the path of the rows in a document.

    >>> layout = TextLayout(root=VariantPath.parse("$.pages[*].items[*]"))
    >>> layout.prefix, str(layout.path_in_values)
    (('pages',), "$['items'][*]")
    """

    format: InputFormat = "auto"
    root: VariantPath | None = None
    csv: CsvOptions = field(default_factory=CsvOptions)

    def __post_init__(self) -> None:
        check_choice("input_format", self.format, get_args(InputFormat))
        if self.root is not None and self.format == "csv":
            raise bad_option("root applies to JSON, not to CSV: remove root=")

    @property
    def prefix(self) -> tuple[Segment, ...] | None:
        """The names before the first ``[*]`` of the root, whose array is read element by element; None without one."""
        if self.root is None or not self.root.has_wildcard:
            return None
        segments = tuple(self.root.segments)
        first = next(index for index, segment in enumerate(segments) if isinstance(segment, Wildcard))
        return segments[:first] if all(isinstance(segment, str) for segment in segments[:first]) else None

    @property
    def path_in_values(self) -> VariantPath:
        """The part of the root that remains to be applied to each value that is read from the text."""
        if self.root is None:
            return VariantPath()
        prefix = self.prefix
        return self.root if prefix is None else VariantPath(tuple(self.root.segments)[len(prefix) + 1 :])


# The layout is detected from the text.
DETECTED = TextLayout()


def option_name(option: str) -> str:
    """Return the name of a parse option that may be spelled as in Spark.

    >>> option_name("maxDepth"), option_name("sep"), option_name("nullValue"), option_name("delimiter")
    ('max_depth', 'delimiter', 'null_values', 'delimiter')
    """
    return _SPARK_NAMES.get(option) or re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", option)


# UTF-16 and UTF-32 start with a byte order mark, or have zero bytes next to their ASCII characters.
_OTHER_ENCODINGS = re.compile(
    rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]|[^\0]\0\0\0|\0\0\0[^\0]|[{[\"]\0|\0[{[\"]",
    re.DOTALL,
)
_ARCHIVE = (
    "compressed with {}, which is not supported: decompress it, use gzip or zstd, or leave the file out with exclude="
)
_FORMAT = "{}, not JSON: name JSON files, or leave it out with exclude="
_IN_COLUMN = "; for JSON in a column of the file, name the column with json_column="
# Magic numbers of files that are not text, and the rest of the message about them.
_NOT_TEXT = (
    (b"\xfd7zXZ", _ARCHIVE.format("xz")),
    (b"PK\x03\x04", _ARCHIVE.format("zip")),
    (b"7z\xbc\xaf", _ARCHIVE.format("7z")),
    (b"\x1f\x9d", _ARCHIVE.format("compress")),
    (b"Obj\x01", _FORMAT.format("an Avro file")),
    (b"ARROW1\0\0", _FORMAT.format("an Arrow file") + _IN_COLUMN),
    (VORTEX_MAGIC, _FORMAT.format("a Vortex file") + _IN_COLUMN),
    (b"SQLite format 3\0", _FORMAT.format("an SQLite database")),
    (b"PARE", _FORMAT.format("an encrypted Parquet file")),
    (b"PAR1", "a Parquet file, not JSON: copy Variants of Parquet files with `variant rewrite`" + _IN_COLUMN),
)
_DETECT_BYTES = 1 << 20


def start_of_text(head: bytes, file: str) -> int:
    """Return the length of a UTF-8 byte order mark; refuse bytes that cannot be the start of JSON in UTF-8."""
    if _OTHER_ENCODINGS.match(head):
        raise VariantFileError(f"{file} is UTF-16 or UTF-32 text: convert it to UTF-8", reason="encoding", file=file)
    for magic, words in _NOT_TEXT:
        if head.startswith(magic):
            raise VariantFileError(f"{file} is {words}", reason="not-json", file=file)
    return len(BOM) if head.startswith(BOM) else 0


def detect(stream: Any, file: str, format: InputFormat) -> tuple[bytes, InputFormat]:
    """Read the head of a text, and return it without its byte order mark, with the detected input format."""
    head = stream.read(_DETECT_BYTES)
    head = head[start_of_text(head, file) :]
    if format in ("ndjson", "documents", "csv"):
        return head, format
    if not head.lstrip(WHITESPACE).startswith(b"["):
        if format == "array":
            problem = f"{file} is not a JSON array, because it does not begin with [: remove input_format="
            raise JsonError(problem, reason="not-an-array", file=file)
        return head, _lines_or_documents(head)
    if format == "array":
        return head, format
    splitter = ArraySplitter()
    try:
        splitter.feed(head)
        # If the array ends exactly at the end of the head, the text after it decides.
        while splitter.closed and (block := stream.read(_DETECT_BYTES)):
            head += block
            splitter.feed(block)
    except JsonError:
        return head, _lines_or_documents(head)
    return head, "array"


def is_json_sequence(head: bytes) -> bool:
    """Return whether a text is a JSON text sequence (RFC 7464): it begins with a record separator."""
    return head.lstrip(WHITESPACE).startswith(RECORD_SEPARATOR)


def _lines_or_documents(head: bytes) -> InputFormat:
    """Return "documents" if the first line is not a JSON value, but the text from its start contains one; in a JSON
    text sequence every text must be on one line for "ndjson".
    """
    if is_json_sequence(head):
        lines = [line for line in head.split(b"\n") if line.strip()]
        if len(lines) > 1 and len(head) >= _DETECT_BYTES - len(BOM):
            lines.pop()  # The last line of the head may be incomplete.
        is_text = (line.startswith(RECORD_SEPARATOR) and line.count(RECORD_SEPARATOR) == 1 for line in lines)
        return "ndjson" if all(is_text) else "documents"
    text = head.lstrip(WHITESPACE)
    line = text.partition(b"\n")[0].strip()
    if not text.startswith((b"{", b"[")) or _is_value(line):
        return "ndjson"
    values_on_line = DocumentSplitter().feed(line + b"\n").splitlines()
    if len(values_on_line) > 1:
        return "documents" if all(map(_is_value, values_on_line)) else "ndjson"
    first = DocumentSplitter().feed(text).partition(b"\n")[0]
    return "documents" if first and _is_value(first) else "ndjson"


def _is_value(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
