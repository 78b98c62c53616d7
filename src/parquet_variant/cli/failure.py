"""Errors and warnings of commands: one line on stderr.

Owns the form of errors at the command line, where parameters are options. Leaves the cause and the remedy to the
message of the error.
"""

from __future__ import annotations

import json
import re
import sys

from parquet_variant.cli.output import printable
from parquet_variant.errors import VariantError, without_secrets

DATA_PROBLEM = 1
USAGE_PROBLEM = 2
INTERRUPTED = 130
_ERROR_NUMBER = re.compile(r"\[errno -?\d+\] ", re.IGNORECASE)
_PARAMETER = re.compile(
    r"\b(allow_outside|bloom_filters|column|format|infer_types|input_format|json_column|on_conflict|on_error"
    r"|on_inexact|on_violation|exclude"
    r"|partition_by|root|row_group_bytes|schema|mode|preview|exact|layout|sort_by|types|version)"
    r"=(?:(?=[,;:)\s]|$)|(['\"]?)(\w+)\2|('[^']+'))"
)
_RENAMED = {"bloom_filters": "bloom-filter", "types": "type"}
_TRY_FUNCTION = 'use errors="null" to get null instead'
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
    text = text.replace(_TRY_FUNCTION, "omit --strict to get NULL instead")
    text = _PARAMETER.sub(_option, without_secrets(text))
    return printable(" ".join(text.split()))


def _option(match: re.Match[str]) -> str:
    option = f"--{_RENAMED.get(match[1], match[1].replace('_', '-'))}"
    value = match[3] or match[4]
    return f"{option} {value}" if value not in (None, "True") else option
