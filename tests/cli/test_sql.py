"""SQL with paths: what is taken for a path, what the scan may filter, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.sql import read_sql
from parquet_variant.errors import PathError

pytest.importorskip("duckdb", reason="DuckDB is not installed")

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "rewritten", "columns"),
    [
        ("SELECT v:a FROM t", "SELECT _1 FROM t", {"_1": "$.a"}),
        ("SELECT t.v:a.b[0]['x y'].c::int", "SELECT _1", {"_1": "$.a.b[0]['x y'].c:int"}),
        ("SELECT V:a::decimal(9, 2) + 1", "SELECT _1 + 1", {"_1": "$.a:decimal(9, 2)"}),
        ("SELECT v:a::array<struct<x: int>>, 1", "SELECT _1, 1", {"_1": "$.a:array<struct<x: int>>"}),
        ("SELECT v:[0]::int, v:[0]::int", "SELECT _1, _1", {"_1": "$[0]:int"}),
        ("SELECT 'v:a', \"v\" FROM t -- v:b", "SELECT 'v:a', \"v\" FROM t -- v:b", {"v": "$"}),
        ("SELECT day::string, x.y FROM t", "SELECT day::string, x.y FROM t", {"day": "day"}),
        ("SELECT other:a FROM t", "SELECT other:a FROM t", {}),
        ("SELECT mag FROM t", "SELECT mag FROM t", {"mag": "$.m:double"}),
    ],
)
def test_paths_become_columns(text: str, rewritten: str, columns: dict[str, str]) -> None:
    query = read_sql(text, ["v"], ["day"], {"mag": "$.m:double"})
    assert (query.text, query.columns) == (rewritten, columns)


@pytest.mark.parametrize(
    ("where", "filters"),
    [
        ("v:a::int > 1", ("_1 > 1",)),
        ("v:a::int > 1 AND lower(v:b::string) = 'x'", ("_1 > 1",)),
        ("v:a::int > 1 OR v:b::string = 'x' GROUP BY 1", ("_1 > 1 OR _2 = 'x'",)),
        ("(v:a::int > 1 AND v:b::string = 'and') LIMIT 1", ("(_1 > 1 AND _2 = 'and')",)),
        ("v:a::int BETWEEN 1 AND 2", ("_1 BETWEEN 1 AND 2",)),
        # Where a part could be read wrongly, nothing is taken.
        ("v:a::int BETWEEN 1 AND v:b::int > 2", ()),
        ("CASE WHEN v:a::int > 1 AND v:b::int > 2 THEN true ELSE false END AND v:c::int = 1", ()),
        ("v:a::int > 1 AND f(v:b::int) OR v:c::int = 1", ()),
        ("v:a::int > 1 AND v:b::int IN (SELECT 1)", ()),
        ("v:a::int > 1 UNION SELECT 1", ()),
    ],
)
def test_only_what_every_row_must_meet_is_filtered_early(where: str, filters: tuple[str, ...]) -> None:
    assert read_sql(f"SELECT 1 FROM t WHERE {where}", ["v"], []).filters == filters


def test_two_variant_columns_at_once_are_refused() -> None:
    with pytest.raises(PathError, match="one Variant column at a time"):
        read_sql("SELECT v:a, w:a FROM t", ["v", "w"], [])


def test_answers(variant: Run, earthquakes: Path) -> None:
    mag, kind = "v:properties.mag::double", "v:properties.type::string"
    text = (
        f"SELECT {kind} AS kind, count(*) AS n, max({mag}) AS top FROM t WHERE {mag} > 2 GROUP BY kind ORDER BY n DESC"
    )
    rows = [
        {"kind": "earthquake", "n": 425, "top": 6.4},
        {"kind": "explosion", "n": 5, "top": 2.26},
        {"kind": "quarry blast", "n": 1, "top": 2.19},
    ]
    assert variant("query", earthquakes, text, "--json").rows == rows
    assert variant("query", earthquakes, text).out.splitlines()[2].split() == ["earthquake", "425", "6.4"]
    assert variant("query", earthquakes, "SELECT count(*) AS n FROM t", "--json").rows == [{"n": 1707}]
    done = variant("query", earthquakes, "SELECT m FROM t WHERE m > 6", "-s", "m=$.properties.mag:double", "--json")
    assert sorted(row["m"] for row in done.rows) == [6.1, 6.1, 6.4]
    done = variant("query", earthquakes, "SELECT v:geometry AS g FROM t LIMIT 1", "--json")
    assert '"type":"Point"' in done.rows[0]["g"]


@pytest.mark.usefixtures("spark")
def test_spark_gives_the_same_answer(variant: Run, earthquakes: Path) -> None:
    text = "SELECT v:properties.type::string AS kind, count(*) AS n FROM t WHERE mag > 2 GROUP BY kind ORDER BY n DESC"
    words = ["query", earthquakes, text, "-s", "mag=$.properties.mag:double", "--json"]
    rows = variant(*words).rows
    assert rows[0] == {"kind": "earthquake", "n": 425}
    assert variant(*words, "--engine", "spark").rows == rows


def test_ordinary_columns_stand_beside_paths(variant: Run, tmp_path: Path) -> None:
    table = {"day": pa.array([1, 2, 2]), "v": pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"a": 3}'])}
    pv.parquet.write(tmp_path / "a.parquet", table, schema="a bigint")
    text = "SELECT day, sum(v:a::bigint) AS a FROM t WHERE day > 1 GROUP BY day"
    assert variant("query", tmp_path / "a.parquet", text, "--json").rows == [{"day": 2, "a": 3}]


def test_explain_says_what_is_filtered_early(variant: Run, earthquakes: Path) -> None:
    text = "SELECT v:id::string FROM t WHERE v:properties.mag::double > 6"
    report = variant("query", earthquakes, text, "--explain", "--json").json
    assert report["filters"] == ["_2 > 6"]
    assert report["bytes_read"] < report["bytes_total"] / 4


@pytest.mark.parametrize(
    ("words", "code", "wrong"),
    [
        (["SELECT nope FROM t"], 1, "nope"),
        (["SELECT v:a::nope FROM t"], 1, "nope"),
        (["SELECT * FROM read_csv('/etc/passwd')"], 1, "the SQL cannot be run"),
        (["CREATE TABLE x AS SELECT 1"], 1, "write one SELECT"),
        (["SELECT 1; SELECT 2"], 1, "write one SELECT"),
        (["SELECT v:a::int FROM t", "--where", "a > 1"], 2, "write it into the SQL"),
        ([], 2, "nothing is asked for"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    variant: Run, earthquakes: Path, words: list[str], code: int, wrong: str
) -> None:
    done = variant("query", earthquakes, *words)
    assert done.code == code
    assert wrong in done.error


def test_a_star_is_all_columns_of_the_table() -> None:
    query = read_sql("SELECT *, v:a::int AS a FROM t WHERE v:a::int > 1", ["v"], ["day", "odd one"])
    assert query.text == 'SELECT day, "odd one", v, _1 AS a FROM t WHERE _1 > 1'
    assert query.columns == {"day": "day", "odd one": "odd one", "v": "$", "_1": "$.a:int"}
    for text in ("SELECT count(*) FROM t", "SELECT 2 * day FROM t", "WITH x AS (SELECT day FROM t) SELECT * FROM x"):
        assert read_sql(text, ["v"], ["day"]).text == text


def test_the_variant_itself_may_be_selected(variant: Run, tmp_path: Path) -> None:
    table = {"day": pa.array([1, 2, 3]), "v": pv.parse_json(['{"a": 1}', '{"a": "x"}', None])}
    pv.parquet.write(tmp_path / "a.parquet", table, schema="a bigint")

    def rows(text: str) -> list[object]:
        return variant("query", tmp_path / "a.parquet", text, "--json").rows

    assert rows("SELECT * FROM t WHERE day < 3") == [{"day": 1, "v": '{"a":1}'}, {"day": 2, "v": '{"a":"x"}'}]
    assert rows("SELECT t.v AS it FROM t WHERE v:a::bigint = 1") == [{"it": '{"a":1}'}]
    assert rows("SELECT v::string AS it FROM t WHERE day = 2") == [{"it": '{"a":"x"}'}]
    assert rows("SELECT count(*) AS n FROM t WHERE v IS NULL") == [{"n": 1}]
    assert rows("SELECT day FROM t WHERE v:a IS NULL") == [{"day": 3}]
