"""The tape: a batch of parsed values as one flat node table.

Owns the layout of the tape (described in docs/architecture.md) and the tables beside it: keys, paths, shapes. Leaves
filling it to `parse_json` and `decode`, and reading it to `shredding.shred_tape` and `profile`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.fork_safety import cached_property
from parquet_variant.kernels.arrow_buffers import offsets_of
from parquet_variant.kernels.buffer_pool import release
from parquet_variant.kernels.compiling import helper, numbered
from parquet_variant.kernels.memory import copy_spans

# Flag bits of a node's tag.
DROPPED = 1 << 48  # an earlier field of a duplicated key
HAS_DROPPED = 1 << 49  # an object with such a field

# Columns of the key table.
KEY = numbered("ADDRESS LENGTH HASH PLAIN")
# Columns of the path table.
PATH = numbered("PARENT KEY ELEMENT ROOT_SHAPE LAST_NODE")
# Columns of the shape table: a trie of key sequences, one root a path.
SHAPE = numbered("PARENT KEY PATH NEXT")

Int64s = npt.NDArray[np.int64]


@helper(inline=True)
def kind_of(tag):
    """Kind of a node."""
    return tag & 0xFF


@helper(inline=True)
def scale_of(tag):
    """Decimal scale of a node."""
    return (tag >> 8) & 0xFF


@helper(inline=True)
def path_of(tag):
    """Path id of a node."""
    return (tag >> 16) & 0xFFFFFFFF


@helper
def put_node(nodes, n, tag, a, b):
    """Write a node that ends where it begins; a container ends where its last value does."""
    nodes[n, 0] = tag
    nodes[n, 1] = a
    nodes[n, 2] = b
    nodes[n, 3] = n + 1


@dataclass(frozen=True, eq=False)
class Tape:
    """A batch of values, parsed."""

    nodes: Int64s  # ``int64[n, 4]``: tag, a, b, end.
    # ``int64[rows + 1]``: the nodes of row r are ``row_start[r]`` to ``row_start[r + 1]``; a null row has none.
    row_start: Int64s
    # The tables that node tags and payloads point into; columns as named above.
    keys: Int64s
    paths: Int64s
    shapes: Int64s
    owners: tuple[Any, ...] = field(repr=False)  # Objects whose buffers the addresses point into.

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_start) - 1

    def release(self) -> None:
        """Let the next batch have the nodes' memory: the tape is of no use any more."""
        release(self.nodes)

    @cached_property
    def key_list(self) -> list[bytes]:
        """The keys as bytes, by key id."""
        addresses, lengths = self.keys[:, KEY.ADDRESS].copy(), self.keys[:, KEY.LENGTH].copy()
        offsets = offsets_of(lengths)
        target = np.empty(int(offsets[-1]), np.uint8)
        copy_spans(addresses, lengths, target.ctypes.data)
        data = target.tobytes()
        return [data[start:stop] for start, stop in pairwise(offsets.tolist())]

    @cached_property
    def key_order(self) -> Int64s:
        """Key ids in the order of their bytes."""
        names = self.key_list
        return np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)

    @cached_property
    def key_rank(self) -> Int64s:
        """Position of each key id in `key_order`."""
        rank = np.empty(len(self.keys), np.int64)
        rank[self.key_order] = np.arange(len(self.keys))
        return rank
