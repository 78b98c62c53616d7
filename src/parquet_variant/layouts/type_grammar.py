"""One grammar for the names of types, and the text forms of schemas: DDL, JSON and a printed tree.

Owns the syntax, which is Spark's, in any case: names in backquotes may contain any characters (a backquote is doubled);
the colon between a name and its type is optional; ``NOT NULL`` and ``COMMENT '…'``, which Spark prints, are ignored.
Leaves the result to its subclasses: a schema (`spellings`), or the target of a cast (`compute`).

Owns the types of a schema: Spark's names, in any case, with ``int8`` … ``int64``, ``float32``, ``float64``, ``bool``,
``time``, ``uuid``, ``timestamp_nanos`` and ``timestamp_ntz_nanos``, arrays and structs; and the JSON form, which
`variant infer --json` prints and `--schema` accepts: ``"bigint"``, ``{"array": …}``, ``{"object": {name: …}}``. Leaves
the grammar to `type_grammar`, and the list of types to `primitive_types`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import pyarrow as pa

from parquet_variant.errors import SchemaError, VariantError, choice_of
from parquet_variant.layouts.primitive_types import DDL_NAMES, ddl_name, decimal
from parquet_variant.layouts.storage_shape import MAX_DEPTH, SchemaNode, TypeTree
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, quote_name

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


def parse_ddl(text: str) -> TypeTree:
    """Parse a shredding schema in DDL: columns separated by commas, or one type.

    Raises `SchemaError` (``bad-ddl``) with the byte offset (UTF-8) of the fault.

    >>> parse_ddl("a bigint, b struct<c: string>")
    {'a': DataType(int64), 'b': {'c': DataType(string)}}
    >>> parse_ddl("a bigint, b strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: unknown type 'strin': did you mean 'string'? (byte offset 12)
    """
    tree, string_types = parse_ddl_with_strings(text)
    if string_types:
        raise SchemaError(
            f"the DDL has the type {next(iter(string_types.values()))}, which types strings while JSON is parsed: pass "
            "the DDL as schema= of ingest or parse_json, or remove the '!'",
            reason="bad-ddl",
        )
    return tree


def parse_ddl_with_strings(text: str) -> tuple[TypeTree, dict[str, str]]:
    """Read a shredding schema from DDL in which ``!`` marks types of strings: ``at timestamp!, n bigint!``.

    Returns the tree, and the types of strings by path, as in ``types=`` of `parse_json`. Raises `SchemaError` as
    `parse_ddl`.

    >>> parse_ddl_with_strings("at timestamp!, n bigint")
    ({'at': TimestampType(timestamp[us, tz=UTC]), 'n': DataType(int64)}, {"$['at']": 'timestamp!'})
    """
    parser = _Parser(text)
    # The second token decides: `date` is a type, `date date` is a column of that name.
    second = parser.tokens[min(1, len(parser.tokens) - 1)]
    is_type = parser.token.kind == "word" and (second.kind == "end" or second.text in ("<", "(", "!"))
    tree = parser.complete(parser.type() if is_type else parser.struct(parser.columns()))
    return tree, parser.string_types


class _Parser(TypeParser[TypeTree]):
    """Parser that makes the tree of a schema."""

    error = SchemaError
    reason = "bad-ddl"
    max_depth = MAX_DEPTH
    too_deep = "the shredding schema is nested deeper than {} levels"

    def __init__(self, text: str) -> None:
        self.string_types: dict[str, str] = {}
        super().__init__(text)

    def marked(self, kind: pa.DataType) -> None:
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            name = "number"
        elif pa.types.is_timestamp(kind):
            name = "timestamp_ntz" if kind.tz is None else "timestamp"
        elif pa.types.is_date(kind) or kind == pa.uuid():
            name = ddl_name(kind)
        else:
            self.fail(f"unexpected '!': strings cannot be parsed as {ddl_name(kind)}")
        self.string_types[str(VariantPath(tuple(self.path)))] = f"{name}!"

    def variant(self) -> TypeTree:
        return None

    def array(self, element: TypeTree) -> TypeTree:
        return [element]

    def struct(self, columns: list[ParsedColumn]) -> TypeTree:
        if not columns:
            self.fail("a struct without fields cannot be shredded: use variant")
        fields: dict[str, TypeTree] = {}
        for column in columns:
            if column.name in fields:
                self.fail(f"duplicate field {column.name!r}", column.offset)
            fields[column.name] = column.type
        return fields


def render_ddl(schema: SchemaNode) -> str:
    """Return a schema as DDL: an object as columns, any other node as one type."""
    if schema.kind == "object":
        return ", ".join(f"{quote_name(name)} {_type(child)}" for name, child in schema.fields)
    return _type(schema)


def _type(schema: SchemaNode) -> str:
    if schema.kind == "object":
        return "struct<" + ", ".join(f"{quote_name(name)}: {_type(child)}" for name, child in schema.fields) + ">"
    if schema.element is not None:
        return f"array<{_type(schema.element)}>"
    return "variant" if schema.type is None else ddl_name(schema.type)


def schema_to_json(schema: SchemaNode) -> str:
    """Return a schema as JSON text."""
    return json.dumps(_json_node(schema), ensure_ascii=False)


def tree_from_json(text: str | Mapping[str, Any]) -> TypeTree:
    """Parse a schema from JSON text, or from a parsed JSON object.

    Raises `SchemaError` (``bad-json-schema``).
    """
    plain: Any = text
    if isinstance(text, str):
        try:
            plain = json.loads(text, object_pairs_hook=_unique_fields)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SchemaError(f"the schema is not valid JSON: {error}", reason="bad-json-schema") from None
    return _json_tree(plain, 0)


def _json_node(schema: SchemaNode) -> Any:
    if schema.kind == "object":
        return {"object": {name: _json_node(child) for name, child in schema.fields}}
    return node_name(schema) if schema.element is None else {"array": _json_node(schema.element)}


def _json_tree(plain: Any, depth: int) -> TypeTree:
    if depth > MAX_DEPTH:
        raise SchemaError(f"the shredding schema is nested deeper than {MAX_DEPTH} levels", reason="bad-json-schema")
    if isinstance(plain, str):
        tree = parse_ddl(plain)
        if not isinstance(tree, (list, dict)):
            return tree
    elif isinstance(plain, Mapping) and len(plain) == 1:
        ((kind, children),) = plain.items()
        if kind == "array":
            return [_json_tree(children, depth + 1)]
        if kind == "object" and isinstance(children, Mapping):
            return {name: _json_tree(child, depth + 1) for name, child in children.items()}
    raise SchemaError(
        f'{json.dumps(plain, default=repr)[:80]} is not a schema node: use a type name, {{"array": …}} or '
        '{"object": {…}}',
        reason="bad-json-schema",
    )


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise SchemaError(f"duplicate field names among {sorted(fields)[:5]}", reason="bad-json-schema")
    return fields


def node_name(schema: SchemaNode) -> str:
    """Return the name of a node without its children: its DDL type, ``array``, ``object`` or ``variant``."""
    return schema.kind if schema.type is None else ddl_name(schema.type)


def render_tree(schema: SchemaNode) -> str:
    """Return a schema as a tree, with one line per node."""
    return "\n".join([node_name(schema), *_lines(schema)])


def _lines(schema: SchemaNode) -> list[str]:
    children = list(schema.fields) if schema.element is None else [("[*]", schema.element)]
    lines = []
    for position, (name, child) in enumerate(children):
        last = position == len(children) - 1
        label = name if name.isprintable() and name else repr(name)
        lines.append(f"{'└─' if last else '├─'} {label}: {node_name(child)}")
        lines.extend(("   " if last else "│  ") + line for line in _lines(child))
    return lines
