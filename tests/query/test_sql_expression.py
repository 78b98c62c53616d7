"""SQL expressions over Variant paths: what is read of them, what is pushed down, and that both mean the same."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.query.predicate import bind, evaluate
from parquet_variant.query.rewriting.expressions import ExpressionRewriter
from parquet_variant.query.rewriting.scopes import Relation, Scope, TableUse
from parquet_variant.query.rewriting.values import QueryContext
from parquet_variant.query.selection import TableColumns, TableFacts
from parquet_variant.query.sql_dialect import SqlError, parse_sql, sql_type_named, to_sql
from parquet_variant.query.sql_expression import read_expression, run_sql


def term(text: str, engine: Any = "duckdb") -> tuple[str, str] | None:
    uses = [TableUse(0, TableFacts.of(TableColumns(["v"], {"x": pa.list_(pa.int64())})), "")]
    scope = Scope({}, relations=[Relation("t", use.output_columns(), use) for use in uses])
    found = ExpressionRewriter(QueryContext(engine, "UTC"), scope).expression(
        parse_sql(text, engine, what="expression")
    )
    return found.term and (str(found.term.path), str(found.term.type))


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("v:a.b[0]::string", "$['a']['b'][0]", "string"),
        ("v['a']", "$['a']", "None"),
        ("v['a.b'][3]:c::int", "$['a.b'][3]['c']", "int32"),
        ("t.v:a['x y'].c", "$['a']['x y']['c']", "None"),
        ('v:"a b".`c d`', "$['a b']['c d']", "None"),
        ("v:[0].c::decimal(9, 2)", "$[0]['c']", "decimal128(9, 2)"),
        ("v:select.from.order", "$['select']['from']['order']", "None"),
        ("v:items[*].n::array<int>", "$['items'][*]['n']", "int32"),
        ("variant_get(v, '$.a', 'int8')", "$['a']", "int64"),
        ("try_variant_get(v:x, '$[0]')", "$['x'][0]", "None"),
        ("CAST(v:a AS struct<x: int, y array<text>>)", "$['a']", "struct<x: int32, y: list<element: string>>"),
        ("TRY_CAST((v:a) AS timestamp)", "$['a']", "timestamp[us, tz=UTC]"),
        ("v:a::timestamp_ntz", "$['a']", "timestamp[us]"),
        ("v:a?::long", "$['a']", "int64"),
        ("v::string", "$", "string"),
        ("v:a::decimal", "$['a']", "decimal128(10, 0)"),
        ("V:A", "$['A']", "None"),
    ],
)
def test_paths_and_types(text: str, path: str | None, kind: str | None, engine: Any) -> None:
    assert term(text, engine) == (None if path is None else (path, kind))


def test_an_expression_that_is_not_a_path_stays_the_engines() -> None:
    for text in ("x[1:2]", "{'a': 1}", "LIST_TRANSFORM([1], LAMBDA x : x + 1)", "[1, 2][1]", "COUNT(DISTINCT a)"):
        assert to_sql(parse_sql(text, what="expression")) == text
    assert term("v:['it''s']") == ("$['it\\'s']", "None")
    assert term("v:a::string::int") is None  # the outer cast is the engine's


def test_functions_of_spark_take_its_patterns_of_dates() -> None:
    texts = {
        "date_format(t, 'yyyy-MM')": "STRFTIME(CAST(t AS TIMESTAMP), '%Y-%m')",
        "to_date(s, 'yyyyMMdd')": "CAST(STRPTIME(s, '%Y%m%d') AS DATE)",
        "from_unixtime(n, 'HH:mm')": "STRFTIME(TO_TIMESTAMP(n), '%H:%M')",
    }
    assert {text: to_sql(parse_sql(text, what="expression")) for text in texts} == texts


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("v:a..b = 1", "a key is expected"),
        ("v:items[-1]::int = 1", "count from 0"),
        ("v:a::nope = 1", "unknown type nope: use boolean"),
        ("v:items[*].n::int = 1", "cast it to array<type>"),
        ("v:a + 1 = 2", "v:a is a Variant"),
        ("nope = 1", "column nope: choose from v, n, s"),
        ("n = (SELECT 1)", "read other rows"),
        ("sum(n) OVER () > 1", "read other rows"),
        ("n = 1; DROP TABLE t", "invalid SQL"),
        ("n = 'a", "quote"),
        ("", "empty"),
        ("variant_get(v, n) = 1", "both in quotes"),
        ("v['a', 'b'] IS NULL", "subscript of a Variant"),
        ("(" * 3000, "nested"),
    ],
)
def test_errors_speak_of_the_text(text: str, wrong: str) -> None:
    with pytest.raises(VariantError, match=r".*" + wrong.replace("[", r"\[").replace("*", r"\*").replace("(", r"\(")):
        read_expression(text, {"t": TableColumns(["v"], {"n": pa.int64(), "s": pa.string()})})


def test_two_tables() -> None:
    tables = {"t": TableColumns(["v"], {"id": pa.int64()}), "s": TableColumns(["v"], {"id": pa.int64()})}
    found = read_expression("t.v:k::int = s.id AND s.v:n::int > 3", tables)
    assert {table: len(columns) for table, columns in found.columns.items()} == {"t": 1, "s": 2}
    assert set(found.pushdown) == {"s"}
    with pytest.raises(SqlError, match="id is ambiguous"):
        read_expression("id = 1", tables)


ROWS = [
    '{"i": 1, "d": 0.1, "s": "a", "b": true, "day": "2024-01-31", "at": "2024-01-31T10:00:00Z", "f": 0.1}',
    '{"i": -5, "d": 2.50, "s": "its", "b": false, "day": "2023-12-31", "at": "1969-12-31T23:59:59Z", "f": 1e300}',
    '{"i": 9007199254740993, "d": 100, "s": "ab%", "day": "x", "f": -0.0}',
    '{"i": null, "s": ""}',
    '{"i": 2, "d": 5.55, "s": "A\\nb", "b": true, "f": 3.4028235e38}',
    "null",
    "[1]",
]
CONDITIONS = [
    "v:i::bigint > 1",
    "v:i::bigint = 9007199254740992e0",
    "1 < v:i::bigint",
    "v:i::bigint <> 1.5",
    "NOT (v:i::bigint >= 1.5 OR v:s::string = 'a')",
    "v:i::bigint NOT IN (1, 2)",
    "v:i::bigint IN (1, NULL)",
    "v:i::bigint BETWEEN -5 AND 1",
    "v:i::bigint NOT BETWEEN -5 AND 1",
    "v:i::bigint IS NULL",
    "v:i::bigint IS NOT NULL AND v:d::double < 5.6",
    "v:d::decimal(9, 2) = 2.5",
    "v:d::decimal(9, 2) > 0.099999",
    "v:d::decimal(9, 2) < 1e-1",
    "v:d::double = 0.1",
    "v:f::float = 0.1",
    "v:f::float > 0.5",
    "v:f::double = 0",
    "v:s::string LIKE 'a%'",
    "v:s::string LIKE '%\\%'",
    "v:s::string NOT LIKE '%b%'",
    "v:s::string > 'a'",
    "v:b::boolean",
    "NOT v:b::boolean",
    "v:b::boolean = true OR v:i::bigint = 2",
    "v:day::date >= DATE '2024-01-01'",
    "v:at::timestamp < TIMESTAMP '1970-01-01 00:00:00'",
    "v:at::timestamp > '2000-01-01'",
    "v:i::int8 = 1 AND length(v:s::string) = 1",
    "CASE WHEN v:i::bigint = 1 THEN true ELSE v:b::boolean END",
    "(v:i::bigint, v:s::string) = (1, 'a')",
    "n % 2 = 0 AND v IS NOT NULL",
    "v:s::string = NULL",
    "v:s::string LIKE 'x%' ESCAPE 'x'",
    "v:s::string LIKE ANY ('a%', '%b')",
    "v:i::bigint BETWEEN SYMMETRIC 1 AND -5",
    "v:i::bigint IS DISTINCT FROM 1",
    "v:b::boolean IS NOT TRUE",
    "v:i::bigint = ANY([1, 2])",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_is_pushed_down_loses_no_row(condition: str) -> None:
    values = pv.parse_json(ROWS)
    found = read_expression(condition, {"t": TableColumns(["v"], {"n": pa.int64()})})
    columns = {
        name: pa.array(range(len(ROWS)), pa.int64())
        if need.path is None
        else values.storage if need.type is None
        else pv.variant_get(values, need.path, need.type, errors="null")
        for name, need in found.columns["t"].items()
    }  # fmt: skip
    table = pa.table(columns)
    answer = run_sql(f"SELECT ({found.text}) AS c FROM t", {"t": table})["c"].to_pylist()
    predicate = found.pushdown.get("t")
    if predicate is not None:
        bound = bind(predicate, {name: table.schema.field(name).type for name in table.column_names})
        kept = evaluate(bound, table).to_pylist()
        assert all(keep is True for keep, take in zip(kept, answer, strict=True) if take)


@pytest.mark.parametrize("condition", [item for item in CONDITIONS if "e0" not in item][:12])
def test_simple_comparisons_are_pushed_down(condition: str) -> None:
    found = read_expression(condition, {"t": TableColumns(["v"])})
    assert "t" in found.pushdown


@pytest.mark.parametrize("name", ["bool", "text", "int8", "array<map<string, double>>", "int[][]", "timestamp_nanos"])
def test_names_of_types(name: str) -> None:
    assert isinstance(sql_type_named(name), pa.DataType)
    assert sql_type_named("variant") is None
    assert sql_type_named("int8") == pa.int64()


def test_a_compiled_sqlglot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlglot.parser.__file__", "/site-packages/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(VariantError, match="pip uninstall sqlglotc") as caught:
        parse_sql("SELECT v:text_that_no_other_test_has_parsed FROM t")
    assert caught.value.reason == "no-engine"


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_functions_over_variants_in_updates_conditions_and_merges(tmp_path, format):
    pytest.importorskip("duckdb", minversion="2", reason="Variants of SQL values need DuckDB 2")
    if format == "iceberg":
        pytest.importorskip("fastavro")
    values = pv.parse_json(['{"a": 1}', '{"a": "x"}', "{}"])
    pv.write(
        tmp_path / "t", {"k": pa.array([1, 2, 3]), "s": pa.array(['{"x": 1}', "bad", None]), "v": values}, format=format
    )
    table = pv.open(tmp_path / "t")
    table.update({"v": "try_parse_json(s)"}, "k = 1")
    table.update({"v": "parse_json('{\"q\": [1]}')"}, "k = 2")
    table.update({"v": "variant_set(v, '$.n', k)"})
    table.update({"v": "variant_delete(v, '$.n')"}, "variant_type(v:q) = 'array'")
    table.update({"v:z": "to_variant_object({'d': DATE '2024-01-02'})"}, "variant_array_length(v:q) = 1")
    table.update({"k": "parse_json(s):x::bigint + 10"}, "is_variant_null(try_parse_json(s):y) OR k = 1")
    source = pa.table({"k": [2, 9], "j": ['{"m": 1}', '{"n": 2}']})
    merge = table.merge(source, "target.k = source.k").when_matched_update({"v:m": "parse_json(source.j):m"})
    merge.when_not_matched_insert(
        {"k": "source.k", "v": "variant_set(parse_json(source.j), '$.k', source.k)"}
    ).execute()
    found = pv.sql("SELECT k, v FROM t ORDER BY k", t=pv.open(tmp_path / "t")).to_pylist()
    assert {row["k"]: json.loads(row["v"]) for row in found} == {
        2: {"q": [1], "z": {"d": "2024-01-02"}, "m": 1}, 3: {"n": 3}, 9: {"n": 2, "k": 9}, 11: {"x": 1, "n": 1},
    }  # fmt: skip
    with pytest.raises(pv.VariantError, match="unexpected 'bad'"):
        table.update({"v": "parse_json(s)"}, "s = 'bad'")
    with pytest.raises(pv.VariantError, match="unknown function variant_sett: did you mean variant_set"):
        table.update({"v": "variant_sett(v, '$.a', 1)"})
