"""Statistics of shredded children by row range, and which ranges a typed expression can leave out.

Owns collecting them and the conclusion "no row of this range can match". There are none for what is not shredded: bytes
are unknown, and unknown never skips. Leaves the three-valued reasoning to `query.prune`, and comparing rows to
`matching_rows`' caller of `parquet.predicate`.

A typed expression makes more ranges useless than bounds do: where a path exists only with another type, every row of
the range is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from parquet_variant.array.draft_parts import columns_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.targets import target_of
from parquet_variant.functions.target_type import as_target
from parquet_variant.kernels.tape import OBJECT
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Compare, Operator, Predicate, bind, evaluate
from parquet_variant.query.prune import ColumnFacts, may_match, order_key
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.columnar import Column, ColumnarVariant
from parquet_variant.vortex.encodings import encoding_of
from parquet_variant.vortex.get_element import get_variant_element

__all__ = ["ChildStatistics", "RangeStatistics", "collect_statistics", "matching_rows"]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

RANGE_ROWS = 8192
_VARIANT_NULL = b"\x00"
# Families of types whose values compare with each other: exact numbers.
_EXACT = ("integer", "decimal")


@dataclass(frozen=True, eq=False)
class ChildStatistics:
    """A typed child of a path, range by range.

    Parameters
    ----------
    type
        Its Arrow type.
    counts
        How many values each range has.
    lower, upper
        Their bounds, NaN apart; None where there is no value.
    has_nan
        Ranges with a NaN.
    """

    type: pa.DataType
    counts: Int64s
    lower: tuple[pa.Scalar | None, ...]
    upper: tuple[pa.Scalar | None, ...]
    has_nan: Bools


@dataclass(frozen=True, eq=False)
class RangeStatistics:
    """What is known of the shredded children of a column.

    Parameters
    ----------
    rows, range_rows
        Rows of the column, and of a range.
    children
        The typed children of each path that has some.
    unknown
        For each of these paths the ranges with values that are in no typed child.
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
    children: dict[VariantPath, tuple[ChildStatistics, ...]] = field(default_factory=dict)
    unknown: dict[VariantPath, Bools] = field(default_factory=dict)
    is_complete: bool = False

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
        predicate = None if op is None else bind(Compare("x", op, literal), {"x": target})
        count = -(-self.rows // self.range_rows)
        return [
            (number * self.range_rows, min((number + 1) * self.range_rows, self.rows))
            for number in range(count)
            if self._may_match(parsed, target, predicate, number)
        ]

    def _may_match(self, path: VariantPath, target: pa.DataType, predicate: Predicate | None, number: int) -> bool:
        if pa.types.is_nested(target) or path.has_wildcard or any(isinstance(each, int) for each in path.segments):
            return True
        if path not in self.children:
            return not self.is_complete
        if self.unknown[path][number]:
            return True
        facts = self._facts(path, target, number)
        return facts.may_be_value if predicate is None else may_match(predicate, lambda _: facts)

    def _facts(self, path: VariantPath, target: pa.DataType, number: int) -> ColumnFacts:
        found = [
            child for child in self.children[path] if child.counts[number] and _can_be(child.type, target)
        ]  # fmt: skip
        if not found:
            return ColumnFacts(may_be_value=False, may_be_nan=False)
        nan = any(bool(child.has_nan[number]) for child in found)
        lower, upper = [child.lower[number] for child in found], [child.upper[number] for child in found]
        # Nothing is cast: numbers compare as what they are, whatever their width and scale.
        ordered = all(child.type == target or not _is_temporal(child.type, target) for child in found)
        if not ordered or any(bound is None for bound in (*lower, *upper)):
            return ColumnFacts(may_be_nan=nan)
        return ColumnFacts(min(lower, key=order_key), max(upper, key=order_key), may_be_nan=nan)


def _can_be(stored: pa.DataType, asked: pa.DataType) -> bool:
    """Whether a value of a child's type can be one of the type asked for (see `functions.lossless`)."""
    left, right = target_of(stored).family, target_of(asked).family
    return left == right or (left in _EXACT and right in _EXACT) or (left, right) == ("float32", "float64")


def _is_temporal(*kinds: pa.DataType) -> bool:
    return any(pa.types.is_temporal(kind) for kind in kinds)


def collect_statistics(array: Any, range_rows: int = RANGE_ROWS) -> RangeStatistics:
    """Collect the statistics of a column's shredded children.

    Parameters
    ----------
    array
        A column in any encoding. Only the final layout and the columnar encoding have children to tell of.
    range_rows
        Rows of a range.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1}', '{"a": 5}']), pv.ShreddingSchema.from_ddl("a bigint"))
    >>> statistics = collect_statistics(array)
    >>> statistics.ranges("$.a", "bigint", ">", 5), statistics.ranges("$.b", "bigint", ">", 5)
    ([], [(0, 2)])
    """
    encoding, column = encoding_of(array)
    if isinstance(column, ColumnarVariant):
        return _of_columnar(column, range_rows)
    if encoding.name != "final" or column.schema is None:
        return RangeStatistics(len(column), range_rows)
    return _of_shredded(column, column.schema, range_rows)


def _child(values: pa.Array, rows: Int64s, size: int, range_rows: int) -> ChildStatistics:
    """Statistics of some values, without nulls, of ascending rows."""
    count = -(-size // range_rows)
    bounds = np.searchsorted(rows, np.arange(count + 1) * range_rows)
    lower: list[pa.Scalar | None] = []
    upper: list[pa.Scalar | None] = []
    has_nan = np.zeros(count, np.bool_)
    floating = pa.types.is_floating(values.type)
    for number in range(count):
        part = values.slice(bounds[number], bounds[number + 1] - bounds[number])
        if floating:
            nan = pc.is_nan(part)
            has_nan[number] = bool(pc.any(nan).as_py())
            part = part.filter(pc.invert(nan))
        known = len(part) and not isinstance(part.type, pa.BaseExtensionType)
        found = pc.min_max(part) if known else {"min": None, "max": None}
        lower.append(found["min"])
        upper.append(found["max"])
    return ChildStatistics(values.type, np.diff(bounds), tuple(lower), tuple(upper), has_nan)


def _of_shredded(array: VariantArray, schema: ShreddingSchema, range_rows: int) -> RangeStatistics:
    children: dict[VariantPath, tuple[ChildStatistics, ...]] = {}
    unknown: dict[VariantPath, Bools] = {}
    count = -(-len(array) // range_rows)
    stack = [(VariantPath(), schema, columns_of(array.storage))]
    while stack:
        path, node, columns = stack.pop()
        if node.kind == "object":
            below = columns_of(columns["typed_value"])
            stack.extend((path / name, child, columns_of(below[name])) for name, child in node.fields)
        if node.type is None:
            continue
        typed = columns["typed_value"]
        rows = np.flatnonzero(typed.is_valid().to_numpy(zero_copy_only=False))
        children[path] = (_child(typed.take(pa.array(rows)), rows, len(array), range_rows),)
        unknown[path] = np.zeros(count, np.bool_)
        if "value" in columns:
            # A Variant null is no value of any type; anything else in bytes may be one.
            held = pc.not_equal(columns["value"].cast(pa.binary()), _VARIANT_NULL).fill_null(False)
            unknown[path][np.flatnonzero(held.to_numpy(zero_copy_only=False)) // range_rows] = True
    return RangeStatistics(len(array), range_rows, children, unknown)


def _of_columnar(array: ColumnarVariant, range_rows: int) -> RangeStatistics:
    children: dict[VariantPath, tuple[ChildStatistics, ...]] = {}
    for path, column, rows in _columns(array):
        children[path] = tuple(
            _child(child.values, rows[column.positions(index)], len(array), range_rows)
            for index, child in enumerate(column.children)
            if child.values is not None
        )
    count = -(-len(array) // range_rows)
    unknown = {path: np.zeros(count, np.bool_) for path in children}
    return RangeStatistics(len(array), range_rows, children, unknown, is_complete=True)


def _columns(array: ColumnarVariant) -> Iterator[tuple[VariantPath, Column, Int64s]]:
    """The columns that no array is above of, with the row of each value."""
    stack = [(VariantPath(), array.column, array.present)]
    while stack:
        path, column, rows = stack.pop()
        yield path, column, rows
        objects = column.child(OBJECT)
        if objects is not None:
            own = rows[objects[1]]
            for name, found in objects[0].fields.items():
                stack.append((path / name, found.column, own[found.places(objects[0].size)]))


def matching_rows(
    array: Any,
    path: str | VariantPath,
    dtype: str | pa.DataType,
    op: Operator,
    literal: Any,
    statistics: RangeStatistics | None = None,
) -> pa.Array:
    """The numbers of the rows whose value at a path is of a type and compares with a literal as asked.

    Parameters
    ----------
    array
        A column in any encoding.
    path, dtype
        As in `get_variant_element`.
    op, literal
        ``"="``, ``"<>"``, ``"<"``, ``"<="``, ``">"`` or ``">="``, and what the value is compared with.
    statistics
        Ranges that they exclude are not looked at. The answer is the same without.

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
    _, column = encoding_of(array)
    predicate = bind(Compare("x", op, literal), {"x": target})
    ranges = [(0, len(column))] if statistics is None else statistics.ranges(path, target, op, literal)
    found = [np.zeros(0, np.int64)]
    for start, stop in ranges:
        part = get_variant_element(column[start:stop], path, target)
        hits = evaluate(predicate, {"x": part}).fill_null(False)
        found.append(np.flatnonzero(hits.to_numpy(zero_copy_only=False)) + start)
    return pa.array(np.concatenate(found))
