"""The forms of a tabular result: pyarrow, polars, pandas and Python objects, by one set of methods.

Owns the methods. Leaves reading the rows to the classes that have them, and columns of Variants to the modules
`interop.pandas` and `interop.polars`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.support.lazy_names import optional_libraries


class ArrowResult(ABC):
    """A table that can be read as pyarrow, polars, pandas or Python objects."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow table."""

    def to_polars(self) -> Any:
        """Return the rows as a polars data frame; Variant columns have a ``.variant`` namespace."""
        with optional_libraries("to_polars"):
            import polars

            import parquet_variant.interop.polars  # noqa: F401 - registers the namespace
        return polars.from_arrow(self.to_arrow())

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame; Variant columns have the dtype ``variant``."""
        table = self.to_arrow()
        variants = [field.name for field in table.schema if is_variant_field(field)]
        with optional_libraries("to_pandas"):
            frame = table.drop_columns(variants).to_pandas()
        for number, name in enumerate(table.column_names):
            if name in variants:
                frame.insert(number, name, VariantArray.from_arrow(table, name).to_pandas(name))
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; Variants are Python objects."""
        table = self.to_arrow()
        columns = [
            VariantArray.from_arrow(table, field.name).to_pylist()
            if is_variant_field(field)
            else table[field.name].to_pylist()
            for field in table.schema
        ]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
