"""A function of one value, row by row: the scalar fallback of rows that a kernel leaves.

Owns what becomes of an error (it is raised with its row, or the row is null), and putting rows among those of a kernel.
Leaves which rows those are to the kernels.
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
    """What a function gives for each row, by its number.

    With ``null_on_error``, rows for which it raises give None; otherwise the first error is raised, with its row.

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
    """Replace the refused rows of a storage that a kernel made; the function gives the storage of one row."""
    rows = np.flatnonzero(refused)
    if not len(rows):
        return storage
    pieces = row_by_row(rows.tolist(), lambda row: by_fallback(row).cast(storage.type), null_on_error=null_on_error)
    pieces = [pa.nulls(1, storage.type) if piece is None else piece for piece in pieces]
    where = np.arange(len(storage))
    where[rows] = len(storage) + np.arange(len(rows))
    return pa.concat_arrays([storage, *pieces]).take(from_numpy(where))
