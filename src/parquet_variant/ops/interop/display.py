"""Values of any Arrow column as text, and rows of Arrow tables as JSON, Variants and ``arrow.json`` included.

Owns the text of values that Python's own types cannot hold (a date in the year 10000, an infinite timestamp, a
nanosecond), and JSON objects per row. Leaves the JSON of Variants to `ops.conversions`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.json_writer import time_text
from parquet_variant.errors import CastError
from parquet_variant.ops.conversions import cast_to_variant, to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.support.records import shortened
from parquet_variant.types.forms import is_json_type

SHOWN_ROWS = 20  # The first rows of a table, which notebooks and terminals show.
_SHOWN_WIDTH = 40
_LARGEST = {"date": 2**31 - 1, "timestamp": 2**63 - 1}  # DuckDB's infinity


def html_table(names: Iterable[str], columns: Sequence[Sequence[str]]) -> str:
    """Return columns of strings as an HTML table, for notebooks.

    >>> html_table(["n"], [["1", "<"]])
    '<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>1</td></tr><tr><td>&lt;</td></tr></tbody></table>'
    """
    header = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = zip(*columns, strict=True)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def shown_columns(table: pa.Table) -> list[list[str]]:
    """Return the first rows of a table as columns of short strings."""
    fields, columns = table.schema, table.slice(0, SHOWN_ROWS).columns
    strings = [display_texts(one_chunk(column), field) for column, field in zip(columns, fields, strict=True)]
    return [["NULL" if text is None else cut_text(text) for text in column] for column in strings]


def cut_text(text: str) -> str:
    """Return a text in one line, cut to the width that is shown."""
    return shortened(text.replace("\n", "\\n").replace("\r", "\\r"), _SHOWN_WIDTH)


class Records(list[dict[str, Any]]):
    """A list of dicts with the same keys, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for record in self for name in record))
        columns = [[cut_text(str(record.get(name, ""))) for record in self] for name in names]
        return html_table(names, columns)


def display_texts(column: pa.Array, field: pa.Field | None = None) -> list[str | None]:
    """Return the text of each value of a column, and None for null.

    Scalars are written as Python writes them, lists, structs and Variants as JSON. `field`: marks a Variant.
    """
    if pa.types.is_nested(column.type) or (field is not None and is_variant_field(field)):
        valid = column.is_valid().to_pylist()
        return [text if exists else None for text, exists in zip(json_texts(column, field), valid, strict=True)]
    if isinstance(column.type, pa.ExtensionType) or pa.types.is_dictionary(column.type):
        return display_texts(column.cast(_plain_type(column.type)))
    return _scalar_texts(column)


def json_texts(column: pa.Array, field: pa.Field | None = None) -> list[str]:
    """Return the JSON of each value of a column, as `to_json` writes it; types that Variants lack are strings.

    `field`: marks Variants, also inside; null and SQL NULL are ``null``.

    >>> import pyarrow as pa
    >>> json_texts(pa.array([{"a": 1.5, "b": [None, "x"]}]))
    ['{"a":1.5,"b":[null,"x"]}']
    """
    # The type of a column may lack the marks of its field.
    kind = column.type if field is None else field.type
    if field is not None and is_variant_field(field):
        return _json_of_variants(VariantArray(column))
    if is_json_type(kind):
        return _json_of_variants(parse_json(column.storage))
    if isinstance(kind, pa.ExtensionType) or pa.types.is_dictionary(kind):
        return json_texts(column.cast(_plain_type(kind)))
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        names = [json.dumps(child.name, ensure_ascii=False) for child in kind]
        parts = [json_texts(column.field(number), child) for number, child in enumerate(kind)]
        rows = ["{" + ",".join(map(_pair, names, row)) + "}" for row in zip(*parts, strict=True)] or ["{}"] * len(valid)
    elif pa.types.is_map(kind):
        keys = [json.dumps(text, ensure_ascii=False) for text in display_texts(column.keys)]
        items = list(map(_pair, keys, json_texts(column.items, kind.item_field)))
        rows = ["{" + ",".join(items[start:stop]) + "}" for start, stop in pairwise(column.offsets.to_pylist())]
    elif pa.types.is_nested(kind):
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        lists = column if is_list else column.cast(pa.list_(column.type.value_field))
        items = json_texts(lists.values, kind.value_field)
        rows = ["[" + ",".join(items[start:stop]) + "]" for start, stop in pairwise(lists.offsets.to_pylist())]
    else:
        with suppress(CastError):  # durations, intervals, and decimals of more digits
            json_rows = _json_of_variants(cast_to_variant(column))
            is_moment = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
            # Years of more digits have a sign, also those of DuckDB's infinite dates, which `_moment_text` names.
            if not (is_moment and any(text[1] in "+-" for text in json_rows)):
                return json_rows
        write = str if pa.types.is_decimal(kind) else partial(json.dumps, ensure_ascii=False)
        return ["null" if text is None else write(text) for text in _scalar_texts(column)]
    return [row if good else "null" for row, good in zip(rows, valid, strict=True)]


def _pair(name: str, value: str) -> str:
    return f"{name}:{value}"


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type


def _json_of_variants(variants: VariantArray) -> list[str]:
    return ["null" if text is None else text for text in to_json(variants).to_pylist()]


def _scalar_texts(column: pa.Array) -> list[str | None]:
    """Return scalars as Python writes them; numpy writes dates and times that Python's types cannot hold."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
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
    if pa.types.is_boolean(kind) or (pa.types.is_time(kind) and kind.unit == "ns"):
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
        columns = [json_texts(column, field) for column, field in zip(batch.columns, table.schema, strict=True)]
        for row in zip(*columns, strict=True):
            yield "{" + ",".join(map(_pair, names, row)) + "}"
