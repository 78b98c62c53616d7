"""``variant query``: typed columns out of a Variant column, by path.

Owns the options and how the answer is shown. Leaves the query to `parquet.scan` and `delta.scan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.cli.options import AsJson, At, Column, Path, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from parquet_variant.delta import DeltaScan
    from parquet_variant.parquet import Scan

__all__ = ["command"]


def command(
    path: Path,
    select: Annotated[
        list[str], typer.Option("--select", "-s", help="'name=$.path:type', or an ordinary column; repeat for more.")
    ],
    where: Annotated[str | None, typer.Option("--where", "-w", help="Such as \"mag > 5 and place like 'x%'\".")] = None,
    column: Column = None,
    version: Version = None,
    at: At = None,
    limit: Annotated[int | None, typer.Option(help="Stop after so many rows.", min=0)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be read, of how much; read nothing.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A value that cannot be cast is an error, not null.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Query a Variant column by path; only the columns and row groups that the answer needs are read."""
    from parquet_variant.cli.output import print_json, print_json_rows
    from parquet_variant.cli.select_option import read_selects
    from parquet_variant.cli.tables import plan_query

    query = plan_query(path, read_selects(select), where, column, version=version, at=at, strict=strict)
    if explain:
        report = query.explain()
        if as_json:
            print_json(report.to_dict())
        else:
            print(report)
    elif as_json:
        for part in _parts(query, limit):
            print_json_rows(part)
    else:
        _print_table(query, limit)
    return 0


def _parts(query: Scan | DeltaScan, limit: int | None) -> Iterator[pa.Table]:
    """The answer as it is read, cut off at the limit."""
    left = limit
    if left == 0:
        return
    for part in query.batches():
        yield part if left is None else part.slice(0, left)
        if left is not None:
            left -= part.num_rows
            if left <= 0:
                return


def _print_table(query: Scan | DeltaScan, limit: int | None) -> None:
    import pyarrow as pa

    from parquet_variant.cli.output import json_texts, print_grid

    def rows() -> Iterator[tuple[Any, ...]]:
        for part in _parts(query, limit):
            for batch in part.to_batches(max_chunksize=4096):
                columns = [
                    json_texts(values, field) if pa.types.is_nested(field.type) else values.to_pylist()
                    for values, field in zip(batch.columns, query.schema, strict=True)
                ]
                yield from zip(*columns, strict=True)

    numbers = [
        field.name for field in query.schema if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
    ]
    print_grid(query.schema.names, rows(), right=numbers)
