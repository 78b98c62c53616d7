"""JSON sources: which files, how compressed, and their text in chunks that end at a line.

Owns the walk from what a user names (files, directories, globs, URIs) to `Chunk`s of whole lines with file and line
number, in bounded memory. Leaves the JSON itself to the parser, texts that are no JSON lines to `formats`, and what
to do with a bad line to `task`.
"""

from __future__ import annotations

import bz2
import glob
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.choices import InputFormat
from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.ingestion.formats.csv_rows import CsvRows, RowText
from parquet_variant.ingestion.formats.json_splitters import ArraySplitter, DocumentSplitter
from parquet_variant.ingestion.formats.layout import BOM, Layout, detect, start_of_text
from parquet_variant.ingestion.formats.wrapped import WrappedSplitter
from parquet_variant.ingestion.line_chunks import (
    Fill,
    first_line_start,
    line_chunks,
    range_lines,
    range_text,
    stream_text,
)
from parquet_variant.ingestion.splits import CHUNK_BYTES, MAX_LINE_BYTES, Split
from parquet_variant.io.commit_journal import everything_below, fixed_part, glob_match
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.kernels.buffer_pool import release

# What is numbered in a text.
Unit: TypeAlias = Literal["line", "element", "document", "row"]

# First bytes of a file -> pyarrow's name of the codec. The content decides, not the file's name.
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bz2"), (b"\x04\x22\x4d\x18", "lz4"))
# What pzstd and others put before the text, in a frame that readers skip; its first byte is any from 0x50 to 0x5F.
_ZSTD_SKIPPED = b"\x2a\x4d\x18"
_COUNT_BYTES = 8 << 20
_PACKED_BYTES = 256 << 10
# What the splitter makes of a block stays in the processor's cache.
ARRAY_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole lines of one file."""

    file: str  # The file as it was named.
    # UTF-8 text (not yet checked), lines ended by a newline; the last line of a file may lack it.
    data: bytes | npt.NDArray[np.uint8] = field(repr=False)
    line_in_range: int = 1  # 1-based number of the first line, counted from the start of the byte range.
    range_start: int = 0  # Where the byte range starts in the file.
    # Where ``data`` begins in the file's (decompressed) text, whatever ranges and chunks it is read in.
    offset: int = 0
    # What is numbered: ``"line"``, ``"element"`` of a JSON array or of XML, ``"document"``, or ``"row"`` of CSV.
    unit: Unit = "line"
    # Lines that stand for what is no row: the number of the line in ``data``, its own text, and why.
    refused: Mapping[int, tuple[bytes, JsonError]] = field(default_factory=dict, repr=False)

    @property
    def first_line(self) -> int:
        """The 1-based number of the first line in the file; for a JSON array, of the first element.

        A chunk of a byte range that begins inside the file counts the lines before it, on first use.
        """
        return self.line_in_range + (_lines_before(self.file, self.range_start) if self.range_start else 0)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """Where each line ends in ``data``, after its newline; found once, to cut the chunk and to number the next."""
        from parquet_variant.kernels.buffer_pool import adopt
        from parquet_variant.kernels.json.scan import line_ends
        from parquet_variant.kernels.memory import address_of

        data = np.frombuffer(self.data, np.uint8)
        return adopt(*line_ends(address_of(data), len(data)))

    def release(self) -> None:
        """Lend the text's memory to the next chunk: nothing must use it any more."""
        if isinstance(self.data, np.ndarray):
            release(self.data)


def expand_sources(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that the sources name, in order, each once.

    `sources`: files, directories (read recursively; names that begin with ``.`` or ``_`` are left out), glob patterns
      (``**`` for any depth) or URIs (``s3://bucket/key``, ``file:///…``), one or several.
    Raises `VariantFileError`: ``reason="missing"`` for a path that is not there or a pattern without a match;
    ``"no-files"`` for a directory without files, or no sources at all.

    >>> expand_sources("examples/*.ndjson")
    ['examples/usgs_earthquakes.ndjson']
    """
    return [split.file for split in whole_splits(sources)]


def whole_splits(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Split]:
    """The files of `expand_sources`, with their sizes: a look at each for itself is what many small files cost."""
    named = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not named:
        raise VariantFileError("no sources: name at least one file, directory or pattern", reason="no-files")
    sizes: dict[str, int] = {}
    for source in named:
        with file_errors(os.fspath(source)):
            sizes.update(_expanded(os.fspath(source)))
    return [Split(file, size=size) for file, size in sizes.items()]


def codec_of(file: str) -> str | None:
    """The codec of a file by its first bytes: ``"gzip"``, ``"zstd"``, ``"bz2"``, ``"lz4"`` or None."""
    filesystem, path = filesystem_of(file)
    with file_errors(file), filesystem.open_input_stream(path, compression=None) as stream:
        return _codec(stream.read(4))


@contextmanager
def open_text(file: str) -> Iterator[Any]:
    """A file's text, decompressed, as a stream of bytes. Raises `VariantFileError` as `open_chunks`."""
    codec = codec_of(file)
    filesystem, path = filesystem_of(file)
    with file_errors(file), filesystem.open_input_stream(path, compression=None) as stored:
        yield _decompressed(stored, codec)


def _decompressed(stored: Any, codec: str | None) -> Any:
    if codec is None:
        return stored
    return io.BufferedReader(_Bz2Text(stored)) if codec == "bz2" else pa.CompressedInputStream(stored, codec)


class _Bz2Text(io.RawIOBase):
    """The text of bz2 members: pyarrow fails on empty ones in the middle, and Python's own file skips junk behind."""

    def __init__(self, stored: Any) -> None:
        self._stored, self._member = stored, bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = b""
        while not text:
            packed = b""
            if self._member.eof:
                packed = self._member.unused_data or self._stored.read(_PACKED_BYTES)
                if not packed:
                    return 0
                self._member = bz2.BZ2Decompressor()
            elif self._member.needs_input and not (packed := self._stored.read(_PACKED_BYTES)):
                raise OSError("the bz2 stream is truncated")
            try:
                text = self._member.decompress(packed, len(room))
            except OSError as error:
                raise OSError(f"bz2: {error}") from None
        room[: len(text)] = text
        return len(text)


def _codec(head: bytes) -> str | None:
    if head[1:4] == _ZSTD_SKIPPED and head[0] >> 4 == 5:
        return "zstd"
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


def plan_splits(
    whole: Iterable[Split], split_bytes: int = 128 << 20, format: InputFormat | Layout = "auto"
) -> list[Split]:
    """Cut files into parts of about `split_bytes`, where the codec allows: plain files of lines, nothing else."""
    splits: list[Split] = []
    for split in whole:
        size = split_size(split)
        if size <= split_bytes or not is_seekable(split.file, format):
            splits.append(split)
            continue
        parts = -(-size // split_bytes)
        bounds = [size * part // parts for part in range(parts + 1)]
        splits.extend(Split(split.file, start, end) for start, end in itertools.pairwise(bounds))
    return splits


def split_size(split: Split) -> int:
    """Bytes of a split as stored."""
    if split.part is not None:
        return split.part.size
    if split.end is not None:
        return split.end - split.start
    if split.size is not None:
        return split.size
    filesystem, path = filesystem_of(split.file)
    with file_errors(split.file):
        return filesystem.get_file_info(path).size or 0


def open_chunks(
    source: str,
    byte_range: tuple[int, int] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    format: InputFormat | Layout = "auto",
) -> Iterator[Chunk]:
    """Read a file as chunks of whole lines.

    `source`: one file, plain or compressed (see `codec_of`).
    `byte_range`: read only the lines that begin at a byte offset in ``start <= offset < end``; plain files of lines
      only.
    `chunk_bytes`: about how large a chunk is; it is larger only where a line is.
    `format`: ``"ndjson"``: a value a line. ``"array"``: the file is one JSON array, each of its elements a row; the
      chunk holds one element a line. ``"documents"``: values over any number of lines, or several on one. ``"auto"``:
      an array if the first array in the file is all that there is in it; documents if the first line is no value, but
      the text from its beginning has one. ``"csv"``, ``"xml"``: a row is an object. A `Layout` says also how those are
      read, and where the rows are in a document.
    Raises `VariantFileError` for a file that cannot be read (``"missing"``, ``"unreadable"``), broken compression
    (``"bad-compression"``), text in UTF-16 (``"encoding"``), a line over 256 MiB (``"line-too-long"``); `JsonError` for
    a JSON array that is cut off (``"truncated"``) or followed by other text (``"trailing-text"``), after its elements
    were given.
    """
    if chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be positive, not {chunk_bytes}")
    if byte_range is not None:
        if codec := codec_of(source):
            raise VariantFileError(
                f"a byte range of a {codec} file cannot be read: read the whole file",
                reason="not-splittable",
                file=source,
            )
        filesystem, path = filesystem_of(source)
        with file_errors(source), filesystem.open_input_file(path) as file:
            start, end = byte_range
            first = first_line_start(file, start, end)
            if first < end:
                yield from _line_chunks(source, range_text(file, first, end), chunk_bytes, start, first)
        return
    with open_text(source) as stream:
        yield from _chunks_of(stream, source, chunk_bytes, Layout.of(format))


def _chunks_of(stream: Any, source: str, chunk_bytes: int, layout: Layout) -> Iterator[Chunk]:
    """The chunks of a whole text."""
    head, detected = detect(stream, source, layout.format)
    blocks = _blocks(head, stream, ARRAY_BLOCK_BYTES)
    if layout.prefix is not None:
        wrapped = WrappedSplitter([str(name) for name in layout.prefix])
        yield from _split_chunks(source, blocks, chunk_bytes, wrapped, "element")
    elif detected == "csv":
        yield from _row_chunks(source, CsvRows(layout.csv).read(blocks), "row", 1 + layout.csv.header)
    elif detected == "xml":
        from parquet_variant.ingestion.formats.xml_rows import xml_rows

        yield from _row_chunks(source, xml_rows(blocks, layout.xml), "element", 1)
    elif detected == "ndjson":
        yield from _line_chunks(source, stream_text(head, stream), chunk_bytes)
    else:
        array = detected == "array"
        splitter = ArraySplitter() if array else DocumentSplitter()
        yield from _split_chunks(source, blocks, chunk_bytes, splitter, "element" if array else "document")


def whole_text(split: Split, layout: Layout) -> bytes:
    """The lines of `open_chunks` of a file that is small: it is opened once.

    Raises `VariantFileError` or `JsonError` as by `open_chunks`, and for a row that is refused.
    """
    source = split.file
    filesystem, path = filesystem_of(source)
    with file_errors(source):
        with filesystem.open_input_stream(path, compression=None) as file:
            stored = file.read()
        check_not_cut(split, len(stored))
        stream = _decompressed(pa.BufferReader(stored), _codec(stored))
        parts = []
        for chunk in _chunks_of(stream, source, ARRAY_BLOCK_BYTES, layout):
            for _, error in chunk.refused.values():
                raise error
            parts.append(bytes(chunk.data))
            chunk.release()
    return b"".join(parts)


def check_not_cut(split: Split, size: int | None = None) -> None:
    """Raise `VariantFileError` if a file has become shorter than it was: rows may not have been read."""
    expected = split.size if split.end is None else split.end
    if expected is not None and (split_size(Split(split.file)) if size is None else size) < expected:
        raise VariantFileError(
            f"{split.file} became shorter while it was read: read it again", reason="files-changed", file=split.file
        )


def is_seekable(source: str, format: InputFormat | Layout) -> bool:
    """Whether parts of a file can be read by themselves: it is plain, and a value a line."""
    layout = Layout.of(format)
    return layout.prefix is None and codec_of(source) is None and _format_of(source, layout.format) == "ndjson"


def read_ranges(source: str, ranges: Sequence[tuple[int, int]]) -> bytes:
    """The lines that begin in any of some byte ranges of a file, each ended by a newline; see `is_seekable`.

    Raises `VariantFileError` as by `open_chunks`.
    """
    filesystem, path = filesystem_of(source)
    parts: list[bytes] = []
    with file_errors(source), filesystem.open_input_file(path) as file:
        for start, end in ranges:
            text = range_lines(file, start, end)
            if start == 0:
                text = text[start_of_text(text, source) :]
            parts.append(text if text.endswith(b"\n") or not text else text + b"\n")
    return b"".join(parts)


def _expanded(source: str) -> list[tuple[str, int]]:
    filesystem, path = filesystem_of(source)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.File:
        return [(source, info.size or 0)]
    if info.type == pafs.FileType.Directory:
        files = [each for each in _files_below(filesystem, path, source) if not _hidden(each[0][len(source) :])]
        if not files:
            raise VariantFileError(
                f"the directory {source} has no files: name one that has JSON files", reason="no-files", file=source
            )
        return files
    if glob.has_magic(path):
        matches = _glob(filesystem, path, source.removesuffix(path) if "://" in source else "")
        if not matches:
            raise VariantFileError(
                f"no file matches {source}: check the pattern (quote it, and use ** for any depth)",
                reason="missing",
                file=source,
            )
        return matches
    raise VariantFileError(f"{source} does not exist: check the path", reason="missing", file=source)


def _hidden(relative: str) -> bool:
    return any(part.startswith((".", "_")) for part in relative.strip("/").split("/"))


def _files_below(filesystem: pafs.FileSystem, path: str, source: str) -> list[tuple[str, int]]:
    """All files below a directory, spelled as the source was, and their sizes."""
    base, cut = source.rstrip("/"), len(path.rstrip("/"))
    infos = everything_below(filesystem, path)
    return sorted((base + info.path[cut:], info.size or 0) for info in infos if info.type == pafs.FileType.File)


def _glob(filesystem: pafs.FileSystem, pattern: str, scheme: str) -> list[tuple[str, int]]:
    if isinstance(filesystem, pafs.LocalFileSystem) and "**" not in pattern:
        infos = filesystem.get_file_info(glob.glob(pattern))  # noqa: PTH207
    else:  # Python's own follows links that lead back, for ever.
        base = fixed_part(pattern)
        rest = pattern.removeprefix(f"{base}/").lstrip("/").split("/")
        infos = []
        for info in everything_below(filesystem, base):
            names = info.path.removeprefix(base).lstrip("/").split("/")
            if glob_match(names, rest) and not any(name.startswith(".") for name in names):
                infos.append(info)
    files = (info for info in infos if info.is_file)
    return sorted((scheme + info.path.removeprefix("./"), info.size or 0) for info in files)


@contextmanager
def file_errors(file: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file into ours."""
    try:
        yield
    except FileNotFoundError as err:
        raise VariantFileError(f"{file} does not exist: check the path", reason="missing", file=file) from err
    except (OSError, pa.ArrowException) as err:
        text = str(err).splitlines()[0] if str(err) else type(err).__name__
        broken = any(word in text.lower() for word in ("zlib", "zstd", "bz2", "lz4", "compress", "truncated"))
        if broken:
            raise VariantFileError(
                f"{file} cannot be decompressed ({text}): it is damaged or cut off, get it again",
                reason="bad-compression",
                file=file,
            ) from err
        raise VariantFileError(f"{file} cannot be read: {text}", reason="unreadable", file=file) from err


def _format_of(file: str, format: InputFormat) -> InputFormat:
    filesystem, path = filesystem_of(file)
    with file_errors(file), filesystem.open_input_stream(path, compression=None) as stream:
        return detect(stream, file, format)[1]


def _blocks(head: bytes, stream: Any, size: int) -> Iterator[bytes]:
    yield from (head[start : start + size] for start in range(0, len(head), size))
    while block := stream.read(size):
        yield block


def _line_chunks(file: str, fill: Fill, chunk_bytes: int, range_start: int = 0, offset: int = 0) -> Iterator[Chunk]:
    line = 1
    try:
        for data in line_chunks(fill, chunk_bytes, MAX_LINE_BYTES):
            if not range_start and line == 1:
                offset = start_of_text(data[: len(BOM) + 1].tobytes(), file)
                data = data[offset:]
            chunk = Chunk(file, data, line, range_start, offset)
            line += len(chunk.ends)  # now: the memory may be someone else's afterwards
            offset += len(data)
            yield chunk
    except OverflowError:
        raise VariantFileError(
            f"line {line} of {file} is over {MAX_LINE_BYTES >> 20} MiB: is the file NDJSON?",
            reason="line-too-long",
            file=file,
        ) from None


def _split_chunks(
    file: str,
    blocks: Iterator[bytes],
    chunk_bytes: int,
    splitter: ArraySplitter | DocumentSplitter | WrappedSplitter,
    unit: Unit,
) -> Iterator[Chunk]:
    """What a splitter makes of a text, as chunks of one value a line."""
    number, offset = 1, 0
    pending: list[bytes] = []
    size = 0

    def chunk() -> Iterator[Chunk]:
        data = b"".join(pending)
        pending.clear()
        if data:
            yield Chunk(file, data, number, offset=offset, unit=unit)

    fault: VariantError | None = None
    try:
        for block in blocks:
            pending.append(splitter.feed(block))
            size += len(pending[-1])
            if splitter.pending > MAX_LINE_BYTES:
                raise VariantFileError(
                    f"{unit} {splitter.elements + 1} of {file} is over {MAX_LINE_BYTES >> 20} MiB",
                    reason="line-too-long",
                    file=file,
                )
            if size >= chunk_bytes:
                yield from chunk()
                number, offset = splitter.elements + 1, offset + size
                size = 0
        pending.append(splitter.finish())
    except JsonError as error:
        fault = error.at(file=file, row=splitter.elements)
    yield from chunk()
    if fault is not None:
        raise fault


def _row_chunks(file: str, texts: Iterator[RowText], unit: Unit, number: int) -> Iterator[Chunk]:
    """Rows that were no JSON, as chunks of one a line."""
    offset = 0
    try:
        for text in texts:
            yield Chunk(file, text.data, number, offset=offset, unit=unit, refused=text.refused)
            number, offset = number + text.data.count(b"\n"), offset + len(text.data)
    except VariantFileError as error:
        raise error.at(file=file) from None


@lru_cache(maxsize=64)
def _lines_before(file: str, start: int) -> int:
    """Number of lines of a plain file that begin before a byte offset."""
    filesystem, path = filesystem_of(file)
    lines, left = 1, start - 1  # the line that the offset falls into, or that ends just before it, counts as one
    with file_errors(file), filesystem.open_input_stream(path, compression=None) as stream:
        while left > 0 and (block := stream.read(min(left, _COUNT_BYTES))):
            lines += block.count(b"\n")
            left -= len(block)
    return lines
