"""``variant vacuum``: delete the files that a Delta table no longer needs.

Owns the options and the report. Leaves the work to `delta.vacuum`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    hours: Annotated[
        float | None,
        typer.Option(help="Keep what was removed in the last so many hours. Default: the table's own.", min=0),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow fewer hours than the table's own.")] = False,
    as_json: AsJson = False,
) -> int:
    """Delete files of a Delta table that no recent version holds."""
    from datetime import timedelta

    from parquet_variant.cli.output.report import print_json
    from parquet_variant.delta import vacuum
    from parquet_variant.parquet.report_text import counted

    try:
        retention = None if hours is None else timedelta(hours=hours)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"--hours is {hours}: {error}") from None
    gone = vacuum(table, retention=retention, dry_run=dry_run, force=force)
    if as_json:
        print_json({"files": gone, "deleted": not dry_run})
        return 0
    for name in gone:
        print(name)
    print(f"{counted(len(gone), 'file')} {'would go' if dry_run else 'deleted'}")
    return 0
