"""Sort runs of numbers inside kernels.

Owns one algorithm: most runs are short or already sorted, and NumPy's sort allocates memory that kernels do not count.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s


@helper
def widest_gap(count: int) -> int:
    """Return the first gap of the sort."""
    gap = 1
    while gap < count // 3:
        gap = gap * 9 // 4 + 1
    return gap


@kernel
def sort_run(values: Int64s, begin: int, end: int) -> None:
    """Sort the entries of a vector from ``begin`` to ``end`` (Shell sort with Tokuda's gaps)."""
    gap = widest_gap(end - begin)
    while True:
        for i in range(begin + gap, end):
            value = values[i]
            j = i
            while j - gap >= begin and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        if gap == 1:
            break
        gap = gap * 4 // 9


@kernel
def sort_with(ranks: Int64s, values: Int64s, begin: int, end: int) -> None:
    """Sort the entries of ``ranks`` from ``begin`` to ``end``, and move those of ``values`` with them."""
    gap = widest_gap(end - begin)
    while True:
        for i in range(begin + gap, end):
            rank, value = ranks[i], values[i]
            j = i
            while j - gap >= begin and ranks[j - gap] > rank:
                ranks[j], values[j] = ranks[j - gap], values[j - gap]
                j -= gap
            ranks[j], values[j] = rank, value
        if gap == 1:
            break
        gap = gap * 4 // 9
