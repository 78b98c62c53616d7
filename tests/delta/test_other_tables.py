"""Tables as others make them, written: column mapping, row tracking, in-commit timestamps, rules, change data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol


def rows(*numbers: int) -> dict[str, Any]:
    return {"k": list(numbers), "v": pv.parse_json([json.dumps({"n": n}) for n in numbers])}


def actions(table: Path, version: int) -> list[dict[str, Any]]:
    text = (table / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def of(table: Path, version: int, key: str) -> list[dict[str, Any]]:
    return [item[key] for item in actions(table, version) if key in item]


def numbers(table: Any) -> list[int]:
    return sorted(pv.open(table).to_arrow()["k"].to_pylist())


def change(table: Path, version: int, **metadata: Any) -> None:
    """Change a table's metadata by hand, as another engine would."""
    found = pv.open(table).snapshot.metadata.to_dict() | metadata
    (table / "_delta_log" / f"{version:020}.json").write_text(json.dumps({"metaData": found}) + "\n")


# ---- column mapping


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_with_column_mapping(tmp_path: Path, mode: str) -> None:
    data = rows(1, 2, 3) | {"p": ["a", "b", "a"], "s": [{"x": n} for n in range(3)]}
    pv.write(tmp_path, data, format="delta", partition_by=["p"], properties={"delta.columnMapping.mode": mode})
    found = pv.open(tmp_path).snapshot
    assert found.column_mapping == mode
    assert found.metadata.configuration["delta.columnMapping.maxColumnId"] == "5"
    physical = {f.name: f.physical_name for f in found.schema.fields}
    assert all(name.startswith("col-") for name in physical.values())
    file = next(tmp_path.rglob("*.parquet"))
    stored = pq.read_schema(file)
    assert stored.names == [physical[name] for name in ("k", "v", "s")]
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in stored]
    assert ids == [f.field_id for f in found.schema.fields if f.name != "p"]
    stats = json.loads(of(tmp_path, 0, "add")[0]["stats"])
    assert set(stats["nullCount"]) == {physical[name] for name in ("k", "v", "s")}
    assert list(of(tmp_path, 0, "add")[0]["partitionValues"]) == [physical["p"]]
    assert pv.open(tmp_path).scan({"n": "$.n:int"}, "n > 2").to_arrow().num_rows == 1
    assert pv.open(tmp_path).scan({"n": "$.n:int", "k": "k"}, "k > 7").explain().files_by_statistics == 2
    pv.open(tmp_path).update({"v:m": "k * 2"}, "p = 'a' and v:n::int = 3")
    pv.open(tmp_path).delete("k = 1")
    pv.open(tmp_path).optimize(reshred=True)
    read = pv.open(tmp_path).to_arrow()
    assert read.column_names == ["k", "v", "p", "s"]
    found_rows = sorted((row["k"], row["p"], row["s"]["x"]) for row in read.select(["k", "p", "s"]).to_pylist())
    assert found_rows == [(2, "b", 1), (3, "a", 2)]


def test_column_mapping_is_turned_on_where_files_are(tmp_path: Path) -> None:
    pv.write(tmp_path, rows(1), format="delta")
    pv.open(tmp_path).set_properties({"delta.columnMapping.mode": "name"})
    found = pv.open(tmp_path).snapshot
    assert [f.physical_name for f in found.schema.fields] == ["k", "v"]
    assert [f.field_id for f in found.schema.fields] == [1, 2]
    pv.open(tmp_path).append(rows(2))
    assert numbers(tmp_path) == [1, 2]
    with pytest.raises(TableError) as caught:
        pv.open(tmp_path).set_properties({"delta.columnMapping.mode": "id"})
    assert caught.value.reason == "bad-property"


# ---- row tracking


def test_rows_keep_their_ids(tmp_path: Path) -> None:
    pv.write(tmp_path, rows(1, 2, 3), format="delta", properties={"delta.enableRowTracking": True})
    pv.open(tmp_path).append(rows(4, 5))
    adds = [of(tmp_path, version, "add")[0] for version in (0, 1)]
    assert [(add["baseRowId"], add["defaultRowCommitVersion"]) for add in adds] == [(0, 0), (3, 1)]
    assert [json.loads(of(tmp_path, v, "domainMetadata")[0]["configuration"]) for v in (0, 1)] == [
        {"rowIdHighWaterMark": 2}, {"rowIdHighWaterMark": 4}
    ]  # fmt: skip
    pv.open(tmp_path).update({"v:x": "1"}, "k = 2")
    pv.open(tmp_path).optimize()
    (file,) = pv.open(tmp_path).snapshot.files["path"].to_pylist()
    configuration = pv.open(tmp_path).snapshot.metadata.configuration
    ids = configuration["delta.rowTracking.materializedRowIdColumnName"]
    versions = configuration["delta.rowTracking.materializedRowCommitVersionColumnName"]
    table = pq.read_table(tmp_path / file, columns=["k", ids, versions])
    found = {k: (i, v) for k, i, v in zip(*(table[name].to_pylist() for name in ("k", ids, versions)), strict=True)}
    assert {k: i for k, (i, _) in found.items()} == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}
    assert found[1][1] == 0
    assert found[4][1] == 1
    assert found[2][1] == 2
    assert of(tmp_path, 3, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]
    pv.open(tmp_path).checkpoint()
    (again,) = pv.open(tmp_path).snapshot.files.to_pylist()
    assert again["baseRowId"] > 4


def test_row_tracking_is_turned_on_where_rows_are(tmp_path: Path) -> None:
    pv.write(tmp_path, rows(1, 2), format="delta")
    pv.open(tmp_path).append(rows(3))
    pv.open(tmp_path).set_properties({"delta.enableRowTracking": True})
    files = pv.open(tmp_path).snapshot.files
    assert sorted(files["baseRowId"].to_pylist()) in ([0, 1], [0, 2])
    assert set(files["defaultRowCommitVersion"].to_pylist()) == {2}
    assert numbers(tmp_path) == [1, 2, 3]


# ---- in-commit timestamps


def test_every_commit_has_a_later_time(tmp_path: Path) -> None:
    pv.write(tmp_path, rows(1), format="delta")
    pv.open(tmp_path).set_properties({"delta.enableInCommitTimestamps": True})
    pv.open(tmp_path).append(rows(2))
    (tmp_path / "_delta_log" / f"{3:020}.json").write_text(
        json.dumps({"commitInfo": {"inCommitTimestamp": 9_000_000_000_000}}) + "\n"
    )
    pv.open(tmp_path).append(rows(3))
    times = []
    for version in (1, 2, 4):
        first = actions(tmp_path, version)[0]
        times.append(first["commitInfo"]["inCommitTimestamp"])
    assert times[0] < times[1] < times[2] == 9_000_000_000_001
    configuration = pv.open(tmp_path).snapshot.metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(times[0])
    assert pv.open(tmp_path, at=times[1]).snapshot.version == 2
    pv.create(tmp_path / "new", pa.schema([("n", pa.int64())]), properties={"delta.enableInCommitTimestamps": True})
    assert "inCommitTimestamp" in actions(tmp_path / "new", 0)[0]["commitInfo"]


# ---- rules


def test_constraints_hold_for_what_is_there_and_what_comes(tmp_path: Path) -> None:
    pv.write(tmp_path, rows(1, 2), format="delta")
    with pytest.raises(TableError, match="small") as caught:
        pv.open(tmp_path).set_properties({"delta.constraints.small": "k < 2"})
    assert caught.value.reason == "constraint-violated"
    assert pv.open(tmp_path).snapshot.version == 0
    pv.open(tmp_path).set_properties({"delta.constraints.small": "v:n::int < 10"})
    for act in (
        lambda: pv.open(tmp_path).append(rows(3, 30)),
        lambda: pv.open(tmp_path).append({"k": [1], "v": pv.parse_json(["{}"])}),
        lambda: pv.open(tmp_path).update({"v:n": "k * 100"}),
    ):
        with pytest.raises(TableError, match="small") as caught:
            act()
        assert caught.value.reason == "constraint-violated"
    pv.open(tmp_path).append(rows(3))
    assert numbers(tmp_path) == [1, 2, 3]
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    change(tmp_path, 3, configuration={"delta.constraints.odd": "my_function(k) > 1"})
    with pytest.raises(TableError, match="my_function") as caught:
        pv.open(tmp_path).append(rows(4))
    assert caught.value.reason == "unsupported-feature"


def column(name: str, kind: Any, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def made(table: Path, *columns: dict[str, Any], features: tuple[str, ...] = ()) -> Path:
    schema = json.dumps({"type": "struct", "fields": list(columns)})
    lines = [
        {"protocol": Protocol(1, 7, None, features).to_dict()},
        {"metaData": Metadata("id", schema).to_dict()},
    ]
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return table


def test_not_null_at_every_depth(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [column("x", "long", False)]}
    table = made(tmp_path / "t", column("n", "long", False), column("s", inner))
    pv.open(table).append({"n": [1, 2], "s": [{"x": 1}, None]})
    for bad in ({"n": [None]}, {"n": [1], "s": pa.array([{"x": None}], pa.struct([("x", pa.int64())]))}, {"s": [None]}):
        with pytest.raises(TableError) as caught:
            pv.open(table).append(bad)
        assert caught.value.reason in ("null-value", "missing-column")


def test_defaults_generated_columns_and_invariants(tmp_path: Path) -> None:
    table = made(
        tmp_path / "t",
        column("n", "long", **{"delta.invariants": json.dumps({"expression": {"expression": "n > 3"}})}),
        column("d", "string", CURRENT_DEFAULT="'none'"),
        column("g", "long", **{"delta.generationExpression": "n * 2"}),
        features=("invariants", "allowColumnDefaults", "generatedColumns"),
    )
    pv.open(table).append({"n": [4, 5]})
    pv.open(table).append({"n": [6], "d": pa.array([None], pa.string()), "g": [12]})
    read = pv.open(table).to_arrow()
    assert read.to_pylist() == [
        {"n": 4, "d": "none", "g": 8}, {"n": 5, "d": "none", "g": 10}, {"n": 6, "d": None, "g": 12}
    ]  # fmt: skip
    for bad in ({"n": [3]}, {"n": [4], "g": [9]}, {"n": pa.array([None], pa.int64())}):
        with pytest.raises(TableError) as caught:
            pv.open(table).append(bad)
        assert caught.value.reason == "constraint-violated"


def made_table(folder: Path, **properties: str) -> Path:
    """A table with a default and generated columns, the last a partition column, and change data."""
    table = made(
        folder,
        column("n", "long"),
        column("k", "long"),
        column("d", "string", CURRENT_DEFAULT="'none'"),
        column("g", "long", **{"delta.generationExpression": "n * 2"}),
        column("p", "long", **{"delta.generationExpression": "n % 2"}),
        features=("allowColumnDefaults", "generatedColumns", "changeDataFeed", "deletionVectors"),
    )
    change(table, 1, configuration={"delta.enableChangeDataFeed": "true"} | properties, partitionColumns=["p"])
    return table


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_generated_columns_follow_what_an_update_or_a_merge_sets(tmp_path: Path, vectors: str) -> None:
    table = made_table(tmp_path / "t", **{"delta.enableDeletionVectors": vectors})
    pv.open(table).append({"n": [1, 2, 3, 4], "k": [1, 2, 3, 4]})
    pv.open(table).update({"n": "n + 10"}, "k = 2")
    pv.open(table).update({"n": "n + 1"}, "k = 3")  # To another partition.
    pv.open(table).update({"n": "7", "g": "14"}, "k = 4")
    merge = pv.open(table).merge({"n": [20], "k": [1]}, "target.k = source.k")
    merge.when_matched_update_all().execute()
    rows = sorted(pv.open(table).to_arrow().to_pylist(), key=lambda row: row["k"])
    assert [(row["n"], row["g"], row["p"]) for row in rows] == [(20, 40, 0), (12, 24, 0), (4, 8, 0), (7, 14, 1)]
    with pytest.raises(TableError) as caught:
        pv.open(table).update({"n": "1", "g": "3"})
    assert caught.value.reason == "constraint-violated"


def test_change_data_of_new_rows_has_the_columns_that_are_made(tmp_path: Path) -> None:
    table = made_table(tmp_path / "t")
    pv.open(table).append({"n": [1], "k": [1]})
    merge = pv.open(table).merge({"n": [5, 6], "k": [5, 6], "d": ["x", "y"]}, "target.k = source.k")
    merge = merge.when_not_matched_insert({"n": "source.n", "k": "source.k", "d": "source.d"}, "source.k = 5")
    merge.when_not_matched_insert({"n": "source.n", "k": "source.k"}).execute()
    pv.open(table).overwrite({"n": [8], "k": [8]}, where="g = 16")
    pv.open(table).overwrite({"n": [11], "k": [11]}, partitions=True)
    expected = pv.open(table).changes(since=3).to_pylist()
    news = [(item["k"], item["d"], item["g"], item["p"]) for item in expected if item["_change_type"] == "insert"]
    assert sorted(news) == [(5, "x", 10, 1), (6, "none", 12, 0), (8, "none", 16, 0), (11, "none", 22, 1)]
    rows = pv.open(table).to_arrow().to_pylist()
    assert sorted((row["k"], row["d"], row["g"], row["p"]) for row in rows) == sorted(news)[1:]


def identity_table(folder: Path, **expected: Any) -> Path:
    """A table with an identity column and another; `expected` is of the first."""
    metadata = {f"delta.identity.{name}": value for name, value in ({"start": 1, "step": 1} | expected).items()}
    return made(folder, column("id", "long", **metadata), column("n", "long"), features=("identityColumns",))


def identity_mark(table: Path) -> int | None:
    return pv.open(table).snapshot.schema.fields[0].metadata.get("delta.identity.highWaterMark")


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        ({}, [1, 2, 3]), ({"start": -5, "step": 10}, [-5, 5, 15]), ({"start": 7, "step": -3}, [7, 4, 1]),
        ({"highWaterMark": 40}, [41, 42, 43]), ({"start": 0, "step": 2, "highWaterMark": 5}, [6, 8, 10]),
        ({"start": 0, "step": -2, "highWaterMark": -5}, [-6, -8, -10]), ({"start": 9, "highWaterMark": 3}, [9, 10, 11]),
    ],
)  # fmt: skip
def test_values_of_identity_columns_are_made(tmp_path: Path, expected: dict[str, int], wanted: list[int]) -> None:
    table = identity_table(tmp_path / "t", **expected)
    pv.open(table).append(iter([{"n": [10, 20]}, {"n": [30]}]))
    rows = sorted(pv.open(table).to_arrow().to_pylist(), key=lambda row: row["n"])
    assert rows == [{"id": at, "n": n} for at, n in zip(wanted, (10, 20, 30), strict=True)]
    assert identity_mark(table) == wanted[-1]
    pv.open(table).append({"n": pa.array([], pa.int64())})
    assert identity_mark(table) == wanted[-1]


def test_every_way_to_add_rows_makes_values_of_identity_columns(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t")
    pv.open(table).append({"n": [1, 2]})
    merge = pv.open(table).merge({"n": [2, 3, 4]}, "target.n = source.n")
    merge.when_matched_update({"n": "source.n * 10"}).when_not_matched_insert_all().execute()
    assert sorted(map(tuple, map(dict.values, pv.open(table).to_arrow().to_pylist()))) == [
        (1, 1), (2, 20), (3, 3), (4, 4)
    ]  # fmt: skip
    pv.open(table).overwrite({"n": [3]}, where="n = 3")
    assert pv.open(table).scan(["id"], "n = 3").to_arrow()["id"].to_pylist() == [5]
    pv.open(table).overwrite({"n": [7]})
    assert pv.open(table).to_arrow().to_pylist() == [{"id": 6, "n": 7}]
    assert identity_mark(table) == 6


def test_a_condition_of_new_rows_sees_the_columns_that_are_made(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t")
    pv.open(table).append({"n": [1, 2]})
    assert pv.open(table).overwrite({"N": [3]}, where="id > 1 AND id < 4").rows_deleted == 1
    assert sorted(map(tuple, map(dict.values, pv.open(table).to_arrow().to_pylist()))) == [(1, 1), (3, 3)]
    with pytest.raises(TableError) as caught:
        pv.open(table).overwrite({"n": [4]}, where="id < 4")
    assert caught.value.reason == "outside-condition"
    assert identity_mark(table) == 3
    pv.write(tmp_path / "plain", {"k": [1, 2], "n": pa.array([1, None])}, format="delta")
    assert pv.open(tmp_path / "plain").overwrite({"k": [5]}, where="n IS NULL").rows_deleted == 1


def test_identity_columns_that_users_may_fill(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t", step=5, allowExplicitInsert=True)
    pv.open(table).append({"id": [8, -20], "n": [1, 2]})
    pv.open(table).append({"n": [3]})
    assert sorted(pv.open(table).to_arrow()["id"].to_pylist()) == [-20, 1, 8]
    assert identity_mark(table) == 1  # The highest value that was made: those that users gave do not count.


def test_what_identity_columns_do_not_allow(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t", highWaterMark=2**63 - 2)
    refused: list[tuple[str, Any]] = [
        ("identity-given", lambda: pv.open(table).append({"id": [1], "n": [1]})),
        ("identity-overflow", lambda: pv.open(table).append({"n": [1, 2]})),
        ("bad-assignment", lambda: pv.open(table).update({"id": "5"})),
        ("unsupported-feature", lambda: pv.open(table).plan()),
    ]
    for reason, call in refused:
        with pytest.raises(TableError) as caught:
            call()
        assert caught.value.reason == reason
    assert pv.open(table).snapshot.version == 0
    pv.open(table).append({"n": [1]})
    assert pv.open(table).to_arrow()["id"].to_pylist() == [2**63 - 1]
    broken = identity_table(tmp_path / "broken", step=0)
    with pytest.raises(TableError, match="identity column"):
        pv.open(broken).append({"n": [1]})


def test_two_that_take_the_same_identity_values(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t")
    before = pv.open(table).snapshot
    pv.open(before).append({"n": [1, 2]})
    pv.open(before).append({"n": [3]})  # Planned on the version that the first one has left behind.
    pv.open(before).merge({"n": [4]}, "target.n = source.n").when_not_matched_insert_all().execute()
    rows = pv.open(table).to_arrow().to_pylist()
    assert sorted(map(tuple, map(dict.values, rows))) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert len(list(table.glob("*.parquet"))) == 3


def test_rows_that_are_only_copied_are_not_asked_for_rules_again(tmp_path: Path) -> None:
    table = made(tmp_path / "t", column("n", "long"), features=("checkConstraints",))
    pv.open(table).append(iter([{"n": [1, 2]}, {"n": [3]}]))
    pv.open(table).append({"n": [4]})
    change(table, 3, configuration={"delta.constraints.c": "only_spark_knows(n)"})
    pv.open(table).delete("n = 2")
    pv.open(table).optimize()
    assert pv.open(table).snapshot.num_files == 1
    assert sorted(pv.open(table).to_arrow()["n"].to_pylist()) == [1, 3, 4]
    for call in (lambda: pv.open(table).append({"n": [5]}), lambda: pv.open(table).update({"n": "7"}, "n = 1")):
        with pytest.raises(TableError, match="only_spark_knows"):
            call()


def test_clustering_is_kept(tmp_path: Path) -> None:
    wide = {f"c{i}": [i] for i in range(40)}
    pv.write(tmp_path, wide, format="delta")
    protocol = Protocol(1, 7, None, ("clustering", "domainMetadata"))
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["c36"]]}', "removed": False}
    lines = [{"protocol": protocol.to_dict()}, {"domainMetadata": domain}]
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pv.open(tmp_path).append(wide)
    assert json.loads(of(tmp_path, 2, "add")[0]["stats"])["minValues"]["c36"] == 36
    pv.open(tmp_path).checkpoint()
    assert pv.open(tmp_path).snapshot.domains["delta.clustering"].configuration == domain["configuration"]


def test_a_restored_table_gives_no_identity_value_twice_and_is_clustered_as_it_was(tmp_path: Path) -> None:
    table = identity_table(tmp_path / "t")
    pv.open(table).append({"n": [1, 2]})
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["n"]]}', "removed": False}
    protocol = Protocol(1, 7, None, ("identityColumns", "clustering", "domainMetadata"))
    lines = [{"protocol": protocol.to_dict()}, {"domainMetadata": domain}]
    (table / "_delta_log" / f"{2:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pv.open(table).append({"n": [3, 4]})
    pv.open(table).restore(version=1)
    assert json.loads(of(table, 4, "domainMetadata")[0]["configuration"]) == {"clusteringColumns": []}
    pv.open(table).append({"n": [5]})
    assert sorted(pv.open(table).to_arrow()["id"].to_pylist()) == [1, 2, 5]
    pv.open(table).restore(version=3)
    assert of(table, 6, "domainMetadata") == [domain]
    pv.open(table).restore(version=2)
    assert not of(table, 7, "domainMetadata")
    pv.open(table).append({"n": [6]})
    assert sorted(pv.open(table).to_arrow()["id"].to_pylist()) == [1, 2, 6]


# ---- change data


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("feed", [False, True])
def test_changes_tell_what_happened(tmp_path: Path, vectors: bool, feed: bool) -> None:
    properties = {"delta.enableChangeDataFeed": feed, "delta.enableDeletionVectors": vectors}
    pv.write(tmp_path, rows(1, 2, 3, 4), format="delta", properties=properties)
    pv.open(tmp_path).delete("k = 1")
    pv.open(tmp_path).update({"v:n": "v:n::int * 10"}, "k = 2")
    merged = pv.open(tmp_path).merge(rows(3, 9), "target.k = source.k")
    merged.when_matched_delete().when_not_matched_insert_all().execute()
    pv.open(tmp_path).optimize()
    found = pv.open(tmp_path).changes(since=0)
    variants = pv.VariantArray.from_arrow(found, column="v").to_pylist()
    expected = sorted(
        zip(found["_commit_version"].to_pylist(), found["_change_type"].to_pylist(), found["k"].to_pylist(),
            [variant["n"] for variant in variants], strict=True)
    )  # fmt: skip
    state: dict[int, int] = {}
    for version in range(5):
        these = [item for item in expected if item[0] == version]
        for _, kind, k, n in these:
            if kind in ("delete", "update_preimage"):
                assert state.pop(k) == n
        for _, kind, k, n in these:
            if kind in ("insert", "update_postimage"):
                assert k not in state
                state[k] = n
    assert state == {2: 20, 4: 4, 9: 9}
    if feed:
        assert [item[1:] for item in expected if item[0] == 2] == [
            ("update_postimage", 2, 20), ("update_preimage", 2, 2)
        ]  # fmt: skip
        assert list((tmp_path / "_change_data").glob("*.parquet"))
    assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    assert len(pv.open(tmp_path).changes(since=99)) == 0


def test_changes_of_partitions_whose_removed_files_tell_no_values(tmp_path: Path) -> None:
    pv.write(tmp_path, {"p": ["a", "b"], "n": [1, 2]}, format="delta", partition_by="p")
    (gone,) = [row["path"] for row in of(tmp_path, 0, "add") if row["partitionValues"] == {"p": "a"}]
    remove = {"remove": {"path": gone.replace("=", "%3D"), "deletionTimestamp": 1, "dataChange": True}}
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(json.dumps(remove) + "\n")
    expected = pv.open(tmp_path).changes(since=1).select(["p", "n", "_change_type"]).to_pylist()
    assert expected == [{"p": "a", "n": 1, "_change_type": "delete"}]


def test_changes_tell_the_time_by_which_versions_are_found(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta")
    pv.open(tmp_path).append({"n": [2]})
    pv.open(tmp_path).append({"n": [3]})
    for version, seconds in ((0, 1_000), (1, 5_000), (2, 3_000)):
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    expected = {row["n"]: row["_commit_timestamp"] for row in pv.open(tmp_path).changes(since=0).to_pylist()}
    assert {n: at.timestamp() for n, at in expected.items()} == {1: 1_000.0, 2: 5_000.0, 3: 5_000.001}
    assert all(pv.open(tmp_path, at=at).snapshot.version == n - 1 for n, at in expected.items())
    pv.open(tmp_path).set_properties({"delta.enableInCommitTimestamps": True})
    pv.open(tmp_path).append({"n": [4]})
    (at,) = set(pv.open(tmp_path).changes(since=4)["_commit_timestamp"].to_pylist())
    assert at.timestamp() * 1000 == of(tmp_path, 4, "commitInfo")[0]["inCommitTimestamp"]


def test_every_commit_of_a_table_that_tracks_rows_records_that_it_kept_their_ids(tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": True, "delta.enableDeletionVectors": True}
    pv.write(tmp_path, {"n": [1, 2, 3]}, format="delta", properties=properties)
    pv.open(tmp_path).delete("n = 2")
    pv.open(tmp_path).set_properties({"owner": "me"})
    pv.open(tmp_path).optimize()
    for version in range(4):
        assert of(tmp_path, version, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
