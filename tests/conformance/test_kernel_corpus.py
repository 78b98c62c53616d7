"""No kernel reads past the end of its bytes: the corpora, and small changes of them, next to forbidden memory."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from fuzz.children import run_child, start_child
from parquet_variant import Variant
from parquet_variant.encoding.validate import find_faults

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="mprotect is POSIX")

CHILD = Path(__file__).with_name("guarded.py")
MALFORMED = Path(__file__).parent.parent / "data" / "malformed"


def _run(command: str, files: list[Path]) -> dict[str, dict[str, str]]:
    lines = [line.split(" ", 1) for line in run_child(CHILD, command, *map(str, files)).stdout.splitlines()]
    return {name: json.loads(found) for name, found in lines}


def test_a_read_past_the_end_is_seen() -> None:
    assert start_child(CHILD, "prove").returncode in (-signal.SIGSEGV, -signal.SIGBUS)


@pytest.mark.slow
def test_the_malformed_corpus() -> None:
    files = sorted(MALFORMED.glob("*.value"))
    found = _run("values", files)
    assert len(found) == len(files) > 70
    for file in files:
        outcomes = found[file.name]
        faults = find_faults(file.with_suffix(".metadata").read_bytes(), file.read_bytes())
        assert faults and outcomes["sound"] == outcomes["validate"] == "ok"
        value = Variant(file.with_suffix(".metadata").read_bytes(), file.read_bytes())
        try:
            value.to_json()
        except ValueError as error:
            if getattr(error, "reason", None) == "bad-time":
                continue  # the writing kernel does not check times of day
            assert outcomes["to_json"] == getattr(error, "reason", None)
            assert outcomes["normalize"] != "ok"
        else:
            assert outcomes["to_json"] == "ok"


@pytest.mark.slow
def test_the_parquet_corpora(parquet_test_data: Path) -> None:
    files = sorted((parquet_test_data / "variant").glob("*.value"))
    files += sorted((parquet_test_data / "shredded_variant").glob("*.bin"))
    found = _run("values", files)
    assert len(found) == len(files) > 100
    for name, outcomes in found.items():
        for kernel in ("to_json", "profile", "validate", "normalize", "strip", "get $ variant", "variant_type"):
            assert outcomes[kernel] == "ok", (name, kernel)


def test_the_json_suite(json_test_suite: Path) -> None:
    files = sorted(json_test_suite.rglob("*.json"))
    found = _run("texts", files)
    assert len(found) == len(files) > 150
    for name, outcome in found.items():
        assert outcome == "ok" if name.startswith("y_") else name.startswith("i_") or outcome != "ok", name
