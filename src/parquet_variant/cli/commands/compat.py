"""``variant compat``: which of the installed engines read a file, and whether they return equal values.

Owns the presentation and the exit code. Leaves the runs to `compatibility`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.failure import DATA_PROBLEM
from parquet_variant.cli.options.common import AsJson


def command(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A Parquet or Vortex file, a directory, or a Delta or Iceberg table.")
    ],
    engine: Annotated[
        list[str] | None, typer.Option(help="An engine to try, such as duckdb; repeatable (default: all).")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which an engine is stopped.", min=1)] = 120,
    python: Annotated[
        list[str] | None,
        typer.Option(metavar="PYTHON", help="The Python of another environment with engines; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Try the installed engines on a copy of your files, and compare the values that they return.

    Verdicts: equal, struct (the physical columns, with equal values), differs, refused, not installed. The exit code is
    1 if values differ.
    """
    from parquet_variant.cli.output import Progress, print_json
    from parquet_variant.quality.compatibility.run import compat

    with Progress() as progress:
        report = compat(path, engines=engine, timeout=timeout, pythons=python or (), progress=progress)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report)
    return DATA_PROBLEM if any(result.verdict == "differs" for result in report.engines) else 0
