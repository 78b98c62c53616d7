"""Predicates written as text: ``mag > 5 and place like 'x%'``.

Owns the grammar, which is SQL's for comparisons of one column with literals, and its errors. Leaves the tree to
`predicate`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, NoReturn

from parquet_variant.errors import PredicateError
from parquet_variant.query.predicate import (
    OPERATORS,
    And,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    is_in,
    joined,
)

_MAX_DEPTH = 100
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    | (?P<hex>[xX]'(?:[0-9a-fA-F]{2})*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<path>\$(?:\['(?:\\.|[^'\\])*'\]|\["(?:\\.|[^"\\])*"\]|\[[\d*]+\]|[^\s\[\]<>=!(),:'"`])*
        (?::\w+(?:\(\d+(?:,\s*\d+)?\))?)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<op><>|!=|<=|>=|==|=|<|>)
    | (?P<mark>[(),])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset(("and", "or", "not", "in", "is", "null", "like", "between", "true", "false"))


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse_predicate(text: str) -> Predicate:
    """Read a predicate.

    Parameters
    ----------
    text
        Comparisons (``= <> != < <= > >=``), ``IN (…)``, ``BETWEEN … AND …``, ``LIKE 'x%'``, ``IS NULL`` of columns with
        literals, joined by AND, OR, NOT and parentheses. Literals: numbers, ``'text'``, TRUE, FALSE, NULL,
        ``DATE '2024-01-31'``, ``TIMESTAMP '2024-01-31 12:00:00'``, ``X'0A0B'``. A path with a type can take the
        place of a column: ``$.a.b:int``. Column names that are not identifiers are written in double quotes or
        backticks. In a LIKE pattern a backslash escapes ``%``, ``_`` and itself, as in Spark. Keywords have any case.

    Raises
    ------
    PredicateError
        If the text is not a predicate, with the offset in characters.

    Examples
    --------
    >>> parse_predicate("mag > 5 and place like 'x%'")
    And(parts=(Compare(column='mag', op='>', literal=5), Like(column='place', pattern='x%')))
    >>> parse_predicate("mag >")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.PredicateError: invalid filter: expected a literal, found the end (byte offset 5)
    """
    return _Parser(text).parse()


def predicate_text(predicate: Predicate, column: Callable[[str], str] | None = None) -> str:
    r"""Return a predicate as text that `parse_predicate` reads.

    `predicate`: a predicate that is not bound yet, so its literals are Python values.
    `column`: returns the text of a column name; by default the name in double quotes.

    >>> predicate_text(parse_predicate("a > 5 and not (b like 'x%' or c is null)"))
    '"a" > 5 and not ("b" like \'x%\' or "c" is null)'
    """
    shown = column or (lambda name: '"' + name.replace('"', '""') + '"')
    if isinstance(predicate, (And, Or)):
        parts = [predicate_text(part, column) for part in predicate.parts]
        word = " and " if isinstance(predicate, And) else " or "
        return word.join(
            f"({text})" if isinstance(part, (And, Or)) else text
            for part, text in zip(predicate.parts, parts, strict=True)
        )
    if isinstance(predicate, Not):
        inner = predicate_text(predicate.part, column)
        return f"not ({inner})" if isinstance(predicate.part, (And, Or)) else f"not {inner}"
    if isinstance(predicate, IsNull):
        return f"{shown(predicate.column)} is null"
    if isinstance(predicate, Like):
        return f"{shown(predicate.column)} like {_literal_text(predicate.pattern)}"
    if isinstance(predicate, In):
        return f"{shown(predicate.column)} in ({', '.join(map(_literal_text, predicate.values))})"
    assert not isinstance(predicate, Constant)
    return f"{shown(predicate.column)} {predicate.op} {_literal_text(predicate.literal)}"


def _literal_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return f"{value}" if isinstance(value, (int, float, Decimal)) else "'" + str(value).replace("'", "''") + "'"


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a text, and an end; keywords, operators and marks are their own kind, in lower case."""
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            offset = position + len(text[position:]) - len(text[position:].lstrip())
            dotted = "; a path is written $.a.b:int, and a column with a dot in its name in double quotes"
            hint = dotted if text[offset] in ":.[" else ""
            raise PredicateError(f"invalid filter at {text[offset : offset + 20]!r}{hint}", offset=offset)
        kind, token = match.lastgroup, match[match.lastgroup]
        if kind in ("op", "mark") or token.lower() in _KEYWORDS:
            kind = {"==": "=", "!=": "<>"}.get(token, token.lower())
        yield _Token(kind, token, match.start(match.lastgroup))
        if kind == "end":
            return
        position = match.end()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.position, self.depth = 0, 0

    def parse(self) -> Predicate:
        predicate = self._joined(Or)
        self._expect("end", "AND, OR or the end")
        return predicate

    # ---- tokens

    def _accept(self, *kinds: str) -> _Token | None:
        """Return the next token if it is of one of some kinds, and go on."""
        token = self.tokens[self.position]
        if token.kind not in kinds:
            return None
        self.position += token.kind != "end"
        return token

    def _expect(self, kind: str, description: str = "") -> _Token:
        return self._accept(kind) or self._fail(description or kind.upper())

    def _fail(self, expected: str) -> NoReturn:
        token = self.tokens[self.position]
        what = "the end" if token.kind == "end" else repr(token.text)
        raise PredicateError(f"invalid filter: expected {expected}, found {what}", offset=token.offset)

    # ---- grammar

    def _joined(self, kind: type[And] | type[Or]) -> Predicate:
        def part() -> Predicate:
            return self._joined(And) if kind is Or else self._negation()

        parts = [part()]
        while self._accept(kind.__name__.lower()):
            parts.append(part())
        return joined(kind, parts)

    def _negation(self) -> Predicate:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            offset = self.tokens[self.position].offset
            raise PredicateError(f"the filter nests deeper than {_MAX_DEPTH} levels", offset=offset)
        if self._accept("not"):
            predicate: Predicate = Not(self._negation())
        elif self._accept("("):
            predicate = self._joined(Or)
            self._expect(")")
        else:
            predicate = self._comparison()
        self.depth -= 1
        return predicate

    def _comparison(self) -> Predicate:
        token = self._accept("quoted", "name", "path") or self._fail("a column")
        column = token.text
        if token.kind == "quoted":
            column = token.text[1:-1].replace(token.text[0] * 2, token.text[0])
        is_null = self._accept("is")
        negated = self._accept("not")
        if is_null:
            self._expect("null")
            predicate: Predicate = IsNull(column)
        elif self._accept("in"):
            self._expect("(")
            values = [self._literal()]
            while self._accept(","):
                values.append(self._literal())
            self._expect(")")
            predicate = is_in(column, values)
        elif self._accept("like"):
            predicate = Like(column, _unquoted(self._expect("string", "a pattern in single quotes").text))
        elif self._accept("between"):
            low = self._literal()
            self._expect("and")
            predicate = And((Compare(column, ">=", low), Compare(column, "<=", self._literal())))
        elif not negated and (op := self._accept(*OPERATORS)):
            operator: Any = op.kind
            predicate = Compare(column, operator, self._literal())
        else:
            self._fail("IN, LIKE or BETWEEN" if negated else "a comparison")
        return Not(predicate) if negated else predicate

    def _literal(self) -> Any:
        if token := self._accept("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[token.kind]
        if token := self._accept("string"):
            return _unquoted(token.text)
        if token := self._accept("hex"):
            return bytes.fromhex(token.text[2:-1])
        if token := self._accept("number"):  # exact; binding to a float column converts it to double
            if re.fullmatch(r"[-+]?\d{1,38}", token.text):
                return int(token.text)
            try:
                return Decimal(token.text)
            except InvalidOperation:
                raise PredicateError(f"the number {token.text[:40]} is out of range", offset=token.offset) from None
        name, following = self.tokens[self.position], self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if name.text.lower() not in ("date", "timestamp") or name.kind != "name" or following.kind != "string":
            self._fail("a literal")
        self.position += 2
        return _moment(name.text.lower(), following)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _moment(name: str, token: _Token) -> dt.date:
    kind = dt.date if name == "date" else dt.datetime
    if re.search(r"[.,]\d{7}", token.text):
        raise PredicateError(
            f"{token.text} has more than six fractional digits: write the literal as a plain string",
            offset=token.offset,
        )
    try:
        return kind.fromisoformat(token.text[1:-1])
    except ValueError:
        raise PredicateError(f"{token.text} is not a valid ISO 8601 {kind.__name__}", offset=token.offset) from None
