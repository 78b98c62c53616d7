"""``variant schema``: the typed columns of a table of Variants, as ``typed(t)`` has them in SQL.

Owns the options and the grid. Leaves the columns to `sql_query.typed_view`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from parquet_variant.cli.options.common import AsJson, At, Column, Path, Version


def command(
    path: Path,
    column: Column = None,
    names: Annotated[
        Literal["short", "path"],
        typer.Option(help="Name columns by the shortest unique end of a path, or all keys."),
    ] = "short",
    version: Version = None,
    at: At = None,
    as_json: AsJson = False,
) -> int:
    """Print the columns of typed(t): ordinary columns, and the shredded paths with their types.

    PATH can also be JSON, or - for standard input.
    """
    from parquet_variant.cli.options.sources import queryable
    from parquet_variant.cli.output import print_grid, print_json
    from parquet_variant.query.sql_types import sql_type_name

    with queryable(path, column=column, version=version, at=at) as table:
        view = table.typed(names=names)
    rows = []
    for field in view.schema:
        needed = view.table.derived.get(field.name)
        shown = None if needed is None or needed.path is None else needed.path.shorthand
        rows.append((field.name, sql_type_name(field.type), shown))
    if as_json:
        print_json([{"name": name, "type": kind, "path": shown} for name, kind, shown in rows])
    else:
        print_grid(["column", "type", "path"], rows)
    return 0
