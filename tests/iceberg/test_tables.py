"""Tables in directories: pruning, deletes of version 2, evolution, damage, paths outside, kills at every step."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.puffin import PuffinFile

import parquet_variant as pv
from chosen_steps import chosen_steps
from parquet_variant.errors import IcebergError, TableError, VariantError
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.changes import changeable
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile
from parquet_variant.tables.iceberg.reading import snapshot
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import PATH_ID, POSITION_ID
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, commit_snapshot
from parquet_variant.tables.pruning import bounds_from_bytes


def events(numbers: Any) -> dict[str, Any]:
    numbers = list(numbers)
    texts = [json.dumps({"n": number, "s": f"x{number:03}"}) for number in numbers]
    return {"id": pa.array(numbers, pa.int64()), "k": [f"k{n % 3}" for n in numbers], "v": pv.parse_json(texts)}


def ids(table: Any, **options: Any) -> list[int]:
    return sorted(pv.open(table, **options).to_arrow(["id"])["id"].to_pylist())


def write_file(path: Path, columns: dict[str, tuple[int, pa.Array]]) -> int:
    fields = [pa.field(name, array.type, metadata={"PARQUET:field_id": str(i)}) for name, (i, array) in columns.items()]
    pq.write_table(pa.table([array for _, array in columns.values()], schema=pa.schema(fields)), path)
    return path.stat().st_size


# ---- deletes of version 2


def add_deletes(table: Path, deletes: DataFile) -> None:
    base = pv.open(table).snapshot
    commit_snapshot(base, SnapshotChange("delete", vectors=(deletes,)))


def test_position_deletes_are_applied_and_become_vectors(tmp_path: Path) -> None:
    pv.write(tmp_path, events(range(10)), format="iceberg")
    (file,) = plan_files(pv.open(tmp_path).snapshot).files
    path = tmp_path / "data" / "deletes.parquet"
    positions = {"file_path": (PATH_ID, pa.array([file.path] * 2)), "pos": (POSITION_ID, pa.array([0, 3]))}
    size = write_file(path, positions)
    add_deletes(tmp_path, DataFile(f"file://{path}", "parquet", 2, size, content=Content.POSITION_DELETES))
    assert ids(tmp_path) == [1, 2, 4, 5, 6, 7, 8, 9]
    assert pv.open(tmp_path).delete("id = 1 OR id = 3").rows_deleted == 1
    assert ids(tmp_path) == [2, 4, 5, 6, 7, 8, 9]
    (file,) = plan_files(pv.open(tmp_path).snapshot).files
    assert file.deletes.vector is not None and file.deletes.vector.file.record_count == 3
    pv.open(tmp_path).append(events([0, 3]))
    assert ids(tmp_path) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_equality_deletes_apply_to_older_files_alone(tmp_path: Path) -> None:
    pv.write(tmp_path, {**events(range(6)), "x": [None, 1, 2, None, 4, 5]}, format="iceberg")
    path = tmp_path / "data" / "deletes.parquet"
    x_id = pv.open(tmp_path).snapshot.struct.get("x").id  # type: ignore[union-attr]
    size = write_file(path, {"k": (2, pa.array(["k0", "k2"])), "x": (x_id, pa.array([None, 5], pa.int64()))})
    content = Content.EQUALITY_DELETES
    add_deletes(tmp_path, DataFile(f"file://{path}", "parquet", 2, size, content=content, equality_ids=(2, x_id)))
    assert ids(tmp_path) == [1, 2, 4]
    pv.open(tmp_path).append({**events([0]), "x": pa.array([None], pa.int64())})
    assert ids(tmp_path) == [0, 1, 2, 4]
    assert pv.open(tmp_path).scan({"n": "$.n:int"}, "n < 3").to_arrow().to_pydict() == {"n": [1, 2, 0]}
    assert pv.open(tmp_path).delete("id < 3").rows_deleted == 3
    assert ids(tmp_path) == [4]
    pv.open(tmp_path).optimize()
    assert ids(tmp_path) == [4]


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    pv.write(tmp_path / "deletes", events(range(3)), format="iceberg")
    size = write_file(tmp_path / "deletes/data/k.parquet", {"k": (2, pa.array(["k0"]))})
    location = (tmp_path / "deletes/data/k.parquet").as_uri()
    deletes = DataFile(location, "parquet", 1, size, content=Content.EQUALITY_DELETES, equality_ids=(2,))
    add_deletes(tmp_path / "deletes", replace(deletes, key_metadata=b"key"))
    pv.write(tmp_path / "data", events(range(3)), format="iceberg")
    base = pv.open(tmp_path / "data").snapshot
    (file,) = plan_files(base).files
    commit_snapshot(base, SnapshotChange("overwrite", added=(replace(file.file, key_metadata=b"key"),)))
    for name in ("deletes", "data"):
        with pytest.raises(VariantError, match="encrypted"):
            pv.open(tmp_path / name).to_arrow()
    with pytest.raises(VariantError, match="encrypted"):
        pv.open(tmp_path / "data").publish("delta")
    assert not (tmp_path / "data" / "_delta_log").exists()


# ---- next to other writers


def test_a_change_next_to_a_busy_writer_reads_only_new_manifests_and_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pv.write(tmp_path, events(range(3)), format="iceberg", properties={"commit.retry.min-wait-ms": "1"})
    for number in range(3, 15):
        pv.open(tmp_path).append(events([number]))
    commit, read = LoadedTable.commit, snapshot.read_manifest
    state = {"others": 12, "reads": 0, "is_other": False}
    reads: list[int] = []

    def commit_later(table: LoadedTable, change: Any) -> LoadedTable:
        if not state["is_other"]:
            reads.append(state["reads"])
            if state["others"]:
                state.update(others=state["others"] - 1, is_other=True)
                pv.open(tmp_path).append(events([100 + state["others"]]))
                state.update(reads=0, is_other=False)
        return commit(table, change)

    def counted(*arguments: Any, **options: Any) -> Any:
        state["reads"] += 1
        return read(*arguments, **options)

    monkeypatch.setattr(LoadedTable, "commit", commit_later)
    monkeypatch.setattr(snapshot, "read_manifest", counted)
    assert pv.open(tmp_path).update({"k": "'x'"}, "id = 1").rows_updated == 1
    assert len(reads) == 13 and max(reads[1:]) == 1
    assert ids(tmp_path) == [*range(15), *range(100, 112)]


# ---- bounds and pruning


def test_variants_have_bounds_only_for_paths_of_one_type(tmp_path: Path) -> None:
    texts = ['{"a": 1, "b": 1, "c": "x", "d": null}', '{"a": 5, "b": "two", "c": "y", "d": 3}', '{"a": 3, "c": "z"}']
    schema = "a bigint, b bigint, c string, d bigint"
    pv.write(tmp_path, {"v": pv.parse_json(texts)}, format="iceberg", schema=schema)
    (file,) = plan_files(pv.open(tmp_path).snapshot, metrics=True).files
    lower, upper = (bounds_from_bytes(side[1]) for side in (file.file.lower_bounds, file.file.upper_bounds))
    assert {str(p): b.to_python() for p, b in lower.items()} == {"$['a']": 1, "$['c']": "x"}
    assert {str(p): b.to_python() for p, b in upper.items()} == {"$['a']": 5, "$['c']": "z"}


def test_every_shredded_file_has_a_bound(tmp_path: Path) -> None:
    texts = ['{"a": 1}', '{"a": "x"}']
    pv.write(tmp_path, {"v": pv.parse_json(texts)}, format="iceberg", schema="a bigint")
    (file,) = plan_files(pv.open(tmp_path).snapshot, metrics=True).files
    assert bounds_from_bytes(file.file.lower_bounds[1]) == {}
    assert pv.open(tmp_path).read().to_pylist() == [{"a": 1}, {"a": "x"}]


def test_files_have_field_ids_on_the_variant_and_none_inside(tmp_path: Path) -> None:
    pv.write(tmp_path, {**events(range(3)), "l": [[1], [], None], "s": [{"a": 1}] * 3}, format="iceberg")
    scan = pv.open(tmp_path).scan(["id"]).plan
    from parquet_variant.files.parquet.format.files import open_file

    (file,) = scan.pruned.files
    with open_file(scan.source(file)) as opened:
        arrow = opened.reader.schema_arrow
    assert [f.metadata[b"PARQUET:field_id"] for f in arrow] == [b"1", b"2", b"3", b"4", b"5"]
    assert all(not (f.metadata or {}).get(b"PARQUET:field_id") for f in arrow.field("v").type)
    assert arrow.field("l").type.value_field.metadata[b"PARQUET:field_id"] == b"6"
    assert arrow.field("s").type.field(0).metadata[b"PARQUET:field_id"] == b"7"


PREDICATES = [
    "id < {a}", "id = {a}", "id >= {a} AND id < {b}", "k = 'k{c}'", "k <> 'k1' AND id > {a}", "id IN ({a}, {b})",
    "n > {a}", "n = {a} OR n = {b}", "n IS NULL", "NOT (id < {a})", "s = 'x{a:03}'", "s LIKE 'x0%'", "k IS NOT NULL",
    "d < DATE '2024-01-{day:02}'", "d = DATE '2024-01-{day:02}' AND n < {b}", "f > {a}.5", "f <= {a}", "m = 'm{c}'",
]  # fmt: skip
PARTITIONS = [
    [], ["k"], ["bucket(3, id)"], ["truncate(7, id)"], ["day(d)"], ["month(d)", "k"], ["truncate(2, k)"], ["year(d)"],
    ["f"], ["bucket(2, k)", "truncate(10, id)"],
]  # fmt: skip


@settings(deadline=None, max_examples=max(5, settings.default.max_examples // 4))
@given(st.integers(0, 10**6))
def test_pruned_equals_unpruned(seed: int) -> None:
    import tempfile

    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        pv.write(folder, table_of(chance, range(8)), format="iceberg", partition_by=chance.choice(PARTITIONS))
        for start in (8, 20, 30):
            if chance.random() < 0.4:
                pv.open(folder).set_partitioning(chance.choice(PARTITIONS))
            pv.open(folder).append(table_of(chance, range(start, start + chance.randrange(1, 8))))
        if chance.random() < 0.5:
            pv.open(folder).delete("id % 5 = 2")
        if chance.random() < 0.3:
            pv.open(folder).rename_column("m", "m2")
            pv.open(folder).rename_column("m2", "m")
        columns = {"id": "id", "k": "k", "n": "$.n:int", "s": "$.s:string", "d": "d", "f": "f", "m": "m"}
        for text in chance.sample(PREDICATES, 5):
            a = chance.randrange(40)
            where = text.format(a=a, b=a + chance.randrange(9), c=chance.randrange(4), day=chance.randrange(1, 29))
            fast = pv.open(folder).scan(columns, where)
            slow = pv.open(folder).scan(columns, where, skipping=False)
            assert by_id(fast.to_arrow()) == by_id(slow.to_arrow()), where


def by_id(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def table_of(chance: random.Random, numbers: range) -> dict[str, Any]:
    import datetime as dt

    values = []
    for number in numbers:
        value: dict[str, Any] = {"s": f"x{number:03}"}
        if chance.random() < 0.9:
            value["n"] = number if chance.random() < 0.95 else "odd"
        values.append(json.dumps(value))
    days = [None if n % 11 == 7 else dt.date(2024, 1 + n % 2, 1 + n % 28) for n in numbers]
    floats = [None if n % 9 == 5 else float("nan") if n % 7 == 3 else n / 2 for n in numbers]
    return {
        "id": pa.array(list(numbers), pa.int64()),
        "k": [None if n % 10 == 4 else f"k{n % 3}" for n in numbers],
        "v": pv.parse_json(values),
        "d": pa.array(days, pa.date32()),
        "f": pa.array(floats, pa.float64()),
        "m": [f"m{n % 4}" for n in numbers],
    }


def test_truncated_values_that_wrap_around_are_found(tmp_path: Path) -> None:
    rows = {"n": pa.array([-(2**31), 0, 2**31 - 1], pa.int32()), "m": pa.array([-(2**63), 0, 2**63 - 1])}
    pv.write(tmp_path, rows, format="iceberg", partition_by=["truncate(10, n)", "truncate(10, m)"])
    for column in ("n", "m"):
        found = pv.open(tmp_path).scan([column], f"{column} < 0").to_arrow().to_pylist()
        assert found == [{column: rows[column][0].as_py()}]


# ---- evolution


@pytest.mark.parametrize("partition_by", ["d", "bucket(4, d)", "month(d)"])
def test_dates_that_partitioned_the_table_become_timestamps_only_if_partitions_are_the_same(
    tmp_path: Path, partition_by: str
) -> None:
    days = pa.array([18_262, -1], pa.int32()).cast(pa.date32())
    pv.write(tmp_path, {"d": days}, format="iceberg", partition_by=[partition_by])
    pv.open(tmp_path).set_partitioning([])
    if partition_by == "month(d)":
        pv.open(tmp_path).widen_column("d", "timestamp")
    else:
        with pytest.raises(IcebergError, match="partitioned the table"):
            pv.open(tmp_path).widen_column("d", "timestamp")
        return
    found = pv.open(tmp_path).scan(["d"], "d = TIMESTAMP '2020-01-01 00:00:00'").to_arrow()
    assert len(found) == 1


def test_schemas_evolve_by_field_id(tmp_path: Path) -> None:
    nested = {"s": [{"a": 1, "b": "x"}] * 2, "l": [[{"c": 1}], []], "n": pa.array([1, 2], pa.int32())}
    pv.write(tmp_path, nested, format="iceberg")
    pv.open(tmp_path).rename_column("s.a", "renamed")
    pv.open(tmp_path).add_columns({"s.extra": "int", "l.element.d": "string"}, defaults={"s.extra": 9})
    pv.open(tmp_path).drop_column("s.b")
    pv.open(tmp_path).widen_column("n", "long")
    pv.open(tmp_path).move_column("n")
    pv.open(tmp_path).add_columns({"v": "variant", "n2": "double"}, defaults={"n2": 1.5})
    pv.open(tmp_path).rename_column("n", "m")
    pv.open(tmp_path).add_columns({"n": "string"})
    rows = pv.open(tmp_path).to_arrow().to_pylist()
    assert rows[0] == {
        "m": 1, "s": {"renamed": 1, "extra": 9}, "l": [{"c": 1, "d": None}], "v": None, "n2": 1.5, "n": None,
    }  # fmt: skip
    pv.open(tmp_path).append({"m": [3], "v": pv.parse_json(["7"])})
    last = pv.open(tmp_path).to_arrow(["m", "n2", "n"]).to_pylist()[-1]
    assert last == {"m": 3, "n2": 1.5, "n": None}
    pv.open(tmp_path).append({"s": [{"renamed": 2}, None]})
    assert pv.open(tmp_path).to_arrow(["s"]).to_pylist()[-2:] == [{"s": {"renamed": 2, "extra": 9}}, {"s": None}]
    pv.open(tmp_path).delete("m IS NULL")
    found = pv.open(tmp_path).scan({"m": "m", "n2": "n2", "v": "$:int"}, "m > 1 AND n2 = 1.5").to_arrow()
    assert found.to_pylist() == [{"m": 2, "n2": 1.5, "v": None}, {"m": 3, "n2": 1.5, "v": 7}]
    first = pv.open(tmp_path).history()[-1]["snapshot_id"]
    assert pv.open(tmp_path, version=first).to_arrow().column_names == ["s", "l", "n"]


def test_files_without_field_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    pv.write(tmp_path, {"id": [1], "s": [{"a": 1}]}, format="iceberg")
    path = tmp_path / "data" / "imported.parquet"
    pq.write_table(pa.table({"old_id": [7], "s": [{"a": 5}]}), path)
    file = DataFile(f"file://{path}", "parquet", 1, path.stat().st_size)
    commit_snapshot(pv.open(tmp_path).snapshot, SnapshotChange("append", added=(file,)))
    with pytest.raises(IcebergError) as caught:
        pv.open(tmp_path).to_arrow()
    assert caught.value.reason == "bad-data-file"
    mapping = [
        {"field-id": 1, "names": ["id", "old_id"]},
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}]},
    ]
    pv.open(tmp_path).set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    rows = pv.open(tmp_path).to_arrow().to_pylist()
    assert rows == [{"id": 1, "s": {"a": 1}}, {"id": 7, "s": {"a": 5}}]
    assert pv.open(tmp_path).scan(["id", "s"], "id = 7").to_arrow().to_pylist() == [{"id": 7, "s": {"a": 5}}]


def test_changes_of_rows_keep_row_ids(tmp_path: Path) -> None:
    for mode in ("merge-on-read", "copy-on-write"):
        table = tmp_path / mode
        properties = {f"write.{operation}.mode": mode for operation in ("delete", "update", "merge")}
        pv.write(table, events(range(6)), format="iceberg", properties=properties)
        before = row_ids(table)
        pv.open(table).update({"v:s": "'new'"}, "id = 2")
        assert pv.open(table).delete("to_json(v:s) = '\"new\"'", dry_run=True).rows_deleted == 1
        pv.open(table).delete("id = 5")
        merge = pv.open(table).merge(events([1, 9]), "target.id = source.id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        pv.open(table).optimize(rewrite_all=True)
        after = row_ids(table)
        assert {k: after[k][0] for k in (0, 1, 2, 3, 4)} == {k: before[k][0] for k in (0, 1, 2, 3, 4)}
        assert after[9][0] > max(number for number, _ in before.values())
        assert (after[0][1], after[2][1], after[1][1]) == (1, 2, 4)
        assert 5 not in after


def test_changes_of_large_tables_read_metrics_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for limit in (10_000, 0):
        monkeypatch.setattr(changeable, "METRICS_IN_MEMORY", limit)
        table = tmp_path / str(limit)
        pv.write(table, events(range(3)), format="iceberg")
        for start in range(3, 30, 3):
            pv.open(table).append(events(range(start, start + 3)))
        deleted = pv.open(table).delete("id = 4 AND v:n::int < 100")
        merge = pv.open(table).merge(events([1, 10, 40]), "target.id = source.id")
        merged = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        results.append((deleted.files_opened, merged.files_opened, merged.rows_updated, sorted(row_ids(table))))
    assert results[0] == results[1]
    assert results[0][:3] == (1, 2, 2)


def row_ids(table: Path) -> dict[int, tuple[int, int]]:
    rows = pv.open(table).to_arrow(["id", "_row_id", "_last_updated_sequence_number"]).to_pylist()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}


def test_time_travel_by_time_branch_and_tag(tmp_path: Path) -> None:
    pv.write(tmp_path, events([1]), format="iceberg")
    when = pv.open(tmp_path).history()[0]["timestamp"]
    assert ids(tmp_path, at=when) == ids(tmp_path, at=when.isoformat()) == [1]
    pv.open(tmp_path).branch("audit")
    pv.open(tmp_path, branch="audit").append(events([2]))
    pv.open(tmp_path).tag("one")
    pv.open(tmp_path).append(events([3]))
    assert ids(tmp_path) == [1, 3]
    assert ids(tmp_path, branch="audit") == [1, 2]
    assert ids(tmp_path, tag="one") == [1]
    assert ids(tmp_path, at=when) in ([1], [1, 3])
    assert pv.open(tmp_path, branch="audit").delete("id = 1").rows_deleted == 1
    assert (ids(tmp_path), ids(tmp_path, branch="audit")) == ([1, 3], [2])
    for options in ({"version": 5}, {"tag": "two"}, {"branch": "one"}, {"at": 5}):
        with pytest.raises(IcebergError) as caught:
            pv.open(tmp_path, **options).to_arrow()  # type: ignore[arg-type]
        assert caught.value.reason == "unknown-snapshot"


def test_files_of_other_tables_are_kept(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pv.write(tmp_path / name, {"k": [1, 2]}, format="iceberg", properties={"write.data.path": f"{tmp_path}/shared"})
    pv.write(tmp_path / "a" / "data" / "below", {"k": [1, 2]}, format="iceberg")
    for path in tmp_path.rglob("*"):
        os.utime(path, (0, 0))
    assert pv.open(tmp_path / "a").remove_orphan_files(older_than="2999-01-01") == []
    pv.open(tmp_path / "a").erase("k = 1")
    for name in ("b", "a/data/below"):
        assert pv.open(tmp_path / name).to_arrow().to_pydict() == {"k": [1, 2]}


def test_a_branch_keeps_its_retention_when_it_is_moved_forward(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="iceberg")
    pv.open(tmp_path).branch("audit", min_snapshots_to_keep=3, max_snapshot_age_ms=10**9, max_age_ms=10**10)
    pv.open(tmp_path).append({"n": [2]})
    pv.open(tmp_path).fast_forward("audit", "main")
    metadata = pv.open(tmp_path).snapshot.metadata
    moved = metadata.references["audit"]
    assert moved.snapshot_id == metadata.current_snapshot_id
    assert (moved.min_snapshots_to_keep, moved.max_snapshot_age_ms, moved.max_ref_age_ms) == (3, 10**9, 10**10)


def test_expired_snapshots_take_their_files_along(tmp_path: Path) -> None:
    pv.write(tmp_path, events(range(5)), format="iceberg")
    pv.open(tmp_path).tag("kept")
    pv.open(tmp_path).overwrite(events([7]))
    pv.open(tmp_path).overwrite(events([8]))
    before = len(list((tmp_path / "data").rglob("*.parquet")))
    assert len(pv.open(tmp_path).expire_snapshots(older_than="2999-01-01").snapshots) == 1
    assert len(list((tmp_path / "data").rglob("*.parquet"))) == before - 1
    assert (ids(tmp_path), ids(tmp_path, tag="kept")) == ([8], [0, 1, 2, 3, 4])
    assert pv.open(tmp_path).remove_orphan_files(older_than="2999-01-01") == []
    pv.open(tmp_path).set_properties({"gc.enabled": "false"})
    with pytest.raises(IcebergError):
        pv.open(tmp_path).expire_snapshots(older_than="2999-01-01")


# ---- what is refused


@pytest.mark.parametrize(
    "properties",
    [
        {"write.format.default": "orc"},
        {"write.location-provider.impl": "x"},
        {"write.delete.mode": "maybe"},
        {"write.parquet.compression-codec": "tiny"},
        {"write.wap.enabled": "true"},
        {"write.metadata.metrics.default": "some"},
        {"write.target-file-size-bytes": "big"},
        {"a": 1},
    ],
)
def test_properties_that_cannot_be_acted_on_are_refused_by_name(tmp_path: Path, properties: dict[str, Any]) -> None:
    with pytest.raises(TableError) as caught:
        pv.write(tmp_path, events([1]), format="iceberg", properties=properties)
    assert next(iter(properties)) in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))


def test_metrics_modes_are_followed(tmp_path: Path) -> None:
    properties = {
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.k": "truncate(1)",
        "write.metadata.metrics.column.id": "none",
    }
    pv.write(tmp_path, {**events(range(3)), "x": [1, 2, None]}, format="iceberg", properties=properties)
    (file,) = plan_files(pv.open(tmp_path).snapshot, metrics=True).files
    assert (file.file.lower_bounds[2], file.file.upper_bounds[2]) == (b"k", b"l")
    assert set(file.file.lower_bounds) == {2, 3}  # a shredded Variant always has one
    assert file.file.null_value_counts == {2: 0, 3: 0, 4: 1}
    assert ids(tmp_path) == [0, 1, 2]


def rewrite_metadata(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = max((table / "metadata").glob("v*.metadata.json"))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_files_outside_of_the_table_are_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "t", tmp_path / "elsewhere"
    pv.write(outside, events([5]), format="iceberg")
    pv.write(inside, events([1]), format="iceberg")
    (file,) = plan_files(pv.open(outside).snapshot).files
    commit_snapshot(pv.open(inside).snapshot, SnapshotChange("append", added=(replace(file.file, first_row_id=None),)))
    for read in ((lambda path: pv.open(path).to_arrow()), lambda t, **o: pv.open(t, **o).scan(["id"]).to_arrow()):
        with pytest.raises(IcebergError) as caught:
            read(inside)
        assert caught.value.reason == "outside-table"
    assert ids(inside, allow_outside=True) == [1, 5]
    dotted = replace(file.file, path=f"file://{inside}/data/../../elsewhere/x.parquet", first_row_id=None)
    commit_snapshot(pv.open(inside).snapshot, SnapshotChange("append", added=(dotted,)))
    with pytest.raises(IcebergError) as caught:
        pv.open(inside).to_arrow()
    assert caught.value.reason == "outside-table"
    link = inside / "data" / "link.parquet"
    link.symlink_to(file.path.removeprefix("file://"))
    pv.write(tmp_path / "u", events([1]), format="iceberg")
    linked = tmp_path / "u" / "data" / "link.parquet"
    linked.symlink_to(file.path.removeprefix("file://"))
    entry = replace(file.file, path=f"file://{linked}", first_row_id=None)
    commit_snapshot(pv.open(tmp_path / "u").snapshot, SnapshotChange("append", added=(entry,)))
    with pytest.raises(TableError):
        pv.open(tmp_path / "u").to_arrow()
    rewrite_metadata(inside, lambda d: d["snapshots"][-1].update({"manifest-list": "file:///etc/passwd"}))
    with pytest.raises(IcebergError) as caught:
        pv.open(inside).to_arrow()
    assert caught.value.reason == "outside-table"


def test_damaged_files_are_errors_that_name_them(tmp_path: Path) -> None:
    chance = random.Random(7)
    pv.write(tmp_path / "t", events(range(20)), format="iceberg")
    pv.open(tmp_path / "t").delete("id % 2 = 0")
    files = [
        p for p in (tmp_path / "t").rglob("*") if p.is_file() and not p.name.endswith(("v1.metadata.json", ".text"))
    ]
    assert {p.suffix for p in files} >= {".puffin", ".avro", ".parquet", ".json"}
    for path in files:
        whole = path.read_bytes()
        for _ in range(12):
            damaged = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            if chance.random() < 0.3:
                del damaged[chance.randrange(len(damaged)) :]
            path.write_bytes(bytes(damaged))
            try:
                pv.open(tmp_path / "t").to_arrow()
            except VariantError as error:
                assert str(error)
        path.write_bytes(whole)
    missing = next(p for p in files if p.suffix == ".puffin")
    vector = missing.read_bytes()
    assert [blob.type for blob in PuffinFile(vector).footer.blobs] == ["deletion-vector-v1"]
    missing.write_bytes(vector[:4] + bytes(len(vector) - 4))
    with pytest.raises(IcebergError) as caught:
        pv.open(tmp_path / "t").to_arrow()
    assert caught.value.reason == "bad-deletion-vector" and missing.name in str(caught.value)
    missing.unlink()
    with pytest.raises(IcebergError) as caught:
        pv.open(tmp_path / "t").to_arrow()
    assert caught.value.reason == "missing-file"


# ---- kills


STEPS: dict[str, Callable[[str], Any]] = {
    "append": lambda table: pv.open(table).append(events([100, 101])),
    "delete": lambda table: pv.open(table).delete("id < 3"),
    "update": lambda table: pv.open(table).update({"k": "'u'"}, "id = 4"),
    "optimize": lambda table: pv.open(table).optimize(rewrite_all=True),
    "expire": lambda table: pv.open(table).expire_snapshots(older_than="2999-01-01"),
}


def run_and_die(step: str, table: Path, calls: int) -> None:
    """Run a step and die before the n-th change of the disk; write the number of changes next to the table."""
    left = [calls]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in ("link", "replace", "rename", "unlink", "fsync"):
        setattr(os, name, dying(getattr(os, name)))
    STEPS[step](str(table))
    table.with_suffix(".changes").write_text(str(calls - left[0]))


def in_a_child(step: str, table: Path, calls: int) -> int | None:
    process = multiprocessing.get_context("fork").Process(target=run_and_die, args=(step, table, calls))
    process.start()
    process.join(60)
    return process.exitcode


def small_table(path: Path) -> Path:
    pv.write(path, events(range(6)), format="iceberg")
    pv.open(path).append(events(range(6, 8)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("step", list(STEPS))
def test_a_kill_leaves_the_old_table_or_the_new_one(tmp_path: Path, step: str) -> None:
    whole = small_table(tmp_path / "whole")
    old = contents(whole)
    assert in_a_child(step, whole, 1_000_000) == 0
    new, changes = contents(whole), int(whole.with_suffix(".changes").read_text())
    assert changes >= 3
    for calls in chosen_steps(changes, always=(0, changes - 1)):
        table = small_table(tmp_path / f"t{calls}")
        assert in_a_child(step, table, calls) == -signal.SIGKILL
        assert contents(table) in (old, new), calls
        assert pv.open(table).append(events([500])).committed


def contents(table: Path) -> list[str]:
    return sorted(map(repr, pv.open(table).to_arrow(["id", "k"]).to_pylist()))


@pytest.mark.parametrize("name", ["day(ts)", " ", "bucket(4, k)", "a.b"])
def test_a_partition_column_is_not_read_as_a_transform(tmp_path, name):
    pv.write(tmp_path, {name: ["x", "y", "x"], "n": [1, 2, 3]}, format="iceberg", partition_by=[name])
    pv.write(tmp_path, {name: ["y"], "n": [4]}, format="iceberg", mode="append")
    assert pv.open(tmp_path).scan(["n"], where=f"\"{name}\" = 'y'").to_arrow()["n"].to_pylist() == [2, 4]
