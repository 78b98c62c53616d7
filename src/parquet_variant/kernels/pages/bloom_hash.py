"""The hashes of bloom filters: XXH64 of values as PLAIN stores them, without their length.

Owns hashing many values, and setting the bits of a split-block filter. Leaves sizes and headers to
`files.parquet.pages.bloom_filter`, and reading to `files.parquet.format.bloom`. Spec: ``BloomFilter.md``.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s
from parquet_variant.kernels.memory import load_u8, load_u32, load_u64, store_u32

# Signed, because kernels compute in int64; multiplication wraps around in the same way.
_P1, _P2, _P3, _P4, _P5 = (
    int(np.uint64(prime).astype(np.int64))
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


@helper
def _rotated(number: int, bits: int) -> int:
    """Rotate the bits of a number to the left."""
    return (number << bits) | ((number >> (64 - bits)) & ((1 << bits) - 1))


@helper
def _shifted(number: int, bits: int) -> int:
    """Shift the bits of an unsigned number to the right."""
    return (number >> bits) & ((1 << (64 - bits)) - 1)


@helper
def _round(lane: int, word: int) -> int:
    """Mix a word into a lane."""
    return _rotated(lane + word * _P2, 31) * _P1


@helper
def _xxh64(at: int, size: int) -> int:
    """Return the XXH64 hash of bytes."""
    stop = at + size
    if size >= 32:
        one, two, three, four = _P1 + _P2, _P2, 0, -_P1
        while at + 32 <= stop:
            one = _round(one, load_u64(at))
            two = _round(two, load_u64(at + 8))
            three = _round(three, load_u64(at + 16))
            four = _round(four, load_u64(at + 24))
            at += 32
        result = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
        result = (result ^ _round(0, one)) * _P1 + _P4
        result = (result ^ _round(0, two)) * _P1 + _P4
        result = (result ^ _round(0, three)) * _P1 + _P4
        result = (result ^ _round(0, four)) * _P1 + _P4
    else:
        result = _P5
    result += size
    while at + 8 <= stop:
        result = _rotated(result ^ _round(0, load_u64(at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= stop:
        result = _rotated(result ^ (load_u32(at) * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        result = _rotated(result ^ (load_u8(at) * _P5), 11) * _P1
        at += 1
    result = (result ^ _shifted(result, 33)) * _P2
    result = (result ^ _shifted(result, 29)) * _P3
    return result ^ _shifted(result, 32)


@kernel
def hash_values(source: int, width: int, hashes: Int64s) -> None:
    """Hash values of one width."""
    for i in range(len(hashes)):
        hashes[i] = _xxh64(source + i * width, width)


@kernel
def hash_byte_arrays(data: int, lengths: Int32s, hashes: Int64s) -> None:
    """Hash byte arrays that follow each other."""
    for i in range(len(lengths)):
        hashes[i] = _xxh64(data, lengths[i])
        data += lengths[i]


@kernel
def set_blocks(hashes: Int64s, blocks: int, bitset: int) -> None:
    """Set the bits of values in a filter of ``blocks`` blocks of 32 bytes at an address."""
    for i in range(len(hashes)):
        block = bitset + ((_shifted(hashes[i], 32) * blocks) >> 32) * 32
        key = hashes[i] & 0xFFFFFFFF
        for k in range(8):
            at = block + 4 * k
            store_u32(at, load_u32(at) | (1 << (((key * SALT[k]) & 0xFFFFFFFF) >> 27)))
