"""Columns of ``arrow.json`` in Parquet files are Variants, and JSON files without rows are tables without rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT sum(j:cost) AS x FROM t", [{"x": 4}]),
        ("SELECT id, j:cost AS x FROM t WHERE j:kind = 'b'", [{"id": 2, "x": 3}]),
        ("SELECT variant_get(j, '$.tags[0]', 'string') AS x FROM t WHERE id = 1", [{"x": "y"}]),
        ("SELECT count(*) AS x FROM t WHERE j:tags[*] IS NOT NULL", [{"x": 1}]),
        ("SELECT e.value AS x FROM t, LATERAL variant_explode(j:tags) e", [{"x": "y"}, {"x": "z"}]),
        ("SELECT id AS x FROM t WHERE j IS NULL", [{"x": 3}]),
    ],
)
def test_paths_into_json_columns(tmp_path: Path, query: str, rows: list[dict[str, object]]) -> None:
    texts = ['{"cost": 1, "kind": "a", "tags": ["y", "z"]}', '{"cost": 3, "kind": "b"}', None]
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "j": pa.array(texts).cast(pa.json_())}), file)
    assert pv.sql(query, t=file).to_pylist() == rows


@pytest.mark.parametrize("storage", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT j, l, s FROM t WHERE id < 3",
        "SELECT j.* FROM t",
        "SELECT * FROM typed(t)",
        "SELECT variant_keys(j), variant_typeof(j:cost), json_keys(j), to_json(j) FROM t",
        "SELECT e.* FROM t, LATERAL variant_explode(j) e",
        "SELECT j['cost'], variant_get(j, '$.kind', 'string'), try_variant_set(j, '$.z', 1) FROM t",
        "SELECT j:kind, count(*), max(j:cost) FROM t GROUP BY ALL",
        "SELECT count(DISTINCT j) FROM t",
        "SELECT l[1]:cost, s.j:cost, list_transform(l, x -> x:cost) FROM t",
        "SELECT x.u:cost FROM (SELECT unnest(l) AS u FROM t) x",
        "DESCRIBE SELECT id, j FROM t",
    ],
)
def test_json_columns_of_files_answer_as_those_in_memory(tmp_path: Path, storage: pa.DataType, query: str) -> None:
    texts = ['{"cost": 1, "kind": "a", "tags": ["y", "z"]}', '{"cost": 3.5, "kind": "b", "tags": []}', None, "[1, {}]"]
    json = pa.ExtensionArray.from_storage(pa.json_(storage), pa.array(texts, storage))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), json)
    table = pa.table({"id": [1, 2, 3, 4], "j": json, "l": lists, "s": pa.StructArray.from_arrays([json], names=["j"])})
    pq.write_table(table, tmp_path / "a.parquet")
    found, expected = (sorted(map(repr, pv.sql(query, t=t).to_pylist())) for t in (tmp_path / "a.parquet", table))
    assert found == expected
    scan = pv.open(tmp_path / "a.parquet").scan(["id", "j", "l", "s"])
    assert sorted(map(repr, pv.sql(query, t=scan).to_pylist())) == expected


def test_json_columns_with_text_that_is_not_json(tmp_path: Path) -> None:
    bad = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", '{"a":']))
    pq.write_table(pa.table({"id": [1, 2], "j": bad}), tmp_path / "a.parquet")
    assert pv.sql("SELECT sum(id) AS n FROM t", t=tmp_path / "a.parquet").to_pylist() == [{"n": 3}]
    with pytest.raises(pv.JsonError, match="row 1"):
        pv.sql("SELECT j:a FROM t", t=tmp_path / "a.parquet")


def test_json_files_without_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.ndjson").write_text("")
    (tmp_path / "array.json").write_text("[]")
    for name in ("empty.ndjson", "array.json"):
        file = tmp_path / name
        assert pv.sql("SELECT count(*) AS n, max(v:a) AS m FROM t", t=file).to_pylist() == [{"n": 0, "m": None}]
        assert pv.open(file).scan({"a": "$.a:int"}, "a > 1").to_arrow().num_rows == 0
        assert main(["cat", str(file)]) == 0 and capsys.readouterr().out == ""
        with pytest.raises(pv.VariantError, match="hold no JSON value"):
            pv.read_json(file)
