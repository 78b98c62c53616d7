"""Statistics of shredded children by row range: collected, written, and what they say of a path as a type.

Owns the three. There are none for what is not shredded: bytes are unknown, and unknown never skips. Leaves the
three-valued reasoning to `query.prune`, bounds through casts to `scanning.path_statistics`, and the file to `trailer`.

A typed expression makes more ranges useless than bounds do: where a path exists only with another type, every row of
the range is null.
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

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import columns_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.target_type import as_target
from parquet_variant.encoding.cast.targets import target_of
from parquet_variant.kernels.kinds import KIND
from parquet_variant.parquet.scanning.path_statistics import scalar_statistics
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Compare, Operator, Predicate, bind
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.shredding.leaf_statistics import LeafStatistics, order_key
from parquet_variant.shredding.statistics import TEXT_LENGTH, lower_text, upper_text
from parquet_variant.vortex.columnar.column import Column
from parquet_variant.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.vortex.logical.encodings import encoding_of

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

RANGE_ROWS = 8192
_LENGTH = struct.Struct("<I")
_NO_MARKS, _NO_ROWS = np.zeros(0, np.bool_), np.zeros(0, np.int64)
_VARIANT_NULL = b"\x00"
_ONLY_NULL = ColumnStatistics(may_be_value=False, may_be_nan=False)
# Families of types whose values compare with each other: exact numbers.
_EXACT = ("integer", "decimal")


@dataclass(frozen=True, eq=False)
class ChildStatistics:
    """A typed child of a path, range by range."""

    type: pa.DataType  # Its Arrow type.
    counts: Int64s  # How many values each range has.
    # Scalars that no value is below or above, NaN apart; null where there is none, or none is known. Long texts are
    # cut.
    lower: pa.Array
    upper: pa.Array
    has_nan: Bools  # Ranges with a NaN.


@dataclass(frozen=True, eq=False)
class PathStatistics:
    """The typed children of a path, range by range."""

    children: tuple[ChildStatistics, ...]  # One a type.
    unknown: Bools  # Ranges with values that are in no typed child.
    nested: Bools  # Ranges with objects or arrays at the path.


@dataclass(frozen=True, eq=False)
class RangeStatistics:
    """What is known of the shredded children of a column.

    Parameters
    ----------
    rows, range_rows
        Rows of the column, and of a range.
    paths
        Those with shredded children.
    is_complete
        Whether a path that is not among them has no values at all; otherwise nothing is known of it.

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
        """The first row of a range and the row after its last."""
        return number * self.range_rows, min((number + 1) * self.range_rows, self.rows)

    def ranges(
        self, path: str | VariantPath, dtype: str | pa.DataType, op: Operator | None = None, literal: Any = None
    ) -> list[tuple[int, int]]:
        """The ranges in which a row can have a value of the type at the path, and one that compares so.

        Parameters
        ----------
        path
            The path, as `get_variant_element` takes it.
        dtype
            The type.
        op, literal
            What the value is compared with; None: any value.

        Returns
        -------
        list of (int, int)
            First row and the row after the last. In all other ranges no row can match.

        Raises
        ------
        PredicateError
            For a literal that cannot be compared with the type.
        """
        parsed, target = VariantPath.parse(path), as_target(dtype)
        predicate: Predicate | None = None if op is None else bind(Compare("x", op, literal), {"x": target})
        every = [self.of_path(parsed, target, number, cast=False) for number in range(self.count)]

        def may(known: ColumnStatistics) -> bool:
            return known.may_be_value if predicate is None else bool(may_match(predicate, lambda _: known))

        return [self.bounds(number) for number, known in enumerate(every) if may(known)]

    def of_path(self, path: VariantPath, target: pa.DataType | None, number: int, *, cast: bool) -> ColumnStatistics:
        """What is known of a path as a type (None for a Variant) in a range.

        `number`: the range.
        `cast`: whether values are cast to the type; otherwise those of another type are null.
        """
        if target is None or pa.types.is_nested(target) or not all(isinstance(each, str) for each in path.segments):
            return UNKNOWN
        statistics = self.paths.get(path)
        if statistics is None:
            return _ONLY_NULL if self.is_complete else UNKNOWN
        if statistics.unknown[number] or (cast and statistics.nested[number] and target_of(target).family == "string"):
            return UNKNOWN
        known = [child for child in statistics.children if child.counts[number]]
        if cast:
            return _united([_cast_statistics(child, number, target) for child in known])
        return _united([_own_statistics(child, number, target) for child in known if _can_be(child.type, target)])

    # -- written beside the column

    def to_bytes(self) -> bytes:
        """The statistics as an Arrow stream of one row: a list of marks, and one of the bounds of each type."""
        every = [child for path in self.paths.values() for child in path.children]
        types = list(dict.fromkeys(child.type for child in every))
        lists = [
            pa.array(np.concatenate([_NO_MARKS, *marks]))
            for marks in (
                [path.unknown for path in self.paths.values()],
                [path.nested for path in self.paths.values()],
                [child.has_nan for child in every],
            )
        ]
        lists.append(pa.array(np.concatenate([_NO_ROWS, *(child.counts for child in every)])))
        for kind in types:
            same = [child for child in every if child.type == kind]
            lists += [pa.concat_arrays(child.lower for child in same), pa.concat_arrays(child.upper for child in same)]
        shape = [(str(path), [types.index(child.type) for child in each.children]) for path, each in self.paths.items()]
        about = {"rows": self.rows, "range_rows": self.range_rows, "is_complete": self.is_complete, "paths": shape}
        columns = [pa.ListArray.from_arrays(pa.array([0, len(each)], pa.int32()), each) for each in lists]
        batch = pa.record_batch(columns, names=list(map(str, range(len(columns)))))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        shapes = zlib.compress(json.dumps(about).encode())
        return _LENGTH.pack(len(shapes)) + shapes + bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> RangeStatistics:
        """Read what `to_bytes` wrote."""
        (length,) = _LENGTH.unpack_from(data)
        begin = _LENGTH.size + length
        about = json.loads(zlib.decompress(data[_LENGTH.size : begin]))
        batch = pa.ipc.open_stream(pa.py_buffer(data[begin:])).read_next_batch()
        unknown, nested, has_nan, counts = (each.values.to_numpy(zero_copy_only=False) for each in batch.columns[:4])
        bounds = [each.values for each in batch.columns[4:]]
        size = -(-about["rows"] // about["range_rows"])
        used = [0] * (len(bounds) // 2)
        paths, at = {}, 0
        for number, (path, types) in enumerate(about["paths"]):
            children = []
            for kind in types:
                lower, upper = (each.slice(used[kind], size) for each in bounds[2 * kind : 2 * kind + 2])
                own = slice(at, at + size)
                children.append(ChildStatistics(lower.type, counts[own], lower, upper, has_nan[own]))
                used[kind] += size
                at += size
            own = slice(number * size, (number + 1) * size)
            paths[VariantPath.parse(path)] = PathStatistics(tuple(children), unknown[own], nested[own])
        return cls(about["rows"], about["range_rows"], paths, about["is_complete"])


# -- what they say


def _cast_statistics(child: ChildStatistics, number: int, target: pa.DataType) -> ColumnStatistics:
    known = LeafStatistics(int(child.counts[number]), 0, _bound(child.lower[number]), _bound(child.upper[number]))
    return scalar_statistics(known, child.type, target, hidden_nan=bool(child.has_nan[number]))


def _own_statistics(child: ChildStatistics, number: int, target: pa.DataType) -> ColumnStatistics:
    """Nothing is cast: numbers compare as what they are, whatever their width and scale."""
    nan = bool(child.has_nan[number])
    if child.type != target and any(map(pa.types.is_temporal, (child.type, target))):
        return ColumnStatistics(may_be_nan=nan)
    return ColumnStatistics(_bound(child.lower[number]), _bound(child.upper[number]), may_be_nan=nan)


def _bound(scalar: pa.Scalar) -> pa.Scalar | None:
    return scalar if scalar.is_valid else None


def _united(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """What is known of all children together; rows without a value are null."""
    parts = [each for each in parts if each.may_be_value]
    if not parts:
        return _ONLY_NULL
    lower, upper = [each.lower for each in parts], [each.upper for each in parts]
    nan = any(each.may_be_nan for each in parts)
    # All bounds or none: a child whose values are all NaN has no bounds, and any that are not known count as that.
    if any(bound is None for bound in (*lower, *upper)):
        return ColumnStatistics(may_be_nan=nan)
    return ColumnStatistics(min(lower, key=order_key), max(upper, key=order_key), may_be_nan=nan)


def _can_be(stored: pa.DataType, asked: pa.DataType) -> bool:
    """Whether a value of a child's type can be one of the type asked for (see `compute.slot_casts`)."""
    left, right = target_of(stored).family, target_of(asked).family
    return left == right or (left in _EXACT and right in _EXACT) or (left, right) == ("float32", "float64")


# -- collected


def collect_statistics(array: Any, range_rows: int | None = None) -> RangeStatistics:
    """Collect the statistics of a column's shredded children.

    Parameters
    ----------
    array
        A column in any encoding. Only the final layout and the columnar encoding have children to tell of.
    range_rows
        Rows of a range; 8,192 by default.

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

    def marked(rows: Int64s) -> Bools:
        marks = np.zeros(count, np.bool_)
        marks[rows // range_rows] = True
        return marks

    paths = {
        path: PathStatistics(
            tuple(_child(values, rows, len(column), range_rows) for values, rows in typed),
            marked(unknown),
            marked(nested),
        )
        for path, typed, unknown, nested in statistics
    }
    return RangeStatistics(len(column), range_rows, paths, isinstance(column, ColumnarVariant))


# A path, its typed children without nulls with their rows, and the rows of values in bytes, and of objects or arrays.
_PathValues = tuple[VariantPath, list[tuple[pa.Array, Int64s]], Int64s, Int64s]


def _of_shredded(array: VariantArray) -> Iterator[_PathValues]:
    if array.schema is None:
        return
    stack = [(VariantPath(), array.schema, columns_of(array.storage))]
    while stack:
        path, node, columns = stack.pop()
        if node.kind == "object":
            below = columns_of(columns["typed_value"])
            stack.extend((path / name, child, columns_of(below[name])) for name, child in node.fields)
        if node.type is None:
            continue
        typed = columns["typed_value"]
        rows, others = np.flatnonzero(typed.is_valid().to_numpy(zero_copy_only=False)), _NO_ROWS
        if "value" in columns:
            # A Variant null is no value of any type; anything else in bytes may be one.
            other = pc.not_equal(columns["value"].cast(pa.binary()), _VARIANT_NULL).fill_null(False)
            others = np.flatnonzero(other.to_numpy(zero_copy_only=False))
        yield path, [(typed.take(pa.array(rows)), rows)], others, _NO_ROWS


def _of_columnar(array: ColumnarVariant) -> Iterator[_PathValues]:
    """The columns that no array is above of."""
    stack: list[tuple[VariantPath, Column, Int64s]] = [(VariantPath(), array.column, array.present)]
    while stack:
        path, column, rows = stack.pop()
        own = [(child, rows[column.positions(index)]) for index, child in enumerate(column.children)]
        nested = [places for child, places in own if child.kind in (KIND.OBJECT, KIND.ARRAY)]
        typed = [(child.values, places) for child, places in own if child.values is not None]
        yield path, typed, _NO_ROWS, np.concatenate([_NO_ROWS, *nested])
        for child, places in own:
            for name, each in child.fields.items():
                stack.append((path / name, each.column, places[each.places(child.size)]))


def _child(values: pa.Array, rows: Int64s, size: int, range_rows: int) -> ChildStatistics:
    """Statistics of some values, without nulls, of ascending rows."""
    count = -(-size // range_rows)
    bounds = np.searchsorted(rows, np.arange(count + 1) * range_rows)
    kind = values.type
    lower: list[Any] = [None] * count
    upper: list[Any] = [None] * count
    has_nan = np.zeros(count, np.bool_)
    is_known = not isinstance(kind, pa.BaseExtensionType) and target_of(kind).family != "binary"
    for number in range(count):
        part = values.slice(bounds[number], bounds[number + 1] - bounds[number])
        if pa.types.is_floating(kind):
            nan = pc.is_nan(part)
            has_nan[number] = bool(pc.any(nan).as_py())
            part = part.filter(pc.invert(nan))
        if is_known and len(part):
            extremes = pc.min_max(part)
            lower[number], upper[number] = _short(extremes["min"], lower_text), _short(extremes["max"], upper_text)
    # Of scalars, not of Python's values: nanoseconds are kept.
    return ChildStatistics(kind, np.diff(bounds), pa.array(lower, kind), pa.array(upper, kind), has_nan)


def _short(bound: pa.Scalar, cut: Any) -> pa.Scalar | None:
    if target_of(bound.type).family != "string" or len(text := bound.as_py()) <= TEXT_LENGTH:
        return bound
    short = cut(text)
    return None if short is None else pa.scalar(short, bound.type)
