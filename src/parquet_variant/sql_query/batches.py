"""What a bound table gives when it is scanned: planned batches of typed columns, whatever they come from.

Owns the batches of Arrow data, of rows without columns, and of several scans side by side. Leaves choosing among them
to `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantFileError
from parquet_variant.fork_safety import cached_property
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.query.sql_terms import VariantTerm

if TYPE_CHECKING:
    from parquet_variant.parquet.format.files import ParquetSource


class Batches(Protocol):
    """What every planned scan has."""

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        ...

    def batches(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        ...


@dataclass(frozen=True)
class ScanOptions:
    """How the tables of a query are read."""

    errors: Literal["null", "raise"] = "null"  # What becomes of values that cannot be cast.
    zone: str = "UTC"  # The session time zone of casts.
    threads: int | None = None  # How many work at the same time.
    dictionaries: bool = False  # Whether the engine takes texts in dictionaries.
    only_bounds: bool = False  # Whether of all rows only the least and the greatest value of each column count.


@dataclass(frozen=True)
class ArrowScan:
    """Columns of an Arrow table, and paths into its Variants."""

    table: pa.Table
    needed: dict[str, NeededColumn]
    options: ScanOptions

    @cached_property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        fields = [
            replace(each.select, name=key).field
            if each.path is not None
            else pa.field(key, self.table.schema.field(each.column).type)
            for key, each in self.needed.items()
        ]
        return pa.schema(fields or [pa.field("", pa.null())])

    def batches(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        for batch in self.table.to_batches(max_chunksize=1 << 16):
            columns = [self._column(batch.column(each.column), each) for each in self.needed.values()]
            yield pa.table(columns or [pa.nulls(len(batch))], schema=self.schema)

    def _column(self, column: pa.Array, each: NeededColumn) -> pa.Array:
        return column if each.path is None else values_at(column, each.path, each, self.options)


def values_at(column: pa.Array, path: VariantPath, asked: NeededColumn | VariantTerm, options: ScanOptions) -> pa.Array:
    """What is at a path of a column of Variants, as the type that is asked for; Variants where that is none."""
    from parquet_variant.compute.extract_path import extract_path, extract_variant

    storage = VariantArray(column).storage
    if asked.output is None:
        return plain_variants(extract_variant(storage, path))
    target = VARIANT_STORAGE if asked.type is None else asked.type
    return extract_path(storage, path, target, safe=options.errors == "raise", zone=options.zone)


def plain_variants(values: VariantArray) -> pa.StructArray:
    """Variants as a struct of two plain binary columns."""
    storage = values.to_unshredded().storage
    plain = [storage.field(name).cast(pa.binary()) for name in ("metadata", "value")]
    return pa.StructArray.from_arrays(plain, fields=list(VARIANT_STORAGE), mask=storage.is_null())


@dataclass(frozen=True)
class FileRows:
    """As many rows as files have, of which nothing is asked: the footers know."""

    sources: tuple[ParquetSource, ...]
    schema: pa.Schema = pa.schema([pa.field("", pa.null())])  # noqa: RUF009 - immutable

    def batches(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        from parquet_variant.parquet.format.files import open_file

        for source in self.sources:
            with open_file(source) as file:
                left = file.rows
            while left > 0:
                yield pa.table([pa.nulls(min(left, 1 << 20))], schema=self.schema)
                left -= 1 << 20


def side_by_side(
    needed: Mapping[str, NeededColumn],
    predicate: Predicate | None,
    plan: Callable[[str | None, Mapping[str, NeededColumn], Predicate | None], Batches],
) -> Batches:
    """One scan a Variant column, since a scan reads paths of one; their columns as one.

    `plan` plans one scan, of a Variant column, some columns and a predicate, which is used only if there is no other.
    """
    groups = _by_variant(needed)
    if len(groups) == 1:
        return plan(groups[0][0], needed, predicate)
    return _SideBySide([plan(column, group, None) for column, group in groups], tuple(needed))


def _by_variant(needed: Mapping[str, NeededColumn]) -> list[tuple[str | None, dict[str, NeededColumn]]]:
    """The needed columns by Variant column, since one scan reads paths of one; ordinary ones go with the first."""
    groups: dict[str, dict[str, NeededColumn]] = {}
    ordinary = {key: each for key, each in needed.items() if each.path is None}
    for key, each in needed.items():
        if each.path is not None:
            groups.setdefault(each.column, {})[key] = each
    if not groups:
        return [(None, ordinary)]
    queries: list[tuple[str | None, dict[str, NeededColumn]]] = list(groups.items())
    queries[0] = (queries[0][0], ordinary | queries[0][1])
    return queries


@dataclass(frozen=True)
class _SideBySide:
    """Scans of the same rows, each with some of the columns: none may leave out a row."""

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
