"""The import contracts bite: a module that imports upwards is found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# A line that breaks a contract, by module, and the name of the contract.
BREACHES = {
    "types/path.py": ("from parquet_variant.files.parquet import sources", "Layers point one way"),
    "layouts/spellings.py": ("import pyspark", "Only the Spark layer and the layers above it know PySpark"),
}


def test_an_upward_import_breaks_the_contract(tmp_path: Path) -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module, (line, _) in BREACHES.items():
        with (tmp_path / "src" / "parquet_variant" / module).open("a") as file:
            file.write(f"\n{line}\n")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    here = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    broken = re.findall(r"^(.*) BROKEN", done.stdout, re.MULTILINE)
    assert sorted(broken) == sorted(contract for _, contract in BREACHES.values())
