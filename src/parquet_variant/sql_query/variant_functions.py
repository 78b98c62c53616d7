"""Functions over Variants in local SQL: what the engine calls, and under which names users know them.

Owns the implementations and their argument types. Leaves paths, which are functions of the engine too, to `streams`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.columns.sort_keys import equal_forms, keys_of_number_texts, sort_keys
from parquet_variant.ops.conversions import cast_to_variant, to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.ops.value_types import is_variant_null, schema_of_variant, schema_of_variant_agg, variant_type
from parquet_variant.ops.variant_explode import variant_explode
from parquet_variant.sql_query.batches import plain_variants
from parquet_variant.sql_query.containers import keys_of_objects, sizes_of
from parquet_variant.sql_query.containment import contains_each
from parquet_variant.types import BasicType
from parquet_variant.types.targets import VARIANT_STORAGE

VARIANT = "STRUCT(metadata BLOB, value BLOB)"  # DuckDB's type for Variants on their way through it
_ENTRIES = f"STRUCT(pos INTEGER, key VARCHAR, value {VARIANT})[]"


@dataclass(frozen=True, slots=True)
class VariantFunction:
    """A function that the engine calls with Arrow arrays."""

    work: Callable[..., pa.Array]
    arguments: tuple[str, ...]  # DuckDB's types.
    result: str

    @property
    def returns_variant(self) -> bool:
        """Return whether the result is a Variant."""
        return self.result == VARIANT


def column_of(argument: Any) -> VariantArray:
    """Return an argument of the engine as a `VariantArray`; a column of nulls alone has no type."""
    column = one_chunk(argument)
    if pa.types.is_null(column.type):
        column = pa.nulls(len(column), VARIANT_STORAGE)
    return VariantArray(column)


def _as_plain_string(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string()) if pa.types.is_large_string(texts.type) else texts


def _parse_strings(texts: Any, parse: Callable[..., Any]) -> pa.Array:
    return plain_variants(parse(one_chunk(texts).cast(pa.binary())))


def _group_array(lists: Any) -> pa.Array:
    column = one_chunk(lists)
    rows: list[Variant | None] = []
    for row in range(len(column)):
        elements = column[row].values
        if elements is None:
            rows.append(None)
            continue
        values = [None if element is None else element.to_python() for element in column_of(elements)]
        rows.append(Variant.from_python(values))
    return plain_variants(VariantArray.from_variants(rows))


def _schema_agg(lists: Any) -> pa.Array:
    column = one_chunk(lists)
    texts = [
        None if column[row].values is None else schema_of_variant_agg(column_of(column[row].values))
        for row in range(len(column))
    ]
    return pa.array(texts, pa.string())


def _entries(argument: Any, outer: bool) -> pa.Array:
    """Return the elements or fields of each value as a list; with `outer` at least one entry, of nulls."""
    column = column_of(argument)
    table = variant_explode(column)
    rows = table["row"].to_numpy()
    counts = np.bincount(rows, minlength=len(column)).astype(np.int64) if len(rows) else np.zeros(len(column), np.int64)
    value = plain_variants(VariantArray(one_chunk(table["value"])))
    arrays = [one_chunk(table["pos"]).cast(pa.int32()), one_chunk(table["key"]).cast(pa.string()), value]
    entries = pa.StructArray.from_arrays(arrays, ["pos", "key", "value"])
    if outer and (counts == 0).any():
        entries, counts = _with_empty_entries(entries, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), entries)


def _with_empty_entries(entries: pa.StructArray, counts: Any) -> tuple[pa.StructArray, Any]:
    """Insert an entry of nulls for each row that has none."""
    starts = np.cumsum(counts) - counts
    indices: list[int | None] = []
    for start, number in zip(starts.tolist(), counts.tolist(), strict=True):
        indices += range(start, start + number) if number else [None]
    taken = entries.take(pa.array(indices, pa.int64()))
    parts = [taken.field(name) for name in ("pos", "key", "value")]
    parts = [pa.compute.if_else(taken.is_valid(), part, pa.scalar(None, part.type)) for part in parts[:2]] + parts[2:]
    return pa.StructArray.from_arrays(parts, ["pos", "key", "value"]), np.maximum(counts, 1)


def _sort_keys_of_moments(moments: Any) -> pa.BinaryArray:
    return sort_keys(cast_to_variant(one_chunk(moments)))


FUNCTIONS: dict[str, VariantFunction] = {
    "to_json": VariantFunction(lambda v: _as_plain_string(to_json(column_of(v))), (VARIANT,), "VARCHAR"),
    "is_variant_null": VariantFunction(lambda v: is_variant_null(column_of(v)), (VARIANT,), "BOOLEAN"),
    "schema_of_variant": VariantFunction(
        lambda v: _as_plain_string(schema_of_variant(column_of(v))), (VARIANT,), "VARCHAR"
    ),
    "variant_type": VariantFunction(lambda v: variant_type(column_of(v)).cast(pa.string()), (VARIANT,), "VARCHAR"),
    "variant_keys": VariantFunction(
        lambda v: keys_of_objects(column_of(v), otherwise_empty=True), (VARIANT,), "VARCHAR[]"
    ),
    "object_keys": VariantFunction(
        lambda v: keys_of_objects(column_of(v), otherwise_empty=False), (VARIANT,), "VARCHAR[]"
    ),
    "variant_array_length": VariantFunction(
        lambda v: sizes_of(column_of(v), BasicType.ARRAY, otherwise=0), (VARIANT,), "BIGINT"
    ),
    "array_size": VariantFunction(lambda v: sizes_of(column_of(v), BasicType.ARRAY), (VARIANT,), "BIGINT"),
    "cardinality": VariantFunction(
        lambda v: sizes_of(column_of(v), BasicType.ARRAY, BasicType.OBJECT), (VARIANT,), "BIGINT"
    ),
    "variant_normalize": VariantFunction(
        lambda v: plain_variants(variant_normalize(column_of(v))), (VARIANT,), VARIANT
    ),
    "variant_contains": VariantFunction(
        lambda v, needle: contains_each(column_of(v), column_of(needle)), (VARIANT, VARIANT), "BOOLEAN"
    ),
    "parse_json": VariantFunction(lambda text: _parse_strings(text, parse_json), ("BLOB",), VARIANT),
    "try_parse_json": VariantFunction(
        lambda text: _parse_strings(text, partial(parse_json, errors="null")), ("BLOB",), VARIANT
    ),
    "variant_form": VariantFunction(lambda v: plain_variants(equal_forms(column_of(v))), (VARIANT,), VARIANT),
    "sort_key": VariantFunction(lambda v: sort_keys(column_of(v)), (VARIANT,), "BLOB"),
    "sort_key_of_json": VariantFunction(
        lambda text: sort_keys(parse_json(one_chunk(text).cast(pa.string()))), ("VARCHAR",), "BLOB"
    ),
    "sort_key_of_number": VariantFunction(
        lambda text: keys_of_number_texts(one_chunk(text).cast(pa.string())), ("VARCHAR",), "BLOB"
    ),
    "sort_key_of_date": VariantFunction(_sort_keys_of_moments, ("DATE",), "BLOB"),
    "sort_key_of_timestamp": VariantFunction(_sort_keys_of_moments, ("TIMESTAMPTZ",), "BLOB"),
    "sort_key_of_timestamp_ntz": VariantFunction(_sort_keys_of_moments, ("TIMESTAMP",), "BLOB"),
    "variant_explode": VariantFunction(lambda v: _entries(v, False), (VARIANT,), _ENTRIES),
    "variant_explode_outer": VariantFunction(lambda v: _entries(v, True), (VARIANT,), _ENTRIES),
    "variant_group_array": VariantFunction(_group_array, (f"{VARIANT}[]",), VARIANT),
    "schema_of_variant_agg": VariantFunction(_schema_agg, (f"{VARIANT}[]",), "VARCHAR"),
}
# The names that users write -> the function; each takes a Variant, and a path into it as an optional second argument.
OF_ONE_VARIANT = {
    "is_variant_null": "is_variant_null",
    "is_null_value": "is_variant_null",
    "schema_of_variant": "schema_of_variant",
    "variant_type": "variant_type",
    "variant_typeof": "variant_type",
    "variant_keys": "variant_keys",
    "object_keys": "object_keys",
    "json_object_keys": "object_keys",
    "json_keys": "object_keys",
    "variant_array_length": "variant_array_length",
    "array_size": "array_size",
    "array_length": "array_size",
    "json_array_length": "variant_array_length",
    "variant_normalize": "variant_normalize",
    "cardinality": "cardinality",
    "size": "cardinality",
}
PARSERS = frozenset(["parse_json", "try_parse_json"])
AGGREGATES = frozenset(["variant_group_array", "schema_of_variant_agg"])
# Functions in FROM -> the function that lists the rows, and the columns of the result.
EXPLODES = {
    "variant_explode": ("variant_explode", ("pos", "key", "value")),
    "variant_explode_outer": ("variant_explode_outer", ("pos", "key", "value")),
    "flatten": ("variant_explode", ("index", "key", "value")),
}
