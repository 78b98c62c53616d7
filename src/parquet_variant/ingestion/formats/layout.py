"""`Layout`: how the values lie in a text: a line each, in an array, below a path, as rows of CSV or elements of XML.

Owns the choices, what can be wrong with them, and finding out which it is by the beginning of a text. Leaves reading to
the modules beside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from parquet_variant.choices import InputFormat
from parquet_variant.errors import JsonError, VariantFileError, bad_option, check_choice, check_names
from parquet_variant.ingestion.formats.json_splitters import ArraySplitter, DocumentSplitter
from parquet_variant.path import Segment, VariantPath, Wildcard

_OF_SPARK = {"sep": "delimiter", "quote": "quote_char", "nullValue": "null_values"}


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV is read; the names of ``pyarrow.csv``."""

    # One character each.
    delimiter: str = ","
    quote_char: str = '"'
    # Whether the first row names the columns; otherwise they are ``_c0``, ``_c1`` and so on, as in Spark.
    header: bool = True
    null_values: tuple[str, ...] = ("",)  # What stands for null where it is not quoted; by default nothing at all.

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote_char"):
            if not isinstance(each := getattr(self, name), str) or len(each.encode()) != 1 or each in "\r\n":
                raise bad_option(f"{name} is {each!r}: give one ASCII character")
        if not isinstance(self.header, bool):
            raise bad_option(f"header is {self.header!r}: use True or False")
        null_values = (self.null_values,) if isinstance(self.null_values, str) else tuple(self.null_values)
        object.__setattr__(self, "null_values", null_values)


@dataclass(frozen=True, slots=True)
class XmlOptions:
    """How XML is read; the names of Spark's options."""

    row_tag: str | None = None  # The element that is a row.
    # What an attribute's name begins with, and the name of text beside attributes or elements.
    attribute_prefix: str = "_"
    value_tag: str = "_VALUE"

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, str) and not (each.name == "row_tag" and value is None):
                raise bad_option(f"{each.name} is {value!r}: give text")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the values lie in a text.

    >>> layout = Layout.of("auto", root="$.pages[*].items[*]")
    >>> layout.prefix, str(layout.rest)
    (('pages',), "$['items'][*]")
    """

    format: InputFormat = "auto"  # As for `pv.ingest`.
    root: VariantPath | None = None  # Where the rows are in every document; None if a document is a row.
    # How those are read.
    csv: CsvOptions = field(default_factory=CsvOptions)
    xml: XmlOptions = field(default_factory=XmlOptions)

    def __post_init__(self) -> None:
        check_choice("input_format", self.format, get_args(InputFormat))
        if self.format == "xml" and not self.xml.row_tag:
            raise bad_option("XML needs the name of the element that is a row: give parse={'row_tag': 'book'}")
        if self.root is not None and self.format in ("csv", "xml"):
            raise bad_option(f"root is for JSON, not for {self.format}")

    @classmethod
    def of(cls, format: InputFormat | Layout, *, root: str | VariantPath | None = None, parse: Any = None) -> Layout:
        """The layout, with options by name; ``parse`` has those of the format.

        Raises `VariantError` or `PathError` for what cannot be.
        """
        if isinstance(format, Layout):
            return format
        path = None if root is None else VariantPath.parse(root)
        options = {our_name(name): value for name, value in (parse or {}).items()}
        if format == "auto" and options:  # of tables, which may be CSV
            return cls(format, path, csv=CsvOptions(**_known(CsvOptions, options, "CSV")))
        if format == "csv":
            return cls(format, path, csv=CsvOptions(**_known(CsvOptions, options, "CSV")))
        if format == "xml":
            return cls(format, path, xml=XmlOptions(**_known(XmlOptions, options, "XML")))
        return cls(format, path)

    @property
    def prefix(self) -> tuple[Segment, ...] | None:
        """The names before the first ``[*]`` of the root, whose array is read element by element; None without one."""
        if self.root is None or not self.root.has_wildcard:
            return None
        segments = tuple(self.root.segments)
        first = next(at for at, segment in enumerate(segments) if isinstance(segment, Wildcard))
        return segments[:first] if all(isinstance(segment, str) for segment in segments[:first]) else None

    @property
    def rest(self) -> VariantPath:
        """What is left of the root, in each value that is read."""
        if self.root is None:
            return VariantPath()
        prefix = self.prefix
        return self.root if prefix is None else VariantPath(tuple(self.root.segments)[len(prefix) + 1 :])


def our_name(option: str) -> str:
    """The name of an option of text, which may be spelled as Spark does.

    >>> our_name("rowTag"), our_name("sep"), our_name("nullValue"), our_name("delimiter")
    ('row_tag', 'delimiter', 'null_values', 'delimiter')
    """
    return _OF_SPARK.get(option) or re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", option)


def _known(kind: type, options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    check_names(f"parse option of {name}", options, [each.name for each in fields(kind)])
    return options


BOM = b"\xef\xbb\xbf"
# How text in UTF-16 and UTF-32 begins: with a mark, or with zero bytes where those of ASCII have them.
_OTHER_ENCODINGS = re.compile(
    rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]|[^\0]\0\0\0|\0\0\0[^\0]|[{[\"]\0|\0[{[\"]",
    re.DOTALL,
)
# What files that are no text of ours begin with.
_PACKED = ((b"\xfd7zXZ", "xz"), (b"PK\x03\x04", "zip"), (b"7z\xbc\xaf", "7z"), (b"\x1f\x9d", "compress"))
_PARQUET = b"PAR1"
_OTHER_FORMATS = (
    (b"Obj\x01", "an Avro file"),
    (b"ARROW1\0\0", "an Arrow file"),
    (b"VTXF", "a Vortex file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PARE", "an encrypted Parquet file"),
)
_DETECT_BYTES = 1 << 20


def start_of_text(head: bytes, file: str) -> int:
    """Length of a UTF-8 byte order mark; refuses what is told by its first bytes to be no JSON in UTF-8."""
    if _OTHER_ENCODINGS.match(head):
        raise VariantFileError(f"{file} is UTF-16 or UTF-32 text: convert it to UTF-8", reason="encoding", file=file)
    for magic, name in _PACKED:
        if head.startswith(magic):
            raise VariantFileError(
                f"{file} is packed by {name}, which is not read: unpack it, or use gzip or zstd",
                reason="not-json",
                file=file,
            )
    for magic, name in _OTHER_FORMATS:
        if head.startswith(magic):
            raise VariantFileError(f"{file} is {name}, not JSON: name JSON files", reason="not-json", file=file)
    if head.startswith(_PARQUET):
        raise VariantFileError(
            f"{file} is a Parquet file, not JSON: name JSON files, or change Parquet files with `variant rewrite`; "
            "for JSON in one of its columns, name that: json_column=",
            reason="not-json",
            file=file,
        )
    return len(BOM) if head.startswith(BOM) else 0


def detect(stream: Any, file: str, format: InputFormat) -> tuple[bytes, InputFormat]:
    """Read the head of a text, without its byte order mark, and tell how its values are laid out."""
    head = stream.read(_DETECT_BYTES)
    head = head[start_of_text(head, file) :]
    if format in ("ndjson", "documents", "csv", "xml"):
        return head, format
    if not head.lstrip(b" \t\r\n").startswith(b"["):
        if format == "array":
            raise JsonError(f"{file} is not a JSON array: it does not begin with [", reason="not-an-array", file=file)
        return head, _lines_or_documents(head)
    if format == "array":
        return head, format
    splitter = ArraySplitter()
    splitter.feed(head)
    # Closed at the very end of what was read: only what follows tells.
    while splitter.closed and splitter.error is None and (block := stream.read(_DETECT_BYTES)):
        head += block
        splitter.feed(block)
    return head, "array" if splitter.error is None else _lines_or_documents(head)


def _lines_or_documents(head: bytes) -> InputFormat:
    """Documents if the first line is no value, but the text from its beginning has one; a bad line makes none."""
    text = head.lstrip(b" \t\r\n")
    line = text.partition(b"\n")[0].strip()
    if not text.startswith((b"{", b"[")) or _is_value(line):
        return "ndjson"
    beside = DocumentSplitter().feed(line + b"\n").splitlines()
    if len(beside) > 1:
        return "documents" if all(map(_is_value, beside)) else "ndjson"
    first = DocumentSplitter().feed(text).partition(b"\n")[0]
    return "documents" if first and _is_value(first) else "ndjson"


def _is_value(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
