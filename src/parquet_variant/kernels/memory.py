"""Memory by absolute address, inside kernels: load, store, copy, compare.

Owns the primitives that turn an address into a value. Leaves every bounds check to the caller: a kernel has checked
that the bytes lie inside a buffer that it was given before it calls anything here. Integers are loaded as ``int64``,
unsigned ones zero-extended, since Numba makes a float of an ``int64`` and a ``uint64``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from parquet_variant.kernels.compiling import helper, njit

__all__ = [
    "address_of",
    "copy",
    "copy_spans",
    "equal",
    "high_of_32",
    "load_f32",
    "load_f64",
    "load_s8",
    "load_s16",
    "load_s32",
    "load_u8",
    "load_u16",
    "load_u32",
    "load_u64",
    "load_uint",
    "newlines_of_32",
    "stops_of_32",
    "store_u8",
    "store_u16",
    "store_u32",
    "store_u64",
    "store_uint",
    "trailing_zeros",
]


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Address of the first byte of a NumPy array, for passing to a kernel."""
    return int(array.ctypes.data)


def _loader(bits: int, *, signed: bool = False) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            loaded = builder.load(pointer, align=1)
            if bits == 64:
                return loaded
            extend = builder.sext if signed else builder.zext
            return extend(loaded, ir.IntType(64))

        return types.int64(types.int64), codegen

    return load


def _storer(bits: int) -> Any:
    @intrinsic
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            value = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return store


load_u8, load_u16, load_u32, load_u64 = _loader(8), _loader(16), _loader(32), _loader(64)
load_s8, load_s16, load_s32 = _loader(8, signed=True), _loader(16, signed=True), _loader(32, signed=True)
store_u8, store_u16, store_u32, store_u64 = _storer(8), _storer(16), _storer(32), _storer(64)


@intrinsic
def load_f64(typing_context: Any, address: Any) -> Any:
    """The IEEE double at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.DoubleType().as_pointer()), align=1)

    return types.float64(types.int64), codegen


@intrinsic
def load_f32(typing_context: Any, address: Any) -> Any:
    """The IEEE float at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.FloatType().as_pointer()), align=1)

    return types.float32(types.int64), codegen


@intrinsic
def copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy bytes between two places that do not overlap (memcpy)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        cgutils.raw_memcpy(
            builder,
            builder.inttoptr(args[0], byte_pointer),
            builder.inttoptr(args[1], byte_pointer),
            args[2],
            1,
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@njit
def copy_spans(starts, sizes, target):
    """Copy stretches of memory one after the other."""
    for i in range(len(starts)):
        copy(target, starts[i], sizes[i])
        target += sizes[i]


def _mask(found: Callable[[Any, Any, Callable[[int], Any]], Any]) -> Any:
    """A load of 32 bytes that gives a bit for each byte, the first byte's lowest: whether `found` holds for it."""
    block = ir.VectorType(ir.IntType(8), 32)

    @intrinsic
    def mask(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            loaded = builder.load(builder.inttoptr(args[0], block.as_pointer()), align=1)
            bits = found(builder, loaded, lambda byte: ir.Constant(block, [byte] * 32))
            return builder.zext(builder.bitcast(bits, ir.IntType(32)), ir.IntType(64))

        return types.int64(types.int64), codegen

    return mask


def _stops(builder: Any, block: Any, all_of: Callable[[int], Any]) -> Any:
    quote = builder.icmp_unsigned("==", block, all_of(0x22))
    slash = builder.icmp_unsigned("==", block, all_of(0x5C))
    # Signed: control characters, and everything beyond ASCII.
    return builder.or_(builder.or_(quote, slash), builder.icmp_signed("<", block, all_of(0x20)))


# Bytes that end plain text in JSON: quotes, backslashes, control characters, and whatever is not ASCII.
stops_of_32 = _mask(_stops)
newlines_of_32 = _mask(lambda builder, block, all_of: builder.icmp_unsigned("==", block, all_of(0x0A)))
# Bytes that are not ASCII.
high_of_32 = _mask(lambda builder, block, all_of: builder.icmp_signed("<", block, all_of(0)))


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """Count of zero bits below the lowest set bit; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


@helper
def equal(left, right, size):
    """Whether two stretches of memory hold the same bytes."""
    i = 0
    while i + 8 <= size:
        if load_u64(left + i) != load_u64(right + i):
            return False
        i += 8
    while i < size:
        if load_u8(left + i) != load_u8(right + i):
            return False
        i += 1
    return True


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
