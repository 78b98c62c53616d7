"""`TextLayout`: how JSON values are arranged in a text (lines, an array, documents, a path, or CSV rows).

This module checks the options and detects the layout from the start of a text. The other modules of this package read
the layouts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from parquet_variant.errors import JsonError, VariantFileError, bad_option, check_choice, check_names
from parquet_variant.ingestion.formats.csv_rows import CsvOptions
from parquet_variant.ingestion.formats.json_splitters import (
    RECORD_SEPARATOR,
    WHITESPACE,
    ArraySplitter,
    DocumentSplitter,
)
from parquet_variant.support.choices import InputFormat
from parquet_variant.types.path import Segment, VariantPath, Wildcard

_SPARK_NAMES = {"sep": "delimiter", "quote": "quote_char", "nullValue": "null_values"}


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The arrangement of JSON values in a text, and the options of its format.

    `format`: the input format, as for `pv.ingest`.
    `root`: path of the rows in every document; None if a document is a row.
    `csv`: options of CSV.

    >>> layout = TextLayout.of("auto", root="$.pages[*].items[*]")
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

    @classmethod
    def of(
        cls, format: InputFormat | TextLayout, *, root: str | VariantPath | None = None, parse: Any = None
    ) -> TextLayout:
        """Return the layout for an input format, with the options of the format by name in ``parse``.

        Raises `VariantError` or `PathError` for an invalid option or path.
        """
        if isinstance(format, TextLayout):
            return format
        path = None if root is None else VariantPath.parse(root)
        options = {option_name(name): value for name, value in (parse or {}).items()}
        # With format "auto" the options are those of a table with a JSON column, which may be CSV.
        if format == "csv" or (format == "auto" and options):
            check_names("parse option of CSV", options, [option.name for option in fields(CsvOptions)])
            return cls(format, path, csv=CsvOptions(**options))
        return cls(format, path)

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


def option_name(option: str) -> str:
    """Return the name of a parse option that may be spelled as in Spark.

    >>> option_name("maxDepth"), option_name("sep"), option_name("nullValue"), option_name("delimiter")
    ('max_depth', 'delimiter', 'null_values', 'delimiter')
    """
    return _SPARK_NAMES.get(option) or re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", option)


BOM = b"\xef\xbb\xbf"
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
    (b"VTXF", _FORMAT.format("a Vortex file") + _IN_COLUMN),
    (b"SQLite format 3\0", _FORMAT.format("an SQLite database")),
    (b"PARE", _FORMAT.format("an encrypted Parquet file")),
    (
        b"PAR1",
        "a Parquet file, not JSON: name JSON files, or rewrite Parquet files with `variant rewrite`" + _IN_COLUMN,
    ),
)
_DETECT_BYTES = 1 << 20


def start_of_text(head: bytes, file: str) -> int:
    """Return the length of a UTF-8 byte order mark.

    Raises `VariantFileError` if the first bytes show that the file is not JSON in UTF-8.
    """
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
            raise JsonError(
                f"{file} is not a JSON array, because it does not begin with [: remove input_format=",
                reason="not-an-array",
                file=file,
            )
        return head, _lines_or_documents(head)
    if format == "array":
        return head, format
    splitter = ArraySplitter()
    splitter.feed(head)
    # If the array ends exactly at the end of the head, the text after it decides.
    while splitter.closed and splitter.error is None and (block := stream.read(_DETECT_BYTES)):
        head += block
        splitter.feed(block)
    return head, "array" if splitter.error is None else _lines_or_documents(head)


def is_json_sequence(head: bytes) -> bool:
    r"""Return whether a text is a JSON text sequence (RFC 7464): it begins with a record separator.

    >>> is_json_sequence(b'\x1e{"a": 1}\n')
    True
    """
    return head.lstrip(WHITESPACE).startswith(RECORD_SEPARATOR)


def _lines_or_documents(head: bytes) -> InputFormat:
    """Return "documents" if the first line is not a JSON value, but the text from its start contains one.

    An invalid first line alone does not make documents. In a JSON text sequence every text must be on one line for
    "ndjson".
    """
    if is_json_sequence(head):
        return _sequence_format(head)
    text = head.lstrip(WHITESPACE)
    line = text.partition(b"\n")[0].strip()
    if not text.startswith((b"{", b"[")) or _is_value(line):
        return "ndjson"
    values_on_line = DocumentSplitter().feed(line + b"\n").splitlines()
    if len(values_on_line) > 1:
        return "documents" if all(map(_is_value, values_on_line)) else "ndjson"
    first = DocumentSplitter().feed(text).partition(b"\n")[0]
    return "documents" if first and _is_value(first) else "ndjson"


def _sequence_format(head: bytes) -> InputFormat:
    lines = [line for line in head.split(b"\n") if line.strip()]
    if len(lines) > 1 and len(head) >= _DETECT_BYTES - len(BOM):
        lines.pop()  # The last line of the head may be incomplete.
    one_text_per_line = all(line.startswith(RECORD_SEPARATOR) and line.count(RECORD_SEPARATOR) == 1 for line in lines)
    return "ndjson" if one_text_per_line else "documents"


def _is_value(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
