"""The table behind a `Profile`: how it is made, merged, limited in size and serialized.

Owns the arithmetic of its columns and the limit on paths. `kernels.tapes.profile` defines the columns.

The limit must not depend on how the data was partitioned. It therefore uses only two figures, which both can only grow:
the number of distinct paths (estimated from their smallest hashes), which determines how many keys an object may keep;
and the keys of an object in the order of their hashes, of which the first are kept. A path that is in the result was in
the result of every part that has it, so its figures are complete.

The sample that extends a limited table must not depend on it either. The level of a row is the number of zero bits at
the end of its hash, so half of the rows of a level and above are above it. All rows from one level on are the sample:
the lowest level for which the tables of that level and above have at most ``max_paths`` paths. More data can only raise
that level, so a row of the sample of all data was in the sample of every part. Equal rows are sampled together.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import fields
from functools import partial, reduce
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import Int64s, filled_binary, from_bytes, from_numpy, to_numpy
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import TYPE_OF_ID, PrimitiveId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parquet_variant.kernels.tapes.tape import Tape


# As in `kernels.tapes.profile`, which cannot be imported without Numba: a test compares them.
KINDS, COUNTS, DIGIT_BUCKETS, REGISTERS = 23, 18, 39, 64
(ROWS, STRING_BYTES, LONG_STRINGS, ELEMENTS, FIELDS, DATES, TIMESTAMPS, LOCAL_TIMESTAMPS, UUIDS, NUMBERS, BOOLEANS,
 INTEGERS, INT_MIN, STRING_MIN, ARRAY_MIN, INT_MAX, STRING_MAX, ARRAY_MAX) = range(COUNTS)  # fmt: skip
_SUMS, _MINIMA, _MAXIMA = slice(0, INT_MIN), slice(INT_MIN, INT_MAX), slice(INT_MAX, COUNTS)

# Encoded bytes of a value of each kind, without the bytes of strings; the entries of containers are counted separately.
_WIDTHS = np.array(
    [{PrimitiveId.STRING: 1, PrimitiveId.BINARY: 5}.get(p, 1 + (TYPE_OF_ID[p].width or 0)) for p in PrimitiveId]
    + [3, 3],
    np.int64,
)
# Bytes of the id and offset of a field in its object, and of the offset of an element: mostly 1 + 2, and 2.
FIELD_BYTES, ELEMENT_BYTES = 3, 2
_INVERSE_POWERS = np.ldexp(1.0, -np.arange(256))
_SKETCH = 1024
_HASH_RANGE = 2**63


class PathTable(Record, eq=False):
    """The figures by path, ordered by depth and hash."""

    hashes: Int64s  # Of each path.
    parents: Int64s  # Hashes of the parents; -1 for that of the root.
    depths: Int64s  # Segments of each path.
    keys: pa.BinaryArray  # Last segment; null for the root and for elements.
    kinds: Int64s  # ``int64[n, 23]``: values by tape kind.
    counts: Int64s  # ``int64[n, 18]``: columns as named above.
    sketches: npt.NDArray[np.uint8]  # ``uint8[n, 64]``: HyperLogLog registers of the distinct values.
    digit_hashes: Int64s  # Paths with decimals, by hash.
    digits: Int64s  # ``int64[d, 78]``: decimals of these paths by digits before the point, then by scale.

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
            hashes=hashes, parents=self.parents[rows], depths=self.depths[rows], keys=self.keys.take(from_numpy(rows)),
            kinds=self.kinds[rows], counts=self.counts[rows], sketches=self.sketches[rows],
            digit_hashes=self.digit_hashes[has_path], digits=self.digits[has_path],
        )  # fmt: skip

    def packed(self) -> dict[str, Any]:
        """Return the table in types that JSON can represent."""
        keys = [None if key is None else base64.b64encode(key).decode() for key in self.keys.to_pylist()]
        return {"keys": keys, **{name: pack_array(values) for name, values in self.arrays().items()}}

    @classmethod
    def unpacked(cls, packed: dict[str, Any]) -> PathTable:
        """Read the result of `packed`."""
        keys = [None if key is None else base64.b64decode(key) for key in packed["keys"]]
        arrays = {name: unpack_array(values) for name, values in packed.items() if name != "keys"}
        return cls(keys=from_bytes(keys, pa.binary()), **arrays)

    @cached_property
    def value_counts(self) -> Int64s:
        """The number of values at each path."""
        return np.asarray(self.kinds.sum(axis=1))

    @cached_property
    def scalar_bytes(self) -> Int64s:
        """The encoded bytes of the values at each path, without nested values."""
        return np.asarray(self.kinds @ _WIDTHS + self.counts[:, STRING_BYTES] + 4 * self.counts[:, LONG_STRINGS])

    @cached_property
    def inner_bytes(self) -> Int64s:
        """An estimate of the encoded bytes of the values at each path with nested values, without their own entries."""
        counts = self.counts
        inner_bytes = self.scalar_bytes + counts[:, FIELDS] * FIELD_BYTES + counts[:, ELEMENTS] * ELEMENT_BYTES
        bounds = np.searchsorted(self.depths, np.arange(1, int(self.depths[-1]) + 2)) if len(inner_bytes) else ()
        for start, stop in reversed(list(pairwise(bounds))):
            np.add.at(inner_bytes, self.parent_index[start:stop], inner_bytes[start:stop])
        return np.asarray(inner_bytes)

    @cached_property
    def distinct_counts(self) -> Int64s:
        """An estimate of the number of distinct scalars at each path (HyperLogLog)."""
        size, paths = self.sketches.shape[1], len(self.sketches)
        # Most registers of rare paths are 0: only words of eight registers that are not all 0 are read.
        words = np.ascontiguousarray(self.sketches).view(np.uint64).ravel()
        filled = np.flatnonzero(words)
        of_path, values = filled // (size // 8), words[filled].view(np.uint8).reshape(-1, 8)
        empty = size - np.bincount(of_path, np.count_nonzero(values, axis=1), paths)
        raw = 0.709 * size * size / (size + np.bincount(of_path, _INVERSE_POWERS[values].sum(axis=1) - 8, paths))
        by_empty = size * np.log(size / np.maximum(empty, 1))
        return np.round(np.where((empty > 0) & (raw <= 2.5 * size), by_empty, raw)).astype(np.int64)

    @cached_property
    def parent_index(self) -> Int64s:
        """The number of the parent of each path; -1 for the root."""
        order = np.argsort(self.hashes)
        parents = order[np.searchsorted(self.hashes, self.parents, sorter=order) % max(len(order), 1)]
        parents[self.depths == 0] = -1
        return parents

    @cached_property
    def key_list(self) -> list[bytes | None]:
        """The UTF-8 bytes of the last segment of each path; None for elements, and for the root."""
        keys: list[bytes | None] = self.keys.to_pylist()
        return keys

    @cached_property
    def children(self) -> tuple[Int64s, Int64s, list[int]]:
        """The numbers of all paths by parent, fields in byte order before elements.

        The children of path ``n`` are entries ``bounds[n]`` to ``bounds[n + 1]``, of which those from ``stops[n]`` on
        are elements.
        """
        keys = self.key_list
        by_key = np.array(sorted(range(len(keys)), key=lambda n: (keys[n] is None, keys[n] or b"")), np.int64)
        parents, count = self.parent_index, len(self.parent_index)
        order = by_key[np.argsort(parents[by_key], kind="stable")]
        bounds = np.searchsorted(parents[order], np.arange(count + 1))
        elements = by_key[len(keys) - self.keys.null_count :]
        stops = bounds[1:] - np.bincount(parents[elements] + 1, minlength=count + 1)[1:]
        return order, bounds, stops.tolist()

    def fields_of(self, number: int) -> Int64s:
        """Return the numbers of the fields of a path by its number, in byte order."""
        order, bounds, stops = self.children
        return order[bounds[number] : stops[number]]


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


def pack_array(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Return an array in types that JSON can represent, compressed."""
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 1)).decode()
    return {"dtype": str(values.dtype), "shape": list(values.shape), "data": data}


def unpack_array(packed: dict[str, Any]) -> npt.NDArray[Any]:
    """Read the result of `pack_array`."""
    if packed["dtype"] not in ("int64", "uint8"):
        raise ValueError(f"dtype {packed['dtype']}")
    data = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(data, packed["dtype"]).reshape(packed["shape"])


class TapePaths(Record, eq=False):
    """The paths of a tape as in tables: hashes and depths."""

    hashes: Int64s
    depths: Int64s

    @classmethod
    def of(cls, tape: Tape) -> TapePaths:
        """Return all paths of a tape, in its order."""
        from parquet_variant.kernels.tapes.profile import path_identities

        hashes, depths = np.empty(len(tape.paths), np.int64), np.empty(len(tape.paths), np.int64)
        path_identities(tape.paths, tape.keys, hashes, depths)
        return cls(hashes, depths)


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
    parents, key_ids = tape.paths[present, :2].T
    # Paths without a key take the zeros at the end. pyarrow would import its functions, which take longer than a row.
    addresses, lengths = np.vstack([tape.keys[:, :2], [0, 0]])[key_ids].T.copy()
    return PathTable(
        hashes=hashes[present],
        parents=np.where(parents < 0, -1, hashes[parents]),
        depths=paths.depths[present],
        keys=filled_binary(lengths, partial(copy_spans, addresses, lengths), (key_ids >= 0).astype(np.uint8)),
        kinds=kinds[present],
        counts=counts[present][:, :COUNTS],
        sketches=sketches[present],
        digit_hashes=hashes[digit_order],
        digits=digits[digits_of_path[digit_order]],
    )


def merged_table(left: PathTable, right: PathTable) -> PathTable:
    """Return the table of both parts of the data, without the limit."""
    hashes = np.concatenate([left.hashes, right.hashes])
    has_same_paths = np.array_equal(left.hashes, right.hashes)
    if has_same_paths:
        first = of_left = of_right = np.arange(len(left.hashes))
    else:
        order = np.lexsort((hashes, np.concatenate([left.depths, right.depths])))
        is_first = np.r_[True, np.diff(hashes[order]) != 0]
        first = order[is_first]
        # The position of each path of either table in the merged table.
        position = np.empty(len(order), np.intp)
        position[order] = np.cumsum(is_first) - 1
        of_left, of_right = position[: len(left.hashes)], position[len(left.hashes) :]

    def together(name: str, add: np.ufunc, columns: slice = slice(None), none: int = 0) -> npt.NDArray[Any]:
        left_columns, right_columns = getattr(left, name)[:, columns], getattr(right, name)[:, columns]
        if has_same_paths:
            return np.asarray(add(left_columns, right_columns))
        merged = np.full((len(first), left_columns.shape[1]), none, left_columns.dtype)
        merged[of_left] = left_columns
        merged[of_right] = add(merged[of_right], right_columns)
        return merged

    digit_hashes = np.concatenate([left.digit_hashes, right.digit_hashes])
    digit_order = np.argsort(digit_hashes, kind="stable")
    digit_hashes = digit_hashes[digit_order]
    starts = np.flatnonzero(np.diff(digit_hashes, prepend=-1))
    digits = np.concatenate([left.digits, right.digits])[digit_order]
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
        digit_hashes=digit_hashes[starts],
        digits=np.add.reduceat(digits, starts) if len(starts) else digits,
    )


def merged_sketch(*hashes: Int64s) -> Int64s:
    """Return the smallest distinct hashes of several sets of paths."""
    together = np.concatenate(hashes)
    # A hash occurs at most once per set.
    size = _SKETCH * len(hashes)
    smallest = np.sort(np.partition(together, size)[:size] if len(together) > size else together)
    return smallest[np.diff(smallest, prepend=-1) != 0][:_SKETCH]


def distinct_paths(sketch: Int64s) -> int:
    """Return the number of distinct paths of a sketch: exact below 1,024, else within 3 %; it never shrinks."""
    if len(sketch) < _SKETCH:
        return len(sketch)
    return max(_SKETCH, int((_SKETCH - 1) * _HASH_RANGE / (int(sketch[-1]) + 1)))


def capped(table: PathTable, sketch: Int64s, max_paths: int) -> PathTable:
    """Return the table without the paths over the limit: at most ``16 * max_paths`` paths remain."""
    paths = distinct_paths(sketch)
    if paths <= max_paths:
        return table
    # The number of keys that an object keeps, and the maximum depth.
    max_keys, depth = max(isqrt(isqrt(2 * max_paths)), 2), 4
    if paths <= 16 * max_paths:
        max_keys, depth = max(max_paths // (128 if paths <= 4 * max_paths else 512), 2), paths
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


class ProfiledData(Record):
    """The data that some profiled rows are all of, or a `share` of; `files` is the number that will be written.

    `compressed_bytes`, `text_bytes`: size of the text of the rows; 0 if unknown.

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


class RowSample(Record, eq=False):
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
