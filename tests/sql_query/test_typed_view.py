"""`typed`: one column per shredded path, with short names, over every kind of table."""

from __future__ import annotations

import json
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
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.sql_query.typed_view import typed_paths

ROWS = [
    {
        "kind": f"k{n % 3}",
        "mag": n + 0.5,
        "user": {"id": n},
        "dev": {"id": f"x{n}"},
        "tags": ["a"],
        "maybe": n % 2 or None,
    }
    for n in range(30)
]


@pytest.fixture(params=["arrow", "unshredded", "shredded", "delta"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    columns = {"day": pa.array([1] * 30), "v": pv.parse_json([json.dumps(row) for row in ROWS])}
    if request.param == "arrow":
        return columns
    if request.param == "delta":
        pv.write(tmp_path / "t", columns, format="delta")
        return tmp_path / "t"
    pv.write(tmp_path / "a.parquet", columns, **({"schema": "infer"} if request.param == "shredded" else {}))
    return tmp_path / "a.parquet"


def test_columns_and_rows(table: Any) -> None:
    view = pv.open(table).typed()
    assert view.column_names == ["day", "dev_id", "kind", "mag", "maybe", "tags", "user_id"]
    first = {"day": 1, "dev_id": "x0", "kind": "k0", "maybe": None, "tags": ["a"], "user_id": 0}
    row = view.to_arrow().to_pylist()[0]
    assert float(row.pop("mag")) == 0.5
    assert row == first
    assert pa.table(view).schema == view.schema
    assert view.explain() is not None
    assert "Scan of day, dev_id, kind, mag, maybe and 2 more" in repr(view)
    assert [row for part in view.batches() for row in part.to_pylist()] == view.to_arrow().to_pylist()


def test_in_sql(table: Any) -> None:
    query = "SELECT kind, max(user_id) AS m FROM typed(t) WHERE mag > 3 GROUP BY kind ORDER BY kind"
    assert pv.sql(query, t=table).to_pylist() == [{"kind": f"k{n}", "m": 27 + n} for n in range(3)]
    names = pv.sql("SELECT * FROM typed(t, names := 'path') LIMIT 0", t=table).column_names
    assert names == ["day", "dev_id", "kind", "mag", "maybe", "tags", "user_id"]
    described = pv.sql("DESCRIBE SELECT * FROM typed(t)", t=table).to_pylist()
    assert [column["column_name"] for column in described] == names
    joined = "SELECT count(*) AS n FROM typed(t) a JOIN typed(t) b ON a.user_id = b.user_id AND b.kind = 'k1'"
    assert pv.sql(joined, t=table).to_pylist() == [{"n": 10}]
    assert pv.sql("SELECT max(mag) > 29 AS x FROM v", v=pv.open(table).typed()).to_pylist() == [{"x": True}]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["$.a.id", "$.b.id", "$.id"], ["a_id", "b_id", "id"]),
        (["$.x.a.id", "$.y.a.id"], ["x_a_id", "y_a_id"]),
        (["$.x.a.n", "$.y.b.n", "$.y.b.m"], ["a_n", "m", "b_n"]),
        (["$.v", "$.a"], ["a", "v_1"]),
        (["$.ID", "$.u.id"], ["ID", "u_id"]),
        (["$['']", "$._"], ["_", "__1"]),
        (["$['a b'].c", "$.d.c"], ["a b_c", "d_c"]),
    ],
)
def test_names_are_the_shortest_that_are_clear(paths: list[str], names: list[str]) -> None:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        *parents, key = [str(segment) for segment in pv.VariantPath.parse(path).segments]
        for parent in parents:
            node = node.setdefault(parent, {})
        node[key] = "int"
    schema = ShreddingSchema.from_json(json.dumps(_object(tree)))
    assert sorted(selected.name for selected in typed_paths(schema, ["v"])) == sorted(names)


def _object(tree: Any) -> Any:
    return {"object": {key: _object(child) for key, child in tree.items()}} if isinstance(tree, dict) else tree


def test_files_with_different_schemas_are_one_view(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", {"v": pv.parse_json(['{"a": 1, "b": "x"}'])}, schema="a int, b string")
    pv.write(tmp_path / "b.parquet", {"v": pv.parse_json(['{"a": 5000000000, "c": 2}'])}, schema="a bigint, c int")
    rows = pv.sql("SELECT a, b, c FROM typed(t) ORDER BY a", t=tmp_path).to_pylist()
    assert rows == [{"a": 1, "b": "x", "c": None}, {"a": 5_000_000_000, "b": None, "c": 2}]


def test_a_view_for_duckdb_has_the_same_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pv.write(path, {"v": pv.parse_json([json.dumps(row) for row in ROWS])}, schema="infer")
    with duckdb.connect() as connection:
        connection.execute(pv.open(path).sql_view())
        assert connection.sql("SELECT * FROM events").columns == pv.open(path).typed().column_names


def test_the_command_prints_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.ndjson"
    path.write_text("\n".join(json.dumps(row) for row in ROWS))
    assert main(["schema", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["column", "type", "path"]
    assert ["user_id", "bigint", "$.user.id"] in [line.split() for line in lines]
    assert main(["schema", str(path), "--json", "--names", "path"]) == 0
    assert {"name": "user_id", "type": "bigint", "path": "$.user.id"} in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "query", ["SELECT 1 FROM typed()", "SELECT 1 FROM typed(1 + 1)", "SELECT 1 FROM typed(t, x := 1)"]
)
def test_wrong_arguments(query: str) -> None:
    with pytest.raises(VariantError, match="typed takes a table"):
        pv.sql(query, t=pv.parse_json(['{"a": 1}']))


def test_a_table_without_variants() -> None:
    with pytest.raises(VariantError, match="no Variant column"):
        pv.open(pa.table({"a": [1]})).typed()
    two = {"a": pv.parse_json(['{"x": 1}']), "b": pv.parse_json(['{"y": 1}'])}
    with pytest.raises(VariantError, match="choose one with column=, from a, b"):
        pv.open(two).typed()
    assert pv.open(two).typed(column="b").column_names == ["y"]


def _stored(values, layout, folder, schema="a bigint"):
    if layout == "memory":
        return values
    path = folder / {"json": "t.ndjson", "vortex": "t.vortex"}.get(layout, "t.parquet")
    if layout == "json":
        path.write_text("\n".join(pv.to_json(values).to_pylist()))
    else:
        pv.write(path, {"v": values}, schema=schema if layout == "shredded" else None)
    return path


@pytest.mark.parametrize("layout", ["memory", "json", "unshredded", "shredded"])
def test_every_field_of_the_first_level_is_a_column(tmp_path, layout):
    rows = [
        {"a": number, f"rare{number}": number, "map": {f"k{number}": 1}, "mixed": number % 2 or "x"}
        for number in range(400)
    ]
    source = _stored(pv.VariantArray.from_pylist(rows), layout, tmp_path)
    names = {"a", "map", "mixed", *(f"rare{number}" for number in range(400))}
    star = pv.sql("SELECT v.* FROM t", t=source).to_arrow()
    assert set(star.column_names) == names
    assert star["rare399"].to_pylist() == [None] * 399 + [399]
    typed = pv.sql("SELECT * FROM typed(t)", t=source).to_arrow()
    assert names - {"map"} <= set(typed.column_names)
    assert any(name in ("map", "k7") for name in typed.column_names)
    assert typed["rare399"].to_pylist() == [None] * 399 + [399]
    assert set(pv.open(source).typed().column_names) == set(typed.column_names)


@pytest.mark.parametrize("layout", ["memory", "json", "unshredded", "shredded"])
def test_keys_that_differ_only_in_case_are_two_columns(tmp_path, layout):
    source = _stored(pv.parse_json(['{"a": 1, "order": 1, "Order": 5}']), layout, tmp_path)
    assert pv.sql("SELECT v.* FROM t", t=source).to_pylist() == [{"a": 1, "order": 1, "Order_1": 5}]
    assert pv.sql('SELECT "order" FROM typed(t)', t=source).to_pylist() == [{"order": 1}]
    assert pv.sql("SELECT order_1 AS x FROM typed(t)", t=source).to_pylist() == [{"x": 5}]
    assert pv.open(source).typed().to_arrow().to_pylist() == [{"a": 1, "order": 1, "Order_1": 5}]
    assert pv.sql("SELECT * FROM (SELECT v.* FROM t)", t=source).to_pylist() == [{"a": 1, "order": 1, "Order_1": 5}]


@pytest.mark.parametrize("layout", ["memory", "json", "unshredded", "shredded", "vortex"])
def test_keys_of_a_nested_object_that_differ_only_in_case_are_two_columns(tmp_path, layout):
    rows = pv.parse_json(['{"b": {"k": 1, "K": 2}}', '{"b": {"k": 3}}'])
    source = _stored(rows, layout, tmp_path, "b struct<k bigint>")
    found = pv.sql("SELECT b_k, b_K_1 FROM typed(t)", t=source).to_pylist()
    assert found == [{"b_k": 1, "b_K_1": 2}, {"b_k": 3, "b_K_1": None}]


@pytest.mark.parametrize("layout", ["shredded", "vortex"])
def test_keys_of_any_characters_that_differ_only_in_case_are_two_columns(tmp_path, layout):
    keys = ["a\\b", "it's", 'q"r', "$['x']", "s:t", "u.v", "[w]", "y\x00z", "select", "`c`", "é"]
    values = {key: number for number, key in enumerate([*keys, *map(str.upper, keys)])}
    schema = ", ".join(f"`{key.replace('`', '``')}` bigint" for key in keys)
    source = _stored(pv.parse_json([json.dumps(values)]), layout, tmp_path, schema)
    assert sorted(pv.open(source).typed().to_arrow().to_pylist()[0].values()) == list(range(len(values)))


def test_fields_beyond_the_limit_are_counted_in_a_warning(monkeypatch):
    monkeypatch.setattr("parquet_variant.sql_query.tables.MOST_COLUMNS", 3)
    values = pv.parse_json(['{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}'])
    line = "v has 5 fields, and 2 of them are not among the columns: select e and others by name, or the whole v"
    for query in ("SELECT v.* FROM t", "SELECT * FROM typed(t)"):
        result = pv.sql(query, t=values)
        assert result.column_names[:3] == ["a", "b", "c"]
        assert result.warnings == (line,)
    with pytest.warns(UserWarning, match=line):
        assert pv.open(values).typed().column_names[:3] == ["a", "b", "c"]


@pytest.mark.parametrize("target", ["a.parquet", "a.vortex", "delta", "iceberg", "memory"])
def test_a_value_of_another_type_is_null_in_the_typed_view(tmp_path: Path, target: str) -> None:
    rows = pv.parse_json(['{"n":5,"f":1}', '{"n":6.5,"f":2.5e0}', '{"n":"7","f":"3"}', '{"n":true}', '{"n":8.0,"f":4}'])
    schema = pv.ShreddingSchema.from_ddl("n bigint, f double")
    source: Any = pv.shred_variant(rows, schema)
    if target != "memory":
        format = target if target in ("delta", "iceberg") else None
        pv.write(tmp_path / target, rows, schema=schema, **({"format": format} if format else {}))
        source = tmp_path / target
    view = pv.open(source).typed().to_arrow()
    if target in ("a.parquet", "delta", "iceberg"):  # the types of other sources are those of the values
        assert view["n"].to_pylist() == [5, None, None, None, 8]
        assert view["f"].to_pylist() == [1, 2.5, None, None, 4]
    assert view["n"].to_pylist()[2:4] == view["f"].to_pylist()[2:4] == [None, None]
    assert pv.sql("SELECT count(*) AS c FROM typed(t) WHERE n IS NULL", t=source).to_pylist()[0]["c"] >= 2
    assert pv.sql("SELECT n FROM typed(t) WHERE n = 7", t=source).to_pylist() == []


def test_files_in_which_all_values_have_another_type_are_not_skipped_for_is_null(tmp_path: Path) -> None:
    for name, text, ddl in (("a", '{"n":1}', "n bigint"), ("b", '{"n":1.5}', "n decimal(2,1)")):
        pv.write(tmp_path / "t" / f"{name}.parquet", pv.parse_json([text]), schema=ddl)
    view = pv.sql("SELECT v:n::bigint AS n FROM t", t=tmp_path / "t").to_pylist()
    assert view == [{"n": 1}, {"n": 1}]
    from parquet_variant.query.selection import Selected

    exact = {"n": Selected("n", pv.VariantPath.parse("$.n"), pa.int64(), exact=True)}
    scan = pv.open(tmp_path / "t").scan(exact, "n is null")
    assert scan.to_arrow().num_rows == 1
