"""Sets of row positions as 64-bit roaring bitmaps: the content of deletion vectors.

Owns the bitmap format and the frame around it (size, bitmap, checksum) that Delta's deletion vector files and Iceberg's
Puffin blobs share. Leaves the place of a vector to the formats.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import TableError

_MAGIC = 1681511377
_MAGIC_NATIVE = 1681511376
_COOKIE = 12346
_RUN_COOKIE = 12347
_NO_OFFSETS_BELOW = 4
_ARRAY_LIMIT = 4096
_BITMAP_BYTES = 8192
_CONTAINER_ROWS = 8 * _BITMAP_BYTES
FRAME_BYTES = 8


def check_rows(rows: npt.NDArray[np.uint64], cardinality: int) -> npt.NDArray[np.uint64]:
    """Return the rows of a deletion vector if their number is the one that the table's metadata states."""
    if len(rows) != cardinality:
        problem = f"the deletion vector marks {len(rows)} rows, but the table's metadata states {cardinality}"
        raise TableError(problem, reason="bad-deletion-vector")
    return rows


def framed(data: bytes) -> bytes:
    """Return a bitmap with its size before it and its CRC-32 after it, both big-endian."""
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def unframed(block: bytes, path: str) -> bytes:
    """Return the bitmap of a frame in a file; raise `TableError`: ``"bad-deletion-vector"``.

    >>> unframed(framed(b"abc"), "file")
    b'abc'
    """
    size, data, checksum = block[:4], block[4:-4], block[-4:]
    if int.from_bytes(size, "big") != len(data) or int.from_bytes(checksum, "big") != zlib.crc32(data):
        raise TableError(
            "the size or checksum of the deletion vector is wrong", reason="bad-deletion-vector", file=path
        )
    return data


def read_bitmap(data: bytes, limit: int = 1 << 48) -> npt.NDArray[np.uint64]:
    """Return the members of a serialized 64-bit roaring bitmap with Delta's magic number, ascending.

    `limit`: the largest allowed number of members, since a few bytes can stand for billions.
    """
    try:
        buckets = [low.astype(np.uint64) | np.uint64(key << 32) for key, low in _buckets(data, limit)]
        rows = np.concatenate(buckets) if buckets else np.empty(0, dtype=np.uint64)
        if not (rows[1:] > rows[:-1]).all():
            raise ValueError("duplicate rows")
    except (struct.error, ValueError, IndexError):
        raise TableError("a deletion vector is truncated or damaged", reason="bad-deletion-vector") from None
    return rows


def _buckets(data: bytes, limit: int) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
    (magic,) = struct.unpack_from("<i", data)
    if magic == _MAGIC:
        (count,) = struct.unpack_from("<Q", data, 4)
        at = 12
        for _ in range(count):
            (key,) = struct.unpack_from("<I", data, at)
            low, at = _read_bitmap32(data, at + 4, limit)
            limit -= len(low)
            yield key, low
        return
    # The older form of the protocol's inline example: big-endian, without keys, each bitmap with its size.
    (magic_native, count) = struct.unpack_from(">iI", data)
    if magic_native != _MAGIC_NATIVE:
        raise TableError(
            f"a deletion vector begins with the number {magic} instead of {_MAGIC}", reason="bad-deletion-vector"
        )
    at = 8
    for key in range(count):
        (size,) = struct.unpack_from(">I", data, at)
        low, _ = _read_bitmap32(data, at + 4, limit)
        limit -= len(low)
        yield key, low
        at += 4 + size


def _read_bitmap32(data: bytes, at: int, limit: int) -> tuple[npt.NDArray[np.uint32], int]:
    """Return the members of a 32-bit roaring bitmap in the standard format, and the offset of its end."""
    (cookie,) = struct.unpack_from("<I", data, at)
    runs = b""
    if cookie & 0xFFFF == _RUN_COOKIE:
        count = (cookie >> 16) + 1
        flag_bytes = (count + 7) // 8
        runs = data[at + 4 : at + 4 + flag_bytes]
        at += 4 + flag_bytes
        has_offsets = count >= _NO_OFFSETS_BELOW
    elif cookie == _COOKIE:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at += 8
        has_offsets = True
    else:
        raise ValueError("cookie")
    keys = np.frombuffer(data, dtype="<u2", count=2 * count, offset=at).reshape(-1, 2).astype(np.uint32)
    if int(keys[:, 1].sum()) + count > limit:
        raise ValueError("too many rows")
    at += 4 * count + (4 * count if has_offsets else 0)
    parts = []
    for index, (key, cardinality) in enumerate(keys.tolist()):
        if runs and runs[index // 8] >> (index % 8) & 1:
            (number,) = struct.unpack_from("<H", data, at)
            spans = np.frombuffer(data, dtype="<u2", count=2 * number, offset=at + 2).reshape(-1, 2).astype(np.int64)
            if int(spans[:, 1].sum()) + number != cardinality + 1:
                raise ValueError("wrong number of rows in runs")
            low = np.concatenate([np.arange(start, start + length + 1) for start, length in spans.tolist()])
            low, at = low.astype(np.uint32), at + 2 + 4 * number
        elif cardinality + 1 <= _ARRAY_LIMIT:
            low = np.frombuffer(data, dtype="<u2", count=cardinality + 1, offset=at).astype(np.uint32)
            at += 2 * (cardinality + 1)
        else:
            bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
            low = np.flatnonzero(bits).astype(np.uint32)
            at += _BITMAP_BYTES
        parts.append(low | np.uint32(key << 16))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32), at


def write_bitmap(rows: npt.NDArray[np.uint64]) -> bytes:
    """Return rows as a serialized 64-bit roaring bitmap with Delta's magic number.

    >>> read_bitmap(write_bitmap(np.array([3, 4, 70000, 2**33], dtype=np.uint64))).tolist()
    [3, 4, 70000, 8589934592]
    """
    keys, starts = np.unique(rows >> np.uint64(32), return_index=True)
    parts = [struct.pack("<iQ", _MAGIC, len(keys))]
    for key, bucket in zip(keys.tolist(), np.split(rows, starts[1:]), strict=True) if len(rows) else ():
        parts += [struct.pack("<I", key), _bitmap32_bytes((bucket & np.uint64(0xFFFFFFFF)).astype(np.uint32))]
    return b"".join(parts)


def _bitmap32_bytes(rows: npt.NDArray[np.uint32]) -> bytes:
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
