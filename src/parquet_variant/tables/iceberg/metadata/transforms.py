"""Partition transforms: applied to columns, and inverted to the range of source values of a partition.

Owns `Transform` (specification, "Partition Transforms"). Partition specs are in `partitioning`; pruning by ranges is in
`reading.pruning`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.inference.statistics import upper_text
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.iceberg.metadata.schema import type_name
from parquet_variant.tables.iceberg.metadata.values import TIMESTAMPS, arrow_array, raw_values, unscaled_bytes
from parquet_variant.tables.schema import PrimitiveType, TableType, arrow_type

Hashes = npt.NDArray[np.int32]
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_M, _N = np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


def hash_rows(rows: npt.NDArray[np.uint8]) -> Hashes:
    """Return the hash of each row of a matrix of bytes.

    >>> hash_rows(np.frombuffer(b"iceberg", np.uint8).reshape(1, -1)).tolist()
    [1210000089]
    """
    count, length = rows.shape
    state = np.zeros(count, dtype=np.uint32)
    words = length // 4
    if words:
        blocks = np.ascontiguousarray(rows[:, : 4 * words]).view("<u4")
        for number in range(words):
            state ^= _mix_word(blocks[:, number])
            state = _rotate_left(state, 13) * _M + _N
    tail = rows[:, 4 * words :]
    if tail.shape[1]:
        word = np.zeros(count, dtype=np.uint32)
        for number in range(tail.shape[1]):
            word |= tail[:, number].astype(np.uint32) << np.uint32(8 * number)
        state ^= _mix_word(word)
    state ^= np.uint32(length)
    state ^= state >> np.uint32(16)
    state *= _F1
    state ^= state >> np.uint32(13)
    state *= _F2
    state ^= state >> np.uint32(16)
    return state.view(np.int32)


def _mix_word(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return _rotate_left(word * _C1, 15) * _C2


def _rotate_left(word: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))


INT, DATE = PrimitiveType("integer"), PrimitiveType("date")
_WITH_PARAMETER = re.compile(r"(bucket|truncate)\[\s*(\d+)\s*\]")
_PLAIN = {"identity", "year", "month", "day", "hour", "void"}
_DATES = {"date", *TIMESTAMPS}
_SOURCES = {
    "bucket": {"integer", "long", "decimal", "time", "string", "uuid", "fixed", "binary", *_DATES},
    "truncate": {"integer", "long", "decimal", "string", "binary"},
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": TIMESTAMPS,
}
_NUMPY_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The smallest and largest source value, as raw values, that a partition value allows; None if unbounded."""

    lower: Any = None
    upper: Any = None


@dataclass(frozen=True, slots=True)
class Transform:
    """A partition transform; ``name`` is the whole text of a transform that this package does not know.

    >>> Transform.parse("bucket[16]")
    Transform(name='bucket', parameter=16)
    """

    name: str
    parameter: int = 0

    @classmethod
    def parse(cls, text: str) -> Transform:
        """Read the JSON form of a transform; the text of an unknown transform becomes its name."""
        match = _WITH_PARAMETER.fullmatch(text)
        if match is not None and int(match[2]) > 0:
            return cls(match[1], int(match[2]))
        return cls(text)

    def __str__(self) -> str:
        return f"{self.name}[{self.parameter}]" if self.parameter else self.name

    @property
    def is_known(self) -> bool:
        """Whether this package can apply the transform."""
        return self.name in _PLAIN or self.parameter > 0

    def check_source(self, kind: TableType, column: str) -> None:
        """Raise `IcebergError`, reason ``"bad-partitioning"``, for a column that cannot be transformed."""
        if not self.is_known:
            raise IcebergError(
                f"unknown partition transform {self.name!r} of column {column!r}: use identity, bucket[n], "
                "truncate[n], year, month, day, hour or void",
                reason="bad-partitioning",
            )
        family = kind.family if isinstance(kind, PrimitiveType) else ""
        allowed = _SOURCES.get(self.name)
        if not family or family in ("geometry", "geography", "variant", "void"):
            allowed = set()
        if allowed is not None and family not in allowed:
            raise IcebergError(
                f"column {column!r} is {type_name(kind)}, which cannot be partitioned by {self}",
                reason="bad-partitioning",
            )

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        """Return the type of partition values."""
        if self.name in ("bucket", "year", "month", "hour"):
            return INT
        return DATE if self.name == "day" else source

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        """Return the partition value of each value of an Arrow array of the source type.

        >>> Transform("truncate", 10).apply(pa.array([1, -1, None], pa.int32()), INT).to_pylist()
        [0, -10, None]
        """
        if self.name == "identity":
            return array
        if self.name == "void":
            return pa.nulls(len(array), arrow_type(source))
        if self.name == "bucket":
            buckets = (hash_values(array, source) & np.int32(0x7FFFFFFF)) % np.int32(self.parameter)
            return pa.array(buckets, pa.int32(), mask=_null_mask(array))
        if self.name == "truncate":
            return self._truncated(array, source)
        return self._units(array, source)

    def _truncated(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        if source.family == "string":
            return pc.utf8_slice_codeunits(array, 0, self.parameter)
        if source.family == "binary":
            return pc.binary_slice(array, 0, self.parameter)
        if source.family == "decimal":
            raws = raw_values(array, source)
            # Truncating can add a digit.
            widest = PrimitiveType(f"decimal(38,{source.numbers[1]})")
            return arrow_array([None if raw is None else raw - raw % self.parameter for raw in raws], widest)
        values = _integers(array)
        # Values near the minimum wrap around, as in other writers.
        truncated = (values - values % self.parameter).astype(np.int32 if source.family == "integer" else np.int64)
        return pa.array(truncated, arrow_type(source), mask=_null_mask(array))

    def _units(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        unit = "D" if source.family == "date" else "ns" if source.family.endswith("_ns") else "us"
        ticks = _integers(array).view(f"datetime64[{unit}]")
        units = ticks.astype(f"datetime64[{_NUMPY_UNITS[self.name]}]").astype(np.int64)
        unit_values = pa.array(units, pa.int32(), mask=_null_mask(array))
        return unit_values.cast(pa.date32()) if self.name == "day" else unit_values

    def source_range(self, raw: Any, source: PrimitiveType) -> SourceRange:
        """Return the range of source values whose partition value is a raw value, which is not null.

        >>> Transform("month").source_range(1, DATE)
        SourceRange(lower=31, upper=58)
        """
        if self.name == "identity":
            return SourceRange(raw, raw)
        if self.name == "truncate" and source.family in ("integer", "long", "decimal"):
            last = raw + self.parameter - 1
            may_wrap = source.family != "decimal" and last > (2**31 - 1 if source.family == "integer" else _MAX_LONG)
            return SourceRange() if may_wrap else SourceRange(raw, last)
        if self.name == "truncate" and source.family == "string":
            is_whole = len(raw) < self.parameter
            return SourceRange(raw, raw if is_whole else upper_text(raw + "\0", len(raw)) if raw else None)
        if self.name in _NUMPY_UNITS:
            unit = "D" if source.family == "date" else "s"
            first, after = (
                int(moment)
                for moment in np.array([raw, raw + 1])
                .astype(f"datetime64[{_NUMPY_UNITS[self.name]}]")
                .astype(f"datetime64[{unit}]")
                .astype(np.int64)
            )
            if source.family != "date":
                ticks = 1_000_000_000 if source.family.endswith("_ns") else 1_000_000
                first, after = first * ticks, after * ticks
            return SourceRange(first if first > _MIN_LONG else None, after - 1 if after - 1 < _MAX_LONG else None)
        return SourceRange()


def _null_mask(array: pa.Array) -> Any:
    return to_numpy(array.is_null()) if array.null_count else None


def _integers(array: pa.Array) -> Any:
    """Return the values of an Arrow array of integers, dates or times as int64, 0 for null."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return to_numpy(pc.fill_null(array.cast(pa.int64()), 0)).copy()


def hash_values(array: pa.Array, source: PrimitiveType) -> Hashes:
    """Return the hash of each value of an Arrow array (specification, Appendix B); the hash of null has no meaning."""
    family = source.family
    if family in ("integer", "long", "time", *_DATES):
        longs = _integers(array) // (1000 if family.endswith("_ns") else 1)
        return hash_rows(np.ascontiguousarray(longs, dtype="<i8").view(np.uint8).reshape(-1, 8))
    if family == "decimal":
        raws = raw_values(array, source)
        array = pa.array([None if raw is None else unscaled_bytes(raw) for raw in raws], pa.binary())
    elif isinstance(array, pa.ExtensionArray):
        array = array.storage
    array = pc.fill_null(array.cast(pa.large_binary()), b"")
    hashes = np.empty(len(array), dtype=np.int32)
    if not len(array):
        return hashes
    _, buffer, data = array.buffers()
    offsets = np.frombuffer(buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data or b"", np.uint8)
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length)
        positions = offsets[:-1][members, None] + np.arange(length)
        hashes[members] = hash_rows(text[positions].reshape(len(members), length))
    return hashes


def transform_value(transform: Transform, value: pa.Scalar, source: PrimitiveType) -> Any:
    """Return the partition value of one scalar as a Python value."""
    array = pa.array([value.as_py()], arrow_type(source)) if not isinstance(value, pa.ExtensionScalar) else None
    if array is None:
        array = pa.array([value.value.as_py()], pa.binary(16))
    return transform.apply(array, source)[0].as_py()
