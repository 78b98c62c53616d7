"""A commit that was interrupted is completed or undone by the next operation, whatever it is; a committed row stays."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.io import commit_journal
from parquet_variant.io import staging as staging_module
from parquet_variant.io.commit_journal import Journal
from parquet_variant.io.staging import StagedFile, Staging
from parquet_variant.io.temporaries import JobOwner


def _rows_for_others(dest: Path) -> int:
    files = [path for path in dest.rglob("*.parquet") if not any(part.startswith("_") for part in path.parts)]
    return sum(pq.read_metadata(path).num_rows for path in files)


def _interrupted_optimize(dest: Path, monkeypatch) -> None:
    """Make a directory in which `optimize` was killed after the switch, before the old files were removed."""
    for name in ("a", "b"):
        pv.write(dest / f"{name}.parquet", pv.from_python([{"n": number} for number in range(5)]))

    class Killed(BaseException):
        """The process ended."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "complete", killed)
        with pytest.raises(Killed):
            pv.open(dest, format="parquet").optimize(schema="n bigint")
    (job,) = (dest / "_temporary").iterdir()
    owner = JobOwner(JobOwner.current().machine, 2**22 + 1, 1)
    (job / "owner.json").write_text(owner.to_token())


def _refused(dest: Path) -> None:
    with pytest.raises(pv.VariantError, match="already exists"):
        pv.ingest(_lines(dest), dest)


def _lines(dest: Path) -> Path:
    path = dest.parent / "more.ndjson"
    path.write_text("1\n")
    return path


def _file(dest: Path) -> Path:
    path = dest.parent / "more.parquet"
    pv.write(path, pv.from_python([1]))
    return path


def _published(dest: Path) -> None:
    assert pv.open(dest).publish("iceberg", to=dest.parent / "published").files_added == 1
    assert len(pv.open(dest.parent / "published").read()) == 10


NEXT = {
    "optimize": lambda dest: pv.open(dest, format="parquet").optimize(schema="n bigint"),
    "append": lambda dest: pv.ingest(_lines(dest), dest, mode="append"),
    "error": _refused,
    "ignore": lambda dest: pv.ingest(_lines(dest), dest, mode="ignore"),
    "write of a file": lambda dest: pv.write(dest / "c.parquet", pv.from_python([1])),
    "write of a removed file": lambda dest: pv.write(dest / "a.parquet", pv.from_python([1])),
    "rewrite into it": lambda dest: pv.open(_file(dest)).rewrite(dest / "sub" / "c.parquet"),
    "append of rows": lambda dest: pv.open(dest).append({"v": pv.from_python([1])}),
    "publish": _published,
    "one file": lambda dest: pv.ingest(_lines(dest), dest / "c.parquet", one_file=True),
    "result of a query": lambda dest: pv.sql(f"COPY (SELECT * FROM t) TO '{dest}/c.parquet'", t=_file(dest)),
    "result to a removed file": lambda dest: pv.sql(f"COPY (SELECT * FROM t) TO '{dest}/a.parquet'", t=_file(dest)),
    "annotate": lambda dest: pv.open(pv.write(dest / "c.parquet", pv.from_python([1])).path).annotate(),
}


@pytest.mark.filterwarnings("ignore:a commit to")
@pytest.mark.parametrize("work", NEXT)
def test_the_next_operation_completes_an_interrupted_optimize(work, tmp_path, monkeypatch):
    dest = tmp_path / "table"
    _interrupted_optimize(dest, monkeypatch)
    assert _rows_for_others(dest) == 20
    with pytest.warns(UserWarning, match="interrupted"):
        assert len(pv.open(dest).read()) == 10
    NEXT[work](dest)
    added = 0 if work in ("optimize", "error", "ignore", "publish") else 1
    assert len(pv.open(dest).read()) == 10 + added
    assert _rows_for_others(dest) == 10 + added
    assert not (dest / "_temporary").exists()


def test_a_dry_run_changes_nothing(tmp_path, monkeypatch):
    _interrupted_optimize(tmp_path, monkeypatch)
    before = sorted(tmp_path.rglob("*"))
    with pytest.warns(UserWarning, match="interrupted"):
        pv.open(tmp_path).optimize(dry_run=True)
    assert sorted(tmp_path.rglob("*")) == before


class _Failing:
    """The local filesystem, where some steps fail."""

    def __init__(self, fails) -> None:
        self.real, self.fails = pafs.LocalFileSystem(), fails

    def __getattr__(self, name: str):
        operation = getattr(self.real, name)
        if name not in ("move", "delete_file", "open_output_stream", "delete_dir", "open_input_stream"):
            return operation

        def step(path, *others):
            if self.fails(name, path, *others):
                raise OSError(5, "Input/output error", path)
            return operation(path, *others)

        return step


def _with_failures(monkeypatch, fails) -> None:
    for module in (staging_module, commit_journal):
        if hasattr(module, "filesystem_of"):
            monkeypatch.setattr(module, "filesystem_of", lambda path, given=None: (_Failing(fails), str(path)))


AFTER = {
    "the marker": lambda name, path, *_: name == "open_output_stream" and path.endswith("_SUCCESS"),
    "the journal": lambda name, path, *_: name == "delete_file" and path.endswith("committed.json"),
    "an old file": lambda name, path, *_: name == "delete_file" and path.endswith("old.parquet"),
    "the owner": lambda name, path, *_: name == "delete_file" and path.endswith("owner.json"),
}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("step", AFTER)
def test_a_failure_after_the_commit_is_a_warning_and_nothing_is_lost(step, mode, tmp_path, monkeypatch):
    dest, source = tmp_path / "table", tmp_path / "in.ndjson"
    pv.write(dest / "old.parquet", pv.from_python([0]))
    source.write_text("1\n2\n")
    rows = 3 if mode == "append" else 2
    with monkeypatch.context() as patch:
        _with_failures(patch, AFTER[step])
        if (step, mode) == ("an old file", "append"):
            pv.ingest(source, dest, mode=mode)
        else:
            with pytest.warns(UserWarning, match="committed"):
                result = pv.ingest(source, dest, mode=mode)
            assert result.rows == 2
    assert len(pv.open(dest).read()) == rows
    pv.ingest(source, dest, mode="append")
    assert len(pv.open(dest).read()) == _rows_for_others(dest) == rows + 2
    # A job whose owner file could not be removed is a job of a living process.
    assert (dest / "_temporary").exists() is (step == "the owner")


def _staged(dest: Path) -> tuple[Staging, StagedFile]:
    staging = Staging(str(dest)).begin()
    file = StagedFile(staging.attempt(0), staging.file_name(0))
    pv.write(file.path, pv.from_python([1]))
    return staging, file


def test_a_switch_that_fails_after_it_happened_is_a_success(tmp_path, monkeypatch):
    staging, file = _staged(tmp_path)

    def fails(name, path, *others):
        if name == "move" and others[0].endswith("committed.json"):
            os.rename(path, others[0])  # noqa: PTH104
            return True
        return False

    with monkeypatch.context() as patch:
        _with_failures(patch, fails)
        staging.commit([file])
    staging.abort()
    assert pv.open(tmp_path).read().to_pylist() == [1]


def test_a_switch_whose_outcome_cannot_be_read_is_unknown_and_removes_nothing(tmp_path, monkeypatch):
    staging, file = _staged(tmp_path)
    lost = []

    def fails(name, path, *others):
        if name == "move" and others[0].endswith("committed.json"):
            os.rename(path, others[0])  # noqa: PTH104
            lost.append(path)
        return bool(lost)

    with monkeypatch.context() as patch:
        _with_failures(patch, fails)
        with pytest.raises(pv.VariantFileError, match="unknown whether") as raised:
            staging.commit([file])
        staging.abort()
    assert raised.value.reason == "unknown-outcome"
    assert pv.open(tmp_path).read().to_pylist() == [1]


def test_a_marker_that_exists_need_not_be_written(tmp_path, monkeypatch):
    (tmp_path / "_SUCCESS").touch()
    staging, file = _staged(tmp_path)
    with monkeypatch.context() as patch:
        _with_failures(patch, AFTER["the marker"])
        staging.commit([file])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_SUCCESS", file.name]


@pytest.mark.parametrize("overwrites", [1, 5])
def test_readers_list_a_directory_again_while_it_is_overwritten(overwrites, tmp_path, monkeypatch):
    from parquet_variant.files.parquet.format import files

    reads = {
        "read": lambda: len(pv.open(dest).read()),
        "read_table": lambda: len(pv.open(dest).to_arrow()),
        "extract": lambda: len(pv.open(dest).scan({"n": "$:bigint"}).to_arrow()),
        "scan": lambda: len(pv.open(dest).scan({"n": "$:bigint"}).to_arrow()),
    }
    for name, read in reads.items():
        dest, source = tmp_path / name, tmp_path / "in.ndjson"
        source.write_text("1\n")
        pv.ingest(source, dest, schema="variant")
        left = [overwrites]
        locate = files.list_files

        def then_overwritten(*arguments, listed=locate, left=left, dest=dest, source=source):
            found = listed(*arguments)
            if left[0]:
                left[0] -= 1
                pv.ingest(source, dest, mode="overwrite", schema="variant")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(files, "list_files", then_overwritten)
            assert read() == 1
        assert left == [0]


def test_an_error_of_the_disk_while_a_directory_is_listed_is_reported(tmp_path, monkeypatch):
    (tmp_path / "a.ndjson").write_text('{"n": 1}\n')
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "t")

    def scandir(folder):
        raise OSError(errno.EIO, "the disk fails", folder)

    monkeypatch.setattr(os, "scandir", scandir)
    for work in (
        lambda: pv.open(tmp_path / "t").read(),
        lambda: pv.ingest(tmp_path / "a.ndjson", tmp_path / "t", mode="append"),
    ):
        with pytest.raises(pv.VariantError, match="the disk fails") as caught:
            work()
        assert caught.value.reason == "cannot-read"
