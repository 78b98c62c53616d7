"""What one task of an ingest does to its splits, in whatever engine: text to profile, text to a staged file.

Owns the two passes over a split and what becomes of a bad line. Leaves which splits there are to `sources`, running the
tasks to the engines, and the files that are written to `destinations`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import call
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import binary_parts
from parquet_variant.array.variant_array import VariantArray, trusted_array
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.ingest.bad_record import BadRecord
from parquet_variant.ingest.formats.wrapped import values_at
from parquet_variant.ingest.json_column import TextRows, open_rows
from parquet_variant.ingest.lines import Lines, split_lines
from parquet_variant.ingest.request import TextOptions
from parquet_variant.ingest.sampling import in_sample, sampled_text
from parquet_variant.ingest.sources import Chunk, Split, open_chunks, split_size
from parquet_variant.ingest.task_plan import TaskPlan
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.interruption import check_interrupted
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging
from parquet_variant.kernels.shredding.json_batch import parse_text, storage_from_tape
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.profile import Profile, array_tapes
from parquet_variant.shredding.typed_texts import Counts

__all__ = [
    "ProfiledSplits",
    "Rows",
    "SplitArrays",
    "WrittenSplits",
    "first_rows",
    "pack_splits",
    "profile_splits",
    "read_arrays",
]

Result = TypeVar("Result")
# About what a row of a table counts as text, where a sample is taken.
_ROW_BYTES = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that were read.

    Parameters
    ----------
    variants
        Their Variants, shredded.
    beside
        The rows of the table whose column held the JSON, that column among them; None if there is no such table.
    json_column
        Its name.
    """

    variants: VariantArray
    beside: pa.Table | None = None
    json_column: str | None = None

    def __len__(self) -> int:
        return len(self.variants)

    def columns(self, name: str) -> dict[str, Any]:
        """The columns to write, the Variants as `name` in the place of the JSON."""
        if self.beside is None:
            return {name: self.variants}
        return {
            name if each == self.json_column else each: self.variants if each == self.json_column else column
            for each, column in zip(self.beside.column_names, self.beside.columns, strict=True)
        }


@dataclass(frozen=True, slots=True)
class ProfiledSplits:
    """What the first pass found: the profile of the good rows, and the decompressed bytes that were profiled."""

    profile: Profile
    text_bytes: int

    def merge(self, other: ProfiledSplits) -> ProfiledSplits:
        """Both together; the order does not matter."""
        return ProfiledSplits(self.profile.merge(other.profile), self.text_bytes + other.text_bytes)


@dataclass(frozen=True, slots=True)
class WrittenSplits:
    """What the second pass wrote, not yet committed.

    Parameters
    ----------
    files
        The data file, if there were rows, then the file of bad records, if there were any.
    rows, bad
        Rows written, lines quarantined.
    typed
        What became of texts that were to be typed.
    text_bytes, file_bytes
        Size of the decompressed text that was read and of the data files.
    adds
        Files that are in their place in a table already, for its log.
    """

    files: tuple[StagedFile, ...]
    rows: int
    bad: int
    text_bytes: int
    file_bytes: int
    adds: tuple[Add, ...] = ()
    typed: Counts = field(default_factory=Counter)


def profile_splits(splits: Sequence[Split], text: TextOptions, threads: int = 1) -> ProfiledSplits:
    """First pass: what is at which path, over the good rows; a bad line that will be quarantined is passed over.

    Raises
    ------
    JsonError
        For a bad line if ``on_error`` is ``"fail"``, with its file and line.
    VariantFileError
        For a file that cannot be read.
    """
    total = ProfiledSplits(Profile(), 0)
    use = Use(Profile.of_tape, Profile.merge)
    steps = _steps(splits, text, use, 1.0 if text.sample is None else text.sample)
    for batch in in_order(call, steps, threads, read_ahead=True):
        check_interrupted()
        total = total.merge(ProfiledSplits(replace(batch.result, typed_texts=batch.typed), batch.text_bytes))
    return total


class SplitArrays:
    """Second pass: the rows of a task's splits as shredded arrays; bad lines go to a staged file while they are met.

    Parameters
    ----------
    splits
        The task's share of the input.
    plan
        What to shred, and with how many threads.
    text
        How the text is read.
    staging
        The job's way into the destination.
    task, attempt
        Number of the task, which names the files, and of this attempt, which keeps them apart.

    Raises
    ------
    JsonError, VariantFileError
        As `profile_splits`, on iteration.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        plan: TaskPlan,
        text: TextOptions,
        staging: Staging,
        task: int,
        attempt: int,
    ) -> None:
        self.splits, self.plan, self.text = splits, plan, text
        self.directory = staging.attempt(task, attempt)
        self._quarantine = StagedFile(self.directory, f"{BAD_RECORDS}/{staging.file_name(task, extension='ndjson')}")
        self.bad = 0
        self.text_bytes = 0
        self.typed: Counts = Counter()

    def __iter__(self) -> Iterator[Rows]:
        bad_stream = None
        steps = _steps(self.splits, self.text, _encoding(self.plan.schema))
        with ExitStack() as stack:
            for batch in in_order(call, steps, self.plan.threads, read_ahead=True):
                check_interrupted()
                self.text_bytes += batch.text_bytes
                self.typed += batch.typed
                if batch.bad:
                    bad_stream = bad_stream or stack.enter_context(_open_output(self._quarantine.path))
                    bad_stream.write("".join(f"{record.to_json()}\n" for record in batch.bad).encode())
                    self.bad += len(batch.bad)
                if len(batch.result):
                    yield Rows(batch.result, batch.beside, self.text.json_column)

    def written(
        self, files: tuple[StagedFile, ...], rows: int, file_bytes: int, adds: tuple[Add, ...] = ()
    ) -> WrittenSplits:
        """What became of the splits, with the file of bad lines if there were any."""
        bad_files = (self._quarantine,) if self.bad else ()
        return WrittenSplits((*files, *bad_files), rows, self.bad, self.text_bytes, file_bytes, adds, self.typed)


def read_arrays(splits: Sequence[Split], schema: ShreddingSchema | None, text: TextOptions) -> Iterator[Rows]:
    """The rows of some splits, shredded if there is a schema.

    Raises
    ------
    JsonError, VariantFileError
        As `profile_splits`.
    """
    for step in _steps(splits, text, _encoding(schema)):
        batch = step()
        yield Rows(batch.result, batch.beside, text.json_column)


def first_rows(split: Split, schema: ShreddingSchema, text: TextOptions, text_bytes: int) -> VariantArray | None:
    """The good rows in about so much text at the start of a split, shredded; None if there is no text.

    Raises
    ------
    VariantError
        As `profile_splits`, but not for bad lines.
    """
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(_steps([split], lenient, _encoding(schema)), None)
    return None if step is None else step().result


def _encoding(schema: ShreddingSchema | None) -> Use[VariantArray]:
    return Use(partial(_shredded, schema), _joined)


def _shredded(schema: ShreddingSchema | None, tape: Tape) -> VariantArray:
    return trusted_array(storage_from_tape(tape, schema, per_batch=True), fits_files=True)


def _joined(left: VariantArray, right: VariantArray) -> VariantArray:
    return VariantArray.concat([left, right])


def pack_splits(splits: Iterable[Split], task_bytes: int) -> list[list[Split]]:
    """Put splits together, in order, until a task has about `task_bytes`: many small files make few tasks."""
    tasks: list[list[Split]] = []
    filled = task_bytes
    for split in splits:
        size = split_size(split)
        if not tasks or filled + size > task_bytes:
            tasks.append([])
            filled = 0
        tasks[-1].append(split)
        filled += size
    return tasks


def _open_output(location: str) -> Any:
    filesystem, path = filesystem_of(location, None)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    return filesystem.open_output_stream(path)


@dataclass(frozen=True, slots=True)
class Use(Generic[Result]):
    """What is made of rows: of a tape of them, and of two such results."""

    of_tape: Callable[[Tape], Result]
    joined: Callable[[Result, Result], Result]


@dataclass(frozen=True, slots=True)
class _Batch(Generic[Result]):
    """What became of a chunk: the result for its good rows, what stands beside them, its bad lines, and its size."""

    result: Result
    bad: list[BadRecord]
    text_bytes: int
    beside: pa.Table | None = None
    typed: Counts = field(default_factory=Counter)


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


def _steps(
    splits: Sequence[Split], options: TextOptions, use: Use[Result], sample: float = 1.0
) -> Iterator[Callable[[], _Batch[Result]]]:
    """Read the chunks; what each step gives is what became of one."""
    for split in splits:
        if options.json_column is not None:
            for rows in open_rows(split, options.json_column, options.layout.csv):
                yield partial(_use_rows, split.file, rows, options, use, sample)
            continue
        if sample < 1 and (text := sampled_text(split, sample, options.layout)) is not None:
            chunk = Chunk(split.file, text)
            try:
                batch = _use(chunk, split_lines(chunk), options, use, 1.0)
            except VariantError:
                pass  # reading all of the split tells the line
            else:
                yield partial(_as_is, batch)
                continue
        last: tuple[Chunk, Lines] | None = None
        chunks = open_chunks(split.file, split.byte_range, options.chunk_bytes, options.layout)
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except JsonError as error:
                # An array or a document that is cut off, or followed by something: the rows before it were given.
                if options.on_error == "fail":
                    raise error.at(file=split.file) from None
                element = last[0].first_line + len(last[1].text) if last else 1
                bad = [BadRecord.of(split.file, element, b"", error)]
                yield partial(_as_is, _Batch(use.of_tape(_no_rows()), bad, 0))
                break
            lines = split_lines(chunk)
            last = chunk, lines
            yield partial(_use, chunk, lines, options, use, sample)


def _as_is(batch: _Batch[Result]) -> _Batch[Result]:
    return batch


def _no_rows() -> Tape:
    nothing = np.zeros(0, np.int64)
    return parse_text(np.zeros(0, np.uint8), nothing, nothing).tape


def _use(chunk: Chunk, lines: Lines, options: TextOptions, use: Use[Result], sample: float) -> _Batch[Result]:
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
    return _Batch(result, bad, text_bytes, typed=typed)


def _use_rows(file: str, rows: TextRows, options: TextOptions, use: Use[Result], sample: float) -> _Batch[Result]:
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
    return _Batch(result, bad, int((stops[keep] - starts[keep]).sum()), beside, typed)


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
    array, rows = values_at(VariantArray(storage_from_tape(tape)), root)
    parts = [options.texts.apply(part) for part in array_tapes(array, 0)] or [(_no_rows(), Counter())]
    result = reduce(use.joined, [use.of_tape(part) for part, _ in parts])
    return result, rows, sum((typed for _, typed in parts), Counter())
