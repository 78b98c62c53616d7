"""Writing deletion vectors: row positions as a roaring bitmap, in a file beside the table's data.

Owns the format on its way out (PROTOCOL.md, "Deletion Vector Format"). Leaves reading to `deletion_vector`.
"""

from __future__ import annotations

import struct
import uuid
import zlib

import numpy as np
import numpy.typing as npt

from parquet_variant.delta import z85
from parquet_variant.delta.protocol.actions import DeletionVector
from parquet_variant.delta.storage import Storage

_MAGIC = 1681511377
_FILE_VERSION = b"\x01"
_COOKIE = 12346
_ARRAY_LIMIT = 4096
_CONTAINER_ROWS = 1 << 16


def write_vector(storage: Storage, rows: npt.NDArray[np.uint64]) -> DeletionVector:
    """Put the vector of some rows into a new file of the table.

    `rows`: ascending 0-based positions, each once.
    """
    data = write_bitmap(rows)
    name = uuid.uuid4()
    block = _FILE_VERSION + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    with storage.create(f"deletion_vector_{name}.bin") as local:
        local.write_bytes(block)
    return DeletionVector("u", z85.encode(name.bytes), len(data), len(rows), 1)


def write_bitmap(rows: npt.NDArray[np.uint64]) -> bytes:
    """A serialized 64-bit roaring bitmap with Delta's magic number.

    >>> from parquet_variant.delta.data.deletion_vector import read_bitmap
    >>> read_bitmap(write_bitmap(np.array([3, 4, 70000, 2**33], dtype=np.uint64))).tolist()
    [3, 4, 70000, 8589934592]
    """
    keys, starts = np.unique(rows >> np.uint64(32), return_index=True)
    parts = [struct.pack("<iQ", _MAGIC, len(keys))]
    for key, bucket in zip(keys.tolist(), np.split(rows, starts[1:]), strict=True) if len(rows) else ():
        parts += [struct.pack("<I", key), _bitmap32((bucket & np.uint64(0xFFFFFFFF)).astype(np.uint32))]
    return b"".join(parts)


def _bitmap32(rows: npt.NDArray[np.uint32]) -> bytes:
    keys, starts = np.unique(rows >> np.uint32(16), return_index=True)
    containers = [part.astype("<u2") for part in np.split(rows & np.uint32(0xFFFF), starts[1:])]
    bodies = [part.tobytes() if len(part) <= _ARRAY_LIMIT else _bits(part) for part in containers]
    header = struct.pack("<II", _COOKIE, len(keys))
    counts = np.array([[key, len(part) - 1] for key, part in zip(keys, containers, strict=True)], dtype="<u2")
    first = len(header) + 8 * len(keys)
    offsets = first + np.concatenate([[0], np.cumsum([len(body) for body in bodies])[:-1]])
    return header + counts.tobytes() + offsets.astype("<u4").tobytes() + b"".join(bodies)


def _bits(rows: npt.NDArray[np.uint16]) -> bytes:
    bits = np.zeros(_CONTAINER_ROWS, dtype=np.uint8)
    bits[rows] = 1
    return np.packbits(bits, bitorder="little").tobytes()
