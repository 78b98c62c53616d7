"""Queries of every shape, over every kind of table, compared with the same SQL over plain columns of the same values in DuckDB."""

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
SELECT ([t.s]).upper().length() AS n, ([t.i]).abs() AS a, count(*) AS c FROM t WHERE ([t.s]).contains('a') GROUP BY ALL
SELECT ([t.s]).concat([t.q]).lower() || 'x' AS s FROM t
SELECT k.abs() AS a, t.k.abs() + 1 AS b, [1, 2].list_sum() AS c FROM t
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
SELECT [a.s] AS s, [b.s] AS z FROM t a JOIN u b USING (k) WHERE [a.i] = 2 AND [b.i] = 3
SELECT a.k AS k, count(*) AS n FROM t a LEFT JOIN u b USING (k) WHERE [a.s] = 'a' AND [b.s] IS NULL GROUP BY a.k
SELECT k, count(*) AS n FROM t a FULL JOIN (SELECT k FROM u WHERE [u.k] > 2) b USING (k) WHERE [a.i] = 1 OR [a.i] IS NULL GROUP BY k
SELECT [a.s] AS s FROM t a SEMI JOIN u b USING (k) WHERE [a.k] > 3
SELECT k FROM (SELECT * FROM t SEMI JOIN u ON [t.i] = [u.i] AND [u.s] = 'c') WHERE k < 2
SELECT k FROM (SELECT t.* FROM t ANTI JOIN u ON [t.i] = [u.i]) WHERE k < 2
SELECT [t.s] AS s, x FROM t, unnest([[t.i], [t.y]]) q(x) WHERE x > 2
SELECT k, x, o FROM t, unnest([[t.i], t.k]) WITH ORDINALITY q(x, o) WHERE [t.s] = 'c' AND o = 2
SELECT k, x FROM t LEFT JOIN unnest(CASE WHEN [t.b] THEN [[t.i]] END) q(x) ON true WHERE [t.q] = 'x'
SELECT k, unnest([[t.s], [t.q]]) AS x FROM t WHERE [t.i] = 2
SELECT [t.k] AS k, [t.s] AS s FROM t QUALIFY rank() OVER (PARTITION BY [t.s] ORDER BY [t.i] DESC NULLS LAST, [t.k]) = 1
SELECT k, [t.s] AS s, count(*) OVER (PARTITION BY [t.s]) AS n FROM t WHERE [t.b] QUALIFY n > 200
SELECT [t.s] AS s, [t.b] AS b, count(*) AS n, grouping([t.s], [t.b]) AS g FROM t GROUP BY GROUPING SETS (([t.s], [t.b]), ([t.s]), ())
SELECT [t.s] AS s, k, count(*) AS n FROM t GROUP BY CUBE (s, k) HAVING count(*) > 50
SELECT [t.s] AS s, k, sum([t.i]) AS n FROM t GROUP BY ROLLUP ([t.s], k)
SELECT count(*) FILTER (WHERE [t.s] = 'a') AS a, count(*) FILTER (WHERE [t.s] IS NULL) AS b, max([t.i]) FILTER (WHERE k = 2) AS c FROM t
SELECT k, sum([t.i]) FILTER (WHERE [t.b]) OVER (PARTITION BY k) AS n FROM t WHERE [t.i] < 10
SELECT k, sum([t.y]) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM t
SELECT k, count([t.y]) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t
SELECT k, count(*) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) AS n FROM t
SELECT k, min([t.i]) OVER (PARTITION BY [t.s] ORDER BY k RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING) AS n FROM t
SELECT k, ntile(3) OVER (PARTITION BY k ORDER BY k) AS n FROM t WHERE [t.s] = 'zz'
SELECT s, lead(n, 1, -1) OVER w AS a, lag(n) OVER w AS b FROM (SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY s) WINDOW w AS (ORDER BY s NULLS FIRST)
WITH RECURSIVE r(n, c) AS (SELECT 0, (SELECT count(*) FROM t WHERE [t.k] = 0) UNION ALL SELECT n + 1, (SELECT count(*) FROM t WHERE [t.k] = n + 1) FROM r WHERE n < 4) SELECT n, c FROM r
WITH RECURSIVE r(s, d) AS (SELECT [t.s], 0 FROM t WHERE [t.i] = 2 AND [t.k] = 1 UNION SELECT [u.s], r.d + 1 FROM r JOIN u ON [u.q] = r.s WHERE r.d < 3) SELECT s, d FROM r
WITH a AS (SELECT [t.s] AS s, k FROM t), b AS (SELECT s, max(k) AS k FROM a GROUP BY s) SELECT a.s AS s, count(*) AS n FROM a JOIN b ON a.s = b.s AND a.k = b.k GROUP BY a.s
SELECT [t.i] AS i FROM t WHERE k = 0 INTERSECT ALL SELECT [u.i] FROM u
SELECT [t.i] AS i, [t.s] AS s FROM t EXCEPT (SELECT [u.i], [u.s] FROM u UNION SELECT 1, 'a')
SELECT NULL AS s UNION SELECT [t.s] FROM t WHERE [t.b]
SELECT k, [t.s] AS s FROM t UNION BY NAME SELECT [u.s] AS s FROM u
SELECT [t.s] AS s, [t.i] AS i, k FROM t ORDER BY s NULLS FIRST, i DESC NULLS FIRST, k LIMIT 9
SELECT [t.s] AS s, [t.i] AS i, k FROM t ORDER BY s DESC NULLS LAST, i NULLS LAST, k DESC LIMIT 9 OFFSET 2
SELECT [t.d] AS d FROM t ORDER BY [t.d] NULLS FIRST LIMIT 5
SELECT k FROM t ORDER BY [t.s] IS NULL, [t.s], k LIMIT 5
SELECT DISTINCT ON ([t.s], k) [t.s] AS s, k, [t.i] AS i FROM t ORDER BY [t.s], k, [t.i] DESC NULLS LAST
SELECT DISTINCT ON (s) [t.s] AS s, [t.k] AS k FROM t ORDER BY s, k DESC
SELECT [t.s] AS s FROM t ORDER BY s LIMIT (SELECT max([u.k]) FROM u)
SELECT [t.s] AS s FROM t ORDER BY s LIMIT 2 + 3 OFFSET 10 * 2
SELECT count(*) AS n FROM (SELECT k FROM t LIMIT 10%)
SELECT [t.s] AS "my s", [t.i] AS "a.b", k AS "é ""q" FROM t WHERE [t.i] = 2
SELECT x."my s" AS a FROM (SELECT [t.s] AS "my s" FROM t) x WHERE x."my s" >= 'c'
SELECT "x y".k AS k FROM t AS "x y" WHERE ["x y".s] = 'c' AND "x y".k = 1
SELECT CAST([t.i] AS VARCHAR) AS a, CAST([t.i] AS HUGEINT) AS b, CAST([t.y] AS TINYINT) AS c, CAST([t.y] AS SMALLINT) AS d FROM t WHERE abs([t.i]) < 100
SELECT CAST([t.d] AS FLOAT) AS a, CAST([t.d] AS DECIMAL(10,1)) AS b, CAST([t.m] AS DOUBLE) AS c, [t.m]::bigint AS d FROM t
SELECT [t.b]::int AS a, [t.b]::string AS b, [t.i]::boolean AS c FROM t
SELECT TRY_CAST([t.s] AS DOUBLE) AS a, TRY_CAST([t.i] AS SMALLINT) AS b, TRY_CAST([t.s] AS DATE) AS c FROM t
SELECT TRY_CAST([t.q] AS BIGINT) IS NULL AS a, count(*) AS n FROM t GROUP BY a
SELECT [a.i] AS i, [b.y] AS y FROM t a ASOF LEFT JOIN (SELECT * FROM u WHERE [u.k] = 0 AND [u.y] = 2 AND [u.i] = 1) b ON [a.k] >= [b.k] AND [a.s] = [b.s] WHERE [a.s] = 'a'
SELECT count(*) AS n FROM t TABLESAMPLE 100%
SELECT count(*) AS n FROM t TABLESAMPLE reservoir(7 ROWS)
SELECT count(*) AS n FROM (SELECT [t.s] AS s FROM t) USING SAMPLE 11 ROWS
SELECT count(*) AS n FROM t TABLESAMPLE 100% WHERE [t.s] = 'a'
SELECT x.s AS s FROM (SELECT a.s AS s FROM (SELECT [t.s] AS s, k FROM t) a WHERE a.k = 2) x WHERE x.s > 'B'
SELECT q.t.s AS s FROM (SELECT {'s': [t.s], 'i': [t.i]} AS t FROM t) q WHERE q.t.i = 3
SELECT x.a.b AS b FROM (SELECT {'a': {'b': [t.s]}} AS x FROM t) WHERE x.a.b = 'c'
DESCRIBE SELECT [t.i] AS i, [t.s] AS s, [t.d] AS d, [t.m] AS m, [t.b] AS b, k FROM t
SUMMARIZE SELECT k FROM t WHERE [t.k] = 3
SELECT [t.s] AS s, count(*) AS n FROM t GROUP BY s HAVING n > 300 AND s IS NOT NULL ORDER BY n, s
SELECT upper([t.s]) AS s, count(*) AS n FROM t GROUP BY upper([t.s])
SELECT CASE WHEN [t.i] > 2 THEN 'big' WHEN [t.i] IS NULL THEN 'none' ELSE 'small' END AS c, count(*) AS n FROM t GROUP BY c
SELECT k, [t.s] AS s FROM t WHERE ([t.s], [t.i]) IN (('a', 1), ('c', 2))
SELECT k, [t.s] AS s FROM t WHERE ([t.s], k) IN (SELECT [u.s], [u.k] FROM u WHERE [u.i] = 2)
SELECT k FROM t WHERE [t.s] IN ('a', 'c') AND k IN (SELECT max([u.k]) FROM u)
SELECT k FROM t WHERE [t.s] >= 'a' AND [t.s] < 'b' AND [t.i] BETWEEN 1 AND 2
SELECT k FROM t WHERE NOT ([t.s] >= 'a' OR [t.i] < 2)
SELECT k FROM t WHERE [t.s] IS NULL OR [t.i] IS NULL OR [t.b] IS NULL
SELECT k FROM t WHERE ([t.i] > 1) = [t.b]
SELECT k FROM t WHERE [t.i] > 1 IS NOT FALSE
SELECT k FROM t WHERE [t.b] IS NOT FALSE AND [t.b] IS NOT NULL
SELECT k FROM t WHERE [t.b] IS TRUE AND k = 4
SELECT k FROM t WHERE [t.i] NOT BETWEEN 0 AND 3
SELECT k FROM t WHERE [t.i] <> ALL (SELECT [u.i] FROM u WHERE [u.i] > 1)
SELECT k FROM t WHERE [t.s] = SOME (SELECT [u.s] FROM u WHERE [u.k] = 2 AND [u.s] > 'a')
SELECT k FROM t WHERE [t.s] LIKE '%' AND [t.q] LIKE 'u_'
SELECT k FROM t WHERE [t.q] LIKE 'u9%' OR [t.q] LIKE '%''%'
SELECT k FROM t WHERE starts_with([t.q], 'u8') AND [t.q] <> 'u8'
SELECT k FROM t WHERE [t.s] = 'é' OR [t.s] = ''
SELECT k FROM t WHERE [t.s] COLLATE NOCASE = 'b'
SELECT k FROM t WHERE [t.m] IN (1.25, 100) AND [t.d] < 0
SELECT k FROM t WHERE [t.m] = 100::decimal(5,2) AND [t.y] = 1
SELECT k FROM t WHERE [t.d] = 0 AND [t.i] > 2.9999
SELECT k FROM t WHERE [t.i] = 1099511627776
SELECT k FROM t WHERE [t.i] > 9223372036854775807
SELECT k FROM t WHERE [t.i] < 99999999999999999999
SELECT k FROM t WHERE [t.i] = '2'
SELECT k FROM t WHERE [t.y] = 2.0 AND [t.m] < 100.001
SELECT k FROM t WHERE COALESCE([t.i], -1) = -1 AND k = 0
SELECT k FROM t WHERE NULLIF([t.s], 'a') IS NULL AND [t.s] IS NOT NULL AND k = 1
SELECT k FROM t WHERE CASE WHEN k = 1 THEN [t.s] END = 'c'
SELECT k FROM t WHERE [t.i] = k
SELECT k FROM t WHERE [t.i] + [t.y] = 5 AND [t.i] - [t.y] = 1
SELECT a.k AS k FROM t a, t b WHERE a.k = b.k AND [a.i] = 2 AND [b.i] = 3 AND [a.s] = [b.s] AND [a.q] = 'x' AND [b.q] = 'x'
SELECT [a.s] AS s, n FROM t a JOIN (SELECT [u.s] AS s, count(*) AS n FROM u GROUP BY 1) x ON x.s IS NOT DISTINCT FROM [a.s] WHERE [a.i] = 2
SELECT x.k AS k, y.n AS n FROM (SELECT DISTINCT k FROM t) x CROSS JOIN LATERAL (SELECT count(*) AS n FROM u WHERE [u.k] = x.k AND [u.s] = 'a') y
SELECT k, (SELECT count(*) FROM u WHERE [u.k] = t.k AND [u.i] = [t.i]) AS n FROM t WHERE [t.s] = 'c'
SELECT k, EXISTS (SELECT 1 FROM u WHERE [u.s] = [t.s] AND [u.i] > 2) AS x FROM t WHERE [t.i] = 0
SELECT list_transform(list([t.i] ORDER BY [t.i]), lambda x: x + 1)[1:3] AS x FROM t WHERE [t.k] = 1
SELECT list_filter(list([t.s] ORDER BY [t.s]), lambda x: x > 'a')[1] AS x FROM t
SELECT [x + 1 FOR x IN [[t.i], t.k] IF x IS NOT NULL] AS x FROM t WHERE [t.s] = 'c'
SELECT array_agg(DISTINCT [t.s] ORDER BY [t.s] NULLS LAST) AS x FROM t
SELECT map_keys(MAP {k: [t.s]}) AS x, MAP {k: [t.s]}[k] AS z FROM t WHERE [t.i] = 3
SELECT {'a': k, 'b': [t.s]}.b AS x, {'a': k}['a'] AS z, struct_pack(q := [t.i]).q AS i FROM t WHERE [t.i] = 3
SELECT max({'i': [t.i], 's': [t.s]}) AS x FROM t WHERE [t.s] > 'a'
SELECT arg_max({'s': [t.s], 'q': [t.q]}, [t.i] * 10 + k) IS NOT NULL AS x FROM t
SELECT first([t.s] ORDER BY k, [t.s]) AS a, last([t.s] ORDER BY k, [t.s]) AS b FROM t WHERE [t.s] IS NOT NULL
SELECT quantile_cont([t.i], 0.5) AS a, median([t.d]) AS b, mode([t.s]) IS NULL AS c FROM t WHERE [t.i] < 10
SELECT sum([t.m]) AS a, sum(DISTINCT [t.m]) AS b, product([t.y]) > 0 AS c, bit_and([t.y]) AS d FROM t
SELECT corr([t.i], [t.d]) IS NULL AS a, count(DISTINCT ([t.s], [t.i])) AS b FROM t
SELECT string_agg(DISTINCT [t.s], '|' ORDER BY [t.s]) AS a FROM t
SELECT k, [t.s] AS s FROM t WHERE [t.s] = 'a' GROUP BY ALL
SELECT k, min([t.s]) AS s FROM t GROUP BY k ORDER BY ALL
SELECT * EXCLUDE (v, w) FROM t WHERE [t.i] = 2 AND [t.s] IS NOT NULL ORDER BY k LIMIT 3
SELECT * EXCLUDE (v, w) REPLACE (k * 2 AS k) FROM t WHERE [t.i] = 3
SELECT * EXCLUDE (v, w) RENAME (k AS kk) FROM t WHERE [t.i] = 3
FROM t SELECT k, [t.s] AS s WHERE [t.s] = 'c' ORDER BY ALL LIMIT 4
FROM (FROM t SELECT k, [t.i] AS i) WHERE i = 3
PIVOT (SELECT [t.s] AS s, k, [t.i] AS i FROM t) ON s IN ('a', 'c') USING sum(i) GROUP BY k
PIVOT (SELECT k, [t.b] AS b FROM t) ON b USING count(*) ORDER BY k
SELECT * FROM (SELECT [t.s] AS s, k, [t.y] AS y FROM t WHERE [t.s] > 'a') PIVOT (max(y) AS m, count(*) AS n FOR k IN (1, 2) GROUP BY s)
WITH x AS (SELECT [t.s] AS s, k FROM t) PIVOT x ON k USING count(*)
UNPIVOT (SELECT k, [t.i] AS i, [t.y]::bigint AS y FROM t WHERE [t.s] = 'c') ON i, y INTO NAME n VALUE z
SELECT n, sum(z) AS z FROM (SELECT k, [t.i] AS i, [t.y]::bigint AS y FROM t) UNPIVOT (z FOR n IN (i, y)) GROUP BY n
SELECT p."1" AS x FROM (SELECT k, [t.i] AS i FROM t) PIVOT (max(i) FOR k IN (1, 2)) p
""".strip().splitlines()
ROWS = 3000
COLUMN = r'\[("[^"]+"|\w+)\.(\w+)\]'


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
    """The row as JSON, with values of other types in the place of some nulls."""
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
            pv.write(folder / f"{number}.parquet", arrow(part, number, schema), row_group_bytes=100_000)
        found["parquet"][name] = str(folder)
        table = arrow(every, seed, WHOLE)
        found["arrow"][name] = table
        pv.write(str(base / "delta" / name), table, format="delta")
        found["delta"][name] = str(base / "delta" / name)
        pv.write(base / f"{name}.vortex", table)
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

    return re.sub(COLUMN, path, query)


def theirs(query: str) -> str:
    query = query.replace(" EXCLUDE (v, w)", " EXCLUDE (i, s, d, q, m, b, y)")
    return re.sub(COLUMN, r"\1.\2", query).replace("::string", "::varchar")


def comparable(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize(("kind", "part"), [("parquet", 0), ("parquet", 1), ("arrow", 0), ("delta", 0), ("vortex", 0)])
def test_queries(bound: dict[str, dict[str, Any]], kind: str, part: int) -> None:
    wrong = []
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name, table in bound["plain"].items():
            connection.register(name, table)
        for query in QUERIES[part :: 2 if kind == "parquet" else 5]:
            try:
                answer = comparable(pv.sql(ours(query), **bound[kind]).to_arrow())
            except pv.VariantError as error:
                answer = [str(error)]
            expected = comparable(connection.sql(theirs(query)).to_arrow_table())
            if answer != expected:
                wrong.append((query, answer[:3], expected[:3]))
    assert not wrong, "\n\n".join("\n".join(map(str, item)) for item in wrong)


BY_NAME = {"l": pv.parse_json(['{"a": 1}']), "r": pv.parse_json(['{"a": 2, "b": "x", "A": 3}'])}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT v:a FROM l UNION ALL BY NAME SELECT v:a, v:b FROM r", [(1, None), (2, "x")]),
        ("SELECT v:a::int a FROM l UNION ALL BY NAME SELECT v:b, v:a::int a FROM r", [(1, None), (2, "x")]),
        ("SELECT v:a FROM l UNION BY NAME SELECT v:b, v:a FROM r ORDER BY a", [(1, None), (2, "x")]),
        ("SELECT v:b, v:a FROM r UNION ALL BY NAME SELECT v:a FROM l", [("x", 2), (None, 1)]),
        ("SELECT v:a FROM l UNION ALL BY NAME SELECT v:A, v:a FROM r", [(1, None), (2, 3)]),
        ("SELECT v:a AS X FROM l UNION ALL BY NAME SELECT v:a AS x, 1 AS n FROM r", [(1, None), (2, 1)]),
        ("SELECT a, b FROM (SELECT v:a FROM l UNION ALL BY NAME SELECT v:b, v:a FROM r)", [(1, None), (2, "x")]),
    ],
)
def test_union_by_name_has_the_columns_of_both_sides(query, rows):
    found = pv.sql(query, **BY_NAME).to_arrow()
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=str) == sorted(rows, key=str)
