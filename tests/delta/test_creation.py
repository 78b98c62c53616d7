"""A table that is not there yet is made with its first rows, in one commit, whoever else makes it at the same time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.tables.delta.log.snapshot import load_snapshot
from parquet_variant.tables.delta.writing import write
from parquet_variant.tables.delta.writing.write import planned_table
from parquet_variant.tables.storage import LocalStorage, open_storage


def _rows(table: Path) -> list[str] | None:
    try:
        return sorted(load_snapshot(open_storage(table)) and pv.open(table, format="delta").read().to_pylist())
    except pv.TableError as error:
        assert error.reason == "not-a-table"
        return None


def _source(folder: Path, name: str, *values: str) -> Path:
    path = folder / f"{name}.ndjson"
    path.write_text("".join(f'"{value}"\n' for value in values))
    return path


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_two_ingests_that_make_one_table_both_get_their_rows_in(tmp_path, monkeypatch, mode):
    first, second = _source(tmp_path, "a", "a1", "a2"), _source(tmp_path, "b", "b1")
    table = tmp_path / "table"
    others = iter([lambda: pv.ingest(second, table, mode="append", format="delta")])

    def planned(*arguments, **options):
        next(others, lambda: None)()  # the other one begins later and ends sooner
        return planned_table(*arguments, **options)

    monkeypatch.setattr(write, "planned_table", planned)
    assert pv.ingest(first, table, mode=mode, format="delta").rows == 2
    assert _rows(table) == (["a1", "a2", "b1"] if mode == "append" else ["a1", "a2"])
    assert [item["version"] for item in pv.open(table).history()] == [1, 0]


def test_a_table_that_somebody_else_made_meanwhile_is_an_error_where_it_must_be_new(tmp_path, monkeypatch):
    source, table = _source(tmp_path, "a", "a1"), tmp_path / "table"
    other = iter([lambda: pv.write(table, {"v": pv.from_python(["theirs"])}, format="delta")])

    def planned(*arguments, **options):
        next(other, lambda: None)()
        return planned_table(*arguments, **options)

    monkeypatch.setattr(write, "planned_table", planned)
    with pytest.raises(pv.TableError) as raised:
        pv.ingest(source, table, format="delta")
    assert raised.value.reason == "exists"
    assert _rows(table) == ["theirs"]


def test_a_bad_line_leaves_no_table_and_the_next_ingest_makes_it(tmp_path):
    table = tmp_path / "table"
    bad = tmp_path / "bad.ndjson"
    bad.write_text('"a"\n{"b": \n')
    with pytest.raises(pv.JsonError):
        pv.ingest(bad, table, format="delta")
    assert not table.exists()
    assert pv.ingest(_source(tmp_path, "good", "c"), table, format="delta").rows == 1


def test_other_files_are_not_taken_for_what_a_dead_job_left(tmp_path):
    table = tmp_path / "table"
    table.mkdir()
    pv.write(table / "mine.parquet", pv.from_python([1]))
    with pytest.raises(pv.TableError) as caught:
        pv.ingest(_source(tmp_path, "a", "a1"), table, format="delta")
    assert caught.value.reason == "exists"


class Killed(BaseException):
    """The process is no more."""


def _die(monkeypatch, last: int) -> None:
    """Let the storage die before or after its step number `last`; nothing works any more then."""
    left = [last]

    def step() -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Killed

    def around(operation: Callable) -> Callable:
        def dies(*arguments, **options):
            step()
            result = operation(*arguments, **options)
            step()
            return result

        return dies

    create = LocalStorage.create

    @contextmanager
    def created(self, path):
        step()
        with create(self, path) as local:
            yield local
        step()

    for name in ("put", "put_if_absent", "delete"):
        monkeypatch.setattr(LocalStorage, name, around(getattr(LocalStorage, name)))
    monkeypatch.setattr(LocalStorage, "create", created)


def _ingest(table: Path) -> None:
    pv.ingest(_source(table.parent, "new", "x", "y"), table, mode="append", threads=1, format="delta")


KINDS = {
    "create": lambda table: pv.write(table, {"v": pv.from_python(["x"])}, format="delta", mode="append"),
    "append": lambda table: pv.open(table).append({"v": pv.from_python(["x"])}),
    "overwrite": lambda table: pv.open(table).overwrite({"v": pv.from_python(["x"])}),
    "ingest": _ingest,
    "ingest into a new table": _ingest,
    "optimize": (lambda path: pv.open(path).optimize()),
    "restore": lambda table: pv.open(table).restore(version=0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_step_leaves_the_old_or_the_new(kind, tmp_path, monkeypatch):
    work, new_table = KINDS[kind], kind in ("create", "ingest into a new table")

    def before(name: str) -> Path:
        table = tmp_path / name / "table"
        table.parent.mkdir()
        if not new_table:
            for text in ("a", "b"):
                pv.write(table, {"v": pv.from_python([text])}, format="delta", mode="append")
        return table

    whole = before("whole")
    old = _rows(whole)
    work(whole)
    new = _rows(whole)
    for step in count(1):
        table = before(f"killed {step}")
        with monkeypatch.context() as patch:
            _die(patch, step)
            try:
                work(table)
            except Killed:
                pass
            else:
                break
        assert _rows(table) in (old, new)
        # And nothing is in the way of doing it again.
        work(table)
        load_snapshot(open_storage(table))
    assert step > 2


def test_a_table_whose_first_commits_were_cleaned_up_is_not_made_again(tmp_path):
    table = tmp_path / "table"
    for value in ("1", "2", "3"):
        pv.write(table, {"v": pv.parse_json([value])}, format="delta", mode="append")
    pv.open(table).checkpoint()
    for version in (0, 1):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(pv.TableError) as caught:
        pv.create(table, pv.open(table).snapshot.metadata.schema_string)
    assert caught.value.reason == "exists"
    assert not (table / "_delta_log" / f"{0:020}.json").exists()
    assert _rows(table) == [1, 2, 3]
