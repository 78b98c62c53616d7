"""`PathSummary`: the figures of a path, of values that are read, or of what footers prove.

Owns the names of types in summaries, and the ranges of numbers and times, which a `Profile` does not have. Leaves
counting to `inference.profile`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import reduce
from math import isfinite
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.python_values import scalar_to_python
from parquet_variant.errors import CastError
from parquet_variant.files.parquet.pages.leaf_values import union
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.support.records import Record
from parquet_variant.types import (
    DECIMAL_IDS,
    DECIMAL_TYPES,
    INTEGERS,
    TYPE_OF_ARROW,
    TYPE_OF_ID,
    PrimitiveId,
    VariantType,
)  # fmt: skip
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

# The smallest and the largest value.
Range: TypeAlias = "tuple[Any, Any]"
# Ranges by kind of value: ``number``, ``date``, ``timestamp`` or ``timestamp_ntz``.
Ranges: TypeAlias = "dict[str, Range]"

_P = PrimitiveId
_TYPE_NAMES: dict[VariantType, str] = {
    **dict.fromkeys(INTEGERS, "integer"),
    **dict.fromkeys(DECIMAL_TYPES, "decimal"),
    VariantType.FLOAT: "double",
    VariantType.TIMESTAMP_NANOS: "timestamp",
    VariantType.TIMESTAMP_NTZ_NANOS: "timestamp_ntz",
}
_MAX_SCALE = 18
# The kind of range of the values of each type, by the name of the type.
RANGE_KINDS = {
    **dict.fromkeys(("integer", "decimal", "double"), "number"),
    **{name: name for name in ("date", "timestamp", "timestamp_ntz")},
}
_IN_MICROS: dict[int, int] = {_P.TIMESTAMP_NANOS: _P.TIMESTAMP, _P.TIMESTAMP_NTZ_NANOS: _P.TIMESTAMP_NTZ}


def type_name(kind: VariantType) -> str:
    """Return the name of a type in summaries: integers of any width are one type, and decimals of any precision.

    >>> type_name(VariantType.INT8), type_name(VariantType.STRING)
    ('integer', 'string')
    """
    return _TYPE_NAMES.get(kind, str(kind))


# Integers have their ranges in the profile.
_RANGES: dict[int, str] = {
    number: RANGE_KINDS[name]
    for number, row in TYPE_OF_ID.items()
    if (name := type_name(VariantType(row.type))) in RANGE_KINDS and name != "integer"
}


def arrow_type_name(arrow: pa.DataType) -> str | None:
    """Return the name of an Arrow type in summaries; None for a type that a Variant does not have."""
    if pa.types.is_decimal(arrow):
        return "decimal" if arrow.scale else "integer"
    info = TYPE_OF_ARROW.get(arrow)
    return None if info is None else type_name(VariantType(info.type))


# How a figure is known. ``values``: every value was read. ``footers``: footers (and residual columns) prove it.
# ``sample``: it is the figure of a sample of the rows.
Evidence: TypeAlias = Literal["values", "footers", "sample"]


_PLAIN_FIGURES = (
    *("count", "places", "share", "nulls", "distinct", "mean_string_bytes", "mean_elements"),
    *("evidence", "detail_evidence"),
)


class PathSummary(Record, frozen=False):
    """The figures of one path of a data set, which can be added up for parts of the data.

    Parameters
    ----------
    types
        Number of values by type: ``null``, ``boolean``, ``integer``, ``decimal``, ``double``, ``string``, ``binary``,
        ``date``, ``time``, ``timestamp``, ``timestamp_ntz``, ``uuid``, ``array``, ``object``. If the evidence is
        ``"sample"``, the values of the sample.
    rows
        Rows with at least one value; None if unknown.
    ranges
        Smallest and largest value by kind: ``number``, ``date``, ``timestamp``, ``timestamp_ntz``.
    string_bytes
        Bytes of all strings and binaries; None if unknown.
    string_range, array_range
        Bytes of the shortest and longest string or binary, elements of the shortest and longest array; None if there
        are none, or they are unknown.
    elements
        Number of elements of all arrays.
    distinct
        Estimate of the number of distinct scalars among `detail_count` values (13 % standard error); None if unknown.
    path
        The path; ``[*]`` stands for every element of an array.
    places
        Places for a value: rows that are not NULL, objects above a field, or elements of the arrays above.
    evidence
        How types, places and ranges are known: ``"values"``, ``"footers"`` or ``"sample"``.
    detail_evidence, detail_count
        How `distinct`, `string_range` and `array_range` are known, and the number of values (Variant nulls included)
        that they are of.
    """

    types: Counter[str] = field(default_factory=Counter)
    rows: int | None = 0
    ranges: Ranges = field(default_factory=dict)
    string_bytes: int | None = 0
    string_range: tuple[int, int] | None = None
    array_range: tuple[int, int] | None = None
    elements: int = 0
    distinct: int | None = None
    path: VariantPath = VariantPath()
    places: int = 0
    evidence: Evidence = "values"
    detail_evidence: Evidence = "values"
    detail_count: int = 0

    @property
    def count(self) -> int:
        """Number of values, Variant nulls included."""
        return self.types.total()

    @property
    def nulls(self) -> int:
        """Number of Variant nulls."""
        return self.types["null"]

    @property
    def share(self) -> float:
        """`count` as a share of `places`."""
        return self.count / self.places if self.places else 0.0

    @property
    def null_share(self) -> float:
        """`nulls` as a share of `count`."""
        return self.nulls / self.count if self.count else 0.0

    @property
    def mean_string_bytes(self) -> float | None:
        """Mean number of bytes of strings and binaries; None if unknown or without any."""
        strings = self.types["string"] + self.types["binary"]
        return self.string_bytes / strings if strings and self.string_bytes is not None else None

    @property
    def mean_elements(self) -> float | None:
        """Mean number of elements of arrays; None without arrays."""
        arrays = self.types["array"]
        return self.elements / arrays if arrays else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        ranges = {
            kind: [bound if isinstance(bound, int | float) and isfinite(bound) else str(bound) for bound in bounds]
            for kind, bounds in self.ranges.items()
        }
        plain = {"types": dict(self.types), "ranges": ranges, "distinct_of": self.detail_count}
        return {name: getattr(self, name) for name in _PLAIN_FIGURES} | plain

    def add(self, other: PathSummary) -> None:
        """Add the figures of another part of the data; distinct values are not known for both together."""
        self.types.update(other.types)
        self.rows = None if self.rows is None or other.rows is None else self.rows + other.rows
        self.ranges = merged_ranges(self.ranges, other.ranges)
        unknown = self.string_bytes is None or other.string_bytes is None
        self.string_bytes = None if unknown else (self.string_bytes or 0) + (other.string_bytes or 0)
        self.string_range = union(self.string_range, other.string_range)
        self.array_range = union(self.array_range, other.array_range)
        self.elements += other.elements
        self.distinct = None


def merged_ranges(first: Mapping[str, Range], second: Mapping[str, Range]) -> Ranges:
    """Return the ranges of two parts of the data together."""
    return {**first, **{kind: union(first.get(kind), bounds) or bounds for kind, bounds in second.items()}}


class ValueFigures(Record, eq=False):
    """The profile of some rows, the ranges of their numbers and times, and the number of decimals that are integers.

    Decimals such as ``2.0`` count as integers, because a shredded column keeps only the value.
    """

    profile: Profile = field(default_factory=Profile)
    ranges: Mapping[VariantPath, Ranges] = field(default_factory=dict)
    whole_decimals: Counter[VariantPath] = field(default_factory=Counter)

    @classmethod
    def of_tape(cls, tape: Tape) -> ValueFigures:
        """Return the figures of the rows of a tape."""
        return cls(Profile.of_tape(tape), _ranges_of(tape), _whole_decimals(tape))

    @classmethod
    def of_array(cls, array: VariantArray) -> ValueFigures:
        """Return the figures of an array.

        >>> import parquet_variant as pv
        >>> figures = ValueFigures.of_array(pv.parse_json(['{"a": 1.5}', '{"a": 7}']))
        >>> figures.by_path()[VariantPath(("a",))].ranges
        {'number': (Decimal('1.5'), 7)}
        """
        return reduce(cls.merge, map(cls.of_tape, array_tapes(array, 0)), cls())

    def merge(self, other: ValueFigures) -> ValueFigures:
        """Return the figures of both parts of the data."""
        ranges = {path: dict(kinds) for path, kinds in self.ranges.items()}
        for path, kinds in other.ranges.items():
            ranges[path] = merged_ranges(ranges.get(path, {}), kinds)
        whole_decimals = self.whole_decimals + other.whole_decimals
        return ValueFigures(self.profile.merge(other.profile), ranges, whole_decimals)

    def by_path(self, outer: Sequence[Segment] = (), evidence: Evidence = "values") -> dict[VariantPath, PathSummary]:
        """Return the figures of every path, parents first; below a path if the rows are its values."""
        figures = {}
        for of in self.profile:
            integral, path = self.whole_decimals[of.path], VariantPath((*outer, *of.path.segments))
            types: Counter[str] = Counter({"integer": integral, "decimal": -integral} if integral else {})
            for kind, count in of.types.items():
                types[type_name(kind)] += count
            types = +types
            integers = {"number": of.int_range} if of.int_range is not None else {}
            figures[path] = PathSummary(
                types=types, rows=of.rows, ranges=merged_ranges(self.ranges.get(of.path, {}), integers),
                string_bytes=of.string_bytes, string_range=of.string_range, array_range=of.array_range,
                elements=of.element_count,
                distinct=of.distinct if set(types) - {"null", "boolean", "array", "object"} else None,
                path=path, places=of.places, evidence=evidence, detail_evidence=evidence, detail_count=of.count,
            )  # fmt: skip
        return figures


def _whole_decimals(tape: Tape) -> Counter[VariantPath]:
    tags = tape.nodes[:, 0]
    at = np.flatnonzero(np.isin(tags & 0xFF, (_P.DECIMAL4, _P.DECIMAL8)) & (tags >> 8 & 0xFF > 0))
    if not len(at):
        return Counter()
    # A decimal of 8 bytes has at most 18 digits, so its scale fits; larger scales are malformed.
    scales = np.minimum(tags[at] >> 8 & 0xFF, _MAX_SCALE)
    at = at[tape.nodes[at, 1] % 10**scales == 0]
    numbers, counts = np.unique(path_ids(tags[at]), return_counts=True)
    return Counter(
        {_path_of(tape, number): count for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)}
    )


def _path_of(tape: Tape, number: int) -> VariantPath:
    """Return the path of a tape with a number."""
    segments: list[Segment] = []
    while number > 0:
        number, key = tape.paths[number, [PATH.PARENT, PATH.KEY]].tolist()
        segments.append(WILDCARD if key < 0 else tape.key_list[key].decode("utf-8", "replace"))
    return VariantPath(tuple(reversed(segments)))


def _ranges_of(tape: Tape) -> dict[VariantPath, Ranges]:
    """Return the smallest and the largest value by path and kind; integers have their ranges in the profile."""
    kinds = tape.nodes[:, 0] & 0xFF
    ranges: dict[VariantPath, Ranges] = {}
    for kind in set(np.unique(kinds).tolist()) & _RANGES.keys():
        nodes = tape.nodes[kinds == kind]
        values: npt.NDArray[Any] = nodes[:, 1].copy()
        if kind == _P.DECIMAL16:
            pairs = zip(nodes[:, 2].tolist(), values.view(np.uint64).tolist(), strict=True)
            values = np.array([(high << 64) + low for high, low in pairs], object)
        elif kind in (_P.FLOAT, _P.DOUBLE):
            values = values.view(np.float64) if kind == _P.DOUBLE else values.astype(np.uint32).view(np.float32)
            nodes, values = nodes[~np.isnan(values)], values[~np.isnan(values)]
        if not len(nodes):
            continue
        # The path and the scale are the key, because only decimals of one scale have the order of their digits.
        keys = path_ids(nodes[:, 0]) << 8 | (nodes[:, 0] >> 8 & 0xFF)
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        for key, *bounds in zip(keys[starts].tolist(), lows.tolist(), highs.tolist(), strict=True):
            low, high = (_python_value(kind, bound, key & 0xFF) for bound in bounds)
            if low is not None and high is not None:
                path = _path_of(tape, key >> 8)
                ranges[path] = merged_ranges(ranges.get(path, {}), {_RANGES[kind]: (low, high)})
    return ranges


def _python_value(kind: int, raw: Any, scale: int) -> Any:
    """Return a scalar; None for dates and times outside of the years 1 to 9999."""
    if kind in DECIMAL_IDS:
        raw = raw, scale
    elif kind in _IN_MICROS:
        kind, raw = _IN_MICROS[kind], raw // 1000
    try:
        value = scalar_to_python(TYPE_OF_ID[_P(kind)].type, raw)
    except CastError:
        return None
    return None if isinstance(value, np.datetime64) else value
