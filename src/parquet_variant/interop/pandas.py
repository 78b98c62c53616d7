"""Variants in pandas: an extension dtype ``variant``, and a ``.variant`` accessor on series of it.

Owns the two classes that pandas asks for. Leaves the values to `VariantArray`, and what the accessor answers to
`functions`. Importing this module registers both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray, ExtensionDtype, register_extension_dtype, register_series_accessor

from parquet_variant.array.chunked_array import variant_table
from parquet_variant.array.variant_array import VariantArray, is_one_value, refuse_one_value
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, check_choice
from parquet_variant.functions.python_objects import from_python
from parquet_variant.functions.schema_of_variant import schema_of_variant_agg
from parquet_variant.functions.to_json import to_json
from parquet_variant.functions.variant_get import try_variant_get, variant_get
from parquet_variant.functions.variant_type import variant_type


@register_extension_dtype
class VariantDtype(ExtensionDtype):
    """The dtype ``variant``: a value of it is a `Variant`, a missing one ``pd.NA``.

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
        """The array class, as pandas asks."""
        return VariantExtensionArray

    def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> VariantExtensionArray:
        return VariantExtensionArray(VariantArray(array))


class VariantExtensionArray(ExtensionArray):
    """The values of a series: a `VariantArray`, shredded or not.

    Parameters
    ----------
    variants
        The column.
    """

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
        """Bytes of the buffers."""
        return self.variants.nbytes

    def __len__(self) -> int:
        return len(self.variants)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, (int, np.integer)):
            value = self.variants[int(item)]
            return pd.NA if value is None else value
        if isinstance(item, slice):
            return type(self)(self.variants[item])
        picked = np.asarray(pd.api.indexers.check_array_indexer(self, item))
        return type(self)(self.variants[picked])

    def __setitem__(self, key: Any, value: Any) -> None:
        rows = np.arange(len(self))[pd.api.indexers.check_array_indexer(self, key)]
        is_one = np.ndim(rows) == 0 or is_one_value(value)
        others = self._from_sequence([value] if is_one else value)
        where = np.arange(len(self))
        where[rows] = len(self) + (0 if is_one else np.arange(len(others)))
        # Arrow data is never changed: another takes its place.
        self.variants = self._concat_same_type([self, others]).variants.take(where)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, (pd.Series, pd.Index, pd.DataFrame)):
            return NotImplemented
        others = other if isinstance(other, VariantExtensionArray) else [other] * len(self)
        pairs = [_is_equal(mine, its) for mine, its in zip(self, others, strict=True)]
        return pd.array(pairs, dtype="boolean")

    __hash__ = None  # type: ignore[assignment]

    def isna(self) -> Any:
        """Which rows are SQL NULL."""
        return self.variants.is_null().to_numpy(zero_copy_only=False)

    def take(
        self, indices: Sequence[int], *, allow_fill: bool = False, fill_value: Any = None
    ) -> VariantExtensionArray:
        """The rows at some indices; with ``allow_fill``, -1 is a missing row."""
        picked = np.asarray(indices, np.int64)
        if not allow_fill:
            if len(picked) and not len(self):
                raise IndexError("cannot take of an empty array")
            return self[picked]
        if len(picked) and (picked.min() < -1 or picked.max() >= len(self)):
            raise (ValueError if picked.min() < -1 else IndexError)("an index is out of bounds")
        positions = pa.array(picked, mask=picked < 0)
        taken = type(self)(VariantArray(self.variants.storage.take(positions)))
        if not _is_missing(fill_value) and (picked < 0).any():
            taken[picked < 0] = fill_value
        return taken

    def copy(self) -> VariantExtensionArray:
        """The same values: Arrow data is never changed."""
        return type(self)(self.variants)

    @classmethod
    def _from_factorized(cls, values: Any, original: VariantExtensionArray) -> VariantExtensionArray:
        return cls._from_sequence(values)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[VariantExtensionArray]) -> VariantExtensionArray:
        arrays = [each.variants for each in to_concat]
        if len({array.storage.type for array in arrays}) > 1:
            arrays = [array.to_unshredded() for array in arrays]
        return cls(VariantArray.concat(arrays))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # One by one: NumPy would take Variants, which can be indexed, for rows of a table.
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


def _is_equal(mine: Any, its: Any) -> Any:
    if mine is pd.NA or _is_missing(its):
        return pd.NA
    return mine == (its if isinstance(its, Variant) else Variant.from_python(its))


@register_series_accessor("variant")
class VariantAccessor:
    """What can be asked of a series of Variants.

    Examples
    --------
    >>> events = pd.Series([{"a": 1}, {"a": "x"}], dtype="variant")
    >>> events.variant.get("$.a", "bigint", errors="null").tolist()
    [1, <NA>]
    """

    def __init__(self, series: Any) -> None:
        if not isinstance(series.dtype, VariantDtype):
            raise AttributeError(f".variant is for series of dtype variant, not {series.dtype}")
        self._series = series

    @property
    def array(self) -> VariantArray:
        """The values as a `VariantArray`."""
        variants: VariantArray = self._series.array.variants
        return variants

    def get(self, path: str, type: Any = "variant", *, errors: str = "raise") -> Any:
        """The values at a path as a typed series (Arrow dtypes), or as Variants; see `pv.variant_get`.

        Raises
        ------
        CastError
            For a value that cannot be cast, unless ``errors="null"``.
        """
        check_choice("errors", errors, ("raise", "null"), SchemaError)
        values = (variant_get if errors == "raise" else try_variant_get)(self.array, path, type)
        return self._series_of(values)

    def to_json(self) -> Any:
        """The values as JSON text."""
        return self._series_of(to_json(self.array))

    def type(self) -> Any:
        """The type of each value, as `pv.variant_type` names it."""
        return self._series_of(variant_type(self.array))

    def schema(self) -> str:
        """The type of all values together, as `pv.schema_of_variant_agg` says it."""
        return str(schema_of_variant_agg(self.array))

    def _series_of(self, values: Any) -> Any:
        if isinstance(values, VariantArray):
            return pd.Series(VariantExtensionArray(values), index=self._series.index, name=self._series.name)
        return pd.Series(
            pd.arrays.ArrowExtensionArray(pa.chunked_array([values])), index=self._series.index, name=self._series.name
        )


def to_pandas(array: VariantArray, name: str | None = None) -> Any:
    """A series of dtype ``variant``; no copy."""
    return pd.Series(VariantExtensionArray(array), name=name)


def from_pandas(series: Any) -> VariantArray:
    """The Variants of a series: of dtype ``variant`` as they are, of any other the values of its cells.

    Raises
    ------
    CastError
        For an object that has no Variant type, with the row.
    """
    values = series.array if isinstance(series, (pd.Series, pd.Index)) else series
    refuse_one_value(values)
    if isinstance(values, VariantExtensionArray):
        return values.variants
    return VariantExtensionArray._from_sequence(values).variants


def table_of_frame(frame: Any) -> pa.Table:
    """A data frame as an Arrow table whose Variant columns carry the extension's name; the index is left out."""
    plain = [name for name in frame.columns if not isinstance(frame.dtypes[name], VariantDtype)]
    table = pa.Table.from_pandas(frame[plain], preserve_index=False).replace_schema_metadata(None)
    columns = {
        str(name): frame[name].array.variants if name not in plain else table.column(str(name))
        for name in frame.columns
    }
    return variant_table(columns)
