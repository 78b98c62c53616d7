"""The text of source files in `Chunk`s of whole lines with file and line number, in bounded memory; and samples.

Text that is not one JSON value per line is converted by `formats`. The parser checks the JSON, and `batches` decides
what happens to an invalid line. A line is in a sample if its first byte is in a chosen block of the text of the file,
so that the sample is the same for any splits and chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.ingestion.formats import layout as text_layout
from parquet_variant.ingestion.formats.csv_rows import BOM, MAX_LINE_BYTES, CsvReader
from parquet_variant.ingestion.formats.wrapped import WrappedSplitter
from parquet_variant.ingestion.sources import splits
from parquet_variant.ingestion.sources.input_files import InputFile, decompressed, detect_codec
from parquet_variant.kernels.buffer_pool import adopt, release
from parquet_variant.kernels.memory import address_of
from parquet_variant.support.records import Record, cached_property

# The unit in which positions in a text are counted.
Unit: TypeAlias = Literal["line", "element", "document", "row"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
_COUNT_BYTES = 8 << 20
_SPACE, _RECORD_SEPARATOR = 0x20, 0x1E
_IS_BLANK = np.isin(np.arange(256), list(text_layout.WHITESPACE))
# Bytes of a line that are looked at in all lines at once.
_INDENTATION = 16
# Small enough that the splitter's output stays in the processor's cache.
SPLITTER_BLOCK_BYTES = 1 << 20


class RowTexts(Record, eq=False):
    """The texts of some rows in one buffer, and how messages name the rows.

    `number`: returns the 1-based position of a row in the file, counted in `unit`.
    `valid`: which texts are not null; None if all are.
    `refused`: rows that could not be converted to JSON: row -> the original text and the error.
    """

    file: str
    unit: Unit
    data: Bytes
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    number: Callable[[int], int]
    valid: Bytes | None = None
    refused: Mapping[int, tuple[bytes, JsonError]] = field(default_factory=dict)

    def text(self, row: int) -> bytes:
        """Return the text of a row."""
        return bytes(self.data[self.starts[row] : self.stops[row]])

    def original(self, row: int, error: VariantError) -> tuple[bytes, VariantError]:
        """Return the original text of a row, and its error; offsets count from the first byte that is not a space."""
        if row in self.refused:
            return self.refused[row]
        value_bytes = self.text(row)
        if self.unit != "element":
            return value_bytes, error
        text = value_bytes.lstrip(text_layout.WHITESPACE)
        if error.offset is not None:
            error.offset -= len(value_bytes) - len(text)
        return text.rstrip(text_layout.WHITESPACE), error


class Chunk(Record, frozen=False, eq=False):
    """Whole lines of one file, in UTF-8 that is not yet checked. The last line of a file may lack its newline.

    `line_in_range`: 1-based number of the first line, counted from the start of the byte range.
    `range_start`: offset of the byte range in the file.
    `offset`: offset of ``data`` in the decompressed text of the file; it does not depend on ranges and chunks.
    `stored_bytes`: bytes of the file, as stored, that were read for it.
    `refused`: lines that stand for rows that could not be converted: index of the line in ``data`` -> the original text
      and the error.
    """

    file: InputFile
    data: bytes | Bytes = field(repr=False)
    line_in_range: int = 1
    range_start: int = 0
    offset: int = 0
    stored_bytes: int = 0
    unit: Unit = "line"
    refused: Mapping[int, tuple[bytes, JsonError]] = field(default_factory=dict, repr=False)

    @property
    def first_line(self) -> int:
        """The 1-based number of the first line in the file; for a JSON array, of the first element.

        For a byte range that begins inside the file, the first use counts the lines before the range.
        """
        return self.line_in_range + (_lines_before(self.file, self.range_start) if self.range_start else 0)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """The offset in ``data`` after the newline of each line."""
        from parquet_variant.kernels.json.scan import line_ends

        data = np.frombuffer(self.data, np.uint8)
        return adopt(*line_ends(address_of(data), len(data)))

    def texts(self) -> RowTexts:
        r"""Return the lines that are not blank. The text is not checked to be UTF-8, because the parser does that.

        A record separator at the start of a line, as in JSON text sequences (RFC 7464), becomes a space.

        >>> texts = Chunk(InputFile("a.json"), b'{"a": 1}\n\n[2]').texts()
        >>> [(texts.number(row), texts.text(row)) for row in range(2)]
        [(1, b'{"a": 1}\n'), (3, b'[2]')]
        """
        data, stops = np.frombuffer(self.data, np.uint8), self.ends
        starts = np.concatenate([np.zeros(1, np.int64), stops])[:-1]
        if len(separators := starts[data[starts] == _RECORD_SEPARATOR]):
            data = data.copy()
            data[separators] = _SPACE
        lines, candidates = np.arange(len(starts)), np.flatnonzero(_IS_BLANK[data[starts]])
        for distance in range(1, _INDENTATION):  # most lines that begin with whitespace are indented, not blank
            places = starts[candidates] + distance
            ends = places >= stops[candidates]
            candidates = candidates[ends | _IS_BLANK[data[np.where(ends, 0, places)]]]
        if blank := [
            line
            for line in candidates.tolist()
            if not bytes(data[starts[line] : stops[line]]).strip(text_layout.WHITESPACE)
        ]:
            lines = np.delete(lines, blank)
            starts, stops = starts[lines], stops[lines]
        return RowTexts(
            self.file.name, self.unit, data, starts, stops, lambda row: self.first_line + int(lines[row]),
            refused=self.refused,
        )  # fmt: skip

    def release(self) -> None:
        """Return the memory of the text to the buffer pool; nothing may use the text afterwards."""
        if isinstance(self.data, np.ndarray):
            release(self.data)


def open_chunks(
    file: InputFile,
    byte_range: tuple[int, int] | None = None,
    chunk_bytes: int = splits.CHUNK_BYTES,
    layout: text_layout.TextLayout = text_layout.DETECTED,
) -> Iterator[Chunk]:
    """Yield the text of a file as chunks of whole lines; a chunk is larger than `chunk_bytes` only if one line is.

    `byte_range`: read only the lines that begin at an offset in ``start <= offset < end``; only for splittable files.
    Raises `JsonError` for a JSON array that is truncated or followed by other text, after its elements were yielded.
    """
    with file.errors(), file.open_seekable() as stored:
        if byte_range is None:
            position, chunks = 0, _chunks_of(decompressed(stored, file.codec), file, chunk_bytes, layout)
        else:
            start, end = byte_range
            position = splits.first_line_start(stored, start, end)
            text = splits.range_text(stored, position, end)
            chunks = _line_chunks(file, text, chunk_bytes, start, position) if position < end else iter(())
        for chunk in chunks:
            before, position = position, stored.tell()
            chunk.stored_bytes = position - before
            yield chunk


def _chunks_of(stream: Any, file: InputFile, chunk_bytes: int, layout: text_layout.TextLayout) -> Iterator[Chunk]:
    """Yield the chunks of a whole text."""
    head, detected = text_layout.detect(stream, file.name, layout.format)
    size = SPLITTER_BLOCK_BYTES
    of_head = (head[start : start + size] for start in range(0, len(head), size))
    blocks = chain(of_head, iter(partial(stream.read, size), b""))
    if layout.prefix is not None:
        wrapped = WrappedSplitter([str(name) for name in layout.prefix], text_layout.is_json_sequence(head))
        yield from _split_chunks(file, blocks, chunk_bytes, wrapped, "element")
    elif detected == "csv":
        reader, number, offset = CsvReader(layout.csv, file.name), 1, 0
        try:
            for rows in reader.read(blocks):
                data, first = rows.json_lines(), number + bool(reader.options.header)
                yield Chunk(file, data, first, offset=offset, unit="row", refused=rows.refused)
                number, offset = number + len(rows), offset + len(data)
        except VariantFileError as error:
            raise error.at(file=file.name) from None
    elif detected == "ndjson":
        yield from _line_chunks(file, splits.stream_text(head, stream), chunk_bytes)
    elif detected == "array":
        yield from _split_chunks(file, blocks, chunk_bytes, text_layout.ArraySplitter(), "element")
    else:
        yield from _split_chunks(
            file, blocks, chunk_bytes, text_layout.DocumentSplitter(text_layout.is_json_sequence(head)), "document"
        )


def whole_text(split: splits.Split, layout: text_layout.TextLayout) -> bytes:
    """Return the lines of `open_chunks` of a small file, which is opened once."""
    file = split.file
    with file.errors():
        with file.open_stored() as stored:
            data = stored.read()
        split.check_file_length(len(data))
        stream = decompressed(pa.BufferReader(data), detect_codec(data))
        parts = []
        for chunk in _chunks_of(stream, file, SPLITTER_BLOCK_BYTES, layout):
            for _, error in chunk.refused.values():
                raise error
            parts.append(bytes(chunk.data))
            chunk.release()
    return b"".join(parts)


def _line_chunks(
    file: InputFile, fill: splits.Fill, chunk_bytes: int, range_start: int = 0, offset: int = 0
) -> Iterator[Chunk]:
    line = 1
    try:
        for data in splits.line_chunks(fill, chunk_bytes, MAX_LINE_BYTES):
            if not range_start and line == 1:
                offset = text_layout.start_of_text(data[: len(BOM) + 1].tobytes(), file.name)
                data = data[offset:]
            chunk = Chunk(file, data, line, range_start, offset)
            # Counted before the chunk is yielded, because the caller may release its memory.
            line += len(chunk.ends)
            offset += len(data)
            yield chunk
    except OverflowError:
        problem = f"line {line} of {file.name} is longer than {MAX_LINE_BYTES >> 20} MiB: check that the file is NDJSON"
        raise VariantFileError(problem, reason="line-too-long", file=file.name) from None


def _split_chunks(
    file: InputFile,
    blocks: Iterator[bytes],
    chunk_bytes: int,
    splitter: text_layout.ArraySplitter | text_layout.DocumentSplitter | WrappedSplitter,
    unit: Unit,
) -> Iterator[Chunk]:
    """Yield the values that a splitter finds in a text, as chunks with one value per line."""
    number, offset, size = 1, 0, 0
    pending: list[bytes] = []
    split_error: VariantError | None = None
    try:
        for block in blocks:
            pending.append(splitter.feed(block))
            size += len(pending[-1])
            if splitter.pending > MAX_LINE_BYTES:
                problem = (
                    f"{unit} {splitter.elements + 1} of {file.name} is larger than {MAX_LINE_BYTES >> 20} MiB: "
                    "split it, or name the path of its rows with root="
                )
                raise VariantFileError(problem, reason="line-too-long", file=file.name)
            if size >= chunk_bytes:
                yield Chunk(file, b"".join(pending), number, offset=offset, unit=unit)
                number, offset, size = splitter.elements + 1, offset + size, 0
                pending.clear()
        pending.append(splitter.finish())
    except JsonError as error:
        pending.append(splitter.remaining())
        split_error = error.at(file=file.name, row=splitter.elements)
    if data := b"".join(pending):
        yield Chunk(file, data, number, offset=offset, unit=unit)
    if split_error is not None:
        raise split_error


@lru_cache(maxsize=64)
def _lines_before(file: InputFile, start: int) -> int:
    """Return the number of lines of an uncompressed file that begin before a byte offset."""
    # The line that contains the byte before the offset counts as one.
    lines, remaining = 1, start - 1
    with file.errors(), file.open_stored() as stream:
        while remaining > 0 and (block := stream.read(min(remaining, _COUNT_BYTES))):
            lines += block.count(b"\n")
            remaining -= len(block)
    return lines


# Small enough for hundreds of places in the 8 MiB that are sampled of a file, large enough for a few lines per block.
BLOCK_BYTES = 32 << 10
# Bytes of text that are compressed to estimate the size of files.
_COMPRESSED_BYTES = 1 << 20


def in_sample(offsets: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    """Return for each line that begins at an offset whether a sample of the share contains it.

    The line at offset 0 is always in the sample.
    """
    mixed = (offsets // BLOCK_BYTES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def compressed_share(split: splits.Split, layout: text_layout.TextLayout) -> float:
    """Return the size of the first text of a split after compression, as a share of it; 0 if it cannot be read."""
    try:
        chunk = next(iter(open_chunks(split.file, split.byte_range, _COMPRESSED_BYTES, layout)), None)
    except (VariantError, OSError):
        return 0.0  # The pass that reads the whole split reports the error.
    if chunk is None:
        return 0.0
    text = bytes(chunk.data[:_COMPRESSED_BYTES])
    chunk.release()
    return len(pa.Codec("zstd", compression_level=1).compress(text)) / max(len(text), 1)


def sampled_text(split: splits.Split, share: float, layout: text_layout.TextLayout) -> bytes | None:
    """Return a share of the lines of a split, all ended by a newline; None if the file cannot be split."""
    if not splits.is_splittable(split.file, layout):
        return None
    start, end = split.byte_range or (0, split.size)
    blocks = np.arange(start // BLOCK_BYTES, -(-end // BLOCK_BYTES), dtype=np.int64) * BLOCK_BYTES
    parts: list[bytes] = []
    with split.file.errors(), split.file.open_seekable() as stored:
        for block in blocks[in_sample(blocks, share)].tolist():
            text = splits.range_lines(stored, max(start, block), min(end, block + BLOCK_BYTES))
            if block == 0 and start == 0:
                text = text[text_layout.start_of_text(text, split.file.name) :]
            parts.append(text if text.endswith(b"\n") or not text else text + b"\n")
    return b"".join(parts)
