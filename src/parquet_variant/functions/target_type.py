"""Names of target types: ``bigint``, ``array<struct<a: double>>``, ``map<string, variant>``.

Owns the grammar of a target's name, which is that of Spark's types. Leaves the names of primitive types to
`schema.primitive_types`, and which types can be a target to `encoding.cast`.
"""

from __future__ import annotations

import re

import pyarrow as pa

from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import CastError
from parquet_variant.schema.primitive_types import DDL_NAMES

__all__ = ["as_target"]

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:]|\Z)")
_DECIMALS = ("decimal", "dec", "numeric")
_MAX_DEPTH = 100


def as_target(target: str | pa.DataType) -> pa.DataType:
    """The Arrow type of a target: the type itself, or what its name stands for.

    Names are Spark's in any case (``bigint``, ``decimal(10,2)``, ``array<…>``, ``struct<a: int, b string>``,
    ``map<string, …>``, ``variant``), those of `ShreddingSchema`'s DDL (``uuid``, ``timestamp_nanos``, …), and pyarrow's
    own aliases (``uint8``, ``large_string``). ``variant`` is a struct of ``metadata`` and ``value``.

    Raises
    ------
    CastError
        With reason ``bad-type`` and the offset of what cannot be read.

    Examples
    --------
    >>> as_target("array<struct<a: int, b: decimal(5,2)>>")
    ListType(list<element: struct<a: int32, b: decimal128(5, 2)>>)
    >>> as_target("strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: unknown type 'strin' (byte offset 0)
    """
    if isinstance(target, pa.DataType):
        return target
    if not isinstance(target, str):
        raise CastError(f"a type is given by its name or as a pyarrow type, not as {target!r}", reason="bad-type")
    return _Parser(target).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.error(f"unexpected {self.text[self.at :].strip()[:1]!r}")
        return match[1]

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if expected is not None and token != expected:
            raise self.error(f"expected {expected!r}, found {token or 'the end'!r}")
        match = _TOKEN.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return token

    def takes(self, token: str) -> bool:
        return self.peek() == token and bool(self.take())

    def error(self, message: str) -> CastError:
        at = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        return CastError(message, reason="bad-type", offset=len(self.text[:at].encode("utf-8", "surrogatepass")))

    def whole(self) -> pa.DataType:
        found = self.type()
        if self.peek():
            raise self.error(f"expected the end, found {self.peek()!r}")
        return found

    def type(self) -> pa.DataType:
        name = self.peek().lower()
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"a target type may be {_MAX_DEPTH} levels deep")
        nested = self.nested(name)
        found = self.primitive(name) if nested is None else nested  # a struct without fields is false
        self.depth -= 1
        return found

    def nested(self, name: str) -> pa.DataType | None:
        if name == "array":
            self.take()
            self.take("<")
            found = pa.list_(pa.field("element", self.type()))
        elif name == "map":
            self.take()
            self.take("<")
            key = self.type()
            self.take(",")
            found = pa.map_(key, self.type())
        elif name == "struct":
            self.take()
            self.take("<")
            fields = [] if self.peek() == ">" else self.fields()
            found = pa.struct(fields)
        else:
            return None
        self.take(">")
        return found

    def fields(self) -> list[pa.Field]:
        found = []
        while True:
            name = self.take()
            if not re.match(r"[\w`]", name):
                raise self.error(f"expected a field name, found {name or 'the end'!r}")
            name = name[1:-1].replace("``", "`") if name[0] == "`" else name
            self.takes(":")
            found.append(pa.field(name, self.type()))
            if self.peek().upper() == "NOT":
                self.take()
                self.take(self.peek() if self.peek().upper() == "NULL" else "NULL")
            if self.peek().upper() == "COMMENT":
                self.take()
                self.take()
            if not self.takes(","):
                return found

    def primitive(self, name: str) -> pa.DataType:
        if name == "variant":
            self.take()
            return VARIANT_STORAGE
        if name in _DECIMALS:
            self.take()
            precision, *scale = self.numbers() or [10]
            if not (1 <= precision <= 38 and 0 <= (scale or [0])[0] <= precision):
                raise self.error(f"decimal of {precision} digits: precision is 1 to 38, scale 0 to precision")
            return pa.decimal128(precision, (scale or [0])[0])
        if name in DDL_NAMES:
            self.take()
            if name == "time":
                self.numbers()  # Spark writes time(6); the precision says nothing about the storage
            return DDL_NAMES[name]
        try:
            found = pa.type_for_alias(name)
        except ValueError:
            raise self.error(f"unknown type {self.peek()!r}") from None
        self.take()
        return found

    def numbers(self) -> list[int]:
        if not self.takes("("):
            return []
        found = []
        while True:
            token = self.peek()
            if not re.fullmatch(r"[0-9]{1,4}", token):
                raise self.error(f"expected a number of digits, found {token or 'the end'!r}")
            found.append(int(self.take()))
            if not self.takes(","):
                self.take(")")
                return found
