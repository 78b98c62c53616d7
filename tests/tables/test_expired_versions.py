"""Changes of tables whose version another process overwrites and removes while they run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


def _rows(ids: list[int]) -> dict[str, Any]:
    return {"id": ids, "v": pv.parse_json(['{"a": 1}'] * len(ids))}


def _replace_and_remove(path: Path) -> None:
    """Overwrite the rows of a table, and remove its older version."""
    pv.open(path).overwrite(_rows([1, 2, 10]))
    if pv.open(path).format == "iceberg":
        pv.open(path).expire_snapshots(older_than="2999-01-01")
    else:
        pv.open(path).vacuum(retention=dt.timedelta(0), force=True)


CHANGES: dict[str, tuple[Callable[..., Any], list[int]]] = {
    "delete": (lambda table, progress: table.delete("id = 1", progress=progress), [2, 10]),
    "update": (lambda table, progress: table.update({"id": "id + 100"}, "id = 1", progress=progress), [2, 10, 101]),
    "merge": (
        lambda table, progress: (
            table.merge(_rows([1, 77]), "id", progress=progress)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        [1, 2, 10, 77],
    ),
    "optimize": (lambda table, progress: table.optimize(progress=progress), [1, 2, 10]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_change_of_a_version_that_is_removed_meanwhile_is_planned_again(
    tmp_path: Path, table_format: str, change: str
) -> None:
    pv.write(tmp_path, _rows([0, 1, 2]), format=table_format)
    pv.open(tmp_path).append(_rows([3, 4]))
    pv.open(tmp_path).append(_rows([5]))
    steps: list[str] = []

    def progress(step: str, done: int, total: int) -> None:
        steps.append(step)
        if len(steps) > 1:
            return
        _replace_and_remove(tmp_path)

    make, expected = CHANGES[change]
    make(pv.open(tmp_path), progress)
    assert steps
    assert sorted(pv.open(tmp_path).to_arrow()["id"].to_pylist()) == expected


def test_a_file_that_the_newest_version_lacks_is_reported(tmp_path: Path) -> None:
    pv.write(tmp_path, _rows([0, 1]), format="iceberg")
    for file in (tmp_path / "data").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(pv.TableError) as raised:
        pv.open(tmp_path).delete("id = 1")
    assert raised.value.reason == "missing-file"


READS: dict[str, Callable[[pv.Table], Callable[[], pa.Table]]] = {
    "to_arrow": lambda table: lambda: table.to_arrow(["id"]),
    "scan": lambda table: table.scan({"id": "id"}, "id < 100").to_arrow,
    "typed": lambda table: table.typed().to_arrow,
    "scan of paths": lambda table: table.scan({"id": "id", "a": "$.a"}).to_arrow,
    "batches": lambda table: (lambda scan: lambda: pa.concat_tables(scan.batches()))(table.scan(["id"])),
    "sql": lambda table: lambda: pv.sql("SELECT id FROM t WHERE v:a::int = 1", t=table).to_arrow(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_read_of_a_version_that_is_removed_meanwhile_is_planned_again(
    tmp_path: Path, table_format: str, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pv.write(tmp_path, _rows([0, 1, 2]), format=table_format)
    table, first = pv.open(tmp_path), pv.open(tmp_path).version
    run, of_class = READS[read](table), type(table).snapshot
    opened: list[Any] = []

    def snapshot(self: Any) -> Any:
        state = of_class.fget(self)  # type: ignore[attr-defined]
        opened.append(state)
        if len(opened) == 1:
            _replace_and_remove(tmp_path)
        return state

    if read in ("to_arrow", "sql"):  # the version is removed after it is opened
        monkeypatch.setattr(type(table), "snapshot", property(snapshot))
    else:
        _replace_and_remove(tmp_path)
    assert sorted(run()["id"].to_pylist()) == [1, 2, 10]
    monkeypatch.undo()
    with pytest.raises(pv.VariantError) as raised:
        READS[read](pv.open(tmp_path, version=first))()
    assert raised.value.reason in ("missing-file", "unknown-snapshot", "not-found")
    assert raised.value.reason != "missing-file" or "open the table again" in raised.value.message
