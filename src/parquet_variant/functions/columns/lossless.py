"""Which slots are of a target type already: the same value, without a cast.

Owns that question for `get_variant_element`. Leaves the conversion of the slots that are to `slot_casts`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from parquet_variant.encoding.cast.targets import Target
from parquet_variant.functions.columns.value_positions import ScalarSlots
from parquet_variant.kernels.kinds import ARRAY, OBJECT
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.values import cast_slots
from parquet_variant.types import TYPE_OF_ID, PrimitiveId

_P = PrimitiveId
_KINDS: dict[str, tuple[int, ...]] = {
    "boolean": (_P.TRUE, _P.FALSE),
    "null": (),
    "float16": (),
    "float32": (_P.FLOAT,),
    "float64": (_P.FLOAT, _P.DOUBLE),
    "string": (_P.STRING,),
    "binary": (_P.BINARY,),
    "uuid": (_P.UUID,),
    "date": (_P.DATE,),
    "time": (_P.TIME,),
    "timestamp": (_P.TIMESTAMP, _P.TIMESTAMP_NANOS),
    "timestamp_ntz": (_P.TIMESTAMP_NTZ, _P.TIMESTAMP_NTZ_NANOS),
    "list": (ARRAY,),
    "struct": (OBJECT,),
    "map": (OBJECT,),
}


def only_lossless(slots: ScalarSlots, target: Target) -> ScalarSlots:
    """The slots without those that would change, or be of another type, as the target."""
    if target.family == "variant":
        return slots
    if target.family in ("integer", "decimal"):
        same = _exact(slots, target)
    else:
        same = np.isin(slots.kinds, _KINDS[target.family])
        if target.family in ("time", "timestamp", "timestamp_ntz"):
            same &= _on_a_tick(slots, target)
    kinds = np.where(same, slots.kinds, get.MISSING).astype(np.uint8)
    return dataclasses.replace(slots, kinds=kinds)


def _exact(slots: ScalarSlots, target: Target) -> npt.NDArray[np.bool_]:
    """Exact numbers that the target holds exactly."""
    done = np.zeros(len(slots), np.bool_)
    numbers = np.flatnonzero(
        ((slots.kinds >= _P.INT8) & (slots.kinds <= _P.INT64))
        | ((slots.kinds >= _P.DECIMAL4) & (slots.kinds <= _P.DECIMAL16))
    )
    precision, scale = (target.precision, target.scale) if target.family == "decimal" else (38, 0)
    scratch = np.empty(2 * len(slots), np.int64)
    cast_slots.decimal_slots(
        numbers,
        slots.kinds,
        slots.a,
        slots.b,
        slots.scales,
        min(precision, 38),
        min(scale, 38),
        address_of(scratch),
        done,
    )
    return done


def _on_a_tick(slots: ScalarSlots, target: Target) -> npt.NDArray[np.bool_]:
    from parquet_variant.encoding.cast.scalars import NANOS_OF

    holds = np.zeros(len(slots), np.bool_)
    for kind in _KINDS[target.family]:
        nanos = NANOS_OF[TYPE_OF_ID[_P(kind)].type]
        exact = np.ones(len(slots), np.bool_) if nanos >= target.tick else slots.a % (target.tick // nanos) == 0
        holds |= (slots.kinds == kind) & exact
    return holds
