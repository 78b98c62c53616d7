"""Functions over Variants for engines that call Python with Arrow columns: Spark's sessions and DuckDB's connections.

Owns their names, arguments and results, and the work by path. Leaves how a Variant enters and leaves an engine to the
engine's module, and what the SQL of this package calls to `variant_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.layouts.storage_shape import DDL_NAMES
from parquet_variant.ops.columns.sort_keys import sort_keys
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.value_edits import (
    strip_nulls,
    variant_array_append,
    variant_delete,
    variant_insert,
    variant_set,
)
from parquet_variant.ops.value_types import is_variant_null, schema_of_variant
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.choices import Errors

# Suffix of the name of a getter -> its return type: a function of an engine has one return type for all arguments.
GETTER_TYPES: dict[str, pa.DataType] = {
    name: DDL_NAMES.get(name, pa.decimal128(38, 9))
    for name in (
        "boolean", "int", "bigint", "float", "double", "decimal", "string", "binary", "date", "timestamp",
        "timestamp_ntz",
    )
}  # fmt: skip
_EDITS: dict[str, Callable[..., Any]] = {
    "variant_set": variant_set, "variant_insert": variant_insert, "variant_array_append": variant_array_append,
}  # fmt: skip
# What an error is, by the prefix of the name.
_PREFIXES: dict[str, Errors] = {"": "raise", "try_": "null"}
# The work over Arrow columns, and the type of its result; None for Variants.
EngineFunction: TypeAlias = "tuple[Callable[..., pa.Array], pa.DataType | None]"


@dataclass(frozen=True, slots=True)
class VariantColumns:
    """How an engine's columns of Variants are read and made: `kind` is the Arrow type of those that `make` returns."""

    read: Callable[[pa.Array], VariantArray]
    make: Callable[[VariantArray], pa.Array]
    kind: pa.DataType

    def functions(self, zone: str) -> dict[str, EngineFunction]:
        """Return the functions by name; casts use a session time zone."""
        parse: Callable[..., Any] = parse_json
        functions: dict[str, EngineFunction] = {
            "parse_json": (lambda text: self.make(parse(text)), None),
            "try_parse_json": (lambda text: self.make(parse(text, errors="null")), None),
            "to_json": (lambda values: to_json(self.read(values)), pa.string()),
            "schema_of_variant": (lambda values: schema_of_variant(self.read(values)).cast(pa.string()), pa.string()),
            "is_variant_null": (lambda values: is_variant_null(self.read(values)), pa.bool_()),
            "canonical": (lambda values: sort_keys(self.read(values)), pa.binary()),
            "variant_strip_nulls": (lambda values: self.make(strip_nulls(self.read(values))), None),
            "variant_delete": (lambda values, paths: self._by_path(paths, None, variant_delete, values), None),
        }
        for prefix, errors in _PREFIXES.items():
            for name, edit in _EDITS.items():
                functions[f"{prefix}{name}"] = self._edit(edit, errors), None
            functions[f"{prefix}variant_get"] = self._getter(None, zone, errors), None
            for suffix, kind in GETTER_TYPES.items():
                functions[f"{prefix}variant_get_{suffix}"] = self._getter(kind, zone, errors), kind
        return functions

    def _getter(self, kind: pa.DataType | None, zone: str, errors: Errors) -> Callable[[pa.Array, pa.Array], pa.Array]:
        """Return a function ``(variants, paths) -> values``."""
        get = partial(variant_get, type="variant" if kind is None else kind, zone=zone, errors=errors)
        return lambda values, paths: self._by_path(paths, kind, get, values)

    def _edit(self, edit: Callable[..., Any], errors: Errors) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
        """Return a function ``(variants, paths, new values) -> changed variants``; all values are Variants."""
        return lambda values, paths, new: self._by_path(paths, None, partial(edit, errors=errors), values, new)

    def _by_path(
        self, paths: pa.Array, kind: pa.DataType | None, work: Callable[..., Any], values: pa.Array, *others: pa.Array
    ) -> pa.Array:
        """Return the results for the rows of each path, in the order of the rows; NULL where the path is NULL.

        `work`: called with the Variants of the rows of a path, the path, and further Variants.
        """
        columns = list(map(self.read, (values, *others)))

        def of_path(path: str, first: VariantArray, *further: VariantArray) -> pa.Array:
            result = work(first, path, *further)
            return self.make(result) if kind is None else result

        distinct = paths.unique()
        if len(distinct) == 1 and distinct[0].is_valid:
            return of_path(distinct[0].as_py(), *columns)
        order = [np.flatnonzero(paths.is_null().to_numpy(zero_copy_only=False))]
        parts = [pa.nulls(len(order[0]), self.kind if kind is None else kind)]
        for path in distinct.drop_null().to_pylist():
            rows = np.flatnonzero(pc.fill_null(pc.equal(paths, path), False).to_numpy(zero_copy_only=False))
            order.append(rows)
            parts.append(of_path(path, *(column.take(rows) for column in columns)))
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order))))
