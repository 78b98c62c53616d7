"""SQL without paths is DuckDB's own: each text over plain columns gives what DuckDB gives."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv

MORNING = dt.datetime(2024, 1, 1, 1)
T = pa.table(
    {
        "id": list(range(12)),
        "g": ["a", "b", None] * 4,
        "x": [1, None, 3, 4, 5, None, 7, 8, 2, 0, 1, 9],
        "d": [0.5, 1e300, None, 1.0] * 3,
        "s": ["ab", "c%", "it's", None, "É", "x_y"] * 2,
        "day": [dt.date(2024, 1, 1) + dt.timedelta(10 * day) for day in range(12)],
        "ts": [MORNING + dt.timedelta(hours=hour) for hour in range(12)],
        "l": [[1, 2, 3], None, [], [4, None]] * 3,
        "b": [True, None, False] * 4,
        "st": [{"a": 1, "b": "x"}, None, {"a": None, "b": "z"}] * 4,
    }
)
U = pa.table(
    {
        "id": [1, 3, 5, 100],
        "y": [10, 20, None, 40],
        "ts": [MORNING + dt.timedelta(hours=hour) for hour in (1, 4, 8, 9000)],
        "g": ["a", "z", None, "b"],
    }
)
QUERIES = r"""
SELECT id, last_value(x IGNORE NULLS) OVER (ORDER BY id) FROM t
SELECT id, first_value(x RESPECT NULLS) OVER (ORDER BY id DESC) FROM t
SELECT id, lag(x, 1, -1) OVER (ORDER BY id), lead(x, 2 IGNORE NULLS) OVER (ORDER BY id) FROM t
SELECT id, nth_value(x, 2 IGNORE NULLS) OVER (ORDER BY id) FROM t
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM t
SELECT id, sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 2 HOURS PRECEDING AND CURRENT ROW) FROM t
SELECT id, count(*) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT id, sum(x) FILTER (WHERE x > 2) OVER (PARTITION BY g) FROM t
SELECT g, array_agg(x ORDER BY x DESC NULLS LAST) FROM t GROUP BY g
SELECT g, string_agg(s, '|' ORDER BY id DESC) FROM t GROUP BY g
SELECT g, string_agg(DISTINCT s, ',' ORDER BY s) FROM t GROUP BY g
SELECT g, list(DISTINCT x ORDER BY x) FROM t GROUP BY g
SELECT g, quantile_cont(x, 0.5), quantile_disc(x, [0.25, 0.75]), median(x), mode(x ORDER BY x) FROM t GROUP BY g
SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t GROUP BY g
SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) FROM t GROUP BY g
SELECT mode() WITHIN GROUP (ORDER BY g) FROM t
SELECT g, arg_max(id, x), arg_min(id, x), max(x, 2), min_by(id, x), max_by(id, x, 2) FROM t GROUP BY g
SELECT g, first(x ORDER BY id), last(x ORDER BY id), any_value(x ORDER BY id) FROM t GROUP BY g
SELECT count(*) FILTER (WHERE x > 1), count(x) FILTER (g = 'a') FROM t
SELECT t.id, u.y FROM t ASOF JOIN u ON t.ts >= u.ts
SELECT t.id, u.y FROM t ASOF LEFT JOIN u ON t.g = u.g AND t.ts >= u.ts
SELECT t.id, u.y FROM t POSITIONAL JOIN u
SELECT * EXCLUDE (l, st) FROM t NATURAL JOIN u
SELECT id, t.x FROM t JOIN u USING (id)
SELECT id FROM t SEMI JOIN u USING (id)
SELECT id FROM t ANTI JOIN u USING (id)
SELECT [e + 1 FOR e IN l IF e > 1] FROM t
SELECT l[1], l[-1], l[1:2], l[:], l[2:] FROM t
SELECT {'a': x, 'b': g} AS z, row(x, g), struct_pack(a := x) FROM t
SELECT st.a, st['b'], st.b || 'q', (st).a FROM t
SELECT map {'a': x}, map(['k'], [x])['k'], map_keys(map {'z': 1}) FROM t
SELECT * REPLACE (x + 1 AS x) FROM t
SELECT * EXCLUDE (l) RENAME (x AS xx) FROM t
SELECT t.* EXCLUDE (l, st), u.* FROM t, u WHERE t.id = u.id
FROM t SELECT id, x
FROM t
FROM t WHERE x > 2
SELECT g, sum(x) FROM t GROUP BY ALL ORDER BY ALL
SELECT id FROM t ORDER BY x NULLS FIRST, id LIMIT 3 OFFSET 1
SELECT id FROM t ORDER BY x DESC, id LIMIT 50%
SELECT id, g FROM t ORDER BY g COLLATE NOCASE, id
SELECT #1, id FROM t ORDER BY 2
SELECT x & 3, x | 4, xor(x, 1), x << 2, x >> 1, ~x, @ -5 FROM t
SELECT to_days(3), to_hours(2), INTERVAL (x) DAY, INTERVAL '1 year 2 months', INTERVAL 1 YEAR FROM t
SELECT CASE x WHEN 1 THEN 'one' WHEN 3 THEN 'three' ELSE 'other' END, CASE WHEN x > 3 THEN 1 END FROM t
SELECT id FROM t WHERE EXISTS (FROM u WHERE u.id = t.id)
SELECT id, (SELECT y FROM u WHERE u.id = t.id), ARRAY(SELECT y FROM u ORDER BY y) FROM t
SELECT t.id, z.y FROM t, LATERAL (SELECT y FROM u WHERE u.id > t.id ORDER BY y LIMIT 1) z
SELECT t.id, z FROM t CROSS JOIN LATERAL (SELECT t.id * 2) AS q(z)
SELECT id, unnest(l) FROM t
SELECT id, unnest(st) FROM t
SELECT id, e FROM t, unnest(l) AS q(e)
SELECT id, e, o FROM t, unnest(l) WITH ORDINALITY AS q(e, o)
SELECT unnest([{'a': 1, 'b': 2}], recursive := true)
SELECT * FROM generate_series(1, 5), range(2) AS r(i)
SELECT * FROM range(0, 10, 3) r(i)
SELECT generate_series(1, 3), range(3) FROM t LIMIT 1
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT * FROM c
WITH a AS MATERIALIZED (SELECT id FROM t), b(q) AS NOT MATERIALIZED (SELECT id FROM a) SELECT q FROM b
SELECT id FROM t UNION BY NAME SELECT y, id FROM u
SELECT id FROM t UNION ALL BY NAME SELECT y FROM u
(SELECT id FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM u ORDER BY id DESC LIMIT 1)
SELECT id FROM t EXCEPT ALL SELECT id FROM u
SELECT id FROM t INTERSECT SELECT id FROM u UNION SELECT 99
VALUES (1, 'a'), (2, NULL)
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(p, q)
SELECT g, x, sum(id), grouping(g), grouping_id(g, x) FROM t GROUP BY CUBE (g, x)
SELECT g, sum(x) FROM t GROUP BY GROUPING SETS ((g), ())
SELECT g, sum(x) s FROM t GROUP BY g HAVING s > 5 ORDER BY s
SELECT g AS grp, x AS val FROM t WHERE grp = 'a' AND val > 0
SELECT DISTINCT ON (g) g, id FROM t ORDER BY g, id DESC
SELECT id, row_number() OVER (), sum(x) OVER (w ROWS UNBOUNDED PRECEDING) FROM t WINDOW w AS (ORDER BY id)
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY id DESC) = 1
SELECT id, x FROM t WHERE x > (SELECT avg(x) FROM t)
SELECT try(x / 0), try(CAST('a' AS INT)) FROM t
SELECT x, 'lit' AS "quoted name", id AS "select" FROM t
SELECT DISTINCT b FROM t ORDER BY b NULLS LAST
SELECT id FROM t WHERE s IN ('ab', 'É') OR (g IS NULL AND NOT b)
SELECT max(id) FROM t WHERE false
SELECT sum(x) FROM t WHERE x > 1000
SELECT count(*), count(1), count(), sum(1) FROM t
SELECT id FROM t LIMIT (SELECT 2)
SELECT alias.id FROM t AS alias WHERE alias.x = 1
SELECT "t"."id" FROM "t"
SELECT T.ID, t.X FROM T
SELECT x::BIT, '101'::BIT, bit_count(x), set_bit('101'::BIT, 0, 0) FROM t LIMIT 1
SELECT struct_extract(st, 'a'), struct_insert(st, c := 1), struct_extract({'a': 5}, 'a') FROM t
SELECT sum(x) OVER (PARTITION BY g ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t
SELECT g, list(id ORDER BY id) FILTER (WHERE x > 1) FROM t GROUP BY g
SELECT max(id ORDER BY x), first(DISTINCT g ORDER BY g) FROM t
SELECT s COLLATE NOCASE = 'AB', 'a' < 'B', 'a' COLLATE NOCASE < 'B' FROM t
DESCRIBE SELECT id, x, s FROM t
SELECT (SELECT max(id) FROM t) + (SELECT count(*) FROM u) AS z
SELECT t.id FROM t t JOIN t s ON t.id = s.id - 1 JOIN u ON u.id = s.id
SELECT id, x FROM t ORDER BY (x IS NULL), -x, id
SELECT x FROM t GROUP BY x ORDER BY count(*) DESC, x LIMIT 2
SELECT nullif(g, 'a') AS g2, count(*) FROM t GROUP BY nullif(g, 'a')
SELECT date '2024-01-01' + x::INT FROM t
SELECT day FROM t WHERE day BETWEEN '2024-01-05' AND DATE '2024-03-01'
SELECT ts FROM t WHERE ts >= '2024-01-01 05:00:00' AND ts < TIMESTAMP '2024-01-01 09:00:00'
SELECT id FROM t WHERE (g, b) = ('a', true)
SELECT id, CASE WHEN x THEN 'nonzero' END FROM t WHERE x IS NOT NULL
SELECT sum(x)::INT AS total, avg(x)::DECIMAL(10,2) FROM t
SELECT 'a' AS k UNION ALL SELECT 'b' ORDER BY k DESC
SELECT trim('  a '), position('a' IN 'ba'), overlay('abc' PLACING 'X' FROM 2 FOR 1)
SELECT x::VARCHAR::INT + 1, (x + 1)::DOUBLE, -x::INT, NOT b::BOOLEAN FROM t
SELECT any_value(s), arbitrary(g) IS NOT NULL FROM (SELECT * FROM t WHERE s IS NOT NULL AND id = 0)
SELECT array_agg(DISTINCT g ORDER BY g NULLS FIRST) FROM t
SELECT ALL id FROM t
SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY
SELECT id FROM t FETCH NEXT ROW ONLY
SELECT coalesce(*COLUMNS('x|d')), [*COLUMNS(* EXCLUDE (g))] FROM (SELECT id, g, x, d FROM t)
SELECT COLUMNS(lambda c: c LIKE 'i%'), max(COLUMNS(['x', 'id'])) OVER () FROM (SELECT id, g, x, d FROM t)
SELECT q.x FROM (SELECT COLUMNS('x|id') FROM (SELECT id, g, x, d FROM t)) q
SELECT map() AS a, map([id], [x]) AS b, MAP {} AS c FROM t
"""


@pytest.fixture(scope="module")
def connection() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", T)
        connection.register("u", U)
        yield connection


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_the_answer_is_duckdbs(connection: Any, query: str) -> None:
    expected = connection.sql(query).to_arrow_table()
    answer = pv.sql(query, t=T, u=U).to_arrow()
    assert rows_of(answer) == rows_of(expected)
    assert answer.schema.types == expected.schema.types


def test_without_duckdb_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(pv.VariantError, match=r"SQL needs duckdb: run: pip install 'parquet-variant\[sql\]'") as caught:
        pv.sql("SELECT 1")
    assert caught.value.reason == "missing-extra"
