"""A table in an object store: an S3 server on loopback (moto), conditional puts through obstore."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow.fs as pafs
import pytest

import parquet_variant as pv
from object_store import KEYS, s3_server
from parquet_variant.errors import TableError


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with s3_server("tables") as endpoint:
        yield {"endpoint": endpoint, "region": "us-east-1", "client_options": '{"allow_http": true}'} | KEYS


@pytest.fixture
def options(store: dict[str, str]) -> dict[str, Any]:
    return {k: v for k, v in store.items() if k != "client_options"} | {"client_options": {"allow_http": True}}


def rows(*numbers: int) -> dict[str, Any]:
    return {"p": [f"a b/{n % 2}%" for n in numbers], "v": pv.parse_json([json.dumps({"n": n}) for n in numbers])}


def ids(table: str, options: dict[str, Any], **more: Any) -> list[int]:
    return sorted(row["n"] for row in pv.open(table, storage_options=options, **more).read().to_pylist())


def test_the_life_of_a_table(options: dict[str, Any]) -> None:
    table = "s3://tables/life"
    pv.write(table, rows(0, 1), format="delta", partition_by=["p"], schema="n bigint", storage_options=options)
    pv.open(table, storage_options=options).append(rows(2, 3), schema="n bigint")
    assert ids(table, options) == [0, 1, 2, 3]
    assert ids(table, options, version=0) == [0, 1]
    query = pv.open(table, storage_options=options).scan({"n": "$.n:long", "p": "p"}, "n >= 2")
    assert query.explain().files_by_statistics == 2
    assert sorted(query.to_arrow()["n"].to_pylist()) == [2, 3]
    pv.open(table, storage_options=options).checkpoint()
    assert pv.open(table, storage_options=options).optimize(schema="n bigint").files_removed == 4
    assert ids(table, options) == [0, 1, 2, 3]
    gone = pv.open(table, storage_options=options).vacuum(retention=timedelta(0), force=True)
    assert len(gone) == 4
    left = pv.open(table, storage_options=options).vacuum(retention=timedelta(0), force=True, dry_run=True)
    assert left == []
    assert ids(table, options) == [0, 1, 2, 3]
    assert pv.open(table, storage_options=options).history()[0]["operation"] == "VACUUM END"


@pytest.mark.parametrize("size", [100, 1000])
def test_a_large_commit_is_read_in_ranges(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    table = f"s3://tables/ranges-{size}"
    pv.write(table, rows(0, 1), format="delta", partition_by=["p"], storage_options=options)
    pv.open(table, storage_options=options).append(rows(2, 3))
    pv.open(table, storage_options=options).append(rows(4, 5))
    whole = pv.open(table, storage_options=options).snapshot.files
    monkeypatch.setattr("parquet_variant.tables.delta.log.segment.PART_BYTES", size)
    monkeypatch.setattr("parquet_variant.tables.delta.log.segment.READERS", 2)
    assert pv.open(table, storage_options=options).snapshot.files.to_pylist() == whole.to_pylist()


def test_threads_that_append_at_once_lose_and_duplicate_nothing(options: dict[str, Any]) -> None:
    table = "s3://tables/race"
    pv.write(table, rows(0), format="delta", schema="n bigint", storage_options=options)
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(writer: int) -> None:
        try:
            barrier.wait()
            for n in range(4):
                pv.open(table, storage_options=options).append(rows(writer * 100 + n), schema="n bigint")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert ids(table, options) == [0, *(w * 100 + n for w in range(1, 5) for n in range(4))]
    assert pv.open(table, storage_options=options).snapshot.version == 16


def _append_many(table: str, options: dict[str, Any], writer: int, times: int, barrier: Any) -> None:
    barrier.wait()
    for n in range(times):
        pv.open(table, storage_options=options).append(rows(writer * 100 + n), schema="n bigint")


def test_processes_that_append_at_once_lose_and_duplicate_nothing(options: dict[str, Any]) -> None:
    table, writers, times = "s3://tables/processes", 3, 4
    pv.write(table, rows(0), format="delta", schema="n bigint", storage_options=options)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(writers)
    processes = [
        context.Process(target=_append_many, args=(table, options, writer, times, barrier))
        for writer in range(1, writers + 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0] * writers
    assert ids(table, options) == [0, *(w * 100 + n for w in range(1, writers + 1) for n in range(times))]
    assert pv.open(table, storage_options=options).snapshot.version == writers * times


def test_the_data_files_are_read_through_pyarrows_own_filesystem(
    store: dict[str, str], options: dict[str, Any]
) -> None:
    table = "s3://tables/pyarrow"
    pv.write(table, rows(0, 1), format="delta", partition_by=["p"], schema="n bigint", storage_options=options)
    filesystem = pafs.S3FileSystem(
        access_key="test", secret_key="test", endpoint_override=store["endpoint"], region="us-east-1"
    )
    selector = pafs.FileSelector("tables/pyarrow", recursive=True)
    files = [info.path for info in filesystem.get_file_info(selector) if info.path.endswith(".parquet")]
    found = [pv.open(file, filesystem=filesystem).read() for file in files]
    assert sorted(row["n"] for array in found for row in array.to_pylist()) == [0, 1]


def test_creating_twice_is_refused(options: dict[str, Any]) -> None:
    table = "s3://tables/twice"
    pv.write(table, rows(1), format="delta", storage_options=options)
    with pytest.raises(TableError) as caught:
        pv.create(table, pv.open(table, storage_options=options).snapshot.schema, storage_options=options)
    assert caught.value.reason == "exists"
    with pytest.raises(TableError) as caught:
        _ = pv.open("s3://tables/nothing", storage_options=options).snapshot
    assert caught.value.reason == "not-a-table"


def test_a_table_is_published_in_the_store(options: dict[str, Any]) -> None:
    table = "s3://tables/published"
    pv.write(
        table,
        rows(0, 1, 2),
        format="delta",
        properties={"delta.enableDeletionVectors": "true"},
        storage_options=options,
    )
    pv.open(table, storage_options=options).delete("v:n::int = 1")
    assert pv.open(table, storage_options=options).publish("iceberg").vectors_written == 1
    assert not pv.open(table, storage_options=options).publish("iceberg").committed
    found = pv.open(table, storage_options=options).scan({"n": ("$.n", "int")}).to_arrow()
    assert sorted(found["n"].to_pylist()) == [0, 2]
