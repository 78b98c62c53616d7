"""``variant history``: the commits of a Delta table.

Owns how they are shown. Leaves reading them to `delta.history`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    limit: Annotated[int | None, typer.Option(help="Only the newest so many.", min=1)] = None,
    as_json: AsJson = False,
) -> int:
    """List the commits of a Delta table, newest first."""
    from parquet_variant.cli.output.report import print_grid, print_json
    from parquet_variant.delta import history

    commits = history(table, limit)
    if as_json:
        for commit in commits:
            print_json(commit)
        return 0
    names = ["version", "timestamp", "operation", "engineInfo"]
    print_grid(names, [[commit.get(name) for name in names] for commit in commits], right=["version"])
    return 0
