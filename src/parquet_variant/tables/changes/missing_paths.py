"""Errors of changes that match no row because no row has a path of their condition.

Owns when that is an error. Leaves the messages to `query.path_hints`, and the keys to the files.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache, partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.array.field_names import keys_of_storage
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantError
from parquet_variant.parquet.scanning.path_facts import keys_of_files
from parquet_variant.query.path_hints import is_correction, missing_path_hints, paths_in
from parquet_variant.query.sql_dialect import parse_sql
from parquet_variant.query.sql_expression import SqlExpression
from parquet_variant.tables.changes.change_plan import ChangeableTable


def refuse_missing_paths(table: ChangeableTable[Any], condition: SqlExpression | None, target: str) -> None:
    """Raise `TableError` if a condition matched no row, and cannot match one because no row of the table has its paths.

    `target`: the name of the table in the condition.
    """
    if condition is None:
        return
    keys_of = cache(partial(_keys, table))
    hints = {
        name: hint
        for name, column in condition.columns.get(target, {}).items()
        for hint in missing_path_hints(keys_of, paths_in([column]))
    }
    if hints and _needs_one(parse_sql(condition.text, "duckdb", what="expression"), hints):
        raise TableError(
            f"the condition matches no row: {next(iter(hints.values()))}", reason="no-such-path", file=table.uri
        )


def refuse_misspelled_paths(table: ChangeableTable[Any], condition: SqlExpression | None, target: str) -> None:
    """Raise `TableError` if no row has a path of a condition that matched no row, and some rows have a similar path.

    `target`: the name of the table in the condition.
    """
    paths = paths_in(condition.columns.get(target, {}).values()) if condition is not None else []
    for hint in filter(is_correction, missing_path_hints(partial(_keys, table), paths)):
        raise TableError(
            f"the condition matches no row: {hint}; pass force=True (--force) if the path is right",
            reason="no-such-path",
            file=table.uri,
        )


def refuse_misspelled_keys(
    table: ChangeableTable[Any], source: pa.Table, condition: SqlExpression, names: tuple[str, str]
) -> None:
    """Raise `TableError` if a merge matched no row, and its condition has a path that is similar to one of the rows.

    `names`: those of the table and of the source in the condition.
    """
    for name, keys_of in zip(names, (partial(_keys, table), partial(_keys_of_rows, source)), strict=True):
        paths = paths_in(condition.columns.get(name, {}).values())
        for hint in filter(is_correction, missing_path_hints(keys_of, paths)):
            raise TableError(
                f"the condition of the merge matches no row: in {name} {hint}", reason="no-such-path", file=table.uri
            )


def _needs_one(condition: exp.Expr, columns: Container[str]) -> bool:
    """Return whether each way to meet a condition needs one of some columns: ``a OR b`` is met by either side."""
    match condition:
        case exp.Paren():
            return _needs_one(condition.this, columns)
        case exp.And():
            return _needs_one(condition.left, columns) or _needs_one(condition.right, columns)
        case exp.Or():
            return _needs_one(condition.left, columns) and _needs_one(condition.right, columns)
    return any(column.name in columns for column in condition.find_all(exp.Column))


def _keys(table: ChangeableTable[Any], column: str) -> frozenset[str] | None:
    """Return the keys of the objects in a Variant column; None if the files do not have the column by its name."""
    try:
        return keys_of_files(sources, column) if (sources := table.parquet_files()) else None
    except VariantError:
        return None


def _keys_of_rows(rows: pa.Table, column: str) -> frozenset[str] | None:
    if column not in rows.column_names:
        return None
    return keys_of_storage(VariantArray.from_arrow(rows, column).to_unshredded().storage)
