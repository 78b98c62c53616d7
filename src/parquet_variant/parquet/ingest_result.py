"""What an ingest says when it is done: `IngestResult`, and the form of a `BadRecord`. Both engines use them.

Owns the shape of the two. Leaves making them to `parquet.ingest` and `spark`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import Any

from parquet_variant.errors import VariantError
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["BadRecord", "IngestResult"]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A line that is no JSON, as it is kept in the bad-records output.

    Parameters
    ----------
    file
        The source file.
    line
        Its 1-based line; the 1-based element where the file is a JSON array.
    reason
        The stable code of the error.
    message
        What is wrong, in words.
    text
        The line itself; bytes that are not UTF-8 become U+FFFD.
    base64
        The line's own bytes, only where `text` does not say them all.

    Examples
    --------
    >>> record = BadRecord.of("a.json", 3, b"[1,", VariantError("the text ends early", reason="truncated"))
    >>> print(record.to_json())
    {"file": "a.json", "line": 3, "reason": "truncated", "message": "the text ends early", "text": "[1,"}
    """

    file: str
    line: int
    reason: str
    message: str
    text: str
    base64: str | None = None

    @classmethod
    def of(cls, file: str, line: int, text: bytes, error: VariantError) -> BadRecord:
        """Make the record of a line and the error that the parser gave for it."""
        text = text.rstrip(b"\r\n")
        shown = text.decode("utf-8", "replace")
        exact = None
        if "\ufffd" in shown and shown.encode() != text:
            exact = b64encode(text).decode("ascii")
        return cls(file, line, error.reason, error.message, shown, exact)

    def to_json(self) -> str:
        """One line of the bad-records output."""
        fields = asdict(self)
        if self.base64 is None:
            del fields["base64"]
        return json.dumps(fields, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did.

    Parameters
    ----------
    dest
        The directory that was written.
    files
        The Parquet files in it that this ingest wrote, as paths below `dest`.
    rows
        Rows written.
    bad_records
        Lines that were no JSON: quarantined, never dropped silently.
    bad_records_path
        The directory of the bad-records output (NDJSON, a `BadRecord` a line); None where every line was good.
    bytes_read
        Bytes of JSON text, after decompression.
    bytes_written
        Bytes of the Parquet files.
    schema
        What was shredded; None for nothing.
    """

    dest: str
    files: tuple[str, ...]
    rows: int
    bad_records: int
    bad_records_path: str | None
    bytes_read: int
    bytes_written: int
    schema: ShreddingSchema | None

    def to_dict(self) -> dict[str, Any]:
        """The same in plain types, with the schema as DDL."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["files"] = list(self.files)
        fields["schema"] = self.schema.to_ddl() if self.schema is not None else None
        return fields
