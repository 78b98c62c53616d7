"""The kinds of values in kernels: the `PrimitiveId` of a scalar (STRING for every string), ARRAY and OBJECT."""

from __future__ import annotations

from parquet_variant.kernels.compiling import numbered
from parquet_variant.types import PrimitiveId

# Ids of scalars start at 0; ARRAY and OBJECT follow.
KIND = numbered(" ".join([*PrimitiveId.__members__, "ARRAY", "OBJECT"]))
