"""The column that `pv.open` chooses is that of every method, for all formats."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
def test_methods_use_the_column_of_open(tmp_path: Path, format: str) -> None:
    path = tmp_path / ("t.vortex" if format == "vortex" else "t")
    pv.write(path, {"a": pv.parse_json(["1"]), "b": pv.parse_json(['{"x": 2}'])}, format=format)
    table = pv.open(path, column="b")
    assert table.read().to_pylist() == [{"x": 2}]
    assert table.read("a").to_pylist() == [1]
    assert table.paths() == {"$.x": "bigint"}


def test_rows_in_memory_have_the_column_of_open() -> None:
    data = pa.table({"a": pv.parse_json(["1"]), "b": pv.parse_json(["2"])})
    assert pv.open(data, column="b").read().to_pylist() == [2]


def test_compat_is_a_method_of_files(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json(['{"a": 1}']))
    report = pv.open(tmp_path / "a.parquet").compat(engines=["pyarrow"])
    assert report.engines[0].verdict == "struct"


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_the_source_of_a_merge_is_a_path_of_any_format(tmp_path: Path, format: str) -> None:
    pv.write(tmp_path / "t", pv.parse_json(['{"id": 1, "n": 1}']), format=format)
    (tmp_path / "a.ndjson").write_text('{"id": 1, "n": 5}\n{"id": 2, "n": 6}\n')
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "files")
    for source in ("a.ndjson", "files"):
        merge = pv.open(tmp_path / "t").merge(tmp_path / source, "source.v:id::int = target.v:id::int")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        values = sorted(pv.open(tmp_path / "t").read().to_pylist(), key=lambda value: value["id"])
        assert values == [{"id": 1, "n": 5}, {"id": 2, "n": 6}]


def test_an_unsupported_overwrite_is_named_as_it_is_written(tmp_path: Path) -> None:
    pv.write(tmp_path / "t" / "a.parquet", pv.parse_json(["1"]))
    with pytest.raises(pv.VariantError, match="overwrite with where= is not supported for the format parquet"):
        pv.open(tmp_path / "t").overwrite(pv.parse_json(["2"]), where="v:a::int = 1")
