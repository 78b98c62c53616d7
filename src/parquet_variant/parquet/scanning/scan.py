"""Typed columns out of Variant columns: only the leaves that are needed, only the row groups that may match.

Owns running a query over files, in tasks that other processes can take. Leaves which leaves and row groups to
`scan_plan`, reading them to `part_reader`, and filters to `predicate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, TypedDict, TypeVar, Unpack

import pyarrow as pa
from pyarrow import fs

from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.keywords import with_keywords
from parquet_variant.parquet.format.columns import top_column
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.parquet.reading.read_table import plain_field
from parquet_variant.parquet.report_text import counted
from parquet_variant.parquet.scanning.part_reader import DICTIONARY, PartReader, in_type
from parquet_variant.parquet.scanning.path_statistics import constant_statistics
from parquet_variant.parquet.scanning.scan_plan import FilePlan, GroupPlan, plan_file
from parquet_variant.parquet.scanning.scan_report import ScanReport
from parquet_variant.parquet.writing.nested import is_tagged
from parquet_variant.query.predicate import Predicate, columns_of, evaluate
from parquet_variant.query.prune import UNKNOWN, PruningStatistics, may_match
from parquet_variant.query.question import PlannedQuery, Question, short_description
from parquet_variant.query.selection import Selected

Errors = Literal["null", "raise"]
# Uncompressed bytes that are read at a time where no filter asks for one row group after the other.
_BATCH_BYTES = 256 << 20
# Footers that are fetched at the same time from elsewhere.
FOOTERS = 16
# Rows of a row group whose pages are worth a look of its own.
_WORTH_PAGES = 1 << 13
# The share of rows up to which leaving out the others is worth a copy.
_WORTH_FILTERING = 0.75


class FilePart(NamedTuple):
    """Row groups of an open file that are read at once."""

    file: OpenFile
    plan: FilePlan
    groups: list[GroupPlan]
    is_last: bool

    @property
    def first_row(self) -> int:
        """Its number in the file."""
        return sum(self.file.metadata.row_group(number).num_rows for number in range(self.groups[0].number))


# A file, and which of its row groups; None for all.
_GroupsOfFile = tuple[ParquetSource, frozenset[int] | None]


class _PartOfFile(Protocol):
    @property
    def file(self) -> OpenFile: ...
    @property
    def is_last(self) -> bool: ...


Part = TypeVar("Part", bound=_PartOfFile)


def _is_remote(sources: Iterable[ParquetSource]) -> bool:
    """Whether a file is not on this machine: then its footer is worth waiting for beside others."""
    return any(not isinstance(source.filesystem, fs.LocalFileSystem) for source in sources)


def tables_of_parts(
    files: Iterable[tuple[OpenFile, Sequence[Part]]], read: Callable[[Part], pa.Table | None], threads: int
) -> Iterator[pa.Table]:
    """The rows of parts of files, read in threads, in order; a file is open until its last part was read.

    No more parts than one are in memory beside those that threads read.
    """
    begun: deque[Part] = deque()

    def parts() -> Iterator[Part]:
        for file, file_parts in files:
            for part in file_parts:
                begun.append(part)
                yield part
            if not file_parts:
                file.close()

    tables = in_order(read, parts(), threads)
    try:
        for table in tables:
            part = begun.popleft()
            if part.is_last:
                part.file.refuse_changed()
                part.file.close()
            if table is not None and len(table):
                yield table
    finally:
        tables.close()
        for part in begun:
            part.file.close()


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Some row groups of one file; small enough to send to another process."""

    source: ParquetSource  # The file.
    row_groups: tuple[int, ...]  # Their numbers.
    rows: int  # Their rows, before any filter.
    bytes: int  # Compressed bytes of the column chunks that they need.


@dataclass(frozen=True, repr=False)
class Scan(PlannedQuery):
    """A query over Parquet files: made by `scan`, it reads nothing but footers until asked for rows.

    Parameters
    ----------
    sources
        The files.
    selection
        The output columns.
    hidden
        Columns that only the filter looks at.
    predicate
        The bound filter, or None.
    column
        The Variant column's name, if there are several.
    skipping
        Whether statistics are used.
    errors
        What becomes of a value that cannot be cast: ``"null"`` or ``"raise"``.
    zone
        The session time zone of casts.
    threads
        How many row groups are read at the same time; by default one for each CPU that this process may use.
    coarse
        Whether rows that the filter rules out may be left in, where leaving them out costs more than it saves.
    dictionaries
        The names of text columns that come as dictionaries.
    """

    sources: tuple[ParquetSource, ...]
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...] = ()
    predicate: Predicate | None = None
    column: str | None = None
    skipping: bool = True
    errors: Errors = "null"
    zone: str = "UTC"
    threads: int | None = None
    coarse: bool = False
    dictionaries: frozenset[str] = frozenset()
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Scan {short_description(self.selection, self.predicate)} over {counted(len(self.sources), 'file')}>"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the answer; a Variant is a struct that names its extension."""
        return pa.schema(
            [
                each.field.with_type(DICTIONARY) if each.name in self.dictionaries else each.field
                for each in self.selection
            ]
        )

    @property
    def bytes_read(self) -> int:
        """Compressed bytes of the column chunks that this scan has read so far, in this process."""
        return self._bytes_read[0]

    # ---- plans

    def _plan(self, file: OpenFile) -> FilePlan:
        # A skipped row cannot raise: so nothing is skipped where errors are asked for.
        skipping = self.skipping and self.errors == "null"

        def make() -> FilePlan:
            return plan_file(file, self.every_column, self.predicate, self.column, skipping=skipping)

        if file.cached is None or self.predicate is not None:
            return make()
        return file.cached.plan((self.selection, self.column, skipping, file.source.partition), make)

    def _may_hold(self, source: ParquetSource) -> bool:
        """Whether a file's partition allows a match: if not, the file is not even opened."""
        if self.predicate is None or not source.partition or not self.skipping or self.errors != "null":
            return True
        values = dict(source.partition)
        columns = {each.name: values.get(each.column or each.name) for each in self.every_column if each.path is None}

        def statistics(name: str) -> PruningStatistics:
            value = columns.get(name)
            return UNKNOWN if value is None else constant_statistics(value)

        return bool(may_match(self.predicate, statistics))

    def _outputs(self) -> tuple[list[int], list[int]]:
        """The columns that the filter needs, and the selected ones that it does not."""
        names = columns_of(self.predicate) if self.predicate is not None else set()
        first = [number for number, each in enumerate(self.every_column) if each.name in names]
        return first, [number for number in range(len(self.selection)) if number not in first]

    def texts_with_dictionary(self) -> frozenset[str]:
        """The text columns that the first file holds as dictionaries, by its footer; none where it is far away."""
        if _is_remote(self.sources[:1]):
            return frozenset()
        with open_file(self.sources[0]) as file:
            plan = self._plan(file)
            return frozenset(
                each.name
                for number, each in enumerate(self.selection)
                if (leaf := plan.direct.get(number)) is not None
                and each.type == pa.string()
                and plan.groups
                and plan.groups[0].leaves[number] == (leaf.leaf,)
                and file.metadata.row_group(plan.groups[0].number).column(leaf.leaf).has_dictionary_page
            )

    def explain(self) -> ScanReport:
        """What the scan would read, of how much, and why: files, row groups, columns, bytes.

        The bytes are those of whole column chunks, as the footers tell them. Of a row group in which the filter then
        finds no row, only the filter's columns are read: fewer bytes than told here.
        """
        report = ScanReport()
        outputs = range(len(self.every_column))
        for source in self.sources:
            with open_file(source) as file:
                plan = self._plan(file)
                report.add(file, plan, plan.chunk_bytes(file, plan.groups, outputs), outputs)
        return report

    def tasks(self, target_bytes: int = 128 << 20) -> list[ScanTask]:
        """The work in pieces of about `target_bytes` compressed bytes each, none larger than it must be.

        Row groups that cannot match are in none of them.
        """
        tasks: list[ScanTask] = []
        outputs = range(len(self.every_column))
        for source in filter(self._may_hold, self.sources):
            with open_file(source) as file:
                plan = self._plan(file)
                sizes = {group.number: plan.chunk_bytes(file, [group], outputs) for group in plan.groups}
                tasks += tasks_of_groups(file, sizes, target_bytes)
        return tasks

    # ---- rows

    def batches(self) -> Iterator[pa.Table]:
        """The answer in parts, each with at least one row, in the order of files and rows."""
        return self._read_all([(source, None) for source in filter(self._may_hold, self.sources)])

    def of(self, files: Sequence[ParquetSource]) -> Scan:
        """The same question to some of the files."""
        return replace(self, sources=tuple(files))

    def read(self, task: ScanTask) -> Iterator[pa.Table]:
        """The part of the answer that a task stands for."""
        return self._read_all([(task.source, frozenset(task.row_groups))])

    def _read_all(self, sources: list[_GroupsOfFile]) -> Iterator[pa.Table]:
        threads = thread_count(self.threads)

        def parts_of(each: _GroupsOfFile) -> tuple[OpenFile, list[FilePart]]:
            file = open_file(each[0])
            return file, self.parts(file, each[1])

        at_once = FOOTERS if threads > 1 and _is_remote(source for source, _ in sources) else 1
        return tables_of_parts(in_order(parts_of, sources, at_once), self.read_part, threads)

    def parts(self, file: OpenFile, only: frozenset[int] | None = None) -> list[FilePart]:
        """What is read at once of an open file, or of some of its row groups; a file that cannot be read is closed."""
        try:
            plan = self._plan(file)
            groups = [group for group in plan.groups if only is None or group.number in only]
            together = list(self._together(file, plan, groups))
        except BaseException:
            file.close()
            raise
        return [FilePart(file, plan, part, part is together[-1]) for part in together]

    def read_part(self, part: FilePart) -> pa.Table | None:
        """The rows of a part; None if the filter leaves none."""
        with part.file.place_errors(group.number for group in part.groups):
            return self._part(part.file.for_one_thread(), part.plan, part.groups)

    def _together(self, file: OpenFile, plan: FilePlan, groups: Sequence[GroupPlan]) -> Iterator[list[GroupPlan]]:
        """Row groups to read at once: neighbours that need the same leaves; with a filter, each on its own."""
        alone = self.predicate is not None or plan.is_unshredded
        if plan.direct and groups:
            alone = alone or file.metadata.row_group(groups[0].number).num_rows >= _WORTH_PAGES
        most = _BATCH_BYTES // thread_count(self.threads)
        part: list[GroupPlan] = []
        size = 0
        for group in groups:
            more = file.metadata.row_group(group.number).total_byte_size
            if part and (alone or group.leaves != part[0].leaves or size + more > most):
                yield part
                part, size = [], 0
            part.append(group)
            size += more
        if part:
            yield part

    def _part(self, file: OpenFile, plan: FilePlan, part: list[GroupPlan]) -> pa.Table | None:
        first, rest = self._outputs()
        dictionaries = {number for number, each in enumerate(self.selection) if each.name in self.dictionaries}
        reader = PartReader(
            file, plan, part, self.every_column, self.errors == "raise", self.zone, frozenset(dictionaries.union(first))
        )
        columns: dict[int, pa.Array] = {}
        kept: pa.BooleanArray | None = None
        try:
            if self.predicate is not None:
                columns = reader.columns(first)
                named = {self.every_column[number].name: column for number, column in columns.items()}
                kept = evaluate(self.predicate, named).fill_null(scalar(False, pa.bool_()))
                matches = kept.true_count
                if not matches:
                    return None
                if matches > (_WORTH_FILTERING * len(kept) if self.coarse else len(kept) - 1):
                    kept = None
                else:
                    columns = {number: column.filter(kept) for number, column in columns.items() if number not in rest}
            columns |= reader.columns(rest, kept)
        finally:
            self._bytes_read[0] += reader.bytes_read
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
    """Plan a query by path over Parquet files, whatever their shredding schemas.

    Parameters
    ----------
    source
        A file, directory, glob, URI or list of these.
    columns
        Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of a
        column of the files, which comes whole, with the Variants in it.
    where
        A filter: text such as ``"mag > 5 and place like 'x%'"``; tuples such as ``[("mag", ">", 5)]``; or a predicate.
        It names output columns, ordinary columns of the files, or paths with their type: ``$.a.b:int = 3``.
    column
        The Variant column, if the files have several.
    filesystem
        A pyarrow filesystem.
    skipping
        Use statistics and bloom filters to read less; the answer is the same without.
    errors
        ``"null"``: a value that cannot be cast is null, as with `try_variant_get`; ``"raise"``: it is an error, and
        nothing is skipped.
    zone
        The session time zone of casts: a region or an offset.
    threads
        How many row groups are read at the same time; by default one for each CPU that this process may use. The rows
        come in order, and no more row groups are in memory than threads and one.

    Raises
    ------
    VariantFileError
        If a file or column is not there.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"mag": 5.5}', '{"mag": 1}']), schema="infer")
    ...     pv.parquet.scan(folder, {"mag": "$.mag:double"}, "mag > 2").to_table().to_pydict()
    {'mag': [5.5]}
    """
    thread_count(threads)
    sources = tuple(locate(source, filesystem))
    question = Question.of(columns, where)
    typed = question.columns
    if any(each.path is None for each in typed):
        typed = with_types(sources[0], typed)
    asked = question.bound(typed, zone)
    return Scan(sources, asked.selection, asked.hidden, asked.predicate, column, skipping, errors, zone, threads)


def tasks_of_groups(file: OpenFile, sizes: Mapping[int, int], target_bytes: int) -> Iterator[ScanTask]:
    """Row groups of a file, by their numbers and the bytes that are read of each, as tasks of about so many bytes."""
    task = ScanTask(file.source, (), 0, 0)
    for number, size in sizes.items():
        if task.row_groups and task.bytes + size > target_bytes:
            yield task
            task = ScanTask(file.source, (), 0, 0)
        rows = task.rows + file.metadata.row_group(number).num_rows
        task = ScanTask(file.source, (*task.row_groups, number), rows, task.bytes + size)
    if task.row_groups:
        yield task


def with_types(source: ParquetSource, selection: tuple[Selected, ...]) -> tuple[Selected, ...]:
    """The selection with the types that ordinary columns have in the first file."""
    if not selection:
        return ()
    partition = dict(source.partition)
    with open_file(source) as file:
        arrow = file.arrow_schema
        typed = []
        for each in selection:
            name = each.column or each.name
            if each.path is None and name in partition:
                each = replace(each, type=partition[name].type)
            elif each.path is None:
                top_column(file.schema, name, file.name, partition)
                whole = plain_field(arrow.field(name), file)
                each = replace(each, type=None if is_tagged(whole) else whole.type)
            typed.append(each)
    return tuple(typed)


class ScanKeywords(TypedDict, total=False):
    """The keywords of `scan`."""

    column: str | None
    filesystem: fs.FileSystem | None
    skipping: bool
    errors: Errors
    zone: str
    threads: int | None


@with_keywords(ScanKeywords, scan)
def extract(
    source: Source, columns: Mapping[str, object] | Sequence[str], where: object = None, **options: Unpack[ScanKeywords]
) -> pa.Table:
    """Read paths of a Variant column as typed Arrow columns: only the leaf columns and row groups that they need.

    Parameters
    ----------
    source, columns, where, **options
        As for `scan`: ``column``, ``filesystem``, ``skipping``, ``errors``, ``zone``, ``threads``.

    Raises
    ------
    VariantError
        As `scan`, and `CastError` with ``errors="raise"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"mag": 5.5, "place": "x"}', '{"mag": "n/a"}']))
    ...     pv.parquet.extract(folder, {"mag": ("$.mag", "double"), "place": ("$.place", "string")}).to_pydict()
    {'mag': [5.5, None], 'place': ['x', None]}
    """
    return scan(source, columns, where, **options).to_table()
