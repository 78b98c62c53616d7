"""Rules that hold for tables of both formats: keys with dots, missing paths, batches, and bounds of paths."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.path import VariantPath
from parquet_variant.tables.delta.log import commit as commit_module
from parquet_variant.tables.delta.log.checkpoint import clean_log
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.path_bounds import complete_bounds

FORMATS = pytest.mark.parametrize("table_format", [pv.delta, pv.iceberg], ids=["delta", "iceberg"])


@FORMATS
@pytest.mark.parametrize("text", ['{".a":1}', '{".":1,"a.b":2,"":3,"..":{".x":1},".a":0}'])
def test_keys_and_columns_that_look_like_paths_are_names(table_format, text, tmp_path):
    table, keys = tmp_path / "t", json.loads(text)
    rows = {".id": [1, 2], "a.b": [3, 4], "v": pv.parse_json([text, text])}
    table_format.write(table, rows)
    table_format.append(table, rows)
    table_format.update(table, {"v:['.a']": "5"}, '".id" = 1')
    table_format.delete(table, '".id" = 2')
    table_format.optimize(table)
    assert table_format.read(table).to_pylist() == [keys | {".a": 5}] * 2
    assert table_format.read_table(table, columns=[".id", "a.b"]).to_pylist() == [{".id": 1, "a.b": 3}] * 2
    assert table_format.scan(table, {"x": "$['.a']:int"}, where="x = 5").to_table()["x"].to_pylist() == [5, 5]


@FORMATS
def test_a_missing_path_that_is_set_to_itself_stays_missing(table_format, tmp_path):
    table = tmp_path / "t"
    table_format.write(table, {"id": [1, 2, 3], "v": pv.parse_json(['{"a":1}', '{"b":2}', '{"a":null}'])})
    table_format.update(table, {"v:a": "v:a"})
    assert table_format.read(table).to_pylist() == [{"a": 1}, {"b": 2}, {"a": None}]
    table_format.update(table, {"v:a": "v:a::int + 1", "v:c": "v:b"})
    assert table_format.read(table).to_pylist() == [{"a": 2, "c": None}, {"b": 2, "c": 2}, {"a": None, "c": None}]
    table_format.update(table, {"v:a": "NULL"}, "id = 2")
    assert {"a": None, "b": 2, "c": 2} in table_format.read(table).to_pylist()


def test_a_batch_is_known_after_the_snapshots_that_recorded_it_are_gone(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    first = pv.iceberg.write(table, rows).snapshot_id
    assert pv.iceberg.append(table, rows, batch=("loader", 7)).committed
    assert pv.iceberg.append(table, rows, batch=("loader", 3), branch="main").committed is False
    # As after another engine's rewrite_data_files and expire_snapshots: no snapshot has our summary.
    version = sorted(table.glob("metadata/v*.metadata.json"))[-1]
    document = json.loads(version.read_text())
    for info in document["snapshots"]:
        info["summary"] = {"operation": "replace"}
    version.write_text(json.dumps(document))
    assert not pv.iceberg.append(table, rows, batch=("loader", 7)).committed
    assert pv.iceberg.append(table, rows, batch=("loader", 8)).committed
    # Rolled back batches may be written again.
    pv.iceberg.rollback(table, snapshot_id=first)
    assert pv.iceberg.append(table, rows, batch=("loader", 8)).committed
    assert len(pv.iceberg.read(table)) == 2


def test_batches_of_branches_and_of_replaced_tables_are_their_own(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    pv.iceberg.write(table, rows)
    pv.iceberg.branch(table, "audit.b")
    assert pv.iceberg.append(table, rows, batch=("loader", 1), branch="audit.b").committed
    assert pv.iceberg.append(table, rows, batch=("loader", 1)).committed
    assert not pv.iceberg.append(table, rows, batch=("loader", 1), branch="audit.b").committed
    pv.iceberg.write(table, rows)
    assert pv.iceberg.append(table, rows, batch=("loader", 1)).committed


def test_tables_with_variants_tell_iceberg_for_spark_not_to_use_its_vectorized_reader(tmp_path):
    name = "read.parquet.vectorization.enabled"
    pv.iceberg.write(tmp_path / "plain", {"n": [1]})
    assert name not in pv.iceberg.snapshot(tmp_path / "plain").properties
    pv.iceberg.add_columns(tmp_path / "plain", {"v": "variant"})
    assert pv.iceberg.snapshot(tmp_path / "plain").properties[name] == "false"
    pv.iceberg.write(tmp_path / "chosen", {"v": pv.parse_json(["1"])}, properties={name: "true"})
    assert pv.iceberg.snapshot(tmp_path / "chosen").properties[name] == "true"


def test_both_objects_of_bounds_have_the_same_paths():
    one, two = VariantPath.parse("$.a"), VariantPath.parse("$.b")
    sides = ValueBounds(pv.Variant.from_python(1), pv.Variant.from_python(2))
    lower, upper = complete_bounds({one: sides, two: ValueBounds(pv.Variant.from_python(1), None)})
    assert list(lower) == list(upper) == [one]


def test_columns_are_given_as_ddl(tmp_path):
    table = tmp_path / "t"
    pv.delta.create(table, "id BIGINT NOT NULL, v VARIANT COMMENT 'payload', s STRUCT<a: INT, b: ARRAY<STRING>>")
    pv.delta.add_columns(table, "m MAP<STRING, VARIANT>")
    fields = pv.delta.snapshot(table).schema.fields
    assert [f.name for f in fields] == ["id", "v", "s", "m"]
    assert [f.nullable for f in fields] == [False, True, True, True]
    with pytest.raises(TableError, match="unknown type 'BIGIT': did you mean 'bigint'"):
        pv.delta.create(tmp_path / "u", "id BIGIT")


def test_rows_are_not_added_to_a_delta_table_whose_protocol_lacks_the_feature_of_a_column(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    pv.delta.write(table, rows)
    log = table / commit_path(0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
    log.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(TableError, match="variantType") as caught:
        pv.delta.append(table, rows)
    assert caught.value.reason == "unsupported-feature"
    pv.delta.set_properties(table, {"delta.feature.variantType": "supported"})
    pv.delta.append(table, rows)
    assert pv.delta.read(table).to_pylist() == [1, 1]


def test_a_protected_log_is_removed_up_to_the_protected_version_or_not_at_all(tmp_path):
    table = tmp_path / "t"
    pv.delta.write(table, {"n": [0]}, properties={"delta.feature.checkpointProtection": "supported"})
    log = table / commit_path(0)
    text = log.read_text().replace(
        '"configuration":{', '"configuration":{"delta.requireCheckpointProtectionBeforeVersion":"4"', 1
    )
    log.write_text(text)

    def age() -> None:
        for file in (table / "_delta_log").iterdir():
            past = time.time() - 60 * 86_400
            os.utime(file, (past, past))

    for number in range(1, 4):
        pv.delta.append(table, {"n": [number]})
    pv.delta.checkpoint(table)
    age()
    current = pv.delta.snapshot(table)
    assert clean_log(current.storage, current.metadata.configuration) == []
    pv.delta.append(table, {"n": [4]})
    pv.delta.checkpoint(table)
    age()
    assert clean_log(current.storage, current.metadata.configuration)
    assert sorted(pv.delta.read_table(table)["n"].to_pylist()) == [0, 1, 2, 3, 4]


def test_an_append_does_not_wait_for_each_version_of_other_writers(tmp_path, monkeypatch):
    table = tmp_path / "t"
    pv.delta.write(table, {"n": [0]})
    behind = pv.delta.snapshot(table)
    for number in range(30):
        pv.delta.append(table, {"n": [number]})
    waits: list[float] = []
    monkeypatch.setattr(commit_module.time, "sleep", waits.append)
    assert pv.delta.append(behind, {"n": [99]}).version == 31
    assert not waits


@FORMATS
def test_optimize_is_planned_again_if_another_commit_changes_its_files(table_format, tmp_path):
    table = tmp_path / "t"
    table_format.write(table, {"n": pa.array(range(10)), "k": ["a"] * 10})
    for _ in range(3):
        table_format.append(table, {"n": pa.array(range(10)), "k": ["b"] * 10})
    planned, changed = threading.Event(), threading.Event()

    def progress(step: str, done: int, total: int) -> None:
        if step == "optimize" and not planned.is_set():
            planned.set()
            changed.wait(30)

    def delete() -> None:
        planned.wait(30)
        table_format.delete(table, "n = 3")
        changed.set()

    other = threading.Thread(target=delete)
    other.start()
    result = table_format.optimize(table, progress=progress)
    other.join()
    assert planned.is_set()
    assert result.files_added == 1
    assert sorted(table_format.read_table(table)["n"].to_pylist()) == sorted([*range(3), *range(4, 10)] * 4)


@pytest.mark.parametrize(
    ("operation", "names"),
    [
        ("DELETE", {"numRemovedFiles", "numAddedFiles", "numDeletedRows", "numCopiedRows"}),
        ("UPDATE", {"numRemovedFiles", "numAddedFiles", "numUpdatedRows", "numCopiedRows"}),
        ("MERGE", {"numSourceRows", "numTargetRowsUpdated", "numTargetRowsInserted", "numTargetFilesAdded"}),
        ("RESTORE", {"numRestoredFiles", "numRemovedFiles", "numOfFilesAfterRestore", "tableSizeAfterRestore"}),
        ("OPTIMIZE", {"numAddedFiles", "numRemovedFiles", "numAddedBytes", "numRemovedBytes"}),
        ("WRITE", {"numFiles", "numOutputRows", "numOutputBytes"}),
    ],
)
def test_metrics_of_operations_have_the_names_of_delta_spark(operation, names, tmp_path: Path):
    table = tmp_path / "t"
    pv.delta.write(table, {"k": [1, 2, 3]})
    pv.delta.append(table, {"k": [4, 5]})
    pv.delta.optimize(table)
    pv.delta.delete(table, "k = 1")
    pv.delta.update(table, {"k": "k + 10"}, "k = 2")
    merge = pv.delta.merge(table, {"k": [3, 9]}, "target.k = source.k")
    merge.when_matched_update({"k": "33"}).when_not_matched_insert_all().execute()
    pv.delta.restore(table, version=0)
    metrics = {entry["operation"]: entry["operationMetrics"] for entry in pv.delta.history(table)}
    assert names <= set(metrics[operation])
    if operation == "MERGE":
        assert metrics["MERGE"] | {
            "numSourceRows": "2", "numTargetRowsUpdated": "1", "numTargetRowsInserted": "1", "numTargetRowsCopied": "3",
        } == metrics["MERGE"]  # fmt: skip
