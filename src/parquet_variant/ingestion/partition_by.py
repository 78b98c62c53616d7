"""Partition columns out of JSON paths: what of every row says in which partition it goes.

Owns reading what a user writes (``day=$.ts:date``), the columns, and cutting rows by them. Leaves the names of
directories to `delta.data.partitions`, and files to the destinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import bad_option
from parquet_variant.path import VariantPath
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.tables.partitions import split_by_partition

PartitionColumns: TypeAlias = "Mapping[str, Any] | Sequence[str] | str"
# No partition column can have this name: a directory's has no slash.
_ROW = "/row"


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """The partition columns, in the order of the directories; none for no partitions."""

    columns: tuple[Selected, ...] = ()  # Each a typed path.

    @classmethod
    def of(cls, paths: PartitionColumns) -> PartitionBy:
        """Read ``"day=$.ts:date"``, a list of such, or a mapping of names to typed paths (string by default).

        Raises `VariantError` with reason ``"bad-option"`` for anything else, and for a type that has no text;
        `PathError` for a path that cannot be read.

        >>> PartitionBy.of("day=$.ts:date").columns[0].type
        DataType(date32[day])
        >>> PartitionBy.of({"kind": "$.kind"}).names
        ('kind',)
        """
        if isinstance(paths, str):
            paths = [paths]
        if not isinstance(paths, Mapping):
            pairs = [text.partition("=") for text in paths]
            wrong = [text for text, (name, _, path) in zip(paths, pairs, strict=True) if not name or path[:1] != "$"]
            if wrong:
                raise bad_option(f"partition_by has {wrong[0]!r}: write NAME=PATH:TYPE, such as day=$.ts:date")
            paths = {name: path for name, _, path in pairs}
        columns = tuple(map(_typed, read_selection(paths)))
        names = [each.name.lower() for each in columns]
        if len(set(names)) < len(names):
            raise bad_option("partition_by names a column twice")
        return cls(columns)

    def __bool__(self) -> bool:
        return bool(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(each.name for each in self.columns)

    @property
    def fields(self) -> list[pa.Field]:
        """The columns as Arrow has them."""
        return [pa.field(each.name, each.type) for each in self.columns]

    def values(self, array: VariantArray) -> dict[str, pa.Array]:
        """The columns of some rows; what cannot be cast is null, which is a partition of its own."""
        from parquet_variant.functions.variant_get import try_variant_get

        return {each.name: try_variant_get(array, each.path or VariantPath(), each.type) for each in self.columns}

    def split(
        self, array: VariantArray, columns: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, str | None], dict[str, Any]]]:
        """The rows of each partition, with its values as text."""
        if self:
            yield from split_columns(self.values(array), columns)
        else:
            yield {}, dict(columns)


def split_columns(
    keys: Mapping[str, pa.Array], columns: Mapping[str, Any]
) -> Iterator[tuple[dict[str, str | None], dict[str, Any]]]:
    """The rows of each partition: its values as text, and the columns, which may be `VariantArray`.

    >>> parts = split_columns({"k": pa.array([1, 2, 1])}, {"x": pa.array(["a", "b", "c"])})
    >>> [(values, part["x"].to_pylist()) for values, part in parts]
    [({'k': '1'}, ['a', 'c']), ({'k': '2'}, ['b'])]
    """
    rows = len(next(iter(keys.values())))
    table = pa.table({**keys, _ROW: pa.array(range(rows), pa.int64())})
    for values, part in split_by_partition(table, list(keys)):
        if len(part) == rows:
            yield values, dict(columns)
        else:
            at = part.column(_ROW).combine_chunks()
            yield values, {name: column.take(at) for name, column in columns.items()}


def _typed(column: Selected) -> Selected:
    if column.path is None:
        raise bad_option(f"partition_by has no path for {column.name}: write NAME=PATH:TYPE, such as day=$.ts:date")
    kind = pa.string() if column.type is None else column.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or (pa.types.is_timestamp(kind) and kind.unit == "us")
    ):
        raise bad_option(
            f"{column.name} is {kind}: partition by string, an integer, boolean, decimal, date or timestamp"
        )
    if column.output != column.type:
        raise bad_option(f"{column.name}: {column.path} names many values of a row; partition by a path without [*]")
    return Selected(column.name, column.path, kind)
