"""`JsonTable`, `MemoryTable` and `SparkTable`: data that has no columns on disk.

Owns the classes. Higher layers implement their operations, because JSON is read by `ingestion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from parquet_variant.ops.interop.tables import table_of
from parquet_variant.tables.table.base import OpenOptions, TableFormat
from parquet_variant.tables.table.table import Table


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
        super().__init__(table_of(source) if isinstance(source, Mapping) else source, options)
        self._table: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The rows as a pyarrow table."""
        if self._table is None:
            self._table = table_of(self._source)
        return self._table

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
