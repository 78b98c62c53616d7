"""A disk that fails at any call of a commit: the table has all old rows or all new ones, and the error is true.

Every operation that commits is run on both formats. The n-th call of the system fails, once (an error of the disk) or
from then on for every call that writes (a full disk, a directory without permission).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import parquet_variant as pv
from chosen_steps import chosen_steps
from failing_disk import FailingDisk

FORMATS = ("delta", "iceberg")
# Rows that are not changed are in the table too, so that a lost file is seen.
_OLD = ("old-a", "old-b", "old-c")


def _rows(*values: str) -> dict[str, object]:
    return {"k": list(values), "v": pv.from_python([{"s": value} for value in values])}


def _table_path(kind: str, table: Path) -> str:
    # Metadata of Iceberg has absolute locations, so that a copy of a table is not a table: each run makes its own.
    for value in _OLD:
        pv.write(table, _rows(value, f"{value}-2"), format=kind, mode="append")
    return str(table)


def _append(pv_format, table):
    pv.open(table, format=pv_format).append(_rows("new-a", "new-b"))


def _append_new_column(pv_format, table):
    pv.open(table, format=pv_format).append(_rows("new-a") | {"n": [1]}, schema_mode="merge")


def _overwrite(pv_format, table):
    pv.open(table, format=pv_format).overwrite(_rows("new-a"))


def _delete(pv_format, table):
    pv.open(table, format=pv_format).delete("k = 'old-b'")


def _update(pv_format, table):
    pv.open(table, format=pv_format).update({"v:s": "'new-b'"}, "k = 'old-b'")


def _merge(pv_format, table):
    merge = pv.open(table, format=pv_format).merge(_rows("old-b", "new-x"), "target.k = source.k")
    merge.when_matched_update({"v": "source.v", "k": "'new-b'"}).when_not_matched_insert_all().execute()


def _optimize(pv_format, table):
    pv.open(table, format=pv_format).optimize()


def _erase(pv_format, table):
    pv.open(table, format=pv_format).erase("k = 'old-b'", force=True)


def _restore(pv_format, table):
    if pv_format == "delta":
        pv.open(table).restore(version=0)
    else:
        first = min(pv.open(table).snapshot.metadata.snapshots.values(), key=lambda info: info.timestamp_ms)
        pv.open(table).restore(version=first.id)


def _replace_where(pv_format, table):
    pv.open(table).overwrite(_rows("old-b", "old-b"), where="k = 'old-b'")


def _replace_table(pv_format, table):
    if pv_format == "delta":
        pv.write(table, _rows("new-a"), format="delta", mode="overwrite")
    else:
        pv.write(table, _rows("new-a"), format="iceberg", mode="replace")


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
    "replace the table": _replace_table,
}
# What these leave when they are done in parts: the change of rows is committed before the clean-up.
_CHANGES_NO_ROW = ("optimize",)


def _seen(pv_format, table) -> list[tuple[str, str]]:
    rows = pv.open(table, format=pv_format).to_arrow().to_pylist()
    values = pv.open(table, format=pv_format).read().to_pylist()
    return sorted((row["k"], value["s"]) for row, value in zip(rows, values, strict=True))


def _version(pv_format, table) -> int | None:
    current = pv.open(table, format=pv_format).snapshot
    return current.version if pv_format == "delta" else current.snapshot_id


def _checkpoint_every_commit(pv_format, table) -> None:
    """Let every commit of a Delta table be followed by a checkpoint, which may fail."""
    if pv_format == "delta":
        pv.open(table).set_properties({"delta.checkpointInterval": 1})


@pytest.mark.parametrize("stays_full", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_disk_that_fails_leaves_the_old_rows_or_the_new_ones_and_the_error_says_which(
    kind, operation, stays_full, tmp_path, monkeypatch
):
    pv_format, work = kind, OPERATIONS[operation]

    def run(number: int) -> tuple[FailingDisk, Path, pv.VariantError | None, object]:
        table = tmp_path / f"failing {number}"
        _table_path(kind, table)
        _checkpoint_every_commit(pv_format, table)
        disk, error, before = FailingDisk(number, stays_full=stays_full), None, _version(pv_format, table)
        with monkeypatch.context() as patch:
            disk.install(patch)
            try:
                work(pv_format, table)
            except pv.VariantError as caught:
                error = caught
        return disk, table, error, before

    counting, table, _, _ = run(0)
    new = _seen(pv_format, table)
    shutil.rmtree(table)
    old_table = tmp_path / "old"
    old = _seen(pv_format, _table_path(kind, old_table))
    failures = 0
    for number in chosen_steps(counting.calls, first=1, always=(*range(counting.calls - 6, counting.calls + 1),)):
        disk, table, error, before = run(number)
        failures += bool(disk.failed)
        seen, committed = _seen(pv_format, table), _version(pv_format, table) != before
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
            work(pv_format, table)
            assert _seen(pv_format, table) == new, place
        shutil.rmtree(table)
    assert failures > 5
