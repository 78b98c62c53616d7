"""Erased rows are nowhere: not in data files, older versions, change data, the log, its statistics or checkpoints."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.tables.changes import operations
from parquet_variant.tables.delta.maintenance import evolution as erase_module

_SECRET = "zebra-7421"
_OTHER = "apple-1234"


def _bytes_of(table: Path) -> dict[str, bytes]:
    return {str(path.relative_to(table)): path.read_bytes() for path in table.rglob("*") if path.is_file()}


def _rows(secret: bool, numbers: range, key: str = "key") -> dict[str, Any]:
    name = _SECRET if secret else _OTHER
    variants = pv.parse_json([f'{{"user": "{name}", "n": {n}, "{key}-{name}": 1}}' for n in numbers])
    return {"name": [name] * len(numbers), "n": list(numbers), "v": variants}


_PROPERTIES: list[dict[str, Any]] = [
    {},
    {"delta.enableDeletionVectors": True},
    {"delta.enableChangeDataFeed": True},
    {"delta.enableRowTracking": True},
    {"delta.columnMapping.mode": "name"},
    {"delta.checkpointPolicy": "v2"},
    {"delta.checkpoint.writeStatsAsStruct": True},
]


@pytest.mark.parametrize("partition_by", [None, "name"])
@pytest.mark.parametrize("properties", _PROPERTIES, ids=lambda each: next(iter(each), "plain"))
def test_nothing_is_left_of_erased_rows(tmp_path: Path, properties: dict[str, Any], partition_by: str | None) -> None:
    table = tmp_path / "t"
    options = {"compression": "none"}
    pv.write(table, _rows(False, range(5)), format="delta", properties=properties, partition_by=partition_by, **options)
    pv.open(table).append(_rows(True, range(5, 8)), **options)
    mixed = {name: [*_rows(True, range(2))[name], *_rows(False, range(2))[name]] for name in ("name", "n")}
    both = [{"user": name, "n": 1} | ({} if partition_by else {name: 1}) for name in mixed["name"]]
    pv.open(table).append(mixed | {"v": pv.from_python(both)}, **options)
    pv.open(table).update({"n": "n + 100"}, f"name = '{_SECRET}' AND n = 5", **options)
    pv.open(table).delete(f"name = '{_SECRET}' AND n = 6", **options)
    pv.open(table).checkpoint()
    (table / "notes.csv").write_text("a file of somebody else")
    versions = pv.open(table).snapshot.version + 1
    found = pv.open(table).erase(f"v:user::string = '{_SECRET}'", dry_run=True)
    assert (found.rows_erased, found.versions_removed, found.dry_run) == (4, versions, True)
    before = _bytes_of(table)
    assert found == pv.open(table).erase(f"v:user::string = '{_SECRET}'", dry_run=True)
    assert _bytes_of(table) == before
    report = pv.open(table).erase(f"v:user::string = '{_SECRET}'", **options)
    assert (report.rows_erased, report.versions_removed) == (4, versions)
    assert [name for name, data in _bytes_of(table).items() if _SECRET.encode() in data or _SECRET in name] == []
    assert [path.name for path in table.rglob("*") if path.is_dir() and _SECRET in path.name] == []
    assert (table / "notes.csv").exists()
    assert sorted(pv.open(table).to_arrow()["n"].to_pylist()) == [0, 0, 1, 1, 2, 3, 4]
    assert len(pv.open(table).history()) == 1
    with pytest.raises(pv.TableError):
        _ = pv.open(table, version=versions).snapshot
    pv.open(table).append(_rows(False, range(1)))
    assert len(pv.open(table).to_arrow()) == 8
    again = pv.open(table).erase(f"v:user::string = '{_SECRET}'")
    assert (again.rows_erased, len(pv.open(table).to_arrow())) == (0, 8)
    assert str(report).startswith("4 rows erased")


def test_rows_that_are_only_marked_as_deleted_are_erased(tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = {"name": [_SECRET, _OTHER, _OTHER], "n": [1, 2, 3]}
    pv.write(table, rows, format="delta", properties={"delta.enableDeletionVectors": True}, compression="none")
    pv.open(table).delete("n = 1")
    report = pv.open(table).erase(f"name = '{_SECRET}'", compression="none")
    assert (report.rows_erased, report.files_rewritten) == (0, 1)
    assert not any(_SECRET.encode() in data for data in _bytes_of(table).values())
    assert pv.open(table).to_arrow()["n"].to_pylist() == [2, 3]


def test_a_writer_that_seems_to_be_active_stops_an_erasure(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"n": [1, 2]}, format="delta")
    adds = pv.open(table).plan().write({"n": [3]})
    with pytest.raises(pv.TableError) as caught:
        pv.open(table).erase("n = 1")
    assert caught.value.reason == "writer-active"
    file = table / adds[0]["path"]
    os.utime(file, (time.time() - 7200, time.time() - 7200))
    pv.open(table).erase("n = 1")
    assert not file.exists()
    pv.open(table).plan().write({"n": [3]})
    assert pv.open(table).erase("n = 2", force=True).rows_erased == 1


@pytest.mark.parametrize("where", ["", "  ", None])
def test_a_condition_is_needed(tmp_path: Path, where: Any) -> None:
    pv.write(tmp_path / "t", {"n": [1]}, format="delta")
    with pytest.raises(pv.TableError) as caught:
        pv.open(tmp_path / "t").erase(where)
    assert caught.value.reason == "bad-argument"


def test_an_append_only_table_is_not_erased(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"n": [1]}, format="delta", properties={"delta.appendOnly": True})
    with pytest.raises(pv.TableError) as caught:
        pv.open(tmp_path / "t").erase("n = 1")
    assert caught.value.reason == "append-only"


_STEPS = ["commit", "checkpoint", "remove_log_files", "files_to_remove", "remove_files", "change_rows"]


@pytest.mark.parametrize("step", _STEPS)
def test_an_erasure_that_ends_early_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    table = tmp_path / "t"
    pv.write(table, _rows(False, range(3)), format="delta", compression="none")
    pv.open(table).append(_rows(True, range(3)), compression="none")

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(operations if step == "change_rows" else erase_module, step, killed)
        with pytest.raises(Killed):
            pv.open(table).erase(f"name = '{_SECRET}'", compression="none")
    assert pv.open(table).to_arrow()["n"].to_pylist() == [0, 1, 2]
    pv.open(table).erase(f"name = '{_SECRET}'", compression="none")
    assert not any(_SECRET.encode() in data for data in _bytes_of(table).values())
    assert pv.open(table).to_arrow()["n"].to_pylist() == [0, 1, 2]


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from parquet_variant.cli.app import main

    table = str(tmp_path / "t")
    pv.write(table, {"n": [1, 2, 3]}, format="delta")
    assert main(["delete", table, "--where", "n = 1", "--dry-run"]) == 0
    assert capsys.readouterr().out == "1 row deleted; 1 of 1 file opened\nnothing was changed: this is a dry run\n"
    assert pv.open(table).delete("n = 1", dry_run=True).rows_deleted == 1
    assert len(pv.open(table).to_arrow()) == 3
    assert main(["delete", table, "--where", "n = 1"]) == 0
    assert "remain in storage until variant vacuum" in capsys.readouterr().out
    assert main(["erase", table, "--where", "n = 2", "--dry-run"]) == 0
    assert "would be erased" in capsys.readouterr().out
    assert len(pv.open(table).to_arrow()) == 2
    assert main(["erase", table, "--where", "n = 2", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("1 row erased")
    assert pv.open(table).to_arrow()["n"].to_pylist() == [3]
