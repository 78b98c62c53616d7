"""How a text is laid out, by its beginning: lines, one array, documents; and what is no text of ours at all.

Owns finding out. Leaves opening files to `sources`, and where values end to the modules beside.
"""

from __future__ import annotations

import json
from typing import Any

from parquet_variant.choices import InputFormat
from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingest.formats.json_splitters import ArraySplitter, DocumentSplitter

BOM = b"\xef\xbb\xbf"
# What files that are no text of ours begin with; UTF-16 without a mark by the zero byte beside ASCII.
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"{\0", b"[\0", b'"\0', b"\0{", b"\0[", b'\0"')
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
    if head.startswith(_OTHER_ENCODINGS):
        raise VariantFileError(f"{file} is UTF-16 text: convert it to UTF-8", reason="encoding", file=file)
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
