"""Tables and vectors that grow while kernels fill them.

Owns copying to a larger one, by plain loops: assigning slices makes Numba compile its way of wording shape errors.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.compiling import njit

__all__ = ["grown", "grown_table"]


@njit
def grown(values, size):
    """The vector, or a copy of at least twice its length, with room for ``size`` entries."""
    if size <= len(values):
        return values
    larger = np.empty(max(size, 2 * len(values)), values.dtype)
    for i in range(len(values)):
        larger[i] = values[i]
    return larger


@njit
def grown_table(table, rows):
    """The table of integers, or a copy of at least twice its height, with room for ``rows`` rows."""
    if rows <= table.shape[0]:
        return table
    larger = np.empty((max(rows, 2 * table.shape[0]), table.shape[1]), np.int64)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            larger[i, j] = table[i, j]
    return larger
