"""Loads, stores and comparisons of memory at an address, which `kernels.memory` declares, in Python."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from parquet_variant.kernels.machine_code.interpreting.registered_memory import check
from parquet_variant.kernels.machine_code.interpreting.translation import wrap


def _loader(form: str) -> Callable[[int], Any]:
    layout = struct.Struct(f"<{form}")

    def load(address: int) -> Any:
        check("load", address, layout.size)
        return layout.unpack(ctypes.string_at(address, layout.size))[0]

    return load


def _storer(size: int) -> Callable[[int, int], None]:
    def store(address: int, value: int) -> None:
        check("store", address, size)
        ctypes.memmove(address, (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little"), size)

    return store


load_u8, load_u16, load_u32, load_u64 = map(_loader, "BHIq")
load_s8, load_s16, load_s32 = map(_loader, "bhi")
load_f64, load_f32 = map(_loader, "df")
store_u8, store_u16, store_u32, store_u64 = map(_storer, (1, 2, 4, 8))


def memcpy(target: int, source: int, size: int) -> None:
    """Copy bytes between two places that do not overlap."""
    if size > 0:
        check("load", source, size)
        check("store", target, size)
        ctypes.memmove(target, source, size)


def _mask_of_32(holds: Callable[[int], bool]) -> Callable[[int], int]:
    def mask(address: int) -> int:
        check("load", address, 32)
        return sum(1 << place for place, byte in enumerate(ctypes.string_at(address, 32)) if holds(byte))

    return mask


stops_of_32 = _mask_of_32(lambda byte: byte in (0x22, 0x5C) or byte < 0x20 or byte >= 0x80)
newlines_of_32 = _mask_of_32(lambda byte: byte == 0x0A)
high_of_32 = _mask_of_32(lambda byte: byte >= 0x80)


def trailing_zeros(value: int) -> int:
    """Return the number of zero bits below the lowest set bit; 64 for zero.

    >>> trailing_zeros(8), trailing_zeros(0), trailing_zeros(-2)
    (3, 64, 1)
    """
    value = wrap(value)
    return 64 if value == 0 else (value & -value).bit_length() - 1
