"""LLVM instructions of the intrinsics that the modules of `kernels` declare.

Needs Numba. Imported only where kernels are compiled. Accesses to memory are verified in checked mode.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from parquet_variant.kernels.machine_code.checks import LOAD, LOAD_BLOCK, STORE, is_checking
from parquet_variant.kernels.machine_code.frontend import array_value, check_access

_WORD, _BLOCK = ir.IntType(64), ir.VectorType(ir.IntType(8), 32)
_BYTES = ir.IntType(8).as_pointer()


def _instructions(result: Any, *parameters: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of a function that writes instructions for a context, a builder and the arguments."""

    def decorate(write: Callable[..., Any]) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = write(context, builder, *arguments)
            return context.get_dummy_value() if value is None else value

        def definition(typing_context: Any, *kinds: Any) -> Any:
            return result(*parameters), codegen

        names = ["typing_context", *(f"argument_{number}" for number in range(len(parameters)))]
        definition.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])  # type: ignore[attr-defined]
        return intrinsic(definition)

    return decorate


# Loads, stores and comparisons of memory at an address, which `memory` declares.


def _size(count: int) -> Any:
    return ir.Constant(_WORD, count)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _loader(kind: Any, size: int, result: Any = types.int64, *, signed: bool = False) -> Any:
    @_instructions(result, types.int64)
    def load(context: Any, builder: Any, address: Any) -> Any:
        check_access(context, builder, LOAD, address, _size(size))
        loaded = builder.load(_pointer(builder, address, kind), align=1)
        if result is not types.int64 or size == 8:
            return loaded
        return (builder.sext if signed else builder.zext)(loaded, _WORD)

    return load


def _storer(bits: int) -> Any:
    @_instructions(types.void, types.int64, types.int64)
    def store(context: Any, builder: Any, address: Any, value: Any) -> None:
        check_access(context, builder, STORE, address, _size(bits // 8))
        pointer = _pointer(builder, address, ir.IntType(bits))
        builder.store(value if bits == 64 else builder.trunc(value, ir.IntType(bits)), pointer, align=1)

    return store


load_u8, load_u16, load_u32, load_u64 = (_loader(ir.IntType(bits), bits // 8) for bits in (8, 16, 32, 64))
load_s8, load_s16, load_s32 = (_loader(ir.IntType(bits), bits // 8, signed=True) for bits in (8, 16, 32))
load_f64, load_f32 = _loader(ir.DoubleType(), 8, types.float64), _loader(ir.FloatType(), 4, types.float32)
store_u8, store_u16, store_u32, store_u64 = map(_storer, (8, 16, 32, 64))


@_instructions(types.void, types.int64, types.int64, types.int64)
def memcpy(context: Any, builder: Any, target: Any, source: Any, size: Any) -> None:
    """Copy bytes between two places that do not overlap, by the C library."""
    check_access(context, builder, LOAD, source, size)
    check_access(context, builder, STORE, target, size)
    cgutils.raw_memcpy(builder, builder.inttoptr(target, _BYTES), builder.inttoptr(source, _BYTES), size, 1)


def _mask(test: Callable[..., Any], access: int = LOAD, addresses: int = 1) -> Any:
    """Make a load of 32 bytes, or of several, that returns one bit per byte, the lowest bit for the first byte."""

    @_instructions(types.int64, *[types.int64] * addresses)
    def mask(context: Any, builder: Any, *places: Any) -> Any:
        for address in places:
            check_access(context, builder, access, address, _size(32))
        loaded = [builder.load(_pointer(builder, address, _BLOCK), align=1) for address in places]
        bits = test(builder, *loaded, lambda byte: ir.Constant(_BLOCK, [byte] * 32))
        return builder.zext(builder.bitcast(bits, ir.IntType(32)), _WORD)

    return mask


def _stops(builder: Any, block: Any, all_of: Callable[[int], Any]) -> Any:
    quote = builder.icmp_unsigned("==", block, all_of(0x22))
    slash = builder.icmp_unsigned("==", block, all_of(0x5C))
    # Signed: control characters, and everything beyond ASCII.
    return builder.or_(builder.or_(quote, slash), builder.icmp_signed("<", block, all_of(0x20)))


# Bytes that end plain text in JSON: quotes, backslashes, control characters, and whatever is not ASCII.
stops_of_32, stops_of_32_in_page = _mask(_stops), _mask(_stops, LOAD_BLOCK)
newlines_of_32 = _mask(lambda builder, block, all_of: builder.icmp_unsigned("==", block, all_of(0x0A)))
differences_of_32 = _mask(lambda builder, left, right, _: builder.icmp_unsigned("!=", left, right), addresses=2)
# Bytes that are not ASCII.
high_of_32 = _mask(lambda builder, block, all_of: builder.icmp_signed("<", block, all_of(0)))


@_instructions(types.void, types.int64, types.int64)
def copy_32_in_page(context: Any, builder: Any, target: Any, source: Any) -> None:
    """Copy 32 bytes, of which those after the end of the source's buffer must be in the page in which it ends."""
    check_access(context, builder, LOAD_BLOCK, source, _size(32))
    check_access(context, builder, STORE, target, _size(32))
    loaded = builder.load(_pointer(builder, source, _BLOCK), align=1)
    builder.store(loaded, _pointer(builder, target, _BLOCK), align=1)


@_instructions(types.int64, types.int64)
def trailing_zeros(context: Any, builder: Any, value: Any) -> Any:
    """Return the number of zero bits below the lowest set bit; 64 for zero."""
    return builder.cttz(value, ir.Constant(ir.IntType(1), 0))


@_instructions(types.void, types.int64)
def prefetch(context: Any, builder: Any, address: Any) -> None:
    """Start to load the cache line at an address, which may be any number."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTES, *[ir.IntType(32)] * 3])
    function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
    read, keep, data = (ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))
    builder.call(function, [builder.inttoptr(address, _BYTES), read, keep, data])


# Arithmetic in 128 bits, which `int128` declares.

_I128 = ir.IntType(128)


@_instructions(types.UniTuple(types.int64, 2), *[types.int64] * 4)
def multiply_add(context: Any, builder: Any, high: Any, low: Any, factor: Any, term: Any) -> Any:
    """Return ``number * factor + term`` modulo 2**128; factor and term are unsigned."""
    number = builder.or_(builder.shl(builder.zext(high, _I128), ir.Constant(_I128, 64)), builder.zext(low, _I128))
    result = builder.add(builder.mul(number, builder.zext(factor, _I128)), builder.zext(term, _I128))
    upper = builder.trunc(builder.lshr(result, ir.Constant(_I128, 64)), _WORD)
    return cgutils.pack_array(builder, [upper, builder.trunc(result, _WORD)])


# Arrays over memory, and the C library's memory, which `native_vectors` declares.


def _array_at(dimensions: int) -> Any:
    kind = types.Array(types.int64, dimensions, "C")
    return _instructions(kind, *[types.int64] * (1 + dimensions))(
        lambda context, builder, address, *shape: array_value(context, builder, kind, address, list(shape))
    )


vector_at, table_at = _array_at(1), _array_at(2)


@intrinsic
def address_in(typing_context: Any, array: Any) -> Any:
    """Return the address of an array's first byte, inside a kernel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), codegen


@_instructions(types.int64, types.int64, types.int64)
def reallocated(context: Any, builder: Any, block: Any, size: Any) -> Any:
    """Return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out."""
    kind = ir.FunctionType(_BYTES, [_BYTES, _WORD])
    realloc = cgutils.get_or_insert_function(builder.module, kind, "pv_realloc" if is_checking() else "realloc")
    return builder.ptrtoint(builder.call(realloc, [builder.inttoptr(block, _BYTES), size]), _WORD)


@_instructions(types.void, types.int64)
def released(context: Any, builder: Any, block: Any) -> None:
    """Free a block."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTES])
    free = cgutils.get_or_insert_function(builder.module, kind, "pv_free" if is_checking() else "free")
    builder.call(free, [builder.inttoptr(block, _BYTES)])
