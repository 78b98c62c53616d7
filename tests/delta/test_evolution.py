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
from parquet_variant.tables.delta.log.checkpoint import clean_log
from parquet_variant.tables.storage import open_storage

VARIANT = '{"type":"struct","fields":[{"name":"w","type":"variant"}]}'


def test_an_append_brings_columns_along(tmp_path: Path) -> None:
    pv.delta.write(tmp_path, {"n": [1], "s": [{"a": 1}]})
    more = {"n": [2], "s": [{"a": 2, "b": "x"}], "v": pv.parse_json(['{"k": 1}']), "t": [0.5]}
    with pytest.raises(TableError) as caught:
        pv.delta.append(tmp_path, more)
    assert caught.value.reason == "unknown-column"
    pv.delta.append(tmp_path, more, schema_mode="merge")
    rows = pv.delta.read_table(tmp_path)
    assert rows.column_names == ["n", "s", "v", "t"]
    assert rows["s"].to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert pv.delta.read(tmp_path).to_pylist() == [None, {"k": 1}]
    assert "variantType" in (pv.delta.snapshot(tmp_path).protocol.reader_features or ())
    assert pv.delta.snapshot(tmp_path).version == 1
    pv.delta.append(tmp_path, {"n": [3]}, schema_mode="merge")
    assert pv.delta.extract(tmp_path, {"k": "$.k:int", "n": "n"}, "k = 1")["n"].to_pylist() == [2]
    with pytest.raises(TableError) as caught:
        pv.delta.append(tmp_path, {"n": [{"x": 1}]}, schema_mode="merge")
    assert caught.value.reason == "type-mismatch"


def test_types_widen_where_the_table_lets_them(tmp_path: Path) -> None:
    small = pa.table({"i": pa.array([1, 2], pa.int32()), "f": pa.array([0.1, 0.2], pa.float32())})
    pv.delta.write(tmp_path, small)
    with pytest.raises(TableError) as caught:
        pv.delta.widen_column(tmp_path, "i", "long")
    assert caught.value.reason == "not-widening"
    pv.delta.set_properties(tmp_path, {"delta.enableTypeWidening": True})
    pv.delta.widen_column(tmp_path, "i", "long")
    pv.delta.append(tmp_path, {"i": [2**40], "f": pa.array([0.1], pa.float64())}, schema_mode="merge")
    with pytest.raises(TableError) as caught:
        pv.delta.widen_column(tmp_path, "i", "double")
    assert caught.value.reason == "not-widening"
    rows = pv.delta.read_table(tmp_path)
    assert rows["i"].to_pylist() == [1, 2, 2**40]
    assert rows.schema.field("f").type == pa.float64()
    field = pv.delta.snapshot(tmp_path).schema.get("i")
    assert field is not None
    assert field.metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    # 0.1 as a float is above 0.1 as a double: the old file's bounds, written as 0.1, may not prune it.
    assert pv.delta.extract(tmp_path, {"f": "f"}, "f > 0.1 and f < 0.11").num_rows == 1
    assert pv.delta.extract(tmp_path, {"i": "i"}, "i > 1")["i"].to_pylist() == [2, 2**40]


def test_columns_are_renamed_and_dropped_without_touching_files(tmp_path: Path) -> None:
    pv.delta.write(tmp_path, {"n": [1, 2], "p": ["a", "b"], "v": pv.parse_json(['{"k": 1}', "2"])}, partition_by=["p"])
    with pytest.raises(TableError) as caught:
        pv.delta.rename_column(tmp_path, "n", "m")
    assert caught.value.reason == "no-column-mapping"
    pv.delta.set_properties(tmp_path, {"delta.columnMapping.mode": "name"})
    files = sorted(tmp_path.rglob("*.parquet"))
    pv.delta.rename_column(tmp_path, "n", "m")
    pv.delta.rename_column(tmp_path, "p", "q")
    pv.delta.drop_column(tmp_path, "v")
    assert sorted(tmp_path.rglob("*.parquet")) == files
    assert pv.delta.read_table(tmp_path).to_pylist() == [{"m": 1, "q": "a"}, {"m": 2, "q": "b"}]
    # A new column of the old name is another one.
    pv.delta.add_columns(
        tmp_path, '{"type":"struct","fields":[{"name":"v","type":"variant"},{"name":"n","type":"long"}]}'
    )
    pv.delta.append(tmp_path, {"m": [3], "q": ["a"], "v": pv.parse_json(["7"]), "n": [9]})
    rows = pv.delta.read_table(tmp_path)
    assert sorted(zip(rows["m"].to_pylist(), rows["q"].to_pylist(), rows["n"].to_pylist(), strict=True), key=str) == [
        (1, "a", None), (2, "b", None), (3, "a", 9)
    ]  # fmt: skip
    assert sorted(pv.delta.read(tmp_path).to_pylist(), key=str) == [7, None, None]
    pv.delta.set_properties(tmp_path, {"delta.constraints.c": "m < 100"})
    for act, reason in (
        (lambda: pv.delta.drop_column(tmp_path, "m"), "column-in-use"),
        (lambda: pv.delta.drop_column(tmp_path, "q"), "bad-schema"),
        (lambda: pv.delta.rename_column(tmp_path, "n", "V"), "bad-schema"),
        (lambda: pv.delta.rename_column(tmp_path, "nowhere", "x"), "unknown-column"),
        (lambda: pv.delta.add_columns(tmp_path, VARIANT.replace('"w"', '"N"')), "bad-schema"),
    ):
        with pytest.raises(TableError) as caught:
            act()
        assert caught.value.reason == reason


# ---- rows in the place of others


@pytest.mark.parametrize("vectors", [False, True])
def test_replace_where(tmp_path: Path, vectors: bool) -> None:
    data = {"d": [1, 1, 2, 3], "v": pv.parse_json(["1", "2", "3", "4"])}
    pv.delta.write(tmp_path, data, properties={"delta.enableDeletionVectors": vectors})
    result = pv.delta.replace_where(tmp_path, {"d": [1], "v": pv.parse_json(["9"])}, "d = 1")
    assert (result.rows_deleted, result.rows_inserted) == (2, 1)
    assert sorted(pv.delta.read(tmp_path).to_pylist()) == [3, 4, 9]
    with pytest.raises(TableError) as caught:
        pv.delta.replace_where(tmp_path, {"d": [2], "v": pv.parse_json(["9"])}, "d = 1")
    assert caught.value.reason == "outside-condition"
    assert pv.delta.snapshot(tmp_path).version == 1


def test_replace_partitions(tmp_path: Path) -> None:
    pv.delta.write(tmp_path, {"p": ["a", "b", "b"], "n": [1, 2, 3]}, partition_by=["p"])
    result = pv.delta.replace_partitions(tmp_path, {"p": ["b", "c"], "n": [20, 30]})
    assert (result.rows_deleted, result.rows_inserted) == (2, 2)
    assert sorted(pv.delta.read_table(tmp_path)["n"].to_pylist()) == [1, 20, 30]


@pytest.mark.parametrize(("asked", "expected"), [("2020-02-03T00:00:00Z", "2020-02-03T00:00:00"), (-(10**30), "-")])
def test_a_time_before_the_table_is_reported_as_a_time(tmp_path: Path, asked: str | int, expected: str) -> None:
    pv.delta.write(tmp_path, {"n": [1]})
    with pytest.raises(TableError, match=f"no version as old as {expected}.* UTC"):
        pv.delta.snapshot(tmp_path, timestamp=asked)


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
    pv.delta.append(tmp_path, rows([kept, replaced], [4, 5]))
    result = pv.delta.replace_partitions(tmp_path, rows([replaced], [6]))
    assert (result.rows_deleted, result.rows_inserted) == (3, 1)
    assert sorted(pv.delta.read_table(tmp_path)["n"].to_pylist()) == [1, 4, 6]
    pv.delta.optimize(tmp_path)
    assert pv.delta.snapshot(tmp_path).num_files == 2
    assert sorted(pv.delta.read_table(tmp_path)["n"].to_pylist()) == [1, 4, 6]


# ---- checkpoints and logs


def test_checkpoints_of_the_second_spec(tmp_path: Path) -> None:
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": True}
    pv.delta.write(tmp_path, {"n": [1], "v": pv.parse_json(['{"k": 1}'])}, properties=properties)
    pv.delta.append(tmp_path, {"n": [2], "v": pv.parse_json(['{"k": 2}'])}, txn=("app", 7))
    before = pv.delta.snapshot(tmp_path)
    path = pv.delta.checkpoint(tmp_path)
    assert path.startswith(f"_delta_log/{1:020}.checkpoint.")
    assert len(list((tmp_path / "_delta_log" / "_sidecars").glob("*.parquet"))) == 1
    # delta-spark reads these columns of every checkpoint.
    assert {"add", "remove"} <= set(pq.read_schema(tmp_path / path).names)
    for file in (tmp_path / "_delta_log").glob("*.json"):
        file.unlink()
    after = pv.delta.snapshot(tmp_path)
    assert (after.version, after.protocol, after.metadata) == (1, before.protocol, before.metadata)
    assert after.txns["app"].version == 7
    assert len(pv.delta.scan(tmp_path, {"k": "$.k:int"}, "k = 2").pruned.files) == 1
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    assert deltalake.DeltaTable(str(tmp_path)).version() == 1


def test_an_old_log_is_cleaned_up(tmp_path: Path) -> None:
    pv.delta.write(tmp_path, {"n": [0]}, properties={"delta.logRetentionDuration": "interval 2 days"})
    for n in range(1, 6):
        pv.delta.append(tmp_path, {"n": [n]})
    log = tmp_path / "_delta_log"
    pv.delta.checkpoint(pv.delta.snapshot(tmp_path, version=2))
    pv.delta.checkpoint(pv.delta.snapshot(tmp_path, version=4))
    configuration = pv.delta.snapshot(tmp_path).metadata.configuration
    assert clean_log(open_storage(tmp_path), configuration) == []
    for version in range(4):
        stamp = time.time() - 5 * 86_400 + version
        os.utime(log / f"{version:020}.json", (stamp, stamp))
    assert clean_log(open_storage(tmp_path), dict(configuration) | {"delta.enableExpiredLogCleanup": "false"}) == []
    gone = clean_log(open_storage(tmp_path), configuration)
    assert sorted(Path(path).name for path in gone) == [f"{0:020}.json", f"{1:020}.json"]
    for version in range(2, 6):
        assert len(pv.delta.read_table(tmp_path, version=version)) == version + 1


def test_a_commit_is_no_older_than_the_one_before_it_when_a_log_is_cleaned_up(tmp_path: Path) -> None:
    for n in range(4):
        pv.delta.write(tmp_path, {"n": [n]}, mode="append")
    pv.delta.checkpoint(pv.delta.snapshot(tmp_path, version=2))
    old = time.time() - 50 * 86_400
    os.utime(tmp_path / "_delta_log" / f"{3:020}.json", (old, old))  # As a copy may leave it.
    assert clean_log(open_storage(tmp_path), {}) == []
    assert len(pv.delta.read_table(tmp_path, version=0)) == 1


def test_compacted_commits_are_passed_over_since_those_of_others_tell_of_files_that_are_gone(tmp_path: Path) -> None:
    # As in the table compacted-log-files-table of delta-kernel-rs: newest first, with adds of files that went.
    for n in range(4):
        pv.delta.write(tmp_path, {"n": [n]}, mode="append")
    pv.delta.delete(tmp_path, "n = 2")
    log = tmp_path / "_delta_log"
    commits = [(log / f"{v:020}.json").read_text().splitlines() for v in range(5)]
    lines = [line for commit in reversed(commits) for line in commit if "commitInfo" not in line]
    (log / f"{0:020}.{4:020}.compacted.json").write_text("\n".join(lines))
    assert sorted(pv.delta.read_table(tmp_path)["n"].to_pylist()) == [0, 1, 3]
    assert pv.delta.append(tmp_path, {"n": [5]}).version == 5
    assert sorted(pv.delta.read_table(tmp_path)["n"].to_pylist()) == [0, 1, 3, 5]


def test_a_commit_of_a_version_that_none_can_have_reached_is_an_error(tmp_path: Path) -> None:
    pv.delta.write(tmp_path, {"n": [1]})
    (tmp_path / "_delta_log" / f"{10**20 - 1}.json").write_text("{}")
    with pytest.raises(TableError, match="lacks") as caught:
        pv.delta.read_table(tmp_path)
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
    pv.delta.write(table, narrow, properties={"delta.enableTypeWidening": True, "delta.columnMapping.mode": "name"})
    assert pv.delta.widen_column(table, "l.element", "BIGINT").committed
    pv.delta.widen_column(table, "m.value.element.x", "long")
    with pytest.raises(TableError, match="cannot widen"):
        pv.delta.widen_column(table, "n.element", "short")
    with pytest.raises(TableError, match="'key'"):
        pv.delta.widen_column(table, "n.key", "long")
    with pytest.raises(TableError, match="part of a list or map"):
        pv.delta.drop_column(table, "n.element")
    schema = pv.delta.snapshot(table).schema
    (change,) = schema.fields[0].metadata["delta.typeChanges"]
    assert change == {"fromType": "short", "toType": "long", "fieldPath": "element"}
    assert "delta.typeChanges" not in schema.fields[1].metadata
    big = 2**40
    wide = {"l": pa.array([[big]]), "m": pa.array([[("b", [{"x": big}])]], map_of(pa.int64()))}
    pv.delta.append(table, wide | {"n": pa.array([[big]])}, schema_mode="merge")
    assert pv.delta.snapshot(table).schema.fields[2].metadata["delta.typeChanges"][0]["fieldPath"] == "element"
    pv.delta.rename_column(table, "m.value.element.x", "y")
    found = pv.delta.read_table(table)
    assert found["l"].to_pylist() == [[1, 2], None, [None], [big]]
    assert found["m"].to_pylist() == [[("a", [{"y": 1}])], [], None, [("b", [{"y": big}])]]
    assert pv.delta.scan(table, ["n"]).to_table()["n"].to_pylist() == [[1], [2], [3], [big]]


def test_a_restored_table_gives_no_id_of_a_column_again(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.delta.write(table, {"n": [1]}, properties={"delta.columnMapping.mode": "id"})
    for name in ("a", "b"):
        pv.delta.append(table, {"n": [2], name: [7]}, schema_mode="merge")
    pv.delta.restore(table, version=0)
    pv.delta.append(table, {"n": [3], "c": [8]}, schema_mode="merge")
    ids = [f.field_id for f in pv.delta.snapshot(table).schema.fields]
    assert ids == [1, 4]
    assert pv.delta.read_table(table).to_pydict() == {"n": [1, 3], "c": [None, 8]}


def test_write_replaces_what_a_condition_names(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.delta.write(table, {"n": [1, 2], "d": ["a", "b"]})
    done = pv.delta.write(table, {"n": [3], "d": ["a"]}, mode="overwrite", replace_where="d = 'a'")
    assert (done.version, done.committed) == (1, True)
    assert sorted(pv.delta.read_table(table)["n"].to_pylist()) == [2, 3]
    with pytest.raises(TableError) as caught:
        pv.delta.write(table, {"n": [3], "d": ["c"]}, mode="overwrite", replace_where="d = 'a'")
    assert caught.value.reason == "outside-condition"
    with pytest.raises(TableError, match="mode 'overwrite'"):
        pv.delta.write(table, {"n": [3], "d": ["a"]}, mode="append", replace_where="d = 'a'")
    with pytest.raises(TableError, match="txn"):
        pv.delta.write(table, {"n": [3]}, mode="overwrite", replace_where="d = 'a'", txn=("a", 1))


def test_vacuum_removes_change_data_that_is_old(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.delta.write(table, {"n": [1, 2]}, properties={"delta.enableChangeDataFeed": True})
    pv.delta.delete(table, "n = 1")
    (change,) = (table / "_change_data").iterdir()
    assert pv.delta.vacuum(table) == []
    gone = pv.delta.vacuum(table, retention=timedelta(0), force=True)
    assert f"_change_data/{change.name}" in gone
    assert not change.exists()
    assert pv.delta.read_table(table)["n"].to_pylist() == [2]
