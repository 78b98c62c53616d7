"""The output of commands: grids, text or JSON on stdout; errors and warnings in one line, on stderr.

Owns the form of Arrow tables with Variants, the stream that replaces ``sys.stdout``, and the form of errors at the
command line, where parameters are options.
Leaves the content to the commands, and the cause and the remedy of an error to its message.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from parquet_variant.errors import VariantError, without_secrets
from parquet_variant.support.records import grid

if TYPE_CHECKING:
    import pyarrow as pa


# C0 except tab and line feed, DEL, C1, and marks, embeddings and isolates of direction.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ESCAPES = "parquet_variant.json_escapes"


class OutputError(OSError):
    """Standard output cannot be written, for example to a full disk or a closed descriptor."""


class ReaderLeftError(Exception):
    """The reader of a pipe, such as `head`, stopped reading; for a `BrokenPipeError`, Click would end the process."""


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
    """A text stream over standard output; None stands for a closed descriptor.

    On a terminal, control characters and characters that change the direction of text are escaped as in JSON, because a
    key of somebody's data must not control the terminal. So are characters that the encoding lacks. A failure raises
    `OutputError`, which is not confused with an error of the data.
    """

    def __init__(self, stream: Any) -> None:
        self._stream: IO[str] | None = stream
        self._is_terminal = stream is not None and stream.isatty()
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPES)

    def write(self, text: str) -> int:
        """Write a text, with escapes if the output is a terminal."""
        self._run("write", printable(text) if self._is_terminal else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write strings, which contain their line breaks."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is buffered."""
        if self._stream is not None:
            self._run("flush")

    def _run(self, method: str, *arguments: str) -> None:
        try:
            getattr(self._open(), method)(*arguments)
        except BrokenPipeError:
            raise ReaderLeftError from None
        except OSError as error:
            raise OutputError(*error.args) from None

    def _open(self) -> IO[str]:
        if self._stream is None:
            raise OutputError(9, "standard output is closed")
        return self._stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)


def print_json(value: Any) -> None:
    """Print one JSON document on one line."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def print_result(document: Any, lines: Iterable[Any], *, as_json: bool) -> None:
    """Print a result as lines of text, or as JSON."""
    if as_json:
        print_json(document)
        return
    for line in lines:
        print(line)


def print_json_rows(table: pa.Table) -> None:
    """Print the rows of a table as compact JSON objects, one per line, with all digits of numbers."""
    from parquet_variant.ops.interop.display import json_rows

    sys.stdout.writelines(f"{text}\n" for text in json_rows(table))


def print_grid(header: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = ()) -> None:
    """Print a grid; see `support.records.grid`."""
    for line in grid(header, rows, right=right):
        print(line)


DATA_PROBLEM = 1
USAGE_PROBLEM = 2
INTERRUPTED = 130
_ERROR_NUMBER = re.compile(r"\[errno -?\d+\] ", re.IGNORECASE)
_PARAMETER = re.compile(
    r"\b(allow_outside|bloom_filters|columns?|format|infer_types|input_format|json_column|on_conflict|on_error"
    r"|on_inexact|on_violation|exclude|errors|file_column|force"
    r"|on|only_new|partition_by|rest|root|row_group_bytes|schema|schema_of|mode|preview|exact|layout|sort_by|types|version)"
    r"=(?:(?=[,;:)\s]|$)|(['\"]?)(\w+)\2|('[^']+')|\[('[^]]+')\])"
)
_RENAMED = {"bloom_filters": "bloom-filter", "types": "type", "errors": "strict"}
# Remedies that the command line does not have, or has in another form.
_REMEDIES = {
    'use errors="null" to get null instead': "omit --strict to get NULL instead",
    "give its value with params=": "write its value",
    "name columns, or leave it out with except_cols=": "name columns with --set, or leave it out of the source",
    ", or pass filesystem=": "",
}
# Reasons of errors that are strings here.
_REASONS = {USAGE_PROBLEM: "usage", INTERRUPTED: "interrupted"}
_FIELDS = ("file", "row", "path", "offset")


def report_failure(error: BaseException | str, code: int, *, as_json: bool = False) -> int:
    """Print an error as one line to stderr, or as JSON with its reason and file, and return the exit code.

    An exception that is not a `VariantError` is printed with its type and how to see more.
    """
    if as_json:
        reason = _REASONS.get(code, "internal") if isinstance(error, str) else getattr(error, "reason", "internal")
        fields = {"reason": reason, "message": one_line(error)}
        fields |= {name: value for name in _FIELDS if (value := getattr(error, name, None)) is not None}
        print(json.dumps({"error": fields}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"variant: error: {one_line(error)}", file=sys.stderr)
    return code


def report_warning(message: str, kind: str = "warning") -> None:
    """Print a warning or a hint as one line to stderr, with parameters of functions as options."""
    print(f"variant: {kind}: {one_line(message)}", file=sys.stderr)


def one_line(error: BaseException | str) -> str:
    r"""Return an error in one line, with its location unless the message has it.

    >>> one_line(VariantError("a.json is empty", file="a.json", row=3))
    'a.json is empty (row 3)'
    >>> one_line(VariantError("several columns: choose one with column=, from v, w"))
    'several columns: choose one with --column, from v, w'
    >>> one_line(VariantError("invalid JSON at line 3: skip bad lines with on_error='quarantine'"))
    'invalid JSON at line 3: skip bad lines with --on-error quarantine'
    >>> one_line(KeyError("x\ny"))
    "unexpected KeyError: 'x\\ny' (run again with --debug for the traceback)"
    """
    if isinstance(error, VariantError):
        is_named = error.file is not None and error.file in error.message
        named = (("file", None if is_named else error.file), ("row", error.row), ("path", error.path))
        where = ", ".join(
            f"{name} {value}" for name, value in (*named, ("byte offset", error.offset)) if value is not None
        )
        text = f"{error.message} ({where})" if where else error.message
    elif isinstance(error, str):
        text = error
    elif isinstance(error, OSError):
        # pyarrow repeats the number of the error.
        text = f"{_ERROR_NUMBER.sub('', str(error))}: check the path, its permissions, and the free space"
    else:
        text = f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)"
    # Functions and parameters of Python become options.
    for remedy, at_command_line in _REMEDIES.items():
        text = text.replace(remedy, at_command_line)
    text = _PARAMETER.sub(_option, without_secrets(text))
    return printable(" ".join(text.split()))


def _option(match: re.Match[str]) -> str:
    option = f"--{_RENAMED.get(match[1], match[1].replace('_', '-'))}"
    value = match[3] or match[4] or (match[5] or "").replace("', '", ",")
    return f"{option} {value}" if value not in ("", "True") else option
