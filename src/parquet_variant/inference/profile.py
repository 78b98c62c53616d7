"""`Profile`: a summary of values by path, for schema inference.

Owns the mergeable summary and its creation from a tape or an array. `kernels.tapes.profile` counts, `path_profile` has
the figures of one path, `path_table` merges tables, limits the number of paths and finds frequent ones among too many
in a sample of rows, and `policies` draw conclusions.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantError
from parquet_variant.inference.path_profile import PathProfile, ProfiledPaths
from parquet_variant.inference.path_table import (
    PathTable,
    ProfiledData,
    RowSample,
    TapePaths,
    capped,
    distinct_paths,
    merged_sketch,
    merged_table,
    no_paths,
    pack_array,
    table_of_rows,
    unpack_array,
    with_frequent_paths,
)
from parquet_variant.kernels.arrow_buffers import Int64s
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.path import VariantPath

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
    def profiled_paths(self) -> ProfiledPaths:
        """The figures by path, as `PathProfile` needs them."""
        table, is_scaled = self.capped, np.zeros(len(self.capped.hashes), bool)
        if self.values != int(self.capped.kinds.sum()):
            table, is_scaled = with_frequent_paths(self.capped, self.sample)
        return ProfiledPaths(table, is_scaled, self.rows, self.null_rows)

    @property
    def table(self) -> PathTable:
        """The figures by path."""
        return self.profiled_paths.table

    @property
    def is_scaled(self) -> npt.NDArray[np.bool_]:
        """True for paths of `table` whose figures are scaled up from the sample."""
        return self.profiled_paths.is_scaled

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
        return PathProfile(self.profiled_paths, 0) if len(self.table.hashes) else None

    def __iter__(self) -> Iterator[PathProfile]:
        """Yield every path, parents before children, fields in byte order."""
        stack = [self.root] if self.root is not None else []
        while stack:
            path_profile = stack.pop()
            yield path_profile
            stack.extend(reversed(path_profile.children))

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
                "path_sketch": pack_array(self.path_sketch),
                "table": self.capped.packed(),
                "sample": [self.sample.level, *map(PathTable.packed, self.sample.tables)],
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
                document["rows"], document["null_rows"], document["values"], PathTable.unpacked(document["table"]),
                RowSample(level, tuple(map(PathTable.unpacked, tables))), unpack_array(document["path_sketch"]),
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
