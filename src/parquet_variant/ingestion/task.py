"""What one task of an ingest does to its splits, in whatever engine, and what a destination makes of what tasks wrote.

Owns the two passes over a task's splits (text to profile, text to a staged file), and what destinations share: what
every task does, and what makes the whole visible or leaves nothing; a directory whose files are staged, and one file
that is written aside. Leaves reading and parsing to `batches`, running the tasks to the engines, and the files that are
written to `destinations`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import call
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.array.variant_array import VariantArray, trusted_array
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.batches import Use, steps
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.sources import split_size
from parquet_variant.ingestion.splits import Split
from parquet_variant.io.engine import check_interrupted
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, staging_beside
from parquet_variant.kernels.shredding.json_batch import ShreddedRows, shredded_rows
from parquet_variant.parquet.writing.encodings import ColumnEncodings
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.typed_texts import Counts

# Variants as kernels have made them of nodes, or put together.
Shredded: TypeAlias = ShreddedRows | VariantArray


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What the job found for all its tasks."""

    schema: ShreddingSchema  # What to shred.
    threads: int = 1  # How many threads a task has: more than one where there are fewer tasks than cores.
    encodings: ColumnEncodings | None = None  # How columns are encoded, for Parquet files; None leaves it to the tasks.
    fields: tuple[pa.Field, ...] = ()  # All columns of the rows, if the JSON is a column of a table.


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that were read."""

    shredded: Shredded  # Their Variants.
    # The rows of the table whose column held the JSON, that column among them; None if there is no such table.
    beside: pa.Table | None = None
    json_column: str | None = None  # Its name.

    def __len__(self) -> int:
        return len(self.shredded)

    @cached_property
    def variants(self) -> VariantArray:
        """Their Variants as an array; `shredded` is not to be used any more then."""
        return _array(self.shredded)

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
    """What the second pass wrote, not yet committed."""

    files: tuple[StagedFile, ...]  # The data file, if there were rows, then the file of bad records, if there were any.
    # Rows written, lines quarantined.
    rows: int
    bad: int
    # Size of the decompressed text that was read and of the data files.
    text_bytes: int
    file_bytes: int
    adds: tuple[Add, ...] = ()  # Files that are in their place in a table already, for its log.
    typed: Counts = field(default_factory=Counter)  # What became of texts that were to be typed.


def profile_splits(splits: Sequence[Split], text: TextOptions, threads: int = 1) -> ProfiledSplits:
    """First pass: what is at which path, over the good rows; a bad line that will be quarantined is passed over.

    Raises `JsonError` for a bad line if ``on_error`` is ``"fail"``, with its file and line; `VariantFileError` for a
    file that cannot be read.
    """
    total = ProfiledSplits(Profile(), 0)
    use = Use(Profile.of_tape, Profile.merge)
    every = steps(splits, text, use, 1.0 if text.sample is None else text.sample)
    for batch in in_order(call, every, threads, read_ahead=True):
        check_interrupted()
        total = total.merge(ProfiledSplits(replace(batch.result, typed_texts=batch.typed), batch.text_bytes))
    return total


class SplitArrays:
    """Second pass: the rows of a task's splits as shredded arrays; bad lines go to a staged file while they are met.

    `splits`: the task's share of the input; `plan` and `text`: what to shred, and how text is read.
    `staging`: the job's way into the destination.
    `task` and `attempt`: the number of the task, which names the files, and of this attempt, which keeps them apart.
    Raises `JsonError` or `VariantFileError` as `profile_splits`, on iteration.
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
        every = steps(self.splits, self.text, _encoding(self.plan.schema))
        with ExitStack() as stack:
            for batch in in_order(call, every, self.plan.threads, read_ahead=True):
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

    Raises `JsonError` or `VariantFileError` as `profile_splits`.
    """
    for step in steps(splits, text, _encoding(schema)):
        batch = step()
        yield Rows(batch.result, batch.beside, text.json_column)


def first_rows(
    splits: Sequence[Split], schema: ShreddingSchema, text: TextOptions, text_bytes: int
) -> VariantArray | None:
    """The good rows in about so much text at the start of some splits, shredded; None if there is no text.

    Raises `VariantError` as `profile_splits`, but not for bad lines.
    """
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(steps(splits, lenient, _encoding(schema)), None)
    return None if step is None else _array(step().result)


def _encoding(schema: ShreddingSchema | None) -> Use[Shredded]:
    return Use(partial(shredded_rows, schema=schema, per_batch=True), _joined)


def _array(rows: Shredded) -> VariantArray:
    return rows if isinstance(rows, VariantArray) else trusted_array(rows.storage(), fits_files=True)


def _joined(left: Shredded, right: Shredded) -> VariantArray:
    return VariantArray.concat([_array(left), _array(right)])


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
    filesystem, path = filesystem_of(location)
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    return filesystem.open_output_stream(path)


# What a task does: number of the task, of the attempt, and its splits.
Work: TypeAlias = Callable[[int, int, list[Split]], WrittenSplits]


class Destination:
    """What the tasks write into, and what makes it visible: a directory of files, unless a class says otherwise."""

    def __init__(self, request: IngestRequest, staging: Staging, write: Callable[..., WrittenSplits]) -> None:
        self.dest = request.dest
        self._request, self._staging, self._write = request, staging, write

    @property
    def bad_records_path(self) -> str:
        """Where bad lines go that are put aside: a directory below the destination."""
        return f"{self.dest.rstrip('/')}/{BAD_RECORDS}"

    def work(self, plan: TaskPlan) -> Work:
        """What every task does; can be pickled."""
        self._staging = self._staging.begin()
        return partial(self._write, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make what the tasks wrote visible; the data files' paths below `dest`."""
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        """Leave the directory as it was, if there was one; what others put there meanwhile stays."""
        self._staging.abort()


class FileDestination(Destination):
    """One file; the job's directory is beside it."""

    @classmethod
    def open(cls, request: IngestRequest, write: Callable[..., WrittenSplits]) -> FileDestination | None:
        """Look at the place; None if there is a file that is to be left alone.

        Raises `VariantFileError` if there is a directory, or a file and the mode is not to overwrite it.
        """
        dest, mode = request.dest, request.mode
        filesystem, path = filesystem_of(dest)
        kind = filesystem.get_file_info(path).type
        if kind == pafs.FileType.Directory:
            raise VariantFileError(f"{dest} is a directory, not a file", reason="exists", file=dest)
        if kind == pafs.FileType.File:
            if mode == "ignore":
                return None
            if mode != "overwrite":
                cure = "a file takes no more rows: append to a directory" if mode == "append" else "use mode=overwrite"
                raise VariantFileError(f"{dest} exists: {cure}, or choose another place", reason="exists", file=dest)
        return cls(request, staging_beside(dest), write)

    def abort(self) -> None:
        """Leave nothing beside the file."""
        self._staging.discard()
