"""Statistics of shredded children by row range.

Owns collecting statistics, writing them, and what they prove about a path as a type. Values in bytes have no
statistics, unless they are collected from another encoding of the same values: they are unknown, and unknown never
skips. `query.prune` reasons with three values,
`scanning.path_statistics` casts bounds, and `trailer` stores the statistics in a file.

The type of an expression excludes more ranges than bounds do: in a range where the path exists only with another type,
every row is null.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import columns_of
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import target_of
from parquet_variant.files.parquet.scanning.path_statistics import scalar_statistics
from parquet_variant.files.vortex.columnar.column import PathColumn
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.files.vortex.logical.encodings import encoding_of
from parquet_variant.inference.infer import infer
from parquet_variant.inference.leaf_statistics import LeafStatistics, order_key
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.statistics import TEXT_LENGTH, lower_text, upper_text
from parquet_variant.kernels.kinds import KIND
from parquet_variant.ops.columns.target_type import as_target
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Compare, Operator, Predicate, bind
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.support import arrow_compute as pc

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

RANGE_ROWS = 8192
# Above this number of paths, only frequent paths of values in bytes have statistics, because a column per path would
# take longer than writing the file.
MAX_DESCRIBED_PATHS = 4096
_LENGTH = struct.Struct("<I")
_NO_MARKS, _NO_ROWS = np.zeros(0, np.bool_), np.zeros(0, np.int64)
_VARIANT_NULL = b"\x00"
_ONLY_NULL = ColumnStatistics(may_be_value=False, may_be_nan=False)
# Families of exact numbers, whose values compare with each other.
_EXACT = ("integer", "decimal")


@dataclass(frozen=True, eq=False)
class ChildStatistics:
    """Statistics of a typed child of a path, one entry per range."""

    type: pa.DataType  # The Arrow type of the child.
    counts: Int64s  # Number of values in each range.
    # Bounds of all values except NaN; null in a range without values or without known bounds. Long strings are
    # truncated.
    lower: pa.Array
    upper: pa.Array
    has_nan: Bools  # True for ranges with a NaN.


@dataclass(frozen=True, eq=False)
class PathStatistics:
    """Statistics of all typed children of a path, one entry per range."""

    children: tuple[ChildStatistics, ...]  # One per type.
    unknown: Bools  # True for ranges with values that are not in a typed child.
    nested: Bools  # True for ranges with objects or arrays at the path.


@dataclass(frozen=True, eq=False)
class RangeStatistics:
    """Statistics of the shredded children of a column, by row range.

    Parameters
    ----------
    rows, range_rows
        Number of rows of the column, and of a range.
    paths
        Statistics of the paths with shredded children.
    is_complete
        If true, a path without statistics has no values; otherwise nothing is known about such a path.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [f'{{"id": {n}}}' for n in range(8192)] + [f'{{"id": "text {n}"}}' for n in range(8192)]
    >>> statistics = collect_statistics(pv.vortex.encode(pv.parse_json(rows), "columnar"))
    >>> statistics.ranges("$.id", "bigint"), statistics.ranges("$.id", "bigint", ">", 9000)
    ([(0, 8192)], [])
    >>> statistics.ranges("$.id", "string", "=", "text 7")
    [(8192, 16384)]
    """

    rows: int
    range_rows: int
    paths: dict[VariantPath, PathStatistics] = field(default_factory=dict)
    is_complete: bool = False

    @property
    def count(self) -> int:
        """Number of ranges."""
        return -(-self.rows // self.range_rows)

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first row of a range and the row after its last."""
        return number * self.range_rows, min((number + 1) * self.range_rows, self.rows)

    def ranges(
        self, path: str | VariantPath, dtype: str | pa.DataType, op: Operator | None = None, literal: Any = None
    ) -> list[tuple[int, int]]:
        """Return the ranges in which a row can have a value of the type at the path that satisfies a comparison.

        Parameters
        ----------
        path
            The path, as `get_variant_element` takes it.
        dtype
            The type.
        op, literal
            The comparison of the value with a literal; None for any value.

        Returns
        -------
        list of (int, int)
            First row and the row after the last of each range. In all other ranges no row can match.

        Raises
        ------
        PredicateError
            For a literal that cannot be compared with the type.
        """
        parsed, target = VariantPath.parse(path), as_target(dtype)
        predicate: Predicate | None = None if op is None else bind(Compare("x", op, literal), {"x": target})
        by_range = [self.of_path(parsed, target, number, cast=False) for number in range(self.count)]

        def may_hold_match(statistics: ColumnStatistics) -> bool:
            if predicate is None:
                return statistics.may_be_value
            return bool(may_match(predicate, lambda _: statistics))

        return [self.bounds(number) for number, statistics in enumerate(by_range) if may_hold_match(statistics)]

    def of_path(self, path: VariantPath, target: pa.DataType | None, number: int, *, cast: bool) -> ColumnStatistics:
        """Return the statistics of a path as a type (None for a Variant) in a range.

        `number`: the number of the range.
        `cast`: if true, values are cast to the type; otherwise values of another type are null.
        """
        if (
            target is None
            or pa.types.is_nested(target)
            or not all(isinstance(segment, str) for segment in path.segments)
        ):
            return UNKNOWN
        statistics = self.paths.get(path)
        if statistics is None:
            return _ONLY_NULL if self.is_complete else UNKNOWN
        if statistics.unknown[number] or (cast and statistics.nested[number] and target_of(target).family == "string"):
            return UNKNOWN
        present = [child for child in statistics.children if child.counts[number]]
        if cast:
            return _merge_statistics([_cast_statistics(child, number, target) for child in present])
        return _merge_statistics(
            [_uncast_statistics(child, number, target) for child in present if _can_be(child.type, target)]
        )

    # -- serialization

    def to_bytes(self) -> bytes:
        """Return the statistics as an Arrow stream with one row of lists: flags, counts, and bounds by type."""
        all_children = [child for path in self.paths.values() for child in path.children]
        types = list(dict.fromkeys(child.type for child in all_children))
        lists = [
            pa.array(np.concatenate([_NO_MARKS, *marks]))
            for marks in (
                [path.unknown for path in self.paths.values()],
                [path.nested for path in self.paths.values()],
                [child.has_nan for child in all_children],
            )
        ]
        lists.append(pa.array(np.concatenate([_NO_ROWS, *(child.counts for child in all_children)])))
        for kind in types:
            of_type = [child for child in all_children if child.type == kind]
            lists.append(pa.concat_arrays(child.lower for child in of_type))
            lists.append(pa.concat_arrays(child.upper for child in of_type))
        types_by_path = [
            (str(path), [types.index(child.type) for child in statistics.children])
            for path, statistics in self.paths.items()
        ]
        header = {
            "rows": self.rows,
            "range_rows": self.range_rows,
            "is_complete": self.is_complete,
            "paths": types_by_path,
        }
        columns = [pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values) for values in lists]
        batch = pa.record_batch(columns, names=list(map(str, range(len(columns)))))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        packed_header = zlib.compress(json.dumps(header).encode())
        return _LENGTH.pack(len(packed_header)) + packed_header + bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> RangeStatistics:
        """Read statistics that `to_bytes` wrote."""
        (length,) = _LENGTH.unpack_from(data)
        body = _LENGTH.size + length
        header = json.loads(zlib.decompress(data[_LENGTH.size : body]))
        batch = pa.ipc.open_stream(pa.py_buffer(data[body:])).read_next_batch()
        unknown, nested, has_nan, counts = (
            column.values.to_numpy(zero_copy_only=False) for column in batch.columns[:4]
        )
        bounds = [column.values for column in batch.columns[4:]]
        size = -(-header["rows"] // header["range_rows"])
        offset_by_type = [0] * (len(bounds) // 2)
        paths, offset = {}, 0
        for number, (path, types) in enumerate(header["paths"]):
            children = []
            for kind in types:
                lower, upper = (values.slice(offset_by_type[kind], size) for values in bounds[2 * kind : 2 * kind + 2])
                span = slice(offset, offset + size)
                children.append(ChildStatistics(lower.type, counts[span], lower, upper, has_nan[span]))
                offset_by_type[kind] += size
                offset += size
            span = slice(number * size, (number + 1) * size)
            paths[VariantPath.parse(path)] = PathStatistics(tuple(children), unknown[span], nested[span])
        return cls(header["rows"], header["range_rows"], paths, header["is_complete"])


# -- statistics of a path as a type


def _cast_statistics(child: ChildStatistics, number: int, target: pa.DataType) -> ColumnStatistics:
    leaf = LeafStatistics(int(child.counts[number]), 0, _bound(child.lower[number]), _bound(child.upper[number]))
    return scalar_statistics(leaf, child.type, target, hidden_nan=bool(child.has_nan[number]))


def _uncast_statistics(child: ChildStatistics, number: int, target: pa.DataType) -> ColumnStatistics:
    """Return the statistics without a cast: numbers compare by value, whatever their width and scale."""
    nan = bool(child.has_nan[number])
    if child.type != target and any(map(pa.types.is_temporal, (child.type, target))):
        return ColumnStatistics(may_be_nan=nan)
    return ColumnStatistics(_bound(child.lower[number]), _bound(child.upper[number]), may_be_nan=nan)


def _bound(scalar: pa.Scalar) -> pa.Scalar | None:
    return scalar if scalar.is_valid else None


def _merge_statistics(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """Return the statistics of all children together; rows without a value are null."""
    parts = [part for part in parts if part.may_be_value]
    if not parts:
        return _ONLY_NULL
    lower, upper = [part.lower for part in parts], [part.upper for part in parts]
    nan = any(part.may_be_nan for part in parts)
    # All bounds or none: a child without bounds (unknown, or only NaN) makes the merged bounds unknown.
    if any(bound is None for bound in (*lower, *upper)):
        return ColumnStatistics(may_be_nan=nan)
    return ColumnStatistics(min(lower, key=order_key), max(upper, key=order_key), may_be_nan=nan)


def _can_be(stored: pa.DataType, requested: pa.DataType) -> bool:
    """Return True if a value of a child's type can be a value of the requested type (see `ops.columns.slot_casts`)."""
    left, right = target_of(stored).family, target_of(requested).family
    return left == right or (left in _EXACT and right in _EXACT) or (left, right) == ("float32", "float64")


# -- collection


def collect_statistics(array: Any, range_rows: int | None = None) -> RangeStatistics:
    """Collect the statistics of a column's shredded children.

    Parameters
    ----------
    array
        A column in any encoding. Only the final layout and the columnar encoding have shredded children.
    range_rows
        Number of rows per range; default 8,192.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1}', '{"a": 5}']), pv.ShreddingSchema.from_ddl("a bigint"))
    >>> statistics = collect_statistics(array)
    >>> statistics.ranges("$.a", "bigint", ">", 5), statistics.ranges("$.b", "bigint", ">", 5)
    ([], [(0, 2)])
    """
    _, column = encoding_of(array)
    range_rows = RANGE_ROWS if range_rows is None else range_rows
    statistics = _of_columnar(column) if isinstance(column, ColumnarVariant) else _of_shredded(column)
    count = -(-len(column) // range_rows)

    def ranges_of(rows: Int64s) -> Bools:
        flags = np.zeros(count, np.bool_)
        flags[rows // range_rows] = True
        return flags

    paths = {
        path: PathStatistics(
            tuple(_child_statistics(values, rows, len(column), range_rows) for values, rows in typed),
            ranges_of(unknown),
            ranges_of(nested),
        )
        for path, typed, unknown, nested in statistics
    }
    return RangeStatistics(len(column), range_rows, paths, isinstance(column, ColumnarVariant))


def with_columns_to_describe(array: VariantArray) -> VariantArray | ColumnarVariant:
    """Return the values of an array in an encoding with columns for `collect_statistics`, whatever types they have.

    >>> statistics = collect_statistics(with_columns_to_describe(VariantArray.from_pylist([{"a": 1}, {"a": "x"}])))
    >>> statistics.ranges("$.a", "bigint", ">", 1), statistics.ranges("$.a", "string", "=", "x")
    ([], [(0, 2)])
    """
    profile = Profile.of_array(array)
    if profile.path_count <= MAX_DESCRIBED_PATHS:
        return ColumnarVariant.from_variant(array.to_unshredded())
    return shred_variant(array, infer(profile).schema)


# A path; its typed children without nulls, with their rows; the rows of values in bytes; the rows of objects or arrays.
_PathValues = tuple[VariantPath, list[tuple[pa.Array, Int64s]], Int64s, Int64s]


def _of_shredded(array: VariantArray) -> Iterator[_PathValues]:
    if array.schema is None:
        return
    stack = [(VariantPath(), array.schema, columns_of(array.storage))]
    while stack:
        path, node, columns = stack.pop()
        if node.kind == "object":
            groups = columns_of(columns["typed_value"])
            stack.extend((path / name, child, columns_of(groups[name])) for name, child in node.fields)
        if node.type is None:
            continue
        typed = columns["typed_value"]
        rows, residual_rows = np.flatnonzero(typed.is_valid().to_numpy(zero_copy_only=False)), _NO_ROWS
        if "value" in columns:
            # A Variant null is not a value of any type; any other residual may be a value of the requested type.
            is_residual = pc.not_equal(columns["value"].cast(pa.binary()), _VARIANT_NULL).fill_null(False)
            residual_rows = np.flatnonzero(is_residual.to_numpy(zero_copy_only=False))
        yield path, [(typed.take(pa.array(rows)), rows)], residual_rows, _NO_ROWS


def _of_columnar(array: ColumnarVariant) -> Iterator[_PathValues]:
    """Yield the columns that are not inside an array."""
    stack: list[tuple[VariantPath, PathColumn, Int64s]] = [(VariantPath(), array.column, array.present)]
    while stack:
        path, column, rows = stack.pop()
        children = [(child, rows[column.positions(index)]) for index, child in enumerate(column.children)]
        nested = [child_rows for child, child_rows in children if child.kind in (KIND.OBJECT, KIND.ARRAY)]
        typed = [(child.values, child_rows) for child, child_rows in children if child.values is not None]
        yield path, typed, _NO_ROWS, np.concatenate([_NO_ROWS, *nested])
        for child, child_rows in children:
            for name, child_field in child.fields.items():
                stack.append((path / name, child_field.column, child_rows[child_field.object_positions(child.size)]))


def _child_statistics(values: pa.Array, rows: Int64s, size: int, range_rows: int) -> ChildStatistics:
    """Return the statistics of values without nulls, whose rows are ascending."""
    count = -(-size // range_rows)
    bounds = np.searchsorted(rows, np.arange(count + 1) * range_rows)
    kind = values.type
    lower: list[Any] = [None] * count
    upper: list[Any] = [None] * count
    has_nan = np.zeros(count, np.bool_)
    has_bounds = not isinstance(kind, pa.BaseExtensionType) and target_of(kind).family != "binary"
    for number in range(count):
        part = values.slice(bounds[number], bounds[number + 1] - bounds[number])
        if pa.types.is_floating(kind):
            nan = pc.is_nan(part)
            has_nan[number] = bool(pc.any(nan).as_py())
            part = part.filter(pc.invert(nan))
        if has_bounds and len(part):
            extremes = pc.min_max(part)
            lower[number] = _truncated(extremes["min"], lower_text)
            upper[number] = _truncated(extremes["max"], upper_text)
    # Arrays are made from Arrow scalars, because Python values would lose nanoseconds.
    return ChildStatistics(kind, np.diff(bounds), pa.array(lower, kind), pa.array(upper, kind), has_nan)


def _truncated(bound: pa.Scalar, truncate: Any) -> pa.Scalar | None:
    if target_of(bound.type).family != "string" or len(text := bound.as_py()) <= TEXT_LENGTH:
        return bound
    truncated = truncate(text)
    return None if truncated is None else pa.scalar(truncated, bound.type)
