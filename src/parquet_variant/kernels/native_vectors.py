"""Vectors and tables that kernels allocate, that grow while a kernel fills them, and that are sorted in place.

Owns memory without reference counts: the atomic operations of Numba's counts in loops took a quarter to two thirds of
the time of every kernel. `ownership` frees what a kernel does not export; Python takes over exports with `adopt`.
Memory that comes from Python must never be grown or freed here. Entries are ``int64`` and start undefined.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, intrinsic, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.ownership import Memory, allocate, disown, own, reallocate

# No address space is larger.
_MAX_ADDRESS_SPACE = 1 << 47

# ``(address, size)`` and ``(address, rows, columns)``: return the vector or table of entries at an address.
vector_at = intrinsic(__name__, "vector_at")
table_at = intrinsic(__name__, "table_at")
# Return the address of an array's first byte, inside a kernel.
address_in = intrinsic(__name__, "address_in")


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
    """Return address and size of the block, which is added to the allocations, or of a new one if there is none."""
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
    """Return the first gap of the sort."""
    gap = 1
    while gap < count // 3:
        gap = gap * 9 // 4 + 1
    return gap


@kernel
def sort_run(values: Int64s, begin: int, end: int) -> None:
    """Sort the entries of a vector from ``begin`` to ``end`` (Shell sort with Tokuda's gaps)."""
    gap = widest_gap(end - begin)
    while True:
        for i in range(begin + gap, end):
            value = values[i]
            j = i
            while j - gap >= begin and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        if gap == 1:
            break
        gap = gap * 4 // 9


@kernel
def sort_with(ranks: Int64s, values: Int64s, begin: int, end: int) -> None:
    """Sort the entries of ``ranks`` from ``begin`` to ``end``, and move those of ``values`` with them."""
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
