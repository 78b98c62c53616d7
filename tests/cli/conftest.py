"""How the tests of the command line run it: in this process, with what it printed and its exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
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
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """The one line that a failed command printed; where that took long, progress stands before it."""
        assert self.out == ""
        (line,) = (line for line in self.err.splitlines() if not re.fullmatch(r".*, \d+ s", line))
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


@pytest.fixture(scope="session")
def earthquakes(tmp_path_factory: pytest.TempPathFactory, usgs_sample: Path) -> Path:
    """The sample as a shredded table."""
    dest = tmp_path_factory.mktemp("earthquakes") / "table"
    pv.ingest(usgs_sample, dest)
    return dest
