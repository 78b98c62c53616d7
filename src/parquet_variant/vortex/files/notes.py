"""What the writer notes of each Variant column in a file's trailer.

Owns the note's form. Leaves the trailer to `trailer` and statistics to `range_statistics`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.logical.range_statistics import RangeStatistics

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class ColumnNote:
    """A Variant column of a file."""

    schema: ShreddingSchema | None = None  # What is typed in it, where that does not show in the column's type.
    # Paths that were to be typed and are not, with the reason.
    in_bytes: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False  # Whether it was a column of JSON text.
    has_texts: bool = False  # Whether texts that are not what the values print lie in a column beside it.
    data: bytes = b""  # The statistics of its shredded children, as bytes; none if empty.

    @cached_property
    def statistics(self) -> RangeStatistics | None:
        """The statistics; None if there are none."""
        return RangeStatistics.from_bytes(self.data) if self.data else None


def text_column(name: str) -> str:
    """The name of the column with the texts of another."""
    return f"{name}$text"


def write_notes(notes: Mapping[str, ColumnNote]) -> bytes:
    """Put the notes of columns by name into bytes."""
    about = {
        name: {
            "schema": None if note.schema is None else note.schema.to_ddl(),
            "in_bytes": dict(note.in_bytes),
            "is_json": note.is_json,
            "has_texts": note.has_texts,
            "statistics": len(note.data),
        }
        for name, note in notes.items()
    }
    head = json.dumps(about).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *(note.data for note in notes.values())])


def read_notes(data: bytes | None) -> dict[str, ColumnNote]:
    """Read what `write_notes` made; nothing of a file of another writer.

    >>> read_notes(write_notes({"v": ColumnNote(is_json=True)}))["v"].is_json
    True
    """
    if data is None:
        return {}
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    notes = {}
    for name, about in json.loads(data[_LENGTH.size : at]).items():
        size, earlier = about.pop("statistics", 0), about.pop("bytes", 0)  # an earlier form, which is left alone
        ddl = about.pop("schema")
        schema = None if ddl is None else ShreddingSchema.from_ddl(ddl)
        notes[name] = ColumnNote(schema, **about, data=data[at : at + size])
        at += size + earlier
    return notes
