"""Options and arguments that several commands have, spelled and explained once.

Owns their names and help texts. Leaves what they do to the commands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "AsJson",
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
    "Sample",
    "SampleOrDefault",
    "Settings",
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


AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Column: TypeAlias = Annotated[
    str | None, typer.Option(help="The variant column; not needed where there is just one.", show_default=False)
]
Path: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="A Parquet file, directory or glob, or a Delta table; a URI works too.")
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
FormatOption: TypeAlias = Annotated[InputFormat, typer.Option(help="A value a line, or one array a file.")]
