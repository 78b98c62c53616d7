"""Filters of scans in the SQL of queries: a predicate that DuckDB evaluates, and the part of it that can skip data.

Leaves filters that compare columns with literals to `query.sql_pushdown`, which needs no engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from parquet_variant.errors import PredicateError, TableError
from parquet_variant.query.duckdb_engine import sql_name
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.predicate import And, Computed, Predicate, predicate_text, renamed
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.query.sql_dialect import SqlError, literal_text, sql_type_name
from parquet_variant.query.sql_expression import read_expression
from parquet_variant.query.sql_pushdown import FILTER_NAMES
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.tables.expressions import RowCondition
from parquet_variant.types.path import VariantPath, column_request, quoted, split_type
from parquet_variant.types.targets import VARIANT_STORAGE


def sql_filter(
    bound: BoundTable, columns: Any, where: str | Predicate, variant: str, zone: str, refusal: PredicateError | None
) -> Predicate:
    """Return the filter of a scan for a condition in the SQL of queries, which may also name the output columns.

    `where`: a filter of columns and literals whose columns may be paths, or the text of another condition.
    `refusal`: the error of the text as a filter of columns and literals.
    """
    root = ".".join(map(sql_name, bound.columns.nested.get(variant, (variant,))))
    if isinstance(where, str):  # words that are not names of columns, and names in quotes, which are columns
        text = FILTER_NAMES.sub(lambda match: _name_as_sql(match[0], root) if match["path"] else match[0], where)
    else:
        ordinary_names = {name: quoted(name) for name in bound.order if not name.startswith("$")}
        text = predicate_text(where, lambda n: ordinary_names.get(n) or _name_as_sql(n, root), literal_text)
    outputs = {
        item.name: item if item.path is None else replace(item, column=item.column or variant)
        for item in read_selection(columns)
        if item.path is not None or item.stored_name != item.name
    }
    types = {name: item.output or bound.columns.ordinary.get(item.stored_name) for name, item in outputs.items()}
    ordinary = {name: kind for name, kind in (*bound.columns.ordinary.items(), *types.items()) if kind is not None}
    variants = [name for name in (*bound.columns.variants, *outputs) if types.get(name) is None]
    facts = replace(
        bound,
        columns=replace(bound.columns, variants=variants, ordinary=ordinary),
        order=tuple(dict.fromkeys([*bound.order, *outputs])),
        derived={**bound.derived, **outputs},
    )
    try:
        expression = read_expression(text, {"t": facts}, zone=zone)
        needed = expression.columns["t"]
        if not needed:
            raise PredicateError("the filter names no column")
        if foreign := [item.stored_name for item in needed.values() if item.path and item.stored_name != variant]:
            raise PredicateError(f"the filter has a path into {foreign[0]}, and the scan reads paths into {variant}")
        of_outputs = {_request(item): name for name, item in outputs.items()}
        names = {name: of_outputs.get(_request(item), _request(item)) for name, item in needed.items()}
        if expression.equivalent is not None:
            return renamed(expression.equivalent, names)
        rows = RowCondition(expression, tuple(needed), CallContext(zone=zone))
        kinds = (
            VARIANT_STORAGE if item.is_variant else item.output or bound.columns.ordinary[item.stored_name]
            for item in needed.values()
        )
        rows([pa.nulls(0, kind) for kind in kinds])  # the engine checks the condition before data is read
    except (SqlError, TableError) as error:
        is_syntax = error.message.startswith("invalid SQL")
        raise (refusal if refusal is not None and is_syntax else PredicateError(error.message)) from None
    computed = Computed(tuple(names.values()), rows, rows.context.take_warnings)
    skipping = expression.pushdown.get("t")
    return computed if skipping is None else And((renamed(skipping, names), computed))


def _request(column: Selected) -> str:
    """Return a column of a scan as `Table.scan` takes it."""
    if column.path is None:
        return column_request(column.stored_name)
    return str(column.path) if column.output is None else f"{column.path}:{sql_type_name(column.output)}"


def _name_as_sql(name: str, root: str) -> str:
    """Return the SQL for a name of a filter: a column, ``$.a:int``, or ``v:$.a:int`` for ``v:a::int``.

    `root`: the SQL of the Variant column of paths that name none.
    """
    column, sign, steps = ("", "$", name[1:]) if name.startswith("$") else name.partition(":$")
    if not sign:
        return name if name.startswith('"$') else quoted(name)  # see `column_request`
    root = sql_name(column) if column else root
    path, kind = split_type(f"${steps}")
    if kind is None:
        return with_steps(root, VariantPath.parse(path).segments)
    return f"variant_get({root}, {literal_text(path)}, {literal_text(kind)})"
