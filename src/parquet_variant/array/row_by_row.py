"""A function of one value, row by row.

Owns what becomes of an error: it is raised with its row, or the row is null. Leaves whole columns to kernels, which
leave rows to such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from parquet_variant.errors import VariantError

__all__ = ["row_by_row"]

T = TypeVar("T")


def row_by_row(rows: Iterable[int], of_row: Callable[[int], T], *, null_on_error: bool = False) -> list[T | None]:
    """What a function gives for each row.

    Parameters
    ----------
    rows
        The numbers of the rows.
    of_row
        The function.
    null_on_error
        Whether rows for which it raises give None; otherwise the first of these errors is raised, with its row.

    Examples
    --------
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
