"""The work of one task of an ingest on any engine, two passes from text to a profile and to rows; and what its rows say
about the options: paths that options name, types of the table, hints and warnings.

`batches` reads and parses the text, the engines run the tasks, and `destination` writes and commits the files.

A path of an option that no row has is an error before anything is committed. `Findings` proves it over all rows. Hints
and warnings come from a sample; those about partitions come before anything is written, because a table with too many
partitions takes long to write and to remove. An append shreds a path as the table does (`tables.row_input`), and reads
strings as dates, timestamps or UUIDs where the table has these; values of other types remain readable as Variants, and
are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import field, fields, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.errors import VariantError
from parquet_variant.inference.path_table import ProfiledData
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.typed_strings import TYPES_OF_STRINGS
from parquet_variant.ingestion.batches import Pass
from parquet_variant.ingestion.destination import JSON_TEXT, Columns, Destination
from parquet_variant.ingestion.key_columns import KeyColumns
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.result import ReadCounts
from parquet_variant.ingestion.sources.input_files import COMPRESSION_RATIO
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, StagedFile
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.similar_paths import similar_path
from parquet_variant.query.selection import read_selection
from parquet_variant.support.records import Record, counted
from parquet_variant.tables.partitions import MANY_PARTITIONS, rows_by_key
from parquet_variant.types import (
    DECIMAL_IDS,
    EXACT_NUMERIC,
    INTEGER_IDS,
    TYPE_OF_ARROW,
    TYPE_OF_ID,
    PrimitiveId,
    VariantType,
)
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, parse_pattern

_KINDS = 32
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, PrimitiveId.FLOAT, PrimitiveId.DOUBLE)
# Kinds of values in messages.
_NAMES = {int(kind): TYPE_OF_ID[kind].type.value for kind in PrimitiveId} | {21: "array", 22: "object"}
_NAMES |= {int(kind): "number" for kind in _NUMBERS}
# Variants as the shredding kernel returns them, or combined into an array.
Shredded: TypeAlias = ShreddedRows | VariantArray


class TaskPlan(Record):
    """The second pass, by which all tasks of a job write their rows. It can be pickled.

    `missing`: paths that options name, which the task looks for in its rows.
    `table_types`: the typed paths of a table, of which values of other types are counted.
    """

    request: IngestRequest
    destination: Destination
    schema: ShreddingSchema
    threads: int = 1
    missing: frozenset[VariantPath] = frozenset()
    table_types: Mapping[VariantPath, ShreddingSchema] = field(default_factory=dict)
    keys: KeyColumns = field(default_factory=KeyColumns)

    def run(self, task: int, attempt: int, splits: Sequence[Split]) -> WrittenSplits:
        """Write the rows of some splits; `attempt` separates the files of a task from those of its other attempts.

        Invalid lines are written to a staged file. Raises `JsonError` or `VariantFileError` as `profile_splits` does.
        """
        request, staging, total = self.request, self.destination.staging, WrittenSplits()
        findings = Findings(set(self.missing), leaves=dict(self.table_types))
        text, name = request.text, f"{BAD_RECORDS}/{staging.file_name(task, extension='ndjson')}"
        with ExitStack() as stack:
            reading = Pass(text, partial(self._columns_of, findings), by_file=request.file_column is not None)

            def batches() -> Generator[Columns]:
                nonlocal total
                bad_stream = None
                for batch in reading.results(splits, self.threads):
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
                    columns = {name: _concat([part[name] for part in batch.results]) for name in batch.results[0]}
                    if request.file_column is not None and batch.file is not None:
                        columns[request.file_column] = pa.repeat(batch.file, len(columns[request.column]))
                    if len(columns[request.column]):
                        yield self._next_to_others(columns, batch.table)

            # A failed write must end the threads here: the garbage collector may run where they cannot be joined.
            written = self.destination.write(stack.enter_context(closing(batches())), task, attempt)
        return replace(total, files=written.files, rows=written.rows, file_bytes=written.bytes, findings=findings)

    def _columns_of(self, findings: Findings, tape: Tape) -> Columns:
        """Return the columns that are made of some rows: keys of the rows, and the Variants."""
        findings.look(tape)
        columns, variants = self.keys.take(tape)
        findings.count(variants, self.keys.typed, every=True)
        return {**columns, self.request.column: shredded_rows(variants, schema=self.schema, per_batch=True)}

    def _next_to_others(self, made: Columns, table: pa.Table | None) -> Columns:
        """Return the columns to write, with those made of JSON in the place of the JSON column of a table."""
        request, columns = self.request, dict[str, Any]()
        for name, column in {} if table is None else zip(table.column_names, table.columns, strict=True):
            if name != request.text.json_column:
                is_variant = name in request.text.more_columns
                columns[name] = trusted_array(one_chunk(column), fits_files=True) if is_variant else column
                continue
            columns |= made
            if request.format == "vortex":
                columns[JSON_TEXT] = column
        return columns or made


# The largest number of paths that are searched for similar ones.
_MAX_PATHS = 20_000
Segments: TypeAlias = tuple[Segment, ...]


class Findings(Record, frozen=False):
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
            # In place, because other threads remove paths at the same time.
            for path in tuple(self.missing):
                if tape.find_path(path.segments) is not None:
                    self.missing.discard(path)
            if self.missing and len(self.other_paths) < _MAX_PATHS:
                names = [key.decode("utf-8", "replace") for key in tape.key_list]
                paths: list[Segments] = [()]
                for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
                    paths.append((*paths[parent], names[key] if key >= 0 else WILDCARD))
                self.other_paths.update(paths[1:_MAX_PATHS])
        self.count(tape, self.leaves)

    def count(self, tape: Tape, leaves: Mapping[VariantPath, ShreddingSchema], *, every: bool = False) -> None:
        """Count the values at some paths that do not have the type of the path; `every`: all values."""
        if not leaves or not len(tape.nodes):
            return
        tags = tape.nodes[:, 0]
        tags = tags[tags & DROPPED == 0]
        table = np.bincount(path_ids(tags) * _KINDS + (tags & 0xFF), minlength=len(tape.paths) * _KINDS)
        counts: Counter[tuple[str, str, int]] = Counter()
        for path, leaf in leaves.items():
            if (number := tape.find_path(path.segments)) is not None:
                kinds = table[number * _KINDS : (number + 1) * _KINDS]
                for kind in np.flatnonzero(kinds).tolist():
                    if every or kind not in _fitting(leaf.type):
                        counts[path.shorthand, leaf.to_ddl(), kind] += int(kinds[kind])
        if counts:
            self.other_types.append(counts)

    def __add__(self, other: Findings) -> Findings:
        both = self.missing & other.missing, self.other_paths | other.other_paths
        return Findings(*both, self.leaves, [*self.other_types, *other.other_types])

    def notes(self, request: IngestRequest) -> Iterator[str]:
        """Yield a line per path about values that do not have the type of the path."""
        keys = {VariantPath((key,)).shorthand for key in request.keys}
        total = sum(self.other_types, Counter[tuple[str, str, int]]())
        for path, name in sorted({(path, name) for path, name, _ in total}):
            shown: Counter[str] = Counter()
            for (other, _, kind), count in total.items():
                if other == path:
                    shown[_NAMES[kind]] += count
            parts = " and ".join(counted(count, name) for name, count in shown.most_common())
            which = "table: typed columns are NULL there; schema_of='file' types the new files by their own values"
            if path in keys:
                which = f"column: the column is NULL there, and {request.column} has the value"
            verb = "does" if shown.total() == 1 else "do"
            yield f"{parts} at {path} {verb} not have the type {name} of the {which}"


def _fitting(type: pa.DataType | None) -> frozenset[int]:
    """Return the kinds of values that a typed column holds, and null."""
    if pa.types.is_decimal(type) or TYPE_OF_ARROW[type].type in EXACT_NUMERIC:
        kinds: Iterable[int] = (*INTEGER_IDS, *DECIMAL_IDS)
    elif pa.types.is_floating(type):
        kinds = _NUMBERS
    else:
        kinds = TYPE_OF_ARROW[type].ids
    return frozenset((*map(int, kinds), int(PrimitiveId.NULL)))


class WrittenSplits(Record):
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
    return (
        _array(_concat(step().results)) for step in Pass(text, partial(shredded_rows, per_batch=True)).steps(splits)
    )


def first_rows(
    splits: Sequence[Split], schema: ShreddingSchema, text: TextOptions, text_bytes: int
) -> VariantArray | None:
    """Return the valid rows in about `text_bytes` at the start of some splits, shredded; None if there is no text."""
    lenient = replace(text, on_error="quarantine", chunk_bytes=text_bytes)
    step = next(Pass(lenient, partial(shredded_rows, schema=schema, per_batch=True)).steps(splits), None)
    return None if step is None else _array(_concat(step().results))


def _concat(parts: Sequence[Any]) -> Any:
    """Return the parts of a column as one."""
    if len(parts) == 1 or isinstance(parts[0], pa.Array):
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return VariantArray.concat(list(map(_array, parts)))


def _array(rows: Shredded) -> VariantArray:
    return rows if isinstance(rows, VariantArray) else trusted_array(rows.storage(), fits_files=True)


# The rows of a document are in an array if it has at least this many elements per document.
_MIN_ELEMENTS = 2
_MAX_DEPTH = 3


def root_hints(profile: Profile, text: TextOptions, files: int) -> Iterator[str]:
    """Yield hints to use ``root``, and to leave out lines that are no documents; `profile` is without ``root``."""
    root, path = profile.root, text.layout.root
    if root is not None and path is not None and root.element_count and set(root.types) == {VariantType.ARRAY}:
        yield (
            f"the value at {path.shorthand} is an array, and each row is such an array: for one row per element, use "
            f"root='{path.shorthand}[*]'"
        )
    action = None if root is None else root.field("index") or root.field("create")
    if action is not None and 0.4 < action.share < 0.6 and (action.field("_index") or action.field("_id")):
        yield (
            "every second row is an action of Elasticsearch's bulk format, not a document: to ingest only documents, "
            "use sed -n 'n;p' FILE | variant ingest - DEST"
        )
    if root is None or path is not None or text.json_column or not profile.data.text_bytes or profile.rows > files:
        return
    places = (place for place in profile if len(place.path) <= _MAX_DEPTH and not place.path.has_wildcard)
    arrays = [a for a in places if (e := a.element) and 2 * e.types.get(VariantType.OBJECT, 0) >= e.count]
    largest = max(arrays, key=lambda array: array.element_count, default=None)
    if largest is not None and largest.element_count >= _MIN_ELEMENTS * profile.rows:
        yield (
            f"the input is {counted(profile.rows, 'document')} with {largest.element_count:,} objects in the array "
            f"{largest.path.shorthand}: to ingest these objects as rows, use root='{largest.path.shorthand}[*]'"
        )


_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
# The sample: the first lines of some splits, which are spread over the input.
_SAMPLE_SPLITS = 16
_SAMPLE_BYTES = 256 << 10


def partition_warnings(request: IngestRequest, tasks: Sequence[Sequence[Split]]) -> Iterator[str]:
    """Yield warnings about over 1,000 partitions, and about partition columns that are null in all sampled rows."""
    if request.partition_by.is_derived or not request.partition_by:
        return
    splits = [split for task in tasks for split in task]
    step = max(1, len(splits) // _SAMPLE_SPLITS)
    sample_splits = splits[::step]
    try:
        parts = [first_rows([split], ShreddingSchema.variant(), request.text, _SAMPLE_BYTES) for split in sample_splits]
    except VariantError:
        return  # the task raises the error with its position
    arrays = [part.to_unshredded() for part in parts if part is not None]
    if not sum(map(len, arrays)):
        return
    sample = VariantArray.concat(arrays)
    rows = len(sample)
    values = request.partition_by.values(sample)
    for column in request.partition_by.columns:
        path = column.name if column.path is None else column.path.shorthand
        texts = set(map(str, values[column.name].drop_null().unique().to_pylist()))
        if not texts:
            yield (
                f"partition_by={column.name}: {path} has no value of type {column.type} in {rows:,} sampled "
                "rows, so that these rows are in the null partition; check the path and the type; types= makes numbers "
                "that count milliseconds timestamp_ms!, and strings such as 20260131 date!"
            )
        elif all(map(_TIME.match, texts)) and len(texts) > len({text[:13] for text in texts}):  # several of an hour
            yield (
                f"partition_by={column.name}: {path} holds points in time, and each is a partition of its own: "
                f"write {column.name}={path}:date for a partition per day"
            )
    read_bytes = sum(min(_text_bytes(split), _SAMPLE_BYTES) for split in sample_splits)
    total_rows = rows * max(1.0, sum(map(_text_bytes, splits)) / max(read_bytes, 1))
    counts = list(map(len, rows_by_key(list(values.values()))))
    count, unseen = len(counts), 0.0
    if total_rows > rows:  # Chao's lower bound of the number of partitions without a sampled row
        once, twice = counts.count(1), counts.count(2)
        unseen = once * (once - 1) / (2 * (twice + 1))
        count = round(min(count + unseen, max(total_rows, count)))
    if count > MANY_PARTITIONS:
        about = "about " if unseen else ""
        names = ", ".join(request.partition_by.names)
        yield (
            f"partition_by={names} makes {about}{count:,} partitions, each with its own files: partition by a value "
            "with fewer distinct values, such as a date"
        )


def _text_bytes(split: Split) -> int:
    """Return the approximate size of the text of a split."""
    return split.size * (COMPRESSION_RATIO if split.part is None and split.file.codec else 1)


def string_types(leaves: Iterable[tuple[VariantPath, ShreddingSchema]]) -> dict[str, str]:
    """Return the types of strings, by path, that `StringTypes` has for the types of a table."""
    names = ((path, leaf.to_ddl()) for path, leaf in leaves)
    return {path.shorthand: f"{name}!" for path, name in names if name in TYPES_OF_STRINGS and path.segments}


def option_paths(request: IngestRequest) -> dict[VariantPath, str]:
    """Return the paths that the options of an ingest name, without patterns, and the option of each.

    >>> request = IngestRequest.of("a.json", "a", sort_by="$.id", types={"$..at": "date", "$.x.at": "date"})
    >>> [(path.shorthand, option) for path, option in option_paths(request).items()]
    [('$.id', 'sort_by'), ('$.x.at', 'types')]
    """
    named: dict[VariantPath, str] = {}

    def add(option: str, paths: Iterable[VariantPath | None]) -> None:
        for path in paths:
            if path is not None and path.segments:
                named.setdefault(path, option)

    for option in ("sort_by", "bloom_filters"):
        names = request.write.get(option) or ()
        keys = (names,) if isinstance(names, str) else tuple(names)
        selection = read_selection({f"key{number}": key for number, key in enumerate(keys)})
        add(option, (selected.path for selected in selection))
    add("partition_by", (column.path for column in request.partition_by.columns))
    add("json_column", request.text.json_paths)
    if request.schema is not None:
        add("schema", (path for path, _ in request.schema.leaves()))
    for steps in map(parse_pattern, request.text.string_types.types):
        if not any(step.any_depth or (step.is_glob and set("*?") & set(str(step.name))) for step in steps):
            add("types", [VariantPath(tuple(step.name for step in steps))])
    return named


def check_paths(
    request: IngestRequest, missing: Collection[VariantPath], existing: Iterable[Segments], *, sampled: bool = False
) -> list[str]:
    """Raise `VariantError` for a path of an option that no row has; return hints about a schema with such paths.

    A path of a schema, or in a sample, is an error only if the data has a similar path: schemas may list optional
    fields. In a sample only the paths of Bloom filters are checked, which need a typed column.
    """
    named, hints = option_paths(request), list[str]()
    other_paths = set(map(VariantPath, existing)) if missing else set()
    for path, option in named.items():
        if path not in missing or (sampled and option != "bloom_filters"):
            continue
        if option == "partition_by":
            by = request.partition_by
            by.check_derived(request.dest, [column.name for column in by.columns if column.path == path])
        nearest = similar_path(path, other_paths)
        message = f"{option}= names {path.shorthand}, and no {'sampled ' * sampled}row has this path"
        if nearest is not None and nearest not in named:
            message += f": did you mean {nearest.shorthand}?"
        elif sampled or option == "schema":
            hints.append(message)
            continue
        raise VariantError(message, reason="no-such-path")
    return hints
