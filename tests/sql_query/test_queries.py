"""`pv.sql` over one small table: what each part of SQL means where Variants are in it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.errors import VariantError

Ask = Callable[[str], list[Any]]
FIRST = '{"day":"x","items":[{"n":1},{"n":2}],"kind":"a","n":1,"o":{"p":1}}'


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT v:n::int FROM t ORDER BY n", [1, 5, 20, None, None]),
        ("SELECT max(v:n::int) FROM t", [20]),
        ("SELECT v:n::int + 1 FROM t WHERE day < 3", [2, 6]),
        ("SELECT v:kind::string, sum(v:n::int)::int AS n FROM t GROUP BY kind ORDER BY n", [("b", 5), ("a", 21), (None, None)]),
        ("SELECT v:kind::string FROM t WHERE day = 1", ["a"]),
        ("SELECT * FROM t LIMIT 1", [(1, FIRST, "a")]),
        ("SELECT t.* FROM t LIMIT 1", [(1, FIRST, "a")]),
        ("SELECT *, v:n::int AS m FROM t LIMIT 1", [(1, FIRST, "a", 1)]),
        ("SELECT t.* EXCLUDE (v) FROM t WHERE v:n::int > 1", [(2, "b"), (3, "c")]),
        ("SELECT * EXCLUDE (day, v) FROM t WHERE day > 1 AND v:n::int > 1", ["b", "c"]),
        ("SELECT * REPLACE (v:n::int AS v) FROM t WHERE day = 2", [(2, 5, "b")]),
        ("SELECT count(*) FROM t", [5]),
        ("SELECT count(*), count(v:n), count(DISTINCT v:kind::string) FROM t", [(5, 4, 2)]),
        ("SELECT v:items[0].n::int AS _2, v:n::int AS _1 FROM t WHERE day = 1", [(1, 1)]),
        ("SELECT v:items[*].n::array<int> FROM t WHERE day = 1", [[1, 2]]),
        ("SELECT unnest(v:items[*].n::array<int>) AS n FROM t", [1, 2]),
        ("SELECT v:n::int8 FROM t WHERE day = 3", [20]),
        ("SELECT v['o']['p']::int FROM t WHERE day = 1", [1]),
        ("SELECT v['o'].p::int FROM t WHERE v['o'].p::int = 1", [1]),
        ("SELECT t.v['items'][1].n::int FROM t WHERE day = 1", [2]),
        ("SELECT variant_get(v, '$.o.p', 'int') FROM t WHERE day = 1", [1]),
        ("SELECT v:kind FROM t WHERE day IN (1, 5)", ["a", None]),
        ("SELECT v::string FROM t WHERE day = 2", ['{"kind":"b","n":5}']),
        ("SELECT day FROM t WHERE v:kind IS NULL", [4]),
        ("SELECT to_json(v:o) FROM t WHERE day = 1", ['{"p":1}']),
        ("SELECT array_agg(v:o) FROM t WHERE day < 3", [['{"p":1}', None]]),
        ("SELECT v:items::array<variant> FROM t WHERE day = 1", [['{"n":1}', '{"n":2}']]),
        # NULLs of windows, ordered sets, names of outputs
        ("SELECT last_value(v:n::int IGNORE NULLS) OVER (ORDER BY day) FROM t", [1, 5, 20, 20, 20]),
        ("SELECT last_value(v:n::int) IGNORE NULLS OVER w FROM t WINDOW w AS (ORDER BY day)", [1, 5, 20, 20, 20]),
        ("SELECT lag(v:n::int, 1 RESPECT NULLS) OVER (ORDER BY day) FROM t", [None, 1, 5, 20, None]),
        ("SELECT nth_value(abs(v:n::int), 3 IGNORE NULLS) OVER (ORDER BY day DESC) FROM t", [None, None, None, None, 1]),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v:n::int DESC) FROM t", [5.0]),
        ("SELECT v:kind::string AS k, sum(day)::int AS day FROM t GROUP BY k HAVING day > 4 ORDER BY day", [(None, 9)]),
        ("SELECT DISTINCT ON (name) v:kind::string AS name, day FROM t ORDER BY name, day", [("a", 1), ("b", 2), (None, 4)]),
        ("SELECT row(day, v:n::int) FROM t WHERE day = 2", [{"element1": 2, "element2": 5}]),
        # joins
        ("SELECT t.day, u.v:w::int FROM t JOIN u ON t.v:kind::string = u.v:k::string ORDER BY 1", [(1, 10), (2, 20), (3, 10)]),
        ("SELECT a.day, b.day FROM t a JOIN t b ON a.v:n::int < b.v:n::int ORDER BY ALL", [(1, 2), (1, 3), (2, 3)]),
        ("SELECT a.day FROM t a LEFT JOIN u ON a.v:kind::string = u.v:k::string WHERE u.v:w::int IS NULL", [4, 5]),
        ("SELECT count(*) FROM t NATURAL JOIN (SELECT day FROM t WHERE day > 2)", [3]),
        ("SELECT day FROM t JOIN t AS s USING (day) WHERE s.v:n::int = 5", [2]),
        ("SELECT * FROM (VALUES (1), (2)) x(a) JOIN t ON t.day = x.a WHERE v:n::int = 5", [(2, 2, '{"kind":"b","n":5}', "b")]),
        ("SELECT t.day FROM t, u WHERE t.v:kind::string = u.v:k::string AND u.v:w::int = 20", [2]),
        # which relations a name is looked for in: those before a condition, not those that SEMI JOIN looked into
        ("SELECT v:n::int FROM t SEMI JOIN u ON t.v:kind::string = u.v:k::string WHERE v:n::int > 1 ORDER BY n", [5, 20]),
        ("SELECT v:n::int, day FROM t ANTI JOIN t s USING (day)", []),
        ("SELECT s.day FROM (SELECT 5 AS n) x JOIN t s ON v:n::int = n JOIN t r ON r.day = s.day", [2]),
        # relations in parentheses
        ("SELECT a.day FROM t a LEFT JOIN (t b JOIN u ON b.v:kind::string = u.v:k::string) ON a.day = b.day WHERE u.v IS NULL ORDER BY 1", [4, 5]),
        ("SELECT x.v:n::int FROM (t JOIN (SELECT 2 AS d) ON day = d) x", [5]),
        ("SELECT v:n::int FROM (t) WHERE day = 2", [5]),
        ("SELECT v:n::int FROM ((t)) x WHERE day = 2", [5]),
        ("SELECT count(*) FROM ((t) TABLESAMPLE 0%), (u)", [0]),
        ("SELECT day FROM ((t) JOIN (SELECT 2 AS day) USING (day)), (u) WHERE t.v:n::int = 5 AND u.v:w::int = 20", [2]),
        ("SELECT a.day FROM ((t a JOIN t b ON a.v:n::int = b.v:n::int) JOIN u ON u.v:w::int = a.v:n::int)", [3]),
        # subqueries
        ("SELECT day FROM t WHERE v:n::int > (SELECT avg(v:n::int) FROM t)", [3]),
        (
            "SELECT day FROM t a WHERE v:n::int = (SELECT max(b.v:n::int) FROM t b WHERE b.v:kind::string = a.v:kind::string) "
            "ORDER BY 1",
            [2, 3],
        ),
        ("SELECT day FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.v:k::string = t.v:kind::string) ORDER BY 1", [1, 2, 3]),
        ("SELECT day FROM t WHERE v:kind::string IN (SELECT v:k::string FROM u WHERE v:w::int > 10)", [2]),
        ("SELECT (SELECT u.v FROM u WHERE u.v:w::int = t.v:n::int * 10) FROM t WHERE day = 1", ['{"k":"a","w":10}']),
        ("SELECT y FROM (SELECT v:n::int AS y FROM t) WHERE y > 1", [5, 20]),
        # Variants that come out of another query, or of an expression
        ("WITH x AS (SELECT v, day FROM t WHERE day < 3) SELECT v:n::int, x.v:kind::string FROM x", [(1, "a"), (5, "b")]),
        ("WITH x(w) AS (SELECT v:o FROM t) SELECT w:p::int FROM x WHERE w IS NOT NULL", [1]),
        ("SELECT s.v:n::int FROM (SELECT * FROM t) s WHERE s.day = 2", [5]),
        ("SELECT v:n::int FROM (SELECT v FROM t UNION ALL SELECT v FROM u) WHERE v:w IS NULL AND v:n::int > 1", [5, 20]),
        ("SELECT coalesce(v:day, v:kind)::string FROM t", ["x", "b", "a", None, None]),
        ("SELECT (CASE WHEN day = 1 THEN v:o ELSE v END):p::int FROM t WHERE day < 3", [1, None]),
        ("SELECT any_value(v):n::int FROM t WHERE day = 2", [5]),
        ("SELECT first_value(v) OVER (ORDER BY day DESC) FROM t LIMIT 1", ['{"kind":null,"n":"z"}']),
        ("SELECT arg_max(v, day):n::string FROM t", ["z"]),
        ("SELECT first(v ORDER BY day DESC) FROM t", ['{"kind":null,"n":"z"}']),
        ("SELECT arg_min(v:n, day) FILTER (day > 1) FROM t", ["5"]),
        ("SELECT v:o::map<string, variant> FROM t WHERE day < 3", [[("p", "1")], None]),
        ("SELECT v:o::map<string, array<variant>> FROM t WHERE day < 3", [[("p", None)], None]),
        ("SELECT w:p::int AS p, count(*) FROM (SELECT v:o AS w FROM t) GROUP BY ROLLUP (w:p::int) ORDER BY ALL", [(1, 1), (None, 4), (None, 5)]),
        # windows, set operations, the rest
        (
            "SELECT day, row_number() OVER (PARTITION BY v:kind::string ORDER BY v:n::int DESC) FROM t ORDER BY 1",
            [(1, 2), (2, 1), (3, 1), (4, 1), (5, 2)],
        ),
        ("SELECT v:n::int FROM t QUALIFY row_number() OVER (ORDER BY v:n::int) = 1", [1]),
        ("SELECT v:n::int AS n FROM t UNION SELECT v:w::int FROM u ORDER BY n", [1, 5, 10, 20, None]),
        ("SELECT v:n::int FROM t INTERSECT SELECT v:w::int FROM u", [20]),
        ("SELECT v:kind::string AS kind, count(*) FROM t GROUP BY ALL ORDER BY ALL", [("a", 2), ("b", 1), (None, 2)]),
        ("FROM t SELECT v:n::int WHERE day = 2", [5]),
        ("SELECT sum(day) FILTER (WHERE v:kind::string = 'a') FROM t", [4]),
        ("SELECT v:day::string AS day FROM t ORDER BY day LIMIT 1", ["x"]),
        ("SELECT v:n::int AS v FROM t ORDER BY v LIMIT 1", [1]),
        ("SELECT list_transform([1, 2], x -> x + day) FROM t WHERE day = 1", [[2, 3]]),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) "
            "SELECT i, t.v:n::int FROM r JOIN t ON t.day = i ORDER BY 1",
            [(1, 1), (2, 5), (3, 20)],
        ),
        ("SELECT hour(timestamp_seconds(v:n::bigint * 3600)) FROM t WHERE day = 2", [5]),
        ("SELECT 1 + 1", [2]),
    ],
)  # fmt: skip
def test_answers(ask: Ask, query: str, rows: list[Any]) -> None:
    assert ask(query) == rows


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT v:a.b::string, v:c, v, v['d e'], v::string FROM t", ["b", "c", "v", "d e", "v_1"]),
        ("SELECT v:items[0], day, t.name, v:x AS y FROM t", ["items", "day", "name", "y"]),
        ("SELECT max(v:n::int), v:n::int+1, count(*) FROM t GROUP BY v:n::int", ["max(v:n::int)", "v:n::int+1", "count_star()"]),
    ],
)  # fmt: skip
def test_names(events: dict[str, Any], query: str, names: list[str]) -> None:
    assert pv.sql(query, t=events).column_names == names


def test_describe(events: dict[str, Any]) -> None:
    found = pv.sql("DESCRIBE t", t=events).to_arrow()
    assert found["column_name"].to_pylist() == ["day", "v", "name"]
    assert found["column_type"].to_pylist() == ["BIGINT", "VARIANT", "VARCHAR"]
    found = pv.sql("DESCRIBE SELECT v:n::int8, v:kind FROM t", t=events).to_arrow()
    assert found["column_type"].to_pylist() == ["BIGINT", "VARCHAR"]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("SELECT day FROM t GROUP BY v", "must appear in the GROUP BY"),
        ("SELECT v FROM t UNION SELECT 1", "UNION cannot compare v"),
        ("SELECT v FROM t EXCEPT ALL SELECT 1", "EXCEPT cannot compare v"),
        ("SELECT * FROM t NATURAL JOIN u", "cannot compare v"),
        ("SELECT 1 FROM t JOIN u USING (v)", "cannot compare v"),
        ("SELECT x + 1 FROM (SELECT v:n AS x FROM t)", "x is a Variant"),
        ("SELECT v.kind FROM t", "use a colon, v:kind"),
        ("SELECT name:kind FROM t", "name is not a Variant"),
        ("SELECT nope:kind FROM t", "column nope"),
        ("SELECT nope FROM t", "column nope: choose from day, v, name"),
        ("SELECT t.nope FROM t", "column t.nope"),
        ('SELECT "kind" FROM t', "string is written in single quotes"),
        ("SELECT x.day FROM t", "table x: FROM has t"),
        ("SELECT u.v:k FROM t SEMI JOIN u ON t.v:kind::string = u.v:k::string", "table u: FROM has t$"),
        ("SELECT 1 FROM t JOIN u ON s.v:w::int = 1 JOIN u s ON true", "table s: FROM has t, u$"),
        ("SELECT v FROM t, u", "v is ambiguous: t or u"),
        ("SELECT v:a FROM nope", "table nope: choose from t, u"),
        ("SELECT t FROM t", "t is a table"),
        ("SELECT v:items[-1] FROM t", "count from 0"),
        ("SELECT v:n::nope FROM t", "unknown type nope: use boolean"),
        ("SELECT v:items[*].n::int FROM t", "cast it to array"),
        ("SELECT v:items::array<string>[0] FROM t", "after a type"),
        ("SELECT COLUMNS(*) FROM t", "list the columns"),
        ("CREATE TABLE x AS SELECT 1", "not a query"),
        ("INSERT INTO t SELECT 1", "not a query"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT day INTO x FROM t", "not a query: INTO"),
        ("WITH x AS (DELETE FROM t) SELECT 1", "not a query: DELETE"),
        ("SELECT day FROM t ORDER BY day FETCH FIRST 1 ROW WITH TIES", "ROWS ONLY"),
        ("SELECT * FROM (SELECT day FROM t FETCH FIRST 20 PERCENT ROWS ONLY)", "ROWS ONLY.* LIMIT 50%"),
        ("SELECT map(v) FROM t", "v is a Variant|cannot be run"),
        ("SELEC 1", "not a query|invalid SQL"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv is not allowed in FROM: write a table"),
        ("SELECT * FROM enable_logging(storage='file', storage_path='x')", "enable_logging is not allowed in FROM"),
        ("SELECT * FROM query('SELECT * FROM glob(''*'')')", "query is not allowed in FROM"),
        ("SELECT (SELECT count(*) FROM main.read_text('x')) FROM t", "read_text is not allowed in FROM"),
        ("SUMMARIZE arrow_scan(1, 2, 3)", "arrow_scan is not allowed in FROM"),
        ("SELECT st_point(1, 2)", "not in the catalog"),
        ("DESCRIBE", "Expected table name .near"),
        ("SELECT 1 FROM t WHERE v:t::timestamp_ntz_nanos > TIMESTAMP '2024-06-01'", "without a zone is TIMESTAMP_NTZ"),
        ("", "empty"),
    ],
)
def test_errors_are_in_the_users_words(ask: Ask, query: str, wrong: str) -> None:
    with pytest.raises(VariantError, match=wrong) as caught:
        ask(query)
    assert "_table_" not in str(caught.value)
    assert "$[" not in str(caught.value)


def test_forms_of_an_answer(events: dict[str, Any]) -> None:
    found = pv.sql("SELECT day, v:kind::string FROM t ORDER BY day", t=events)
    assert found.to_arrow().column_names == ["day", "kind"]
    assert found.to_pandas()["kind"][0] == "a"
    assert found.to_polars()["day"].to_list() == [1, 2, 3, 4, 5]
    assert pv.sql("SELECT v:n, v:n FROM t", t=events).to_polars().columns == ["n", "n_1"]
    assert len(found) == found.num_rows == 5
    assert repr(found).splitlines()[:3] == ["day  kind", "---  ----", "1    a"]

    assert pa.table(found).num_rows == 5


def test_variants_in_structs_and_several_of_them(tmp_path: Path) -> None:
    inner, outer = pv.parse_json(['{"a": 1}', '{"a": 2}']), pv.parse_json(['{"b": "x"}', '{"b": "y"}'])
    struct = pa.StructArray.from_arrays(
        [pa.array([7, 8]), inner.storage], fields=[pa.field("n", pa.int64()), tagged(inner, "w")]
    )
    table = pa.table([struct, outer.storage], schema=pa.schema([pa.field("s", struct.type), tagged(outer, "v")]))
    pv.write(tmp_path / "a.parquet", table, schema={"v": "b string", "s.w": "a int"})
    rows = pv.sql("SELECT s.w:a::int AS a, v:b::string AS b, s.n FROM t WHERE s.w:a::int > 1", t=str(tmp_path))
    assert rows.to_pylist() == [{"a": 2, "b": "y", "n": 8}]
    assert pv.sql("SELECT * FROM t LIMIT 1", t=str(tmp_path)).to_pylist() == [
        {"s": {"n": 7, "w": '{"a":1}'}, "v": '{"b":"x"}'}
    ]


def test_a_star_has_the_order_of_the_file(tmp_path: Path) -> None:
    values = pv.parse_json(['{"x": 1}'])
    fields = [pa.field("b", pa.int64()), tagged(values, "v"), pa.field("a", pa.string())]
    pv.write(tmp_path / "t.parquet", pa.table([[1], values.storage, ["z"]], schema=pa.schema(fields)))
    for text in ("SELECT * FROM t", "SELECT *, v:x::int AS x FROM t"):
        found = pv.sql(text, t=tmp_path / "t.parquet")
        assert found.column_names[:3] == ["b", "v", "a"]
        assert found.to_pylist()[0] | {"x": 1} == {"b": 1, "v": '{"x":1}', "a": "z", "x": 1}


def test_hive_partitions_are_columns(tmp_path: Path) -> None:
    for year in (2023, 2024):
        pv.write(tmp_path / f"year={year}" / "a.parquet", pv.parse_json([f'{{"a": {year}}}']), schema="infer")
    found = pv.sql("SELECT year, v:a::int FROM t WHERE year > 2023", t=str(tmp_path))
    assert [tuple(row.values()) for row in found.to_pylist()] == [(2024, 2024)]


def tagged(values: pv.VariantArray, name: str) -> pa.Field:
    return pa.field(name, values.storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})


def test_queries_in_several_threads_do_not_meet(events: dict[str, Any]) -> None:
    def total(start: int) -> Any:
        query = f"WITH x AS (SELECT v FROM t WHERE day >= {start}) SELECT count(v:n::int), max(v:n::int) FROM x"
        return tuple(pv.sql(query, t=events).to_pylist()[0].values())

    expected = [total(start) for start in range(6)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, [0, 1, 2, 3, 4, 5] * 4)) == expected * 4


@pytest.mark.parametrize(
    ("query", "word"),
    [("SELECT * FORM t", "FROM"), ("SELEC v FROM t", "SELECT"), ("SELECT v FROM t WERE v:a = 1", "WHERE"),
     ("SELECT v:a FROM t GROPU BY 1", "GROUP"), ("SELECT v FROM t LIMT 5", "LIMIT"),
     ("SELECT v:a FROM t GROUP v:a", "GROUP BY"), ("SELECT v FROM t ORDER v:a", "ORDER BY"),
     ("SELECT TOP 5 v FROM t", "LIMIT")],
)  # fmt: skip
def test_a_misspelled_keyword_is_named(query, word):
    with pytest.raises(pv.VariantError, match=f"invalid SQL at line 1.*did you mean {word}"):
        pv.sql(query, t=pv.parse_json(['{"a": 1}']))
    with pytest.raises(pv.VariantError, match=r"near 'c'\)$"):
        pv.sql("SELECT a b c FROM t", t=pv.parse_json(['{"a": 1}']))
