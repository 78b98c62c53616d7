"""Functions of one value, applied row by row: the scalar reference for rows that a kernel does not decide.

Owns error handling (an error is raised with its row, or the row becomes null), and inserting these rows into the result
of a kernel. Leaves the choice of the rows to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy

T = TypeVar("T")


def row_by_row(rows: Iterable[int], of_row: Callable[[int], T], *, null_on_error: bool = False) -> list[T | None]:
    """Return the result of a function for each row number.

    With ``null_on_error``, the result is None for rows for which it raises; otherwise the first error is raised, with
    its row.

    >>> from parquet_variant.encoding.variant import Variant
    >>> values = [Variant.from_python(1), Variant(b"", b"")]
    >>> row_by_row(range(2), lambda row: values[row].to_json(), null_on_error=True)
    ['1', None]
    """
    results: list[T | None] = []
    for row in rows:
        try:
            results.append(of_row(row))
        except VariantError as error:
            if not null_on_error:
                error.row = row
                raise
            results.append(None)
    return results


def with_fallback_rows(
    storage: pa.StructArray,
    refused: npt.NDArray[Any],
    by_fallback: Callable[[int], pa.StructArray],
    *,
    null_on_error: bool = False,
) -> pa.StructArray:
    """Return a storage made by a kernel with its refused rows replaced; the function returns the storage of one row."""
    rows = np.flatnonzero(refused)
    if not len(rows):
        return storage
    pieces = row_by_row(rows.tolist(), lambda row: by_fallback(row).cast(storage.type), null_on_error=null_on_error)
    pieces = [pa.nulls(1, storage.type) if piece is None else piece for piece in pieces]
    positions = np.arange(len(storage))
    positions[rows] = len(storage) + np.arange(len(rows))
    return pa.concat_arrays([storage, *pieces]).take(from_numpy(positions))
