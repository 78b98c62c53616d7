"""Avro files of manifests and manifest lists: records in and out, schemas, and fields of foreign files by field id.

Owns the two calls into fastavro, and the tables of fields and their ids (specification, "Manifests", "Manifest Lists",
Appendix A "Avro"). A file is read under its own schema with the logical types taken out, so that dates, times, decimals
and UUIDs come as the ints and bytes that the file holds: Python's classes lack a part of their range.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec
from parquet_variant.tables.iceberg.metadata.types import PrimitiveType

_MAGIC = b"Obj\x01"
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}


@dataclass(frozen=True)
class AvroFile:
    """An Avro file that was opened: its key-value metadata and its records, as they are asked for."""

    metadata: Mapping[str, str]
    records: Iterator[dict[str, Any]]
    schema: Mapping[str, Any]  # The Avro schema that the file was written with.


def read_avro(data: bytes, location: str) -> AvroFile:
    """Open the bytes of an Avro file.

    Raises `IcebergError`, reason ``"bad-metadata"``, naming the file; so does iterating over its records.
    """
    with optional_libraries("Iceberg"):
        import fastavro

    stream = io.BytesIO(data)
    try:
        if data[:4] != _MAGIC:
            raise ValueError("it is not an Avro file")
        header: dict[str, Any] = fastavro.schemaless_reader(stream, _HEADER, None)
        metadata = header["meta"]
        schema = json.loads(metadata["avro.schema"])
        stripped = {**header, "meta": {**metadata, "avro.schema": json.dumps(_without_logical(schema)).encode()}}
        plain = io.BytesIO()
        fastavro.schemaless_writer(plain, _HEADER, stripped)
        plain.write(stream.read())
        plain.seek(0)
        records = fastavro.reader(plain)
        texts = {key: value.decode() for key, value in metadata.items() if not key.startswith("avro.")}
        if not all(isinstance(f["name"], str) for f in schema["fields"]):
            raise TypeError("a field has no name")
    except Exception as error:
        raise _damaged(location, error) from None
    return AvroFile(texts, _guarded(iter(records), location), schema)


def _guarded(records: Iterator[Any], location: str) -> Iterator[dict[str, Any]]:
    while True:
        try:
            record = next(records)
            if not isinstance(record, dict):
                raise TypeError("an entry is not a record")
        except StopIteration:
            return
        except Exception as error:
            raise _damaged(location, error) from None
        yield record


def write_avro(schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], metadata: Mapping[str, str]) -> bytes:
    """Return the bytes of an Avro file of some records."""
    with optional_libraries("Iceberg"):
        import fastavro

    stream = io.BytesIO()
    parsed = fastavro.parse_schema(dict(schema))
    fastavro.writer(stream, parsed, records, codec="deflate", metadata=dict(metadata))
    return stream.getvalue()


def _damaged(location: str, error: Exception) -> IcebergError:
    problem = (str(error).splitlines() or [""])[0] or type(error).__name__
    return IcebergError(f"the metadata file is damaged: {problem}", reason="bad-metadata", file=location)


def _without_logical(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical(part) for part in schema]
    if isinstance(schema, dict):
        return {key: _without_logical(value) for key, value in schema.items() if key != "logicalType"}
    return schema


AvroSchema = dict[str, Any]
_UNSAFE_START = re.compile(r"[^A-Za-z_]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
}


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes that hold every decimal of a precision.

    >>> decimal_bytes(9), decimal_bytes(38)
    (4, 16)
    """
    return (10**precision).bit_length() // 8 + 1


def _required(number: int, name: str, kind: Any) -> AvroSchema:
    return {"name": name, "type": kind, "field-id": number}


def _optional_field(number: int, name: str, kind: Any) -> AvroSchema:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _id_map(number: int, name: str, key: int, value: int, kind: str) -> AvroSchema:
    entry = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_required(key, "key", "int"), _required(value, "value", kind)],
    }
    return _optional_field(number, name, {"type": "array", "logicalType": "map", "items": entry})


def _list(number: int, name: str, element: int, kind: str) -> AvroSchema:
    return _optional_field(number, name, {"type": "array", "items": kind, "element-id": element})


def entry_schema(spec: PartitionSpec, types: Sequence[PrimitiveType]) -> AvroSchema:
    """Return the schema of the entries of a manifest of version 3.

    `types`: the types of the partition values.
    """
    partition = {
        "type": "record",
        "name": "r102",
        "fields": [_partition_field(f.field_id, f.name, kind) for f, kind in zip(spec.fields, types, strict=True)],
    }
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _required(134, "content", "int"),
            _required(100, "file_path", "string"),
            _required(101, "file_format", "string"),
            _required(102, "partition", partition),
            _required(103, "record_count", "long"),
            _required(104, "file_size_in_bytes", "long"),
            _id_map(108, "column_sizes", 117, 118, "long"),
            _id_map(109, "value_counts", 119, 120, "long"),
            _id_map(110, "null_value_counts", 121, 122, "long"),
            _id_map(137, "nan_value_counts", 138, 139, "long"),
            _id_map(125, "lower_bounds", 126, 127, "bytes"),
            _id_map(128, "upper_bounds", 129, 130, "bytes"),
            _optional_field(131, "key_metadata", "bytes"),
            _list(132, "split_offsets", 133, "long"),
            _list(135, "equality_ids", 136, "int"),
            _optional_field(140, "sort_order_id", "int"),
            _optional_field(142, "first_row_id", "long"),
            _optional_field(143, "referenced_data_file", "string"),
            _optional_field(144, "content_offset", "long"),
            _optional_field(145, "content_size_in_bytes", "long"),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _required(0, "status", "int"),
            _optional_field(1, "snapshot_id", "long"),
            _optional_field(3, "sequence_number", "long"),
            _optional_field(4, "file_sequence_number", "long"),
            _required(2, "data_file", data_file),
        ],
    }


def _partition_field(number: int, name: str, kind: PrimitiveType) -> AvroSchema:
    safe = safe_name(name)
    avro_field = _optional_field(number, safe, _avro_type(kind, number))
    return avro_field if safe == name else avro_field | {"iceberg-field-name": name}


def safe_name(name: str) -> str:
    """Return a name that Avro allows, as Iceberg's Java library makes it.

    >>> safe_name("a.b"), safe_name("9x")
    ('a_x2Eb', '_9x')
    """
    if not name:
        return "_"
    first = name[0]
    start = f"_{first}" if first.isascii() and first.isdigit() else _UNSAFE_START.sub(_escape_character, first)
    return start + _UNSAFE.sub(_escape_character, name[1:])


def _escape_character(match: re.Match[str]) -> str:
    return f"_x{ord(match[0]):X}"


def _avro_type(kind: PrimitiveType, number: int) -> Any:
    family = kind.family
    if family == "date":
        return {"type": "int", "logicalType": "date"}
    if family == "time":
        return {"type": "long", "logicalType": "time-micros"}
    if family.startswith("timestamp"):
        logical = "timestamp-nanos" if family.endswith("_ns") else "timestamp-micros"
        return {"type": "long", "logicalType": logical, "adjust-to-utc": family.startswith("timestamptz")}
    if family == "decimal":
        return {
            "type": "fixed",
            "name": f"decimal_{kind.precision}_{kind.scale}_{number}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if family == "uuid":
        return {"type": "fixed", "name": f"uuid_fixed_{number}", "size": 16, "logicalType": "uuid"}
    if family == "fixed":
        return {"type": "fixed", "name": f"fixed_{kind.length}_{number}", "size": kind.length}
    return _PRIMITIVES[family]


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional_field(518, "contains_nan", "boolean"),
        _optional_field(510, "lower_bound", "bytes"),
        _optional_field(511, "upper_bound", "bytes"),
    ],
}
MANIFEST_LIST: AvroSchema = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
        _required(517, "content", "int"),
        _required(515, "sequence_number", "long"),
        _required(516, "min_sequence_number", "long"),
        _required(503, "added_snapshot_id", "long"),
        _required(504, "added_files_count", "int"),
        _required(505, "existing_files_count", "int"),
        _required(506, "deleted_files_count", "int"),
        _required(512, "added_rows_count", "long"),
        _required(513, "existing_rows_count", "long"),
        _required(514, "deleted_rows_count", "long"),
        _optional_field(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}),
        _optional_field(519, "key_metadata", "bytes"),
        _optional_field(520, "first_row_id", "long"),
    ],
}

_NO_PARTITIONS = PartitionSpec()
_CANONICAL = {
    f["field-id"]: f["name"] for schema in (MANIFEST_LIST, entry_schema(_NO_PARTITIONS, ())) for f in schema["fields"]
} | {f["field-id"]: f["name"] for f in entry_schema(_NO_PARTITIONS, ())["fields"][-1]["type"]["fields"]}


def canonical_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the names that a file has for fields under another name than the specification's, by the latter.

    Version 1 called ``added_files_count`` ``added_data_files_count``: fields are the same by field id.
    """
    names = {}
    for f in schema["fields"]:
        canonical = _CANONICAL.get(f.get("field-id", -1))
        if canonical is not None and canonical != f["name"]:
            names[canonical] = f["name"]
    return names


def sub_schema(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the record schema of a field of a record schema. Raises `KeyError` if there is none."""
    for f in schema["fields"]:
        if f["name"] == name:
            kinds = f["type"] if isinstance(f["type"], list) else [f["type"]]
            for kind in kinds:
                if isinstance(kind, dict) and kind.get("type") == "record":
                    return kind
    raise KeyError(name)


def partition_field_names(schema: Mapping[str, Any], spec: PartitionSpec) -> list[str | None]:
    """Return the name that a manifest has for each field of its partition spec; None for one that it lacks."""
    try:
        data_file = sub_schema(schema, canonical_names(schema).get("data_file", "data_file"))
        fields = sub_schema(data_file, canonical_names(data_file).get("partition", "partition"))["fields"]
    except KeyError:
        fields = []
    by_id = {f.get("field-id"): f["name"] for f in fields}
    if not any(f.field_id in by_id for f in spec.fields) and len(fields) == len(spec.fields):
        return [f["name"] for f in fields]  # Manifests of version 1 may lack the ids.
    return [by_id.get(f.field_id) for f in spec.fields]
