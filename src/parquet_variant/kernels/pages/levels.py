"""Definition and repetition levels of Arrow columns, a byte each, and the slots of Arrow arrays by their addresses.

Owns reading validity bits and offsets, and going one step down from a struct, a list or a leaf to what it holds. Leaves
the walk over the columns to `parquet.pages.levels`, and levels as runs to `pages.runs`. Entries are what levels are
written for; those whose definition level is at least ``least`` have a slot in the Arrow array, in order. ``most`` is
the level of what is there.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.memory import load_s32, load_u8, load_u64
from parquet_variant.machine_code.signatures import Int64s, UInt8s


class ByteArrays(NamedTuple):
    """The byte arrays of an Arrow array, by the addresses of its buffers."""

    data: int
    offsets: int  # Of the first slot's offset.
    width: int  # Bytes of an offset.
    # Of the validity, 0 where all are there, and the bit of the first slot.
    bits: int
    first: int
    rows: int  # How many slots there are.


@helper
def is_set(bits, at):
    """Whether a slot is there, by the address of the validity; 0 where all are."""
    return bits == 0 or (load_u8(bits + (at >> 3)) >> (at & 7)) & 1 == 1


@helper
def offset_at(offsets, slot, width):
    """The offset of a slot, of 4 or 8 bytes."""
    return load_s32(offsets + slot * 4) if width == 4 else load_u64(offsets + slot * 8)


@kernel
def optional_levels(above: UInt8s, least: int, most: int, bits: int, first: int, levels: UInt8s) -> int:
    """Fill the levels of an optional field; returns how many entries are there.

    ``above`` are the levels of what holds it (no entries: all are ``most``), ``bits`` the address of its validity (0:
    all valid), whose first bit is ``first``.
    """
    present = 0
    if len(above) == 0:
        for i in range(len(levels)):
            there = is_set(bits, first + i)
            levels[i] = most + there
            present += there
        return present
    slot = first
    for i in range(len(levels)):
        level = above[i]
        if level >= least:
            if level == most and is_set(bits, slot):
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
    least: int,
    most: int,
    empty: int,
    bits: int,
    first: int,
    offsets: int,
    width: int,
    depth: int,
    levels: UInt8s,
    repetition: UInt8s,
) -> tuple[int, int]:
    """Fill the levels of a list's elements; returns ``(entries, elements)``.

    ``repeated`` are the repetition levels of what holds the list (no entries: all are 0), ``empty`` the definition
    level of a list that is there and has no element, ``offsets`` and ``width`` where its offsets are and their bytes,
    ``depth`` the repetition level of its elements.
    """
    slot = entries = elements = 0
    for i in range(count):
        level = above[i] if len(above) else most
        before = repeated[i] if len(repeated) else 0
        size = 0
        if level >= least:
            if level == most and is_set(bits, first + slot):
                level = empty
                size = offset_at(offsets, slot + 1, width) - offset_at(offsets, slot, width)
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
    above: UInt8s, count: int, least: int, most: int, bits: int, first: int, offsets: int, width: int, positions: Int64s
) -> int:
    """Fill where the elements of the lists that are there stand, where others stand between them."""
    slot = elements = 0
    for i in range(count):
        level = above[i] if len(above) else most
        if level >= least:
            if level == most and is_set(bits, first + slot):
                for at in range(offset_at(offsets, slot, width), offset_at(offsets, slot + 1, width)):
                    positions[elements] = at
                    elements += 1
            slot += 1
    return elements


@kernel
def present_slots(levels: UInt8s, least: int, most: int, positions: Int64s) -> int:
    """Fill the slots whose level is ``most``: where values lie under what is not there."""
    slot = count = 0
    for i in range(len(levels)):
        if levels[i] >= least:
            if levels[i] == most:
                positions[count] = slot
                count += 1
            slot += 1
    return count
