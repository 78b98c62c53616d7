"""SQL of `variant query`: what the command's words bind to, its answers, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

pytest.importorskip("duckdb", reason="DuckDB is not installed")

Run = Callable[..., Any]


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
    done = variant("query", earthquakes, f"SELECT {mag} AS m FROM t WHERE m > 6", "--json")
    assert sorted(row["m"] for row in done.rows) == [6.1, 6.1, 6.4]
    done = variant("query", earthquakes, "SELECT m FROM t", "-s", "m=$.properties.mag:double")
    assert (done.code, "--select is not allowed with SQL" in done.error) == (2, True)
    done = variant("query", earthquakes, "SELECT v:geometry AS g FROM t LIMIT 1", "--json")
    assert done.rows[0]["g"]["type"] == "Point"
    done = variant("query", earthquakes, "SELECT v:geometry AS g FROM t LIMIT 1")
    assert '"type":"Point"' in done.out
    text = "SELECT list(v:geometry.type) AS l, any_value(v:none) AS n FROM (SELECT * FROM t LIMIT 2)"
    assert variant("query", earthquakes, text, "--json").rows == [{"l": ["Point", "Point"], "n": None}]


@pytest.mark.usefixtures("spark")
def test_spark_gives_the_same_answer(variant: Run, earthquakes: Path) -> None:
    kind, mag = "v:properties.type::string", "v:properties.mag::double"
    text = f"SELECT {kind} AS kind, count(*) AS n FROM t WHERE {mag} > 2 GROUP BY kind ORDER BY n DESC"
    words = ["query", earthquakes, text, "--json"]
    rows = variant(*words).rows
    assert rows[0] == {"kind": "earthquake", "n": 425}
    assert variant(*words, "--engine", "spark").rows == rows


def test_ordinary_columns_are_next_to_paths(variant: Run, tmp_path: Path) -> None:
    table = {"day": pa.array([1, 2, 2]), "v": pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"a": 3}'])}
    pv.write(tmp_path / "a.parquet", table, schema="a bigint")
    text = "SELECT day, sum(v:a::bigint) AS a FROM t WHERE day > 1 GROUP BY day"
    assert variant("query", tmp_path / "a.parquet", text, "--json").rows == [{"day": 2, "a": 3}]


def test_explain_says_what_is_filtered_early(variant: Run, earthquakes: Path) -> None:
    text = "SELECT v:id::string FROM t WHERE v:properties.mag::double > 6"
    report = variant("query", earthquakes, text, "--explain", "--json").json
    assert report["filters"] == ["v:properties.mag::double > 6"]
    assert report["needed_columns"] == ["v:id::string", "v:properties.mag::double"]
    assert report["bytes_read"] < report["bytes_total"] / 4


@pytest.mark.parametrize(
    ("words", "code", "wrong"),
    [
        (["SELECT nope FROM t"], 1, "nope"),
        (["SELECT v:a::nope FROM t"], 1, "nope"),
        (["SELECT * FROM read_csv('/etc/passwd')"], 1, "read_csv is not allowed in FROM"),
        (["SELECT sum(v:properties) FROM t"], 1, "v:properties is a Variant"),
        (["SELECT v:a[-1] FROM t"], 1, "count from 0"),
        (["SELECT * FROM u"], 1, "unknown table u: choose from t"),
        (["SELECT * FROM t WHERE v:a = charge.failed"], 1, "and a string 'charge.failed'"),
        (["CREATE TABLE x AS SELECT 1"], 1, "write a SELECT"),
        (["SELECT 1; SELECT 2"], 1, "write a single query"),
        (["SELECT v:a::int FROM t", "--where", "a > 1"], 2, "not allowed with SQL"),
        (["DROP TABLE t"], 1, "write a SELECT; a table is its directory"),
        (["TRUNCATE TABLE t"], 1, "tables are changed by variant ingest"),
        (["ALTER TABLE t ADD COLUMN x int"], 1, "tables are changed by variant ingest"),
        (["SET TimeZone = 'UTC'"], 1, "options such as zone= take the place of settings"),
        (["SELECT v:properties-tags.latest FROM t"], 1, "; a key that contains - is quoted: v:['a-b'].c"),
        (["SELECT v:propertes-tags FROM t"], 1, "mean v:properties?; a key that contains - is quoted: v:['a-b'].c"),
        (
            ["SELECT v:properties.mag::double::timestamp FROM t"],
            1,
            "seconds since 1970 are a time with to_timestamp(x)",
        ),
        (["SELECT ?"], 1, "the SQL has the parameter ?: write its value"),
        ([], 2, "no columns are selected"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    variant: Run, earthquakes: Path, words: list[str], code: int, wrong: str
) -> None:
    done = variant("query", earthquakes, *words)
    assert done.code == code
    assert wrong in done.error


def test_the_variant_itself_may_be_selected(variant: Run, tmp_path: Path) -> None:
    table = {"day": pa.array([1, 2, 3]), "v": pv.parse_json(['{"a": 1}', '{"a": "x"}', None])}
    pv.write(tmp_path / "a.parquet", table, schema="a bigint")

    def rows(text: str) -> list[object]:
        return variant("query", tmp_path / "a.parquet", text, "--json").rows

    assert rows("SELECT * FROM t WHERE day < 3") == [{"day": 1, "v": {"a": 1}}, {"day": 2, "v": {"a": "x"}}]
    assert rows("SELECT t.v AS it FROM t WHERE v:a::bigint = 1") == [{"it": {"a": 1}}]
    assert rows("SELECT v::string AS it FROM t WHERE day = 2") == [{"it": '{"a":"x"}'}]
    assert rows("SELECT count(*) AS n FROM t WHERE v IS NULL") == [{"n": 1}]
    assert rows("SELECT day FROM t WHERE v:a IS NULL") == [{"day": 3}]


def test_sql_alone_names_paths(variant: Run, tmp_path: Path) -> None:
    for name, texts in {"a": ['{"k": 1, "x": "one"}', '{"k": 2, "x": "two"}'], "b": ['{"k": 2, "y": 9}']}.items():
        pv.write(tmp_path / name / "part.parquet", {"v": pv.parse_json(texts)}, schema="infer")
    text = f"""SELECT a.v:x::string, b.v:y::int FROM '{tmp_path}/a/' JOIN '{tmp_path}/b/*.parquet' b
               ON a.v:k::int = b.v:k::int"""
    assert variant("query", text, "--json").rows == [{"x": "two", "y": 9}]
    assert variant("query", f"SELECT count(*) AS n FROM '{tmp_path}/a'", "--json").rows == [{"n": 2}]
    report = variant("query", text, "--json", "--explain").json
    assert [item["needed_columns"] for item in report["tables"]] == [
        ["v:k::int", "v:x::string"],
        ["v:k::int", "v:y::int"],
    ]
    done = variant("query", "SELECT 1 FROM 'nowhere/'")
    assert done.code == 1 and "nowhere/" in done.error
    for words in (
        "INSERT INTO t VALUES (1)",
        "update t set v = 1",
        "Drop table t",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
    ):
        done = variant("query", words)
        assert done.code == 1 and "the SQL is not a query" in done.error


def test_a_failing_cast_is_an_error_if_asked_for(variant: Run, tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", {"v": pv.parse_json(['{"a": 1}', '{"a": "x"}'])}, schema="infer")
    text = "SELECT v:a::int FROM t"
    assert variant("query", tmp_path / "a.parquet", text, "--json").rows == [{"a": 1}, {"a": None}]
    done = variant("query", tmp_path / "a.parquet", text, "--strict")
    assert done.code == 1 and "$['a']" in done.error


def test_a_process_of_its_own_rewrites_what_duckdb_writes_otherwise() -> None:
    """IN UNNEST goes through a template of sqlglot's, which the command reads only then."""
    words = [sys.executable, "-m", "parquet_variant.cli", "query", "SELECT 2 IN UNNEST([1, 2]) AS a", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (['{"a":true}'], "")


def test_an_output_file_is_replaced_only_with_force(variant: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    assert variant("query", "SELECT 1 AS a", "-o", target).code == 0
    refused = variant("query", "SELECT 2 AS a", "-o", target)
    assert refused.code == 1
    assert "give --force to replace it" in refused.error
    assert target.read_text().splitlines() == ['"a"', "1"]
    assert variant("query", "SELECT 2 AS a", "-o", target, "--force").code == 0
    assert target.read_text().splitlines() == ['"a"', "2"]
