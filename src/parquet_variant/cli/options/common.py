"""Options and arguments that several commands have, spelled and explained once, alone and in groups.

Owns their names and help texts, what the library is told of a group, and how Typer sees each option of a group as the
command's own. Leaves what they do to the commands.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from parquet_variant.choices import DEFAULT_COMPRESSION, InputFormat, OnError, OnInexact

if TYPE_CHECKING:
    from parquet_variant.shredding.policies.decision import Policy as ShreddingPolicy

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
OnInexactOption: TypeAlias = Annotated[
    OnInexact, typer.Option(help="Numbers that no type keeps exactly are counted, or an error.")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """How to choose what to shred."""

    policy: Policy = "auto"
    settings: Settings = None
    queries: Queries = None

    def read(self) -> ShreddingPolicy:
        """The policy."""
        from parquet_variant.cli.options.readers import read_policy

        return read_policy(self.policy, self.settings, self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """How JSON is read."""

    on_error: OnErrorOption = "fail"
    on_inexact: OnInexactOption = "report"
    input_format: FormatOption = "auto"
    root: Root = None
    json_column: JsonColumn = None
    parse: Parse = None
    types: Types = None
    detect_timestamps: DetectTimestamps = None

    def read(self) -> dict[str, Any]:
        """The keywords of `ingest` and `profile`."""
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        return options | {"parse": read_parse(self.parse), "types": dict(read_types(self.types))}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """How Parquet files are written."""

    compression: Annotated[str, typer.Option(help="Codec of the Parquet files.")] = DEFAULT_COMPRESSION
    sort_by: SortKeys = None
    bloom_filters: BloomFilters = None
    row_group_bytes: RowGroupBytes = None
    writer: PageWriter = None

    def read(self) -> dict[str, Any]:
        """The keywords of the writer: those that were given."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name))}


def flat(command: Callable[..., int]) -> Callable[..., int]:
    """The command with each option of its groups as an option of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        own = [(each.name, each.default, hints[each.name])]
        if group := groups.get(each.name):
            inner = get_type_hints(group, include_extras=True)
            own = [(field.name, field.default, inner[field.name]) for field in fields(group)]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for name, default, hint in own
        ]

    @wraps(command)
    def run(**options: Any) -> int:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**options, **made)

    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
