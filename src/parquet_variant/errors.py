"""The errors of parquet-variant: one base class, a stable reason code, and the location of the fault.

Owns the exception classes, how a location is written, and the checks of option values that all layers share. Leaves
the decision what is an error to the layer that raises it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any

# A secret may contain @, or a slash that is not escaped. A port number after the host is not a password.
_USER = re.compile(
    r"(?i)(://)(?:[^/\s'\"]+|[^/:@\s'\"]*:(?!\d+/)[^@\s'\"]+)@"
    r"|(%(?:25)*2F%(?:25)*2F)(?:(?!%(?:25)*2F)[^/\s'\"])+?%(?:25)*40"
)
_MAX_CHARACTERS = 1500
_MAX_CONTEXTS = 20
# URLs may be percent-encoded, perhaps several times: ``%3F``, ``%2526``, ``%3D``.
_SEPARATOR, _EQUALS = "(?:[?&;#]|%(?:25)*(?:3F|26|3B|23))", "(?:=|%(?:25)*3D)"
_SIGNED = re.compile(
    rf"(?i)({_SEPARATOR}(?:(?!{_SEPARATOR}|{_EQUALS})\S){{0,60}}?(?:sig|token|cred|key|secret|pass|pwd|auth|jwt|sas|session)"
    rf"(?:(?!{_SEPARATOR}|{_EQUALS})\S){{0,60}}{_EQUALS})(?:(?!{_SEPARATOR})[^#\s'\")])+"
)
# As obstore prints the parts of a URL, and http.client an invalid header.
_DEBUG = re.compile(
    r"""((?:password|secret\w*|token\w*): Some\(\s*"|Invalid header value b?["'])[^"'\\]+"""
    r"""|(\b[Bb]earer (?!token\b))[^"'\s\\]+"""
)


def without_secrets(text: str) -> str:
    """Return a text with the passwords and signatures in its URLs replaced by ``***``.

    >>> without_secrets("s3://key:secret@bucket/x, https://host/x?sig=abc&v=1, x%3Fsig%3Dabc%26v%3D1")
    's3://***@bucket/x, https://host/x?sig=***&v=1, x%3Fsig%3D***%26v%3D1'
    """
    return _DEBUG.sub(r"\1\2***", _SIGNED.sub(r"\1***", _USER.sub(r"\1\2***@", text)))


def _remove_secrets(error: BaseException | None) -> None:
    """Remove passwords and signatures from the errors of other libraries that become the context of a new error."""
    for _ in range(_MAX_CONTEXTS):
        if error is None:
            return
        if not isinstance(error, VariantError):
            error.args = tuple(without_secrets(part) if isinstance(part, str) else part for part in error.args)
            for name in ("strerror", "filename", "filename2") if isinstance(error, OSError) else ():
                if isinstance(part := getattr(error, name, None), str):
                    setattr(error, name, without_secrets(part))
        error = error.__cause__ or error.__context__


def _in_one_line(message: str) -> str:
    """Return a message as one line that a terminal can print, whatever it quotes."""
    if len(message) > _MAX_CHARACTERS:
        message = f"{message[: _MAX_CHARACTERS - 300]} … {message[-300:]}"
    if message.isprintable():
        return message
    # Unprintable characters could break the stream that the message is printed to, or hide other text.
    line = " ".join(message.splitlines())
    return "".join(
        character if character.isprintable() or character == "\xa0" else repr(character)[1:-1] for character in line
    )


def choice_of(name: str, choices: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the closest valid name, or else all valid names.

    >>> choice_of("bigin", ["bigint", "date"]), choice_of("x", ["bigint", "date"])
    ("did you mean 'bigint'?", 'use bigint, date')
    """
    from difflib import get_close_matches

    names = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(name.lower(), names, 1)
    return f"did you mean {names[matches[0]]!r}?" if matches else f"use {', '.join(names.values())}"


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, or its class if it has no text."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class VariantError(ValueError):
    """Base class of all errors that parquet-variant raises.

    Parameters
    ----------
    message
        One line that names the invalid value and says what to do.
    reason
        A stable code for machines, such as ``"truncated"`` or ``"duplicate-key"``.
    file, row, path, offset
        The location: a file name, a 0-based row, a normalized variant path and a 0-based byte offset; None if unknown.

    Examples
    --------
    >>> err = VariantError("number starts with 0", reason="bad-number", row=3, offset=7)
    >>> str(err)
    'number starts with 0 (row 3, byte offset 7)'
    >>> err.reason, err.row
    ('bad-number', 3)
    """

    default_reason = "invalid"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        file: str | None = None,
        row: int | None = None,
        path: str | None = None,
        offset: int | None = None,
    ) -> None:
        _remove_secrets(sys.exc_info()[1])
        message = without_secrets(_in_one_line(message))
        self.message = message
        self.reason = reason if reason is not None else self.default_reason
        self.file = None if file is None else without_secrets(file)
        self.row = row
        self.path = path
        self.offset = offset
        super().__init__(message)

    def at(self, **location: Any) -> VariantError:
        """Set the parts of the location that are still unknown, and return the error."""
        for name, value in location.items():
            if getattr(self, name) is None:
                setattr(self, name, without_secrets(value) if isinstance(value, str) else value)
        return self

    def __str__(self) -> str:
        parts = (("file", self.file), ("row", self.row), ("path", self.path), ("byte offset", self.offset))
        location = ", ".join(f"{name} {value}" for name, value in parts if value is not None)
        return f"{self.message} ({_in_one_line(location)})" if location else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark and multiprocessing pickle errors, and pickle does not pass keyword-only arguments by itself.
        names = ("reason", "file", "row", "path", "offset")
        return partial(type(self), **{name: getattr(self, name) for name in names}), (self.message,)


@contextmanager
def rows_of_errors(row_of: Callable[[int], int]) -> Iterator[None]:
    """Replace the row of an error in a part of a column by its row in the column, which a function returns."""
    try:
        yield
    except VariantError as error:
        error.row = None if error.row is None else row_of(error.row)
        raise


def bad_option(message: str, error: type[VariantError] = VariantError) -> VariantError:
    """Return the error for an invalid option value."""
    return error(message, reason="bad-option")


def check_choice(
    name: str,
    value: object,
    choices: Iterable[str],
    error: type[VariantError] = VariantError,
    reason: str = "bad-option",
    optional: bool = False,
) -> None:
    """Raise an error if an option has none of its valid values; `optional`: it may be None.

    >>> check_choice("errors", "stop", ("null", "raise"))
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: errors is 'stop': use null or raise
    """
    choices = tuple(choices)
    if (not isinstance(value, str) or value not in choices) and not (optional and value is None):
        shown = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        raise error(f"{name} is {value!r}: use {shown}", reason=reason)


def check_count(
    name: str, value: Any, minimum: int = 0, maximum: int | None = 2**63 - 1, error: type[VariantError] = VariantError
) -> None:
    """Raise an error if an option is not an integer in a range, both ends included; `maximum`: None for any.

    >>> check_count("max_depth", "1")
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: max_depth is '1': give an integer from 0 to 9223372036854775807
    """
    is_integer = isinstance(value, (int, Integral)) and not isinstance(value, bool)  # an abstract class takes longer
    if not is_integer or value < minimum or (maximum is not None and value > maximum):
        integer = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise bad_option(f"{name} is {value!r}: give an integer {integer}", error)


def check_number(name: str, value: object) -> None:
    """Raise an error if an option is not a finite number.

    >>> check_number("factor", "3")
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: factor is '3': give a number
    """
    number: Any = value
    if not isinstance(value, Real) or isinstance(value, bool) or not abs(number) <= sys.float_info.max:
        raise bad_option(f"{name} is {value!r}: give a number")


def check_batch(value: object) -> None:
    """Raise an error if an option is neither None nor the name and number of a batch of a stream.

    >>> check_batch("loader")
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: batch is 'loader': give a name and a number, such as ('loader', 1)
    """
    is_pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if value is not None and not (is_pair and isinstance(value[0], str) and isinstance(value[1], Integral)):  # type: ignore[index]
        raise bad_option(f"batch is {value!r}: give a name and a number, such as ('loader', 1)")


def strings_of(name: str, value: object, example: str | None = None) -> tuple[str, ...]:
    """Return an option that is a string or several strings. Raises `VariantError` for anything else.

    `example`: such a string, if none of them may be empty.

    >>> strings_of("exclude", "*.md"), strings_of("exclude", ["a", "b"])
    (('*.md',), ('a', 'b'))
    """
    values = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if isinstance(value, Mapping) or not all(isinstance(part, str) for part in values):
        raise bad_option(f"{name} is {value!r}: give a string or a list of strings")
    if example is not None and not all(values):
        raise bad_option(f"{name}= is {','.join(values)!r}: it must be one or several strings, such as {example!r}")
    return values


def check_session(engine: object) -> None:
    """Raise an error if an engine is not a session of Spark.

    >>> check_session("spark")
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: engine is a str: leave it out, or give a SparkSession
    """
    if not type(engine).__module__.startswith("pyspark."):
        raise bad_option(f"engine is a {type(engine).__name__}: leave it out, or give a SparkSession")


def check_mapping(name: str, value: object, error: type[VariantError] = VariantError) -> None:
    """Raise an error if an option is not a mapping.

    >>> check_mapping("types", ["uuid"])
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: types is a list: give a dict
    """
    if not isinstance(value, (dict, Mapping)):
        raise bad_option(f"{name} is a {type(value).__name__}: give a dict", error)


def check_names(
    what: str, names: Iterable[str], choices: Iterable[str], error: type[VariantError] = VariantError
) -> None:
    """Raise an error for the first option that has an unknown name; `what` describes the options in the message.

    >>> check_names("option for files", ["level"], ["compression", "writer"])
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: unknown option for files 'level': use compression, writer
    """
    choices = list(choices)
    if unknown := sorted(map(str, set(names) - set(choices))):
        raise bad_option(f"unknown {what} {unknown[0]!r}: {choice_of(unknown[0], choices)}", error)


def check_column_name(name: object) -> None:
    """Raise an error if a name cannot be the name of an Arrow column.

    >>> check_column_name("a b")
    """
    if not isinstance(name, str) or any("\ud800" <= character <= "\udfff" for character in name):
        raise SchemaError(f"{name!r} is not a column name: give Unicode text", reason="bad-name")


class MalformedVariantError(VariantError):
    """Bytes that are not a Variant according to the encoding specification."""

    default_reason = "malformed"


class ContractError(VariantError):
    """Rows that break a contract. Its attribute `report` is the `ContractReport`; None if the error was unpickled."""

    default_reason = "contract-violation"
    report: Any = None


class JsonError(VariantError):
    """Text that is not JSON according to RFC 8259, or that the options do not allow."""

    default_reason = "bad-json"


class PathError(VariantError):
    """A path expression that cannot be parsed, or that is not allowed where it is used."""

    default_reason = "bad-path"


class PredicateError(VariantError):
    """A predicate that cannot be parsed, or that does not match the columns."""

    default_reason = "bad-predicate"


class CastError(VariantError):
    """A value that cannot be cast to the requested type."""

    default_reason = "bad-cast"


class SchemaError(VariantError):
    """A shredding schema, or the shape of a Variant column, that the specification does not allow."""

    default_reason = "bad-schema"


class ConflictError(VariantError):
    """A shredded value whose ``value`` and ``typed_value`` conflict."""

    default_reason = "conflict"


class VariantFileError(VariantError):
    """A file, directory or column that does not exist or cannot be used."""

    default_reason = "bad-file"


class TableError(VariantError):
    """A table, of any format, that cannot be read, written or changed as requested."""

    default_reason = "bad-table"

    @classmethod
    def of_missing_file(cls, description: str, file: str) -> TableError:
        """Return the error for a missing file, which a vacuum may have removed together with its version."""
        problem = f"{description} is missing: open the table again if another process removed its version"
        return cls(problem, reason="missing-file", file=file)


class DeltaError(TableError):
    """A Delta table whose log or protocol does not allow what was requested."""

    default_reason = "bad-delta-table"


class IcebergError(TableError):
    """An Iceberg table or catalog that cannot be read or written as asked."""

    default_reason = "bad-iceberg-table"


class KernelsError(VariantError):
    """Kernel machine code that is missing, or does not match the sources or the CPU."""

    default_reason = "no-kernels"
