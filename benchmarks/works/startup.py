"""Importing, first results and commands of fresh processes, as ratios to ``import pyarrow``; building the kernels.

All of it in an environment as a user has one: the wheel with its commands and SQL, nothing else, no cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from benchmarks.harness import OURS, Work

_PYARROW = "import pyarrow"
_FIRST = "import parquet_variant as pv; pv.parse_json(['{\"a\": 1}'])"
_COMMAND = "import sys; sys.argv = {words!r}; from parquet_variant.cli.__main__ import run; sys.exit(run())"
_BUILT = {"PARQUET_VARIANT_KERNELS": "built"}
_SOURCES = Path(__file__).parents[2]


def works() -> Iterator[Work]:
    yield _against_pyarrow("import parquet_variant", "import parquet_variant", 1.5)
    yield _against_pyarrow("from start to the first parse_json, nothing cached", _FIRST, 2.0)
    yield _against_pyarrow("variant --help", _COMMAND.format(words=["variant", "--help"]), 0.8)
    small = _small_file()
    for name, words in {
        "query": ["query", small, "--select", "$.a"],
        "cat": ["cat", small],
        "inspect": ["inspect", small],
    }.items():
        yield _against_pyarrow(f"variant {name} of a small file", _COMMAND.format(words=["variant", *words]), 2.5)


def _against_pyarrow(name: str, code: str, most: float) -> Work:
    """A work whose goal is a multiple of what importing pyarrow takes."""
    sides = {OURS: partial(python, code, **_BUILT), _PYARROW: partial(python, _PYARROW)}
    return Work(f"startup: {name}", sides, {_PYARROW: 1 / most})


def _small_file() -> str:
    import parquet_variant as pv

    path = str(Path(tempfile.mkdtemp()) / "small.parquet")
    pv.write(
        path, pv.parse_json([f'{{"a": {number}, "b": "text"}}' for number in range(100)]), schema="a bigint, b string"
    )
    return path


def kernels() -> str:
    """Seconds of building all kernels, nothing cached, and what is installed."""
    build = "import sys; from parquet_variant.kernels.machine_code.building import build; "
    with tempfile.TemporaryDirectory() as folder:
        code = f"{build}from pathlib import Path; build(['x86-64-v3', 'x86-64'], Path({folder!r}) / 'libraries')"
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(sys.executable, code, PARQUET_VARIANT_CACHE=f"{folder}/cache")
        wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        size = sum(path.stat().st_size for path in Path(folder, "libraries").iterdir()) / 1e6
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        "### startup: building all kernels for two CPU levels, nothing cached\n\n"
        "| | measured | goal | |\n|---|---|---|---|\n"
        f"| wall, s | {wall:.1f} | 45 | {'met' if wall <= 45 else 'missed'} |\n"
        f"| CPU, s | {spent:.1f} | | |\n"
        f"| libraries, MB | {size:.1f} | | |\n"
    )


@cache
def _users_python() -> str:
    """The interpreter of a new environment into which the wheel was installed."""
    folder = Path(tempfile.mkdtemp())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(_SOURCES)]
    subprocess.run(wheel, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    (built,) = folder.glob("*.whl")
    python = str(folder / "venv/bin/python")
    subprocess.run([python, "-m", "pip", "--quiet", "install", f"{built}[cli,sql]"], check=True, capture_output=True)
    return python


def python(code: str, **env: str) -> int:
    """Run code in a new process of a user's environment."""
    return _run(_users_python(), code, **env)


def command(*words: str) -> int:
    """Run ``variant`` with words in a new process of a user's environment."""
    return python(_COMMAND.format(words=["variant", *words]), **_BUILT)


def _run(python: str, code: str, **env: str) -> int:
    # Compiled modules are kept, as pip does when it installs; nothing comes from a checkout.
    ours = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"} if python != sys.executable else set()
    variables = {name: value for name, value in os.environ.items() if name not in ours} | env
    run = subprocess.run([python, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.returncode
