"""Memory by absolute address, inside kernels: load, store, copy, compare, hash, records; and the kinds of values.

Owns the primitives that turn an address into a value; `intrinsics` has their instructions. Leaves every bounds
check to the caller: a kernel checks that bytes lie inside one of its buffers before it calls a function of this module.
Integers are loaded as ``int64``, and unsigned ones are zero-extended, because Numba makes a float of an ``int64`` and a
``uint64``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.machine_code.checks import is_checking, register
from parquet_variant.kernels.machine_code.functions import helper, intrinsics, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s
from parquet_variant.types import PrimitiveId

# Load the unsigned or signed integer, or the IEEE double or float, at an address; integers become ``int64``.
load_u8, load_u16, load_u32, load_u64 = intrinsics(__name__, "load_u8 load_u16 load_u32 load_u64")
load_s8, load_s16, load_s32, load_f64, load_f32 = intrinsics(__name__, "load_s8 load_s16 load_s32 load_f64 load_f32")
# Store the low bits of a value at an address.
store_u8, store_u16, store_u32, store_u64 = intrinsics(__name__, "store_u8 store_u16 store_u32 store_u64")
# ``(target, source, size)``: copy bytes that do not overlap, by the C library.
(memcpy,) = intrinsics(__name__, "memcpy")
# Start to load the cache line at an address, which may be any number.
(prefetch,) = intrinsics(__name__, "prefetch")
# Return a mask with one bit for each of the 32 bytes at an address, the lowest bit for the first byte. A bit is set if
# the byte ends plain text in JSON (quote, backslash, control character, not ASCII), is a newline, or is not ASCII.
stops_of_32, newlines_of_32, high_of_32 = intrinsics(__name__, "stops_of_32 newlines_of_32 high_of_32")
(differences_of_32,) = intrinsics(__name__, "differences_of_32")  # The bytes at two addresses that differ.
# As `stops_of_32`, and ``(target, source)``: copy 32 bytes. Bytes after the end of the source's buffer may be loaded,
# if they are in the page in which the buffer ends.
stops_of_32_in_page, copy_32_in_page = intrinsics(__name__, "stops_of_32_in_page copy_32_in_page")
# Return the number of zero bits below the lowest set bit; 64 for zero.
(trailing_zeros,) = intrinsics(__name__, "trailing_zeros")


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first byte of a NumPy array, for passing to a kernel.

    In checked mode, kernels may then read and write the memory of the array.
    """
    if is_checking():
        register(array)
    return int(pa.py_buffer(array).address)


def buffer_address(buffer: Any) -> int:
    """Return the address of an Arrow buffer, for passing to a kernel, as `address_of` does for arrays; 0 for None."""
    if buffer is None:
        return 0
    if is_checking():
        register(buffer)
    return int(buffer.address)


@helper
def copy(target: int, source: int, size: int) -> None:
    """Copy bytes that do not overlap; up to 32 bytes are copied in overlapping words, without a call."""
    if size > 32:
        memcpy(target, source, size)
    elif size >= 16:
        store_u64(target, load_u64(source))
        store_u64(target + 8, load_u64(source + 8))
        store_u64(target + size - 16, load_u64(source + size - 16))
        store_u64(target + size - 8, load_u64(source + size - 8))
    elif size >= 8:
        store_u64(target, load_u64(source))
        store_u64(target + size - 8, load_u64(source + size - 8))
    elif size >= 4:
        store_u32(target, load_u32(source))
        store_u32(target + size - 4, load_u32(source + size - 4))
    elif size > 0:
        store_u8(target, load_u8(source))
        store_u8(target + (size >> 1), load_u8(source + (size >> 1)))
        store_u8(target + size - 1, load_u8(source + size - 1))


@helper
def move(target: int, source: int, width: int) -> None:
    """Copy a value of 1, 2, 4, 8 or 16 bytes, or of any other width."""
    if width == 8:
        store_u64(target, load_u64(source))
    elif width == 4:
        store_u32(target, load_u32(source))
    elif width == 16:
        store_u64(target, load_u64(source))
        store_u64(target + 8, load_u64(source + 8))
    elif width == 1:
        store_u8(target, load_u8(source))
    elif width == 2:
        store_u16(target, load_u16(source))
    else:
        copy(target, source, width)


@kernel
def copy_spans(starts: Int64s, sizes: Int64s, target: int) -> None:
    """Copy spans of memory one after the other to a target."""
    for i in range(len(starts)):
        copy(target, starts[i], sizes[i])
        target += sizes[i]


@helper
def equal(left: int, right: int, size: int) -> bool:
    """Return whether two spans of memory hold the same bytes."""
    if size >= 8:
        last = size - 8
        i = 0
        while i < last:
            if load_u64(left + i) != load_u64(right + i):
                return False
            i += 8
        return load_u64(left + last) == load_u64(right + last)
    return short_word(left, size) == short_word(right, size)


@helper
def short_word(address: int, size: int) -> int:
    """Return up to seven bytes as a number; different bytes of the same size give different numbers."""
    if size >= 4:
        return load_u32(address) | (load_u32(address + size - 4) << 32)
    if size > 0:
        return load_u8(address) | (load_u8(address + (size >> 1)) << 8) | (load_u8(address + size - 1) << 16)
    return 0


@helper
def load_uint(address: int, width: int) -> int:
    """Load a little-endian unsigned integer of 1 to 4 bytes."""
    if width == 1:
        return load_u8(address)
    if width == 2:
        return load_u16(address)
    if width == 3:
        return load_u16(address) | (load_u8(address + 2) << 16)
    return load_u32(address)


@helper
def store_uint(address: int, value: int, width: int) -> None:
    """Store a little-endian unsigned integer of 1 to 4 bytes."""
    if width == 1:
        store_u8(address, value)
    elif width == 2:
        store_u16(address, value)
    elif width == 3:
        store_u16(address, value)
        store_u8(address + 2, value >> 16)
    else:
        store_u32(address, value)


# Different in every process, so that colliding keys cannot be crafted; results do not depend on it.
HASH_SEED = int.from_bytes(os.urandom(7), "little") | 1
# Odd numbers, by which bits are spread.
MIX_A, MIX_B = 0x2127599BF4325C37, 0x2545F4914F6CDD1D


@helper
def hash_bytes(address: int, length: int, seed: int) -> int:
    """Return a 62-bit hash of bytes."""
    value = seed ^ (length * MIX_B)
    i = 0
    while i + 8 <= length:
        value = (value ^ load_u64(address + i)) * MIX_A
        value ^= (value >> 29) & 0x7FFFFFFFF
        i += 8
    tail = load_u64(address + length - 8) if length >= 8 else short_word(address, length)
    value = (value ^ tail) * MIX_A
    value ^= (value >> 32) & 0xFFFFFFFF
    return value & 0x3FFFFFFFFFFFFFFF


# Records are rows of 64-bit columns at addresses. A column of a record is one load. An entry of a table that is passed
# as an array takes a multiplication by the table's width, and the array's shape takes registers, which makes kernels
# that visit values a third slower.


@helper
def get(record: int, column: int) -> int:
    """Return a column of a record."""
    return load_u64(record + 8 * column)


@helper
def put(record: int, column: int, value: int) -> None:
    """Set a column of a record."""
    store_u64(record + 8 * column, value)


# Columns of a node of a tape, and of `values.value_nodes`.
NODE = numbered("TAG A B END")
NODE_BYTES = 8 * len(NODE)
# Kinds of values: ids of scalars start at 0; ARRAY and OBJECT follow.
KIND = numbered(" ".join([*PrimitiveId.__members__, "ARRAY", "OBJECT"]))


@helper
def put_node(nodes: int, n: int, tag: int, a: int, b: int) -> None:
    """Write a node that has no children yet; a container's end is set when its last value is written."""
    node = nodes + n * NODE_BYTES
    put(node, NODE.TAG, tag)
    put(node, NODE.A, a)
    put(node, NODE.B, b)
    put(node, NODE.END, n + 1)
