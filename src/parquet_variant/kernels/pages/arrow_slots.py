"""The slots of Arrow arrays by the addresses of their buffers: which are there, and where byte arrays start.

Owns reading validity bits and offsets. Leaves what is made of the slots to the other modules of this package.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_s32, load_u8, load_u64


@helper
def is_set(bits, at):
    """Whether a slot is there, by the address of the validity; 0 where all are."""
    return bits == 0 or (load_u8(bits + (at >> 3)) >> (at & 7)) & 1 == 1


@helper
def offset_at(offsets, slot, width):
    """The offset of a slot, of 4 or 8 bytes."""
    return load_s32(offsets + slot * 4) if width == 4 else load_u64(offsets + slot * 8)
