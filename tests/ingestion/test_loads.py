"""Loads that run every night: only new files are read, in every format, also next to other writers and after kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.io.temporaries import temporary_beside

FORMATS = ("parquet", "delta", "iceberg")


def _source(folder: Path, name: str, rows: int, value: Any = None) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.ndjson"
    file.write_text("".join(json.dumps({"f": value or name, "i": i}) + "\n" for i in range(rows)))
    return file


def _rows(dest: Path) -> list[str]:
    return sorted(row["f"] for row in pv.open(dest).read().to_pylist())


def _names(dest: Path) -> list[str]:
    return sorted(Path(load["path"]).stem for load in pv.open(dest).loads())


@pytest.mark.parametrize("format", FORMATS)
def test_a_second_run_loads_what_is_new_and_reports_what_changed(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3), _source(source, "b", 2)
    first = pv.ingest(source, dest, format=format, only_new=True)
    assert (first.rows, first.skipped, first.changed) == (5, 0, ())
    again = pv.ingest(source, dest, format=format, only_new=True)
    assert (again.rows, again.skipped, again.files) == (0, 2, ())
    _source(source, "c", 4), _source(source, "a", 5, "changed")
    third = pv.ingest(source, dest, format=format, only_new=True)
    assert (third.rows, third.skipped) == (4, 1)
    assert [Path(path).name for path in third.changed] == ["a.ndjson"]
    assert _rows(dest) == ["a"] * 3 + ["b"] * 2 + ["c"] * 4
    assert _names(dest) == ["a", "b", "c"]
    newest = pv.open(dest).loads()[0]
    assert newest["size"] == (source / "c.ndjson").stat().st_size
    assert newest["modified"].timestamp() == pytest.approx((source / "c.ndjson").stat().st_mtime)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_that_are_overwritten_are_not_loaded_any_more(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    pv.ingest(source, dest, format=format, only_new=True)
    _source(source, "b", 1)
    pv.ingest(source / "b.ndjson", dest, format=format, mode="overwrite")
    assert pv.open(dest).loads() == []
    result = pv.ingest(source, dest, format=format, only_new=True)
    assert any("does not remember" in hint for hint in result.hints)
    pv.ingest(source, dest, format=format, only_new=True, mode="overwrite")
    assert _rows(dest) == ["a"] * 3 + ["b"]
    assert _names(dest) == ["a", "b"]
    assert pv.ingest(source, dest, format=format, only_new=True).skipped == 2


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_restored_version_loads_the_later_files_again(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    pv.ingest(source, dest, format=format, only_new=True)
    first = pv.open(dest).history()[0]
    _source(source, "b", 2)
    pv.ingest(source, dest, format=format, only_new=True)
    pv.open(dest).restore(first.get("version", first.get("snapshot_id")))
    assert _names(dest) == ["a"]
    assert pv.ingest(source, dest, format=format, only_new=True).rows == 2
    assert _rows(dest) == ["a"] * 3 + ["b"] * 2


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_version_that_is_restored_after_an_overwrite_counts_its_files_as_loaded(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    pv.ingest(source, dest, format=format, only_new=True)
    first = pv.open(dest).version
    _source(source, "b", 1)
    pv.ingest(source / "b.ndjson", dest, format=format, only_new=True, mode="overwrite")
    assert _names(dest) == ["b"]
    second = pv.open(dest).version
    pv.ingest(source / "a.ndjson", dest, format=format, only_new=True, mode="overwrite")
    assert _names(dest) == ["a"]
    for version, names, rows in ((second, ["b"], 3), (first, ["a"], 1)):
        pv.open(dest).restore(version)
        assert _names(dest) == names
        assert pv.ingest(source, dest, format=format, only_new=True).rows == rows
        assert _rows(dest) == ["a"] * 3 + ["b"]


@pytest.mark.parametrize("format", FORMATS)
def test_writers_at_the_same_time_load_each_file_once(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    pv.ingest(source, dest, format=format, only_new=True)
    for name in "bcde":
        _source(source, name, 2)

    def load(_: int) -> str:
        try:
            pv.ingest(source, dest, format=format, only_new=True)
        except VariantError as error:
            return error.reason
        return "done"

    with ThreadPoolExecutor(4) as pool:
        reasons = set(pool.map(load, range(4)))
    assert reasons <= {"done", "conflict"}
    pv.ingest(source, dest, format=format, only_new=True)
    assert _rows(dest) == sorted("aaabbccddee")


@pytest.mark.parametrize("format", FORMATS)
def test_an_option_that_cannot_be_meant_is_refused(tmp_path: Path, format: Any) -> None:
    file = _source(tmp_path / "in", "a", 1)
    for options in ({"mode": "error"}, {"mode": "ignore"}):
        with pytest.raises(VariantError, match="only_new= adds files"):
            pv.ingest(file, tmp_path / "t", format=format, only_new=True, **options)
    with pytest.raises(VariantError, match="only_new= adds files"):
        pv.ingest([{"a": 1}], tmp_path / "t", format=format, only_new=True)
    with pytest.raises(VariantError, match="only_new= is not supported"):
        pv.ingest(file, tmp_path / "t.vortex", format="vortex", only_new=True)


_LOAD = "import sys, parquet_variant as pv; pv.ingest(sys.argv[1], sys.argv[2], format=sys.argv[3], only_new=True)"


def test_unfinished_files_of_a_killed_job_do_not_keep_a_delta_table_from_being_created(tmp_path: Path) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    (dest / "_delta_log").mkdir(parents=True)
    for unfinished in ("part-0.parquet", "_delta_log/00000000000000000000.json"):
        Path(temporary_beside(f"{dest}/{unfinished}")).write_text("{")
    assert pv.ingest(source, dest, format="delta", only_new=True).rows == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine")
    with pytest.raises(VariantError, match="contains files"):
        pv.ingest(source, tmp_path / "other", format="delta", only_new=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_killed_load_is_repeated_without_loss_or_doubles(tmp_path: Path, format: Any) -> None:
    source, dest = tmp_path / "in", tmp_path / "t"
    for name in "abc":
        _source(source, name, 2000)
    for wait in (0.0, 0.15, 0.3, 0.6):
        process = subprocess.Popen([sys.executable, "-c", _LOAD, source, dest, format], env=os.environ)
        time.sleep(0.6 + wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    pv.ingest(source, dest, format=format, only_new=True)
    assert _rows(dest) == sorted("abc" * 2000)
    assert _names(dest) == ["a", "b", "c"]


def test_only_new_is_an_option_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from parquet_variant.cli.app import main

    source, dest = tmp_path / "in", tmp_path / "t"
    _source(source, "a", 3)
    for printed in ("3 rows in 1 file", "1 source file loaded before"):
        assert main(["ingest", str(source), str(dest), "--only-new"]) == 0
        assert printed in capsys.readouterr().out
    assert main(["loads", str(dest)]) == 0
    assert str(source / "a.ndjson") in capsys.readouterr().out
    assert main(["loads", str(dest), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == str(source / "a.ndjson")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b'{"a": 1}\n',))
    writer.start()
    assert main(["ingest", str(tmp_path / "pipe"), str(dest), "--only-new"]) == 2
    writer.join()
    assert "standard input and pipes cannot be known again" in capsys.readouterr().err
