"""`variant_normalize`: values in canonical bytes.

Owns the public operation and its `try_` twin. Leaves the work to `editing`, and the canonical form to
`encoding.builder`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.walks.editing import edited


@overload
def variant_normalize(array: Variant) -> Variant: ...
@overload
def variant_normalize(array: Any) -> VariantArray: ...
def variant_normalize(array: Any) -> Variant | VariantArray:
    """Write values in canonical bytes, so that values of the same types that are equal have the same bytes.

    Metadata gets exactly the keys of its value, sorted and unique; fields and their values the order of the keys' UTF-8
    bytes; all widths are the narrowest. Scalars keep their types: an int64 of 1 is not made an int8. For arrays by
    writers that leave fields unsorted (DuckDB 2.0), sort them by UTF-16 (Spark) or repeat metadata.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.

    Returns
    -------
    VariantArray or Variant
        Unshredded.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> sloppy = pv.Variant(bytes.fromhex("01020001026261"), bytes.fromhex("020200010002040c010c02"))
    >>> [part.hex() for part in (pv.variant_normalize(sloppy).metadata, pv.variant_normalize(sloppy).value)]
    ['11020001026162', '020200010002040c020c01']
    """
    return edited(array, [Edit(EditKind.NORMALIZE)])


@overload
def try_variant_normalize(array: Variant) -> Variant | None: ...
@overload
def try_variant_normalize(array: Any) -> VariantArray: ...
def try_variant_normalize(array: Any) -> Variant | VariantArray | None:
    r"""Do what `variant_normalize` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_normalize`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_variant_normalize(pv.VariantArray.from_variants(rows)).to_pylist()
    [[1], None]
    """
    return edited(array, [Edit(EditKind.NORMALIZE)], null_on_error=True)
