"""`VariantWriter`: a Parquet file with Variant columns, batch by batch, whole or not at all.

Owns row groups by bytes, the encodings, the annotation, the temporary name and the rename. Leaves the shape of a
Variant's storage to `conform`, shredding to the layers below, and the one-call form to `write`.
"""

from __future__ import annotations

import base64
import posixpath
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.footer import parse_schema, patch_tail
from parquet_variant.parquet.format.statistics import NO_NAN_KEY, LeafStatistics, leaf_statistics, merged
from parquet_variant.parquet.writing.encodings import DICTIONARY_BYTES, choose_encodings
from parquet_variant.parquet.writing.incoming import incoming_columns
from parquet_variant.parquet.writing.options import DEFAULT_ROW_GROUP_BYTES, WriterOptions
from parquet_variant.parquet.writing.written import has_nan, is_recovered, leaf_paths, null_rows, schema_for_others

__all__ = ["Columns", "FileInfo", "VariantWriter"]

# Pages are compressed one by one: larger ones are smaller in all.
_PAGE_BYTES = 16 << 20
# Values of a column that are encoded at a time: eight times pyarrow's default, for fewer calls.
_BATCH_VALUES = 8_192
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
    statistics
        For each leaf column, by schema path, what is known of its values in the whole file.
    """

    path: str
    rows: int
    bytes: int
    row_groups: int
    variants: tuple[tuple[str, ...], ...]
    statistics: Mapping[tuple[str, ...], LeafStatistics] = field(repr=False, default_factory=dict)


class _Sink:
    """A file that passes bytes on until told to hold them back, so that the footer can be changed on its way out."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.written, self.held = stream, 0, None
        self.closed = False

    held: list[bytes] | None

    def write(self, data: Any) -> int:
        size = len(data)
        if self.held is None:
            self.stream.write(data)
        else:
            self.held.append(bytes(data))
        self.written += size
        return size

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


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
        Put the VARIANT annotation on the Variant columns. The older drafts never get one.
    filesystem
        A pyarrow filesystem; by default the local one, or what the URI names.
    sort_by
        Variant paths, such as ``"$.ts"`` or ``"$.ts:timestamp"``: the file's rows are sorted by them, and held in
        memory for that. Nothing is ever sorted unasked.
    bloom_filters
        Variant paths, such as ``"$.id"``, whose shredded columns get a bloom filter.
    overwrite
        Replace a file that is already there.

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

    def __init__(
        self,
        path: Any,
        *,
        variants: Collection[str] = (),
        compression: str = "zstd",
        compression_level: int | None = None,
        row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES,
        annotation: bool = True,
        filesystem: fs.FileSystem | None = None,
        sort_by: Sequence[str] | str = (),
        bloom_filters: Collection[str] | str = (),
        overwrite: bool = False,
    ) -> None:
        self._options = WriterOptions(
            compression, compression_level, row_group_bytes, annotation, sort_by, bloom_filters
        )
        self.filesystem, self.path = filesystem_of(path, filesystem)
        self.info: FileInfo | None = None
        self.rows = 0
        self._variants = frozenset(variants)
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._sink: _Sink | None = None
        self._schema: pa.Schema | None = None
        self._annotated: tuple[tuple[str, ...], ...] = ()
        self._collected: list[pq.FileMetaData] = []
        self._nan = False
        self._nulls: dict[tuple[str, ...], int] = {}
        self._done = False
        if not overwrite and self.filesystem.get_file_info(self.path).type != fs.FileType.NotFound:
            raise VariantFileError(
                f"{self.path} exists already: choose another name, or allow it to be replaced (overwrite)",
                reason="exists",
                file=self.path,
            )
        folder, name = posixpath.split(self.path)
        self._temporary = posixpath.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")

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
        table, annotated = incoming_columns(columns, self._variants)
        if self._schema is None:
            self._open(table, annotated)
        elif not table.schema.equals(self._schema):
            table = _same_type(table, self._schema, self.path)
        self._nan = self._nan or any(has_nan(chunk) for column in table.columns for chunk in column.chunks)
        for place in self._annotated:
            nulls = null_rows(table, place)
            if nulls is not None:
                self._nulls[place] = self._nulls.get(place, 0) + nulls
        self._pending.append(table)
        self._pending_bytes += table.nbytes
        if self._pending_bytes >= self._options.row_group_bytes and not self._options.sort_by:
            self._flush()

    def _open(self, table: pa.Table, annotated: tuple[tuple[str, ...], ...]) -> None:
        folder = posixpath.dirname(self.path)
        try:
            if folder:
                self.filesystem.create_dir(folder, recursive=True)
            self._sink = _Sink(self.filesystem.open_output_stream(self._temporary))
        except (OSError, pa.ArrowException) as error:
            raise VariantFileError(f"cannot create {self.path}: {error}", reason="cannot-create") from None
        self._schema, self._annotated = table.schema, annotated
        self._writer = pq.ParquetWriter(
            self._sink,
            table.schema,
            version="2.6",
            data_page_size=_PAGE_BYTES,
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            # The bounds of dictionaries of names are long and say nothing.
            write_statistics=[
                ".".join(leaf)
                for field in table.schema
                for leaf in leaf_paths(field, (field.name,))
                if leaf not in {(*column, "metadata") for column in annotated}
            ],
            store_decimal_as_integer=True,
            write_page_index=True,
            write_batch_size=_BATCH_VALUES,
            store_schema=False,
            metadata_collector=self._collected,
            bloom_filter_options=self._bloom_options(table),
            compression=self._options.compression,
            **choose_encodings(table, self._options.compression, self._options.compression_level),
        )

    def _bloom_options(self, table: pa.Table) -> dict[str, Any] | None:
        if not self._options.bloom_filters:
            return None
        from parquet_variant.parquet.format.bloom import bloom_leaves

        return dict.fromkeys(bloom_leaves(table.schema, self._annotated, self._options.bloom_filters), True)

    def _flush(self, *, last: bool = False) -> None:
        """Write what is pending as row groups; what does not fill one stays, unless it is the last."""
        table = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        if self._options.sort_by:
            from parquet_variant.parquet.writing.sort import sorted_rows

            table = sorted_rows(table.combine_chunks(), self._annotated, self._options.sort_by)
        # Rows a group by their mean size; one row that is larger than a group makes a group of its own.
        rows = max(1, int(len(table) * self._options.row_group_bytes / max(1, table.nbytes)))
        start = 0
        while start < len(table) and (last or len(table) - start >= rows or start == 0):
            self._write_group(table.slice(start, rows))
            start += rows
        if start < len(table):
            self._pending = [table.slice(start)]
            self._pending_bytes = self._pending[0].nbytes

    def _write_group(self, table: pa.Table) -> None:
        # pyarrow gives up a dictionary when the next chunk has another one.
        assert self._writer is not None
        self._writer.write_table(table.unify_dictionaries(), row_group_size=len(table))
        self.rows += len(table)

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
        if self._schema is None or self._writer is None or self._sink is None:
            self.abort()
            raise VariantFileError(
                "nothing was written: give the writer at least one batch, if only an empty one", reason="no-batch"
            )
        try:
            if self._pending:
                self._flush(last=True)
            size = self._finish(self._writer, self._sink, self._schema)
            self.filesystem.move(self._temporary, self.path)
        except BaseException:
            self.abort()
            raise
        self._done = True
        self.info = self._describe(size)
        return self.info

    def _finish(self, writer: pq.ParquetWriter, sink: _Sink, schema: pa.Schema) -> int:
        facts = {}
        if not all(is_recovered(each.type) for each in schema):
            facts["ARROW:schema"] = base64.b64encode(schema_for_others(schema).serialize().to_pybytes()).decode()
        if not self._nan:
            facts[NO_NAN_KEY.decode()] = "true"
        writer.add_key_value_metadata(facts)
        sink.held = []
        writer.close()
        tail = b"".join(sink.held)
        patched = patch_tail(tail, self._annotated, self.path) if self._options.annotation and self._annotated else tail
        sink.stream.write(patched)
        sink.stream.close()
        return sink.written - len(tail) + len(patched)

    def _describe(self, size: int) -> FileInfo:
        metadata = self._collected[0]
        buffer = pa.BufferOutputStream()
        metadata.write_metadata_file(buffer)
        raw = buffer.getvalue().to_pybytes()
        root = parse_schema(raw[4:-8], self.path)
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        statistics = {
            leaf.path: merged(leaf_statistics(group.column(leaf.leaf), leaf) for group in groups)
            for leaf in root.leaves()
        }
        # The file has no statistics of its dictionaries; which rows are null is known all the same.
        for place, nulls in self._nulls.items():
            statistics[*place, "metadata"] = LeafStatistics(metadata.num_rows, nulls)
        return FileInfo(
            path=self.path,
            rows=metadata.num_rows,
            bytes=size,
            row_groups=len(groups),
            variants=self._annotated or tuple(column.path for column in find_variants(root)),
            statistics=statistics,
        )

    def abort(self) -> None:
        """Stop, and leave nothing behind."""
        if self._done:
            return
        self._done = True
        if self._sink is not None:
            self._sink.held = []  # Whatever pyarrow still wants to write goes nowhere.
            if self._writer is not None:
                self._writer.close()
            if not self._sink.stream.closed:
                self._sink.stream.close()
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
    from parquet_variant.errors import SchemaError

    if table.schema.names != schema.names:
        raise SchemaError(
            f"batches must have the same columns: {', '.join(schema.names)} at first, now "
            f"{', '.join(table.schema.names)}",
            reason="batches-differ",
            file=path,
        )
    columns = []
    for name, wanted in zip(schema.names, schema, strict=True):
        column = table.column(name)
        if column.type != wanted.type:
            try:
                column = column.cast(wanted.type)
            except pa.ArrowException:
                raise SchemaError(
                    f"column {name} is {column.type}, but {wanted.type} in the first batch: one file has one schema",
                    reason="batches-differ",
                    file=path,
                ) from None
        columns.append(column)
    return pa.table(columns, schema=schema)
