"""Rows that a kernel leaves to the scalar fallback.

Owns putting the scalar fallback's rows among those of the kernel. Leaves which rows those are to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError

__all__ = ["with_fallback_rows"]


def with_fallback_rows(
    storage: pa.StructArray, refused: npt.NDArray[Any], by_fallback: Callable[[int], pa.StructArray]
) -> pa.StructArray:
    """Replace the refused rows of a storage by what the scalar fallback makes of them.

    Parameters
    ----------
    storage
        What the kernel made.
    refused
        A flag a row.
    by_fallback
        Gives the storage of one row, or raises what is wrong with it.
    """
    rows = np.flatnonzero(refused)
    if not len(rows):
        return storage
    pieces = []
    for row in rows.tolist():
        try:
            pieces.append(by_fallback(row).cast(storage.type))
        except VariantError as error:
            error.row = row
            raise
    where = np.arange(len(storage))
    where[rows] = len(storage) + np.arange(len(rows))
    return pa.concat_arrays([storage, *pieces]).take(pa.array(where))
