"""Puffin files: the blobs that hold deletion vectors.

Owns the file format (specification, "Puffin file format"). The bitmap of a vector is in `tables.row_sets`; which vector
applies to which data file is decided in `reading.deletes`.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import IcebergError, TableError
from parquet_variant.tables.iceberg.locations import TableFiles
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile
from parquet_variant.tables.iceberg.metadata.table_metadata import ENGINE
from parquet_variant.tables.row_sets import framed, read_bitmap, unframed, write_bitmap

_MAGIC = b"PFA1"
_FOOTER_TAIL = 12
Rows = npt.NDArray[np.uint64]


def write_vector(files: TableFiles, location: str, file: DataFile, rows: Rows) -> DataFile:
    """Write a Puffin file with the ascending positions of a data file's deleted rows, and return its description."""
    blob = framed(write_bitmap(rows))
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC),
        "length": len(blob),
        "properties": {"referenced-data-file": file.path, "cardinality": str(len(rows))},
    }
    payload = json.dumps({"blobs": [described], "properties": {"created-by": ENGINE}}, separators=(",", ":")).encode()
    footer = (_MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), _MAGIC)
    data = b"".join((_MAGIC, blob, *footer))
    files.write(location, data)
    return DataFile(
        path=location,
        format="puffin",
        record_count=len(rows),
        size=len(data),
        spec_id=file.spec_id,
        partition=file.partition,
        content=Content.POSITION_DELETES,
        referenced_data_file=file.path,
        content_offset=len(_MAGIC),
        content_size=len(blob),
    )


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
