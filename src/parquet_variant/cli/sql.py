"""SQL with paths written as in Spark, ``v:properties.mag::double``: what it asks of the table, and running it.

Owns finding the paths in the text, and which part of the WHERE clause the scan can take over. Leaves the scan to
`parquet` and `delta`, and everything else that SQL is to the engine: DuckDB over the extracted columns, or Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from parquet_variant.errors import VariantError

__all__ = ["TABLE", "SqlQuery", "bad_sql", "read_sql", "run_in_duckdb"]

# The name of the table in the text.
TABLE = "t"

_TOKEN = re.compile(
    r"""
      (?P<skip>'(?:[^']|'')*' | --[^\n]* | /\*.*?\*/)
    | (?P<name>(?:[^\W\d]\w*|"(?:[^"]|"")*"|`(?:[^`]|``)*`)(?:\s*\.\s*(?:[^\W\d]\w*|"(?:[^"]|"")*"|`(?:[^`]|``)*`))*)
      (?P<path>:(?!:)(?:[^\W\d]\w*|\[(?:\d+|\*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\])
               (?:\.[^\W\d]\w*|\[(?:\d+|\*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\])*)?
      (?P<type>\s*::\s*)?
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_TYPE = re.compile(r"[a-z_]\w*(?:\s*\(\s*\d+\s*(?:,\s*\d+\s*)?\))?", re.IGNORECASE)
# A star is all columns of the table after one of these, and before its FROM.
_BEFORE_STAR = frozenset({"select", "distinct", "all", ","})
_OF_TABLE = re.compile(r"(?:(?!\b(?:from|exclude|except|replace)\b)[^()])*\bfrom\s+t\b", re.IGNORECASE)
# The clauses that end a WHERE.
_AFTER_WHERE = re.compile(r"\b(group|having|order|limit|qualify|window|union|intersect|except|offset)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query, taken apart.

    Parameters
    ----------
    text
        The SQL with every path replaced by the name of a column.
    columns
        What the scan has to give, by that name, as `parquet.scan` takes it.
    filters
        Parts of the WHERE clause that every row of the answer must meet, over those columns.
    """

    text: str
    columns: dict[str, str]
    filters: tuple[str, ...]


def read_sql(
    text: str, variants: list[str], ordinary: list[str], selects: dict[str, str] | None = None, quote: str = '"'
) -> SqlQuery:
    """Take a query over the table ``t`` apart.

    Parameters
    ----------
    text
        One SELECT statement.
    variants, ordinary
        The names of the table's Variant columns, and of the others.
    selects
        Further columns by name, as ``--select`` gives them.
    quote
        What the engine puts around names that are not plain words.

    Raises
    ------
    PathError
        For paths into more than one Variant column.

    Examples
    --------
    >>> text = "SELECT v:a.b::string AS b, count(*) FROM t WHERE v:mag::double > 5 GROUP BY b"
    >>> query = read_sql(text, ["v"], ["day"])
    >>> query.text
    'SELECT _1 AS b, count(*) FROM t WHERE _2 > 5 GROUP BY b'
    >>> query.columns, query.filters
    ({'_1': '$.a.b:string', '_2': '$.mag:double'}, ('_2 > 5',))
    """

    def quoted(name: str) -> str:
        return name if re.fullmatch(r"[^\W\d]\w*", name) else quote + name.replace(quote, quote * 2) + quote

    whole = {each.lower(): each for each in variants}
    known = {name.lower(): name for name in (*ordinary, *(selects or {}))}
    places: dict[str, str] = {}
    columns: dict[str, str] = {}
    written: list[str] = []
    seen: set[str] = set()
    before = ""  # the last word or sign
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None  # `other` takes any character
        position = found.end()
        name = _unquoted(found["name"].rpartition(".")[2].strip()) if found["name"] else ""
        last, before = before, found[0].strip().lower() or before
        if found[0] == "*" and (last in _BEFORE_STAR) and _OF_TABLE.match(text, position):
            listed = {each: each for each in ordinary} | (selects or {}) | dict.fromkeys(variants, "$")
            columns |= listed
            written.append(", ".join(map(quoted, listed)))
            continue
        if name.lower() in whole and not found["path"] and last != "as":
            seen.add(name.lower())
            if not found["type"]:
                columns[whole[name.lower()]] = "$"
                written.append(found[0])
                continue
        if name.lower() in whole and (found["path"] or found["type"]):
            seen.add(name.lower())
            kind = None
            if found["type"]:
                kind, position = _type(text, position)
            path = found["path"][1:] if found["path"] else ""
            path = "$" if not path else f"${path if path.startswith('[') else '.' + path}"
            path += f":{kind}" if kind else ""
            written.append(places.setdefault(path, f"_{len(places) + 1}"))
            columns[places[path]] = path
            continue
        if name.lower() in known and not found["path"]:
            given = known[name.lower()]
            columns[given] = (selects or {}).get(given, given)
        written.append(found[0])
    _one_variant(seen)
    query = "".join(written).strip().rstrip(";")
    return SqlQuery(query, columns, _filters(query, columns))


def run_in_duckdb(query: SqlQuery, table: pa.Table) -> pa.Table:
    """Run a query over the columns that the scan gave.

    Raises
    ------
    VariantError
        If DuckDB is not installed (``"no-engine"``), or refuses the query (``"bad-sql"``).
    """
    from parquet_variant.errors import VariantError

    try:
        import duckdb
    except ImportError:
        raise VariantError(
            "SQL needs an engine: run: pip install 'parquet-variant[sql]', or use --engine spark", reason="no-engine"
        ) from None
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as connection:
        connection.register(TABLE, table)
        try:
            kinds = [statement.type for statement in connection.extract_statements(query.text)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise VariantError(f"the SQL is no query: write one SELECT over the table {TABLE}", reason="bad-sql")
            return connection.sql(query.text).to_arrow_table()
        except duckdb.Error as error:
            raise bad_sql(error, query) from None


def bad_sql(error: Exception, query: SqlQuery) -> VariantError:
    """What an engine has against a query, as an error that says how one is written."""
    from parquet_variant.errors import VariantError

    hint = f"the table is {TABLE}, its columns are {', '.join(query.columns)}; a path is written v:a.b::string"
    reason = str(error).strip().splitlines()[0]
    return VariantError(f"the SQL cannot be run: {reason} ({hint})", reason="bad-sql")


def _type(text: str, position: int) -> tuple[str, int]:
    """The type's name that begins here, and where it ends; ``array<struct<a: int>>`` is one name."""
    from parquet_variant.errors import PathError

    found = _TYPE.match(text, position)
    if found is None:
        raise PathError(f"there is no type after :: in {text[max(position - 30, 0) : position]!r}", reason="bad-type")
    end = found.end()
    if found[0].lower() in ("array", "struct", "map") and text[end : end + 1] == "<":
        depth = 0
        for index in range(end, len(text)):
            depth += {"<": 1, ">": -1}.get(text[index], 0)
            if depth == 0:
                return text[position : index + 1], index + 1
        raise PathError(f"the type {text[position:]!r} has no closing >", reason="bad-type")
    return found[0], end


def _unquoted(name: str) -> str:
    if name[:1] in ('"', "`"):
        return name[1:-1].replace(name[0] * 2, name[0])
    return name


def _one_variant(seen: set[str]) -> None:
    from parquet_variant.errors import PathError

    if len(seen) > 1:
        raise PathError(f"the query has paths into {' and '.join(sorted(seen))}: one Variant column at a time")


def _filters(query: str, columns: dict[str, str]) -> tuple[str, ...]:
    """What of the WHERE clause each row must meet; nothing wherever the text leaves a doubt."""
    from parquet_variant.errors import VariantError
    from parquet_variant.query.predicate import columns_of
    from parquet_variant.query.predicate_text import parse_predicate

    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", lambda text: "'" + "_" * (len(text[0]) - 2) + "'", query)
    words = [word.lower() for word in re.findall(r"\w+", bare)]
    simple = words.count("select") == 1 and words.count("where") == 1
    if not simple or {"join", "union", "intersect", "except", "with"} & set(words) or "--" in bare or "/*" in bare:
        return ()
    start = re.search(r"\bwhere\b", bare, re.IGNORECASE)
    if start is None or bare.count("(", 0, start.start()) != bare.count(")", 0, start.start()):
        return ()
    end = _AFTER_WHERE.search(bare, start.end())
    stop = end.start() if end else len(query)

    def usable(text: str) -> bool:
        try:
            return columns_of(parse_predicate(text)) <= set(columns)
        except VariantError:
            return False

    clause = query[start.end() : stop].strip()
    if usable(clause):
        return (clause,)
    # A part is only sure to be a part where AND joins nothing but conditions.
    inside = bare[start.end() : stop]
    if re.search(r"\b(or|not|between|case)\b", inside, re.IGNORECASE):
        return ()
    parts, depth, begin = [], 0, start.end()
    for token in re.finditer(r"[()]|\band\b", inside, re.IGNORECASE):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0].lower() == "and" and depth == 0:
            parts.append(query[begin : start.end() + token.start()].strip())
            begin = start.end() + token.end()
    parts.append(query[begin:stop].strip())
    return tuple(part for part in parts if usable(part))
