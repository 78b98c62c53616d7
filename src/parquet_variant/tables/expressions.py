"""SQL conditions and values over rows of tables, evaluated by DuckDB over the columns that they need.

Owns which columns of a table an expression may name, extracting these from rows in memory, evaluating expressions over
them, and assignments, whose values are put into columns of the table's types, at paths inside Variants too. Leaves the
SQL to `query.sql_expression`, reading files to the formats, and the choice of rows to `changes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.chunked_array import array_of
from parquet_variant.arrays.parts import column_at, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError, check_mapping
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, to_numpy
from parquet_variant.ops.conversions import cast_to_variant
from parquet_variant.ops.value_edits import variant_set
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.selection import Selected, TableColumns, TableFacts
from parquet_variant.query.sql_dialect import parse_sql
from parquet_variant.query.sql_expression import SqlExpression, read_expression, run_sql
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.columns import Alignment, by_given_name, by_logical_name, check_known
from parquet_variant.tables.schema import VARIANT, Field, StructType, arrow_type, reachable_variants
from parquet_variant.types.forms import in_form
from parquet_variant.types.path import VariantPath, quoted


def columns_of_table(schema: StructType) -> TableColumns:
    """Return the columns of a table that an expression may name: Variants, also inside structs, and ordinary ones."""
    places = {".".join(place): tuple(place) for place in reachable_variants(schema)}
    nested = {name: place for name, place in places.items() if len(place) > 1}
    ordinary = {f.name: arrow_type(f.type) for f in schema.fields if f.type != VARIANT}
    return TableColumns(list(places), ordinary, nested)


def numbered(columns: Mapping[str, Any], rows: int) -> pa.Table:
    """Return columns as a table whose first column numbers the rows.

    The name of the first column is longer than every other name, so that no user's column can have it.
    """
    name = "#" * (1 + max(map(len, columns), default=0))
    return pa.table({name: from_numpy(np.arange(rows)), **columns})


def renumbered(table: pa.Table) -> pa.Table:
    """Return rows of a `numbered` table with their own numbers."""
    return table.set_column(0, table.column_names[0], from_numpy(np.arange(len(table))))


def number_column(alias: str, table: pa.Table) -> str:
    """Return the SQL that names the column of row numbers of a `numbered` table."""
    return f"{quoted(alias)}.{quoted(table.column_names[0])}"


def needed_table(rows: pa.Table, columns: Mapping[str, Selected], zone: str) -> pa.Table:
    """Return the columns that expressions need, by the names that they use, as a `numbered` table.

    `rows`: rows in the table's columns, Variants as storage structs.
    `zone`: the session time zone of casts.
    """

    def values(needed: Selected) -> pa.ChunkedArray:
        name = needed.stored_name
        column = column_at(rows, [name] if name in rows.column_names else name.split("."))
        if needed.path is None:
            return column
        arrays = [needed.values_in(VariantArray(chunk).storage, zone=zone) for chunk in column.chunks]
        return pa.chunked_array(arrays, None if arrays else needed.field.type)

    return numbered({name: values(needed) for name, needed in columns.items()}, len(rows))


def evaluate(expressions: Mapping[str, str], tables: Mapping[str, pa.Table], zone: str) -> pa.Table:
    """Evaluate DuckDB's SQL over `numbered` tables of equal length, and return one column per expression by name."""
    selected = ", ".join(f"({text}) AS {quoted(name)}" for name, text in expressions.items())
    source = " POSITIONAL JOIN ".join(map(quoted, tables))
    alias, first = next(iter(tables.items()))
    sql = f"SELECT {number_column(alias, first)}, {selected} FROM {source}"
    answer = run_sql(sql, tables, CallContext(zone=zone))
    order = np.argsort(to_numpy(one_chunk(answer[0])), kind="stable")
    return answer.remove_column(0).take(from_numpy(order))


def is_true(expression: SqlExpression, alias: str, table: pa.Table, context: CallContext) -> Mask:
    """Return, for each row of a `numbered` table, whether a condition is true; false and unknown are not."""
    # In WHERE, the engine need not evaluate all parts of the condition for all rows; CASE only has its type.
    number, text = number_column(alias, table), expression.text
    sql = f"SELECT {number}, CASE WHEN false THEN {text} END FROM {quoted(alias)} WHERE {text}"
    rows, answer = run_sql(sql, {alias: table}, context).columns
    if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
        problem = f"the condition is of type {answer.type}: write a condition that is true or false"
        raise TableError(problem, reason="bad-condition")
    mask = np.zeros(len(table), dtype=bool)
    mask[to_numpy(one_chunk(rows))] = True
    return mask


class RowCondition(Record):
    """The answers of a condition over the columns of one table ``t``, as `Computed` needs them."""

    expression: SqlExpression
    names: tuple[str, ...]  # The names of the columns in the text of the condition.
    context: CallContext

    def __call__(self, columns: Sequence[Any]) -> pa.BooleanArray:
        """Return for each row whether the condition is true."""
        table = numbered(dict(zip(self.names, columns, strict=True)), len(columns[0]))
        return pa.array(is_true(self.expression, "t", table, self.context))


class Assignment(Record):
    """A column, or a path inside a Variant column, and its new value."""

    target: str  # As the user wrote it: ``k`` or ``v:a.b``.
    column: str
    path: VariantPath | None  # The path inside the column; None for the whole column.
    value: SqlExpression | None
    literal: object  # The Python value if there is no expression.


def equal_columns(expression: SqlExpression, left: str, right: str) -> Sequence[tuple[str, str]]:
    """Return the pairs of columns of two tables that a condition requires to be equal."""
    tree = parse_sql(expression.text, "duckdb", what="expression")
    pairs = []
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        part = part.unnest()
        if not isinstance(part, exp.EQ):
            continue
        sides = {side.table: side.name for side in (part.this, part.expression) if isinstance(side, exp.Column)}
        if left in sides and right in sides:
            pairs.append((sides[left], sides[right]))
    return pairs


def read_assignments(
    values: Mapping[str, Any],
    schema: StructType,
    tables: Mapping[str, TableFacts],
    alias: str,
    zone: str,
    *,
    literals: bool = False,
) -> list[Assignment]:
    """Return the assignments of a mapping from columns (``k``) or paths (``v:a.b``) to SQL, or to Python `literals`.

    `tables`: the columns that expressions may name, by table; `alias` is the name of the target among them.
    Raises `TableError`: reason ``"bad-assignment"``.
    """
    check_mapping("new_values" if literals else "updates", values, TableError)
    target = tables[alias].columns if alias in tables else columns_of_table(schema)
    assignments: list[Assignment] = []
    for text, value in values.items():
        name, path = text.removeprefix(f"{alias}."), None
        head, *fields = name.split(".")
        column = target.find(name)
        if column is None or (fields and pa.types.is_struct(target.ordinary.get(target.find(head) or "", pa.null()))):
            named = read_expression(name, {alias: target}, zone=zone)
            needed = list(named.columns[alias].values())
            if len(needed) != 1 or not named.is_column or needed[0].type:
                raise TableError(
                    f"cannot set {name!r}: name a column, or a path inside a Variant (v:a.b)", reason="bad-assignment"
                )
            column = needed[0].stored_name
            path = needed[0].path if needed[0].path is not None and needed[0].path.segments else None
        for other in assignments:
            if other.column == column and (path is None or other.path is None or path == other.path):
                raise TableError(
                    f"{text!r} and {other.target!r} set the same value: give one of them", reason="bad-assignment"
                )
        if "." in column and schema.get(column) is None:
            problem = f"{text!r} is a field of a struct, which cannot be set alone: set the whole column"
            raise TableError(problem, reason="bad-assignment")
        if not literals and not isinstance(value, str):
            problem = f"{text!r} is set to {value!r}: give SQL as a string, or pass Python values with new_values="
            raise TableError(problem, reason="bad-assignment")
        expression = None if literals else read_expression(value, tables, zone=zone)
        assignments.append(Assignment(text, column, path, expression, value if literals else None))
    return assignments


def assigned(
    rows: pa.Table,
    schema: StructType,
    assignments: Sequence[Assignment],
    tables: Mapping[str, pa.Table],
    zone: str,
) -> pa.Table:
    """Return rows in the table's columns with new values.

    `tables`: the rows that the expressions see, by table, each as long as `rows`; values are those before the change.
    Raises `TableError`: reason ``"type-mismatch"`` for a value that does not fit its column.
    """
    needed = needed_columns(assignments)
    inputs = {name: needed_table(table, needed.get(name, {}), zone) for name, table in tables.items()}
    result = rows
    for assignment, value in zip(assignments, new_values(assignments, inputs, zone), strict=True):
        field = schema.get(assignment.column)
        assert field is not None
        index = result.column_names.index(field.name)
        if field.type == VARIANT:
            # Whether the expression needs the value that the assignment sets.
            columns = {} if assignment.value is None else assignment.value.columns.get(next(iter(tables)), {})
            reads_itself = any((c.column, c.path) == (assignment.column, assignment.path) for c in columns.values())
            variants = _variant_column(assignment, value, result[field.name], reads_itself)
            column = in_form(variants.to_unshredded().storage, result[field.name].type)  # the form that others keep
            arrow = pa.field(field.name, column.type, field.nullable, EXTENSION_METADATA)
        else:
            column = _typed_column(value, field, assignment, zone)
            if isinstance(column, pa.Scalar):
                column = pa.repeat(column, len(result))
            arrow = pa.field(field.name, column.type, field.nullable)
        result = result.set_column(index, arrow, column)
    return result


def needed_columns(assignments: Sequence[Assignment]) -> dict[str, dict[str, Selected]]:
    """Return the columns that the expressions need, by table."""
    needed: dict[str, dict[str, Selected]] = {}
    for assignment in assignments:
        if assignment.value is not None:
            for name, columns in assignment.value.columns.items():
                needed.setdefault(name, {}).update(columns)
    return needed


def new_values(assignments: Sequence[Assignment], inputs: Mapping[str, pa.Table], zone: str) -> list[Any]:
    """Return the value of each assignment: a column, Variants, or the Python value.

    `inputs`: the columns that `needed_columns` names, by table, as `needed_table` returns them.
    """
    # DuckDB is not needed for a column alone, and cannot hold a Variant.
    computed = {
        f"c{index}": assignment.value.text
        for index, assignment in enumerate(assignments)
        if assignment.value is not None and not assignment.value.is_column
    }
    answers: Any = evaluate(computed, inputs, zone) if computed else {}
    values: list[Any] = []
    for index, assignment in enumerate(assignments):
        expression = assignment.value
        if expression is None:
            values.append(assignment.literal)
            continue
        if f"c{index}" in computed:
            column, is_variant = answers[f"c{index}"], expression.returns_variant
        else:
            ((table, name),) = [(t, n) for t, columns in expression.columns.items() for n in columns]
            column, is_variant = inputs[table][name], expression.columns[table][name].is_variant
        values.append(VariantArray(one_chunk(column)) if is_variant else column)
    return values


def _variant_column(assignment: Assignment, value: Any, before: pa.ChunkedArray, reads_itself: bool) -> VariantArray:
    if assignment.path is not None:
        variants = VariantArray(one_chunk(before))
        values = path_column(assignment, value, len(before))
        if not reads_itself:
            return variant_set(variants, assignment.path, values)
        is_null = one_chunk((value.storage if isinstance(value, VariantArray) else value).is_null())
        # The path is not created where the new value is NULL.
        parts, positions = [], []
        for mask, creates in ((pc.invert(is_null), True), (is_null, False)):
            rows = pc.indices_nonzero(mask)
            changed, new = (VariantArray(array.storage.take(rows)) for array in (variants, values))
            parts.append(variant_set(changed, assignment.path, new, creates).storage)
            positions.append(rows)
        return VariantArray(pa.concat_arrays(parts).take(pc.sort_indices(pa.concat_arrays(positions))))
    if assignment.value is None and value is None:
        return VariantArray(pa.nulls(len(before), arrow_type(VARIANT)))
    return _variants(assignment, value, len(before))


def path_column(assignment: Assignment, value: Any, rows: int) -> VariantArray:
    """Return the values to set at a path. NULL becomes the JSON null: a NULL would replace the whole Variant."""
    variants = _variants(assignment, value, rows).to_unshredded()
    if not variants.storage.null_count:
        return variants
    return VariantArray.from_pylist([Variant.from_python(None) if item is None else item for item in variants])


def _variants(assignment: Assignment, value: Any, rows: int) -> VariantArray:
    if isinstance(value, VariantArray):
        return value
    if assignment.value is not None:
        return cast_to_variant(value)
    single = VariantArray.from_pylist([value if isinstance(value, Variant) else Variant.from_python(value)])
    return VariantArray(single.storage.take(from_numpy(np.zeros(rows, np.int32))))


def _typed_column(value: Any, field: Field, assignment: Assignment, zone: str) -> pa.Scalar | pa.ChunkedArray:
    kind = arrow_type(field.type)
    if isinstance(value, VariantArray):
        problem = f"{assignment.target} is {kind}, but its new value is a Variant: cast the value with ::type"
        raise TableError(problem, reason="type-mismatch")
    place = (field.name,)
    try:
        if assignment.value is None:
            literal = array_of([value])
            check_known(literal.type, field.type, by_logical_name, place)
            if pa.types.is_timestamp(literal.type) and pa.types.is_timestamp(kind):
                # `pa.scalar` would drop the time zone, and nanoseconds, without an error.
                if literal.type.tz is None and kind.tz is not None:
                    literal = _instants(literal, zone)
                return Alignment(by_logical_name, exact=True).column(literal, field.type, place)[0]
            return pa.scalar(value, kind)
        check_known(value.type, field.type, by_given_name, place)
        if pa.types.is_timestamp(value.type) and pa.types.is_timestamp(kind):
            # Times without a time zone are local to the session zone.
            if value.type.tz is None and kind.tz is not None:
                value = _instants(value, zone)
            elif value.type.tz is not None and kind.tz is None:
                value = pc.local_timestamp(value.cast(pa.timestamp(value.type.unit, zone)))
        alignment = Alignment(by_given_name, exact=True)
        chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
        aligned = [alignment.column(chunk, field.type, place) for chunk in chunks]
        return pa.chunked_array(aligned, None if aligned else kind)
    except (pa.ArrowException, OverflowError) as error:
        problem = f"{assignment.target} is {kind}, and its new value cannot be converted to that: {error}"
        raise TableError(problem, reason="type-mismatch") from None


def _instants(local: Any, zone: str) -> pa.Array:
    """Return local times as instants, as casts of Variants do: the earlier one of two, and after a gap."""
    unit = "ns" if local.type.unit == "ns" else "us"
    kind = pa.timestamp(unit, "UTC")
    return variant_get(cast_to_variant(local.cast(pa.timestamp(unit))), "$", kind, zone=zone)
