"""``variant infer``: which paths of JSON or Parquet files to shred, and why.

Owns the options. Leaves reading to `ingestion`, the choice to `inference.infer`, and the text to `inference.explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from parquet_variant.cli.options.common import (
    AllowOutside,
    AlsoTypes,
    Column,
    JsonOptions,
    PolicyOptions,
    Sample,
    Threads,
    read_types,
)
from parquet_variant.support.choices import SortBy

if TYPE_CHECKING:
    from parquet_variant.inference.policies.decision import InferenceResult


Top: TypeAlias = Annotated[
    int | None, typer.Option(help="With --explain: list this number of paths.", min=1, show_default=False)
]
Sort: TypeAlias = Annotated[
    SortBy | None, typer.Option(help="With --explain: list the paths in this order, largest first.", show_default=False)
]


def command(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SRC...", help="JSON or Parquet files, directories or globs; - for standard input."),
    ],
    *,
    policy: PolicyOptions,
    sample: Sample = 1.0,
    column: Column = None,
    json: JsonOptions,
    threads: Threads = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain for each path why it is shredded or not.")
    ] = False,
    top: Top = None,
    sort: Sort = None,
    also: AlsoTypes = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the difference from --policy auto without settings.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="SCHEMA", help="Show how the data has drifted from this schema, table or Parquet file."),
    ] = None,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print the schema as DDL, for ingest --schema.")] = False,
    allow_outside: AllowOutside = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the schema, or every decision with --explain.")
    ] = False,
) -> int:
    """Choose which paths to shred, without writing anything.

    The output of --ddl and --json can be edited and passed to ingest --schema.
    """
    from parquet_variant.cli.options.readers import read_schema
    from parquet_variant.cli.options.sources import data_files, with_stdin
    from parquet_variant.cli.output import Progress
    from parquet_variant.inference.costs import estimate_path
    from parquet_variant.inference.drift import find_drift
    from parquet_variant.inference.explain import explain_diff, explain_estimate
    from parquet_variant.inference.infer import infer
    from parquet_variant.ingestion.ingest import profile

    shredding_policy, existing, reading = policy.read(), read_schema(against), json.read()
    with with_stdin(sources) as read, Progress() as progress:
        if not json.json_column:
            read = [file for path in read for file in data_files(path, allow_outside=allow_outside)]
        data = profile(read, sample=sample, column=column, threads=threads, progress=progress, **reading)
    result = infer(data, shredding_policy)
    if existing is not None:
        print(find_drift(existing, data, shredding_policy))
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
    from parquet_variant.inference.explain import explain, explain_json, explain_table

    if as_json:
        return explain_json(result)
    return explain_table(result, sort or "saved", top) if top or sort else explain(result)
