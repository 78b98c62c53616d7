"""Rows that a kernel leaves to the scalar fallback.

Owns putting the scalar fallback's rows among those of the kernel. Leaves which rows those are to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.row_by_row import row_by_row

__all__ = ["with_fallback_rows"]


def with_fallback_rows(
    storage: pa.StructArray,
    refused: npt.NDArray[Any],
    by_fallback: Callable[[int], pa.StructArray],
    *,
    null_on_error: bool = False,
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
    null_on_error
        As `row_by_row`.
    """
    rows = np.flatnonzero(refused)
    if not len(rows):
        return storage
    pieces = row_by_row(rows.tolist(), lambda row: by_fallback(row).cast(storage.type), null_on_error=null_on_error)
    pieces = [pa.nulls(1, storage.type) if piece is None else piece for piece in pieces]
    where = np.arange(len(storage))
    where[rows] = len(storage) + np.arange(len(rows))
    return pa.concat_arrays([storage, *pieces]).take(pa.array(where))
