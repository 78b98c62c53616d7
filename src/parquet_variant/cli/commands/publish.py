"""``variant publish``: metadata of another table format over the same data files.

Owns the options and the report. Leaves the work to `pv.publish`.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from parquet_variant.cli.options.common import AsJson, Catalog


def command(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A Delta or Iceberg table, NAMESPACE.TABLE, a directory of Parquet files, or Vortex files.",
        ),
    ],
    *,
    format: Annotated[str, typer.Option("--as", help="The format to publish: iceberg, delta or ducklake.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="Where to publish: a directory, NAMESPACE.TABLE of --catalog, or the file of a DuckLake catalog "
            "(FILE#SCHEMA.TABLE). By default the table's directory (Vortex files: TABLE.published), or TABLE.ducklake."
        ),
    ] = None,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Publish a table in another format, without copying its files.

    Run it again after changes: only what changed is added and removed.
    """
    from dataclasses import asdict

    from parquet_variant.cli.options.sources import read_catalog
    from parquet_variant.cli.output import print_json
    from parquet_variant.files.parquet.report_text import counted
    from parquet_variant.tables.publishing.publish import FORMATS, publish

    if format not in FORMATS:
        raise typer.BadParameter(f"--as is {format!r}: use {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    checked: Any = format
    result = publish(table, checked, to=to, catalog=read_catalog(catalog))
    if as_json:
        print_json(asdict(result))
    elif result.committed:
        vectors = f", deleted rows of {counted(result.vectors_written, 'file')}" if result.vectors_written else ""
        print(
            f"published as {result.format} in {result.table}, version {result.version}: "
            f"{counted(result.files_added, 'file')} added, {result.files_removed} removed{vectors}"
        )
    else:
        print(f"{result.table} is up to date, at version {result.version}")
    return 0
