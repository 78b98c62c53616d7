"""LLVM instructions of the intrinsics that the modules of `kernels` declare.

Needs Numba. Imported only where kernels are compiled. Accesses to memory are verified in checked mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from parquet_variant.kernels.machine_code.building.frontend import check_access
from parquet_variant.kernels.machine_code.checks import LOAD, LOAD_BLOCK, STORE, is_checking

_WORD = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()

# Loads, stores and comparisons of memory at an address, which `memory` declares.


def _size(count: int) -> Any:
    return ir.Constant(_WORD, count)


def _loader(kind: Any, result: Any = types.int64, *, signed: bool = False) -> Any:
    size = {ir.DoubleType(): 8, ir.FloatType(): 4}.get(kind) or kind.width // 8

    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            check_access(context, builder, LOAD, args[0], _size(size))
            loaded = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1)
            if result is not types.int64 or kind.width == 64:
                return loaded
            return (builder.sext if signed else builder.zext)(loaded, _WORD)

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
        byte_pointer = _BYTES
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
            return builder.zext(builder.bitcast(bits, ir.IntType(32)), _WORD)

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


# Arithmetic in 128 bits, which `int128` declares.

_PAIR = types.UniTuple(types.int64, 2)
_I128 = ir.IntType(128)


@intrinsic
def multiply_add(typing_context: Any, high: Any, low: Any, factor: Any, term: Any) -> Any:
    """Return ``number * factor + term`` modulo 2**128; factor and term are unsigned."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        high, low, factor, term = args
        number = builder.or_(builder.shl(builder.zext(high, _I128), ir.Constant(_I128, 64)), builder.zext(low, _I128))
        result = builder.add(builder.mul(number, builder.zext(factor, _I128)), builder.zext(term, _I128))
        upper = builder.trunc(builder.lshr(result, ir.Constant(_I128, 64)), _WORD)
        return cgutils.pack_array(builder, [upper, builder.trunc(result, _WORD)])

    return _PAIR(types.int64, types.int64, types.int64, types.int64), codegen


# Arrays over memory, which `native_vectors` declares.


def _array_at(dimensions: int) -> Any:
    array_type = types.Array(types.int64, dimensions, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = arrayobj.make_array(array_type)(context, builder)
        shape = args[1:]
        strides = [context.get_constant(types.intp, 8)]
        if dimensions == 2:
            strides.insert(0, builder.mul(shape[1], strides[0]))
        data = builder.inttoptr(args[0], context.get_data_type(types.int64).as_pointer())
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
        return array._getvalue()

    if dimensions == 1:

        @intrinsic
        def vector_at(typing_context: Any, address: Any, size: Any) -> Any:
            return array_type(types.int64, types.int64), codegen

        return vector_at

    @intrinsic
    def table_at(typing_context: Any, address: Any, rows: Any, columns: Any) -> Any:
        return array_type(types.int64, types.int64, types.int64), codegen

    return table_at


vector_at, table_at = _array_at(1), _array_at(2)


@intrinsic
def address_in(typing_context: Any, array: Any) -> Any:
    """Return the address of an array's first byte, inside a kernel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), codegen


# The C library's memory, which `native_vectors` declares.

_REALLOC, _FREE = ("pv_realloc", "pv_free") if is_checking() else ("realloc", "free")


@intrinsic
def reallocated(typing_context: Any, block: Any, size: Any) -> Any:
    """Return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        realloc = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_BYTES, [_BYTES, _WORD]), "pv_realloc" if is_checking() else "realloc"
        )
        return builder.ptrtoint(builder.call(realloc, [builder.inttoptr(args[0], _BYTES), args[1]]), _WORD)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def released(typing_context: Any, block: Any) -> Any:
    """Free a block."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        free = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [_BYTES]), "pv_free" if is_checking() else "free"
        )
        builder.call(free, [builder.inttoptr(args[0], _BYTES)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
