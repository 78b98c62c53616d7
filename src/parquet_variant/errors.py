"""The errors of parquet-variant: one base class, a stable reason code, and where it happened.

Owns the exception classes and how a location is worded. Leaves the decision what is an error to the layer that
raises it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Integral
from typing import Any

# A secret may have a slash that nobody quoted; what looks like a port is none.
_USER = re.compile(r"(?<=://)(?:[^/@\s'\"]+|[^/:@\s'\"]*:(?!\d+/)[^@\s'\"]+)@")
_LONGEST = 1500
_SIGNED = re.compile(r"(?i)([?&;][^=&\s]*(?:sig|token|cred|key|secret|pass)[^=&\s]*=)[^&#\s'\")]+")


def without_secrets(text: str) -> str:
    """A text whose URLs show neither passwords nor signatures.

    >>> without_secrets("s3://key:secret@bucket/x, https://host/x?sig=abc&v=1")
    's3://***@bucket/x, https://host/x?sig=***&v=1'
    """
    return _SIGNED.sub(r"\1***", _USER.sub("***@", text))


def _in_one_line(message: str) -> str:
    """A message as one line that a terminal can show, whatever was quoted in it."""
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST - 300]} … {message[-300:]}"
    if message.isprintable():
        return message
    # What is no character of a text would break the stream it is printed to, or hide what stands beside it.
    shown = " ".join(message.splitlines())
    return "".join(each if each.isprintable() or each == "\xa0" else repr(each)[1:-1] for each in shown)


def choice_of(name: str, known: Iterable[str]) -> str:
    """What to say of a name that nobody knows: the one that is nearest, or else all that there are.

    >>> choice_of("bigin", ["bigint", "date"]), choice_of("x", ["bigint", "date"])
    ("did you mean 'bigint'?", 'use bigint, date')
    """
    from difflib import get_close_matches

    names = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), names, 1)
    return f"did you mean {names[near[0]]!r}?" if near else f"use {', '.join(names.values())}"


class VariantError(ValueError):
    """Anything that parquet-variant refuses.

    Parameters
    ----------
    message
        One line that names the offending value and says what to do.
    reason
        A stable code for machines, such as ``"truncated"`` or ``"duplicate-key"``.
    file, row, path, offset
        Where it happened: a file name, a 0-based row, a normalized variant path and a 0-based byte offset. Each may be
        unknown.

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
        message = without_secrets(_in_one_line(message))
        self.message = message
        self.reason = reason if reason is not None else self.default_reason
        self.file = None if file is None else without_secrets(file)
        self.row = row
        self.path = path
        self.offset = offset
        super().__init__(message)

    def at(self, **location: Any) -> VariantError:
        """Fill in the parts of the location that are still unknown and return the error itself."""
        for name, value in location.items():
            if getattr(self, name) is None:
                setattr(self, name, without_secrets(value) if isinstance(value, str) else value)
        return self

    def __str__(self) -> str:
        named = (("file", self.file), ("row", self.row), ("path", self.path), ("byte offset", self.offset))
        where = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{self.message} ({_in_one_line(where)})" if where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark and multiprocessing pickle errors between processes: keyword-only arguments need help.
        names = ("reason", "file", "row", "path", "offset")
        return partial(type(self), **{name: getattr(self, name) for name in names}), (self.message,)


def bad_option(message: str, error: type[VariantError] = VariantError) -> VariantError:
    """The error of an option that cannot be as it is."""
    return error(message, reason="bad-option")


def check_choice(
    name: str,
    value: object,
    choices: Iterable[str],
    error: type[VariantError] = VariantError,
    reason: str = "bad-option",
) -> None:
    """Refuse a value that an option does not have.

    >>> check_choice("errors", "stop", ("null", "raise"))
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: errors is 'stop': use null or raise
    """
    *others, last = choices
    if not isinstance(value, str) or value not in (*others, last):
        raise error(f"{name} is {value!r}: use {', '.join(others)} or {last}", reason=reason)


def check_count(name: str, value: object, least: int = 0, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number from one to another.

    >>> check_count("max_depth", "1")
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: max_depth is '1': give an integer from 0 to 9223372036854775807
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        raise bad_option(f"{name} is {value!r}: give an integer from {least} to {most}")


def check_mapping(name: str, value: object, error: type[VariantError] = VariantError) -> None:
    """Refuse an option that has no values by name.

    >>> check_mapping("types", ["uuid"])
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: types is a list: give a dict
    """
    if not isinstance(value, Mapping):
        raise bad_option(f"{name} is a {type(value).__name__}: give a dict", error)


def check_names(
    what: str, names: Iterable[str], known: Iterable[str], error: type[VariantError] = VariantError
) -> None:
    """Refuse options that nothing has by these names; `what` says which options there are.

    >>> check_names("option for files", ["level"], ["compression", "writer"])
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: there is no option for files 'level': use compression, writer
    """
    known = list(known)
    if unknown := sorted(set(names) - set(known)):
        raise bad_option(f"there is no {what} {unknown[0]!r}: {choice_of(unknown[0], known)}", error)


def check_column_name(name: object) -> None:
    """Refuse a name that no Arrow column can have.

    >>> check_column_name("a b")
    """
    if not isinstance(name, str) or any("\ud800" <= character <= "\udfff" for character in name):
        raise SchemaError(f"{name!r} is no name of a column: give text in Unicode", reason="bad-name")


class MalformedVariantError(VariantError):
    """Bytes that are not a Variant by the encoding specification."""

    default_reason = "malformed"


class JsonError(VariantError):
    """Text that is not JSON by RFC 8259, or that the options forbid."""

    default_reason = "bad-json"


class PathError(VariantError):
    """A path expression that cannot be read, or that does not fit where it is used."""

    default_reason = "bad-path"


class PredicateError(VariantError):
    """A predicate that cannot be read, or that does not fit the columns."""

    default_reason = "bad-predicate"


class CastError(VariantError):
    """A value that cannot be given as the type that was asked for."""

    default_reason = "bad-cast"


class SchemaError(VariantError):
    """A shredding schema, or the shape of a Variant column, that the specification does not allow."""

    default_reason = "bad-schema"


class ConflictError(VariantError):
    """A shredded value whose ``value`` and ``typed_value`` contradict each other."""

    default_reason = "conflict"


class VariantFileError(VariantError):
    """A file, directory or column that is not there or cannot be used."""

    default_reason = "bad-file"


class TableError(VariantError):
    """A table, of any format, that cannot be read, written or changed as requested."""

    default_reason = "bad-table"


class DeltaError(TableError):
    """A Delta table whose log or protocol does not allow what was requested."""

    default_reason = "bad-delta-table"


class IcebergError(TableError):
    """An Iceberg table or catalog that cannot be read or written as asked."""

    default_reason = "bad-iceberg-table"


class KernelsError(VariantError):
    """Machine code of the kernels that is missing, or does not fit the sources or the CPU."""

    default_reason = "no-kernels"
