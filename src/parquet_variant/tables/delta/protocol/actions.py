"""The actions of Delta's log as frozen dataclasses, their JSON form, and the schema strings in them.

Owns the spelling of every action (PROTOCOL.md, "Actions"), reading and writing schema strings with physical names and
ids, and what users may give as a schema. Leaves which actions a commit may contain to `log.commit`, the columnar form
of many file actions to `log.file_actions`, and the types to `tables.schema`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.tables import schema as shared
from parquet_variant.tables.storage import now_millis
from parquet_variant.types import TYPES


def parse_json(text: str | bytes, **options: Any) -> Any:
    r"""Return the value of JSON text; raise `ValueError` also for deep nesting and unpaired surrogates.

    >>> parse_json('{"n": 1}')
    {'n': 1}
    """
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        value = json.loads(text, **options)
        if "\\u" in text:  # Only an escape can produce a string that UTF-8 cannot encode.
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return value


_UNLOGGED = {"logged": False}


def _members(kind: Any) -> list[tuple[str, str, str]]:
    """Return the fields of an action that are in the log: name, name in JSON, and annotation."""
    logged = [(item.name, str(item.type)) for item in fields(kind) if item.metadata.get("logged", True)]
    return [(name, re.sub("_(.)", lambda match: match[1].upper(), name), kind) for name, kind in logged]


@dataclass(frozen=True, slots=True)
class Action:
    """An action: fields have snake case names, JSON has camel case names and omits None."""

    key: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the action, without its key."""
        out: dict[str, Any] = {}
        for name, key, _ in _members(type(self)):
            value = getattr(self, name)
            if isinstance(value, Action):
                value = value.to_dict()
            elif isinstance(value, tuple | Mapping):
                value = list(value) if isinstance(value, tuple) else dict(value)
            if value is not None:
                out[key] = value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the action of a JSON object; unknown fields are ignored, as PROTOCOL.md demands.

        Raises `DeltaError`: reason ``"broken-log"`` if the object is not such an action.
        """
        arguments: dict[str, Any] = {}
        try:
            for name, key, annotation in _members(cls):
                value = data.get(key)
                if name == "deletion_vector" and value is not None:
                    arguments[name] = DeletionVector.from_dict(value)
                elif value is not None:
                    _check_type(value, annotation, name)
                    arguments[name] = tuple(value) if isinstance(value, list) else value
            return cls(**arguments)
        except (TypeError, AttributeError) as error:
            raise DeltaError(f"the log has a malformed action {str(data)[:80]}", reason="broken-log") from error


# Python types by the first word of a field's annotation.
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "str": (str,), "bool": (bool,), "Mapping": (Mapping,), "tuple": (list, tuple),
}  # fmt: skip


def _check_type(value: Any, annotation: str, name: str) -> None:
    """Raise `TypeError` if a value of the log does not have the type of the protocol."""
    kind = _TYPES.get(annotation.partition("[")[0].split()[0])
    if kind is not None and (not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind)):
        raise TypeError(f"{name} is {type(value).__name__}")
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if "str | None]" in annotation:
        items = [item for item in items if item is not None]
    if re.search(r"str(, \.\.\.| \| None)?\]", annotation) and not all(isinstance(item, str) for item in items):
        raise TypeError(f"{name} contains values that are not strings")


@dataclass(frozen=True, slots=True)
class Protocol(Action):
    """The requirements for readers and writers.

    Examples
    --------
    >>> Protocol(3, 7, ("variantType",), ("variantType",)).to_dict()["readerFeatures"]
    ['variantType']
    """

    key: ClassVar[str] = "protocol"
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Metadata(Action):
    """The table's schema, partition columns and properties."""

    key: ClassVar[str] = "metaData"
    id: str
    schema_string: str = '{"type":"struct","fields":[]}'
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None
    name: str | None = None
    description: str | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})


@dataclass(frozen=True, slots=True)
class DeletionVector(Action):
    """The location of a file's deleted rows (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class PlanMark(Action):
    """The plan by which a file was written; it is not in the log."""

    version: int  # The table's version for which the plan was made; -1 for a new table.
    digest: str  # That of the table's definition (`writing.data_files.table_key`).
    derived: tuple[str, ...] = ()  # Partition columns that were extracted from the Variant column.


@dataclass(frozen=True, slots=True)
class Add(Action):
    """A data file that belongs to the table from this version on; `path` is percent-encoded."""

    key: ClassVar[str] = "add"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    # Not in the log: the number of rows, which is also in the text of the statistics.
    rows: int | None = field(default=None, compare=False, metadata=_UNLOGGED)
    mark: PlanMark | None = field(default=None, compare=False, metadata=_UNLOGGED)

    def removed(self, millis: int, *, data_change: bool = True) -> Remove:
        """Return the action that removes the file at a time."""
        names = ("path", "partition_values", "size", "deletion_vector", "base_row_id", "default_row_commit_version")
        same = {name: getattr(self, name) for name in names}
        return Remove(data_change=data_change, deletion_timestamp=millis, extended_file_metadata=True, **same)

    @property
    def has_deletes(self) -> bool:
        """Whether rows of the file are deleted."""
        return self.deletion_vector is not None

    @property
    def num_records(self) -> int | None:
        """The number of rows of the file, including rows that a deletion vector deletes; None if unknown."""
        if self.rows is not None or self.stats is None:
            return self.rows
        try:
            rows = parse_json(self.stats).get("numRecords")
        except (ValueError, AttributeError):
            return None
        return rows if isinstance(rows, int) and rows >= 0 else None


@dataclass(frozen=True, slots=True)
class Remove(Action):
    """A data file that no longer belongs to the table; a tombstone for vacuum."""

    key: ClassVar[str] = "remove"
    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True)
class Cdc(Action):
    """A file of rows that a version changed, for readers of changes."""

    key: ClassVar[str] = "cdc"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str] | None = None


# Before the record of a source file that an ingest has loaded, as the id of a transaction: version 1 if its rows are in
# the table, 0 if they were overwritten or undone.
LOAD_ID = "parquet-variant.load:"


@dataclass(frozen=True, slots=True)
class Txn(Action):
    """The last version that an application has committed; it makes a repeated append a no-op."""

    key: ClassVar[str] = "txn"
    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def of(cls, batch: tuple[str, int] | None) -> Txn | None:
        """Return the action that records a batch now."""
        return None if batch is None else cls(*batch, now_millis())


def forgotten_loads(txns: Mapping[str, Txn], kept_ids: Container[str]) -> list[Txn]:
    """Return the actions by which a table forgets the source files that it has loaded, except those of some ids."""
    loaded = {name: txn for name, txn in txns.items() if name.startswith(LOAD_ID) and txn.version}
    return [replace(txn, version=0) for name, txn in loaded.items() if name not in kept_ids]


@dataclass(frozen=True, slots=True)
class DomainMetadata(Action):
    """A named configuration that writers keep even if they do not support it."""

    key: ClassVar[str] = "domainMetadata"
    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class CommitInfo(Action):
    """Information about the commit, in any form."""

    key: ClassVar[str] = "commitInfo"
    info: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return dict(self.info)


def to_lines(actions: Iterable[Action]) -> bytes:
    r"""Return the bytes of a commit file: one JSON document per line.

    >>> to_lines([Txn("a", 3)])
    b'{"txn":{"appId":"a","version":3}}\n'
    """
    lines = (json.dumps({a.key: a.to_dict()}, separators=(",", ":"), ensure_ascii=False) for a in actions)
    return "".join(line + "\n" for line in lines).encode("utf-8")


PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
# Metadata that a user may set on the fields of an Arrow schema, apart from identity columns.
_COLUMN_METADATA = ("delta.generationExpression", "delta.invariants", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "comment")
_DELTA_OF_SQL = {name: row.delta for row in TYPES.values() for name in row.ddl if row.delta is not None}


def parse_schema(text: str, *, mapped: bool = True) -> shared.StructType:
    """Read a schema string.

    `mapped`: whether the table maps columns; only then do physical names and ids in the metadata of columns count.
    Raises `DeltaError`: reason ``"bad-schema"`` for text that is not a Delta schema.

    >>> parse_schema('{"type":"struct","fields":[{"name":"v","type":"variant"}]}').fields[0].type
    PrimitiveType(name='variant')
    """

    def without_mapping(members: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in members.items() if key not in (PHYSICAL_NAME, FIELD_ID)}

    try:
        bare = not mapped and PHYSICAL_NAME in text
        parsed = _from_json(parse_json(text, object_hook=without_mapping if bare else None))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DeltaError(f"the schema string is not a Delta schema: {text[:80]}", reason="bad-schema") from error
    if not isinstance(parsed, shared.StructType):
        raise DeltaError(f"the table's schema is not a struct: {text[:80]}", reason="bad-schema")
    return parsed


def schema_json(schema: shared.StructType) -> str:
    """Return the schema string of a schema.

    >>> from parquet_variant.tables.schema import VARIANT
    >>> schema_json(shared.StructType((shared.Field("v", VARIANT),)))
    '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}'
    """
    return json.dumps(_to_json(schema), separators=(",", ":"), ensure_ascii=False)


def read_schema(schema: pa.Schema | shared.StructType | str) -> shared.StructType:
    """Return the columns that a user gives as an Arrow schema, a `StructType`, DDL or Delta's JSON.

    Raises `DeltaError`: reason ``"bad-schema"``; and as `from_arrow_schema`.

    >>> read_schema(pa.schema([("n", pa.int64())])).fields[0].name
    'n'
    """
    if isinstance(schema, shared.StructType):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema) if schema.lstrip().startswith("{") else shared.from_ddl(schema)
    if not isinstance(schema, pa.Schema):
        problem = f"schema must be a pyarrow.Schema, DDL or a Delta schema string, not {type(schema).__name__}"
        raise DeltaError(problem, reason="bad-schema")
    columns = []
    for column, arrow in zip(shared.from_arrow_schema(schema).fields, schema, strict=True):
        entries = {key.decode(): value.decode() for key, value in (arrow.metadata or {}).items()}
        metadata: dict[str, Any] = {name: text for name, text in entries.items() if name in _COLUMN_METADATA}
        for name, text in entries.items():
            if name.startswith("delta.identity."):
                metadata[name] = text
                with suppress(ValueError):  # Arrow keeps numbers and booleans as strings.
                    metadata[name] = json.loads(text)
        columns.append(replace(column, metadata=metadata))
    return shared.StructType(tuple(columns))


def named_type(name: str) -> shared.PrimitiveType:
    """Return the primitive type of a name in Delta or in SQL.

    >>> named_type("BIGINT").name, named_type("long").name, named_type("decimal(10, 2)").name
    ('long', 'long', 'decimal(10,2)')
    """
    compact = "".join(str(name).lower().split())
    return shared.PrimitiveType(_DELTA_OF_SQL.get(compact, compact))


def was_float(column: shared.Field) -> bool:
    """Return whether a column of doubles held floats before a type change.

    The shortest text of a float is not a bound of the double that the float became.
    """
    changes = column.metadata.get("delta.typeChanges") or ()
    return any(isinstance(change, dict) and change.get("fromType") == "float" for change in changes)


def with_metadata(field: shared.Field, metadata: dict[str, Any]) -> shared.Field:
    """Return the field with other metadata, and with the physical name and id that these give it."""
    physical, number = metadata.get(PHYSICAL_NAME), metadata.get(FIELD_ID)
    stored_name, field_id = None if physical is None else str(physical), None if number is None else int(number)
    return replace(field, metadata=metadata, stored_name=stored_name, field_id=field_id)


def _to_json(kind: shared.TableType) -> Any:
    if isinstance(kind, shared.StructType):
        fields = [
            {"name": f.name, "type": _to_json(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(kind, shared.ArrayType):
        return {"type": "array", "elementType": _to_json(kind.element), "containsNull": kind.contains_null}
    if isinstance(kind, shared.MapType):
        return {
            "type": "map",
            "keyType": _to_json(kind.key),
            "valueType": _to_json(kind.value),
            "valueContainsNull": kind.value_contains_null,
        }
    return kind.name


def _from_json(data: Any) -> shared.TableType:
    if isinstance(data, str):
        return shared.PrimitiveType(data)
    kind = data["type"]
    if kind == "struct":
        fields = []
        for f in data["fields"]:
            name, nullable, metadata = f["name"], f.get("nullable", True), f.get("metadata") or {}
            if not isinstance(name, str) or not isinstance(nullable, bool) or not isinstance(metadata, dict):
                raise TypeError(f"{name!r} is not a field")
            fields.append(with_metadata(shared.Field(name, _from_json(f["type"]), nullable), metadata))
        return shared.StructType(tuple(fields))
    if kind == "array":
        return shared.ArrayType(_from_json(data["elementType"]), bool(data.get("containsNull", True)))
    if kind == "map":
        nullable = bool(data.get("valueContainsNull", True))
        return shared.MapType(_from_json(data["keyType"]), _from_json(data["valueType"]), nullable)
    # PROTOCOL.md prints the element type variant as {"type": "variant"}.
    return shared.PrimitiveType(kind) if isinstance(kind, str) else _from_json(kind)
