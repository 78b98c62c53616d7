"""`Table.sql_view`: its statements run where they are meant to, and give what `pv.sql` gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.errors import VariantError

TEXTS = [
    '{"a": {"id": 1, "x y": "it\'s"}, "id": "k", "tags": ["p", "q"], "ok": true}',
    '{"a": {"id": 2, "x y": "b"}, "id": "l", "tags": [], "ok": false}',
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pv.write(tmp_path / "data" / "a.parquet", {"day": pa.array([1, 2]), "v": pv.parse_json(TEXTS)}, schema="infer")
    return tmp_path / "data"


def test_duckdb_runs_the_view(files: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(pv.open(files).sql_view())
        rows = connection.sql('SELECT day, a_id, "x y", id, ok FROM events ORDER BY day').fetchall()
    assert rows == [(1, 1, "it's", "k", True), (2, 2, "b", "l", False)]


def test_columns_may_be_chosen(files: Path) -> None:
    columns = {"tag": "$.tags[1]:string", "n": ("$.a.id", "double"), "day": "day", "whole": "$.a"}
    with duckdb.connect() as connection:
        connection.execute(pv.open(files).sql_view(columns, name="my view"))
        found = connection.sql('SELECT tag, n, day FROM "my view" ORDER BY day')
        assert found.fetchall() == [("q", 1.0, 1), (None, 2.0, 2)]
        assert found.types[1] == "DOUBLE"


def test_a_key_cannot_leave_its_text(tmp_path: Path) -> None:
    key = "x'] AS y, 1 FROM z; --`\"\\"
    pv.write(tmp_path / "a.parquet", {"v": pv.parse_json([json.dumps({key: 7})])}, schema="infer")
    with duckdb.connect() as connection:
        connection.execute(pv.open(tmp_path / "a.parquet").sql_view())
        assert connection.sql("SELECT * FROM events").fetchall() == [(7,)]


def test_letter_case(tmp_path: Path) -> None:
    values = pv.parse_json(['{"a": 1, "o": {"A": 3}}', '{"A": 2}'])
    pv.write(tmp_path / "a.parquet", {"v": values}, schema="a int, o struct<A: int>")
    with duckdb.connect() as connection:
        connection.execute(pv.open(tmp_path / "a.parquet").sql_view())
        assert connection.sql("SELECT a, o_A FROM events").fetchall() == [(1, 3), (None, None)]
    with pytest.raises(VariantError, match="two view columns"):
        pv.open(tmp_path / "a.parquet").sql_view({"a": "$.a:int", "A": "$.A:int"})
    pv.write(tmp_path / "b.parquet", {"v": values}, schema="a int, A int, a_2 int")
    names = [
        line.split(" AS ")[1].strip(",`")
        for line in pv.open(tmp_path / "b.parquet").sql_view(engine="spark").split("\n")[1:-1]
    ]
    assert len({name.lower() for name in names}) == 3
    with pytest.raises(VariantError, match="shreds A and a"):
        pv.open(tmp_path / "b.parquet").sql_view()


@pytest.mark.spark
def test_spark_runs_the_view(files: Path, spark: Any) -> None:
    spark.sql(pv.open(files).sql_view(engine="spark", name="typed_view"))
    rows = spark.sql("SELECT day, a_id, `x y`, tags FROM typed_view ORDER BY day").collect()
    assert [tuple(row) for row in rows] == [(1, 1, "it's", ["p", "q"]), (2, 2, "b", [])]


def test_the_command_prints_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql-view", str(files), "-s", "$.a.id:int", "--engine", "spark"]) == 0
    assert "try_variant_get(v, '$[\\'a\\'][\\'id\\']', 'int') AS id" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda path: pv.open(path).sql_view({"a": "$.tags[*]:string"}), "cannot have"),
        (lambda path: pv.open(path).sql_view(engine="trino"), "duckdb or spark"),
        (lambda path: pv.open(path).sql_view(column="w"), "choose one with column=, from v"),
        (lambda path: pv.open(path / "nowhere").sql_view(), "does not exist"),
        (lambda path: pv.open(path).sql_view([]), "at least one column"),
        (lambda path: pv.open(path).sql_view(["id", "nope"]), "has no column"),
    ],
)
def test_what_makes_no_view(files: Path, make: Callable[[Path], str], wrong: str) -> None:
    with pytest.raises(VariantError, match=wrong):
        make(files)


@pytest.mark.parametrize("name", ["iceberg", "events.vortex", "events.ndjson", "events.csv"])
def test_other_formats_make_no_view(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    if name.endswith(("csv", "ndjson")):
        Path(path).write_text('{"a": 1}\n' if name.endswith("json") else "a\n1\n")
    else:
        pv.write(path, pv.parse_json(['{"a": 1}']), format="iceberg" if name == "iceberg" else "vortex")
    with pytest.raises(VariantError, match="a view needs Parquet files or a Delta table"):
        pv.open(path).sql_view()


def test_an_empty_key_has_a_name_that_engines_accept(tmp_path: Path) -> None:
    values = pv.parse_json([json.dumps({"": 1, "a": {"": 2}, "_": 3})] * 3)
    pv.write(tmp_path / "shredded.parquet", {"v": values}, schema="infer")
    pv.write(tmp_path / "plain.parquet", {"v": values})
    with pytest.raises(VariantError, match=r"DuckDB 2\.0 cannot read"):
        pv.open(tmp_path / "shredded.parquet").sql_view()
    statement = pv.open(tmp_path / "shredded.parquet").sql_view(engine="spark")
    assert [line.split(" AS ")[1].rstrip(",") for line in statement.splitlines()[1:-1]] == ["_", "__1", "a_"]
    with duckdb.connect() as connection:
        connection.execute(pv.open(tmp_path / "plain.parquet").sql_view({"x": "$['']:int", "y": "$.a['']:int"}))
        assert connection.sql("SELECT DISTINCT x, y FROM events").fetchall() == [(1, 2)]
    with pytest.raises(VariantError, match="empty name"):
        pv.open(tmp_path / "plain.parquet").sql_view({"": "$.a:int"})


def test_paths_that_differ_only_in_case_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"Id": 1, "id": 2, "o": {"X": 5, "x": 6}, "other": {"x": 1, "ID": 2}, "a\nB": 1, "a\nb": 1})
    schema = "Id bigint, o struct<X: bigint>, other struct<x: bigint>, `a\nB` bigint"
    path = tmp_path / "a.parquet"
    pv.write(path, {"v": pv.parse_json([text] * 3)}, schema=schema)
    statement = pv.open(path).sql_view()
    comments = [line for line in statement.splitlines() if line.startswith("--")]
    assert len(comments) == 3
    assert all(any(path in line for line in comments) for path in ("$['id']", "$['o']['x']", "$['a\\nb']"))
    with duckdb.connect() as connection:
        connection.execute(statement)
        assert connection.sql("DESCRIBE events").fetchall()
    assert main(["sql-view", str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("only in letter case") == 3
    assert shown.out == statement + ";\n"
    assert "--" not in pv.open(path).sql_view({"x": "$.Id:int"})


def test_reserved_words_are_quoted_in_views(tmp_path: Path) -> None:
    rows = pv.parse_json(['{"limit": 5, "end": 6, "kind": "a"}'])
    pv.write(
        tmp_path / "a.parquet", {"offset": [1], "order": [2], "v": rows}, schema="`limit` int, `end` int, kind string"
    )
    view = pv.open(tmp_path / "a.parquet").sql_view(name="table")
    connection = duckdb.connect()
    connection.execute(view)
    answer = connection.execute('SELECT "offset", "order", "limit", "end", kind FROM "table"').fetchall()
    assert answer == [(1, 2, 5, 6, "a")]


@pytest.mark.parametrize("source", [".", "*.parquet"])
def test_files_of_a_directory_may_lack_a_column(tmp_path: Path, source: str) -> None:
    """DuckDB takes the columns of the first file unless the statement asks for those of all files."""
    pv.write(tmp_path / "a.parquet", {"k": [1], "m": ["p"], "v": pv.parse_json(['{"s": 10}'])})
    pv.write(tmp_path / "b.parquet", {"n": [5], "k": [2], "v": pv.parse_json(['{"s": 20}'])}, schema="infer")
    columns = {"k": "k", "m": "m", "n": "n", "s": "$.s:int"}
    with duckdb.connect() as connection:
        connection.execute(pv.open(tmp_path / source).sql_view(columns))
        rows = connection.sql("SELECT k, m, n, s FROM events ORDER BY k").fetchall()
    assert rows == [(1, "p", None, 10), (2, None, 5, 20)]
