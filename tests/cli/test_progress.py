"""Progress: nothing for quick commands, signs of life for slow ones, always on stderr."""

from __future__ import annotations

import io
import sys
import time

import pytest

from parquet_variant.cli import output as module
from parquet_variant.cli.output import Progress


def test_a_quick_command_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress("write", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_slow_step_shows_that_it_is_alive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.02)
    with Progress() as progress:
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
    with Progress() as progress:
        progress("infer", 0, 2)
        progress("write", 1, 2)
        time.sleep(0.3)
    assert "write" in screen.getvalue()
    assert "1/2" in screen.getvalue()


def test_an_error_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="mine"), Progress():
        raise ValueError("mine")
