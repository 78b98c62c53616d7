"""Tables in catalogs: REST with checked requirements, SQL shared with PyIceberg, and directories."""

from __future__ import annotations

import errno
import json
import os
import pickle
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.iceberg.rest_server import State, rest_catalog

import parquet_variant as pv
from parquet_variant.errors import IcebergError, TableError
from parquet_variant.io.filesystems import write_errors
from parquet_variant.tables.iceberg.catalogs.opening import load_table, open_catalog
from parquet_variant.tables.storage import LocalStorage

pytest.importorskip("pyiceberg")


def events(*numbers: int) -> dict[str, Any]:
    values = [json.dumps({"n": number, "s": f"x{number}"}) for number in numbers]
    return {"id": pa.array(numbers, pa.int64()), "v": pv.parse_json(values)}


def ids(table: Any, **options: Any) -> list[int]:
    return sorted(pv.open(table, **options).to_arrow(["id"])["id"].to_pylist())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, State]]:
    with rest_catalog(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture(params=["rest", "sql", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """A table's name and its catalog."""
    if request.param == "directory":
        yield str(tmp_path / "events"), None
    elif request.param == "sql":
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": f"file://{tmp_path}/warehouse",
        }
        pv.create_namespace("db", catalog=catalog)
        yield "db.events", catalog
    else:
        with rest_catalog(tmp_path / "warehouse") as (uri, _):
            catalog = {"type": "rest", "uri": uri}
            pv.create_namespace("db", catalog=catalog)
            yield "db.events", catalog


def test_a_table_lives_through_its_operations_in_any_catalog(place: tuple[str, Any]) -> None:
    name, catalog = place
    with pytest.raises(IcebergError) as caught:
        pv.open(name, format="iceberg", catalog=catalog).append(events(1))
    assert caught.value.reason == "no-such-table"
    first = pv.write(
        name, events(1, 2, 3), format="iceberg", catalog=catalog, partition_by="bucket(2, id)", sort_by="id desc"
    )
    pv.open(name, catalog=catalog).append(events(4))
    assert ids(name, catalog=catalog) == [1, 2, 3, 4]
    assert pv.open(name, catalog=catalog).delete("v:n::int = 2").rows_deleted == 1
    assert pv.open(name, catalog=catalog).update({"v:s": "'new'"}, "id = 3").rows_updated == 1
    merge = pv.open(name, catalog=catalog).merge(events(3, 5), "target.id = source.id")
    done = merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert (done.rows_deleted, done.rows_inserted) == (1, 1)
    assert ids(name, catalog=catalog) == [1, 4, 5]
    pv.open(name, catalog=catalog).add_columns({"extra": "int"}, defaults={"extra": 7})
    assert pv.open(name, catalog=catalog).to_arrow(["extra"])["extra"].to_pylist() == [7, 7, 7]
    pv.open(name, catalog=catalog).tag("before")
    pv.open(name, catalog=catalog).optimize(rewrite_all=True)
    assert ids(name, catalog=catalog) == [1, 4, 5]
    pv.open(name, catalog=catalog).overwrite(events(9))
    assert ids(name, catalog=catalog) == [9]
    assert ids(name, catalog=catalog, tag="before") == [1, 4, 5]
    assert ids(name, catalog=catalog, version=first.snapshot_id) == [1, 2, 3]
    pv.open(name, catalog=catalog).set_partitioning("id")
    pv.open(name, catalog=catalog).append(events(10))
    assert pv.open(name, catalog=catalog).scan({"n": "$.n:int"}, "id = 10").to_arrow().to_pydict() == {"n": [10]}
    pv.write(name, {"id": [1.5]}, format="iceberg", catalog=catalog, mode="replace")
    assert pv.open(name, catalog=catalog).to_arrow().to_pydict() == {"id": [1.5]}
    assert ids(name, catalog=catalog, tag="before") == [1, 4, 5]
    pv.open(name, catalog=catalog).drop()
    with pytest.raises(IcebergError):
        _ = pv.open(name, format="iceberg", catalog=catalog).snapshot


def test_writers_at_the_same_time_lose_no_row(place: tuple[str, Any]) -> None:
    name, catalog = place
    pv.write(name, events(0), format="iceberg", catalog=catalog, properties={"commit.retry.num-retries": "50"})
    failures: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            for step in range(3):
                pv.open(name, catalog=catalog).append(events(100 * writer + step))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids(name, catalog=catalog) == [0, *(100 * w + s for w in (1, 2, 3) for s in range(3))]
    row_ids = pv.open(name, catalog=catalog).to_arrow(["_row_id"])["_row_id"].to_pylist()
    assert len(set(row_ids)) == 10


def test_a_stale_change_of_rows_is_planned_again(place: tuple[str, Any]) -> None:
    name, catalog = place
    pv.write(name, events(1, 2, 3), format="iceberg", catalog=catalog)
    stale = pv.open(name, catalog=catalog).snapshot
    pv.open(name, catalog=catalog).delete("id = 1")
    pv.open(name, catalog=catalog).append(events(2))
    assert pv.open(stale).delete("id = 2").rows_deleted == 2
    assert ids(name, catalog=catalog) == [3]


def test_snapshot_isolation_allows_rows_that_others_add(place: tuple[str, Any]) -> None:
    name, catalog = place
    properties = {"write.delete.isolation-level": "snapshot"}
    pv.write(name, events(1, 2, 3), format="iceberg", catalog=catalog, properties=properties)
    stale = pv.open(name, catalog=catalog).snapshot
    pv.open(name, catalog=catalog).append(events(2))
    assert pv.open(stale).delete("id = 2").rows_deleted == 1
    assert ids(name, catalog=catalog) == [1, 2, 3]


def test_batches_of_a_stream_are_written_once(place: tuple[str, Any]) -> None:
    name, catalog = place
    pv.write(name, events(0), format="iceberg", catalog=catalog)
    for number in (1, 1, 2, 1):
        pv.open(name, catalog=catalog).append(events(number), batch=("stream", number))
    pv.open(name, catalog=catalog).append(events(7))
    pv.open(name, catalog=catalog).append(events(2), batch=("stream", 2))
    pv.open(name, catalog=catalog).append(events(1), batch=("other", 1))
    assert ids(name, catalog=catalog) == [0, 1, 1, 2, 7]


def test_a_commit_whose_answer_is_lost_is_found(server: tuple[str, State]) -> None:
    uri, state = server
    catalog = {"type": "rest", "uri": uri}
    pv.create_namespace("db", catalog=catalog)
    pv.write("db.events", events(1), format="iceberg", catalog=catalog)
    state.fail_next.append((500, True))
    pv.open("db.events", catalog=catalog).append(events(2))
    assert ids("db.events", catalog=catalog) == [1, 2]
    state.fail_next.append((503, False))
    with pytest.raises(IcebergError) as caught:
        pv.open("db.events", catalog=catalog).append(events(3))
    assert caught.value.reason == "unknown-outcome"
    assert ids("db.events", catalog=catalog) == [1, 2]


def test_rest_catalogs_authenticate(tmp_path: Path) -> None:
    with rest_catalog(tmp_path, token="t0ken") as (uri, _):
        for catalog in (
            {"type": "rest", "uri": uri, "token": "t0ken"},
            {"type": "rest", "uri": uri, "auth": {"type": "oauth2", "oauth2": {
                "client_id": "me", "client_secret": "s3cret", "token_url": f"{uri}/v1/oauth/tokens"}}},
        ):  # fmt: skip
            pv.create_namespace("db", catalog=catalog)
            pv.write("db.events", events(1), format="iceberg", catalog=catalog, mode="replace")
            assert ids("db.events", catalog=catalog) == [1]
        with pytest.raises(IcebergError) as caught:
            _ = pv.open("db.events", catalog={"type": "rest", "uri": uri, "token": "wr0ng"}).snapshot
        assert "wr0ng" not in str(caught.value)


def test_requests_to_rest_catalogs_are_signed(tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    with rest_catalog(tmp_path, signed_by="AKIDTEST") as (uri, _):
        catalog = {
            "type": "rest", "uri": uri, "rest.sigv4-enabled": "true", "rest.signing-region": "eu-west-1",
            "rest.signing-name": "s3tables", "client.region": "eu-west-1", "client.access-key-id": "AKIDTEST",
            "client.secret-access-key": "sehr-geheim",
        }  # fmt: skip
        pv.create_namespace("db", catalog=catalog)
        pv.write("db.events", events(1), format="iceberg", catalog=catalog)
        pv.open("db.events", catalog=catalog).append(events(2))
        assert ids("db.events", catalog=catalog) == [1, 2]
        with pytest.raises(IcebergError) as caught:
            _ = pv.open("db.events", catalog={**catalog, "client.access-key-id": "OTHER"}).snapshot
        assert "sehr-geheim" not in str(caught.value)


def test_vended_credentials_reach_the_object_store(tmp_path: Path) -> None:
    credentials = [
        {"prefix": "s3://other", "config": {"s3.region": "no"}},
        {"prefix": f"file://{tmp_path}", "config": {"s3.region": "here", "s3.access-key-id": "k"}},
    ]
    with rest_catalog(tmp_path, config={"s3.endpoint": "http://e"}, storage_credentials=credentials) as (uri, _):
        catalog = {"type": "rest", "uri": uri}
        pv.create_namespace("db", catalog=catalog)
        pv.write("db.events", events(1), format="iceberg", catalog=catalog)
        loaded = load_table("db.events", catalog)
    assert loaded.options == {"endpoint": "http://e", "region": "here", "access_key_id": "k"}
    assert "here" not in repr(loaded)


def test_pyiceberg_shares_the_sql_catalog(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    properties = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    theirs = SqlCatalog("shared", **properties)
    catalog = {"type": "sql", "name": "shared", **properties}
    pv.create_namespace("db", catalog=catalog)
    theirs.create_table("db.plain", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    assert ids("db.plain", catalog=catalog) == [1, 2]
    with pytest.raises(IcebergError) as caught:
        pv.open("db.plain", catalog=catalog).append({"id": [3]})
    assert caught.value.reason == "unsupported-version"
    pv.open("db.plain", catalog=catalog).upgrade()
    pv.open("db.plain", catalog=catalog).append({"id": [3]})
    assert pv.open("db.plain", catalog=catalog).delete("id = 1").rows_deleted == 1
    assert ids("db.plain", catalog=catalog) == [2, 3]
    rows = pv.open("db.plain", catalog=catalog).to_arrow(["id", "_row_id"]).to_pylist()
    assert sorted(row["_row_id"] for row in rows) == sorted({row["_row_id"] for row in rows})
    pv.write("db.ours", {"id": [1, 2], "k": ["a", "b"]}, format="iceberg", catalog=catalog, partition_by="k")
    assert sorted(theirs.load_table("db.ours").scan(row_filter="k = 'b'").to_arrow().to_pylist(), key=str) == [
        {"id": 2, "k": "b"}
    ]
    assert {t[-1] for t in theirs.list_tables("db")} == {"plain", "ours"}


def test_a_killed_writer_leaves_the_hint_behind(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, events(1), format="iceberg")
    pv.open(table).append(events(2))
    (table / "metadata" / "version-hint.text").write_text("1")
    assert ids(table) == [1, 2]
    pv.open(table).append(events(3))
    (table / "metadata" / "version-hint.text").unlink()
    assert ids(table) == [1, 2, 3]
    (table / "metadata" / "version-hint.text").write_text("nonsense")
    assert ids(table) == [1, 2, 3]


def test_metadata_files_are_read_and_not_written(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", events(1), format="iceberg")
    pv.open(tmp_path / "t").append(events(2))
    first = tmp_path / "t" / "metadata" / "v1.metadata.json"
    assert ids(first) == [1]
    assert ids(f"file://{first}") == [1]
    with pytest.raises(IcebergError) as caught:
        pv.open(first).append(events(3))
    assert caught.value.reason == "read-only"


def test_metadata_can_be_compressed_and_old_files_deleted(tmp_path: Path) -> None:
    properties = {
        "write.metadata.compression-codec": "gzip",
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    pv.write(tmp_path / "t", events(1), format="iceberg", properties=properties)
    for number in (2, 3, 4):
        pv.open(tmp_path / "t").append(events(number))
    assert ids(tmp_path / "t") == [1, 2, 3, 4]
    names = sorted(path.name for path in (tmp_path / "t" / "metadata").glob("*.metadata.json"))
    assert names == ["v3.gz.metadata.json", "v4.gz.metadata.json"]


@pytest.mark.parametrize(
    ("table", "catalog", "reason"),
    [
        ("events", {"type": "rest", "uri": "http://127.0.0.1:1"}, "bad-argument"),
        ("db.events", {"type": "rest", "uri": "http://127.0.0.1:1"}, "no-connection"),
        ("db.events", {"type": "hive", "uri": "thrift://127.0.0.1:1"}, "bad-catalog"),
        ("db.events", {"type": "glue", "glue.region": "eu-west-1"}, "bad-catalog"),
        ("db.events", {"type": "rest"}, "bad-catalog"),
        ("db.events", "no-such-catalog", "bad-catalog"),
        ("", None, "bad-argument"),
        (7, None, "bad-argument"),
    ],
)
def test_what_names_no_table_is_refused(table: Any, catalog: Any, reason: str) -> None:
    with pytest.raises(TableError) as caught:
        _ = pv.open(table, format="iceberg", catalog=catalog).snapshot
    assert caught.value.reason == reason


def test_errors_of_a_database_are_reported(tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}
    catalog = open_catalog(properties)
    assert catalog is not None
    pv.create_namespace("db", catalog=catalog)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        database.execute("DROP TABLE iceberg_tables")
        database.execute("DROP TABLE iceberg_namespace_properties")
    for work in (
        lambda: pv.create_namespace("other", catalog=catalog),
        lambda: pv.open("db.t", catalog=catalog).version,
        lambda: catalog.drop(("db", "t")),
    ):
        with pytest.raises(pv.VariantError, match=r"the catalog .* failed: .*no such table"):
            work()


def test_secrets_of_catalogs_are_not_shown(tmp_path: Path) -> None:
    catalog = open_catalog({"type": "rest", "uri": "http://127.0.0.1:1", "token": "t0ken", "credential": "a:s3cret"})
    assert "t0ken" not in repr(catalog) and "s3cret" not in repr(catalog)
    assert pickle.loads(pickle.dumps(catalog)) == catalog
    pv.write(tmp_path / "t", events(1), format="iceberg")
    loaded = load_table(tmp_path / "t", storage_options={"secret_access_key": "s3cret"})
    assert "s3cret" not in repr(loaded)
    assert ids(pickle.loads(pickle.dumps(pv.open(tmp_path / "t").snapshot))) == [1]


def let_steps_after_the_commit_fail(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let the hint of a directory, and the deletion of metadata files, fail."""

    def failing(method: str, ending: str) -> Any:
        original = getattr(LocalStorage, method)

        def run(self: LocalStorage, path: str, *arguments: Any) -> Any:
            if path.endswith(ending):
                with write_errors(path):
                    raise OSError(code, os.strerror(code))
            return original(self, path, *arguments)

        return run

    monkeypatch.setattr(LocalStorage, "put", failing("put", "version-hint.text"))
    monkeypatch.setattr(LocalStorage, "delete", failing("delete", ".metadata.json"))


@pytest.mark.parametrize("operation", ["append", "overwrite", "delete", "update", "merge", "ingest", "erase", "write"])
@pytest.mark.parametrize("kind", ["directory", "sql"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EPERM])
def test_a_step_that_fails_after_the_commit_loses_nothing(
    operation: str, kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, catalog = str(tmp_path / "events"), None
    if kind == "sql":
        catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}
        pv.create_namespace("db", catalog=catalog)
        name = "db.events"
    properties = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    if operation != "write":
        pv.write(name, events(1, 2, 3), format="iceberg", catalog=catalog, properties=properties)
        pv.open(name, catalog=catalog).append(events(4))
    let_steps_after_the_commit_fail(monkeypatch, code)
    if operation in ("append", "overwrite", "write"):
        mode = "error" if operation == "write" else operation
        pv.write(name, events(5), format="iceberg", catalog=catalog, mode=mode)
    elif operation == "delete":
        assert pv.open(name, catalog=catalog).delete("id = 2").rows_deleted == 1
    elif operation == "update":
        assert pv.open(name, catalog=catalog).update({"id": "id + 10"}, "id = 2").rows_updated == 1
    elif operation == "merge":
        merge = pv.open(name, catalog=catalog).merge(events(3, 5), "target.id = source.id")
        merge.when_matched_delete().when_not_matched_insert_all().execute()
    elif operation == "ingest":
        (tmp_path / "new.ndjson").write_text('{"n": 5}\n')
        options = {} if catalog is None else {"catalog": catalog}
        pv.ingest(tmp_path / "new.ndjson", name, format="iceberg", mode="append", **options)
    else:
        pv.open(name, catalog=catalog).erase("id = 2", force=True)
    expected = {
        "append": [1, 2, 3, 4, 5], "overwrite": [5], "write": [5], "delete": [1, 3, 4], "update": [1, 3, 4, 12],
        "merge": [1, 2, 4, 5], "ingest": [1, 2, 3, 4, None], "erase": [1, 3, 4],
    }  # fmt: skip
    rows = pv.open(name, catalog=catalog).to_arrow(["id"])["id"].to_pylist()
    assert sorted(rows, key=lambda row: row or 99) == expected[operation]
