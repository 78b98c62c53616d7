"""The table behind a `Profile`: how it is made, merged and limited in size.

Owns the arithmetic of its columns and the limit on paths. `profile_path` and `kernels.tapes.profile` define the
columns.

The limit must not depend on how the data was partitioned. It therefore uses only two figures, which both can only grow:
the number of distinct paths (estimated from their smallest hashes), which determines how many keys an object may keep;
and the keys of an object in the order of their hashes, of which the first are kept. A path that is in the result was in
the result of every part that has it, so its figures are complete.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, to_numpy

if TYPE_CHECKING:
    from parquet_variant.kernels.tapes.tape import Tape


# As in `kernels.tapes.profile`, which cannot be imported without Numba: a test compares them.
KINDS, COUNTS, DIGIT_BUCKETS, REGISTERS = 23, 16, 39, 64
(ROWS, STRING_BYTES, LONG_STRINGS, ELEMENTS, FIELDS, DATES, TIMESTAMPS, LOCAL_TIMESTAMPS, UUIDS, NUMBERS,
 INT_MIN, STRING_MIN, ARRAY_MIN, INT_MAX, STRING_MAX, ARRAY_MAX) = range(COUNTS)  # fmt: skip
_SUMS, _MINIMA, _MAXIMA = slice(0, INT_MIN), slice(INT_MIN, INT_MAX), slice(INT_MAX, COUNTS)

_SKETCH = 1024
_HASH_RANGE = 2**63


@dataclass(frozen=True, eq=False)
class PathTable:
    """The figures by path, ordered by depth and hash."""

    # Hashes of each path and of its parent; -1 for the parent of the root.
    hashes: Int64s
    parents: Int64s
    depths: Int64s  # Segments of each path.
    keys: pa.BinaryArray  # Last segment; null for the root and for elements.
    kinds: Int64s  # ``int64[n, 23]``: values by tape kind.
    counts: Int64s  # ``int64[n, 16]``: columns as named above.
    sketches: npt.NDArray[np.uint8]  # ``uint8[n, 64]``: HyperLogLog registers of the distinct values.
    # Paths with decimals, by hash, and their ``int64[d, 78]``: decimals by digits before the point, then by scale.
    digit_hashes: Int64s
    digits: Int64s

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all columns but the keys, by name."""
        return {column.name: getattr(self, column.name) for column in fields(self) if column.name != "keys"}

    def equals(self, other: PathTable) -> bool:
        """Return whether all figures are equal."""
        return self.keys.equals(other.keys) and all(
            map(np.array_equal, self.arrays().values(), other.arrays().values())
        )

    def take(self, rows: npt.NDArray[Any]) -> PathTable:
        """Return the table of some of the paths, by number."""
        hashes = self.hashes[rows]
        has_path = np.isin(self.digit_hashes, hashes)
        return PathTable(
            hashes, self.parents[rows], self.depths[rows], self.keys.take(from_numpy(rows)), self.kinds[rows],
            self.counts[rows], self.sketches[rows], self.digit_hashes[has_path], self.digits[has_path],
        )  # fmt: skip


def no_paths() -> PathTable:
    """Return an empty table."""
    nothing = np.zeros(0, np.int64)
    return PathTable(
        hashes=nothing,
        parents=nothing,
        depths=nothing,
        keys=pa.nulls(0, pa.binary()),
        kinds=np.zeros((0, KINDS), np.int64),
        counts=np.zeros((0, COUNTS), np.int64),
        sketches=np.zeros((0, REGISTERS), np.uint8),
        digit_hashes=nothing,
        digits=np.zeros((0, 2 * DIGIT_BUCKETS), np.int64),
    )


@dataclass(frozen=True, eq=False)
class TapePaths:
    """The paths of a tape as in tables: hashes, depths and names of keys."""

    hashes: Int64s
    depths: Int64s
    names: pa.BinaryArray

    @classmethod
    def of(cls, tape: Tape) -> TapePaths:
        """Return all paths of a tape, in its order."""
        hashes, depths = _identities(tape)
        return cls(hashes, depths, tape.key_array)


def table_of_rows(tape: Tape, paths: TapePaths, rows: npt.NDArray[np.intp]) -> PathTable:
    """Return the table of some rows of a tape, without the limit."""
    from parquet_variant.kernels.buffer_pool import adopt
    from parquet_variant.kernels.tapes import profile as kernel

    hashes, count = paths.hashes, len(paths.hashes)
    kinds, counts = np.zeros((count, KINDS), np.int64), kernel.new_counts(count)
    sketches = np.zeros((count, REGISTERS), np.uint8)
    digits_of_path = np.full(count, -1, np.int64)
    exported = kernel.profile_nodes(tape.nodes, tape.row_start, rows, kinds, counts, sketches, digits_of_path)
    digits = adopt(*exported)
    decimals = np.flatnonzero(digits_of_path >= 0)
    digit_order = decimals[np.argsort(hashes[decimals])]
    # Paths of other rows, and of an invalid one, have no values here.
    present = np.flatnonzero(counts[:, ROWS])
    present = present[np.lexsort((hashes[present], paths.depths[present]))]
    key_ids = tape.paths[:, 1][present]
    parents = tape.paths[:, 0][present]
    return PathTable(
        hashes=hashes[present],
        parents=np.where(parents < 0, -1, hashes[parents]),
        depths=paths.depths[present],
        keys=paths.names.take(from_numpy(key_ids, key_ids < 0)),
        kinds=kinds[present],
        counts=counts[present][:, :COUNTS],
        sketches=sketches[present],
        digit_hashes=hashes[digit_order],
        digits=digits[digits_of_path[digit_order]],
    )


def _identities(tape: Tape) -> tuple[Int64s, Int64s]:
    from parquet_variant.kernels.tapes.profile import path_identities

    hashes, depths = np.empty(len(tape.paths), np.int64), np.empty(len(tape.paths), np.int64)
    path_identities(tape.paths, tape.keys, hashes, depths)
    return hashes, depths


def path_hashes(tape: Tape) -> Int64s:
    """Return the hash of each path of a tape, as in ``PathTable.hashes``."""
    return _identities(tape)[0]


def merged_table(left: PathTable, right: PathTable) -> PathTable:
    """Return the table of both parts of the data, without the limit."""
    digit_hashes, digits = _merged_digits(left, right)
    if np.array_equal(left.hashes, right.hashes):
        counts = np.empty_like(left.counts)
        counts[:, _SUMS] = left.counts[:, _SUMS] + right.counts[:, _SUMS]
        counts[:, _MINIMA] = np.minimum(left.counts[:, _MINIMA], right.counts[:, _MINIMA])
        counts[:, _MAXIMA] = np.maximum(left.counts[:, _MAXIMA], right.counts[:, _MAXIMA])
        return PathTable(
            left.hashes, left.parents, left.depths, left.keys, left.kinds + right.kinds, counts,
            np.maximum(left.sketches, right.sketches), digit_hashes, digits,
        )  # fmt: skip
    hashes = np.concatenate([left.hashes, right.hashes])
    order = np.lexsort((hashes, np.concatenate([left.depths, right.depths])))
    is_first = np.r_[True, np.diff(hashes[order]) != 0]
    first = order[is_first]
    # The position of each path of either table in the merged table.
    position = np.empty(len(order), np.intp)
    position[order] = np.cumsum(is_first) - 1
    of_left, of_right = position[: len(left.hashes)], position[len(left.hashes) :]

    def together(name: str, add: np.ufunc, columns: slice = slice(None), none: int = 0) -> npt.NDArray[Any]:
        left_columns, right_columns = getattr(left, name)[:, columns], getattr(right, name)[:, columns]
        merged = np.full((len(first), left_columns.shape[1]), none, left_columns.dtype)
        merged[of_left] = left_columns
        merged[of_right] = add(merged[of_right], right_columns)
        return merged

    return PathTable(
        hashes=hashes[first],
        parents=np.concatenate([left.parents, right.parents])[first],
        depths=np.concatenate([left.depths, right.depths])[first],
        keys=pa.concat_arrays([left.keys, right.keys]).take(from_numpy(first)),
        kinds=together("kinds", np.add),
        counts=np.hstack(
            [
                together("counts", np.add, _SUMS),
                together("counts", np.minimum, _MINIMA, np.iinfo(np.int64).max),
                together("counts", np.maximum, _MAXIMA, np.iinfo(np.int64).min),
            ]
        ),
        sketches=together("sketches", np.maximum),
        digit_hashes=digit_hashes,
        digits=digits,
    )


def _merged_digits(left: PathTable, right: PathTable) -> tuple[Int64s, Int64s]:
    hashes = np.concatenate([left.digit_hashes, right.digit_hashes])
    if not len(hashes):
        return left.digit_hashes, left.digits
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(hashes[order]) != 0])
    return hashes[order][starts], np.add.reduceat(np.concatenate([left.digits, right.digits])[order], starts)


# -- the cap


def merged_sketch(*hashes: Int64s) -> Int64s:
    """Return the smallest distinct hashes of several sets of paths."""
    together = np.concatenate(hashes)
    # A hash occurs at most once per set.
    size = _SKETCH * len(hashes)
    smallest = np.partition(together, size)[:size] if len(together) > size else together
    return np.unique(smallest)[:_SKETCH]


def distinct_paths(sketch: Int64s) -> int:
    """Return the number of distinct paths of a sketch: exact below 1,024, else within 3 %; it never shrinks."""
    if len(sketch) < _SKETCH:
        return len(sketch)
    return max(_SKETCH, int((_SKETCH - 1) * _HASH_RANGE / (int(sketch[-1]) + 1)))


def keys_kept(paths: int, max_paths: int) -> tuple[int, int] | None:
    """Return the number of keys that an object keeps, and the maximum depth; None for no limits.

    At most ``16 * max_paths`` paths remain.
    """
    if paths <= max_paths:
        return None
    if paths <= 4 * max_paths:
        return max(max_paths // 128, 2), paths
    if paths <= 16 * max_paths:
        return max(max_paths // 512, 2), paths
    return max(isqrt(isqrt(2 * max_paths)), 2), 4


def capped(table: PathTable, sketch: Int64s, max_paths: int) -> PathTable:
    """Return the table without the paths over the limit."""
    limits = keys_kept(distinct_paths(sketch), max_paths)
    if limits is None:
        return table
    max_keys, depth = limits
    keep = table.depths <= depth
    fields_of_objects = np.flatnonzero(to_numpy(table.keys.is_valid()))
    parents, hashes = table.parents[fields_of_objects], table.hashes[fields_of_objects]
    order = np.lexsort((hashes, parents))
    starts = np.flatnonzero(np.r_[True, np.diff(parents[order]) != 0])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    keep[fields_of_objects[order[rank >= max_keys]]] = False
    # A path is removed with its parent; paths are ordered by depth, so each level is one slice.
    for level in range(2, int(table.depths[-1]) + 1 if len(table.depths) else 0):
        parent_level = slice(*np.searchsorted(table.depths, (level - 1, level)))
        level_rows = slice(*np.searchsorted(table.depths, (level, level + 1)))
        keep[level_rows] &= np.isin(table.parents[level_rows], table.hashes[parent_level][keep[parent_level]])
    return table if keep.all() else table.take(np.flatnonzero(keep))
