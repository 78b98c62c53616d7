"""Predicates written as text: ``mag > 5 and place like 'x%'``.

Owns the grammar, which is SQL's for comparisons of one column with literals, and its errors. Leaves the tree to
`predicate`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, NoReturn

from parquet_variant.errors import PredicateError
from parquet_variant.query.predicate import And, Compare, Constant, In, IsNull, Like, Not, Or, Predicate, is_in, joined

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

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "name" else self.text if self.kind in ("op", "mark") else ""


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


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[_Token] = []
        position = 0
        while not self.tokens or self.tokens[-1].kind != "end":
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                offset = position + len(text[position:]) - len(text[position:].lstrip())
                dotted = text[offset] in ":.["
                hint = (
                    "; a path is written $.a.b:int, and a column with a dot in its name in double quotes"
                    if dotted
                    else ""
                )
                raise PredicateError(f"invalid filter at {text[offset : offset + 20]!r}{hint}", offset=offset)
            self.tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            position = match.end()
        self.position, self.depth = 0, 0

    def parse(self) -> Predicate:
        predicate = self._disjunction()
        if self._peek().kind != "end":
            self._fail("AND, OR or the end")
        return predicate

    # ---- tokens

    def _peek(self) -> _Token:
        return self.tokens[self.position]

    def _take(self) -> _Token:
        token = self.tokens[self.position]
        self.position += token.kind != "end"
        return token

    def _accept(self, *words: str) -> bool:
        coming = [token.word for token in self.tokens[self.position : self.position + len(words)]]
        if coming != list(words):
            return False
        self.position += len(words)
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._fail(word.upper())

    def _fail(self, expected: str) -> NoReturn:
        token = self._peek()
        what = "the end" if token.kind == "end" else repr(token.text)
        raise PredicateError(f"invalid filter: expected {expected}, found {what}", offset=token.offset)

    # ---- grammar

    def _disjunction(self) -> Predicate:
        parts = [self._conjunction()]
        while self._accept("or"):
            parts.append(self._conjunction())
        return joined(Or, parts)

    def _conjunction(self) -> Predicate:
        parts = [self._negation()]
        while self._accept("and"):
            parts.append(self._negation())
        return joined(And, parts)

    def _negation(self) -> Predicate:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PredicateError(f"the filter nests deeper than {_MAX_DEPTH} levels", offset=self._peek().offset)
        if self._accept("not"):
            predicate: Predicate = Not(self._negation())
        elif self._accept("("):
            predicate = self._disjunction()
            self._expect(")")
        else:
            predicate = self._comparison()
        self.depth -= 1
        return predicate

    def _comparison(self) -> Predicate:
        column = self._column()
        if self._accept("is"):
            negated = self._accept("not")
            self._expect("null")
            return Not(IsNull(column)) if negated else IsNull(column)
        negated = self._accept("not")
        predicate = self._predicate(column, negated)
        return Not(predicate) if negated else predicate

    def _predicate(self, column: str, negated: bool) -> Predicate:
        if self._accept("in"):
            self._expect("(")
            values = [self._literal()]
            while self._accept(","):
                values.append(self._literal())
            self._expect(")")
            return is_in(column, values)
        if self._accept("like"):
            token = self._take()
            if token.kind != "string":
                self.position -= token.kind != "end"
                self._fail("a pattern in single quotes")
            return Like(column, token.text[1:-1].replace("''", "'"))
        if self._accept("between"):
            low = self._literal()
            self._expect("and")
            return And((Compare(column, ">=", low), Compare(column, "<=", self._literal())))
        if negated or self._peek().kind != "op":
            self._fail("IN, LIKE or BETWEEN" if negated else "a comparison")
        op: Any = {"==": "=", "!=": "<>"}.get(self._peek().text, self._peek().text)
        self._take()
        return Compare(column, op, self._literal())

    def _column(self) -> str:
        token = self._peek()
        if token.kind == "quoted":
            self._take()
            mark = token.text[0]
            return token.text[1:-1].replace(mark * 2, mark)
        if token.kind not in ("name", "path") or token.word in _KEYWORDS:
            self._fail("a column")
        self._take()
        return token.text

    def _literal(self) -> Any:
        token = self._peek()
        if token.kind == "number":
            self._take()
            return self._number(token)
        if token.kind == "string":
            self._take()
            return token.text[1:-1].replace("''", "'")
        if token.kind == "hex":
            self._take()
            return bytes.fromhex(token.text[2:-1])
        if token.word in ("true", "false", "null"):
            self._take()
            return {"true": True, "false": False, "null": None}[token.word]
        if token.word in ("date", "timestamp") and self.tokens[self.position + 1].kind == "string":
            return self._moment()
        return self._fail("a literal")

    def _number(self, token: _Token) -> int | Decimal:
        """Return a number exactly, as int or Decimal; binding to a float column converts it to double."""
        if re.fullmatch(r"[-+]?\d{1,38}", token.text):
            return int(token.text)
        try:
            return Decimal(token.text)
        except InvalidOperation:
            raise PredicateError(f"the number {token.text[:40]} is out of range", offset=token.offset) from None

    def _moment(self) -> dt.date:
        kind = dt.date if self._take().word == "date" else dt.datetime
        token = self._take()
        if re.search(r"[.,]\d{7}", token.text):
            raise PredicateError(
                f"{token.text} has more than six fractional digits: write the literal as a plain string",
                offset=token.offset,
            )
        try:
            return kind.fromisoformat(token.text[1:-1])
        except ValueError:
            raise PredicateError(f"{token.text} is not a valid ISO 8601 {kind.__name__}", offset=token.offset) from None
