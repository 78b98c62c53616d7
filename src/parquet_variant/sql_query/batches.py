"""Planned scans: batches of typed columns, from any kind of table.

Owns scans of files of which only the number of rows counts, and of several Variant columns. Leaves the
choice among them to `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.selection import Selected
from parquet_variant.query.table_columns import NeededColumn
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.table.memory_scan import MemoryScan

if TYPE_CHECKING:
    from parquet_variant.files.parquet.format.files import ParquetSource


class Batches(Protocol):
    """The interface of a planned scan."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        ...

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        ...


@dataclass(frozen=True)
class ScanOptions:
    """Options for reading the tables of a query."""

    errors: Literal["null", "raise"] = "null"  # What a failed cast gives: NULL or an error.
    zone: str = "UTC"  # The session time zone of casts.
    threads: int | None = None  # Number of worker threads.
    dictionaries: bool = False  # Whether the engine accepts dictionary-encoded strings.
    only_bounds: bool = False  # Whether only the least and the greatest value of each column are needed.


def memory_scan(table: pa.Table, needed: Mapping[str, NeededColumn], options: ScanOptions) -> MemoryScan:
    """Plan a scan of columns of an Arrow table, and of paths into its Variants."""
    if not needed:  # only the number of rows counts
        table, needed = pa.table({"": pa.nulls(len(table))}), {"": NeededColumn("")}
    selection = tuple(
        Selected(name, need.path, need.type, need.column, need.exact)
        if need.path is not None
        else Selected(name, None, table.schema.field(need.column).type, need.column)
        for name, need in needed.items()
    )
    return MemoryScan(table, selection, (), None, "", options.errors, options.zone)


@dataclass(frozen=True)
class FileRows:
    """The rows of files without any column; the number of rows comes from the footers."""

    sources: tuple[ParquetSource, ...]
    schema: pa.Schema = pa.schema([pa.field("", pa.null())])  # noqa: RUF009 - immutable

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        from parquet_variant.files.parquet.format.files import open_file

        for source in self.sources:
            with open_file(source) as file:
                remaining = file.rows
            while remaining > 0:
                yield pa.table([pa.nulls(min(remaining, 1 << 20))], schema=self.schema)
                remaining -= 1 << 20


def side_by_side(
    needed: Mapping[str, NeededColumn],
    predicate: Predicate | None,
    plan: Callable[[str | None, Mapping[str, NeededColumn], Predicate | None], Batches],
) -> Batches:
    """Plan one scan per Variant column, since a scan reads paths of one, and join their columns.

    `plan`: plans the scan of a Variant column and some columns. Its predicate is used only if it is the only scan.
    """
    groups = _by_variant(needed)
    if len(groups) == 1:
        return plan(groups[0][0], needed, predicate)
    return _SideBySide([plan(column, group, None) for column, group in groups], tuple(needed))


def _by_variant(needed: Mapping[str, NeededColumn]) -> list[tuple[str | None, dict[str, NeededColumn]]]:
    """Group the needed columns by Variant column; ordinary columns belong to the first group."""
    groups: dict[str, dict[str, NeededColumn]] = {}
    ordinary = {name: column for name, column in needed.items() if column.path is None}
    for name, column in needed.items():
        if column.path is not None:
            groups.setdefault(column.column, {})[name] = column
    if not groups:
        return [(None, ordinary)]
    queries: list[tuple[str | None, dict[str, NeededColumn]]] = list(groups.items())
    queries[0] = (queries[0][0], ordinary | queries[0][1])
    return queries


@dataclass(frozen=True)
class _SideBySide:
    """Several scans of the same rows, with some of the columns each; none of them may skip a row."""

    plans: Sequence[Batches]
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        fields = {field.name: field for plan in self.plans for field in plan.schema}
        return pa.schema([fields[name] for name in self.names])

    def batches(self) -> Iterator[pa.Table]:
        streams = [plan.batches() for plan in self.plans]
        waiting: list[pa.Table | None] = [None] * len(streams)
        while True:
            for index, stream in enumerate(streams):
                table = waiting[index]
                if table is None or not len(table):
                    waiting[index] = next(stream, None)
            parts = [table for table in waiting if table is not None]
            if not parts:
                return
            if len(parts) < len(streams):
                raise VariantFileError("the files changed while they were read", reason="files-changed")
            rows = min(map(len, parts))
            columns = {name: part.column(name).slice(0, rows) for part in parts for name in part.column_names}
            yield pa.table([columns[name] for name in self.names], schema=self.schema)
            waiting = [part.slice(rows) for part in parts]
