"""``variant sql-view``: the statement of a typed view over a Variant column.

Owns the options. Leaves the statement to `sql_query.sql_view`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.choices import SqlEngine
from parquet_variant.cli.options.common import Column, Path


def command(
    path: Path,
    engine: Annotated[SqlEngine, typer.Option(help="Whose SQL.")] = "duckdb",
    name: Annotated[str, typer.Option(help="The name of the view.")] = "events",
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", help="'name=$.path:type', or an ordinary column; by default what is shredded."),
    ] = None,
    column: Column = None,
) -> int:
    """Print a CREATE VIEW statement: a Variant's paths as typed columns."""
    from parquet_variant.cli.options.select import read_selects
    from parquet_variant.sql_query.sql_view import sql_view

    columns = read_selects(select) if select else None
    print(sql_view(path, columns, name=name, engine=engine, column=column) + ";")
    return 0
