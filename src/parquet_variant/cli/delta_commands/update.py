"""``variant update``: change columns, or paths inside of Variants, of rows of a Delta table.

Owns the options and the report. Leaves the work to `delta.update`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.delta_commands.change import read_assignments, report_change
from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="COLUMN=SQL", help="A column or path and its value: v:a.b='x'.")
    ],
    where: Annotated[str | None, typer.Option(help="SQL: 'v:kind::string = \\'x\\' AND k < 5'.")] = None,
    every_row: Annotated[bool, typer.Option("--all", help="Change every row.")] = False,
    as_json: AsJson = False,
) -> int:
    """Change the rows of a Delta table for which a condition is true."""
    from parquet_variant.delta import update

    if (where is None) != every_row:
        raise typer.BadParameter("say which rows: --where CONDITION, or --all for every row")
    return report_change(update(table, read_assignments(set_, "--set"), where), as_json=as_json)
