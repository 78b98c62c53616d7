"""`unshred_variant`: shredded arrays back to plain ones.

Owns the public operation. Leaves the work to `array.storages`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.array.storages import unshredded_storage
from parquet_variant.array.variant_array import VariantArray, trusted_array
from parquet_variant.choices import OnConflict
from parquet_variant.functions.inputs.in_slices import joined_slices
from parquet_variant.functions.inputs.variant_input import as_variant_array


def unshred_variant(array: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> VariantArray:
    """Put shredded values together again, whatever the layout.

    Parameters
    ----------
    array
        A column of any layout; an unshredded one is returned as it is.
    on_conflict
        What happens where ``value`` and ``typed_value`` contradict each other: ``"error"`` raises, ``"typed"`` takes
        what is typed (spec: "engines should fail. If engines choose to read …, the typed_value column must be used").
    threads
        How many work on slices of a large column; by default one for each CPU that this process may use.

    Raises
    ------
    ConflictError
        With row and path.
    MalformedVariantError
        For bytes that are no Variant.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> shredded = pv.shred_variant(pv.parse_json(['{"a": 1, "b": 2}', "7"]), "a bigint")
    >>> pv.unshred_variant(shredded).to_pylist()
    [{'a': 1, 'b': 2}, 7]
    """
    array = as_variant_array(array)
    layout = array.layout
    if layout == "unshredded":
        return array
    return trusted_array(
        joined_slices(lambda part: unshredded_storage(part.storage, layout, on_conflict), array, threads)
    )
