"""DuckDB's SQL with Variant paths, Spark's type names, and the functions of Spark that DuckDB has under other names.

Owns the dialect. Leaves paths to `path_dialect`. sqlglot has no hook for methods and the clauses after PIVOT, so the
parser overrides private methods for these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token

from parquet_variant.query.path_dialect import OPERATORS, SPARK_TYPES, PathParser, path_text, with_path_tokens

# Functions of Spark that DuckDB has under other names.
_SPARK_FUNCTIONS = """
    ADD_MONTHS ARRAY_JOIN ARRAY_MAX ARRAY_MIN ARRAY_SIZE COLLECT_LIST COLLECT_SET DATEADD DATE_FORMAT ENDSWITH EXPLODE
    FROM_UNIXTIME GET_JSON_OBJECT IFF LOCATE NVL NVL2 REGEXP_LIKE RLIKE SEQUENCE SIZE SORT_ARRAY STARTSWITH
    TIMESTAMPDIFF TO_DATE TRANSFORM TRY_DIVIDE UNIX_DATE UNIX_MICROS UNIX_MILLIS UNIX_SECONDS
"""


_EXTREME = re.compile("(ARG_?)?(MIN|MAX)(_BY)?")


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


class _Method(exp.Expression):
    """A function after a dot: ``text.upper()`` is ``upper(text)``. sqlglot takes it for a function in a schema."""


class ForDuckDB(DuckDB):
    """DuckDB's SQL with Variant paths."""

    INDEX_OFFSET = 0  # indexes are kept as written: those of a Variant count from 0, those of DuckDB from 1

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """Return the tokens, with names in place of paths."""
        tokens = super().tokenize(sql) if dialect is None else super().tokenize(sql, dialect)  # as old releases have it
        return with_path_tokens(tokens, sql, has_array_literals=True)

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, **SPARK_TYPES}

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

        has_methods = False

        def _parse_field(
            self, any_token: bool = False, tokens: Any = None, anonymous_func: bool = False
        ) -> exp.Expr | None:
            is_method = anonymous_func and self._prev.token_type == TokenType.DOT
            field = super()._parse_field(any_token, tokens, anonymous_func)
            if not is_method or not isinstance(field, (exp.Anonymous, exp.Window)):
                return field
            self.has_methods = True
            return _Method(this=field)

        def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
            tree = super()._parse_column_ops(this)
            while self.has_methods and tree is not None and (method := tree.find(_Method)) is not None:
                dotted: Any = method.parent
                call, receiver = method.this, dotted.this
                if isinstance(dotted, exp.Column):
                    parts = (dotted.args.get(key) for key in ("table", "db", "catalog"))
                    receiver = exp.Column(**dict(zip(("this", "table", "db"), parts, strict=True)))
                function = call.find(exp.Anonymous)  # also inside a window
                function.set("expressions", [receiver, *function.expressions])
                tree = call if dotted is tree else tree
                dotted.replace(call)
            return tree

        def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> Any:
            pivot = super()._parse_simplified_pivot(is_unpivot)
            if self._curr.token_type in (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET):
                return self._parse_query_modifiers(exp.select("*").from_(exp.Subquery(this=pivot)))
            return pivot

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
