"""One grammar for the names of types, and the text forms of schemas: DDL, JSON and a printed tree.

Owns the syntax, which is Spark's, in any case: names in backquotes may contain any characters (a backquote is doubled);
the colon between a name and its type is optional; ``NOT NULL`` and ``COMMENT '…'``, which Spark prints, are ignored.
Owns the types of a target of a cast (``array<struct<a: double>>``, ``map<string, variant>``), and the meaning of a type
at a path with wildcards; `encoding.cast` decides which types can be a target.

Owns the types of a schema: Spark's names, in any case, with ``int8`` … ``int64``, ``float32``, ``float64``, ``bool``,
``time``, ``uuid``, ``timestamp_nanos`` and ``timestamp_ntz_nanos``, arrays and structs; and the JSON form, which
`variant infer --json` prints and `--schema` accepts: ``"bigint"``, ``{"array": …}``, ``{"object": {name: …}}``. Leaves
the list of types to `storage_shape`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from parquet_variant.errors import CastError, SchemaError, VariantError, choice_of
from parquet_variant.layouts.storage_shape import (
    DDL_NAMES,
    MAX_DEPTH,
    TypeTree,
    ddl_name,
    decimal,
    is_list,
    refuse_deep,
)
from parquet_variant.support.records import shortened
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, quote_name
from parquet_variant.types.targets import VARIANT_STORAGE

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<mark>[<>(),:!])|(?P<end>\Z))"
)
_DECIMALS = ("decimal", "dec", "numeric")


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


class Grammar(NamedTuple):
    """The rules of one kind of text, and its error."""

    error: type[VariantError]
    reason: str
    max_depth: int
    too_deep: str  # The message for more levels.
    # Whether the text is a shredding schema: without maps and empty structs, with ``!`` after types of strings.
    is_shredding: bool = False
    has_aliases: bool = False  # Whether pyarrow's names of types are allowed, too.
    keeps_not_null: bool = False  # Whether ``NOT NULL`` makes a field of a struct required; otherwise it has no effect.


class TypeParser:
    """Parser of type names, which makes Arrow types; ``variant`` is `VARIANT_STORAGE`."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.grammar = grammar
        self.nested = ("array", "struct") if grammar.is_shredding else ("array", "struct", "map")
        self.string_types: dict[str, str] = {}  # by path: the types that ``!`` follows
        self.depth = 0
        self.at = 0
        self.path: list[Segment] = []  # of the type that is being parsed
        self.tokens: list[_Token] = []
        end = 0
        while not self.tokens or self.tokens[-1].kind != "end":
            match = _TOKEN.match(text, end)
            if match is None or match.lastgroup is None:
                end += len(text[end:]) - len(text[end:].lstrip())
                nested = "; a field of an object is written a struct<b: int>" if text[end] == "." else ""
                self.fail(f"unexpected {text[end]!r} in a type{nested}", end)
            self.tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            end = match.end()

    def complete(self, kind: pa.DataType) -> pa.DataType:
        """Return a result if the text ends here; else raise the error."""
        if self.token.kind != "end":
            self.fail(f"expected a comma or the end of {shortened(self.text, 60)!r}, found {self._token_description()}")
        return kind

    def columns(self) -> pa.StructType:
        """Parse columns separated by commas, at least one."""
        fields: list[pa.Field] = []
        while True:
            offset = self.token.offset
            if self.token.kind not in ("quoted", "word"):
                self.fail(f"expected a field name, found {self._token_description()}")
            name = self.token.text
            name = name[1:-1].replace("``", "`") if self.token.kind == "quoted" else name
            self.at += 1
            if self.grammar.is_shredding and any(field.name == name for field in fields):
                self.fail(f"duplicate field {name!r}", offset)
            self._take_mark(":")
            kind = self._type_at(name)
            is_required = self._text() == "NOT" and self.tokens[self.at + 1].text.upper() == "NULL"
            self.at += 2 * is_required
            if self._text() == "COMMENT" and self.tokens[self.at + 1].kind == "text":
                self.at += 2
            fields.append(pa.field(name, kind, not (is_required and self.grammar.keeps_not_null)))
            if not self._take_mark(","):
                return pa.struct(fields)

    def type(self) -> pa.DataType:
        """Parse one type."""
        name, start = self.token.text.lower(), self.token.offset
        if self.token.kind != "word":
            self.fail(f"expected a type, found {self._token_description()}")
        self.at += 1
        if name in self.nested:
            return self._nested_type(name, start)
        if name == "variant":
            return VARIANT_STORAGE
        if name in _DECIMALS:
            precision, *scale = self._parameters() or [10]  # Spark's and SQL's default
            try:
                kind = decimal(precision, scale[0] if scale else 0)
            except SchemaError as error:
                self.fail(error.message, start)
        else:
            if name == "time":
                self._parameters()  # Spark writes time(6); the precision does not affect the storage
            kind = DDL_NAMES.get(name)
            with suppress(ValueError):  # not an alias
                kind = pa.type_for_alias(name) if kind is None and self.grammar.has_aliases else kind
        if kind is None:
            names = (*DDL_NAMES, _DECIMALS[0], *self.nested, "variant")
            self.fail(f"unknown type {self.text[start : start + len(name)]!r}: {choice_of(name, names)}", start)
        if self._text() == "!":
            self._mark(kind)
        return kind

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raise the error with the byte offset of a character (default: the next token)."""
        before = self.text[: self.token.offset if offset is None else offset]
        offset = len(before.encode("utf-8", "surrogatepass"))
        raise self.grammar.error(message, reason=self.grammar.reason, offset=offset)

    @property
    def token(self) -> _Token:
        """The next token."""
        return self.tokens[self.at]

    def _mark(self, kind: pa.DataType) -> None:
        """Read the ``!`` after a type."""
        if not self.grammar.is_shredding:
            self.fail("unexpected '!' after the type")
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            name = "number"
        elif pa.types.is_timestamp(kind):
            name = "timestamp_ntz" if kind.tz is None else "timestamp"
        elif pa.types.is_date(kind) or kind == pa.uuid():
            name = ddl_name(kind)
        else:
            self.fail(f"unexpected '!': strings cannot be parsed as {ddl_name(kind)}")
        self.string_types[str(VariantPath(tuple(self.path)))] = f"{name}!"
        self.at += 1

    def _type_at(self, segment: Segment) -> pa.DataType:
        self.path.append(segment)
        try:
            return self.type()
        finally:
            self.path.pop()

    def _nested_type(self, name: str, start: int) -> pa.DataType:
        self.depth += 1
        if self.depth > self.grammar.max_depth:
            self.fail(self.grammar.too_deep.format(self.grammar.max_depth), start)
        self._expect("<")
        if name == "array":
            nested = pa.list_(pa.field("element", self._type_at(WILDCARD)))
        elif name == "map":
            key = self.type()
            self._expect(",")
            if pa.types.is_null(key):
                self.fail("map keys cannot be NULL: use a map with string keys", start)
            nested = pa.map_(key, self.type())
        elif self._text() != ">":
            nested = self.columns()
        elif self.grammar.is_shredding:
            self.fail("a struct without fields cannot be shredded: use variant")
        else:
            nested = pa.struct([])
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

    def _parameters(self) -> list[int]:
        numbers: list[int] = []
        while self._take_mark("," if numbers else "("):
            if not re.fullmatch(r"[0-9]{1,4}", self.token.text):
                self.fail(f"expected a number, found {self._token_description()}")
            numbers.append(int(self.token.text))
            self.at += 1
        if numbers:
            self._expect(")")
        return numbers


_SHREDDING = Grammar(
    SchemaError, "bad-ddl", MAX_DEPTH, "the shredding schema is nested deeper than {} levels", is_shredding=True
)


def parse_ddl(text: str) -> TypeTree:
    """Parse a shredding schema in DDL: columns separated by commas, or one type.

    Raises `SchemaError` (``bad-ddl``) with the byte offset (UTF-8) of the fault.
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

    Returns the tree, and the types of strings by path, as in ``types=`` of `parse_json`.
    """
    parser = TypeParser(text, _SHREDDING)
    # The second token decides: `date` is a type, `date date` is a column of that name.
    second = parser.tokens[min(1, len(parser.tokens) - 1)]
    is_type = parser.token.kind == "word" and (second.kind == "end" or second.text in ("<", "(", "!"))
    kind = parser.complete(parser.type() if is_type else parser.columns())
    return _tree(kind), parser.string_types


def _tree(kind: pa.DataType) -> TypeTree:
    if kind == VARIANT_STORAGE:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _tree(field.type) for field in kind}
    return [_tree(kind.value_type)] if pa.types.is_list(kind) else kind


def render_ddl(tree: TypeTree) -> str:
    """Return a schema as DDL: an object as columns, any other node as one type."""
    if isinstance(tree, dict):
        return ", ".join(f"{quote_name(name)} {_type(child)}" for name, child in tree.items())
    return _type(tree)


def _type(tree: TypeTree) -> str:
    if isinstance(tree, dict):
        return "struct<" + ", ".join(f"{quote_name(name)}: {_type(child)}" for name, child in tree.items()) + ">"
    return f"array<{_type(tree[0])}>" if isinstance(tree, list) else _name(tree)


def tree_to_json(tree: TypeTree) -> str:
    """Return a schema as JSON text."""
    return json.dumps(_json_node(tree), ensure_ascii=False)


def tree_from_json(text: str | Mapping[str, Any]) -> TypeTree:
    """Parse a schema from JSON text, or from a parsed JSON object. Raises `SchemaError` (``bad-json-schema``)."""
    plain: Any = text
    if isinstance(text, str):
        try:
            plain = json.loads(text, object_pairs_hook=_unique_fields)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SchemaError(f"the schema is not valid JSON: {error}", reason="bad-json-schema") from None
    return _json_tree(plain, 0)


def _json_node(tree: TypeTree) -> Any:
    if isinstance(tree, dict):
        return {"object": {name: _json_node(child) for name, child in tree.items()}}
    return {"array": _json_node(tree[0])} if isinstance(tree, list) else _name(tree)


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


def _name(tree: TypeTree) -> str:
    """Return the name of a node without its children: its DDL type, ``array``, ``object`` or ``variant``."""
    if isinstance(tree, pa.DataType):
        return ddl_name(tree)
    return "variant" if tree is None else "array" if isinstance(tree, list) else "object"


def render_tree(tree: TypeTree) -> str:
    """Return a schema as a tree, with one line per node."""
    return "\n".join([_name(tree), *_lines(tree)])


def _lines(tree: TypeTree) -> list[str]:
    children = list(tree.items()) if isinstance(tree, dict) else [("[*]", tree[0])] if isinstance(tree, list) else []
    lines = []
    for position, (name, child) in enumerate(children):
        last = position == len(children) - 1
        label = name if name.isprintable() and name else repr(name)
        lines.append(f"{'└─' if last else '├─'} {label}: {_name(child)}")
        lines.extend(("   " if last else "│  ") + line for line in _lines(child))
    return lines


def as_target(target: str | pa.DataType) -> pa.DataType:
    """Return the Arrow type of a cast target, given as a type or by name.

    Names are Spark's in any case (``bigint``, ``decimal(10,2)``, ``array<…>``, ``struct<a: int, b string>``,
    ``map<string, …>``, ``variant``), those of the DDL of `ShreddingSchema` (``uuid``, ``timestamp_nanos``, …), and
    pyarrow's own aliases (``uint8``, ``large_string``). ``variant`` is a struct of ``metadata`` and ``value``. Raises
    `CastError` with reason ``bad-type`` and the offset of the part that cannot be read.
    """
    if isinstance(target, pa.DataType):
        refuse_deep(target)
        return target
    if not isinstance(target, str):
        raise CastError(f"type is {target!r}: pass a type name such as 'bigint', or a pyarrow type", reason="bad-type")
    return _parsed(target)


_TARGETS = Grammar(CastError, "bad-type", 100, "the target type is nested more than {} levels deep", has_aliases=True)


@lru_cache(maxsize=256)
def _parsed(target: str) -> pa.DataType:
    parser = TypeParser(target, _TARGETS)
    return parser.complete(parser.type())


def value_target(target: pa.DataType, path: VariantPath) -> pa.DataType:
    """Return the type of the values at the end of a path with wildcards, from the type that a user passed.

    A list type with a level for each wildcard is the type of the result, so its element type is returned; a type that
    is not a list is the type of every value. Raises `CastError` (``bad-type``) for a list type with fewer levels.
    """
    element = target
    wildcards = wildcard_count(path)
    for level in range(wildcards):
        if not is_list(element):
            if level:
                raise CastError(
                    f"{target} has {level} array levels, and {path} makes {wildcards}: give the type of the result, "
                    "with one array level for each [*], or the type of its values",
                    reason="bad-type",
                )
            return target
        element = element.value_type
    return element


def result_type(value_type: pa.DataType, path: VariantPath) -> pa.DataType:
    """Return the type of the result for a type of values: a list for each wildcard of the path."""
    for _ in range(wildcard_count(path)):
        value_type = pa.list_(pa.field("element", value_type))
    return value_type


def wildcard_count(path: VariantPath) -> int:
    """Return how many wildcards a path has."""
    return sum(segment is WILDCARD for segment in path.segments)
