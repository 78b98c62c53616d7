"""The tables without a log: Parquet, Vortex and JSON files, rows in memory, and Spark DataFrames.

Owns the classes, and `MemoryScan`, a query by path over rows in memory. Leaves filters to `query.predicate`, paths to
`ops.columns`, and JSON to `ingestion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import pyarrow as pa

from parquet_variant.arrays.capsules import chosen_variant, named_variants
from parquet_variant.arrays.parts import known_versions, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_DEPTH
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.query.predicate import evaluate
from parquet_variant.query.selection import PlannedQuery, Question, Selected
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.table.base import OpenOptions, TableFormat
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath

_BATCH_ROWS = 1 << 16
# The requested types of which values are shredded while text is parsed, so that no bytes are read for them.
_SHREDDED = {pa.string(): pa.string(), pa.bool_(): pa.bool_()} | dict.fromkeys((pa.int32(), pa.int64()), pa.int64())


class MemoryScan(PlannedQuery, Record):
    """A planned query over an Arrow table; `errors` and `zone` are as for `Table.scan`."""

    table: pa.Table
    question: Question  # The request, bound to the types of the columns; paths name their Variant columns.
    errors: Errors = "null"
    zone: str = "UTC"

    @classmethod
    def plan(
        cls,
        table: pa.Table,
        columns: Mapping[str, Any] | Sequence[str],
        where: Any = None,
        *,
        column: str | None = None,
        errors: Errors = "null",
        zone: str = "UTC",
    ) -> MemoryScan:
        """Return the scan of a table for a request as users write it; see `Table.scan`."""
        question = Question.of(columns, where)
        variants = named_variants(table.schema)
        types = {field.name: None if field.name in variants else field.type for field in table.schema}
        if missing := [name for name in question.ordinary_names if name not in types]:
            as_path = f", and a path is written $.{missing[0]}" if variants else ""
            raise VariantFileError(
                f"unknown column {missing[0]}: choose from {', '.join(types)}{as_path}", reason="no-such-column"
            )
        if any(selected.path is not None and selected.column is None for selected in question.columns):
            column = chosen_variant(variants, column, VariantFileError, "no-such-column")
        return cls(table, question.bound(types, zone, column), errors, zone)

    @property
    def bytes_read(self) -> int:
        """The bytes of the rows."""
        return self.table.nbytes

    def explain(self) -> ScanReport:
        """Report the rows and bytes in memory, all of which are read."""
        rows, size = self.table.num_rows, self.table.nbytes
        return ScanReport(rows_read=rows, rows_total=rows, bytes_read=size, bytes_total=size)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts with at least one row."""
        for start in range(0, self.table.num_rows, _BATCH_ROWS):
            part = self.result_of(self.table.slice(start, _BATCH_ROWS))
            if len(part):
                yield part

    def result_of(self, rows: pa.Table) -> pa.Table:
        """Return the result for some rows."""
        storage_of = cache(lambda column: known_versions(VariantArray.from_arrow(rows, column).storage))
        columns = {selected.name: self._values(rows, selected, storage_of) for selected in self.question.columns}
        result = pa.table([columns[selected.name] for selected in self.selection], schema=self.schema)
        return result if self.predicate is None else result.filter(evaluate(self.predicate, columns))

    def _values(self, rows: pa.Table, selected: Selected, storage_of: Callable[[str], pa.StructArray]) -> pa.Array:
        if selected.path is None and selected.type is not None:
            return one_chunk(rows[selected.stored_name])
        return selected.values_in(storage_of(selected.stored_name), safe=self.errors == "raise", zone=self.zone)


def typed_paths(columns: Iterable[Selected]) -> ShreddingSchema | None:
    """Return the schema under which text is parsed for some columns; None if no typed column can be read from it."""
    from parquet_variant.inference.policies.decision import schema_of_leaves

    whole_paths = [(column.path or VariantPath()).segments for column in columns if column.type is None]
    leaves = {
        column.path: ShreddingSchema.primitive(_SHREDDED[column.type])
        for column in columns
        if column.path is not None
        and column.type in _SHREDDED
        and len(column.path.segments) < MAX_DEPTH
        and all(isinstance(key, str) for key in column.path.segments)
        and not any(column.path.segments[: len(above)] == above for above in whole_paths)
    }
    return schema_of_leaves(leaves) if leaves else None


def read_column(table: pa.Table, column: str | None = None) -> VariantArray:
    """Return a Variant column of rows in memory."""
    return VariantArray.from_arrow(
        table, chosen_variant(named_variants(table.schema), column, VariantFileError, "no-such-column")
    )


def select_columns(table: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return some columns of rows in memory, with Variants as storage structs."""
    return table if columns is None else table.select(list(columns))


class JsonTable(Table):
    """JSON files, whose values are the Variant column ``v``; see `Table`."""

    format: ClassVar[TableFormat] = "json"


class MemoryTable(Table):
    """Rows in memory: arrays, Arrow data, data frames, or columns by name; see `Table`.

    Parameters
    ----------
    source
        The data.
    options
        The options of `pv.open`.
    """

    format: ClassVar[TableFormat] = "memory"

    def __init__(self, source: Any, options: OpenOptions) -> None:
        super().__init__(rows_of(source) if isinstance(source, Mapping) else source, options)

    @cached_property
    def table(self) -> pa.Table:
        """The rows as a pyarrow table."""
        return rows_of(self._source)

    def _target(self, operation: str) -> pa.Table:
        return self.table

    def __repr__(self) -> str:
        return f"<MemoryTable of a {type(self._source).__name__}>"

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns; a Variant is a struct whose field has the extension name."""
        return self.table.schema


class SparkTable(Table):
    """A Spark DataFrame, whose operations run as Spark jobs; see `Table`."""

    format: ClassVar[TableFormat] = "spark"


class ParquetTable(Table):
    """Parquet files with Variant columns; see `Table`."""

    format: ClassVar[TableFormat] = "parquet"


class VortexTable(Table):
    """Vortex files; see `Table`."""

    format: ClassVar[TableFormat] = "vortex"

    def read_json(self, column: str | None = None, *, exact: bool = False) -> pa.Array:
        """Read a Variant or JSON column as JSON text.

        Parameters
        ----------
        column
            The column, if there are several.
        exact
            Return the text as it was written; only columns that were written with ``exact=True`` have it.
        """
        return self._run("read_json", column=column, exact=exact)
