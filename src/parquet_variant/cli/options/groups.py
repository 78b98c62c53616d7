"""Groups of options that several commands have, and how Typer sees each option of a group as the command's own.

Owns the groups, and what the library is told of them. Leaves the spelling of each option to `common`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from parquet_variant.choices import DEFAULT_COMPRESSION
from parquet_variant.cli.options.common import (
    BloomFilters,
    DetectTimestamps,
    FormatOption,
    JsonColumn,
    OnErrorOption,
    PageWriter,
    Parse,
    Policy,
    Queries,
    Root,
    RowGroupBytes,
    Settings,
    SortKeys,
    Types,
    read_parse,
    read_types,
)

if TYPE_CHECKING:
    from parquet_variant.shredding.policies.decision import Policy as ShreddingPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """How to choose what to shred."""

    policy: Policy = "auto"
    settings: Settings = None
    queries: Queries = None

    def read(self) -> ShreddingPolicy:
        """The policy."""
        from parquet_variant.cli.options.policy import read_policy

        return read_policy(self.policy, self.settings, self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """How JSON is read."""

    on_error: OnErrorOption = "fail"
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
