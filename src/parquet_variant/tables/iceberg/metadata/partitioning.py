"""Partition specs and sort orders of Iceberg tables, and their transforms.

Owns reading and writing both (specification, Appendix C), the forms that users name them in, and `Transform`
(specification, "Partition Transforms"): applied to columns, and inverted to the range of source values of a partition
value. Pruning by ranges is in `reading.planning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.inference.statistics import upper_text
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.iceberg.metadata.schema import (
    TIMESTAMPS,
    Schema,
    arrow_array,
    parsing,
    raw_values,
    type_name,
    unscaled_bytes,
)
from parquet_variant.tables.schema import Field, PrimitiveType, TableType, arrow_type

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


class SourceRange(Record):
    """The smallest and largest source value, as raw values, that a partition value allows; None if unbounded."""

    lower: Any = None
    upper: Any = None


class Transform(Record):
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
            problem = f"column {column!r} is {type_name(kind)}, which cannot be partitioned by {self}"
            raise IcebergError(problem, reason="bad-partitioning")

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
        unit = "D" if source.family == "date" else "ns" if source.family.endswith("_ns") else "us"
        ticks = _integers(array).view(f"datetime64[{unit}]")
        units = ticks.astype(f"datetime64[{_NUMPY_UNITS[self.name]}]").astype(np.int64)
        unit_values = pa.array(units, pa.int32(), mask=_null_mask(array))
        return unit_values.cast(pa.date32()) if self.name == "day" else unit_values

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


FIRST_PARTITION_ID = 1000
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,]+?)\s*(?:,\s*(\d+)\s*)?\)\s*")
# The names that Spark's SQL has for the calendar transforms.
_SPARK_NAMES = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_ORDER = re.compile(r"\s*(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.IGNORECASE | re.DOTALL)


class PartitionField(Record):
    """One field of a partition spec; ``extra`` keeps JSON members that this package does not know."""

    source_id: int
    field_id: int
    name: str
    transform: Transform
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        named = {"source-id": self.source_id, "field-id": self.field_id, "name": self.name}
        return named | {"transform": str(self.transform)} | dict(self.extra)


class PartitionSpec(Record):
    """The fields by which rows are divided into files."""

    id: int = 0
    fields: tuple[PartitionField, ...] = ()

    @classmethod
    def parse(cls, json: Any) -> PartitionSpec:
        """Parse the JSON form of a spec, or the list of its fields alone.

        Raises `IcebergError`: reason ``"bad-partitioning"``.
        """
        if isinstance(json, list):
            json = {"spec-id": 0, "fields": json}
        with parsing("partition spec", "bad-partitioning"):
            fields = tuple(_parse_field(f, number) for number, f in enumerate(json["fields"]))
            return cls(int(json.get("spec-id", 0)), fields)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"spec-id": self.id, "fields": [f.to_json() for f in self.fields]}

    def check_writable(self) -> None:
        """Raise `IcebergError` if the spec has a transform that this package cannot apply."""
        for f in self.fields:
            if not f.transform.is_known:
                problem = f"cannot write: the table is partitioned by the unknown transform {f.transform.name!r}"
                raise IcebergError(problem, reason="bad-partitioning")

    def same_fields(self, other: PartitionSpec) -> bool:
        """Return whether two specs are equivalent: same sources, transforms and names, in the same order."""
        left, right = ([(f.source_id, str(f.transform), f.name) for f in spec.fields] for spec in (self, other))
        return left == right


def source_type(schema: Schema, f: PartitionField) -> PrimitiveType:
    """Return the type of a partition field's source column; a dropped column counts as a string."""
    members = schema.by_id.get(f.source_id)
    if members is None or not isinstance(members[1].type, PrimitiveType):
        return PrimitiveType("string")
    return members[1].type


def result_types(spec: PartitionSpec, schemas: Iterable[Schema]) -> tuple[PrimitiveType, ...]:
    """Return the type of each partition value; a source dropped from the newest schema is found in an older one."""
    newest_first = list(schemas)
    types = []
    for f in spec.fields:
        schema = next((s for s in newest_first if f.source_id in s.by_id), newest_first[0])
        types.append(f.transform.result_type(source_type(schema, f)))
    return tuple(types)


def _parse_field(json: Mapping[str, Any], number: int) -> PartitionField:
    members = {"source-id", "field-id", "name", "transform"}
    # A transform of several columns is unknown to this package; its field is kept and ignored.
    source = json["source-id"] if "source-id" in json else json["source-ids"][0]
    return PartitionField(
        int(source),
        int(json.get("field-id", FIRST_PARTITION_ID + number)),
        str(json["name"]),
        Transform.parse(str(json["transform"])) if "source-ids" not in json else Transform(str(json["transform"])),
        {key: value for key, value in json.items() if key not in members},
    )


def parse_transform(text: str) -> tuple[str, Transform]:
    """Return the column and the transform of a text such as ``day(ts)``, ``bucket(16, id)``, or ``k`` for identity.

    Raises `IcebergError`: reason ``"bad-partitioning"``.

    >>> parse_transform("bucket(16, id)")
    ('id', Transform(name='bucket', parameter=16))
    """
    match = _CALL.fullmatch(text)
    if match is None:
        return text.strip(), Transform("identity")
    name = _SPARK_NAMES.get(match[1].lower(), match[1].lower())
    parameter = match[2] or match[4]
    transform = Transform.parse(f"{name}[{parameter}]" if parameter else name)
    if not transform.is_known:
        raise IcebergError(
            f"unknown partition transform {text!r}: use a column's name, bucket(n, column), truncate(n, column), "
            "year(column), month(column), day(column), hour(column) or void(column)",
            reason="bad-partitioning",
        )
    return match[3], transform


def spec_of(
    fields: Sequence[str | Field],
    schema: Schema,
    *,
    spec_id: int = 0,
    last_partition_id: int = FIRST_PARTITION_ID - 1,
    former: Iterable[PartitionSpec] = (),
) -> PartitionSpec:
    """Return a partition spec of what a user names, or of columns; fields that a former spec had keep their ids.

    Raises `IcebergError`: reason ``"bad-partitioning"`` or ``"unknown-column"``.
    """
    ids = {(f.source_id, str(f.transform)): f.field_id for spec in former for f in spec.fields}
    new_fields: list[PartitionField] = []
    for text in fields:
        name = text if isinstance(text, str) else text.name
        is_column = schema.struct.get(name) is not None  # a column's name is never a transform
        source, transform = (name, Transform("identity")) if is_column else parse_transform(name)
        place, column = schema.find(source)
        transform.check_source(column.type, source)
        field_id = ids.get((column.id, str(transform)))
        if field_id is None:
            last_partition_id += 1
            field_id = last_partition_id
        suffixes = {"truncate": "_trunc", "void": "_null", "identity": ""}
        name = ".".join(place) + suffixes.get(transform.name, f"_{transform.name}")
        if any(f.name == name or f.field_id == field_id for f in new_fields):
            raise IcebergError(f"two partition fields are {text!r}: name each once", reason="bad-partitioning")
        if transform.name != "identity" and schema.struct.get(name) is not None:
            problem = f"the partition field {name!r} has the name of a column: rename the column"
            raise IcebergError(problem, reason="bad-partitioning")
        new_fields.append(PartitionField(column.id, field_id, name, transform))
    return PartitionSpec(spec_id, tuple(new_fields))


class SortField(Record):
    """One field of a sort order."""

    source_id: int
    transform: Transform
    descending: bool = False
    nulls_last: bool = False


class SortOrder(Record):
    """The fields by which the rows of a file are sorted; id 0 means unsorted."""

    id: int = 0
    fields: tuple[SortField, ...] = ()

    @classmethod
    def parse(cls, json: Any) -> SortOrder:
        """Parse the JSON form. Raises `IcebergError`: reason ``"bad-metadata"``."""
        with parsing("sort order", "bad-metadata"):
            fields = []
            for f in json["fields"]:
                source = int(f["source-id"] if "source-id" in f else f["source-ids"][0])
                transform = Transform.parse(str(f["transform"]))
                fields.append(SortField(source, transform, f["direction"] == "desc", f["null-order"] == "nulls-last"))
            return cls(int(json.get("order-id", 0)), tuple(fields))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        fields = [
            {
                "source-id": f.source_id,
                "transform": str(f.transform),
                "direction": "desc" if f.descending else "asc",
                "null-order": "nulls-last" if f.nulls_last else "nulls-first",
            }
            for f in self.fields
        ]
        return {"order-id": self.id, "fields": fields}


def sort_order_of(fields: Sequence[str], schema: Schema, *, order_id: int = 1) -> SortOrder:
    """Return a sort order of strings such as ``"ts desc nulls last"`` or ``"bucket(4, id)"``.

    Raises `IcebergError`: reason ``"unknown-column"`` or ``"bad-partitioning"``.
    """
    new_fields = []
    for text in fields:
        match = _ORDER.fullmatch(text)
        assert match is not None
        source, transform = parse_transform(match[1])
        _, column = schema.find(source)
        if transform.name == "void":
            raise IcebergError(f"column {source!r} cannot be sorted by void", reason="bad-partitioning")
        transform.check_source(column.type, source)
        descending = (match[2] or "").lower() == "desc"
        nulls_last = descending if match[3] is None else match[3].lower() == "last"
        new_fields.append(SortField(column.id, transform, descending, nulls_last))
    return SortOrder(order_id if new_fields else 0, tuple(new_fields))
