"""`variant_explode`: one row per field or element of each value.

Owns the public operation and the resulting table. `arrays.value_positions` finds the children.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.value_positions import ValuePositions
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.columns.arguments import as_variant_array, canonical_storage, check_errors, or_null
from parquet_variant.support.options import Errors


def variant_explode(array: Any, *, outer: bool = False, errors: Errors = "raise") -> pa.Table:
    """Return one row per element of arrays and per field of objects, as Spark's ``variant_explode`` does.

    Scalars and SQL NULL give no rows.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    outer
        Whether scalars, empty containers and SQL NULL give one row in which only ``row`` is not null, as in Spark's
        ``variant_explode_outer``.
    errors
        ``"raise"``, or ``"null"``: malformed values count as SQL NULL.

    Returns
    -------
    pyarrow.Table
        ``row``, the number of the source row; ``pos``, the position in the array, or among the stored fields;
        ``key``, null for elements; ``value``, a Variant storage (which `VariantArray` accepts).

    Raises
    ------
    MalformedVariantError
        If a container is malformed, with the row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> def rows(table):
    ...     json = pv.to_json(pv.VariantArray(table["value"]))
    ...     return list(zip(*(table[name].to_pylist() for name in ("row", "pos", "key")), json.to_pylist()))
    >>> array = pv.parse_json(['[1, null]', '{"b": 3, "a": [2]}', "5"])
    >>> rows(pv.variant_explode(array))
    [(0, 0, None, '1'), (0, 1, None, 'null'), (1, 0, 'a', '[2]'), (1, 1, 'b', '3')]
    >>> rows(pv.variant_explode(array[1:], outer=True))
    [(0, 0, 'a', '[2]'), (0, 1, 'b', '3'), (1, None, None, None)]
    """
    null_on_error = check_errors(errors)
    column = as_variant_array(VariantArray.from_variants([array]) if isinstance(array, Variant) else array, errors)
    if null_on_error:
        column = VariantArray(or_null(column, _explodable))
    storage = column.to_unshredded().storage
    value_positions = ValuePositions.of_storage(storage)
    value_positions.spans()  # raises for truncated values, which would count as scalars below
    offsets, _, elements = value_positions.elements()
    field_offsets, _, ids, fields = value_positions.fields()
    rows = np.concatenate([_row_numbers(elements), _row_numbers(fields)])
    starts = np.where(np.diff(offsets) > 0, offsets[:-1], field_offsets[:-1])
    positions = np.concatenate([np.arange(len(elements)), np.arange(len(fields))]) - starts[rows]
    names = fields.dictionaries.distinct_names.take(from_numpy(fields.dictionaries.name_numbers(fields.metas, ids)))
    keys = pa.concat_arrays([pa.nulls(len(elements), pa.string()), names])
    values = pa.concat_arrays([elements.storage(), fields.storage()])
    if outer:
        rows = np.concatenate([rows, np.flatnonzero((np.diff(offsets) == 0) & (np.diff(field_offsets) == 0))])
    order_of_rows = np.argsort(rows, kind="stable")
    order = from_numpy(order_of_rows, order_of_rows >= len(positions))
    field = pa.field("value", values.type, metadata=EXTENSION_METADATA)
    schema = pa.schema([pa.field("row", pa.int64(), nullable=False), ("pos", pa.int32()), ("key", pa.string()), field])
    pos = from_numpy(positions.astype(np.int32))
    columns = [from_numpy(rows[order_of_rows]), pos.take(order), keys.take(order), values.take(order)]
    return pa.Table.from_arrays(columns, schema=schema)


def _row_numbers(value_positions: ValuePositions) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(len(value_positions)) if value_positions.rows is None else value_positions.rows.astype(np.int64)


def _explodable(part: VariantArray) -> pa.StructArray:
    """Return the storage of rows that can be exploded; raises for others."""
    variant_explode(part)
    return canonical_storage(part)
