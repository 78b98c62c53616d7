"""``variant optimize``: put the small files of a Delta table together, and shred anew.

Owns the options and the report. Leaves the work to `delta.optimize`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.options import AsJson, Table

__all__ = ["command"]


def command(
    table: Table,
    reshred: Annotated[bool, typer.Option("--reshred", help="Rewrite every file under one new schema.")] = False,
    schema: Annotated[str | None, typer.Option(help="What to shred: DDL, or a file of DDL, JSON or Parquet.")] = None,
    drop_shredding: Annotated[
        bool,
        typer.Option("--drop-shredding", help="Rewrite every file unshredded, and take the feature off the table."),
    ] = False,
    file_mb: Annotated[int, typer.Option(help="About how large a file may become, in MB.", min=1)] = 128,
    as_json: AsJson = False,
) -> int:
    """Put small files of a Delta table together, and shred anew, in one commit that changes no row."""
    from dataclasses import asdict

    from parquet_variant import delta
    from parquet_variant.cli.output import counted, human_bytes, print_json
    from parquet_variant.cli.progress import Progress
    from parquet_variant.cli.schema_option import read_schema

    if drop_shredding and (reshred or schema is not None):
        raise typer.BadParameter("--drop-shredding excludes --reshred and --schema")
    size = file_mb * 1_000_000
    with Progress() as progress:
        progress("optimize", 0, 1)
        if drop_shredding:
            result = delta.drop_shredding(table, file_bytes=size)
        else:
            result = delta.optimize(table, file_bytes=size, reshred=reshred, shredding=read_schema(schema))
    if as_json:
        print_json(asdict(result))
    elif not result.files_removed and not result.files_added:
        print(f"nothing to do (version {result.version})")
    else:
        before = f"{counted(result.files_removed, 'file')} ({human_bytes(result.bytes_removed)})"
        after = f"{counted(result.files_added, 'file')} ({human_bytes(result.bytes_added)})"
        print(f"{before} became {after} in version {result.version}")
    return 0
