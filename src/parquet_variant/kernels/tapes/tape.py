"""The tape: a batch of parsed values as one flat table of nodes.

Owns the layout of the tape (described in docs/architecture.md) and its tables of keys, paths and shapes. Leaves filling
it to `parse_json` and `decode`, and reading it to `shredding.shred_tape` and `profile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.buffer_pool import release
from parquet_variant.kernels.compiling import helper, numbered
from parquet_variant.kernels.machine_code.signatures import Int64Table
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.support.fork_safety import cached_property

# Flag bits of a node's tag.
DROPPED = 1 << 48  # a field whose key occurs again later in the object
HAS_DROPPED = 1 << 49  # an object with such a field

# Columns of the key table.
KEY = numbered("ADDRESS LENGTH HASH PLAIN")
# Columns of the path table.
PATH = numbered("PARENT KEY ELEMENT ROOT_SHAPE LAST_NODE")
# Columns of the shape table: a trie of key sequences with one root per path.
SHAPE = numbered("PARENT KEY PATH NEXT")

Int64s = npt.NDArray[np.int64]


@helper(inline=True)
def kind_of(tag: int) -> int:
    """Return the kind of a node."""
    return tag & 0xFF


@helper(inline=True)
def scale_of(tag: int) -> int:
    """Return the decimal scale of a node."""
    return (tag >> 8) & 0xFF


@helper(inline=True)
def path_of(tag: int) -> int:
    """Return the path id of a node."""
    return (tag >> 16) & 0xFFFFFFFF


def path_ids(tags: Int64s) -> Int64s:
    """Return the path ids of nodes, of which `tags` is column 0."""
    return tags >> 16 & 0xFFFFFFFF


@helper
def put_node(nodes: Int64Table, n: int, tag: int, a: int, b: int) -> None:
    """Write a node that has no children yet; a container's end is set when its last value is written."""
    nodes[n, 0] = tag
    nodes[n, 1] = a
    nodes[n, 2] = b
    nodes[n, 3] = n + 1


@dataclass(frozen=True, eq=False)
class Tape:
    """A batch of parsed values."""

    nodes: Int64s  # ``int64[n, 4]``: tag, a, b, end.
    # ``int64[rows + 1]``: the nodes of row r are ``row_start[r]`` to ``row_start[r + 1]``; a null row has none.
    row_start: Int64s
    # Tables that node tags and payloads refer to; their columns are named above.
    keys: Int64s
    paths: Int64s
    shapes: Int64s
    owners: tuple[Any, ...] = field(repr=False)  # Objects whose buffers the addresses point into.

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_start) - 1

    def release(self) -> None:
        """Make the memory of the nodes available to the next batch; the tape must not be used any more."""
        release(self.nodes)

    def find_path(self, segments: Sequence[object]) -> int | None:
        """Return the id of a path, or None if no value has the path; any segment but a key is every element."""
        number = 0
        for segment in segments:
            is_step = self.paths[:, PATH.KEY] < 0
            if isinstance(segment, str):
                name = segment.encode("utf-8", "surrogatepass")
                if name not in self.key_list:
                    return None
                is_step = self.paths[:, PATH.KEY] == self.key_list.index(name)
            is_step &= self.paths[:, PATH.PARENT] == number
            is_step[0] = False  # the root
            children = np.flatnonzero(is_step)
            if not len(children):
                return None
            number = int(children[0])
        return number

    @cached_property
    def key_array(self) -> pa.BinaryArray:
        """The keys as an array, by key id."""
        addresses, lengths = self.keys[:, KEY.ADDRESS].copy(), self.keys[:, KEY.LENGTH].copy()
        return filled_binary(lengths, partial(copy_spans, addresses, lengths))

    @cached_property
    def key_list(self) -> list[bytes]:
        """The keys as bytes, by key id."""
        keys: list[bytes] = self.key_array.to_pylist()
        return keys
