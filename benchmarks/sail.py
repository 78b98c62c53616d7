"""PySail as a contender: a client of `sail_worker`, which runs in an environment of its own (`make bench` makes it).

Owns the pipe to it. PySail corrupts shredded writes and does not take unshredded Variant columns of other writers, so
that it reads unshredded files that it has written itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.data import ROOT, DataSet, scratch

_PYTHON = Path(os.environ.get("PYSAIL_PYTHON") or ROOT / ".venv/sail/bin/python")


def is_installed() -> bool:
    """Whether PySail's environment is there."""
    return _PYTHON.exists()


def version() -> str:
    """PySail's version."""
    if not is_installed():
        return "not installed"
    code = "from importlib.metadata import version; print(version('pysail'))"
    return subprocess.run([_PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@cache
def unshredded_directory(data: DataSet) -> str:
    """The data set as unshredded Variant, written by PySail."""
    directory = scratch() / f"{data.name}-sail"
    _ask({"write": [str(data.file), str(directory)]})
    return str(directory)


def query(directory: str, *expressions: str) -> list[Any]:
    """The first row of a query."""
    answer: list[Any] = _ask({"query": [directory, *expressions]})
    return answer


def _ask(command: dict[str, Any]) -> Any:
    worker = _worker()
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(json.dumps(command) + "\n")
    worker.stdin.flush()
    answer = json.loads(worker.stdout.readline())
    if isinstance(answer, dict):
        raise RuntimeError(f"PySail: {answer['error']}")
    return answer


@cache
def _worker() -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [_PYTHON, Path(__file__).with_name("sail_worker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RUST_LOG": "off"},
        text=True,
    )
    assert worker.stdout
    assert json.loads(worker.stdout.readline()) == "ready"
    return worker
