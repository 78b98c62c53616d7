"""The grammar of type names: ``bigint``, ``decimal(10,2)``, ``array<struct<a: int, b string>>``, ``map<string, v>``.

Owns the syntax, which is Spark's, in any case: names in backquotes may contain any characters (a backquote is doubled);
the colon between a name and its type is optional; ``NOT NULL`` and ``COMMENT '…'``, which Spark prints, are ignored.
Leaves the result to its subclasses: a schema (`spellings`), or the target of a cast (`compute`).
"""

from __future__ import annotations

import re
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import pyarrow as pa

from parquet_variant.errors import SchemaError, VariantError, choice_of
from parquet_variant.layouts.primitive_types import DDL_NAMES, decimal
from parquet_variant.path import WILDCARD, Segment

T = TypeVar("T")

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<mark>[<>(),:!])|(?P<end>\Z))"
)
_DECIMALS = ("decimal", "dec", "numeric")


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


class ParsedColumn(NamedTuple):
    """A column of a struct."""

    name: str  # The name, without backquotes.
    type: Any  # The result for its type.
    offset: int  # Its position, in characters.


class TypeParser(Generic[T]):
    """Parser of type names; a subclass defines the result for each type, and the error."""

    error: type[VariantError]
    reason: str
    max_depth: int
    too_deep: str
    nested: tuple[str, ...] = ("array", "struct")
    faults_at_start: bool = True  # whether the error for an invalid decimal has the offset of its start, or of its end

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.at = 0
        self.path: list[Segment] = []  # of the type that is being parsed
        self.tokens: list[_Token] = []
        end = 0
        while not self.tokens or self.tokens[-1].kind != "end":
            match = _TOKEN.match(text, end)
            if match is None or match.lastgroup is None:
                end += len(text[end:]) - len(text[end:].lstrip())
                self.fail(f"unexpected {text[end]!r} in a type", end)
            self.tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            end = match.end()

    # -- results

    def variant(self) -> T:
        """Return the result for ``variant``."""
        raise NotImplementedError

    def array(self, element: T) -> T:
        """Return the result for ``array<…>``."""
        raise NotImplementedError

    def struct(self, columns: list[ParsedColumn]) -> T:
        """Return the result for ``struct<…>``."""
        raise NotImplementedError

    def map(self, key: T, value: T) -> T:
        """Return the result for ``map<…>``, if it is one of the nested types."""
        raise NotImplementedError

    def other(self, name: str) -> Any:
        """Return the Arrow type of a name that is not a DDL name, or None."""
        return None

    # -- the grammar

    def complete(self, kind: T) -> T:
        """Return a result if the text ends here; else raise the error."""
        if self.token.kind != "end":
            self.fail(f"expected the end of the type, found {self._token_description()}")
        return kind

    def columns(self) -> list[ParsedColumn]:
        """Parse columns separated by commas, at least one."""
        columns = []
        while True:
            offset = self.token.offset
            name = self._name()
            self._take_mark(":")
            columns.append(ParsedColumn(name, self._type_at(name), offset))
            self._skip_notes()
            if not self._take_mark(","):
                return columns

    def type(self) -> T:
        """Parse one type."""
        name, start = self.token.text.lower(), self.token.offset
        if self.token.kind != "word":
            self.fail(f"expected a type, found {self._token_description()}")
        self.at += 1
        if name in self.nested:
            return self._nested_type(name, start)
        if name == "variant":
            return self.variant()
        if name in _DECIMALS:
            precision, *scale = self._parameters() or [10]  # Spark's and SQL's default
            try:
                return self._not_null_mark(decimal(precision, scale[0] if scale else 0))
            except SchemaError as error:
                self.fail(error.message, start if self.faults_at_start else None)
        if name == "time":
            self._parameters()  # Spark writes time(6); the precision does not affect the storage
        kind: pa.DataType = DDL_NAMES.get(name) or self.other(name)
        if kind is None:
            names = (*DDL_NAMES, _DECIMALS[0], *self.nested, "variant")
            self.fail(f"unknown type {self.text[start : start + len(name)]!r}: {choice_of(name, names)}", start)
        return self._not_null_mark(kind)

    def marked(self, kind: pa.DataType) -> None:
        """Handle a type that is followed by ``!``."""
        self.fail("unexpected '!' after the type")

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raise the error with the byte offset of a character (default: the next token)."""
        before = self.text[: self.token.offset if offset is None else offset]
        raise self.error(message, reason=self.reason, offset=len(before.encode("utf-8", "surrogatepass")))

    @property
    def token(self) -> _Token:
        """The next token."""
        return self.tokens[self.at]

    def _not_null_mark(self, kind: pa.DataType) -> Any:
        if self.token.kind == "mark" and self.token.text == "!":
            self.marked(kind)
            self.at += 1
        return kind

    def _type_at(self, segment: Segment) -> T:
        self.path.append(segment)
        try:
            return self.type()
        finally:
            self.path.pop()

    def _nested_type(self, name: str, start: int) -> T:
        self.depth += 1
        if self.depth > self.max_depth:
            self.fail(self.too_deep.format(self.max_depth), start)
        self._expect("<")
        if name == "array":
            nested = self.array(self._type_at(WILDCARD))
        elif name == "struct":
            nested = self.struct([] if self._text() == ">" else self.columns())
        else:
            key = self.type()
            self._expect(",")
            nested = self.map(key, self.type())
        self._expect(">")
        self.depth -= 1
        return nested

    def _text(self) -> str:
        return self.token.text.upper()

    def _token_description(self) -> str:
        return "the end of the text" if self.token.kind == "end" else repr(self.token.text)

    def _take_mark(self, mark: str) -> bool:
        if self.token.kind != "mark" or self.token.text != mark:
            return False
        self.at += 1
        return True

    def _expect(self, mark: str) -> None:
        if not self._take_mark(mark):
            self.fail(f"expected {mark!r}, found {self._token_description()}")

    def _name(self) -> str:
        token = self.token
        if token.kind not in ("quoted", "word"):
            self.fail(f"expected a field name, found {self._token_description()}")
        self.at += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _skip_notes(self) -> None:
        if self._text() == "NOT" and self.tokens[self.at + 1].text.upper() == "NULL":
            self.at += 2
        if self._text() == "COMMENT" and self.tokens[self.at + 1].kind == "text":
            self.at += 2

    def _parameters(self) -> list[int]:
        if not self._take_mark("("):
            return []
        numbers = []
        while True:
            if not re.fullmatch(r"[0-9]{1,4}", self.token.text):
                self.fail(f"expected a number, found {self._token_description()}")
            numbers.append(int(self.token.text))
            self.at += 1
            if not self._take_mark(","):
                self._expect(")")
                return numbers
