"""Progress: nothing for quick commands, signs of life for slow ones, always on stderr."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import time
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.io import parallel as module
from parquet_variant.io.parallel import ShownProgress


def test_a_quick_command_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ShownProgress() as progress:
        progress("write", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_slow_step_shows_that_it_is_alive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.02)
    with ShownProgress() as progress:
        progress("write", 1, 2)
        time.sleep(0.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("write: 1 of 2, ") >= 2


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with ShownProgress() as progress:
        progress("infer", 0, 2)
        progress("write", 1, 2)
        time.sleep(0.3)
    assert "write" in screen.getvalue()
    assert "1 of 2" in screen.getvalue()


def test_an_error_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="mine"), ShownProgress():
        raise ValueError("mine")


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_an_ingest_reports_stored_bytes_and_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = "".join(json.dumps({"id": i, "text": f"{i:x}" * 50}) + "\n" for i in range(100_000)).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    reports: list[tuple[str, int, int, int]] = []
    monkeypatch.setattr(ShownProgress, "show_bytes", lambda self, *report: reports.append(report))
    pv.ingest(tmp_path / name, tmp_path / "table", progress=True, threads=1)
    size = (tmp_path / name).stat().st_size
    written = [report for report in reports if report[0] == "write"]
    assert len(written) > 2
    assert written == sorted(written)  # bytes and rows grow
    assert written[-1] == ("write", size, size, 100_000)
    assert size / 10 < written[0][1] < size


def test_bytes_rows_and_the_time_left_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.02)
    with ShownProgress() as progress:
        progress.show_bytes("write", 0, 80_000_000, 0)
        time.sleep(0.1)
        progress.show_bytes("write", 20_000_000, 80_000_000, 1000)
        time.sleep(0.3)
    assert re.search(r"write: 20\.0 of 80\.0 MB, [0-9,]+ rows/s, \d+ s left, 0 s\n", capsys.readouterr().err)


def test_progress_is_true_false_or_a_function(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    pv.ingest([{"a": 1}], tmp_path / "a", progress=lambda *call: calls.append(call))
    assert calls[-1] == ("write", 1, 1)
    pv.ingest([{"a": 1}], tmp_path / "b", progress=False)
    with pytest.raises(pv.VariantError, match="progress is 3: give True, or a function"):
        pv.ingest([{"a": 1}], tmp_path / "c", progress=3)  # type: ignore[arg-type]
