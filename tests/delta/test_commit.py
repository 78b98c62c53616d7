"""Commits: put-if-absent, conflicts, exactly-once, and a crash or a lost answer at every step."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.files.parquet.writing.writer import VariantWriter
from parquet_variant.tables.delta.dml import changeable as write_module
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.storage import LocalStorage


def rows(*numbers: int) -> dict[str, Any]:
    return {"n": pa.array(numbers, pa.int64()), "v": pv.parse_json([json.dumps({"n": n}) for n in numbers])}


def numbers(table: Path, **options: Any) -> list[int]:
    return sorted(pv.open(table, **options).to_arrow(["n"])["n"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pv.write(tmp_path / "t", rows(0), format="delta", schema="n bigint")
    return tmp_path / "t"


def test_put_if_absent_never_replaces(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    assert storage.put_if_absent("_delta_log/x", b"first")
    assert not storage.put_if_absent("_delta_log/x", b"second")
    assert storage.read("_delta_log/x") == b"first"
    assert [file.path for file in storage.list("")] == ["_delta_log/x"]


def test_creating_a_table_twice_is_refused(table: Path) -> None:
    with pytest.raises(TableError) as caught:
        pv.create(table, pa.schema([("n", pa.int64())]))
    assert caught.value.reason == "exists"
    with pytest.raises(TableError):
        pv.write(table, rows(1), format="delta")
    assert not pv.write(table, rows(1), format="delta", mode="ignore").committed
    assert numbers(table) == [0]


def test_a_table_and_its_first_rows_are_one_commit(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", rows(1, 2), format="delta", batch=("app", 1))
    found = pv.open(tmp_path / "t").snapshot
    assert (found.version, found.num_files, found.txns["app"].version) == (0, 1, 1)
    assert not pv.write(tmp_path / "t", rows(1, 2), format="delta", mode="append", batch=("app", 1)).committed
    assert numbers(tmp_path / "t") == [1, 2]


def test_rows_that_do_not_fit_make_no_table(tmp_path: Path) -> None:
    def batches() -> Iterator[dict[str, Any]]:
        yield rows(1)
        yield {"n": ["no number"]}

    with pytest.raises(TableError):
        pv.write(tmp_path / "t", batches(), format="delta")
    assert [file for file in (tmp_path / "t").rglob("*") if file.is_file()] == []


def test_two_writers_that_make_the_same_table_both_keep_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    raced = Racing(str(table), lambda: pv.write(table, rows(1), format="delta"))
    monkeypatch.setattr(write_module, "open_storage", lambda *_: raced)
    with pytest.raises(TableError) as caught:
        pv.write(table, rows(2), format="delta")
    monkeypatch.undo()
    assert caught.value.reason == "exists"
    assert len(list(table.glob("*.parquet"))) == 1

    other = tmp_path / "other"
    raced = Racing(str(other), lambda: pv.write(other, rows(1), format="delta"))
    monkeypatch.setattr(write_module, "open_storage", lambda *_: raced)
    assert pv.write(other, rows(2), format="delta", mode="append").version == 1
    monkeypatch.undo()
    assert numbers(other) == [1, 2]


def test_appends_planned_on_an_old_version_are_all_kept(table: Path) -> None:
    old = pv.open(table).snapshot
    for n in (1, 2, 3):
        pv.open(old).append(rows(n))
    assert pv.open(table).snapshot.version == 3
    assert numbers(table) == [0, 1, 2, 3]


def test_an_overwrite_replaces_what_others_appended_before_it(table: Path) -> None:
    old = pv.open(table).snapshot
    pv.open(table).append(rows(1))
    pv.open(old).overwrite(rows(9))
    assert numbers(table) == [9]
    assert numbers(table, version=1) == [0, 1]


class Racing(LocalStorage):
    """A storage where another writer commits just before the first put of a commit."""

    def __init__(self, uri: str, race: Callable[[], object]) -> None:
        super().__init__(uri)
        self.race: Callable[[], object] | None = race

    def put_if_absent(self, path: str, data: bytes) -> bool:
        race, self.race = self.race, None
        if race is not None:
            race()
        return super().put_if_absent(path, data)


def racing(table: Path, race: Callable[[], object]) -> Snapshot:
    """A snapshot whose next commit loses the race against `race`."""
    found = pv.open(table).snapshot
    object.__setattr__(found, "storage", Racing(str(table), race))
    return found


def test_an_overwrite_that_loses_a_race_removes_the_winners_rows_too(table: Path) -> None:
    raced = racing(table, lambda: pv.open(table).append(rows(1)))
    assert pv.open(raced).overwrite(rows(9)).version == 2
    assert numbers(table) == [9]


@pytest.mark.parametrize(
    "race",
    [
        lambda t: pv.open(t).set_properties({"delta.appendOnly": "false"}),
        (lambda path: pv.open(path).optimize(drop_shredding=True)),
    ],
)
def test_an_append_conflicts_with_a_change_of_metadata_or_protocol(table: Path, race: Callable[[Path], object]) -> None:
    raced = racing(table, lambda: race(table))
    with pytest.raises(TableError) as caught:
        pv.open(raced).append(rows(5))
    assert caught.value.reason == "conflict"
    assert numbers(table) == [0]


def test_optimize_survives_an_append_and_is_planned_again_after_an_overwrite(table: Path) -> None:
    pv.open(table).append(rows(1))
    raced = racing(table, lambda: pv.open(table).append(rows(2)))
    assert pv.open(raced).optimize().files_removed == 2
    assert numbers(table) == [0, 1, 2]
    raced = racing(table, lambda: pv.open(table).overwrite(rows(7)))
    assert pv.open(raced).optimize().files_removed == 0
    assert numbers(table) == [7]


def test_a_put_whose_answer_got_lost_is_not_repeated(table: Path) -> None:
    class Forgetful(LocalStorage):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            super().put_if_absent(path, data)
            return False

    found = pv.open(table).snapshot
    object.__setattr__(found, "storage", Forgetful(str(table)))
    assert pv.open(found).append(rows(1)).committed
    assert numbers(table) == [0, 1]


def test_a_version_that_was_cleaned_up_is_not_taken_again(table: Path) -> None:
    old = pv.open(table).snapshot
    for n in (1, 2):
        pv.open(table).append(rows(n))
    pv.open(table).checkpoint()
    for version in (0, 1, 2):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(TableError) as caught:
        pv.open(old).append(rows(9))
    assert caught.value.reason == "conflict"
    assert numbers(table) == [0, 1, 2]


def test_an_application_version_is_committed_once(table: Path) -> None:
    old = pv.open(table).snapshot
    assert pv.open(table).append(rows(1), batch=("app", 1)).committed
    assert not pv.open(table).append(rows(1), batch=("app", 1)).committed
    assert not pv.open(table).append(rows(1), batch=("app", 0)).committed
    # Planned before the first one was committed, as by a retried driver.
    assert not pv.open(old).append(rows(1), batch=("app", 1)).committed
    assert pv.open(table).append(rows(1), batch=("other", 1)).committed
    assert pv.open(table).append(rows(2), batch=("app", 2)).committed
    assert not pv.open(table).overwrite(rows(3), batch=("app", 2)).committed
    assert numbers(table) == [0, 1, 1, 2]
    assert {k: t.version for k, t in pv.open(table).snapshot.txns.items()} == {"app": 2, "other": 1}


def test_an_application_version_that_loses_the_race_is_not_repeated(table: Path) -> None:
    raced = racing(table, lambda: pv.open(table).append(rows(1), batch=("app", 1)))
    assert not pv.open(raced).append(rows(1), batch=("app", 1)).committed
    assert numbers(table) == [0, 1]


def test_tasks_write_files_and_the_driver_commits_those_that_it_chose(table: Path) -> None:
    plan = pickle.loads(pickle.dumps(pv.open(table).plan()))
    first, speculative = plan.write(rows(1, 2)), plan.write([rows(1), rows(2)])
    assert pv.open(table).commit_files(first, batch=("job", 1)).committed
    assert not pv.open(table).commit_files(first, batch=("job", 1)).committed
    assert numbers(table) == [0, 1, 2]
    gone = pv.open(table).vacuum(retention=timedelta(0), force=True)
    assert gone == [action["path"] for action in speculative]
    assert numbers(table) == [0, 1, 2]


class Crash(BaseException):
    """A process that dies."""


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Dies at the n-th call that changes the disk; gives the calls so far."""
    calls: list[str] = []

    def install(fatal: int) -> list[str]:
        calls.clear()

        def dying(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                calls.append(name)
                if len(calls) - 1 == fatal:
                    raise Crash
                return real(*args, **kwargs)

            return call

        monkeypatch.setattr(os, "link", dying("link", REAL["link"]))
        monkeypatch.setattr(os, "fsync", dying("fsync", REAL["fsync"]))
        monkeypatch.setattr(Path, "unlink", dying("unlink", REAL["unlink"]))
        monkeypatch.setattr(Path, "replace", dying("replace", REAL["replace"]))
        monkeypatch.setattr(Path, "mkdir", dying("mkdir", REAL["mkdir"]))
        monkeypatch.setattr(VariantWriter, "write_batch", dying("write", REAL["write_batch"]))
        monkeypatch.setattr(VariantWriter, "close", dying("close", REAL["close"]))
        return calls

    yield install


REAL: dict[str, Any] = {
    "write_batch": VariantWriter.write_batch,
    "close": VariantWriter.close,
    "link": os.link, "fsync": os.fsync, "unlink": Path.unlink, "replace": Path.replace, "mkdir": Path.mkdir,
}  # fmt: skip


@pytest.mark.parametrize("operation", ["append", "overwrite", "optimize", "set_properties", "checkpoint"])
def test_a_crash_at_any_step_leaves_the_old_version_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: Callable[[int], list[str]], operation: str
) -> None:
    new = rows(1, 2)
    run: dict[str, Callable[[Path], Any]] = {
        "append": lambda t: pv.open(t).append(new),
        "overwrite": lambda t: pv.open(t).overwrite(new),
        "optimize": (lambda path: pv.open(path).optimize()),
        "set_properties": lambda t: pv.open(t).set_properties({"delta.appendOnly": "true"}),
        "checkpoint": (lambda path: pv.open(path).checkpoint()),
    }
    after = {"append": [0, 0, 1, 2], "overwrite": [1, 2]}.get(operation, [0, 0])
    fatal, finished = 0, False
    while not finished:
        table = tmp_path / f"{operation}-{fatal}"
        pv.write(table, rows(0), format="delta")
        pv.open(table).append(rows(0))
        before = pv.open(table).snapshot.version
        gc.collect()  # a writer that an earlier test left open would die in the place of this one
        calls = crash_at(fatal)
        with suppress(Crash):
            run[operation](table)
        finished = len(calls) <= fatal
        died = len(calls) - 1 == fatal
        monkeypatch.undo()
        found = pv.open(table).snapshot
        committed = found.version > before
        assert numbers(table) == (after if committed else [0, 0]), calls
        assert not died or "link" not in calls[:-1] or committed, "what was linked is committed"
        # The table works on, and vacuum clears away what the dead writer left.
        pv.open(table).append(rows(5))
        pv.open(table).vacuum(retention=timedelta(0), force=True)
        kept = {f"{path}" for path in pv.open(table).snapshot.files["path"].to_pylist()}
        on_disk = {file.name for file in table.iterdir() if file.is_file()}
        assert on_disk == kept
        fatal += 1
    assert fatal > 3


def _append_many(table: str, writer: int, times: int, barrier: Any) -> None:
    barrier.wait()
    for n in range(times):
        pv.open(table).append({"n": [writer * 1000 + n], "v": pv.parse_json(['{"w": 1}'])})


def test_processes_that_append_at_once_lose_and_duplicate_nothing(table: Path) -> None:
    writers, times = 4, 8
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(writers)
    processes = [
        context.Process(target=_append_many, args=(str(table), writer, times, barrier)) for writer in range(writers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0] * writers
    expected = sorted([0, *(w * 1000 + n for w in range(writers) for n in range(times))])
    assert numbers(table) == expected
    assert pv.open(table).snapshot.version == writers * times
    operations = [entry["operation"] for entry in pv.open(table).history()]
    assert operations.count("WRITE") == writers * times


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_checkpoint_of_a_version_may_be_written_again(tmp_path: Path, policy: str) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta")
    pv.open(tmp_path).set_properties({"delta.checkpointPolicy": policy})
    for _ in range(2):
        pv.open(tmp_path).checkpoint()
    log = {path.name.partition(".")[2] for path in (tmp_path / "_delta_log").iterdir() if path.suffix != ".json"}
    assert not any(name.endswith(".tmp") for name in log)
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    assert pv.open(tmp_path).to_arrow().to_pydict() == {"n": [1]}
