"""Functions over Variants, and tables, in a DuckDB connection of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import parquet_variant as pv

# Before version 2, DuckDB does not exchange its VARIANTs with Arrow.
IS_EARLIER = int(duckdb.__version__.split(".")[0]) < 2
needs_variants = pytest.mark.skipif(IS_EARLIER, reason="needs DuckDB 2")
TEXTS = ['{"n": 1, "at": {"x": 5}, "l": [1]}', '{"n": 2.50, "s": "é"}', "[1, null]", "null", None]


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as connection:
        pv.duckdb.register(connection, events=pv.parse_json(TEXTS))
        yield connection


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("variant_get(v, '$.at.x')::int", [5, None, None, None, None], marks=needs_variants),
        ("variant_get_int(variant_get(v, '$.at'), '$.x')", [5, None, None, None, None]),
        ("try_variant_get_int(v, '$.s')", [None, None, None, None, None]),
        ("variant_get_double(v, '$.n')", [1.0, 2.5, None, None, None]),
        pytest.param(
            "try_variant_set(v, '$.at.x', 7::variant).at.x::int", [7, 7, None, None, None], marks=needs_variants
        ),
        ("variant_get_int(try_variant_set(v, '$.at.x', parse_json('7')), '$.at.x')", [7, 7, None, None, None]),
        ("is_variant_null(v)", [False, False, False, True, False]),
        ("schema_of_variant(v)", pv.schema_of_variant(pv.parse_json(TEXTS)).to_pylist()),
        ("variant_get_int(variant_delete(v, '$.n'), '$.n') IS NULL", [True] * 5),
    ],
)
def test_functions(connection: Any, call: str, expected: list[Any]) -> None:
    assert [value for (value,) in connection.sql(f"SELECT {call} FROM events").fetchall()] == expected


@needs_variants
def test_paths_of_rows(connection: Any) -> None:
    paths = "(VALUES ('$.n'), ('$.at.x'), (NULL)) paths(p)"
    found = connection.sql(f"SELECT variant_get(v, p)::int FROM events, {paths} WHERE v.at IS NOT NULL").fetchall()
    assert sorted(found, key=str) == [(1,), (5,), (None,)]


@needs_variants
def test_values_come_back_as_they_were(connection: Any, tmp_path: Path) -> None:
    connection.sql(
        "CREATE TABLE parsed AS SELECT parse_json(text) AS v FROM (VALUES ('{\"a\": [1, 2.50]}'), (NULL)) t(text)"
    )
    assert connection.sql("SELECT typeof(v), v.a[2]::decimal(5, 2) FROM parsed").fetchall()[0] == (
        "VARIANT",
        pytest.approx(2.5),
    )
    connection.sql(f"COPY (SELECT variant_strip_nulls(v) AS v FROM parsed) TO '{tmp_path}/a.parquet'")
    assert pv.to_json(pv.open(f"{tmp_path}/a.parquet").read()).to_pylist() == ['{"a":[1,2.5]}', None]


@needs_variants
def test_tables_are_read_again_by_each_query(connection: Any, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"id": [1], "v": pv.parse_json(['{"a": 1}'])}, format="delta")
    table = pv.open(tmp_path / "t")
    pv.duckdb.register(connection, t=table, ids=table.scan(["id"]))
    assert connection.sql("SELECT count(*) FROM t JOIN ids USING (id)").fetchall() == [(1,)]
    assert connection.sql("SELECT sum(v.a::int) FROM t").fetchall() == [(1,)]


@needs_variants
def test_functions_of_duckdb_stay(connection: Any) -> None:
    assert connection.sql("SELECT variant_keys('{}'::json::variant), to_json([1])").fetchall() == [([], "[1]")]
    assert pv.duckdb.register(connection) == []


def test_errors_say_what_is_wrong(connection: Any) -> None:
    with pytest.raises(duckdb.Error, match="cannot cast string"):
        connection.sql("SELECT variant_get_int(v, '$.s') FROM events").fetchall()


def test_variants_are_never_other_values_before_duckdb_2(connection: Any) -> None:
    (kinds,) = connection.sql(
        "SELECT typeof(parse_json('1')), typeof(variant_get(v, '$')) FROM events LIMIT 1"
    ).fetchall()
    assert set(kinds) == ({'STRUCT(metadata BLOB, "value" BLOB)'} if IS_EARLIER else {"VARIANT"})


def test_a_scan_in_a_python_variable_is_a_table() -> None:
    scan = pv.open(pv.parse_json(TEXTS)).scan({"n": "$.n:double"}, "n > 1")  # noqa: F841 - DuckDB finds it
    for _ in range(2):
        assert duckdb.sql("SELECT n FROM scan").fetchall() == [(2.5,)]


@pytest.mark.parametrize("where", ["lower(v:s) = 'é'", "contains(v:s, 'é') AND v:n > 1"])
def test_a_scan_with_a_filter_in_sql_in_a_query_of_the_default_connection(where: str) -> None:
    scan = pv.open(pv.parse_json(TEXTS)).scan({"n": "$.n:double"}, where)
    assert scan.schema.names == ["n"]
    assert duckdb.sql("SELECT sum(n) FROM scan").fetchall() == [(2.5,)]
    assert duckdb.sql("SELECT n FROM scan WHERE n > 2").fetchall() == [(2.5,)]
