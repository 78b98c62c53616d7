"""Conditions and values in SQL over rows of Delta tables, evaluated by DuckDB over the columns that they need.

Owns which columns of a table a text may name, pulling those out of rows in memory, and running texts over them. Leaves
the SQL to `query.sql_expression`, and reading files to `dml.matching`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import TableError
from parquet_variant.functions.variant_get import try_variant_get
from parquet_variant.path import VariantPath
from parquet_variant.query.duckdb_engine import run_sql
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_dialect import parse_sql
from parquet_variant.query.sql_expression import NeededColumn, SqlExpression, TableColumns, read_expression
from parquet_variant.tables.schema import VARIANT, StructType, arrow_type, is_variant_field, reachable_variants

# The column that numbers rows beside those that expressions need.
ROW = "__row"
Mask = npt.NDArray[np.bool_]


def columns_of_table(schema: StructType) -> TableColumns:
    """The columns of a Delta table that a text may name: variants, also those in structs, and all that are none."""
    places = {".".join(place): tuple(place) for place in reachable_variants(schema)}
    nested = {name: place for name, place in places.items() if len(place) > 1}
    ordinary = {f.name: arrow_type(f.type) for f in schema.fields if f.type != VARIANT}
    return TableColumns(list(places), ordinary, nested)


def columns_of_data(table: pa.Table) -> TableColumns:
    """The columns of rows in memory; their variants are marked."""
    variants = [f.name for f in table.schema if is_variant_field(f)]
    return TableColumns(variants, {f.name: f.type for f in table.schema if not is_variant_field(f)})


def needed_table(rows: pa.Table, columns: Mapping[str, NeededColumn]) -> pa.Table:
    """The columns that expressions need, out of rows in memory, and a column that numbers the rows.

    `rows`: whole rows, variants as storage structs.
    `columns`: what is needed, by the names that the text has for it.
    """
    arrays: dict[str, Any] = {ROW: pa.array(np.arange(len(rows)))}
    for name, needed in columns.items():
        arrays[name] = _pulled(rows, needed)
    return pa.table(arrays)


def _pulled(rows: pa.Table, needed: NeededColumn) -> Any:
    head, *rest = [needed.column] if needed.column in rows.column_names else needed.column.split(".")
    column = rows[head]
    for name in rest:
        column = pc.struct_field(column, name)
    if needed.path is None:
        return column
    chunks = [VariantArray.from_storage(chunk) for chunk in column.chunks if len(chunk)]
    output = Selected("", needed.path, needed.type).output
    if not chunks:
        return pa.nulls(0, output if output is not None else arrow_type(VARIANT))
    done = [try_variant_get(chunk, needed.path, output if output is not None else "variant") for chunk in chunks]
    arrays = [each.storage if isinstance(each, VariantArray) else each for each in done]
    return pa.chunked_array(arrays) if len(arrays) > 1 else arrays[0]


def evaluate(texts: Mapping[str, str], tables: Mapping[str, pa.Table], zone: str) -> pa.Table:
    """Texts over tables side by side, a column each, in the order of their rows.

    `texts`: DuckDB's text by the name of its column.
    `tables`: by the names that the texts have for them; each with a column `ROW`.
    """
    selected = ", ".join(f'({text}) AS "{name}"' for name, text in texts.items())
    source = " POSITIONAL JOIN ".join(tables)
    answer = run_sql(f'SELECT {selected}, {next(iter(tables))}."{ROW}" FROM {source}', tables, zone=zone)
    order = np.argsort(answer[ROW].to_numpy(), kind="stable")
    return answer.drop_columns(ROW).take(pa.array(order))


def is_true(expression: SqlExpression, alias: str, table: pa.Table, zone: str) -> Mask:
    """For each row, whether a condition is true; false and unknown are not."""
    if not len(table):
        return np.zeros(0, dtype=bool)
    answer = evaluate({"answer": expression.text}, {alias: table}, zone)["answer"]
    if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
        raise TableError(f"the condition {expression.text} is {answer.type}, not true or false", reason="bad-condition")
    return np.asarray(pc.fill_null(answer.cast(pa.bool_()), False))


@dataclass(frozen=True)
class Assignment:
    """A column, or a path inside of a Variant column, and its new value."""

    target: str  # As the user wrote it: ``k`` or ``v:a.b``.
    column: str
    path: VariantPath | None  # Inside of the column; None for all of it.
    value: SqlExpression | None
    literal: object  # An Arrow-convertible Python value, where there is no expression.


def read_target(text: str, columns: TableColumns, alias: str, zone: str) -> tuple[str, VariantPath | None]:
    """The column, and the path inside of a Variant, that an assignment names.

    Raises `TableError`: reason ``"bad-assignment"`` for anything else.
    """
    head, *fields = text.split(".")
    if (column := columns.find(text)) is not None and not (fields and columns.find(head)):
        return column, None
    expression = read_expression(text, {alias: columns}, zone=zone)
    needed = list(expression.columns[alias].values())
    if len(needed) != 1 or not plain_column(expression) or needed[0].type is not None:
        raise TableError(
            f"{text!r} cannot be set: name a column, or a path in a Variant (v:a.b)", reason="bad-assignment"
        )
    path = needed[0].path
    return needed[0].column, path if path is not None and path.segments else None


def plain_column(expression: SqlExpression) -> bool:
    """Whether an expression is nothing but a column of its tables."""
    return isinstance(parse_sql(expression.text, "duckdb", what="expression"), exp.Column)


def equal_columns(expression: SqlExpression, left: str, right: str) -> Sequence[tuple[str, str]]:
    """The pairs of columns of two tables that a condition asks to be equal, whatever else it asks."""
    tree = parse_sql(expression.text, "duckdb", what="expression")
    pairs = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        while isinstance(part, exp.Paren):
            part = part.this
        if not isinstance(part, exp.EQ):
            continue
        sides = {side.table: side.name for side in (part.this, part.expression) if isinstance(side, exp.Column)}
        if left in sides and right in sides:
            pairs.append((sides[left], sides[right]))
    return pairs
