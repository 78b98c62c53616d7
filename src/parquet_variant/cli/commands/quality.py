"""``variant contract``, ``check``, ``diff`` and ``compat``: contracts of data, differences, and engines that read it.

Owns the options, the exit codes, and the choice of the output. Leaves the work to the methods of `Table`, and the forms
of reports to their classes.
"""

from __future__ import annotations

import json as json_text
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from typer import Argument, BadParameter, Option

from parquet_variant.cli.options.common import AsJson, Catalog, Column, JsonOptions, Threads, read_pairs
from parquet_variant.cli.options.sources import open_table, with_stdin
from parquet_variant.cli.output import DATA_PROBLEM, USAGE_PROBLEM, print_result, report_failure
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.io.parallel import ShownProgress
from parquet_variant.support.options import ContractFormat, ContractLevel, ReportFormat
from parquet_variant.support.records import Record

_SIDES = 2
_PAIR = re.compile(r"[^=/]+=[^=]*")
ShowValues: TypeAlias = Annotated[
    bool, Option("--values/--no-values", help="Show values of example rows, or only their numbers.")
]


def diff(
    paths: list[str] = Argument(
        ...,
        metavar="A [B]",
        help="Two of: JSON, Parquet or Vortex files, directories or globs, Delta or Iceberg tables; - for standard "
        "input. One table with --version, --at or --partition.",
    ),
    *,
    version: list[int] | None = Option(
        None,
        metavar="NUMBER",
        help="Delta version or Iceberg snapshot id, of A and of B; of one table, the newest is B by default.",
    ),
    at: list[str] | None = Option(
        None, metavar="TIME", help="The versions at these times (ISO 8601), instead of --version."
    ),
    partition: list[str] | None = Option(
        None, metavar="NAME=VALUE", help="Only this partition, such as day=2026-01-31; twice for two of one table."
    ),
    factor: float = Option(
        3.0, help="Factor by which a range, a number of distinct values or a mean length must differ."
    ),
    min_change: float = Option(
        0.05, help="Difference of a share (nulls, missing values, types) to report, from 0 to 1."
    ),
    min_share: float = Option(0.0, help="Share below which a path or type of one side only is not reported."),
    ignore: list[str] | None = Option(None, metavar="PATH", help="Do not compare this path; repeatable."),
    values: ShowValues = True,
    sample_bytes: int | None = Option(
        None, help="Bytes to read of larger data, without footers (default: 4 to 8 MiB)."
    ),
    column: Column = None,
    catalog: Catalog = None,
    json: JsonOptions,
    threads: Threads = None,
    html: Path | None = Option(None, metavar="FILE", help="Also write the self-contained page of the differences."),
    as_json: AsJson = False,
) -> int:
    """Compare two data sets by path: what appeared, vanished, or changed its type, nulls, range or length.

    Reads footers, logs and residual columns where they prove a figure, else a bounded sample; each finding says which.
    The exit code is 0 if there is no difference, 1 if there is one, and 2 if a side cannot be read.
    """
    sides = _sides(paths, version or [], at or [], partition or [])
    try:
        with with_stdin([side.pop("path") for side in sides]) as sources:
            before, after = (
                open_table(source, catalog, column=column, **side, **json.read())
                for source, side in zip(sources, sides, strict=True)
            )
            result = before.diff(
                after,
                factor=factor,
                min_change=min_change,
                min_share=min_share,
                ignore=ignore or (),
                values=values,
                sample_bytes=sample_bytes,
                threads=threads,
            )
        if html is not None:
            from parquet_variant.quality.explorer.explore import save_diff

            save_diff(result, html)
    except VariantError as error:
        return report_failure(error, USAGE_PROBLEM, as_json=as_json)
    print_result(result.to_dict(), [result], as_json=as_json)
    return 0 if result.is_equal else DATA_PROBLEM


def _sides(paths: list[str], versions: list[int], times: list[str], partitions: list[str]) -> list[dict[str, Any]]:
    """Return path, version, time and partition of both sides."""
    if partitions and (values := [path for path in paths if _PAIR.fullmatch(path)]):
        raise BadParameter(f"{values[0]} is not a path: write --partition {values[0]} for the other partition")
    if len(paths) > _SIDES:
        raise BadParameter(f"{len(paths)} paths: give two, or one table with --version, --at or --partition")
    places: list[dict[str, Any]] = [{"version": version, "at": None} for version in versions]
    places += [{"version": None, "at": time} for time in times]
    if len(places) > _SIDES:
        raise BadParameter("--version and --at name more than two versions: give one for each side")
    if len(partitions) > _SIDES:
        raise BadParameter("--partition is given more than twice: give one for each side")
    if len(paths) == 1 and not places and len(partitions) < _SIDES:
        raise BadParameter("one path: give a second one, or --version, --at or two --partition of a table")
    if len(paths) == _SIDES and len(places) == 1:
        raise BadParameter("--version or --at is given once for two paths: give it for each side")
    places += [{"version": None, "at": None}] * (_SIDES - len(places))
    both: list[Any] = [_partition(text.split("/")) for text in partitions] or [None]
    return [
        {"path": paths[min(side, len(paths) - 1)], "partition": both[min(side, len(both) - 1)], **places[side]}
        for side in range(_SIDES)
    ]


def _partition(arguments: Iterable[str]) -> dict[str, str]:
    return read_pairs(arguments, "--partition", "NAME=VALUE, such as day=2026-01-31")


def compat(
    path: str = Argument(
        ..., metavar="PATH", help="A Parquet or Vortex file, a directory, or a Delta or Iceberg table."
    ),
    engine: list[str] | None = Option(
        None, "--engine", "--engines", help="An engine to try, such as duckdb (repeatable); or all, to predict."
    ),
    require: str | None = Option(
        None, metavar="ENGINE=VERSION,...", help="Predict for versions; the exit code is 1 unless all read the data."
    ),
    timeout: float = Option(120, help="Seconds after which an engine is stopped.", min=1),
    python: list[str] | None = Option(
        None, metavar="PYTHON", help="The Python of another environment with engines; repeatable."
    ),
    as_json: AsJson = False,
) -> int:
    """Try the installed engines on a copy of your files, and compare the values that they return.

    Verdicts: equal, struct (the physical columns, with equal values), differs, refused, not installed. The exit code is
    1 if values differ. Verdicts of predictions: reads, struct, differs, null, refuses, unknown.
    """
    versions = None if require is None else read_pairs(require.split(","), "--require", "ENGINE=VERSION,...")
    engines: Any = "all" if engine == ["all"] else engine
    with ShownProgress() as progress:
        table = open_table(path)
        report = table.compat(engines, require=versions, timeout=timeout, pythons=python or (), progress=progress)
    print_result(report.to_dict(), [report], as_json=as_json)
    verdicts = {result.verdict for result in report.engines}
    is_bad = "differs" in verdicts and engines != "all" if require is None else verdicts != {"reads"}
    return DATA_PROBLEM if is_bad else 0


Data: TypeAlias = Annotated[
    list[str],
    Argument(
        metavar="DATA...",
        help="JSON, Parquet or Vortex files, directories or globs, a Delta or Iceberg table; - for standard input.",
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.", show_default=False),
]


class SourceOptions(Record, kw_only=True):
    """Options that choose the rows of a source."""

    version: int | None = Option(None, help="Version of a Delta table, or snapshot id of an Iceberg table.")
    at: str | None = Option(None, metavar="TIME", help="The version at a time (ISO 8601).")
    partition: list[str] | None = Option(
        None, metavar="NAME=VALUE", help="Only this partition, such as day=2026-01-31; repeatable."
    )
    column: Column = None
    catalog: Catalog = None

    def open(self, paths: list[str], json: JsonOptions) -> Any:
        """Open the data; only options for JSON that were given are passed, since others would select JSON."""
        partition = _partition(self.partition) if self.partition else None
        defaults: dict[str, Any] = {field.name: field.default for field in fields(json)}
        options = {name: text for name, text in json.read().items() if getattr(json, name) != defaults[name].default}
        source: Any = paths[0] if len(paths) == 1 else paths  # only one path can be a table
        return open_table(source, **asdict(self) | {"partition": partition} | options)


def contract(
    data: Data,
    *,
    level: ContractLevel = Option(
        "normal", help="Types only; also required fields and enumerations; or all ranges, lengths and patterns."
    ),
    into: ContractFormat = Option("yaml", "--format", help="YAML, JSON Schema, Open Data Contract Standard, or Soda."),
    name: str | None = Option(None, help="Name of the contract."),
    source: SourceOptions,
    json: JsonOptions,
    threads: Threads = None,
    output: Output = None,
) -> int:
    """Infer a contract from data, which the data satisfies.

    Edit the file, and check other data with `variant check` or `variant ingest --contract`.
    """
    try:
        with with_stdin(data) as sources:
            inferred = source.open(sources, json).contract(level, name=name, threads=threads)
        if into == "json-schema":
            text = json_text.dumps(inferred.to_json_schema(), indent=2, ensure_ascii=False)
        else:
            text = {"odcs": inferred.to_odcs, "soda": inferred.to_soda, "yaml": inferred.to_yaml}[into]()
    except VariantError as error:
        return report_failure(error, USAGE_PROBLEM)
    _write(text, output)
    return 0


def check(
    data: Data,
    *,
    contract: str = Option(..., metavar="FILE", help="The contract: YAML, JSON Schema or ODCS."),
    into: ReportFormat = Option("text", "--format", help="Text, JSON, JUnit XML, or annotations of GitHub Actions."),
    examples: int = Option(5, help="Example rows per rule.", min=0),
    values: ShowValues = True,
    source: SourceOptions,
    json: JsonOptions,
    threads: Threads = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Check data against a contract, from footers where they prove a rule, else from columns or values.

    The exit code is 0 if the data satisfies the contract, 1 if it does not, and 2 if it cannot be checked.
    """
    if as_json and into not in ("text", "json"):
        raise BadParameter(f"--json and --format {into}: choose one of the two")
    is_json = as_json or into == "json"
    try:
        with with_stdin(data) as sources:
            opened = source.open(sources, json)
            report = opened.check(contract, values=values, examples=examples, threads=threads)
        for name, file in zip(data, sources, strict=True):
            report = report.renamed(file, "standard input") if name == "-" else report
    except VariantError as error:
        code = DATA_PROBLEM if isinstance(error, JsonError) else USAGE_PROBLEM
        return report_failure(error, code, as_json=is_json)
    forms = {"text": report.__str__, "junit": report.to_junit, "github": report.to_github}
    _write(json_text.dumps(report.to_dict(), ensure_ascii=False) if is_json else forms[into](), output)
    return 0 if report else DATA_PROBLEM


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text)
        return
    from parquet_variant.io.staging import atomic_file

    with atomic_file(output) as staged:
        staged.write_text(f"{text}\n", "utf-8")
    print(f"wrote {output}", file=sys.stderr)
