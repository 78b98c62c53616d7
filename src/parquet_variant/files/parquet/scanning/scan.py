"""Queries by path over Parquet files: read only the leaf columns that are needed and the row groups that may match.

Owns running a query over files, split into tasks that other processes can run. Leaves the choice of leaf columns and
row groups, and reading them, to `scan_plan`, and filters to `query.predicate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import check_choice
from parquet_variant.files.parquet.format.arrow_schema import has_null_type, joined_field
from parquet_variant.files.parquet.format.columns import top_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.files.parquet.reading.column_values import DICTIONARY
from parquet_variant.files.parquet.reading.read import fields_of_rows, plain_schema, variant_of_files
from parquet_variant.files.parquet.scanning.projection import constant_statistics
from parquet_variant.files.parquet.scanning.scan_plan import (
    FilePart,
    FilePlan,
    GroupPlan,
    ScanReport,
    ScanTask,
    in_type,
    plan_file,
)
from parquet_variant.io.parallel import grouped, in_order, thread_count
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.query.predicate import columns_of, evaluate
from parquet_variant.query.prune import UNKNOWN, PruningStatistics, may_match
from parquet_variant.query.selection import PlannedQuery, Question
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record, counted

# Number of footers of remote files that are requested at the same time.
FOOTERS = 16
# Uncompressed bytes that are read together if there is no filter.
_BATCH_BYTES = 256 << 20
# Rows from which a row group is read on its own, page by page.
_WORTH_PAGES = 1 << 13
# The share of matching rows up to which a filtered copy costs less than all rows.
_WORTH_FILTERING = 0.75


# Rows of a file that are read at once, with the open ``file``, and whether it ``is_last`` of the file.
Part = TypeVar("Part", bound=Any)


def is_remote(sources: Iterable[ParquetSource]) -> bool:
    """Return whether any file is remote: footers of remote files are requested concurrently."""
    return any(not isinstance(source.filesystem, fs.LocalFileSystem) for source in sources)


def tables_of_parts(
    files: Iterable[tuple[OpenFile, Sequence[Part]]], read: Callable[[Part], pa.Table | None], threads: int
) -> Iterator[pa.Table]:
    """Yield the rows of parts of files in order, read by threads; close a file after its last part.

    At most one finished part is in memory in addition to those that threads read.
    """
    pending: deque[Part] = deque()

    def parts() -> Iterator[Part]:
        for file, file_parts in files:
            for part in file_parts:
                pending.append(part)
                yield part
            if not file_parts:
                file.close()

    tables = in_order(read, parts(), threads)
    try:
        for table in tables:
            part = pending.popleft()
            if part.is_last:
                part.file.refuse_changed()
                part.file.close()
            if table is not None and len(table):
                yield table
    finally:
        tables.close()
        for part in pending:
            part.file.close()


class Scan(PlannedQuery, Record):
    """A query over Parquet files, made by `scan`: only footers are read until rows are requested."""

    sources: tuple[ParquetSource, ...]
    question: Question  # The request, bound to the types of the files.
    skipping: bool = True  # Whether to skip row groups by their statistics.
    errors: Errors = "null"  # What a value that cannot be cast gives: null or an error.
    zone: str = "UTC"  # The session time zone of casts.
    threads: int | None = None  # Number of row groups or columns to read at the same time (default: one per CPU).
    # Whether the result may contain rows that do not match the filter, where removing them costs more than it saves.
    coarse: bool = False
    dictionaries: frozenset[str] = frozenset()  # Names of string columns that are returned as dictionaries.
    # Whether the result of a scan without a filter only has to preserve the minimum and maximum of its columns, nulls
    # ignored: row groups with exact statistics are not read.
    only_bounds: bool = False
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Scan {self.question} over {counted(len(self.sources), 'file')}>"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; a Variant is a struct whose field has the extension name."""
        return pa.schema(
            [
                item.field.with_type(DICTIONARY) if item.name in self.dictionaries else item.field
                for item in self.selection
            ]
        )

    def _plan(self, file: OpenFile) -> FilePlan:
        # A skipped row cannot raise an error, so nothing is skipped with errors="raise".
        skipping = self.skipping and self.errors == "null"
        options = {"skipping": skipping, "only_bounds": self.only_bounds and self.predicate is None}
        make = partial(plan_file, file, self.question.columns, self.predicate, **options)
        if self.predicate is not None:
            return make()
        return file.facts.plan((self.selection, *options.values(), file.source.partition), make)

    def _may_match_partition(self, source: ParquetSource) -> bool:
        """Return whether the partition of a file allows a match; other files are not opened."""
        if self.predicate is None or not source.partition or not self.skipping or self.errors != "null":
            return True
        values, statistics = dict(source.partition), dict[str, PruningStatistics]()
        for item in self.question.columns:
            if item.path is None and item.stored_name in values:
                statistics[item.name] = constant_statistics(values[item.stored_name])
        return bool(may_match(self.predicate, lambda name: statistics.get(name, UNKNOWN)))

    def _outputs(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the columns that the filter needs, and of the other output columns."""
        names = columns_of(self.predicate) if self.predicate is not None else set()
        first = [number for number, item in enumerate(self.question.columns) if item.name in names]
        return first, [number for number in range(len(self.selection)) if number not in first]

    def strings_with_dictionary(self) -> frozenset[str]:
        """Return the string columns that have a dictionary in the first file; none for a remote file."""
        if is_remote(self.sources[:1]):
            return frozenset()
        with open_file(self.sources[0]) as file:
            plan = self._plan(file)
            return frozenset(
                item.name
                for number, item in enumerate(self.selection)
                if item.type == pa.string()
                and plan.groups
                and (leaf := plan.direct_leaf(number, plan.groups[0])) is not None
                and file.facts.chunk(leaf, plan.groups[0].number).has_dictionary_page
            )

    def explain(self, report: ScanReport | None = None) -> ScanReport:
        """Return what the scan would read: files, row groups, columns and bytes; or add it to a report.

        Bytes are those of whole column chunks, from the footers. Where the filter then matches no row of a row group,
        only the columns of the filter are read: fewer bytes than reported.
        """
        report = ScanReport() if report is None else report
        for source in self.sources:
            with open_file(source) as file:
                report.add(file, self._plan(file))
        return report

    def tasks(self, task_bytes: int = 128 << 20) -> list[ScanTask]:
        """Split the work into tasks of about `task_bytes` compressed bytes, without row groups that cannot match."""
        tasks: list[ScanTask] = []
        outputs = range(len(self.question.columns))
        for source in filter(self._may_match_partition, self.sources):
            with open_file(source) as file:
                plan = self._plan(file)
                sizes = [plan.chunk_bytes(file, [group], outputs) for group in plan.groups]
                for part in grouped(range(len(sizes)), sizes.__getitem__, task_bytes):
                    numbers = tuple(plan.groups[at].number for at in part)
                    tasks.append(ScanTask(source, numbers, file.facts.rows(numbers), sum(sizes[at] for at in part)))
        return tasks

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in tables of at least one row, in the order of files and rows."""
        return self._read_all(list(filter(self._may_match_partition, self.sources)))

    def of(self, files: Sequence[ParquetSource]) -> Scan:
        """Return the same query over other files."""
        return replace(self, sources=tuple(files))

    def read(self, task: ScanTask) -> Iterator[pa.Table]:
        """Yield the part of the result that belongs to a task."""
        return self._read_all([task.source], frozenset(task.row_groups))

    def _read_all(self, sources: Sequence[ParquetSource], groups: frozenset[int] | None = None) -> Iterator[pa.Table]:
        def parts_of(source: ParquetSource) -> tuple[OpenFile, list[FilePart]]:
            file = open_file(source)
            return file, self.parts(file, groups)

        threads = thread_count(self.threads)
        footers = FOOTERS if threads > 1 and is_remote(sources) else 1
        return tables_of_parts(in_order(parts_of, sources, footers), self.read_part, threads)

    def parts(self, file: OpenFile, only: frozenset[int] | None = None) -> list[FilePart]:
        """Split an open file, or some of its row groups, into parts that are read together; close it if that fails.

        Neighbors that need the same leaves are read together, without a filter, up to a limit on bytes.
        """
        try:
            plan = self._plan(file)
            groups = [group for group in plan.groups if only is None or group.number in only]
        except BaseException:
            file.close()
            raise
        alone = self.predicate is not None or any(o.variant and o.variant.layout == "unshredded" for o in plan.outputs)
        if groups and any(output.direct is not None for output in plan.outputs):
            alone = alone or file.facts.rows([groups[0].number]) >= _WORTH_PAGES
        threads = thread_count(self.threads)
        together: list[list[GroupPlan]] = []
        size = 0
        for group in groups:
            group_bytes = file.metadata.row_group(group.number).total_byte_size
            is_alone = alone or group.bounds is not None or not together
            if is_alone or group.leaves != together[-1][0].leaves or size + group_bytes > _BATCH_BYTES // threads:
                together.append([])
                size = 0
            together[-1].append(group)
            size += group_bytes
        dictionaries = {number for number, item in enumerate(self.selection) if item.name in self.dictionaries}
        # If the scan has fewer parts than threads, the columns of each part are read in threads.
        share = threads // max(len(self.sources) * len(together), 1) if file.metadata.num_rows >= _WORTH_PAGES else 1
        options = self.errors == "raise", self.zone, frozenset(dictionaries.union(self._outputs()[0])), max(share, 1)
        return [FilePart(file, plan, part, part is together[-1], self.question.columns, *options) for part in together]

    def read_part(self, part: FilePart) -> pa.Table | None:
        """Return the matching rows of a part; None if no row matches."""
        part = replace(part, file=part.file.for_one_thread())
        with part.file.place_errors(group.number for group in part.groups):
            table = self._matching_rows(part)
        self._bytes_read[0] += part.bytes_read
        return table

    def _matching_rows(self, part: FilePart) -> pa.Table | None:
        if (bounds := part.groups[0].bounds) is not None:
            columns_of_bounds = zip(bounds, self.schema.types, strict=True)
            return pa.table([pa.array(pair, kind) for pair, kind in columns_of_bounds], schema=self.schema)
        filter_outputs, other_outputs = self._outputs()
        columns: dict[int, pa.Array] = {}
        mask: pa.BooleanArray | None = None
        if self.predicate is not None:
            columns = part.columns(filter_outputs)
            named = {self.question.columns[number].name: column for number, column in columns.items()}
            mask = evaluate(self.predicate, named).fill_null(scalar(False, pa.bool_()))
            matches = mask.true_count
            if not matches:
                return None
            if matches > (_WORTH_FILTERING * len(mask) if self.coarse else len(mask) - 1):
                mask = None
            else:
                columns = {number: columns[number].filter(mask) for number in columns if number not in other_outputs}
        columns |= part.columns(other_outputs, mask)
        schema = self.schema
        return pa.table([in_type(columns[number], field.type) for number, field in enumerate(schema)], schema=schema)


def scan(
    source: Source,
    columns: Mapping[str, object] | Sequence[str],
    where: object = None,
    *,
    column: str | None = None,
    filesystem: fs.FileSystem | None = None,
    skipping: bool = True,
    errors: Errors = "null",
    zone: str = "UTC",
    threads: int | None = None,
) -> Scan:
    """Plan a query by path over Parquet files, whatever their shredding schemas; see `Table.scan`."""
    thread_count(threads)
    check_choice("errors", errors, get_args(Errors))
    question, (first, *more_files) = Question.of(columns, where), locate(source, filesystem)
    sources = [replace(first, content=[]), *more_files]  # a small remote file is requested once
    if any(item.path is not None for item in question.columns) and (column is not None or more_files):
        column = variant_of_files(sources, column).name
    bound = question.bound(types_in_files(sources, question.ordinary_names), zone, column)
    return Scan(tuple(sources), bound, skipping, errors, zone, threads)


def read_schema(source: Source, *, filesystem: fs.FileSystem | None = None) -> pa.Schema:
    """Return the columns of all files; see `Table.schema`."""
    return schema_of_files(locate(source, filesystem))


def schema_of_files(sources: Sequence[ParquetSource], names: Sequence[str] | None = None) -> pa.Schema:
    """Return the columns of some files, each as in the first file that has it, with types of later files for null.

    `names`: the columns to return; files are opened until the types of these columns are known.
    Raises `VariantFileError` for a column of `names` that no file has.
    """
    fields, optional = dict[str, pa.Field](), set[str]()
    for file in in_order(open_file, sources, FOOTERS if names is None and is_remote(sources) else 1):
        with file:
            requested = [name for name in file.column_names if names is None or name in names]
            new = [name for name in requested if name not in fields or has_null_type(fields[name].type)]
            required = {node.name for node in file.schema.children if node.repetition != "optional"}
            optional.update((fields.keys() | set(new)) - required, new if fields else ())
            stored = fields_of_rows(file, new)
            fields |= {name: joined_field(fields.get(name, stored[name]), stored[name]) for name in new}
        if names is not None and not any(name not in fields or has_null_type(fields[name].type) for name in names):
            break
    for name in sorted(set(names or ()) - fields.keys()):
        top_column(file.schema, name, file.name, dict(file.source.partition))  # raises
    return pa.schema([field.with_nullable(field.name in optional) for field in fields.values()])


def types_in_files(sources: Sequence[ParquetSource], names: Sequence[str]) -> dict[str, pa.DataType | None]:
    """Return the types of columns of files, as scans read them; that of a Variant is None. See `schema_of_files`."""
    schema = plain_schema(schema_of_files(sources, names) if names else pa.schema([]))
    return {field.name: None if is_variant_field(field) else field.type for field in schema}
