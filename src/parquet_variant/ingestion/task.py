"""The work of one task of an ingest on any engine: two passes over its splits, from text to a profile and to rows.

`batches` reads and parses the text, the engines run the tasks, and `destination` writes and commits the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.inference.path_table import ProfiledData
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.batches import Pass
from parquet_variant.ingestion.destination import JSON_TEXT, Columns, Destination
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.result import ReadCounts
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, StagedFile
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.report_text import counted
from parquet_variant.types import DECIMAL_IDS, EXACT_NUMERIC, INTEGER_IDS, TYPE_OF_ARROW, TYPE_OF_ID, PrimitiveId
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

_KINDS = 32
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, PrimitiveId.FLOAT, PrimitiveId.DOUBLE)
# Kinds of values in messages.
_NAMES = {int(kind): TYPE_OF_ID[kind].type.value for kind in PrimitiveId} | {21: "array", 22: "object"}
_NAMES |= {int(kind): "number" for kind in _NUMBERS}
# Variants as the shredding kernel returns them, or combined into an array.
Shredded: TypeAlias = ShreddedRows | VariantArray


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The second pass, by which all tasks of a job write their rows. It can be pickled.

    `missing`: paths that options name, which the task looks for in its rows.
    `kept`: the typed paths of a table, of which values of other types are counted.
    """

    request: IngestRequest
    destination: Destination
    schema: ShreddingSchema
    threads: int = 1
    missing: frozenset[VariantPath] = frozenset()
    kept: Mapping[VariantPath, ShreddingSchema] = field(default_factory=dict)

    def run(self, task: int, attempt: int, splits: Sequence[Split]) -> WrittenSplits:
        """Write the rows of some splits; `attempt` separates the files of a task from those of its other attempts.

        Invalid lines are written to a staged file. Raises `JsonError` or `VariantFileError` as `profile_splits` does.
        """
        request, staging, total = self.request, self.destination.staging, WrittenSplits()
        findings = Findings(set(self.missing), leaves=dict(self.kept))
        text, name = request.text, f"{BAD_RECORDS}/{staging.file_name(task, extension='ndjson')}"
        with ExitStack() as stack:

            def batches() -> Generator[Columns]:
                nonlocal total
                bad_stream = None
                work = partial(_shredded_tape, self.schema, findings)
                for batch in Pass(text, work).results(splits, self.threads):
                    total = replace(total, bad=total.bad + len(batch.bad), counts=total.counts + batch.counts)
                    if batch.bad:
                        if bad_stream is None:
                            file = StagedFile(staging.attempt(task, attempt), name)
                            total = replace(total, quarantine=(file,))
                            stack.enter_context(write_errors(file.path))
                            filesystem, path = filesystem_of(file.path)
                            filesystem.create_dir(path.rpartition("/")[0], recursive=True)
                            bad_stream = stack.enter_context(filesystem.open_output_stream(path))
                        bad_stream.write("".join(f"{record.to_json()}\n" for record in batch.bad).encode())
                    shredded = _joined(batch.results)
                    if len(shredded):
                        yield self._columns(shredded, batch.table)

            # A failed write must end the threads here: the garbage collector may run where they cannot be joined.
            written = self.destination.write(stack.enter_context(closing(batches())), task, attempt)
        return replace(total, files=written.files, rows=written.rows, file_bytes=written.bytes, findings=findings)

    def _columns(self, shredded: Shredded, table: pa.Table | None) -> Columns:
        """Return the columns to write, with the Variants in the place of the JSON column of a table."""
        request, columns = self.request, dict[str, Any]()
        for name, column in {} if table is None else zip(table.column_names, table.columns, strict=True):
            if name != request.text.json_column:
                columns[name] = column
                continue
            columns[request.column] = shredded
            if request.format == "vortex":
                columns[JSON_TEXT] = column
        return columns or {request.column: shredded}


# The largest number of paths that are searched for similar ones.
_MAX_PATHS = 20_000
Segments: TypeAlias = tuple[Segment, ...]


@dataclass(slots=True)
class Findings:
    """What the rows of a task show. It can be pickled; several threads look at tapes.

    `missing`, `other_paths`: paths of options that no row has yet, and other paths of the rows, for suggestions.
    `leaves`: typed paths; empty if their values are not counted.
    `other_types`: counts of values whose path is shredded as another type, by path, shredded type and kind.
    """

    missing: set[VariantPath] = field(default_factory=set)
    other_paths: set[Segments] = field(default_factory=set)
    leaves: dict[VariantPath, ShreddingSchema] = field(default_factory=dict)
    other_types: list[Counter[tuple[str, str, int]]] = field(default_factory=list)

    def look(self, tape: Tape) -> None:
        """Remove the missing paths that a tape has, and count its values of other types."""
        if self.missing and tape.rows:
            names = [key.decode("utf-8", "replace") for key in tape.key_list]
            paths: list[Segments] = [()]
            for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
                paths.append((*paths[parent], names[key] if key >= 0 else WILDCARD))
            seen = set(paths)
            # In place, because other threads remove paths at the same time.
            for path in tuple(self.missing):
                # The path of all elements stands for positions.
                if tuple(part if isinstance(part, str) else WILDCARD for part in path.segments) in seen:
                    self.missing.discard(path)
            if self.missing and len(self.other_paths) < _MAX_PATHS:
                self.other_paths.update(paths[1:_MAX_PATHS])
        if not self.leaves or not len(tape.nodes):
            return
        tags = tape.nodes[:, 0]
        tags = tags[tags & DROPPED == 0]
        table = np.bincount(path_ids(tags) * _KINDS + (tags & 0xFF), minlength=len(tape.paths) * _KINDS)
        found: Counter[tuple[str, str, int]] = Counter()
        for path, leaf in self.leaves.items():
            if (number := tape.find_path(path.segments)) is not None:
                kinds = table[number * _KINDS : (number + 1) * _KINDS]
                for kind in np.flatnonzero(kinds).tolist():
                    if kind not in _fitting(leaf.type):
                        found[path.shorthand, leaf.to_ddl(), kind] += int(kinds[kind])
        if found:
            self.other_types.append(found)

    def __add__(self, other: Findings) -> Findings:
        both = self.missing & other.missing, self.other_paths | other.other_paths
        return Findings(*both, self.leaves, [*self.other_types, *other.other_types])

    def notes(self) -> Iterator[str]:
        """Yield a line per path about values that do not have the type of the path."""
        total = sum(self.other_types, Counter[tuple[str, str, int]]())
        for path, name in sorted({(path, name) for path, name, _ in total}):
            shown: Counter[str] = Counter()
            for (other, _, kind), count in total.items():
                if other == path:
                    shown[_NAMES[kind]] += count
            parts = " and ".join(counted(count, name) for name, count in shown.most_common())
            yield (
                f"{parts} at {path} {'does' if shown.total() == 1 else 'do'} not have the type {name} of the table: "
                "typed columns are NULL there; schema_of='file' types the new files by their own values"
            )


def _fitting(type: pa.DataType | None) -> frozenset[int]:
    """Return the kinds of values that a typed column holds, and null."""
    if pa.types.is_decimal(type) or TYPE_OF_ARROW[type].type in EXACT_NUMERIC:
        kinds: Iterable[int] = (*INTEGER_IDS, *DECIMAL_IDS)
    elif pa.types.is_floating(type):
        kinds = _NUMBERS
    else:
        kinds = TYPE_OF_ARROW[type].ids
    return frozenset((*map(int, kinds), int(PrimitiveId.NULL)))


@dataclass(frozen=True, slots=True)
class WrittenSplits:
    """The result of the second pass: files that are written and not committed. The results of tasks can be added.

    `files`: the data files; `quarantine`: the staged files of bad records.
    `file_bytes`: size of the data files.
    `findings`: paths of options that no row has, and values without the type of the table.
    """

    files: tuple[Any, ...] = ()
    quarantine: tuple[StagedFile, ...] = ()
    rows: int = 0
    bad: int = 0
    file_bytes: int = 0
    counts: ReadCounts = field(default_factory=ReadCounts)
    findings: Findings = field(default_factory=Findings)

    def __add__(self, other: WrittenSplits) -> WrittenSplits:
        return WrittenSplits(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


def profile_splits(text: TextOptions, threads: int, task: int, attempt: int, splits: Sequence[Split]) -> Profile:
    """Run the first pass: profile the paths of the valid rows. Lines that will be quarantined are skipped.

    `task`, `attempt`: those of an engine, which has no use for them here.
    """
    total, sample, check = Profile(), 1.0 if text.sample is None else text.sample, text.contract
    if check is not None and check.on_violation != "quarantine":  # the contract leaves no rows out
        text = replace(text, contract=None)
    for batch in Pass(text, Profile.of_tape, sample).results(splits, threads):
        data = ProfiledData(text_bytes=batch.counts.text_bytes)
        profile = reduce(Profile.merge, batch.results, Profile())
        total = total.merge(replace(profile, typed_strings=batch.counts.typed, data=data))
    return total


def read_arrays(splits: Sequence[Split], text: TextOptions) -> Iterator[VariantArray]:
    """Yield the rows of some splits in batches, not shredded."""
    return (_array(_joined(step().results)) for step in Pass(text, partial(_shredded_tape, None, None)).steps(splits))


def first_rows(
    splits: Sequence[Split], schema: ShreddingSchema, text: TextOptions, text_bytes: int
) -> VariantArray | None:
    """Return the valid rows in about `text_bytes` at the start of some splits, shredded; None if there is no text."""
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(Pass(lenient, partial(_shredded_tape, schema, None)).steps(splits), None)
    return None if step is None else _array(_joined(step().results))


def _shredded_tape(schema: ShreddingSchema | None, findings: Findings | None, tape: Tape) -> Shredded:
    if findings is not None:
        findings.look(tape)
    return shredded_rows(tape, schema=schema, per_batch=True)


def _joined(parts: Sequence[Shredded]) -> Shredded:
    return parts[0] if len(parts) == 1 else VariantArray.concat(list(map(_array, parts)))


def _array(rows: Shredded) -> VariantArray:
    return rows if isinstance(rows, VariantArray) else trusted_array(rows.storage(), fits_files=True)
