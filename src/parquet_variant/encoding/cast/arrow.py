"""Raw results of casts as Arrow arrays.

Owns how each target type stores what `nested.cast_raw` gives. Leaves the casts themselves to `nested`, and types that
only store values in another form to `forms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.cast.forms import fixed_size_lists
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE, Target
from parquet_variant.encoding.python_values import scalar_to_python
from parquet_variant.types import VariantType


def array_of_raw(raws: Sequence[Any], target: Target) -> pa.Array:
    """An Arrow array of the target's type, a plain one (see `forms`), from raw results; None for null.

    >>> from parquet_variant.encoding.cast.targets import target_of
    >>> array_of_raw([1, None], target_of(pa.date32())).to_pylist()
    [datetime.date(1970, 1, 2), None]
    """
    arrow = target.arrow
    match target.family:
        case "list":
            return _lists(raws, target)
        case "struct":
            return _structs(raws, target)
        case "map":
            return _maps(raws, target)
        case "variant":
            return _variants(raws)
        case "decimal":
            kind, scale = VariantType.DECIMAL16, target.scale
            return pa.array([None if raw is None else scalar_to_python(kind, (raw, scale)) for raw in raws], arrow)
        case "date" | "time" | "timestamp" | "timestamp_ntz":
            ticks = pa.int32() if arrow.bit_width == 32 else pa.int64()
            return pa.array(raws, ticks).view(arrow)
        case "uuid":
            return pa.ExtensionArray.from_storage(arrow, pa.array(raws, pa.binary(16)))
        case "float16":
            halves = [None if raw is None else np.float16(raw) for raw in raws]
            return pa.array(halves, arrow)
        case _:
            return pa.array(raws, arrow)


def _mask(raws: Sequence[Any]) -> pa.Array:
    return pa.array([raw is None for raw in raws], pa.bool_())


def _lists(raws: Sequence[Any], target: Target) -> pa.Array:
    arrow = target.arrow
    if target.size >= 0:
        padded = chain.from_iterable([None] * target.size if raw is None else raw for raw in raws)
        elements = array_of_raw(list(padded), target.children[0])
        return fixed_size_lists(elements, arrow, _mask(raws))
    elements = array_of_raw(list(chain.from_iterable(raw or () for raw in raws)), target.children[0])
    offsets = np.zeros(len(raws) + 1, np.int64)
    np.cumsum([len(raw or ()) for raw in raws], out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements, mask=_mask(raws))
    return lists.cast(pa.large_list(arrow.value_field)).cast(arrow)


def _structs(raws: Sequence[Any], target: Target) -> pa.Array:
    columns = [
        array_of_raw([None if raw is None else raw[index] for raw in raws], child)
        for index, child in enumerate(target.children)
    ]
    fields = [target.arrow.field(index) for index in range(target.arrow.num_fields)]
    if not fields:
        return pa.array([None if raw is None else {} for raw in raws], target.arrow)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=_mask(raws))


def _maps(raws: Sequence[Any], target: Target) -> pa.Array:
    pairs = list(chain.from_iterable(raw or () for raw in raws))
    offsets = np.zeros(len(raws) + 1, np.int32)
    np.cumsum([len(raw or ()) for raw in raws], out=offsets[1:])
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.array([key for key, _ in pairs], target.arrow.key_type),
        array_of_raw([item for _, item in pairs], target.children[0]),
        type=target.arrow,
        mask=_mask(raws),
    )


def _variants(raws: Sequence[Any]) -> pa.Array:
    parts = [pa.array([b"" if raw is None else raw[index] for raw in raws], pa.binary()) for index in (0, 1)]
    fields = [VARIANT_STORAGE.field(index) for index in (0, 1)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_mask(raws))
