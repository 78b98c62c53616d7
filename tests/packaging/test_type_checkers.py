"""What a type checker sees through `pv.`: every public name, also of the packages; none that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import parquet_variant as pv

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
import parquet_variant as pv

rows: pv.VariantArray = pv.read_json("a.ndjson")
result: pv.parquet.IngestResult = pv.parquet.ingest("a.ndjson", "a", compression="zstd")
back: pv.VariantArray = pv.parquet.read("a")
pv.delta.read("table")
pv.vortex.read("a.vortex")
"""
PACKAGES = {"pv": pv, "pv.parquet": pv.parquet, "pv.delta": pv.delta, "pv.vortex": pv.vortex, "pv.spark": pv.spark}
ALL = "".join(f"{package}.{name}\n" for package, module in PACKAGES.items() for name in module.__all__)
BAD = """
pv.parse_jsn("1")
pv.parquet.ingst("a.ndjson", "a")
pv.delta.raed("table")
"""


def test_mypy_knows_every_public_name(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(GOOD + ALL + BAD)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(ROOT / ".mypy_cache"), str(program)],
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.partition("error: ")[2] for line in done.stdout.splitlines() if "error: " in line]
    wrong = ["parse_jsn", "ingst", "raed"]
    assert len(lines) == len(wrong), done.stdout + done.stderr
    assert all(f'"{name}"' in line for name, line in zip(wrong, lines, strict=True))
