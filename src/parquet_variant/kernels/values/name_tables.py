"""The names of each distinct metadata of a column, resolved once.

Owns where each name is, and its rank by bytes among the names of its dictionary. Marks malformed dictionaries, and
dictionaries with a duplicate name, for the scalar fallback.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import plain_binary
from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.json.scan import is_utf8
from parquet_variant.kernels.machine_code.signatures import Int64s, UInt8s
from parquet_variant.kernels.memory import load_u8, load_uint
from parquet_variant.kernels.values.reading import metadata_header

SORTED, UNSORTED, UNUSABLE = range(3)


class NameTable(NamedTuple):
    """The names of some dictionaries."""

    starts: Int64s  # ``int64[dictionaries + 1]``: name i of dictionary d is at ``starts[d] + i`` in the arrays below.
    # Address and length of each name.
    address: Int64s
    length: Int64s
    rank: Int64s  # Position of the name by bytes among the names of its dictionary.
    order: Int64s  # The inverse: ids in the order of their names.
    # ``uint8[dictionaries]``: SORTED, UNSORTED, or UNUSABLE (malformed, not UTF-8, or with a duplicate name where that
    # is not accepted).
    state: UInt8s
    owner: object  # Keeps the memory alive.


@helper
def compare_bytes(left: int, left_size: int, right: int, right_size: int) -> int:
    """Return a negative number, 0 or a positive number as the left bytes sort before, with or after the right ones."""
    for i in range(min(left_size, right_size)):
        difference = load_u8(left + i) - load_u8(right + i)
        if difference != 0:
            return difference
    return left_size - right_size


@kernel
def _counts(base: int, offsets: Int64s, starts: Int64s, state: UInt8s) -> None:
    """Fill where the names of each dictionary start, and mark malformed dictionaries."""
    total = 0
    for d in range(len(state)):
        starts[d] = total
        ok, count, _, _, _, _ = metadata_header(base + offsets[d], base + offsets[d + 1])
        state[d] = SORTED if ok else UNUSABLE
        total += count if ok else 0
    starts[len(state)] = total


@kernel
def _locate(base: int, offsets: Int64s, table: NameTable) -> None:
    """Fill where each name is, and whether the names of its dictionary are sorted."""
    address, length, state = table.address, table.length, table.state
    for d in range(len(state)):
        if state[d] == UNUSABLE:
            continue
        _, count, at, width, names, size = metadata_header(base + offsets[d], base + offsets[d + 1])
        end = base + offsets[d] + size
        first = table.starts[d]
        for i in range(count):
            begin = load_uint(at + i * width, width)
            stop = load_uint(at + (i + 1) * width, width)
            if begin > stop or stop > end - names or not is_utf8(names + begin, names + stop):
                state[d] = UNUSABLE
                break
            address[first + i] = names + begin
            length[first + i] = stop - begin
            table.rank[first + i] = table.order[first + i] = i
            if i > 0 and state[d] == SORTED:
                side = compare_bytes(
                    address[first + i - 1], length[first + i - 1], address[first + i], length[first + i]
                )
                if side >= 0:
                    state[d] = UNSORTED


@helper
def find_name(names: NameTable, d: int, name: int, size: int) -> int:
    """Return the rank of a name in dictionary ``d``; -1 if the dictionary does not have the name."""
    address, length, order = names.address, names.length, names.order
    first = low = names.starts[d]
    high = names.starts[d + 1]
    while low < high:
        middle = (low + high) >> 1
        at = first + order[middle]
        order_of_name = compare_bytes(address[at], length[at], name, size)
        if order_of_name == 0:
            # Return the first of duplicate names.
            while middle > first:
                before = first + order[middle - 1]
                if compare_bytes(address[before], length[before], name, size) != 0:
                    break
                middle -= 1
            return middle - first
        if order_of_name < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@kernel
def mark_lacking(name: int, size: int, names: NameTable, lacks: UInt8s) -> None:
    """Mark the usable dictionaries that do not have a name."""
    for d in range(len(lacks)):
        lacks[d] = 1 if names.state[d] != UNUSABLE and find_name(names, d, name, size) < 0 else 0


@helper
def resolve_names(schema: Any, names: NameTable, d: int, ids: Int64s, ranks: Int64s) -> None:
    """Fill id and rank of the name of each schema node (`NamedNodes`) in dictionary ``d``; -1 for missing names."""
    for s in range(len(schema.nodes)):
        ids[s] = ranks[s] = -1
        if schema.lengths[s] >= 0:
            rank = find_name(names, d, schema.addresses[s], schema.lengths[s])
            if rank >= 0:
                ranks[s] = rank
                ids[s] = names.order[names.starts[d] + rank]


def name_table(dictionary: pa.BinaryArray, *, repeated: bool = False) -> NameTable:
    """Resolve the names of some metadata.

    `dictionary`: the distinct metadata, plain binary without nulls.
    `repeated`: accept duplicate names (DuckDB writes them): all ids of a name get the rank of the first.
      Otherwise such dictionaries are UNUSABLE.
    """
    count = len(dictionary)
    offsets, base = plain_binary(dictionary)
    starts, state = np.zeros(count + 1, np.int64), np.zeros(count, np.uint8)
    _counts(base, offsets, starts, state)
    # Zeros, so that the unset names of an unusable dictionary are empty.
    address, length, rank, order = (np.zeros(int(starts[-1]), np.int64) for _ in range(4))
    table = NameTable(starts, address, length, rank, order, state, dictionary)
    _locate(base, offsets, table)
    for d in np.flatnonzero(state == UNSORTED).tolist():
        first, last = int(starts[d]), int(starts[d + 1])
        blob = dictionary[d].as_py()
        begin = base + int(offsets[d])
        names = [
            blob[at - begin : at - begin + size]
            for at, size in zip(address[first:last], length[first:last], strict=True)
        ]
        by_name = sorted(range(len(names)), key=names.__getitem__)
        order[first:last] = by_name
        rank[first:last][by_name] = np.arange(len(names))
        if len(set(names)) < len(names):
            if not repeated:
                state[d] = UNUSABLE
                continue
            first_rank: dict[bytes, int] = {}
            for place, field_id in enumerate(by_name):
                rank[first + field_id] = first_rank.setdefault(names[field_id], place)
    return table
