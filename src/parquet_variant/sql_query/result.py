"""The result of a query: as Arrow, polars or pandas, and its first rows as text.

Owns the forms of a result, and the JSON of Variants in it. Leaves running the query to `sql`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.interop.display import SHOWN_ROWS, cut_text, html_table, shown_columns
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.selection import holds_variants, is_variant
from parquet_variant.types.forms import in_form, with_fields


class SqlResult(ArrowResult):
    """The result of a query.

    It is an Arrow stream (``__arrow_c_stream__``), which pyarrow, polars, DuckDB and others accept.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> result = pv.sql("SELECT v:a::int FROM t", t=pv.parse_json(['{"a": 1}', '{"a": 2}']))
    >>> result
    a
    -
    1
    2
    >>> result.to_arrow().to_pydict(), result.to_pylist(), len(result)
    ({'a': [1, 2]}, [{'a': 1}, {'a': 2}], 2)
    """

    def __init__(self, table: pa.Table, warnings: Sequence[str] = (), wide_integers: Sequence[int] = ()) -> None:
        self._table = table
        self._wide_integers = wide_integers  # The numbers of the columns of HUGEINT, which Arrow has as decimals.
        self.warnings = tuple(warnings)  # Hints about paths that no row has.

    def to_arrow(self) -> pa.Table:
        """Return the result as a pyarrow table."""
        return self._table

    def to_pandas(self) -> Any:
        """Return the result as a pandas data frame; sums of integers are integers where all of a column fit bigint."""
        return ArrowResult.to_pandas(SqlResult(self._with_bigints()))

    def _with_bigints(self) -> pa.Table:
        """Return the table with the sums of integers as bigint where all of a column fit."""
        table = self._table
        for number in self._wide_integers:
            with suppress(pa.ArrowInvalid):  # a value does not fit
                column = table.column(number).cast(pa.int64())
                table = table.set_column(number, table.field(number).with_type(pa.int64()), column)
        return table

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; sums of integers are integers where all of a column fit bigint.

        Raises
        ------
        VariantError
            If a value has no Python object, such as a date after the year 9999 (``no-python-value``).
        """
        try:
            return list(self._with_bigints().to_pylist())
        except (OverflowError, ValueError) as error:
            raise VariantError(
                f"a value of the result has no Python object: {error}; use .to_arrow(), or cast the column to string",
                reason="no-python-value",
            ) from None

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        return self._table.schema

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self._table.column_names)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for notebooks."""
        more = f"<p>{self.num_rows:,} rows</p>" if self.num_rows > SHOWN_ROWS else ""
        return html_table(self.column_names, shown_columns(self._table)) + more

    def _lines(self) -> Iterator[str]:
        columns = shown_columns(self._table)
        names = list(map(cut_text, self.column_names))
        widths = [max(len(text) for text in (name, *column)) for name, column in zip(names, columns, strict=True)]
        rows = [names, ["-" * width for width in widths], *zip(*columns, strict=True)]
        for row in rows:
            yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        if self.num_rows > SHOWN_ROWS:
            yield f"({self.num_rows:,} rows)"


def with_json(table: pa.Table) -> pa.Table:
    """Return the table with each Variant as a JSON string, also inside lists and structs.

    >>> import parquet_variant as pv
    >>> one = pv.Variant.from_python({"a": 1})
    >>> with_json(pa.table({"v": [{"metadata": one.metadata, "value": one.value}]})).to_pydict()
    {'v': ['{"a":1}']}
    """
    if not any(holds_variants(field.type) for field in table.schema):
        return table
    columns = []
    for column in table.columns:
        kind = _json_type(column.type)
        columns.append(pa.chunked_array([in_form(chunk, kind, _as_json) for chunk in column.chunks], kind))
    fields = [
        field.with_type(column.type).remove_metadata() if holds_variants(field.type) else field
        for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def with_variants(table: pa.Table) -> pa.Table:
    """Return the table with Variants marked in its schema, also inside lists, structs and maps."""
    return pa.table(table.columns, schema=pa.schema([_tagged(field) for field in table.schema]))


def _tagged(field: pa.Field) -> pa.Field:
    if is_variant(field.type):
        return field.with_metadata(EXTENSION_METADATA)
    return field.with_type(with_fields(field.type, _tagged))


def _json_type(kind: pa.DataType) -> pa.DataType:
    if is_variant(kind):
        return pa.string()
    return with_fields(kind, lambda field: field.with_type(_json_type(field.type)))


def _as_json(array: pa.Array, _: pa.DataType) -> pa.Array | None:
    return to_json(VariantArray(array)).cast(pa.string()) if is_variant(array.type) else None
