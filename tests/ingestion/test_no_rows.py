"""Sources without rows: an ingest succeeds where the columns are known, and fails where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

FORMATS = ["parquet", "delta", "iceberg"]
_TEXTS = {"a.ndjson": "", "b.json": "[]", "c.csv": "a,b\n", "d.json": "\n \n"}
_EMPTY = pa.table({"id": pa.array([], pa.int64()), "p": pa.array([], pa.string())})


@pytest.fixture(params=_TEXTS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    path.write_text(_TEXTS[path.name])
    return path


def _count(table: Path) -> int:
    return int(pv.sql("SELECT count(*) AS c FROM t", t=table).to_pylist()[0]["c"])


@pytest.mark.parametrize("format", FORMATS)
def test_a_day_without_rows_succeeds_where_the_table_exists(source: Path, tmp_path: Path, format: Any) -> None:
    (tmp_path / "rows").write_text('{"a": 1}\n{"a": 2}\n')
    table = tmp_path / "t"
    pv.ingest(tmp_path / "rows", table, format=format)
    result = pv.ingest(source, table, format=format, mode="append")
    assert (result.rows, result.files, _count(table)) == (0, (), 2)
    pv.ingest(source, table, format=format, mode="overwrite")
    assert _count(table) == 0
    pv.ingest(tmp_path / "rows", table, format=format, mode="append")
    assert _count(table) == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_new_table_without_rows_needs_a_schema(source: Path, tmp_path: Path, format: Any) -> None:
    with pytest.raises(pv.VariantFileError) as raised:
        pv.ingest(source, tmp_path / "t", format=format)
    assert raised.value.reason == "no-rows" and not (tmp_path / "t").exists()
    pv.ingest(source, tmp_path / "t", format=format, schema="a bigint")
    assert pv.sql("SELECT v:a FROM t", t=tmp_path / "t").to_arrow().num_rows == 0


@pytest.mark.parametrize("format", FORMATS)
def test_a_data_frame_without_rows_has_columns(tmp_path: Path, format: Any) -> None:
    table = tmp_path / "t"
    with pytest.raises(pv.VariantFileError, match="no JSON value in the rows"):
        pv.ingest(_EMPTY, table, format=format, json_column="p")
    pv.ingest(_EMPTY, table, format=format, json_column="p", schema="a bigint")
    assert pv.sql("SELECT * FROM t", t=table).to_arrow().schema.names == ["id", "p"]
    pv.ingest(pa.table({"id": [1], "p": ['{"a": 1}']}), table, format=format, json_column="p", mode="append")
    pv.ingest(_EMPTY, table, format=format, json_column="p", mode="append")
    assert pv.sql("SELECT id, p:a::int AS a FROM t", t=table).to_pylist() == [{"id": 1, "a": 1}]


def test_a_file_without_rows_has_the_schema(source: Path, tmp_path: Path) -> None:
    pv.ingest(source, tmp_path / "o.parquet", one_file=True, schema="a bigint")
    assert pv.ShreddingSchema.from_parquet(tmp_path / "o.parquet").to_ddl() == "a bigint"


def test_arrays_without_rows_succeed_and_a_misspelled_root_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"items": [1]}')
    pv.ingest(tmp_path / "a.json", tmp_path / "t", root="$.items[*]")
    (tmp_path / "a.json").write_text('{"items": []}')
    assert pv.ingest(tmp_path / "a.json", tmp_path / "t", root="$.items[*]", mode="append").rows == 0
    for root in ("$.item[*]", "$.item"):
        with pytest.raises(pv.VariantError) as raised:
            pv.ingest(tmp_path / "a.json", tmp_path / "t", root=root, mode="append")
        assert raised.value.reason == "no-rows"
