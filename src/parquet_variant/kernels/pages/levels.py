"""Definition and repetition levels of Arrow columns, one byte each, and slots of Arrow arrays by address.

Owns reading validity bits and offsets, and one step down from a struct, a list or a leaf to its content. Leaves the
walk over the columns to `files.parquet.pages.leaf_values`, and levels as runs to `pages.runs`. Levels are written for
entries. An entry whose definition level is at least ``slot_level`` has a slot in the Arrow array, in order.
``present_level`` is the level of an entry that is not null.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, UInt8s
from parquet_variant.kernels.memory import load_s32, load_u8, load_u64


class ByteArrays(NamedTuple):
    """The byte arrays of an Arrow array, by the addresses of its buffers."""

    data: int
    offsets: int  # Address of the first slot's offset.
    width: int  # Bytes of an offset.
    # Address of the validity, 0 if all slots are valid, and the bit of the first slot.
    bits: int
    first: int
    rows: int  # Number of slots.


class Lists(NamedTuple):
    """The lists of an Arrow array, by the addresses of its buffers."""

    # Address of the validity, 0 if all lists are valid, and the bit of the first list.
    bits: int
    first: int
    offsets: int  # Address of the first list's offset.
    width: int  # Bytes of an offset.


@helper
def is_set(bits: int, at: int) -> bool:
    """Return whether a slot is not null, given the address of the validity bits; 0 if all slots are valid."""
    return bits == 0 or (load_u8(bits + (at >> 3)) >> (at & 7)) & 1 == 1


@helper
def offset_at(offsets: int, slot: int, width: int) -> int:
    """Return the offset of a slot, which has 4 or 8 bytes."""
    return load_s32(offsets + slot * 4) if width == 4 else load_u64(offsets + slot * 8)


@kernel
def optional_levels(above: UInt8s, slot_level: int, present_level: int, bits: int, first: int, levels: UInt8s) -> int:
    """Fill the levels of an optional field; return the number of entries that are not null.

    ``above`` are the levels of its parent (empty: all are ``present_level``). ``bits`` is the address of its validity
    (0: all valid), whose first bit is ``first``.
    """
    present, slot = 0, first
    for i in range(len(levels)):
        level = above[i] if len(above) else present_level
        if level >= slot_level:
            if level == present_level and is_set(bits, slot):
                level += 1
                present += 1
            slot += 1
        levels[i] = level
    return present


@kernel
def list_levels(
    above: UInt8s,
    repeated: UInt8s,
    count: int,
    slot_level: int,
    present_level: int,
    empty: int,
    lists: Lists,
    depth: int,
    levels: UInt8s,
    repetition: UInt8s,
) -> tuple[int, int]:
    """Fill the levels of a list's elements; return ``(entries, elements)``.

    ``repeated`` are the repetition levels of the list's parent (empty: all are 0), ``empty`` is the definition level of
    an empty list, ``offsets`` and ``width`` are the address of its offsets and their bytes, and ``depth`` is the
    repetition level of its elements.
    """
    slot = entries = elements = 0
    for i in range(count):
        level = above[i] if len(above) else present_level
        before = repeated[i] if len(repeated) else 0
        size = 0
        if level >= slot_level:
            if level == present_level and is_set(lists.bits, lists.first + slot):
                level = empty
                size = offset_at(lists.offsets, slot + 1, lists.width) - offset_at(lists.offsets, slot, lists.width)
            slot += 1
        if size > 0:
            for k in range(size):
                levels[entries + k] = empty + 1
                repetition[entries + k] = depth
            repetition[entries] = before
            entries += size
            elements += size
        else:
            levels[entries] = level
            repetition[entries] = before
            entries += 1
    return entries, elements


@kernel
def list_positions(
    above: UInt8s, count: int, slot_level: int, present_level: int, lists: Lists, positions: Int64s
) -> int:
    """Fill the positions of the elements of lists that are not null, if other elements are between them."""
    slot = elements = 0
    for i in range(count):
        level = above[i] if len(above) else present_level
        if level >= slot_level:
            if level == present_level and is_set(lists.bits, lists.first + slot):
                stop = offset_at(lists.offsets, slot + 1, lists.width)
                for at in range(offset_at(lists.offsets, slot, lists.width), stop):
                    positions[elements] = at
                    elements += 1
            slot += 1
    return elements
