"""`equals`: which values mean the same.

Owns the public operation and its `try_` twin, and the quick yes for equal bytes. Leaves different bytes to
`kernels.operations.equals`, and malformed values to `Variant`, whose equality decides.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import metadata_parts
from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.arrow_input import as_variant_array
from parquet_variant.compute.node_tables import NameNumbers, ValueBatch, canonical_nodes, present_rows
from parquet_variant.compute.null_on_error import or_none
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.kernels.operations.equals import compare_rows


@overload
def equals(left: Variant, right: Variant) -> bool: ...
@overload
def equals(left: Any, right: Any) -> pa.BooleanArray: ...
def equals(left: Any, right: Any) -> bool | pa.BooleanArray:
    """Compare values by meaning, row by row, whatever their bytes and layouts.

    Integers and decimals are one class of numbers (``1`` equals ``1.00``), timestamps of both units are; float and
    double are classes of their own, NaN equals NaN. The order of fields does not matter, that of elements does.

    Parameters
    ----------
    left, right
        Columns of the same length, or a `Variant` to compare all rows with. Two of them give a bool.

    Returns
    -------
    pyarrow.BooleanArray or bool
        Null where either is SQL NULL.

    Raises
    ------
    SchemaError
        If the lengths differ.
    MalformedVariantError
        If the bytes of a value are malformed, with the row; equal bytes are equal unread.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> left, right = pv.parse_json(['{"a": 1, "b": 2}', "1", None]), pv.parse_json(['{"b": 2, "a": 1.0}', "2", "3"])
    >>> pv.equals(left, right).to_pylist()
    [True, False, None]
    """
    if isinstance(left, Variant) and isinstance(right, Variant):
        return left == right
    return compared(left, right, null_on_error=False)


def try_equals(left: Any, right: Any) -> bool | pa.BooleanArray | None:
    r"""Compare values as `equals` does; null where that would raise for a row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_equals(pv.VariantArray.from_variants(rows), pv.Variant.from_python([1])).to_pylist()
    [True, None]
    """
    if isinstance(left, Variant) and isinstance(right, Variant):
        return or_none(lambda: left == right)
    return compared(left, right, null_on_error=True)


def compared(left: Any, right: Any, *, null_on_error: bool) -> pa.BooleanArray:
    """Compare two columns; with ``null_on_error`` null for rows that would raise."""
    if isinstance(left, Variant):
        left, right = right, left
    first = as_variant_array(left).to_unshredded()
    if isinstance(right, Variant):
        second = VariantArray(
            VariantArray.from_variants([right]).storage.take(from_numpy(np.zeros(len(first), np.int64)))
        )
    else:
        second = as_variant_array(right).to_unshredded()
    if len(first) != len(second):
        raise SchemaError(f"{len(first)} values cannot be compared with {len(second)}", reason="length")
    valid = present_rows(first.storage) & present_rows(second.storage)
    result = valid & _same_bytes(first.storage, second.storage)
    rest = np.flatnonzero(valid & ~result)
    if len(rest):
        some = [side.take(rest) for side in (first, second)]
        same, decided = _same_meaning(some[0].storage, some[1].storage)
        result[rest[same]] = True
        rest = rest[~decided]
        answers = row_by_row(rest.tolist(), lambda row: first[row] == second[row], null_on_error=null_on_error)
        result[rest] = [answer is True for answer in answers]
        valid[rest] = [answer is not None for answer in answers]
    return from_numpy(result, ~valid)


def _same_bytes(left: pa.StructArray, right: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Which rows have the same metadata and the same value; anything for SQL NULL."""
    ours, theirs = metadata_parts(left.field("metadata")), metadata_parts(right.field("metadata"))
    if not len(ours.dictionary) or not len(theirs.dictionary):
        return np.zeros(len(left), np.bool_)
    # The first place of equal bytes stands for all of them.
    first = to_numpy(pc.index_in(ours.dictionary, ours.dictionary))
    other = to_numpy(pc.index_in(theirs.dictionary, ours.dictionary).fill_null(-1))
    values = [storage.field("value").cast(pa.large_binary()) for storage in (left, right)]
    same = to_numpy(pc.equal(*values).fill_null(False))
    equal: npt.NDArray[np.bool_] = (first[ours.indices] == other[theirs.indices]) & same
    return equal


def _same_meaning(left: pa.StructArray, right: pa.StructArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows mean the same, and which the kernel decided."""
    batches = [ValueBatch.of(side, present_rows(side)) for side in (left, right)]
    table = NameNumbers(batches)
    (nodes, row_start, refused), (other, other_start, other_refused) = map(canonical_nodes, batches, table.maps)
    same = np.zeros(len(left), np.uint8)
    compare_rows(nodes, row_start, other, other_start, same)
    decided = (refused == 0) & (other_refused == 0)
    return (same != 0) & decided, decided
