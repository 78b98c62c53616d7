"""Columns that come, go, change their name and their type; rows that replace others; checkpoints and logs."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta.log.snapshot import clean_log, remove_log_files
from parquet_variant.tables.storage import LocalStorage, now_millis, open_storage

VARIANT = '{"type":"struct","fields":[{"name":"w","type":"variant"}]}'


def test_an_append_brings_columns_along(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1], "s": [{"a": 1}]}, format="delta")
    more = {"n": [2], "s": [{"a": 2, "b": "x"}], "v": pv.parse_json(['{"k": 1}']), "t": [0.5]}
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).append(more)
    assert caught.value.reason == "unknown-column"
    pv.open(tmp_path).append(more, schema_mode="merge")
    rows = pv.open(tmp_path).to_arrow()
    assert rows.column_names == ["n", "s", "v", "t"]
    assert rows["s"].to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert pv.open(tmp_path).read().to_pylist() == [None, {"k": 1}]
    assert "variantType" in (pv.open(tmp_path).snapshot.protocol.reader_features or ())
    assert pv.open(tmp_path).snapshot.version == 1
    pv.open(tmp_path).append({"n": [3]}, schema_mode="merge")
    assert pv.open(tmp_path).scan({"k": "$.k:int", "n": "n"}, "k = 1").to_arrow()["n"].to_pylist() == [2]
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).append({"n": [{"x": 1}]}, schema_mode="merge")
    assert caught.value.reason == "type-mismatch"


def test_types_widen_where_the_table_lets_them(tmp_path: Path) -> None:
    small = pa.table({"i": pa.array([1, 2], pa.int32()), "f": pa.array([0.1, 0.2], pa.float32())})
    pv.write(tmp_path, small, format="delta")
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).widen_column("i", "long")
    assert caught.value.reason == "not-widening"
    pv.open(tmp_path).set_properties({"delta.enableTypeWidening": True})
    pv.open(tmp_path).widen_column("i", "long")
    pv.open(tmp_path).append({"i": [2**40], "f": pa.array([0.1], pa.float64())}, schema_mode="merge")
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).widen_column("i", "double")
    assert caught.value.reason == "not-widening"
    rows = pv.open(tmp_path).to_arrow()
    assert rows["i"].to_pylist() == [1, 2, 2**40]
    assert rows.schema.field("f").type == pa.float64()
    field = pv.open(tmp_path).snapshot.schema.get("i")
    assert field is not None
    assert field.metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    # 0.1 as a float is above 0.1 as a double: the old file's bounds, written as 0.1, may not prune it.
    assert pv.open(tmp_path).scan({"f": "f"}, "f > 0.1 and f < 0.11").to_arrow().num_rows == 1
    assert pv.open(tmp_path).scan({"i": "i"}, "i > 1").to_arrow()["i"].to_pylist() == [2, 2**40]


def test_columns_are_renamed_and_dropped_without_touching_files(tmp_path: Path) -> None:
    pv.write(
        tmp_path,
        {"n": [1, 2], "p": ["a", "b"], "v": pv.parse_json(['{"k": 1}', "2"])},
        format="delta",
        partition_by=["p"],
    )
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).rename_column("n", "m")
    assert caught.value.reason == "no-column-mapping"
    pv.open(tmp_path).set_properties({"delta.columnMapping.mode": "name"})
    files = sorted(tmp_path.rglob("*.parquet"))
    pv.open(tmp_path).rename_column("n", "m")
    pv.open(tmp_path).rename_column("p", "q")
    pv.open(tmp_path).drop_column("v")
    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert pv.open(tmp_path).to_arrow().to_pylist() == [{"m": 1, "q": "a"}, {"m": 2, "q": "b"}]
    # A new column of the old name is another one.
    pv.open(tmp_path).add_columns(
        '{"type":"struct","fields":[{"name":"v","type":"variant"},{"name":"n","type":"long"}]}'
    )
    pv.open(tmp_path).append({"m": [3], "q": ["a"], "v": pv.parse_json(["7"]), "n": [9]})
    rows = pv.open(tmp_path).to_arrow()
    assert sorted(zip(rows["m"].to_pylist(), rows["q"].to_pylist(), rows["n"].to_pylist(), strict=True), key=str) == [
        (1, "a", None), (2, "b", None), (3, "a", 9)
    ]  # fmt: skip
    assert sorted(pv.open(tmp_path).read().to_pylist(), key=str) == [7, None, None]
    pv.open(tmp_path).set_properties({"delta.constraints.c": "m < 100"})
    for act, reason in (
        (lambda: pv.open(tmp_path).drop_column("m"), "column-in-use"),
        (lambda: pv.open(tmp_path).drop_column("q"), "bad-schema"),
        (lambda: pv.open(tmp_path).rename_column("n", "V"), "bad-schema"),
        (lambda: pv.open(tmp_path).rename_column("nowhere", "x"), "unknown-column"),
        (lambda: pv.open(tmp_path).add_columns(VARIANT.replace('"w"', '"N"')), "bad-schema"),
    ):
        with pytest.raises(TableError) as caught:
            act()
        assert caught.value.reason == reason


# ---- rows in the place of others


@pytest.mark.parametrize("vectors", [False, True])
def test_replace_where(tmp_path: Path, vectors: bool) -> None:
    data = {"d": [1, 1, 2, 3], "v": pv.parse_json(["1", "2", "3", "4"])}
    pv.write(tmp_path, data, format="delta", properties={"delta.enableDeletionVectors": vectors})
    result = pv.open(tmp_path).overwrite({"d": [1], "v": pv.parse_json(["9"])}, where="d = 1")
    assert (result.rows_deleted, result.rows_inserted) == (2, 1)
    assert sorted(pv.open(tmp_path).read().to_pylist()) == [3, 4, 9]
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).overwrite({"d": [2], "v": pv.parse_json(["9"])}, where="d = 1")
    assert caught.value.reason == "outside-condition"
    assert pv.open(tmp_path).snapshot.version == 1


def test_replace_partitions(tmp_path: Path) -> None:
    pv.write(tmp_path, {"p": ["a", "b", "b"], "n": [1, 2, 3]}, format="delta", partition_by=["p"])
    result = pv.open(tmp_path).overwrite({"p": ["b", "c"], "n": [20, 30]}, partitions=True)
    assert (result.rows_deleted, result.rows_inserted) == (2, 2)
    assert sorted(pv.open(tmp_path).to_arrow()["n"].to_pylist()) == [1, 20, 30]


@pytest.mark.parametrize(("asked", "expected"), [("2020-02-03T00:00:00Z", "2020-02-03T00:00:00"), (-(10**30), "-")])
def test_a_time_before_the_table_is_reported_as_a_time(tmp_path: Path, asked: str | int, expected: str) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta")
    with pytest.raises(TableError, match=f"no version as old as {expected}.* UTC"):
        _ = pv.open(tmp_path, at=asked).snapshot


@pytest.mark.filterwarnings("ignore:empty strings in the partition column")
@pytest.mark.filterwarnings("ignore:the partition column")
@pytest.mark.parametrize(
    ("kept", "replaced", "kind"),
    [
        (datetime(2021, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (datetime(2021, 1, 1), datetime(2020, 1, 1), pa.timestamp("us")),
        ("x", "", pa.string()),
        ("x", None, pa.string()),
    ],
)
def test_partitions_are_replaced_and_compacted_whatever_text_another_writer_has_for_their_value(
    tmp_path: Path, kept: Any, replaced: Any, kind: pa.DataType
) -> None:
    def rows(values: list[Any], numbers: list[int]) -> pa.Table:
        return pa.table({"p": pa.array(values, kind), "n": pa.array(numbers)})

    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    deltalake.write_deltalake(tmp_path, rows([kept, replaced, replaced], [1, 2, 3]), partition_by=["p"])
    pv.open(tmp_path).append(rows([kept, replaced], [4, 5]))
    result = pv.open(tmp_path).overwrite(rows([replaced], [6]), partitions=True)
    assert (result.rows_deleted, result.rows_inserted) == (3, 1)
    assert sorted(pv.open(tmp_path).to_arrow()["n"].to_pylist()) == [1, 4, 6]
    pv.open(tmp_path).optimize()
    assert pv.open(tmp_path).snapshot.num_files == 2
    assert sorted(pv.open(tmp_path).to_arrow()["n"].to_pylist()) == [1, 4, 6]


# ---- checkpoints and logs


def test_checkpoints_of_the_second_spec(tmp_path: Path) -> None:
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": True}
    pv.write(tmp_path, {"n": [1], "v": pv.parse_json(['{"k": 1}'])}, format="delta", properties=properties)
    pv.open(tmp_path).append({"n": [2], "v": pv.parse_json(['{"k": 2}'])}, batch=("app", 7))
    before = pv.open(tmp_path).snapshot
    path = pv.open(tmp_path).checkpoint()
    assert path.startswith(f"_delta_log/{1:020}.checkpoint.")
    assert len(list((tmp_path / "_delta_log" / "_sidecars").glob("*.parquet"))) == 1
    # delta-spark reads these columns of every checkpoint.
    assert {"add", "remove"} <= set(pq.read_schema(tmp_path / path).names)
    for file in (tmp_path / "_delta_log").glob("*.json"):
        file.unlink()
    after = pv.open(tmp_path).snapshot
    assert (after.version, after.protocol, after.metadata) == (1, before.protocol, before.metadata)
    assert after.txns["app"].version == 7
    assert len(pv.open(tmp_path).scan({"k": "$.k:int"}, "k = 2").plan.pruned.files) == 1
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    assert deltalake.DeltaTable(str(tmp_path)).version() == 1


def test_a_checkpoint_that_another_process_removes_during_a_cleanup_names_no_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta", properties={"delta.checkpointPolicy": "v2"})
    old, opened = pv.open(tmp_path).checkpoint(), LocalStorage.open
    pv.open(tmp_path).append({"n": [2]})
    pv.open(tmp_path).checkpoint()

    def removed(storage: LocalStorage, path: str) -> pa.NativeFile:
        if path == old:
            (tmp_path / old).unlink()
        return opened(storage, path)

    monkeypatch.setattr(LocalStorage, "open", removed)
    gone = remove_log_files(open_storage(tmp_path), lambda _: True, now_millis() + 1)
    assert len(gone) == 1
    assert gone[0].startswith("_delta_log/_sidecars/")
    assert pv.open(tmp_path).to_arrow()["n"].to_pylist() == [1, 2]


def test_an_old_log_is_cleaned_up(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [0]}, format="delta", properties={"delta.logRetentionDuration": "interval 2 days"})
    for n in range(1, 6):
        pv.open(tmp_path).append({"n": [n]})
    log = tmp_path / "_delta_log"
    pv.open(pv.open(tmp_path, version=2).snapshot).checkpoint()
    pv.open(pv.open(tmp_path, version=4).snapshot).checkpoint()
    configuration = pv.open(tmp_path).snapshot.metadata.configuration
    assert clean_log(open_storage(tmp_path), configuration) == []
    for version in range(4):
        stamp = time.time() - 5 * 86_400 + version
        os.utime(log / f"{version:020}.json", (stamp, stamp))
    assert clean_log(open_storage(tmp_path), dict(configuration) | {"delta.enableExpiredLogCleanup": "false"}) == []
    gone = clean_log(open_storage(tmp_path), configuration)
    assert sorted(Path(path).name for path in gone) == [f"{0:020}.json", f"{1:020}.json"]
    for version in range(2, 6):
        assert len(pv.open(tmp_path, version=version).to_arrow()) == version + 1


def test_a_commit_is_not_older_than_the_one_before_it_when_a_log_is_cleaned_up(tmp_path: Path) -> None:
    for n in range(4):
        pv.write(tmp_path, {"n": [n]}, format="delta", mode="append")
    pv.open(pv.open(tmp_path, version=2).snapshot).checkpoint()
    old = time.time() - 50 * 86_400
    os.utime(tmp_path / "_delta_log" / f"{3:020}.json", (old, old))  # As a copy may leave it.
    assert clean_log(open_storage(tmp_path), {}) == []
    assert len(pv.open(tmp_path, version=0).to_arrow()) == 1


def test_compacted_commits_are_passed_over_since_those_of_others_tell_of_files_that_are_gone(tmp_path: Path) -> None:
    # As in the table compacted-log-files-table of delta-kernel-rs: newest first, with adds of files that went.
    for n in range(4):
        pv.write(tmp_path, {"n": [n]}, format="delta", mode="append")
    pv.open(tmp_path).delete("n = 2")
    log = tmp_path / "_delta_log"
    commits = [(log / f"{v:020}.json").read_text().splitlines() for v in range(5)]
    lines = [line for commit in reversed(commits) for line in commit if "commitInfo" not in line]
    (log / f"{0:020}.{4:020}.compacted.json").write_text("\n".join(lines))
    assert sorted(pv.open(tmp_path).to_arrow()["n"].to_pylist()) == [0, 1, 3]
    assert pv.open(tmp_path).append({"n": [5]}).version == 5
    assert sorted(pv.open(tmp_path).to_arrow()["n"].to_pylist()) == [0, 1, 3, 5]


def test_a_commit_of_a_version_that_none_can_have_reached_is_an_error(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta")
    (tmp_path / "_delta_log" / f"{10**20 - 1}.json").write_text("{}")
    with pytest.raises(TableError, match="lacks") as caught:
        pv.open(tmp_path).to_arrow()
    assert caught.value.reason == "broken-log"


def map_of(kind: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), pa.list_(pa.struct([("x", kind)])))


def test_what_lists_and_maps_hold_widens(tmp_path: Path) -> None:
    table = tmp_path / "t"
    narrow = pa.table(
        {
            "l": pa.array([[1, 2], None, [None]], pa.list_(pa.int16())),
            "m": pa.array([[("a", [{"x": 1}])], [], None], map_of(pa.int32())),
            "n": pa.array([[1], [2], [3]], pa.list_(pa.int32())),
        }
    )  # fmt: skip
    pv.write(
        table, narrow, format="delta", properties={"delta.enableTypeWidening": True, "delta.columnMapping.mode": "name"}
    )
    assert pv.open(table).widen_column("l.element", "BIGINT").committed
    pv.open(table).widen_column("m.value.element.x", "long")
    with pytest.raises(TableError, match="cannot widen"):
        pv.open(table).widen_column("n.element", "short")
    with pytest.raises(TableError, match=r"'n\.key'"):
        pv.open(table).widen_column("n.key", "long")
    with pytest.raises(TableError, match="not a field of a struct"):
        pv.open(table).drop_column("n.element")
    schema = pv.open(table).snapshot.schema
    (change,) = schema.fields[0].metadata["delta.typeChanges"]
    assert change == {"fromType": "short", "toType": "long", "fieldPath": "element"}
    assert "delta.typeChanges" not in schema.fields[1].metadata
    big = 2**40
    wide = {"l": pa.array([[big]]), "m": pa.array([[("b", [{"x": big}])]], map_of(pa.int64()))}
    pv.open(table).append(wide | {"n": pa.array([[big]])}, schema_mode="merge")
    assert pv.open(table).snapshot.schema.fields[2].metadata["delta.typeChanges"][0]["fieldPath"] == "element"
    pv.open(table).rename_column("m.value.element.x", "y")
    found = pv.open(table).to_arrow()
    assert found["l"].to_pylist() == [[1, 2], None, [None], [big]]
    assert found["m"].to_pylist() == [[("a", [{"y": 1}])], [], None, [("b", [{"y": big}])]]
    assert pv.open(table).scan(["n"]).to_arrow()["n"].to_pylist() == [[1], [2], [3], [big]]


def test_a_restored_table_gives_no_id_of_a_column_again(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"n": [1]}, format="delta", properties={"delta.columnMapping.mode": "id"})
    for name in ("a", "b"):
        pv.open(table).append({"n": [2], name: [7]}, schema_mode="merge")
    pv.open(table).restore(version=0)
    pv.open(table).append({"n": [3], "c": [8]}, schema_mode="merge")
    ids = [f.field_id for f in pv.open(table).snapshot.schema.fields]
    assert ids == [1, 4]
    assert pv.open(table).to_arrow().to_pydict() == {"n": [1, 3], "c": [None, 8]}


def test_write_replaces_what_a_condition_names(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"n": [1, 2], "d": ["a", "b"]}, format="delta")
    done = pv.write(table, {"n": [3], "d": ["a"]}, format="delta", mode="overwrite", where="d = 'a'")
    assert (done.version, done.committed) == (1, True)
    assert sorted(pv.open(table).to_arrow()["n"].to_pylist()) == [2, 3]
    with pytest.raises(TableError) as caught:
        pv.write(table, {"n": [3], "d": ["c"]}, format="delta", mode="overwrite", where="d = 'a'")
    assert caught.value.reason == "outside-condition"
    with pytest.raises(TableError, match="mode 'overwrite'"):
        pv.write(table, {"n": [3], "d": ["a"]}, format="delta", mode="append", where="d = 'a'")
    with pytest.raises(TableError, match="batch"):
        pv.write(table, {"n": [3]}, format="delta", mode="overwrite", where="d = 'a'", batch=("a", 1))


def test_vacuum_removes_change_data_that_is_old(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"n": [1, 2]}, format="delta", properties={"delta.enableChangeDataFeed": True})
    pv.open(table).delete("n = 1")
    (change,) = (table / "_change_data").iterdir()
    assert pv.open(table).vacuum() == []
    gone = pv.open(table).vacuum(retention=timedelta(0), force=True)
    assert f"_change_data/{change.name}" in gone
    assert not change.exists()
    assert pv.open(table).to_arrow()["n"].to_pylist() == [2]
