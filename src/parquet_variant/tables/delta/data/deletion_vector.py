"""Delta's deletion vectors: where they are stored (inline, next to the table, at an absolute path).

Owns reading and writing a vector by its descriptor. Leaves the bitmap to `tables.row_sets`, and dropping the rows to
`reading.read`.
"""

from __future__ import annotations

import uuid

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.data.paths import vector_path
from parquet_variant.tables.delta.protocol.actions import DeletionVector
from parquet_variant.tables.row_sets import FRAME_BYTES, check_rows, framed, read_bitmap, unframed, write_bitmap
from parquet_variant.tables.storage import Storage

_FILE_VERSION = b"\x01"


def deleted_rows(storage: Storage, vector: DeletionVector) -> npt.NDArray[np.uint64]:
    """Return the 0-based rows that a deletion vector marks, ascending.

    Raises `TableError`: reason ``"bad-deletion-vector"`` if the vector is damaged, or marks another number of rows than
    the log states.
    """
    if vector.storage_type == "i":
        data = z85.decode(vector.path_or_inline_dv)[: vector.size_in_bytes]
    else:
        data = _from_file(storage, vector)
    return check_rows(read_bitmap(data, vector.cardinality), vector.cardinality)


def _from_file(storage: Storage, vector: DeletionVector) -> bytes:
    offset, length = vector.offset or 0, vector.size_in_bytes + FRAME_BYTES
    path = vector_path(storage, vector)
    if path is None:
        raise DeltaError(f"deletion vector storage {vector.storage_type!r} is unknown", reason="bad-deletion-vector")
    try:
        block = storage.read(path, offset, length)
        if offset == 0 and block[:1] == _FILE_VERSION:
            block = storage.read(path, 1, length)
    except FileNotFoundError:
        raise DeltaError(f"the deletion vector file {path} is missing", reason="missing-file", file=path) from None
    if len(block) != length:
        raise DeltaError("the deletion vector file is truncated", reason="bad-deletion-vector", file=path)
    return unframed(block, path)


def write_vector(
    storage: Storage, rows: npt.NDArray[np.uint64], *, name: uuid.UUID | None = None, directory: str = ""
) -> DeletionVector:
    """Write a deletion vector to a file of the table.

    `rows`: unique 0-based positions, ascending.
    `name`: the unique part of the file's name (default: a new one).
    `directory`: the directory of the file in the table.
    """
    data = write_bitmap(rows)
    name = uuid.uuid4() if name is None else name
    storage.put(f"{directory}/deletion_vector_{name}.bin".lstrip("/"), _FILE_VERSION + framed(data))
    return DeletionVector("u", f"{directory}{z85.encode(name.bytes)}", len(data), len(rows), 1)
