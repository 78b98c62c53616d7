"""Values of any Arrow column as text, and rows of Arrow tables as JSON, Variants and ``arrow.json`` included.

Owns the text of values that Python's own types cannot hold (a date in the year 10000, an infinite timestamp, a
nanosecond), JSON objects per row, and the Python objects of columns with Variants inside. Leaves the JSON of Variants
to `ops.conversions`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.json_writer import time_text
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.conversions import cast_to_variant, to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.types.forms import is_json_type

_LARGEST = {"date": 2**31 - 1, "timestamp": 2**63 - 1}  # DuckDB's infinity


def display_texts(column: pa.Array) -> list[str | None]:
    """Return the text of each value of a column, and None for null.

    Scalars are written as Python writes them, lists and structs as JSON.
    """
    if isinstance(column.type, pa.ExtensionType) or pa.types.is_dictionary(column.type):
        return display_texts(column.cast(_plain_type(column.type)))
    if pa.types.is_nested(column.type):
        texts = json_texts(column)
        return [text if valid else None for text, valid in zip(texts, column.is_valid().to_pylist(), strict=True)]
    return _scalar_texts(column)


def json_texts(column: pa.Array) -> list[str]:
    """Return the JSON of each value of a column; temporal values and other types that JSON lacks are strings.

    >>> import pyarrow as pa
    >>> json_texts(pa.array([{"a": 1.5, "b": [None, "x"]}]))
    ['{"a":1.5,"b":[null,"x"]}']
    """
    kind = column.type
    if isinstance(kind, pa.ExtensionType) or pa.types.is_dictionary(kind):
        return json_texts(column.cast(_plain_type(kind)))
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        names = [json.dumps(child.name, ensure_ascii=False) for child in kind]
        parts = [json_texts(column.field(number)) for number in range(kind.num_fields)]
        rows = ["{" + ",".join(map(_pair, names, row)) + "}" for row in zip(*parts, strict=True)] or ["{}"] * len(valid)
    elif pa.types.is_map(kind):
        keys = [json.dumps(text, ensure_ascii=False) for text in display_texts(column.keys)]
        items = list(map(_pair, keys, json_texts(column.items)))
        rows = ["{" + ",".join(items[start:stop]) + "}" for start, stop in pairwise(column.offsets.to_pylist())]
    elif pa.types.is_nested(kind):
        lists = (
            column
            if pa.types.is_list(kind) or pa.types.is_large_list(kind)
            else column.cast(pa.list_(kind.value_field))
        )
        items = json_texts(lists.values)
        rows = ["[" + ",".join(items[start:stop]) + "]" for start, stop in pairwise(lists.offsets.to_pylist())]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        rows = [f'"{b64encode(value or b"").decode()}"' for value in column.to_pylist()]
    else:
        rows = [_scalar_json(kind, text) for text in _scalar_texts(column)]
    return [row if good else "null" for row, good in zip(rows, valid, strict=True)]


def _pair(name: str, value: str) -> str:
    return f"{name}:{value}"


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if kind == pa.uuid():
        return pa.binary(16)
    return kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type


def _scalar_json(kind: pa.DataType, text: str | None) -> str:
    if text is None:
        return "null"
    if pa.types.is_boolean(kind):
        return text.lower()
    if pa.types.is_floating(kind):
        text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return text if number and text[-1].isdigit() else json.dumps(text, ensure_ascii=False)


def _scalar_texts(column: pa.Array) -> list[str | None]:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moment_texts(column)
    if pa.types.is_time(kind) and kind.unit == "ns":
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_interval(kind):
        return [None if value is None else _interval_text(*value) for value in column.to_pylist()]
    write = "{:f}".format if pa.types.is_decimal(kind) else str  # a decimal of many digits is not written as 0E-16
    return [None if value is None else write(value) for value in column.to_pylist()]


def _interval_text(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval as DuckDB writes it: ``1 year 2 months 3 days 04:05:06.5``."""
    sign = -1 if months < 0 else 1
    counts = ((sign * (abs(months) // 12), "year"), (sign * (abs(months) % 12), "month"), (days, "day"))
    parts = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in counts if count]
    if nanoseconds or not parts:
        parts.append(f"{'-' if nanoseconds < 0 else ''}{time_text(abs(nanoseconds))}")
    return " ".join(parts)


def _moment_texts(column: pa.Array) -> list[str | None]:
    """Return dates and times as Python writes them; numpy writes those that Python's types cannot hold."""
    kind = column.type
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    if unit != "ns":
        try:
            return [None if value is None else str(value) for value in column.to_pylist()]
        except (OverflowError, ValueError):
            pass
    counts = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    infinite = _LARGEST["date" if pa.types.is_date32(kind) else "timestamp"]
    zone = "+00:00" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
    return [None if count is None else _moment_text(count, unit, infinite, zone) for count in counts]


def _moment_text(count: int, unit: Any, infinite: int, zone: str) -> str:
    if abs(count) == infinite:
        return "infinity" if count > 0 else "-infinity"
    day, _, time = str(np.datetime64(count, unit)).partition("T")
    fraction = time.partition(".")[2]
    if fraction and not int(fraction):
        time = time.partition(".")[0]
    return f"{day} {time}{zone}" if time else day


def json_rows(table: pa.Table) -> Iterator[str]:
    """Yield the rows of a table as compact JSON objects, with all digits of numbers."""
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    for batch in table.to_batches(max_chunksize=4096):
        columns = [field_json(column, field) for column, field in zip(batch.columns, table.schema, strict=True)]
        for texts in zip(*columns, strict=True):
            fields = ",".join(f"{name}:{text}" for name, text in zip(names, texts, strict=True))
            yield f"{{{fields}}}"


def field_json(column: pa.Array, field: pa.Field) -> list[str]:
    """Return the values of a column as JSON; SQL NULL is ``null``."""
    variants = None
    if is_variant_field(field):
        variants = VariantArray(column)
    elif is_json_type(field.type):
        variants = parse_json(column.storage)
    elif pa.types.is_float32(field.type):  # Python's floats show more digits
        variants = cast_to_variant(column)
    if variants is not None:
        return ["null" if text is None else text for text in to_json(variants).to_pylist()]
    if _holds_intervals(field.type) and not holds_variants(field):
        return json_texts(column)
    try:
        return [Variant.from_python(value).to_json() for value in python_values(column, field)]
    except (OverflowError, ValueError):  # Python has no date after the year 9999
        if holds_variants(field):
            raise
        return json_texts(column)


def nested_texts(column: pa.Array, field: pa.Field) -> list[str | None]:
    """Return the values of a column of Variants or another nested type as JSON; None for SQL NULL."""
    valid = column.is_valid().to_pylist()
    return [text if exists else None for text, exists in zip(field_json(column, field), valid, strict=True)]


def python_values(column: pa.Array, field: pa.Field) -> list[Any]:
    """Return the values of a column as Python objects: each Variant or JSON text as `Variant`, maps as dicts."""
    if is_variant_field(field):
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


def holds_variants(field: pa.Field) -> bool:
    """Return whether a field is a Variant or has one inside."""
    kind = field.type
    return is_variant_field(field) or any(holds_variants(kind.field(index)) for index in range(kind.num_fields))


def _holds_intervals(kind: pa.DataType) -> bool:
    """Return whether a type is an interval, which Variants lack, or has one inside."""
    return bool(pa.types.is_interval(kind)) or any(
        _holds_intervals(kind.field(index).type) for index in range(kind.num_fields)
    )


def _is_rebuilt(kind: pa.DataType) -> bool:
    """Return whether pyarrow's Python objects do not fit: maps are dicts here, and Variants and JSON are `Variant`."""
    children = [kind.field(index) for index in range(kind.num_fields)]
    return pa.types.is_map(kind) or any(
        is_variant_field(child) or is_json_type(child.type) or _is_rebuilt(child.type) for child in children
    )


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else Variant.from_python(key).to_json().strip('"')
