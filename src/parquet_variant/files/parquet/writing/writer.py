"""`VariantWriter` and `write`: write a Parquet file with Variant columns, in batches or in one call, atomically.

Owns the size of row groups, key-value metadata of the footer, the temporary file with its rename, and the comparison of
schemas by the size of their files: every column has metadata in the footer, and its values are compressed apart from
the other values of their rows, so shredding a few rows can make a file larger, which no estimate from a profile
predicts. Leaves the storage type of Variants and sorting to `conform`, encodings to `encodings`, shredding to `ops`,
and the bytes of the file to `pages.file_writer` or `pyarrow_file`.
"""

from __future__ import annotations

import base64
import builtins
import os
import posixpath
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import Any, TypeAlias, Unpack, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantFileError, check_choice, check_count, check_mapping, strings_of
from parquet_variant.files.parquet.format.arrow_schema import (
    Place,
    has_nan,
    is_recovered,
    is_written,
    leaf_paths,
    map_variants,
    may_have_nan,
    null_rows,
    stored_field,
)
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.facts import NO_NAN_KEY, FileFacts
from parquet_variant.files.parquet.format.footer import parse_schema
from parquet_variant.files.parquet.pages.file_writer import MOST_SLICE_BYTES, PageFileWriter
from parquet_variant.files.parquet.writing import conform
from parquet_variant.files.parquet.writing.encodings import ColumnEncodings, choose_encodings
from parquet_variant.files.parquet.writing.pyarrow_file import PyarrowFileWriter
from parquet_variant.inference.policies.decision import InferenceResult, schema_of_leaves
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.inference.typed_strings import TYPES_OF_STRINGS
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import check_target, recover
from parquet_variant.io.temporaries import linked_file, open_temporary, temporary_beside
from parquet_variant.kernels.shredding.schema_table import SchemaTable, ShreddedRows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import table_of
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.support.options import FileMode, Layout, with_keywords
from parquet_variant.support.records import Record, cached_property

# Rows are written directly to pages if a row group has room for at least this many such batches.
_MIN_BATCHES = 4
Columns: TypeAlias = Mapping[str, "pa.Array | pa.ChunkedArray | VariantArray"] | pa.RecordBatch | pa.Table


class FileInfo(Record):
    """A written Parquet file.

    Parameters
    ----------
    path
        The path of the file.
    rows, bytes, row_groups
        Counts of the file.
    variants
        The schema paths of the Variant columns.
    may_hold_nan
        Whether a float column may contain a NaN, which statistics do not include.
    footer
        The Thrift bytes of the footer.
    null_rows
        Number of rows where a Variant column is null, by schema path.
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
    def facts(self) -> FileFacts:
        """Facts of the file that its footer states."""
        return FileFacts.of(self.footer, self.path)

    @cached_property
    def statistics(self) -> Mapping[tuple[str, ...], LeafStatistics]:
        """Statistics of each leaf column in the whole file, by schema path."""
        statistics = {leaf.path: self.facts.statistics(leaf) for leaf in self.facts.schema.leaves()}
        # The file has no statistics of metadata columns, but the writer counts null rows.
        for place, nulls in self.null_rows.items():
            statistics[*place, "metadata"] = LeafStatistics(self.rows, nulls)
        return statistics


class VariantWriter:
    """Write a Parquet file with Variant columns; the file appears at `path` when `close` succeeds.

    Parameters
    ----------
    path
        The file to create, with its directory.
    variants
        Dotted schema paths of struct columns that are Variants; not needed for a `VariantArray`, or for an Arrow field
        with the extension name ``arrow.parquet.variant``.
    compression, compression_level
        Codec of all columns (default: ``"zstd"``) and its level; None chooses a level of zstd per column.
    effort
        ``"fast"`` (zstd level 1), ``"balanced"`` (level 1 or 2 per column) or ``"small"`` (level 1 or 9): points of the
        frontier of speed and size (docs/performance.md).
    row_group_bytes
        Maximum Arrow bytes of a row group.
    annotation
        Whether to annotate Variant columns as VARIANT; ``"shredded"`` annotates all of them if one is shredded, else
        none. Layouts of the drafts are never annotated.
    value_first
        Write unshredded columns as ``value``, then ``metadata``, the order in Delta's protocol.
    filesystem
        A pyarrow filesystem (default: the local one, or the one of the URI).
    sort_by
        Variant paths, such as ``"$.ts"`` or ``"$.ts:timestamp"``, by which the rows of the file are sorted. All rows
        are held in memory. By default rows are not sorted.
    bloom_filters
        Variant paths, such as ``"$.id"``, whose shredded columns get a Bloom filter.
    writer
        ``"native"`` writes pages with the kernels of this package, ``"pyarrow"`` with pyarrow, which also writes files
        with columns of types that only it supports (null, duration, float16, fixed-size lists, …).
    threads
        Number of threads that encode and compress columns with ``writer="native"``.
    encodings
        Encodings that `known_encodings` returned for such rows, to skip the trials.
    mode
        If the file exists: ``"error"`` or ``"overwrite"``.

    Raises
    ------
    VariantFileError
        If the file exists and may not be replaced, cannot be created, or an option is invalid.

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

    @with_keywords(conform.FileKeywords, conform.WriterOptions)
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
        **options: Unpack[conform.FileKeywords],
    ) -> None:
        self._options = conform.WriterOptions.of(options)
        check_count("threads", threads, 1)
        check_mapping("encodings", {} if encodings is None else encodings)
        self.filesystem, self.path = filesystem_of(path, filesystem)
        self.info: FileInfo | None = None
        self.rows = 0
        self._variants, self._threads = frozenset(strings_of("variants", variants)), threads
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
        self._target = linked_file(self.filesystem, self.path)
        self._temporary = temporary_beside(self._target)

    def write_batch(self, columns: Columns) -> None:
        """Add rows, as columns by name (`VariantArray` or Arrow); every batch must have the same columns and types.

        Raises
        ------
        SchemaError
            If a column's type differs from the first batch's.
        VariantFileError
            If columns differ in length, or there are no columns.
        """
        table, annotated = conform.conform_table(columns, self._variants, value_first=self._value_first)
        if self._schema is None:
            with write_errors(self.path):
                self._open(table, annotated)
        elif not table.schema.equals(self._schema):
            table = conform.same_type(table, self._schema, self.path)
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
                self._write_table(table)

    def write_rows(self, name: str, rows: ShreddedRows) -> None:
        """Add rows of one Variant column made from nodes: as their storage, or directly to pages.

        Raises
        ------
        SchemaError, VariantFileError
            As `write_batch`.
        """
        size = rows.nbytes
        limit = min(self._options.row_group_bytes // _MIN_BATCHES, MOST_SLICE_BYTES)
        # Trials, sorting and splitting need Arrow columns.
        is_same_schema = self._schema is not None and self._schema.names == [name] and rows.table is self._table
        is_direct = is_same_schema and not self._options.sort_by and size <= limit and len(rows)
        if not is_direct or not isinstance(self._file, PageFileWriter):
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
            self._stream = open_temporary(self.filesystem, self._temporary, self._target)
        except (OSError, pa.ArrowException) as error:
            raise VariantFileError(f"cannot create {self.path}: {error}", reason="cannot-create") from None
        options, self._schema, self._annotated = self._options, table.schema, annotated
        self._floats = any(may_have_nan(field.type) for field in table.schema)
        is_native = options.writer == "native" and all(is_written(field.type) for field in table.schema)
        encodings = choose_encodings(
            table, options.compression, options.compression_level, self._encodings, options.effort, self._threads
        )
        if is_native:
            encodings["threads"] = self._threads
        annotation = options.annotation
        if annotation == "shredded":
            leaves = (leaf for column in table.schema for leaf in leaf_paths(column, (column.name,)))
            annotation = any("typed_value" in leaf for leaf in leaves)
        writer_class = PageFileWriter if is_native else PyarrowFileWriter
        self._file = writer_class(
            self._stream,
            table.schema,
            annotated if annotation else (),
            # The bounds of dictionaries of keys are long and useless.
            no_statistics=[".".join((*column, "metadata")) for column in annotated],
            bloom_filters=conform.bloom_leaves(table.schema, annotated, options.bloom_filters),
            compression=options.compression,
            **encodings,
        )

    def _write_table(self, table: pa.Table) -> None:
        """Write rows, and end row groups that are full."""
        assert self._file is not None
        limit = self._options.row_group_bytes
        # Rows are split by their mean size; a row larger than a group becomes a group.
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

    def close(self) -> FileInfo:
        """Write pending rows and the footer, and rename the file to its path.

        Raises
        ------
        VariantFileError
            If no batch was written, so that the schema is unknown.
        """
        if self._done:
            if self.info is None:
                raise VariantFileError("the writer was aborted: make a new one", reason="aborted", file=self.path)
            return self.info
        if self._schema is None or self._file is None or self._stream is None:
            self.abort()
            problem = "no batch was written, so the schema is unknown: write at least one batch, which may be empty"
            raise VariantFileError(problem, reason="no-batch")
        try:
            with write_errors(self.path):
                if self._unsorted:
                    table, self._unsorted = pa.concat_tables(self._unsorted), []
                    self._write_table(conform.sorted_rows(table.combine_chunks(), self._options.sort_by))
                self._end_group()
                key_values = {}
                if not all(is_recovered(field.type) for field in self._schema):
                    serialized = pa.schema(map(stored_field, self._schema)).serialize().to_pybytes()
                    key_values["ARROW:schema"] = base64.b64encode(serialized).decode()
                if not self._nan:
                    key_values[NO_NAN_KEY.decode()] = "true"
                footer, size = self._file.close(key_values)
                self._stream.close()
                self.filesystem.move(self._temporary, self._target)
        except BaseException:
            self.abort()
            raise
        self._done = True
        annotated = self._annotated or (column.path for column in find_variants(parse_schema(footer, self.path)))
        self.info = FileInfo(
            path=self.path, rows=self.rows, bytes=size, row_groups=self._groups, variants=tuple(annotated),
            may_hold_nan=self._nan, footer=footer, null_rows=self._nulls,
        )  # fmt: skip
        return self.info

    def abort(self) -> None:
        """Close the writer and remove the temporary file."""
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

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


SchemaLike = ShreddingSchema | str | None


@with_keywords(conform.WriterKeywords, VariantWriter)
def write(
    path: str | os.PathLike[str],
    data: object,
    *,
    column: str = "v",
    schema: SchemaLike | Mapping[str, SchemaLike] = None,
    layout: Layout = "final",
    mode: FileMode = "error",
    **options: Unpack[conform.WriterKeywords],
) -> FileInfo:
    """Write a Parquet file with Variant columns; see `pv.write`."""
    check_choice("layout", layout, get_args(Layout))
    columns = {column: data} if isinstance(data, VariantArray) else data
    recover([path], options.get("filesystem"))
    with VariantWriter(path, mode=mode, **options) as file:
        if schema is not None or layout != "final":
            columns = with_layout(columns, schema, layout, frozenset(options.get("variants", ())))
        file.write_batch(columns)
    assert file.info is not None
    return file.info


def with_layout(
    data: object,
    schema: SchemaLike | Mapping[str, SchemaLike],
    layout: Layout = "final",
    variants: Collection[str] = frozenset(),
) -> pa.Table:
    """Return the columns with top-level Variants shredded by the schema."""

    def shredded(storage: pa.StructArray, place: Place) -> pa.StructArray:
        if len(place) > 1:
            return storage
        column_schema = schema.get(place[0]) if isinstance(schema, Mapping) else schema
        return shredded_as(VariantArray(storage), column_schema, layout).storage

    return map_variants(table_of(data), shredded, {(name,) for name in variants})


def shredded_as(array: VariantArray, schema: SchemaLike, layout: Layout) -> VariantArray:
    """Return the array in a layout and schema; with None, it keeps its schema.

    Raises `SchemaError` if the DDL is invalid.
    """
    if layout == "unshredded":
        return array.to_unshredded()
    if schema is None:
        if array.schema is None:
            return array
        schema = array.schema.limited_to()
    if schema == "infer":
        schema = infer_shredding_schema(array)
    return shred_variant(array, schema, layout=layout)


# Numbers of columns, those that save most, that are tried if all columns of a result make the file larger.
_FEWER_COLUMNS = (40, 20, 5)


def compared_with_unshredded(
    result: InferenceResult, files: Sequence[VariantArray], options: Mapping[str, Any], threads: int = 1
) -> InferenceResult:
    """Return the result, or with fewer columns or none if the files would be larger than unshredded.

    Typed strings remain columns, because an append types strings as the columns of the table are typed.

    `files`: the rows of each file.
    `options`: the options of `pv.write` for the file.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"name": "%d", "url": "https://example.com/%d"}' % (n, n) for n in range(40)])
    >>> compared_with_unshredded(infer(rows), [rows], {}).schema.to_ddl()
    'variant'
    """
    unshredded = ShreddingSchema.variant()
    if result.schema == unshredded:
        return result
    with tempfile.TemporaryDirectory() as directory:

        def file_bytes(schema: ShreddingSchema) -> int:
            name = f"{directory}/{schema.kind}-{hash(schema)}"
            return sum(
                write(f"{name}-{number}.parquet", rows, schema=schema, **options).bytes
                for number, rows in enumerate(files)
            )

        shredded_bytes, unshredded_bytes = in_order(file_bytes, (result.schema, unshredded), threads)
        if shredded_bytes <= unshredded_bytes:
            return result
        strings = [path for path, leaf in result.schema.leaves() if leaf.to_ddl() in TYPES_OF_STRINGS]
        saved = {decision.path: decision.bytes_saved for decision in result.decisions} | dict.fromkeys(strings, inf)
        leaves = sorted(result.schema.leaves(), key=lambda leaf: (-saved.get(leaf[0], 0), str(leaf[0])))
        smallest = schema_of_leaves(dict(leaves[: len(strings)])) if strings else unshredded
        counts = (count for count in _FEWER_COLUMNS if len(strings) < count < len(leaves))
        schemas = (schema_of_leaves(dict(leaves[:count])) for count in counts)
        schema = next((schema for schema in schemas if file_bytes(schema) <= unshredded_bytes), smallest)
    share = shredded_bytes / unshredded_bytes - 1
    return result.narrowed(schema, f"all columns of the schema would make the file {share:.0%} larger than without any")
