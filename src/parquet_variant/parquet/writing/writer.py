"""`VariantWriter`: a Parquet file with Variant columns, batch by batch, whole or not at all.

Owns row groups by bytes, rows in an order that is asked for, what the footer says besides, the temporary name and the
rename. Leaves the shape of a Variant's storage to `conform`, encodings to `encodings`, the file's bytes to
`pages.file_writer` or `pyarrow_file`, and the one-call form to `write`.
"""

from __future__ import annotations

import base64
import builtins
import os
import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Unpack

import pyarrow as pa
from pyarrow import fs

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray, trusted_array
from parquet_variant.choices import FileMode
from parquet_variant.encoding.cast.forms import chunks_in_form, plain_form
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.fork_safety import cached_property
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.staging import check_target
from parquet_variant.io.temporaries import temporary_beside
from parquet_variant.kernels.shredding.json_batch import ShreddedRows
from parquet_variant.kernels.shredding.schema_table import SchemaTable
from parquet_variant.keywords import with_keywords
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.footer import parse_schema
from parquet_variant.parquet.format.statistics import NO_NAN_KEY, file_statistics, footer_metadata
from parquet_variant.parquet.pages.file_schema import is_written
from parquet_variant.parquet.pages.file_writer import MOST_SLICE_BYTES, PageFileWriter
from parquet_variant.parquet.writing.arrow_leaves import (
    has_nan,
    is_recovered,
    leaf_paths,
    may_have_nan,
    null_rows,
    schema_for_others,
)
from parquet_variant.parquet.writing.conform import conform_table
from parquet_variant.parquet.writing.encodings import ColumnEncodings, choose_encodings
from parquet_variant.parquet.writing.nested import is_tagged
from parquet_variant.parquet.writing.options import FileKeywords, WriterOptions
from parquet_variant.parquet.writing.pyarrow_file import PyarrowFileWriter
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.shredding.leaf_statistics import LeafStatistics

# Rows go straight into pages where a row group holds at least so many times as much.
_LEAST_BATCHES = 4
Columns: TypeAlias = Mapping[str, "pa.Array | pa.ChunkedArray | VariantArray"] | pa.RecordBatch | pa.Table


@dataclass(frozen=True)
class FileInfo:
    """What a writer wrote.

    Parameters
    ----------
    path
        The file.
    rows, bytes, row_groups
        Its counts.
    variants
        The schema paths of the Variant columns.
    may_hold_nan
        Whether a float column may hold a NaN, which the statistics do not show.
    footer
        The Thrift bytes of its footer.
    null_rows
        Rows in which a Variant column is null, by schema path.
    """

    path: str
    rows: int
    bytes: int
    row_groups: int
    variants: tuple[tuple[str, ...], ...]
    may_hold_nan: bool = True
    footer: builtins.bytes = field(repr=False, default=b"")
    null_rows: Mapping[tuple[str, ...], int] = field(repr=False, default_factory=dict)

    @cached_property
    def statistics(self) -> Mapping[tuple[str, ...], LeafStatistics]:
        """For each leaf column, by schema path, what is known of its values in the whole file."""
        metadata, root = footer_metadata(self.footer), parse_schema(self.footer, self.path)
        statistics = {leaf.path: file_statistics(metadata, leaf) for leaf in root.leaves()}
        # The file has no statistics of its dictionaries; which rows are null is known all the same.
        for place, nulls in self.null_rows.items():
            statistics[*place, "metadata"] = LeafStatistics(self.rows, nulls)
        return statistics


class VariantWriter:
    """Write one Parquet file with Variant columns; nothing is at `path` until `close` has succeeded.

    Parameters
    ----------
    path
        The file to make. Its directory is created.
    variants
        Names (dotted schema paths) of struct columns that are Variant storages; not needed for a `VariantArray`, nor
        for an Arrow field with the extension name ``arrow.parquet.variant``.
    compression, compression_level
        Codec of all columns, ``"zstd"`` unless told otherwise, and its level; zstd's is tried if it is None.
    row_group_bytes
        Arrow bytes that a row group may hold.
    annotation
        Put the VARIANT annotation on the Variant columns; ``"shredded"`` for on all of them if one is shredded, else
        on none. The older drafts never get one.
    value_first
        Write unshredded columns as ``value``, then ``metadata``, as Delta's protocol has them.
    filesystem
        A pyarrow filesystem; by default the local one, or what the URI names.
    sort_by
        Variant paths, such as ``"$.ts"`` or ``"$.ts:timestamp"``: the file's rows are sorted by them, and held in
        memory for that. Nothing is ever sorted unasked.
    bloom_filters
        Variant paths, such as ``"$.id"``, whose shredded columns get a bloom filter.
    writer
        ``"native"`` writes pages with the kernels of this package, ``"pyarrow"`` with pyarrow; so are files with
        columns of types that only pyarrow knows (null, duration, float16, fixed-size lists, …).
    threads
        How many threads encode and compress the columns, if the writer is ``"native"``.
    encodings
        What `known_encodings` chose before for columns of such rows, which are not tried again then.
    mode
        If a file is there: ``"error"``, or ``"overwrite"``.

    Raises
    ------
    VariantFileError
        If the file exists and may not be replaced, cannot be created, or an option has no such value.

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> import parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with VariantWriter(f"{folder}/a.parquet") as writer:
    ...         writer.write_batch({"v": pv.parse_json(pa.array(['{"a": 1}', "2"])), "id": pa.array([1, 2])})
    ...     writer.info.rows
    2
    """

    @with_keywords(FileKeywords, WriterOptions)
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        variants: Collection[str] = (),
        value_first: bool = False,
        filesystem: fs.FileSystem | None = None,
        threads: int = 1,
        encodings: ColumnEncodings | None = None,
        mode: FileMode = "error",
        **options: Unpack[FileKeywords],
    ) -> None:
        self._options = WriterOptions.of(options)
        self.filesystem, self.path = filesystem_of(path, filesystem)
        self.info: FileInfo | None = None
        self.rows = 0
        self._variants, self._threads = frozenset(variants), threads
        self._encodings = encodings
        self._value_first = value_first
        self._unsorted: list[pa.Table] = []
        self._group_rows = self._group_bytes = self._groups = 0
        self._stream: pa.NativeFile | None = None
        self._file: PageFileWriter | PyarrowFileWriter | None = None
        self._schema: pa.Schema | None = None
        self._annotated: tuple[tuple[str, ...], ...] = ()
        self._nan, self._floats = False, True
        self._table: SchemaTable | None = None
        self._nulls: dict[tuple[str, ...], int] = {}
        self._done = False
        check_target(self.filesystem, self.path, mode)
        self._temporary = temporary_beside(self.path)

    # ---- batches in

    def write_batch(self, columns: Columns) -> None:
        """Add rows: columns by name, `VariantArray` or Arrow; every batch must have the same columns and types.

        Raises
        ------
        SchemaError
            If a column's type differs from the first batch's.
        VariantFileError
            If the columns differ in length or there are none.
        """
        table, annotated = conform_table(columns, self._variants, value_first=self._value_first)
        if self._schema is None:
            with write_errors(self.path):
                self._open(table, annotated)
        elif not table.schema.equals(self._schema):
            table = _same_type(table, self._schema, self.path)
        if self._floats and not self._nan:
            self._nan = any(has_nan(chunk) for column in table.columns for chunk in column.chunks)
        for place in self._annotated:
            nulls = null_rows(table, place)
            if nulls is not None:
                self._nulls[place] = self._nulls.get(place, 0) + nulls
        if self._options.sort_by:
            self._unsorted.append(table)
        else:
            with write_errors(self.path):
                self._add(table)

    def write_rows(self, name: str, rows: ShreddedRows) -> None:
        """Add rows of one Variant column that were made of nodes: as their storage, or straight into pages.

        Raises
        ------
        SchemaError, VariantFileError
            As `write_batch`.
        """
        size = rows.buffers.nbytes + rows.metadata.nbytes
        limit = min(self._options.row_group_bytes // _LEAST_BATCHES, MOST_SLICE_BYTES)
        # The first rows are looked at as Arrow columns, and rows that are to be sorted or cut stay such.
        is_known = self._schema is not None and self._schema.names == [name] and rows.table is self._table
        if (
            not is_known
            or self._options.sort_by
            or size > limit
            or not isinstance(self._file, PageFileWriter)
            or not len(rows)
        ):
            self.write_batch({name: trusted_array(rows.storage(), fits_files=True)})
            self._table = rows.table
            return
        place = (name,)
        self._nulls[place] = self._nulls.get(place, 0) + rows.null_count
        with write_errors(self.path):
            if self._group_bytes + size > self._options.row_group_bytes:
                self._end_group()
            self._nan |= self._file.write_rows(rows)
        self._group_rows += len(rows)
        self._group_bytes += size

    def _open(self, table: pa.Table, annotated: tuple[tuple[str, ...], ...]) -> None:
        folder = posixpath.dirname(self.path)
        try:
            if folder:
                self.filesystem.create_dir(folder, recursive=True)
            self._stream = self.filesystem.open_output_stream(self._temporary)
        except (OSError, pa.ArrowException) as error:
            raise VariantFileError(f"cannot create {self.path}: {error}", reason="cannot-create") from None
        options, self._schema, self._annotated = self._options, table.schema, annotated
        self._floats = any(may_have_nan(field.type) for field in table.schema)
        is_native = options.writer == "native" and all(is_written(field.type) for field in table.schema)
        chosen = choose_encodings(table, options.compression, options.compression_level, self._encodings)
        if is_native:
            chosen["threads"] = self._threads
        make = PageFileWriter if is_native else PyarrowFileWriter
        self._file = make(
            self._stream,
            table.schema,
            self._to_annotate(annotated, table.schema),
            # The bounds of dictionaries of names are long and say nothing.
            no_statistics=[".".join((*column, "metadata")) for column in annotated],
            bloom_filters=self._bloom_leaves(table.schema),
            compression=options.compression,
            **chosen,
        )

    def _bloom_leaves(self, schema: pa.Schema) -> Collection[str]:
        if not self._options.bloom_filters:
            return ()
        from parquet_variant.parquet.format.bloom import bloom_leaves

        return bloom_leaves(schema, self._annotated, self._options.bloom_filters)

    def _add(self, table: pa.Table) -> None:
        """Write rows, and end a row group where it is full."""
        assert self._file is not None
        limit = self._options.row_group_bytes
        # By the mean size of a row; one that is larger than a group makes a group of its own.
        row_bytes = table.nbytes / max(len(table), 1)
        start = 0
        while start < len(table):
            room = int((limit - self._group_bytes) / max(row_bytes, 1e-9))
            part = table.slice(start, min(max(room, 0 if self._group_rows else 1), len(table)))
            if len(part):
                self._file.write_batch(part)
            self._group_rows += len(part)
            self._group_bytes += int(row_bytes * len(part))
            start += len(part)
            if start < len(table) or self._group_bytes >= limit:
                self._end_group()

    def _end_group(self) -> None:
        assert self._file is not None
        if self._group_rows:
            self._file.end_row_group()
            self.rows += self._group_rows
            self._groups += 1
        self._group_rows = self._group_bytes = 0

    # ---- the end

    def close(self) -> FileInfo:
        """Write the rest and the footer, and give the file its name.

        Raises
        ------
        VariantFileError
            If no batch was written: then there is no schema to write either.
        """
        if self._done:
            if self.info is None:
                raise VariantFileError("the writer was aborted", reason="aborted", file=self.path)
            return self.info
        if self._schema is None or self._file is None or self._stream is None:
            self.abort()
            raise VariantFileError(
                "nothing was written: give the writer at least one batch, if only an empty one", reason="no-batch"
            )
        try:
            with write_errors(self.path):
                if self._unsorted:
                    self._add(self._sorted())
                self._end_group()
                footer, size = self._file.close(self._key_values(self._schema))
                self._stream.close()
                self.filesystem.move(self._temporary, self.path)
        except BaseException:
            self.abort()
            raise
        self._done = True
        annotated = self._annotated or (column.path for column in find_variants(parse_schema(footer, self.path)))
        self.info = FileInfo(self.path, self.rows, size, self._groups, tuple(annotated), self._nan, footer, self._nulls)
        return self.info

    def _sorted(self) -> pa.Table:
        table, self._unsorted = pa.concat_tables(self._unsorted), []
        return _sorted_rows(table.combine_chunks(), self._options.sort_by)

    def _key_values(self, schema: pa.Schema) -> dict[str, str]:
        key_values = {}
        if not all(is_recovered(each.type) for each in schema):
            key_values["ARROW:schema"] = base64.b64encode(schema_for_others(schema).serialize().to_pybytes()).decode()
        if not self._nan:
            key_values[NO_NAN_KEY.decode()] = "true"
        return key_values

    def _to_annotate(self, annotated: tuple[tuple[str, ...], ...], schema: pa.Schema) -> tuple[tuple[str, ...], ...]:
        chosen = self._options.annotation
        if chosen == "shredded":
            chosen = any("typed_value" in leaf for each in schema for leaf in leaf_paths(each, (each.name,)))
        return annotated if chosen else ()

    def abort(self) -> None:
        """Stop, and leave nothing behind."""
        if self._done:
            return
        self._done = True
        if self._stream is not None:
            if self._file is not None:
                self._file.abort()
            if not self._stream.closed:
                self._stream.close()
            if self.filesystem.get_file_info(self._temporary).type == fs.FileType.File:
                self.filesystem.delete_file(self._temporary)

    def __enter__(self) -> VariantWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _same_type(table: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """The table under the first batch's schema, where only nullability of whole columns or dictionaries differ."""
    if table.schema.names != schema.names:
        raise SchemaError(
            f"batches must have the same columns: {', '.join(schema.names)} at first, now "
            f"{', '.join(table.schema.names)}",
            reason="batches-differ",
            file=path,
        )
    columns = []
    for name, f in zip(schema.names, schema, strict=True):
        column = table.column(name)
        if column.type != f.type:
            try:
                column = column.cast(f.type)
            except pa.ArrowException:
                raise SchemaError(
                    f"column {name} is {column.type}, but {f.type} in the first batch: one file has one schema",
                    reason="batches-differ",
                    file=path,
                ) from None
        columns.append(column)
    return pa.table(columns, schema=schema)


def _sorted_rows(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """The table in ascending order of some keys, nulls last; equal rows keep their order.

    `table`: rows with Variant columns, tagged as such, in any layout.
    `sort_by`: ``"$.path:type"`` into the only top-level Variant column, or the name of an ordinary column. A path
      without a type is sorted as the type that it is shredded as, or else numbers before texts.
    Raises `VariantFileError` if there is not exactly one top-level Variant column to take a path from.
    """
    selection = read_selection({f"key{number}": key for number, key in enumerate(sort_by)})
    keys = {
        f"{selected.name}.{number}": _sortable(key)
        for selected in selection
        for number, key in enumerate(_keys(table, selected))
    }
    ordered = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(ordered)


def _sortable(key: pa.Array) -> pa.Array:
    """A key in a form that pyarrow sorts."""
    if isinstance(key.type, pa.BaseExtensionType):
        return pc.cast(key, key.type.storage_type)
    return pc.cast(key, pa.float32()) if pa.types.is_float16(key.type) else key


def _keys(table: pa.Table, selected: Selected) -> list[pa.Array]:
    from parquet_variant.functions.variant_get import try_variant_get

    if selected.path is None:
        if selected.column not in table.column_names:
            raise VariantFileError(f"cannot sort by {selected.column}: no such column", reason="no-such-column")
        column = table.column(selected.column)
        if pa.types.is_nested(column.type):
            raise VariantFileError(
                f"cannot sort by {selected.column}: its values are nested; name a path into a Variant, such as "
                "'$.id:bigint', or a column of plain values",
                reason="bad-option",
            )
        return [chunks_in_form(column, plain_form(column.type))]
    top = [field.name for field in table.schema if is_tagged(field)]
    if len(top) != 1:
        raise VariantFileError(
            f"cannot sort by {selected.path}: there are {len(top)} Variant columns at the top, not one",
            reason="several-variant-columns" if top else "no-variant-column",
        )
    array = VariantArray(table.column(top[0]))
    if selected.type is not None:
        return [try_variant_get(array, selected.path, selected.type)]
    shredded = None if array.schema is None else array.schema.get(selected.path)
    own = pa.float64() if shredded is None or shredded.type is None else shredded.type
    # The text orders what is not of the type.
    return [try_variant_get(array, selected.path, kind) for kind in dict.fromkeys((own, pa.string()))]
