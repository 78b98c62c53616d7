"""``variant infer``: what to shred of JSON or Parquet files, and why.

Owns the options. Leaves reading to `parquet.profile`, the choice to `shredding.infer` and the wording to
`shredding.explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from parquet_variant.choices import SortBy
from parquet_variant.cli.options.common import (
    AllowOutside,
    Also,
    Column,
    JsonOptions,
    PolicyOptions,
    Sample,
    Threads,
    read_types,
)

if TYPE_CHECKING:
    from parquet_variant.shredding.policies.decision import InferenceResult


Top: TypeAlias = Annotated[
    int | None, typer.Option(help="With --explain: only so many paths, as a list.", min=1, show_default=False)
]
Sort: TypeAlias = Annotated[
    SortBy | None, typer.Option(help="With --explain: a list in this order, most first.", show_default=False)
]


def command(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC...", help="JSON or Parquet: files, directories, globs; - for stdin.")
    ],
    *,
    policy: PolicyOptions,
    sample: Sample = 1.0,
    column: Column = None,
    json: JsonOptions,
    threads: Threads = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say for every path why it is shredded, or not.")] = False,
    top: Top = None,
    sort: Sort = None,
    also: Also = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what differs from --policy auto as it is.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEMA", help="An existing schema, or Parquet file: show how the data has drifted from it."
        ),
    ] = None,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print DDL, for ingest --schema.")] = False,
    allow_outside: AllowOutside = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the schema, for --schema, or all with --explain.")
    ] = False,
) -> int:
    """Choose what to shred, and write nothing.

    What --ddl and --json print can be edited and given to ingest --schema.
    """
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.options.stdin import with_stdin
    from parquet_variant.cli.options.tables import data_files
    from parquet_variant.cli.output import Progress
    from parquet_variant.ingestion.ingest import profile
    from parquet_variant.shredding.costs import estimate_path
    from parquet_variant.shredding.drift import find_drift
    from parquet_variant.shredding.explain import explain_diff, explain_estimate
    from parquet_variant.shredding.infer import infer

    chosen, existing, reading = policy.read(), read_schema(against), json.read()
    with with_stdin(sources) as read, Progress() as progress:
        if not json.json_column:
            read = [file for each in read for file in data_files(each, allow_outside=allow_outside)]
        data = profile(read, sample=sample, column=column, threads=threads, progress=progress, **reading)
    result = infer(data, chosen)
    if existing is not None:
        print(find_drift(existing, data, chosen))
    elif diff:
        print(explain_diff(infer(data), result) or "no difference")
    elif also:
        for path, kind in read_types(also, "--also"):
            print(explain_estimate(estimate_path(data, path, kind)))
    elif explain or top or sort:
        print(_explained(result, sort, top, as_json=as_json))
    elif as_json:
        print(result.schema.to_json())
    elif ddl:
        print(result.schema.to_ddl())
    else:
        print(result.schema)
    return 0


def _explained(result: InferenceResult, sort: SortBy | None, top: int | None, *, as_json: bool) -> str:
    from parquet_variant.shredding.explain import explain, explain_json, explain_table

    if as_json:
        return explain_json(result)
    return explain_table(result, sort or "saved", top) if top or sort else explain(result)
