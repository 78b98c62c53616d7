"""The owner of what a kernel allocates: a list of blocks that is freed when the kernel returns or raises.

A kernel that allocates takes ``memory: Memory`` as its first parameter and passes it to the functions of
`native_vectors`. Python does not pass it: the entry point makes an empty list for each call, and frees the blocks that
are in it when the kernel has ended, also after a `MemoryError`. Blocks that a kernel exports leave the list. So a
kernel frees nothing at its end.

The list is circular and doubly linked: each block begins with the addresses of the next and the previous block, and
``memory`` is the address of such a pair that belongs to no block. Growing, freeing and exporting a block therefore
need its address only. `c_memory` leaves the same room at the start of blocks that Python allocates, so that they can
be passed to a kernel.
"""

from __future__ import annotations

from typing import Annotated

from parquet_variant.kernels.c_memory import HEADER_BYTES
from parquet_variant.kernels.compiling import helper, intrinsic
from parquet_variant.kernels.machine_code.signatures import Allocations, OwnerType
from parquet_variant.kernels.memory import load_u64, store_u64

_HEADER: int = HEADER_BYTES

# ``(block, size)``: return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out.
reallocated = intrinsic(__name__, "reallocated")
# Free a block.
released = intrinsic(__name__, "released")


@helper
def release_all(memory: int) -> None:
    """Free every block of a list."""
    block = load_u64(memory)
    while block != memory:
        following = load_u64(block)
        released(block)
        block = following


# The parameter of a kernel that allocates.
Memory = Annotated[Allocations, OwnerType(release_all)]


@helper
def own(memory: Memory, address: int) -> None:
    """Add the block of an address to the list."""
    block = address - _HEADER
    following = load_u64(memory)
    store_u64(block, following)
    store_u64(block + 8, memory)
    store_u64(following + 8, block)
    store_u64(memory, block)


@helper
def disown(address: int) -> None:
    """Remove the block of an address from its list; whoever gets the address must free it."""
    following, previous = load_u64(address - _HEADER), load_u64(address - _HEADER + 8)
    store_u64(previous, following)
    store_u64(following + 8, previous)


@helper
def allocate(memory: Memory, size: int) -> int:
    """Return the address of ``size`` new bytes."""
    block = reallocated(0, size + _HEADER)
    if block == 0:
        raise MemoryError("cannot allocate the tables of a kernel; work on fewer rows at a time")
    own(memory, block + _HEADER)
    return block + _HEADER


@helper
def reallocate(address: int, size: int) -> int:
    """Return the address of ``size`` bytes that begin with those at an address of `allocate`, which is freed."""
    block = reallocated(address - _HEADER, size + _HEADER)
    if block == 0:
        raise MemoryError("cannot allocate the tables of a kernel; work on fewer rows at a time")
    store_u64(load_u64(block) + 8, block)
    store_u64(load_u64(block + 8), block)
    return block + _HEADER
