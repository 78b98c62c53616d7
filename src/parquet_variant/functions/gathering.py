"""Columns of values as tables of nodes, in canonical order and with names numbered for all of them.

Owns calling `kernels.edit.gather_canonical`. Leaves what is done with the nodes to `editing` and `equals`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import binary_parts, metadata_parts, valid_bytes
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.memory import address_of

__all__ = ["Batch", "Names", "gathered", "present_rows"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def present_rows(storage: pa.StructArray) -> Bools:
    """Which rows are not SQL NULL."""
    valid = valid_bytes(storage)
    return valid != 0 if len(valid) else np.ones(len(storage), np.bool_)


class Batch(NamedTuple):
    """Values as the kernel takes them: where each begins (-1: none) and ends, and its dictionary."""

    starts: Int64s
    stops: Int64s
    dictionary_of: npt.NDArray[np.int32]
    dictionary: pa.BinaryArray
    owner: Any

    @classmethod
    def of(cls, storage: pa.StructArray, present: Bools) -> Batch:
        """The values of the rows of an unshredded storage that are present."""
        metadata, value = metadata_parts(storage.field("metadata")), binary_parts(storage.field("value"))
        starts = np.where(present, value.offsets[:-1] + value.address, -1)
        return cls(starts, value.offsets[1:] + value.address, metadata.indices, metadata.dictionary, value.owner)

    def names(self) -> list[list[str]]:
        """The names of each dictionary; none of a malformed one, so that rows that use it are left."""
        found = []
        for metadata in self.dictionary.to_pylist():
            try:
                found.append(decode_metadata(metadata))
            except MalformedVariantError:
                found.append([])
        return found


class Names:
    """All names of a batch, numbered by their order in bytes.

    Parameters
    ----------
    names
        In any order.
    """

    def __init__(self, names: set[str]) -> None:
        encoded = sorted((name.encode(), name) for name in names)
        self.rank = {name: rank for rank, (_, name) in enumerate(encoded)}
        self.data = np.frombuffer(b"".join(raw for raw, _ in encoded) or b"\0", np.uint8)
        self.length = np.array([len(raw) for raw, _ in encoded], np.int64)
        self.address = address_of(self.data) + np.cumsum(self.length) - self.length
        self.starts = np.array([0, len(encoded)], np.int64)
        self.order = np.arange(len(encoded))

    def ranks(self, names: list[list[str]]) -> tuple[Int64s, Int64s]:
        """Where each dictionary's names start, and the number of each name."""
        starts = np.zeros(len(names) + 1, np.int64)
        np.cumsum([len(one) for one in names], out=starts[1:])
        return starts, np.array([self.rank[name] for one in names for name in one], np.int64)


def gathered(batch: Batch, names: list[list[str]], table: Names) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """The nodes of some values, where each row's nodes start, and a flag for each row that the kernel leaves."""
    from parquet_variant.kernels.edit import gather_canonical

    rows = len(batch.starts)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    nodes = np.empty((max(64, 4 * rows), 4), np.int64)
    starts, ranks = table.ranks(names)
    nodes, count = gather_canonical(
        batch.starts, batch.stops, batch.dictionary_of, starts, ranks, nodes, row_start, refused
    )
    return nodes[:count], row_start, refused
