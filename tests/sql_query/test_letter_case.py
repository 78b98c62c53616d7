"""Keys, columns and names that differ by the case of letters alone, which the engines do not tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.errors import VariantError

ROWS = ('{"a": 1, "A": 20, "\u00e9": 3, "\u00c9": 4, "o": {"x": 5, "X": 6}}', '{"a": 2, "A": 10, "o": {"x": 7}}')


@pytest.fixture(scope="module", params=["arrow", "whole", "shredded", "delta", "vortex"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    values = {"k": pa.array([1, 2]), "v": pv.parse_json(list(ROWS))}
    if request.param == "arrow":
        return values
    path = tmp_path_factory.mktemp("case") / {"delta": "t", "vortex": "t.vortex"}.get(request.param, "t.parquet")
    if request.param in ("delta", "vortex"):
        pv.write(path, values, format=request.param)
    else:
        pv.write(path, values, **({"schema": "infer"} if request.param == "shredded" else {}))
    return path


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT v:a::int, v:A::int FROM t", [(1, 20), (2, 10)]),
        ("SELECT v:A::int, v:a::int FROM t", [(20, 1), (10, 2)]),
        (
            "SELECT v:A::variant, v:a::variant, v:o.X::variant, v:o.x::int FROM t",
            [("20", "1", "6", 5), ("10", "2", None, 7)],
        ),
        ("SELECT v:\u00e9::int, v:\u00c9::int FROM t WHERE k = 1", [(3, 4)]),
        ("SELECT v:A::int - v:a::int AS d FROM t", [(19,), (8,)]),
        ("SELECT k FROM t WHERE v:a::int = 1 AND v:A::int = 20", [(1,)]),
        ("SELECT k FROM t WHERE v:A::int = 1 OR v:a::int = 20", []),
        ("SELECT v:a::int, v:A::int FROM t ORDER BY A", [(2, 10), (1, 20)]),
        ("SELECT v:a::int, v:A::int, count(*) FROM t GROUP BY A, a ORDER BY a", [(1, 20, 1), (2, 10, 1)]),
        ("SELECT x:A::int, x:a::int FROM (SELECT v AS x, k FROM t) WHERE x:A::int > 10", [(20, 1)]),
        ("SELECT s.v:a::int FROM t JOIN t s ON t.v:A::int = s.v:a::int * 10 ORDER BY 1", [(1,), (2,)]),
    ],
)
def test_keys(table: Any, query: str, rows: list[Any]) -> None:
    assert [tuple(row) for row in zip(*pv.sql(query, t=table).to_arrow().to_pydict().values(), strict=True)] == rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT A FROM (SELECT v:a::int, v:A::int FROM t)",
        "SELECT * EXCLUDE (a) FROM (SELECT v:a::int, v:A::int FROM t)",
        "SELECT v:a::int, v:A::int FROM t GROUP BY ALL HAVING A > 1",
        "SELECT v::struct<a: int, A: int> FROM t",
        "SELECT a, A FROM u",
        "SELECT * FROM u WHERE A > 1",
        "SELECT x.A FROM u x JOIN u y ON x.a = y.A",
    ],
)
def test_names_that_engines_take_for_the_same_are_refused(query: str) -> None:
    u = pa.table({"a": [1], "A": [2]})
    with pytest.raises(VariantError, match="SQL ignores"):
        pv.sql(query, t=pv.parse_json(list(ROWS)), u=u)


def test_one_of_them_alone_is_answered() -> None:
    u = pa.table({"a": [1], "A": [2], "b": [3]})
    assert pv.sql("SELECT A, b FROM u WHERE A = 2", u=u).to_pylist() == [{"A": 2, "b": 3}]
    assert list(pv.sql("SELECT * FROM u", u=u).to_pylist()[0].values()) == [1, 2, 3]


def test_tables() -> None:
    one = pa.table({"a": [1]})
    with pytest.raises(VariantError, match="t and T"):
        pv.sql("SELECT * FROM t", t=one, T=one)


def test_conditions_of_changes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    pv.write(path, {"k": pa.array([1, 2]), "v": pv.parse_json(list(ROWS))}, format="delta")
    pv.open(path).delete("v:a::int + v:A::int = 21")
    assert pv.sql("SELECT k FROM t", t=path).to_pylist() == [{"k": 2}]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", None])
def test_fields_inside_objects_that_differ_in_letter_case_are_both_typed_columns(tmp_path, format):
    lines = ['{"o": {"a": 1, "A": 2}, "n": 5}', '{"o": {"a": 3, "A": 4}, "n": 6}']
    table = pv.parse_json(lines)
    if format is not None:
        (tmp_path / "a.ndjson").write_text("\n".join(lines))
        table = tmp_path / "t"
        pv.ingest(tmp_path / "a.ndjson", table, format=format)
    rows = pv.sql('SELECT o_a, "o_A_1", n FROM typed(t) ORDER BY n', t=table).to_pylist()
    assert rows == [{"o_a": 1, "o_A_1": 2, "n": 5}, {"o_a": 3, "o_A_1": 4, "n": 6}]
