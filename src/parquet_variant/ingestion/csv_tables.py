"""CSV files as Arrow tables, whose columns have the types of all their strings.

A type is used only if every value has its form. A number with leading zeros is a string, because the zeros would be
lost. `formats.csv_rows` reads the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingestion.formats.csv_rows import CsvOptions, CsvReader
from parquet_variant.ingestion.formats.layout import start_of_text
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.support import arrow_compute as pc

_BLOCK_BYTES = 1 << 20
_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
# Types and the form of their strings, the preferred one first.
_FORMS: tuple[tuple[pa.DataType, str], ...] = (
    (pa.bool_(), r"^(?i:true|false)$"),
    (pa.int64(), _INTEGER),
    (pa.decimal128(38), _INTEGER),
    (pa.float64(), _DECIMAL),
    (pa.date32(), _DATE),
    (pa.timestamp("us"), _TIMESTAMP + "$"),
    (pa.timestamp("us", "UTC"), _TIMESTAMP + r"(Z|[-+][0-9]{2}:?[0-9]{2})$"),
)


def inferred_types(tables: Iterable[pa.Table]) -> dict[str, pa.DataType]:
    """Return the first type whose form all strings of a column have, by column; columns without values have none.

    >>> inferred_types([pa.table({"a": ["1", None], "b": ["007", "1"]}), pa.table({"a": ["1.5"]})])
    {'a': DataType(double), 'b': DataType(string)}
    """
    possible: dict[str, Sequence[tuple[pa.DataType, str]]] = {}
    for table in tables:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count < len(column):
                forms = possible.get(name, _FORMS)
                possible[name] = [(kind, form) for kind, form in forms if _have_form(column, kind, form)]
    return {name: forms[0][0] if forms else pa.string() for name, forms in possible.items()}


def csv_tables(file: InputFile, options: CsvOptions) -> Iterator[pa.Table]:
    """Yield the rows of a file as tables of strings.

    Raises `VariantFileError` for a file that cannot be read, with the number of a row that is invalid.
    """
    reader, number = CsvReader(options, file.name), 1
    with file.open_text() as stream:
        head = stream.read(_BLOCK_BYTES)
        head = head[start_of_text(head, file.name) :]
        blocks = chain([head], iter(partial(stream.read, _BLOCK_BYTES), b""))
        try:
            for rows in reader.read(blocks):
                if rows.refused:
                    row, (_, error) = min(rows.refused.items())
                    raise error.at(row=number + bool(reader.options.header) + row)
                number += len(rows)
                yield rows.table
            if number == 1 and reader.names:
                yield reader.empty_table
        except (JsonError, VariantFileError) as error:
            place = "" if error.row is None else f"row {error.row}: "
            raise VariantFileError(
                f"cannot read {file.name} as CSV: {place}{error.message}; fix the file",
                reason=error.reason,
                file=file.name,
            ) from None


def read_csv(path: str | os.PathLike[str]) -> pa.Table:
    """Read CSV or TSV files as one table, with the types that all values of a column have.

    Raises `VariantFileError` as `csv_tables` does, and for files with different columns.
    """
    tables: list[pa.Table] = []
    for file in find_input_files(path):
        for table in csv_tables(file, CsvOptions()):
            if tables and table.column_names != tables[0].column_names:
                raise VariantFileError(
                    f"{file.name} has the columns {', '.join(table.column_names)}, and not "
                    f"{', '.join(tables[0].column_names)} as the files before it: read the files one by one",
                    reason="unreadable",
                    file=file.name,
                )
            tables.append(table)
    if not tables:
        raise VariantFileError(
            f"cannot read {os.fspath(path)} as CSV: it is empty; name a file with a header", reason="unreadable"
        )
    return with_types(pa.concat_tables(tables), inferred_types(tables), os.fspath(path))


def with_types(table: pa.Table, types: Mapping[str, pa.DataType], file: str) -> pa.Table:
    """Return a table of strings with the inferred types of some columns.

    Raises `VariantFileError` if a file has changed since the types were inferred.
    """
    for index, name in enumerate(table.column_names):
        if (kind := types.get(name, pa.string())) != pa.string():
            try:
                table = table.set_column(index, name, pc.cast(table.column(index), kind))
            except pa.ArrowInvalid as error:
                raise VariantFileError(
                    f"the column {name} of {file} is not {kind}: {error}; ingest the file again",
                    reason="changed-file",
                    file=file,
                ) from None
    return table


def _have_form(values: pa.ChunkedArray, kind: pa.DataType, form: str) -> bool:
    if not pc.all(pc.match_substring_regex(values, form), min_count=0).as_py():
        return False
    try:
        pc.cast(values, kind)
    except pa.ArrowInvalid:
        return False
    return True
