"""Options and arguments that several commands share, single and in groups.

Owns their names and help texts, the library keywords of a group, and presenting the options of a group to Typer as
options of the command. Leaves their effect to the commands.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from typer import Argument, BadParameter, Option

from parquet_variant.support.choices import DEFAULT_COMPRESSION, Effort, InputFormat, OnError, OnInexact

if TYPE_CHECKING:
    from parquet_variant.inference.policies.decision import Policy as ShreddingPolicy

Engine: TypeAlias = Literal["local", "spark"]
AllowOutside: TypeAlias = Annotated[
    bool, Option("--allow-outside", help="Tables: also read files outside the table (shallow clones).")
]
AlsoTypes: TypeAlias = Annotated[
    list[str] | None, Option(metavar="PATH:TYPE", help="Show what typing this path would cost and save; repeatable.")
]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print JSON.")]
Column: TypeAlias = Annotated[str | None, Option(help="The Variant column, if there are several.")]
Path: TypeAlias = Annotated[
    str, Argument(metavar="PATH", help="Parquet or Vortex file, directory or glob, Delta or Iceberg table, or URI.")
]
Table: TypeAlias = Annotated[
    str, Argument(metavar="TABLE", help="Path or URI of a Delta or Iceberg table, or namespace.table with --catalog.")
]
Catalog: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="Iceberg catalog: a name in PyIceberg's configuration, a REST catalog's URI, or properties as JSON.",
    ),
]
Version: TypeAlias = Annotated[
    int | None, Option(help="Delta tables: read this version; Iceberg: the snapshot of this id.")
]
At: TypeAlias = Annotated[str | None, Option(metavar="TIME", help="Tables: read the version at this time (ISO 8601).")]
Policy: TypeAlias = Annotated[
    str, Option(help="Policy that chooses what to shred: auto, spark, tiles, hints, workload, explicit.")
]
_SAMPLE = Option(help="Share of the lines from which the schema is inferred.", min=0.0, max=1.0)
Sample: TypeAlias = Annotated[float, _SAMPLE]
SampleOrDefault: TypeAlias = Annotated[float | None, _SAMPLE]
ContractOption: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Contract of the values: YAML, JSON Schema or ODCS.")
]
EngineOption: TypeAlias = Annotated[Engine, Option(help="Run in this process, or in a local Spark session.")]
Threads: TypeAlias = Annotated[int | None, Option(help="Number of worker threads (default: one per CPU).", min=1)]


Types: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--type",
        metavar="PATH:TYPE",
        help="Type strings at PATH: date, timestamp, timestamp_ntz, uuid or binary if the text can be written back; "
        "timestamp!, timestamp_ntz!, uuid! or number! in any form; auto! types what all values allow. Repeatable.",
    ),
]


def read_pairs(texts: Iterable[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Read pairs of a name and a value; `option`, `form`: what the message of an invalid pair says.

    >>> read_pairs(["day=2026-01-31", "hour=7"], "--partition")
    {'day': '2026-01-31', 'hour': '7'}
    """
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise BadParameter(f"invalid {option} {text!r}: write {form}")
        pairs[name.strip()] = value
    return pairs


def read_types(texts: list[str] | None, option: str = "--type") -> list[tuple[str, str]]:
    """Read the paths and types of ``--type`` or ``--also``.

    >>> read_types(["$..*_id:uuid"])
    [('$..*_id', 'uuid')]
    """
    types: list[tuple[str, str]] = []
    for text in texts or ():
        if text == "auto!" and option == "--type":
            types.append((text, ""))
            continue
        path, sign, kind = text.rpartition(":")
        if not sign:
            raise BadParameter(f"invalid {option} {text!r}: write PATH:TYPE, such as '$.tags.brand:string'")
        types.append((path, kind.strip()))
    return types


def read_parse(texts: list[str] | None) -> dict[str, Any]:
    """Read the options of ``--parse``, whose values are JSON or else strings.

    >>> read_parse(["delimiter=;", "header=false"])
    {'delimiter': ';', 'header': False}
    """
    options: dict[str, Any] = {}
    for name, value in read_pairs(texts or (), "--parse").items():
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value.replace("\\t", "\t")
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """Options of the shredding policy."""

    policy: Policy = "auto"
    settings: Annotated[
        list[str] | None,
        Option(
            "--set", metavar="NAME=VALUE", help="Set a constant of the policy, such as min_row_share=0.05; repeatable."
        ),
    ] = None
    queries: Annotated[
        str | None,
        Option(
            metavar="FILE", help="File of SQL queries whose paths --policy workload shreds first.", show_default=False
        ),
    ] = None

    def read(self) -> ShreddingPolicy:
        """Return the policy."""
        from parquet_variant.cli.options.readers import read_policy

        return read_policy(self.policy, self.settings, self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """Options for reading JSON."""

    on_error: Annotated[
        OnError, Option(help="For an invalid line: fail, quarantine it in a separate file, or write SQL NULL.")
    ] = "fail"
    on_inexact: Annotated[
        OnInexact, Option(help="For numbers that no type keeps exactly: report their count, or fail.")
    ] = "report"
    exclude: Annotated[
        list[str] | None,
        Option(metavar="PATTERN", help="Leave out files and directories such as '*.md'; repeat.", show_default=False),
    ] = None
    input_format: Annotated[
        InputFormat,
        Option(
            help="Layout of the input: one value per line, one array per file, documents over many lines, or CSV rows."
        ),
    ] = "auto"
    root: Annotated[
        str | None,
        Option(metavar="PATH", help="Path of the rows inside documents, such as '$.items[*]'.", show_default=False),
    ] = None
    json_column: Annotated[
        str | None,
        Option(
            metavar="NAME|PATH",
            help="Read SRC as tables (Parquet, Vortex, Arrow, CSV, Delta) with JSON in this column (s.x: in a field of "
            "a struct), and keep other columns; or $.path: parse the strings with JSON at this path of the JSON.",
        ),
    ] = None
    infer_types: Annotated[bool, Option(help="With --json-column of CSV: type the other columns by their values.")] = (
        False
    )
    parse: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="Parser option, such as floats=double; CSV: delimiter, quote_char, header, null_values; repeatable.",
        ),
    ] = None
    types: Types = None
    detect_timestamps: Annotated[
        bool | None,
        Option(
            "--detect-timestamps/--no-detect-timestamps",
            help="Type strings that are dates or timestamps and are reproduced exactly (default: only CSV).",
        ),
    ] = None

    def read(self) -> dict[str, Any]:
        """Return the keywords of `ingest` and `profile`."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        options |= {"parse": read_parse(self.parse), "types": dict(read_types(self.types))}
        return options | {"exclude": self.exclude or ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """Options for writing Parquet files."""

    compression: Annotated[str, Option(help="Compression codec of Parquet files.")] = DEFAULT_COMPRESSION
    effort: Annotated[
        Effort | None,
        Option(help="Compression of Parquet files: fast, balanced (default) or small, which takes longer."),
    ] = None
    sort_by: Annotated[
        list[str] | None,
        Option(metavar="PATH", help="Sort each file by this path, such as '$.ts' or '$.ts:timestamp'; repeatable."),
    ] = None
    bloom_filters: Annotated[
        list[str] | None,
        Option("--bloom-filter", metavar="PATH", help="Write a bloom filter for this shredded path; repeatable."),
    ] = None
    row_group_bytes: Annotated[int | None, Option(help="Arrow bytes per row group (default: 128 MiB).", min=1)] = None
    writer: Annotated[str | None, Option("--writer", help="Writer of the pages: native (default) or pyarrow.")] = None

    def read(self) -> dict[str, Any]:
        """Return the keywords of the writer that were given."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


def flat(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with the options of its groups as separate options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        options = [(parameter.name, parameter.default, hints[parameter.name])]
        if group := groups.get(parameter.name):
            inner = get_type_hints(group, include_extras=True)
            options = [(field.name, field.default, inner[field.name]) for field in fields(group)]
        for name, default, hint in options:
            if default is False and hint.__metadata__[0].default is ...:  # without --no-NAME
                hint.__metadata__[0].param_decls = (f"--{name.replace('_', '-')}",)
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))

    @wraps(command)
    def run(**options: Any) -> int:
        values = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**options, **values)

    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
