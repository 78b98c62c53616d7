"""``variant merge``: bring the rows of a file or table into a Delta table.

Owns the options and the report. Leaves the work to `delta.merge`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from parquet_variant.cli.delta_commands.change import read_assignments, report_change
from parquet_variant.cli.options.common import AsJson, Table


def command(
    table: Table,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A Delta table, or Parquet files: path or URI.")],
    on: Annotated[str, typer.Option(help="SQL over both: 'target.id = source.v:id::bigint'.")],
    matched: Annotated[
        str | None, typer.Option(metavar="update|delete", help="What becomes of rows that a source row matches.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COLUMN=SQL", help="What --matched update sets; by default every column."),
    ] = None,
    insert: Annotated[bool, typer.Option("--insert", help="Insert source rows that match no row.")] = False,
    not_matched_by_source: Annotated[
        str | None, typer.Option(metavar="delete", help="What becomes of rows that no source row matches.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Bring rows into a Delta table: update what is there, insert what is not."""
    from parquet_variant.delta import merge
    from parquet_variant.parquet import read_table
    from parquet_variant.sql_query.paths import is_delta

    if matched not in (None, "update", "delete"):
        raise typer.BadParameter(f"--matched is {matched!r}: use update or delete")
    if not_matched_by_source not in (None, "delete"):
        raise typer.BadParameter(f"--not-matched-by-source is {not_matched_by_source!r}: use delete")
    if set_ and matched != "update":
        raise typer.BadParameter("--set needs --matched update")
    plan = merge(table, source if is_delta(source) else read_table(source), on)
    if matched == "update":
        plan = plan.when_matched_update(read_assignments(set_, "--set")) if set_ else plan.when_matched_update_all()
    elif matched == "delete":
        plan = plan.when_matched_delete()
    if insert:
        plan = plan.when_not_matched_insert_all()
    if not_matched_by_source:
        plan = plan.when_not_matched_by_source_delete()
    if not plan.clauses:
        raise typer.BadParameter("say what to do: --matched, --insert or --not-matched-by-source")
    return report_change(plan.execute(), as_json=as_json)
