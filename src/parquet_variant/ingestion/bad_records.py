"""`BadRecord`: an invalid line in the bad-records output of an ingest."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import Any

from parquet_variant.errors import VariantError


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A line that is not valid JSON, as the bad-records output contains it.

    Parameters
    ----------
    file
        The source file.
    line
        The 1-based number of the line; of the element if the file is a JSON array.
    reason
        The stable code of the error.
    message
        The error message.
    text
        The line; bytes that are not UTF-8 are replaced by U+FFFD.
    base64
        The bytes of the line, only if `text` does not represent them exactly.
    columns
        The other columns of the row, if the JSON is a column of a table.

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
    columns: dict[str, Any] | None = None

    @classmethod
    def of(cls, file: str, line: int, text: bytes, error: VariantError) -> BadRecord:
        """Return the record of a line and the error that the parser raised for it."""
        text = text.rstrip(b"\r\n")
        decoded = text.decode("utf-8", "replace")
        exact = b64encode(text).decode("ascii") if decoded.encode() != text else None
        return cls(file, line, error.reason, error.message, decoded, exact)

    def to_json(self) -> str:
        """Return one line of the bad-records output."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)
