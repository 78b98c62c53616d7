"""What a log says is not believed: paths that lead out of the table, damaged statistics, secrets in messages."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.file_locations import relative_path, vector_path
from parquet_variant.tables.delta.protocol.actions import DeletionVector
from parquet_variant.tables.delta.writing.data_files import WritePlan
from parquet_variant.tables.storage import open_storage

from .conftest import events


def rewrite_log(table: Path, change: Callable[[dict[str, Any]], None], version: int = 0) -> None:
    path = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def set_path(path: str) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["path"] = path

    return change


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim.parquet"
    pv.write(file, {"v": pv.parse_json(['{"id": 7, "secret": 1}'])})
    return file


@pytest.mark.parametrize(
    "spelled", ["../victim.parquet", "x/../../victim.parquet", "%2e%2e/victim.parquet", "{victim}", "file://{victim}"]
)
def test_a_path_out_of_the_table_is_refused_by_name(make_table: Any, victim: Path, spelled: str) -> None:
    table = make_table(3)
    rewrite_log(table, set_path(spelled.format(victim=victim)))
    for read in (
        (lambda path: pv.open(path).read()),
        lambda t: pv.open(t).scan({"id": "$.id:long"}).to_arrow(),
        (lambda path: pv.open(path).to_arrow()),
    ):
        with pytest.raises(TableError, match="outside of the table") as caught:
            read(table)
        assert caught.value.reason == "outside-table"
    assert pv.open(table, allow_outside=True).read().to_pylist() == [{"id": 7, "secret": 1}]
    query = pv.open(table, allow_outside=True).scan({"id": "$.id:long"})
    assert pickle.loads(pickle.dumps(query.plan)).current.storage.allow_outside


def test_a_path_that_only_looks_outside_is_read(make_table: Any) -> None:
    table = make_table(3)
    (file,) = table.glob("*.parquet")
    rewrite_log(table, set_path(f"sub/../../{table.name}/{file.name}"))
    assert len(pv.open(table).read()) == 3
    os.utime(file, (1, 1))
    assert pv.open(table).vacuum(retention=None) == []
    assert file.exists()


def test_a_link_out_of_the_table_is_not_followed(make_table: Any, victim: Path, tmp_path: Path) -> None:
    table = make_table(3)
    (table / "link.parquet").symlink_to(victim)
    (table / "dir").symlink_to(tmp_path)
    for path in ("link.parquet", "dir/victim.parquet"):
        rewrite_log(table, set_path(path))
        with pytest.raises(TableError) as caught:
            pv.open(table).read()
        assert caught.value.reason == "outside-table"
        assert len(pv.open(table, allow_outside=True).read()) == 1


def test_what_lies_outside_is_never_deleted_or_written(make_table: Any, victim: Path, tmp_path: Path) -> None:
    table = make_table(3, 3, partition_by=["p"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.parquet").write_bytes(b"x")
    os.utime(elsewhere / "old.parquet", (1, 1))
    (table / "out").symlink_to(elsewhere)
    rewrite_log(table, set_path(str(victim)), 1)
    gone = pv.open(table).vacuum(retention=timedelta(0), force=True)
    assert victim.exists()
    assert (elsewhere / "old.parquet").exists()
    assert not any("out" in name.split("/") for name in gone)
    with pytest.raises(TableError):
        pv.open(table).optimize()
    for partition in table.glob("p=*"):
        for file in partition.iterdir():
            file.unlink()
        partition.rmdir()
        partition.symlink_to(elsewhere)
    with pytest.raises(TableError) as caught:
        pv.open(table).append(events(6, 9))
    assert caught.value.reason == "outside-table"
    assert [f.name for f in elsewhere.iterdir()] == ["old.parquet"]


def test_vectors_and_sidecars_stay_inside(tmp_path: Path, make_table: Any) -> None:
    storage = open_storage(tmp_path / "t")
    name = z85.encode(bytes(range(16)))
    assert vector_path(storage, DeletionVector("u", f"ab{name}", 1, 1)) == (
        "ab/deletion_vector_00010203-0405-0607-0809-0a0b0c0d0e0f.bin"
    )
    for vector in (DeletionVector("u", f"../..{name}", 1, 1), DeletionVector("p", "/etc/passwd", 1, 1)):
        with pytest.raises(TableError) as caught:
            vector_path(storage, vector)
        assert caught.value.reason == "outside-table"
    with pytest.raises(TableError) as caught:
        vector_path(storage, DeletionVector("u", "!" + "\x00" * 20, 1, 1))
    assert caught.value.reason == "bad-deletion-vector"
    table = make_table(3)
    metadata, protocol = (
        next(
            json.loads(line) for line in (table / "_delta_log" / f"{0:020}.json").read_text().splitlines() if k in line
        )
        for k in ("metaData", "protocol")
    )
    lines = [
        metadata,
        protocol,
        {"sidecar": {"path": "../../../etc/x.parquet", "sizeInBytes": 1, "modificationTime": 1}},
    ]
    path = table / "_delta_log" / f"{0:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(TableError) as caught:
        _ = pv.open(table).snapshot
    assert caught.value.reason == "outside-table"


@pytest.mark.parametrize("path", ["s3://other/x.parquet", "https://elsewhere/x.parquet", "../x", "/x"])
def test_paths_of_object_stores_stay_below_the_prefix(path: str) -> None:
    storage = open_storage("s3://bucket/table", {"skip_signature": "true", "region": "x"})
    with pytest.raises(TableError) as caught:
        relative_path(storage, path)
    assert caught.value.reason == "outside-table"
    assert relative_path(storage, "s3a://bucket/table/a%20b.parquet") == "a b.parquet"


def test_secrets_of_urls_stand_in_no_error() -> None:
    error = TableError(
        "cannot read s3://key:hunter2@bucket/t?X-Amz-Signature=abc&part=1: gone",
        file="https://h/t?sig=hunter2&se=5#x",
    )
    for shown in (str(error), repr(error), error.message, error.file):
        assert "hunter2" not in str(shown)
        assert "abc" not in str(shown)
    assert "s3://***@bucket/t" in error.message
    plan = WritePlan("s3://b/t", "{}", storage_options={"secret_access_key": "hunter2"})
    assert "hunter2" not in repr(plan)


# ---- damaged statistics: unknown never prunes, and never raises


def set_stats(text: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["stats"] = text(json.loads(action["add"]["stats"]))

    return change


def damaged(bounds: bytes) -> Callable[[dict[str, Any]], str]:
    def change(stats: dict[str, Any]) -> str:
        stats["minValues"]["v"] = stats["maxValues"]["v"] = z85.encode(bounds)
        return json.dumps(stats)

    return change


def test_damaged_bounds_of_variants_prune_nothing_and_raise_nothing(make_table: Any) -> None:
    table = make_table(5, 5)
    good = z85.decode(json.loads(pv.open(table).snapshot.files["stats"][0].as_py())["minValues"]["v"])
    for at in range(0, len(good), 3):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        rewrite_log(table, set_stats(damaged(bytes(bad))))
        for where in ("id >= 0", "id >= 1 and name like 'n%'"):
            query = pv.open(table).scan({"id": "$.id:long", "name": "$.name:string"}, where)
            assert set(range(1, 10)) - {0} <= set(query.to_arrow()["id"].to_pylist()) | set(range(5)), at
            assert query.to_arrow()["id"].to_pylist()[-5:] == [5, 6, 7, 8, 9]
        pv.open(table).checkpoint(stats_parsed=True)
        for path in (table / "_delta_log").glob("*checkpoint*"):
            path.unlink()


@pytest.mark.parametrize("text", ["[]", "5", '"x"', "{", '{"minValues": 3}', '{"numRecords": 1e400}', "{" * 2000])
def test_damaged_statistics_prune_nothing_and_raise_nothing(make_table: Any, text: str) -> None:
    table = make_table(5, 5)
    rewrite_log(table, set_stats(lambda _: text))
    assert pv.open(table).scan({"k": "k"}, "k >= 0").to_arrow()["k"].to_pylist() == list(range(10))
    assert pv.open(table).scan({"id": "$.id:long"}, "id >= 0").to_arrow()["id"].to_pylist() == list(range(10))


def test_a_decimal_next_to_a_bad_bound_stays_exact(tmp_path: Path) -> None:
    low, high = "12345678901234567.12345678901234567891", "12345678901234567.12345678901234567899"
    rows = {"d": pa.array([low, high]).cast(pa.decimal128(38, 20)), "x": pa.array([1.0, 2.0])}
    pv.write(tmp_path, rows, format="delta")

    def infinite(stats: dict[str, Any]) -> str:
        bounds = f'{{"d": {low}, "x": 1.0}}', f'{{"d": {high}, "x": "Infinity"}}'
        return f'{{"numRecords": 2, "minValues": {bounds[0]}, "maxValues": {bounds[1]}}}'

    rewrite_log(tmp_path, set_stats(infinite))
    for op, literal in ((">=", high), ("<=", low), ("=", high)):
        found = pv.open(tmp_path).scan({"d": "d"}, f"d {op} {literal}").to_arrow()
        assert found.num_rows >= 1, op


def test_a_bound_that_is_nan_prunes_nothing(tmp_path: Path) -> None:
    nan, one = pv.Variant.from_python({"$['a']": float("nan")}), pv.Variant.from_python({"$['a']": 1.0})
    rows = pv.parse_json(['{"a": 1.0e0}', '{"a": 5.0e0}'])
    pv.write(tmp_path, {"v": rows, "x": pa.array([1.0, float("nan")])}, format="delta")
    for low, high in ((nan, nan), (one, one), (nan, one), (one, nan)):

        def change(stats: dict[str, Any], low: Any = low, high: Any = high) -> str:
            stats["minValues"]["v"], stats["maxValues"]["v"] = z85.encode(low.to_bytes()), z85.encode(high.to_bytes())
            text = json.dumps(stats)
            return text.replace('"minValues": {', '"minValues": {"x": NaN, ').replace(
                '"maxValues": {', '"maxValues": {"x": NaN, '
            )

        rewrite_log(tmp_path, set_stats(change))
        # A foreign bound of doubles may leave NaN out, which is above every number.
        assert len(pv.open(tmp_path).scan({"a": "$.a:double"}, "a > 3").plan.pruned.files) == 1
        assert len(pv.open(tmp_path).scan({"x": "x"}, "x >= 1").plan.pruned.files) == 1
        assert pv.open(tmp_path).scan({"a": "$.a:double"}, "a >= 1").to_arrow().num_rows == 2


def test_a_checkpoint_keeps_statistics_whatever_form_they_came_in(make_table: Any) -> None:
    table = make_table(5, 5)
    before = [json.loads(text) for text in pv.open(table).snapshot.files["stats"].to_pylist()]
    pv.open(table).set_properties(
        {"delta.checkpoint.writeStatsAsJson": False, "delta.checkpoint.writeStatsAsStruct": True}
    )
    first = table / pv.open(table).checkpoint()
    add = pq.read_table(first)["add"].combine_chunks()
    assert add.type.get_field_index("stats") < 0
    (table / "_delta_log" / f"{3:020}.json").write_text('{"txn":{"appId":"a","version":1}}\n')
    for version in range(3):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    pv.open(table).set_properties({"delta.checkpoint.writeStatsAsJson": True})
    found = pv.open(table).snapshot
    assert found.files["stats"].null_count == 2
    pv.open(table).checkpoint()
    after = [json.loads(text) for text in pv.open(table).snapshot.files["stats"].to_pylist()]
    assert after == before
    pv.open(table).restore(version=3)
    assert len(pv.open(table).scan({"id": "$.id:long"}, "id >= 7").plan.pruned.files) == 1


# ---- log lines that are no actions: an error of ours, whatever is done with the table

OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "read": (lambda path: pv.open(path).to_arrow()),
    "scan": lambda table: pv.open(table).scan({"id": "$.id:long", "k": "k"}, "id > 0").to_arrow(),
    "delete": lambda table: pv.open(table).delete("k = 1"),
    "update": lambda table: pv.open(table).update({"k": "k + 100"}, "k = 2"),
    "update a path": lambda table: pv.open(table).update({"v:id": "5"}, "v:id::int = 2"),
    "optimize": (lambda path: pv.open(path).optimize()),
    "vacuum": (lambda path: pv.open(path).vacuum()),
    "checkpoint": (lambda path: pv.open(path).checkpoint()),
    "changes": lambda table: pv.open(table).changes(0),
    "restore": lambda table: pv.open(table).restore(version=0),
    "append": lambda table: pv.open(table).append(events(0, 1)),
}


def refuses_or_does(table: Path, reasons: set[str]) -> set[str]:
    """What each operation says of the table; only errors of ours, and of these reasons."""
    said = set()
    for work in OPERATIONS.values():
        try:
            work(table)
        except pv.VariantError as error:
            said.add(error.reason)
    assert said <= reasons
    return said


@pytest.mark.parametrize("path", ["http://[bad", "a\ud800b", "x" * 5000])
def test_an_invalid_path_is_refused(make_table: Any, path: str) -> None:
    table = make_table(3)
    rewrite_log(table, set_path(path))
    assert refuses_or_does(table, {"outside-table", "broken-log", "cannot-read", "missing-file", "cannot-open"})


@pytest.mark.parametrize(
    "vector",
    [
        {"storageType": "u", "pathOrInlineDv": "\x00" + "0" * 20, "sizeInBytes": 5, "cardinality": 1, "offset": 1},
        {"storageType": "p", "pathOrInlineDv": "x.bin", "sizeInBytes": 5, "cardinality": 1, "offset": -3},
        {"storageType": "p", "pathOrInlineDv": "_delta_log", "sizeInBytes": 5, "cardinality": 1, "offset": 0},
        {"storageType": "p", "pathOrInlineDv": "a" * 3000, "sizeInBytes": 5, "cardinality": 1, "offset": 0},
        {"storageType": "p", "pathOrInlineDv": "http://[x", "sizeInBytes": 5, "cardinality": 1, "offset": 0},
        {},
    ],
)
def test_an_invalid_deletion_vector_is_refused(make_table: Any, vector: dict[str, Any]) -> None:
    table = make_table(3, properties={"delta.enableDeletionVectors": True})
    (table / "x.bin").write_bytes(b"\x01" * 40)

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = vector

    rewrite_log(table, change)
    assert refuses_or_does(table, {"outside-table", "broken-log", "bad-deletion-vector", "cannot-read"})


def test_a_deletion_vector_of_billions_in_a_few_bytes_ends(make_table: Any) -> None:
    table = make_table(3, properties={"delta.enableDeletionVectors": True})
    header = np.array([[0, 0xFFFF]], "<u2").tobytes() + np.array([1], "<u2").tobytes()
    one = np.uint32(12347).tobytes() + b"\x01" + header + np.array([[0, 0xFFFF]], "<u2").tobytes()
    runs = np.uint32(12347).tobytes() + b"\x01" + header[:4] + np.array([0xFFFF], "<u2").tobytes()
    runs += np.array([[0, 0xFFFF]] * 0xFFFF, "<u2").tobytes()
    for body, cardinality in ((one, 1 << 16), (one, 3), (runs, 3), (runs, 1 << 16)):
        bitmap = np.int32(1681511377).tobytes() + np.uint64(1).tobytes() + np.uint32(0).tobytes() + body
        vector = {"storageType": "i", "pathOrInlineDv": z85.encode(bitmap), "sizeInBytes": len(bitmap)}

        def change(action: dict[str, Any], vector: dict[str, Any] = vector | {"cardinality": cardinality}) -> None:
            if "add" in action:
                action["add"]["deletionVector"] = vector

        rewrite_log(table, change)
        with pytest.raises(TableError) as caught:
            pv.open(table).read()
        assert caught.value.reason == "bad-deletion-vector"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("fields", 0, "name"), None),
        (("fields", 0, "name"), {"a": 1}),
        (("fields", 1, "name"), "other"),
        (("fields", 0, "metadata"), "text"),
        (("fields", 0, "nullable"), {}),
        (("fields", 0, "type"), True),
        (("fields", 0, "type"), {"type": {"type": 5}}),
        (("fields", 0, "metadata"), {"delta.columnMapping.id": "x", "delta.columnMapping.physicalName": "k"}),
        (("fields", 0, "metadata"), {"delta.columnMapping.id": 1e400, "delta.columnMapping.physicalName": "\ud800"}),
        (("fields", 2, "name"), "\ud800"),
    ],
)
def test_an_invalid_schema_is_refused(make_table: Any, place: tuple[Any, ...], value: Any) -> None:
    table = make_table(3, partition_by=["p"], properties={"delta.columnMapping.mode": "name"})

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            inside = schema
            for step in place[:-1]:
                inside = inside[step]
            inside[place[-1]] = value
            action["metaData"]["schemaString"] = json.dumps(schema)

    rewrite_log(table, change)
    reasons = {"bad-schema", "broken-log", "unsupported-type"}
    assert refuses_or_does(table, reasons)


@pytest.mark.parametrize("name", ["delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablementVersion"])
def test_numbers_in_properties_that_are_none_raise_nothing(make_table: Any, name: str) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": True}
    table = make_table(3, properties=properties)

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"][name] = "²"

    rewrite_log(table, change)
    pv.open(table).add_columns(pa.schema([("new", pa.int64())]))
    assert pv.open(table, at="2100-01-01").snapshot.version == 1
    assert len(pv.open(table).history()) == 2


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "none",
        "[1]",
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        '{"numRecords": 3, "minValues": [1], "maxValues": "x", "nullCount": 7}',
        '{"numRecords": 3, "minValues": {"k": {}, "v": [1]}, "maxValues": {"v": 5}, "nullCount": {"k": {}, "v": []}}',
        r'{"numRecords": 3, "minValues": {"v": "\ud800"}, "nullCount": {"v": "0"}}',
    ],
)
def test_rows_of_files_with_damaged_statistics_change_as_others_do(make_table: Any, text: str, vectors: bool) -> None:
    table = make_table(6, properties={"delta.enableDeletionVectors": vectors})
    rewrite_log(table, set_stats(lambda _: text))
    assert pv.open(table).update({"v:id": "50"}, "v:id::int = 1").rows_updated == 1
    rewrite_log(table, set_stats(lambda _: text), 1)
    assert pv.open(table).update({"k": "k + 100"}, "k = 2").rows_updated == 1
    rewrite_log(table, set_stats(lambda _: text), 2)
    assert pv.open(table).delete("k = 3").rows_deleted == 1
    assert sorted(pv.open(table).to_arrow(["k"])["k"].to_pylist()) == [0, 1, 4, 5, 102]
    assert sorted(row["id"] for row in pv.open(table).read().to_pylist()) == [0, 2, 4, 5, 50]


def test_vacuum_keeps_files_that_links_inside_of_the_table_lead_to(make_table: Any) -> None:
    table = make_table(3)
    (file,) = table.glob("*.parquet")
    (table / "data").mkdir()
    file.rename(table / "data" / file.name)
    (table / "sub").symlink_to(table / "data")
    rewrite_log(table, set_path(f"sub/{file.name}"))
    os.utime(table / "data" / file.name, (1, 1))
    assert pv.open(table).vacuum() == []
    assert len(pv.open(table).read()) == 3
    pv.open(table).overwrite(events(3, 4))
    assert pv.open(table).restore(version=0).committed
    assert len(pv.open(table).read()) == 3


@pytest.mark.parametrize(
    "cdc", [5, [1], {"path": 5}, {"size": 1}, {"path": "a\ud800", "partitionValues": {}, "size": 1}]
)
def test_invalid_change_data_is_refused(make_table: Any, cdc: Any) -> None:
    table = make_table(3)
    with (table / "_delta_log" / f"{0:020}.json").open("a") as log:
        log.write(json.dumps({"cdc": cdc}) + "\n")
    with pytest.raises(TableError) as caught:
        pv.open(table).changes(0)
    assert caught.value.reason == "broken-log"
