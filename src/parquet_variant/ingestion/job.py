"""`IngestJob`: the steps of an ingest (plan, infer, write, commit), which are the same on every engine.

A job that fails leaves nothing behind. `request` checks the options, an engine (`io.parallel`, `spark.engine`) runs the
tasks, `task` is the work of one task, `destination` writes and commits the files, and `inference` infers the schema.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, islice
from math import ceil
from operator import add, attrgetter
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, VariantFileError, bad_option, strings_of, without_secrets
from parquet_variant.files.parquet.writing.conform import WriterOptions, check_bloom_paths, conform_table
from parquet_variant.files.parquet.writing.encodings import ColumnEncodings, known_encodings
from parquet_variant.files.parquet.writing.writer import compared_with_unshredded
from parquet_variant.inference.infer import infer
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.typed_strings import TypedStrings
from parquet_variant.ingestion import table_sources, task
from parquet_variant.ingestion.destination import Destination, FileDestination, new_files
from parquet_variant.ingestion.formats.layout import TextLayout
from parquet_variant.ingestion.key_columns import KeyColumns, with_key_types
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.ingestion.sources.chunks import compressed_share
from parquet_variant.ingestion.sources.input_files import COMPRESSION_RATIO, InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split, plan_splits
from parquet_variant.io.directories import partition_texts
from parquet_variant.io.parallel import Engine, grouped
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.support.records import Record
from parquet_variant.tables.row_input import keep_types, kept_types
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

_MAX_SPLIT_BYTES = 128 << 20
_MIN_SPLIT_BYTES = 4 << 20
# Tasks with less text are joined into one that writes a file in several threads.
_MIN_THREADED_BYTES = 64 << 20
# The default sample: 8 MiB of text, or one eighth of a larger input, because parsing dominates the cost of inference.
# A sample of up to 8 MiB is read where the job is planned, because a Spark job for it would take longer.
_SAMPLE_BYTES = 8 << 20
_MIN_SAMPLE_SHARE = 1 / 8
# The number of tasks for which a schema is inferred, so that the schema does not depend on the engine or its CPUs.
_TYPICAL_TASKS = 4
# The number of files whose codec is looked up to estimate the size of the text.
_CODEC_SAMPLE_FILES = 64
# The text from which encodings are chosen; it contains at least as many rows as that needs.
_ENCODING_SAMPLE_BYTES = 2 << 20
# Inputs are written with several schemas to compare the sizes, if they have at least this size or number of columns.
# Smaller files with fewer columns take little space with any schema. Of inputs larger than the sample, the rows of one
# file are written; in the files of inputs larger than the last size, typed columns take less space than they save.
_MIN_TRIAL_BYTES, _MIN_TRIAL_COLUMNS = 64 << 10, 20
_MAX_TRIAL_BYTES = 32 << 20
# Options of files that affect their size.
_TRIAL_OPTIONS = ("compression", "compression_level", "effort", "row_group_bytes", "writer")


class _FilesPlan(Record):
    """What the files of an ingest will contain.

    `columns`: all columns but those of partitions; `keys`: those of them that `columns=` takes out of the Variant.
    `table_types`: the typed paths of the table, of which values of other types are counted.
    """

    schema: ShreddingSchema
    columns: list[pa.Field]
    keys: KeyColumns
    table_types: dict[VariantPath, ShreddingSchema]
    inference: InferenceResult | None
    hints: tuple[str, ...]


class IngestJob:
    """An ingest whose sources were found and whose destination was opened. Nothing is written before `run`."""

    def __init__(self, request: IngestRequest) -> None:
        self._rows, text = request.rows, request.text
        self._files = find_files(request.sources, text) if request.rows is None else []
        csv = text.layout.csv
        if text.json_column is not None and csv.infer_types and not csv.types:
            csv = table_sources.with_inferred_types(self._files, (text.json_column, *text.more_columns), csv)
            text = replace(text, layout=replace(text.layout, csv=csv))
        for path, option in task.option_paths(request).items():
            if path.segments[0] in request.keys and option in ("sort_by", "bloom_filters", "partition_by"):
                remedy = f", or give sort_by={path.segments[0]!r}" if option == "sort_by" else ""
                raise bad_option(
                    f"{option}= names {path.shorthand}, which columns= takes out of the Variant: leave it out of "
                    f"columns={remedy}"
                )
        # The sources are not sent to the tasks, which receive their splits.
        self._request = replace(request, sources=(), rows=None, text=text)
        self._source_names = tuple(map(without_secrets, request.sources)) or ("the rows",)
        self._destination = self._request.open()
        self._loaded: dict[str, Any] = {}  # The files that are not read again, by fields of the result.
        self._has_unknown = False  # Whether the destination has rows of files that it does not remember.
        if self._destination is not None:
            self._held = self._destination.columns()  # raises for a table without the Variant column
            if isinstance(self._destination, FileDestination):
                self._destination.refuse_sources(self._files)
            self._request = replace(self._request, partition_by=self._destination.request.partition_by)
            if request.only_new:
                loads = self._destination.loads()
                new, skipped, changed = new_files(self._files, () if request.mode == "overwrite" else loads)
                self._files, self._destination.records = list(new), list(new.values())
                self._loaded = {"skipped": skipped, "changed": changed}
                self._has_unknown = not loads and request.mode == "append" and any(self._destination.data_files())

    def run(self, engine: Engine, warn: Callable[[str], None] | None = None) -> IngestResult:
        """Run all steps and return the result; if a step fails, restore the destination. Raises as `pv.ingest` does.

        `warn`: receives warnings about the data before anything is written; by default `warnings.warn`.
        """
        destination = self._destination
        if destination is None:
            return IngestResult(self._request.dest, ())
        if self._loaded and not self._files:
            return IngestResult(destination.dest, (), **self._loaded)
        try:
            if self._rows is None:
                tasks = _plan_tasks(engine, self._files, self._request.split_bytes, self._request.text)
            else:
                tasks = [[split] for split in table_sources.split_rows(self._rows, engine.parallelism)]
            plan = self._plan_files(engine, destination, tasks)
            tasks = self._write_tasks(engine, tasks)
            for warning in task.partition_warnings(self._request, tasks):
                (warn or partial(warnings.warn, stacklevel=3))(warning)
            written = self._write(engine, destination, plan, tasks)
            report = None
            if (check := self._request.text.contract) is not None:
                report = check.report(", ".join(self._source_names), written.counts.broken)
                check.raise_for(report)
            hints = (*plan.hints, *self._hints(destination, written))
            files = destination.commit(written.files, written.quarantine)
        except BaseException:
            destination.abort()
            raise
        return IngestResult(
            dest=destination.dest,
            files=tuple(files),
            rows=written.rows,
            bad_records=written.bad,
            bad_records_path=destination.bad_records_path if written.bad else None,
            bytes_read=written.counts.text_bytes,
            bytes_written=written.file_bytes,
            schema=plan.schema,
            columns={name: node.type_name if node.type else "variant" for name, node in plan.keys.nodes.items()},
            inference=plan.inference,
            typed_strings=TypedStrings.of_counts(written.counts.typed),
            inexact_numbers=written.counts.inexact,
            first_inexact=written.counts.first_inexact,
            hints=hints,
            contract=report,
            **self._loaded,
        )

    def _plan_files(self, engine: Engine, destination: Destination, tasks: list[list[Split]]) -> _FilesPlan:
        """Infer and check what the files will contain: with the types of the table that they are appended to."""
        fields = self._table_fields(tasks, destination)
        request, text, table_schemas = self._request, self._request.text, dict[str, ShreddingSchema]()
        existing = self._held if request.mode == "append" else pa.schema([])
        types = KeyColumns.of_columns(existing, request.keys)
        if request.schema is None and request.schema_of == "table" and len(existing):
            table_schemas = kept_types(destination.data_files(), [request.column, *request.text.more_columns])
        table = table_schemas.get(request.column)
        leaves = [*(() if table is None else table.leaves()), *types.typed.items()]
        string_types = text.string_types.with_types(task.string_types(leaves)) if leaves else text.string_types
        self._request = replace(request, text=replace(text, string_types=string_types))
        if string_types.auto:
            string_types = string_types.resolved(self._profile(engine, tasks, self._request.text))
            self._request = replace(request, text=replace(text, string_types=string_types))
        inference, hints = self._infer(engine, tasks, types) if self._request.schema is None else (None, [])
        schema = self._request.schema if inference is None else inference.schema
        assert schema is not None
        if table is not None:
            schema = keep_types(schema, table)
        keys, schema = types.completed(schema, request.keys)
        self._request = replace(self._request, text=self._with_schemas(engine, tasks, table_schemas))
        if inference is not None:
            sampled = [decision.path for decision in inference.decisions]
            missing = task.option_paths(self._request).keys() - sampled
            task.check_paths(self._request, missing, (path.segments for path in sampled), sampled=True)
        check_bloom_paths(schema, strings_of("bloom_filters", self._request.write.get("bloom_filters") or ()))
        typed = {} if table is None else {path: leaf for path, leaf in schema.leaves() if leaf.kind == "primitive"}
        variant = pa.field(request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        made = [*keys.fields, variant, *([pa.field(name, pa.string())] if (name := request.file_column) else ())]
        columns = [*chain(*(made if field.name == variant.name else [field] for field in fields))] or made
        names = pa.schema([*columns, *request.partition_by.fields]).names
        if len(existing) and not set(names) <= set(existing.names):
            destination.check_columns(names)
        decisions = schema.leaves() if inference is None else ((d.path, None) for d in inference.decisions)
        keys_of_rows = {path.segments[:1] for path, _ in decisions}
        if unfilled := [name for name in existing.names if name not in names and (name,) in keys_of_rows]:
            hints.append(
                f"{destination.dest} has columns of the same names as keys of the rows, and this load does not fill "
                f"them: {', '.join(unfilled)}; to fill them, use columns={[*request.keys, *unfilled]}"
            )
        return _FilesPlan(schema, columns, keys, typed, inference, tuple(hints))

    def _write(
        self, engine: Engine, destination: Destination, files: _FilesPlan, tasks: list[list[Split]]
    ) -> task.WrittenSplits:
        """Write the files of all tasks; without any row, one file that has the columns."""
        request, schema = self._request, files.schema
        plan = task.TaskPlan(
            request,
            destination,
            schema,
            threads=_threads(engine, tasks),
            missing=frozenset(task.option_paths(request)),
            table_types=files.table_types,
            keys=files.keys,
        )
        encodings = planned_encodings(request, schema, tasks, engine.parallelism)
        columns = pa.schema([*files.columns, *request.partition_by.fields])
        destination.begin(schema, columns, threads=plan.threads, encodings=encodings)
        parts = engine.run("write", plan.run, tasks, _stored_bytes(tasks))
        written = reduce(add, parts) if parts else task.WrittenSplits()
        if written.rows or written.bad:
            return written
        # The path of rows that no document has may be misspelled.
        layout, is_known = request.text.layout, request.schema is not None or destination.holds_data
        if not is_known or (layout.root is not None and layout.prefix is None):
            raise _no_value([] if request.text.of_dataframe else self._files, request.text)
        empty: dict[str, Any] = {field.name: pa.array([], field.type) for field in files.columns}
        empty[request.column] = shred_variant(VariantArray.from_pylist([]), schema)
        no_rows = destination.write_no_rows(empty)
        return written + task.WrittenSplits(no_rows.files, file_bytes=no_rows.bytes)

    def _hints(self, destination: Destination, written: task.WrittenSplits) -> Iterator[str]:
        """Yield what the rows say about the options; raise an error for a path that is in none of them."""
        if written.rows:
            findings = written.findings
            yield from findings.notes(self._request)
            yield from task.check_paths(self._request, findings.missing, findings.other_paths)
        in_paths = {name for file in self._files for name in partition_texts(file.name.split("/")[:-1])}
        if self._request.file_column is None and (names := sorted(in_paths - {*self._request.keys})):
            yield f"{', '.join(names)} in the sources' paths was not read: file_column= keeps the path of each row"
        if self._has_unknown:
            yield (
                f"{destination.dest} held rows before its first load with only_new=, and does not remember their "
                "files: if these are among the sources, their rows are there twice"
            )

    def _write_tasks(self, engine: Engine, tasks: list[list[Split]]) -> list[list[Split]]:
        """Return the tasks that write: few with several threads for a small input, as each file repeats work."""
        if isinstance(self._destination, FileDestination):
            return [list(chain(*tasks))]
        request, splits = self._request, list(chain(*tasks))
        is_text = self._rows is None and request.text.json_column is None
        is_in_threads = engine.local is engine and is_text and request.format != "vortex"
        if not is_in_threads or request.split_bytes or request.partition_by or request.write.get("sort_by"):
            return tasks
        largest = max(_stored_bytes(tasks), default=0)
        # A compressed file is decompressed by one thread, so that every task needs its own.
        if len(tasks) < 2 or largest >= _MIN_THREADED_BYTES or any(split.file.codec for split in splits):
            return tasks
        return grouped(splits, attrgetter("size"), _MIN_THREADED_BYTES)

    def _table_fields(self, tasks: list[list[Split]], destination: Destination) -> list[pa.Field]:
        """Return the output columns if the JSON is a column of a table, under the name of the Variant column.

        Partition columns of the destination that are among them are no longer keys of the JSON.
        """
        request, column = self._request, self._request.text.json_column
        if column is None:
            return []
        csv, more = request.text.layout.csv, request.text.more_columns
        parts = (part for split in chain(*tasks) for part in table_sources.open_rows(split, column, csv, more))
        fields = [
            pa.field(field.name, VARIANT_STORAGE, metadata=EXTENSION_METADATA) if field.name in more else field
            for field in next((rows.schema for _, rows in parts), ())
        ]
        by, taken = request.partition_by, {field.name.lower() for field in fields if field.name != column}
        if by.is_derived:
            by = by.next_to([field.name for field in fields])
            destination.request = replace(destination.request, partition_by=by)
            self._request = replace(request, partition_by=by)
        names = request.column, request.file_column or "", *request.keys, *(field.name for field in by.fields)
        if duplicates := [name for name in names if name.lower() in taken]:
            raise bad_option(
                f"the table already has a column {duplicates[0]}: choose another name with column=, partition_by= "
                "or file_column=, or leave it out of columns="
            )
        return [field.with_name(request.column) if field.name == column else field for field in fields]

    def _infer(self, engine: Engine, tasks: list[list[Split]], types: KeyColumns) -> tuple[InferenceResult, list[str]]:
        """Return the inferred schema, and hints about options that suit the data better; `types`: those of a table."""
        profile = self._profile(engine, tasks, self._request.text)
        hints = list(task.root_hints(profile, self._request.text, len(self._files)))
        inference = infer(profile, self._request.policy)
        keys = [key for key in self._request.keys if key not in types.nodes]
        schema = with_key_types(inference.schema, profile.root, keys)
        string_types = self._request.text.string_types
        suggested = inference.suggested_types if self._request.mode == "append" else ()
        # The table has timestamps at these paths, and the new rows numbers that count time.
        epochs = [s for s in suggested if s.counts_time and string_types.types.get(s.path) == "timestamp!"]
        string_types = replace(string_types, types={**string_types.types, **{s.path: s.type for s in epochs}})
        self._request = replace(self._request, text=replace(self._request.text, string_types=string_types))
        suggestions = tuple(s for s in inference.suggested_types if s not in epochs)
        inference = replace(inference, schema=schema, suggested_types=suggestions)
        files = self._trial_files(inference, tasks)
        if not files:
            return inference, hints
        options = {name: self._request.write[name] for name in _TRIAL_OPTIONS if name in self._request.write}
        return compared_with_unshredded(inference, files, options, engine.local.parallelism), hints

    def _trial_files(self, inference: InferenceResult, tasks: list[list[Split]]) -> list[VariantArray]:
        """Return the rows in files, which depend only on the text, if they are small and other schemas are allowed."""
        request = self._request
        fixed = request.partition_by or request.keys or request.text.json_column or request.text.sample is not None
        if fixed or request.format == "vortex" or inference.policy != AutoPolicy():
            return []
        if {"sort_by", "bloom_filters"} & {name for name, value in request.write.items() if value}:
            return []
        text_bytes, columns = self._text_bytes(tasks), sum(1 for _ in inference.schema.leaves())
        if text_bytes > _MAX_TRIAL_BYTES or (text_bytes < _MIN_TRIAL_BYTES and columns < _MIN_TRIAL_COLUMNS):
            return []
        file_bytes = text_bytes if request.one_file else _split_bytes(text_bytes, _TYPICAL_TASKS)
        on_error = "quarantine" if request.text.on_error == "fail" else request.text.on_error
        lenient = replace(request.text, on_error=on_error, chunk_bytes=_MIN_SPLIT_BYTES)
        splits = [Split(file) for file in self._files]
        chunks = None if text_bytes <= _SAMPLE_BYTES else ceil(file_bytes / _MIN_SPLIT_BYTES)
        arrays = [rows for rows in islice(task.read_arrays(splits, lenient), chunks) if len(rows)]
        files = ceil(text_bytes / _MIN_SPLIT_BYTES) if chunks is None else 1
        if len(arrays) <= files:
            return arrays
        rows = VariantArray.concat(arrays)
        return [rows[len(rows) * file // files : len(rows) * (file + 1) // files] for file in range(files)]

    def _text_bytes(self, tasks: list[list[Split]]) -> int:
        """Return the size of the text, which is an estimate for compressed files."""
        text_bytes = sum(_stored_bytes(tasks))
        if self._request.text.json_column is None:
            # Few files show the codec, because most inputs have files of one kind.
            sample_files = self._files[:: ceil(len(self._files) / _CODEC_SAMPLE_FILES)]
            compressed_bytes = sum(file.size for file in sample_files if file.codec)
            compressed_share = compressed_bytes / max(sum(file.size for file in sample_files), 1)
            text_bytes = round(text_bytes * (1 + (COMPRESSION_RATIO - 1) * compressed_share))
        return text_bytes

    def _with_schemas(
        self, engine: Engine, tasks: list[list[Split]], table_schemas: Mapping[str, ShreddingSchema]
    ) -> TextOptions:
        """Return how text is read, with the schemas of further columns of JSON; `table_schemas`: those of a table."""
        text, schemas = self._request.text, dict[str, ShreddingSchema]()
        policy = self._request.policy if isinstance(self._request.policy, AutoPolicy) else None
        on_error = "quarantine" if text.on_error == "fail" else text.on_error
        plain = TextOptions(
            on_error=on_error, layout=TextLayout(csv=text.layout.csv), json=text.json, sample=text.sample
        )
        for name in text.more_columns:
            schema = infer(self._profile(engine, tasks, replace(plain, json_column=name)), policy).schema
            schemas[name] = keep_types(schema, table_schemas[name]) if name in table_schemas else schema
        return replace(text, more_columns=schemas)

    def _profile(self, engine: Engine, tasks: list[list[Split]], text: TextOptions) -> Profile:
        """Return the profile of a sample of the input."""
        text_bytes, sample = self._text_bytes(tasks), text.sample
        if sample is None:
            # DuckDB reads typed columns slowly if a key that no sampled row has is in the residual of an object.
            least = 1.0 if "duckdb" in getattr(self._request.policy, "readers", ()) else _MIN_SAMPLE_SHARE
            sample = max(least, min(1.0, _SAMPLE_BYTES / max(text_bytes, 1)))
        profiler = engine.local if round(sample * text_bytes) <= _SAMPLE_BYTES else engine
        return _profile_tasks(profiler, tasks, replace(text, sample=sample))


def profile_files(engine: Engine, files: list[InputFile], text: TextOptions) -> Profile:
    """Return the profile of JSON files or of tables with a JSON column, as an ingest computes it (see `pv.profile`)."""
    tasks = _plan_tasks(engine, files, None, text)
    profile = _profile_tasks(engine, tasks, text)
    if text.string_types.auto:
        profile = _profile_tasks(engine, tasks, replace(text, string_types=text.string_types.resolved(profile)))
    if not profile.rows:
        raise _no_value(files, text)
    return profile


def find_files(sources: Iterable[str | os.PathLike[str]], text: TextOptions) -> list[InputFile]:
    """Return the text files, or the tables with a JSON column, that the sources name."""
    if text.json_column is None:
        return find_input_files(sources, text.exclude, pipes=True)
    return table_sources.find_tables(sources, text.exclude)


def _stored_bytes(tasks: list[list[Split]]) -> list[int]:
    return [sum(split.size for split in splits) for splits in tasks]


def _profile_tasks(engine: Engine, tasks: list[list[Split]], text: TextOptions) -> Profile:
    work = partial(task.profile_splits, text, _threads(engine, tasks))
    profile = engine.reduce("infer the schema", work, tasks, Profile.merge, _stored_bytes(tasks))
    is_text = text.json_column is None and len(tasks) > 0
    input_bytes = sum(_stored_bytes(tasks))
    data = replace(
        profile.data,
        share=1.0 if text.sample is None else text.sample,
        files=max(ceil(input_bytes / _split_bytes(input_bytes, _TYPICAL_TASKS)), 1),
        compressed_bytes=compressed_share(tasks[0][0], text.layout) * profile.data.text_bytes if is_text else 0.0,
    )
    return replace(profile, data=data)


def _no_value(files: list[InputFile], text: TextOptions) -> VariantFileError:
    root = text.layout.root
    if root is not None:
        return VariantFileError(
            f"no document has a value at {root.shorthand}: change root=, or omit it to see the documents",
            reason="no-rows",
        )
    names = (", ".join(file.name for file in files[:3]) + (", …" if len(files) > 3 else "")) or "the rows"
    return VariantFileError(f"no JSON value in {names}: name sources that contain at least one", reason="no-rows")


def _plan_tasks(
    engine: Engine, files: list[InputFile], split_bytes: int | None, text: TextOptions
) -> list[list[Split]]:
    plan: Callable[..., list[Split]] = table_sources.plan_table_splits
    if text.json_column is None:
        plan = partial(plan_splits, layout=text.layout)
    if split_bytes is None:
        split_bytes = _split_bytes(sum(split.size for split in plan(files, _MAX_SPLIT_BYTES)), engine.parallelism)
    return grouped(plan(files, split_bytes), attrgetter("size"), split_bytes)


def _split_bytes(input_bytes: int, tasks: int) -> int:
    """Return the size of splits of which that many are read at a time, and in the last round, too."""
    rounds = ceil(input_bytes / (tasks * _MAX_SPLIT_BYTES)) or 1
    return max(ceil(input_bytes / (tasks * rounds)), _MIN_SPLIT_BYTES)


def _threads(engine: Engine, tasks: Sequence[Any]) -> int:
    """Return the number of threads per task, so that no core is idle."""
    return max(1, min(engine.parallelism, os.cpu_count() or 1) // max(len(tasks), 1))


def planned_encodings(
    request: IngestRequest, schema: ShreddingSchema, tasks: Sequence[Sequence[Split]], parallelism: int
) -> ColumnEncodings | None:
    """Return the encodings of the columns that have values in the first rows of the input, for all tasks.

    None if every task chooses its encodings: if all tasks run at the same time, because they would wait for the choice,
    or if the files are not Parquet.
    """
    if request.format == "vortex" or (len(tasks) <= parallelism and not request.partition_by):
        return None
    try:
        rows = task.first_rows(tasks[0], schema, request.text, _ENCODING_SAMPLE_BYTES)
    except VariantError:
        return None  # the task raises the error with its position
    if rows is None or not len(rows):
        return None
    names = {"compression", "compression_level", "effort"} & request.write.keys()
    options = WriterOptions(**{name: request.write[name] for name in names})
    table, _ = conform_table({request.column: rows}, ())
    return known_encodings(table, options.compression, options.compression_level, options.effort)
