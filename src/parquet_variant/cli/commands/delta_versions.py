"""``variant vacuum``, ``history``, ``restore`` and ``table set``: versions, files and properties of a Delta table.

Owns the options and the report. Leaves the work to `delta`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from datetime import timedelta

from parquet_variant.cli.options.common import AsJson, At, Catalog, Table, Version


def vacuum(
    table: Table,
    hours: Annotated[
        float | None,
        typer.Option(
            help="Keep files that were removed in this number of hours (default: the retention of the table).", min=0
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the files that would be deleted.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow fewer hours than the retention of the table.")] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Delete files that no recent version of a table needs; snapshots of an Iceberg table expire.

    Files that no snapshot of an Iceberg table names are deleted after three days, or after --hours with --force.
    """
    from datetime import timedelta

    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.cli.output import print_json
    from parquet_variant.files.parquet.report_text import counted

    try:
        retention = None if hours is None else timedelta(hours=hours)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"invalid --hours {hours}: {error}") from None
    opened = open_table(table, catalog)
    if opened.format == "iceberg":
        return _expire(opened, retention, dry_run=dry_run, force=force, as_json=as_json)
    files = opened.vacuum(retention=retention, dry_run=dry_run, force=force)
    if as_json:
        print_json({"files": files, "deleted": not dry_run})
        return 0
    for name in files:
        print(name)
    print(f"{counted(len(files), 'file')} {'would be deleted' if dry_run else 'deleted'}")
    return 0


def _expire(
    table: Any,
    retention: timedelta | None,
    *,
    dry_run: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Expire snapshots of an Iceberg table, remove orphan files, and print what was removed."""
    from datetime import UTC, datetime

    from parquet_variant.cli.output import print_json
    from parquet_variant.files.parquet.report_text import counted

    older_than = None if retention is None else datetime.now(UTC) - retention
    result = table.expire_snapshots(older_than=older_than, dry_run=dry_run)
    orphans = table.remove_orphan_files(older_than=older_than if force else None, dry_run=dry_run)
    if as_json:
        files = [*result.files, *orphans]
        print_json({"snapshots": list(result.snapshots), "files": files, "deleted": not dry_run})
        return 0
    for name in (*result.files, *orphans) if dry_run else ():
        print(name)
    verbs = ("would expire", "would be deleted") if dry_run else ("expired", "deleted")
    count = len(result.files) + len(orphans)
    print(f"{counted(len(result.snapshots), 'snapshot')} {verbs[0]}, {counted(count, 'file')} {verbs[1]}")
    return 0


def history(
    table: Table,
    limit: Annotated[int | None, typer.Option(help="Number of commits, newest first.", min=1)] = None,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """List the commits of a Delta table, or the snapshots of an Iceberg table, newest first."""
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.cli.output import print_grid, print_json

    opened = open_table(table, catalog)
    commits = opened.history(limit)
    if as_json:
        for commit in commits:
            print_json(commit)
        return 0
    names = ["version", "timestamp", "operation", "engineInfo"]
    if opened.format == "iceberg":
        names = ["snapshot_id", "timestamp", "operation", "references"]
        commits = [{**commit, "references": ", ".join(commit["references"])} for commit in commits]
    print_grid(names, [[commit.get(name) for name in names] for commit in commits], right=names[:1])
    return 0


def restore(table: Table, version: Version = None, at: At = None, as_json: AsJson = False) -> int:
    """Restore an old version of a Delta table, as a new version."""
    from parquet_variant.cli.options.sources import open_table

    if (version is None) == (at is None):
        raise typer.BadParameter("give --version or --at")
    opened = open_table(table)
    opened.restore(version, at)
    return _report_version(opened.version, "restored, as version", as_json=as_json)


def table_set(
    table: Table,
    properties: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...", help="Such as delta.enableVariantShredding=true; NAME= removes a property."
        ),
    ],
    preview: Annotated[bool, typer.Option("--preview", help="Use the feature name variantShredding-preview.")] = False,
    as_json: AsJson = False,
) -> int:
    """Set properties of a Delta table, or remove them."""
    from parquet_variant.cli.options.sources import open_table

    to_set: dict[str, str | bool | int | None] = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"invalid property {text!r}: write NAME=VALUE, or NAME= to remove it")
        to_set[name] = value or None
    opened = open_table(table)
    opened.set_properties(to_set, preview=preview)
    return _report_version(opened.version, "set, in version", as_json=as_json)


def _report_version(version: int, what: str, *, as_json: bool) -> int:
    from parquet_variant.cli.output import print_json

    if as_json:
        print_json({"version": version})
    else:
        print(f"{what} {version}")
    return 0
