"""Variants in polars: a ``variant`` namespace of series and expressions.

Owns the two namespaces. Leaves the operations to `functions`. Importing this module registers both.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.layouts.type_grammar import as_target, result_type, value_target
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.value_types import variant_type
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.support.options import Errors
from parquet_variant.types.path import VariantPath


@pl.api.register_series_namespace("variant")
class VariantSeries:
    """The ``variant`` namespace of a series of Variants.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> events = pv.parse_json(['{"a": 1}', '{"a": 2}']).to_polars("v")
    >>> events.variant.get("$.a", "bigint").to_list()
    [1, 2]
    """

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    @property
    def array(self) -> VariantArray:
        """The values as a `VariantArray`."""
        return VariantArray.from_arrow(self._series)

    def get(self, path: str, type: Any = "variant", *, errors: Errors = "raise") -> pl.Series:
        """Return the values at a path as a typed series or as Variants; see `pv.variant_get`."""
        return self._series_of(variant_get(self.array, path, type, errors=errors))

    def to_json(self) -> pl.Series:
        """Return the values as JSON text."""
        return self._series_of(to_json(self.array))

    def type(self) -> pl.Series:
        """Return the type of each value; see `pv.variant_type`."""
        return self._series_of(variant_type(self.array))

    def _series_of(self, values: Any) -> pl.Series:
        # All Variants are unshredded, since an expression must know its type before it has values.
        column = values.to_unshredded() if isinstance(values, VariantArray) else values
        return pl.Series(column).alias(self._series.name)


@pl.api.register_expr_namespace("variant")
class VariantExpr:
    """The ``variant`` namespace of expressions: ``pl.col("v").variant.get("$.a", "bigint")``."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def get(self, path: str, type: Any = "variant", *, errors: Errors = "raise") -> pl.Expr:
        """Return the values at a path."""
        parsed = VariantPath.parse(path)
        if isinstance(type, str) and type.strip().lower() == "variant" and not parsed.has_wildcard:
            dtype = pl.Series(VariantArray.from_pylist([])).dtype
        else:
            dtype = pl.Series(pa.nulls(0, result_type(value_target(as_target(type), parsed), parsed))).dtype
        return self._expression.map_batches(
            lambda series: VariantSeries(series).get(path, type, errors=errors), return_dtype=dtype
        )

    def to_json(self) -> pl.Expr:
        """Return the values as JSON text."""
        return self._expression.map_batches(lambda series: VariantSeries(series).to_json(), return_dtype=pl.String())

    def type(self) -> pl.Expr:
        """Return the type of each value."""
        return self._expression.map_batches(lambda series: VariantSeries(series).type(), return_dtype=pl.String())


def to_polars(array: VariantArray, name: str = "") -> pl.Series:
    """Return a series that keeps the name of the extension."""
    return pl.Series(array).alias(name)


def data_frame(table: pa.Table) -> pl.DataFrame:
    """Return a data frame with the column names of a table, where polars would rename a column without a name."""
    frame = pl.DataFrame(table)
    frame.columns = table.column_names
    return frame
