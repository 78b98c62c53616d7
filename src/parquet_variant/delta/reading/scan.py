"""Typed columns out of a table's variants: files pruned by the log, then row groups, then leaf columns.

Owns the query over a table: pruning, deletion vectors, partition columns, column mapping. Leaves a single file to
`parquet.scan`, which files to open to `pruning`, what its columns are to `scan_columns`, and casts to `functions`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.file_actions import iter_adds
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.reading.pruning import Pruned, prune_files
from parquet_variant.delta.reading.read import PLACES, Mask, live_rows
from parquet_variant.delta.reading.scan_report import DeltaScanReport, add_reports
from parquet_variant.fork_safety import cached_property
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.columns import find_variants
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.parquet.reading.read_table import plain_field
from parquet_variant.parquet.scanning.scan import FOOTERS, FilePart, Scan, tables_of_parts
from parquet_variant.parquet.scanning.scan_report import ScanReport
from parquet_variant.query.predicate import And, Predicate, columns_of, evaluate
from parquet_variant.query.question import PlannedQuery, Question, short_description
from parquet_variant.query.selection import Selected
from parquet_variant.tables.columns import align_column, by_field_id, by_name, unchanged
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.scan_columns import only_variant, typed_columns, variant_place
from parquet_variant.tables.schema import Field, PrimitiveType, TableType, fields_at
from parquet_variant.tables.storage import LocalStorage


@dataclass(frozen=True, slots=True)
class DeltaScanTask:
    """Some files of a table at a version; small enough to send to another process.

    Parameters
    ----------
    files
        The files: path, partition values, deletion vector, size.
    bytes
        Their size.
    """

    files: tuple[Add, ...]
    bytes: int


# Columns that are not in a file: the type and the text of a partition value, None for nulls.
_Outside: TypeAlias = "dict[str, tuple[TableType, str | None] | None]"


class _Part(NamedTuple):
    """Rows of a data file that are read at once: the part of its scan, which rows live, and what the scan leaves."""

    file: OpenFile
    is_last: bool
    scan: Scan
    inside: FilePart | None  # None: no column is read
    live: Mask | None
    left: Predicate | None
    outside: _Outside


@dataclass(frozen=True, repr=False)
class DeltaScan(PlannedQuery):
    """A query over a table: made by `scan`, it reads nothing but the log until asked for rows.

    Parameters
    ----------
    current
        The table.
    selection, hidden
        The output columns, and those that only the filter looks at.
    predicate
        The bound filter, or None.
    place
        Where the variant column is, as logical names; None if no path is asked for.
    skipping
        Whether statistics are used, of the log and of files.
    zone
        The session time zone of casts.
    threads
        How many row groups are read at the same time; by default one for each CPU that this process may use.
    """

    current: Snapshot
    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...] = ()
    predicate: Predicate | None = None
    place: tuple[str, ...] | None = None
    skipping: bool = True
    zone: str = "UTC"
    threads: int | None = None
    _bytes_read: list[int] = field(default_factory=lambda: [0], repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<DeltaScan {short_description(self.selection, self.predicate)} over {self.current!r}>"

    @property
    def bytes_read(self) -> int:
        """Compressed bytes of the column chunks that this scan has read so far, in this process."""
        return self._bytes_read[0]

    @cached_property
    def pruned(self) -> Pruned:
        """The files that are left, by the log alone."""
        if not self.skipping:
            return Pruned(self.current.files, self.current.num_files)
        return prune_files(self.current, self.predicate, {each.name: each for each in self.every_column}, self.place)

    def explain(self) -> DeltaScanReport:
        """What the scan would read, of how much; opens the footers of the files that are left."""
        inside = ScanReport()
        for add in self._files():
            with self._open(add) as file:
                inner, _, _ = self._inner(add, file)
            inside = add_reports(inside, inner.explain())
        pruned = self.pruned
        return DeltaScanReport(self.current.version, pruned.total, pruned.by_partition, pruned.by_statistics, inside)

    def tasks(self, target_bytes: int = 128 << 20) -> list[DeltaScanTask]:
        """The work in pieces of about `target_bytes` each, whole files; pruned files are in none of them."""
        tasks: list[DeltaScanTask] = []
        part: list[Add] = []
        size = 0
        for file in self._files():
            if part and size + file.size > target_bytes:
                tasks.append(DeltaScanTask(tuple(part), size))
                part, size = [], 0
            part.append(file)
            size += file.size
        if part:
            tasks.append(DeltaScanTask(tuple(part), size))
        return tasks

    def read(self, task: DeltaScanTask) -> Iterator[pa.Table]:
        """The part of the answer that a task stands for."""
        return self._read(task.files)

    def batches(self) -> Iterator[pa.Table]:
        """The answer in parts, each with at least one row."""
        return self._read(self._files())

    def __reduce__(self) -> tuple[Any, ...]:
        bare = self.current.without_files()
        parts = self.selection, self.hidden, self.predicate, self.place, self.skipping, self.zone, self.threads
        return DeltaScan, (bare, *parts)

    # ---- one file

    def _files(self) -> Iterator[Add]:
        return iter_adds(self.pruned.files.select(PLACES))

    def _open(self, add: Add) -> OpenFile:
        filesystem, full = self.current.storage.filesystem(relative_path(self.current.storage, add.path))
        return open_file(ParquetSource(full, filesystem, add.size))

    def _inner(self, add: Add, file: OpenFile) -> tuple[Scan, Predicate | None, _Outside]:
        """The scan of one file, the part of the filter that it leaves, and the columns that are not in the file."""
        arrow = file.arrow_schema
        variants = {name for variant in find_variants(file.schema) for name in (variant.name, variant.node.dotted)}
        place = self._place_in(arrow)
        inside, outside = self._split(file, place if place in variants else None, add)
        names = {each.name for each in inside}
        # Deleted rows are counted by position, so that no row may be left out before they are.
        positions = add.deletion_vector is not None
        pushed, left = (None, self.predicate) if positions else _split_predicate(self.predicate, names)
        scan = Scan(
            sources=(file.source,),
            selection=tuple(inside),
            predicate=pushed,
            column=place,
            skipping=self.skipping and not positions,
            zone=self.zone,
            threads=self.threads,
            _bytes_read=self._bytes_read,
        )
        return scan, left, outside

    def _split(self, file: OpenFile, place: str | None, add: Add) -> tuple[list[Selected], _Outside]:
        """The columns to read from the file, by their names there, and the others."""
        partitions = {name.lower() for name in self.current.partition_columns}
        arrow = file.arrow_schema
        inside: list[Selected] = []
        outside: _Outside = {}
        for each in self.every_column:
            if each.path is not None:
                if place is None:
                    outside[each.name] = None
                else:
                    inside.append(each)
                continue
            f = self.current.schema.get(each.column or each.name)
            assert f is not None
            index = self._match(arrow, f)
            if f.name.lower() in partitions:
                outside[each.name] = f.type, add.partition_values.get(f.physical_name)
            elif index < 0:
                outside[each.name] = None
            elif isinstance(f.type, PrimitiveType):
                inside.append(replace(each, column=arrow.field(index).name))
            else:
                # As the file has it: its names inside may be physical ones, which a cast would not find.
                whole = plain_field(arrow.field(index), file)
                inside.append(replace(each, column=whole.name, type=whole.type))
        return inside, outside

    def _match(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        match = by_field_id if self.current.column_mapping == "id" else by_name
        return match(fields, f)

    def _place_in(self, arrow: pa.Schema) -> str | None:
        """The variant column's dotted name in a file; None if the file lacks it."""
        if self.place is None:
            return None
        names = []
        fields: pa.Schema | pa.DataType = arrow
        for f in fields_at(self.current.schema, self.place):
            index = self._match(fields, f)
            if index < 0:
                return None
            names.append(fields.field(index).name)
            fields = fields.field(index).type
        return ".".join(names)

    def _read(self, files: Iterable[Add]) -> Iterator[pa.Table]:
        threads = thread_count(self.threads)
        at_once = 1 if threads == 1 or isinstance(self.current.storage, LocalStorage) else FOOTERS
        return tables_of_parts(in_order(self._parts, files, at_once), self._part, threads)

    def _parts(self, add: Add) -> tuple[OpenFile, list[_Part]]:
        """What is read at once of a file."""
        file = self._open(add)
        try:
            scan, left, outside = self._inner(add, file)
            live = live_rows(self.current, add.deletion_vector, file.rows)
        except BaseException:
            file.close()
            raise
        if not scan.selection:
            return file, [_Part(file, True, scan, None, live, left, outside)]
        return file, [_Part(file, part.is_last, scan, part, live, left, outside) for part in scan.parts(file)]

    def _part(self, part: _Part) -> pa.Table | None:
        """The rows of a part."""
        if part.inside is None:
            rows, start = pa.table({"": pa.nulls(part.file.rows)}), 0
        else:
            rows, start = part.scan.read_part(part.inside), part.inside.first_row
        if rows is None:
            return None
        if part.live is not None:
            rows = rows.filter(pa.array(part.live[start : start + len(rows)]))
        table = self._completed(rows, part.outside)
        if part.left is not None:
            table = table.filter(evaluate(part.left, table))
        table = table.select([each.name for each in self.selection])
        return table.cast(self.schema) if table.schema != self.schema else table

    def _completed(self, part: pa.Table, outside: _Outside) -> pa.Table:
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for each in self.every_column:
            if each.name in outside:
                value, kind = outside[each.name], each.field.type
                column = pa.nulls(len(part)) if value is None else partition_array(value[1], value[0], len(part))
                columns[each.name] = column.cast(kind) if column.type != kind else column
            elif part[each.name].type != each.field.type and each.path is None:
                columns[each.name] = self._renamed(part[each.name], each)
            else:
                columns[each.name] = part[each.name]
        return pa.table(columns, schema=pa.schema([each.field for each in self.every_column]))

    def _renamed(self, column: pa.ChunkedArray, each: Selected) -> pa.ChunkedArray:
        """A nested column of a file under the table's names."""
        f = self.current.schema.get(each.column or each.name)
        assert f is not None
        kind = each.field.type
        chunks = [align_column(chunk, f.type, self._match, unchanged, (f.name,)) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind)


def scan(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    skipping: bool = True,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    threads: int | None = None,
) -> DeltaScan:
    """Plan a query by path over a table; files that cannot match are never opened.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    columns, where
        As for `parquet.scan`: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of an
        ordinary column, partition columns among them.
    column
        The variant column (dotted if it is inside of structs), if the table has several.
    version, timestamp
        Which version; by default the newest (see `snapshot`).
    skipping
        Use statistics, of the log and of files; the answer is the same without.
    zone
        The session time zone of casts.
    storage_options
        Configuration of the object store.
    allow_outside
        Read files that the log names outside of the table, too (shallow clones); by default they are refused.
    threads
        How many row groups are read at the same time; by default one for each CPU that this process may use. The rows
        come in order, and no more row groups are in memory than threads and one.

    Returns
    -------
    DeltaScan

    Raises
    ------
    DeltaError
        As `snapshot`; ``"unknown-column"``.
    PathError, PredicateError, SchemaError
        If a path, the filter or a type cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     query = pv.delta.scan(folder, {"n": ("$.n", "long")}, "n > 1")
    ...     query.explain().files_pruned, query.to_table().num_rows
    (1, 0)
    """
    thread_count(threads)
    current = snapshot(
        table, version=version, timestamp=timestamp, storage_options=storage_options, allow_outside=allow_outside
    )
    question = Question.of(columns, where)
    if column is None:
        column = only_variant(current.schema, question.columns)
    asked = question.bound(typed_columns(current.schema, question.columns, column), zone)
    place = variant_place(current.schema, column) if any(each.path is not None for each in asked.columns) else None
    return DeltaScan(current, asked.selection, asked.hidden, asked.predicate, place, skipping, zone, threads)


def extract(
    table: str | os.PathLike[str] | Snapshot,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    **options: Any,
) -> pa.Table:
    """Read paths of a table's variant column as typed Arrow columns.

    Parameters, errors
        As for `scan`, the options too.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"mag": 5.5}', '{"mag": 1.5}'])})
    ...     pv.delta.extract(folder, {"mag": ("$.mag", "double")}, "mag > 2").to_pydict()
    {'mag': [5.5]}
    """
    return scan(table, columns, where, **options).to_table()


def _split_predicate(predicate: Predicate | None, inside: set[str]) -> tuple[Predicate | None, Predicate | None]:
    """The part of a filter that a file can answer alone, and the rest."""
    if predicate is None:
        return None, None
    if columns_of(predicate) <= inside:
        return predicate, None
    if not isinstance(predicate, And):
        return None, predicate
    pushed = tuple(part for part in predicate.parts if columns_of(part) <= inside)
    left = tuple(part for part in predicate.parts if not columns_of(part) <= inside)
    return (And(pushed) if pushed else None), And(left)
