"""A process that dies at any step of any kind of commit into a directory leaves the old rows or the new ones.

Every operation on the filesystem is a step: the process is killed before it, or half-way through a file that is
written. Afterwards nothing more happens (no `except`, no `finally` gets anything done). Then a reader looks; then the
next job puts things in order, and readers that know no journal see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.io import staging as staging_module
from parquet_variant.io import temporaries
from parquet_variant.io.staging import StagedFile, Staging, open_staging, sweep
from parquet_variant.io.temporaries import JobOwner

_CHANGES = ("create_dir", "move", "delete_file", "delete_dir", "open_output_stream")


class Killed(BaseException):
    """The process is no more."""


class Mortal:
    """The local filesystem until a step, and then nothing."""

    def __init__(self, last: int) -> None:
        self.left = last
        self.real = pafs.LocalFileSystem()

    def __getattr__(self, name: str):
        operation = getattr(self.real, name)
        if name not in _CHANGES:
            return operation

        def step(path, *others, **options):
            if name == "open_output_stream" and self.left == 1:
                operation(path).close()  # made, but nothing in it
            self.left -= 1
            if self.left < 0 or (name == "open_output_stream" and self.left == 0):
                self.left = 0
                raise Killed
            return operation(path, *others, **options)

        return step


_attempts = count()


def _stage(staging: Staging, number: int, folder: str = "", text: str = "new") -> StagedFile:
    file = StagedFile(staging.attempt(number, next(_attempts)), folder + staging.file_name(number))
    pv.write(file.path, pv.from_python([f"{text}-{number}"]))
    return file


def _append(dest: Path) -> None:
    staging = open_staging(str(dest), "append").begin()
    staging.commit([_stage(staging, 0), _stage(staging, 1, "day=1/"), _stage(staging, 2)])


def _overwrite(dest: Path) -> None:
    staging = open_staging(str(dest), "overwrite").begin()
    staging.commit([_stage(staging, 0), _stage(staging, 1)])


def _batch(dest: Path) -> None:
    staging = Staging(str(dest), job="stream")
    staging.commit([_stage(staging, 0), _stage(staging, 1)], batch=("stream", 7))


def _complete_batch(dest: Path) -> None:
    staging = Staging(str(dest), overwrite=True, job="stream")
    staging.commit([_stage(staging, 0), _stage(staging, 1)], batch=("stream", 7))


def _compact(dest: Path) -> None:
    pv.open(dest).optimize(schema="variant")


def _ingest(dest: Path) -> None:
    source = dest.parent / "more.ndjson"
    source.write_text("\n".join(f'"ingested-{number}"' for number in range(3)))
    pv.ingest(source, dest, mode="overwrite", threads=1)


KINDS = {
    "append": _append,
    "overwrite": _overwrite,
    "batch of a stream": _batch,
    "complete batch of a stream": _complete_batch,
    "compaction": _compact,
    "ingest": _ingest,
}


def _rows(files: list[str]) -> list[str]:
    return sorted(value for file in files for value in pv.open(file).read().to_pylist())


def _seen(dest: Path) -> list[str]:
    """The rows that a reader of ours finds."""
    try:
        return sorted(pv.open(dest).read().to_pylist())
    except pv.VariantFileError as error:
        assert error.reason in ("no-files", "no-such-file")
        return []


def _seen_by_others(dest: Path) -> list[str]:
    """The rows that a reader finds that knows nothing but that names with an underscore are no data."""
    files = [path for path in dest.rglob("*.parquet") if not any(part.startswith("_") for part in path.parts)]
    assert all(pq.read_metadata(path).num_rows for path in files)
    return _rows([str(path) for path in files])


def _before(dest: Path) -> None:
    for text in ("old-a", "old-b", "old-c"):
        dest.mkdir(exist_ok=True)
        pv.write(dest / f"{text}.parquet", pv.from_python([text]))


def _killed_at(last: int, work: Callable[[Path], None], dest: Path, monkeypatch) -> bool:
    mortal = Mortal(last)
    with monkeypatch.context() as patch:
        patch.setattr(staging_module, "filesystem_of", lambda path, given=None: (mortal, str(path)))
        try:
            work(dest)
        except Killed:
            return True
    return False


def _kills(work: Callable[[Path], None], tmp_path: Path, monkeypatch, first: bool) -> Iterator[tuple[Path, list[str]]]:
    """A directory for every step at which the work was killed, and the rows that it had before."""
    for step in count(1):
        dest = tmp_path / f"killed {step}" / "table"
        dest.parent.mkdir()
        if not first:
            _before(dest)
        old = _seen(dest)
        if not _killed_at(step, work, dest, monkeypatch):
            return
        yield dest, old


@pytest.mark.filterwarnings("ignore:a commit to")
@pytest.mark.parametrize("first", [False, True], ids=["over old files", "as the first"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_step_leaves_the_old_or_the_new(kind, first, tmp_path, monkeypatch):
    if kind == "compaction" and first:
        pytest.skip("there is nothing to compact")
    work = KINDS[kind]
    whole = tmp_path / "whole" / "table"
    whole.parent.mkdir()
    if not first:
        _before(whole)
    work(whole)
    new = _seen(whole)
    monkeypatch.setattr(JobOwner, "is_gone", lambda owner: True)
    # One that dies before it says who it is, and a stream between its batches, are dead by their age.
    monkeypatch.setattr(temporaries, "STALE_AFTER", 0)
    outcomes = []
    for dest, old in _kills(work, tmp_path, monkeypatch, first):
        assert _seen(dest) in (old, new), dest
        found = _seen(dest)
        sweep(str(dest))
        assert _seen(dest) == found
        assert _seen_by_others(dest) == found
        assert not (dest / "_temporary").exists()
        outcomes.append(found == new)
        work(dest)
        assert not (dest / "_temporary").exists()
    assert len(outcomes) > 8
    if kind not in ("compaction",):
        assert {*outcomes} == {False, True}


def test_what_a_dead_job_staged_is_swept_and_a_living_one_is_left_alone(tmp_path, monkeypatch):
    living, dead = Staging(str(tmp_path)).begin(), Staging(str(tmp_path)).begin()
    kept = _stage(living, 0)
    _stage(dead, 0)
    owner = Path(dead.directory) / "owner.json"
    owner.write_text(JobOwner(JobOwner.current().machine, 2**22 + 1, 1).to_token())
    assert open_staging(str(tmp_path)) is not None
    assert [path.name for path in (tmp_path / "_temporary").iterdir()] == [living.job]
    assert living.commit([kept]) == [f"{tmp_path}/{kept.name}"]


def test_a_job_of_another_machine_is_dead_when_nothing_changed_for_a_day(tmp_path):
    import os
    import time

    foreign = Staging(str(tmp_path)).begin()
    file = _stage(foreign, 0)
    (Path(foreign.directory) / "owner.json").write_text(JobOwner("elsewhere", 1, 1).to_token())
    assert sweep(str(tmp_path)) == []
    then = time.time() - 25 * 3600
    for path in (Path(foreign.directory), *Path(foreign.directory).rglob("*")):
        os.utime(path, (then, then))
    os.utime(file.path, None)
    assert sweep(str(tmp_path)) == []
    os.utime(file.path, (then, then))
    assert sweep(str(tmp_path)) == [foreign.job]
    assert list(tmp_path.iterdir()) == []


def test_a_task_of_a_job_that_is_over_writes_nothing(tmp_path):
    staging = Staging(str(tmp_path)).begin()
    staging.attempt(0)
    staging.abort()
    with pytest.raises(pv.VariantFileError, match="has ended") as raised:
        staging.attempt(1)
    assert raised.value.reason == "job-over"
    assert list(tmp_path.iterdir()) == []


def test_two_jobs_that_replace_the_same_files_do_not_both_win(tmp_path):
    _before(tmp_path)
    first, second = (open_staging(str(tmp_path), "overwrite").begin() for _ in range(2))
    mine, theirs = _stage(first, 0, text="mine"), _stage(second, 0, text="theirs")
    # The second has said what it will do, and has not done it yet.
    from parquet_variant.io.commit_journal import Journal

    Journal((theirs.name,), ("old-a.parquet",)).publish(pafs.LocalFileSystem(), second.directory)
    with pytest.raises(pv.VariantFileError, match="another job") as raised:
        first.commit([mine])
    assert raised.value.reason == "conflict"
    second.commit([theirs])
    assert _seen(tmp_path) == ["theirs-0"]


def test_files_that_were_replaced_meanwhile_are_not_compacted(tmp_path):
    _before(tmp_path)
    staging = open_staging(str(tmp_path), "append").begin()
    file = _stage(staging, 0)
    (tmp_path / "old-b.parquet").unlink()
    with pytest.raises(pv.VariantFileError, match="replaced files there meanwhile") as raised:
        staging.commit([file], replaced=["old-a.parquet", "old-b.parquet"])
    assert raised.value.reason == "conflict"
    assert _seen(tmp_path) == ["old-a", "old-c"]


def test_a_partition_alone_obeys_the_journal_of_the_whole(tmp_path):
    staging = open_staging(str(tmp_path)).begin()
    file = _stage(staging, 0, "day=1/")
    from parquet_variant.io.commit_journal import Journal

    Journal((file.name,)).publish(pafs.LocalFileSystem(), staging.directory)
    target = tmp_path / file.name
    target.parent.mkdir()
    Path(file.path).rename(target)
    for path in (tmp_path, tmp_path / "day=1", tmp_path / "day=*"):
        assert _seen(path) == []
