"""What one task of an ingest does to its splits, in whatever engine: text to profile, text to a staged file.

Owns the two passes over a split and what becomes of a bad line. Leaves which splits there are to `sources`, running the
tasks to the engines, and the files that are written to `destinations`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.ingest.lines import Lines, split_lines
from parquet_variant.ingest.request import TextOptions
from parquet_variant.ingest.sampling import in_sample, sampled_text
from parquet_variant.ingest.sources import Chunk, Split, open_chunks, split_size
from parquet_variant.ingest.task_plan import TaskPlan
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.interruption import check_interrupted
from parquet_variant.io.pipeline import results_in_order
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging
from parquet_variant.kernels.json_batch import parse_text, storage_from_tape
from parquet_variant.kernels.tape import Tape
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.profile import Profile, profile_tape

__all__ = [
    "BadRecord",
    "ProfiledSplits",
    "SplitArrays",
    "WrittenSplits",
    "first_rows",
    "pack_splits",
    "profile_splits",
]

Result = TypeVar("Result")


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

    @classmethod
    def of(cls, file: str, line: int, text: bytes, error: VariantError) -> BadRecord:
        """Make the record of a line and the error that the parser gave for it."""
        text = text.rstrip(b"\r\n")
        shown = text.decode("utf-8", "replace")
        exact = b64encode(text).decode("ascii") if shown.encode() != text else None
        return cls(file, line, error.reason, error.message, shown, exact)

    def to_json(self) -> str:
        """One line of the bad-records output."""
        fields = asdict(self)
        if self.base64 is None:
            del fields["base64"]
        return json.dumps(fields, ensure_ascii=False)


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
    steps = _steps(splits, text, profile_tape, 1.0 if text.sample is None else text.sample)
    for batch in results_in_order(steps, threads):
        check_interrupted()
        total = total.merge(ProfiledSplits(batch.result, batch.text_bytes))
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

    def __iter__(self) -> Iterator[VariantArray]:
        bad_stream = None
        with ExitStack() as stack:
            for batch in results_in_order(_steps(self.splits, self.text, self._encode), self.plan.threads):
                check_interrupted()
                self.text_bytes += batch.text_bytes
                if batch.bad:
                    bad_stream = bad_stream or stack.enter_context(_open_output(self._quarantine.path))
                    bad_stream.write("".join(f"{record.to_json()}\n" for record in batch.bad).encode())
                    self.bad += len(batch.bad)
                if len(batch.result):
                    yield batch.result

    def written(
        self, files: tuple[StagedFile, ...], rows: int, file_bytes: int, adds: tuple[Add, ...] = ()
    ) -> WrittenSplits:
        """What became of the splits, with the file of bad lines if there were any."""
        bad_files = (self._quarantine,) if self.bad else ()
        return WrittenSplits((*files, *bad_files), rows, self.bad, self.text_bytes, file_bytes, adds)

    def _encode(self, tape: Tape) -> VariantArray:
        return _shredded(self.plan.schema, tape)


def first_rows(split: Split, schema: ShreddingSchema, text: TextOptions, text_bytes: int) -> VariantArray | None:
    """The good rows in about so much text at the start of a split, shredded; None if there is no text.

    Raises
    ------
    VariantError
        As `profile_splits`, but not for bad lines.
    """
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(_steps([split], lenient, partial(_shredded, schema)), None)
    return None if step is None else step().result


def _shredded(schema: ShreddingSchema, tape: Tape) -> VariantArray:
    return VariantArray(storage_from_tape(tape, schema, per_batch=True))


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
class _Batch(Generic[Result]):
    """What became of a chunk: the result for its good rows, its bad lines, and its size."""

    result: Result
    bad: list[BadRecord]
    text_bytes: int


def _steps(
    splits: Sequence[Split], options: TextOptions, use: Callable[[Tape], Result], sample: float = 1.0
) -> Iterator[Callable[[], _Batch[Result]]]:
    """Read the chunks; what each step gives is what became of one."""
    for split in splits:
        if sample < 1 and (text := sampled_text(split, sample, options.input_format)) is not None:
            chunk = Chunk(split.file, text)
            try:
                batch = _use(chunk, split_lines(chunk), options, use, 1.0)
            except VariantError:
                pass  # reading all of the split tells the line
            else:
                yield partial(_as_is, batch)
                continue
        last: tuple[Chunk, Lines] | None = None
        chunks = open_chunks(split.file, split.byte_range, options.chunk_bytes, options.input_format)
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except JsonError as error:
                # A JSON array that is cut off, or followed by something: the elements before it were given.
                if options.on_error == "fail":
                    raise error.at(file=split.file) from None
                element = last[0].first_line + len(last[1].text) if last else 1
                yield partial(_as_is, _Batch(use(_no_rows()), [BadRecord.of(split.file, element, b"", error)], 0))
                break
            lines = split_lines(chunk)
            last = chunk, lines
            yield partial(_use, chunk, lines, options, use, sample)


def _as_is(batch: _Batch[Result]) -> _Batch[Result]:
    return batch


def _no_rows() -> Tape:
    nothing = np.zeros(0, np.int64)
    return parse_text(np.zeros(0, np.uint8), nothing, nothing).tape


def _use(
    chunk: Chunk, lines: Lines, options: TextOptions, use: Callable[[Tape], Result], sample: float
) -> _Batch[Result]:
    """Parse the lines and use the good ones; with bad ones among them, those are parsed again without them."""
    _, offsets_buffer, data_buffer = lines.text.buffers()
    width = np.int64 if str(lines.text.type) == "large_string" else np.int32
    offsets = np.frombuffer(offsets_buffer, width, len(lines.text) + 1, lines.text.offset * width().itemsize)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    starts, stops = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    keep = np.arange(len(starts)) if sample >= 1 else np.flatnonzero(in_sample(chunk.offset + starts, sample))
    text_bytes = len(chunk.data) if sample >= 1 else int((stops[keep] - starts[keep]).sum())
    quarantine = options.on_error == "quarantine"
    bad: list[BadRecord] = []
    while True:
        faults: Sequence[tuple[int, VariantError]] = []
        try:
            parsed = parse_text(data, starts[keep], stops[keep], None, options.json, null_on_error=quarantine)
            faults = parsed.faults
            if not faults:
                result = use(parsed.tape)
                parsed.tape.release()
                break
        except VariantError as fault:  # from the parser if nothing is quarantined, or for a value that is too large
            if fault.row is None:
                raise
            faults = [(fault.row, fault)]
        for row, error in faults:
            at = int(keep[row])
            line = chunk.first_line + int(lines.number[at])
            if not quarantine:
                raise JsonError(
                    f"{chunk.unit} {line}: {error.message}; mend it, or put bad lines aside: on_error='quarantine'",
                    reason=error.reason,
                    file=chunk.file,
                    offset=error.offset,
                ) from None
            bad.append(BadRecord.of(chunk.file, line, bytes(data[starts[at] : stops[at]]), error))
        keep = np.delete(keep, [row for row, _ in faults])
    chunk.release()
    return _Batch(result, sorted(bad, key=lambda record: record.line), text_bytes)
