"""Finding Parquet files by path, directory, list or glob on any pyarrow filesystem, and opening them.

Owns the resolution of paths, the errors for missing files, and reading column chunks of remote files in few requests.
Leaves the content of a file to `footer` and `columns`, and other input formats to `ingestion`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from parquet_variant.arrays.parts import empty_table, refuse_bad_indices
from parquet_variant.errors import KernelsError, SchemaError, VariantError, VariantFileError, first_line
from parquet_variant.files.parquet.format import footer_cache
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.facts import FileFacts, chunk_start_of, footer_metadata
from parquet_variant.files.parquet.format.footer import (
    FOOTER_GUESS,
    SchemaNode,
    check_chunks,
    footer_bytes,
    parse_schema,
)
from parquet_variant.files.parquet.format.footer_cache import Fingerprint, Handle, Reader, state_of
from parquet_variant.io.commit_journal import committed_directory, fixed_part, matching_entries, visible_entries
from parquet_variant.io.directories import (
    A_TABLE,
    PARQUET_SUFFIXES,
    Partition,
    data_file_names,
    declared_partitions,
    partition_texts,
    table_directories,
    typed_partitions,
)
from parquet_variant.io.filesystems import filesystem_of, info_of, refuse_disk_error
from parquet_variant.support.records import Record
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import chunks_in_form

Source = str | os.PathLike[str] | Iterable["str | os.PathLike[str]"]
# Bytes that one thread decodes in a few milliseconds.
_SMALL_BYTES = 128 << 10
# Maximum number of listings of a directory that is overwritten all the time.
_LISTINGS = 20
# Readers of a file without a stream that are kept.
_IDLE_READERS = 2
# Chunks with at most this distance are read in one request, as in pyarrow.
_HOLE = 8 << 10
# Fixed-length values longer than this are checked.
_WIDE = 1 << 20
# Bytes that pyarrow reads behind chunks of parquet-mr, which counts headers incorrectly before version 1.2.9.
_MISCOUNTING, _PADDING = "parquet-mr version 1.", 100
Result = TypeVar("Result")


class ParquetSource(Record):
    """A Parquet file: its path, filesystem and size."""

    path: str
    filesystem: fs.FileSystem
    size: int
    # Partition columns from directory names (``day=2026-01-31``), with types common to all files that were located
    # together. They take precedence over columns of the file with the same name, as in Spark.
    partition: Partition = ()
    # Where `open_file` keeps the content of a small remote file for the next reader; by default, it does not.
    content: list[pa.Buffer] | None = field(default=None, repr=False, compare=False)

    @property
    def is_served_by_python(self) -> bool:
        """Whether reads call Python code: fsspec, obstore, or a handler of the user."""
        system = self.filesystem
        while isinstance(system, fs.SubTreeFileSystem):
            system = system.base_fs
        return isinstance(system, fs.PyFileSystem)


# A file, and its path relative to the directory or the fixed part of the glob.
_RelativeFile = tuple[ParquetSource, str]


class OpenFile(Record, frozen=False):
    """An open Parquet file: its stream, what its footer states, and pyarrow's reader."""

    source: ParquetSource  # Path, filesystem and size.
    stream: pa.NativeFile  # The bytes of the file.
    facts: FileFacts = field(repr=False)  # Shared with others that have the file open, if it is cached.
    _reader: Reader | None = field(default=None, repr=False)
    _state: Fingerprint | None = field(default=None, repr=False)
    metadata: pq.FileMetaData = field(init=False)  # Row groups and statistics.
    schema: SchemaNode = field(init=False)  # The schema tree of the footer.

    def __post_init__(self) -> None:
        self.metadata, self.schema = self.facts.metadata, self.facts.schema

    @property
    def name(self) -> str:
        """The file's path."""
        return self.source.path

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, those of the partition last."""
        return list(dict.fromkeys([*(node.name for node in self.schema.children), *dict(self.source.partition)]))

    @property
    def reader(self) -> Reader:
        """Pyarrow's reader of this open file."""
        if self._reader is None:
            self._reader = Reader(self.stream, self.metadata, self.facts.dictionaries, pre_buffer=True)
        return self._reader

    def for_one_thread(self) -> OpenFile:
        """Return the open file with a separate reader, because pyarrow's reader is not thread-safe."""
        return replace(self, _reader=None)

    def reopened(self) -> OpenFile:
        """Return the file with another stream, without reading the footer again."""
        return replace(self, stream=_open_stream(self.source), _reader=None)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the whole file, as `read_leaves` returns its columns."""
        return self.in_file_types(empty_table(self.reader.schema_arrow), range(len(self.schema.leaves()))).schema

    def in_file_types(self, table: pa.Table, leaves: Sequence[int]) -> pa.Table:
        """Return a table that pyarrow read from some leaf columns (by number) with the types that the file defines."""
        table = footer_cache.without_views(table, self.metadata)
        every = self.schema.leaves()
        decimals = [footer_cache.wide_decimal(every[leaf]) for leaf in sorted(set(leaves))]
        remaining = iter(decimals)
        for number, declared in enumerate(table.schema if any(decimals) else ()):
            kind = footer_cache.with_leaf_types(declared.type, remaining)
            if kind != declared.type:
                column = chunks_in_form(table.column(number), kind, partial(footer_cache.as_decimals, self.name))
                table = table.set_column(number, declared.with_type(kind), column)
        return table

    def read_leaves(self, row_groups: list[int], leaves: list[int]) -> pa.Table:
        """Read some leaf columns (by number) of some row groups.

        Raises `VariantFileError` if the data is damaged, or a row group exceeds the size of Arrow's nested columns.
        """
        table = self.in_file_types(self._read(row_groups, leaves), leaves)
        rows = self.facts.rows(row_groups)
        if any(len(column) != rows for column in table.columns):
            raise self.damaged(ValueError("the number of values of a column differs from the rows of its row groups"))
        if not self.facts.dictionaries.isdisjoint(leaves):
            try:
                for chunk in (chunk for column in table.columns for chunk in column.chunks):
                    refuse_bad_indices(chunk)
            except SchemaError as error:
                raise self.damaged(error) from None
        return table

    def _read(self, row_groups: list[int], leaves: list[int]) -> pa.Table:
        facts, dictionaries = self.facts, self.facts.dictionaries
        try:
            # Each row group has a dictionary, and pyarrow cannot concatenate nested columns with several dictionaries.
            if len(row_groups) > 1 and not dictionaries.isdisjoint(leaves):
                return pa.concat_tables([self.read_leaves([group], leaves) for group in row_groups])
            is_small = pa.cpu_count() == 1 or facts.size(leaves, row_groups) <= _SMALL_BYTES
            if self._reader is None and is_small and isinstance(self.source.filesystem, fs.LocalFileSystem):
                # Threads would save less than a new reader costs. A reader that fails is not used again.
                try:
                    pooled = facts.idle_readers.pop()
                    pooled.handle.stream = self.stream
                except IndexError:
                    pooled = Reader(Handle(self.stream), self.metadata, dictionaries)
                # Without threads: a thread of pyarrow that holds Python bytes at exit would crash the process.
                table = pooled.reader.read_row_groups(row_groups, column_indices=leaves, use_threads=False)
                pooled.handle.stream = None
                if len(facts.idle_readers) < _IDLE_READERS:
                    facts.idle_readers.append(pooled)
                return table
            reader = self.reader
            if self.source.is_served_by_python:
                reader = Reader(self._fetched(row_groups, leaves), self.metadata, dictionaries)
            # In a wide file, the walk over all types costs as much as reading a column.
            may_use_threads = facts.plan("may use threads", lambda: reader.may_use_threads)
            arrow_reader: Any = reader.reader
            return arrow_reader.read_row_groups(row_groups, column_indices=leaves, use_threads=may_use_threads)
        except pa.ArrowNotImplementedError:
            return self.read_plain(row_groups, leaves)
        except (pa.ArrowInvalid, pa.ArrowMemoryError, OSError) as error:
            # pyarrow reads dictionaries only from some encodings.
            if not self.facts.dictionaries.isdisjoint(leaves):
                return self.read_plain(row_groups, leaves)
            raise self.damaged(error) from None

    def _fetched(self, row_groups: Iterable[int], leaves: Iterable[int]) -> pa.BufferReader:
        """Return a buffer of the size of the file with some column chunks; other memory is not touched."""
        size = self.stream.size()
        buffer = pa.allocate_buffer(size)
        file_bytes = np.frombuffer(buffer, np.uint8)
        padding = _PADDING if self.facts.writer.startswith(_MISCOUNTING) else 0
        ranges: list[tuple[int, int]] = []
        chunks = [self.facts.chunk(leaf, group) for group in row_groups for leaf in leaves]
        places = ((min(max(chunk_start_of(chunk), 0), size), chunk.total_compressed_size) for chunk in chunks)
        for start, length in sorted(places):
            stop = min(start + max(length, 0) + padding, size)
            if ranges and start - ranges[-1][1] <= _HOLE:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], stop)
            else:
                ranges.append((start, stop))
        for start, stop in ranges:
            data = np.frombuffer(self.stream.read_at(stop - start, start), np.uint8)
            file_bytes[start : start + len(data)] = data
        return pa.BufferReader(buffer)

    def read_plain(self, row_groups: list[int], leaves: list[int]) -> pa.Table:
        """Read without dictionaries and in small batches, for encodings and partly used dictionaries that need it."""
        try:
            with self.source.filesystem.open_input_file(self.name) as stream:
                plain = Reader(stream, self.metadata)
                may_use_threads = plain.may_use_threads and not self.source.is_served_by_python
                batches = list(
                    cast(Any, plain.reader).iter_batches(
                        1 << 14, row_groups, column_indices=leaves, use_threads=may_use_threads
                    )
                )
                return pa.Table.from_batches(batches, None if batches else self.reader.schema_arrow)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowMemoryError, OSError) as error:
            raise self.damaged(error) from None

    def damaged(self, error: Exception) -> VariantFileError:
        """Return the error for data that pyarrow cannot read; an error of the disk is raised."""
        refuse_disk_error(self.name, error)
        line = first_line(error)
        problem = f"cannot read the data of the file: {line}; write the file again, with smaller row groups"
        return VariantFileError(problem, reason="bad-data", file=self.name)

    @contextmanager
    def place_errors(self, groups: Iterable[int]) -> Iterator[None]:
        """Add the file to errors, and convert rows relative to these row groups to rows of the file."""
        try:
            yield
        except VariantError as error:
            if error.row is not None and error.file is None:
                error.row += self.facts.rows(range(min(groups, default=0)))
            raise error.at(file=self.name) from None

    def refuse_changed(self) -> None:
        """Raise `VariantFileError` (``files-changed``) if a local file was modified; a replaced one is readable."""
        before = self._state
        now = None if before is None else state_of(self.name)
        # The change time is not compared: it also changes with links and permissions.
        if before is not None and now is not None and now[:2] == before[:2] and now[2:4] != before[2:4]:
            problem = f"{self.name} was modified while it was read: read it again"
            raise VariantFileError(problem, reason="files-changed", file=self.name)

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close(force=True)
        self.stream.close()

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def locate(source: Source, filesystem: fs.FileSystem | None = None) -> list[ParquetSource]:
    """Return the Parquet files of a path, directory, glob or list, in order of their paths.

    `source`: a file; a directory, searched at any depth for ``*.parquet`` (names that start with ``_`` or ``.`` are
      skipped); a glob; a URI; or a list of these.
    `filesystem`: any pyarrow filesystem (default: the local one, or the one of the URI).
    Raises `VariantFileError` if a path does not exist, a directory has no Parquet files, or a glob matches no file.
    """
    files = list_files(source, filesystem).values()
    strings = [partition_texts(relative.split("/")[:-1]) for _, relative in files]
    if not any(strings):
        return [file for file, _ in files]
    declared: dict[str, Mapping[str, pa.DataType]] = {}
    types = []
    for file, relative in files:
        # The directory above the partition directories, which may be above the one that was listed.
        folders = relative.split("/")[:-1]
        first = next((number for number, folder in enumerate(folders) if "=" in folder), len(folders))
        above = file.path[: len(file.path) - len(relative)].rstrip("/")
        root = committed_directory("/".join([above, *folders[:first]]))
        if root not in declared:
            declared[root] = declared_partitions(file.filesystem, root)[1]
        types.append(declared[root])
    partitions = typed_partitions(strings, types)
    return [replace(file, partition=partition) for (file, _), partition in zip(files, partitions, strict=True)]


def locate_any(source: Source, nothing: Sequence[str] = ("no-files", "no-such-file")) -> list[ParquetSource]:
    """Return the Parquet files of a path; none if `locate` raises an error with one of these reasons."""
    try:
        return locate(source)
    except VariantFileError as error:
        if error.reason not in nothing:
            raise
        return []


def data_files(source: Source, filesystem: fs.FileSystem | None = None) -> list[str]:
    """Return the paths of the Parquet files of a path, directory, glob or list; see `Table.data_files`."""
    return [file.path for file in locate(source, filesystem)]


def list_files(source: Source, filesystem: fs.FileSystem | None) -> dict[str, _RelativeFile]:
    """Return the distinct files by path, with their relative paths."""
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes, os.PathLike, io.IOBase)):
        files: dict[str, _RelativeFile] = {}
        for item in source:
            files |= list_files(item, filesystem)
        if not files:
            raise VariantFileError("the list of files is empty: pass at least one Parquet file", reason="no-files")
        return files
    system, path = filesystem_of(source, filesystem)
    info = info_of(system, path)
    if info.type == fs.FileType.File:
        return {path: (ParquetSource(path, system, info.size), "")}
    if info.type == fs.FileType.Directory:
        return _in_directory(system, path, path)
    if any(character in path for character in "*?["):
        return _matching(system, path)
    name = os.fspath(source)
    is_missing = info.type == fs.FileType.NotFound
    problem = "does not exist: check the path" if is_missing else "is not a regular file: copy its content to a file"
    raise VariantFileError(f"{name} {problem}", reason="no-such-file", file=name)


def _in_directory(system: fs.FileSystem, path: str, base: str) -> dict[str, _RelativeFile]:
    """Return the files of a directory, with their paths relative to `base`."""
    start = len(path.rstrip("/")) + 1
    entries = {info.path[start:]: info for info in visible_entries(system, path)}
    if (format := table_directories(entries).get("")) is not None:
        problem = f"{path} is {A_TABLE[format]}, which lists its current files: open it with pv.open"
        raise VariantFileError(problem, reason=f"{format}-table")
    infos = (entries[name] for name in data_file_names(entries, PARQUET_SUFFIXES, path) if entries[name].is_file)
    above = len(base.rstrip("/"))
    files = {info.path: (ParquetSource(info.path, system, info.size), info.path[above:].strip("/")) for info in infos}
    if not files:
        problem = f"the directory {path} has no Parquet files (*.parquet): check the path"
        raise VariantFileError(problem, reason="no-files", file=path)
    return files


def _matching(system: fs.FileSystem, pattern: str) -> dict[str, _RelativeFile]:
    """Return the files that match a glob, or are in a matching directory."""
    base = fixed_part(pattern)
    files: dict[str, _RelativeFile] = {}
    for info in matching_entries(system, pattern):
        if info.type == fs.FileType.Directory:
            files |= _in_directory(system, info.path, base)
        elif info.type == fs.FileType.File:
            source = ParquetSource(info.path, system, info.size)
            files[info.path] = source, info.path[len(base.rstrip("/")) :].strip("/")
    if not files:
        raise VariantFileError(f"no file matches {pattern}: check the pattern", reason="no-files", file=pattern)
    return files


def open_file(source: ParquetSource) -> OpenFile:
    """Open a Parquet file; ``metadata`` columns of Variants are read as dictionaries.

    Raises `VariantFileError` if it is not a readable Parquet file.
    """
    is_local = isinstance(source.filesystem, fs.LocalFileSystem)
    state = state_of(source.path) if is_local else None
    fingerprint = footer_cache.fingerprint_if_settled(state)
    stream = _open_stream(source)
    try:
        if not is_local and source.size <= FOOTER_GUESS and not source.content:
            with stream:  # read the whole file in the request for the footer
                content = stream.read_buffer()
            if source.content is not None:
                source.content.append(content)
            stream = pa.BufferReader(content)
        facts = footer_cache.FOOTERS.get(source.path, fingerprint)
        reader = None
        if facts is None:
            footer = footer_bytes(stream, source.path)
            schema = parse_schema(footer, source.path)
            check_chunks(footer, schema, source.path)
            adapted = footer_cache.footer_for_pyarrow(footer, schema)
            # For remote files, so that pyarrow does not request the footer again.
            metadata = footer_metadata(adapted or footer) if adapted is not None or not is_local else None
            metadata_leaves = (variant.node.child("metadata") for variant in find_variants(schema))
            names = [leaf for leaf in metadata_leaves if leaf is not None and leaf.physical == "BYTE_ARRAY"]
            dictionaries = frozenset(leaf.leaf for leaf in names if leaf.leaf is not None)
            reader = Reader(stream, metadata, dictionaries, pre_buffer=True)
            facts = FileFacts(reader.metadata, footer, schema, dictionaries)
            for leaf in schema.leaves():
                width = (leaf.length or 0) if leaf.physical == "FIXED_LEN_BYTE_ARRAY" else 0
                rows = (facts.rows([group]) for group in facts.groups)  # nulls take as much memory as values
                if width > _WIDE and width * max(rows, default=0) > MAX_OFFSET:
                    problem = (
                        f"column {leaf.dotted} has values of {width:,} bytes, which exceed 2 GiB in a row group: "
                        "write the file again with smaller row groups"
                    )
                    raise VariantFileError(problem, reason="too-large", file=source.path)
            footer_cache.FOOTERS.add(source.path, fingerprint, facts, reader.metadata.serialized_size)
        return OpenFile(source, stream, facts, reader, state)
    except (VariantFileError, KernelsError):
        stream.close()
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        stream.close()
        refuse_disk_error(source.path, error)
        problem = f"pyarrow cannot read the Parquet footer, so the file is damaged: write it again ({error})"
        raise VariantFileError(problem, reason="bad-footer", file=source.path) from None


def _open_stream(source: ParquetSource) -> pa.NativeFile:
    if source.content:
        return pa.BufferReader(source.content[0])
    try:
        return source.filesystem.open_input_file(source.path)
    except (OSError, pa.ArrowException) as error:
        reason = "not-found" if isinstance(error, FileNotFoundError) else "cannot-open"
        raise VariantFileError(f"cannot open {source.path}: {error}", reason=reason, file=source.path) from None
