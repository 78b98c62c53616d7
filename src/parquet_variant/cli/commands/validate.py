"""``variant validate``: Parquet files against the specification.

Owns the report and the exit code. Leaves the rules to `parquet.validate`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.failure import DATA_PROBLEM
from parquet_variant.cli.options.common import AllowOutside, AsJson, Column, Threads


def command(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Parquet files, directories, globs or URIs, or Delta tables.")
    ],
    column: Column = None,
    limit: Annotated[int, typer.Option(help="Violations to list for each column of a file.", min=1)] = 1000,
    threads: Threads = None,
    allow_outside: AllowOutside = False,
    as_json: AsJson = False,
) -> int:
    """Check every value of Parquet files.

    The exit code is 1 if one breaks the specification. Also says which engines will not read the files, and why.
    """
    from parquet_variant.cli.options.tables import data_files
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.cli.output.report import print_json
    from parquet_variant.parquet import validate

    with Progress() as progress:
        progress("validate", 0, 1)
        files = [file for path in paths for file in data_files(path, allow_outside=allow_outside)]
        report = validate(files, column=column, limit=limit, threads=threads)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report)
    return 0 if report.ok else DATA_PROBLEM
