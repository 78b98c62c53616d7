"""Looking after a table: optimize, vacuum, history, restore, properties, dropping the feature."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError


def ids(table: Path, **options: int) -> list[int]:
    return sorted(row["id"] for row in pv.open(table, **options).read().to_pylist())


def commit_lines(table: Path, version: int) -> str:
    return (table / "_delta_log" / f"{version:020}.json").read_text()


def test_optimize_puts_files_together_and_changes_no_row(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5, 5)
    result = pv.open(table).optimize()
    assert (result.version, result.files_removed, result.files_added) == (3, 3, 1)
    assert ids(table) == list(range(15))
    text = commit_lines(table, 3)
    assert text.count('"dataChange":false') == 4
    assert '"dataChange":true' not in text
    again = pv.open(table).optimize()
    assert (again.version, again.files_removed) == (3, 0)


def test_tasks_are_not_sent_the_list_of_all_files(make_table: Callable[..., Path]) -> None:
    current = pv.open(make_table(5, 5, 5)).snapshot
    bare = current.for_tasks()
    assert (bare.num_files, bare.files.schema, bare.schema) == (0, current.files.schema, current.schema)
    assert len(pickle.dumps(bare)) < 10_000


def test_optimize_keeps_partitions_apart(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5, partition_by=["p"])
    assert pv.open(table).optimize().files_added == 2
    found = pv.open(table).to_arrow()
    assert sorted(zip(found["k"].to_pylist(), found["p"].to_pylist(), strict=True)) == [
        (n, f"p{n % 2}") for n in range(10)
    ]


def test_optimize_reshreds(make_table: Callable[..., Path]) -> None:
    table = make_table(5)
    pv.open(table).optimize(schema="name string")
    (path,) = pv.open(table).snapshot.files["path"].to_pylist()
    schema = str(pq.ParquetFile(table / path).schema)
    assert "group field_id=-1 name" in schema
    assert "group field_id=-1 id" not in schema
    assert ids(table) == list(range(5))


def test_optimize_infers_one_schema_from_all_rows(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for key in ("a", "b"):
        rows = [f'{{"{key}": {n}, "both": "x{n}"}}' for n in range(200)]
        pv.write(table, {"p": [key] * 200, "v": pv.parse_json(rows)}, format="delta", mode="append", partition_by=["p"])
    pv.open(table).optimize(reshred=True)
    paths = pv.open(table).snapshot.files["path"].to_pylist()
    schemas = [pv.open(table / path).read().schema for path in paths]
    assert len(schemas) == 2
    assert schemas[0] == schemas[1]
    assert {str(path) for path, _ in schemas[0].leaves()} == {"$['a']", "$['b']", "$['both']"}


def test_vacuum_keeps_what_is_needed_and_what_is_young(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5)
    pv.open(table).overwrite({"k": [1], "p": ["x"], "v": pv.parse_json(['{"id": 77}'])})
    (table / "stray.parquet").write_bytes(b"x")
    (table / "_hidden").mkdir()
    (table / "_hidden" / "file.parquet").write_bytes(b"x")
    assert pv.open(table).vacuum() == []
    with pytest.raises(TableError) as caught:
        pv.open(table).vacuum(retention=timedelta(hours=1))
    assert caught.value.reason == "retention-too-short"
    expected = pv.open(table).vacuum(retention=timedelta(0), force=True, dry_run=True)
    assert len(expected) == 3
    assert (table / "stray.parquet").exists()
    assert pv.open(table).vacuum(retention=timedelta(0), force=True) == expected
    assert not (table / "stray.parquet").exists()
    assert (table / "_hidden" / "file.parquet").exists()
    assert ids(table) == [77]


def test_vacuum_deletes_only_what_was_removed_long_enough_ago(make_table: Callable[..., Path]) -> None:
    table = make_table(5)
    (old,) = table.glob("*.parquet")
    pv.open(table).overwrite({"k": [1]})
    week_ago = 1_000_000
    for file in table.glob("*.parquet"):
        os.utime(file, (week_ago, week_ago))
    # The file is old, but its removal is not.
    assert pv.open(table).vacuum() == []
    assert old.exists()


def test_vacuum_keeps_other_tables_in_directories_of_the_table(tmp_path: Path) -> None:
    for table in (tmp_path, tmp_path / "a" / "b"):
        pv.write(table, {"n": [1]}, format="delta")
        pv.open(table).overwrite({"n": [2]})
    now = timedelta(0)
    assert len(pv.open(tmp_path).vacuum(retention=now, force=True)) == 1
    assert pv.open(tmp_path / "a" / "b", version=0).to_arrow()["n"].to_pylist() == [1]
    assert len(pv.open(tmp_path / "a" / "b").vacuum(retention=now, force=True)) == 1
    pv.write(tmp_path / "c", {"n": [3]}, format="iceberg")
    assert pv.open(tmp_path).vacuum(retention=now, force=True) == []
    pv.open(tmp_path).erase("n = 2")
    assert pv.open(tmp_path / "c").to_arrow()["n"].to_pylist() == [3]


def test_vacuum_keeps_the_deletion_vectors_of_files_outside(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"n": [1, 2, 3]}, format="delta", properties={"delta.enableDeletionVectors": True})
    log = (tmp_path / "t" / "_delta_log" / f"{0:020}.json").read_text()
    (path,) = pv.open(tmp_path / "t").snapshot.files["path"].to_pylist()
    (tmp_path / "clone" / "_delta_log").mkdir(parents=True)
    clone = log.replace(path, (tmp_path / "t" / path).as_uri())
    (tmp_path / "clone" / "_delta_log" / f"{0:020}.json").write_text(clone)
    pv.open(pv.open(tmp_path / "clone", allow_outside=True).snapshot).delete("n = 2")
    assert pv.open(tmp_path / "clone").vacuum(retention=timedelta(0), force=True) == []
    assert pv.open(tmp_path / "clone", allow_outside=True).to_arrow()["n"].to_pylist() == [1, 3]


def test_every_time_of_the_history_finds_its_version(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta")
    for value in (True, False, True):
        pv.open(tmp_path).append({"n": [2]})
        pv.open(tmp_path).set_properties({"delta.enableInCommitTimestamps": value})
    stamp = 1_700_000_000.0
    for version in range(6):
        # Times of which a float's thousandfold is a bit too small are among them.
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (stamp, stamp + version * 0.055))
    for entry in pv.open(tmp_path).history():
        assert pv.open(tmp_path, at=entry["timestamp"]).snapshot.version == entry["version"]


def test_history_lists_the_operations(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5)
    pv.open(table).set_properties({"delta.appendOnly": True})
    found = pv.open(table).history()
    assert [(entry["version"], entry["operation"]) for entry in found] == [
        (2, "SET TBLPROPERTIES"), (1, "WRITE"), (0, "CREATE TABLE AS SELECT"),
    ]  # fmt: skip
    assert found[1]["operationMetrics"]["numOutputRows"] == "5"
    assert found[0]["timestamp"] >= found[1]["timestamp"]
    assert len(pv.open(table).history(limit=1)) == 1


def test_restore_brings_an_old_version_back(make_table: Callable[..., Path]) -> None:
    table = make_table(3, 3)
    pv.open(table).overwrite({"k": [1], "v": pv.parse_json(['{"id": 50}'])})
    pv.open(table).set_properties({"delta.enableVariantShredding": "false"})
    pv.open(table).restore(version=1)
    assert ids(table) == list(range(6))
    assert pv.open(table).snapshot.metadata.configuration["delta.enableVariantShredding"] == "true"
    assert pv.open(table).history()[0]["operation"] == "RESTORE"
    assert ids(table, version=2) == [50]


def test_restore_of_a_version_whose_files_are_gone_is_refused(make_table: Callable[..., Path]) -> None:
    table = make_table(3)
    pv.open(table).overwrite({"k": [1]})
    pv.open(table).vacuum(retention=timedelta(0), force=True)
    version = pv.open(table).snapshot.version
    with pytest.raises(TableError) as caught:
        pv.open(table).restore(version=0)
    assert caught.value.reason == "missing-file"
    assert pv.open(table).snapshot.version == version


def test_enabling_shredding_adds_the_feature(make_table: Callable[..., Path]) -> None:
    table = make_table(3, properties={"delta.enableVariantShredding": "false"})
    pv.open(table).set_properties({"delta.enableVariantShredding": True}, preview=True)
    found = pv.open(table).snapshot
    assert found.protocol.reader_features == ("variantType", "variantShredding-preview")
    assert found.shredding_enabled
    pv.open(table).set_properties({"delta.enableVariantShredding": None})
    assert "delta.enableVariantShredding" not in pv.open(table).snapshot.metadata.configuration


@pytest.mark.parametrize("name", ["delta.columnMapping.mode", "delta.enableRowTracking", "delta.constraints.c"])
def test_properties_that_need_more_are_refused(make_table: Callable[..., Path], name: str) -> None:
    table = make_table(1)
    with pytest.raises(TableError, match=name):
        pv.open(table).set_properties({name: "x"})
    assert pv.open(table).snapshot.version == 0


def test_dropping_shredding_rewrites_every_file(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5)
    result = pv.open(table).optimize(drop_shredding=True)
    assert (result.files_removed, result.files_added) == (2, 1)
    found = pv.open(table).snapshot
    assert found.protocol.reader_features == ("variantType",)
    assert not found.shredding_enabled
    for path in found.files["path"].to_pylist():
        assert "typed_value" not in str(pq.ParquetFile(table / path).schema)
    assert ids(table) == list(range(10))
    assert pv.open(table).optimize(drop_shredding=True).files_removed == 0
    assert ids(table, version=1) == list(range(10))


def test_optimize_reshreds_only_what_pays(tmp_path: Path) -> None:
    table = tmp_path / "t"
    old = [f'{{"n": {n}}}' for n in range(200)]
    new = [f'{{"n": {n}, "name": "name {n}"}}' for n in range(200)]
    pv.write(table, {"v": pv.parse_json(old)}, format="delta", schema="n bigint, gone double")
    pv.open(table).append({"v": pv.parse_json(old)}, schema="n bigint, gone double")
    first = pv.open(table).optimize()
    assert (first.files_removed, [drift.change for drift in first.drift.drifts], first.drift.pays) == (
        2,
        ["dead"],
        False,
    )
    pv.open(table).append({"v": pv.parse_json(new)}, schema="n bigint, gone double")
    judged = pv.open(table).optimize(dry_run=True)
    assert (judged.files_removed, judged.version, judged.drift.pays) == (0, 3, True)
    second = pv.open(table).optimize()
    assert (second.files_removed, second.files_added, second.version) == (2, 1, 4)
    assert second.drift.merged.to_ddl() == "gone double, n bigint, name string"
    assert pv.open(table).optimize().files_removed == 0


def test_restore_brings_a_dropped_feature_back(make_table: Callable[..., Path]) -> None:
    table = make_table(3)
    pv.open(table).optimize(drop_shredding=True)
    assert not any("Shredding" in name for name in pv.open(table).snapshot.protocol.reader_features or ())
    pv.open(table).restore(version=0)
    newest = pv.open(table).snapshot
    assert newest.shredding_enabled
    assert newest.protocol.reader_features == newest.protocol.writer_features == ("variantType", "variantShredding")
