"""SQL with Variant paths, parsed and written by sqlglot: ``v:a.b[0]::string`` in the SQL of DuckDB or Spark.

Owns parsing, writing, their errors, and parameters (``?`` with a list of values, ``$name`` with a dict). Paths and type
names are those of Databricks and Spark; everything else is the engine's SQL (`path_dialect`), and
functions are passed to the engine unchanged. Leaves the meaning of paths to `rewriting`.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa
from sqlglot import TokenType, exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError, UnsupportedError

from parquet_variant.errors import SchemaError, VariantError, first_line
from parquet_variant.layouts.storage_shape import ddl_name, decimal
from parquet_variant.query.path_dialect import ForDuckDB, spark_dialect
from parquet_variant.query.predicate import check_like
from parquet_variant.support.options import SqlEngine
from parquet_variant.types.path import quote_name
from parquet_variant.types.targets import VARIANT_STORAGE


def with_values(text: str, engine: SqlEngine, params: Any) -> str:
    """Return a text with literals in place of its parameters.

    Raises `VariantError` with reason ``bad-parameter`` if parameters and values do not match.

    >>> with_values("SELECT $a, v:b", "duckdb", {"a": "it's"})
    "SELECT 'it''s', v:b"
    """
    by_name = isinstance(params, Mapping)
    if not by_name and (isinstance(params, (str, bytes)) or not isinstance(params, Sequence)):
        raise _error(f"params is {params!r}: give a list of values for ?, or a dict of values for $name")
    tokens = _dialect(engine)().tokenize(text)
    used_keys: list[Any] = []
    parts: list[str] = []
    end = 0
    for number, token in enumerate(tokens):
        key: Any
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?" and not by_name:
            key, stop = len(used_keys), token.end
        elif token.token_type == TokenType.PARAMETER and token.text == "$" and number + 1 < len(tokens):
            name = tokens[number + 1]
            key, stop = (name.text if by_name else int(name.text) - 1), name.end
        else:
            continue
        if key not in params if by_name else not 0 <= key < len(params):
            shown = f"${key}" if by_name else f"number {key + 1}"
            raise _error(f"the SQL has the parameter {shown}, and params has {len(params)} values: add it")
        used_keys.append(key)
        parts += [text[end : token.start], literal_text(params[key], engine)]
        end = stop + 1
    if unused := [key for key in (params if by_name else range(len(params))) if key not in used_keys]:
        raise _error(
            f"the SQL does not use the parameter {unused[0]!r} of params: remove it, or write it as $name or ?"
        )
    return "".join([*parts, text[end:]])


def literal_text(value: Any, engine: SqlEngine = "duckdb") -> str:
    """Return the SQL of a Python value.

    Raises `VariantError` with reason ``bad-parameter`` for a value without a literal.

    >>> [literal_text(value) for value in (None, True, -5, 2.5, "it's", [1, 2])]
    ['NULL', 'TRUE', '(-5)', '2.5e0', "'it''s'", '[1, 2]']
    """
    if type(value).__module__ == "numpy" and type(value).__name__ != "datetime64":  # pandas has numbers as NumPy does
        value = value.tolist()
    value = None if type(value).__name__ in ("NaTType", "NAType") else value  # of pandas
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, float) and not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, (int, float, Decimal)):
        if isinstance(value, Decimal) and not value.is_finite():
            raise _error(f"a parameter is Decimal({str(value)!r}): decimals are finite, so give a float")
        number = f"{value.copy_abs():f}" if isinstance(value, Decimal) else repr(abs(value))  # abs() would round
        number += "e0" if isinstance(value, float) and "e" not in number else ""
        return f"(-{number})" if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value).sql(_dialect(engine))
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if getattr(value, "nanosecond", 0):  # of pandas; the other types of SQL end at microseconds
        if engine == "spark" or value.tzinfo:
            raise _error(f"a parameter is {value}: only DuckDB's times without a zone have nanoseconds, so round it")
        return f"CAST('{value}' AS TIMESTAMP_NS)"
    for kind, name in ((dt.datetime, "TIMESTAMP"), (dt.date, "DATE"), (dt.time, "TIME"), (uuid.UUID, "UUID")):
        if isinstance(value, kind):
            is_local = isinstance(value, dt.datetime) and not value.tzinfo
            return f"CAST('{value}' AS {name}{'_NTZ' if is_local else ''})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(literal_text(part, engine) for part in value)
        return f"[{inner}]" if engine == "duckdb" else f"array({inner})"
    raise _error(f"a parameter is {type(value).__name__}: give a number, string, date, time, bytes, UUID or list")


def _error(message: str) -> VariantError:
    return VariantError(message, reason="bad-parameter")


_MAX_LENGTH = 1 << 20
_MOST_REMEMBERED = 1 << 14  # Characters of a text whose tree is remembered.
_MAX_DEPTH = 400
_COMPLETED = {"GROUP": "GROUP BY", "ORDER": "ORDER BY", "PARTITION": "PARTITION BY", "TOP": "LIMIT at the end"}
_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "AND", "UNION")
_LONG_CHAIN = 16
_QUERIES = (exp.Query, exp.Describe, exp.Values, exp.Summarize, exp.Pivot)
# DuckDB's other functions in FROM read files, change settings or open URLs, and some end the process.
_IN_FROM = ("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree")
_VARIANT_ROWS = ("typed", "variant_explode", "variant_explode_outer", "flatten")


class SqlError(VariantError):
    """SQL that is invalid, or that cannot be answered."""

    default_reason = "bad-sql"


def _dialect(engine: SqlEngine) -> type[Dialect]:
    if not str(parser.__file__).endswith(".py"):
        problem = "the compiled sqlglot (package sqlglotc) does not accept new dialects: run pip uninstall sqlglotc"
        raise VariantError(problem, reason="no-engine")
    return ForDuckDB if engine == "duckdb" else spark_dialect()


def parse_sql(
    text: str, engine: SqlEngine = "duckdb", *, what: Literal["query", "expression"] = "query", params: Any = None
) -> exp.Expr:
    """Parse one query or one expression.

    `text`: the engine's SQL, with paths such as ``v:a.b[0]::string``.
    `engine`: ``"duckdb"`` (double quotes delimit names) or ``"spark"`` (double quotes delimit strings).
    `what`: ``"query"``: one SELECT, WITH, VALUES, FROM, DESCRIBE or set operation; ``"expression"``: a condition or
      value.
    `params`: the values of ``?`` or ``$name``.
    Raises `SqlError` with line and column if the text is invalid.

    >>> to_sql(parse_sql("select v:a['b c'] from t"))
    "SELECT v:a['b c'] FROM t"
    >>> parse_sql("select v:a..b from t")
    Traceback (most recent call last):
    ...
    parquet_variant.query.sql_dialect.SqlError: invalid SQL at line 1, column 12: a key is expected: ...
    """
    if not isinstance(text, str):
        raise SqlError(f"the SQL is of type {type(text).__name__}: write a string")
    if not text.strip():
        example = "a SELECT" if what == "query" else "a condition such as v:a::int > 5"
        raise SqlError(f"the SQL is empty: write {example}")
    if len(text) > _MAX_LENGTH:
        raise SqlError(f"the SQL has {len(text):,} characters: the limit is {_MAX_LENGTH:,}")
    if params is not None:
        text = with_values(text, engine, params)
    parse = _parsed if len(text) <= _MOST_REMEMBERED else _parsed.__wrapped__
    return parse(text, engine, what).copy()


@lru_cache(maxsize=128)
def _parsed(text: str, engine: SqlEngine, what: Literal["query", "expression"]) -> exp.Expr:
    """Return the tree of `parse_sql`, which the caller copies: a query is often run again."""
    statements = list(filter(None, _parse(text, engine, exp.Condition if what == "expression" else None)))
    if len(statements) != 1:
        raise SqlError(f"the SQL has {len(statements)} statements: write a single query")
    (tree,) = statements
    if what == "query" and not isinstance(tree, _QUERIES):
        words = {"EXPLAIN": ", and use --explain", "SHOW": ", or DESCRIBE SELECT * FROM typed(t)"}
        words |= {"SET": "; options such as zone= take the place of settings", "DROP": "; a table is its directory"}
        changes = "; tables are changed by variant ingest, delete, update and merge, or methods such as Table.append"
        changing = ("ALTER", "CREATE", "DELETE", "INSERT", "MERGE", "TRUNCATE", "TRUNCATETABLE", "UPDATE")
        words |= dict.fromkeys(changing, changes)
        command = tree.name.upper() if isinstance(tree, exp.Command) else type(tree).__name__.upper()
        raise SqlError("the SQL is not a query: write a SELECT" + words.get(command, ""))
    for name in tree.find_all(exp.Identifier) if what == "query" else ():  # a condition may name such a column
        if not name.this and name.args.get("quoted") and name.find_ancestor(exp.Bracket) is None:
            raise SqlError('the name "" is empty, which SQL does not allow: rename it, or write text in single quotes')
    _refuse_lost(tree, engine)
    if (parameter := tree.find(exp.Placeholder, exp.Parameter)) is not None:
        raise SqlError(f"the SQL has the parameter {to_sql(parameter, engine)}: give its value with params=")
    return tree


def from_template(template: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """Return an expression in DuckDB's SQL over arguments, which the template calls _0, _1, …

    >>> to_sql(from_template("(_0 IS NULL)", [parse_sql("v:a", what="expression")]))
    '(v:a IS NULL)'
    """

    def filled(part: exp.Expr) -> exp.Expr:
        is_argument = isinstance(part, exp.Column) and part.name[:1] == "_" and part.name[1:].isdecimal()
        return arguments[int(part.name[1:])].copy() if is_argument else part

    return parse_sql(template, what="expression").transform(filled, copy=False)


def _refuse_lost(tree: exp.Expr, engine: SqlEngine) -> None:
    """Refuse SQL that changes tables or reads files, and clauses that sqlglot parses but does not write."""
    change = tree.find(exp.DML, exp.Create, exp.Drop, exp.Alter, exp.Into)
    if change is not None:
        raise SqlError(f"the SQL is not a query: {change.key.upper()} creates or changes a table")
    for fetch in tree.find_all(exp.Fetch):
        options = fetch.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise SqlError(
                "FETCH supports only a number of ROWS ONLY: write LIMIT 50%, or QUALIFY rank() OVER (…) <= 5"
            )
    for like in tree.find_all(exp.Like, exp.ILike):
        pattern = like.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string and not isinstance(like.parent, exp.Escape):
            check_like(pattern.name, SqlError)
    if any(isinstance(node.args.get("field"), exp.Literal) for node in tree.find_all(exp.In)):
        raise SqlError("IN takes its values in parentheses: write x IN ('a', 'b')")
    if any(not isinstance(cast.to, exp.DataType) for cast in tree.find_all(exp.Cast)):  # as in array<int>[0]
        raise SqlError("a subscript after a type needs parentheses around the cast: write (v:a::array<int>)[…]")
    for table in tree.find_all(exp.Table) if engine == "duckdb" else ():
        function = table.this
        if isinstance(function, exp.Func) and function.name.lower() not in (*_IN_FROM, *_VARIANT_ROWS):
            raise SqlError(
                f"the function {function.name or function.key} is not allowed in FROM: write a table, a path in "
                f"quotes, or one of {', '.join((*_IN_FROM, *_VARIANT_ROWS))}"
            )


def _parse(text: str, engine: SqlEngine, into: type[exp.Expr] | None) -> list[exp.Expr | None]:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.ERROR)  # clauses that sqlglot warns about are refused here
    dialect = _dialect(engine)()
    try:
        trees = dialect.parse_into(into, text) if into is not None else dialect.parse(text)
        trees = [None if tree is None else _balanced(tree) for tree in trees]
        if any(depth > _MAX_DEPTH for depth in map(_depth, filter(None, trees))):
            raise SqlError(f"the SQL is nested deeper than {_MAX_DEPTH} levels")
        return list(trees)
    except ParseError as error:
        raise _parse_failure(error) from None
    except TokenError:
        raise SqlError("invalid SQL: a quote or a comment is not closed") from None
    except RecursionError:
        raise SqlError("the SQL is nested too deeply") from None
    except IndexError:  # sqlglot 30 fails so for some invalid text
        raise SqlError("invalid SQL: an operand is missing") from None
    except SqlglotError as error:
        raise SqlError(f"invalid SQL: {error}") from None
    finally:
        logger.setLevel(level)


def _balanced(tree: exp.Expr) -> exp.Expr:
    """Return a tree in which long chains of AND, OR and || are balanced, so that no step recurses per operand."""
    for node in list(tree.find_all(exp.And, exp.Or, exp.DPipe)):
        if type(node.parent) is type(node):
            continue
        parts = list(node.flatten(unnest=False))
        if len(parts) <= _LONG_CHAIN:
            continue
        facts = {key: value for key, value in node.args.items() if key not in ("this", "expression")}
        while len(parts) > 1:
            pairs = list(zip(parts[::2], [*parts[1::2], None], strict=False))
            parts = [a if b is None else type(node)(this=a, expression=b, **facts) for a, b in pairs]
            if isinstance(node, exp.DPipe) and len(parts) > 1:  # the engine would read the text as a chain again
                parts = [part if b is None else exp.Paren(this=part) for part, (_, b) in zip(parts, pairs, strict=True)]
        for key in ("this", "expression"):
            node.set(key, parts[0].args[key])
    return tree


def _depth(tree: exp.Expr) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in node.iter_expressions()]
    return deepest


def _parse_failure(error: ParseError) -> SqlError:
    from difflib import get_close_matches

    nested = next((entry for entry in error.errors if entry.get("into_expression")), None)
    first = (error.errors or [{}])[0] if nested is None else nested
    where = f" at line {first['line']}, column {first['col']}" if first.get("line") else ""
    near = f" (near {first['highlight']!r})" if first.get("highlight") else ""
    description = str(first.get("description") or first_line(error))
    description = description.partition(" but got <")[0].removesuffix(".")
    if description.startswith("Required keyword"):  # the rest names classes of sqlglot
        description = "an operand is missing"
    words = re.findall(r"\w+", f"{first.get('start_context', '')}{first.get('highlight', '')}".upper())[-3:]
    misspelled = [word for word in reversed(words) if word not in _KEYWORDS]
    meant = [keyword for word in misspelled for keyword in get_close_matches(word, _KEYWORDS, 1, 0.66)]
    meant += [_COMPLETED[word] for word in words[-2:] if word in _COMPLETED]
    hint = f": did you mean {meant[0]}?" if meant else ""
    return SqlError(f"invalid SQL{where}: {description}{near}{hint}")


def to_sql(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """Return a tree as SQL for an engine. Raises `SqlError` for clauses that sqlglot cannot write."""
    try:
        return tree.sql(dialect=_dialect(engine), unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as error:
        raise SqlError(f"unsupported SQL: {first_line(error)}") from None


def written(tree: exp.Expr, engine: SqlEngine = "duckdb") -> str:
    """Return an expression as the user wrote it, where that is known; for messages and column names."""
    text = tree.meta.get("text")
    return str(text or tree.sql(dialect=_dialect(engine), unsupported_level=ErrorLevel.IGNORE, comments=False))


_T = exp.DataType.Type
_ARROW: dict[Any, pa.DataType] = {
    _T.BOOLEAN: pa.bool_(), _T.TINYINT: pa.int8(), _T.SMALLINT: pa.int16(), _T.INT: pa.int32(), _T.BIGINT: pa.int64(),
    _T.INT128: pa.decimal128(38, 0), _T.UTINYINT: pa.uint8(), _T.USMALLINT: pa.uint16(), _T.UINT: pa.uint32(),
    _T.UBIGINT: pa.uint64(), _T.FLOAT: pa.float32(), _T.DOUBLE: pa.float64(), _T.DATE: pa.date32(),
    _T.TIME: pa.time64("us"), _T.TIMESTAMP_NS: pa.timestamp("ns"), _T.UUID: pa.uuid(),
    **dict.fromkeys((_T.TEXT, _T.VARCHAR, _T.NVARCHAR, _T.CHAR), pa.string()),
    **dict.fromkeys((_T.BINARY, _T.VARBINARY, _T.BLOB), pa.binary()),
    **dict.fromkeys((_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ), pa.timestamp("us", "UTC")),
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPNTZ), pa.timestamp("us")),
}  # fmt: skip
# Names that sqlglot's tokenizer does not know.
_NAMED = {"timestamp_nanos": pa.timestamp("ns", "UTC"), "timestamp_ntz_nanos": pa.timestamp("ns")}
_TYPES = (
    "boolean, tinyint, smallint, int, bigint (int8), float, double, decimal(p,s), string (varchar, text), binary, "
    "date, time, timestamp (with time zone), timestamp_ntz, timestamp_nanos, timestamp_ntz_nanos, uuid, variant, "
    "array<type>, struct<name: type>, map<string, type>"
)


def sql_type(kind: exp.DataType, engine: SqlEngine = "duckdb") -> pa.DataType | None:
    """Return the Arrow type of a parsed type; None for ``variant``.

    Raises `SqlError` with reason ``bad-type`` and the list of types, if a Variant cannot be cast to it.
    """
    arrow = _arrow(kind, engine)
    return None if arrow == VARIANT_STORAGE else arrow


def sql_type_named(name: str, engine: SqlEngine = "duckdb") -> pa.DataType | None:
    """Return the Arrow type of a type name, as in the third argument of ``variant_get``; None for ``variant``.

    >>> sql_type_named("int8"), sql_type_named("array<struct<a: text>>")
    (DataType(int64), ListType(list<element: struct<a: string>>))
    >>> sql_type_named("nope")
    Traceback (most recent call last):
    ...
    parquet_variant.query.sql_dialect.SqlError: unknown type nope: use boolean, tinyint, ...
    """
    try:
        cast = parse_sql(f"CAST(x AS {name})", engine, what="expression")
    except SqlError:
        raise _unknown_type(name) from None
    if not isinstance(cast, exp.Cast) or not isinstance(cast.to, exp.DataType):
        raise _unknown_type(name)
    return sql_type(cast.to, engine)


def sql_type_name(kind: pa.DataType) -> str:
    """Return the SQL name of a type: Spark's, or Arrow's for types that Spark lacks.

    >>> sql_type_name(pa.list_(pa.int64())), sql_type_name(pa.decimal128(9, 2))
    ('array<bigint>', 'decimal(9,2)')
    """
    if pa.types.is_list(kind):
        return f"array<{sql_type_name(kind.value_type)}>"
    if kind == VARIANT_STORAGE:
        return "variant"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"{quote_name(child.name)}: {sql_type_name(child.type)}" for child in kind)
        return f"struct<{fields}>"
    if pa.types.is_map(kind):
        return f"map<{sql_type_name(kind.key_type)}, {sql_type_name(kind.item_type)}>"
    try:
        return ddl_name(kind)
    except KeyError:
        return str(kind)


def _arrow(tree: exp.DataType, engine: SqlEngine) -> pa.DataType:
    kind, inner = tree.this, tree.expressions
    if kind == _T.VARIANT:
        return VARIANT_STORAGE
    if kind in (_T.ARRAY, _T.LIST) and len(inner) == 1 and not tree.args.get("values"):
        return pa.list_(pa.field("element", _arrow(inner[0], engine)))
    if kind == _T.MAP and len(inner) == 2:
        return pa.map_(_arrow(inner[0], engine), _arrow(inner[1], engine))
    if kind == _T.STRUCT and inner and all(isinstance(field, exp.ColumnDef) for field in inner):
        if len({field.name.lower() for field in inner}) < len(inner):
            problem = f"{to_sql(tree, engine)}: two fields differ only in letter case, which SQL ignores: use a map"
            raise SqlError(problem, reason="bad-type")
        return pa.struct([pa.field(field.name, _arrow(field.args["kind"], engine)) for field in inner])
    if kind == _T.DECIMAL:
        numbers = [part.name for part in inner] or ["10"]
        if not all(number.isdecimal() and len(number) < 3 for number in numbers) or len(numbers) > 2:
            raise _unknown_type(to_sql(tree, engine))
        try:
            return decimal(*map(int, [*numbers, "0"][:2]))
        except SchemaError as error:
            raise SqlError(error.message, reason="bad-type") from None
    named = _NAMED.get(str(tree.args.get("kind") or "").lower()) if kind == _T.USERDEFINED else _ARROW.get(kind)
    if named is None:
        raise _unknown_type(to_sql(tree, engine))
    return named


def _unknown_type(name: str) -> SqlError:
    return SqlError(f"unknown type {name}: use {_TYPES}", reason="bad-type")
