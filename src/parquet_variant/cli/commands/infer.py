"""``variant infer``: what to shred of JSON or Parquet files, and why.

Owns the options. Leaves reading to `parquet.profile`, the choice to `shredding.infer` and the wording to
`shredding.explain`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from parquet_variant.cli.options.common import (
    AllowOutside,
    Also,
    Column,
    DetectTimestamps,
    FormatOption,
    InputFormat,
    JsonColumn,
    OnError,
    OnErrorOption,
    Parse,
    Policy,
    Queries,
    Root,
    Sample,
    Settings,
    Threads,
    Types,
    read_also,
    read_parse,
    read_types,
)

__all__ = ["command"]


class SortBy(StrEnum):
    """The order of a list of paths."""

    PATH = "path"
    SAVED = "saved"
    RESIDUAL = "residual"
    TYPED = "typed"
    MISSING = "missing"


def command(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC...", help="JSON or Parquet: files, directories, globs; - for stdin.")
    ],
    policy: Policy = "auto",
    settings: Settings = None,
    queries: Queries = None,
    sample: Sample = 1.0,
    column: Column = None,
    on_error: OnErrorOption = OnError.FAIL,
    input_format: FormatOption = InputFormat.AUTO,
    root: Root = None,
    json_column: JsonColumn = None,
    parse: Parse = None,
    types: Types = None,
    detect_timestamps: DetectTimestamps = None,
    threads: Threads = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say for every path why it is shredded, or not.")] = False,
    top: Annotated[
        int | None, typer.Option(help="With --explain: only so many paths, as a list.", min=1, show_default=False)
    ] = None,
    sort: Annotated[
        SortBy | None, typer.Option(help="With --explain: a list in this order, most first.", show_default=False)
    ] = None,
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
    from parquet_variant.cli.options.policy import read_policy
    from parquet_variant.cli.options.schema import read_schema
    from parquet_variant.cli.options.stdin import with_stdin
    from parquet_variant.cli.options.tables import data_files
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.parquet import profile
    from parquet_variant.shredding.costs import also as costs_also
    from parquet_variant.shredding.drift import find_drift
    from parquet_variant.shredding.explain import explain as explained
    from parquet_variant.shredding.explain import explain_also, explain_diff, explain_json, explain_table
    from parquet_variant.shredding.infer import infer

    chosen = read_policy(policy, settings, queries)
    existing = read_schema(against)
    with with_stdin(sources) as read, Progress() as progress:
        found = profile(
            read if json_column else [file for each in read for file in data_files(each, allow_outside=allow_outside)],
            sample=sample,
            column=column,
            on_error=on_error.value,
            input_format=input_format.value,
            root=root,
            json_column=json_column,
            parse=read_parse(parse),
            types=read_types(types),
            detect_timestamps=detect_timestamps,
            threads=threads,
            progress=progress,
        )
    result = infer(found, chosen)
    if existing is not None:
        print(find_drift(existing, found, chosen))
    elif diff:
        print(explain_diff(infer(found), result) or "no difference")
    elif also:
        for path, kind in read_also(also):
            print(explain_also(costs_also(found, path, kind)))
    elif as_json and (explain or top or sort):
        print(explain_json(result))
    elif top or sort:
        print(explain_table(result, sort.value if sort else "saved", top))
    elif explain:
        print(explained(result))
    elif as_json:
        print(result.schema.to_json())
    elif ddl:
        print(result.schema.to_ddl())
    else:
        print(result.schema)
    return 0
