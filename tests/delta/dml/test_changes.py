"""Delete, update and merge: what is left is what SQL says, files that cannot match are never opened."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError, VariantError
from parquet_variant.tables.delta.dml import changeable
from parquet_variant.tables.delta.statistics import decode_bounds
from parquet_variant.tables.row_sets import read_bitmap, write_bitmap

VECTORS: list[dict[str, Any]] = [{}, {"delta.enableDeletionVectors": True}]


def columns(numbers: Any) -> dict[str, Any]:
    numbers = list(numbers)
    rows = [json.dumps({"id": n, "s": {"t": f"t{n % 3}"}, "odd": [n] if n % 2 else "x"}) for n in numbers]
    return {
        "k": pa.array(numbers, pa.int64()), "p": pa.array([f"p{n % 2}" for n in numbers], pa.string()),
        "v": pv.parse_json(pa.array(rows, pa.string())),
    }  # fmt: skip


def state(table: Path) -> dict[int, tuple[str, Any]]:
    rows = pv.open(table).to_arrow()
    variants = pv.VariantArray.from_arrow(rows, column="v").to_pylist()
    found = dict(zip(rows["k"].to_pylist(), zip(rows["p"].to_pylist(), variants, strict=True), strict=True))
    assert len(found) == len(rows)
    return found


@pytest.fixture(params=VECTORS, ids=["rewritten", "vectors"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for start in range(0, 50, 10):
        pv.write(
            tmp_path / "t", columns(range(start, start + 10)), format="delta", mode="append", properties=request.param
        )
    return tmp_path / "t"


def has_vectors(table: Path) -> bool:
    files = pv.open(table).snapshot.files
    return bool(files["deletionVector"].null_count < len(files))


def test_new_values_are_a_mapping(table: Path) -> None:
    with pytest.raises(VariantError, match=r"is a \w+: give"):
        pv.open(table).update("v:a = 1")  # type: ignore[arg-type]


def test_delete(table: Path) -> None:
    marks = pv.open(table).snapshot.metadata.configuration.get("delta.enableDeletionVectors") == "true"
    result = pv.open(table).delete("v:id::int >= 18 AND v:id::int < 23 AND p = 'p0'")
    assert (result.rows_deleted, result.files_total, result.files_opened, result.files_removed) == (3, 5, 2, 2)
    assert has_vectors(table) == marks
    assert set(state(table)) == set(range(50)) - {18, 20, 22}
    result = pv.open(table).delete("k IN (18, 19, 21)")
    assert result.rows_deleted == 2
    assert pv.open(table).delete("v:s.t::string = 'nothing'").files_removed == 0
    assert pv.open(table).delete("v:nowhere::int = 5 OR v:id::int = 49").rows_deleted == 1
    assert set(state(table)) == set(range(49)) - set(range(18, 23))
    assert pv.open(table).scan({"n": "$.id:int"}, "n between 15 and 25").to_arrow()["n"].to_pylist() == [
        15,
        16,
        17,
        23,
        24,
        25,
    ]
    assert pv.open(table).delete().rows_deleted == 44
    assert pv.open(table).snapshot.num_files == 0
    assert len(pv.open(table, version=4).to_arrow()) == 50


def test_update(table: Path) -> None:
    result = pv.open(table).update(
        {"v:s.t": "concat('new', k)", "v:big": "v:id::bigint * 100", "p": "'q'"}, "v:s.t::string = 't1' and k < 10"
    )
    assert (result.rows_updated, result.files_opened) == (3, 1)
    found = state(table)
    assert found[4] == ("q", {"id": 4, "s": {"t": "new4"}, "odd": "x", "big": 400})
    assert found[5] == ("p1", {"id": 5, "s": {"t": "t2"}, "odd": [5]})
    assert set(found) == set(range(50))
    pv.open(table).update({"v:n": "CAST(NULL AS int)"}, "k = 7")
    assert state(table)[7][1]["n"] is None
    pv.open(table).update(new_values={"v": {"whole": True}, "k": 1000}, where="k = 7")
    assert state(table)[1000] == ("q", {"whole": True})
    pv.open(table).update({"v": "v:s"}, "k = 8")
    assert state(table)[8][1] == {"t": "t2"}


@pytest.mark.parametrize(
    ("updates", "reason"),
    [
        ({}, "bad-assignment"), ({"k": 5}, "bad-assignment"), ({"k": "'x'"}, "type-mismatch"),
        ({"v:a": "1", "v": "v"}, "bad-assignment"), ({"k + 1": "1"}, "bad-assignment"),
        ({"nowhere": "1"}, "bad-sql"), ({"k": "nowhere"}, "bad-sql"), ({"k": "1 +"}, "bad-sql"),
        ({"k": "v:id"}, "type-mismatch"),
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_and_changes_nothing(table: Path, updates: Any, reason: str) -> None:
    with pytest.raises(VariantError) as caught:
        pv.open(table).update(updates, "k = 1")
    assert caught.value.reason == reason
    assert pv.open(table).snapshot.version == 4


_COLUMNS = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        ("r", pa.struct([pa.field("a", pa.int32())])),
        ("d", pa.decimal128(5, 2)),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


@pytest.mark.parametrize(
    ("updates", "found"),
    [
        ({"s": "r"}, {"s": [{"a": 5}, None]}),
        ({"s": "CASE WHEN k = 1 THEN {'A': 7} END"}, {"s": [{"a": 7}, None]}),
        ({"d": "k"}, {"d": [Decimal(1), Decimal(2)]}),
        ({"t": "TIMESTAMP '2020-01-01 01:00:00'"}, {"t": [datetime(2020, 1, 1, tzinfo=UTC)] * 2}),
    ],
)
def test_columns_take_values_that_fit(tmp_path: Path, updates: dict[str, str], found: dict[str, Any]) -> None:
    pv.create(tmp_path / "t", _COLUMNS)
    pv.open(tmp_path / "t").append({"k": [1, 2], "r": [{"a": 5}, None]})
    pv.open(tmp_path / "t").update(updates, zone="Europe/Berlin")
    table = pv.open(tmp_path / "t").to_arrow().sort_by("k")
    assert {name: table[name].to_pylist() for name in found} == found


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ({"updates": {"s": "{'a': 1, 'other': 2}"}}, "unknown-column"),
        ({"updates": {"s": "{'a': NULL}"}}, "null-value"),
        ({"updates": {"r": "{'a': 3000000000}"}}, "type-mismatch"),
        ({"new_values": {"r": {"a": 1, "other": 2}}}, "unknown-column"),
        ({"new_values": {"r": {"A": 1}}}, "unknown-column"),
        ({"new_values": {"k": 2**70}}, "type-mismatch"),
    ],
)
def test_what_would_be_lost_of_a_new_value_is_refused(tmp_path: Path, new: dict[str, Any], reason: str) -> None:
    pv.create(tmp_path / "t", _COLUMNS)
    pv.open(tmp_path / "t").append({"k": [1]})
    with pytest.raises(VariantError) as caught:
        pv.open(tmp_path / "t").update(**new)
    assert caught.value.reason == reason


def test_merge_with_every_branch(table: Path) -> None:
    source = {"id": [5, 6, 45, 77, 78], "w": pv.parse_json(['{"x": 1}', "2", '{"x": 3}', "4", "5"])}
    result = (
        pv.open(table)
        .merge(source, "t.v:id::int = s.id", target_alias="t", source_alias="s")
        .when_matched_delete("s.id = 6")
        .when_matched_update({"v:x": "s.w:x", "p": "'m'"}, "t.k < 20")
        .when_not_matched_insert({"k": "s.id", "v": "s.w"}, "s.id > 77")
        .when_not_matched_by_source_delete("t.k between 10 and 19")
        .when_not_matched_by_source_update({"v:late": "true"}, "t.k = 20")
        .execute()
    )
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (11, 2, 1)
    found = state(table)
    assert set(found) == (set(range(50)) - {6} - set(range(10, 20))) | {78}
    assert found[5] == ("m", {"id": 5, "s": {"t": "t2"}, "odd": [5], "x": 1})
    assert found[45][1] == {"id": 45, "s": {"t": "t0"}, "odd": [45]}
    assert found[20][1]["late"] is True
    assert found[78] == (None, 5)


def test_a_merge_opens_only_the_files_that_hold_its_keys(table: Path) -> None:
    merged = pv.open(table).merge(columns([3, 4, 33, 200]), "target.k = source.k")
    result = merged.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.files_opened, result.rows_updated, result.rows_inserted) == (2, 3, 1)
    merged = pv.open(table).merge(columns([14, 41]), "target.v:id::bigint = source.v:id::bigint")
    result = merged.when_matched_delete().execute()
    assert (result.files_opened, result.rows_deleted) == (2, 2)


def test_a_merge_of_all_columns_leaves_out_those_of_except_cols(table: Path) -> None:
    before = state(table)
    merge = pv.open(table).merge({"k": [5, 300], "p": ["x", "y"], "more": [1, 2]}, "target.k = source.k")
    merge.when_matched_update_all(except_cols="more").when_not_matched_insert_all(except_cols=["P", "more"]).execute()
    assert state(table) == before | {5: ("x", before[5][1]), 300: (None, None)}
    for names in ("mor", ["more", "q"]):
        with pytest.raises(TableError, match="except_cols names"):
            merge.when_matched_update_all(except_cols=names).execute()


def test_a_row_that_two_would_change_is_refused(table: Path) -> None:
    twice = {"k": [5, 5]}
    with pytest.raises(TableError) as caught:
        pv.open(table).merge(twice, "target.k = source.k").when_matched_update({"p": "'x'"}).execute()
    assert caught.value.reason == "ambiguous-merge"
    assert pv.open(table).merge(twice, "target.k = source.k").when_matched_delete().execute().rows_deleted == 1


@pytest.mark.parametrize("properties", VECTORS, ids=["rewritten", "vectors"])
def test_random_histories_are_those_of_a_plain_model(tmp_path: Path, properties: dict[str, Any]) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    table, model = tmp_path / "t", {}
    pv.write(table, columns(range(20)), format="delta", properties=properties, partition_by=["p"])
    model = state(table)
    for _ in range(12):
        low = chance.randrange(60)
        high = low + chance.randrange(12)
        inside = [k for k in model if low <= k <= high]
        kind = chance.choice(["append", "delete", "update", "merge", "optimize"])
        if kind == "append":
            fresh = [k for k in range(low, high) if k not in model]
            pv.open(table).append(columns(fresh))
            model |= {k: (f"p{k % 2}", {"id": k, "s": {"t": f"t{k % 3}"}, "odd": [k] if k % 2 else "x"}) for k in fresh}
        elif kind == "delete":
            pv.open(table).delete(f"k >= {low} AND k <= {high} AND (p = 'p1' OR v:touched::int = 1)")
            model = {
                k: row for k, row in model.items()
                if not (k in inside and (row[0] == "p1" or (isinstance(row[1], dict) and row[1].get("touched") == 1)))
            }  # fmt: skip
        elif kind == "update":
            pv.open(table).update(
                {"v:touched": "1", "p": "CASE WHEN p = 'p0' THEN 'p1' ELSE p END"}, f"k BETWEEN {low} AND {high}"
            )
            model |= {k: ("p1", {**model[k][1], "touched": 1}) for k in inside}
        elif kind == "merge":
            merged = pv.open(table).merge(columns(range(low, high + 1)), "target.k = source.k")
            merged.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
            for k in range(low, high + 1):
                new = {"id": k, "s": {"t": f"t{k % 3}"}, "odd": [k] if k % 2 else "x"}
                model[k] = (model[k][0] if k in model else f"p{k % 2}", new)
        else:
            pv.open(table).optimize()
        assert state(table) == model, (seed, kind, low, high)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 70_000])
def test_bitmaps_come_back(size: int) -> None:
    import numpy as np

    rows = np.unique(np.random.default_rng(size).integers(0, max(size * 3, 1), size)).astype(np.uint64)
    far = np.concatenate([rows, rows + np.uint64(2**34)]) if size else rows
    assert np.array_equal(read_bitmap(write_bitmap(far)), far)


def test_others_that_come_first(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What matches and was added meanwhile is deleted too; what does not match is let be."""

    commit = changeable.commit
    meanwhile = [lambda: pv.open(table).append(columns([500])), lambda: pv.open(table).append(columns([12_345]))]

    def raced(*args: Any, **options: Any) -> Any:
        if meanwhile:
            meanwhile.pop(0)()
        return commit(*args, **options)

    monkeypatch.setattr(changeable, "commit", raced)
    result = pv.open(table).delete("k = 500 OR k = 5")
    assert result.rows_deleted == 2
    assert set(state(table)) == set(range(50)) - {5} | {12_345}
    marked = set(pv.open(table).snapshot.files["path"].to_pylist())
    assert marked <= {file.name for file in table.glob("*.parquet")}


def test_a_merge_into_a_thousand_files_opens_none_but_those_with_its_rows(tmp_path: Path) -> None:
    plan = pv.open(pv.create(tmp_path, pa.schema([("k", pa.int64()), ("n", pa.int64())])).snapshot).plan()
    adds = [add for k in range(1000) for add in plan.write_files({"k": [k], "n": [0]})]
    pv.open(tmp_path).commit_files(adds)
    keys = random.Random(1).sample(range(1000), 10)
    for k, add in enumerate(adds):
        if k not in keys:
            (tmp_path / add.path).unlink()
    merge = pv.open(tmp_path).merge({"k": [*keys, 5000], "n": [7] * 11}, "target.k = source.k")
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.files_total, result.files_opened, result.rows_updated, result.rows_inserted) == (1000, 10, 10, 1)
    found = pv.open(tmp_path).scan(["k"], "n = 7").to_arrow()["k"].to_pylist()
    assert sorted(found) == sorted([*keys, 5000])


@pytest.mark.parametrize("properties", VECTORS, ids=["rewritten", "vectors"])
def test_rows_that_are_copied_stay_shredded(tmp_path: Path, properties: dict[str, Any]) -> None:
    schema = "id bigint, s struct<t: string>"
    pv.write(tmp_path / "t", columns(range(30)), format="delta", schema=schema, properties=properties)
    pv.open(tmp_path / "t").update({"v:s.t": "7"}, "k % 10 = 3")
    found = pv.open(tmp_path / "t").scan({"id": "$.id:long", "t": "$.s.t:string"}, "id >= 22").to_arrow()
    assert sorted(zip(found["id"].to_pylist(), found["t"].to_pylist(), strict=True)) == [
        (n, "7" if n % 10 == 3 else f"t{n % 3}") for n in range(22, 30)
    ]


def test_columns_that_an_update_does_not_set_keep_their_bytes_and_statistics(tmp_path: Path) -> None:
    properties = {"delta.enableVariantShredding": True}
    pv.write(
        tmp_path / "t",
        columns(range(3000)),
        format="delta",
        schema="id bigint, s struct<t: string>",
        properties=properties,
    )

    def message() -> tuple[dict[str, Any], dict[str, bytes]]:
        (row,) = pv.open(tmp_path / "t").snapshot.files.to_pylist()
        data = (tmp_path / "t" / row["path"]).read_bytes()
        group = pq.read_metadata(tmp_path / "t" / row["path"]).row_group(0)
        found = {}
        for index in range(group.num_columns):
            chunk = group.column(index)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            found[chunk.path_in_schema] = data[start : start + chunk.total_compressed_size]
        return json.loads(row["stats"]), found

    before, was = message()
    merge = pv.open(tmp_path / "t").merge({"k": [7, 9], "n": [-5, -6]}, "target.k = source.k")
    merge.when_matched_update({"v:id": "source.n"}, "source.k = 7").when_matched_update({"k": "source.n"}).execute()
    after, new = message()
    assert {name for name in was if was[name] != new[name]} == {"k", "v.typed_value.id.typed_value"}
    assert before["minValues"].pop("k") == 0
    assert after["minValues"].pop("k") == -6
    assert before["minValues"].pop("v") != after["minValues"].pop("v")
    assert after == before
    asked = {"id": "$.id:int", "k": "k"}
    assert pv.open(tmp_path / "t").scan(asked, "id < 0").to_arrow().to_pylist() == [{"id": -5, "k": 7}]
    assert pv.open(tmp_path / "t").scan(asked, "k < 0").to_arrow().to_pylist() == [{"id": 9, "k": -6}]


def test_paths_that_are_set_have_the_bounds_of_their_new_values_and_others_keep_theirs(tmp_path: Path) -> None:
    table = tmp_path / "t"
    properties = {"delta.enableVariantShredding": True}
    pv.write(table, columns(range(100)), format="delta", schema="id bigint, s struct<t: string>", properties=properties)
    expected = {n: {"id": n, "s": {"t": f"t{n % 3}"}, "odd": [n] if n % 2 else "x"} for n in range(100)}

    def bounds() -> dict[str, tuple[Any, Any]]:
        (text,) = pv.open(table).snapshot.files["stats"].to_pylist()
        low, high = (decode_bounds(json.loads(text)[kind]["v"]) for kind in ("minValues", "maxValues"))
        assert low.keys() == high.keys()
        return {str(path): (low[path].to_python(), high[path].to_python()) for path in low}

    def follow(keys: Any, path: tuple[str, ...], value: Any) -> None:
        for key in keys:
            inner = expected[key]
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = value(key) if callable(value) else value

    def check() -> None:
        assert {k: v for k, (_, v) in state(table).items()} == expected

    pv.open(table).update({"v:id": "v:id::int - 1000", "v:s.t": "'u'"}, "k % 50 = 7")
    follow([7, 57], ("id",), lambda n: n - 1000)
    follow([7, 57], ("s", "t"), "u")
    check()
    assert bounds() == {"$['id']": (-993, 99), "$['s']['t']": ("t0", "u")}
    merge = pv.open(table).merge({"k": [7, 8], "n": [5, 6]}, "target.k = source.k")
    merge.when_matched_update({"v:id": "source.n + target.k"}).execute()
    follow([7, 8], ("id",), lambda n: 2 * n - 2)
    check()
    assert bounds() == {"$['id']": (-943, 99), "$['s']['t']": ("t0", "u")}
    merge = pv.open(table).merge({"k": list(range(1, 100))}, "target.k = source.k")
    merge.when_not_matched_by_source_update({"v:id": "target.k + 2000"}).execute()
    follow([0], ("id",), 2000)
    check()
    assert bounds()["$['id']"] == (-943, 2000)
    pv.open(table).update({"v:s.t": "NULL"}, "k = 3")
    follow([3], ("s", "t"), None)
    check()
    assert bounds() == {"$['id']": (-943, 2000)}
    pv.open(table).update(new_values={"v:id": "text"}, where="k = 4")
    follow([4], ("id",), "text")
    check()
    assert "v" not in json.loads(pv.open(table).snapshot.files["stats"][0].as_py())["minValues"]
    pv.open(table).update({"v:new.er": "k"}, "k > 95")
    follow(range(96, 100), ("new", "er"), lambda n: n)
    check()
    pv.open(table).update({"v:new.er": "k * 2"}, "k > 94")
    follow(range(95, 100), ("new", "er"), lambda n: 2 * n)
    check()
    found = pv.open(table).scan({"id": "$.id:long", "k": "k"}, "id > 50 and id < 60").to_arrow()
    assert sorted(found["k"].to_pylist()) == [n for n in range(51, 60) if n != 57]


def test_a_table_that_shreds_no_more_gets_no_shredded_column_by_an_update(tmp_path: Path) -> None:
    shreds = "delta.enableVariantShredding"
    pv.write(tmp_path / "t", columns(range(10)), format="delta", schema="id bigint", properties={shreds: True})
    pv.open(tmp_path / "t").set_properties({shreds: False})
    pv.open(tmp_path / "t").update({"k": "k + 100"}, "k = 3")
    (path,) = pv.open(tmp_path / "t").snapshot.files["path"].to_pylist()
    assert not any("typed_value" in name for name in pq.read_schema(tmp_path / "t" / path).field("v").type.names)
    assert state(tmp_path / "t")[103] == ("p1", {"id": 3, "odd": [3], "s": {"t": "t0"}})


@pytest.mark.parametrize("column", ["a", "b"])
def test_times_keep_their_zone_and_their_nanoseconds(tmp_path: Path, column: str) -> None:
    table = tmp_path / "t"
    times = {"a": pa.array([0], pa.timestamp("us")), "b": pa.array([0], pa.timestamp("us", "UTC"))}
    pv.write(table, times, format="delta")
    naive, local = datetime(2020, 1, 1, 12), datetime(2020, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    pv.open(table).update(new_values={column: naive}, zone="+01:00")
    expected = naive if column == "a" else datetime(2020, 1, 1, 11, tzinfo=UTC)
    assert pv.open(table).to_arrow()[column].to_pylist() == [expected]
    if column == "a":
        with pytest.raises(pv.TableError) as caught:
            pv.open(table).update(new_values={column: local})
        assert caught.value.reason == "type-mismatch"
    else:
        pv.open(table).update(new_values={column: local})
        assert pv.open(table).to_arrow()[column].to_pylist() == [local]
    for value in (np.datetime64("2020-01-01T00:00:00.000000001"), pd.Timestamp("2020-01-01 00:00:00.000000001")):
        with pytest.raises(pv.TableError) as caught:
            pv.open(table).update(new_values={column: value})
        assert caught.value.reason == "type-mismatch"
    text = "TIMESTAMPTZ '2020-01-01 12:00:00+02'"
    pv.open(table).update({column: text}, zone="America/New_York")
    moment = datetime(2020, 1, 1, 10, tzinfo=UTC)
    expected = datetime(2020, 1, 1, 5) if column == "a" else moment
    assert pv.open(table).to_arrow()[column].to_pylist() == [expected]


@pytest.mark.parametrize("change", ["delete", "update"])
@pytest.mark.parametrize("vectors", VECTORS, ids=["copies", "vectors"])
def test_a_change_that_fails_leaves_no_file_of_its_tasks(vectors: dict[str, Any], change: str, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"k": [1, 2], "v": pv.parse_json(["1", "2"])}, format="delta")
    pv.open(table).set_properties(vectors)
    for _ in range(3):
        pv.open(table).append({"k": [1, 2], "v": pv.parse_json(["1", "2"])})
    last = max(table.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    last.write_bytes(last.read_bytes()[:-100])
    before = sorted(table.rglob("*"))
    with pytest.raises(pv.DeltaError):
        if change == "delete":
            pv.open(table).delete("k = 1", threads=1)
        else:
            pv.open(table).update({"k": "3"}, "k = 1", threads=1)
    assert sorted(table.rglob("*")) == before
