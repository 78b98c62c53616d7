"""Memory that kernels allocate: its owner, and vectors and tables that grow and are sorted in place.

Owns memory without reference counts: the atomic operations of Numba's counts in loops took a quarter to two thirds of
the time of every kernel. Python takes over exports with `adopt`. Memory that comes from Python must never be grown or
freed here. Entries are ``int64`` and start undefined.

A kernel that allocates takes ``memory: Memory`` as its first parameter and passes it to the functions here. Python does
not pass it: the entry point makes an empty list of blocks for each call, and frees the blocks that are in it when the
kernel has ended, also after a `MemoryError`. Blocks that a kernel exports leave the list. So a kernel frees nothing at
its end. The list is circular and doubly linked: each block begins with the addresses of the next and the previous
block, and ``memory`` is the address of such a pair that belongs to no block. Growing, freeing and exporting a block
therefore need its address only. `c_memory` leaves the same room at the start of blocks that Python allocates, so that
they can be passed to a kernel.
"""

from __future__ import annotations

from typing import Annotated

from parquet_variant.kernels.c_memory import HEADER_BYTES
from parquet_variant.kernels.machine_code.functions import helper, intrinsics, kernel
from parquet_variant.kernels.machine_code.signatures import Allocations, Int64s, Int64Table, OwnerType
from parquet_variant.kernels.memory import load_u64, store_u64

_HEADER: int = HEADER_BYTES

# ``(block, size)``: return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out.
# ``(block)``: free a block.
reallocated, released = intrinsics(__name__, "reallocated released")


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


# No address space is larger.
_MAX_ADDRESS_SPACE = 1 << 47

# ``(address, size)`` and ``(address, rows, columns)``: return the vector or table of entries at an address.
# ``(array)``: return the address of an array's first byte, inside a kernel.
vector_at, table_at, address_in = intrinsics(__name__, "vector_at table_at address_in")


@helper
def _bytes_of(count: int, width: int) -> int:
    """Return the bytes of some entries; raise before the product could wrap around."""
    if count < 0 or count > _MAX_ADDRESS_SPACE // width:
        raise MemoryError("the tables of a kernel exceed all memory; work on fewer rows at a time")
    return count * width


# Inlined, because Numba refuses to compile a function that returns an array without a reference count.


@helper(inline=True)
def new_vector(memory: Memory, size: int) -> Int64s:
    """Allocate a vector of ``size`` entries."""
    return vector_at(allocate(memory, _bytes_of(size, 8)), size)


@helper
def _fill(vector: Int64s, value: int) -> None:
    """Set every entry of a vector to a value."""
    for i in range(len(vector)):
        vector[i] = value


@helper(inline=True)
def filled_vector(memory: Memory, size: int, value: int) -> Int64s:
    """Allocate a vector whose entries all have the same value."""
    vector = vector_at(allocate(memory, _bytes_of(size, 8)), size)
    _fill(vector, value)
    return vector


@helper(inline=True)
def refilled_vector(vector: Int64s, size: int, value: int) -> Int64s:
    """Return the vector with another size, and the same value in all entries."""
    vector = vector_at(reallocate(address_in(vector), _bytes_of(size, 8)), size)
    _fill(vector, value)
    return vector


@helper(inline=True)
def new_table(memory: Memory, rows: int, columns: int) -> Int64Table:
    """Allocate a table with some rows."""
    return table_at(allocate(memory, _bytes_of(rows, 8 * columns)), rows, columns)


@helper
def _pooled_block(memory: Memory, block: tuple[int, int], size: int) -> tuple[int, int]:
    """Return address and size of the block, which is added to the allocations, or else of a new one."""
    address, room = block
    if address == 0:
        return allocate(memory, size), size
    own(memory, address)
    return address, room


@helper(inline=True)
def pooled_table(memory: Memory, block: tuple[int, int], columns: int, rows: int) -> Int64Table:
    """Make a table in a block from `acquire_block`, or allocate one with some rows if there is no block.

    Must be called before the kernel allocates anything, because only then the block has an owner.
    """
    address, room = _pooled_block(memory, block, _bytes_of(rows, 8 * columns))
    return table_at(address, room // (8 * columns), columns)


@helper
def _grown_size(size: int, room: int) -> int:
    """Return the room, or at least twice as much if ``size`` entries do not fit."""
    return room if size <= room else max(size, 2 * room)


@helper
def _grown_address(address: int, room: int, larger: int, width: int) -> int:
    """Return the address of entries that were given the larger room."""
    return address if larger == room else reallocate(address, _bytes_of(larger, width))


@helper(inline=True)
def reserve(vector: Int64s, size: int) -> Int64s:
    """Return the vector with room for ``size`` entries: itself, or a copy of at least twice the length."""
    larger = _grown_size(size, len(vector))
    return vector_at(_grown_address(address_in(vector), len(vector), larger, 8), larger)


@helper(inline=True)
def reserve_rows(table: Int64Table, rows: int) -> Int64Table:
    """Return the table with room for ``rows`` rows: itself, or a copy of at least twice the height."""
    columns = table.shape[1]
    larger = _grown_size(rows, table.shape[0])
    return table_at(_grown_address(address_in(table), table.shape[0], larger, 8 * columns), larger, columns)


@helper
def export_table(table: Int64Table, rows: int) -> tuple[int, int, int]:
    """Return the address and shape of a table whose first rows are filled, for `adopt`."""
    disown(address_in(table))
    return address_in(table), rows, table.shape[1]


@helper
def export_vector(vector: Int64s, size: int) -> tuple[int, int]:
    """Return the address and size of a vector whose first entries are filled, for `adopt`."""
    disown(address_in(vector))
    return address_in(vector), size


@helper
def export_bytes(address: int, size: int) -> tuple[int, int]:
    """Return the address and size of bytes, for `adopt_bytes`."""
    disown(address)
    return address, size


@helper(inline=True)
def reserve_bytes(address: int, room: int, size: int) -> tuple[int, int]:
    """Return ``(address, room)`` of bytes with room for ``size``: unchanged, or at least doubled."""
    larger = _grown_size(size, room)
    return _grown_address(address, room, larger, 1), larger


@helper
def widest_gap(count: int) -> int:
    """Return the first gap of a Shell sort with Tokuda's gaps."""
    gap = 1
    while gap < count // 3:
        gap = gap * 9 // 4 + 1
    return gap


@kernel
def sort_with(ranks: Int64s, values: Int64s, begin: int, end: int) -> None:
    """Sort the entries of ``ranks`` from ``begin`` to ``end``, and move those of another vector with them."""
    gap = widest_gap(end - begin)
    while True:
        for i in range(begin + gap, end):
            rank, value = ranks[i], values[i]
            j = i
            while j - gap >= begin and ranks[j - gap] > rank:
                ranks[j], values[j] = ranks[j - gap], values[j - gap]
                j -= gap
            ranks[j], values[j] = rank, value
        if gap == 1:
            break
        gap = gap * 4 // 9
