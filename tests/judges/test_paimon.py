"""Format tables of Paimon read our files as the rules of engines predict."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from benchmarks.engine_runs import write_fixtures

import parquet_variant as pv

PYTHON = Path(os.environ.get("JUDGES", ""), "paimon/bin/python")


def test_predictions_are_what_paimon_does(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("pypaimon is not installed: run make judges")
    files = [path for path in write_fixtures(tmp_path).values() if path.is_file()]
    process = Path(__file__).with_name("paimon_process.py")
    done = subprocess.run([PYTHON, process, *files], capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(files) > 10
    for file, answer in zip(files, answers, strict=True):
        (predicted,) = pv.open(file).compat(require={"paimon": "2.1"}).engines
        if "error" in answer:
            assert predicted.verdict == "refuses", file
            assert "not recognized" in answer["error"]
        else:
            assert predicted.verdict == "struct", file
            assert (answer["rows"], answer["type"][:6]) == (len(pv.open(file)), "struct")
