"""SQL conditions and values over rows of tables, evaluated by DuckDB over the columns that they need.

Owns which columns of a table an expression may name, extracting these from rows in memory, and evaluating expressions
over them. Leaves the SQL to `query.sql_expression`, and reading files to the formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.selection import NeededColumn, Selected, TableColumns
from parquet_variant.query.sql_dialect import parse_sql
from parquet_variant.query.sql_expression import SqlExpression, read_expression, run_sql
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.schema import VARIANT, StructType, arrow_type, reachable_variants
from parquet_variant.types.path import VariantPath


def columns_of_table(schema: StructType) -> TableColumns:
    """Return the columns of a table that an expression may name: Variants, also inside structs, and ordinary ones."""
    places = {".".join(place): tuple(place) for place in reachable_variants(schema)}
    nested = {name: place for name, place in places.items() if len(place) > 1}
    ordinary = {f.name: arrow_type(f.type) for f in schema.fields if f.type != VARIANT}
    return TableColumns(list(places), ordinary, nested)


def columns_of_data(table: pa.Table) -> TableColumns:
    """Return the columns of rows in memory, whose Variant fields are marked."""
    variants = [f.name for f in table.schema if is_variant_field(f)]
    return TableColumns(variants, {f.name: f.type for f in table.schema if not is_variant_field(f)})


def numbered(columns: Mapping[str, Any], rows: int) -> pa.Table:
    """Return columns as a table whose first column numbers the rows.

    The name of the first column is longer than every other name, so that no user's column can have it.
    """
    name = "#" * (1 + max(map(len, columns), default=0))
    return pa.table({name: pa.array(np.arange(rows)), **columns})


def renumbered(table: pa.Table) -> pa.Table:
    """Return rows of a `numbered` table with their own numbers."""
    return table.set_column(0, table.column_names[0], pa.array(np.arange(len(table))))


def number_column(alias: str, table: pa.Table) -> str:
    """Return the SQL that names the column of row numbers of a `numbered` table."""
    return f"{quoted(alias)}.{quoted(table.column_names[0])}"


def quoted(name: str) -> str:
    """Return a name as an SQL identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def needed_table(rows: pa.Table, columns: Mapping[str, NeededColumn]) -> pa.Table:
    """Return the columns that expressions need, by the names that they use, as a `numbered` table.

    `rows`: rows in the table's columns, Variants as storage structs.
    """
    extracted = {name: _extract_needed(rows, needed) for name, needed in columns.items()}
    return numbered(extracted, len(rows))


def _extract_needed(rows: pa.Table, needed: NeededColumn) -> Any:
    head, *fields = [needed.column] if needed.column in rows.column_names else needed.column.split(".")
    column = rows[head]
    for name in fields:
        column = pc.struct_field(column, [name])
    if needed.path is None:
        return column
    chunks = [VariantArray.from_storage(chunk) for chunk in column.chunks if len(chunk)]
    output = Selected("", needed.path, needed.type).output
    if not chunks:
        return pa.nulls(0, output if output is not None else arrow_type(VARIANT))
    values = [
        variant_get(chunk, needed.path, output if output is not None else "variant", errors="null") for chunk in chunks
    ]
    arrays = [value.storage if isinstance(value, VariantArray) else value for value in values]
    return pa.chunked_array(arrays) if len(arrays) > 1 else arrays[0]


def evaluate(texts: Mapping[str, str], tables: Mapping[str, pa.Table], zone: str) -> pa.Table:
    """Evaluate DuckDB's SQL over `numbered` tables of equal length, and return one column per expression by name."""
    selected = ", ".join(f"({text}) AS {quoted(name)}" for name, text in texts.items())
    source = " POSITIONAL JOIN ".join(map(quoted, tables))
    alias, first = next(iter(tables.items()))
    # A name that is longer than the others, as in `numbered`.
    number = "#" * (1 + max(map(len, texts)))
    sql = f"SELECT {selected}, {number_column(alias, first)} AS {quoted(number)} FROM {source}"
    answer = run_sql(sql, tables, zone=zone)
    order = np.argsort(answer[number].to_numpy(), kind="stable")
    return answer.drop_columns(number).take(pa.array(order))


def is_true(expression: SqlExpression, alias: str, table: pa.Table, zone: str) -> Mask:
    """Return, for each row of a `numbered` table, whether a condition is true; false and unknown are not."""
    if not len(table):
        return np.zeros(0, dtype=bool)
    answer = evaluate({"answer": expression.text}, {alias: table}, zone)["answer"]
    if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
        raise TableError(
            f"the condition {expression.text} is of type {answer.type}: write a condition that is true or false",
            reason="bad-condition",
        )
    return np.asarray(pc.fill_null(answer.cast(pa.bool_()), False))


@dataclass(frozen=True)
class Assignment:
    """A column, or a path inside a Variant column, and its new value."""

    target: str  # As the user wrote it: ``k`` or ``v:a.b``.
    column: str
    path: VariantPath | None  # The path inside the column; None for the whole column.
    value: SqlExpression | None
    literal: object  # The Python value if there is no expression.


def read_target(text: str, columns: TableColumns, alias: str, zone: str) -> tuple[str, VariantPath | None]:
    """Return the column, and the path inside a Variant, that the target of an assignment names."""
    head, *fields = text.split(".")
    if (column := columns.find(text)) is not None and not (fields and columns.find(head)):
        return column, None
    expression = read_expression(text, {alias: columns}, zone=zone)
    needed = list(expression.columns[alias].values())
    if len(needed) != 1 or not is_plain_column(expression) or needed[0].type:
        raise TableError(
            f"cannot set {text!r}: name a column, or a path inside a Variant (v:a.b)", reason="bad-assignment"
        )
    path = needed[0].path
    return needed[0].column, path if path is not None and path.segments else None


def is_plain_column(expression: SqlExpression) -> bool:
    """Return whether an expression is a column and nothing else."""
    return isinstance(parse_sql(expression.text, "duckdb", what="expression"), exp.Column)


def equal_columns(expression: SqlExpression, left: str, right: str) -> Sequence[tuple[str, str]]:
    """Return the pairs of columns of two tables that a condition requires to be equal."""
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
