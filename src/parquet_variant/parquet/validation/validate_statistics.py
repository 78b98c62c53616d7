"""Whether the statistics of a row group are true of its data.

Owns counting and bounding again. Leaves how statistics are read to `statistics`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.encoding.cast.forms import list_elements
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.statistics import leaf_statistics
from parquet_variant.parquet.scanning.groups import shredded_groups
from parquet_variant.parquet.validation.violations import Violations
from parquet_variant.shredding.leaf_statistics import order_key


def check_statistics(file: OpenFile, column: VariantColumn, row_group: int, violations: Violations) -> None:
    """Record every leaf column of a Variant whose null count or bounds its values contradict."""
    for group in shredded_groups(column):
        for leaf in (group.typed, group.residual):
            if leaf is not None and leaf.leaf is not None:
                _check_leaf(file, leaf, row_group, str(group.path), violations)


def _check_leaf(file: OpenFile, leaf: SchemaNode, row_group: int, path: str, violations: Violations) -> None:
    known = leaf_statistics(file.metadata.row_group(row_group).column(leaf.leaf), leaf)
    table = file.read_leaves([row_group], [leaf.leaf] if leaf.leaf is not None else [])
    values = _only_leaf(table.column(0).combine_chunks())
    there = len(values) - values.null_count
    if known.nulls is not None and known.values - known.nulls != there:
        message = f"{leaf.dotted}: statistics count {known.values - known.nulls} values, there are {there}"
        violations.add("wrong-statistics", message, path)
    if known.lower is None or known.upper is None or not there:
        return
    lower, upper = _bounds(values)
    if lower is None or upper is None:
        return
    if order_key(known.lower) > order_key(lower) or order_key(known.upper) < order_key(upper):
        texts = pa.types.is_string(lower.type) or pa.types.is_large_string(lower.type)
        least, most = (order_key(each).decode(errors="replace") if texts else each for each in (lower, upper))
        message = f"{leaf.dotted}: statistics bound it by {known.lower} and {known.upper}, it reaches {least} to {most}"
        violations.add("wrong-statistics", message, path)


def _only_leaf(array: Any) -> pa.Array:
    """The one leaf of a nested column of which only that was read; lists flattened, absent parents null."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.nulls(0, array.type) if not array.num_chunks else array.chunk(0)
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            array = array.flatten()[0]
        elif pa.types.is_map(array.type):
            array = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        else:
            array = list_elements(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _bounds(values: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.fill_null(pc.is_nan(values), True)))
    if values.type == pa.uuid():
        raw = pc.min_max(values.storage)
        return raw["min"].cast(pa.uuid()), raw["max"].cast(pa.uuid())
    if pa.types.is_decimal32(values.type) or pa.types.is_decimal64(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))  # Arrow compares no narrower ones
    if not len(values):
        return None, None
    try:
        extremes = pc.min_max(values)
    except pa.ArrowNotImplementedError:  # what the file's Arrow schema makes of a column may have no order
        return None, None
    return (extremes["min"], extremes["max"]) if extremes["min"].is_valid else (None, None)
