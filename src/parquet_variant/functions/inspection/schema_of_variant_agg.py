"""`schema_of_variant_agg`: the one type that holds all values of a column.

Owns the public operation and its `try_` twin, and the walk over a column path by path. Leaves merging to
`encoding.schema_of`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.schema_of import (
    MAX_DEPTH,
    VOID,
    SparkType,
    decimal_type,
    merge_all,
    merged,
    object_type,
    scalar_type,
)
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.columns.value_positions import ScalarSlots, ValuePositions
from parquet_variant.functions.inputs.null_on_error import only_rows, readable_storage
from parquet_variant.functions.inputs.variant_input import as_variant_array
from parquet_variant.functions.inspection.schema_of_variant import type_texts
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.kinds import ARRAY, OBJECT
from parquet_variant.kernels.operations import get
from parquet_variant.types import TYPE_OF_ID, PrimitiveId

_DECIMALS = (PrimitiveId.DECIMAL4, PrimitiveId.DECIMAL8, PrimitiveId.DECIMAL16)


def schema_of_variant_agg(array: Any) -> str:
    """Tell the one type that holds all values, as Spark's ``schema_of_variant_agg`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`. SQL NULL rows do not count.

    Returns
    -------
    str
        ``VOID`` where there is no value.

    Raises
    ------
    MalformedVariantError
        If a value is malformed, with its row.
    VariantError
        With reason ``depth`` for values nested deeper than 200.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.schema_of_variant_agg(pv.parse_json(['{"a": 1}', '{"a": 2.5, "b": "x"}', None]))
    'OBJECT<a: DECIMAL(21,1), b: STRING>'
    """
    if isinstance(array, Variant):
        array = VariantArray.from_variants([array])
    return str(_of_positions(ValuePositions.of_storage(as_variant_array(array).to_unshredded().storage), 0))


def try_schema_of_variant_agg(array: Any) -> str:
    r"""Tell the one type that holds all values that can be read, as `schema_of_variant_agg` does.

    Rows for which `try_schema_of_variant` gives null do not count, as if they were SQL NULL.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_schema_of_variant_agg(pv.VariantArray.from_variants(rows))
    'ARRAY<BIGINT>'
    """
    if isinstance(array, Variant):
        array = VariantArray.from_variants([array])
    try:
        return schema_of_variant_agg(array)
    except VariantError:
        storage = readable_storage(array)
    readable = to_numpy(type_texts(storage, null_on_error=True).is_valid())
    return schema_of_variant_agg(only_rows(storage, readable))


def _of_positions(value_positions: ValuePositions, depth: int) -> SparkType:
    if depth > MAX_DEPTH:
        raise VariantError(f"values are nested deeper than {MAX_DEPTH}", reason="depth")
    slots = value_positions.slots()
    kind = merge_all(_scalars(slots))
    if (slots.kinds == ARRAY).any():
        _, _, elements = value_positions.elements()
        inner = _of_positions(elements, depth + 1) if len(elements) else VOID
        kind = merged(kind, SparkType("ARRAY", element=inner))
    if (slots.kinds == OBJECT).any():
        kind = merged(kind, _objects(value_positions, depth))
    return kind


def _scalars(slots: ScalarSlots) -> Iterable[SparkType]:
    for kind in np.unique(slots.kinds).tolist():
        if kind in (ARRAY, OBJECT, get.MISSING):
            continue
        if kind in _DECIMALS:
            yield from _decimal_types(slots, slots.kinds == kind)
        else:
            yield scalar_type(TYPE_OF_ID[PrimitiveId(kind)].type)


def _decimal_types(slots: ScalarSlots, chosen: npt.NDArray[np.bool_]) -> set[SparkType]:
    numbers = np.unique(np.stack([slots.a[chosen], slots.b[chosen], slots.scales[chosen].astype(np.int64)]), axis=1)
    return {decimal_type((high << 64) | (low & 0xFFFFFFFFFFFFFFFF), scale) for low, high, scale in numbers.T.tolist()}


def _objects(value_positions: ValuePositions, depth: int) -> SparkType:
    _, _, ids, values = value_positions.fields()
    if not len(ids):
        return object_type({})
    keys = value_positions.dictionaries.name_numbers(values.metas, ids)
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order], prepend=-1))
    names = value_positions.dictionaries.distinct_names
    return object_type(
        {
            names[keys[positions[0]]].as_py(): _of_positions(values.take(positions), depth + 1)
            for positions in np.split(order, bounds[1:])
        }
    )
