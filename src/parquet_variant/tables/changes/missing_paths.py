"""Errors of changes that match no row because no row has a path of their condition.

Owns when that is an error. Leaves the messages to `query.path_hints`, and the keys to the files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.field_names import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.scanning.path_facts import keys_of_files
from parquet_variant.query.path_hints import is_correction, needed_path_hints
from parquet_variant.query.sql_expression import SqlExpression
from parquet_variant.tables.changes.change_plan import ChangeableTable


def missing_paths(
    table: ChangeableTable[Any], condition: SqlExpression | None, target: str, advice: str = ""
) -> tuple[str, ...]:
    """Return messages about the paths that a condition needs and no row has; call it if the condition matched no row.

    `target`: the name of the table in the condition.
    `advice`: the end of the error's message.
    Raises `TableError` if the rows have a similar path.
    """
    hints = () if condition is None else tuple(needed_path_hints(partial(_keys, table), condition, target))
    for hint in filter(is_correction, hints):
        raise TableError(f"the condition matches no row: {hint}{advice}", reason="no-such-path", file=table.uri)
    return hints


def refuse_misspelled_keys(
    table: ChangeableTable[Any], source: pa.Table, condition: SqlExpression, names: tuple[str, str]
) -> None:
    """Raise `TableError` if a merge that matched no row needs a missing path that is similar to a path of the rows.

    `names`: those of the table and of the source in the condition.
    """
    for name, keys_of in zip(names, (partial(_keys, table), partial(_keys_of_rows, source)), strict=True):
        for hint in filter(is_correction, needed_path_hints(keys_of, condition, name)):
            raise TableError(
                f"the condition of the merge matches no row: in {name} {hint}", reason="no-such-path", file=table.uri
            )


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
