"""Avro files of manifests and manifest lists: their schemas, and their records in and out.

Owns the two calls into fastavro, and the schemas in the files next to this module (specification, "Manifests",
"Manifest Lists", Appendix A "Avro"). A file is read under its own schema with two changes. Logical types
are taken out, so that dates, times, decimals and UUIDs come as the ints and bytes that the file holds: Python's classes
lack a part of their range. Fields with known ids get the specification's names, since version 1 and other writers have
other names for some.
"""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.metadata.partitioning import FIRST_PARTITION_ID, PartitionSpec
from parquet_variant.tables.iceberg.metadata.schema import TIMESTAMPS, ZONED
from parquet_variant.tables.schema import PrimitiveType

AvroSchema = dict[str, Any]
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


def read_avro(data: bytes, location: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the bytes of an Avro file; partition values are named by `partition_name`.

    Raises `IcebergError`, reason ``"bad-metadata"``, naming the file.
    """
    with optional_libraries("Iceberg"):
        import fastavro

    stream, plain = io.BytesIO(data), io.BytesIO()
    try:
        if data[:4] != _MAGIC:
            raise ValueError("it is not an Avro file")
        header: dict[str, Any] = fastavro.schemaless_reader(stream, _HEADER, None)
        schema = _without_logical_types(json.loads(header["meta"]["avro.schema"]))
        header["meta"]["avro.schema"] = json.dumps(schema).encode()
        fastavro.schemaless_writer(plain, _HEADER, header)
        plain.write(stream.read())
        plain.seek(0)
        records = fastavro.reader(plain)
    except Exception as error:
        raise _damaged(location, error) from None
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


def _without_logical_types(schema: Any) -> Any:
    """Return a schema without logical types, in which fields with known ids have the specification's names."""
    if isinstance(schema, list):
        return [_without_logical_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    number = schema.get("field-id")
    if isinstance(number, int):
        name = partition_name(number) if number >= FIRST_PARTITION_ID else _NAMES.get(number)
        changed |= {} if name is None else {"name": name}
    return changed


def partition_name(number: int) -> str:
    """Return the name of a partition value in a record, by its field id."""
    return f"p{number}"


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


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes that hold every decimal of a precision.

    >>> decimal_bytes(9), decimal_bytes(38)
    (4, 16)
    """
    return (10**precision).bit_length() // 8 + 1


def entry_schema(spec: PartitionSpec, types: Sequence[PrimitiveType]) -> AvroSchema:
    """Return the schema of the entries of a manifest of version 3; `types`: the types of the partition values."""
    schema, partition = copy.deepcopy(_ENTRY), []
    for f, kind in zip(spec.fields, types, strict=True):
        safe = safe_name(f.name)
        avro_type = ["null", _avro_type(kind, f.field_id)]
        avro_field = {"name": safe, "type": avro_type, "default": None, "field-id": f.field_id}
        partition.append(avro_field if safe == f.name else avro_field | {"iceberg-field-name": f.name})
    (record,) = (f["type"] for f in schema["fields"][-1]["type"]["fields"] if f["name"] == "partition")
    record["fields"] = partition
    return schema


def safe_name(name: str) -> str:
    """Return a name that Avro allows, as Iceberg's Java library makes it.

    >>> safe_name("a.b"), safe_name("9x")
    ('a_x2Eb', '_9x')
    """
    if not name:
        return "_"
    first = f"_{name[0]}" if name[0].isascii() and name[0].isdigit() else name[0]
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", first + name[1:])


def _avro_type(kind: PrimitiveType, number: int) -> Any:
    family = kind.family
    if family == "date":
        return {"type": "int", "logicalType": "date"}
    if family == "time":
        return {"type": "long", "logicalType": "time-micros"}
    if family in TIMESTAMPS:
        logical = "timestamp-nanos" if family.endswith("_ns") else "timestamp-micros"
        return {"type": "long", "logicalType": logical, "adjust-to-utc": family in ZONED}
    if family == "decimal":
        precision, scale = kind.numbers
        name = f"decimal_{precision}_{scale}_{number}"
        fixed = {"type": "fixed", "name": name, "size": decimal_bytes(precision)}
        return {**fixed, "logicalType": "decimal", "precision": precision, "scale": scale}
    if family == "uuid":
        return {"type": "fixed", "name": f"uuid_fixed_{number}", "size": 16, "logicalType": "uuid"}
    if family == "fixed":
        return {"type": "fixed", "name": f"fixed_{kind.numbers[0]}_{number}", "size": kind.numbers[0]}
    return {"integer": "int", "binary": "bytes"}.get(family, family)


MANIFEST_LIST: AvroSchema = json.loads(Path(__file__).with_name("manifest_list.avsc").read_text())
_ENTRY: AvroSchema = json.loads(Path(__file__).with_name("manifest_entry.avsc").read_text())  # without partition fields
(_SUMMARY,) = (f["type"][1]["items"] for f in MANIFEST_LIST["fields"] if f["name"] == "partitions")
_NAMES = {
    f["field-id"]: f["name"]
    for schema in (MANIFEST_LIST, _SUMMARY, _ENTRY, _ENTRY["fields"][-1]["type"])
    for f in schema["fields"]
}
