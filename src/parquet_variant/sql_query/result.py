"""The result of a query: as Arrow, polars or pandas, its first rows as text, and as a file (CSV, Parquet, NDJSON, …).

Owns the forms of a result, the JSON of Variants in it, and recognising ``COPY (…) TO``. Leaves running the query to
`sql`, and Parquet files with Variants to `pv.write`.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv

from parquet_variant.arrays.capsules import with_marks
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.io.commit_journal import glob_match
from parquet_variant.io.directories import refuse_inside_table
from parquet_variant.io.staging import atomic_file
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.interop.display import (
    SHOWN_ROWS,
    cut_text,
    display_texts,
    html_table,
    json_rows,
    shown_columns,
)
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.selection import holds_variants, is_variant
from parquet_variant.support.records import cached_property, grid
from parquet_variant.types.forms import chunks_in_form, with_fields

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson",
    ".arrow": "arrow", ".feather": "arrow",
}  # fmt: skip
# Types that Arrow writes as CSV readers expect; others, such as dates beyond the year 9999, become strings before.
_WRITTEN_BY_ARROW = (
    pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean,
    pa.types.is_null,
)  # fmt: skip
_COPY = re.compile(
    r"\s*copy\s*(?:\((?P<query>.*)\)|\s(?P<table>[\w.]+|\"[^\"]+\"))\s*to\s*'(?P<file>(?:[^']|'')+)'\s*"
    r"(?:with\s*)?(?P<options>\((?:[^()']|'[^']*')*\))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_COPY_OPTION = re.compile(r"\s*(?P<name>\w+)(?:\s+(?:'(?P<text>[^']*)'|(?P<word>\w+)))?\s*(?:,|$)")
_COPY_OPTIONS = {"format": r"\w+", "header": "(?i)|true|on|1|false|off|0"}  # Patterns of their values.
_COPY_OPTIONS |= dict.fromkeys(("delimiter", "delim", "sep"), r"[\t !#-~]")


class CopyStatement(NamedTuple):
    """``COPY (query) TO 'file' (FORMAT format, HEADER false, DELIMITER ';')``."""

    query: str
    file: str
    format: str
    header: bool = True  # Whether a CSV file begins with the names of the columns.
    delimiter: str | None = None  # Of a CSV file.


def copy_statement(text: str) -> CopyStatement | None:
    """Read a COPY statement; None for any other text.

    Raises `VariantError` for an unknown format or option.

    >>> copy_statement("COPY (SELECT 1) TO 'a.csv'")
    CopyStatement(query='SELECT 1', file='a.csv', format='csv', header=True, delimiter=None)
    """
    if not isinstance(text, str) or text.lstrip()[:4].lower() != "copy":
        return None
    match = _COPY.fullmatch(text)
    if match is None:
        problem = "invalid COPY: write COPY (SELECT …) TO 'file.csv', or COPY (SELECT …) TO 'file.csv' (DELIMITER ';')"
        raise VariantError(problem, reason="bad-sql")
    file, options = match["file"].replace("''", "'"), _copy_options((match["options"] or "()")[1:-1].strip())
    kind = format_of(file, options.get("format", "").lower())
    if kind not in ("csv", "tsv") and options.keys() - {"format"}:
        raise VariantError(f"a {kind} file has no HEADER or DELIMITER: write (FORMAT csv)", reason="bad-sql")
    header = options.get("header", "").lower() not in ("false", "off", "0")
    return CopyStatement(match["query"] or f"FROM {match['table']}", file, kind, header, options.get("delimiter"))


def _copy_options(text: str) -> dict[str, str]:
    """Return the options of a COPY statement by name."""
    options, end = dict[str, str](), 0
    while end < len(text):
        option = _COPY_OPTION.match(text, end)
        name = "" if option is None else option["name"].lower()
        value = "" if option is None else option["word"] or (option["text"] or "").replace("\\t", "\t")
        if option is None or name not in _COPY_OPTIONS or not re.fullmatch(_COPY_OPTIONS[name], value):
            problem = f"unsupported COPY option {text[end:]}: use FORMAT, HEADER and DELIMITER"
            raise VariantError(f"{problem}, as in (FORMAT csv, HEADER false, DELIMITER ';')", reason="bad-sql")
        options["delimiter" if name in ("delim", "sep") else name], end = value, option.end()
    return options


def format_of(file: str | os.PathLike[str], name: str | None = None) -> str:
    """Return the format of an output file, by its name or its extension.

    Raises `VariantError` for an unknown format.

    >>> format_of("a.JSONL"), format_of("a", "csv")
    ('ndjson', 'csv')
    """
    kind = {"json": "ndjson", "jsonl": "ndjson"}.get(name, name) if name else FORMATS.get(Path(file).suffix.lower())
    if kind not in FORMATS.values():
        endings = ", ".join(FORMATS)
        raise VariantError(f"unknown output format of {os.fspath(file)}: use one of {endings}", reason="bad-option")
    return str(kind)


def write_result(
    file: str | os.PathLike[str],
    parts: Iterable[pa.Table],
    copy: CopyStatement | None = None,
    sources: Iterable[Any] = (),
) -> int:
    """Write the parts of a result to a file, which appears only when it is complete; return the number of rows.

    `file`: a local path; its extension is the format, unless `copy` has another one.
    `parts`: at least one table, with Variants marked as such.
    `sources`: the data that the query reads; a file of a table, or an existing file below a source, is not replaced.
    """
    kind = format_of(file) if copy is None else copy.format
    _refuse_data_file(Path(file), sources)
    rows = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal rows
        for part in parts:
            rows += len(part)
            yield part

    with atomic_file(file) as staged:
        tables = map(_flatten_table, counted()) if kind in ("csv", "tsv") else counted()
        first = next(tables)
        tables = chain([first], tables)
        if kind == "ndjson":
            with staged.open("w", encoding="utf-8", newline="") as stream:
                for part in tables:
                    stream.writelines(f"{text}\n" for text in json_rows(part))
        elif kind == "parquet":
            from parquet_variant.files.parquet.writing.writer import VariantWriter

            with VariantWriter(staged) as writer:
                for part in tables:
                    writer.write_batch(part)
        else:
            delimiter = (copy.delimiter if copy else None) or ("\t" if kind == "tsv" else ",")
            options = pa_csv.WriteOptions(include_header=copy is None or copy.header, delimiter=delimiter)
            make: Any = pa.ipc.new_file if kind == "arrow" else partial(pa_csv.CSVWriter, write_options=options)
            with make(str(staged), first.schema) as writer:
                for part in tables:
                    writer.write_table(part)
    return rows


def _refuse_data_file(file: Path, sources: Iterable[Any]) -> None:
    refuse_inside_table(file)
    paths = [path for source in sources for path in (source if isinstance(source, list | tuple) else [source])]
    names = [os.path.realpath(str(path).removeprefix("file://")) for path in paths if isinstance(path, str | Path)]
    parts = os.path.realpath(file).split("/")
    patterns = [[*name.split("/"), "**"] for name in names]
    if file.exists() and any(parts[: len(p) - 1] == p[:-1] or glob_match(parts, p) for p in patterns):
        problem = f"{file} is a file that the query reads: write the result to another file"
        raise VariantError(problem, reason="bad-option", file=os.fspath(file))


def _flatten_table(table: pa.Table) -> pa.Table:
    """Return a table with strings in place of values that CSV lacks: JSON, and base64 for binary, as in JSON."""
    columns: list[Any] = []
    for column, field in zip(table.columns, table.schema, strict=True):
        kind = field.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            values = column.to_pylist()
            strings = [None if value is None else b64encode(value).decode() for value in values]
            columns.append(pa.array(strings, pa.string()))
        elif any(is_kind(kind) for is_kind in _WRITTEN_BY_ARROW):
            columns.append(column)
        else:
            columns.append(pa.array(display_texts(one_chunk(column), field), pa.string()))
    return pa.table(columns, names=table.column_names)


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

    def __init__(self, rows: pa.Table, warnings: Sequence[str] = (), wide_integers: Sequence[int] = ()) -> None:
        self._rows = rows
        self._wide_integers = wide_integers  # The numbers of the columns of HUGEINT, which Arrow has as decimals.
        self.warnings = tuple(warnings)  # Hints about paths that no row has.

    @cached_property
    def _table(self) -> pa.Table:
        return with_json(self._rows)

    def to_arrow(self) -> pa.Table:
        """Return the result as a pyarrow table, in which Variants are JSON text."""
        return self._table

    def with_variants(self) -> pa.Table:
        """Return the result as a pyarrow table, in which Variants are Variants, as `pv.write` stores them."""
        return self._rows

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
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        lines = list(grid(list(map(cut_text, self.column_names)), zip(*shown_columns(self._table), strict=True)))
        lines += [f"({self.num_rows:,} rows)"] if self.num_rows > SHOWN_ROWS else []
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for notebooks."""
        notes = [f"{self.num_rows:,} rows"] if self.num_rows > SHOWN_ROWS else []
        notes += [f"warning: {warning}" for warning in self.warnings]
        return html_table(self.column_names, shown_columns(self._table)) + "".join(f"<p>{escape(n)}</p>" for n in notes)


def with_json(table: pa.Table) -> pa.Table:
    """Return the table with each Variant as a JSON string, also inside lists and structs.

    >>> import parquet_variant as pv
    >>> one = pv.Variant.from_python({"a": 1})
    >>> with_json(pa.table({"v": [{"metadata": one.metadata, "value": one.value}]})).to_pydict()
    {'v': ['{"a":1}']}
    """
    if not any(holds_variants(field.type) for field in table.schema):
        return table

    def as_json(array: pa.Array, _: pa.DataType) -> pa.Array | None:
        return to_json(VariantArray(array)).cast(pa.string()) if is_variant(array.type) else None

    columns = [chunks_in_form(column, _json_type(column.type), as_json) for column in table.columns]
    fields = [
        field.with_type(column.type).remove_metadata() if holds_variants(field.type) else field
        for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def with_variants(table: pa.Table) -> pa.Table:
    """Return the table with Variants marked in its schema, also inside lists, structs and maps."""
    return pa.table(table.columns, schema=pa.schema([with_marks(field, is_variant) for field in table.schema]))


def _json_type(kind: pa.DataType) -> pa.DataType:
    if is_variant(kind):
        return pa.string()
    return with_fields(kind, lambda field: field.with_type(_json_type(field.type)))
