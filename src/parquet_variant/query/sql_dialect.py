"""SQL with Variant paths, as sqlglot reads and writes it: ``v:a.b[0]::string`` in an engine's own SQL.

Owns reading and writing it, and the words of its errors: Databricks' paths and Spark's names of types, in everything
else DuckDB's SQL (`duckdb_dialect`) or Spark's (`spark_dialect`). Functions are handed to the engine as they stand.
Leaves what a path means to `sql_terms`.
"""

from __future__ import annotations

import logging
from typing import Literal

from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError, UnsupportedError

from parquet_variant.choices import SqlEngine
from parquet_variant.errors import VariantError
from parquet_variant.query.duckdb_dialect import ForDuckDB
from parquet_variant.query.predicate import check_like

_MAX_LENGTH = 1 << 20
_MAX_DEPTH = 400
_QUERIES = (exp.Query, exp.Describe, exp.Values, exp.Summarize, exp.Pivot)
# DuckDB's other functions in FROM read files, change settings and logs, or follow addresses: some end the process.
_IN_FROM = ("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree")


class SqlError(VariantError):
    """SQL that cannot be read, or that asks for what cannot be answered."""

    default_reason = "bad-sql"


def _dialect(engine: SqlEngine) -> type[Dialect]:
    if not str(parser.__file__).endswith(".py"):
        raise VariantError(
            "sqlglot is compiled here, and then takes no dialect of ours: run: pip uninstall sqlglotc",
            reason="no-engine",
        )
    if engine == "duckdb":
        return ForDuckDB
    from parquet_variant.query.spark_dialect import ForSpark

    return ForSpark


def parse_sql(text: str, engine: SqlEngine = "duckdb", *, what: Literal["query", "expression"] = "query") -> exp.Expr:
    """The tree of one query, or of one expression.

    `text`: the SQL: the engine's, with paths as in ``v:a.b[0]::string``.
    `engine`: whose SQL the rest of the text is: ``"duckdb"`` (double quotes are names) or ``"spark"`` (they are text).
    `what`: ``"query"``: one SELECT, WITH, VALUES, FROM, DESCRIBE or set operation; ``"expression"``: a condition or
      value.
    Raises `SqlError` with line and column of what cannot be read.

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
    if what == "query" and not isinstance(tree, _QUERIES):
        explains = isinstance(tree, exp.Command) and tree.name.upper() == "EXPLAIN"
        raise SqlError("the SQL is no query: write one SELECT" + (", and ask with --explain" if explains else ""))
    _refuse_lost(tree, engine)
    if (parameter := tree.find(exp.Placeholder, exp.Parameter)) is not None:
        raise SqlError(f"the SQL has a parameter, {to_sql(parameter, engine)}, and takes none: write the value")
    return tree


def _refuse_lost(tree: exp.Expr, engine: SqlEngine) -> None:
    """Refuse what would change tables or reach for files, and what sqlglot reads but does not write."""
    change = tree.find(exp.DML, exp.Create, exp.Drop, exp.Alter, exp.Into)
    if change is not None:
        raise SqlError(f"the SQL is no query: {type(change).__name__.upper()} makes or changes a table")
    for fetch in tree.find_all(exp.Fetch):
        options = fetch.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise SqlError("FETCH takes a number of ROWS ONLY here: write LIMIT 50%, or QUALIFY rank() OVER (…) <= 5")
    for like in tree.find_all(exp.Like, exp.ILike):
        pattern = like.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string and not isinstance(like.parent, exp.Escape):
            check_like(pattern.name, SqlError)
    for table in tree.find_all(exp.Table) if engine == "duckdb" else ():
        function = table.this
        if isinstance(function, exp.Func) and function.name.lower() not in _IN_FROM:
            raise SqlError(
                f"the function {function.name} cannot stand in FROM: write a table, a path in quotes, or one of "
                + ", ".join(_IN_FROM)
            )


def _parse(text: str, engine: SqlEngine, into: type[exp.Expr] | None) -> list[exp.Expr | None]:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.ERROR)  # what it cannot read is refused below, not warned of
    dialect = _dialect(engine)()
    try:
        trees = dialect.parse_into(into, text) if into is not None else dialect.parse(text)
        if any(depth > _MAX_DEPTH for depth in map(_depth, filter(None, trees))):
            raise SqlError(f"the SQL nests deeper than {_MAX_DEPTH}")
        return list(trees)
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
    said = str(first.get("description") or str(error).splitlines()[0]).partition(" but got <")[0].removesuffix(".")
    if said.startswith("Required keyword"):  # what it says then are names of its classes
        said = "an operand is missing"
    return SqlError(f"the SQL cannot be read{where}: {said}{near}")


def to_sql(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """The text of a tree in an engine's SQL, to be run. Raises `SqlError` for what sqlglot would leave out of it."""
    try:
        return tree.sql(dialect=_dialect(engine), unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as error:
        raise SqlError(f"the SQL cannot be run: {str(error).splitlines()[0]}") from None


def written(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """An expression as the user wrote it, where that is known; for messages and for names of columns."""
    text = tree.meta.get("text")
    if not text and tree.find(exp.Column, exp.Anonymous):
        tree = tree.transform(lambda node: node.meta.get("written", node))
    return str(text or tree.sql(dialect=_dialect(engine), unsupported_level=ErrorLevel.IGNORE, comments=False))
