"""Finding values inside Variant bytes, a column at a time: by key, by index, all elements; and reading them.

Owns the walk over encoded values (`Located`) and the reading of scalars into cells (`Cells`). A key's dictionary id is
looked up once for each distinct metadata, not for each row. Leaves what a cell becomes to `cast_cells`, and the wording
of faults to `encoding.validate`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import BinaryParts, binary_parts, metadata_parts, valid_bytes
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.compiling import njit
from parquet_variant.kernels.memory import equal, load_s8, load_s16, load_s32, load_u8, load_u32, load_u64, load_uint
from parquet_variant.types import PrimitiveId

__all__ = ["ARRAY", "MISSING", "OBJECT", "Cells", "Located"]
