"""Puffin files: the blobs that hold deletion vectors.

Owns the file format (specification, "Puffin file format"). The bitmap of a vector is in `tables.row_sets`; which vector
applies to which data file is decided in `reading.deletes`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import IcebergError, TableError
from parquet_variant.tables.row_sets import framed, read_bitmap, unframed, write_bitmap

_MAGIC = b"PFA1"
_VECTOR = "deletion-vector-v1"
_FOOTER_TAIL = 12
_COMPRESSED = 1
Rows = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class WrittenVector:
    """The place of a deletion vector in a Puffin file."""

    data_file: str
    offset: int
    length: int
    cardinality: int


def write_vectors(vectors: Sequence[tuple[str, Rows]], created_by: str) -> tuple[bytes, list[WrittenVector]]:
    """Return the bytes of a Puffin file of deletion vectors, and where each of them is.

    `vectors`: for each data file, its location and the ascending positions of its deleted rows.
    """
    parts, offset = [_MAGIC], len(_MAGIC)
    written, blobs = [], []
    for location, rows in vectors:
        blob = framed(write_bitmap(rows))
        written.append(WrittenVector(location, offset, len(blob), len(rows)))
        blobs.append(
            {
                "type": _VECTOR,
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": len(blob),
                "properties": {"referenced-data-file": location, "cardinality": str(len(rows))},
            }
        )
        parts.append(blob)
        offset += len(blob)
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": created_by}}, separators=(",", ":")).encode()
    footer = [_MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), _MAGIC]
    return b"".join([*parts, *footer]), written


def read_vector(blob: bytes, cardinality: int, rows: int, location: str) -> Rows:
    """Return the ascending positions that a deletion vector marks.

    `blob`: the bytes at the offset and of the length that the manifest states.
    `cardinality`: the number of deleted rows that the manifest states.
    `rows`: the number of rows of the data file.
    Raises `IcebergError`: reason ``"bad-deletion-vector"``.
    """
    try:
        if len(blob) < _FOOTER_TAIL:
            raise damaged(f"its blob has {len(blob)} bytes", location)
        positions = read_bitmap(unframed(blob, location), min(cardinality, rows))
    except IcebergError:
        raise
    except TableError as error:
        raise IcebergError(error.message, reason="bad-deletion-vector", file=location) from None
    if len(positions) != cardinality:
        raise damaged(f"it marks {len(positions)} rows, its manifest states {cardinality}", location)
    if len(positions) and int(positions[-1]) >= rows:
        raise damaged(f"it marks row {int(positions[-1])}, the data file has {rows} rows", location)
    return positions


def damaged(problem: str, location: str) -> IcebergError:
    """Return the error for a deletion vector that cannot be used."""
    return IcebergError(f"the deletion vector is damaged: {problem}", reason="bad-deletion-vector", file=location)


def read_footer(data: bytes, location: str) -> dict[str, Any]:
    """Return the footer's JSON of the bytes of a Puffin file.

    Raises `IcebergError`: reason ``"bad-puffin"``; also for a compressed footer, which deletion vectors do not need.
    """
    size = int.from_bytes(data[-12:-8], "little", signed=True)
    start = len(data) - _FOOTER_TAIL - size
    framed_well = data[:4] == data[-4:] == _MAGIC and size >= 0 and data[max(start - 4, 0) : max(start, 0)] == _MAGIC
    if not framed_well:
        raise IcebergError("the file is not a Puffin file", reason="bad-puffin", file=location)
    if data[-8] & _COMPRESSED:
        raise IcebergError("the footer of the Puffin file is compressed", reason="bad-puffin", file=location)
    try:
        footer = json.loads(data[start : start + size])
    except ValueError as error:
        raise IcebergError(
            f"the footer of the Puffin file is not JSON ({error})", reason="bad-puffin", file=location
        ) from None
    if not isinstance(footer, dict):
        raise IcebergError("the footer of the Puffin file is not an object", reason="bad-puffin", file=location)
    return footer
