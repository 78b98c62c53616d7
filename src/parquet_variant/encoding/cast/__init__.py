"""Casts of one Variant to another type: the readable reference of every cast.

Owns the entry point `cast_variant`. The casts are those of Spark 4.3's ``variant_get``; ``docs/casts.md`` lists the
differences, and the casts of types that Spark lacks. Leaves arrays of values to `ops.variant_get`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import CastError
from parquet_variant.types.forms import plain_form
from parquet_variant.types.targets import target_of


def cast_variant(variant: Variant, target: pa.DataType, *, zone: str = "UTC", safe: bool = True) -> Any:
    """Return a Variant as a Python object of an Arrow type.

    `target`: the Arrow type; a struct of non-nullable binaries ``metadata`` and ``value`` stands for Variant.
    `zone`: the session time zone, for casts between instants and local times.
    `safe`: raise an error for a value that cannot be cast; without it, the value becomes None.
    Returns the object that ``pyarrow.Scalar.as_py`` returns for the type; None for Variant null. Raises `CastError`:
    ``bad-cast`` if the value cannot be cast; ``unsupported-target`` for a type that Variants cannot be cast to;
    ``bad-zone``; ``out-of-python`` for dates outside the years 1 to 9999, which Arrow holds but Python does not. Raises
    `MalformedVariantError` if the bytes are malformed.

    >>> cast_variant(Variant.from_python("2020-01-01"), pa.date32())
    datetime.date(2020, 1, 1)
    >>> cast_variant(Variant.from_python([1, "2", None]), pa.list_(pa.int8()))
    [1, 2, None]
    >>> cast_variant(Variant.from_python(300), pa.int8())
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: cannot cast int16 300 to int8: use errors="null" to get null instead
    """
    # Imported here because most columns are cast by kernels.
    from parquet_variant.encoding.cast.values import array_of_raw, cast_raw

    target_of(target)  # the error names the type itself, not its plain form
    compiled = target_of(plain_form(target))
    raw = cast_raw(variant, compiled, zone_of(zone), safe)
    try:
        return array_of_raw([raw], compiled)[0].as_py()
    except (OverflowError, ValueError) as err:
        raise CastError(
            f"the {target} is outside the years 1 to 9999 of Python's datetime ({err}): cast an array instead",
            reason="out-of-python",
        ) from None
