"""`KeyColumns`: keys of the rows that become typed columns, while the rest of each row remains a Variant.

This module takes the values of the keys out of parsed rows. `request` has the option, and `job` chooses the types. A
value that does not have the type of its column remains in the Variant, so that no value is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.parts import columns_of, struct_of
from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.errors import VariantError, bad_option
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.profile import PathProfile
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import DROPPED, HAS_DROPPED, Tape, path_ids, project, without_dropped
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.similar_paths import similar_key
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import PrimitiveId
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

# Decimals of a sample say little about the scale of the others: that of BigQuery's NUMERIC, or Spark's largest decimal.
_PRECISION, _SCALES = 38, (0, 9, 18)


class KeyColumns(Record):
    """The keys that become columns, each with its type; a key whose node is not a primitive type is a Variant."""

    nodes: Mapping[str, ShreddingSchema] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, schema: pa.Schema, keys: Iterable[str]) -> KeyColumns:
        """Return the columns of a table that are made of keys."""
        kinds = {name: schema.field(name).type for name in keys if name in schema.names}
        variant, typed = ShreddingSchema.variant(), ShreddingSchema.primitive
        return cls({name: variant if pa.types.is_nested(kind) else typed(kind) for name, kind in kinds.items()})

    def completed(self, schema: ShreddingSchema, keys: Iterable[str]) -> tuple[KeyColumns, ShreddingSchema]:
        """Return the columns of all keys, of which these are in a table, and the rest of a schema that types them."""
        nodes = dict[str, ShreddingSchema]()
        for name in keys:
            node, inferred = self.nodes.get(name), schema.field(name)
            if node is None or (node.type is None and inferred is not None and inferred.type is None):
                node = inferred
            if node is None:
                raise bad_option(f"columns= names {name}, which schema= lacks: add it with its type")
            nodes[name] = node
        other_fields = {name: node for name, node in schema.fields if name not in nodes}
        without = ShreddingSchema.object(other_fields) if other_fields else ShreddingSchema.variant()
        return KeyColumns(nodes), without if nodes else schema

    @property
    def typed(self) -> dict[VariantPath, ShreddingSchema]:
        """The types of the columns that are not Variants, by the path of the key."""
        return {VariantPath((name,)): node for name, node in self.nodes.items() if node.type is not None}

    @property
    def fields(self) -> list[pa.Field]:
        """The columns as Arrow fields."""
        variant = VARIANT_STORAGE, EXTENSION_METADATA
        kinds = {name: variant if node.type is None else (node.type, None) for name, node in self.nodes.items()}
        return [pa.field(name, kind, metadata=metadata) for name, (kind, metadata) in kinds.items()]

    def take(self, tape: Tape) -> tuple[dict[str, Any], Tape]:
        """Return the columns of some rows, and the rows without their values; `tape` must not be used any more.

        A missing key and JSON null are NULL. A value that does not have the type of the column remains in its row.
        """
        if not self.nodes:
            return {}, tape
        copied = replace(tape, nodes=tape.nodes.copy(), row_start=tape.row_start.copy())
        keys = project(copied, [VariantPath((name,)) for name in self.nodes])
        storage = columns_of(shredded_rows(keys, ShreddingSchema.object(self.nodes), per_batch=True).storage())
        groups, columns, tags = columns_of(storage["typed_value"]), dict[str, Any](), tape.nodes[:, 0]
        for name, node in self.nodes.items():
            parts = columns_of(groups[name])
            columns[name] = parts.get("typed_value")
            missing = parts.get("typed_value", parts["value"]).is_null()
            if node.type is None:
                missing = pc.and_(missing, parts["value"].is_null())
                columns[name] = trusted_array(struct_of({"metadata": storage["metadata"], **parts}, missing))
            if (number := tape.find_path((name,))) is not None:
                nodes = np.flatnonzero((path_ids(tags) == number) & (tags & DROPPED == 0))
                rows = np.searchsorted(tape.row_start, nodes, "right") - 1
                is_taken = ~to_numpy(missing)[rows] | (tags[nodes] & 0xFF == PrimitiveId.NULL)
                tags[nodes[is_taken]] |= DROPPED
                objects = tape.row_start[rows[is_taken]]
                tags[objects] |= HAS_DROPPED
                tape.nodes[objects, 1] -= 1
        return columns, without_dropped(tape)


def with_key_types(schema: ShreddingSchema, root: PathProfile | None, keys: Sequence[str]) -> ShreddingSchema:
    """Return a schema with the types of the values at keys of the rows, by their profile.

    Raises `VariantError` (``no-such-path``) for a key that no row has.
    """
    nodes = dict(schema.fields)
    for name in keys:
        if (profile := None if root is None else root.field(name)) is None:
            nearest = similar_key(name, [] if root is None else [str(field.segment) for field in root.fields])
            remedy = "name a key of the rows, not a path" if nearest is None else f"did you mean {nearest}?"
            raise VariantError(
                f"columns= names {name}, and no sampled row has this key: {remedy}", reason="no-such-path"
            )
        best = best_column(profile)
        kind = pa.string() if best is None else best.arrow
        if kind is not None and pa.types.is_decimal(kind):
            max_scale = _PRECISION - (kind.precision - kind.scale)
            kind = pa.decimal128(_PRECISION, next((s for s in _SCALES if kind.scale <= s <= max_scale), kind.scale))
        nodes[name] = nodes.get(name, ShreddingSchema.variant()) if kind is None else ShreddingSchema.primitive(kind)
    return ShreddingSchema.object(nodes) if keys else schema
