"""`PartitionBy`: partition columns, which are extracted from JSON paths or are columns of the rows.

This module parses the option (``day=$.ts:date``), extracts the columns, and splits rows by partition.
`tables.partitions` names the directories, and the destinations write the files.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantError, bad_option, strings_of
from parquet_variant.io.directories import types_to_declare
from parquet_variant.layouts.storage_shape import ddl_name
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.support.records import Record
from parquet_variant.tables.partitions import PATH_PROPERTY, rows_by_partition
from parquet_variant.types.path import VariantPath

PartitionColumns: TypeAlias = "Mapping[str, Any] | Sequence[str] | str"


class PartitionBy(Record):
    """The partition columns in the order of the directories: typed paths, or columns of the rows (without a path)."""

    columns: tuple[Selected, ...] = ()
    is_derived: bool = False
    """Whether the columns are those of the destination, instead of an option."""
    declared: frozenset[str] = frozenset()
    """The names of the columns whose type the option names, or whose path the destination records."""

    @classmethod
    def of(cls, paths: PartitionColumns) -> PartitionBy:
        """Parse ``"day=$.ts:date"``, a list of such, or a mapping of names to typed paths (string by default).

        >>> PartitionBy.of("day=$.ts:date").columns[0].type
        DataType(date32[day])
        >>> PartitionBy.of({"kind": "$.kind"}).names
        ('kind',)
        """
        if not isinstance(paths, Mapping):
            pairs = (text.partition("=") for text in strings_of("partition_by", paths))
            paths = {name: path for name, _, path in pairs}
        selection = read_selection(paths)
        columns = list[Selected]()
        for column in selection:
            if column.path is None or not column.name:
                problem = f"partition_by= has no path for {column.name}: write NAME=PATH:TYPE, such as day=$.ts:date"
                remedy = "; Iceberg's transforms are set with `Table.set_partitioning`" * column.name.endswith(")")
                raise bad_option(problem + remedy)
            kind, types = pa.string() if column.type is None else column.type, pa.types
            tests = (types.is_string, types.is_signed_integer, types.is_boolean, types.is_decimal, types.is_date)
            is_micros = types.is_timestamp(kind) and kind.unit == "us"
            if not (is_micros or any(test(kind) for test in tests)):
                raise bad_option(
                    f"partition_by= cannot use {column.name} of type {kind}: partition by string, integer, boolean, "
                    "decimal, date or timestamp"
                )
            if column.output != column.type:
                raise bad_option(
                    f"partition_by= cannot use {column.name}: {column.path} has many values per row; use a path "
                    "without [*]"
                )
            columns.append(Selected(column.name, column.path, kind))
        names = [column.name.lower() for column in columns]
        if duplicates := [name for name in names if names.count(name) > 1]:
            raise bad_option(f"partition_by= names the column {duplicates[0]!r} twice: remove one of the two")
        return cls(tuple(columns), declared=frozenset(column.name for column in selection if column.type is not None))

    @classmethod
    def of_destination(
        cls, types: Mapping[str, pa.DataType], columns: Sequence[str] | None, recorded: Mapping[str, str]
    ) -> PartitionBy:
        """Return the partition columns that a destination has: columns of the rows, paths that it records, or keys.

        `columns`: the names of the columns of the rows, as far as these are known.
        """
        recorded = {name: text for name, text in recorded.items() if name in types}
        paths = {column.name: column for column in cls.of(recorded).columns}
        made = (paths.get(name) or Selected(name, VariantPath((name,)), kind) for name, kind in types.items())
        return cls(tuple(made), is_derived=True, declared=frozenset(recorded)).next_to(columns or ())

    def next_to(self, columns: Container[str]) -> PartitionBy:
        """Return the partition columns of rows that have some columns, which are not extracted from paths."""
        made = (replace(column, path=None) if column.name in columns else column for column in self.columns)
        return replace(self, columns=tuple(made))

    def check_derived(self, dest: str, missing: Container[Any]) -> None:
        """Raise `VariantError` if no row has a value for a partition column of the destination (missing-column)."""
        for name, path in ((column.name, column.path) for column in self.columns if self.is_derived):
            if path is not None and name in missing:
                problem = (
                    f"{dest} is partitioned by {name}, and no row has a value at {path.shorthand}: name its path, as "
                    f"in partition_by={name}=$.path:type"
                )
                raise VariantError(problem, reason="missing-column", file=dest)

    def differs(self, columns: Sequence[str], dest: str) -> TableError:
        """Return the error for other partition columns than those of the destination."""
        problem = f"the partition columns of {dest} are {', '.join(columns) or 'none'}, not {', '.join(self.names)}"
        return TableError(f"{problem}: leave out partition_by=", reason="bad-option", file=dest)

    @property
    def paths(self) -> dict[str, str]:
        """The paths that the option names, with their types, which a new destination records for appends."""
        named = [column for column in self.columns if column.path is not None and not self.is_derived]
        types = {column.name: f":{ddl_name(column.type)}" for column in named if column.name in self.declared}
        return {column.name: f"{column.path}{types.get(column.name, '')}" for column in named}

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a new table that record the paths."""
        return {f"{PATH_PROPERTY}{name}": text for name, text in self.paths.items()}

    @property
    def types_to_declare(self) -> dict[str, str]:
        """The types, as DDL, that a directory must declare so that its columns are read as the option names them."""
        return types_to_declare({column.name: column.type for column in self.columns if column.name in self.declared})

    def __bool__(self) -> bool:
        return bool(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def fields(self) -> list[pa.Field]:
        """The columns that are extracted from paths, as Arrow fields."""
        return [pa.field(column.name, column.type) for column in self.columns if column.path is not None]

    def values(self, array: VariantArray) -> dict[str, pa.Array]:
        """Return the columns that are extracted from some Variants. A value that cannot be cast is null."""
        from parquet_variant.ops.variant_get import variant_get

        keys: frozenset[str] = frozenset(self.names) - self.declared if self.is_derived else frozenset()
        return {
            column.name: variant_get(array, column.path, column.type, errors="raise" if column.name in keys else "null")
            for column in self.columns
            if column.path is not None
        }

    def split(self, columns: Mapping[str, Any], variant: str) -> Iterator[tuple[dict[str, str | None], dict[str, Any]]]:
        """Yield the partition values as strings and the other columns of each partition; null is a partition, too.

        `columns` may be `VariantArray`; `variant` is the column of the paths.

        >>> rows = {"v": VariantArray.from_pylist([1, 2, 1]), "x": pa.array(["a", "b", "c"])}
        >>> parts = PartitionBy.of("k=$:int").split(rows, "v")
        >>> [(values, part["x"].to_pylist()) for values, part in parts]
        [({'k': '1'}, ['a', 'c']), ({'k': '2'}, ['b'])]
        """
        stored = {**columns, **self.values(columns[variant])}
        for values, rows in rows_by_partition({name: stored.pop(name) for name in self.names}):
            yield values, stored if rows is None else {name: column.take(rows) for name, column in stored.items()}
