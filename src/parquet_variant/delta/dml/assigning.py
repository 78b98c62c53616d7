"""New values for rows: what an UPDATE sets, or an INSERT gives.

Owns evaluating assignments and putting their values into columns of a table's types, Variants and paths inside them
among these. Leaves which rows to the operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import DeltaError, check_mapping
from parquet_variant.functions.cast_to_variant import cast_to_variant
from parquet_variant.functions.value_edits import variant_set
from parquet_variant.query.sql_expression import NeededColumn, TableColumns, read_expression
from parquet_variant.tables.columns import align_column, by_given_name, by_logical_name, check_known, unchanged
from parquet_variant.tables.expressions import Assignment, evaluate, needed_table, plain_column, read_target
from parquet_variant.tables.expressions import columns_of_table as columns_of
from parquet_variant.tables.schema import VARIANT, Field, StructType, arrow_type


def read_assignments(
    values: Mapping[str, Any],
    schema: StructType,
    tables: Mapping[str, TableColumns],
    alias: str,
    zone: str,
    *,
    literals: bool = False,
) -> list[Assignment]:
    """The assignments of a mapping from column or path to SQL, or to plain values.

    `values`: by column (``k``) or path inside of a Variant (``v:a.b``).
    `schema`: the target's columns.
    `tables`: what the expressions may name.
    `alias`: the target's name among them.
    `literals`: the values are Python values, not SQL.
    Raises `DeltaError`: reason ``"bad-assignment"``.
    """
    check_mapping("new_values" if literals else "updates", values, DeltaError)
    target = tables.get(alias) or columns_of(schema)
    assignments: list[Assignment] = []
    seen: set[tuple[str, Any]] = set()
    for text, value in values.items():
        column, path = read_target(text.removeprefix(f"{alias}."), target, alias, zone)
        if (column, None) in seen or (path is None and column in {each[0] for each in seen}) or (column, path) in seen:
            raise DeltaError(f"{text!r} is set twice", reason="bad-assignment")
        seen.add((column, path))
        if "." in column and schema.get(column) is None:
            raise DeltaError(f"{text!r} lies in a struct: set the whole column", reason="bad-assignment")
        if not literals and not isinstance(value, str):
            raise DeltaError(
                f"{text!r} is set to {value!r}: give SQL as text, or plain values by new_values=",
                reason="bad-assignment",
            )
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
    """Rows with new values.

    `rows`: whole rows, in the table's columns.
    `assignments`: what is set; expressions see the values before.
    `tables`: the rows that the expressions see, by name, each as long as `rows`.
    Raises `DeltaError`: reason ``"type-mismatch"`` for a value that does not fit its column.
    """
    needed = needed_columns(assignments)
    pulled = {name: needed_table(table, needed.get(name, {})) for name, table in tables.items()}
    values = _evaluated(assignments, pulled, zone)
    out = rows
    for assignment, value in zip(assignments, values, strict=True):
        field = schema.get(assignment.column)
        assert field is not None
        index = out.column_names.index(field.name)
        if field.type == VARIANT:
            column = _variant(assignment, value, out[field.name])
            arrow = pa.field(field.name, column.type, field.nullable, EXTENSION_METADATA)
        else:
            column = _typed(value, field, assignment, zone)
            if isinstance(column, pa.Scalar):
                column = pa.repeat(column, len(out))
            arrow = pa.field(field.name, column.type, field.nullable)
        out = out.set_column(index, arrow, column)
    return out


def path_values(
    assignments: Sequence[Assignment], pulled: Mapping[str, pa.Table], rows: int, zone: str
) -> list[VariantArray]:
    """The values that are set at paths, a column for each assignment.

    `assignments`: each with a path.
    `pulled`: what `needed_columns` names of the tables that the expressions see, and `ROW`, by the tables' names.
    `rows`: how many each of them has.
    """
    values = _evaluated(assignments, pulled, zone)
    return [_at_path(each, value, rows) for each, value in zip(assignments, values, strict=True)]


def needed_columns(assignments: Sequence[Assignment]) -> dict[str, dict[str, NeededColumn]]:
    """What expressions need of each table."""
    needed: dict[str, dict[str, NeededColumn]] = {}
    for each in assignments:
        if each.value is not None:
            for name, columns in each.value.columns.items():
                needed.setdefault(name, {}).update(columns)
    return needed


def _evaluated(assignments: Sequence[Assignment], pulled: Mapping[str, pa.Table], zone: str) -> list[Any]:
    texts = {f"c{index}": each.value.text for index, each in enumerate(assignments) if each.value is not None}
    direct: dict[int, Any] = {}
    for index, each in enumerate(assignments):
        if each.value is not None and plain_column(each.value):
            # A column as it is needs no engine, which would not know a Variant.
            ((table, name),) = [(t, n) for t, columns in each.value.columns.items() for n in columns]
            needed_column, column = each.value.columns[table][name], pulled[table][name]
            variant = needed_column.path is not None and needed_column.type is None
            direct[index] = VariantArray.from_storage(one_chunk(column)) if variant else column
            del texts[f"c{index}"]
    answers = evaluate(texts, pulled, zone) if texts else {}
    return [
        each.literal if each.value is None else direct[index] if index in direct else answers[f"c{index}"]
        for index, each in enumerate(assignments)
    ]


def _variant(assignment: Assignment, value: Any, before: pa.ChunkedArray) -> pa.Array:
    if assignment.path is not None:
        return variant_set(
            VariantArray.from_storage(one_chunk(before)), assignment.path, _at_path(assignment, value, len(before))
        ).storage
    if assignment.value is None and value is None:
        return pa.nulls(len(before), arrow_type(VARIANT))
    return _variants(assignment, value, len(before)).to_unshredded().storage


def _at_path(assignment: Assignment, value: Any, rows: int) -> VariantArray:
    """Values as paths get them: NULL becomes JSON's null, since the row's other fields are not to go with it."""
    new = _variants(assignment, value, rows).to_unshredded()
    if not new.storage.null_count:
        return new
    return VariantArray.from_pylist([Variant.from_python(None) if each is None else each for each in new])


def _variants(assignment: Assignment, value: Any, rows: int) -> VariantArray:
    if isinstance(value, VariantArray):
        return value
    if assignment.value is not None:
        return cast_to_variant(value)
    single = VariantArray.from_pylist([value if isinstance(value, Variant) else Variant.from_python(value)])
    return VariantArray.from_storage(single.storage.take(pa.array(np.zeros(rows, np.int32))))


def _typed(value: Any, field: Field, assignment: Assignment, zone: str) -> pa.Scalar | pa.ChunkedArray:
    kind = arrow_type(field.type)
    target = f"{assignment.target} is {kind}"
    if isinstance(value, VariantArray):
        raise DeltaError(f"{target}, the value a Variant: cast it (::type)", reason="type-mismatch")
    try:
        if assignment.value is None:
            check_known(pa.infer_type([value]), field.type, by_logical_name, (field.name,))
            return pa.scalar(value, kind)
        check_known(value.type, field.type, by_given_name, (field.name,))
        if pa.types.is_timestamp(value.type) and value.type.tz is None and getattr(kind, "tz", None):
            value = pc.assume_timezone(value, zone)
        chunks = value.chunks if isinstance(value, pa.ChunkedArray) else [value]
        done = [align_column(each, field.type, by_given_name, unchanged, (field.name,)) for each in chunks]
        return pa.chunked_array(done, None if done else kind)
    except (pa.ArrowException, OverflowError) as error:
        raise DeltaError(f"{target}, which its new value is not: {error}", reason="type-mismatch") from None
