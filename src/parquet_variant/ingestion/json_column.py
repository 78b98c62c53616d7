"""JSON in a column of a table: files of Parquet, Arrow and CSV, Delta tables, and rows in memory.

Owns which tables there are, their parts, and their rows as text with the columns beside it. Leaves the text to `task`,
and each format to its library or room.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import csv

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.errors import SchemaError, VariantError, VariantFileError
from parquet_variant.ingestion.formats.layout import CsvOptions
from parquet_variant.ingestion.sources import expand_sources, file_errors, open_text
from parquet_variant.ingestion.splits import Split, TablePart
from parquet_variant.interop.table_of import table_of
from parquet_variant.io.filesystems import filesystem_of, has_delta_log

_ROWS = 1 << 16
_PARQUET, _ARROW = b"PAR1", b"ARROW1"


@dataclass(frozen=True, slots=True)
class TextRows:
    """Some rows of a table: the JSON, the columns beside it, and the number of the first row, counted from 1."""

    text: pa.Array
    others: pa.Table
    first_row: int


def table_sources(sources: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The Delta tables and files that the sources name, each once."""
    files: dict[str, None] = {}
    for source in (os.fspath(each) for each in sources):
        files.update(dict.fromkeys([source] if has_delta_log(source) else expand_sources(source)))
    return list(files)


def plan_parts(files: Iterable[str], split_bytes: int) -> list[Split]:
    """What tasks read: files of a Delta table, row groups of a Parquet file, other files as a whole."""
    splits: list[Split] = []
    for file in files:
        if has_delta_log(file):
            from parquet_variant.delta import snapshot

            current = snapshot(file)
            sizes = current.files.column("size").to_pylist()
            splits += [Split(file, part=TablePart(size, number, current.version)) for number, size in enumerate(sizes)]
            continue
        filesystem, path = filesystem_of(file)
        with file_errors(file):
            size = filesystem.get_file_info(path).size or 0
        parts = -(-size // split_bytes) if size > split_bytes and _head(file).startswith(_PARQUET) else 1
        bounds = [size * part // parts for part in range(parts + 1)]
        splits += [Split(file, start, end) for start, end in pairwise(bounds)]
    return splits


def split_rows(rows: pa.Table, parts: int) -> list[Split]:
    """Rows in memory in so many parts."""
    size = max(1, -(-rows.num_rows // max(parts, 1)))
    slices = (rows.slice(start, size) for start in range(0, rows.num_rows, size))
    return [Split("rows", part=TablePart(each.nbytes, number, rows=each)) for number, each in enumerate(slices)]


def beside_fields(tasks: Sequence[Sequence[Split]], column: str, name: str, options: CsvOptions) -> list[pa.Field]:
    """The columns of the first rows, the one of JSON under the name that the Variants get.

    Raises `VariantError` as `open_rows`; with reason ``"bad-option"`` if the name is that of another column.
    """
    rows = next((rows for task in tasks for split in task for rows in open_rows(split, column, options)), None)
    fields = [] if rows is None else list(rows.others.schema)
    if name != column and name.lower() in (field.name.lower() for field in fields):
        raise VariantError(
            f"the table has a column {name} already: give the Variants another name: column=", reason="bad-option"
        )
    return [field.with_name(name) if field.name == column else field for field in fields]


def open_rows(split: Split, column: str, options: CsvOptions) -> Iterator[TextRows]:
    """The rows of a split, some thousand at a time.

    `split`: which rows.
    `column`: the column of JSON: text, or bytes as Kafka has them.
    `options`: how CSV is read.
    Raises `VariantFileError` for a file that cannot be read, or that has no such column (``"no-such-column"``);
    `SchemaError` for a column that is no text (``"not-text"``).
    """
    for first, table in _numbered(split, options):
        if column not in table.column_names:
            names = ", ".join(table.column_names)
            raise VariantFileError(
                f"{split.file} has no column {column}: its columns are {names}",
                reason="no-such-column",
                file=split.file,
            )
        at = table.column_names.index(column)
        for start in range(0, table.num_rows, _ROWS):
            part = table.slice(start, _ROWS)
            yield TextRows(_text(part.column(at), column, split.file), part, first + start)


def _numbered(split: Split, options: CsvOptions) -> Iterator[tuple[int, pa.Table]]:
    """The tables of a split, each with the number of its first row."""
    if split.part is None and _head(split.file).startswith(_PARQUET):
        with file_errors(split.file):
            yield from _parquet_tables(split)
        return
    number = 1
    for table in _tables(split, options):
        yield number, table
        number += table.num_rows


def _tables(split: Split, options: CsvOptions) -> Iterator[pa.Table]:
    part = split.part
    if part is not None and part.rows is not None:
        yield part.rows
    elif part is not None:
        from parquet_variant.delta import snapshot
        from parquet_variant.delta.reading.read import iter_files

        current = snapshot(split.file, version=part.version)
        yield from (table for _, table in iter_files(current, current.schema, current.files.slice(part.number, 1)))
    else:
        head = _head(split.file)
        with file_errors(split.file):
            if head.startswith(_ARROW) or head[:4] == b"\xff\xff\xff\xff":
                yield from _arrow_tables(split.file, head.startswith(_ARROW))
            else:
                yield from _csv_tables(split.file, options)


def _parquet_tables(split: Split) -> Iterator[tuple[int, pa.Table]]:
    """The row groups that begin in the split's bytes."""
    from parquet_variant.parquet.format.files import locate, open_file
    from parquet_variant.parquet.format.page_places import chunk_start_of
    from parquet_variant.parquet.reading.read_table import partitioned_table

    start, end = split.byte_range or (0, None)
    (source,) = locate(split.file)
    number = 1
    with open_file(source) as file:
        for group in range(file.metadata.num_row_groups):
            offset = chunk_start_of(file.metadata.row_group(group).column(0))
            if start <= offset and (end is None or offset < end):
                yield number, table_of(partitioned_table(file, [group]))
            number += file.metadata.row_group(group).num_rows


def _arrow_tables(file: str, is_file: bool) -> Iterator[pa.Table]:
    filesystem, path = filesystem_of(file)
    if is_file:
        with filesystem.open_input_file(path) as stream:
            reader = pa.ipc.open_file(stream)
            for number in range(reader.num_record_batches):
                yield table_of(reader.get_batch(number))
    else:
        with open_text(file) as stream:
            for batch in pa.ipc.open_stream(stream):
                yield table_of(batch)


def _csv_tables(file: str, options: CsvOptions) -> Iterator[pa.Table]:
    # What begins as a number may go on as text: all is text, as it is written.
    with open_text(file) as stream:
        names = _csv_reader(stream, options).schema.names
    with open_text(file) as stream:
        as_text = csv.ConvertOptions(
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=list(options.null_values),
            column_types=dict.fromkeys(names, pa.string()),
        )
        for batch in _csv_reader(stream, options, as_text):
            yield pa.Table.from_batches([batch])


def _csv_reader(stream: Any, options: CsvOptions, convert: csv.ConvertOptions | None = None) -> csv.CSVStreamingReader:
    read = csv.ReadOptions(autogenerate_column_names=not options.header)
    parse = csv.ParseOptions(delimiter=options.delimiter, quote_char=options.quote_char, newlines_in_values=True)
    return csv.open_csv(stream, read, parse, convert)


def _text(values: pa.ChunkedArray, column: str, file: str) -> pa.Array:
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        values = values.cast(kind)
    if pa.types.is_fixed_size_binary(kind):
        values = values.cast(pa.binary())
    elif pa.types.is_null(kind):
        values = values.cast(pa.string())
    elif not any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
            pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
        )
    ):  # fmt: skip
        raise SchemaError(
            f"the column {column} is {kind}, not text: name one that holds JSON", reason="not-text", file=file
        )
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        values = pc.cast(values, pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())
    return one_chunk(values)


def _head(file: str) -> bytes:
    filesystem, path = filesystem_of(file)
    with file_errors(file), filesystem.open_input_stream(path, compression=None) as stream:
        return bytes(stream.read(6))
