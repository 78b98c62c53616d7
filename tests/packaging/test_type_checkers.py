"""What a type checker sees through `pv.`: every public name, also of the packages; none that is not there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import parquet_variant as pv

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
import parquet_variant as pv

rows: pv.VariantArray = pv.read_json("a.ndjson")
result: pv.IngestResult = pv.ingest("a.ndjson", "a", compression="zstd")
back: pv.VariantArray = pv.open("a").read()
pv.open("table").read()
pv.open("a.vortex").read()
"""
PACKAGES = {"pv": pv, "pv.vortex": pv.vortex, "pv.spark": pv.spark}
ALL = "".join(f"{package}.{name}\n" for package, module in PACKAGES.items() for name in module.__all__)
BAD = """
pv.parse_jsn("1")
pv.ingst("a.ndjson", "a")
pv.open("table").raed()
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


def _readme() -> list[str]:
    """The Python of the README, each block by itself."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_mypy_has_nothing_to_say_of_the_readme(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    files = []
    for number, block in enumerate(_readme()):
        files.append(tmp_path / f"readme{number}.py")
        files[-1].write_text(block)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(ROOT / ".mypy_cache"), *map(str, files)],
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(files) == 2
    assert (done.stdout, done.returncode) == ("", 0)


def test_pyright_knows_every_public_name_and_the_readme(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    if shutil.which("node") is None:
        pytest.skip("pyright needs Node")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11", "reportUnusedExpression": False})
    )
    (tmp_path / "program.py").write_text(GOOD + ALL + BAD)
    for number, block in enumerate(_readme()):
        (tmp_path / f"readme{number}.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)],
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot be had here: {(done.stderr or done.stdout).strip()[-200:]}")
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = [(Path(item["file"]).name, item["message"]) for item in found if item["severity"] == "error"]
    wrong = ["parse_jsn", "ingst", "raed"]
    assert len(errors) == len(wrong), errors
    assert all(file == "program.py" and f'"{name}"' in text for name, (file, text) in zip(wrong, errors, strict=True))
