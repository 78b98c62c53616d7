"""A table is not created where readers would not find its rows: in the directory of a table of another format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from object_store import KEYS, s3_server
from parquet_variant.tables.storage import open_storage

ROWS = {"v": pv.from_python([{"a": 1}])}


def _table(folder: Path, format: str) -> Path:
    source = folder / "rows.ndjson"
    source.write_text('{"a": 1}\n{"a": "x"}\n')
    pv.ingest(source, folder / "t", format=format)
    return folder / "t"


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize(("former", "format"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_a_table_is_not_written_into_a_table_of_the_other_format(
    tmp_path: Path, former: str, format: str, mode: str
) -> None:
    path = _table(tmp_path, former)
    files = sorted(path.rglob("*"))
    for attempt in (partial(pv.write, path, ROWS), partial(pv.ingest, tmp_path / "rows.ndjson", path)):
        with pytest.raises(pv.TableError, match=f"{former.title()} table: use format='{former}'") as caught:
            attempt(format=format, mode=mode)
        assert caught.value.reason == "exists"
    assert sorted(path.rglob("*")) == files
    pv.write(path, ROWS, mode="append")
    assert pv.open(path).format == former and len(pv.open(path).read()) == 3


@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.parametrize("held", ["parquet", "vortex"])
def test_rows_of_a_directory_of_files_are_not_hidden_by_a_table(tmp_path: Path, held: str, format: str) -> None:
    if held == "vortex":
        pytest.importorskip("vortex")
    path = _table(tmp_path, held)
    other = tmp_path / "other"
    pv.write(other, ROWS, format="iceberg" if format == "delta" else "delta")
    tries: list[Callable[[], object]] = [
        partial(pv.ingest, tmp_path / "rows.ndjson", path, format=format, mode=mode)
        for mode in ("error", "append", "overwrite")
    ]
    tries += [partial(pv.write, path, ROWS, format=format, mode=mode) for mode in ("error", "append", "overwrite")]
    tries += [partial(pv.create, path, pa.schema({"n": pa.int64()}), format=format)]
    tries += [partial(pv.open(other).publish, format, to=str(path))]
    if format == "iceberg":
        catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path)}
        pv.create_namespace("db", catalog=catalog)
        tries += [partial(pv.write, "db.t", ROWS, catalog=catalog, location=str(path))]
    for attempt in tries:
        with pytest.raises(pv.TableError, match=r"contains files and is not an? .* table: choose another path"):
            attempt()
    assert pv.open(path).format == held and len(pv.open(path).read()) == 2


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_rows_in_an_object_store_are_not_hidden_by_a_table(format: str) -> None:
    pytest.importorskip("obstore")
    with s3_server("lake") as endpoint:
        uri = f"s3://lake/{format}"
        options = {**KEYS, "endpoint": endpoint, "region": "us-east-1", "allow_http": "true"}
        storage = open_storage(uri, options)
        storage.put("data/rows.parquet", b"")
        with pytest.raises(pv.TableError, match="contains files"):
            pv.write(uri, ROWS, format=format, storage_options=options)
        with pytest.raises(pv.TableError, match="contains files"):
            pv.create(uri, pa.schema({"n": pa.int64()}), format=format, storage_options=options)
        storage.delete("data/rows.parquet")
        storage.put("_SUCCESS", b"")
        storage.put(".hidden/rows.parquet", b"")
        pv.write(uri, ROWS, format=format, storage_options=options)
        assert len(pv.open(uri, storage_options=options).read()) == 1


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_format_may_be_named_in_stores_that_only_tables_have(format: str) -> None:
    pytest.importorskip("obstore")
    pv.write("memory:///t", ROWS, format=format)


@pytest.mark.parametrize(("held", "format"), [("parquet", "vortex"), ("vortex", "parquet")])
def test_files_of_another_format_are_not_appended_to_a_directory(tmp_path: Path, held: str, format: str) -> None:
    pytest.importorskip("vortex")
    path = _table(tmp_path, held)
    with pytest.raises(pv.VariantError, match=f"{held.title()} files.*: use format='{held}'") as caught:
        pv.ingest(tmp_path / "rows.ndjson", path, format=format, mode="append")
    assert caught.value.reason == "bad-option" and len(pv.open(path).read()) == 2
    pv.ingest(tmp_path / "rows.ndjson", path, format=format, mode="overwrite")
    assert pv.open(path).format == format and len(pv.open(path).read()) == 2


@pytest.mark.parametrize("partition_by", [[], ["day"]])
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_files_of_an_interrupted_creation_do_not_hinder_the_next(
    tmp_path: Path, format: str, partition_by: list[str]
) -> None:
    rows = {"day": ["a", "b"], "v": pv.from_python([{"a": 1}, 2])}
    pv.write(tmp_path / "t", rows, format=format, partition_by=partition_by)
    shutil.rmtree(tmp_path / "t" / ("_delta_log" if format == "delta" else "metadata"))
    assert list((tmp_path / "t").rglob("*.parquet"))
    (tmp_path / "t" / "_SUCCESS").touch()
    pv.write(tmp_path / "t", rows, format=format, partition_by=partition_by)
    assert len(pv.open(tmp_path / "t").read()) == 2


def test_a_table_is_created_again_where_it_was_dropped(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", ROWS, format="iceberg")
    next((tmp_path / "t").rglob("*.parquet")).rename(tmp_path / "t/data/00000-0-spark.parquet")
    pv.open(tmp_path / "t", format="iceberg").drop()
    pv.write(tmp_path / "t", ROWS, format="iceberg")
    assert len(pv.open(tmp_path / "t").read()) == 1


def test_a_killed_creation_of_an_iceberg_table_does_not_hinder_the_next(tmp_path: Path) -> None:
    path = _table(tmp_path, "iceberg")
    for file in [*path.glob("metadata/*.json"), *path.glob("metadata/version-hint.text")]:
        file.unlink()
    assert list(path.rglob("*.parquet"))
    pv.ingest(tmp_path / "rows.ndjson", path, format="iceberg")
    assert len(pv.open(path).read()) == 2


def test_a_scan_that_is_not_divided_into_tasks_refuses_them_and_their_rows() -> None:
    scan = pv.open({"v": pv.parse_json(['{"a": 1}'])}).scan({"a": "$.a:int"})
    for use in (scan.tasks, lambda: scan.read(None)):
        with pytest.raises(pv.VariantError, match="for the formats parquet, delta, iceberg only") as caught:
            use()
        assert caught.value.reason == "unsupported-operation"


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
def test_an_ingest_recognizes_the_format_of_its_destination(tmp_path: Path, format: str) -> None:
    if format == "vortex":
        pytest.importorskip("vortex")
    path = _table(tmp_path, format)
    with pytest.raises(pv.VariantError) as caught:
        pv.ingest(tmp_path / "rows.ndjson", path)
    assert caught.value.reason in ("exists", "table-exists")
    pv.ingest(tmp_path / "rows.ndjson", path, mode="append")
    assert (pv.open(path).format, len(pv.open(path))) == (format, 4)
    pv.ingest(tmp_path / "rows.ndjson", path, mode="overwrite")
    assert (pv.open(path).format, len(pv.open(path))) == (format, 2)


@pytest.mark.parametrize(("format", "other"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_an_ingest_into_a_published_table_changes_the_table_that_was_published(
    tmp_path: Path, format: str, other: str
) -> None:
    path = _table(tmp_path, format)
    pv.open(path).publish(other)
    pv.ingest(tmp_path / "rows.ndjson", path, mode="append")
    assert [len(pv.open(path, format=name)) for name in (format, other)] == [4, 2]
