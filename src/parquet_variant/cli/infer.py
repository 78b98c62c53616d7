"""``variant infer``: what to shred of JSON or Parquet files, and why.

Owns the options and how the decisions are shown. Leaves the choice to `parquet.infer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parquet_variant.cli.options import Column, FormatOption, InputFormat, OnError, OnErrorOption, Policy, Sample

if TYPE_CHECKING:
    from parquet_variant.shredding.infer import InferenceResult

__all__ = ["command"]


def command(
    sources: Annotated[list[str], typer.Argument(metavar="SRC...", help="JSON or Parquet: files, directories, globs.")],
    policy: Policy = "auto",
    sample: Sample = 1.0,
    column: Column = None,
    on_error: OnErrorOption = OnError.FAIL,
    input_format: FormatOption = InputFormat.AUTO,
    explain: Annotated[bool, typer.Option("--explain", help="Say for every path why it is shredded, or not.")] = False,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print DDL, for --schema.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the schema as JSON, for --schema.")] = False,
) -> int:
    """Choose what to shred; write nothing. What --ddl and --json print can be edited and given to ingest --schema."""
    from parquet_variant.cli.output import print_json
    from parquet_variant.cli.progress import Progress
    from parquet_variant.parquet import infer

    with Progress() as progress:
        result = infer(
            sources,
            policy,
            sample=sample,
            column=column,
            on_error=on_error.value,
            input_format=input_format.value,
            progress=progress,
        )
    if explain and as_json:
        print_json(_explained(result))
    elif explain:
        print_decisions(result)
    elif as_json:
        print(result.schema.to_json())
    elif ddl:
        print(result.schema.to_ddl())
    else:
        print(result.schema)
    return 0


def _explained(result: InferenceResult) -> dict[str, object]:
    decisions = [
        {
            "path": str(decision.path),
            "type": decision.type,
            "count": decision.count,
            "row_share": decision.row_share,
            "typed_share": decision.typed_share,
            "bytes_saved": decision.bytes_saved,
            "reason": decision.reason,
        }
        for decision in result.decisions
    ]
    return {"schema": result.schema.to_ddl(), "policy": result.policy.name, "rows": result.rows, "decisions": decisions}


def print_decisions(result: InferenceResult) -> None:
    """Print every path that was looked at, with the choice and the reason."""
    from parquet_variant.cli.output import human_bytes, print_grid

    rows = [
        (
            str(decision.path),
            decision.type,
            f"{decision.row_share:.1%}",
            f"{1 - decision.typed_share:.1%}" if decision.shredded else None,
            human_bytes(decision.bytes_saved) if decision.shredded else None,
            decision.reason,
        )
        for decision in result.decisions
    ]
    print_grid(["path", "type", "rows", "residual", "saved", "reason"], rows, right=["rows", "residual", "saved"])
