"""Options and arguments that several commands have, spelled and explained once.

Owns their names and help texts. Leaves what they do to the commands.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

import typer

from parquet_variant.choices import InputFormat, OnError

Engine: TypeAlias = Literal["local", "spark"]
AllowOutside: TypeAlias = Annotated[
    bool, typer.Option("--allow-outside", help="Of a Delta table: read files outside of it, too (shallow clones).")
]
Also: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH:TYPE", help="What typing this path, too, would cost and save; repeat."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Column: TypeAlias = Annotated[
    str | None, typer.Option(help="The variant column; not needed where there is just one.", show_default=False)
]
Path: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="PATH", help="Parquet or Vortex: a file, directory or glob; or a Delta table, or a URI."),
]
Table: TypeAlias = Annotated[str, typer.Argument(metavar="TABLE", help="A Delta table: path or URI.")]
Version: TypeAlias = Annotated[int | None, typer.Option(help="Of a Delta table: this version.", show_default=False)]
At: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Of a Delta table: as it was then (ISO 8601).", show_default=False)
]
Policy: TypeAlias = Annotated[
    str, typer.Option(help="How to choose what to shred: auto, spark, tiles, hints, workload, explicit.")
]
Queries: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="SQL whose paths --policy workload shreds first.", show_default=False)
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A constant of the policy, such as min_row_share=0.05; repeat."),
]
_SAMPLE = typer.Option(help="Share of the lines to choose from.", min=0.0, max=1.0)
Sample: TypeAlias = Annotated[float, _SAMPLE]
SampleOrDefault: TypeAlias = Annotated[float | None, _SAMPLE]
OnErrorOption: TypeAlias = Annotated[
    OnError, typer.Option(help="A bad line is an error, or put aside and counted, or SQL NULL.")
]
EngineOption: TypeAlias = Annotated[Engine, typer.Option(help="In this process, or in a local Spark session.")]
SortKeys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Sort each file by this path, such as '$.ts' or '$.ts:timestamp'; repeat."),
]
BloomFilters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--bloom-filter", metavar="PATH", help="Give this shredded path a bloom filter; repeat."),
]
Threads: TypeAlias = Annotated[
    int | None, typer.Option(help="How many work at a time; by default one a CPU.", min=1, show_default=False)
]
PageWriter: TypeAlias = Annotated[
    str | None,
    typer.Option("--writer", help="Who writes the pages: native or pyarrow. Default: native.", show_default=False),
]
RowGroupBytes: TypeAlias = Annotated[
    int | None, typer.Option(help="Arrow bytes a row group; 128 MiB by default.", min=1, show_default=False)
]
FormatOption: TypeAlias = Annotated[
    InputFormat,
    typer.Option(help="A value a line; one array a file; documents over many lines; rows of CSV or XML."),
]


Root: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="Where the rows are in documents, such as '$.items[*]'.", show_default=False),
]
JsonColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="SRC are tables (Parquet, Arrow, CSV, Delta): this column of theirs holds JSON; others stay as they are.",
        show_default=False,
    ),
]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="PATH:TYPE",
        help="Strings that are to be date, timestamp, timestamp_ntz, uuid or binary, such as '$..*_id:uuid'; repeat.",
    ),
]
DetectTimestamps: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--detect-timestamps/--no-detect-timestamps",
        help="Type strings that are dates or timestamps, where the text comes back unchanged; of CSV by default.",
        show_default=False,
    ),
]
Parse: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="How text is read, such as floats=double; of CSV delimiter, header, null_values; of XML rowTag; repeat.",
    ),
]


def read_types(texts: list[str] | None, option: str = "--type") -> list[tuple[str, str]]:
    """The paths and types of ``--type`` or ``--also``.

    >>> read_types(["$..*_id:uuid"])
    [('$..*_id', 'uuid')]
    """
    types: list[tuple[str, str]] = []
    for text in texts or ():
        path, sign, kind = text.rpartition(":")
        if not sign:
            raise typer.BadParameter(f"{option} is {text!r}: write it as PATH:TYPE, such as '$.tags.brand:string'")
        types.append((path, kind.strip()))
    return types


def read_parse(texts: list[str] | None) -> dict[str, Any]:
    """The options of ``--parse``: a value is JSON, or text as it stands.

    >>> read_parse(["delimiter=;", "header=false"])
    {'delimiter': ';', 'header': False}
    """
    options: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise typer.BadParameter(f"--parse is {text!r}: write it as NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value.replace("\\t", "\t")
    return options
