"""Print the newest releases of Numba and llvmlite on PyPI, as requirements for pip, if others are installed.

Prints nothing but a reason to stderr if they are installed, or if the package index cannot be reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

_NAMES = ("numba", "llvmlite")


def newest() -> dict[str, str] | None:
    """Return the newest version of each package that runs on this Python; None if the index cannot be reached."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--dry-run"]
    command += ["--no-deps", "--ignore-installed", "--retries", "1", "--report", "-", *_NAMES]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if run.returncode != 0:
        print(f"skipped, because the package index did not answer: {run.stderr.strip()[-200:]}", file=sys.stderr)
        return None
    found = [package["metadata"] for package in json.loads(run.stdout)["install"]]
    return {package["name"]: package["version"] for package in found}


def main() -> None:
    versions = newest()
    if versions is None:
        return
    installed = {name: version(name) for name in _NAMES}
    if versions == installed:
        print(f"the newest releases are installed, and all other tests use them: {installed}", file=sys.stderr)
        return
    print(*(f"{name}=={number}" for name, number in versions.items()))


if __name__ == "__main__":
    main()
