"""``variant delete``: delete the rows of a Delta table that meet a condition.

Owns the options and the report. Leaves the work to `delta.delete`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.delta_commands.change import report_change
from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    where: Annotated[str | None, typer.Option(help="SQL: 'v:kind::string = \\'x\\' AND k < 5'.")] = None,
    every_row: Annotated[bool, typer.Option("--all", help="Delete every row.")] = False,
    as_json: AsJson = False,
) -> int:
    """Delete the rows of a Delta table for which a condition is true."""
    from parquet_variant.delta import delete

    if (where is None) != every_row:
        raise typer.BadParameter("say which rows: --where CONDITION, or --all for every row")
    return report_change(delete(table, where), as_json=as_json)
