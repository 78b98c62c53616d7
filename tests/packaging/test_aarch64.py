"""Kernels for aarch64 run under QEMU, and give what those for this machine give."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.kernels.machine_code.library import AARCH64, X86_64, levels_of_wheel

QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
SOURCE = Path(__file__).with_name("parse_corpus.c")

pytestmark = [
    pytest.mark.skipif(X86_64 not in levels_of_wheel(), reason="compares with x86-64"),
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs the package ziglang"),
    pytest.mark.skipif(QEMU is None, reason="needs qemu-user"),
]


def _program(folder: Path, level: str) -> Path:
    pytest.importorskip("numba", reason="a kernel is compiled here")
    from parquet_variant.kernels.machine_code.objects import build_objects
    from parquet_variant.kernels.tapes.parse_json import parse_rows

    (content,) = build_objects(parse_rows, (level,))
    compiled = folder / f"{level}.o"
    compiled.write_bytes(content)
    target = "aarch64" if level == AARCH64 else "x86_64"
    program = folder / level
    command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-linux-musl", "-O1", "-static"]
    subprocess.run([*command, str(SOURCE), str(compiled), "-o", str(program)], check=True, capture_output=True)
    return program


def test_json_is_parsed_as_on_x86_64(tmp_path: Path, usgs_sample: Path) -> None:
    lines = usgs_sample.read_text().splitlines()[:300]
    text = tmp_path / "lines.ndjson"
    text.write_text(
        "".join(f"{line}\n" for line in [*lines, '{"a": "\\u00e9\\n", "a": 1}', "[1, -0.5e300, 12.50]", "{"])
    )
    here = subprocess.run([_program(tmp_path, X86_64), text], capture_output=True, text=True, check=True).stdout
    command = [str(QEMU), str(_program(tmp_path, AARCH64)), str(text)]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert here == there
    assert here.startswith("303 rows")
