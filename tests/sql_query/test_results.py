"""Results: their forms, hints about paths, files in FROM, and errors of the engine in plain words."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

import parquet_variant as pv
from parquet_variant.errors import VariantError

EVENTS = pv.parse_json(['{"properties": {"mag": 1.5, "place_name": "x"}, "id": "<b>"}'] * 3)


def test_a_notebook_shows_a_table() -> None:
    html = pv.sql(
        "SELECT v:id::string AS \"a<b\", DATE '10000-01-01' AS d, NULL AS n FROM t LIMIT 1", t=EVENTS
    )._repr_html_()
    assert html == (
        "<table><thead><tr><th>a&lt;b</th><th>d</th><th>n</th></tr></thead>"
        "<tbody><tr><td>&lt;b&gt;</td><td>10000-01-01</td><td>NULL</td></tr></tbody></table>"
    )
    assert "21 rows" in pv.sql("SELECT * FROM range(21)")._repr_html_()


@pytest.mark.parametrize(
    ("query", "hints"),
    [
        ("SELECT v:properties.mag FROM t", []),
        ("SELECT v:propertes.mag FROM t", ["v:properties.mag"]),
        (
            "SELECT v:properties.Mag::double, v:properties.placename FROM t",
            ["v:properties.mag", "v:properties.place_name"],
        ),
        ("SELECT count(*) AS n, v:id FROM t WHERE v:proprties.mag::double > 1 GROUP BY v:id", ["v:properties.mag"]),
        ("SELECT v:zzz FROM t", ["no object has the key 'zzz'"]),
        ("SELECT v:properties.mag::int FROM t WHERE v:id::string = 'nobody'", []),
    ],
)
@pytest.mark.parametrize("layout", ["arrow", "shredded", "unshredded", "delta"])
def test_paths_that_no_row_has_are_corrected(layout: str, query: str, hints: list[str], tmp_path: Path) -> None:
    table = {"arrow": EVENTS, "delta": tmp_path / "t"}.get(layout, tmp_path / "a.parquet")
    if layout == "delta":
        pv.write(table, EVENTS, format="delta")
    elif layout != "arrow":
        pv.write(table, EVENTS, **({"schema": "infer"} if layout == "shredded" else {}))
    warnings = pv.sql(query, t=table).warnings
    assert len(warnings) == len(hints)
    assert all(hint in warning for hint, warning in zip(sorted(hints), sorted(warnings), strict=True))


def test_csv_files_are_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name,json\n1,"a\nb","{""k"": 5}"\n2,c,\n')
    query = f"SELECT sum(id) AS s, max(parse_json(json):k::int) AS k, min(name) AS n FROM '{tmp_path}/a.csv'"
    assert pv.sql(query).to_pylist() == [{"s": 3, "k": 5, "n": "a\nb"}]
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"id\tx\n1\t2.5\n"))
    assert pv.sql("SELECT x FROM t", t=tmp_path / "b.tsv.gz").to_pylist() == [{"x": 2.5}]
    with pytest.raises(VariantError, match="as CSV"):
        (tmp_path / "c.csv").write_text("")
        pv.sql("SELECT * FROM t", t=tmp_path / "c.csv")


def test_a_function_over_the_wrong_type_is_explained() -> None:
    with pytest.raises(VariantError, match=r"sum does not accept VARCHAR.*::double"):
        pv.sql("SELECT sum(name) FROM t", t=pa.table({"name": ["a"]}))


def test_the_parts_of_a_long_result_share_row_groups_of_a_parquet_file(tmp_path: Path) -> None:
    tables = {name: pa.table({"n": range(rows)}) for name, rows in (("a", 600), ("b", 2000))}
    query = f"COPY (SELECT a.n * 2000 + b.n AS n FROM a, b) TO '{tmp_path}/a.parquet'"
    assert pv.sql(query, **tables).to_pylist() == [{"Count": 1_200_000}]
    written = pq.ParquetFile(tmp_path / "a.parquet")
    assert written.num_row_groups == 1
    assert set(written.read()["n"].to_pylist()) == set(range(1_200_000))
    for condition, rows in (("true", 3), ("false", 0)):
        pv.sql(f"COPY (SELECT v FROM t WHERE {condition}) TO '{tmp_path}/{rows}.parquet'", t=EVENTS)
        assert len(pv.open(tmp_path / f"{rows}.parquet").read()) == rows


def test_bytes_floats_and_intervals_in_files(tmp_path: Path) -> None:
    table = pa.table({"b": [b"a\n", None], "f": pa.array([0.1, 1e-7], pa.float32())})
    pv.sql(f"COPY (SELECT * FROM t) TO '{tmp_path}/a.csv'", t=table)
    assert (tmp_path / "a.csv").read_text() == '"b","f"\n"YQo=",0.1\n,1e-7\n'
    pv.sql(f"COPY (SELECT * FROM t) TO '{tmp_path}/a.ndjson'", t=table)
    assert (tmp_path / "a.ndjson").read_text() == '{"b":"YQo=","f":0.1}\n{"b":null,"f":1.0E-7}\n'
    with pytest.raises(VariantError, match="cast it"):
        pv.sql(f"COPY (SELECT INTERVAL 1 DAY AS i) TO '{tmp_path}/a.parquet'")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.ndjson"]


def test_intervals_are_written_as_duckdb_writes_them(tmp_path: Path) -> None:
    moments = [(0, 0, 0), (1, 1, 1), (-13, -1, -3_661_000_000), (25, 40, 500_000), (0, 0, 360_000_000_001)]
    values = [f"to_months({m}) + to_days({d}) + to_microseconds({us})" for m, d, us in moments]
    texts = [
        row[0] for row in duckdb.sql(" UNION ALL ".join(f"SELECT ({value})::varchar" for value in values)).fetchall()
    ]
    query = " UNION ALL ".join(f"SELECT {value} AS i, [{value}] AS l" for value in values)
    pv.sql(f"COPY ({query}) TO '{tmp_path}/a.ndjson'")
    rows = [json.loads(line) for line in (tmp_path / "a.ndjson").read_text().splitlines()]
    assert rows == [{"i": text, "l": [text]} for text in texts]


def test_copy_writes_a_file_and_counts_rows(tmp_path: Path) -> None:
    path = tmp_path / "it's.csv"
    quoted = str(path).replace("'", "''")
    assert pv.sql(f"COPY (SELECT v:id FROM t) TO '{quoted}'", t=EVENTS).to_pylist() == [{"Count": 3}]
    assert path.read_text() == '"id"\n' + '"<b>"\n' * 3
    assert pv.sql(f"copy (select 1 as a) to '{tmp_path}/x' (format ndjson);").to_pylist() == [{"Count": 1}]
    assert (tmp_path / "x").read_text() == '{"a":1}\n'
    for options, text in {
        "(HEADER, DELIMITER ';')": '"a";"b"\n1;"x;y"\n',
        "WITH (FORMAT CSV, HEADER false, DELIM '|')": '1|"x;y"\n',
        "(format 'csv', header 'true', sep '\\t')": '"a"\t"b"\n1\t"x;y"\n',
        "(header off)": '1,"x;y"\n',
    }.items():
        pv.sql(f"COPY (SELECT 1 AS a, 'x;y' AS b) TO '{tmp_path}/y.csv' {options}")
        assert (tmp_path / "y.csv").read_text() == text
    assert pv.sql(f"COPY t TO '{tmp_path}/z.ndjson'", t=EVENTS).to_pylist() == [{"Count": 3}]
    for wrong in (
        "COPY t TO",
        "COPY (SELECT 1) TO 'a.xyz'",
        "COPY (SELECT 1) TO 'a.csv' (HEADER maybe)",
        "COPY (SELECT 1) TO 'a.csv' (DELIMITER ';;')",
        "COPY (SELECT 1) TO 'a.csv' (PARTITION_BY (a))",
        "COPY (SELECT 1) TO 'a.csv' (DELIMITER 'é')",
        "COPY (SELECT 1) TO 'a.parquet' (HEADER)",
        "COPY (DROP TABLE t) TO 'a.csv'",
    ):
        with pytest.raises(VariantError):
            pv.sql(wrong, t=EVENTS)


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
def test_copy_does_not_replace_a_data_file_of_a_table(tmp_path: Path, format: str) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n')
    table = tmp_path / "t"
    pv.ingest(tmp_path / "a.ndjson", table, format=format)
    data = next(path for path in table.rglob("*") if path.suffix in (".parquet", ".vortex") and path.is_file())
    before, files = data.read_bytes(), f"{data.parent}/*{data.suffix}"
    queries = [(f"SELECT * FROM '{table}'", table), ("SELECT v FROM t", table), ("SELECT 1", table)]
    if format in ("parquet", "vortex"):
        queries += [("SELECT v FROM t", source) for source in (files, f"{tmp_path}/t*/*{data.suffix}")]
        queries += [("SELECT v FROM t", source) for source in ([data], f"file://{table}") if format == "parquet"]
    for query, source in queries:
        with pytest.raises(pv.VariantError, match=r"is inside the table|is a file that the query reads"):
            pv.sql(f"COPY ({query}) TO '{data}' (FORMAT parquet)", t=source)
    assert data.read_bytes() == before


def test_copy_does_not_replace_the_file_that_it_reads_and_names_a_missing_directory(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n')
    with pytest.raises(pv.VariantError, match="is a file that the query reads"):
        pv.sql(f"COPY (SELECT v FROM '{source}') TO '{source}'")
    with pytest.raises(pv.VariantError, match=r"a\.csv: '.*missing' does not exist; create the directory"):
        pv.sql(f"COPY (SELECT 1) TO '{tmp_path}/missing/a.csv'")
    assert pv.sql(f"COPY (SELECT v FROM '{source}') TO '{tmp_path}/b.ndjson'").to_pylist() == [{"Count": 1}]


@pytest.mark.parametrize(
    "query", ["SELECT count(v:amont::int) FROM t", "SELECT count(*) FROM t WHERE v:amont::int = 1"]
)
def test_a_count_of_zero_names_a_misspelled_path(query: str, tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json(['{"amount": 1}']))
    hints = ("no row has the path v:amont: did you mean v:amount?",)
    assert tuple(pv.sql(query, t=tmp_path / "a.parquet").warnings) == hints
    assert not pv.sql(query.replace("amont", "amount"), t=tmp_path / "a.parquet").warnings


def test_keys_of_mongodb_need_no_quotes() -> None:
    rows = pv.parse_json(['{"_id": {"$oid": "a1"}, "$type": 2}'])
    answer = pv.sql("SELECT v:_id.$oid::string AS id, v:$type AS kind FROM t WHERE v:_id.$oid = 'a1'", t=rows)
    assert answer.to_pylist() == [{"id": "a1", "kind": 2}]


@pytest.mark.parametrize("call", ["flatten(v, recursive => true)", "flatten(v:a, mode => 'x')", "flatten(v:a, n => 1)"])
def test_an_unknown_option_of_flatten_is_named(call: str) -> None:
    with pytest.raises(VariantError, match=r"flatten has no option (recursive|mode|n): write"):
        pv.sql(f"SELECT * FROM t, LATERAL {call} f", t=pv.parse_json(['{"a": [1]}']))


@pytest.mark.parametrize("query", [42, None, b"SELECT 1"])
def test_sql_that_is_not_a_string(query: Any) -> None:
    with pytest.raises(VariantError, match=r"the SQL is of type (int|NoneType|bytes): write a string"):
        pv.sql(query)


def test_lists_of_objects_and_lazy_frames_are_rows(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": "x"}]
    assert pv.sql("SELECT to_json(v:a) AS a FROM t", t=rows).to_pylist() == [{"a": "1"}, {"a": '"x"'}]
    pv.write(tmp_path / "a.parquet", rows)
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == pv.open(rows).read().to_pylist() == rows
    with pytest.raises(VariantError, match=r"column 'v' .*from_python"):
        pv.write(tmp_path / "b.parquet", {"v": rows})
    polars = pytest.importorskip("polars")
    assert pv.sql("SELECT a + 1 AS b FROM t", t=polars.LazyFrame({"a": [1]})).to_pylist() == [{"b": 2}]


def test_sums_of_integers_are_integers_of_python_and_pandas():
    events = pv.parse_json(
        ['{"k": "a", "n": 1}', '{"k": "a", "n": -7}', '{"k": "b", "n": 9223372036854775807}', '{"k": "c"}']
    )
    result = pv.sql("SELECT v:k AS k, sum(v:n) AS s, sum(v:n::bigint) AS t FROM e GROUP BY 1 ORDER BY 1", e=events)
    assert result.schema.types[1:] == [pa.decimal128(38, 0)] * 2  # as DuckDB's Arrow tables
    assert json.dumps(result.to_pylist()[1:]) == json.dumps(
        [{"k": "b", "s": 2**63 - 1, "t": 2**63 - 1}, {"k": "c", "s": None, "t": None}]
    )
    total = pv.sql("SELECT sum(v:n) AS s FROM e WHERE v:k = 'a'", e=events).to_pandas()
    assert total["s"].dtype == "int64" and total.to_json(orient="records") == '[{"s":-6}]'
    wide = pv.sql("SELECT sum(v:n) AS s, 1::decimal(38, 0) AS d FROM e WHERE v:n > 0", e=events)
    assert wide.to_pylist() == [{"s": 2**63, "d": 1}]
    assert isinstance(wide.to_pylist()[0]["d"], Decimal)
