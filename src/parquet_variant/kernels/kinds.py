"""The kinds of values in kernels: the `PrimitiveId` of a scalar (every string is STRING), ARRAY and OBJECT."""

from __future__ import annotations

from parquet_variant.kernels.compiling import numbered
from parquet_variant.types import PrimitiveId

# The ids go from 0 on; arrays and objects have the next ones.
KIND = numbered(" ".join([*PrimitiveId.__members__, "ARRAY", "OBJECT"]))
