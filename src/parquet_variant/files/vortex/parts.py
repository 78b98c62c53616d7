"""The parts of a stored column that a path needs, in each layout.

Owns the Vortex expression that reads a part, and converting its result. `ops.columns.extract_path` extracts the values
at the path, and `scanner` owns filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from parquet_variant.arrays.capsules import import_variant, with_metadata, without_views
from parquet_variant.arrays.parts import columns_of, stored_columns
from parquet_variant.files.vortex.json_columns import compress_json
from parquet_variant.files.vortex.library import vortex
from parquet_variant.layouts.path_steps import ArrowGroup, Step, next_group
from parquet_variant.ops.columns.extract_path import columns_of_path
from parquet_variant.path import VariantPath


class Part(Protocol):
    """A part of a Variant column that answers a path."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The fields along the path that are columns."""

    def expression(self, column: str | None) -> Any:
        """Return the expression over the file's rows that reads the part."""

    def column(self, array: pa.Array) -> pa.StructArray:
        """Convert the result of the expression to a storage struct in which a path is extracted."""

    def path_within(self, path: VariantPath) -> VariantPath:
        """Return the rest of a path, relative to the converted result."""


def part_of(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> Part:
    """Return the part of a stored column that a path needs as a type (None for a Variant): one column if possible."""
    part = group_of(storage, path, target)
    is_typed = not (part.is_whole or part.only_value or part.has_metadata or part.has_value)
    if not is_typed or target is None or pa.types.is_nested(target):
        return part
    kind = part.kind(storage).field("typed_value").type
    return part if pa.types.is_nested(kind) else TypedPart(part.levels, kind, part)


@dataclass(frozen=True, slots=True)
class TypedPart:
    """A typed column that holds all values at a path."""

    levels: tuple[str, ...]  # The path.
    type: pa.DataType  # The column's type.
    # Its group; None inside Vortex's own type, where no value at the path is in bytes.
    group: StoragePart | None = None

    def expression(self, column: str | None) -> Any:
        """Implement `Part`."""
        expr = vortex().expr
        if self.group is not None:
            return expr.get_item("typed_value", self.group.group(column))
        return expr.variant_get(expr.column(column), list(self.levels), vortex().DType.from_arrow(self.type))

    def column(self, array: pa.Array) -> pa.StructArray:
        """Implement `Part`."""
        return pa.StructArray.from_arrays([array.cast(self.type)], names=["typed_value"])

    def path_within(self, path: VariantPath) -> VariantPath:
        """Implement `Part`."""
        return VariantPath()


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A whole column of JSON text, which is parsed to Variants."""

    levels: ClassVar[tuple[str, ...]] = ()

    def expression(self, column: str | None) -> Any:
        """Implement `Part`."""
        return vortex().expr.column(column)

    def column(self, array: pa.Array) -> pa.StructArray:
        """Implement `Part`."""
        return compress_json(array, shred=False).storage

    def path_within(self, path: VariantPath) -> VariantPath:
        """Implement `Part`."""
        return path


@dataclass(frozen=True, slots=True)
class NestedPart:
    """A Variant inside of structs, read with all fields: vortex-data 0.93 crashes if it reads the Variant alone."""

    levels: ClassVar[tuple[str, ...]] = ()
    place: tuple[str, ...]

    def expression(self, column: str | None) -> Any:
        """Implement `Part`."""
        return vortex().expr.column(self.place[0])

    def column(self, array: pa.Array) -> pa.StructArray:
        """Implement `Part`."""
        for name in self.place[1:]:
            array = columns_of(array)[name]
        return import_variant(array)[0] if len(array) else array

    def path_within(self, path: VariantPath) -> VariantPath:
        """Implement `Part`."""
        return path


@dataclass(frozen=True, slots=True)
class StoragePart:
    """A part of a storage struct, or the whole struct."""

    levels: tuple[str, ...]  # The fields along the path.
    only_value: bool  # True if only ``value`` of the last group is needed.
    has_metadata: bool  # True if bytes are read.
    has_value: bool  # True if the last group has a ``value`` column.

    def group(self, column: str | None) -> Any:
        """Return the expression for the last group."""
        expr = vortex().expr
        group = expr.column(column)
        for name in self.levels:
            group = expr.get_item(name, expr.get_item("typed_value", group))
        return group

    def kind(self, storage: pa.StructType) -> pa.StructType:
        """Return the type of the last group."""
        for name in self.levels:
            storage = storage.field("typed_value").type.field(name).type
        return storage

    def expression(self, column: str | None) -> Any:
        """Return the expression that reads the part: a struct, or the whole column."""
        expr = vortex().expr
        if self.is_whole:
            return expr.column(column)
        group = self.group(column)
        pieces = {}
        if self.has_metadata:
            pieces["metadata"] = expr.get_item("metadata", expr.column(column))
        if not self.only_value:
            pieces["group"] = group
        elif self.has_value:
            pieces["value"] = expr.get_item("value", group)
        if not pieces:  # no row has a value, but a column is needed to know the number of rows
            pieces["nothing"] = expr.is_null(expr.column(column))
        return expr.pack(pieces)

    @property
    def is_whole(self) -> bool:
        """True if the part is the whole column."""
        return not self.levels and not self.only_value

    def column(self, array: pa.Array) -> pa.StructArray:
        """Return a storage struct for which `extract_path` returns the same as for the whole column."""
        if self.is_whole:
            return import_variant(array)[0] if len(array) else array
        read = stored_columns(array)
        if self.only_value:
            group: dict[str, pa.Array] = {"value": read.get("value", pa.nulls(len(array), pa.binary()))}
        else:
            inner = read["group"]
            group = columns_of(inner)
        for name in reversed(self.levels):
            child = pa.StructArray.from_arrays(list(group.values()), names=list(group))
            group = {"typed_value": pa.StructArray.from_arrays([child], names=[name])}
        if "metadata" in read:
            group = {"metadata": read["metadata"], **group}
        storage = pa.StructArray.from_arrays(list(group.values()), names=list(group))
        kind = without_views(storage.type, large=False)
        return with_metadata(storage if kind == storage.type else storage.cast(kind))

    def path_within(self, path: VariantPath) -> VariantPath:
        """Implement `Part`."""
        return path


def group_of(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> StoragePart:
    """Return the group of a stored column in which a path ends, with the columns that are needed.

    >>> typed = pa.struct({"a": pa.struct({"typed_value": pa.int64()})})
    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": typed})
    >>> group_of(storage, VariantPath.parse("$.a"), pa.int64())
    StoragePart(levels=('a',), only_value=False, has_metadata=False, has_value=False)
    >>> group_of(storage, VariantPath.parse("$.b"), pa.int64())
    StoragePart(levels=(), only_value=True, has_metadata=True, has_value=True)
    """
    group = ArrowGroup(storage)
    if group.child("typed_value") is None:
        return StoragePart((), False, True, True)
    levels: list[str] = []
    for segment in path.segments:
        step, child_group = next_group(group, segment)
        has_value = group.child("value") is not None
        if child_group is None:
            return StoragePart(tuple(levels), True, step is Step.NOT_SHREDDED, has_value)
        if not isinstance(segment, str):
            return StoragePart(tuple(levels), False, _reads_bytes(storage, path, target), has_value)
        levels.append(segment)
        group = child_group
    return StoragePart(tuple(levels), False, _reads_bytes(storage, path, target), group.child("value") is not None)


def _reads_bytes(storage: pa.StructType, path: VariantPath, target: pa.DataType | None) -> bool:
    """Return True if metadata is needed: for bytes along the path, or to encode the result."""
    if target is None or pa.types.is_nested(target) or isinstance(target, pa.BaseExtensionType):
        return True
    columns = columns_of_path(storage, path)
    return len(columns) != 1 or columns[0][-1] == "value"
