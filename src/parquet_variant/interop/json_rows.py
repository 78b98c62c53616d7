"""Rows of Arrow tables as JSON, Variants and JSON text (``arrow.json``) included.

Owns JSON objects per row, and the Python objects of columns with Variants inside. Leaves values that Python cannot hold
to `display`, and the JSON of Variants to `ops.to_json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import is_json_type
from parquet_variant.encoding.variant import Variant
from parquet_variant.interop import display
from parquet_variant.ops.cast_to_variant import cast_to_variant
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.to_json import to_json


def json_rows(table: pa.Table) -> Iterator[str]:
    """Yield the rows of a table as compact JSON objects, with all digits of numbers.

    >>> list(json_rows(pa.table({"a": [1, None], "b": [["x"], []]})))
    ['{"a":1,"b":["x"]}', '{"a":null,"b":[]}']
    """
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    for batch in table.to_batches(max_chunksize=4096):
        columns = [json_texts(column, field) for column, field in zip(batch.columns, table.schema, strict=True)]
        for texts in zip(*columns, strict=True):
            fields = ",".join(f"{name}:{text}" for name, text in zip(names, texts, strict=True))
            yield f"{{{fields}}}"


def json_texts(column: pa.Array, field: pa.Field) -> list[str]:
    """Return the values of a column as JSON; SQL NULL is ``null``."""
    variants = None
    if is_variant(field):
        variants = VariantArray(column)
    elif is_json_type(field.type):
        variants = parse_json(column.storage)
    elif pa.types.is_float32(field.type):  # Python's floats show more digits
        variants = cast_to_variant(column)
    if variants is not None:
        return ["null" if text is None else text for text in to_json(variants).to_pylist()]
    if _holds_intervals(field.type) and not holds_variants(field):
        return display.json_texts(column)
    try:
        return [Variant.from_python(value).to_json() for value in python_values(column, field)]
    except (OverflowError, ValueError):  # Python has no date after the year 9999
        if holds_variants(field):
            raise
        return display.json_texts(column)


def nested_texts(column: pa.Array, field: pa.Field) -> list[str | None]:
    """Return the values of a column of Variants or another nested type as JSON; None for SQL NULL."""
    valid = column.is_valid().to_pylist()
    return [text if exists else None for text, exists in zip(json_texts(column, field), valid, strict=True)]


def python_values(column: pa.Array, field: pa.Field) -> list[Any]:
    """Return the values of a column as Python objects: each Variant or JSON text as `Variant`, maps as dicts."""
    if is_variant(field):
        return list(VariantArray(column))
    if is_json_type(field.type):
        return list(parse_json(column.storage))
    if not _is_rebuilt(field.type):
        return list(column.to_pylist())
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(field.type):
        parts = [python_values(column.field(child.name), child) for child in field.type]
        names = [child.name for child in field.type]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    else:
        bounds = list(pairwise(column.offsets.to_pylist()))
        if pa.types.is_map(field.type):
            keys = [_key_text(key) for key in python_values(column.keys, field.type.key_field)]
            items = python_values(column.items, field.type.item_field)
            rows = [dict(zip(keys[start:stop], items[start:stop], strict=True)) for start, stop in bounds]
        else:
            items = python_values(column.values, field.type.value_field)
            rows = [items[start:stop] for start, stop in bounds]
    return [row if good else None for row, good in zip(rows, valid, strict=True)]


def is_variant(field: pa.Field) -> bool:
    """Return whether a field is a Variant, by its extension name."""
    return bool((field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.parquet.variant")


def holds_variants(field: pa.Field) -> bool:
    """Return whether a field is a Variant or has one inside."""
    kind = field.type
    return is_variant(field) or any(holds_variants(kind.field(index)) for index in range(kind.num_fields))


def _holds_intervals(kind: pa.DataType) -> bool:
    """Return whether a type is an interval, which Variants lack, or has one inside."""
    return bool(pa.types.is_interval(kind)) or any(
        _holds_intervals(kind.field(index).type) for index in range(kind.num_fields)
    )


def _is_rebuilt(kind: pa.DataType) -> bool:
    """Return whether pyarrow's Python objects do not fit: maps are dicts here, and Variants and JSON are `Variant`."""
    children = [kind.field(index) for index in range(kind.num_fields)]
    return pa.types.is_map(kind) or any(
        is_variant(child) or is_json_type(child.type) or _is_rebuilt(child.type) for child in children
    )


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else Variant.from_python(key).to_json().strip('"')
