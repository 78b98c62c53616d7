"""How the tests of the command line run it: in this process, with what it printed and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from parquet_variant.cli.app import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line that a failed command printed."""
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("variant: error: ")
        return line.removeprefix("variant: error: ")


Run = Callable[..., Done]


@pytest.fixture
def variant(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> Done:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
