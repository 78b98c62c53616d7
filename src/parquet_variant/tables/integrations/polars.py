"""`Table.lazy` and `pv.scan_polars`: lazy polars frames, whose columns, filters and number of rows decide what is read.

Owns which part of a polars expression becomes a filter of a scan. Polars evaluates every expression again, so that the
part only has to be true for all rows that the expression keeps.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.query.predicate import FLIPPED
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.opening import open as open_table
from parquet_variant.tables.table.table import Table

if TYPE_CHECKING:
    import polars as pl

# The operators of polars.
_OPERATORS = {"Gt": ">", "GtEq": ">=", "Lt": "<", "LtEq": "<=", "Eq": "=", "NotEq": "!="}


def scan_polars(
    source: Any, columns: Mapping[str, Any] | Sequence[str] | None = None, where: Any = None, **options: Any
) -> pl.LazyFrame:
    """Return a lazy polars frame over a table of any format; see `Table.lazy`.

    Parameters
    ----------
    source
        What `pv.open` opens.
    columns, where
        As for `Table.scan`.
    **options
        Options of `pv.open`, such as ``version=3``.

    Examples
    --------
    >>> import polars as pl, parquet_variant as pv
    >>> events = pv.scan_polars(pv.parse_json(['{"n": 1, "k": "a"}', '{"n": 2, "k": "b"}']), {"n": "$.n", "k": "$.k"})
    >>> events.filter(pl.col("n") > 1).select("k").collect().to_dicts()
    [{'k': 'b'}]
    """
    return lazy(open_table(source, **options), columns, where)


def lazy(
    table: Table, columns: Mapping[str, Any] | Sequence[str] | None, where: Any, *, column: str | None = None
) -> pl.LazyFrame:
    """Return a lazy polars frame; see `Table.lazy`."""
    with optional_libraries("lazy frames"):
        from polars.io.plugins import register_io_source

        from parquet_variant.ops.interop.polars import data_frame

    planned: Any = table.scan(columns, where, column=column).plan
    selected = {output.name: output for output in planned.selection}
    empty = planned.schema.empty_table()

    def read(
        names: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        names = list(selected) if names is None else names
        # A number of rows is counted before the filter, so that the scan must not filter then.
        filters = [] if predicate is None or rows is not None or where is not None else _filters(predicate, empty)
        filtered = [] if predicate is None else predicate.meta.root_names()
        # The filter of the frame may name any column.
        needed = selected if where is not None else {name: selected[name] for name in (*names, *filtered)}
        for part in table.scan(needed, filters or where, column=column).batches():
            frame = data_frame(part).head(len(part) if rows is None else rows)
            rows = None if rows is None else rows - len(frame)
            # Not `select`, which takes * and ^…$ as patterns.
            yield (frame if predicate is None else frame.filter(predicate))[names]
            if rows == 0:
                return

    return register_io_source(read, schema=data_frame(empty).schema, is_pure=True)


def _filters(predicate: pl.Expr, table: pa.Table) -> list[tuple[str, str, Any]]:
    """Return comparisons of columns with literals that are true in every row in which an expression is true."""
    tree = json.loads(predicate.meta.serialize(format="json"))
    return [(name, op, value) for name, op, value in _comparisons(tree) if _means_the_same(table[name].type, op, value)]


def _comparisons(node: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the comparisons of columns with literals that an expression joins by AND."""
    binary, call = node.get("BinaryExpr"), node.get("Function", {})
    if binary is not None and binary["op"] in ("And", "LogicalAnd"):
        yield from _comparisons(binary["left"])
        yield from _comparisons(binary["right"])
    elif binary is not None and (op := _OPERATORS.get(binary["op"])) is not None:
        sides = [binary["left"], binary["right"]]
        if "Literal" in sides[0]:
            sides, op = sides[::-1], FLIPPED.get(op, op)
        yield from _comparison(sides[0], op, sides[1])
    elif isinstance(of_kind := call.get("function", {}).get("Boolean"), dict) and "IsBetween" in of_kind:
        closed, (value, low, high) = of_kind["IsBetween"]["closed"], call["input"]
        yield from _comparison(value, ">=" if closed in ("Both", "Left") else ">", low)
        yield from _comparison(value, "<=" if closed in ("Both", "Right") else "<", high)


def _comparison(column: Mapping[str, Any], op: str, literal: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    if "Column" in column and isinstance(of_kind := literal.get("Literal"), dict):
        ((kind, value),) = next(iter(of_kind.values())).items()
        if kind == "Date":
            value = dt.date(1970, 1, 1) + dt.timedelta(value)
        yield column["Column"], op, value


def _means_the_same(kind: pa.DataType, op: str, value: Any) -> bool:
    """Return whether a comparison of a column of a type with a literal means the same here as in polars."""
    if pa.types.is_floating(kind):  # In polars NaN is above all numbers.
        return op in ("<", "<=", "=") and isinstance(value, int | float)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return type(value) is int
    if pa.types.is_date(kind):
        return isinstance(value, dt.date)
    return pa.types.is_string(kind) and isinstance(value, str)
