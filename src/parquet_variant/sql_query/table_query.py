"""Queries by path over the tables whose scans have no filters: JSON and CSV files.

Owns the filter, which is evaluated here. Leaves reading to the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Predicate, evaluate
from parquet_variant.query.question import PlannedQuery, Question
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.sql_query.batches import ScanOptions
from parquet_variant.sql_query.tables import BoundTable


@dataclass(frozen=True)
class TableQuery(PlannedQuery):
    """A query by path over a bound table."""

    table: BoundTable
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]
    predicate: Predicate | None
    options: ScanOptions

    @classmethod
    def plan(
        cls,
        table: BoundTable,
        columns: Mapping[str, object],
        where: object,
        *,
        errors: Literal["null", "raise"] = "null",
        threads: int | None = None,
    ) -> TableQuery:
        """Plan a query; parameters and errors are those of `Table.scan`."""
        options = ScanOptions(errors, threads=threads)
        question = Question.of(columns, where)
        asked = question.bound([_with_type(table, column) for column in question.columns], options.zone)
        return cls(table, asked.selection, asked.hidden, asked.predicate, options)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts."""
        needed = {column.name: self._needed(column) for column in self.every_column}
        for part in self.table.scan(needed, None, self.options).batches():
            rows = part if self.predicate is None else part.filter(evaluate(self.predicate, part.combine_chunks()))
            yield rows.select([column.name for column in self.selection])

    def _needed(self, column: Selected) -> NeededColumn:
        if column.column is not None:
            is_variant = column.column in self.table.columns.variants
            return NeededColumn(column.column, VariantPath() if is_variant else None)
        if not self.table.columns.variants and column.path is not None:
            raise VariantFileError(
                f"{self.table.name} has no Variant column, so it has no path {column.path.shorthand}: choose from "
                f"{', '.join(self.table.order)}",
                reason="no-variant-column",
            )
        return NeededColumn(self.table.columns.variants[0], column.path, column.type)


def _with_type(table: BoundTable, column: Selected) -> Selected:
    """Return a column with its type in the table."""
    if column.path is not None:
        return column
    name = column.stored_name
    if name not in table.order:
        is_path = f", and a path is written $.{name}" if table.columns.variants else ""
        raise VariantFileError(
            f"unknown column {name} in {table.name}: choose from {', '.join(table.order)}{is_path}",
            reason="no-such-column",
        )
    if name in table.columns.variants:
        return Selected(column.name, VariantPath(), column=name)
    return replace(column, type=table.columns.ordinary[name], column=name)
