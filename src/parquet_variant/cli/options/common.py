"""Options and arguments that several commands share, single and in groups.

Owns their names and help texts, the library keywords of a group, and presenting the options of a group to Typer as
options of the command. Leaves their effect to the commands.
"""

from __future__ import annotations

import inspect
import json
import os
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from typer import Argument, BadParameter, Option
from typer.models import OptionInfo

from parquet_variant.support.options import Effort, InputFormat, OnError, OnInexact
from parquet_variant.support.records import Record

if TYPE_CHECKING:
    from parquet_variant.inference.policies.decision import Policy as ShreddingPolicy


_SUFFIXES = (".ddl", ".json", ".parquet", ".sql", ".txt")


def read_schema(schema: str | None, option: str = "--schema", *, keeps_ddl: bool = False) -> Any:
    """Return the schema of an option; None is returned unchanged.

    `keeps_ddl`: whether DDL stays text, so that ``!`` can type strings in a command that parses JSON.
    Raises `VariantError` for text or a file that is not a schema.

    >>> read_schema("mag double, place string").to_ddl(), read_schema("at timestamp!", keeps_ddl=True)
    ('mag double, place string', 'at timestamp!')
    """
    from parquet_variant.errors import SchemaError
    from parquet_variant.inference.typed_strings import schema_and_types
    from parquet_variant.layouts.shredding_schema import ShreddingSchema

    if schema is None:
        return None
    text, file = schema, None
    if os.path.isdir(schema):  # noqa: PTH112 - as below
        from parquet_variant.sql_query.binding import bind_table

        table = bind_table(schema, schema)
        if len(table.columns.variants) != 1:
            raise SchemaError(
                f"{schema} has {len(table.columns.variants)} Variant columns: give a Parquet file or DDL", file=schema
            )
        return table.schema_of(table.columns.variants[0]).limited_to()
    if os.path.isfile(schema):  # noqa: PTH113 - unlike Path.is_file it accepts text that is too long for a file name
        raw, file, keeps_ddl = pathlib.Path(schema).read_bytes(), schema, False
        if raw.startswith(b"PAR1"):
            return ShreddingSchema.from_parquet(schema).limited_to()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"{schema} is not a schema: give DDL, JSON, or a Parquet file", file=schema) from None
    elif schema.endswith(_SUFFIXES):
        raise SchemaError(f"schema file {schema} does not exist: check the path, or give DDL such as 'mag double'")
    try:
        if keeps_ddl and not text.lstrip().startswith("{"):
            schema_and_types(text)
            return text
        return ShreddingSchema.of(text.strip())
    except SchemaError as error:
        error.message = f"{option}: {error.message}"
        raise error.at(file=file) from None


Engine: TypeAlias = Literal["local", "spark"]
AllowOutside: TypeAlias = Annotated[
    bool, Option("--allow-outside", help="Tables: also read files outside the table (shallow clones).")
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
_SAMPLE = Option(help="Share of the lines from which the schema is inferred.", min=0.0, max=1.0)
Sample: TypeAlias = Annotated[float, _SAMPLE]
SampleOrDefault: TypeAlias = Annotated[float | None, _SAMPLE]
ContractOption: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Contract of the values: YAML, JSON Schema or ODCS.")
]
EngineOption: TypeAlias = Annotated[Engine, Option(help="Run in this process, or in a local Spark session.")]
Select: TypeAlias = Annotated[
    list[str] | None, Option("--select", "-s", help="'name=$.path:type', or an ordinary column; repeatable.")
]
Threads: TypeAlias = Annotated[int | None, Option(help="Number of worker threads (default: one per CPU).", min=1)]


def read_pairs(arguments: Iterable[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Read pairs of a name and a value; `option`, `form`: what the message of an invalid pair says.

    >>> read_pairs(["day=2026-01-31", "hour=7"], "--partition")
    {'day': '2026-01-31', 'hour': '7'}
    """
    pairs = {}
    for text in arguments:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise BadParameter(f"invalid {option} {text!r}: write {form}")
        pairs[name.strip()] = value
    return pairs


def read_types(arguments: list[str] | None, option: str = "--type") -> list[tuple[str, str]]:
    """Read the paths and types of ``--type`` or ``--also``.

    >>> read_types(["$..*_id:uuid"])
    [('$..*_id', 'uuid')]
    """
    types: list[tuple[str, str]] = []
    for text in arguments or ():
        if text == "auto!" and option == "--type":
            types.append((text, ""))
            continue
        path, sign, kind = text.rpartition(":")
        if not sign:
            raise BadParameter(f"invalid {option} {text!r}: write PATH:TYPE, such as '$.tags.brand:string'")
        types.append((path, kind.strip()))
    return types


def read_settings(arguments: list[str] | None, option: str) -> dict[str, Any]:
    """Read pairs of a name and a value, which is JSON or else a string; `option`: as for `read_pairs`.

    >>> read_settings(["delimiter=;", "header=false"], "--parse")
    {'delimiter': ';', 'header': False}
    """
    options: dict[str, Any] = {}
    for name, value in read_pairs(arguments or (), option).items():
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value.replace("\\t", "\t")
    return options


class PolicyOptions(Record, kw_only=True):
    """Options of the shredding policy."""

    policy: str = Option("auto", help="Policy that chooses what to shred: auto, spark, hints, workload, explicit.")
    settings: list[str] | None = Option(
        None,
        "--set",
        metavar="NAME=VALUE",
        help="Set a constant of the policy, such as min_row_share=0.05; repeatable.",
    )
    queries: str | None = Option(
        None, metavar="FILE", help="File of SQL queries whose paths --policy workload shreds first.", show_default=False
    )

    def read(self) -> ShreddingPolicy:
        """Return the policy. A setting is a value in JSON, or else a string, and a nested constant has a dot.

        Raises `VariantError` for an invalid name, constant or value, and a file that cannot be read.

        >>> PolicyOptions(policy="auto", settings=["min_row_share=0.05", "maps.keys=100"], queries=None).read()
        AutoPolicy(min_row_share=0.05, least_columns=10, min_type_share=0.3, ..., maps=MapRules(keys=100, ...))
        """
        from parquet_variant.errors import VariantError, VariantFileError
        from parquet_variant.inference.infer import POLICIES, policy_named

        options, queries, name = read_settings(self.settings, "--set"), self.queries, self.policy
        if name not in POLICIES or not (options or queries):
            return policy_named(name)
        kind: Any = POLICIES[name]
        constants = [field.name for field in fields(kind) if field.init and not field.name.startswith("_")]
        if unknown := sorted({key.partition(".")[0] for key in options} - set(constants)):
            problem = f"unknown constant {unknown[0]!r} of the policy {name}: use {', '.join(constants)}"
            raise VariantError(problem, reason="bad-policy")
        if queries is not None and not hasattr(kind, "of_queries"):
            raise VariantError("--queries needs --policy workload", reason="bad-policy")
        if queries is not None:
            try:
                text = pathlib.Path(queries).read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                # The text of the error has the path, which can have secrets.
                why = getattr(error, "strerror", None) or "it is not UTF-8"
                raise VariantFileError(f"cannot read the queries in {queries}: {why}", file=queries) from None
            # One query per line, or ended by ``;``.
            kind = partial(
                kind.of_queries, [query for line in text.splitlines() for query in line.split(";") if query.strip()]
            )
        try:
            policy = kind(**{key: value for key, value in options.items() if "." not in key})
            for outer, dot, inner in (key.partition(".") for key in options):
                if dot:
                    nested = replace(getattr(policy, outer), **{inner: options[f"{outer}.{inner}"]})
                    policy = replace(policy, **{outer: nested})
        except (TypeError, ValueError) as error:
            if isinstance(error, VariantError):
                raise
            problem = f"invalid constants {options} of the policy {name}: {error}"
            raise VariantError(problem, reason="bad-policy") from None
        return policy


class JsonOptions(Record, kw_only=True):
    """Options for reading JSON."""

    on_error: OnError = Option(
        "fail", help="For an invalid line: fail, quarantine it in a separate file, or write SQL NULL."
    )
    on_inexact: OnInexact = Option(
        "report", help="For numbers that no type keeps exactly: report their count, or fail."
    )
    exclude: list[str] | None = Option(
        None, metavar="PATTERN", help="Leave out files and directories such as '*.md'; repeat.", show_default=False
    )
    input_format: InputFormat = Option(
        "auto",
        help="Layout of the input: one value per line, one array per file, documents over many lines, or CSV rows.",
    )
    root: str | None = Option(
        None, metavar="PATH", help="Path of the rows inside documents, such as '$.items[*]'.", show_default=False
    )
    json_column: list[str] | None = Option(
        None,
        metavar="NAME|PATH",
        help="Read SRC as tables (Parquet, Vortex, Arrow, CSV, Delta) with JSON in this column (s.x: in a field of "
        "a struct; s[*].x: of each element), and keep other columns; or of JSON: parse the strings with JSON at this "
        "key or $.path, such as '$.a[*].b'; repeatable.",
    )
    infer_types: bool = Option(False, help="With --json-column of CSV: type the other columns by their values.")
    parse: list[str] | None = Option(
        None,
        metavar="NAME=VALUE",
        help="Parser option, such as floats=double; CSV: delimiter, quote_char, header, null_values; repeatable.",
    )
    types: list[str] | None = Option(
        None,
        "--type",
        metavar="PATH:TYPE",
        help="Type strings at PATH: date, timestamp, timestamp_ntz, uuid or binary if the text can be written "
        "back; timestamp!, timestamp_ntz!, uuid! or number! in any form; bigint!, boolean!; timestamp_s!, "
        "timestamp_ms! or timestamp_us! for numbers since 1970; auto! types what all values allow. Repeatable.",
    )
    detect_timestamps: bool | None = Option(
        None,
        "--detect-timestamps/--no-detect-timestamps",
        help="Type strings that are dates or timestamps and are reproduced exactly (default: only CSV).",
    )

    def read(self) -> dict[str, Any]:
        """Return the keywords of `ingest` and `profile`."""
        read = {"parse": read_settings(self.parse, "--parse"), "types": dict(read_types(self.types))}
        return vars(self) | read | {"exclude": self.exclude or ()}


class WriterOptions(Record, kw_only=True):
    """Options for writing Parquet files."""

    compression: str | None = Option(None, help="Codec of Parquet files (default: zstd, or that of the table).")
    effort: Effort | None = Option(
        None, help="Compression of Parquet files: fast, balanced (default) or small, which takes longer."
    )
    sort_by: list[str] | None = Option(
        None, metavar="PATH", help="Sort each file by this path, such as '$.ts' or '$.ts:timestamp'; repeatable."
    )
    bloom_filters: list[str] | None = Option(
        None, "--bloom-filter", metavar="PATH", help="Write a bloom filter for this shredded path; repeatable."
    )
    row_group_bytes: int | None = Option(None, help="Arrow bytes per row group (default: 128 MiB).", min=1)
    writer: str | None = Option(None, "--writer", help="Writer of the pages: native (default) or pyarrow.")

    def read(self) -> dict[str, Any]:
        """Return the keywords of the writer that were given."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


def refuse(options: dict[str, Any], formats: str) -> None:
    """Raise `BadParameter` for the first of the given options, if there is one: they apply only to some formats."""
    if options:
        name = next(iter(options)).replace("_", "-").replace("bloom-filters", "bloom-filter")
        raise BadParameter(f"--{'no-' * (name == 'annotation')}{name} applies to {formats}")


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
            option: Any = default if isinstance(default, OptionInfo) else getattr(hint, "__metadata__", [None])[0]
            is_flag = option.default is False if option is default else default is False and option.default is ...
            if is_flag and not option.param_decls:  # without --no-NAME
                option.param_decls = (f"--{name.replace('_', '-')}",)
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
