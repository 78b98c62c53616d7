"""Samples of rows for a profile, and the data that its rows belong to.

Owns which rows are in the sample, and how the sample extends a limited table. `kernels.tapes.profile` counts, and
`path_table` limits the table of all rows.

The sample must not depend on how the data was partitioned. The level of a row is the number of zero bits at the end of
its hash, so half of the rows of a level and above are above it. All rows from one level on are the sample: the lowest
level for which the tables of that level and above have at most ``max_paths`` paths. More data can only raise that
level, so a row of the sample of all data was in the sample of every part. Equal rows are sampled together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from parquet_variant.inference.path_table import (
    ELEMENTS,
    INT_MIN,
    ROWS,
    PathTable,
    TapePaths,
    merged_table,
    no_paths,
    table_of_rows,
)
from parquet_variant.kernels.arrow_buffers import to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parquet_variant.kernels.tapes.tape import Tape


@dataclass(frozen=True, slots=True)
class ProfiledData:
    """The data that some profiled rows are all of, or a sample of.

    `share`: the share of the data that the rows are.
    `files`: estimated number of files to which the data will be written.
    `compressed_bytes`: estimated size of the text of the rows after compression; 0 if unknown.
    `text_bytes`: size of the text of the rows; 0 if unknown.

    >>> ProfiledData(0.125).merge(10, ProfiledData(0.125, files=2, text_bytes=9), 10)
    ProfiledData(share=0.125, files=2, compressed_bytes=0.0, text_bytes=9)
    """

    share: float = 1.0
    files: int = 1
    compressed_bytes: float = 0.0
    text_bytes: int = 0

    def merge(self, rows: int, other: ProfiledData, other_rows: int) -> ProfiledData:
        """Return the data of both parts, which have these numbers of rows."""
        share = self.share
        if share != other.share:
            share = (rows + other_rows) / (rows / self.share + other_rows / other.share)
        is_known = self.compressed_bytes and other.compressed_bytes
        compressed = self.compressed_bytes + other.compressed_bytes if is_known else 0.0
        return ProfiledData(share, max(self.files, other.files), compressed, self.text_bytes + other.text_bytes)


# The largest sample is an eighth of the rows: data with too many paths has many rows, or few with many paths each.
_LOWEST, _HIGHEST = 3, 10
# Minimum number of sampled rows for a path to be used.
_MIN_SAMPLED_ROWS = 3
_OBJECT = 22
# Keeps quotients that are integers except for rounding errors from being rounded down.
_EPSILON = 1e-6


@dataclass(frozen=True, eq=False)
class RowSample:
    """The figures by path of the rows of each level from ``level`` on, one table per level.

    The last table includes the rows of all higher levels.
    """

    level: int = _LOWEST
    tables: tuple[PathTable, ...] = (no_paths(),) * (_HIGHEST + 1 - _LOWEST)

    @classmethod
    def of_tape(cls, tape: Tape, paths: TapePaths, all_rows: PathTable, max_paths: int) -> RowSample:
        """Return the sample of the rows of a tape; `all_rows` has the figures of all its rows."""
        from parquet_variant.kernels.tapes.profile import row_levels

        levels = np.empty(tape.rows, np.int64)
        row_levels(tape.nodes, tape.row_start, paths.hashes, levels)
        levels = np.minimum(levels, _HIGHEST)
        rows_of = (np.flatnonzero(levels == level) for level in range(_HIGHEST, _LOWEST - 1, -1))

        def table_of(rows: npt.NDArray[np.intp]) -> PathTable:
            if len(rows) == tape.rows:
                return all_rows
            return table_of_rows(tape, paths, rows) if len(rows) else no_paths()

        return cls._from_the_top(map(table_of, rows_of), max_paths)

    @classmethod
    def _from_the_top(cls, tables: Iterator[PathTable], max_paths: int) -> RowSample:
        tables_within_limit: list[PathTable] = []
        for table in tables:
            max_paths -= len(table.hashes)
            if max_paths < 0:
                break
            tables_within_limit.append(table)
        return cls(_HIGHEST + 1 - len(tables_within_limit), tuple(reversed(tables_within_limit)))

    def merge(self, other: RowSample, max_paths: int) -> RowSample:
        """Return the sample of both parts of the data; associative and commutative."""
        pairs = zip(reversed(self.tables), reversed(other.tables), strict=False)
        return self._from_the_top((merged_table(left, right) for left, right in pairs), max_paths)

    def table(self) -> PathTable:
        """Return the figures of all rows in the sample."""
        return reduce(merged_table, self.tables, no_paths())

    def equals(self, other: RowSample) -> bool:
        """Return whether both samples have the same figures."""
        return self.level == other.level and all(map(PathTable.equals, self.tables, other.tables))


def with_frequent_paths(capped: PathTable, sample: RowSample) -> tuple[PathTable, npt.NDArray[np.bool_]]:
    """Extend a limited table by the paths that only the sample has; return the table and a mask of these paths.

    Counts are scaled up by the number of objects or arrays above the path; extremes and the sketch of distinct values
    are those of the sample.
    """
    paths = sample.table()
    paths = paths.take(np.flatnonzero(paths.counts[:, ROWS] >= _MIN_SAMPLED_ROWS))
    is_known, position = _find(capped.hashes, paths.hashes)
    if is_known.all():
        return capped, np.zeros(len(capped.hashes), bool)
    _, parent = _find(paths.hashes, paths.parents)
    # Places for values: objects above a field, elements of the arrays above.
    is_field = to_numpy(paths.keys.is_valid())
    in_sample = np.where(is_field, paths.kinds[parent, _OBJECT], paths.counts[parent, ELEMENTS])
    in_all = np.where(is_field, capped.kinds[position[parent], _OBJECT], capped.counts[position[parent], ELEMENTS])
    factor = in_all / np.maximum(in_sample, 1)
    max_rows = capped.counts[position[parent], ROWS]
    for depth in range(2, int(paths.depths[-1]) + 1):
        # A path below a path of the sample has the factor of that path.
        level_paths = np.flatnonzero((paths.depths == depth) & ~is_known[parent])
        factor[level_paths], max_rows[level_paths] = factor[parent[level_paths]], max_rows[parent[level_paths]]
    lost = np.flatnonzero(~is_known)
    added = paths.take(lost)
    factor, max_rows = factor[lost][:, None], max_rows[lost]
    totals = np.floor(added.kinds.sum(axis=1) * factor[:, 0] + _EPSILON).astype(np.int64)
    most_frequent = added.kinds.argmax(axis=1)
    added.kinds[:] = np.floor(added.kinds * factor + _EPSILON)
    # The most frequent type gets the values that rounding down removed.
    added.kinds[np.arange(len(most_frequent)), most_frequent] += totals - added.kinds.sum(axis=1)
    added.counts[:, :INT_MIN] = np.floor(added.counts[:, :INT_MIN] * factor + _EPSILON)
    added.counts[:, ROWS] = np.minimum(added.counts[:, ROWS], max_rows)
    _, of_digits = _find(added.hashes, added.digit_hashes)
    added.digits[:] = np.floor(added.digits * factor[of_digits] + _EPSILON)
    table = merged_table(capped, added)
    return table, np.isin(table.hashes, added.hashes)


def _find(
    hashes: npt.NDArray[np.int64], hashed: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return a mask of the hashes that exist, and their positions (arbitrary for those that do not)."""
    order = np.argsort(hashes)
    position = order[np.minimum(np.searchsorted(hashes, hashed, sorter=order), len(hashes) - 1)]
    return hashes[position] == hashed, position
