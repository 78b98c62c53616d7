"""Memory by absolute address, inside kernels: load, store, copy, compare.

Owns the primitives that turn an address into a value; `intrinsics.memory` has their instructions. Leaves every bounds
check to the caller: a kernel has checked that the bytes lie inside a buffer that it was given before it calls anything
here. Integers are loaded as ``int64``, unsigned ones zero-extended, since Numba makes a float of an ``int64`` and a
``uint64``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from parquet_variant.kernels.compiling import helper, intrinsic, kernel
from parquet_variant.machine_code.signatures import Int64s


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Address of the first byte of a NumPy array, for passing to a kernel."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # read-only, not contiguous, or empty
        return int(array.ctypes.data)


@intrinsic
def load_u8(address):
    """The byte at an address."""


@intrinsic
def load_u16(address):
    """The unsigned 16-bit integer at an address."""


@intrinsic
def load_u32(address):
    """The unsigned 32-bit integer at an address."""


@intrinsic
def load_u64(address):
    """The 64 bits at an address."""


@intrinsic
def load_s8(address):
    """The signed 8-bit integer at an address."""


@intrinsic
def load_s16(address):
    """The signed 16-bit integer at an address."""


@intrinsic
def load_s32(address):
    """The signed 32-bit integer at an address."""


@intrinsic
def load_f64(address):
    """The IEEE double at an address."""


@intrinsic
def load_f32(address):
    """The IEEE float at an address."""


@intrinsic
def store_u8(address, value):
    """Store the low 8 bits of a value."""


@intrinsic
def store_u16(address, value):
    """Store the low 16 bits of a value."""


@intrinsic
def store_u32(address, value):
    """Store the low 32 bits of a value."""


@intrinsic
def store_u64(address, value):
    """Store all bits of a value."""


@intrinsic
def memcpy(target, source, size):
    """Copy bytes between two places that do not overlap, by the C library."""


@helper
def copy(target, source, size):
    """Copy bytes between two places that do not overlap: a few of them by words that overlap, without a call."""
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


@intrinsic
def stops_of_32(address):
    """Of 32 bytes, those that end plain text in JSON: quotes, backslashes, control characters, what is not ASCII.

    Here and below, a bit for each byte, the first byte's lowest.
    """


@intrinsic
def newlines_of_32(address):
    """Of 32 bytes, the newlines."""


@intrinsic
def high_of_32(address):
    """Of 32 bytes, those that are not ASCII."""


@intrinsic
def trailing_zeros(value):
    """Count of zero bits below the lowest set bit; 64 for zero."""


@kernel
def copy_spans(starts: Int64s, sizes: Int64s, target: int) -> None:
    """Copy stretches of memory one after the other."""
    for i in range(len(starts)):
        copy(target, starts[i], sizes[i])
        target += sizes[i]


@helper
def equal(left, right, size):
    """Whether two stretches of memory hold the same bytes."""
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
def short_word(address, size):
    """Up to seven bytes as a number that differs where texts of one size do."""
    if size >= 4:
        return load_u32(address) | (load_u32(address + size - 4) << 32)
    if size > 0:
        return load_u8(address) | (load_u8(address + (size >> 1)) << 8) | (load_u8(address + size - 1) << 16)
    return 0


@helper
def load_uint(address, width):
    """A little-endian unsigned integer of 1 to 4 bytes."""
    if width == 1:
        return load_u8(address)
    if width == 2:
        return load_u16(address)
    if width == 3:
        return load_u16(address) | (load_u8(address + 2) << 16)
    return load_u32(address)


@helper
def store_uint(address, value, width):
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
