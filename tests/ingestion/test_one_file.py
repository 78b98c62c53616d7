"""One Parquet file as the destination; and what an interrupt leaves behind: nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import parquet_variant as pv


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "in" / "rows.ndjson"
    file.parent.mkdir()
    file.write_text("".join(f'{{"n": {n}}}\n' for n in range(1000)))
    return file


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


@pytest.mark.parametrize("split_bytes", [None, 500])
def test_one_file_has_all_rows_in_order(source: Path, tmp_path: Path, split_bytes: int | None) -> None:
    dest = tmp_path / "out" / "q.parquet"
    dest.parent.mkdir()
    result = pv.ingest(source, dest, one_file=True, split_bytes=split_bytes)
    assert (result.files, result.rows) == (("q.parquet",), 1000)
    assert pq.read_metadata(dest).num_rows == 1000
    assert pv.to_python(pv.open(dest).read()) == [{"n": n} for n in range(1000)]
    assert names(dest.parent) == ["q.parquet"]


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "q.parquet"
    dest.write_bytes(b"mine")
    for mode in ("error", "append"):
        with pytest.raises(pv.VariantFileError, match="exists"):
            pv.ingest(source, dest, one_file=True, mode=mode)
    pv.ingest(source, dest, one_file=True, mode="ignore")
    assert dest.read_bytes() == b"mine"
    pv.ingest(source, dest, one_file=True, mode="overwrite")
    assert len(pv.open(dest).read()) == 1000


def test_bad_lines_lie_next_to_the_file_or_end_the_job(source: Path, tmp_path: Path) -> None:
    with source.open("a") as file:
        file.write('{"n":\n')
    dest = tmp_path / "out" / "q.parquet"
    dest.parent.mkdir()
    with pytest.raises(pv.JsonError, match="line 1001"):
        pv.ingest(source, dest, one_file=True)
    assert names(dest.parent) == []
    result = pv.ingest(source, dest, one_file=True, on_error="quarantine")
    assert (result.rows, result.bad_records) == (1000, 1)
    assert names(dest.parent) == ["q.parquet", "q.parquet.bad_records.ndjson"]
    assert json.loads(Path(str(result.bad_records_path)).read_text())["line"] == 1001


@pytest.mark.parametrize("options", [{"format": "delta"}, {"partition_by": "n=$.n:int"}])
def test_a_path_that_is_not_a_file_is_refused(source: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(pv.VariantError, match="one_file"):
        pv.ingest(source, tmp_path / "q.parquet", one_file=True, **options)


def test_an_interrupt_ends_the_command_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "rows.ndjson"
    line = json.dumps({f"key{n}": [n, str(n) * 20, {"a": n}] for n in range(40)}) + "\n"
    source.write_text(line * 30_000)
    dest = tmp_path / "out"
    command = [sys.executable, "-m", "parquet_variant.cli", "ingest", str(source), str(dest), "--json"]
    with subprocess.Popen([*command, "--threads", "2"], stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not dest.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(err.splitlines()[-1])["error"] == {"reason": "interrupted", "message": "interrupted"}
    assert not dest.exists()


@pytest.mark.parametrize("name", ["{}", "{}.bad_records.ndjson"])
def test_a_source_is_not_replaced(source: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dest = tmp_path / "q.parquet"
    text = source.read_text()
    replaced = source.rename(name.format(dest))
    (tmp_path / "link.ndjson").symlink_to(replaced)
    monkeypatch.chdir(tmp_path)
    for named in (replaced, f"./{replaced.name}", "link.ndjson"):
        with pytest.raises(pv.VariantFileError, match="is a source and would be replaced") as caught:
            pv.ingest(named, dest, one_file=True, mode="overwrite", on_error="quarantine", input_format="ndjson")
        assert caught.value.reason == "bad-option"
    assert replaced.read_text() == text
