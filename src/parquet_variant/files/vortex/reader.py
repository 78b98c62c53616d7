"""`read`, `read_table` and `read_json`: read whole rows of Vortex files.

Owns the public operations. `scan` reads by path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_storage, without_views
from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError, strings_of
from parquet_variant.files.vortex.json_columns import JsonColumn, compress_json, decompress_json, json_errors
from parquet_variant.files.vortex.library import OpenVortexFile, open_file, open_files
from parquet_variant.files.vortex.storing import unstored_rows
from parquet_variant.files.vortex.trailer import text_column
from parquet_variant.io.parallel import in_order
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import chunks_in_form, with_fields


def read(path: Any, column: str | None = None) -> VariantArray:
    """Read a Variant column; see `Table.read`."""
    parts = [unstored_rows(file.table([choose_variant(file, column)]).column(0)) for file in open_files(path)]
    if any(part.storage.type != parts[0].storage.type for part in parts):
        parts = [part.to_unshredded() for part in parts]
    return VariantArray.concat(parts)


def read_json(path: Any, column: str | None = None, *, exact: bool = False) -> pa.Array:
    """Read a Variant column, or a column of the type ``vortex.json``, as JSON text of the type ``arrow.json``.

    See `VortexTable.read_json`.
    """
    file = open_file(path)
    name = choose_variant(file, column, json=True)
    if name in file.json_columns:
        texts = json_texts(file, name)
        with json_errors(name, file.path):
            return texts if exact else decompress_json(compress_json(texts, shred=False))
    texts = original_texts(file, name) if exact else None
    return decompress_json(JsonColumn(unstored_rows(file.table([name]).column(0)), texts), exact=exact)


def original_texts(file: OpenVortexFile, column: str) -> pa.Array | None:
    """Return the original texts of a column that was written from JSON; None if they were not kept."""
    note = file.notes.get(column)
    if note is None or not note.has_texts:
        return None
    texts = [batch.column(0) for batch in file.batches([text_column(column)])]
    return pa.concat_arrays(texts) if texts else pa.array([], pa.large_string())


def json_texts(file: OpenVortexFile, column: str) -> pa.Array:
    """Return a column of strings or of the type ``vortex.json``, without views."""
    texts = file.table([column]).column(0)
    return one_chunk(chunks_in_form(texts, without_views(texts.type, large=texts.nbytes > MAX_OFFSET)))


def read_table(path: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read whole rows as a pyarrow table, whose Variant columns have the extension name; see `Table.to_arrow`."""
    columns = None if columns is None else strings_of("columns", columns)
    tables = []
    for file in open_files(path):
        missing = sorted(set(columns or ()) - set(file.schema.names))
        if missing:
            raise VariantFileError(
                f"column {missing[0]!r} does not exist: the columns are {', '.join(file.schema.names)}", file=file.path
            )
        tables.append(_tagged(file.table(columns), file))
        if not tables[-1].schema.equals(tables[0].schema):
            raise VariantFileError(
                f"the columns differ from those of the first file of {path}: read each file separately, or read paths "
                "with scan",
                file=file.path,
                reason="files-differ",
            )
    return pa.concat_tables(tables)


def read_schema(path: Any) -> pa.Schema:
    """Return the schema of the first file; see `Table.schema`."""
    file = open_files(path)[0]
    return _tagged(empty_table(file.schema), file).schema


def iter_tables(path: Any, *, threads: int = 1) -> Iterator[pa.Table]:
    """Yield the rows of a file, in order, as tables of some thousand rows, converted in threads; see `read_table`."""
    file = open_file(path)
    batches = file.batches(file.schema.names)
    yield from in_order(lambda batch: _tagged(pa.Table.from_batches([batch]), file), batches, threads)


def iter_variant_tables(path: Any, *, threads: int = 1) -> Iterator[pa.Table]:
    """Yield the rows of a file as `iter_tables` does, with unshredded Variants in columns of JSON text."""
    file = open_file(path)
    start = 0
    for table in iter_tables(path, threads=threads):
        yield with_variants(file, table, start)
        start += len(table)


def with_variants(file: OpenVortexFile, table: pa.Table, start: int = 0) -> pa.Table:
    """Return the rows of a file from the row ``start``, with unshredded Variants in columns of JSON text."""
    for name in file.json_columns:
        with json_errors(name, file.path, start=start):
            variants = compress_json(one_chunk(table.column(name)), shred=False)
        field = variants.arrow_field.with_name(name).with_nullable(table.schema.field(name).nullable)
        table = table.set_column(table.schema.get_field_index(name), field, variants.storage)
    return table


def _tagged(table: pa.Table, file: OpenVortexFile) -> pa.Table:
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in file.layouts:
            columns[name] = unstored_rows(column)
        else:
            columns[name] = chunks_in_form(column, without_views(column.type, large=column.nbytes > MAX_OFFSET))
    tagged = variant_table(columns)
    fields = []
    for field in tagged.schema:
        kind = field.type if field.name in file.layouts else with_fields(field.type, tagged_inside)
        fields.append(field.with_type(kind).with_nullable(file.schema.field(field.name).nullable))
    return pa.table(tagged.columns, schema=pa.schema(fields))


def tagged_inside(field: pa.Field) -> pa.Field:
    """Return a field whose nested Variants, which may be structs in the file, have the extension name."""
    if is_storage(field.type):
        return field.with_metadata(EXTENSION_METADATA)
    return field.with_type(with_fields(field.type, tagged_inside))


def choose_path_column(file: OpenVortexFile, column: str | None) -> str:
    """Return the name of the column whose paths are read.

    It is a Variant, which may be inside of structs (``s.v``), or JSON text if it is named or the only choice.
    """
    if column is not None and column in file.nested_variants and column not in file.schema.names:
        return column
    has_choice = column is not None or not file.layouts
    return choose_variant(file, column, json=has_choice and bool(file.json_columns))


def choose_variant(file: OpenVortexFile, column: str | None, *, json: bool = False) -> str:
    """Return the name of the Variant column to read; with ``json``, columns of JSON text count as well.

    Raises `VariantFileError` (``no-such-column``) if the named column is not such a column, or no name is given and
    the file does not have exactly one.
    """
    names = file.schema.names
    candidates = [*file.layouts, *(file.json_columns if json else [])]
    if column in candidates:
        return str(column)
    if len(candidates) != 1 or column is not None:
        kind = "Variant or JSON column" if json else "Variant column"
        if column is not None:
            problem = f"{column!r} is not a {kind} of the file (its columns are {', '.join(names)})"
        else:
            problem = f"the file has {len(candidates)} {kind}s (its columns are {', '.join(names)})"
        choice = f"name one of {', '.join(candidates)}" if candidates else f"name a file with a {kind}"
        if not json and file.json_columns:
            choice = (
                f"read JSON text ({', '.join(file.json_columns)}) with read_json, or convert it with write(…, json=…)"
            )
        raise VariantFileError(
            f"{problem}: {choice}",
            file=file.path,
            reason="no-such-column",
        )
    return candidates[0]
