"""Commands that change rows, versions, files and properties of a Delta or Iceberg table.

Owns the options and the reports. Leaves the work to the methods of `Table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from parquet_variant.cli.failure import report_warning
from parquet_variant.cli.options.common import AsJson, At, Catalog, Table, Version
from parquet_variant.cli.options.sources import open_table
from parquet_variant.cli.output import human_bytes, print_grid, print_json, print_report
from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.report_text import counted

if TYPE_CHECKING:
    from parquet_variant.sql_query.tables import BoundTable
    from parquet_variant.tables.changes.operations import ChangeResult


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
    if as_json:
        print_json({"version": version})
    else:
        print(f"{what} {version}")
    return 0


Where: TypeAlias = Annotated[
    str | None, typer.Option(help="SQL condition, such as 'v:kind::string = \\'x\\' AND k < 5'.")
]


def delete(
    table: Table,
    where: Where = None,
    every_row: Annotated[bool, typer.Option("--all", help="Delete every row.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the rows to delete, and the files that hold them.")
    ] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Delete rows of a Delta or Iceberg table."""
    _check_rows(where, every_row)
    result = open_table(table, catalog).delete(where, dry_run=dry_run)
    _refuse_missing_paths(result)
    if not dry_run or as_json:
        return _report(result, as_json=as_json)
    rows, files = counted(result.rows_deleted, "row"), counted(result.files_removed, "file")
    print(f"{rows} in {files} would be deleted; nothing was changed")
    return 0


def erase(
    table: Table,
    where: Annotated[str, typer.Option(help="SQL: 'v:user::string = \\'x\\''.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the rows, files and versions to erase.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Erase even if a writer seems to be active; drop branches and tags of an Iceberg table.",
        ),
    ] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Erase rows of a Delta or Iceberg table for good, with all older versions, and print a report."""
    opened = open_table(table, catalog)
    if not (dry_run or yes):
        print(opened.erase(where, dry_run=True))
        typer.confirm("Erase these rows and all older versions? This cannot be undone.", abort=True)
    report = opened.erase(where, dry_run=dry_run, force=force)
    print_report(report, as_json=as_json)
    return 0


def update(
    table: Table,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="COLUMN=SQL", help="Column or path, and its value: v:a.b='x'.")
    ],
    where: Where = None,
    every_row: Annotated[bool, typer.Option("--all", help="Update every row.")] = False,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Update rows of a Delta or Iceberg table."""
    _check_rows(where, every_row)
    result = open_table(table, catalog).update(_assignments(set_), where)
    _refuse_missing_paths(result)
    return _report(result, as_json=as_json)


def merge(
    table: Table,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A Delta or Iceberg table, Parquet files, JSON or CSV: path or URI.")
    ],
    on: Annotated[str, typer.Option(help="SQL condition over both tables: 'target.id = source.v:id::bigint'.")],
    matched: Annotated[str | None, typer.Option(metavar="update|delete", help="Action for matched rows.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="COLUMN=SQL", help="Assignment for --matched update (default: every column); repeatable."
        ),
    ] = None,
    insert: Annotated[bool, typer.Option("--insert", help="Insert source rows that match no row.")] = False,
    not_matched_by_source: Annotated[
        str | None, typer.Option(metavar="delete", help="Action for rows that no source row matches.")
    ] = None,
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> int:
    """Merge rows into a Delta or Iceberg table: update or delete matched rows, insert the others."""
    from parquet_variant.ops.interop.tables import table_of
    from parquet_variant.sql_query.binding import bind_table

    if matched not in (None, "update", "delete"):
        raise typer.BadParameter(f"invalid --matched {matched!r}: use update or delete")
    if not_matched_by_source not in (None, "delete"):
        raise typer.BadParameter(f"invalid --not-matched-by-source {not_matched_by_source!r}: use delete")
    if set_ and matched != "update":
        raise typer.BadParameter("--set needs --matched update")
    opened = open_table(table, catalog)
    bound = bind_table(opened, table)
    variants = bound.columns.variants
    rows = open_table(source)
    if rows.format == "json":
        data = table_of({variants[0] if len(variants) == 1 else "v": rows.read()})
    else:
        data = rows.to_arrow()
    plan = opened.merge(data, on)
    if matched == "update":
        plan = plan.when_matched_update(_assignments(set_)) if set_ else plan.when_matched_update_all()
    elif matched == "delete":
        plan = plan.when_matched_delete()
    if insert:
        plan = plan.when_not_matched_insert_all()
    if not_matched_by_source:
        plan = plan.when_not_matched_by_source_delete()
    if not plan.clauses:
        raise typer.BadParameter("nothing to do: give --matched, --insert or --not-matched-by-source")
    _check_condition({"target": bound, "source": bind_table(data, "the source")}, on)
    return _report(plan.execute(), as_json=as_json)


def _check_condition(tables: dict[str, BoundTable], on: str) -> None:
    """Check the paths in the condition of a merge, whose rows would otherwise all be inserted.

    Raises `VariantError` for a path that no row has and that is similar to one; warns of other paths.
    """
    from parquet_variant.query.path_hints import is_correction, needed_path_hints
    from parquet_variant.query.sql_expression import read_expression

    condition = read_expression(on, {name: table.columns for name, table in tables.items()})
    for name, table in tables.items():
        for hint in needed_path_hints(partial(_known_keys, table), condition, name):
            if is_correction(hint):
                raise VariantError(f"--on: in the {name} {hint}", reason="no-such-path")
            report_warning(f"--on: in the {name} {hint}")


def _known_keys(table: BoundTable, column: str) -> frozenset[str] | None:
    """Return the keys of a column; None for a table without objects, such as an empty one."""
    return table.keys(column) or None


def _check_rows(where: str | None, every_row: bool) -> None:
    if (where is None) != every_row:
        raise typer.BadParameter("no rows are selected: give --where CONDITION, or --all for every row")


def _assignments(texts: Iterable[str]) -> dict[str, str]:
    """Read assignments written as ``COLUMN=SQL``."""
    assignments = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name.strip() or not value.strip():
            raise typer.BadParameter(f"invalid --set {text!r}: write COLUMN=SQL")
        assignments[name.strip()] = value.strip()
    return assignments


def _refuse_missing_paths(result: ChangeResult) -> None:
    """Raise `TableError` if no row matched because no row has a path of the condition."""
    for hint in result.hints:
        raise TableError(f"the condition matches no row: {hint}", reason="no-such-path")


def _report(result: ChangeResult, *, as_json: bool) -> int:
    """Print the result of a change."""
    if as_json:
        print_json(asdict(result))
        return 0
    counts = (("deleted", result.rows_deleted), ("updated", result.rows_updated), ("inserted", result.rows_inserted))
    changes = ", ".join(f"{counted(rows, 'row')} {verb}" for verb, rows in counts if rows)
    print(f"{changes or 'no row changed'}; {result.files_opened} of {counted(result.files_total, 'file')} opened")
    print(f"version {result.version}")
    if result.bytes_removed:
        print(f"{human_bytes(result.bytes_removed)} of old files remain in storage until variant vacuum")
    return 0
