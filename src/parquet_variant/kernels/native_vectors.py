"""Vectors and tables that kernels make for themselves, and let grow while they fill them.

Owns memory that is not counted: kernels compile without Numba's reference counts, whose atomic operations in loops
took a quarter to two thirds of the time of every kernel. So whoever makes a vector or table here also releases it, or
hands it to Python, which takes it over with `adopt`. What comes from Python must never be grown or released. Entries
are ``int64`` and start undefined.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, intrinsic

# No address space has more bytes.
_MOST_ADDRESSED = 1 << 47


# ``(address, size)``: address of bytes that begin with those at an address, which is given back; 0 if none are left.
reallocated = intrinsic(__name__, "reallocated")
# Give back the memory at an address that was made here.
released = intrinsic(__name__, "released")
# ``(address, size)`` and ``(address, rows, columns)``: the vector, and the table, of entries at an address.
vector_at = intrinsic(__name__, "vector_at")
table_at = intrinsic(__name__, "table_at")
# Address of an array's first byte, inside a kernel.
address_in = intrinsic(__name__, "address_in")


@helper
def _bytes_of(count, width):
    """Bytes of some entries; more than any memory holds is refused before the product could wrap around."""
    if count < 0 or count > _MOST_ADDRESSED // width:
        raise MemoryError("no memory holds a kernel's tables; work on fewer rows at a time")
    return count * width


@helper
def reallocate(address, size):
    """Address of ``size`` bytes, the first of which are those at an address that was made here; 0 makes new ones."""
    address = reallocated(address, max(size, 1))
    if address == 0:
        raise MemoryError("no memory left for a kernel's tables; work on fewer rows at a time")
    return address


# Numba refuses to compile a function that returns an array it does not count: hence inlined.


@helper(inline=True)
def new_vector(size):
    """A vector with room for some entries."""
    return vector_at(reallocate(0, _bytes_of(size, 8)), size)


@helper
def _fill(vector, value):
    for i in range(len(vector)):
        vector[i] = value


@helper(inline=True)
def filled_vector(size, value):
    """A vector whose entries are all the same."""
    vector = vector_at(reallocate(0, _bytes_of(size, 8)), size)
    _fill(vector, value)
    return vector


@helper(inline=True)
def new_table(rows, columns):
    """A table with room for some rows."""
    return table_at(reallocate(0, _bytes_of(rows, 8 * columns)), rows, columns)


@helper(inline=True)
def pooled_table(acquire_block, columns, rows):
    """A table in memory that was `acquire_block`, or a new one with room for some rows."""
    address, size = acquire_block
    height = size // (8 * columns) if address != 0 else rows
    return table_at(address if address != 0 else reallocate(0, _bytes_of(rows, 8 * columns)), height, columns)


@helper
def free(array):
    """Give a vector's or a table's memory back."""
    released(address_in(array))


@helper
def _larger(size, room):
    return room if size <= room else max(size, 2 * room)


@helper
def _moved(address, room, larger, width):
    return address if larger == room else reallocate(address, _bytes_of(larger, width))


@helper(inline=True)
def reserve(vector, size):
    """The vector, or one of at least twice its length in its place, with room for ``size`` entries."""
    larger = _larger(size, len(vector))
    return vector_at(_moved(address_in(vector), len(vector), larger, 8), larger)


@helper(inline=True)
def reserve_rows(table, rows):
    """The table, or one of at least twice its height in its place, with room for ``rows`` rows."""
    columns = table.shape[1]
    larger = _larger(rows, table.shape[0])
    return table_at(_moved(address_in(table), table.shape[0], larger, 8 * columns), larger, columns)


@helper
def export_table(table, rows):
    """What a kernel returns of a table whose first rows it has filled, for `adopt`."""
    return address_in(table), rows, table.shape[1]


@helper
def export_vector(vector, size):
    """What a kernel returns of a vector whose first entries it has filled, for `adopt`."""
    return address_in(vector), size


@helper(inline=True)
def reserve_bytes(address, room, size):
    """``(address, room)`` of bytes, or of at least twice as many in their place, if there is no room for ``size``."""
    larger = _larger(size, room)
    return _moved(address, room, larger, 1), larger
