"""Bloom filters of leaf columns: the test whether a value may be in a column chunk.

Owns reading the split-block filter of Parquet's ``BloomFilter.md``, because pyarrow writes but does not read it. Leaves
hashing to `kernels.pages.values`, and the decision when a filter applies to a path to `scan_plan`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.values import SALT

_BLOCK = 32
_MAX_BYTES = 128 << 20


def xxh64(data: bytes) -> int:
    """Return the XXH64 hash with seed 0.

    >>> hex(xxh64(b"")), hex(xxh64(b"abc"))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    from parquet_variant.kernels.pages.values import hash_values

    hashes = np.empty(1, np.int64)
    hash_values(address_of(np.frombuffer(data, np.uint8)), len(data), hashes)
    return int(hashes.view(np.uint64)[0])


def may_contain(bitset: bytes, value: int) -> bool:
    """Return whether a value with this hash may be in a split-block filter."""
    block = ((value >> 32) * (len(bitset) // _BLOCK)) >> 32
    words = struct.unpack_from("<8I", bitset, block * _BLOCK)
    key = value & 0xFFFFFFFF
    return all(word >> ((key * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, SALT, strict=True))


def _plain_encoded(scalar: pa.Scalar, leaf: SchemaNode) -> bytes | None:
    """Return a literal in the plain encoding of the column; None if the encoding is uncertain."""
    value = scalar.as_py()
    if leaf.spelled() in ("BYTE_ARRAY STRING", "BYTE_ARRAY"):
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    if isinstance(value, int) and not isinstance(value, bool) and (not leaf.logical or leaf.logical.startswith("INT(")):
        form = {"INT32": "<i", "INT64": "<q"}.get(leaf.physical or "")
        width = 32 if form == "<i" else 64
        return struct.pack(form, value) if form and -(2 ** (width - 1)) <= value < 2 ** (width - 1) else None
    return None


def absent_values(file: OpenFile, row_group: int, leaf: SchemaNode) -> Callable[[pa.Scalar], bool] | None:
    """Return a test for values that are certainly absent from a column chunk; None without a Bloom filter."""
    chunk: Any = file.facts.chunk(leaf, row_group)
    # pyarrow before 25 does not say where the filter is.
    if (offset := getattr(chunk, "bloom_filter_offset", None)) is None:
        return None

    @cache  # Read for the first literal, because ranges need no filter.
    def bitset() -> bytes | None:
        with file.source.filesystem.open_input_file(file.name) as stream:
            head = stream.read_at(min(chunk.bloom_filter_length or 256, _MAX_BYTES), offset)
            try:
                header, start = read_value(head, 0, STRUCT)
                size = header[1]
                # The specification defines only the block algorithm, XXH64 and no compression.
                is_supported = all(list(header[part]) == [1] for part in (2, 3, 4))
            except (ThriftError, KeyError, TypeError):
                return None
            if not is_supported or size % _BLOCK or not 0 < size <= _MAX_BYTES:
                return None
            data = bytes(head[start : start + size])
            if len(data) < size:
                data += stream.read_at(size - len(data), offset + start + len(data))
        return data if len(data) == size else None

    def is_absent(literal: pa.Scalar) -> bool:
        encoded, bits = _plain_encoded(literal, leaf), bitset()
        return encoded is not None and bits is not None and not may_contain(bits, xxh64(encoded))

    return is_absent
