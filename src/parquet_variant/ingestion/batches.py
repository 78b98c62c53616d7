"""Text to results, a chunk at a time: read, cut into lines, parsed, and made into what a pass over the input is for.

Owns reading a task's splits, small files together, cutting a chunk into lines, what becomes of a bad one, and which
lines a sample has: those whose first byte lies in a chosen block of the file's text, the same for any splits and
chunks. Leaves opening files to `sources`, and the two passes to `task`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial, reduce
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import binary_parts
from parquet_variant.array.tapes import array_tapes
from parquet_variant.array.variant_array import trusted_array
from parquet_variant.choices import InputFormat
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.ingestion.formats.layout import Layout
from parquet_variant.ingestion.formats.wrapped import values_at
from parquet_variant.ingestion.json_column import TextRows, open_rows
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources import (
    Chunk,
    check_not_cut,
    is_seekable,
    open_chunks,
    read_ranges,
    split_size,
    whole_text,
)
from parquet_variant.ingestion.splits import Split
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.shredding.typed_texts import Counts
from parquet_variant.types import MAX_OFFSET


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a chunk that are not blank, as an Arrow array without a copy.

    ``text[i]`` is line ``chunk.first_line + number[i]`` of the file; the line's newline is part of the text.
    """

    text: pa.Array
    number: np.ndarray[Any, np.dtype[np.int64]]


def split_lines(chunk: Chunk) -> Lines:
    r"""Cut a chunk into its lines as an Arrow string array over the chunk's own bytes; blank lines are left out.

    The text is not checked to be UTF-8: the parser does that.

    >>> lines = split_lines(Chunk("a.json", b'{"a": 1}\n\n[2]'))
    >>> lines.text.to_pylist(), lines.number.tolist()
    (['{"a": 1}\n', '[2]'], [0, 2])
    """
    ends = chunk.ends
    offsets = np.concatenate([[0], ends]).astype(np.int32 if len(chunk.data) <= MAX_OFFSET else np.int64)
    kind = pa.string() if offsets.dtype == np.int32 else pa.large_string()
    text = pa.Array.from_buffers(kind, len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(chunk.data)])
    number = np.arange(len(ends))
    blank = _blank_lines(chunk.data, offsets)
    if len(blank):
        number = np.delete(number, blank)
        text = text.take(pa.array(number))
    return Lines(text, number)


def _blank_lines(data: bytes | npt.NDArray[np.uint8], offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Indexes of the lines that hold whitespace only."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    # A line of JSON can be as short as one digit: only lines that begin with whitespace need a look.
    first = np.frombuffer(data, np.uint8)[starts] if len(starts) else np.zeros(0, np.uint8)
    maybe = np.flatnonzero((first == 0x0A) | (first == 0x20) | (first == 0x0D) | (first == 0x09))
    blank = [i for i in maybe.tolist() if not bytes(data[starts[i] : starts[i] + lengths[i]]).strip(b" \t\r\n")]
    return np.array(blank, np.int64)


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A line that is no JSON, as it is kept in the bad-records output.

    Parameters
    ----------
    file
        The source file.
    line
        Its 1-based line; the 1-based element where the file is a JSON array.
    reason
        The stable code of the error.
    message
        What is wrong, in words.
    text
        The line itself; bytes that are not UTF-8 become U+FFFD.
    base64
        The line's own bytes, only where `text` does not say them all.
    columns
        What stood beside it in a table's row.

    Examples
    --------
    >>> record = BadRecord.of("a.json", 3, b"[1,", VariantError("the text ends early", reason="truncated"))
    >>> print(record.to_json())
    {"file": "a.json", "line": 3, "reason": "truncated", "message": "the text ends early", "text": "[1,"}
    """

    file: str
    line: int
    reason: str
    message: str
    text: str
    base64: str | None = None
    columns: dict[str, Any] | None = None

    @classmethod
    def of(cls, file: str, line: int, text: bytes, error: VariantError) -> BadRecord:
        """Make the record of a line and the error that the parser gave for it."""
        text = text.rstrip(b"\r\n")
        shown = text.decode("utf-8", "replace")
        exact = b64encode(text).decode("ascii") if shown.encode() != text else None
        return cls(file, line, error.reason, error.message, shown, exact)

    def to_json(self) -> str:
        """One line of the bad-records output."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)


# Small enough for hundreds of places in the 8 MiB that are sampled of a file, large enough for a few lines each.
BLOCK_BYTES = 32 << 10


def in_sample(offsets: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    """Whether lines that begin at these offsets are in a sample of some share; a line at offset 0 always is."""
    mixed = (offsets // BLOCK_BYTES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def sampled_text(split: Split, share: float, format: InputFormat | Layout) -> bytes | None:
    """The sampled lines of a split, one after the other; None where only all of the file can be read.

    `split`: part of a file.
    `share`: of the lines, above 0 and up to 1.
    `format`: as for `open_chunks`.
    Raises `VariantFileError` as by `open_chunks`.
    """
    if not is_seekable(split.file, format):
        return None
    start, end = split.byte_range or (0, split_size(split))
    blocks = np.arange(start // BLOCK_BYTES, -(-end // BLOCK_BYTES), dtype=np.int64) * BLOCK_BYTES
    chosen = blocks[in_sample(blocks, share)].tolist()
    return read_ranges(split.file, [(max(start, at), min(end, at + BLOCK_BYTES)) for at in chosen])


Result = TypeVar("Result")
# About what a row of a table counts as text, where a sample is taken.
_ROW_BYTES = 256
# Small files that are read together have so much, as stored.
_GROUP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Use(Generic[Result]):
    """What is made of rows: of a tape of them, and of two such results."""

    of_tape: Callable[[Tape], Result]
    joined: Callable[[Result, Result], Result]


@dataclass(frozen=True, slots=True)
class Batch(Generic[Result]):
    """What became of a chunk: the result for its good rows, what stands beside them, its bad lines, and its size."""

    result: Result
    bad: list[BadRecord]
    text_bytes: int
    beside: pa.Table | None = None
    typed: Counts = field(default_factory=Counter)

    def joined(self, other: Batch[Result], use: Use[Result]) -> Batch[Result]:
        """Both, of texts."""
        result, size = use.joined(self.result, other.result), self.text_bytes + other.text_bytes
        return Batch(result, self.bad + other.bad, size, typed=self.typed + other.typed)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of rows in one buffer, and what messages call them."""

    file: str
    unit: str
    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    valid: npt.NDArray[np.uint8] | None
    number: Callable[[int], int]
    refused: Mapping[int, tuple[bytes, JsonError]]

    def fault(self, row: int, error: VariantError) -> tuple[bytes, VariantError]:
        """A row's own text, and what is wrong with it."""
        return self.refused.get(row) or (bytes(self.data[self.starts[row] : self.stops[row]]), error)


def steps(
    splits: Sequence[Split], options: TextOptions, use: Use[Result], sample: float = 1.0
) -> Iterator[Callable[[], Batch[Result]]]:
    """Read the chunks; what each step gives is what became of one, or of several small files."""
    for group in _groups(splits, options):
        if len(group) > 1:
            yield partial(_use_together, group, options, use, sample)
        else:
            yield from _steps_of(group[0], options, use, sample)


def _groups(splits: Sequence[Split], options: TextOptions) -> Iterator[list[Split]]:
    """The splits, those of small files together: a chunk of ten rows costs as much as one of ten thousand."""
    group, filled = list[Split](), 0
    for split in splits:
        is_small = split.size is not None and split.size <= BLOCK_BYTES and options.json_column is None
        if group and (not is_small or filled + (split.size or 0) > min(options.chunk_bytes, _GROUP_BYTES)):
            yield group
            group, filled = [], 0
        if is_small:
            group.append(split)
            filled += split.size or 0
        else:
            yield [split]
    if group:
        yield group


def _use_together(group: list[Split], options: TextOptions, use: Use[Result], sample: float) -> Batch[Result]:
    """What became of small files as one text; file by file if anything is wrong, which tells where."""
    try:
        texts = [whole_text(split, options.layout) for split in group]
        # Of a small file all lines are in the sample, unless it was packed.
        if sample >= 1 or all(len(text) <= BLOCK_BYTES for text in texts):
            chunk = Chunk(group[0].file, b"\n".join(texts))
            batch = _use(chunk, split_lines(chunk), replace(options, on_error="fail"), use, 1.0)
            return replace(batch, text_bytes=sum(map(len, texts)))
    except VariantError:
        pass
    parts = (step for split in group for step in _steps_of(split, options, use, sample))
    nothing = Batch(use.of_tape(_null_rows(0)), [], 0)
    return reduce(lambda left, right: left.joined(right, use), (step() for step in parts), nothing)


def _steps_of(
    split: Split, options: TextOptions, use: Use[Result], sample: float
) -> Iterator[Callable[[], Batch[Result]]]:
    if options.json_column is not None:
        file = _partition(split.file) if options.of_dataframe else split.file
        for rows in open_rows(split, options.json_column, options.layout.csv):
            yield partial(_use_rows, file, rows, options, use, sample)
        return
    if sample < 1 and (text := sampled_text(split, sample, options.layout)) is not None:
        chunk = Chunk(split.file, text)
        try:
            batch = _use(chunk, split_lines(chunk), options, use, 1.0)
        except VariantError:
            pass  # reading all of the split tells the line
        else:
            yield partial(_as_is, batch)
            return
    last: tuple[Chunk, Lines] | None = None
    try:
        for chunk in open_chunks(split.file, split.byte_range, options.chunk_bytes, options.layout):
            lines = split_lines(chunk)
            last = chunk, lines
            yield partial(_use, chunk, lines, options, use, sample)
        check_not_cut(split)
    except JsonError as error:
        # An array or a document that is cut off, or followed by something: the rows before it were given.
        if options.on_error == "fail":
            raise error.at(file=split.file) from None
        is_null = options.on_error == "null"
        element = last[0].first_line + len(last[1].text) if last else 1
        bad = [] if is_null else [BadRecord.of(split.file, element, b"", error)]
        yield partial(_as_is, Batch(use.of_tape(_null_rows(int(is_null))), bad, 0))


def _partition(file: str) -> str:
    """The partition of a DataFrame that Spark put into a file."""
    number = re.search(r"part-(\d+)-[^/]*$", file)
    return f"partition {int(number[1])} of the DataFrame" if number else "the DataFrame"


def _as_is(batch: Batch[Result]) -> Batch[Result]:
    return batch


def _null_rows(count: int) -> Tape:
    """The tape of some rows that are SQL NULL."""
    nothing = np.zeros(count, np.int64)
    return parse_text(np.zeros(0, np.uint8), nothing, nothing, nothing.astype(np.uint8)).tape


def _use(chunk: Chunk, lines: Lines, options: TextOptions, use: Use[Result], sample: float) -> Batch[Result]:
    """Parse the lines of a chunk and use the good ones."""
    data, starts, stops = _text_buffers(lines.text)
    keep = np.arange(len(starts)) if sample >= 1 else np.flatnonzero(in_sample(chunk.offset + starts, sample))
    text_bytes = len(chunk.data) if sample >= 1 else int((stops[keep] - starts[keep]).sum())
    texts = _Texts(
        chunk.file,
        chunk.unit,
        data,
        starts,
        stops,
        None,
        lambda row: chunk.first_line + int(lines.number[row]),
        chunk.refused,
    )
    result, _, bad, typed = _parsed(texts, keep, options, use)
    chunk.release()
    return Batch(result, bad, text_bytes, typed=typed)


def _use_rows(file: str, rows: TextRows, options: TextOptions, use: Use[Result], sample: float) -> Batch[Result]:
    """Parse the texts of a table's rows and use the good ones, with what stands beside them."""
    offsets, address, valid, owner = binary_parts(rows.text)
    base, end = int(offsets[0]), int(offsets[-1])
    buffer = pa.foreign_buffer(address + base, end - base, base=owner) if end > base else b""
    starts, stops = offsets[:-1] - base, offsets[1:] - base
    texts = _Texts(
        file,
        "row",
        np.frombuffer(buffer, np.uint8),
        starts,
        stops,
        valid if len(valid) else None,
        lambda row: rows.first_row + row,
        {},
    )
    places = (rows.first_row + np.arange(len(starts))) * _ROW_BYTES
    keep = np.arange(len(starts)) if sample >= 1 else np.flatnonzero(in_sample(places, sample))
    result, at, bad, typed = _parsed(texts, keep, options, use)
    if bad:
        others = rows.others.drop_columns(str(options.json_column))
        bad = [replace(each, columns=_plain_row(others, each.line - rows.first_row)) for each in bad]
    beside = rows.others if len(at) == len(starts) and (at == np.arange(len(at))).all() else rows.others.take(at)
    return Batch(result, bad, int((stops[keep] - starts[keep]).sum()), beside, typed)


def _plain_row(others: pa.Table, row: int) -> dict[str, Any]:
    """The columns beside a bad row, as far as they are plain."""
    return {
        name: value if isinstance(value := column[row].as_py(), str | int | float | bool | None) else str(value)
        for name, column in zip(others.column_names, others.columns, strict=True)
    }


def _text_buffers(text: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    _, offsets_buffer, data_buffer = text.buffers()
    width = np.int64 if str(text.type) == "large_string" else np.int32
    offsets = np.frombuffer(offsets_buffer, width, len(text) + 1, text.offset * width().itemsize)
    return np.frombuffer(data_buffer or b"", np.uint8), offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)


def _parsed(
    texts: _Texts, keep: npt.NDArray[np.int64], options: TextOptions, use: Use[Result]
) -> tuple[Result, npt.NDArray[np.int64], list[BadRecord], Counts]:
    """Parse some texts and use the good ones; with bad ones among them, those are parsed again without them.

    Returns the result, which text each of its rows is of, what was put aside, and what was typed.
    """
    fail, null = options.on_error == "fail", options.on_error == "null"
    bad: list[BadRecord] = []
    void = np.zeros(len(texts.starts), np.bool_) if null else None
    while True:
        faults: Sequence[tuple[int, VariantError]] = []
        try:
            valid = texts.valid
            if void is not None and void.any():
                valid = np.where(void, 0, 1 if valid is None else valid).astype(np.uint8)
            parsed = parse_text(
                texts.data,
                texts.starts[keep],
                texts.stops[keep],
                None if valid is None else valid[keep],
                options.json,
                null_on_error=not fail,
            )
            faults = parsed.faults
            if null or not faults:
                result, rows, typed = _used(parsed.tape, options, use)
                parsed.tape.release()
                bad.sort(key=lambda record: record.line)
                return result, keep if rows is None else keep[rows], bad, typed
        except VariantError as fault:  # from the parser if nothing is quarantined, or for a value that is too large
            if fault.row is None:
                raise
            faults = [(fault.row, fault)]
        for row, error in faults:
            at = int(keep[row])
            text, error = texts.fault(at, error)
            line = texts.number(at)
            if fail:
                raise JsonError(
                    f"{texts.unit} {line}: {error.message}; {_cure(texts.file)}",
                    reason=error.reason,
                    file=texts.file,
                    offset=error.offset,
                ) from None
            if void is not None:
                void[at] = True
            else:
                bad.append(BadRecord.of(texts.file, line, text, error))
        if void is None:
            keep = np.delete(keep, [row for row, _ in faults])


def _cure(file: str | None) -> str:
    """What to do about a line that is no JSON: files of other formats are told by their names."""
    for kind in ("csv", "xml"):
        if re.search(rf"\.{kind}(\.\w+)?$", file or "", re.IGNORECASE):
            return f"for {kind.upper()} say input_format='{kind}'"
    return "mend it, or put bad lines aside: on_error='quarantine'"


def _used(tape: Tape, options: TextOptions, use: Use[Result]) -> tuple[Result, npt.NDArray[np.int64] | None, Counts]:
    """What is made of parsed rows, of the values at the root in them; the row of each, None if the same; counts."""
    # Of texts the array that holds the rows was found already.
    root = options.layout.rest if options.json_column is None else options.layout.root
    if root is None or not root.segments:
        tape, typed = options.texts.apply(tape)
        return use.of_tape(tape), None, typed
    array, rows = values_at(trusted_array(shredded_rows(tape).storage()), root)
    parts = [options.texts.apply(part) for part in array_tapes(array, 0)] or [(_null_rows(0), Counter())]
    result = reduce(use.joined, [use.of_tape(part) for part, _ in parts])
    return result, rows, sum((typed for _, typed in parts), Counter())
