"""Queries of every shape, over every kind of table, beside the same SQL over plain columns of the same values in DuckDB."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv

# A plain column, and the path and type of the same value in the Variant.
PATHS = {
    "i": ("v:i", "bigint"),
    "s": ("v:s", "string"),
    "d": ("v:o.d", "double"),
    "q": ("v:o['a.b c']", "string"),
    "m": ("v:l[1]", "decimal(9,2)"),
    "b": ("v:o.b", "boolean"),
    "y": ("w:y", "int"),
}
KINDS = {
    "k": pa.int64(), "i": pa.int64(), "s": pa.string(), "d": pa.float64(), "q": pa.string(), "m": pa.decimal128(9, 2),
    "b": pa.bool_(), "y": pa.int32(),
}  # fmt: skip
# [t.i] stands for the path in our text, for the column in DuckDB's.
QUERIES = """
SELECT [t.i] AS a, [t.s] AS b FROM t
SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY s
SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY ALL
SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY 1 ORDER BY 2 DESC, 1
SELECT [t.s] AS s, [t.q] AS q, count(*) AS n FROM t GROUP BY ROLLUP (s, q)
SELECT [t.s] AS s, [t.q] AS q, count(*) AS n FROM t GROUP BY CUBE (s, q)
SELECT [t.s] AS s, [t.q] AS q, count(*) AS n FROM t GROUP BY GROUPING SETS ((s), (q), ())
SELECT [t.s] AS s, count(*) FILTER (WHERE [t.b]) AS n, sum([t.i]) FILTER (WHERE [t.i] > 0) AS x FROM t GROUP BY s
SELECT [t.s] AS s, count(DISTINCT [t.q]) AS n FROM t GROUP BY s HAVING count(DISTINCT [t.q]) > 1
SELECT [t.s] AS s, min([t.q]) AS lo, max([t.q]) AS hi FROM t GROUP BY s
SELECT DISTINCT [t.s] AS s, [t.q] AS q FROM t
SELECT DISTINCT ON ([t.s]) [t.s] AS s, [t.k] AS k FROM t ORDER BY [t.s], [t.k]
SELECT count(*) AS n FROM t
SELECT count(*) AS n FROM t WHERE [t.s] = 'a'
SELECT count([t.s]) AS n, count(DISTINCT [t.s]) AS m FROM t
SELECT min([t.i]) AS a, max([t.i]) AS b, min([t.s]) AS c, max([t.s]) AS d FROM t
SELECT min([t.i]) AS a FROM t WHERE [t.s] IN ('a', 'nix')
SELECT min([t.i]) AS a, count(*) AS n FROM t WHERE [t.i] > 1000000000000000
SELECT sum([t.m]) AS a, avg([t.d]) AS b FROM t WHERE [t.b]
SELECT sum([t.i]) AS a FROM t WHERE NOT [t.b] OR [t.b] IS NULL
SELECT string_agg([t.s], ',' ORDER BY [t.k], [t.s]) AS a FROM t WHERE [t.k] < 3
SELECT list([t.s] ORDER BY [t.s]) AS a FROM t WHERE [t.k] = 2
SELECT bool_and([t.b]) AS a, bool_or([t.b]) AS b FROM t
SELECT arg_min([t.s], [t.k]) AS a FROM t WHERE [t.s] IS NOT NULL AND [t.i] = 3
SELECT mode([t.b]) AS a FROM t WHERE [t.b]
SELECT [t.s] AS s FROM t WHERE [t.s] LIKE 'a%'
SELECT [t.s] AS s FROM t WHERE [t.s] NOT LIKE '%b%'
SELECT [t.s] AS s FROM t WHERE [t.s] ILIKE 'A%'
SELECT [t.s] AS s FROM t WHERE [t.s] SIMILAR TO '(a|b).*'
SELECT [t.s] AS s FROM t WHERE regexp_matches([t.s], '^[a-c]')
SELECT [t.s] AS s FROM t WHERE [t.s] LIKE 'a!_%' ESCAPE '!'
SELECT [t.s] AS s FROM t WHERE [t.s] IS NULL AND [t.k] = 1
SELECT [t.s] AS s FROM t WHERE [t.s] IS NOT NULL AND NOT ([t.s] = 'a')
SELECT [t.s] AS s FROM t WHERE [t.s] IS DISTINCT FROM 'a'
SELECT [t.s] AS s FROM t WHERE [t.s] IS NOT DISTINCT FROM NULL
SELECT [t.s] AS s FROM t WHERE [t.s] IN ('a', NULL)
SELECT [t.s] AS s FROM t WHERE [t.s] NOT IN ('a', 'c')
SELECT [t.s] AS s FROM t WHERE [t.s] NOT IN ('a', NULL)
SELECT [t.s] AS s FROM t WHERE [t.s] BETWEEN 'a' AND 'c'
SELECT [t.s] AS s FROM t WHERE [t.s] NOT BETWEEN 'a' AND 'c'
SELECT [t.s] AS s FROM t WHERE [t.s] > [t.q]
SELECT [t.s] AS s FROM t WHERE 'a' = [t.s]
SELECT [t.s] AS s FROM t WHERE 'b' < [t.s] AND [t.i] <= 3
SELECT [t.s] AS s FROM t WHERE [t.s] = 'a' AND [t.s] = 'b'
SELECT [t.s] AS s FROM t WHERE [t.s] = 'a' OR [t.q] = 'x' OR [t.i] = 2
SELECT [t.s] AS s FROM t WHERE ([t.s] = 'a') IS NULL
SELECT [t.s] AS s FROM t WHERE ([t.s] = 'a') IS NOT TRUE
SELECT [t.s] AS s FROM t WHERE CASE WHEN [t.b] THEN [t.s] = 'a' ELSE [t.i] = 1 END
SELECT [t.s] AS s FROM t WHERE COALESCE([t.s], 'none') = 'none'
SELECT [t.s] AS s FROM t WHERE length([t.s]) = 1
SELECT [t.s] AS s FROM t WHERE [t.s] || 'x' = 'ax'
SELECT [t.s] AS s FROM t WHERE upper([t.s]) = 'A'
SELECT [t.i] AS i FROM t WHERE [t.i] = 1.0
SELECT [t.i] AS i FROM t WHERE [t.i] = 1.5
SELECT [t.i] AS i FROM t WHERE [t.i] < 2.5
SELECT [t.i] AS i FROM t WHERE [t.i] = -7
SELECT [t.i] AS i FROM t WHERE -[t.i] = 7
SELECT [t.i] AS i FROM t WHERE [t.i] % 2 = 1
SELECT [t.i] AS i FROM t WHERE [t.i] + 1 = 4
SELECT [t.i] AS i FROM t WHERE abs([t.i]) > 5
SELECT [t.i] AS i FROM t WHERE [t.i] IN (1, 2, 3.0)
SELECT [t.d] AS d FROM t WHERE [t.d] > 0.1
SELECT [t.d] AS d FROM t WHERE [t.d] <> 0
SELECT [t.d] AS d FROM t WHERE isnan([t.d])
SELECT [t.d] AS d FROM t WHERE [t.d] = 'nan'::double
SELECT [t.m] AS m FROM t WHERE [t.m] = 1.25
SELECT [t.m] AS m FROM t WHERE [t.m] > 1.2500001
SELECT [t.m] AS m FROM t WHERE [t.m] BETWEEN -4 AND 1e1
SELECT [t.b] AS b FROM t WHERE [t.b] = true
SELECT [t.b] AS b FROM t WHERE [t.b] <> false
SELECT [t.b] AS b FROM t WHERE NOT [t.b]
SELECT [t.y] AS y FROM t WHERE [t.y] >= 3
SELECT [t.y] AS y, [t.i] AS i FROM t WHERE [t.y] = [t.i]
SELECT [t.y] AS y, [t.s] AS s FROM t WHERE [t.y] = 1 AND [t.s] = 'a'
SELECT [t.y] AS y, count(*) AS n FROM t GROUP BY y
SELECT [t.q] AS q, [t.y] AS y FROM t WHERE [t.q] = 'x' ORDER BY y, q
SELECT * FROM (SELECT [t.s] AS s, [t.i] AS i FROM t) WHERE s = 'a' AND i > 0
SELECT s FROM (SELECT [t.s] AS s, [t.k] AS k FROM t ORDER BY k, s LIMIT 100) ORDER BY s LIMIT 10
SELECT [t.s] AS s, [t.k] AS k FROM t ORDER BY [t.s] NULLS FIRST, [t.k] LIMIT 5
SELECT [t.s] AS s, [t.k] AS k FROM t ORDER BY s DESC NULLS LAST, k DESC, [t.i] LIMIT 5 OFFSET 3
SELECT [t.s] AS s FROM t ORDER BY [t.i], [t.s], [t.k] LIMIT 7
SELECT [t.s] AS s FROM t WHERE [t.k] < (SELECT avg([u.k]) FROM u)
SELECT [t.s] AS s FROM t WHERE [t.i] IN (SELECT [u.i] FROM u WHERE [u.s] = 'a')
SELECT [t.s] AS s FROM t WHERE [t.i] NOT IN (SELECT [u.i] FROM u WHERE [u.i] IS NOT NULL AND [u.i] < 2)
SELECT [t.s] AS s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE [u.i] = [t.i] AND [u.s] = [t.s])
SELECT [t.s] AS s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE [u.i] = [t.i] AND [u.k] < 2)
SELECT [t.s] AS s, (SELECT max([u.i]) FROM u WHERE [u.s] = [t.s]) AS x FROM t
SELECT [t.s] AS s, (SELECT count(*) FROM u WHERE [u.s] = [t.s] AND [u.b]) AS x FROM t WHERE [t.i] = 1
SELECT [t.i] AS i FROM t WHERE [t.i] = ANY (SELECT [u.i] FROM u WHERE [u.k] = 1)
SELECT [t.i] AS i FROM t WHERE [t.i] > ALL (SELECT [u.i] FROM u WHERE [u.i] < 2)
SELECT a.s AS s FROM (SELECT [t.s] AS s FROM t WHERE [t.b]) a WHERE a.s LIKE 'a%'
SELECT [a.s] AS s, [b.i] AS i FROM t a JOIN u b ON [a.s] = [b.s] AND [a.k] = 0 AND [b.k] = 0
SELECT [a.s] AS s, [b.i] AS i FROM t a JOIN t b ON [a.k] = [b.k] AND [a.i] = [b.i] WHERE [a.s] = 'a' AND [b.s] = 'c'
SELECT [a.s] AS s, [b.s] AS z FROM t a LEFT JOIN u b ON [a.i] = [b.i] AND [b.s] = 'a' AND [b.k] = 0 WHERE [a.k] = 0
SELECT [a.s] AS s, [b.s] AS z FROM t a LEFT JOIN u b ON [a.k] = [b.k] AND [a.s] = 'nix' WHERE [a.k] = 0
SELECT [a.s] AS s, [b.s] AS z FROM t a LEFT JOIN u b ON [a.i] = [b.i] AND [b.k] = 0 WHERE [b.s] IS NULL AND [a.k] < 2
SELECT [a.s] AS s, [b.s] AS z FROM t a RIGHT JOIN u b ON [a.i] = [b.i] AND [a.k] = 0 WHERE [b.s] = 'a' AND [b.k] = 1
SELECT [a.s] AS s, [b.s] AS z FROM (SELECT * FROM t WHERE k = 0) a FULL JOIN u b ON [a.i] = [b.i] AND [b.k] = 1
SELECT [a.s] AS s FROM t a SEMI JOIN u b ON [a.i] = [b.i] AND [b.s] = 'c'
SELECT [a.s] AS s FROM t a ANTI JOIN u b ON [a.i] = [b.i] AND [b.s] = 'c'
SELECT count(*) AS n FROM t a CROSS JOIN u b WHERE [a.k] = 0 AND [b.k] = 1 AND [a.s] = [b.s]
SELECT count(*) AS n FROM t a, u b WHERE [a.k] = 0 AND [b.k] = 1 AND [a.s] = [b.s]
SELECT count(*) AS n FROM t a JOIN u b USING (k) WHERE [a.s] = 'a' AND [b.s] = 'c'
SELECT [a.s] AS s, x.n AS n FROM t a JOIN (SELECT [u.s] AS s, count(*) AS n FROM u GROUP BY s) x ON x.s = [a.s]
SELECT [a.s] AS s, x.m AS m FROM t a, LATERAL (SELECT max([u.i]) AS m FROM u WHERE [u.s] = [a.s]) x WHERE [a.k] = 1
SELECT [a.i] AS i, [b.i] AS j, [c.i] AS l FROM t a JOIN u b ON [a.i] = [b.i] AND [b.k] = 0 JOIN t c ON [c.i] = [b.i] AND [c.k] = 1 WHERE [a.k] = 2
SELECT [a.k] AS k, [b.i] AS i FROM t a ASOF JOIN u b ON [a.k] = [b.k] AND [a.i] >= [b.i] WHERE [a.s] = 'a'
WITH x AS (SELECT [t.s] AS s, [t.i] AS i FROM t) SELECT s, sum(i) AS n FROM x GROUP BY s
WITH x AS (SELECT * FROM t WHERE [t.b]) SELECT [x.s] AS s, [x.i] AS i FROM x WHERE [x.s] = 'a'
WITH x AS (SELECT * FROM t), z AS (SELECT * FROM x WHERE [x.i] = 1) SELECT [z.s] AS s FROM z
WITH x AS MATERIALIZED (SELECT [t.s] AS s FROM t) SELECT count(*) AS n FROM x a JOIN x b ON a.s = b.s
WITH x(p, r) AS (SELECT [t.s], [t.i] FROM t) SELECT p, max(r) AS r FROM x GROUP BY p
WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n, count(*) AS c FROM r JOIN t ON [t.i] = n GROUP BY n
SELECT [t.s] AS s FROM t UNION SELECT [u.q] FROM u
SELECT [t.s] AS s FROM t WHERE [t.k] = 0 UNION ALL SELECT [u.s] FROM u WHERE [u.k] = 1
SELECT [t.s] AS s FROM t INTERSECT SELECT [u.q] FROM u
SELECT [t.s] AS s FROM t EXCEPT SELECT [u.s] FROM u WHERE [u.i] = 1
SELECT [t.s] AS s FROM t EXCEPT ALL SELECT [u.s] FROM u
SELECT [t.s] AS s, [t.i] AS i FROM t UNION ALL BY NAME SELECT [u.i] AS i, [u.s] AS s FROM u
(SELECT [t.s] AS s FROM t ORDER BY s LIMIT 3) UNION ALL (SELECT [u.s] FROM u ORDER BY 1 LIMIT 2)
SELECT s FROM (SELECT [t.s] AS s FROM t UNION SELECT [u.s] FROM u) WHERE s > 'a'
SELECT [t.k] AS k, row_number() OVER (PARTITION BY [t.s] ORDER BY [t.k], [t.i], [t.d], [t.q], [t.m]) AS n FROM t WHERE [t.i] = 1
SELECT [t.s] AS s, rank() OVER (ORDER BY [t.s]) AS n FROM t
SELECT [t.s] AS s, dense_rank() OVER (ORDER BY [t.s] NULLS FIRST) AS n FROM t
SELECT [t.s] AS s, sum([t.i]) OVER (PARTITION BY [t.s]) AS n FROM t
SELECT [t.s] AS s, count(*) OVER w AS n FROM t WINDOW w AS (PARTITION BY [t.s], [t.k])
SELECT [t.k] AS k, max([t.i]) OVER (PARTITION BY [t.k]) AS n FROM t QUALIFY row_number() OVER (PARTITION BY [t.k] ORDER BY [t.i]) = 1
SELECT [t.k] AS k, first_value([t.s]) OVER (PARTITION BY [t.k] ORDER BY [t.s] NULLS LAST) AS n FROM t
SELECT s, lag(n) OVER (ORDER BY s) AS n FROM (SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY s)
SELECT [t.i]::string AS s, [t.s]::string AS z FROM t
SELECT CAST([t.i] AS DOUBLE) AS a, TRY_CAST([t.s] AS INTEGER) AS b FROM t
SELECT [t.i] * 2 + 1 AS a, [t.d] / 2 AS b, [t.m] - 1 AS c, -[t.y] AS d FROM t
SELECT CASE [t.s] WHEN 'a' THEN 1 WHEN 'c' THEN 2 ELSE 0 END AS a FROM t
SELECT COALESCE([t.s], [t.q], 'none') AS a, NULLIF([t.s], 'a') AS b FROM t
SELECT greatest([t.i], [t.y]) AS a, least([t.i], 2) AS b FROM t
SELECT concat([t.s], '-', [t.i]) AS a, [t.s] || [t.q] AS b FROM t
SELECT substr([t.s], 1, 1) AS a, replace([t.s], 'a', 'z') AS b, reverse([t.s]) AS c FROM t
SELECT [t.s] = 'a' AS a, [t.i] IS NULL AS b, [t.s] IN ('a', 'c') AS c FROM t
SELECT {'x': [t.s], 'y': [t.i]} AS a FROM t
SELECT [[t.s], [t.q]] AS a FROM t
SELECT unnest([[t.i], [t.y]]) AS a FROM t
SELECT k, count(*) AS n FROM t WHERE [t.s] = 'a' GROUP BY k
SELECT t.k AS k, [t.s] AS s FROM t WHERE k = 3 AND [t.s] IS NOT NULL
SELECT k + [t.i] AS a FROM t WHERE k BETWEEN 1 AND 2
SELECT max(k) AS k FROM t
SELECT t.* EXCLUDE (v, w) FROM t WHERE [t.s] = 'a'
SELECT * EXCLUDE (v, w), [t.s] AS z FROM t WHERE [t.i] = 2
SELECT * REPLACE (k + 1 AS k) FROM (SELECT t.k, [t.s] AS s FROM t)
SELECT T.K AS k, [T.s] AS S FROM t WHERE [T.i] = 1
FROM t SELECT [t.s] AS s WHERE [t.i] = 3
SELECT [x.s] AS s FROM t AS x WHERE [x.k] = 1 AND x.k = 1
SELECT [x.s] AS s FROM t AS "x" WHERE [x.q] = 'it''s'
SELECT 1 AS a FROM t WHERE [t.s] = 'a' LIMIT 3
SELECT [t.s] AS s FROM t WHERE false
SELECT [t.s] AS s FROM t WHERE NULL
SELECT [t.s] AS s FROM t WHERE [t.s] = NULL
SELECT [t.s] AS s FROM t WHERE 1 = 1 AND [t.k] > 3
SELECT [t.s] AS s FROM t LIMIT 0
SELECT count(*) AS n FROM (SELECT DISTINCT [t.s] AS s, [t.i] AS i, [t.b] AS b FROM t)
SELECT s, n FROM (SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY s) WHERE n > 100 ORDER BY n DESC, s
SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM t UNION ALL SELECT count(*) FROM u WHERE [u.s] = 'a')
SELECT (SELECT count(*) FROM t) AS a, (SELECT count(*) FROM u WHERE [u.b]) AS b
SELECT [t.s] AS s FROM t WHERE [t.i] = (SELECT min([u.i]) FROM u) OR [t.s] = (SELECT max([u.s]) FROM u)
SELECT hour(make_timestamp([t.i])) AS h, year(make_timestamp([t.k])) AS y FROM t WHERE [t.i] >= 0
SELECT date_trunc('second', make_timestamp([t.y] * 1000000)) AS z, count(*) AS n FROM t GROUP BY z
SELECT approx_count_distinct([t.s]) > 0 AS n FROM t
SELECT median([t.i]) AS n, stddev([t.k]) > 0 AS z FROM t
SELECT histogram([t.b]) AS n FROM t WHERE [t.k] = 0
SELECT [t.s] AS s, [t.s] AS z, [t.s] AS "S z" FROM t WHERE [t.s] = 'a'
SELECT if([t.b], [t.s], [t.q]) AS x, ifnull([t.s], 'n') AS z FROM t
SELECT md5([t.s]) AS x FROM t WHERE [t.i] = 2
SELECT x.s AS s FROM (VALUES ('a'), ('c')) x(s) JOIN t ON [t.s] = x.s
SELECT [t.s] AS s, n FROM t, generate_series(1, 2) g(n) WHERE [t.k] = 0 AND n <= [t.i]
SELECT list([t.i] ORDER BY [t.i])[1] AS a, list([t.s] ORDER BY [t.s])[1:2] AS b FROM t
SELECT x.list[1] AS a, x.array[2] AS b FROM (SELECT list([t.i] ORDER BY [t.i]) AS list, [3, 4] AS array FROM t) x
SELECT MAP {[t.i]: [t.s], t.k + 1: 'z'} AS m FROM t WHERE [t.i] IS NOT NULL AND [t.i] <> t.k + 1
SELECT {k: t.k, 'b': {s: [t.s]}} AS x FROM t
SELECT t.k AS k FROM t WHERE EXISTS (SELECT * FROM u WHERE [u.s] = [t.s] AND [u.i] > [t.i])
SELECT t.k AS k FROM t WHERE NOT EXISTS (FROM u WHERE [u.s] = [t.s])
SELECT COLUMNS('a|b') FROM (SELECT [t.i] AS a, [t.s] AS b, [t.d] AS c FROM t)
""".strip().splitlines()
ROWS = 3000


def rows(seed: int, count: int = ROWS) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "k": number * 5 // count,
            "i": rng.choice([None, 0, 1, 2, 3, -7, 2**40]) if number % 3 else number % 4,
            "s": rng.choice([None, "a", "a_b", "c", "\u00e9", "B", ""]),
            "d": rng.choice([None, 0.5, 0.0, -4.5, 2.25]),
            "q": rng.choice([None, "x", "it's", f"u{number % 97}"]),
            "m": rng.choice([None, 1.25, 100, -3.5]),
            "b": rng.choice([None, True, False]),
            "y": rng.choice([None, 1, 2, 3, 4]),
        }
        for number in range(count)
    ]


def texts(row: dict[str, Any], rng: random.Random) -> tuple[str, str]:
    """The row as JSON, with what is no value of the type asked for in the place of some nulls."""
    v: dict[str, Any] = {key: row[key] for key in "is" if row[key] is not None or rng.random() < 0.5}
    if row["i"] is None and rng.random() < 0.2:
        v["i"] = rng.choice([[1], {"i": 1}, "no"])
    v["o"] = {name: row[key] for name, key in (("d", "d"), ("a.b c", "q"), ("b", "b")) if row[key] is not None}
    v["l"] = [0, row["m"]] if row["m"] is not None else [0]
    if rng.random() < 0.05:
        v["rare"] = {"x": [rng.random()]}
    return json.dumps(v), json.dumps({"y": row["y"]})


def arrow(given: list[dict[str, Any]], seed: int, schema: Any = None) -> dict[str, Any]:
    rng = random.Random(seed)
    v, w = zip(*(texts(row, rng) for row in given), strict=True)
    found = pv.parse_json(list(v)), pv.parse_json(list(w))
    if schema is not None:
        found = pv.shred_variant(found[0], schema), pv.shred_variant(found[1], "y INT")
    return {"k": pa.array([row["k"] for row in given]), "v": found[0], "w": found[1]}


def plain(given: list[dict[str, Any]]) -> pa.Table:
    columns = {}
    for name, kind in KINDS.items():
        values = [row[name] for row in given]
        if pa.types.is_decimal(kind):
            values = [None if value is None else Decimal(str(value)) for value in values]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


WHOLE = "i BIGINT, s STRING, o STRUCT<d: DOUBLE, `a.b c`: STRING, b BOOLEAN>, l ARRAY<DECIMAL(9,2)>"


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The two tables, bound in every way."""
    base = tmp_path_factory.mktemp("shapes")
    given = {name: rows(seed, count) for seed, (name, count) in enumerate([("t", ROWS), ("u", 300)])}
    found: dict[str, dict[str, Any]] = {kind: {} for kind in ("parquet", "arrow", "delta", "vortex", "plain")}
    for seed, (name, every) in enumerate(given.items()):
        folder = base / "parquet" / name
        folder.mkdir(parents=True)
        cut = len(every) // 3
        for number, schema in enumerate([WHOLE, None, "s STRING, i DOUBLE"]):
            part = every[number * cut : (number + 1) * cut if number < 2 else None]
            pv.parquet.write(folder / f"{number}.parquet", arrow(part, number, schema), row_group_bytes=100_000)
        found["parquet"][name] = str(folder)
        table = arrow(every, seed, WHOLE)
        found["arrow"][name] = table
        pv.delta.write(str(base / "delta" / name), table)
        found["delta"][name] = str(base / "delta" / name)
        pv.vortex.write(base / f"{name}.vortex", table)
        found["vortex"][name] = str(base / f"{name}.vortex")
        found["plain"][name] = plain(every)
    return found


def ours(query: str) -> str:
    def path(match: re.Match[str]) -> str:
        alias, name = match[1], match[2]
        if name == "k":
            return f"{alias}.k"
        where, kind = PATHS[name]
        return f"{alias}.{where}::{kind}"

    return re.sub(r"\[(\w+)\.(\w+)\]", path, query)


def theirs(query: str) -> str:
    query = query.replace(" EXCLUDE (v, w)", " EXCLUDE (i, s, d, q, m, b, y)")
    return re.sub(r"\[(\w+)\.(\w+)\]", r"\1.\2", query).replace("::string", "::varchar")


def comparable(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize("kind", ["parquet", "arrow", "delta", "vortex"])
def test_queries(bound: dict[str, dict[str, Any]], kind: str) -> None:
    wrong = []
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, table in bound["plain"].items():
            connection.register(name, table)
        for number, query in enumerate(QUERIES):
            if kind != "parquet" and number % 5:
                continue
            try:
                answer = comparable(pv.sql(ours(query), **bound[kind]).arrow())
            except pv.VariantError as error:
                answer = [str(error)]
            expected = comparable(connection.sql(theirs(query)).to_arrow_table())
            if answer != expected:
                wrong.append((query, answer[:3], expected[:3]))
    assert not wrong, "\n\n".join("\n".join(map(str, each)) for each in wrong)
