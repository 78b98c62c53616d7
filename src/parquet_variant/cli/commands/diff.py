"""``variant diff``: the differences between two data sets, by path.

Owns the options, and which of them belong to which side. Leaves the comparison to `quality.diff`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from parquet_variant.cli.failure import DATA_PROBLEM, USAGE_PROBLEM, report_failure
from parquet_variant.cli.options.common import AsJson, Catalog, Column, JsonOptions, Threads

_SIDES = 2


def command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="A [B]",
            help="Two of: JSON, Parquet or Vortex files, directories or globs, Delta or Iceberg tables; - for standard "
            "input. One table with --version, --at or --partition.",
        ),
    ],
    *,
    version: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER",
            help="Delta version or Iceberg snapshot id, of A and of B; of one table, the newest is B by default.",
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="TIME", help="The versions at these times (ISO 8601), instead of --version."),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Only this partition, such as day=2026-01-31; twice for two of one table."
        ),
    ] = None,
    factor: Annotated[
        float,
        typer.Option(help="Factor by which a range, a number of distinct values or a mean length must differ."),
    ] = 3.0,
    min_change: Annotated[
        float, typer.Option(help="Difference of a share (nulls, missing values, types) to report, from 0 to 1.")
    ] = 0.05,
    min_share: Annotated[
        float, typer.Option(help="Share below which a path or type of one side only is not reported.")
    ] = 0.0,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Do not compare this path; repeatable.")
    ] = None,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="Show values of example rows, or only their numbers.")
    ] = True,
    sample_bytes: Annotated[
        int | None,
        typer.Option(help="Bytes to read of larger data, without footers (default: 4 to 8 MiB).", show_default=False),
    ] = None,
    column: Column = None,
    catalog: Catalog = None,
    json: JsonOptions,
    threads: Threads = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the self-contained page of the differences.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Compare two data sets by path: what appeared, vanished, or changed its type, nulls, range or length.

    Reads footers, logs and residual columns where they prove a figure, else a bounded sample; each finding says which.
    The exit code is 0 if there is no difference, 1 if there is one, and 2 if a side cannot be read.
    """
    from parquet_variant.cli.options.sources import open_table, with_stdin
    from parquet_variant.cli.output import print_json
    from parquet_variant.errors import VariantError

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
            from parquet_variant.explorer.diff_page import save_diff

            save_diff(result, html)
    except VariantError as error:
        return report_failure(error, USAGE_PROBLEM, as_json=as_json)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
    return 0 if result.is_equal else DATA_PROBLEM


def _sides(paths: list[str], versions: list[int], times: list[str], partitions: list[str]) -> list[dict[str, Any]]:
    """Return path, version, time and partition of both sides."""
    if len(paths) > _SIDES:
        raise typer.BadParameter(f"{len(paths)} paths: give two, or one table with --version, --at or --partition")
    places: list[dict[str, Any]] = [{"version": version, "at": None} for version in versions]
    places += [{"version": None, "at": time} for time in times]
    if len(places) > _SIDES:
        raise typer.BadParameter("--version and --at name more than two versions: give one for each side")
    if len(partitions) > _SIDES:
        raise typer.BadParameter("--partition is given more than twice: give one for each side")
    if len(paths) == 1 and not places and len(partitions) < _SIDES:
        raise typer.BadParameter("one path: give a second one, or --version, --at or two --partition of a table")
    if len(paths) == _SIDES and len(places) == 1:
        raise typer.BadParameter("--version or --at is given once for two paths: give it for each side")
    places += [{"version": None, "at": None}] * (_SIDES - len(places))
    both: list[Any] = [None]
    if partitions:
        both = [_partition(text) for text in partitions]
    return [
        {"path": paths[min(side, len(paths) - 1)], "partition": both[min(side, len(both) - 1)], **places[side]}
        for side in range(_SIDES)
    ]


def _partition(text: str) -> dict[str, str]:
    """Return the values of ``--partition``; several columns are separated by ``/``, as in directories.

    >>> _partition("day=2026-01-31/hour=7")
    {'day': '2026-01-31', 'hour': '7'}
    """
    values = {}
    for part in text.split("/"):
        name, sign, value = part.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"invalid --partition {text!r}: write NAME=VALUE, such as day=2026-01-31")
        values[name] = value
    return values
