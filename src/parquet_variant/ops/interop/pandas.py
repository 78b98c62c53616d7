"""Variants in pandas: an extension dtype ``variant``, and a ``.variant`` accessor for its series.

Owns the classes that pandas requires. Leaves the values to `VariantArray`, and the operations of the accessor to
`functions`. Importing this module registers the dtype and the accessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, register_series_accessor
from pandas.arrays import ArrowExtensionArray

from parquet_variant.arrays.variant_array import VariantArray, is_one_value, refuse_one_value
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, check_choice
from parquet_variant.ops.conversions import from_python, to_json
from parquet_variant.ops.equals import equals
from parquet_variant.ops.value_types import schema_of_variant_agg, variant_type
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.support.options import Errors


@register_extension_dtype
class VariantDtype(ExtensionDtype):
    """The dtype ``variant``: a value is a `Variant`, a missing value is ``pd.NA``.

    Examples
    --------
    >>> pd.Series([{"a": 1}, None], dtype="variant").isna().tolist()
    [False, True]
    """

    name = "variant"
    type = Variant
    kind = "O"
    na_value = pd.NA

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the array class."""
        return VariantExtensionArray

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> VariantExtensionArray:
        return VariantExtensionArray(VariantArray(array))


class VariantExtensionArray(ExtensionArray):
    """The values of a series: a `VariantArray`, shredded or not."""

    def __init__(self, variants: VariantArray) -> None:
        self.variants = variants

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> VariantExtensionArray:
        if isinstance(scalars, cls):
            return cls(scalars.variants)
        if isinstance(scalars, VariantArray):
            return cls(scalars)
        return cls(from_python([None if _is_missing(value) else value for value in scalars]))

    @property
    def dtype(self) -> VariantDtype:
        """The dtype ``variant``."""
        return VariantDtype()

    @property
    def nbytes(self) -> int:
        """The number of bytes of the buffers."""
        return self.variants.nbytes

    def __len__(self) -> int:
        return len(self.variants)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, (int, np.integer)):
            value = self.variants[int(item)]
            return pd.NA if value is None else value
        if isinstance(item, slice):
            return type(self)(self.variants[item])
        rows = np.asarray(pd.api.indexers.check_array_indexer(self, item))
        return type(self)(self.variants[rows])

    def __setitem__(self, key: Any, value: Any) -> None:
        rows = np.arange(len(self))[pd.api.indexers.check_array_indexer(self, key)]
        is_one = np.ndim(rows) == 0 or is_one_value(value)
        values = self._from_sequence([value] if is_one else value)
        positions = np.arange(len(self))
        positions[rows] = len(self) + (0 if is_one else np.arange(len(values)))
        # Arrow data is immutable, so the array is replaced.
        self.variants = self._concat_same_type([self, values]).variants.take(positions)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, (pd.Series, pd.Index, pd.DataFrame)):
            return NotImplemented
        if _is_missing(other):
            return pd.array([pd.NA] * len(self), dtype="boolean")
        right = other.variants if isinstance(other, VariantExtensionArray) else from_python([other])[0]
        return pd.array(equals(self.variants, right).to_pylist(), dtype="boolean")

    __hash__ = None  # type: ignore[assignment]

    def isna(self) -> Any:
        """Return the mask of SQL NULL rows."""
        return self.variants.is_null().to_numpy(zero_copy_only=False)

    def take(
        self, indices: Sequence[int], *, allow_fill: bool = False, fill_value: Any = None
    ) -> VariantExtensionArray:
        """Return the rows at indices; with ``allow_fill``, -1 is a missing row."""
        rows = np.asarray(indices, np.int64)
        if not allow_fill:
            if len(rows) and not len(self):
                raise IndexError("cannot take rows of an empty array")
            return self[rows]
        if len(rows) and (rows.min() < -1 or rows.max() >= len(self)):
            raise (ValueError if rows.min() < -1 else IndexError)("an index is out of bounds")
        positions = pa.array(rows, mask=rows < 0)
        taken = type(self)(VariantArray(self.variants.storage.take(positions)))
        if not _is_missing(fill_value) and (rows < 0).any():
            taken[rows < 0] = fill_value
        return taken

    def copy(self) -> VariantExtensionArray:
        """Return an array of the same values; they need no copy, since Arrow data is immutable."""
        return type(self)(self.variants)

    @classmethod
    def _from_factorized(cls, values: Any, original: VariantExtensionArray) -> VariantExtensionArray:
        return cls._from_sequence(values)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[VariantExtensionArray]) -> VariantExtensionArray:
        arrays = [array.variants for array in to_concat]
        if len({array.storage.type for array in arrays}) > 1:
            arrays = [array.to_unshredded() for array in arrays]
        return cls(VariantArray.concat(arrays))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Assigned one by one, since NumPy would treat Variants, which can be indexed, as rows of a table.
        values = np.empty(len(self), object)
        for row, value in enumerate(self):
            values[row] = value
        return values if dtype is None else values.astype(dtype)

    def __arrow_array__(self, type: Any = None) -> pa.Array:
        return self.variants.storage

    def _formatter(self, boxed: bool = False) -> Any:
        return lambda value: "<NA>" if value is pd.NA else value.to_json()


def _is_missing(value: Any) -> bool:
    return value is None or bool(pd.api.types.is_scalar(value) and pd.isna(value))


@register_series_accessor("variant")
class VariantAccessor:
    """The ``.variant`` accessor of a series of Variants.

    Examples
    --------
    >>> events = pd.Series([{"a": 1}, {"a": "x"}], dtype="variant")
    >>> events.variant.get("$.a", "bigint", errors="null").tolist()
    [1, <NA>]
    """

    def __init__(self, series: Any) -> None:
        if not isinstance(series.dtype, VariantDtype):
            raise AttributeError(f".variant works only on series of dtype variant, not {series.dtype}")
        self._series = series

    @property
    def array(self) -> VariantArray:
        """The values as a `VariantArray`."""
        variants: VariantArray = self._series.array.variants
        return variants

    def get(self, path: str, type: Any = "variant", *, errors: Errors = "raise") -> Any:
        """Return the values at a path as a typed series (Arrow dtypes) or as Variants; see `pv.variant_get`.

        Raises
        ------
        CastError
            For a value that cannot be cast, unless ``errors="null"``.
        """
        check_choice("errors", errors, ("raise", "null"), SchemaError)
        return self._series_of(variant_get(self.array, path, type, errors=errors))

    def to_json(self) -> Any:
        """Return the values as JSON text."""
        return self._series_of(to_json(self.array))

    def type(self) -> Any:
        """Return the type of each value; see `pv.variant_type`."""
        return self._series_of(variant_type(self.array))

    def schema(self) -> str:
        """Return the common type of all values; see `pv.schema_of_variant_agg`."""
        return str(schema_of_variant_agg(self.array))

    def _series_of(self, values: Any) -> Any:
        is_variant = isinstance(values, VariantArray)
        array = VariantExtensionArray(values) if is_variant else ArrowExtensionArray(pa.chunked_array([values]))
        return pd.Series(array, index=self._series.index, name=self._series.name)


def to_pandas(array: VariantArray, name: str | None = None) -> Any:
    """Return a series of dtype ``variant``, without copying."""
    return pd.Series(VariantExtensionArray(array), name=name)


def from_pandas(series: Any) -> VariantArray:
    """Return the Variants of a series of dtype ``variant``, or the Python values of any other series as Variants."""
    values = series.array if isinstance(series, (pd.Series, pd.Index)) else series
    refuse_one_value(values)
    return VariantExtensionArray._from_sequence(values).variants
