"""``variant delete``, ``erase``, ``update`` and ``merge``: changes of rows of a table.

Owns the options and the report. Leaves the work to `delta` and `iceberg`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from parquet_variant.cli.options.common import AsJson, Catalog, Table
from parquet_variant.errors import TableError

if TYPE_CHECKING:
    from parquet_variant.sql_query.tables import BoundTable
    from parquet_variant.tables.changes.operations import ChangeResult

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
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.files.parquet.report_text import counted

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
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.cli.output import print_json

    opened = open_table(table, catalog)
    if not (dry_run or yes):
        print(opened.erase(where, dry_run=True))
        typer.confirm("Erase these rows and all older versions? This cannot be undone.", abort=True)
    report = opened.erase(where, dry_run=dry_run, force=force)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report)
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
    from parquet_variant.cli.options.sources import open_table

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
    from parquet_variant.cli.options.sources import open_table
    from parquet_variant.interop.tables import table_of
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
    from parquet_variant.cli.failure import report_warning
    from parquet_variant.errors import VariantError
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
    from parquet_variant.cli.output import human_bytes, print_json
    from parquet_variant.files.parquet.report_text import counted

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
