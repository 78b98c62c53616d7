"""`RowSample`: the paths of some rows, to find the frequent paths among more paths than a profile can keep.

Owns which rows are in the sample, and what it adds to a capped table. Leaves counting to `kernels.tapes.profile`, and
the cap on the whole table to `profile_merge`.

The sample must not depend on how the data was parted. A row has a level, as many as its hash ends in zero bits, so
that half of the rows of a level and above are above it. All rows from one level on are the sample: the lowest level at
which the tables of all levels from it on have no more than so many paths. More data can only raise that level, so a row
of the sample of all the data was in the sample of every part. Equal rows are sampled together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.shredding.profile_merge import (
    ELEMENTS,
    INT_MIN,
    ROWS,
    PathTable,
    TapePaths,
    merged_table,
    no_paths,
    table_of_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parquet_variant.kernels.tapes.tape import Tape

# An eighth of the rows is the largest sample: data with too many paths has many rows, or few that would fit.
_LOWEST, _HIGHEST = 3, 10
# A path in fewer rows of the sample tells nothing.
_ROWS_THAT_TELL = 3
_OBJECT = 22
# Keeps what should be an integer, but for the rounding of the quotient, from being rounded down to the one below.
_EPSILON = 1e-6


@dataclass(frozen=True, eq=False)
class RowSample:
    """Figures by path, of the rows of each level from ``level`` on: a table a level.

    Rows of the levels above the last one are in the last one.
    """

    level: int = _LOWEST
    tables: tuple[PathTable, ...] = (no_paths(),) * (_HIGHEST + 1 - _LOWEST)

    @classmethod
    def of_tape(cls, tape: Tape, paths: TapePaths, max_paths: int) -> RowSample:
        """The sample of a tape's rows."""
        from parquet_variant.kernels.tapes.profile import row_levels

        levels = np.empty(tape.rows, np.int64)
        row_levels(tape.nodes, tape.row_start, paths.hashes, levels)
        levels = np.minimum(levels, _HIGHEST)
        rows_of = (np.flatnonzero(levels == level) for level in range(_HIGHEST, _LOWEST - 1, -1))
        tables = (table_of_rows(tape, paths, rows) if len(rows) else no_paths() for rows in rows_of)
        return cls._from_the_top(tables, max_paths)

    @classmethod
    def _from_the_top(cls, tables: Iterator[PathTable], max_paths: int) -> RowSample:
        kept: list[PathTable] = []
        for table in tables:
            max_paths -= len(table.hashes)
            if max_paths < 0:
                break
            kept.append(table)
        return cls(_HIGHEST + 1 - len(kept), tuple(reversed(kept)))

    def merge(self, other: RowSample, max_paths: int) -> RowSample:
        """Sample of both data together; associative and commutative."""
        pairs = zip(reversed(self.tables), reversed(other.tables), strict=False)
        return self._from_the_top((merged_table(left, right) for left, right in pairs), max_paths)

    def table(self) -> PathTable:
        """Figures of all rows in the sample."""
        return reduce(merged_table, self.tables, no_paths())

    def equals(self, other: RowSample) -> bool:
        """Whether both have the same rows' figures."""
        return self.level == other.level and all(map(PathTable.equals, self.tables, other.tables))


def with_frequent_paths(capped: PathTable, sample: RowSample) -> tuple[PathTable, npt.NDArray[np.bool_]]:
    """A capped table with the paths that it has lost and the sample has, and which they are.

    What is counted is scaled from the sample up, by the number of objects or arrays above the path; extremes and the
    sketch of distinct values are those of the sample.
    """
    paths = sample.table()
    paths = paths.take(np.flatnonzero(paths.counts[:, ROWS] >= _ROWS_THAT_TELL))
    known, at = _find(capped.hashes, paths.hashes)
    if known.all():
        return capped, np.zeros(len(capped.hashes), bool)
    _, above = _find(paths.hashes, paths.parents)
    # Where values can be: objects above a field, elements of the arrays above.
    is_field = to_numpy(paths.keys.is_valid())
    in_sample = np.where(is_field, paths.kinds[above, _OBJECT], paths.counts[above, ELEMENTS])
    in_all = np.where(is_field, capped.kinds[at[above], _OBJECT], capped.counts[at[above], ELEMENTS])
    factor = in_all / np.maximum(in_sample, 1)
    most_rows = capped.counts[at[above], ROWS]
    for depth in range(2, int(paths.depths[-1]) + 1):
        # Below a path that is from the sample itself, what holds for that path.
        here = np.flatnonzero((paths.depths == depth) & ~known[above])
        factor[here], most_rows[here] = factor[above[here]], most_rows[above[here]]
    lost = np.flatnonzero(~known)
    added = paths.take(lost)
    factor, most_rows = factor[lost][:, None], most_rows[lost]
    totals = np.floor(added.kinds.sum(axis=1) * factor[:, 0] + _EPSILON).astype(np.int64)
    most = added.kinds.argmax(axis=1)
    added.kinds[:] = np.floor(added.kinds * factor + _EPSILON)
    # What rounding down has taken from the sum goes to the most frequent type.
    added.kinds[np.arange(len(most)), most] += totals - added.kinds.sum(axis=1)
    added.counts[:, :INT_MIN] = np.floor(added.counts[:, :INT_MIN] * factor + _EPSILON)
    added.counts[:, ROWS] = np.minimum(added.counts[:, ROWS], most_rows)
    _, of_digits = _find(added.hashes, added.digit_hashes)
    added.digits[:] = np.floor(added.digits * factor[of_digits] + _EPSILON)
    table = merged_table(capped, added)
    return table, np.isin(table.hashes, added.hashes)


def _find(
    hashes: npt.NDArray[np.int64], hashed: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which are there, and where; those that are not have some other place."""
    order = np.argsort(hashes)
    at = order[np.minimum(np.searchsorted(hashes, hashed, sorter=order), len(hashes) - 1)]
    return hashes[at] == hashed, at
