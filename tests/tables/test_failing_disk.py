"""A disk that fails at any call of a commit: the table has all old rows or all new ones, and the error is true.

Every operation that commits is run on both formats. The n-th call of the system fails, once (an error of the disk) or
from then on for every call that writes (a full disk, a directory without permission).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from chosen_steps import chosen_steps
from failing_disk import FailingDisk

FORMATS = ("delta", "iceberg")
# Rows that are not changed are in the table too, so that a lost file is seen.
_OLD = ("old-a", "old-b", "old-c")


def _rows(*values: str) -> dict[str, object]:
    return {"k": list(values), "v": pv.from_python([{"s": value} for value in values])}


def _make_table(kind: str, path: Path) -> None:
    pv.write(path, _rows(_OLD[0], "other"), format=kind)
    for value in _OLD[1:]:
        pv.open(path).append(_rows(value, "other"))
    if kind == "delta":
        # Every commit is followed by a checkpoint, which may fail.
        pv.open(path).set_properties({"delta.checkpointInterval": 1})


class RestoredTable:
    """A table that is made once and restored for each run, which is ten times faster than its commits.

    It is restored in its place: metadata of Iceberg has absolute locations.
    """

    def __init__(self, kind: str, path: Path) -> None:
        self.path, self._made = path, path.with_name("made")
        _make_table(kind, path)
        shutil.copytree(path, self._made)

    def restore(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._made, self.path)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, RestoredTable]:
    return {kind: RestoredTable(kind, tmp_path_factory.mktemp(kind) / "table") for kind in FORMATS}


def _append(path):
    pv.open(path).append(_rows("new-a", "new-b"))


def _append_new_column(path):
    pv.open(path).append(_rows("new-a") | {"n": [1]}, schema_mode="merge")


def _overwrite(path):
    pv.open(path).overwrite(_rows("new-a"))


def _delete(path):
    pv.open(path).delete("k = 'old-b'")


def _update(path):
    pv.open(path).update({"v:s": "'new-b'"}, "k = 'old-b'")


def _merge(path):
    merge = pv.open(path).merge(_rows("old-b", "new-x"), "target.k = source.k")
    merge.when_matched_update({"v": "source.v", "k": "'new-b'"}).when_not_matched_insert_all().execute()


def _optimize(path):
    pv.open(path).optimize()


def _erase(path):
    pv.open(path).erase("k = 'old-b'", force=True)


def _restore(path):
    first = pv.open(path).history()[-1]
    pv.open(path).restore(first["version"] if "version" in first else first["snapshot_id"])


OPERATIONS: dict[str, Callable] = {
    "append": _append,
    "append with a new column": _append_new_column,
    "overwrite": _overwrite,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "optimize": _optimize,
    "erase": _erase,
    "restore": _restore,
}


def _seen(path) -> list[tuple[str, str]]:
    rows, values = pv.open(path).to_arrow(["k"])["k"].to_pylist(), pv.open(path).read().to_pylist()
    return sorted(zip(rows, (value["s"] for value in values), strict=True))


@pytest.mark.parametrize("stays_full", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_disk_that_fails_leaves_the_old_rows_or_the_new_ones_and_the_error_says_which(
    kind, operation, stays_full, tables, monkeypatch
):
    work, table = OPERATIONS[operation], tables[kind].path

    def run(number: int) -> tuple[FailingDisk, pv.VariantError | None, object]:
        tables[kind].restore()
        disk, error, before = FailingDisk(number, stays_full=stays_full), None, pv.open(table).version
        with monkeypatch.context() as patch:
            disk.install(patch)
            try:
                work(table)
            except pv.VariantError as caught:
                error = caught
        return disk, error, before

    # The first run of a process makes calls that later ones do not (imports, caches), so that it is not counted.
    for _ in range(2):
        counting, _, _ = run(0)
        new = _seen(table)
    tables[kind].restore()
    old = _seen(table)
    failures = 0
    for number in chosen_steps(counting.calls, first=1, always=(*range(counting.calls - 3, counting.calls + 1),)):
        disk, error, before = run(number)
        failures += bool(disk.failed)
        seen, committed = _seen(table), pv.open(table).version != before
        place = f"call {number}, {disk.failed}: {error}"
        assert seen == (new if committed else old), place
        # An erasure that is not complete has to be repeated, although the rows of the newest version are gone.
        if error is None:
            assert committed, place
        elif operation == "erase" and committed:
            assert error.reason in ("unknown-outcome", "not-erased"), place
        else:
            assert not committed or error.reason == "unknown-outcome", place
            assert error.reason in ("cannot-read", "cannot-write", "unknown-outcome"), place
        # The same works again when the disk does.
        if not committed or operation == "erase":
            work(table)
            assert _seen(table) == new, place
    assert failures > 5


@pytest.mark.parametrize("kind", FORMATS)
def test_a_merge_that_only_inserts_and_cannot_be_written_leaves_no_file(kind, tables, monkeypatch):
    table = tables[kind].path

    def run(number: int) -> str:
        tables[kind].restore()
        disk, reason = FailingDisk(number), ""
        with monkeypatch.context() as patch:
            disk.install(patch)
            try:
                merge = pv.open(table).merge(_rows("old-b", "new-x"), "target.k = source.k")
                merge.when_not_matched_insert_all().execute()
            except pv.VariantError as error:
                reason = error.reason
        return reason

    for _ in range(2):
        run(0)
    assert len(_seen(table)) == 7
    tables[kind].restore()
    files, reasons = set(table.rglob("*")), []
    for number in range(7, 25, 2):  # Those of the new file and of the commit.
        reasons.append(run(number))
        if reasons[-1] and reasons[-1] != "unknown-outcome":
            assert set(table.rglob("*")) == files, number
            assert len(_seen(table)) == 6, number
    assert {"cannot-write"} <= set(reasons)


@pytest.mark.parametrize("stays_full", [False, True], ids=["once", "from then on"])
def test_manifests_are_rewritten_without_an_error_or_not_at_all(stays_full, tables, monkeypatch):
    table = tables["iceberg"].path

    def run(number: int) -> tuple[FailingDisk, str, bool]:
        tables["iceberg"].restore()
        disk, reason, before = FailingDisk(number, stays_full=stays_full), "", pv.open(table).version
        with monkeypatch.context() as patch:
            disk.install(patch)
            try:
                pv.open(table).rewrite_manifests()
            except pv.VariantError as error:
                reason = error.reason
        return disk, reason, pv.open(table).version != before

    for _ in range(2):
        counting, _, _ = run(0)
    for number in range(1, counting.calls + 1):
        disk, reason, committed = run(number)
        place = f"call {number}, {disk.failed}: {reason}"
        assert reason == "unknown-outcome" if committed and reason else bool(reason) != committed, place
        assert len(_seen(table)) == 6, place


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_commit_that_a_network_disk_asks_for_twice_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    table, link = tmp_path / "t", os.link
    pv.write(table, _rows("a"), format=format)

    def repeated(source: Any, target: Any) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "File exists", str(target))

    monkeypatch.setattr(os, "link", repeated)
    pv.open(table).append(_rows("b"))
    monkeypatch.undo()
    assert len(pv.open(table).to_arrow()) == 2
