"""Tables as sources: JSON in a column of a table (Parquet, Vortex, Arrow, CSV, Delta, rows in memory), and CSV files.

This module finds the tables, divides them into splits, and yields their rows as JSON text with the other columns; and
replaces strings with JSON inside the JSON of text files. `batches` parses the text, and the libraries and packages of
the formats read the tables. The columns of CSV get a type only if every value has its form. A number with leading zeros
is a string, because the zeros would be lost. `formats.csv_rows` reads the rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.arrays.parts import binary_parts, columns_of, one_chunk, struct_of, with_columns
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.errors import JsonError, SchemaError, VariantFileError
from parquet_variant.inference.typed_strings import decoded_base64
from parquet_variant.ingestion.formats.csv_rows import CsvOptions, CsvReader
from parquet_variant.ingestion.formats.layout import start_of_text
from parquet_variant.ingestion.formats.wrapped import values_at
from parquet_variant.ingestion.sources.chunks import Bytes, RowTexts
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split, TablePart, plan_splits
from parquet_variant.io.directories import VORTEX_MAGIC, has_delta_log, has_iceberg_metadata
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy
from parquet_variant.kernels.memory import address_of, copy_spans
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.tapes.tape import DROPPED, Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.conversions import cast_to_variant, to_json
from parquet_variant.ops.interop.tables import rows_of, table_of
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import PrimitiveId
from parquet_variant.types.forms import is_json_type
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_BLOCK_BYTES = 1 << 20
_INTEGER = r"^-?(0|[1-9][0-9]{0,37})$"  # Arrow casts longer strings to other decimals.
# Integers of more digits are not doubles, which would make different ones equal.
_DOUBLE = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
# Types and the form of their strings, the preferred one first.
_FORMS: tuple[tuple[pa.DataType, str], ...] = (
    (pa.bool_(), r"^(?i:true|false)$"),
    (pa.int64(), _INTEGER),
    (pa.decimal128(38), _INTEGER),
    (pa.float64(), _DOUBLE),
    (pa.date32(), _DATE),
    (pa.timestamp("us"), _TIMESTAMP + "$"),
    (pa.timestamp("us", "UTC"), _TIMESTAMP + r"(Z|[-+][0-9]{2}(:?[0-9]{2})?)$"),
)


def inferred_types(tables: Iterable[pa.Table]) -> dict[str, pa.DataType]:
    """Return the first type whose form all strings of a column have, by column; columns without values have none.

    Empty strings, which are quoted fields, have every form but that of a string.

    >>> inferred_types([pa.table({"a": ["1", None], "b": ["007", "1"]}), pa.table({"a": ["1.5"]})])
    {'a': DataType(double), 'b': DataType(string)}
    """
    possible: dict[str, Sequence[tuple[pa.DataType, str]]] = {}
    for table in tables:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if (column := _without_empty(column)).null_count < len(column):
                forms = possible.get(name, _FORMS)
                possible[name] = [(kind, form) for kind, form in forms if _have_form(column, kind, form)]
    return {name: forms[0][0] if forms else pa.string() for name, forms in possible.items()}


def csv_tables(file: InputFile, options: CsvOptions) -> Iterator[pa.Table]:
    """Yield the rows of a file as tables of strings."""
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
            problem = f"cannot read {file.name} as CSV: {place}{error.message}; fix the file"
            raise VariantFileError(problem, reason=error.reason, file=file.name) from None


def read_csv(path: str | os.PathLike[str]) -> pa.Table:
    """Read CSV or TSV files as one table, with the types that all values of a column have."""
    tables: list[pa.Table] = []
    for file in find_input_files(path):
        for table in csv_tables(file, CsvOptions()):
            if tables and table.column_names != tables[0].column_names:
                problem = (
                    f"{file.name} has the columns {', '.join(table.column_names)}, and not "
                    f"{', '.join(tables[0].column_names)} as the files before it: read the files one by one"
                )
                raise VariantFileError(problem, reason="unreadable", file=file.name)
            tables.append(table)
    if not tables:
        raise VariantFileError(
            f"cannot read {os.fspath(path)} as CSV: it is empty; name a file with a header", reason="unreadable"
        )
    return with_types(pa.concat_tables(tables), inferred_types(tables), os.fspath(path))


def with_json_columns(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return rows of CSV with Variants in place of the JSON in some columns; empty strings are null."""
    texts = [field.name for field in table.schema if field.name in names and pa.types.is_string(field.type)]
    table = with_types(table, dict.fromkeys(texts, pa.binary()), "CSV")
    table, faults, _ = with_parsed_columns(table, dict.fromkeys(texts), JsonOptions(), "CSV")
    for row, error in faults:
        raise JsonError(
            f"{error.message}; write JSON there, in which a string has quotes", reason=error.reason, row=row
        )
    return table


def with_types(table: pa.Table, types: Mapping[str, pa.DataType], file: str) -> pa.Table:
    """Return a table of strings with the inferred types of some columns, in which empty strings are null."""
    for index, name in enumerate(table.column_names):
        if (kind := types.get(name, pa.string())) != pa.string():
            try:
                table = table.set_column(index, name, pc.cast(_without_empty(table.column(index)), kind))
            except pa.ArrowInvalid as error:
                problem = f"the column {name} of {file} is not {kind}: {error}; ingest the file again"
                raise VariantFileError(problem, reason="changed-file", file=file) from None
    return table


def _without_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings with null instead of empty strings: some programs quote all fields, also those without a value."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _have_form(values: pa.ChunkedArray, kind: pa.DataType, form: str) -> bool:
    if pc.all(pc.match_substring_regex(values, form), min_count=0).as_py():
        with suppress(pa.ArrowInvalid):
            pc.cast(values, kind)
            return True
    return False


_BATCH_ROWS = 1 << 16
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


def find_tables(sources: Iterable[str | os.PathLike[str]], exclude: Sequence[str] = ()) -> list[InputFile]:
    """Return the Delta tables and files that the sources name, without duplicates and excluded files."""
    tables: dict[InputFile, None] = {}
    for source in [os.fspath(source) for source in sources]:
        if has_iceberg_metadata(source):
            problem = (
                f"{source} is an Iceberg table, which cannot be the source of a JSON column: read it with "
                "pv.open(…).to_arrow(), and pass the rows"
            )
            raise VariantFileError(problem, file=source, reason="iceberg-table")
        files = [InputFile(source)] if has_delta_log(source) else find_input_files(source, exclude, pipes=True)
        tables.update(dict.fromkeys(files))
    return list(tables)


def plan_table_splits(tables: Iterable[InputFile], split_bytes: int) -> list[Split]:
    """Divide tables into splits: the files of a Delta table, row groups of a Parquet file, other files as a whole."""
    splits: list[Split] = []
    for table in tables:
        if not has_delta_log(table.name):
            splits += plan_splits([table], split_bytes, can_split=lambda file, _: file.head.startswith(_PARQUET))
            continue
        from parquet_variant.tables.delta.log.snapshot import snapshot

        current = snapshot(table.name)
        sizes = current.files.column("size").to_pylist()
        splits += [Split(table, part=TablePart(size, number, current.version)) for number, size in enumerate(sizes)]
    return splits


def split_rows(rows: pa.Table, parts: int) -> list[Split]:
    """Divide rows in memory into at most `parts` splits."""
    size = max(1, -(-rows.num_rows // max(parts, 1)))
    slices = [rows.slice(start, size) for start in range(0, max(rows.num_rows, 1), size)]
    return [
        Split(InputFile("rows"), part=TablePart(part.nbytes, number, rows=part)) for number, part in enumerate(slices)
    ]


def with_inferred_types(files: Iterable[InputFile], columns: Sequence[str], options: CsvOptions) -> CsvOptions:
    """Return the options with the types of the columns next to the JSON columns, from all rows of all CSV files."""
    # Other tables have types.
    text_files = [
        file
        for file in files
        if not has_delta_log(file.name) and not file.head.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))
    ]
    tables = (
        table.drop_columns([name for name in columns if name in table.column_names])
        for file in text_files
        for table in csv_tables(file, options)
    )
    return replace(options, types=tuple(inferred_types(tables).items()))


def open_rows(
    split: Split, column: str, options: CsvOptions, more: Iterable[str] = (), *, of_dataframe: bool = False
) -> Iterator[tuple[RowTexts, pa.Table]]:
    """Yield the rows of a split in batches, JSON columns included, and the texts of the first of these columns.

    `column`, `more`: the JSON columns, or the dotted paths of fields of structs. Text of the type ``arrow.json`` in
      other columns becomes Variants.
    `of_dataframe`: whether Spark wrote the partitions of a DataFrame to the files.
    """
    name = source = split.file.name
    if of_dataframe:
        number = re.search(r"part-(\d+)-[^/]*$", name)
        source = f"partition {int(number[1])} of the DataFrame" if number else "the DataFrame"
    if split.part is None and split.file.head.lstrip().startswith(b"{"):
        problem = (
            f"{name} is JSON, not a table with a column {column}: to parse strings with JSON inside it, set "
            f"json_column='$.{column}'"
        )
        raise VariantFileError(problem, reason="not-a-table", file=name)
    places = column, *more
    for first_row, table in _numbered_tables(split, options, places):
        for place in places:
            table = _with_field_as_column(table, place)
            if place not in table.column_names:
                problem = f"{name} has no column {place}: its columns are {', '.join(table.column_names)}"
                raise VariantFileError(problem, reason="no-such-column", file=name)
        table = _with_variants(table, places)
        for start in range(0, max(table.num_rows, 1), _BATCH_ROWS):
            batch = table.slice(start, _BATCH_ROWS)
            data, starts, stops, valid = json_texts(batch, column, name)
            yield RowTexts(source, "row", data, starts, stops, (first_row + start).__add__, valid), batch


def json_texts(table: pa.Table, name: str, file: str) -> tuple[Bytes, Int64s, Int64s, Bytes | None]:
    """Return the texts of a column of strings or bytes, or the JSON of nested values, and which rows are not null."""
    column = one_chunk(table.column(name))
    is_variant = is_variant_field(table.field(name))
    if pa.types.is_nested(column.type) and not is_variant:
        column = to_json(cast_to_variant(column))
    try:
        offsets, address, valid, owner = binary_parts(column)
    except SchemaError:
        problem = f"column {name} is {column.type}, not strings or bytes: name the column with JSON with json_column="
        if is_variant:
            problem = f"column {name} contains Variants, not JSON text: copy the rows with `variant rewrite`"
        raise SchemaError(problem, reason="not-text", file=file) from None
    base, end = int(offsets[0]), int(offsets[-1])
    buffer = pa.foreign_buffer(address + base, end - base, base=owner) if end > base else b""
    spans = _decoded_texts(np.frombuffer(buffer, np.uint8), offsets[:-1] - base, offsets[1:] - base)
    return *spans, valid if len(valid) else None


def with_parsed_columns(
    table: pa.Table, schemas: Mapping[str, ShreddingSchema | None], options: JsonOptions, file: str
) -> tuple[pa.Table, list[tuple[int, JsonError]], list[tuple[int, bytes]]]:
    """Return a table with Variants in columns of JSON, null where text is not JSON; faults and inexact numbers.

    `schemas`: the shredding schemas of the columns.
    """
    faults, inexact = list[tuple[int, JsonError]](), list[tuple[int, bytes]]()
    for name, schema in schemas.items():
        parsed = parse_text(*json_texts(table, name, file), options, null_on_error=True)
        inexact += parsed.inexact
        faults += _at_place(f"column {name}", parsed.faults)
        storage = shredded_rows(parsed.tape, schema).storage()
        field = pa.field(name, storage.type, metadata=EXTENSION_METADATA)
        table = table.set_column(table.column_names.index(name), field, storage)
    return table, faults, inexact


def _with_variants(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return a table with Variants in place of text of the type ``arrow.json``, which is plain text in some columns."""
    other_names = [name for name in table.column_names if name not in names]
    parsed = rows_of(table.select(other_names)) if other_names else table
    for index, name in enumerate(table.column_names):
        if name in other_names:
            table = table.set_column(index, parsed.field(name), parsed.column(name))
        elif is_json_type(table.column(index).type):
            table = table.set_column(index, name, [chunk.storage for chunk in table.column(index).chunks])
    return table


def _with_field_as_column(table: pa.Table, path: str) -> pa.Table:
    """Return the table with the field of a struct that a dotted path names as a column, next to the struct."""
    name, *names = path.split(".")
    if path in table.column_names or name not in table.column_names:
        return table
    values, other_fields = _taken_out(one_chunk(table.column(name)), names)
    if values is None:
        return table
    index = table.column_names.index(name)
    if other_fields is None:  # no other field
        return table.set_column(index, path, values)
    table = table.set_column(index, table.schema.field(index).with_type(other_fields.type), other_fields)
    return table.add_column(index + 1, path, values)


def _taken_out(group: pa.Array, names: Sequence[str]) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the field of a struct at nested names, None if it is missing; and the other fields, None without any."""
    if not names:
        return group, None
    columns = columns_of(group) if pa.types.is_struct(group.type) else {}
    if names[0] not in columns:
        return None, group
    values, columns[names[0]] = _taken_out(columns[names[0]], names[1:])
    other_fields = {name: column for name, column in columns.items() if column is not None}
    return values, with_columns(group, other_fields) if other_fields else None


def _numbered_tables(split: Split, options: CsvOptions, places: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the tables of a split with the number of their first row; of Parquet the row groups that begin in it."""
    first_row = 1
    if split.part is not None or not split.file.head.startswith(_PARQUET):
        for table in _tables(split, options, places):
            yield first_row, table
            first_row += table.num_rows
        return
    from parquet_variant.files.parquet.format.facts import chunk_start_of
    from parquet_variant.files.parquet.format.files import locate, open_file
    from parquet_variant.files.parquet.reading.read import read_rows

    start, end = split.byte_range or (0, None)
    with split.file.errors(), open_file(locate(split.file.name)[0]) as opened:
        for group in range(opened.metadata.num_row_groups):
            offset = chunk_start_of(opened.metadata.row_group(group).column(0))
            if start <= offset and (end is None or offset < end):
                yield first_row, table_of(read_rows(opened, [group], partition=opened.source.partition))
            first_row += opened.metadata.row_group(group).num_rows


def _tables(split: Split, options: CsvOptions, places: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a part of a table, or of an Arrow, Vortex or CSV file, whose JSON columns are `places`."""
    file, part = split.file, split.part
    if part is not None and part.rows is not None:
        yield part.rows
        return
    if part is not None:
        from parquet_variant.tables.delta.log.snapshot import snapshot
        from parquet_variant.tables.delta.reading.read import DeltaScan

        current = snapshot(file.name, version=part.version)
        yield DeltaScan.read_table(replace(current, files=current.files.slice(part.number, 1)), threads=1)
        return
    with file.errors():
        if file.head.startswith(_ARROW_FILE):
            with file.open_seekable() as stream:
                arrow = pa.ipc.open_file(stream)
                yield from (table_of(arrow.get_batch(number)) for number in range(arrow.num_record_batches))
        elif file.head.startswith(_ARROW_STREAM):
            with file.open_text() as stream:
                yield from map(table_of, pa.ipc.open_stream(stream))
        elif file.head.startswith(VORTEX_MAGIC):
            from parquet_variant.files.vortex.reader import iter_tables

            yield from iter_tables(file.name.removeprefix("file://"))
        else:
            for table in csv_tables(file, options):
                # Of JSON, too, an empty string is null.
                yield with_types(table, dict(options.types) | dict.fromkeys(places, pa.binary()), file.name)


# Values of some rows; the rows with text that is not JSON, in order, or with a number that is not kept exactly.
Parsed: TypeAlias = "tuple[VariantArray, list[tuple[int, JsonError]], list[tuple[int, bytes]]]"


def parse_strings(tape: Tape, paths: Sequence[VariantPath], options: JsonOptions) -> Parsed:
    """Parse the strings at some paths of rows, one path after the other; other values at the paths are kept.

    >>> rows = VariantArray.from_pylist([{"p": '{"a": 1}', "q": ["[]", 3]}, {"p": 2}, {}])
    >>> paths = [VariantPath.parse("$.p"), VariantPath.parse("$.q[*]")]
    >>> parse_strings(next(array_tapes(rows, 0)), paths, JsonOptions())[0][0]
    <Variant object: {"p":{"a":1},"q":[[],3]}>
    """
    tapes, inexact = [tape], list[tuple[int, bytes]]()
    for path in paths:
        array, faults, numbers = _parse_strings_at(tapes, path.segments, options)
        inexact += numbers
        if faults:
            return array, _at_place(f"the string at {path.shorthand}", faults), inexact
        tapes = list(array_tapes(array, 0)) or tapes
    return array, [], inexact


def _at_place(place: str, faults: Iterable[tuple[int, JsonError]]) -> list[tuple[int, JsonError]]:
    """Return faults whose messages say where they are in the row."""
    return [(row, JsonError(f"{place}: {e.message}", reason=e.reason, offset=e.offset)) for row, e in faults]


def _parse_strings_at(tapes: Iterable[Tape], segments: tuple[Segment, ...], options: JsonOptions) -> Parsed:
    keys = tuple(takewhile(lambda segment: isinstance(segment, str), segments))
    arrays, faults, inexact, first = list[VariantArray](), list[tuple[int, JsonError]](), list[tuple[int, bytes]](), 0
    for tape in tapes:
        array, of_faults, of_inexact = (
            _parse_strings_of(tape, keys, options)
            if keys == segments
            else _parse_elements(tape, VariantPath(keys), segments[len(keys) :], options)
        )
        arrays.append(array)
        faults += [(first + row, error) for row, error in of_faults]
        inexact += [(first + row, text) for row, text in of_inexact]
        first += tape.rows
    return VariantArray.concat(arrays), faults, inexact


def _parse_elements(tape: Tape, path: VariantPath, segments: tuple[Segment, ...], options: JsonOptions) -> Parsed:
    """Parse strings in the elements of arrays at a path: those of one position, or of all."""
    from parquet_variant.ops.value_edits import variant_set

    (step, *tail), outer = segments, trusted_array(shredded_rows(tape).storage())
    elements, rows = values_at(outer, VariantPath((*path.segments, WILDCARD)))
    parents, starts, counts = np.unique(rows, return_index=True, return_counts=True)
    positions = np.arange(len(rows)) - np.repeat(starts, counts)
    places = np.flatnonzero(positions == step) if isinstance(step, int) else positions + np.repeat(starts, counts)
    if not len(places):
        return outer, [], []
    parsed, faults, inexact = _parse_strings_at(array_tapes(elements.take(from_numpy(places)), 0), tuple(tail), options)
    numbered = [(int(rows[places[row]]), text) for row, text in inexact]
    if faults:
        return outer, [(int(rows[places[row]]), error) for row, error in faults], numbered
    elements = _replaced(elements, places, parsed)
    arrays = _arrays_of(elements, from_numpy(np.append(starts, len(rows)).astype(np.int32)))
    if path.segments:
        arrays = variant_set(outer.take(from_numpy(parents)), path, arrays)
    return _replaced(outer, parents, arrays), [], numbered


def _arrays_of(elements: VariantArray, offsets: pa.Array) -> VariantArray:
    """Return arrays of consecutive elements."""
    tapes = list(array_tapes(elements, 0))
    if len(tapes) > 1:  # several dictionaries
        return cast_to_variant(pa.ListArray.from_arrays(offsets, elements.storage))
    storage, rows = shredded_rows(tapes[0], per_batch=True).storage(), len(offsets) - 1
    lists = pa.ListArray.from_arrays(offsets, struct_of({"value": storage.field("value")}))
    metadata = storage.field("metadata").take(from_numpy(np.zeros(rows, np.int64)))
    columns = {"metadata": metadata, "value": pa.nulls(rows, pa.binary()), "typed_value": lists}
    return VariantArray(struct_of(columns)).to_unshredded()


def _parse_strings_of(tape: Tape, keys: tuple[Segment, ...], options: JsonOptions) -> Parsed:
    """Parse the strings at a path of keys, or the rows that are strings."""
    from parquet_variant.ops.value_edits import variant_set

    outer, number = trusted_array(shredded_rows(tape).storage()), tape.find_path(keys)
    tags = tape.nodes[:, 0]
    is_string = ((tags & 0xFF) == PrimitiveId.STRING) & (tags & DROPPED == 0)
    nodes = np.flatnonzero(is_string & (path_ids(tags) == number)) if number is not None else ()
    if not len(nodes):
        return outer, [], []
    rows = np.searchsorted(tape.row_start, nodes, "right") - 1
    sizes = tape.nodes[nodes, 2].copy()
    stops = np.cumsum(sizes)
    data = np.empty(int(stops[-1]) + 1, np.uint8)
    copy_spans(tape.nodes[nodes, 1].copy(), sizes, address_of(data))
    parsed = parse_text(*_decoded_texts(data, stops - sizes, stops), options=options, null_on_error=True)
    inexact = [(int(rows[index]), text) for index, text in parsed.inexact]
    if parsed.faults:
        return outer, [(int(rows[index]), error) for index, error in parsed.faults], inexact
    values = trusted_array(shredded_rows(parsed.tape).storage())
    changed = variant_set(outer.take(from_numpy(rows)), VariantPath(keys), values) if keys else values
    return _replaced(outer, rows, changed), [], inexact


def _replaced(array: VariantArray, rows: npt.NDArray[np.intp], values: VariantArray) -> VariantArray:
    """Return an array with other values in some rows."""
    positions = np.arange(len(array))
    positions[rows] = len(array) + np.arange(len(rows))
    return VariantArray.concat([array, values]).take(from_numpy(positions))


def _decoded_texts(data: Bytes, starts: Int64s, stops: Int64s) -> tuple[Bytes, Int64s, Int64s]:
    """Return texts with decoded base64 where the text is that of an object or an array, as in dumps of Kafka.

    The base64 of ``{`` and ``[`` begins with ``e`` and ``W``, with which no JSON begins.
    """
    filled = np.flatnonzero(stops > starts)
    encoded = filled[np.isin(data[starts[filled]], (ord("e"), ord("W")))]
    if not len(encoded):
        return data, starts, stops
    rows = [data[start:stop].tobytes() for start, stop in zip(starts, stops, strict=True)]
    for index in encoded.tolist():
        rows[index] = decoded_base64(rows[index]) or rows[index]
    sizes = np.array(list(map(len, rows)), np.int64)
    stops = np.cumsum(sizes)
    return np.frombuffer(b"".join(rows) + b"\0", np.uint8), stops - sizes, stops
