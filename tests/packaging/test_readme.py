"""The README is correct: its commands exist, its Python runs, its output is what `make demo` prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.cli.app import COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def test_the_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b(?!,)", "\n".join(blocks("")))) <= targets


def test_every_command_is_shown_and_is_one() -> None:
    shown = re.findall(r"^variant ([a-z-]+)", "\n".join(blocks("")), re.MULTILINE)
    assert set(shown) == {*COMMANDS, *GROUPS}


def test_the_python_tour_runs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.ndjson.gz").write_text('{"a": 1}\n')
    (code,) = (block for block in blocks("python") if "local_session" not in block)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    # The tour casts "two" to bigint.
    messages = [line for line in done.stderr.splitlines() if "1 value at $.id::bigint could not be cast" not in line]
    assert (done.returncode, messages) == (0, [])
    assert (tmp_path / "logs.parquet").is_dir()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_prints_what_the_readme_shows() -> None:
    done = subprocess.run([sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    if "no-java" in done.stderr or "Java 17 or newer" in done.stderr:
        pytest.skip("no Java")
    assert done.returncode == 0, done.stderr
    (shown,) = (block for block in blocks("") if "The shredding schema, with reasons" in block)
    assert without_figures(done.stdout) == without_figures(shown)


def without_figures(text: str) -> list[str]:
    """The lines without what differs from run to run and machine to machine: seconds, sizes, versions."""
    lines = [re.sub(r"\d[\d,.]*( [kM]?B)?", "#", line).rstrip() for line in text.strip().splitlines()]
    return [line for line in lines if not line.startswith("Spark ")]
