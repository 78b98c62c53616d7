"""Commands and files of the journeys: a new user with a folder of JSON."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import parquet_variant
from parquet_variant.cli.app import main


@dataclass(frozen=True)
class Shell:
    """The outcome of a command line."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of the output, without repeated spaces."""
        return [" ".join(line.split()) for line in self.out.splitlines()]


_SHELL = {"|", ";", "&&", ">", "<"}


@pytest.fixture
def sh(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Shell]:
    """Run a command line as a user types it, in a folder with ``events.ndjson``.

    A single command runs in this process, which is faster; a line with a pipe runs in a shell.
    """
    rows = [
        {"kind": ("click", "view", "buy")[number % 3], "mag": number / 2, "user": {"id": number, "name": f"u{number}"},
         "items": [{"n": number}], "mixed": number if number % 2 else f"s{number}"}
        for number in range(30)
    ]  # fmt: skip
    (tmp_path / "events.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> Shell:
        words = shlex.split(line)
        if words[0] == "variant" and not _SHELL.intersection(words):
            capfd.readouterr()
            code = main(words[1:])
            captured = capfd.readouterr()
            return Shell(code, captured.out, captured.err)
        command = f'variant() {{ "{sys.executable}" -m parquet_variant.cli "$@"; }}; {line}'
        source = Path(parquet_variant.__file__).parent.parent
        environment = os.environ | {"PYTHONPATH": str(source)}
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        return Shell(done.returncode, done.stdout, done.stderr)

    return run
