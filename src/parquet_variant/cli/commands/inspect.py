"""``variant inspect``, ``validate`` and ``explore``: reports about files; ``doctor`` and ``warmup``: the installation.

Owns the presentation of the reports, the exit code, and the file of a page. Leaves the figures to `Table.inspect`,
predictions to `InferenceResult`, the rules to `Table.validate`, the page to `explorer`, Java to `spark.session`, and
kernels to `machine_code`.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from typer import Argument, BadParameter, Option

from parquet_variant.cli.options import common
from parquet_variant.cli.options.sources import data_files, open_table, with_stdin
from parquet_variant.cli.output import DATA_PROBLEM, print_grid, print_json, print_result
from parquet_variant.errors import VariantError
from parquet_variant.io.parallel import ShownProgress
from parquet_variant.support.options import PathOrder
from parquet_variant.support.records import counted, human_bytes

if TYPE_CHECKING:
    from parquet_variant.files.parquet.operations.inspect import ColumnReport
    from parquet_variant.types.path import VariantPath


def inspect(
    path: common.Path,
    column: common.Column = None,
    predict_from: list[str] | None = Option(
        None, metavar="SRC", help="The original JSON: compare typed shares with the predicted ones; repeatable."
    ),
    top: int | None = Option(None, help="Number of paths to list.", min=1),
    sort: PathOrder = Option("file", help="Order of the paths, largest first."),
    catalog: common.Catalog = None,
    allow_outside: common.AllowOutside = False,
    as_json: common.AsJson = False,
) -> None:
    """Show which paths are shredded, how completely, and their sizes.

    Reads only footers. For Vortex files: the layout of the column, and its typed paths.
    """
    from parquet_variant.files.parquet.operations.inspect import inspect, share_text

    opened = open_table(path, catalog, allow_outside=allow_outside, input_format="auto")
    if opened.format == "vortex":
        if predict_from:
            raise BadParameter("--predict-from is not supported for Vortex files")
        _report_vortex(opened.inspect(column=column), as_json=as_json)
        return

    files = data_files(opened)
    report = inspect(files, column=column)
    comparisons = _compared(files, report.columns[0], predict_from) if predict_from else {}
    if as_json:
        shares = comparisons.items()
        predictions = [{"path": str(place), "predicted": bound, "actual": actual} for place, (bound, actual) in shares]
        print_json(report.to_dict() | ({"predictions": predictions} if predict_from else {}))
        return
    print(report.text(sort, top))
    if predict_from:
        rows = [(place.shorthand, *map(share_text, shares)) for place, shares in comparisons.items()]
        print()
        print_grid(["typed share of values", "predicted", "actual"], rows, right=["predicted", "actual"])


def _report_vortex(report: Any, *, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
        return
    print(f"{counted(report.files, 'Vortex file')}, {counted(report.rows, 'row')}, {human_bytes(report.bytes)}")
    print(f"checksums in {counted(report.checked, 'file')}")
    if report.other_columns:
        print(f"other columns: {', '.join(report.other_columns)}")
    for shown in report.columns:
        layouts = ", ".join(f"{layout} in {counted(files, 'file')}" for layout, files in shown.layouts.items())
        is_exact = "with" if shown.has_texts else "without"
        origin = f"; made of JSON, {is_exact} its exact text" if shown.is_json else ""
        print(f"\n{shown.name}: {shown.dtype}, {layouts}; statistics of {counted(shown.ranges, 'range')}{origin}")
        if shown.types:
            print_grid(["path", "typed as"], [(name, ", ".join(types)) for name, types in shown.types.items()])
        if shown.in_bytes:
            print_grid(["not typed", "reason"], list(shown.in_bytes.items()))


def _compared(
    files: list[str], column: ColumnReport, sources: list[str]
) -> dict[VariantPath, tuple[float | None, float | None]]:
    """Compare the typed shares of the files with those predicted from the original JSON."""
    from parquet_variant.files.parquet.format.files import locate
    from parquet_variant.inference.policies.explicit import ExplicitPolicy
    from parquet_variant.ingestion.ingest import profile
    from parquet_variant.layouts.shredding_schema import ShreddingSchema

    with ShownProgress() as progress:
        data = profile(sources, on_error="quarantine", progress=progress)
    schema = ShreddingSchema.from_parquet(locate(files)[0].path, column.name)
    return ExplicitPolicy(schema).choose(data).compared_with(column.paths)


def validate(
    paths: list[str] = Argument(..., metavar="PATH...", help="Parquet files, directories, globs or URIs, or tables."),
    column: common.Column = None,
    limit: int = Option(1000, help="Number of violations to list per column and file.", min=1),
    threads: common.Threads = None,
    catalog: common.Catalog = None,
    allow_outside: common.AllowOutside = False,
    as_json: common.AsJson = False,
) -> int:
    """Check every value of Parquet files against the specification.

    The exit code is 1 if a value violates it. Also reports which engines cannot read the files, and why.
    """
    from parquet_variant.files.parquet.validation.validate import validate

    with ShownProgress() as progress:
        progress("validate", 0, 1)
        tables = [open_table(path, catalog, allow_outside=allow_outside, input_format="auto") for path in paths]
        files = [file for table in tables for file in data_files(table)]
        unannotated = all(table.format == "delta" for table in tables)
        report = validate(files, column=column, limit=limit, threads=threads, unannotated=unannotated)
    print_result(report.to_dict(), [report], as_json=as_json)
    return 0 if report.ok else DATA_PROBLEM


def explore(
    path: str = Argument(..., metavar="PATH", help="Parquet or Vortex files, a table, or JSON."),
    html: FilePath = Option(
        FilePath("explore.html"), "--html", "-o", metavar="FILE", help="The self-contained page to write."
    ),
    serve: bool = Option(False, help="Serve the page on this machine, with rows and SQL."),
    port: int = Option(0, help="With --serve: the port; 0 for any free port.", min=0, max=65535),
    compare: str | None = Option(None, metavar="OTHER", help="Compare with this source, such as an earlier state."),
    version: common.Version = None,
    catalog: common.Catalog = None,
    column: common.Column = None,
    as_json: common.AsJson = False,
) -> None:
    """Write or serve a page that shows what is typed, what residuals cost, and what a query would read.

    Reads footers and a sample of at most 20,000 rows.
    """
    with with_stdin([path]) as (source,):
        report = open_table(source, catalog, column=column, version=version).explore(compare=compare)
    if as_json:
        print_json(report.to_dict())
        return
    if not serve:
        size = report.save(html).stat().st_size
        print(f"{html}: {human_bytes(size)}; open it in a browser, or use --serve for rows and SQL")
        return
    from parquet_variant.quality.explorer.serve import ExploreServer

    server = ExploreServer(report, port)
    print(f"{server.url}\nread-only, for this machine only; Ctrl-C stops it", flush=True)
    with closing(server):  # not before it serves: closing waits for the end of serving
        server.serve_forever()


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


def doctor(as_json: common.AsJson = False) -> int:
    """Report what is installed, and what is missing for which command."""
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from parquet_variant._version import __version__
    from parquet_variant.io.parallel import available_cpus
    from parquet_variant.kernels.machine_code.entry_points import machine_code
    from parquet_variant.spark.session import find_java

    try:
        kernels = f"{machine_code().mode}, for {machine_code().level}"
    except VariantError as error:
        kernels = f"error: {error.message}"
    java: str | None = None
    with suppress(VariantError):
        java = f"{find_java().version}, {find_java().java}"
    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None
    state = {
        "parquet-variant": __version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "CPUs": available_cpus(),
        "memory": None if memory is None else human_bytes(memory),
        "kernels": kernels,
        **versions,
        "Java": java,
    }
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
    return DATA_PROBLEM if kernels.startswith("error") else 0


def warmup(as_json: common.AsJson = False) -> None:
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
