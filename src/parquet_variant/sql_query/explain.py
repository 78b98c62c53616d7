"""What a planned query reads of a table, in the words of the query.

Owns the names of columns and filters for people. Leaves how much is read to each scan's own report.
"""

from __future__ import annotations

from parquet_variant.query.predicate_text import predicate_text
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.sql_query.scopes import TableUse


def path_text(need: NeededColumn) -> str:
    """A column as a query writes it.

    >>> import pyarrow as pa
    >>> from parquet_variant.path import VariantPath
    >>> path_text(NeededColumn("v", VariantPath.parse("$.a['b c'][0][*]"), pa.int64()))
    "v:a['b c'][0][*]::array<bigint>"
    """
    if need.path is None:
        return need.column
    steps = ""
    for segment in need.path.segments:
        if isinstance(segment, str):
            steps += f".{segment}" if segment.isidentifier() else "['" + segment.replace("'", "''") + "']"
        else:
            steps += f"[{segment}]" if isinstance(segment, int) else "[*]"
    text = f"{need.column}:{steps.removeprefix('.')}" if steps else need.column
    return text if need.output is None else f"{text}::{sql_type_name(need.output)}"


def columns_text(use: TableUse) -> list[str]:
    """What is asked of a table."""
    return list(dict.fromkeys(map(path_text, use.needed.values())))


def filter_text(use: TableUse) -> list[str]:
    """What rows must meet to be read."""
    return [predicate_text(each, lambda name: path_text(use.needed[name])) for each in use.filters]
