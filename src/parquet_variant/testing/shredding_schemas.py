"""The strategy `shredding_schemas`: schemas that fit some values well, partly or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.schema.primitive_types import DDL_NAMES
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.testing.lazy import strategies
from parquet_variant.types import EXACT_NUMERIC, TYPES, VariantType


def shredding_schemas(variants: Sequence[Variant | None] = (), *, max_depth: int = 4) -> Any:
    """Schemas, drawn so that most of their nodes meet values of the kind that they shred.

    Parameters
    ----------
    variants
        The values that will be shredded.
    max_depth
        The most levels of a schema.

    Examples
    --------
    >>> shredding_schemas([Variant.from_python({"a": 1})]) is not None
    True
    """
    st = strategies()

    @st.composite
    def schemas(draw: Callable[[Any], Any]) -> ShreddingSchema:
        return _schema(draw, st, [variant for variant in variants if variant is not None], max_depth)

    return schemas()


def _schema(draw: Callable[[Any], Any], st: Any, values: list[Variant], depth: int) -> ShreddingSchema:
    wild = draw(st.integers(0, 11))
    if wild == 0 or (depth == 1 and wild < 4):
        return ShreddingSchema.variant()
    if wild == 1 or depth == 1 or not values:
        return ShreddingSchema.primitive(draw(_primitives(st)))
    model = draw(st.sampled_from(values))
    if model.type == VariantType.OBJECT:
        names = draw(st.sets(st.sampled_from([*model.keys(), "absent"]), min_size=1, max_size=5))
        objects = [dict(value.items()) for value in values if value.type == VariantType.OBJECT]
        return ShreddingSchema.object(
            {
                name: _schema(draw, st, [fields[name] for fields in objects if name in fields], depth - 1)
                for name in sorted(names)
            }
        )
    if model.type == VariantType.ARRAY:
        arrays = [value for value in values if value.type == VariantType.ARRAY]
        return ShreddingSchema.array(_schema(draw, st, [element for array in arrays for element in array], depth - 1))
    if model.type in EXACT_NUMERIC:
        return ShreddingSchema.primitive(draw(_numbers(st)))
    arrow = TYPES[model.type].arrow
    return ShreddingSchema.variant() if arrow is None else ShreddingSchema.primitive(arrow)


def _numbers(st: Any) -> Any:
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: pa.decimal128(precision, scale))
    )
    return st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64()]) | decimals


def _primitives(st: Any) -> Any:
    return st.sampled_from(sorted(set(DDL_NAMES.values()), key=str)) | _numbers(st)
