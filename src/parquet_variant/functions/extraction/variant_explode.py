"""`variant_explode`: a row for each field and element of values.

Owns the public operation and its `try_` twin. Leaves the work to `exploding`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.functions.walks.exploding import exploded


def variant_explode(array: Any) -> pa.Table:
    """Make a row for each element of arrays and each field of objects, as Spark's ``variant_explode`` does.

    Any other value, and SQL NULL, give no row.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.

    Returns
    -------
    pyarrow.Table
        ``row``, the number of the row that it comes from; ``pos``, the position in the array, or among the fields as
        they are stored; ``key``, null for elements; ``value``, a Variant storage (`VariantArray` takes the column).

    Raises
    ------
    MalformedVariantError
        If a container is malformed, with the row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> table = pv.variant_explode(pv.parse_json(['[1, null]', '{"b": 3, "a": [2]}', "5"]))
    >>> json = pv.to_json(pv.VariantArray(table["value"]))
    >>> list(zip(*(table[name].to_pylist() for name in ("row", "pos", "key")), json.to_pylist()))
    [(0, 0, None, '1'), (0, 1, None, 'null'), (1, 0, 'a', '[2]'), (1, 1, 'b', '3')]
    """
    return exploded(array, outer=False)


def try_variant_explode(array: Any) -> pa.Table:
    r"""Explode values as `variant_explode` does; those for which that would raise count as SQL NULL.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x03\x01\0")]
    >>> pv.try_variant_explode(pv.VariantArray.from_variants(rows)).select(["row", "pos"]).to_pylist()
    [{'row': 0, 'pos': 0}]
    """
    return exploded(array, outer=False, null_on_error=True)
