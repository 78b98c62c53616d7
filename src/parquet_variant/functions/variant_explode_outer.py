"""`variant_explode_outer`: a row for each field and element of values, and one for values without any.

Owns the public operation. Leaves the work to `exploding`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.functions.exploding import exploded

__all__ = ["variant_explode_outer"]


def variant_explode_outer(array: Any) -> pa.Table:
    """Make a row for each element of arrays and each field of objects, as Spark's ``variant_explode_outer`` does.

    Any other value, an empty container and SQL NULL give one row that is null but for its number.

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
    >>> table = pv.variant_explode_outer(pv.parse_json(['[1, null]', '{"b": 3, "a": [2]}', "5"]))
    >>> json = pv.to_json(pv.VariantArray(table["value"]))
    >>> list(zip(*(table[name].to_pylist() for name in ("row", "pos", "key")), json.to_pylist()))
    [(0, 0, None, '1'), (0, 1, None, 'null'), (1, 0, 'a', '[2]'), (1, 1, 'b', '3'), (2, None, None, None)]
    """
    return exploded(array, outer=True)
