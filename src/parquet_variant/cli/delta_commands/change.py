"""What `variant delete`, `update` and `merge` share: assignments on the command line, and the report.

Owns these two. Leaves the options to the commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from parquet_variant.delta import ChangeResult


def read_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """The assignments of ``COLUMN=SQL`` texts."""
    assignments = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name.strip() or not value.strip():
            raise typer.BadParameter(f"{option} {text!r} is no assignment: write COLUMN=SQL")
        assignments[name.strip()] = value.strip()
    return assignments


def report_change(result: ChangeResult, *, as_json: bool) -> int:
    """Say what a change did."""
    from parquet_variant.cli.output.report import print_json
    from parquet_variant.parquet.report_text import counted

    if as_json:
        print_json(asdict(result))
        return 0
    done = (("deleted", result.rows_deleted), ("updated", result.rows_updated), ("inserted", result.rows_inserted))
    told = ", ".join(f"{counted(rows, 'row')} {verb}" for verb, rows in done if rows)
    print(f"{told or 'no row changed'}; {result.files_opened} of {counted(result.files_total, 'file')} opened")
    print(f"version {result.version}")
    return 0
