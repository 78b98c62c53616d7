"""`Profile`: a summary of values by path, for schema inference.

Owns the mergeable summary and its creation from a tape or an array. `kernels.tapes.profile` counts, `profile_path` has
the figures of one path, `profile_merge` merges tables and limits the number of paths, `row_sample` finds frequent paths
among too many, and `policies` draw conclusions.
"""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.inference.profile_merge import (
    PathTable,
    TapePaths,
    capped,
    distinct_paths,
    merged_sketch,
    merged_table,
    no_paths,
    table_of_rows,
)
from parquet_variant.inference.profile_path import (
    FORM_COLUMNS,
    PathProfile,
    distinct_counts_of,
    inner_bytes_of,
    scalar_bytes_of,
)
from parquet_variant.inference.row_sample import ProfiledData, RowSample, with_frequent_paths
from parquet_variant.kernels.arrow_buffers import Int64s, from_bytes, to_numpy
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types import PrimitiveId
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, Wildcard

if TYPE_CHECKING:
    from parquet_variant.arrays.variant_array import VariantArray
    from parquet_variant.kernels.tapes.tape import Tape

# Number of strings by path, type, and whether they were typed (see `typed_strings`).
StringCounts: TypeAlias = "Counter[tuple[str, str, bool]]"
MAX_PATHS = 1 << 17
# Number of rows of an array that are unshredded at a time.
_ROWS = 1 << 16
_VERSION = 3


@dataclass(frozen=True, eq=False)
class Profile:
    """A summary of values by path.

    The profiles of parts of the data merge into the profile of all data, exactly and in any order: every figure is a
    sum, an extreme, or a sketch that merges without loss. Above ``max_paths`` distinct paths, each object keeps only
    some of its keys: those with the smallest hashes, so that the choice depends only on the data, and those that are
    frequent in a sample of the rows, which is also chosen by hash. The figures of the latter are scaled up from the
    sample. Omitted values are counted in `overflow_values`.

    Parameters
    ----------
    rows
        Rows, SQL NULL included.
    null_rows
        SQL NULL rows.
    values
        Number of values at any path, omitted ones included.
    capped
        The figures by path, complete for every path that it has.
    sample
        The figures by path of some rows.
    path_sketch
        The smallest hashes of the distinct paths, to estimate their number.
    max_paths
        Number of distinct paths up to which all are kept.
    typed_strings
        Counts of strings that were to be typed while the rows were read.
    data
        The data that the rows are a sample of.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> profile = Profile.of_array(pv.parse_json(['{"a": 1}', '{"a": "x", "b": []}', None]))
    >>> profile.rows, profile.null_rows
    (3, 1)
    >>> {str(path_profile.path): path_profile.count for path_profile in profile}
    {'$': 2, "$['a']": 2, "$['b']": 1}
    >>> profile.merge(Profile()) == profile
    True
    """

    rows: int = 0
    null_rows: int = 0
    values: int = 0
    capped: PathTable = field(default_factory=no_paths, repr=False)
    sample: RowSample = field(default_factory=RowSample, repr=False)
    path_sketch: Int64s = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    max_paths: int = MAX_PATHS
    typed_strings: StringCounts = field(default_factory=Counter)
    data: ProfiledData = field(default_factory=ProfiledData)

    # -- made from data

    @classmethod
    def of_tape(cls, tape: Tape, *, max_paths: int = MAX_PATHS) -> Profile:
        """Profile the rows of a tape."""
        paths = TapePaths.of(tape)
        table = table_of_rows(tape, paths, np.arange(tape.rows))
        null = int(np.count_nonzero(tape.row_start[1:] == tape.row_start[:-1]))
        sketch = merged_sketch(table.hashes)
        sample = RowSample.of_tape(tape, paths, table, max_paths)
        return cls(tape.rows, null, len(tape.nodes), capped(table, sketch, max_paths), sample, sketch, max_paths)

    @classmethod
    def of_array(cls, array: VariantArray, *, max_paths: int = MAX_PATHS, threads: int | None = 1) -> Profile:
        """Profile an array, shredded or not.

        A typed column keeps neither the width of integers nor trailing zeros of decimals, so the profiles of the
        shredded and the unshredded form of the same values may differ in these.

        Raises
        ------
        MalformedVariantError
            For malformed bytes, with row and byte offset.
        """
        from parquet_variant.arrays.tapes import array_tapes
        from parquet_variant.io.parallel import in_order, thread_count

        def of_rows(start: int) -> list[Profile]:
            return [cls.of_tape(tape, max_paths=max_paths) for tape in array_tapes(array[start : start + _ROWS], start)]

        parts = in_order(of_rows, range(0, len(array), _ROWS), thread_count(threads))
        return reduce(cls.merge, chain.from_iterable(parts), cls(max_paths=max_paths))

    def merge(self, other: Profile) -> Profile:
        """Return the profile of both parts of the data; associative and commutative."""
        if not self.rows:
            return other
        if not other.rows:
            return self
        sketch = merged_sketch(self.path_sketch, other.path_sketch)
        limit = min(self.max_paths, other.max_paths)
        return Profile(
            self.rows + other.rows,
            self.null_rows + other.null_rows,
            self.values + other.values,
            capped(merged_table(self.capped, other.capped), sketch, limit),
            self.sample.merge(other.sample, limit),
            sketch,
            limit,
            self.typed_strings + other.typed_strings,
            self.data.merge(self.rows, other.data, other.rows),
        )

    # -- what was found

    @cached_property
    def _with_frequent(self) -> tuple[PathTable, npt.NDArray[np.bool_]]:
        if self.values == int(self.capped.kinds.sum()):
            return self.capped, np.zeros(len(self.capped.hashes), bool)
        return with_frequent_paths(self.capped, self.sample)

    @property
    def table(self) -> PathTable:
        """The figures by path."""
        return self._with_frequent[0]

    @property
    def is_scaled(self) -> npt.NDArray[np.bool_]:
        """True for paths of `table` whose figures are scaled up from the sample."""
        return self._with_frequent[1]

    @property
    def path_count(self) -> int:
        """Number of distinct paths, omitted ones included; an estimate (3 %) above 1,024."""
        return max(distinct_paths(self.path_sketch), len(self.table.hashes))

    @property
    def overflow_values(self) -> int:
        """Number of values at omitted paths; an estimate if there are any."""
        return max(self.values - int(self.table.kinds.sum()), 0)

    @property
    def root(self) -> PathProfile | None:
        """The figures of the top-level values; None without values."""
        return PathProfile(self, 0) if len(self.table.hashes) else None

    def __iter__(self) -> Iterator[PathProfile]:
        """Yield every path, parents before children, fields in byte order."""
        stack = [self.root] if self.root is not None else []
        while stack:
            path_profile = stack.pop()
            yield path_profile
            stack.extend(reversed(path_profile.children))

    def of_one_string_form(self) -> Iterator[PathProfile]:
        """Yield the paths, in the order of the profile, that may have a `PathProfile.string_form`."""
        strings = self.table.kinds[:, PrimitiveId.STRING]
        forms = self.table.counts[:, list(FORM_COLUMNS.values())].max(axis=1, initial=0)
        numbers = np.flatnonzero((strings > 0) & (forms == strings)).tolist()
        path_profiles = [PathProfile(self, number) for number in numbers]
        yield from sorted(
            path_profiles, key=lambda path_profile: [_segment_key(segment) for segment in path_profile.path.segments]
        )

    def __len__(self) -> int:
        return len(self.table.hashes)

    def get(self, path: str | VariantPath) -> PathProfile | None:
        """Return the figures of a path, or None if it has no values; ``[*]`` and any index stand for every element."""
        path_profile = self.root
        for segment in VariantPath.parse(path).segments:
            if path_profile is None:
                return None
            path_profile = path_profile.field(segment) if isinstance(segment, str) else path_profile.element
        return path_profile

    @cached_property
    def value_counts(self) -> Int64s:
        """Number of values at each path."""
        return np.asarray(self.table.kinds.sum(axis=1))

    @cached_property
    def scalar_bytes(self) -> Int64s:
        """`PathProfile.scalar_bytes` of each path."""
        return scalar_bytes_of(self.table)

    @cached_property
    def distinct_counts(self) -> Int64s:
        """`PathProfile.distinct` of each path."""
        return distinct_counts_of(self.table)

    @cached_property
    def inner_bytes(self) -> Int64s:
        """Estimate of the encoded bytes of the values at each path, nested values included."""
        return inner_bytes_of(self.table, self.scalar_bytes, self.parent_index)

    @cached_property
    def keys(self) -> list[bytes | None]:
        """The UTF-8 bytes of the last segment of each path; None for elements, and for the root."""
        keys: list[bytes | None] = self.table.keys.to_pylist()
        return keys

    def segment(self, number: int) -> str | Wildcard:
        """Return the last segment of a path by its number; undefined for the root."""
        key = self.keys[number]
        return WILDCARD if key is None else key.decode("utf-8", "replace")

    @cached_property
    def _children(self) -> tuple[Int64s, Int64s, list[int]]:
        """The numbers of all paths by parent, fields in byte order before elements.

        The children of path ``n`` are entries ``bounds[n]`` to ``bounds[n + 1]``, of which those from ``stops[n]`` on
        are elements.
        """
        by_key = to_numpy(pc.array_sort_indices(self.table.keys)).astype(np.int64)  # nulls last
        parents, count = self.parent_index, len(self.parent_index)
        order = by_key[np.argsort(parents[by_key], kind="stable")]
        bounds = np.searchsorted(parents[order], np.arange(count + 1))
        elements = np.flatnonzero(to_numpy(self.table.keys.is_null()))
        stops = bounds[1:] - np.bincount(parents[elements] + 1, minlength=count + 1)[1:]
        return order, bounds, stops.tolist()

    def fields(self, number: int) -> Int64s:
        """Return the numbers of the fields of a path by its number, in byte order."""
        order, bounds, stops = self._children
        return order[bounds[number] : stops[number]]

    def element(self, number: int) -> int | None:
        """Return the number of the elements of a path by its number; None without elements."""
        order, bounds, stops = self._children
        return int(order[stops[number]]) if stops[number] < bounds[number + 1] else None

    def field(self, number: int, name: str) -> int | None:
        """Return the number of a field by the number of its object and its name; None if it has no values."""
        fields, keys = self.fields(number), self.keys
        if "\ufffd" in name:  # perhaps a key that is not UTF-8
            return next((field for field in fields.tolist() if self.segment(field) == name), None)
        key = name.encode("utf-8", "surrogatepass")
        at = bisect_left(fields, key, key=keys.__getitem__)  # type: ignore[arg-type]
        return int(fields[at]) if at < len(fields) and keys[fields[at]] == key else None

    @cached_property
    def parent_index(self) -> Int64s:
        """Number of the parent of each path; -1 for the root."""
        order = np.argsort(self.table.hashes)
        parents = order[np.searchsorted(self.table.hashes, self.table.parents, sorter=order) % max(len(order), 1)]
        parents[self.table.depths == 0] = -1
        return parents

    # -- kept and compared

    def to_json(self) -> str:
        """Return text that `from_json` reads; the tables in it are compressed."""
        return json.dumps(
            {
                "version": _VERSION,
                "rows": self.rows,
                "null_rows": self.null_rows,
                "values": self.values,
                "max_paths": self.max_paths,
                "path_sketch": _pack_array(self.path_sketch),
                "table": _packed_table(self.capped),
                "sample": [self.sample.level, *map(_packed_table, self.sample.tables)],
                "typed_strings": [[*rule, count] for rule, count in self.typed_strings.items()],
                "data": asdict(self.data),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read the text of `to_json`.

        Raises
        ------
        VariantError
            For other text (``bad-profile``).
        """
        try:
            document = json.loads(text)
            if document["version"] != _VERSION:
                raise ValueError(f"version {document['version']}")
            level, *tables = document["sample"]
            return cls(
                document["rows"], document["null_rows"], document["values"], _unpacked_table(document["table"]),
                RowSample(level, tuple(map(_unpacked_table, tables))), _unpack_array(document["path_sketch"]),
                document["max_paths"], Counter({tuple(rule): n for *rule, n in document.get("typed_strings", ())}),
                ProfiledData(**document.get("data", {})),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise VariantError(f"the text is not a profile of Profile.to_json: {error}", reason="bad-profile") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return (
            (self.rows, self.null_rows, self.values) == (other.rows, other.null_rows, other.values)
            and np.array_equal(self.path_sketch, other.path_sketch)
            and self.capped.equals(other.capped)
            and self.sample.equals(other.sample)
            and self.typed_strings == other.typed_strings
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _packed_table(table: PathTable) -> dict[str, Any]:
    keys = [None if key is None else base64.b64encode(key).decode() for key in table.keys.to_pylist()]
    return {"keys": keys, **{name: _pack_array(values) for name, values in table.arrays().items()}}


def _unpacked_table(packed: dict[str, Any]) -> PathTable:
    keys = [None if key is None else base64.b64decode(key) for key in packed["keys"]]
    arrays = {name: _unpack_array(values) for name, values in packed.items() if name != "keys"}
    return PathTable(keys=from_bytes(keys, pa.binary()), **arrays)


def _segment_key(segment: Segment) -> tuple[bool, bytes]:
    return (False, segment.encode("utf-8", "replace")) if isinstance(segment, str) else (True, b"")


def _pack_array(values: npt.NDArray[Any]) -> dict[str, Any]:
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 1)).decode()
    return {"dtype": str(values.dtype), "shape": list(values.shape), "data": data}


def _unpack_array(packed: dict[str, Any]) -> npt.NDArray[Any]:
    if packed["dtype"] not in ("int64", "uint8"):
        raise ValueError(f"dtype {packed['dtype']}")
    data = zlib.decompress(base64.b64decode(packed["data"]))
    return np.frombuffer(data, packed["dtype"]).reshape(packed["shape"])
