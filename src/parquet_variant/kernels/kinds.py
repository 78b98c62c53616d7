"""The kinds of values in kernels: the `PrimitiveId` of a scalar (every string is STRING), ARRAY and OBJECT."""

from __future__ import annotations

from parquet_variant.types import PrimitiveId

NULL, TRUE, FALSE = int(PrimitiveId.NULL), int(PrimitiveId.TRUE), int(PrimitiveId.FALSE)
INT8, INT16 = int(PrimitiveId.INT8), int(PrimitiveId.INT16)
INT32, INT64 = int(PrimitiveId.INT32), int(PrimitiveId.INT64)
DECIMAL4, DECIMAL8, DECIMAL16 = int(PrimitiveId.DECIMAL4), int(PrimitiveId.DECIMAL8), int(PrimitiveId.DECIMAL16)
FLOAT, DOUBLE = int(PrimitiveId.FLOAT), int(PrimitiveId.DOUBLE)
DATE, TIME = int(PrimitiveId.DATE), int(PrimitiveId.TIME)
STRING, BINARY, UUID = int(PrimitiveId.STRING), int(PrimitiveId.BINARY), int(PrimitiveId.UUID)

# Beyond the primitive ids.
ARRAY = 21
OBJECT = 22
