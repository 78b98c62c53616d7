"""Writing a directory: nothing is seen before the commit, everything after it, and failed attempts never."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pyarrow.fs as pafs
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.io import staging as staging_module
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, open_staging, staged_job
from parquet_variant.io.temporaries import JobOwner


def _stage(staging: Staging, task: int, attempt: int = 0, text: str = "", name: str | None = None) -> StagedFile:
    file = StagedFile(staging.attempt(task, attempt), name or staging.file_name(task))
    Path(file.path).parent.mkdir(parents=True, exist_ok=True)
    Path(file.path).write_text(text)
    return file


def _names(dest: Path) -> set[str]:
    return {str(path.relative_to(dest)) for path in dest.rglob("*") if path.is_file()}


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_only_the_committed_attempt_is_seen(dest):
    staging = Staging(str(dest))
    failed, good = _stage(staging, 0, 1, "failed"), _stage(staging, 0, 2, "good")
    other = _stage(staging, 1, 3, "other")
    bad = _stage(staging, 1, 3, "bad", f"{BAD_RECORDS}/{staging.file_name(1, extension='ndjson')}")
    assert not [name for name in _names(dest) if not name.startswith("_temporary/")]
    assert failed.name == good.name
    committed = staging.commit([good, other, bad])
    assert [Path(name).read_text() for name in committed] == ["good", "other", "bad"]
    assert _names(dest) == {good.name, other.name, bad.name, "_SUCCESS"}


def test_abort_leaves_the_destination_and_other_jobs_alone(dest):
    mine, theirs = Staging(str(dest)), Staging(str(dest))
    _stage(mine, 0)
    kept = _stage(theirs, 0)
    mine.abort()
    assert _names(dest) == {str(Path(kept.path).relative_to(dest))}
    theirs.abort()
    assert not (dest / "_temporary").exists()


def test_overwrite_removes_old_data_and_nothing_else(dest):
    first = Staging(str(dest))
    (old,) = first.commit([_stage(first, 0)])
    (dest / "notes.txt").write_text("mine")
    second = open_staging(str(dest), "overwrite")
    (new,) = second.commit([_stage(second, 0)])
    assert _names(dest) == {Path(new).name, "notes.txt", "_SUCCESS"}
    assert not Path(old).exists()


def test_a_commit_that_fails_half_way_takes_back_what_it_moved(dest, monkeypatch):
    staging = Staging(str(dest))
    files = [_stage(staging, 0), _stage(staging, 1)]
    Path(files[1].path).unlink()
    with pytest.raises(VariantFileError, match="unchanged") as raised:
        staging.commit(files)
    assert raised.value.reason == "commit-failed"
    staging.abort()
    assert _names(dest) == set()


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_a_new_destination_may_be_written_in_any_mode(dest, mode):
    assert open_staging(str(dest), mode) is not None
    dest.mkdir()
    assert open_staging(str(dest), mode) is not None


def test_a_destination_with_data_follows_the_mode(dest):
    staging = Staging(str(dest))
    staging.commit([_stage(staging, 0)])
    assert open_staging(str(dest), "ignore") is None
    assert open_staging(str(dest), "append").overwrite is False
    assert open_staging(str(dest), "overwrite").overwrite is True
    with pytest.raises(VariantFileError, match="already exists"):
        open_staging(str(dest), "error")


def test_a_file_and_a_delta_table_are_not_destinations(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    for name in ("file", "delta"):
        with pytest.raises(VariantFileError) as raised:
            open_staging(str(tmp_path / name), "append")
        assert raised.value.reason == "exists"
    with pytest.raises(VariantFileError, match="use error, append, overwrite or ignore"):
        open_staging(str(tmp_path / "new"), "upsert")


def test_a_stream_batch_is_committed_once(dest):
    def batch(number: int, text: str) -> None:
        staging = Staging(str(dest))
        staging.commit([_stage(staging, 0, 0, text), _stage(staging, 1, 0, text)], batch=("app", number))

    batch(0, "first")
    batch(1, "second")
    batch(1, "again")
    assert sorted(path.read_text() for path in dest.glob("*.parquet")) == ["first", "first", "second", "second"]


def test_what_a_dead_attempt_left_of_a_batch_is_replaced(dest, monkeypatch):
    staging = Staging(str(dest))
    files = [_stage(staging, 0, 0, "dead"), _stage(staging, 1, 0, "dead")]
    moves = []

    def dies(self, source, target):
        moves.append(target)
        if len(moves) == 3:
            raise KeyboardInterrupt
        Path(source).rename(target)

    with monkeypatch.context() as patch:
        patch.setattr(staging_module, "filesystem_of", lambda path, _=None: (_Local(dies), path))
        with pytest.raises(KeyboardInterrupt):
            staging.commit(files, batch=("app", 7))
    assert [path.read_text() for path in dest.glob("*.parquet")] == ["dead"]
    again = Staging(str(dest))
    again.commit([_stage(again, 0, 0, "alive")], batch=("app", 7))
    assert [path.read_text() for path in dest.glob("*.parquet")] == ["alive"]


class _Local:
    """The local filesystem with another `move`."""

    def __init__(self, move):
        self._real, self._move = pafs.LocalFileSystem(), move

    def __getattr__(self, name):
        return getattr(self._real, name)

    def move(self, source, target):
        self._move(self, source, target)


class TestTrust:
    """What lies in a destination may be a stranger's: nothing outside of it is removed or written."""

    @pytest.mark.parametrize("name", ["committed.json", "prepared.json"])
    @pytest.mark.parametrize(
        "text",
        ['{"remove": ["../victim.parquet"], "add": ["../victim.parquet"]}', '{"remove": ["/etc/x"]}', '{"x": [1]}',
         '{"remove": [1]}', '{"add": 1}', "[]", "nonsense", '{"remove": [""]}', "[" * 100_000],
    )  # fmt: skip
    def test_a_foreign_journal_removes_nothing(self, tmp_path: Path, name: str, text: str) -> None:
        victim, dest = tmp_path / "victim.parquet", tmp_path / "dest"
        victim.write_bytes(b"x")
        job = dest / "_temporary" / "job"
        job.mkdir(parents=True)
        (job / name).write_text(text)
        pv.write(dest / "a.parquet", pv.parse_json(["1"]))
        source = tmp_path / "in.json"
        source.write_text("1\n")
        for work in (lambda: pv.open(dest).read(), lambda: pv.ingest(source, dest, mode="append")):
            with pytest.raises(pv.VariantError) as caught:
                work()
            assert caught.value.reason == "bad-journal"
        assert victim.exists()
        assert (dest / "a.parquet").exists()

    def test_links_are_not_followed_out_of_a_destination(self, tmp_path: Path) -> None:
        dest, other, source = tmp_path / "dest", tmp_path / "other", tmp_path / "in.json"
        other.mkdir()
        pv.write(other / "theirs.parquet", pv.parse_json(["1"]))
        source.write_text('{"k":"x"}\n')
        pv.ingest(source, dest, partition_by="k=$.k")
        (dest / "k=y").symlink_to(other)
        pv.ingest(source, dest, partition_by="k=$.k", mode="overwrite")
        assert (other / "theirs.parquet").exists()
        source.write_text('{"k":"y"}\n')
        with pytest.raises(pv.VariantFileError, match="a symbolic link leads") as caught:
            pv.ingest(source, dest, partition_by="k=$.k", mode="append")
        assert caught.value.reason == "outside"
        assert [item.name for item in other.iterdir()] == ["theirs.parquet"]
        assert not (dest / "_temporary").exists()

    def test_a_link_back_shows_no_file_twice(self, tmp_path: Path) -> None:
        pv.write(tmp_path / "k=1" / "a.parquet", pv.parse_json(["1", "2"]))
        (tmp_path / "k=1" / "back").symlink_to(tmp_path)
        (tmp_path / "again").symlink_to(tmp_path / "k=1")
        assert len(pv.open(tmp_path).read()) == 2
        assert pv.open(tmp_path).to_arrow()["k"].to_pylist() == [1, 1]
        assert len(pv.open(f"{tmp_path}/*/*.parquet").read()) == 2
        pv.write(tmp_path / "k=3" / "l=4" / "b.parquet", pv.parse_json(["3"]))
        (tmp_path / "a link").symlink_to(tmp_path / "k=3" / "l=4")
        assert sorted(pv.open(tmp_path).to_arrow()["k"].to_pylist()) == [1, 1, 3]
        (tmp_path / "lines").mkdir()
        (tmp_path / "lines" / "a.ndjson").write_text("1\n")
        (tmp_path / "lines" / "back").symlink_to(tmp_path / "lines")
        (tmp_path / "lines" / "up").symlink_to(tmp_path / "lines")
        assert pv.ingest(tmp_path / "lines", tmp_path / "dest").rows == 1

    def test_a_partition_whose_name_is_too_long_is_refused(self, tmp_path: Path) -> None:
        source = tmp_path / "in.json"
        source.write_text(json.dumps({"k": "x" * 300}) + "\n")
        with pytest.raises(pv.VariantError, match="too long for the name of a directory"):
            pv.ingest(source, tmp_path / "dest", partition_by="k=$.k")

    def test_names_of_partitions_stay_inside(self, tmp_path: Path) -> None:
        values = ["../x", "..", ".", "", "a/b", "a%2Fb", "\0", "__HIVE_DEFAULT_PARTITION__", "é", "a=b", "a\nb", " "]
        source = tmp_path / "in.json"
        source.write_text("".join(json.dumps({"k": value}) + "\n" for value in values) + "{}\n")
        with pytest.warns(UserWarning, match="null"):
            pv.ingest(source, tmp_path / "dest", partition_by="k=$.k")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["dest", "in.json"]
        table = pv.open(tmp_path / "dest").scan({"k": "k", "own": "$.k:string"}).to_arrow()
        # Hive's names have one word for null and for what looks like it, and none for an empty string.
        read_as_null = {"", "__HIVE_DEFAULT_PARTITION__", None}
        for row in table.to_pylist():
            assert row["k"] == (None if row["own"] in read_as_null else row["own"])
        assert table.num_rows == len(values) + 1


def test_a_job_that_is_interrupted_as_it_begins_leaves_no_directory(tmp_path, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    staging = open_staging(str(tmp_path / "a" / "new"))
    monkeypatch.setattr(JobOwner, "current", interrupted)
    with pytest.raises(KeyboardInterrupt):
        staging.begin()
    staging.abort()
    assert not (tmp_path / "a" / "new").exists()


def test_a_file_that_appears_while_a_failed_job_is_swept_goes_too(tmp_path, monkeypatch):
    job = Staging(str(tmp_path / "t"), made=True).begin()
    attempt = job.attempt(0)

    class Meanwhile:
        """A file system on which a task puts its file into a directory that is about to be removed."""

        def __init__(self):
            self.local = pafs.LocalFileSystem()
            self.late = True

        def __getattr__(self, name):
            return getattr(self.local, name)

        def delete_dir(self, path):
            if self.late:
                self.late = False
                with self.local.open_output_stream(f"{attempt}/part.parquet") as stream:
                    stream.write(b"x")
                raise OSError("Directory not empty")
            self.local.delete_dir(path)

    system = Meanwhile()
    monkeypatch.setattr(staging_module, "filesystem_of", lambda path: (system, path))
    job.abort()
    assert not system.late
    assert list(tmp_path.iterdir()) == []


def test_a_task_whose_job_has_ended_opens_no_file(tmp_path):
    staging = Staging(str(tmp_path / "t"), made=True).begin()
    files = PartitionedFiles(staging, staging.attempt(0), 0)
    staging.abort()
    with pytest.raises(VariantFileError, match="has ended"), files:
        files.write({}, {"v": pv.from_python([1])})
    assert list(tmp_path.iterdir()) == []


def test_a_job_whose_owner_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> JobOwner:
        raise OSError(errno.ENOSPC, "no space left")

    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.setattr(JobOwner, "current", full)
    with pytest.raises(VariantFileError, match="no space left"), staged_job(str(tmp_path), "append"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
