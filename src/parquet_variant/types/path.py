r"""Path expressions: ``$.a[0]['b c']``.

Owns how a path is written and parsed: the syntax of Spark's ``variant_get``, with the names, indexes and ``[*]`` of RFC
9535. Leaves the meaning of a path on a value to the functions that follow it.

A path is ``$``, followed by any number of ``.name`` (any characters but ``.`` and ``[``), ``[0]``, ``['name']``,
``["name"]`` and ``[*]``. Quoted names have the escapes of RFC 9535: ``\b \f \n \r \t \/ \\ \uXXXX`` and the quote.
Paths are written as RFC 9535's normalized paths: ``$['a'][0]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from parquet_variant.errors import PathError

# RFC 9535 limits indexes to the integers that a double holds exactly.
_MAX_INDEX = 2**53 - 1
_UNQUOTED = re.compile(r"[^.\[]+")
_INDEX = re.compile(r"-?[0-9]+")
_LITERAL = {quote: re.compile(rf"[^\\{quote}\x00-\x1f]+") for quote in "'\""}
_HEX4 = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}
_WRITTEN = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "'": r"\'", "\\": r"\\"}
# Names that need no quotes, not even in a shell.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Everything before the first colon that is not inside of brackets and quotes.
_PATH_BEFORE_TYPE = re.compile(r"""(\['(\\.|[^'\\])*'\]|\["(\\.|[^"\\])*"\]|[^:])*""", re.DOTALL)
_NEEDS_ESCAPE = re.compile(r"[\x00-\x1f'\\]")
_BLANKS = " \t\n\r"


def backquoted(name: str) -> str:
    """Return a name in the backquotes of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_name(name: str) -> str:
    """Return a field name for a type string: in backquotes unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else backquoted(name)


def quoted(name: str) -> str:
    """Return a name as an SQL identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def column_request(name: str) -> str:
    """Return the name of a column where names that begin with ``$`` are paths: in double quotes if it needs these."""
    return quoted(name) if name.startswith(("$", '"')) else name


def split_type(text: str) -> tuple[str, str | None]:
    """Split ``$.a['b:c']:int`` into path and type; a key with a colon must be written in brackets and quotes."""
    match = _PATH_BEFORE_TYPE.match(text)
    assert match is not None
    kind = text[match.end() :].removeprefix(":").removeprefix(":").strip()  # also with two, as in SQL
    if re.match(r"\w+:", kind):
        raise PathError(f"{text} has two colons: write a key with a colon as in $.a['b:c']:int")
    return match[0], kind if match.end() < len(text) else None


class Wildcard:
    """The segment ``[*]``, every element; ``WILDCARD`` is the only instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "WILDCARD"

    def __reduce__(self) -> str:
        return "WILDCARD"  # pickled by name, so that unpickling returns the only instance


WILDCARD: Final = Wildcard()
Segment = str | int | Wildcard


@dataclass(frozen=True, slots=True)
class VariantPath:
    """A path from a value to a value inside it.

    Parameters
    ----------
    segments
        Keys (str), 0-based indexes (int) and ``WILDCARD``, outermost first; or a path as a string.

    Raises
    ------
    PathError
        For a negative index, for segments of other types, and for a string that is not a path.

    Examples
    --------
    >>> path = VariantPath.parse("$.a[0]['b.c'][*]")
    >>> path.segments
    ('a', 0, 'b.c', WILDCARD)
    >>> str(path / "d")
    "$['a'][0]['b.c'][*]['d']"
    """

    segments: tuple[Segment, ...] = ()

    def __post_init__(self) -> None:
        segments = self.segments
        if isinstance(segments, str):
            segments = _parse(segments).segments
        elif isinstance(segments, (bytes, bytearray, memoryview)) or not isinstance(segments, Iterable):
            kind = type(segments).__name__
            raise PathError(f"a path is a {kind}: give a string, such as '$.a[0]', or a sequence of segments")
        object.__setattr__(self, "segments", tuple(segments))
        for segment in self.segments:
            _check_segment(segment)

    @classmethod
    def parse(cls, path: str | VariantPath | Iterable[Segment]) -> VariantPath:
        """Return the path of a string, a path or a sequence of segments.

        Raises
        ------
        PathError
            If the string is not a path; ``offset`` is the number of UTF-8 bytes before the fault.

        Examples
        --------
        >>> VariantPath.parse("$") == VariantPath(()), str(VariantPath.parse(["a", 1]))
        (True, "$['a'][1]")
        """
        if isinstance(path, VariantPath):
            return path
        return _parse(path) if isinstance(path, str) else cls(path)  # type: ignore[arg-type]

    def child(self, segment: Segment) -> VariantPath:
        """Return the path extended by one segment; the operator ``/`` does the same."""
        _check_segment(segment)
        path = object.__new__(VariantPath)
        object.__setattr__(path, "segments", (*self.segments, segment))
        return path

    def __truediv__(self, segment: Segment) -> VariantPath:
        return self.child(segment)

    @property
    def parent(self) -> VariantPath:
        """The path without its last segment; the parent of the root is the root."""
        return VariantPath(self.segments[:-1])

    @property
    def has_wildcard(self) -> bool:
        """Whether the path contains ``[*]``."""
        return WILDCARD in self.segments

    def __len__(self) -> int:
        return len(self.segments)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "$" + "".join(map(_segment_text, self.segments))

    @property
    def shorthand(self) -> str:
        """The path in its short form, as people write it and commands accept it.

        Examples
        --------
        >>> VariantPath.parse("$['a']['b.c'][*]['d']").shorthand
        "$.a['b.c'][*].d"
        """
        return "$" + "".join(
            f".{segment}" if isinstance(segment, str) and _PLAIN_NAME.fullmatch(segment) else _segment_text(segment)
            for segment in self.segments
        )

    def __repr__(self) -> str:
        return f"VariantPath({str(self)!r})"


def _check_segment(segment: Segment) -> None:
    if isinstance(segment, str):
        return
    if isinstance(segment, bool) or not isinstance(segment, (int, Wildcard)):
        raise PathError(f"path segment {segment!r} is not a key (str), an index (int) or WILDCARD")
    if isinstance(segment, int) and not 0 <= segment <= _MAX_INDEX:
        raise PathError(f"path index {segment} is outside 0 to {_MAX_INDEX}", reason="bad-index")


def _segment_text(segment: Segment) -> str:
    if isinstance(segment, str):
        escaped = _NEEDS_ESCAPE.sub(lambda match: _WRITTEN.get(match[0]) or f"\\u{ord(match[0]):04x}", segment)
        return f"['{escaped}']"
    return "[*]" if isinstance(segment, Wildcard) else f"[{segment}]"


# A path as an argument of a public function.
AnyPath: TypeAlias = str | VariantPath


@lru_cache(maxsize=1024)
def _parse(text: str) -> VariantPath:
    return VariantPath(tuple(step.name for step in _Parser(text).steps()))


class PatternStep(NamedTuple):
    """A step of a path, or of a path pattern."""

    name: Segment  # The key, ``WILDCARD`` for every element, or (in a path) an index.
    is_glob: bool = False  # Whether ``*`` and ``?`` in the key match any characters, and any one character.
    any_depth: bool = False  # Whether any number of steps may precede this step.


@lru_cache(maxsize=256)
def parse_pattern(text: str) -> tuple[PatternStep, ...]:
    """Parse a path pattern: a path without indexes whose unquoted names may contain ``*`` and ``?``, and follow ``..``.

    >>> parse_pattern("$..*_id") == (PatternStep("*_id", is_glob=True, any_depth=True),)
    True
    """
    if not isinstance(text, str):
        raise PathError(f"path {text!r}: give a string")
    return tuple(_Parser(text).steps(is_pattern=True))


class _Parser:
    """Parser of one path string; ``at`` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, message: str, at: int | None = None, reason: str | None = None) -> PathError:
        """Return the error for a fault at a character (default: the next one), with its byte offset."""
        start = self.text[: self.at if at is None else at]
        offset = len(start.encode("utf-8", "surrogatepass"))
        return PathError(f"path {self.text[:80]!r}: {message}", offset=offset, reason=reason)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def steps(self, *, is_pattern: bool = False) -> list[PatternStep]:
        """Parse a path, or a pattern."""
        if self.peek() != "$" and is_pattern:
            raise self.error("a pattern must start with '$', such as $.created_at or $..*_id")
        if self.peek() != "$":
            hint = f": write '$.{self.text[:40]}'" if re.fullmatch(r"\w[\w.\[\]*]{,39}", self.text) else ""
            raise self.error(f"a path must start with '$'{hint}")
        self.at = 1
        steps = []
        while self.at < len(self.text):
            start, mark = self.at, self.peek()
            if mark not in (".", "["):
                raise self.error(f"expected '.' or '[', found {mark!r}")
            self.at += 1
            if mark == "[":
                self.skip(_BLANKS)
                segment = self.bracketed()
                self.skip(_BLANKS)
                if self.peek() != "]":
                    raise self.error(f"expected ']', found {self.peek()!r}" if self.peek() else "expected ']'")
                self.at += 1
                if is_pattern and isinstance(segment, int):
                    raise self.error(f"[{segment}] is one element: write [*] for every element", start)
                steps.append(PatternStep(segment))
                continue
            any_depth = is_pattern and self.peek() == "."
            self.at += any_depth
            name = _UNQUOTED.match(self.text, self.at)
            if name is None:
                is_descent = self.peek() == "." and not is_pattern
                problem = "descendants ('..') are not supported" if is_descent else "expected a name after '.'"
                raise self.error(f"{problem}; write an empty key as ['']")
            if name[0] == "*" and not is_pattern:
                message = "unexpected '*': write [*] for every element, or ['*'] for the key '*'"
                raise self.error(message, reason="wildcard")
            self.at = name.end()
            steps.append(PatternStep(name[0], is_pattern, any_depth))
        return steps

    def bracketed(self) -> Segment:
        character = self.peek()
        if character in ("'", '"') and character:
            self.at += 1
            return self.quoted(character)
        if character == "*":
            self.at += 1
            return WILDCARD
        index = _INDEX.match(self.text, self.at)
        if index is None:
            raise self.error("expected an index, a quoted name or * after '['")
        if index[0].startswith("-"):
            raise self.error(f"index {index[0][:20]} is negative: indexes start at 0", reason="bad-index")
        # The length is compared first, since Python does not convert more than 4,300 digits.
        digits = index[0].lstrip("0") or "0"
        if len(digits) > len(str(_MAX_INDEX)) or int(digits) > _MAX_INDEX:
            raise self.error(f"index {digits[:20]} is greater than {_MAX_INDEX}", reason="bad-index")
        self.at = index.end()
        return int(digits)

    def quoted(self, quote: str) -> str:
        opened = self.at - 1
        parts: list[str] = []
        while (character := self.peek()) != quote:
            if not character:
                raise self.error(f"the quoted name has no closing {quote}", opened)
            if character == "\\":
                parts.append(self.escape(quote))
            elif (literal := _LITERAL[quote].match(self.text, self.at)) is not None:
                parts.append(literal[0])
                self.at = literal.end()
            else:
                raise self.error(f"control character {character!r} in a name: write it as \\u{ord(character):04x}")
        self.at += 1
        return "".join(parts)

    def escape(self, quote: str) -> str:
        start = self.at
        letter = self.text[start + 1 : start + 2]
        self.at += 2
        if letter == quote:
            return quote
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter != "u":
            raise self.error(f"unknown escape '\\{letter}': write a backslash as '\\\\'", start)
        unit = self.hex4(start)
        if 0xDC00 <= unit < 0xE000:
            raise self.error("unpaired low surrogate", start)
        if 0xD800 <= unit < 0xDC00:
            if self.text[self.at : self.at + 2] != "\\u":
                raise self.error("unpaired high surrogate", start)
            self.at += 2
            low = self.hex4(start)
            if not 0xDC00 <= low < 0xE000:
                raise self.error("unpaired high surrogate", start)
            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
        return chr(unit)

    def hex4(self, start: int) -> int:
        digits = _HEX4.match(self.text, self.at)
        if digits is None:
            raise self.error("expected four hexadecimal digits after \\u", start)
        self.at = digits.end()
        return int(digits[0], 16)


def is_within(path: VariantPath, outer: VariantPath) -> bool:
    """Return whether a path is equal to another path or extends it."""
    return path.segments[: len(outer)] == outer.segments


def outer_paths(path: VariantPath) -> list[VariantPath]:
    """Return the paths of the objects and arrays around a path, from the root down."""
    return [VariantPath(path.segments[:size]) for size in range(len(path))]


def depth_first(path: VariantPath) -> tuple[tuple[bool, str], ...]:
    """Return a sort key: outer paths come first, then fields by name, then elements."""
    return tuple((segment is WILDCARD, str(segment)) for segment in path.segments)
