"""The dialects of sqlglot: DuckDB's and Spark's SQL with paths after a colon and Spark's type names.

Owns parsing and writing paths, and the functions of Spark that DuckDB has under other names. Before sqlglot parses a
text, each path after a colon becomes an operator and its operand, and a method of DuckDB a function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, ClassVar

from sqlglot import TokenType, exp, parser
from sqlglot.dialects.dialect import Dialect, DialectType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.generator import Generator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token

from parquet_variant.errors import PathError
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_HEX = re.compile("([0-9a-fA-F]{2})*")
_WORD = re.compile(r"[^\W\d]\w*")
_PATH = TokenType.DOTCARET  # of no other operator of the dialects; the operand is the steps of a path as JSON
# Before these, a colon belongs to a slice.
_NO_KEYS = frozenset((TokenType.NUMBER, TokenType.R_BRACKET, TokenType.DASH))
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_NAMES = parser.Parser.ID_VAR_TOKENS | {TokenType.IDENTIFIER}
_ENDS_OF_VALUES = _NAMES | _CLOSING
_CASTS = frozenset((TokenType.DCOLON, TokenType.QDCOLON))
_CALLED = parser.Parser.FUNC_TOKENS & _NAMES  # CASE and IN are names, and not called
# Tokens before the brackets of a subscript, of a call, and of a type.
_BEFORE_OPENING = {TokenType.L_BRACKET: _ENDS_OF_VALUES, TokenType.L_PAREN: _CALLED, TokenType.LT: _NAMES}
_PIVOTS = (TokenType.PIVOT, TokenType.UNPIVOT)
_STARTS = (TokenType.SEMICOLON, TokenType.L_PAREN)
_ALL_OF = {TokenType.SELECT: "SELECT", TokenType.STAR: "*", TokenType.FROM: "FROM", TokenType.L_PAREN: "("}
_MODIFIERS = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET)  # sqlglot reads none after PIVOT … USING …
_CONNECTORS = _CASTS | {TokenType.DOT, _PATH}
_ENDS_OF_RECEIVERS = _ENDS_OF_VALUES | {TokenType.STRING, TokenType.GT}
# Spark's type names take precedence over the engine's types of the same name.
SPARK_TYPES = {
    "BYTE": TokenType.TINYINT,
    "SHORT": TokenType.SMALLINT,
    "?::": TokenType.QDCOLON,
    **dict.fromkeys(("LONG", "INT8"), TokenType.BIGINT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), TokenType.TIMESTAMPTZ),
    **dict.fromkeys(("TIMESTAMP_NTZ", "TIMESTAMP_US"), TokenType.TIMESTAMPNTZ),
}
OPERATORS = {
    TokenType.QDCOLON: lambda self, this, to: self.build_cast(False, this=this, to=to),
    _PATH: lambda self, this, steps: path_node(this, map(_json_path_step, json.loads(steps.name))),
}


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


def with_path_tokens(tokens: list[Token], text: str, *, is_duckdb: bool = False) -> list[Token]:
    """Return the tokens of a text with an operator and its operand in place of each path after a colon.

    `is_duckdb`: whether ``ARRAY[1]`` is ``[1]``, ``text.upper()`` is ``upper(text)``, and PIVOT has ORDER BY and LIMIT.
    Raises `ParseError` for an invalid path.
    """
    read: list[Token] = []
    brackets: list[TokenType | None] = [None]
    pivots: dict[int, int] = {}  # The start of each PIVOT statement, by the number of brackets around it.
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
            pivots.pop(len(brackets), None)
            brackets[-1:] = [] if len(brackets) > 1 else [None]
        elif kind in _PIVOTS and (
            before in _STARTS
            or (before == TokenType.R_PAREN and (types[number + 1] in _NAMES or types[number + 2] == TokenType.SELECT))
        ):
            pivots[len(brackets)] = len(read)
        elif kind in _MODIFIERS and (start := pivots.pop(len(brackets), -1)) >= 0 and is_duckdb:
            read[start:start] = [_token(word, written, read[start]) for word, written in _ALL_OF.items()]
            read.append(_token(TokenType.R_PAREN, ")", token))
        if brackets[-1] in (TokenType.L_BRACE, TokenType.MAP) and kind in (TokenType.L_BRACE, TokenType.COMMA):
            other_colons.add(_end_of_key(tokens, number + 1, brackets[-1] == TokenType.MAP))
        if token.text.upper() == "LAMBDA" and types[number + 1] in _NAMES:
            other_colons.add(types.index(TokenType.COLON, number) if TokenType.COLON in types[number:] else -1)
        is_colon = kind == TokenType.COLON and number not in other_colons
        number += 1
        if is_colon and brackets[-1] == TokenType.LT:
            continue  # struct<a: int> is struct<a int>
        is_literal = kind == TokenType.ARRAY and types[number] == TokenType.L_BRACKET and before != TokenType.DOT
        if is_literal and is_duckdb:
            tokens[number].start = token.start
            continue
        if kind == TokenType.STRING and before in parser.Parser.TYPE_TOKENS and types[number] in _CASTS:
            place = read.pop()  # sqlglot would cast the text before it is a DATE
            read += [_token(TokenType.L_PAREN, "(", place), place, token, _token(TokenType.R_PAREN, ")", token)]
            continue
        is_method = kind == TokenType.DOT and types[number + 1] == TokenType.L_PAREN and before in _ENDS_OF_RECEIVERS
        if is_method and is_duckdb:
            start, name = _start_of_receiver(read), tokens[number]
            call = Token(name.token_type, name.text, name.line, name.col, read[start].start, name.end)
            read[start:start] = [call, tokens[number + 1]]
            brackets.append(TokenType.L_PAREN)
            if types[number + 2] != TokenType.R_PAREN:
                read.append(_token(TokenType.COMMA, ",", token))
            number += 2
            continue
        is_hex = kind == TokenType.STRING and text[tokens[number - 2].start : token.start] in ("x", "X")
        if is_hex and is_duckdb:
            if not _HEX.fullmatch(token.text):
                raise _invalid("X'…' has two hexadecimal digits per byte, as in X'0A0B'", token, text)
            place = read[-1]
            read[-1:] = [_token(TokenType.VAR, "unhex", place), _token(TokenType.L_PAREN, "(", place), token]
            read.append(_token(TokenType.R_PAREN, ")", token))
            continue
        may_be_path = is_colon and before in _NAMES and brackets[-1] in (None, TokenType.L_PAREN)
        if may_be_path and types[number] == TokenType.NUMBER:
            meant = f"{tokens[number - 2].text}:['{tokens[number].text}']"
            raise _invalid(f"a key of digits is written in brackets and quotes: {meant}", token, text)
        if not is_colon or before not in _ENDS_OF_VALUES or types[number] in _NO_KEYS:
            read.append(token)
            continue
        steps, number = _read_path(tokens, number, text)
        last = tokens[number - 1]
        read.append(_token(_PATH, ":", token))
        read.append(Token(TokenType.IDENTIFIER, json.dumps(steps), last.line, last.col, token.end + 1, last.end))
    return read


def _token(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def _start_of_receiver(read: list[Token]) -> int:
    """Return the position of the first token of the value at the end of tokens: ``a.b``, ``f(x)[1]``, ``a::int``."""
    closing, opening = {*_CLOSING, TokenType.GT}, {*_OPENING, TokenType.LT}
    start = len(read) - 1
    while True:
        depth = int(read[start].token_type in closing)
        while depth and start:
            start -= 1
            depth += (read[start].token_type in closing) - (read[start].token_type in opening)
        before = read[start - 1].token_type if start else None
        if before in _BEFORE_OPENING.get(read[start].token_type, ()):
            start -= 1
        elif before in _CONNECTORS:
            start -= 2
        else:
            return start


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
        if kind == TokenType.COLON and (not in_map or since_cast == 2):
            return number
        if kind == TokenType.COLON and first < 0:
            first = number
        since_cast = 1 if kind in _CASTS else since_cast and since_cast + 1
    return first


def _read_path(tokens: list[Token], number: int, text: str) -> tuple[list[Any], int]:
    """Return the steps of a path (key, index, None for ``[*]``, True for ``.*``), and the number of the next token."""
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
        elif text.startswith(('"', "`", "'"), token.start) or _WORD.fullmatch(token.text):  # any word, also a keyword
            steps.append(token.text)
        else:
            raise _invalid("a key is expected: write a.b, a[0], or a['b-c'] for keys with other signs", token, text)
    if tokens[number].token_type == TokenType.L_PAREN:
        raise _invalid("a path is not a function: write upper(v:a)", tokens[number], text)
    return steps, number


def _invalid(message: str, token: Token, text: str) -> ParseError:
    before, near = text[: token.start], text[token.start : token.end + 1]
    return ParseError.new(message, message, token.line, token.col, before[-100:], near)


def path_node(column: exp.Expr, steps: Iterable[exp.Expr]) -> exp.JSONExtract:
    """Return the tree of a path."""
    path = exp.JSONPath(expressions=[exp.JSONPathRoot(), *steps])
    return exp.JSONExtract(this=column, expression=path, variant_extract=True)


def _json_path_step(step: Any) -> exp.Expr:
    if step is True:
        return exp.JSONPathWildcard()
    if isinstance(step, str):
        return exp.JSONPathKey(this=step)
    return exp.JSONPathSubscript(this=exp.JSONPathWildcard() if step is None else step)


def path_text(self: Any, node: exp.JSONExtract) -> str:
    """Write a path after a colon."""
    return with_steps(str(self.sql(node, "this")), steps_of(node))


def steps_of(node: exp.Expr) -> tuple[Segment, ...]:
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


# Functions of Spark that DuckDB has under other names.
_SPARK_FUNCTIONS = """
    ADD_MONTHS ARRAY_JOIN ARRAY_MAX ARRAY_MIN ARRAY_SIZE COLLECT_LIST COLLECT_SET DATEADD DATE_FORMAT ENDSWITH EXPLODE
    FROM_UNIXTIME GET_JSON_OBJECT IFF LOCATE NVL NVL2 REGEXP_LIKE RLIKE SEQUENCE SIZE SORT_ARRAY STARTSWITH
    TIMESTAMPDIFF TO_DATE TRANSFORM TRY_DIVIDE UNIX_DATE UNIX_MICROS UNIX_MILLIS UNIX_SECONDS
"""


_EXTREME = re.compile("(ARG_?)?(MIN|MAX)(_BY)?")
_TEXT_IN_DOLLARS = re.compile(r"\$(\w*)\$.*\$\1\$", re.DOTALL)


def _as_spark(name: str) -> Callable[..., exp.Expr]:
    """Return a parser for a function of Spark; Spark's dialect is imported when a query uses one."""

    def build(arguments: list[Any], **options: Any) -> exp.Expr:
        from sqlglot.dialects.databricks import Databricks
        from sqlglot.parsers.databricks import DatabricksParser

        if "dialect" in options:  # so that date patterns are Spark's: yyyy, not %Y
            options["dialect"] = Databricks()
        built: exp.Expr = DatabricksParser.FUNCTIONS[name](arguments, **options)
        built.meta["function"] = name.lower()  # SIZE and ARRAY_SIZE differ for Variants
        return built

    return build


def _instant(factor: int) -> Callable[[list[Any]], exp.Expr]:
    """Return a parser for ``timestamp_micros`` and similar functions, which DuckDB builds from microseconds."""

    def build(arguments: list[Any]) -> exp.Expr:
        ticks = [
            exp.cast(exp.cast(value, "DECIMAL(38,6)") * factor, "BIGINT") if factor > 1 else value
            for value in arguments
        ]
        return exp.Anonymous(this="make_timestamptz", expressions=ticks)

    return build


def _nulls(words: str) -> Callable[[Any, exp.Expr], str]:
    """Return a writer of ``IGNORE NULLS`` after the last argument, as in DuckDB, also for unknown functions."""

    def text(generator: Any, node: exp.Expr) -> str:
        this = str(generator.sql(node, "this"))
        return f"{this} {words}" if isinstance(node.parent, exp.Func) else f"{this.removesuffix(')')} {words})"

    return text


def _like_sql(generator: Any, node: exp.Like | exp.ILike) -> str:
    """Write LIKE with the escape character that Spark has by default, the backslash; DuckDB has none by default."""
    text = str(generator.like_sql(node) if isinstance(node, exp.Like) else generator.ilike_sql(node))
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or isinstance(pattern, (exp.Any, exp.All)):
        return text  # sqlglot writes LIKE ANY as one LIKE per pattern
    if isinstance(pattern, exp.Literal) and "\\" not in pattern.name:
        return text  # DuckDB is faster without ESCAPE
    return f"{text} ESCAPE '\\'"


class ForDuckDB(DuckDB):
    """DuckDB's SQL with Variant paths."""

    INDEX_OFFSET = 0  # indexes are kept as written: those of a Variant count from 0, those of DuckDB from 1

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """Return the tokens, with names in place of paths; dollars begin text only in ``$$…$$`` or ``$tag$…$tag$``."""
        kind = self.Tokenizer if _TEXT_IN_DOLLARS.search(sql) else self.DollarTokenizer
        return with_path_tokens(kind(dialect=dialect or self).tokenize(sql), sql, is_duckdb=True)

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, **SPARK_TYPES}

    class DollarTokenizer(Tokenizer):
        HEREDOC_STRINGS = []

    class Parser(PathParser, DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{name: _as_spark(name) for name in _SPARK_FUNCTIONS.split()},
            "COLUMNS": exp.Columns.from_arg_list,
            "TIMESTAMP_MICROS": _instant(1),
            "TIMESTAMP_MILLIS": _instant(1000),
            "TIMESTAMP_SECONDS": _instant(1_000_000),
        }
        # Extremes are functions as others are, without the rewriting of sqlglot.
        FUNCTION_PARSERS = {
            name: read for name, read in DuckDBParser.FUNCTION_PARSERS.items() if not _EXTREME.fullmatch(name)
        }
        COLUMN_OPERATORS = {**DuckDBParser.COLUMN_OPERATORS, **OPERATORS}
        CAST_COLUMN_OPERATORS = {*DuckDBParser.CAST_COLUMN_OPERATORS, TokenType.QDCOLON}

    class Generator(DuckDBGenerator):
        TRANSFORMS = {
            **DuckDBGenerator.TRANSFORMS,
            exp.JSONExtract: lambda self, node: (
                path_text if node.args.get("variant_extract") else DuckDBGenerator.TRANSFORMS[exp.JSONExtract]
            )(self, node),
            exp.Like: _like_sql,
            exp.ILike: _like_sql,
            exp.IgnoreNulls: _nulls("IGNORE NULLS"),
            exp.RespectNulls: _nulls("RESPECT NULLS"),
            exp.WithinGroup: Generator.withingroup_sql,
        }


@cache
def spark_dialect() -> type[Dialect]:
    """Return Spark's SQL with Variant paths, which is imported only when the engine is Spark."""
    from sqlglot.dialects.databricks import Databricks
    from sqlglot.generators.databricks import DatabricksGenerator
    from sqlglot.parsers.databricks import DatabricksParser

    class ForSpark(Databricks):
        INDEX_OFFSET = 0
        SUPPORTS_USER_DEFINED_TYPES = True  # so that an unknown type is refused later, with the list of types

        def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
            tokens = super().tokenize(sql) if dialect is None else super().tokenize(sql, dialect)  # as old releases
            return with_path_tokens(tokens, sql)

        class Tokenizer(Databricks.Tokenizer):
            KEYWORDS = {**Databricks.Tokenizer.KEYWORDS, **SPARK_TYPES}

        class Parser(PathParser, DatabricksParser):
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            COLUMN_OPERATORS = {**DatabricksParser.COLUMN_OPERATORS, **OPERATORS}

        class Generator(DatabricksGenerator):
            TRANSFORMS = {**DatabricksGenerator.TRANSFORMS, exp.JSONExtract: path_text}

    return ForSpark
