"""The common part of both dialects: paths after a colon, and Spark's type names.

Owns parsing and writing paths. Leaves the rest of the SQL to `duckdb_dialect` and `spark_dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import TokenType, exp, parser

from parquet_variant.errors import PathError
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_WORD = re.compile(r"[^\W\d]\w*")
# Before these, a colon belongs to a slice.
_NO_KEYS = frozenset((TokenType.NUMBER, TokenType.R_BRACKET, TokenType.DASH))
_NO_VARIANTS = (exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Placeholder, exp.Parameter, exp.Interval)
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_CASTS = frozenset((TokenType.DCOLON, TokenType.QDCOLON))
# Spark's type names take precedence over the engine's types of the same name.
SPARK_TYPES = {
    "BYTE": TokenType.TINYINT,
    "SHORT": TokenType.SMALLINT,
    "LONG": TokenType.BIGINT,
    "TIMESTAMP": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_LTZ": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_NTZ": TokenType.TIMESTAMPNTZ,
    "TIMESTAMP_US": TokenType.TIMESTAMPNTZ,
    "?::": TokenType.QDCOLON,
}
OPERATORS = {TokenType.QDCOLON: lambda self, this, to: self.build_cast(False, this=this, to=to)}


class PathParser:
    """A mixin for both parsers: paths after a colon, and the text of each expression, kept for messages.

    sqlglot has no public hook for these, so the mixin overrides private methods of its parser.
    """

    COLON_IS_VARIANT_EXTRACT = True
    TYPE_CONVERTERS: dict[Any, Any] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    in_map = False  # whether the parser is inside MAP {…}
    end_of_key = -1  # index of the token that ends the current key of a struct or map; -1 outside of one

    def _parse_bracket(self: Any, this: Any = None) -> Any:
        before = self.in_map, self.ARRAY_CONSTRUCTORS
        self.in_map = self._prev is not None and self._prev.text.upper() == "MAP"
        if not isinstance(this, exp.Column) or this.table or this.this.args.get("quoted"):
            self.ARRAY_CONSTRUCTORS = {}  # sqlglot would read array(a)[0] and t.array[0] as ARRAY[0]
        try:
            return parser.Parser._parse_bracket(self, this)
        finally:
            self.in_map, self.ARRAY_CONSTRUCTORS = before

    def _parse_bracket_key_value(self: Any, is_map: bool = False) -> Any:
        before, self.end_of_key = self.end_of_key, self._end_of_key() if is_map else -1
        try:
            return parser.Parser._parse_bracket_key_value(self, is_map)
        finally:
            self.end_of_key = before

    def _end_of_key(self: Any) -> int:
        """Find the colon after a key in braces: the first, ``{a: v:b}``, or after a cast, ``MAP {v:a::int: 1}``."""
        depth, since_cast, first = 0, 0, -1
        for number in range(self._index, len(self._tokens)):
            kind = self._tokens[number].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth < 0 or (not depth and kind == TokenType.COMMA):
                break
            if depth or kind in _CLOSING:
                continue
            if kind == TokenType.COLON and self.in_map and since_cast == 2:
                return number
            if kind == TokenType.COLON and first < 0:
                first = number
            since_cast = 1 if kind in _CASTS else since_cast and since_cast + 1
        return first

    def _parse_colon_as_variant_extract(self: Any, this: Any) -> Any:
        while isinstance(this, exp.Expr) and not isinstance(this, _NO_VARIANTS):
            if self._curr.token_type != TokenType.COLON or self._next.token_type in _NO_KEYS:
                break
            if self._index == self.end_of_key:
                break
            self._advance()
            steps: list[exp.Expr] = [exp.JSONPathRoot()]
            if self._curr.token_type != TokenType.L_BRACKET:
                steps.append(self._path_key())
            while self._curr.token_type in (TokenType.DOT, TokenType.L_BRACKET):
                bracket = self._match(TokenType.L_BRACKET)
                steps.append(self._path_bracket() if bracket else self._advance() or self._path_key())
            path = exp.JSONPath(expressions=steps)
            this = self._parse_column_ops(exp.JSONExtract(this=this, expression=path, variant_extract=True))
        return this

    def _path_key(self: Any) -> exp.Expr:
        """Parse a key after ``:`` or a dot: any word, also a keyword; other keys are quoted or in brackets."""
        token = self._curr
        if self._match(TokenType.STAR):
            return exp.JSONPathWildcard()  # every field, in a select list
        if token.text == "$" and self._next.start == token.end + 1:  # $oid of MongoDB
            self._advance()
            self._advance()
            return exp.JSONPathKey(this=f"${self._prev.text}")
        quoted = self.sql[token.start : token.start + 1] in ('"', "`") and bool(token.text)
        if not quoted and not _WORD.fullmatch(token.text or ""):
            self.raise_error("a key is expected: write a.b, a[0], a['b c']")
        self._advance()
        return exp.JSONPathKey(this=token.text)

    def _path_bracket(self: Any) -> exp.Expr:
        if self._match(TokenType.STAR):
            step: exp.Expr = exp.JSONPathSubscript(this=exp.JSONPathWildcard())
        elif self._match_set((TokenType.STRING, TokenType.IDENTIFIER)):
            try:
                step = exp.JSONPathKey(this=key_in_brackets(self._prev.text))
            except PathError as error:
                self.raise_error(str(error))
        elif self._match(TokenType.NUMBER) and self._prev.text.isdecimal():
            step = exp.JSONPathSubscript(this=int(self._prev.text[:20]))
        elif self._match(TokenType.DASH):
            self.raise_error("a negative index is not allowed: indexes count from 0")
        else:
            self.raise_error(
                "[0], ['key'] or [*] is expected in a path; only arrays have slices: (v:a::array<type>)[:2]"
            )
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("] is expected; only arrays have slices: write (v:a::array<type>)[1:2]")
        return step

    def _parse_types(self: Any, *arguments: Any, **options: Any) -> Any:
        kind = super()._parse_types(*arguments, **options)  # type: ignore[misc]
        if isinstance(kind, exp.Cast):  # BigQuery's literal array<int>[1, 2]
            self.raise_error("a subscript after a type needs parentheses around the cast: write (v:a::array<int>)[…]")
        return kind

    def _parse_struct_types(self: Any, type_required: bool = False) -> Any:
        start = self._index
        is_call = [token.text.upper() for token in self._tokens[start - 2 : start]] in (["ROW", "("], ["STRUCT", "("])
        name = self._parse_id_var(any_token=True)
        colon = self._match(TokenType.COLON)
        kind = None if is_call and colon else self._parse_types()
        if name is None or kind is None:
            if is_call:
                return self._retreat(start)  # the arguments of a function, not the fields of a type
            self.raise_error("a field of a struct is written: name type")
        if self._match_text_seq("NOT"):
            self._match_text_seq("NULL")
        return self.expression(exp.ColumnDef(this=name, kind=kind))

    def _parse_expression(self: Any) -> Any:
        start = self._curr.start
        tree = parser.Parser._parse_expression(self)
        if isinstance(tree, exp.Expr) and not isinstance(tree, exp.Alias):
            tree.meta["text"] = self.sql[start : self._prev.end + 1]
        return tree


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
