"""`PlannedQuery`: what every planned query has, over Parquet files, Delta tables or Vortex files.

Owns its columns, and the whole answer. Leaves the plan, and the parts of the answer, to each format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from parquet_variant.array.empty_table import empty_table
from parquet_variant.query.selection import Selected


class PlannedQuery(ABC):
    """Output columns, columns that only the filter looks at, and the answer, in parts or as a whole."""

    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the answer; a Variant is a struct that names its extension."""
        return pa.schema([each.field for each in self.selection])

    @property
    def every_column(self) -> tuple[Selected, ...]:
        """The columns that are read: those that are asked for, and those of the filter."""
        return (*self.selection, *self.hidden)

    @abstractmethod
    def batches(self) -> Iterator[pa.Table]:
        """The answer in parts."""

    def to_table(self) -> pa.Table:
        """The whole answer."""
        parts = list(self.batches())
        return pa.concat_tables(parts) if parts else empty_table(self.schema)
