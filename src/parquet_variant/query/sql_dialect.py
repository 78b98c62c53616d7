"""SQL with Variant paths, as sqlglot reads and writes it: ``v:a.b[0]::string`` in an engine's own SQL.

Owns the two dialects: Databricks' paths and Spark's names of types, in everything else DuckDB's SQL or Spark's.
Functions are handed to the engine as they stand. Leaves what a path means to `sql_terms`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sqlglot import TokenType, exp, parser
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.generators.databricks import DatabricksGenerator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.parsers.duckdb import DuckDBParser

from parquet_variant.choices import SqlEngine
from parquet_variant.errors import VariantError

__all__ = ["SqlError", "parse_sql", "to_sql", "written"]

_MAX_LENGTH = 1 << 20
_MAX_DEPTH = 400


class SqlError(VariantError):
    """SQL that cannot be read, or that asks for what cannot be answered."""

    default_reason = "bad-sql"


class _PathParser:
    """What both parsers share: paths after a colon, every step checked; the text of each expression is kept."""

    COLON_IS_VARIANT_EXTRACT = True
    TYPE_CONVERTERS: dict[Any, Any] = {}

    def _parse_colon_as_variant_extract(self: Any, this: Any) -> Any:
        while isinstance(this, (exp.Column, exp.Dot, exp.Bracket, exp.Paren, exp.JSONExtract, exp.Anonymous, exp.Cast)):
            if self._curr.token_type != TokenType.COLON or self._next.token_type in _NO_KEYS:
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
        """A key after ``:`` or a dot: any word, keywords too; in double quotes, backticks or brackets what is none."""
        token = self._curr
        quoted = self.sql[token.start : token.start + 1] in ('"', "`") and bool(token.text)
        if not quoted and not _WORD.fullmatch(token.text or ""):
            self.raise_error("a key is expected: write a.b, a[0], a['b c']")
        self._advance()
        return exp.JSONPathKey(this=token.text)

    def _path_bracket(self: Any) -> exp.Expr:
        if self._match(TokenType.STAR):
            step: exp.Expr = exp.JSONPathSubscript(this=exp.JSONPathWildcard())
        elif self._match_set((TokenType.STRING, TokenType.IDENTIFIER)):
            step = exp.JSONPathKey(this=self._prev.text)
        elif self._match(TokenType.NUMBER) and self._prev.text.isdecimal():
            step = exp.JSONPathSubscript(this=int(self._prev.text[:20]))
        elif self._match(TokenType.DASH):
            self.raise_error("indexes count from 0: a negative one cannot be asked for")
        else:
            self.raise_error("[0], ['key'] or [*] is expected in a path")
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("] is expected")
        return step

    def _parse_struct_types(self: Any, type_required: bool = False) -> Any:
        name = self._parse_id_var(any_token=True)
        self._match(TokenType.COLON)
        kind = self._parse_types()
        if name is None or kind is None:
            self.raise_error("a field is written name type")
        if self._match_text_seq("NOT"):
            self._match_text_seq("NULL")
        return self.expression(exp.ColumnDef(this=name, kind=kind))

    def _parse_expression(self: Any) -> Any:
        start = self._curr.start
        found = parser.Parser._parse_expression(self)
        if isinstance(found, exp.Expr) and not isinstance(found, exp.Alias):
            found.meta["text"] = self.sql[start : self._prev.end + 1]
        return found


_WORD = re.compile(r"[^\W\d]\w*")
# After these a colon is that of a slice.
_NO_KEYS = frozenset((TokenType.NUMBER, TokenType.R_BRACKET, TokenType.DASH))
# Spark's names of types go before what another engine calls so.
_SPARK_TYPES = {
    "BYTE": TokenType.TINYINT,
    "SHORT": TokenType.SMALLINT,
    "LONG": TokenType.BIGINT,
    "TIMESTAMP": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_LTZ": TokenType.TIMESTAMPTZ,
    "TIMESTAMP_NTZ": TokenType.TIMESTAMPNTZ,
    "TIMESTAMP_US": TokenType.TIMESTAMPNTZ,
    "?::": TokenType.QDCOLON,
}
_OPERATORS = {TokenType.QDCOLON: lambda self, this, to: self.build_cast(False, this=this, to=to)}


def _path_text(self: Any, node: exp.JSONExtract) -> str:
    """A path as it is written after the colon."""
    text = ""
    for step in node.expression.expressions[1:]:
        if isinstance(step, exp.JSONPathSubscript):
            text += "[*]" if isinstance(step.this, exp.Expr) else f"[{step.this}]"
        elif str(step.this).isidentifier():
            text += f".{step.this}"
        else:
            text += "['" + str(step.this).replace("'", "''") + "']"
    return f"{self.sql(node, 'this')}:{text.removeprefix('.')}"


# Functions of Spark that DuckDB has under other names; those that it knows are its own.
_SPARK_FUNCTIONS = """
    ADD_MONTHS ARRAY_JOIN ARRAY_MAX ARRAY_MIN ARRAY_SIZE COLLECT_LIST COLLECT_SET DATEADD DATE_FORMAT ENDSWITH EXPLODE
    FROM_UNIXTIME GET_JSON_OBJECT IFF LOCATE NVL NVL2 REGEXP_LIKE RLIKE SEQUENCE SIZE SORT_ARRAY STARTSWITH
    TIMESTAMPDIFF TO_DATE TRANSFORM TRY_DIVIDE UNIX_DATE UNIX_MICROS UNIX_MILLIS UNIX_SECONDS
"""


def _instant(factor: int) -> Callable[[list[Any]], exp.Expr]:
    """``timestamp_micros`` and the like: DuckDB makes an instant of microseconds."""

    def build(arguments: list[Any]) -> exp.Expr:
        ticks = [
            exp.cast(exp.cast(each, "DECIMAL(38,6)") * factor, "BIGINT") if factor > 1 else each for each in arguments
        ]
        return exp.Anonymous(this="make_timestamptz", expressions=ticks)

    return build


class _ForDuckDB(DuckDB):
    INDEX_OFFSET = 0  # brackets stand as they are written: those of a Variant count from 0, DuckDB's own from 1

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, **_SPARK_TYPES, "INT8": TokenType.BIGINT}

    class Parser(_PathParser, DuckDBParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **{name: DatabricksParser.FUNCTIONS[name] for name in _SPARK_FUNCTIONS.split()},
            "TIMESTAMP_MICROS": _instant(1),
            "TIMESTAMP_MILLIS": _instant(1000),
            "TIMESTAMP_SECONDS": _instant(1_000_000),
        }
        COLUMN_OPERATORS = {**DuckDBParser.COLUMN_OPERATORS, **_OPERATORS}
        CAST_COLUMN_OPERATORS = {*DuckDBParser.CAST_COLUMN_OPERATORS, TokenType.QDCOLON}

    class Generator(DuckDBGenerator):
        TRANSFORMS = {**DuckDBGenerator.TRANSFORMS, exp.JSONExtract: _path_text}


class _ForSpark(Databricks):
    INDEX_OFFSET = 0
    SUPPORTS_USER_DEFINED_TYPES = True  # an unknown type is refused with the list of those that there are

    class Tokenizer(Databricks.Tokenizer):
        KEYWORDS = {**Databricks.Tokenizer.KEYWORDS, **_SPARK_TYPES, "INT8": TokenType.BIGINT}

    class Parser(_PathParser, DatabricksParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}

    class Generator(DatabricksGenerator):
        TRANSFORMS = {**DatabricksGenerator.TRANSFORMS, exp.JSONExtract: _path_text}


_DIALECTS: dict[str, type[Dialect]] = {"duckdb": _ForDuckDB, "spark": _ForSpark}


def parse_sql(text: str, engine: SqlEngine = "duckdb", *, what: Literal["query", "expression"] = "query") -> exp.Expr:
    """The tree of one query, or of one expression.

    Parameters
    ----------
    text
        The SQL: the engine's, with paths as in ``v:a.b[0]::string``.
    engine
        Whose SQL the rest of the text is: ``"duckdb"`` (double quotes are names) or ``"spark"`` (they are text).
    what
        ``"query"``: one SELECT, WITH, VALUES, FROM, DESCRIBE or set operation; ``"expression"``: a condition or value.

    Raises
    ------
    SqlError
        With line and column of what cannot be read.

    Examples
    --------
    >>> to_sql(parse_sql("select v:a['b c'] from t"))
    "SELECT v:a['b c'] FROM t"
    >>> parse_sql("select v:a..b from t")
    Traceback (most recent call last):
    ...
    parquet_variant.query.sql_dialect.SqlError: the SQL cannot be read at line 1, column 12: a key is expected: ...
    """
    if not isinstance(text, str) or not text.strip():
        raise SqlError(
            f"the SQL is empty: write {'a SELECT' if what == 'query' else 'a condition such as v:a::int > 5'}"
        )
    if len(text) > _MAX_LENGTH:
        raise SqlError(f"the SQL has {len(text):,} characters: {_MAX_LENGTH:,} are read at most")
    into = exp.Condition if what == "expression" else None
    statements = [each for each in _parse(text, engine, into) if each is not None]
    if len(statements) != 1:
        raise SqlError(f"the SQL has {len(statements)} statements: write one query")
    (tree,) = statements
    if what == "query" and not isinstance(tree, (exp.Query, exp.Describe, exp.Values, exp.Summarize)):
        raise SqlError("the SQL is no query: write one SELECT")
    return tree


def _parse(text: str, engine: SqlEngine, into: type[exp.Expr] | None) -> list[exp.Expr | None]:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.ERROR)  # what it cannot read is refused below, not warned of
    dialect = _DIALECTS[engine]()
    try:
        found = dialect.parse_into(into, text) if into is not None else dialect.parse(text)
        if any(depth > _MAX_DEPTH for depth in map(_depth, filter(None, found))):
            raise SqlError(f"the SQL nests deeper than {_MAX_DEPTH}")
        return list(found)
    except ParseError as error:
        raise _unreadable(error) from None
    except TokenError:
        raise SqlError("the SQL cannot be read: a quote or a comment is not closed") from None
    except RecursionError:
        raise SqlError("the SQL nests too deeply") from None
    except IndexError:  # sqlglot 30 has no error of its own for some texts
        raise SqlError("the SQL cannot be read: an operand is missing") from None
    except SqlglotError as error:
        raise SqlError(f"the SQL cannot be read: {error}") from None
    finally:
        logger.setLevel(level)


def _depth(tree: exp.Expr) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in node.iter_expressions()]
    return deepest


def _unreadable(error: ParseError) -> SqlError:
    nested = next((each for each in error.errors if each.get("into_expression")), None)
    first = (error.errors or [{}])[0] if nested is None else nested
    where = f" at line {first['line']}, column {first['col']}" if first.get("line") else ""
    near = f" (near {first['highlight']!r})" if first.get("highlight") else ""
    said = str(first.get("description") or str(error).splitlines()[0]).removesuffix(".")
    if said.startswith("Required keyword"):  # what it says then are names of its classes
        said = "an operand is missing"
    return SqlError(f"the SQL cannot be read{where}: {said}{near}")


def to_sql(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """The text of a tree in an engine's SQL."""
    return tree.sql(dialect=_DIALECTS[engine], unsupported_level=ErrorLevel.IGNORE, comments=False)


def written(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """An expression as the user wrote it, where that is known; for messages and for names of columns."""
    return str(tree.meta.get("text") or to_sql(tree, engine))
