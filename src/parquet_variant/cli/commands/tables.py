"""Commands that change rows, versions, files and properties of a Delta or Iceberg table.

Owns the options and the reports. Leaves the work to the methods of `Table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer
from typer import Argument, BadParameter, Option

from parquet_variant.cli.options.common import AsJson, At, Catalog, Table, Version, read_pairs
from parquet_variant.cli.options.sources import open_table, with_stdin
from parquet_variant.cli.output import print_grid, print_json, print_result, report_warning
from parquet_variant.errors import TableError
from parquet_variant.support.records import counted, human_bytes

if TYPE_CHECKING:
    from parquet_variant.tables.changes.operations import ChangeResult
    from parquet_variant.tables.table.iceberg import IcebergTable


def vacuum(
    table: Table,
    hours: float | None = Option(
        None, help="Keep files that were removed in this number of hours (default: the retention of the table).", min=0
    ),
    dry_run: bool = Option(False, help="Only list the files that would be deleted."),
    force: bool = Option(False, help="Allow fewer hours than the retention of the table."),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Delete files that no recent version of a table needs; snapshots of an Iceberg table expire.

    Files that no snapshot of an Iceberg table names are deleted after three days, or after --hours with --force.
    """
    try:
        retention = None if hours is None else timedelta(hours=hours)
    except (ValueError, OverflowError) as error:
        raise BadParameter(f"invalid --hours {hours}: {error}") from None
    opened = open_table(table, catalog)
    document: dict[str, Any] = {}
    if opened.format != "iceberg":
        files = opened.vacuum(retention=retention, dry_run=dry_run, force=force)
        shown, expired = files, ""
    else:
        iceberg, older_than = cast("IcebergTable", opened), None if retention is None else datetime.now(UTC) - retention
        result = iceberg.expire_snapshots(older_than=older_than, dry_run=dry_run)
        files = [*result.files, *iceberg.remove_orphan_files(older_than=older_than if force else None, dry_run=dry_run)]
        document["snapshots"], shown = list(result.snapshots), files if dry_run else []
        expired = f"{counted(len(result.snapshots), 'snapshot')} {'would expire' if dry_run else 'expired'}, "
    lines = [*shown, f"{expired}{counted(len(files), 'file')} {'would be deleted' if dry_run else 'deleted'}"]
    print_result(document | {"files": files, "deleted": not dry_run}, lines, as_json=as_json)


def history(
    table: Table,
    limit: int | None = Option(None, help="Number of commits, newest first.", min=1),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """List the commits of a Delta table, or the snapshots of an Iceberg table, newest first."""
    opened = open_table(table, catalog)
    names = ["version", "timestamp", "operation", "engineInfo"]
    if opened.format == "iceberg":
        names = ["snapshot_id", "timestamp", "operation", "references"]
    _print_records(opened.history(limit), names, as_json=as_json, right=names[:1])


def loads(table: Table, catalog: Catalog = None, as_json: AsJson = False) -> None:
    """List the files that ingest --only-new has loaded into a table or directory, the last load first."""
    records = open_table(table, catalog).loads()
    _print_records(records, ["path", "size", "modified", "loaded"], as_json=as_json)
    if not records:
        report_warning("no file is recorded: `variant ingest --only-new` records the files that it loads", "hint")


def _print_records(
    records: list[dict[str, Any]], names: list[str], *, as_json: bool, right: Iterable[str] = ()
) -> None:
    """Print records as JSON, one per line, or some of their fields as a grid."""
    if as_json:
        for record in records:
            print_json(record)
        return
    rows = [{name: ", ".join(v) if isinstance(v, list) else v for name, v in record.items()} for record in records]
    print_grid(names, [[record.get(name) for name in names] for record in rows], right=right)


def restore(table: Table, version: Version = None, at: At = None, as_json: AsJson = False) -> None:
    """Restore an old version of a Delta table, as a new version, or a snapshot of an Iceberg table."""
    if (version is None) == (at is None):
        raise BadParameter("give --version or --at")
    opened = open_table(table)
    opened.restore(version, at)
    print_result({"version": opened.version}, [f"restored, as version {opened.version}"], as_json=as_json)


def table_set(
    table: Table,
    properties: list[str] = Argument(
        ..., metavar="NAME=VALUE...", help="Such as delta.enableVariantShredding=true; NAME= removes a property."
    ),
    preview: bool = Option(False, help="Use the feature name variantShredding-preview."),
    as_json: AsJson = False,
) -> None:
    """Set properties of a Delta table, or remove them."""
    pairs = read_pairs(properties, "property", "NAME=VALUE, or NAME= to remove it")
    opened = open_table(table)
    opened.set_properties({name: value or None for name, value in pairs.items()}, preview=preview)
    print_result({"version": opened.version}, [f"set, in version {opened.version}"], as_json=as_json)


ClauseWhere: TypeAlias = Annotated[
    str | None, Option(metavar="SQL", help="The clause applies only to rows for which this is true.")
]
Where: TypeAlias = Annotated[str | None, Option(help="SQL condition, such as 'v:kind::string = \\'x\\' AND k < 5'.")]


def delete(
    table: Table,
    where: Where = None,
    every_row: bool = Option(False, "--all", help="Delete every row."),
    dry_run: bool = Option(False, help="Only count the rows to delete, and the files that hold them."),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Delete rows of a Delta or Iceberg table."""
    _check_rows(where, every_row)
    _report(open_table(table, catalog).delete(where, dry_run=dry_run), as_json=as_json, dry_run=dry_run)


def erase(
    table: Table,
    where: str = Option(..., help="SQL: 'v:user::string = \\'x\\''."),
    dry_run: bool = Option(False, help="Only count the rows, files and versions to erase."),
    yes: bool = Option(False, help="Do not ask for confirmation."),
    force: bool = Option(
        False, help="Erase even if a writer seems to be active; drop branches and tags of an Iceberg table."
    ),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Erase rows of a Delta or Iceberg table for good, with all older versions, and print a report."""
    opened = open_table(table, catalog)
    if not (dry_run or yes):
        print(opened.erase(where, dry_run=True))
        try:
            answer = input("Erase these rows and all older versions? This cannot be undone. [y/N]: ")
        except EOFError:
            raise BadParameter("standard input is empty and cannot confirm: add --yes") from None
        if answer.strip().lower() not in ("y", "yes"):
            raise typer.Abort
    report = opened.erase(where, dry_run=dry_run, force=force)
    print_result(report.to_dict(), [report], as_json=as_json)


def update(
    table: Table,
    set_: list[str] = Option(..., "--set", metavar="COLUMN=SQL", help="Column or path, and its value: v:a.b='x'."),
    where: Where = None,
    every_row: bool = Option(False, "--all", help="Update every row."),
    dry_run: bool = Option(False, help="Only count the rows to update, and the files that hold them."),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Update rows of a Delta or Iceberg table."""
    _check_rows(where, every_row)
    done = open_table(table, catalog).update(_assignments(set_), where, dry_run=dry_run)
    _report(done, as_json=as_json, dry_run=dry_run)


def merge(
    table: Table,
    source: str = Argument(
        ..., metavar="SOURCE", help="A Delta or Iceberg table, Parquet files, JSON or CSV: path, URI or - (stdin)."
    ),
    on: str = Option(..., help="SQL condition, 'target.id = source.v:id::bigint', or a column or path of both: v:id."),
    matched: Literal["update", "delete"] | None = Option(
        None, metavar="update|delete", help="Action for matched rows."
    ),
    set_: list[str] | None = Option(
        None, "--set", metavar="COLUMN=SQL", help="Assignment for --matched update (default: every column); repeatable."
    ),
    insert: bool = Option(False, help="Insert source rows that match no row."),
    not_matched_by_source: Literal["delete"] | None = Option(
        None, metavar="delete", help="Action for rows that no source row matches."
    ),
    matched_where: ClauseWhere = None,
    insert_where: ClauseWhere = None,
    not_matched_by_source_where: ClauseWhere = None,
    columns: str | None = Option(None, metavar="KEY,KEY", help="Fill these columns from keys of the rows of JSON."),
    root: str | None = Option(None, metavar="PATH", help="Path of the rows inside documents, such as '$.items[*]'."),
    dry_run: bool = Option(False, help="Only count the rows to change, and the files that hold them."),
    catalog: Catalog = None,
    as_json: AsJson = False,
) -> None:
    """Merge rows into a Delta or Iceberg table: update or delete matched rows, insert the others."""
    from parquet_variant.arrays.capsules import is_variant_field

    if set_ and matched != "update":
        raise BadParameter("--set needs --matched update")
    for condition, clause, option in (
        (matched_where, matched, "--matched"),
        (insert_where, insert, "--insert"),
        (not_matched_by_source_where, not_matched_by_source, "--not-matched-by-source"),
    ):
        if condition and not clause:
            raise BadParameter(f"{option}-where needs {option}")
    with with_stdin([source]) as (file,):
        target, keys = open_table(table, catalog), [] if columns is None else list(map(str.strip, columns.split(",")))
        rows = open_table(file, **({} if root is None else {"root": root}))
        if keys and rows.format != "json":
            raise BadParameter("--columns fills columns from keys of JSON: leave it out for a source that has columns")
        ordinary = [field.name for field in target.schema if not is_variant_field(field)]
        if insert and ordinary and not keys and rows.format == "json":
            report_warning(f"inserted rows of JSON have NULL in {', '.join(ordinary)}: use --columns", "hint")
        plan = target.merge(rows, on, columns=keys)
        if matched == "update":
            updates = plan.when_matched_update_all(matched_where)
            plan = plan.when_matched_update(_assignments(set_), matched_where) if set_ else updates
        elif matched == "delete":
            plan = plan.when_matched_delete(matched_where)
        if insert:
            plan = plan.when_not_matched_insert_all(insert_where)
        if not_matched_by_source:
            plan = plan.when_not_matched_by_source_delete(not_matched_by_source_where)
        if not plan.clauses:
            raise BadParameter("nothing to do: give --matched, --insert or --not-matched-by-source")
        result = plan.execute(dry_run=dry_run)
    _report(result, as_json=as_json, dry_run=dry_run, is_merge=True)


def _check_rows(where: str | None, every_row: bool) -> None:
    if (where is None) != every_row:
        raise BadParameter("no rows are selected: give --where CONDITION, or --all for every row")


def _assignments(arguments: Iterable[str]) -> dict[str, str]:
    """Read assignments written as ``COLUMN=SQL``."""
    assignments = {name: value.strip() for name, value in read_pairs(arguments, "--set", "COLUMN=SQL").items()}
    if empty := [name for name, value in assignments.items() if not value]:
        raise BadParameter(f"invalid --set '{empty[0]}=': write COLUMN=SQL")
    return assignments


def _report(result: ChangeResult, *, as_json: bool, dry_run: bool = False, is_merge: bool = False) -> None:
    """Print the result of a change or its count; raise `TableError` if no row matches and there is a reason."""
    if result.hints and not is_merge and not result.rows_deleted + result.rows_updated:
        raise TableError(f"the condition matches no row: {result.hints[0]}", reason="no-such-path")
    for hint in result.hints:
        report_warning(hint)
    counts = (("deleted", result.rows_deleted), ("updated", result.rows_updated), ("inserted", result.rows_inserted))
    changes = ", ".join(f"{counted(rows, 'row')} {verb}" for verb, rows in counts if rows)
    opened = f"{result.files_opened} of {counted(result.files_total, 'file')} opened"
    last = "nothing was changed: this is a dry run" if dry_run else f"version {result.version}"
    lines = [f"{changes or 'no row changed'}; {opened}", last]
    if result.bytes_removed and not dry_run:
        lines.append(f"{human_bytes(result.bytes_removed)} of old files remain in storage until variant vacuum")
    print_result(asdict(result), lines, as_json=as_json)
