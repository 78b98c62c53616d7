"""Lines that are no JSON, as they are kept.

Owns the form of a bad record. Leaves which lines are bad to `task`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import Any

from parquet_variant.errors import VariantError


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
    columns
        What stood beside it in a table's row.

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
        """Make the record of a line and the error that the parser gave for it."""
        text = text.rstrip(b"\r\n")
        shown = text.decode("utf-8", "replace")
        exact = b64encode(text).decode("ascii") if shown.encode() != text else None
        return cls(file, line, error.reason, error.message, shown, exact)

    def to_json(self) -> str:
        """One line of the bad-records output."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)
