"""``variant doctor``: what is installed, and what commands need; ``variant warmup``: compiling kernels.

Owns the reports. Leaves finding Java to `spark.session`, and kernels to `machine_code`.
"""

from __future__ import annotations

import time

from parquet_variant.cli.options.common import AsJson
from parquet_variant.cli.output import DATA_PROBLEM, print_grid, print_json, print_result
from parquet_variant.errors import VariantError
from parquet_variant.io.engine import ShownProgress
from parquet_variant.support.report_text import human_bytes

_PACKAGES = (
    *("numpy", "pyarrow", "numba", "duckdb", "sqlglot", "pyspark", "obstore", "vortex-data", "pandas", "polars"),
    *("typer", "rich"),
)
# Features that need further packages: the packages, and the extra that installs them.
_NEEDS = {
    "query with SQL": (("duckdb", "sqlglot"), "sql"),
    "Delta tables": (("obstore",), "delta"),
    "Vortex files": (("vortex-data",), "vortex"),
    "--engine spark": (("pyspark", "Java"), "spark"),
}


def doctor(as_json: AsJson = False) -> int:
    """Report what is installed, and what is missing for which command."""
    import os
    import platform

    from parquet_variant._version import __version__
    from parquet_variant.io.parallel import available_cpus
    from parquet_variant.kernels.machine_code.entry_points import machine_code
    from parquet_variant.spark.session import find_java

    try:
        kernels = f"{machine_code().mode}, for {machine_code().level}"
    except VariantError as error:
        kernels = f"error: {error.message}"
    try:
        java: str | None = f"{find_java().version}, {find_java().java}"
    except VariantError:
        java = None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    state = {
        "parquet-variant": __version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "CPUs": available_cpus(),
        "memory": None if memory is None else human_bytes(memory),
        "kernels": kernels,
        **{name: _version(name) for name in _PACKAGES},
        "Java": java,
    }
    works = not str(state["kernels"]).startswith("error")
    missing = {
        need: {"missing": absent, "run": f"pip install 'parquet-variant[{extra}]'"}
        for need, (names, extra) in _NEEDS.items()
        if (absent := [name for name in names if state[name] is None])
    }
    if as_json:
        print_json({"found": state, "missing": missing})
    else:
        print_grid(["what", "found"], list(state.items()))
        for need, remedy in missing.items():
            run = remedy["run"] if remedy["missing"] != ["Java"] else "install Java 17 or newer, and set JAVA_HOME"
            print(f"{need}: {' and '.join(remedy['missing'])} missing: {run}")
        if not missing:
            print("nothing is missing: all commands are available")
    return 0 if works else DATA_PROBLEM


def warmup(as_json: AsJson = False) -> None:
    """Compile kernels that were not built with the package, as in a checkout or on rare platforms."""
    from parquet_variant.kernels.machine_code.building import warmup
    from parquet_variant.kernels.machine_code.entry_points import machine_code
    from parquet_variant.kernels.machine_code.library import cache_home

    begun = time.monotonic()
    with ShownProgress() as progress:
        compiled = warmup(progress)
    seconds, level = round(time.monotonic() - begun, 1), machine_code().level
    line = f"nothing to compile: the kernels for {level} were built with the package"
    if compiled:
        line = f"compiled kernels for {level} in {seconds} s, cached in {cache_home()}"
    document = {"kernels": machine_code().mode, "level": level, "seconds": seconds}
    print_result(document | {"cache": cache_home() if compiled else None}, [line], as_json=as_json)


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
