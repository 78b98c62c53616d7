"""Files that tasks wrote are committed only to the table that their plan was made for; partitions are not lost."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.tables.delta.protocol.actions import Add

Change = Callable[[str], object]
_CHANGES: dict[str, Change] = {
    "constraint": lambda table: pv.open(table).set_properties({"delta.constraints.small": "n < 10"}),
    "shredding": (lambda path: pv.open(path).optimize(drop_shredding=True)),
    "shredding off": lambda table: pv.open(table).set_properties({"delta.enableVariantShredding": False}),
    "column": lambda table: pv.open(table).add_columns(pa.schema([("more", pa.int64())])),
    "feature": lambda table: pv.open(table).set_properties({"delta.enableDeletionVectors": True}),
    "append only": lambda table: pv.open(table).set_properties({"delta.appendOnly": True}),
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    pv.write(path, {"n": [1], "v": pv.parse_json(['{"a": 1}'])}, format="delta")
    return path


def _rows() -> dict[str, object]:
    return {"n": [99], "v": pv.parse_json(['{"a": 2}'])}


@pytest.mark.parametrize("form", ["dict", "json", "object"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("name", _CHANGES)
def test_files_of_an_older_plan_are_refused(table: str, name: str, mode: str, form: str) -> None:
    plan = pickle.loads(pickle.dumps(pv.open(table).plan()))
    adds: list[object] = list(plan.write_files(_rows()) if form == "object" else plan.write(_rows()))
    if form == "json":
        adds = json.loads(json.dumps(adds))
    _CHANGES[name](table)
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).commit_files(adds, mode=mode)
    assert caught.value.reason == "conflict"
    assert len(pv.open(table).to_arrow()) == 1
    again = pv.open(table).plan()
    if name == "constraint":
        with pytest.raises(pv.TableError) as caught:
            again.write(_rows())
        assert caught.value.reason == "constraint-violated"
    elif not (name == "append only" and mode == "overwrite"):
        pv.open(table).commit_files(again.write(_rows()), mode=mode)
        assert len(pv.open(table).to_arrow()) == (2 if mode == "append" else 1)


def test_rows_of_others_do_not_stop_a_commit(table: str) -> None:
    plan = pv.open(table).plan()
    adds = plan.write(_rows())
    pv.open(table).append(_rows())
    pv.open(table).optimize()
    pv.open(table).delete("n = 1")
    pv.open(table).commit_files(adds)
    assert pv.open(table).to_arrow()["n"].to_pylist() == [99, 99]


def test_files_without_a_plan_need_a_snapshot(table: str) -> None:
    add = Add.from_dict(pv.open(table).plan().write(_rows())[0]).to_dict()
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).commit_files([add])
    assert caught.value.reason == "unplanned-files"
    before = pv.open(table).snapshot
    pv.open(table).set_properties({"delta.constraints.small": "n < 10"})
    with pytest.raises(pv.TableError) as caught:
        pv.open(before).commit_files([add])
    assert caught.value.reason == "conflict"
    pv.open(pv.open(table).snapshot).commit_files([add])
    assert len(pv.open(table).to_arrow()) == 2


def test_the_mark_of_a_plan_is_not_in_the_log(table: str) -> None:
    pv.open(table).commit_files(pv.open(table).plan().write(_rows()))
    log = "".join(path.read_text() for path in (Path(table) / "_delta_log").glob("*.json"))
    assert "Plan" not in log
    assert "derived" not in log


# ---- partitions


def test_a_partition_column_that_the_data_lacks_comes_from_its_path(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    texts = ['{"kind": "a", "n": 1}', '{"kind": "b", "n": 2}', '{"n": 3}']
    variants = pv.parse_json(texts)
    pv.write(table, {"v": variants, "kind": ["a", "b", None]}, format="delta", partition_by="kind")
    pv.open(table).append({"v": variants})
    plan = pv.open(table).plan()
    pv.open(table).commit_files(plan.write({"v": variants[:1]}) + plan.write({"v": variants[2:]}))
    rows = pv.open(table).scan({"n": "$.n:int", "kind": "kind"}).to_arrow()
    pairs = sorted(zip(rows["n"].to_pylist(), rows["kind"].to_pylist(), strict=True))
    assert pairs == [(1, "a"), (1, "a"), (1, "a"), (2, "b"), (2, "b"), (3, None), (3, None), (3, None)]


def test_a_partition_column_without_values_is_refused(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    pv.write(table, {"v": pv.parse_json(["1"]), "n": [1], "kind": ["a"]}, format="delta", partition_by="kind")
    before = sorted(Path(table).rglob("*.parquet"))
    for rows in ({"v": pv.parse_json(['{"other": 1}'])}, {"n": [1]}):
        for write in (pv.open(table).append, pv.open(table).overwrite):
            with pytest.raises(pv.TableError) as caught:
                write(rows)
            assert caught.value.reason == "missing-column"
    assert sorted(Path(table).rglob("*.parquet")) == before
    pv.open(table).append(pa.table({"n": [2], "KIND": pa.array(["b"])}))
    assert len(pv.open(table).to_arrow()) == 2
    merge = pv.open(table).merge({"n": [7]}, "target.n = source.n")
    assert merge.when_not_matched_insert({"n": "source.n"}).execute().rows_inserted == 1


@pytest.mark.parametrize("name", ["day", "DAY"])
def test_derived_partition_values_have_the_columns_type(tmp_path: Path, name: str) -> None:
    table = str(tmp_path / "t")
    days = pa.array([0], pa.date32())
    pv.write(table, {"v": pv.parse_json(['{"day": "1970-01-01"}']), "day": days}, format="delta", partition_by="day")
    pv.open(table).append({"v": pv.parse_json(['{"day": "1970-01-03"}'])})
    assert [str(day) for day in pv.open(table).to_arrow()["day"].to_pylist()] == ["1970-01-01", "1970-01-03"]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (["a", ""], "empty strings"),
        (["a", "__HIVE_DEFAULT_PARTITION__"], "__HIVE_DEFAULT_PARTITION__"),
        ([None, None], "null in all 2 rows"),
        ([str(number) for number in range(1001)], "1,001 partitions"),
    ],
)
def test_partitions_that_are_probably_not_meant_warn(tmp_path: Path, values: list[str | None], word: str) -> None:
    rows = {"n": list(range(len(values))), "k": pa.array(values, pa.string())}
    if len(values) > 1000:
        (tmp_path / "file").write_text("")
        # The table is not written: its parent is a file. The warning comes first.
        with pytest.warns(UserWarning, match=word), pytest.raises(pv.VariantError):
            plan = pv.open(_empty_table(tmp_path)).plan()
            object.__setattr__(plan, "uri", str(tmp_path / "file"))
            plan.write(rows)
        return
    table = tmp_path / "t"
    pv.create(table, pa.schema([("n", pa.int64()), ("k", pa.string())]), partition_by="k")
    with pytest.warns(UserWarning, match=word):
        pv.open(table).append(rows)
    read = dict(zip(*(pv.open(tmp_path / "t").to_arrow()[name].to_pylist() for name in "nk"), strict=True))
    assert read == {number: value or None for number, value in enumerate(values)}


def _empty_table(path: Path) -> str:
    table = str(path / "many")
    pv.create(table, pa.schema([("n", pa.int64()), ("k", pa.string())]), partition_by="k")
    return table


def test_ordinary_partitions_do_not_warn(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.write(tmp_path / "t", {"n": [1, 2, 3], "k": ["a", None, "b"]}, format="delta", partition_by="k")


# ---- paths


@pytest.mark.parametrize("sign", [*"!$&()+,;@'* %#[]~=", "é", "a b"])
def test_paths_of_partitions_are_found_again(tmp_path: Path, sign: str) -> None:
    table = str(tmp_path / "t")
    pv.write(table, {"n": [1, 2], "k": [f"x{sign}y", "z"]}, format="delta", partition_by="k")
    paths = pv.open(table).snapshot.files["path"].to_pylist()
    if sign in "!$&()+,;@":
        assert any(f"x{sign}y" in path for path in paths)
    pv.open(table).delete("n = 1")
    assert pv.open(table).to_arrow()["n"].to_pylist() == [2]
    other = pytest.importorskip("deltalake").DeltaTable(table)
    assert other.to_pyarrow_table()["n"].to_pylist() == [2] if hasattr(other, "to_pyarrow_table") else True


@pytest.mark.parametrize("sign", list("!$&()+,;@"))
def test_what_delta_rs_deletes_is_deleted(tmp_path: Path, sign: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = str(tmp_path / "t")
    pv.write(table, {"n": [1, 2], "k": [f"x{sign}y", f"x{sign}y"]}, format="delta", partition_by="k")
    deltalake.DeltaTable(table).delete("n = 1")
    assert pv.open(table).to_arrow()["n"].to_pylist() == [2]
    assert deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table)).execute("SELECT n FROM t") is not None
    assert deltalake.DeltaTable(table).to_pyarrow_table()["n"].to_pylist() == [2]
