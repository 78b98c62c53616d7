"""Avro files of Iceberg metadata: records in, records out, values without Python's dates.

Owns the two calls into fastavro. A file is read under its own schema with the logical types taken out, so that dates,
times, decimals and UUIDs come as the ints and bytes that the file holds: Python's classes lack a part of their range.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.lazy_names import optional_libraries

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
    with optional_libraries("pv.iceberg"):
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
    with optional_libraries("pv.iceberg"):
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
