"""How a text is laid out, by its beginning: lines, one array, documents; and what is no text of ours at all.

Owns finding out. Leaves opening files to `sources`, and where values end to the modules beside.
"""

from __future__ import annotations

import json
from typing import Any

from parquet_variant.choices import InputFormat
from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingest.formats.json_splitters import ArraySplitter, DocumentSplitter

__all__ = ["BOM", "detect", "start_of_text"]

BOM = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_PARQUET = b"PAR1"
_DETECT_BYTES = 1 << 20


def start_of_text(head: bytes, file: str) -> int:
    """Length of a UTF-8 byte order mark; refuses the marks of UTF-16 and of Parquet."""
    for mark, name in _OTHER_ENCODINGS:
        if head.startswith(mark):
            raise VariantFileError(f"{file} is {name} text: convert it to UTF-8", reason="encoding", file=file)
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
    block = head
    try:
        splitter.feed(block)
        # Closed at the very end of what was read: only what follows tells.
        while splitter.closed and (block := stream.read(_DETECT_BYTES)):
            head += block
            splitter.feed(block)
    except JsonError:
        return head, _lines_or_documents(head)
    return head, "array"


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
