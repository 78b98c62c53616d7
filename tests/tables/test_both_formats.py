"""Rules that hold for tables of both formats: keys with dots, missing paths, batches, and bounds of paths."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError, VariantError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.io.temporaries import JobOwner, temporary_beside
from parquet_variant.tables.delta.log import commit as commit_module
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.delta.log.snapshot import clean_log
from parquet_variant.tables.pruning import complete_bounds
from parquet_variant.types.path import VariantPath

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


@FORMATS
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the local time zone cannot be set")
def test_the_time_of_a_version_is_in_utc_if_it_has_no_time_zone(table_format, tmp_path, monkeypatch):
    pv.write(tmp_path, {"n": [1]}, format=table_format)
    soon = (datetime.now(UTC) + timedelta(hours=1)).replace(tzinfo=None)
    monkeypatch.setenv("TZ", "UTC-10")  # POSIX: ten hours east of UTC, where this local time is long ago.
    time.tzset()
    try:
        for moment in (soon, soon.isoformat()):
            assert pv.open(tmp_path, at=moment).to_arrow().to_pylist() == [{"n": 1}]
    finally:
        monkeypatch.undo()
        time.tzset()


@FORMATS
@pytest.mark.parametrize("text", ['{".a":1}', '{".":1,"a.b":2,"":3,"..":{".x":1},".a":0}'])
def test_keys_and_columns_that_look_like_paths_are_names(table_format, text, tmp_path):
    table, keys = tmp_path / "t", json.loads(text)
    rows = {".id": [1, 2], "a.b": [3, 4], "v": pv.parse_json([text, text])}
    pv.write(table, rows, format=table_format)
    pv.open(table).append(rows)
    pv.open(table).update({"v:['.a']": "5"}, '".id" = 1')
    pv.open(table).delete('".id" = 2')
    pv.open(table).optimize()
    assert pv.open(table).read().to_pylist() == [keys | {".a": 5}] * 2
    assert pv.open(table).to_arrow(columns=[".id", "a.b"]).to_pylist() == [{".id": 1, "a.b": 3}] * 2
    assert pv.open(table).scan({"x": "$['.a']:int"}, where="x = 5").to_arrow()["x"].to_pylist() == [5, 5]


@FORMATS
@pytest.mark.parametrize(
    "condition",
    [
        "v:n > 5", "v:n = 7", "v:n <> 7", "v:n BETWEEN 5 AND 7.5", "v:n IN (5, '7', 8)", "v:s = 'x'", "v:s < 'y'",
        "lower(v:s) = 'x'", "NOT v:b::boolean", "v:b IS TRUE", "v:o = v:p", "v:missing = 1", "v:missing IS NULL",
        "variant_contains(v:tags, 'a')", "coalesce(v:s, 'x') = 'x'", "id > 2 AND v:n > 5 OR v:s = 'z'",
    ],
)  # fmt: skip
def test_a_condition_without_casts_changes_the_rows_that_a_query_finds(table_format, condition, tmp_path):
    texts = [
        '{"n":5,"s":"x","b":true,"o":{"a":1},"p":{"a":1.0}}', '{"n":7.0,"s":"X","b":false,"tags":["a"]}',
        '{"n":"7","s":1,"b":"t"}', '{"n":null,"s":null,"b":null}', '{"n":8,"s":"z","o":1,"p":1}', "[]", "null",
    ]  # fmt: skip
    table = tmp_path / "t"
    pv.write(table, {"id": list(range(len(texts))), "v": pv.parse_json(texts)}, format=table_format)
    found = set(pv.sql(f"SELECT id FROM t WHERE {condition}", t=str(table)).to_arrow()["id"].to_pylist())
    pv.open(table).update({"v": "parse_json('\"hit\"')"}, condition)
    rows = pv.open(table).to_arrow(["id"])["id"].to_pylist()
    values = pv.open(table).read().to_pylist()
    assert {row for row, value in zip(rows, values, strict=True) if value == "hit"} == found
    pv.open(table).restore(version=pv.open(table).history()[-1]["version"])
    pv.open(table).delete(condition)
    assert set(pv.open(table).to_arrow(["id"])["id"].to_pylist()) == set(range(len(texts))) - found


@FORMATS
def test_rows_that_meet_a_condition_are_replaced_in_one_commit(table_format, tmp_path):
    pv.write(tmp_path, {"d": [1, 1, 2, 3], "v": pv.parse_json(["1", "2", "3", "4"])}, format=table_format)
    commits = len(pv.open(tmp_path).history())
    result = pv.open(tmp_path).overwrite({"d": [1], "v": pv.parse_json(["9"])}, where="d = 1")
    assert (result.rows_deleted, result.rows_inserted) == (2, 1)
    assert sorted(pv.open(tmp_path).read().to_pylist()) == [3, 4, 9]
    with pytest.raises(VariantError) as caught:
        pv.open(tmp_path).overwrite({"d": [2], "v": pv.parse_json(["9"])}, where="d = 1")
    assert caught.value.reason == "outside-condition"
    assert len(pv.open(tmp_path).history()) == commits + 1


@FORMATS
def test_new_values_and_rows_of_a_merge_are_cast_in_the_session_time_zone(table_format, tmp_path):
    zone, local, instant = "Europe/Berlin", '{"k": "2024-07-01 14:00:00"}', '{"k": "2024-07-01 12:00:00Z"}'
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    pv.write(tmp_path, {"v": pv.parse_json([instant])}, format=table_format)
    merge = pv.open(tmp_path).merge(
        {"v": pv.parse_json([local])}, "target.v:k::timestamp = source.v:k::timestamp", zone=zone
    )
    assert merge.when_matched_update({"v:s": "source.v:k::timestamp"}).execute().rows_updated == 1
    pv.open(tmp_path).overwrite({"v": pv.parse_json([local])}, where=f"v:k::timestamp = '{noon}'", zone=zone)
    pv.open(tmp_path).update({"v:t": "v:k::timestamp", "v:u": "v:k::timestamp + INTERVAL 1 HOUR"}, zone=zone)
    (value,) = pv.open(tmp_path).read().to_pylist()
    assert value == {"k": "2024-07-01 14:00:00", "t": noon, "u": noon + timedelta(hours=1)}


@FORMATS
def test_messages_name_the_options_as_the_user_writes_them(table_format, tmp_path):
    pv.write(tmp_path, {"n": [1]}, format=table_format)
    table = pv.open(tmp_path)
    for change in (table.append, table.overwrite):
        with pytest.raises(VariantError, match="batch is 'loader': give a name and a number"):
            change({"n": [2]}, batch="loader")
    if table_format == "delta":
        with pytest.raises(VariantError, match="where= needs mode 'overwrite'"):
            pv.write(tmp_path, {"n": [2]}, mode="append", where="n = 1")


@FORMATS
def test_a_missing_path_that_is_set_to_itself_stays_missing(table_format, tmp_path):
    table = tmp_path / "t"
    pv.write(table, {"id": [1, 2, 3], "v": pv.parse_json(['{"a":1}', '{"b":2}', '{"a":null}'])}, format=table_format)
    pv.open(table).update({"v:a": "v:a"})
    assert pv.open(table).read().to_pylist() == [{"a": 1}, {"b": 2}, {"a": None}]
    pv.open(table).update({"v:a": "v:a::int + 1", "v:c": "v:b"})
    assert pv.open(table).read().to_pylist() == [{"a": 2, "c": None}, {"b": 2, "c": 2}, {"a": None, "c": None}]
    pv.open(table).update({"v:a": "NULL"}, "id = 2")
    assert {"a": None, "b": 2, "c": 2} in pv.open(table).read().to_pylist()


def test_a_batch_is_known_after_the_snapshots_that_recorded_it_are_gone(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    first = pv.write(table, rows, format="iceberg").snapshot_id
    assert pv.open(table).append(rows, batch=("loader", 7)).committed
    assert pv.open(table).append(rows, batch=("loader", 3)).committed is False
    # As after another engine's rewrite_data_files and expire_snapshots: no snapshot has our summary.
    version = sorted(table.glob("metadata/v*.metadata.json"))[-1]
    document = json.loads(version.read_text())
    for info in document["snapshots"]:
        info["summary"] = {"operation": "replace"}
    version.write_text(json.dumps(document))
    assert not pv.open(table).append(rows, batch=("loader", 7)).committed
    assert pv.open(table).append(rows, batch=("loader", 8)).committed
    # Rolled back batches may be written again.
    pv.open(table).restore(first)
    assert pv.open(table).append(rows, batch=("loader", 8)).committed
    assert len(pv.open(table).read()) == 2


def test_a_batch_is_known_if_only_a_tag_keeps_its_snapshot(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    pv.write(table, rows, format="iceberg")
    pv.open(table).append(rows, batch=("loader", 7))
    pv.open(table).tag("release")
    pv.open(table).append(rows)
    newest = pv.open(table).append(rows).snapshot_id
    # As after another engine's expire_snapshots, which keeps the tag and the branch, and summaries that are not ours.
    version = sorted(table.glob("metadata/v*.metadata.json"))[-1]
    document = json.loads(version.read_text())
    tagged = document["refs"]["release"]["snapshot-id"]
    document["snapshots"] = [info for info in document["snapshots"] if info["snapshot-id"] in (tagged, newest)]
    document["snapshots"][-1]["summary"] = {"operation": "replace"}
    version.write_text(json.dumps(document))
    assert not pv.open(table).append(rows, batch=("loader", 7)).committed
    assert pv.open(table).append(rows, batch=("loader", 8)).committed
    assert len(pv.open(table)) == 5


def test_batches_of_branches_and_of_replaced_tables_are_their_own(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    pv.write(table, rows, format="iceberg")
    pv.open(table).branch("audit.b")
    assert pv.open(table, branch="audit.b").append(rows, batch=("loader", 1)).committed
    assert pv.open(table).append(rows, batch=("loader", 1)).committed
    assert not pv.open(table, branch="audit.b").append(rows, batch=("loader", 1)).committed
    pv.write(table, rows, format="iceberg", mode="replace")
    assert pv.open(table).append(rows, batch=("loader", 1)).committed


def test_tables_with_variants_tell_iceberg_for_spark_not_to_use_its_vectorized_reader(tmp_path):
    name = "read.parquet.vectorization.enabled"
    pv.write(tmp_path / "plain", {"n": [1]}, format="iceberg")
    assert name not in pv.open(tmp_path / "plain").properties
    pv.open(tmp_path / "plain").add_columns({"v": "variant"})
    assert pv.open(tmp_path / "plain").properties[name] == "false"
    pv.write(tmp_path / "chosen", {"v": pv.parse_json(["1"])}, properties={name: "true"}, format="iceberg")
    assert pv.open(tmp_path / "chosen").properties[name] == "true"


def test_both_objects_of_bounds_have_the_same_paths():
    one, two = VariantPath.parse("$.a"), VariantPath.parse("$.b")
    sides = ValueBounds(pv.Variant.from_python(1), pv.Variant.from_python(2))
    lower, upper = complete_bounds({one: sides, two: ValueBounds(pv.Variant.from_python(1), None)})
    assert list(lower) == list(upper) == [one]


def test_columns_are_given_as_ddl(tmp_path):
    table = tmp_path / "t"
    pv.create(table, "id BIGINT NOT NULL, v VARIANT COMMENT 'payload', s STRUCT<a: INT, b: ARRAY<STRING>>")
    pv.open(table).add_columns("m MAP<STRING, VARIANT>")
    fields = pv.open(table).snapshot.schema.fields
    assert [f.name for f in fields] == ["id", "v", "s", "m"]
    assert [f.nullable for f in fields] == [False, True, True, True]
    with pytest.raises(TableError, match="unknown type 'BIGIT': did you mean 'bigint'"):
        pv.create(tmp_path / "u", "id BIGIT")


def test_rows_are_not_added_to_a_delta_table_whose_protocol_lacks_the_feature_of_a_column(tmp_path):
    table, rows = tmp_path / "t", {"v": pv.parse_json(["1"])}
    pv.write(table, rows, format="delta")
    log = table / commit_path(0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
    log.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(TableError, match="variantType") as caught:
        pv.open(table).append(rows)
    assert caught.value.reason == "unsupported-feature"
    pv.open(table).set_properties({"delta.feature.variantType": "supported"})
    pv.open(table).append(rows)
    assert pv.open(table).read().to_pylist() == [1, 1]


def test_a_protected_log_is_removed_up_to_the_protected_version_or_not_at_all(tmp_path):
    table = tmp_path / "t"
    pv.write(table, {"n": [0]}, properties={"delta.feature.checkpointProtection": "supported"}, format="delta")
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
        pv.open(table).append({"n": [number]})
    pv.open(table).checkpoint()
    age()
    current = pv.open(table).snapshot
    assert clean_log(current.storage, current.metadata.configuration) == []
    pv.open(table).append({"n": [4]})
    pv.open(table).checkpoint()
    age()
    assert clean_log(current.storage, current.metadata.configuration)
    assert sorted(pv.open(table).to_arrow()["n"].to_pylist()) == [0, 1, 2, 3, 4]


def test_an_append_does_not_wait_for_each_version_of_other_writers(tmp_path, monkeypatch):
    table = tmp_path / "t"
    pv.write(table, {"n": [0]}, format="delta")
    behind = pv.open(table).snapshot
    for number in range(30):
        pv.open(table).append({"n": [number]})
    waits: list[float] = []
    # A stand-in for the module: threads of other libraries may sleep, too.
    monkeypatch.setattr(commit_module, "time", SimpleNamespace(**{**vars(time), "sleep": waits.append}))
    assert pv.open(behind).append({"n": [99]}).version == 31
    assert not waits


@FORMATS
def test_optimize_is_planned_again_if_another_commit_changes_its_files(table_format, tmp_path):
    table = tmp_path / "t"
    pv.write(table, {"n": pa.array(range(10)), "k": ["a"] * 10}, format=table_format)
    for _ in range(3):
        pv.open(table).append({"n": pa.array(range(10)), "k": ["b"] * 10})
    planned, changed = threading.Event(), threading.Event()

    def progress(step: str, done: int, total: int) -> None:
        if step == "optimize" and not planned.is_set():
            planned.set()
            changed.wait(30)

    def delete() -> None:
        planned.wait(30)
        pv.open(table).delete("n = 3")
        changed.set()

    other = threading.Thread(target=delete)
    other.start()
    result = pv.open(table).optimize(progress=progress)
    other.join()
    assert planned.is_set()
    assert result.files_added == 1
    assert sorted(pv.open(table).to_arrow()["n"].to_pylist()) == sorted([*range(3), *range(4, 10)] * 4)


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
    pv.write(table, {"k": [1, 2, 3]}, format="delta")
    pv.open(table).append({"k": [4, 5]})
    pv.open(table).optimize()
    pv.open(table).delete("k = 1")
    pv.open(table).update({"k": "k + 10"}, "k = 2")
    merge = pv.open(table).merge({"k": [3, 9]}, "target.k = source.k")
    merge.when_matched_update({"k": "33"}).when_not_matched_insert_all().execute()
    pv.open(table).restore(version=0)
    metrics = {entry["operation"]: entry["operationMetrics"] for entry in pv.open(table).history()}
    assert names <= set(metrics[operation])
    if operation == "MERGE":
        assert metrics["MERGE"] | {
            "numSourceRows": "2", "numTargetRowsUpdated": "1", "numTargetRowsInserted": "1", "numTargetRowsCopied": "3",
        } == metrics["MERGE"]  # fmt: skip


@FORMATS
def test_temporary_files_of_killed_writers_are_removed_at_once(table_format, tmp_path):
    table = tmp_path / "t"
    pv.write(table, {"n": [1]}, format=table_format)
    directory = table / ("_delta_log" if table_format == "delta" else "metadata")
    dead = temporary_beside(str(directory / "v2.metadata.json")).replace(JobOwner.current().to_token(), _dead_owner())
    alive = temporary_beside(str(directory / "v2.metadata.json"))
    for path in (dead, alive):
        Path(path).write_bytes(b"unfinished")
    if table_format == "delta":
        pv.open(table).vacuum()
    else:
        pv.open(table).remove_orphan_files()
    assert not Path(dead).exists()
    assert Path(alive).exists()


def _dead_owner() -> str:
    process = subprocess.Popen(["true"])
    process.wait()
    return replace(JobOwner.current(), pid=process.pid, started=1).to_token()


@FORMATS
def test_a_merge_takes_ndjson_and_counts_what_it_would_change_in_a_dry_run(table_format, tmp_path):
    table, news = tmp_path / "t", tmp_path / "news.ndjson"
    news.write_text('{"id":2,"n":20}\n{"id":3,"n":30}\n{"id":4,"n":40}\n')
    rows = pv.parse_json(['{"id":1,"n":1}', '{"id":2,"n":2}', '{"id":3,"n":99}'])
    pv.write(table, {"payload": rows}, format=table_format)
    merge = (
        pv.open(table)
        .merge(news, "target.payload:id::int = source.payload:id::int")
        .when_matched_update_all("source.payload:n > target.payload:n")
        .when_not_matched_insert_all()
    )
    files = sorted(path for path in tmp_path.rglob("*"))
    planned = merge.execute(dry_run=True)
    assert sorted(path for path in tmp_path.rglob("*")) == files
    done = merge.execute()
    assert (planned.rows_updated, planned.rows_inserted, planned.rows_deleted) == (1, 1, 0)
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (1, 1, 0)
    assert (planned.files_removed, planned.files_opened) == (done.files_removed, done.files_opened)
    assert sorted(row["n"] for row in pv.open(table).read().to_pylist()) == [1, 20, 40, 99]


@FORMATS
@pytest.mark.parametrize("key", ["v:id", 'v:"my key"', "n"])
def test_the_condition_of_a_merge_can_be_a_key_of_both_tables(table_format, key, tmp_path):
    def rows(*numbers):
        texts = [json.dumps({"id": n, "my key": f"k{n}", "x": f"{numbers}"}) for n in numbers]
        return {"n": list(numbers), "v": pv.parse_json(texts)}

    pv.write(tmp_path, rows(1, 2), format=table_format)
    merged = pv.open(tmp_path).merge(rows(2, 3), key).when_matched_update_all().when_not_matched_insert_all()
    assert (result := merged.execute()).rows_updated == result.rows_inserted == 1
    found = pv.open(tmp_path).scan(["n", "v"]).to_pylist()
    assert sorted((row["n"], row["v"]["x"]) for row in found) == [(1, "(1, 2)"), (2, "(2, 3)"), (3, "(2, 3)")]


@FORMATS
def test_json_text_of_arrow_becomes_variants_at_any_depth(table_format, tmp_path):
    texts = ['{"a":1}', '["x"]', None, "2.5"]
    views = pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array(texts, pa.string_view()))
    json_text = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
    rows = pa.table({
        "id": [1, 2, 3, 4],
        "j": views,
        "l": pa.ListArray.from_arrays(pa.array([0, 2, 2, 4, 4], pa.int32()), json_text),
        "s": pa.StructArray.from_arrays([json_text], names=["j"]),
    })  # fmt: skip
    values = [None if text is None else json.loads(text) for text in texts]
    pv.write(tmp_path / "t", rows, format=table_format)
    pv.open(tmp_path / "t").append(rows)
    table = pv.open(tmp_path / "t")
    as_text = [None if value is None else json.dumps(value, separators=(",", ":")) for value in values]
    for source, copies in ((table, 2), (pv.open(rows), 1)):
        assert (
            pv.variant_get(pv.open(source.to_arrow(), column="j").read(), "$", pa.json_()).to_pylist()
            == as_text * copies
        )
        found = source.sql("SELECT j:a::int AS a, s.j:a::int AS b, l[1]:a::int AS c FROM t ORDER BY id").to_pylist()
        assert found == [{"a": 1, "b": 1, "c": 1}] * copies + [{"a": None, "b": None, "c": None}] * 3 * copies
    broken = pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":']))})
    with pytest.raises(VariantError):
        pv.write(tmp_path / "u", broken, format=table_format)
    assert not (tmp_path / "u").exists() or not any((tmp_path / "u").rglob("*.parquet"))


@FORMATS
def test_notebooks_show_rows_and_reports_as_html(table_format, tmp_path):
    rows = {"id": list(range(30)), "v": pv.parse_json(['{"k":1,"s":"<b>"}'] * 30)}
    pv.write(tmp_path / "t", rows, format=table_format)
    table = pv.open(tmp_path / "t")
    scan = table.scan({"id": "id", "v": "$"})._repr_html_()
    assert "<th>id</th>" in scan
    assert scan.count("<tr>") == 21
    assert "&lt;b&gt;" in scan
    assert table.scan({"id": "id"}, where="id > 99")._repr_html_().count("<tr>") == 1
    assert table.history()._repr_html_().count("<tr>") == 2
    for report in (table.contract(), table.check(table.contract()), table.inspect(), table.validate()):
        assert report._repr_html_().startswith("<pre>")


@FORMATS
def test_a_policy_shreds_the_rows_of_any_write_to_a_table(table_format, tmp_path):
    rows = {"v": pv.parse_json([f'{{"a":{n},"b":"x{n}","c":1}}' for n in range(300)])}

    def newest_paths() -> dict[str, str]:
        newest = max(pv.open(tmp_path / "t").data_files(), key=lambda path: Path(path).stat().st_mtime_ns)
        return pv.open(newest).paths()

    pv.write(tmp_path / "t", rows, format=table_format, policy=pv.ExplicitPolicy("b string"))
    assert newest_paths() == {"$.b": "string"}
    pv.open(tmp_path / "t").append(rows, policy=pv.ExplicitPolicy("a bigint"))
    assert newest_paths() == {"$.a": "bigint"}
    pv.open(tmp_path / "t").append(rows)
    assert set(newest_paths()) == {"$.a", "$.b", "$.c"}
    with pytest.raises(VariantError, match="unknown policy"):
        pv.open(tmp_path / "t").append(rows, policy="none such")
    assert len(list((tmp_path / "t").rglob("*.parquet"))) == 3
    pv.open(tmp_path / "t").overwrite(rows, policy=pv.ExplicitPolicy("b string"))
    assert newest_paths() == {"$.b": "string"}
    plan = pv.open(tmp_path / "t").plan(policy=pv.ExplicitPolicy("c bigint"), job="a5c0ffee0123-")
    pv.open(tmp_path / "t").commit_files(plan.write_files(rows))
    assert newest_paths() == {"$.c": "bigint"}
    assert any("a5c0ffee0123-" in path for path in pv.open(tmp_path / "t").data_files())


@FORMATS
def test_an_append_that_merges_columns_may_also_be_the_first_write(table_format, tmp_path):
    options = {"format": table_format, "mode": "append", "schema_mode": "merge"}
    with pytest.raises(VariantError, match="schema_mode is 'evolve': use merge"):
        pv.write(tmp_path / "t", {"n": [0]}, **(options | {"schema_mode": "evolve"}))
    for rows in ({"n": [1]}, {"n": [2], "s": ["x"]}):
        pv.write(tmp_path / "t", rows, **options)
    with pytest.raises(VariantError, match="schema_mode is 'evolve': use merge"):
        pv.write(tmp_path / "t", {"n": [3]}, **(options | {"schema_mode": "evolve"}))
    found = pv.open(tmp_path / "t").to_arrow().sort_by("n").to_pylist()
    assert found == [{"n": 1, "s": None}, {"n": 2, "s": "x"}]


@FORMATS
def test_schemas_can_be_inferred_by_name(table_format, tmp_path):
    """As in files: ``schema="infer"`` for all columns, or for some of them."""
    rows = {"v": pv.parse_json(['{"a": 1}']), "w": pv.parse_json(['{"b": "x"}'])}
    pv.write(tmp_path / "t", rows, format=table_format, schema="infer")
    pv.write(tmp_path / "t", rows, format=table_format, schema={"v": "infer", "w": "c bigint"}, mode="append")
    pv.open(tmp_path / "t").append(rows, schema="infer")
    files = sorted((tmp_path / "t").rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    schemas = [[pv.ShreddingSchema.from_parquet(file, name).to_ddl() for name in ("v", "w")] for file in files]
    assert schemas == [["a bigint", "b string"], ["a bigint", "c bigint"], ["a bigint", "b string"]]


@FORMATS
def test_an_update_counts_what_it_would_change_in_a_dry_run(table_format, tmp_path):
    pv.write(tmp_path / "t", {"id": [1, 2, 3]}, format=table_format)
    table = pv.open(tmp_path / "t")
    planned = table.update({"id": "id + 10"}, "id > 1", dry_run=True)
    assert planned.rows_updated == 2
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    done = table.update({"id": "id + 10"}, "id > 1")
    assert done.rows_updated == planned.rows_updated
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 12, 13]


@FORMATS
@pytest.mark.parametrize("read", ["to_arrow", "scan", "where", "sql", "delete"])
def test_a_missing_data_file_is_missing_in_every_operation(table_format, read, tmp_path):
    pv.write(tmp_path / "t", {"id": [1, 2, 3], "v": pv.parse_json(["1", "2", "3"])}, format=table_format)
    (file,) = (tmp_path / "t").rglob("*.parquet")
    file.unlink()
    table = pv.open(tmp_path / "t")
    reads = {
        "to_arrow": table.to_arrow,
        "scan": lambda: table.scan({"v": "$:int"}).to_arrow(),
        "where": lambda: table.scan(["id"], "id > 1").to_arrow(),
        "sql": lambda: table.sql("SELECT sum(v::int) FROM t"),
        "delete": lambda: table.delete("id = 2 OR v::int = 1"),
    }
    with pytest.raises(TableError) as caught:
        reads[read]()
    assert caught.value.reason == "missing-file" and file.name in str(caught.value)


@FORMATS
def test_clauses_of_a_merge_set_whole_variants_and_paths_in_one_file(table_format, tmp_path):
    pv.write(tmp_path, {"k": [1, 2, 3], "v": pv.parse_json(['{"a":1}', '{"b":2}', "3"])}, format=table_format)
    source = {"k": [1, 4], "v": pv.parse_json(['{"a":5}', '{"c":1}'])}
    merge = pv.open(tmp_path).merge(source, "target.k = source.k")
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_update({"v:d": "k"}, "target.k < 3").execute()
    rows = pv.open(tmp_path).scan({"k": "k", "v": "v"}).to_arrow()
    values = dict(zip(rows["k"].to_pylist(), pv.VariantArray.from_arrow(rows, "v").to_pylist(), strict=True))
    assert values == {1: {"a": 5}, 2: {"b": 2, "d": 2}, 3: 3, 4: {"c": 1}}
