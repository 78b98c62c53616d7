"""Options and arguments that several commands have, spelled and explained once.

Owns their names and help texts. Leaves what they do to the commands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer

__all__ = [
    "AsJson",
    "BloomFilters",
    "Column",
    "Engine",
    "EngineOption",
    "FormatOption",
    "InputFormat",
    "OnError",
    "OnErrorOption",
    "Path",
    "Policy",
    "Queries",
    "RowGroupBytes",
    "Sample",
    "SampleOrDefault",
    "Settings",
    "SortBy",
    "Threads",
    "written_as",
]


class Engine(StrEnum):
    """Where the work runs."""

    LOCAL = "local"
    SPARK = "spark"


class OnError(StrEnum):
    """What becomes of a line that is no JSON."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


class InputFormat(StrEnum):
    """How JSON text is laid out."""

    AUTO = "auto"
    NDJSON = "ndjson"
    ARRAY = "array"
    DOCUMENTS = "documents"


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
OnErrorOption: TypeAlias = Annotated[OnError, typer.Option(help="A bad line is an error, or put aside and counted.")]
EngineOption: TypeAlias = Annotated[Engine, typer.Option(help="In this process, or in a local Spark session.")]
SortBy: TypeAlias = Annotated[
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
RowGroupBytes: TypeAlias = Annotated[
    int | None, typer.Option(help="Arrow bytes a row group; 128 MiB by default.", min=1, show_default=False)
]
FormatOption: TypeAlias = Annotated[
    InputFormat, typer.Option(help="A value a line; one array a file; or documents over many lines.")
]


def written_as(
    compression: str, sort_by: list[str] | None, bloom_filters: list[str] | None, row_group_bytes: int | None
) -> dict[str, Any]:
    """What the writer of Parquet files is told: the options that were given."""
    given = {"sort_by": sort_by, "bloom_filters": bloom_filters, "row_group_bytes": row_group_bytes}
    return {"compression": compression} | {name: value for name, value in given.items() if value}
