"""Loads, stores and comparisons of memory at an address, which `kernels.memory` declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from parquet_variant.kernels.machine_code.building.checking import check_access
from parquet_variant.kernels.machine_code.checks import LOAD, LOAD_BLOCK, STORE


def _size(count: int) -> Any:
    return ir.Constant(ir.IntType(64), count)


def _loader(kind: Any, result: Any = types.int64, *, signed: bool = False) -> Any:
    size = {ir.DoubleType(): 8, ir.FloatType(): 4}.get(kind) or kind.width // 8

    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            check_access(context, builder, LOAD, args[0], _size(size))
            loaded = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1)
            if result is not types.int64 or kind.width == 64:
                return loaded
            return (builder.sext if signed else builder.zext)(loaded, ir.IntType(64))

        return result(types.int64), codegen

    return load


def _storer(bits: int) -> Any:
    @intrinsic
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            check_access(context, builder, STORE, args[0], _size(bits // 8))
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            value = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return store


load_u8, load_u16, load_u32, load_u64 = (_loader(ir.IntType(bits)) for bits in (8, 16, 32, 64))
load_s8, load_s16, load_s32 = (_loader(ir.IntType(bits), signed=True) for bits in (8, 16, 32))
load_f64, load_f32 = _loader(ir.DoubleType(), types.float64), _loader(ir.FloatType(), types.float32)
store_u8, store_u16, store_u32, store_u64 = map(_storer, (8, 16, 32, 64))


@intrinsic
def memcpy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy bytes between two places that do not overlap, by the C library."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        check_access(context, builder, LOAD, args[1], args[2])
        check_access(context, builder, STORE, args[0], args[2])
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


def _mask(test: Callable[[Any, Any, Callable[[int], Any]], Any], access: int = LOAD) -> Any:
    """Make a load of 32 bytes that returns one bit per byte, the lowest bit for the first byte."""
    block = ir.VectorType(ir.IntType(8), 32)

    @intrinsic
    def mask(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            check_access(context, builder, access, args[0], _size(32))
            loaded = builder.load(builder.inttoptr(args[0], block.as_pointer()), align=1)
            bits = test(builder, loaded, lambda byte: ir.Constant(block, [byte] * 32))
            return builder.zext(builder.bitcast(bits, ir.IntType(32)), ir.IntType(64))

        return types.int64(types.int64), codegen

    return mask


def _stops(builder: Any, block: Any, all_of: Callable[[int], Any]) -> Any:
    quote = builder.icmp_unsigned("==", block, all_of(0x22))
    slash = builder.icmp_unsigned("==", block, all_of(0x5C))
    # Signed: control characters, and everything beyond ASCII.
    return builder.or_(builder.or_(quote, slash), builder.icmp_signed("<", block, all_of(0x20)))


# Bytes that end plain text in JSON: quotes, backslashes, control characters, and whatever is not ASCII.
stops_of_32, stops_of_32_in_page = _mask(_stops), _mask(_stops, LOAD_BLOCK)


@intrinsic
def copy_32_in_page(typing_context: Any, target: Any, source: Any) -> Any:
    """Copy 32 bytes, of which those after the end of the source's buffer must be in the page in which it ends."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        check_access(context, builder, LOAD_BLOCK, args[1], _size(32))
        check_access(context, builder, STORE, args[0], _size(32))
        pointer = ir.VectorType(ir.IntType(8), 32).as_pointer()
        loaded = builder.load(builder.inttoptr(args[1], pointer), align=1)
        builder.store(loaded, builder.inttoptr(args[0], pointer), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


newlines_of_32 = _mask(lambda builder, block, all_of: builder.icmp_unsigned("==", block, all_of(0x0A)))
# Bytes that are not ASCII.
high_of_32 = _mask(lambda builder, block, all_of: builder.icmp_signed("<", block, all_of(0)))


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """Return the number of zero bits below the lowest set bit; 64 for zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen
