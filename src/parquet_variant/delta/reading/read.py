"""Reading whole rows of a table: its files as one Arrow table of the table's schema.

Owns the way from an add action to rows (path, deletion vector, column mapping, partition values), and what a file
shreds, by its footer or by rows that were left as it has them. Leaves typed paths
with skipping to `scan`, and which files there are to `snapshot`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import empty_table, one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.deletion_vector import deleted_rows
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.file_actions import iter_adds
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add, DeletionVector
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.footer_cache import without_views
from parquet_variant.parquet.reading.page_rows import rows_of_pages
from parquet_variant.parquet.writing.conform import conform
from parquet_variant.schema.parquet_reader import open_parquet
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.tables.columns import Matcher, align_table, by_field_id, by_logical_name, by_name, unchanged
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.schema import VARIANT, StructType, arrow_schema
from parquet_variant.tables.storage import LocalStorage

Mask = npt.NDArray[np.bool_]
# What it takes to read a file of a snapshot.
PLACES = ["path", "partitionValues", "deletionVector", "size"]


def read_table(
    table: str | os.PathLike[str] | Snapshot,
    columns: Sequence[str] | None = None,
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    threads: int | None = None,
) -> pa.Table:
    """All rows of a table.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    columns
        Names of top-level columns, in the order wanted; by default all.
    version, timestamp
        Which version; by default the newest (see `snapshot`).
    storage_options
        Configuration of the object store.
    allow_outside
        Read files that the log names outside of the table, too (shallow clones); by default they are refused.
    threads
        How many files are read at the same time; by default one for each CPU that this process may use.

    Returns
    -------
    pyarrow.Table
        Variants, at the top and nested, are unshredded ``struct<metadata, value>``; their fields carry the extension
        name ``arrow.parquet.variant``, so `VariantArray.from_storage` takes them.

    Raises
    ------
    DeltaError
        As `snapshot`; ``"unknown-column"``; ``"missing-file"`` if a data file is gone; ``"bad-deletion-vector"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.read_table(folder).num_rows
    1
    """
    current = snapshot(
        table, version=version, timestamp=timestamp, storage_options=storage_options, allow_outside=allow_outside
    )
    schema = selected_schema(current, columns)
    parts = [part for _, part in iter_files(current, schema, threads=thread_count(threads))]
    if not parts:
        return align_table(empty_table(arrow_schema(schema)), schema, by_logical_name, _unshredded)
    return pa.concat_tables(parts, promote_options="permissive")


def read(
    table: str | os.PathLike[str] | Snapshot,
    column: str | None = None,
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    threads: int | None = None,
) -> VariantArray:
    """A variant column of all rows.

    Parameters
    ----------
    table, version, timestamp, storage_options, allow_outside, threads
        As `read_table`.
    column
        The column; by default the only variant column at the top.

    Returns
    -------
    VariantArray
        Unshredded.

    Raises
    ------
    DeltaError
        ``"unknown-column"`` if there is no such variant column, or several and none was named; and as `read_table`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.read(folder).to_pylist()
    [{'n': 1}]
    """
    current = snapshot(
        table, version=version, timestamp=timestamp, storage_options=storage_options, allow_outside=allow_outside
    )
    names = [f.name for f in current.schema.fields if f.type == VARIANT]
    if column is None and len(names) == 1:
        column = names[0]
    if column not in names:
        lacking = "not one variant column" if column is None else f"no variant column {column!r}"
        known = ", ".join(names) or "none"
        raise DeltaError(f"{lacking}: choose one with column=, from {known}", reason="unknown-column")
    return VariantArray.from_storage(one_chunk(read_table(current, [column], threads=threads)[column]))


def selected_schema(current: Snapshot, columns: Sequence[str] | None) -> StructType:
    """The schema of some columns, in the order asked for; `DeltaError` for one that is not there."""
    if columns is None:
        return current.schema
    fields = []
    for name in columns:
        match = current.schema.get(name)
        if match is None:
            known = ", ".join(f.name for f in current.schema.fields)
            raise DeltaError(f"the table has no column {name!r}: its columns are {known}", reason="unknown-column")
        fields.append(match)
    return StructType(tuple(fields))


def iter_files(
    current: Snapshot, schema: StructType, files: pa.Table | None = None, *, threads: int = 1
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each file, or of some rows of `Snapshot.files`, with the file's path in the storage, in order.

    No more files than one are in memory beside those that threads read.
    """
    chosen = current.files if files is None else files

    def rows_of(file: Add) -> tuple[str, pa.Table]:
        return relative_path(current.storage, file.path), read_file(current, schema, file)

    yield from in_order(rows_of, iter_adds(chosen.select(PLACES)), threads)


def read_file(
    current: Snapshot,
    schema: StructType,
    file: Add,
    *,
    chosen: Mask | None = None,
    shredded: bool = False,
) -> pa.Table:
    """The live rows of one data file, in the columns of a schema; or those that a mask has chosen in their place.

    `shredded` leaves Variants as the file has them.
    """
    partitions = {name.lower() for name in current.partition_columns}
    stored = StructType(tuple(f for f in schema.fields if f.name.lower() not in partitions))
    match = by_field_id if current.column_mapping == "id" else by_name
    path = relative_path(current.storage, file.path)
    try:
        # Nanoseconds, pyarrow's own choice for INT96, wrap around silently outside of 1677 to 2262.
        with open_parquet(current.storage.open(path), coerce_int96_timestamp_unit="us") as parquet:
            present = parquet.schema_arrow
            if current.column_mapping == "id" and not any(b"PARQUET:field_id" in (f.metadata or {}) for f in present):
                raise DeltaError("the table maps columns by id, the file has no field ids", reason="bad-data-file")
            names = [present.field(i).name for i in (match(present, f) for f in stored.fields) if i >= 0]
            data = _chosen_rows(current, path, present, names, chosen)
            mask = None
            if data is None:
                data = pa.table({"": pa.nulls(parquet.metadata.num_rows)})
                if names:
                    data = without_views(parquet.read(columns=names), parquet.metadata)
                mask = live_rows(current, file.deletion_vector, len(data)) if chosen is None else chosen
    except FileNotFoundError:
        raise DeltaError(f"data file {path} is missing", reason="missing-file", file=path) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DeltaError(f"data file {path} cannot be read: {error}", reason="bad-data-file", file=path) from error
    except TableError as error:
        raise error.at(file=path) from None
    if mask is not None:
        # Before anything is made of them: a change may be about few rows of a file.
        data = data.filter(pa.array(mask))
    rows = align_table(data, stored, match, unchanged if shredded else _unshredded)
    return _with_partitions(rows, schema, partitions, file.partition_values, len(data))


def _chosen_rows(
    current: Snapshot, path: str, present: pa.Schema, names: list[str], chosen: Mask | None
) -> pa.Table | None:
    """The rows that are chosen, if no more of a file at hand than the pages that hold them has to be read."""
    if chosen is None or not names or not isinstance(current.storage, LocalStorage):
        return None
    with current.storage.open(path) as source:
        rows = rows_of_pages(source, names, chosen)
    kinds = [field.type for field in present if field.name in names]
    return rows if rows is not None and rows.schema.types == kinds else None


def unshredded_table(rows: pa.Table, schema: StructType) -> pa.Table:
    """Rows in a schema's columns, their variants unshredded."""
    return align_table(rows, schema, by_logical_name, _unshredded)


def data_files(table: str | os.PathLike[str], *, allow_outside: bool = False) -> list[str]:
    """Paths or URLs of the Parquet files that the newest version of a table holds; arguments as for `snapshot`.

    Raises `DeltaError` as `snapshot`, and ``"outside-table"`` if a file lies outside of the table, itself or through a
    link.

    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(["1"])})
    ...     [file.removeprefix(folder)[:5] for file in data_files(folder)]
    ['/part']
    """
    newest = snapshot(table, allow_outside=allow_outside)
    root, files = os.fspath(table).rstrip("/"), []
    for path in newest.files["path"].to_pylist():
        relative = relative_path(newest.storage, path)
        newest.storage.filesystem(relative)  # refuses links that lead out of the table
        files.append(relative if "://" in relative or relative.startswith("/") else f"{root}/{relative}")
    return files


def live_rows(current: Snapshot, vector: DeletionVector | None, rows: int) -> Mask | None:
    """A mask of the rows that a deletion vector leaves; None if there is no vector.

    Raises `DeltaError` for a vector that cannot be read, or that names a row that the file does not have.
    """
    if vector is None:
        return None
    gone = deleted_rows(current.storage, vector) if vector.cardinality <= rows else None
    if gone is None or (len(gone) and int(gone[-1]) >= rows):
        raise DeltaError("a deletion vector names a row beyond its file", reason="bad-deletion-vector")
    mask = np.ones(rows, dtype=bool)
    mask[gone.astype(np.int64)] = False
    return mask


def _with_partitions(
    rows: pa.Table, schema: StructType, partitions: set[str], values: Mapping[str, str | None], count: int
) -> pa.Table:
    if not any(f.name.lower() in partitions for f in schema.fields):
        return rows
    for at, f in enumerate(schema.fields):
        if f.name.lower() in partitions:
            column = partition_array(values.get(f.physical_name), f.type, count)
            rows = rows.add_column(at, pa.field(f.name, column.type, f.nullable), column)
    return rows


def _unshredded(_: tuple[str, ...], array: VariantArray) -> VariantArray:
    storage = array.to_unshredded().storage
    metadata = storage.field("metadata")
    if not pa.types.is_dictionary(metadata.type):
        # The canonical form: rows share their dictionaries of names.
        value = storage.field("value")
        mask = storage.is_null() if storage.null_count else None
        storage = pa.StructArray.from_arrays([metadata.dictionary_encode(), value], ["metadata", "value"], mask=mask)
    return VariantArray.from_storage(conform(storage, "unshredded"))


def shredded_schemas(current: Snapshot, path: str) -> dict[str, str]:
    """What a file shreds, as JSON, by dotted column name; its footer tells."""
    match = by_field_id if current.column_mapping == "id" else by_name
    with open_parquet(current.storage.open(path)) as file:
        schemas = _seen(file.schema_arrow, current.schema, match)
    return {name: schema.to_json() for name, schema in schemas.items()}


def shredded_in(rows: pa.Table, schema: StructType) -> dict[str, ShreddingSchema]:
    """What the file shreds whose rows these are, in a table's columns, or in some of them."""
    there = StructType(tuple(f for f in schema.fields if f.name in rows.column_names))
    return _seen(rows.schema, there, lambda fields, column: int(fields.get_field_index(column.name)))


def _seen(present: pa.Schema, schema: StructType, match: Matcher) -> dict[str, ShreddingSchema]:
    schemas: dict[str, ShreddingSchema] = {}

    def see(place: tuple[str, ...], array: VariantArray) -> VariantArray:
        schemas[".".join(place)] = array.schema or ShreddingSchema.variant()
        return array

    align_table(empty_table(present), schema, match, see)
    return schemas
