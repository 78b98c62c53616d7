"""The rules that rows of a table must obey: constraints, invariants, generated columns and defaults.

Owns filling in columns and checking rows. A rule that cannot be evaluated is an error, never ignored. Leaves reading
rules from a table's metadata to the formats, and SQL to `query.sql_expression`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import TableError, VariantError
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.schema import VARIANT, ArrayType, MapType, StructType, TableType, arrow_type, parts
from parquet_variant.types.forms import entry_lists, list_elements


@dataclass(frozen=True)
class Rules:
    """The rules of a table; can be pickled."""

    checks: tuple[tuple[str, str], ...] = ()  # Name and SQL of conditions that must be true for every row.
    # Column and SQL.
    generated: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def completed(self, table: pa.Table, schema: StructType) -> pa.Table:
        """Return rows with missing default and generated columns filled in."""
        for name, text in (*self.defaults, *self.generated):
            if name not in table.column_names:
                field = schema.get(name)
                assert field is not None
                if field.type == VARIANT:
                    continue  # The default of a Variant column is null (Delta's PROTOCOL.md).
                values = _evaluate(f"the value of column {name}", text, table)
                try:
                    table = table.append_column(name, values.cast(arrow_type(field.type)))
                except pa.ArrowException as error:
                    raise _cannot_evaluate(f"the value of column {name}", text, error) from None
        return table

    def regenerated(self, rows: pa.Table, schema: StructType, assigned: Collection[str]) -> pa.Table:
        """Return changed rows with their generated columns computed again, except those that were assigned."""
        names = [name for name, _ in self.generated if name in rows.column_names and name not in assigned]
        if not names or not len(rows):
            return rows
        completed = replace(self, defaults=()).completed(rows.drop_columns(names), schema)
        return completed.select(rows.column_names)

    def enforce(self, table: pa.Table) -> None:
        """Refuse rows that break a rule.

        Raises `TableError`: reason ``"constraint-violated"``, with the rule and the first row that breaks it.
        """
        rules = [(f"constraint {name}", text) for name, text in self.checks]
        rules += [
            (f"generated column {name}", f"`{name.replace('`', '``')}` <=> ({text})") for name, text in self.generated
        ]
        for name, text in rules if len(table) else ():
            answer = _evaluate(name, text, table)
            if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
                raise _cannot_evaluate(name, text, f"its type is {answer.type}, not boolean")
            is_met = np.asarray(pc.fill_null(answer.cast(pa.bool_()), False))
            if not is_met.all():
                raise TableError(
                    f"{int((~is_met).sum())} rows break {name} ({text}), so nothing is written: change these rows",
                    reason="constraint-violated",
                    row=int((~is_met).argmax()),
                )


def check_nulls(table: pa.Table, schema: StructType) -> None:
    """Refuse nulls in fields of structs, elements of lists and values of maps that must not be null."""
    for f in schema.fields:
        if f.name in table.column_names and _has_required_parts(f.type):
            for chunk in table[f.name].chunks:
                _check_parts(chunk, f.type, f.name)


def _has_required_parts(kind: TableType) -> bool:
    """Return whether a type has parts that must not be null."""
    inner = parts(kind)[1:] if isinstance(kind, MapType) else parts(kind)  # Keys are never null.
    return any(not f.nullable or _has_required_parts(f.type) for f in inner)


def _check_parts(array: pa.Array, kind: TableType, name: str) -> None:
    if isinstance(kind, StructType) and pa.types.is_struct(array.type):
        rows = array.filter(array.is_valid()) if array.null_count else array
        for f in kind.fields:
            index = array.type.get_field_index(f.name)
            if index < 0:
                continue
            child = rows.field(index)
            if not f.nullable and child.null_count:
                raise _null_value(f"column {name}.{f.name}")
            _check_parts(child, f.type, f"{name}.{f.name}")
    elif isinstance(kind, ArrayType) and pa.types.is_list(array.type):
        values = array.flatten()
        if not kind.contains_null and values.null_count:
            raise _null_value(f"the elements of column {name}")
        _check_parts(values, kind.element, f"{name}.element")
    elif isinstance(kind, MapType) and pa.types.is_map(array.type):
        values = list_elements(entry_lists(array)[1])
        if not kind.value_contains_null and values.null_count:
            raise _null_value(f"the values of column {name}")
        _check_parts(values, kind.value, f"{name}.value")


def _null_value(what: str) -> TableError:
    return TableError(f"{what} must not be null: replace the nulls in the data", reason="null-value")


def _evaluate(name: str, text: str, table: pa.Table) -> pa.Array:
    # An SQL engine is only needed for tables with rules.
    with optional_libraries(name):
        from parquet_variant.query.sql_expression import read_expression
        from parquet_variant.tables.expressions import columns_of_data, evaluate, needed_table

    try:
        expression = read_expression(text, {"t": columns_of_data(table)}, engine="spark")
        rows = needed_table(table, expression.columns["t"])
        return one_chunk(evaluate({"answer": expression.text}, {"t": rows}, "UTC")["answer"])
    except TableError:
        raise
    except VariantError as error:
        raise _cannot_evaluate(name, text, error) from None


def _cannot_evaluate(name: str, text: str, cause: object) -> TableError:
    return TableError(
        f"{name} ({text}) cannot be evaluated, so nothing is written: {cause}", reason="unsupported-feature"
    )
