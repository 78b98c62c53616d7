"""The steps of a pass over an input: read a chunk, split it into lines, parse them, and use the valid rows.

This module reads the splits of a task, small files together, and handles invalid lines. `chunks` opens files, and
`task` defines the two passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from operator import call
from pathlib import PurePosixPath
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import ContractError, JsonError, VariantError, without_secrets
from parquet_variant.inference.contracts.report import ContractCounts
from parquet_variant.inference.profile import StringCounts
from parquet_variant.ingestion.formats.csv_rows import is_csv
from parquet_variant.ingestion.formats.wrapped import values_at
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.result import BadRecord, ReadCounts
from parquet_variant.ingestion.sources import chunks
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.table_sources import open_rows, parse_strings, with_parsed_columns
from parquet_variant.io.parallel import check_interrupted, grouped, in_order, report_read
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.support.records import Record
from parquet_variant.types.path import VariantPath

Result = TypeVar("Result")
Bytes: TypeAlias = npt.NDArray[np.uint8]
# The assumed text size of a table row, by which rows are sampled.
_ROW_BYTES = 256
# Stored bytes of small files that are read together.
_GROUP_BYTES = 1 << 20
# Suffixes of names of files whose lines may be JSON.
_JSON_SUFFIXES = frozenset(
    ("json", "jsonl", "ndjson", "geojson", "jsonlines", "log", "txt", "data", "gz", "zst", "bz2", "lz4", "csv", "tsv")
)
# Digits of a number that messages show.
_SHOWN_DIGITS = 50


class ChunkResult(Generic[Result], Record):
    """The outcome for a chunk: results for its valid rows in order, the table with their JSON column, and the file."""

    results: list[Result]
    bad: list[BadRecord] = field(default_factory=list)
    counts: ReadCounts = field(default_factory=ReadCounts)
    table: pa.Table | None = None
    file: str | None = None  # None for small files that are read together.


class Pass(Generic[Result], Record):
    """A pass over an input: how its text is read, the work on the tape of some rows, and the share of the rows.

    `by_file`: whether small files are not read together.
    """

    options: TextOptions
    work: Callable[[Tape], Result]
    sample: float = 1.0
    by_file: bool = False

    def results(self, splits: Sequence[Split], threads: int) -> Iterator[ChunkResult[Result]]:
        """Run `steps` in threads, and yield their outcomes in order."""
        for batch in in_order(call, self.steps(splits), threads, read_ahead=True):
            check_interrupted()
            report_read(batch.counts.stored_bytes, batch.counts.rows)
            yield batch

    def steps(self, splits: Sequence[Split]) -> Iterator[Callable[[], ChunkResult[Result]]]:
        """Yield one function per chunk, or per group of small files, that parses it and returns its outcome."""
        for group in self._groups(splits):
            if len(group) > 1:
                yield partial(self._of_group, group)
            else:
                yield from (partial(_in_file, group[0], step) for step in self._steps_of(group[0]))

    def _groups(self, splits: Sequence[Split]) -> list[list[Split]]:
        """Return the splits, small files in groups: a chunk of ten rows costs as much as one of ten thousand."""
        limit = 0 if self.by_file else min(self.options.chunk_bytes, _GROUP_BYTES)

        def size_of(split: Split) -> int:
            is_whole = split.end is None and split.part is None and self.options.json_column is None
            size = split.file.known_size if is_whole else None
            return limit + 1 if size is None or size > chunks.BLOCK_BYTES else size  # a group of its own

        return grouped(splits, size_of, limit)

    def _of_group(self, group: list[Split]) -> ChunkResult[Result]:
        """Process small files as one text; if anything is invalid or inexact, one by one for its position."""
        try:
            contents = [chunks.whole_text(split, self.options.layout) for split in group]
            # All lines of a small file are in the sample, unless the file was compressed.
            if self.sample >= 1 or all(len(text) <= chunks.BLOCK_BYTES for text in contents):
                chunk = chunks.Chunk(group[0].file, b"\n".join(contents))
                batch = Pass(replace(self.options, on_error="fail"), self.work)._of_chunk(chunk)
                if not batch.counts.inexact and not batch.counts.broken.broken:
                    read, stored_bytes = sum(map(len, contents)), sum(split.size for split in group)
                    return replace(batch, counts=replace(batch.counts, text_bytes=read, stored_bytes=stored_bytes))
        except VariantError:
            pass
        parts = [step() for split in group for step in self._steps_of(split)]
        return ChunkResult(
            [self.work(_null_rows(0)), *chain.from_iterable(part.results for part in parts)],
            list(chain.from_iterable(part.bad for part in parts)),
            sum((part.counts for part in parts), ReadCounts()),
        )

    def _steps_of(self, split: Split) -> Iterator[Callable[[], ChunkResult[Result]]]:
        options = self.options
        name = split.file.name
        if (column := options.json_column) is not None:
            csv, more = options.layout.csv, options.more_columns
            for rows in open_rows(split, column, csv, more, of_dataframe=options.of_dataframe):
                yield partial(self._of_table, *rows)
            return
        if self.sample < 1 and (text := chunks.sampled_text(split, self.sample, options.layout)) is not None:
            chunk = chunks.Chunk(split.file, text)
            try:
                batch = replace(self, sample=1.0)._of_chunk(chunk)
            except VariantError:
                pass  # The whole split is read below, because only that gives the number of the invalid line.
            else:
                yield lambda: batch
                return
        next_line = 1
        try:
            for chunk in chunks.open_chunks(split.file, split.byte_range, options.chunk_bytes, options.layout):
                next_line = chunk.line_in_range + len(chunk.ends)
                yield partial(self._of_chunk, chunk)
            split.check_file_length()
        except JsonError as error:
            # A truncated array or document, or text after it. The rows before the error were yielded.
            if options.on_error == "fail":
                raise error.at(file=name) from None
            is_null = options.on_error == "null"
            bad = [] if is_null else [BadRecord.of(name, next_line, b"", error)]
            yield lambda: ChunkResult([self.work(_null_rows(int(is_null)))], bad)

    def _of_chunk(self, chunk: chunks.Chunk) -> ChunkResult[Result]:
        """Parse the lines of a chunk and return the outcome for those in the sample."""
        texts, is_all = chunk.texts(), self.sample >= 1
        starts = texts.starts
        rows = (
            np.arange(len(starts)) if is_all else np.flatnonzero(chunks.in_sample(chunk.offset + starts, self.sample))
        )
        batch, _ = self._parse(texts, rows)
        chunk.release()
        read = len(chunk.data) if is_all else batch.counts.text_bytes
        counts = replace(batch.counts, text_bytes=read, stored_bytes=chunk.stored_bytes, rows=len(starts))
        return replace(batch, counts=counts)

    def _of_table(self, texts: chunks.RowTexts, table: pa.Table) -> ChunkResult[Result]:
        """Parse the JSON column of table rows and return the outcome for the rows in the sample."""
        first_row, rows = texts.number(0), np.arange(len(table))
        in_parts = (first_row + rows) * _ROW_BYTES
        indexes = rows if self.sample >= 1 else np.flatnonzero(chunks.in_sample(in_parts, self.sample))
        other_columns, options = table.drop_columns(str(self.options.json_column)), self.options
        table, faults, inexact = with_parsed_columns(table, options.more_columns, options.json, texts.file)
        invalid = {row: self._refused(texts, row, fault) for row, fault in faults if options.on_error != "null"}
        batch, parsed_rows = self._parse(texts, np.setdiff1d(indexes, list(invalid)) if invalid else indexes)
        counts = batch.counts + ReadCounts(0, 0, 0, *self._inexact_numbers(texts, rows, sorted(inexact)))
        bad, all_bad = [], sorted([*batch.bad, *invalid.values()], key=lambda record: record.line)
        for record in all_bad:  # with the other columns, whose values become strings if JSON has no such type
            values = {name: other_columns[name][record.line - first_row].as_py() for name in other_columns.column_names}
            columns = {
                name: v if isinstance(v, str | int | float | bool | None) else str(v) for name, v in values.items()
            }
            bad.append(replace(record, columns=columns))
        table = table if np.array_equal(parsed_rows, rows) else table.take(parsed_rows)
        return replace(batch, bad=bad, counts=counts, table=table)

    def _parse(
        self, texts: chunks.RowTexts, rows: npt.NDArray[np.int64]
    ) -> tuple[ChunkResult[Result], npt.NDArray[np.int64]]:
        """Parse some of the texts, and return the index of the text of each row of the result; if any texts are
        invalid, and ``on_error`` is not ``"fail"``, the others are parsed again without them.
        """
        options = self.options
        fail, null, requested = options.on_error == "fail", options.on_error == "null", rows
        bad: list[BadRecord] = []
        is_null = np.zeros(len(texts.starts), np.bool_) if null else None
        broken: ContractCounts | None = None
        while True:
            faults: Sequence[tuple[int, VariantError]] = []
            try:
                valid = texts.valid
                if is_null is not None and is_null.any():
                    valid = np.where(is_null, 0, 1 if valid is None else valid).astype(np.uint8)
                parsed = parse_text(
                    texts.data,
                    texts.starts[rows],
                    texts.stops[rows],
                    None if valid is None else valid[rows],
                    options.json,
                    null_on_error=not fail,
                )
                faults = parsed.faults
                array, of_strings, numbers = None, list[tuple[int, JsonError]](), list[tuple[int, bytes]]()
                if options.json_paths and (null or not faults):
                    outer = options.layout.path_in_values.segments if options.json_column is None else ()
                    paths = [VariantPath((*outer, *path.segments)) for path in options.json_paths]
                    array, of_strings, numbers = parse_strings(parsed.tape, paths, options.json)
                    faults = of_strings or faults
                if not of_strings and (null or not faults):
                    inexact = self._inexact_numbers(texts, rows, sorted([*parsed.inexact, *numbers]))
                    tapes, result_rows, typed = self._values_of(parsed.tape, rows, array)
                    if broken is None:
                        broken, reasons = self._check(texts, tapes, result_rows)
                        if reasons:
                            bad += [
                                BadRecord.of(texts.file, texts.number(index), *texts.original(index, reason))
                                for index, reason in reasons.items()
                            ]
                            rows = rows[~np.isin(rows, list(reasons))]
                            continue
                    results = list(map(self.work, tapes))
                    parsed.tape.release()
                    bad.sort(key=lambda record: record.line)
                    text_bytes = int((texts.stops[requested] - texts.starts[requested]).sum())
                    counts = ReadCounts(text_bytes, 0, 0, *inexact, typed, broken)
                    return ChunkResult(results, bad, counts), result_rows
            except VariantError as parse_error:  # from the parser with on_error="fail", or a value that is too large
                if parse_error.row is None:
                    raise
                faults = [(parse_error.row, parse_error)]
            for row, fault in faults:
                record = self._refused(texts, int(rows[row]), fault)
                if is_null is not None:
                    is_null[rows[row]] = True
                else:
                    bad.append(record)
            if is_null is None:
                rows = np.delete(rows, [row for row, _ in faults])

    def _refused(self, texts: chunks.RowTexts, index: int, fault: VariantError) -> BadRecord:
        """Return the record of an invalid text; raise its error if ``on_error`` is ``"fail"``."""
        (text, error), line = texts.original(index, fault), texts.number(index)
        if self.options.on_error == "fail":
            problem = f"{texts.unit} {line}: {error.message}; {_advice(texts.file, self.options, line, text)}"
            raise JsonError(problem, reason=error.reason, file=texts.file, offset=error.offset) from None
        return BadRecord.of(texts.file, line, text, error)

    def _inexact_numbers(
        self, texts: chunks.RowTexts, rows: npt.NDArray[np.int64], numbers: Sequence[tuple[int, bytes]]
    ) -> tuple[int, str | None]:
        """Return the count of the numbers and the position of the first; raise `JsonError` if the options say so."""
        if not numbers:
            return 0, None
        row, text = numbers[0]
        line = texts.number(int(rows[row]))
        shown = text.decode()
        shown = shown if len(shown) <= _SHOWN_DIGITS else f"{shown[:_SHOWN_DIGITS]}…"
        if self.options.on_inexact == "fail":
            problem = (
                f"{texts.unit} {line}: the number {shown} cannot be kept exactly (it becomes {float(text)!r}); store "
                "it as a string, or accept the loss with on_inexact='report'"
            )
            raise JsonError(problem, reason="inexact-number", file=texts.file)
        return len(numbers), f"{shown} at {texts.unit} {line} of {texts.file}"

    def _values_of(
        self, tape: Tape, rows: npt.NDArray[np.int64], array: VariantArray | None
    ) -> tuple[list[Tape], npt.NDArray[np.int64], StringCounts]:
        """Return the values of parsed rows with typed strings (several or none per row with a `root` that was not
        applied to the text), the row of each value, and counts of typed strings.
        """
        layout = self.options.layout
        root = layout.path_in_values if self.options.json_column is None else layout.root
        if root is not None and root.segments:
            outer = trusted_array(shredded_rows(tape).storage()) if array is None else array
            array, value_rows = values_at(outer, root)
            rows = rows[value_rows]
        if array is None:
            tape, typed = self.options.string_types.apply(tape)
            return [tape], rows, typed
        parts = [*map(self.options.string_types.apply, array_tapes(array, 0))] or [(_null_rows(0), Counter())]
        return [part for part, _ in parts], rows, sum((typed for _, typed in parts), Counter())

    def _check(
        self, texts: chunks.RowTexts, tapes: Sequence[Tape], rows: npt.NDArray[np.int64]
    ) -> tuple[ContractCounts, dict[int, VariantError]]:
        """Return the violations of the contract, and the errors of the rows to quarantine."""
        if (contract := self.options.contract) is None:
            return ContractCounts(), {}
        number, errors = lambda row: texts.number(int(rows[row])), dict[int, VariantError]()
        counts, reasons = contract.check(tapes, number, file=texts.file, unit=texts.unit)
        for row, reason in reasons.items():
            errors.setdefault(int(rows[row]), ContractError(reason))
        return counts, errors


def _in_file(split: Split, step: Callable[[], ChunkResult[Result]]) -> ChunkResult[Result]:
    """Run a step, and return its outcome with the name of its file."""
    return replace(step(), file=without_secrets(split.file.name))


def _null_rows(count: int) -> Tape:
    """Return the tape of rows that are SQL NULL."""
    zeros = np.zeros(count, np.int64)
    return parse_text(np.zeros(0, np.uint8), zeros, zeros, zeros.astype(np.uint8)).tape


def _advice(file: str | None, options: TextOptions, line: int, text: bytes) -> str:
    """Return what to do about a line that is not JSON; names of files and first lines indicate other formats."""
    is_header = line == 1 and re.match(rb'"?[A-Za-z_][^{}\[\]]*[,;\t|]', text) is not None
    advice = "fix the line, or skip invalid lines with on_error='quarantine'"
    if options.json_column is not None:
        return advice
    if (is_csv(file) or is_header) and options.layout.format != "csv":
        return "for CSV set input_format='csv'"
    suffix = PurePosixPath(file or "").suffix[1:]
    if suffix.isalpha() and suffix.lower() not in _JSON_SUFFIXES:
        return f"{advice}; if the file is not JSON, leave it out with exclude='*.{suffix}'"
    return advice
