"""Partition specs and sort orders of Iceberg tables.

Owns reading and writing both (specification, Appendix C), the forms that users name them in, and the struct type of
partition values. Transforms themselves are in `transforms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.metadata.schema import Schema, parsing
from parquet_variant.tables.iceberg.metadata.transforms import Transform
from parquet_variant.tables.schema import Field, PrimitiveType

FIRST_PARTITION_ID = 1000
_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,]+?)\s*(?:,\s*(\d+)\s*)?\)\s*")
# The names that Spark's SQL has for the calendar transforms.
_SPARK_NAMES = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_ORDER = re.compile(r"\s*(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class PartitionField:
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


@dataclass(frozen=True)
class PartitionSpec:
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

    @property
    def is_unpartitioned(self) -> bool:
        """Whether all files are in one partition."""
        return all(f.transform.name == "void" for f in self.fields)

    def check_writable(self) -> None:
        """Raise `IcebergError` if the spec has a transform that this package cannot apply."""
        for f in self.fields:
            if not f.transform.is_known:
                raise IcebergError(
                    f"cannot write: the table is partitioned by the unknown transform {f.transform.name!r}",
                    reason="bad-partitioning",
                )

    def same_fields(self, other: PartitionSpec) -> bool:
        """Return whether two specs are equivalent: same sources, transforms and names, in the same order."""
        mine, theirs = ([(f.source_id, str(f.transform), f.name) for f in spec.fields] for spec in (self, other))
        return mine == theirs


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
        source, transform = parse_transform(text) if isinstance(text, str) else (text.name, Transform("identity"))
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
        if transform.name != "identity" and schema.get(name) is not None:
            raise IcebergError(
                f"the partition field {name!r} has the name of a column: rename the column", reason="bad-partitioning"
            )
        new_fields.append(PartitionField(column.id, field_id, name, transform))
    return PartitionSpec(spec_id, tuple(new_fields))


# ---- sort orders


@dataclass(frozen=True)
class SortField:
    """One field of a sort order."""

    source_id: int
    transform: Transform
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class SortOrder:
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

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the order has fields."""
        return bool(self.fields)


def sort_order_of(fields: Sequence[str], schema: Schema, *, order_id: int = 1) -> SortOrder:
    """Return a sort order of texts such as ``"ts desc nulls last"`` or ``"bucket(4, id)"``.

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
