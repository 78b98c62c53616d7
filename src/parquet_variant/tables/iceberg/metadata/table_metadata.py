"""Table metadata: the JSON document at the root of every Iceberg table, versions 1 to 3.

Owns `TableMetadata`, a view of the document that keeps every member that this package does not know, snapshots and
references. Changes to the document are in `updates`; where documents are stored is decided by `catalogs`.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.iceberg.metadata.partitioning import FIRST_PARTITION_ID, PartitionSpec, SortOrder
from parquet_variant.tables.iceberg.metadata.schema import (
    NAME_MAPPING,
    NameMapping,
    Schema,
    parse_name_mapping,
    parsing,
)
from parquet_variant.tables.storage import now_millis

NEWEST_VERSION = 3
ENGINE = "parquet-variant"  # What new metadata names as its writer.
MAIN = "main"
# A document larger than this when decompressed is refused: a few bytes of gzip can stand for gigabytes.
_MAX_DOCUMENT = 2 << 30
_HISTORY = (
    "snapshots",
    "current-snapshot-id",
    "refs",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
)
_REQUIRED = ("format-version", "location", "last-updated-ms", "last-column-id")


class SnapshotInfo(Record):
    """One snapshot of a table, as its metadata lists it."""

    id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str | None
    manifests: tuple[str, ...]  # Version 1 may list manifests instead of a manifest list.
    summary: Mapping[str, str]
    schema_id: int | None

    @classmethod
    def parse(cls, json: Any) -> SnapshotInfo:
        """Parse the JSON form. Raises `IcebergError`: reason ``"bad-metadata"``."""
        with parsing("snapshot", "bad-metadata"):
            return cls(
                id=int(json["snapshot-id"]),
                parent_id=_optional_int(json.get("parent-snapshot-id")),
                sequence_number=int(json.get("sequence-number") or 0),
                timestamp_ms=int(json["timestamp-ms"]),
                manifest_list=json.get("manifest-list"),
                manifests=tuple(str(path) for path in json.get("manifests") or ()),
                summary={str(key): str(value) for key, value in (json.get("summary") or {}).items()},
                schema_id=_optional_int(json.get("schema-id")),
            )

    @property
    def operation(self) -> str:
        """The summary's operation: append, replace, overwrite or delete."""
        return self.summary.get("operation", "unknown")


class Reference(Record):
    """A branch or a tag."""

    snapshot_id: int
    type: str
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    @classmethod
    def parse(cls, json: Any) -> Reference:
        """Parse the JSON form. Raises `IcebergError`: reason ``"bad-metadata"``."""
        with parsing("reference", "bad-metadata"):
            members = {name: json.get(name.replace("_", "-")) for name in cls.__dataclass_fields__}
            snapshot_id, kind = int(members.pop("snapshot_id")), members.pop("type")
            return cls(snapshot_id, str(kind), **{name: _optional_int(value) for name, value in members.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name.replace("_", "-"): value for name, value in asdict(self).items() if value is not None}


class TableMetadata(Record):
    """The metadata of a table: `document` is the JSON as it was read, in the form of version 2 and later."""

    document: Mapping[str, Any]

    @classmethod
    def parse(cls, document: Any) -> TableMetadata:
        """Return the metadata of a parsed JSON document.

        Raises `IcebergError`: reason ``"bad-metadata"`` or ``"unsupported-version"``.
        """
        if not isinstance(document, dict):
            raise IcebergError("the table metadata is not a JSON object", reason="bad-metadata")
        missing = [name for name in _REQUIRED if document.get(name) is None]
        if missing:
            raise IcebergError(f"the table metadata lacks {', '.join(missing)}", reason="bad-metadata")
        version = document["format-version"]
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= NEWEST_VERSION:
            problem = f"the table has format version {version!r}: this package reads versions 1 to {NEWEST_VERSION}"
            raise IcebergError(problem, reason="unsupported-version")
        metadata = cls(_normalized(document))
        _ = metadata.schema, metadata.spec  # Both raise for ids that the lists lack.
        for reference in metadata.references.values():
            if reference.type not in ("branch", "tag"):
                raise IcebergError(f"unknown type of reference {reference.type!r}", reason="bad-metadata")
        return metadata

    @classmethod
    def load(cls, data: bytes, location: str) -> TableMetadata:
        """Return the metadata in the bytes of a metadata file, which may be compressed with gzip.

        Raises `IcebergError` as `parse`, naming the file.
        """
        try:
            if data[:2] == b"\x1f\x8b":
                stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
                data = stream.decompress(data, _MAX_DOCUMENT)
                if stream.unconsumed_tail or not stream.eof:
                    raise EOFError("the gzip data is cut off or too large")
            document = json.loads(data)
        except (ValueError, EOFError, OSError, zlib.error, RecursionError) as error:
            problem = f"the metadata file is not JSON ({error})"
            raise IcebergError(problem, reason="bad-metadata", file=location) from None
        try:
            return cls.parse(document)
        except IcebergError as error:
            raise error.at(file=location) from None

    def to_bytes(self) -> bytes:
        """Return the document as the bytes of a metadata file."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()

    def without_history(self) -> TableMetadata:
        """Return the metadata without snapshots, references and logs, which may be large."""
        return TableMetadata({name: value for name, value in self.document.items() if name not in _HISTORY})

    @property
    def version(self) -> int:
        """The format version."""
        return int(self.document["format-version"])

    @property
    def uuid(self) -> str | None:
        """The table's UUID."""
        return self.document.get("table-uuid")

    @property
    def location(self) -> str:
        """The table's base location."""
        return str(self.document["location"]).rstrip("/")

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return {str(name): str(value) for name, value in (self.document.get("properties") or {}).items()}

    @property
    def last_column_id(self) -> int:
        """The highest field id that any schema ever had."""
        return self.integer("last-column-id")

    @property
    def last_partition_id(self) -> int:
        """The highest partition field id that any spec ever had."""
        return self.integer("last-partition-id", FIRST_PARTITION_ID - 1)

    @cached_property
    def schemas(self) -> Mapping[int, Schema]:
        """Every schema by id."""
        return {schema.id: schema for schema in (Schema.parse(json) for json in self._list("schemas"))}

    @cached_property
    def schema(self) -> Schema:
        """The current schema."""
        return self._entry_of(self.schemas, "current-schema-id", "schema")

    @cached_property
    def schemas_newest_first(self) -> tuple[Schema, ...]:
        """The current schema, then the other schemas from the newest to the oldest."""
        older = sorted((s for s in self.schemas.values() if s.id != self.schema.id), key=lambda s: -s.id)
        return (self.schema, *older)

    @cached_property
    def specs(self) -> Mapping[int, PartitionSpec]:
        """Every partition spec by id."""
        return {spec.id: spec for spec in (PartitionSpec.parse(json) for json in self._list("partition-specs"))}

    @cached_property
    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self._entry_of(self.specs, "default-spec-id", "partition spec")

    @cached_property
    def sort_orders(self) -> Mapping[int, SortOrder]:
        """Every sort order by id."""
        return {order.id: order for order in (SortOrder.parse(json) for json in self._list("sort-orders"))}

    @property
    def sort_order(self) -> SortOrder:
        """The sort order of new files."""
        return self.sort_orders.get(self.integer("default-sort-order-id"), SortOrder())

    @cached_property
    def snapshots(self) -> Mapping[int, SnapshotInfo]:
        """Every snapshot by id, in the order of the document."""
        return {s.id: s for s in (SnapshotInfo.parse(json) for json in self._list("snapshots"))}

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """Branches and tags by name; ``main`` is there whenever the table has a current snapshot."""
        refs = self.document.get("refs") or {}
        if not isinstance(refs, dict):
            raise IcebergError("refs of the table metadata is not an object", reason="bad-metadata")
        references = {str(name): Reference.parse(json) for name, json in refs.items()}
        current = self.document.get("current-snapshot-id")
        if MAIN not in references and isinstance(current, int) and current != -1:
            references[MAIN] = Reference(current, "branch")
        return references

    @property
    def current_snapshot(self) -> SnapshotInfo | None:
        """The newest snapshot of the main branch; None if the table is empty."""
        snapshot_id = self.current_snapshot_id
        return None if snapshot_id is None else self.snapshot(snapshot_id)

    @property
    def current_snapshot_id(self) -> int | None:
        """The id of the newest snapshot of the main branch; None if the table is empty."""
        main = self.references.get(MAIN)
        return None if main is None else main.snapshot_id

    def snapshot(self, snapshot_id: int) -> SnapshotInfo:
        """Return the snapshot of an id. Raises `IcebergError`: reason ``"unknown-snapshot"``."""
        info = self.snapshots.get(snapshot_id) if isinstance(snapshot_id, int) else None
        if info is None:
            problem = f"unknown snapshot {snapshot_id}: it never was in the table, or has expired"
            raise IcebergError(problem, reason="unknown-snapshot", file=self.location)
        return info

    @property
    def snapshot_log(self) -> list[tuple[int, int]]:
        """The times at which snapshots became current: milliseconds and snapshot id, oldest first."""
        with parsing("snapshot log", "bad-metadata"):
            return [(int(entry["timestamp-ms"]), int(entry["snapshot-id"])) for entry in self._list("snapshot-log")]

    @cached_property
    def name_mapping(self) -> NameMapping | None:
        """The field ids of columns in files that have none; None if the table does not define them."""
        text = self.properties.get(NAME_MAPPING)
        return None if text is None else parse_name_mapping(text)

    def ancestors(self, snapshot_id: int | None) -> list[SnapshotInfo]:
        """Return a snapshot and those before it, newest first, as far as the metadata still lists them."""
        line: dict[int, SnapshotInfo] = {}
        while snapshot_id is not None and snapshot_id in self.snapshots:
            if snapshot_id in line:
                raise IcebergError("the snapshots of the metadata form a circle", reason="bad-metadata")
            line[snapshot_id] = self.snapshots[snapshot_id]
            snapshot_id = line[snapshot_id].parent_id
        return list(line.values())

    def _list(self, name: str) -> list[Any]:
        value = self.document.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise IcebergError(f"{name} of the table metadata is not a list", reason="bad-metadata")
        return value

    def integer(self, name: str, default: int = 0) -> int:
        """Return a number of the document by its name. Raises `IcebergError`: reason ``"bad-metadata"``."""
        value = self.document.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise IcebergError(f"{name} of the table metadata is {value!r}, not a number", reason="bad-metadata")
        return value

    def _entry_of(self, by_id: Mapping[int, Any], name: str, what: str) -> Any:
        number = self.integer(name)
        if number not in by_id:
            raise IcebergError(f"the table metadata has no {what} {number}, its {name}", reason="bad-metadata")
        return by_id[number]


def new_metadata(
    location: str, schema: Schema, spec: PartitionSpec, sort_order: SortOrder, properties: Mapping[str, str]
) -> TableMetadata:
    """Return the metadata of a new, empty table of the newest version."""
    orders = [SortOrder().to_json()] + ([sort_order.to_json()] if sort_order.fields else [])
    return TableMetadata.parse(
        {
            "format-version": NEWEST_VERSION,
            "table-uuid": str(uuid.uuid4()),
            "location": location,
            "last-sequence-number": 0,
            "last-updated-ms": now_millis(),
            "last-column-id": schema.highest_id,
            "current-schema-id": schema.id,
            "schemas": [schema.to_json()],
            "default-spec-id": spec.id,
            "partition-specs": [spec.to_json()],
            "last-partition-id": max((f.field_id for f in spec.fields), default=FIRST_PARTITION_ID - 1),
            "default-sort-order-id": sort_order.id,
            "sort-orders": orders,
            "properties": dict(properties),
            "refs": {},
            "snapshots": [],
            "statistics": [],
            "partition-statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
            "next-row-id": 0,
        }
    )


def _normalized(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of version 1 with the lists that version 2 requires."""
    document = dict(document)
    if "schemas" not in document and "schema" in document:
        schema = document["schema"]
        if not isinstance(schema, dict):
            raise IcebergError("schema of the table metadata is not an object", reason="bad-metadata")
        number = schema.get("schema-id", 0)
        document |= {"schemas": [{**schema, "schema-id": number}], "current-schema-id": number}
    if "partition-specs" not in document:
        fields = document.get("partition-spec") or []
        document |= {"partition-specs": [{"spec-id": 0, "fields": fields}], "default-spec-id": 0}
    document.setdefault("sort-orders", [SortOrder().to_json()])
    document.setdefault("default-sort-order-id")
    if "last-partition-id" not in document:
        ids = [f.field_id for json in document["partition-specs"] for f in PartitionSpec.parse(json).fields]
        document["last-partition-id"] = max(ids, default=FIRST_PARTITION_ID - 1)
    return document


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
