"""A process that dies at any step of any kind of commit to a Delta table leaves the old version or the new one.

Every call that changes something on the disk is a step: the process is killed before it, or in the middle of a file.
Afterwards nothing more happens (no `except`, no `finally` gets anything done). Then a reader looks, and the same is
tried again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import parquet_variant as pv
from chosen_steps import chosen_steps
from parquet_variant.errors import TableError
from parquet_variant.tables import storage as storage_module
from parquet_variant.tables.storage import LocalStorage


class Killed(BaseException):
    """The process is no more."""


class Life:
    """What is left of a process, in steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.taken = 0

    def step(self) -> None:
        self.taken += 1
        self.left -= 1
        if self.left < 0:
            self.left = 0
            raise Killed


def _mortal(life: Life, monkeypatch) -> None:
    for name in ("_write_temporary", "create", "delete", "put"):
        whole = getattr(LocalStorage, name)

        def step(self, *arguments, _whole=whole):
            life.step()
            return _whole(self, *arguments)

        monkeypatch.setattr(LocalStorage, name, step)
    link = os.link

    def linked(*arguments):
        life.step()
        link(*arguments)
        life.step()  # it is committed, but the writer has not returned

    monkeypatch.setattr(storage_module.os, "link", linked)


def _rows(*values: str) -> dict[str, pv.VariantArray]:
    return {"v": pv.from_python([{"s": value} for value in values])}


def _append(table: Path) -> None:
    pv.write(table, _rows("new-a", "new-b"), format="delta", mode="append")


def _overwrite(table: Path) -> None:
    pv.write(table, _rows("new-a"), format="delta", mode="overwrite")


def _optimize(table: Path) -> None:
    pv.open(table).optimize()


def _delete(table: Path) -> None:
    pv.open(table).delete("v:s::string = 'old-b'")


def _update(table: Path) -> None:
    pv.open(table).update({"v:s": "'new-b'"}, "v:s::string = 'old-b'")


def _update_with_vectors(table: Path) -> None:
    pv.open(table).set_properties({"delta.enableDeletionVectors": True, "delta.enableChangeDataFeed": True})
    _update(table)


def _merge(table: Path) -> None:
    source = {"s": ["old-b", "x"], "v": pv.from_python([{"s": "new-b"}, {"s": "new-x"}])}
    merge = pv.open(table).merge(source, "target.v:s::string = source.s")
    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert({"v": "source.v"}).execute()


def _replace(table: Path) -> None:
    pv.open(table).overwrite(_rows("old-b", "old-b"), where="v:s::string = 'old-b'")


def _restore(table: Path) -> None:
    pv.open(table).restore(version=0)


def _vacuum(table: Path) -> None:
    _overwrite(table)
    pv.open(table).vacuum(retention=timedelta(0), force=True)


def _set_properties(table: Path) -> None:
    pv.open(table).set_properties({"delta.enableRowTracking": True})


def _checkpoint(table: Path) -> None:
    _append(table)
    pv.open(table).checkpoint()


def _erase(table: Path) -> None:
    pv.open(table).erase("v:s::string = 'old-b'", force=True)


def _ingest(table: Path) -> None:
    source = table.parent / "more.ndjson"
    source.write_text('{"s": "ingested"}\n')
    pv.ingest(source, table, mode="append", column="v", threads=1, format="delta")


KINDS: dict[str, Callable[[Path], None]] = {
    "append": _append,
    "overwrite": _overwrite,
    "optimize": _optimize,
    "delete": _delete,
    "update": _update,
    "update with vectors": _update_with_vectors,
    "merge": _merge,
    "replace": _replace,
    "restore": _restore,
    "vacuum": _vacuum,
    "set properties": _set_properties,
    "checkpoint": _checkpoint,
    "erase": _erase,
    "ingest": _ingest,
}


def _seen(table: Path) -> list[str] | None:
    try:
        return sorted(row["s"] for row in pv.open(table, format="delta").read().to_pylist())
    except TableError as error:
        assert error.reason == "not-a-table"
        return None


@pytest.fixture(scope="module")
def old_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three versions with one row in each."""
    table = tmp_path_factory.mktemp("old") / "t"
    for value in ("old-a", "old-b", "old-c"):
        pv.write(table, _rows(value), format="delta", mode="append")
    return table


def _before(table: Path, old_table: Path | None) -> None:
    table.parent.mkdir()
    if old_table is not None:
        shutil.copytree(old_table, table)


def _killed(work: Callable[[Path], None], table: Path, steps: int, monkeypatch) -> bool:
    with monkeypatch.context() as patch:
        _mortal(Life(steps), patch)
        try:
            work(table)
        except Killed:
            return True
    return False


@pytest.mark.parametrize(
    ("kind", "first"),
    [*((kind, False) for kind in KINDS), ("append", True), ("overwrite", True), ("ingest", True)],
)
def test_a_kill_at_any_step_leaves_the_old_or_the_new(kind, first, old_table, tmp_path, monkeypatch):
    work, template = KINDS[kind], None if first else old_table
    whole = tmp_path / "whole" / "t"
    _before(whole, template)
    old = _seen(whole)
    life = Life(1 << 30)
    with monkeypatch.context() as patch:
        _mortal(life, patch)
        work(whole)
    new = _seen(whole)
    outcomes = set()
    # The first steps and the last ones are always tried: nothing is committed yet, and all is.
    for step in chosen_steps(life.taken, always=(0, 1, life.taken - 2, life.taken - 1)):
        table = tmp_path / f"killed {step}" / "t"
        _before(table, template)
        versions = -1 if first else 2
        assert _killed(work, table, step, monkeypatch)
        seen = _seen(table)
        assert seen in (old, new), step
        committed = seen is not None and pv.open(table).snapshot.version > versions
        outcomes.add(committed)
        if not committed or seen == old != new:
            assert seen == old
            work(table)
            assert _seen(table) == new
    assert life.taken >= 3
    assert outcomes == {False, True}
