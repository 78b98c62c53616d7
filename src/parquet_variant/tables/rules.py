"""What a table asks of the rows that are written to it: constraints, invariants, generated columns, defaults.

Owns reading these out of a table's metadata, and holding rows to them; what cannot be evaluated here is refused by
name, never passed over. Leaves SQL to `query.sql_expression`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.encoding.cast.forms import entry_lists, list_elements
from parquet_variant.errors import TableError, VariantError
from parquet_variant.lazy_names import optional_libraries
from parquet_variant.tables.schema import VARIANT, ArrayType, MapType, StructType, TableType, arrow_type


@dataclass(frozen=True)
class Rules:
    """The rules of a table; can be pickled."""

    checks: tuple[tuple[str, str], ...] = ()  # Name and SQL of conditions that must be true for every row.
    # Column and SQL.
    generated: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def completed(self, table: pa.Table, schema: StructType) -> pa.Table:
        """Rows with the columns that are not given and have a default or are generated."""
        for name, text in (*self.defaults, *self.generated):
            if name not in table.column_names:
                field = schema.get(name)
                assert field is not None
                if field.type == VARIANT:
                    continue  # PROTOCOL.md: a variant's default is null.
                values = _evaluated(f"the value of column {name}", text, table)
                try:
                    table = table.append_column(name, values.cast(arrow_type(field.type)))
                except pa.ArrowException as error:
                    raise _cannot(f"the value of column {name}", text, error) from None
        return table

    def regenerated(self, rows: pa.Table, schema: StructType, columns: Collection[str]) -> pa.Table:
        """Changed rows, whose generated columns follow from the others, but for some columns that are set."""
        names = [name for name, _ in self.generated if name in rows.column_names and name not in columns]
        if not names or not len(rows):
            return rows
        made = replace(self, defaults=()).completed(rows.drop_columns(names), schema)
        return made.select(rows.column_names)

    def enforce(self, table: pa.Table) -> None:
        """Refuse rows that break a rule.

        Raises `TableError`: reason ``"constraint-violated"``; the rule is named, and the first row that breaks it.
        """
        rules = [(f"constraint {name}", text) for name, text in self.checks]
        rules += [
            (f"generated column {name}", f"`{name.replace('`', '``')}` <=> ({text})") for name, text in self.generated
        ]
        for name, text in rules if len(table) else ():
            answer = _evaluated(name, text, table)
            if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
                raise _cannot(name, text, f"it is {answer.type}, not true or false")
            good = np.asarray(pc.fill_null(answer.cast(pa.bool_()), False))
            if not good.all():
                raise TableError(
                    f"{int((~good).sum())} row(s) break {name} ({text}): nothing is written",
                    reason="constraint-violated",
                    row=int((~good).argmax()),
                )


def check_nulls(table: pa.Table, schema: StructType) -> None:
    """Refuse nulls in fields of structs, elements of lists and values of maps that must not be null.

    Raises `TableError`: reason ``"null-value"``.
    """
    for f in schema.fields:
        if f.name in table.column_names and _asks(f.type):
            for chunk in table[f.name].chunks:
                _nulls(chunk, f.type, f.name)


def _asks(kind: TableType) -> bool:
    """Whether a type has parts that must not be null."""
    if isinstance(kind, StructType):
        return any(not f.nullable or _asks(f.type) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return not kind.contains_null or _asks(kind.element)
    return isinstance(kind, MapType) and (not kind.value_contains_null or _asks(kind.value))


def _nulls(array: pa.Array, kind: TableType, name: str) -> None:
    if isinstance(kind, StructType) and pa.types.is_struct(array.type):
        rows = array.filter(array.is_valid()) if array.null_count else array
        for f in kind.fields:
            at = array.type.get_field_index(f.name)
            if at < 0:
                continue
            child = rows.field(at)
            if not f.nullable and child.null_count:
                raise TableError(f"column {name}.{f.name} must not be null", reason="null-value")
            _nulls(child, f.type, f"{name}.{f.name}")
    elif isinstance(kind, ArrayType) and pa.types.is_list(array.type):
        values = array.flatten()
        if not kind.contains_null and values.null_count:
            raise TableError(f"the elements of column {name} must not be null", reason="null-value")
        _nulls(values, kind.element, f"{name}.element")
    elif isinstance(kind, MapType) and pa.types.is_map(array.type):
        values = list_elements(entry_lists(array)[1])
        if not kind.value_contains_null and values.null_count:
            raise TableError(f"the values of column {name} must not be null", reason="null-value")
        _nulls(values, kind.value, f"{name}.value")


def _evaluated(name: str, text: str, table: pa.Table) -> pa.Array:
    # Only tables with rules need an engine for SQL.
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
        raise _cannot(name, text, error) from None


def _cannot(name: str, text: str, why: object) -> TableError:
    return TableError(
        f"{name} ({text}) cannot be evaluated here, so nothing is written: {why}", reason="unsupported-feature"
    )
