"""One file that appears only when it is complete."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.io.staging import atomic_file


@pytest.mark.parametrize("old", [None, "old"])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, old: str | None) -> None:
    target = tmp_path / "a.txt"
    if old is not None:
        target.write_text(old)
    with pytest.raises(VariantFileError), atomic_file(target) as staged:
        staged.write_text("half")
        raise OSError(28, "No space left on device")
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_page_that_does_not_fit_on_the_disk_is_not_left_half_written(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n' * 10)

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    page = tmp_path / "page.html"
    page.write_text("old page")
    command = [sys.executable, "-m", "parquet_variant.cli", "explore", str(source), "--html", str(page)]
    run = subprocess.run(command, preexec_fn=limit_files, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert str(page) in run.stderr
    assert "Traceback" not in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ndjson", "page.html"]
    assert page.read_text() == "old page"


def _rewrite(path: Path, other: Path) -> None:
    pv.open(other).rewrite(path, mode="overwrite")


def _ingest(path: Path, other: Path) -> None:
    source = other.with_suffix(".ndjson")
    source.write_text("1\n")
    pv.ingest(source, path, mode="overwrite", one_file=True)


REPLACE = {
    "write": lambda path, other: pv.write(path, pv.parse_json(["1"]), mode="overwrite"),
    "rewrite": _rewrite,
    "annotate": lambda path, other: pv.open(path).annotate([]),
    "ingest": _ingest,
    "atomic_file": lambda path, other: _replace(path),
}


def _replace(path: Path) -> None:
    with atomic_file(path) as staged:
        staged.write_text("new")


@pytest.mark.parametrize("work", REPLACE)
def test_a_replaced_file_keeps_its_permissions_and_its_link(work: str, tmp_path: Path) -> None:
    target, link, other = tmp_path / "kept" / "a.parquet", tmp_path / "link.parquet", tmp_path / "b.parquet"
    pv.write(target, pv.parse_json(["0"]))
    pv.write(other, pv.parse_json(["1"]))
    target.chmod(0o600)
    link.symlink_to(target)
    before = target.read_bytes()
    REPLACE[work](link, other)
    assert link.is_symlink()
    assert target.read_bytes() != before
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["a.parquet"]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)  # as /dev/stdout is
    for path in (pipe, link):
        read: list[str] = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))  # noqa: B023 - joined below
        reader.start()
        _replace(path)
        reader.join()
        assert read == ["new"]
        assert pipe.is_fifo()
        assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_a_new_file_is_not_readable_while_it_replaces_a_private_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pv.write(path, pv.parse_json(["0"]))
    path.chmod(0o600)
    with pv.VariantWriter(path, mode="overwrite") as writer:
        writer.write_batch({"v": pv.parse_json(["1"])})
        assert {stat.S_IMODE(item.stat().st_mode) for item in tmp_path.iterdir()} == {0o600}


def test_the_next_writer_removes_what_a_killed_writer_of_any_file_left(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    code = f"""
import os
from parquet_variant.io.staging import atomic_file
with atomic_file({str(target)!r}) as staged:
    staged.write_text("half")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert len(list(tmp_path.iterdir())) == 1
    _replace(target)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("extension", ["parquet", "vortex"])
def test_optimize_keeps_the_permissions_of_a_private_directory(tmp_path: Path, extension: str) -> None:
    for number in range(3):
        pv.write(tmp_path / f"{number}.{extension}", pv.parse_json(["1"]), format=extension)
        (tmp_path / f"{number}.{extension}").chmod(0o600)
    pv.open(tmp_path).optimize()
    (file,) = tmp_path.glob(f"*.{extension}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_annotate_keeps_the_permissions_of_a_private_directory(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", pv.parse_json(["1"]), annotation=False)
    (tmp_path / "a.parquet").chmod(0o600)
    assert pv.open(tmp_path).annotate() == ("v",)
    (file,) = tmp_path.glob("*.parquet")
    assert (file.name == "a.parquet", stat.S_IMODE(file.stat().st_mode)) == (False, 0o600)


def test_a_loop_of_links_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "x.csv").symlink_to(tmp_path / "x.csv")
    with pytest.raises(pv.VariantError, match="links"):
        pv.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path / 'x.csv'}'")


@pytest.mark.parametrize("suffix", ["parquet", "vortex"])
def test_a_rewrite_of_files_that_are_overwritten_meanwhile_is_that_of_the_new_files(
    tmp_path: Path, suffix: str
) -> None:
    if suffix == "vortex":
        pytest.importorskip("vortex")
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    for number in range(3):
        pv.write(source / f"{number}.{suffix}", pv.parse_json([f'{{"old": {number}}}']))
    overwrites: list[int] = []

    def progress(step: str, done: int, total: int) -> None:
        if done == 1 and not overwrites:
            overwrites.append(total)
            pv.open(source).overwrite({"v": pv.parse_json(['{"new": 1}'])})

    pv.open(source).rewrite(dest, threads=1, progress=progress)
    assert overwrites == [3]
    assert pv.open(dest).read().to_pylist() == [{"new": 1}]
    assert len(list(dest.iterdir())) == 1


def test_a_failed_rewrite_leaves_no_new_files(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    for number in range(3):
        pv.write(source / f"{number}.parquet", pv.parse_json([f'{{"a": {number}}}']))
    good = (source / "2.parquet").read_bytes()
    (source / "2.parquet").write_bytes(good[:-300] + bytes(200) + good[-100:])
    with pytest.raises(pv.VariantError):
        pv.open(source).rewrite(dest, threads=1)
    assert not dest.exists() or list(dest.iterdir()) == []
    (source / "2.parquet").write_bytes(good)
    pv.open(source).rewrite(dest)
    assert len(pv.open(dest)) == 3


def test_a_failed_rewrite_keeps_the_files_of_another_writer(tmp_path: Path) -> None:
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    for number in range(3):
        pv.write(source / f"{number}.parquet", pv.parse_json([f'{{"a": {number}}}']))

    def progress(step: str, done: int, total: int) -> None:
        dest.mkdir()
        (dest / "2.parquet").write_bytes(b"of another writer")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pv.open(source).rewrite(dest, threads=1, progress=progress)
    assert [path.name for path in dest.iterdir()] == ["2.parquet"]
