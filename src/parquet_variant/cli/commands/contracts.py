"""``variant contract`` and ``variant check``: infer a contract from data, and check data against a contract.

Owns the options, the exit code, and the choice of the output. Leaves inference to `quality.contract`, checks to
`quality.check`, and the forms of the report to `contracts.report`.
"""

from __future__ import annotations

import json as json_text
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from parquet_variant.cli.failure import DATA_PROBLEM, USAGE_PROBLEM, report_failure
from parquet_variant.cli.options.common import AsJson, Catalog, Column, JsonOptions, Threads
from parquet_variant.support.choices import ContractFormat, ContractLevel, ReportFormat

Data: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="JSON, Parquet or Vortex files, directories or globs, a Delta or Iceberg table; - for standard input.",
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a file instead of standard output.", show_default=False
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options that choose the rows of a source."""

    version: Annotated[
        int | None,
        typer.Option(help="Version of a Delta table, or snapshot id of an Iceberg table.", show_default=False),
    ] = None
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="The version at a time (ISO 8601).", show_default=False)
    ] = None
    partition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only this partition, such as day=2026-01-31; repeatable."),
    ] = None
    column: Column = None
    catalog: Catalog = None

    def open(self, paths: list[str], json: JsonOptions) -> Any:
        """Open the data; only options for JSON that were given are passed, since others would select JSON."""
        from parquet_variant.cli.options.sources import open_table

        partition = {}
        for text in self.partition or ():
            name, sign, value = text.partition("=")
            if not sign:
                raise typer.BadParameter(f"invalid --partition {text!r}: write NAME=VALUE")
            partition[name] = value
        defaults = JsonOptions().read()
        given = {name: value for name, value in json.read().items() if value != defaults[name]}
        source: Any = paths[0] if len(paths) == 1 else paths  # only one path can be a table
        return open_table(source, **asdict(self) | {"partition": partition or None} | given)


def contract(
    data: Data,
    *,
    level: Annotated[
        ContractLevel,
        typer.Option(help="Types only; also required fields and enumerations; or all ranges, lengths and patterns."),
    ] = "normal",
    into: Annotated[
        ContractFormat,
        typer.Option("--format", help="YAML, JSON Schema, or the Open Data Contract Standard."),
    ] = "yaml",
    name: Annotated[str | None, typer.Option(help="Name of the contract.", show_default=False)] = None,
    source: SourceOptions,
    json: JsonOptions,
    threads: Threads = None,
    output: Output = None,
) -> int:
    """Infer a contract from data, which the data satisfies.

    Edit the file, and check other data with `variant check` or `variant ingest --contract`.
    """
    from parquet_variant.cli.options.sources import with_stdin
    from parquet_variant.errors import VariantError

    try:
        with with_stdin(data) as sources:
            inferred = source.open(sources, json).contract(level, name=name, threads=threads)
        if into == "json-schema":
            text = json_text.dumps(inferred.to_json_schema(), indent=2, ensure_ascii=False)
        else:
            text = inferred.to_odcs() if into == "odcs" else inferred.to_yaml()
    except VariantError as error:
        return report_failure(error, USAGE_PROBLEM)
    _write(text.rstrip("\n"), output)
    return 0


def check(
    data: Data,
    *,
    contract: Annotated[str, typer.Option(metavar="FILE", help="The contract: YAML, JSON Schema or ODCS.")],
    into: Annotated[
        ReportFormat,
        typer.Option("--format", help="Text, JSON, JUnit XML, or annotations of GitHub Actions."),
    ] = "text",
    examples: Annotated[int, typer.Option(help="Example rows per rule.", min=0)] = 5,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="Show values of example rows, or only their numbers.")
    ] = True,
    source: SourceOptions,
    json: JsonOptions,
    threads: Threads = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Check data against a contract, from footers where they prove a rule, else from columns or values.

    The exit code is 0 if the data satisfies the contract, 1 if it does not, and 2 if it cannot be checked.
    """
    from parquet_variant.cli.options.sources import with_stdin
    from parquet_variant.errors import JsonError, VariantError

    if as_json and into not in ("text", "json"):
        raise typer.BadParameter(f"--json and --format {into}: choose one of the two")
    try:
        with with_stdin(data) as sources:
            opened = source.open(sources, json)
            report = opened.check(contract, values=values, examples=examples, threads=threads)
        for name, file in zip(data, sources, strict=True):
            report = report.renamed(file, "standard input") if name == "-" else report
    except VariantError as error:
        code = DATA_PROBLEM if isinstance(error, JsonError) else USAGE_PROBLEM
        return report_failure(error, code, as_json=as_json or into == "json")
    if as_json or into == "json":
        text = json_text.dumps(report.to_dict(), ensure_ascii=False)
    else:
        text = {"text": report.__str__, "junit": report.to_junit, "github": report.to_github}[into]()
    _write(text, output)
    return 0 if report else DATA_PROBLEM


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text)
        return
    from parquet_variant.io.temporaries import atomic_file

    with atomic_file(output) as staged:
        staged.write_text(f"{text}\n", "utf-8")
