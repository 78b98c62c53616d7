"""The common part of both dialects: paths after a colon, and Spark's type names.

Owns parsing and writing paths. Before sqlglot parses a text, each path after a colon becomes a dot and one identifier;
afterwards these become paths again. Leaves the rest of the SQL to `duckdb_dialect`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import TokenType, exp, parser
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token

from parquet_variant.errors import PathError
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_WORD = re.compile(r"[^\W\d]\w*")
_PATH = "\x00path"  # begins the text of an identifier that stands for a path
# Before these, a colon belongs to a slice.
_NO_KEYS = frozenset((TokenType.NUMBER, TokenType.R_BRACKET, TokenType.DASH))
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_NAMES = parser.Parser.ID_VAR_TOKENS | {TokenType.IDENTIFIER}
_ENDS_OF_VALUES = _NAMES | _CLOSING
_CASTS = frozenset((TokenType.DCOLON, TokenType.QDCOLON))
# Spark's type names take precedence over the engine's types of the same name.
SPARK_TYPES = {
    "BYTE": TokenType.TINYINT,
    "SHORT": TokenType.SMALLINT,
    "LONG": TokenType.BIGINT,
    "INT8": TokenType.BIGINT,
    "TIMESTAMP": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_LTZ": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_NTZ": TokenType.TIMESTAMPNTZ,
    "TIMESTAMP_US": TokenType.TIMESTAMPNTZ,
    "?::": TokenType.QDCOLON,
}
OPERATORS = {TokenType.QDCOLON: lambda self, this, to: self.build_cast(False, this=this, to=to)}


class PathParser:
    """A mixin for both parsers, which keeps the text of each expression for messages and names of columns."""

    COLON_IS_VARIANT_EXTRACT = False  # `with_path_tokens` reads the paths
    TYPE_CONVERTERS: dict[Any, Any] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # sqlglot would read array(a)[0] and t.array[0] as ARRAY[0]

    def _parse_expression(self: Any) -> Any:
        start = self._curr.start
        tree = parser.Parser._parse_expression(self)
        if isinstance(tree, exp.Expr) and not isinstance(tree, exp.Alias):
            tree.meta["text"] = self.sql[start : self._prev.end + 1]
        return tree


def with_path_tokens(tokens: list[Token], text: str, *, has_array_literals: bool = False) -> list[Token]:
    """Return the tokens of a text with a dot and an identifier in place of each path after a colon.

    `has_array_literals`: whether ``ARRAY[1]`` is ``[1]``.
    Raises `ParseError` for an invalid path.
    """
    read: list[Token] = []
    brackets: list[TokenType | None] = [None]
    other_colons = set()  # those after a key of a struct or map, and after the parameters of a lambda
    count, end = len(tokens), Token(TokenType.SEMICOLON, "", 1, 1, len(text), len(text))
    tokens = [*tokens, end, end, end]
    types = [token.token_type for token in tokens]
    number = 0
    while number < count:
        token, kind, before = tokens[number], types[number], types[number - 1]
        if kind in _OPENING or (kind == TokenType.LT and before == TokenType.STRUCT):
            is_map = kind == TokenType.L_BRACE and tokens[number - 1].text.upper() == "MAP"
            brackets.append(TokenType.MAP if is_map else kind)
        elif kind in _CLOSING or (kind == TokenType.GT and brackets[-1] == TokenType.LT):
            brackets[-1:] = [] if len(brackets) > 1 else [None]
        if brackets[-1] in (TokenType.L_BRACE, TokenType.MAP) and kind in (TokenType.L_BRACE, TokenType.COMMA):
            other_colons.add(_end_of_key(tokens, number + 1, brackets[-1] == TokenType.MAP))
        if token.text.upper() == "LAMBDA" and types[number + 1] in _NAMES:
            other_colons.add(types.index(TokenType.COLON, number) if TokenType.COLON in types[number:] else -1)
        is_colon = kind == TokenType.COLON and number not in other_colons
        number += 1
        if is_colon and brackets[-1] == TokenType.LT:
            continue  # struct<a: int> is struct<a int>
        is_literal = kind == TokenType.ARRAY and types[number] == TokenType.L_BRACKET and before != TokenType.DOT
        if is_literal and has_array_literals:
            tokens[number].start = token.start
            continue
        if not is_colon or before not in _ENDS_OF_VALUES or types[number] in _NO_KEYS:
            read.append(token)
            continue
        steps, number = _read_path(tokens, number, text)
        last = tokens[number - 1]
        read.append(Token(TokenType.DOT, ".", token.line, token.col, token.start, token.end))
        name = _PATH + json.dumps(steps)
        read.append(Token(TokenType.IDENTIFIER, name, last.line, last.col, token.end + 1, last.end))
    return read


def _end_of_key(tokens: list[Token], start: int, in_map: bool) -> int:
    """Find the colon after a key in braces: the first, ``{a: v:b}``, or after a cast, ``MAP {v:a::int: 1}``."""
    depth, since_cast, first = 0, 0, -1
    for number in range(start, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth < 0 or (not depth and kind == TokenType.COMMA):
            break
        if depth or kind in _CLOSING:
            continue
        if kind == TokenType.COLON and in_map and since_cast == 2:
            return number
        if kind == TokenType.COLON and first < 0:
            first = number
        since_cast = 1 if kind in _CASTS else since_cast and since_cast + 1
    return first


def _read_path(tokens: list[Token], number: int, text: str) -> tuple[list[Any], int]:
    """Return the steps of a path, and the number of the token after it.

    A step is a key, an index, None for ``[*]``, or True for ``.*``.
    """
    steps: list[Any] = []
    while tokens[number].token_type in (TokenType.DOT, TokenType.L_BRACKET) or not steps:
        token, following, third = tokens[number : number + 3]
        if token.token_type == TokenType.L_BRACKET:
            kind = following.token_type if third.token_type == TokenType.R_BRACKET else None
            if kind in (TokenType.STRING, TokenType.IDENTIFIER):
                steps.append(key_in_brackets(following.text))
            elif kind == TokenType.STAR or (kind == TokenType.NUMBER and following.text.isdecimal()):
                steps.append(None if kind == TokenType.STAR else int(following.text[:20]))
            else:
                message = "[0], ['key'] or [*] is expected in a path: indexes count from 0, and only arrays have slices"
                raise _invalid(f"{message}, as in (v:a::array<type>)[1:2]", following, text)
            number += 3
            continue
        number += token.token_type == TokenType.DOT and bool(steps)
        token, following = tokens[number : number + 2]
        number += 1
        if token.token_type == TokenType.STAR:
            steps.append(True)  # every field, in a select list
        elif token.text == "$" and following.start == token.end + 1:  # $oid of MongoDB
            steps.append(f"${following.text}")
            number += 1
        elif token.text and (text[token.start] in '"`' or _WORD.fullmatch(token.text)):  # any word, also a keyword
            steps.append(token.text)
        else:
            raise _invalid("a key is expected: write a.b, a[0], a['b c']", token, text)
    if tokens[number].token_type == TokenType.L_PAREN:
        raise _invalid("a path is not a function: write upper(v:a)", tokens[number], text)
    return steps, number


def _invalid(message: str, token: Token, text: str) -> ParseError:
    before, near = text[: token.start], text[token.start : token.end + 1]
    return ParseError.new(message, message, token.line, token.col, before[-100:], near)


def with_paths(tree: exp.Expr) -> exp.Expr:
    """Return a parsed tree with paths in place of the identifiers of `with_path_tokens`.

    Raises `PathError` for a path where only a name can be.
    """
    nodes: list[Any] = list(tree.find_all(exp.Column, exp.Dot))
    for node in reversed(nodes):
        parts = [node.expression] if isinstance(node, exp.Dot) else node.parts
        at = next((at for at, part in enumerate(parts) if part.name.startswith(_PATH)), None)
        if at is None:
            continue
        before = zip(("this", "table", "db", "catalog"), reversed(parts[:at]), strict=False)
        path = node.this if isinstance(node, exp.Dot) else exp.Column(**{key: part.copy() for key, part in before})
        for part in parts[at:]:
            steps = [exp.JSONPathRoot(), *map(_json_path_step, json.loads(part.name.removeprefix(_PATH)))]
            path = exp.JSONExtract(this=path, expression=exp.JSONPath(expressions=steps), variant_extract=True)
        path.meta.update(node.meta)
        tree = path if node is tree else tree
        node.replace(path)
    if any(name.name.startswith(_PATH) for name in tree.find_all(exp.Identifier)):
        raise PathError("USING takes names of columns, not paths: write JOIN … ON a.v:kind = b.v:kind")
    return tree


def _json_path_step(step: Any) -> exp.Expr:
    if step is True:
        return exp.JSONPathWildcard()
    if isinstance(step, str):
        return exp.JSONPathKey(this=step)
    return exp.JSONPathSubscript(this=exp.JSONPathWildcard() if step is None else step)


def path_text(self: Any, node: exp.JSONExtract) -> str:
    """Write a path after a colon."""
    return with_steps(str(self.sql(node, "this")), steps_of(node))


def steps_of(node: exp.JSONExtract) -> tuple[Segment, ...]:
    """Return the steps of a path after a colon.

    Raises `PathError` for ``v:a.*``, which only a select list may have.
    """
    if any(isinstance(step, exp.JSONPathWildcard) for step in node.expression.expressions):
        raise PathError("a path with .* stands for every field: it must be the last step, and an item of SELECT")
    return tuple(WILDCARD if isinstance(step.this, exp.Expr) else step.this for step in node.expression.expressions[1:])


def key_in_brackets(text: str) -> str:
    r"""Return the key of ``v['…']``, in which a backslash begins an escape, as in the paths of other arguments.

    Raises `PathError` for an invalid escape.

    >>> key_in_brackets("tab\\u0009t"), key_in_brackets("it's")
    ('tab\tt', "it's")
    """
    if "\\" not in text:
        return text
    quoted = re.sub(r"\\.|'", lambda match: "\\'" if match[0] == "'" else match[0], text, flags=re.DOTALL)
    return str(VariantPath.parse(f"$['{quoted}']").segments[0])


def with_steps(column: str, steps: Sequence[Segment]) -> str:
    """Return a column with a path, as a query writes it.

    >>> with_steps("v", ["a", "b c", 0, WILDCARD])
    "v:a['b c'][0][*]"
    """
    text = ""
    for step in steps:
        if isinstance(step, str):
            text += f".{step}" if step.isidentifier() else f"['{_escaped(step)}']"
        else:
            text += f"[{step}]" if isinstance(step, int) else "[*]"
    return f"{column}:{text.removeprefix('.')}" if text else column


def _escaped(key: str) -> str:
    """Return a key for SQL's quotes: quotes are doubled, and backslashes and control characters are escaped."""
    escaped = str(VariantPath((key,)))[3:-2]
    return re.sub(r"\\(.)", lambda match: "''" if match[1] == "'" else match[0], escaped)
