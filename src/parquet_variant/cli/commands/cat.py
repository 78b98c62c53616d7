"""``variant cat``: rows of files, or of a Delta or Iceberg table, as JSON lines.

Owns the choice between one column and whole rows. Leaves reading to `Table.scan`, and JSON to `to_json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parquet_variant.cli.options.common import AllowOutside, At, Catalog, Column, Path, Threads, Version

if TYPE_CHECKING:
    from parquet_variant.tables.table.table import Table


def command(
    path: Path,
    column: Column = None,
    version: Version = None,
    at: At = None,
    catalog: Catalog = None,
    threads: Threads = None,
    limit: Annotated[
        int | None, typer.Option(help="Stop after this number of rows.", min=0, show_default=False)
    ] = None,
    allow_outside: AllowOutside = False,
) -> int:
    """Print rows as JSON, one per line. PATH can also be JSON, or - for standard input.

    Rows are objects, with each Variant as JSON. If the Variant is the only column, or --column names it, only
    its values are printed.
    """
    from parquet_variant.cli.options.sources import queryable
    from parquet_variant.cli.output import print_json_rows, print_json_values

    remaining = limit
    options = {"column": column, "version": version, "at": at, "catalog": catalog, "allow_outside": allow_outside}
    with queryable(path, threads, **options) as table:
        name = column or _only_variant(table)
        selected = None if name is None else {"v": ("$", "variant")}
        for rows in table.scan(selected, column=name, threads=threads if limit is None else 1).batches():
            shown = rows if remaining is None else rows.slice(0, remaining)
            if name is None:
                print_json_rows(shown)
            else:
                print_json_values(shown["v"], shown.schema.field("v"))
            if remaining is not None and (remaining := remaining - len(shown)) <= 0:
                break
    return 0


def _only_variant(table: Table) -> str | None:
    """Return the name of the only column if it is a Variant, also one that is stored as JSON text."""
    from parquet_variant.files.parquet.format.columns import find_variants, no_variant_column
    from parquet_variant.files.parquet.format.files import locate, open_file
    from parquet_variant.interop.display import is_variant

    schema = table.schema
    if table.format == "parquet":
        with open_file(locate(table.source)[0]) as file:
            if not find_variants(file.schema):
                raise no_variant_column(schema.names, file.name)
    is_only = len(schema) == 1 and (table.format == "vortex" or is_variant(schema.field(0)))
    return schema.field(0).name if is_only else None
