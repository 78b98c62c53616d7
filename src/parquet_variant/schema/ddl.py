"""DDL in and out: ``a bigint, b struct<c: string>, tags array<string>, v variant``.

Owns the grammar. Type names are Spark's, any case, plus ``int8`` … ``int64``, ``float32``, ``float64``, ``bool``,
``time``, ``uuid``, ``timestamp_nanos`` and ``timestamp_ntz_nanos``; names in backquotes may hold anything (a backquote
is doubled); the colon between a name and its type is optional; ``NOT NULL`` and ``COMMENT '…'``, which Spark prints,
say nothing about shredding and are passed over. Leaves which types exist to `primitive_types`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parquet_variant.errors import SchemaError
from parquet_variant.schema.primitive_types import DDL_NAMES, ddl_name, decimal
from parquet_variant.schema.shredding_schema import MAX_DEPTH, ShreddingSchema

__all__ = ["parse_ddl", "quote_name", "render_ddl"]

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<mark>[<>(),:])|(?P<end>\Z))"
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DECIMALS = ("decimal", "dec", "numeric")


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse_ddl(text: str) -> ShreddingSchema:
    """Read a shredding schema from DDL.

    Parameters
    ----------
    text
        Columns separated by commas, or one type.

    Returns
    -------
    ShreddingSchema

    Raises
    ------
    SchemaError
        Reason ``bad-ddl``, with the byte offset (UTF-8) of the first thing that does not fit.

    Examples
    --------
    >>> parse_ddl("a bigint, b struct<c: string>").to_ddl()
    'a bigint, b struct<c: string>'
    >>> parse_ddl("a bigint, b strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: unknown type 'strin' (byte offset 12)
    """
    try:
        return _Parser(_tokens(text)).schema()
    except SchemaError as error:
        if error.offset is not None:
            error.offset = len(text[: error.offset].encode("utf-8", "surrogatepass"))
        raise


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise SchemaError(f"unexpected {text[at]!r} in DDL", reason="bad-ddl", offset=at)
        kind = match.lastgroup
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        if kind == "end":
            return tokens
        at = match.end()


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def takes(self, mark: str) -> bool:
        if self.token.kind == "mark" and self.token.text == mark:
            self.at += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.takes(mark):
            self.fail(f"expected {mark!r}, found {self.found()}")

    def found(self) -> str:
        return "the end" if self.token.kind == "end" else repr(self.token.text)

    def fail(self, message: str) -> None:
        raise SchemaError(message, reason="bad-ddl", offset=self.token.offset)

    def schema(self) -> ShreddingSchema:
        # `date` is a type, `date date` a column of that name: the second token tells.
        second = self.tokens[min(1, len(self.tokens) - 1)]
        is_type = self.token.kind == "word" and (second.kind == "end" or second.text in ("<", "("))
        schema = self.type() if is_type else self.columns()
        if self.token.kind != "end":
            self.fail(f"expected the end, found {self.found()}")
        return schema

    def columns(self) -> ShreddingSchema:
        fields: dict[str, ShreddingSchema] = {}
        while True:
            offset = self.token.offset
            name = self.name()
            if name in fields:
                raise SchemaError(f"field {name!r} is given twice", reason="bad-ddl", offset=offset)
            self.takes(":")
            fields[name] = self.type()
            self.notes()
            if not self.takes(","):
                return ShreddingSchema.object(fields)

    def name(self) -> str:
        if self.token.kind == "quoted":
            return self.take().text[1:-1].replace("``", "`")
        if self.token.kind != "word":
            self.fail(f"expected a field name, found {self.found()}")
        return self.take().text

    def notes(self) -> None:
        if self.token.text.upper() == "NOT" and self.tokens[self.at + 1].text.upper() == "NULL":
            self.at += 2
        if self.token.text.upper() == "COMMENT" and self.tokens[self.at + 1].kind == "text":
            self.at += 2

    def type(self) -> ShreddingSchema:
        if self.token.kind != "word":
            self.fail(f"expected a type, found {self.found()}")
        name = self.token.text.lower()
        if name in ("array", "struct"):
            return self.nested(name)
        if name == "variant":
            self.take()
            return ShreddingSchema.variant()
        if name in _DECIMALS:
            return self.decimal()
        if name not in DDL_NAMES:
            self.fail(f"unknown type {self.token.text!r}")
        self.take()
        return ShreddingSchema.primitive(DDL_NAMES[name])

    def nested(self, name: str) -> ShreddingSchema:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"a shredding schema may be {MAX_DEPTH} levels deep")
        self.take()
        self.expect("<")
        if name == "struct" and self.token.text == ">":
            self.fail("a struct needs a field; use variant")
        schema = self.columns() if name == "struct" else ShreddingSchema.array(self.type())
        self.expect(">")
        self.depth -= 1
        return schema

    def decimal(self) -> ShreddingSchema:
        offset = self.take().offset
        precision, scale = 10, 0  # Spark's and SQL's default
        if self.takes("("):
            precision = self.number()
            scale = self.number() if self.takes(",") else 0
            self.expect(")")
        try:
            return ShreddingSchema.primitive(decimal(precision, scale))
        except SchemaError as error:
            raise SchemaError(error.message, reason="bad-ddl", offset=offset) from None

    def number(self) -> int:
        if not re.fullmatch(r"[0-9]{1,4}", self.token.text):
            self.fail(f"expected a number of digits, found {self.found()}")
        return int(self.take().text)


def quote_name(name: str) -> str:
    """Write a field name for DDL, in backquotes where it is not a plain word.

    Examples
    --------
    >>> quote_name("a"), quote_name("a`b")
    ('a', '`a``b`')
    """
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def render_ddl(schema: ShreddingSchema) -> str:
    """Write a schema as DDL: an object as columns, anything else as one type.

    Examples
    --------
    >>> render_ddl(parse_ddl("struct<b string, a array<struct<c: int>>>"))
    'a array<struct<c: int>>, b string'
    """
    if schema.kind == "object":
        return ", ".join(f"{quote_name(name)} {_type(child)}" for name, child in schema.fields)
    return _type(schema)


def _type(schema: ShreddingSchema) -> str:
    if schema.kind == "object":
        return "struct<" + ", ".join(f"{quote_name(name)}: {_type(child)}" for name, child in schema.fields) + ">"
    if schema.element is not None:
        return f"array<{_type(schema.element)}>"
    return "variant" if schema.type is None else ddl_name(schema.type)
