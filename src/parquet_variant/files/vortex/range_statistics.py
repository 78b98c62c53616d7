"""Statistics of shredded children by row range, and `matching_rows`, which uses them.

Owns collecting statistics, writing them, and what they prove about a path as a type. Only shredded children have
statistics. Of the values of a shredded path in bytes, the kinds are known: a range is skipped if no value in it can
have the type of the expression. Everything else is unknown, and unknown never skips. `query.prune` reasons with three
values, `scanning.path_statistics` casts bounds, and `library` stores the statistics in a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import columns_of
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.scanning.projection import scalar_statistics
from parquet_variant.files.vortex.dtype import final_variant
from parquet_variant.inference.statistics import TEXT_LENGTH, LeafStatistics, lower_text, upper_text
from parquet_variant.kernels.memory import KIND
from parquet_variant.layouts.type_grammar import as_target
from parquet_variant.ops.variant_get import get_variant_element
from parquet_variant.query.predicate import Compare, Operator, Predicate, bind, evaluate
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, may_match
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import TYPE_OF_ID, BasicType, PrimitiveId
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import target_of

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

RANGE_ROWS = 8192
_ONLY_NULL = ColumnStatistics(may_be_value=False, may_be_nan=False)
# Families of exact numbers, whose values compare with each other.
_EXACT = ("integer", "decimal")


# The kind of a value by the first byte of its encoding, as a bit; all bits for unknown types.
_KIND_BITS = np.full(256, (1 << 32) - 1, np.uint32)
_KIND_BITS[: KIND.ARRAY << 2 : 4] = 1 << np.arange(KIND.ARRAY)  # primitives
for _basic, _kind in ((BasicType.SHORT_STRING, "STRING"), (BasicType.ARRAY, "ARRAY"), (BasicType.OBJECT, "OBJECT")):
    _KIND_BITS[_basic::4] = 1 << getattr(KIND, _kind)


# The statistics of a path: a struct array with one entry per range. Bounds are of all typed values except NaN, null in
# a range without values or without known bounds; long strings are truncated. Kinds of values in bytes are bits, without
# Variant nulls.
_STORED = ["counts", "lower", "upper", "has_nan", "in_bytes"]


class RangeStatistics(Record, eq=False):
    """Statistics of the shredded children of a column, by row range.

    Parameters
    ----------
    rows, range_rows
        Number of rows of the column, and of a range.
    paths
        Statistics of the paths with shredded children, with one entry per range: numbers of typed values, bounds, NaN,
        and kinds of the values in bytes. Nothing is known about other paths.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [f'{{"id": {n}}}' for n in range(8192)] + [f'{{"id": "text {n}"}}' for n in range(8192)]
    >>> statistics = collect_statistics(pv.shred_variant(pv.parse_json(rows), "id bigint"))
    >>> statistics.ranges("$.id", "bigint"), statistics.ranges("$.id", "bigint", ">", 9000)
    ([(0, 8192)], [])
    >>> statistics.ranges("$.id", "string")
    [(8192, 16384)]
    """

    rows: int
    range_rows: int
    paths: dict[VariantPath, pa.StructArray] = field(default_factory=dict)

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
        ranges = []
        for number in range(self.count):
            statistics = self.of_path(parsed, target, number, cast=False)
            if statistics.may_be_value if predicate is None else may_match(predicate, {"x": statistics}.__getitem__):
                ranges.append(self.bounds(number))
        return ranges

    def of_path(self, path: VariantPath, target: pa.DataType | None, number: int, *, cast: bool) -> ColumnStatistics:
        """Return the statistics of a path as a type (None for a Variant) in a range.

        `number`: the number of the range.
        `cast`: if true, values are cast to the type; otherwise values of another type are null.
        """
        entries = self.paths.get(path)
        if entries is None or target is None or pa.types.is_nested(target):
            return UNKNOWN
        count, lower, upper, nan, in_bytes = entries[number].values()
        kinds = [kind for kind in range(KIND.OBJECT + 1) if in_bytes.as_py() >> kind & 1]
        types = [TYPE_OF_ID[PrimitiveId(kind)].arrow for kind in kinds if kind < KIND.ARRAY]
        if kinds if cast else any(arrow is not None and _can_be(arrow, target) for arrow in types):
            return UNKNOWN
        stored = lower.type
        if not count.as_py() or not (cast or _can_be(stored, target)):
            return _ONLY_NULL
        lower, upper = (bound if bound.is_valid else None for bound in (lower, upper))
        if cast:
            leaf = LeafStatistics(count.as_py(), None, lower, upper)  # other rows may be null
            return scalar_statistics(leaf, stored, target, hidden_nan=nan.as_py())
        # Without a cast numbers compare by value, whatever their width and scale.
        if stored != target and any(map(pa.types.is_temporal, (stored, target))):
            lower = upper = None
        return ColumnStatistics(lower, upper, may_be_nan=nan.as_py())

    def to_bytes(self) -> bytes:
        """Return the statistics as a compressed Arrow stream with a struct column per path and a row per range."""
        batch = pa.record_batch(list(self.paths.values()), names=list(map(str, self.paths)))
        schema = batch.schema.with_metadata({"rows": str(self.rows), "range_rows": str(self.range_rows)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
        return zlib.compress(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> RangeStatistics:
        """Read statistics that `to_bytes` wrote."""
        batch = pa.ipc.open_stream(zlib.decompress(data)).read_next_batch()
        stored = batch.schema.metadata
        paths = dict(zip(map(VariantPath.parse, batch.schema.names), batch.columns, strict=True))
        return cls(int(stored[b"rows"]), int(stored[b"range_rows"]), paths)


def _can_be(stored: pa.DataType, requested: pa.DataType) -> bool:
    """Return True if a value of a child's type can be a value of the requested type (see `ops.columns.slot_casts`)."""
    left, right = target_of(stored).family, target_of(requested).family
    return left == right or (left in _EXACT and right in _EXACT) or (left, right) == ("float32", "float64")


def collect_statistics(array: Any, range_rows: int | None = None) -> RangeStatistics:
    """Collect the statistics of a column's shredded children.

    Parameters
    ----------
    array
        A Variant column, unshredded or in the final layout, in which only shredded paths have statistics.
    range_rows
        Number of rows per range; default 8,192.

    Raises
    ------
    SchemaError
        If the column is not a Variant column, or is in a draft layout (``draft-layout``).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1}', '{"a": 5}']), pv.ShreddingSchema.from_ddl("a bigint"))
    >>> statistics = collect_statistics(array)
    >>> statistics.ranges("$.a", "bigint", ">", 5), statistics.ranges("$.b", "bigint", ">", 5)
    ([], [(0, 2)])
    """
    column = final_variant(array)
    range_rows = RANGE_ROWS if range_rows is None else range_rows
    return RangeStatistics(len(column), range_rows, dict(_paths_of(column, range_rows)))


def _paths_of(array: VariantArray, range_rows: int) -> Iterator[tuple[VariantPath, pa.StructArray]]:
    """Yield the shredded scalar paths outside of arrays, with their statistics."""
    if array.schema is None:
        return
    stack = [(VariantPath(), array.schema, columns_of(array.storage))]
    while stack:
        path, node, columns = stack.pop()
        if node.kind == "object":
            groups = columns_of(columns["typed_value"])
            stack.extend((path / name, child, columns_of(groups[name])) for name, child in node.fields)
        if node.type is not None:
            yield path, _statistics_of(columns["typed_value"], columns.get("value"), range_rows)


def _statistics_of(typed: pa.Array, residual: pa.Array | None, range_rows: int) -> pa.StructArray:
    """Return the statistics of a typed column, and of the kinds of the values in bytes next to it."""
    count = -(-len(typed) // range_rows)
    rows = np.flatnonzero(typed.is_valid().to_numpy(zero_copy_only=False))
    values = typed.take(pa.array(rows))
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
    in_bytes = np.zeros(count, np.uint32)
    if residual is not None and residual.null_count < len(residual):
        first = pc.binary_slice(residual.cast(pa.large_binary()), 0, 1)
        first = pc.if_else(pc.equal(pc.binary_length(first), 1), first, b"\0").fill_null(b"\0").cast(pa.binary(1))
        kinds = _KIND_BITS[np.frombuffer(first.buffers()[1], np.uint8, len(first), first.offset)]
        kinds = np.where(kinds == 1 << KIND.NULL, 0, kinds)  # also of rows without a value in bytes
        in_bytes = np.bitwise_or.reduceat(kinds, np.arange(count) * range_rows).astype(np.uint32)
    sides = (pa.array(bound, kind) for bound in (lower, upper))
    return pa.StructArray.from_arrays(
        [pa.array(np.diff(bounds)), *sides, pa.array(has_nan), pa.array(in_bytes)], _STORED
    )


def _truncated(bound: pa.Scalar, truncate: Any) -> pa.Scalar | None:
    if target_of(bound.type).family != "string" or len(text := bound.as_py()) <= TEXT_LENGTH:
        return bound
    truncated = truncate(text)
    return None if truncated is None else pa.scalar(truncated, bound.type)


def matching_rows(
    array: Any,
    path: str | VariantPath,
    dtype: str | pa.DataType,
    op: Operator,
    literal: Any,
    statistics: RangeStatistics | None = None,
    *,
    cast: bool = False,
    zone: str = "UTC",
) -> pa.Array:
    """Return the numbers of the rows whose value at a path has a type and compares with a literal.

    Parameters
    ----------
    array
        A Variant column.
    path, dtype
        As in `get_variant_element`.
    op, literal
        ``"="``, ``"<>"``, ``"<"``, ``"<="``, ``">"`` or ``">="``, and the value to compare with.
    statistics
        Statistics of the column. Ranges that they exclude are not read; the result is the same without them. They are
        not used with `cast`, because they describe the values without casts.
    cast, zone
        As for `get_variant_element`.

    Raises
    ------
    PredicateError
        For a literal that cannot be compared with the type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> matching_rows(pv.parse_json(['{"a": 1}', '{"a": "7"}', '{"a": 7}']), "$.a", "bigint", ">=", 7).to_pylist()
    [2]
    """
    target = as_target(dtype)
    column = final_variant(array)
    predicate = bind(Compare("x", op, literal), {"x": target})
    ranges = [(0, len(column))] if statistics is None or cast else statistics.ranges(path, target, op, literal)
    rows = [np.zeros(0, np.int64)]
    for start, stop in ranges:
        part = get_variant_element(column[start:stop], path, target, cast=cast, zone=zone)
        hits = evaluate(predicate, {"x": part}).fill_null(False)
        rows.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + start)
    return pa.array(np.concatenate(rows))
