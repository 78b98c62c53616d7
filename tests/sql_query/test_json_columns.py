"""Columns of ``arrow.json`` in Parquet files have paths, and JSON files without rows are tables without rows."""

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
