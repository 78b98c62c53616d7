r"""Standard output of the process `variant`: safe for terminals, for encodings other than UTF-8, and when it fails.

Owns the stream that replaces ``sys.stdout``. Leaves exit codes to `app`.

- On a terminal, control characters and characters that change the direction of text are written as ``\u001b``, because
  a key of somebody's data must not control the terminal. In JSON this is the same string.
- Characters that the encoding lacks are written in the same way.
- A failure raises `OutputError`, which is not confused with an error of the data.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable
from typing import IO, Any

# C0 except tab and line feed, DEL, C1, and marks, embeddings and isolates of direction.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ESCAPES = "parquet_variant.json_escapes"


class OutputError(OSError):
    """Standard output cannot be written, for example to a full disk or a closed descriptor."""


def printable(text: str) -> str:
    r"""Return a text with the characters that control terminals as escapes.

    >>> printable("a\x1b[31m\u202eb\tc")
    'a\\u001b[31m\\u202eb\tc'
    """
    return _UNSAFE.sub(lambda match: _escape(match[0]), text)


def _escape(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _escape(error.object[error.start : error.end]), error.end


codecs.register_error(_ESCAPES, _escape_unencodable)


class StandardOutput:
    """A text stream over standard output; None stands for a closed descriptor."""

    def __init__(self, stream: Any) -> None:
        self._stream: IO[str] | None = stream
        self._is_terminal = stream is not None and stream.isatty()
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPES)

    def write(self, text: str) -> int:
        """Write a text, with escapes if the output is a terminal."""
        try:
            self._open().write(printable(text) if self._is_terminal else text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(*error.args) from None
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, which contain their line breaks."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is buffered."""
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(*error.args) from None

    def _open(self) -> IO[str]:
        if self._stream is None:
            raise OutputError(9, "standard output is closed")
        return self._stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)


def replace_standard_output() -> None:
    """Replace ``sys.stdout`` of this process."""
    sys.stdout = StandardOutput(sys.stdout)
