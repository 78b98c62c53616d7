"""Whole rows of Vortex files, the logical type of a column, and reports: of files, without reading rows, and of scans.

Owns the public operations. `scanner` reads by path, and `library` has the notes of the writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from dataclasses import field as dataclasses_field
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import chosen_variant, is_storage, named_variants, with_marks, without_views
from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, VariantFileError, strings_of
from parquet_variant.files.parquet.reading.read import joined_tables
from parquet_variant.files.vortex.dtype import (
    JsonColumn,
    VariantDType,
    compress_json,
    decompress_json,
    final_variant,
    json_errors,
    layout_of,
    unstored_rows,
)
from parquet_variant.files.vortex.library import ColumnNote, OpenVortexFile, open_file, open_files, text_column
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import chunks_in_form, with_fields


def read(path: Any, column: str | None = None) -> VariantArray:
    """Read a Variant column; see `Table.read`."""
    name = choose_variant(files_with_variant(open_files(path), column)[0], column)
    return VariantArray.from_arrow(read_table(path, [name]), name)


def read_json(path: Any, column: str | None = None, *, exact: bool = False) -> pa.Array:
    """Read a Variant column, or a column of the type ``vortex.json``, as JSON text of the type ``arrow.json``.

    See `VortexTable.read_json`.
    """
    file = open_file(path)
    name = choose_variant(file, column, json=True)
    if name not in file.json_columns:
        originals = original_texts(file, name) if exact else None
        return decompress_json(JsonColumn(unstored_rows(file.table([name]).column(0)), originals), exact=exact)
    rows = json_texts(file, name)
    with json_errors(name, file.path):
        return rows if exact else decompress_json(compress_json(rows, shred=False))


def original_texts(file: OpenVortexFile, column: str) -> pa.Array | None:
    """Return the original texts of a column that was written from JSON; None if they were not kept."""
    if not file.note(column).has_texts:
        return None
    originals = [batch.column(0) for batch in file.batches([text_column(column)])]
    return pa.concat_arrays(originals) if originals else pa.array([], pa.large_string())


def json_texts(file: OpenVortexFile, column: str) -> pa.Array:
    """Return a column of strings or of the type ``vortex.json``, without views."""
    rows = file.table([column]).column(0)
    return one_chunk(chunks_in_form(rows, without_views(rows.type, large=rows.nbytes > MAX_OFFSET)))


def read_table(path: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read whole rows as a pyarrow table, whose Variant columns have the extension name; see `Table.to_arrow`."""
    columns = None if columns is None else strings_of("columns", columns)
    if columns:
        read_schema(path, columns)  # raises for columns that no file has
    tables = []
    for file in open_files(path):
        present = [name for name in columns or file.schema.names if name in file.schema.names]
        tables.append(_tagged(file.table(present), file) if present else pa.table({"": pa.nulls(len(file))}))
    return joined_tables(tables, columns)


def read_schema(path: Any, columns: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of all files; see `Table.schema`. Raises `VariantFileError` if none has one of `columns`."""
    files = open_files(path)
    schema = joined_tables([_tagged(empty_table(file.schema), file) for file in files]).schema
    if missing := [name for name in columns if name not in schema.names]:
        problem = f"column {missing[0]!r} does not exist: choose from {', '.join(schema.names)}; a path starts with $"
        raise VariantFileError(problem, file=files[0].path, reason="no-such-column")
    return schema


def iter_tables(path: Any, *, json: bool = True) -> Iterator[pa.Table]:
    """Yield the rows of a file, in order, as one or more tables of some thousand rows; see `read_table`.

    `json`: whether columns of JSON text are kept; otherwise they become unshredded Variants.
    """
    file, start = open_file(path), 0
    tables = (pa.Table.from_batches([batch]) for batch in file.batches(file.schema.names))
    for read in chain([next(tables, empty_table(file.schema))], tables):
        table = _tagged(read, file)
        for name in () if json else file.json_columns:
            with json_errors(name, file.path, start=start):
                variants = compress_json(one_chunk(table.column(name)), shred=False)
            field = variants.arrow_field.with_name(name).with_nullable(table.schema.field(name).nullable)
            table = table.set_column(table.schema.get_field_index(name), field, variants.storage)
        yield table
        start += len(table)


def _tagged(table: pa.Table, file: OpenVortexFile) -> pa.Table:
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in file.layouts:
            columns[name] = unstored_rows(column)
        else:
            columns[name] = chunks_in_form(column, without_views(column.type, large=column.nbytes > MAX_OFFSET))
    tagged = variant_table(columns)
    mark_variants = partial(with_marks, is_variant=is_storage)  # nested Variants, which may be structs in a file
    fields = []
    for field in tagged.schema:
        kind = field.type if field.name in file.layouts else with_fields(field.type, mark_variants)
        fields.append(field.with_type(kind).with_nullable(file.schema.field(field.name).nullable))
    return pa.table(tagged.columns, schema=pa.schema(fields))


def files_with_variant(files: list[OpenVortexFile], column: str | None) -> list[OpenVortexFile]:
    """Return the files that have a column of Variants or JSON text; all files if none has it."""
    if column is None:
        return [file for file in files if file.layouts or file.json_columns] or files
    return [file for file in files if column in file.schema.names or column in file.nested_variants] or files


def choose_variant(file: OpenVortexFile, column: str | None, *, json: bool = False) -> str:
    """Return the name of the Variant column to read; with ``json``, columns of JSON text count as well.

    Raises `VariantFileError` (``no-such-column``) if the named column is not such a column, or no name is given and
    the file does not have exactly one.
    """
    candidates = [*file.layouts, *(file.json_columns if json else [])]
    if column in candidates:
        return str(column)
    if column is None and len(candidates) == 1:
        return candidates[0]
    kind = "Variant or JSON column" if json else "Variant column"
    problem = f"the file has {len(candidates)} {kind}s" if column is None else f"{column!r} is not a {kind} of the file"
    remedy = f"choose one with column=, from {', '.join(candidates) or 'none'} (of {', '.join(file.schema.names)})"
    if not json and file.json_columns:
        remedy = f"read JSON text ({', '.join(file.json_columns)}) with read_json, or convert it with write(…, json=…)"
    raise VariantFileError(f"{problem}: {remedy}", file=file.path, reason="no-such-column")


class VortexColumnReport(Record, frozen=False):
    """A Variant column of Vortex files.

    Parameters
    ----------
    name
        The name of the column.
    dtype
        The logical type: ``variant``, or ``variant?`` if rows may be absent.
    layouts
        Number of files by layout.
    types
        Types of the typed columns, by path.
    in_bytes
        Paths of the schema that are not typed because the layout cannot hold them, with the reason.
    ranges
        Number of row ranges with statistics of the typed columns.
    is_json, has_texts
        True if the column was written from JSON text, and if the original texts are kept.
    """

    name: str
    dtype: str = str(VariantDType(nullable=False))
    layouts: dict[str, int] = dataclasses_field(default_factory=dict)
    types: dict[str, tuple[str, ...]] = dataclasses_field(default_factory=dict)
    in_bytes: dict[str, str] = dataclasses_field(default_factory=dict)
    ranges: int = 0
    is_json: bool = False
    has_texts: bool = False

    def add(self, column: pa.Field, layout: str, note: ColumnNote) -> None:
        """Add the column of one file."""
        if column.nullable:
            self.dtype = str(VariantDType(nullable=True))
        self.layouts[layout] = self.layouts.get(layout, 0) + 1
        self.in_bytes.update(note.in_bytes)
        self.ranges += 0 if note.statistics is None else note.statistics.count
        self.is_json |= note.is_json
        self.has_texts |= note.has_texts
        is_shredded = column.type.get_field_index("typed_value") >= 0
        schema = note.typed_schema or (ShreddingSchema.from_storage(column.type) if is_shredded else None)
        for path, node in schema.leaves() if schema is not None else ():
            if node.type is not None:
                self.types[str(path)] = tuple(dict.fromkeys((*self.types.get(str(path), ()), node.to_ddl())))


class VortexReport(Record):
    """A report on Vortex files; see `inspect`.

    Parameters
    ----------
    files, rows, bytes
        Number of files, of rows, and of bytes.
    checked
        Number of files with checksums.
    columns
        The Variant columns.
    other_columns
        Names of the other columns.
    """

    files: int
    rows: int
    bytes: int
    checked: int
    columns: tuple[VortexColumnReport, ...]
    other_columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary of JSON values."""
        return {"format": "vortex", **asdict(self)}


def dtype_of(source: Any, column: str | None = None) -> VariantDType:
    """Return the logical type of a Variant column, whose nullability is declared and does not depend on the values.

    Parameters
    ----------
    source
        Vortex files (a path, as for `vortex_files`), of which the schemas decide; an Arrow table, record batch, schema
        or field; or an array, which is nullable, because only a field can declare otherwise.
    column
        The name of the column, if there are several.

    Raises
    ------
    VariantFileError
        If the column does not exist, or is not a Variant.
    SchemaError
        For an array or a field that is not a Variant.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, parquet_variant as pv
    >>> table = pv.vortex.variant_table({"v": pv.parse_json(["1"])})
    >>> fixed = table.cast(pa.schema([table.schema.field("v").with_nullable(False)]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.write(f"{folder}/a.vortex", fixed)
    ...     print(dtype_of(f"{folder}/a.vortex"), dtype_of(fixed), dtype_of(pv.parse_json(["1"])))
    variant variant variant?
    """
    if isinstance(source, (str, os.PathLike)):
        source = read_schema(source)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        source = source.schema
    if isinstance(source, pa.Schema):
        column = chosen_variant(named_variants(source), column, VariantFileError, "no-such-column")
        source = source.field(column)
    if isinstance(source, pa.Field):
        if layout_of(source) is None:
            raise SchemaError(f"the field {source.name!r} is not a Variant: {source.type}", reason="not-a-variant")
        return VariantDType(source.nullable)
    final_variant(source)  # raises an error for other arrays
    return VariantDType(nullable=True)


def inspect(path: str | os.PathLike[str], column: str | None = None) -> VortexReport:
    """Report the layouts and typed columns of Vortex files, and the paths that a layout could not type.

    See `Table.inspect`.
    """
    files = open_files(path)
    columns: dict[str, VortexColumnReport] = {}
    other_columns: dict[str, None] = {}
    for file in files:
        for schema_field in file.schema:
            name = schema_field.name
            if name not in file.layouts:
                other_columns[name] = None
            elif column in (None, name):
                report = columns.setdefault(name, VortexColumnReport(name))
                report.add(schema_field, file.layouts[name], file.note(name))
    if column is not None and not columns:
        raise VariantFileError(f"{path} has no Variant column {column!r}", reason="no-such-column")
    rows, size = sum(map(len, files)), sum(file.size for file in files)
    checked = sum(file.source is not None and file.source.note is not None for file in files)
    return VortexReport(len(files), rows, size, checked, tuple(columns.values()), tuple(other_columns))
