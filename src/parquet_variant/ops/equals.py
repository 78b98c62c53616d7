"""`equals`: comparison of values by meaning.

Owns the public operation, and the quick answer for equal bytes. `kernels.values.value_nodes` compares different
bytes, and the equality of `Variant` decides for malformed values.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import known_versions, metadata_parts, row_by_row, valid_mask
from parquet_variant.arrays.value_positions import NameNumbers, ValuePositions, canonical_nodes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.kernels.values.value_nodes import compare_rows
from parquet_variant.ops.columns.arguments import check_errors, or_none, unchecked_array
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import Errors


@overload
def equals(left: Variant, right: Variant, *, errors: Errors = ...) -> bool | Any: ...
@overload
def equals(left: Any, right: Any, *, errors: Errors = ...) -> pa.BooleanArray: ...
def equals(left: Any, right: Any, *, errors: Errors = "raise") -> bool | pa.BooleanArray | None:
    """Compare values row by row, by meaning instead of by bytes or layout.

    Integers and decimals are compared as numbers (``1`` equals ``1.00``), and so are timestamps of both units. Float
    and double are separate types, and NaN equals NaN. The order of fields does not matter, the order of elements does.

    Parameters
    ----------
    left, right
        Columns of the same length, or a `Variant` to compare with all rows. Two Variants give a bool.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.BooleanArray or bool
        Null where either is SQL NULL.

    Raises
    ------
    SchemaError
        If the lengths differ.
    MalformedVariantError
        If the bytes of a value are malformed, with the row; equal bytes are not read.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> left, right = pv.parse_json(['{"a": 1, "b": 2}', "1", None]), pv.parse_json(['{"b": 2, "a": 1.0}', "2", "3"])
    >>> pv.equals(left, right).to_pylist()
    [True, False, None]
    """
    null_on_error = check_errors(errors)
    if isinstance(left, Variant) and isinstance(right, Variant):
        return or_none(lambda: left == right, errors)
    if isinstance(left, Variant):
        left, right = right, left
    first = unchecked_array(left).to_unshredded()
    other = VariantArray.from_variants([right]).take(np.zeros(len(first), int)) if isinstance(right, Variant) else right
    second = unchecked_array(other).to_unshredded()
    if len(first) != len(second):
        message = f"cannot compare columns of {len(first):,} and {len(second):,} rows: pass columns of the same length"
        raise SchemaError(message, reason="length")
    valid = valid_mask(first.storage) & valid_mask(second.storage)
    is_known = np.all(
        [valid_mask(known_versions(side.storage, null_on_error=True)) for side in (first, second)], axis=0
    )
    result = is_known & _same_bytes(first.storage, second.storage)
    # Equal bytes are equal values unless they are malformed: an object may have a key twice.
    equal_rows = np.flatnonzero(result)
    storage = first.take(equal_rows).storage
    batch = ValuePositions.of_storage(storage)
    result[equal_rows[canonical_nodes(batch, NameNumbers([batch]).maps[0])[2] != 0]] = False
    undecided = np.flatnonzero(valid & ~result)
    if len(undecided):
        sides = [side.take(undecided) for side in (first, second)]
        batches = [ValuePositions.of_storage(side.storage) for side in sides]
        tables = map(canonical_nodes, batches, NameNumbers(batches).maps)
        (nodes, row_start, refused), (other_nodes, other_start, other_refused) = tables
        same, decided = np.zeros(len(undecided), np.uint8), (refused == 0) & (other_refused == 0) & is_known[undecided]
        compare_rows(nodes, row_start, other_nodes, other_start, same)
        result[undecided[(same != 0) & decided]] = True
        undecided = undecided[~decided]
        results = row_by_row(undecided.tolist(), lambda row: first[row] == second[row], null_on_error=null_on_error)
        result[undecided] = [answer is True for answer in results]
        valid[undecided] = [answer is not None for answer in results]
    return from_numpy(result, ~valid)


def _same_bytes(left: pa.StructArray, right: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows with the same metadata and the same value bytes; undefined for SQL NULL."""
    left_metadata, right_metadata = metadata_parts(left.field("metadata")), metadata_parts(right.field("metadata"))
    if not len(left_metadata.dictionary) or not len(right_metadata.dictionary):
        return np.zeros(len(left), np.bool_)
    # The index of the first equal bytes identifies all of them.
    first = to_numpy(pc.index_in(left_metadata.dictionary, left_metadata.dictionary))
    other = to_numpy(pc.index_in(right_metadata.dictionary, left_metadata.dictionary).fill_null(-1))
    values = [storage.field("value").cast(pa.large_binary()) for storage in (left, right)]
    same = to_numpy(pc.equal(*values).fill_null(False))
    equal: npt.NDArray[np.bool_] = (first[left_metadata.indices] == other[right_metadata.indices]) & same
    return equal
