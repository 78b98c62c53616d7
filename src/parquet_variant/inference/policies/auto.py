"""`AutoPolicy`: shred frequent paths, as the type of most values, within a budget of columns.

Owns the default rules and their constants. `columns` chooses the type of a column, `maps` recognizes maps.

Source: measurements on the shared data sets (docs/inference.md). A rare path costs more as a column than in the
residual, where the compressor sees the other values of its row next to it; from about a seventh of the rows on, columns
are smaller, and they are what queries read. If data has few common paths, its most frequent paths are shredded at any
cost. A minority type does no harm, because it is stored in a residual of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from parquet_variant.errors import VariantError
from parquet_variant.inference.columns import (
    ColumnType,
    best_column,
    bytes_saved,
    has_scalar_column,
    is_unreadable_by_spark,
)
from parquet_variant.inference.path_table import ROWS
from parquet_variant.inference.policies.completion import LEAST_ROW_SHARE, Completion, MapRules, completions, map_reason
from parquet_variant.inference.policies.decision import InferenceResult, check_constants, result_of
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types import PrimitiveId
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, is_within, outer_paths

_READERS = ("duckdb", "spark")
# Number of fields of an object for which columns are considered, per column of the budget, and at least.
_CONSIDERED_PER_COLUMN, _LEAST_CONSIDERED = 4, 1000


@dataclass(frozen=True, slots=True)
class AutoPolicy:
    """Shred frequent paths.

    Parameters
    ----------
    min_row_share
        Minimum share of the rows (SQL NULL excluded) that have a path; rarer paths stay in the residual.
    least_columns
        Number of the most frequent scalar paths that are shredded down to a quarter of that share.
    min_type_share
        Minimum share of a path's values, Variant nulls excluded, that a typed column holds; a path without such a type
        becomes a column without a type.
    max_columns
        Maximum number of leaves; those in most rows are kept, and among equals those that save most bytes.
    max_depth
        Maximum number of segments of a path; deeper values stay in the residual.
    maps
        Which objects are maps; a map is a separate residual, except for its most common keys.
    completion
        Maximum estimated growth of the file, as a share of its size, for columns of rare keys. They let other engines
        read frequent paths from typed columns alone (docs/interop.md); 0 adds none.
    readers
        Engines that read the files directly. ``"duckdb"`` adds columns of rare keys whatever they cost, with frequent
        paths below top-level keys, and makes no column without a type. ``"spark"`` makes no column of a type that plain
        Spark cannot read (uuid, time, timestamps in nanoseconds).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = ['{"task": %d}' % n for n in range(72)] + ['{"task": "none"}'] * 28
    >>> result = infer(pv.parse_json(rows), AutoPolicy())
    >>> result.schema.to_ddl(), result.decision("$.task").typed_share
    ('task bigint', 0.72)
    >>> result.decision("$.task").reason
    '72.0% number, 28.0% string'
    """

    name: ClassVar[str] = "auto"  # What `infer` takes.
    min_row_share: float = 0.15
    least_columns: int = 10
    min_type_share: float = 0.3
    max_columns: int = 300
    max_depth: int = 50
    maps: MapRules = field(default_factory=MapRules)
    completion: float = 0.01
    readers: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_constants(self)
        readers = (self.readers,) if isinstance(self.readers, str) else tuple(self.readers)
        if unknown := [reader for reader in readers if reader not in _READERS]:
            words = f"unknown reader {unknown[0]!r}: use {', '.join(_READERS)}"
            raise VariantError(words, reason="bad-policy")
        object.__setattr__(self, "readers", readers)

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        walk = _Walk(self, profile, _least_share(self, profile), "duckdb" in self.readers)
        if profile.root is not None:
            walk.node(profile.root, VariantPath())
        walk.keep_the_best()
        walk.complete()
        return result_of(self, profile, walk.leaves, walk.reasons)


@dataclass(slots=True)
class _Walk:
    """The walk over the paths from the root down: the columns so far, and why a path has a column or group, or none."""

    policy: AutoPolicy
    profile: Profile
    least_share: float
    for_duckdb: bool
    leaves: dict[VariantPath, ShreddingSchema] = field(default_factory=dict)
    reasons: dict[VariantPath, str] = field(default_factory=dict)
    of_root: dict[Segment, int] = field(default_factory=dict)

    def least_rows(self, path_profile: PathProfile, path: VariantPath) -> tuple[float, int]:
        """Return the share of rows that a path needs, and the number of rows that it refers to."""
        rows = self.profile.rows - self.profile.null_rows
        if not self.for_duckdb or not path.segments:
            return self.least_share, rows
        if len(path) == 1:
            self.of_root[path.segments[0]] = path_profile.rows
            return min(LEAST_ROW_SHARE, self.least_share), rows
        return self.least_share, self.of_root[path.segments[0]]

    def node(self, path_profile: PathProfile, path: VariantPath) -> bool:
        """Decide on a path and the paths below it; return whether it has a column or group."""
        column = best_column(path_profile)
        if column is None:
            return self.leave(path, "only Variant nulls")
        least, rows = self.least_rows(path_profile, path)
        if path_profile.rows < least * rows:
            return self.leave(path, f"in {path_profile.rows / rows:.2%} of the rows, under {least:.0%}")
        if len(path) > self.policy.max_depth:
            return self.leave(path, f"deeper than {self.policy.max_depth} segments")
        if column.share < self.policy.min_type_share:
            return self.untyped(path, f"no type has {self.policy.min_type_share:.0%}: {mix(column)}")
        if column.name == "object":
            return self.object(path_profile, path, mix(column))
        self.reasons[path] = mix(column)
        if column.name == "array":
            element = path_profile.element
            if element is not None and self.node(element, path / WILDCARD):
                return True
            return self.untyped(path, self.reason_below([] if element is None else [element], "only empty arrays"))
        assert column.arrow is not None
        if "spark" in self.policy.readers and is_unreadable_by_spark(column.arrow):
            return self.untyped(path, f"{mix(column)}; plain Spark cannot read columns of {column.name}")
        self.leaves[path] = ShreddingSchema.primitive(column.arrow)
        return True

    def object(self, path_profile: PathProfile, path: VariantPath, words: str) -> bool:
        limit = max(_LEAST_CONSIDERED, _CONSIDERED_PER_COLUMN * self.policy.max_columns)
        fields = path_profile.largest_fields(limit, by_rows=True)
        reason = map_reason(path_profile, self.policy.maps)
        if reason is not None:
            common = self.policy.maps.common
            fields = [child for child in fields if child.share >= common and has_scalar_column(child)]
            words = f"{reason}; only keys in {common:.0%} of them have columns"
        if path_profile.key_count > limit:
            words = f"{words}; of {path_profile.key_count:,} fields, only the {limit:,} in most rows are considered"
        if not fields:
            return self.untyped(path, reason or "only empty objects")
        least = self.least_share * (self.profile.rows - self.profile.null_rows)
        if not self.for_duckdb and all(child.rows < least for child in fields):
            return self.untyped(path, f"all paths below are in under {self.least_share:.0%} of the rows")
        self.reasons[path] = words
        first: dict[str, PathProfile] = {}  # the most frequent field of each set of names that differ only in case
        for child in fields:
            name = str(child.segment).casefold()
            if name not in first or child.count > first[name].count:
                first[name] = child
        is_shredded = False
        for child in fields:
            inner, preferred = path / str(child.segment), str(first[str(child.segment).casefold()].segment)
            if preferred == child.segment:
                is_shredded |= self.node(child, inner)
            else:  # DuckDB 2.0 reads the second of two such columns under another name.
                self.leave(inner, f"differs from {preferred!r} only in case, which not every reader can tell apart")
        return is_shredded or self.untyped(path, self.reason_below(fields, "no field has a column"))

    def reason_below(self, children: list[PathProfile], otherwise: str) -> str:
        """Return why no path below a container has a column."""
        if children and all(child.row_share < self.least_share for child in children):
            return f"all paths below are in under {self.least_share:.0%} of the rows"
        return otherwise

    def untyped(self, path: VariantPath, reason: str) -> bool:
        if self.for_duckdb:
            return self.leave(path, f"{reason}; DuckDB needs typed columns")
        self.leaves[path], self.reasons[path] = ShreddingSchema.variant(), reason
        return True

    def leave(self, path: VariantPath, reason: str) -> bool:
        self.reasons[path] = reason
        return False

    def complete(self) -> None:
        """Add columns of rare keys to objects on the way to typed scalars, within the budgets of bytes and columns."""
        budget = float("inf") if self.for_duckdb else self.policy.completion
        has_untyped = any(leaf.kind == "variant" for leaf in self.leaves.values())
        if not budget or has_untyped:
            return  # one column without a type makes DuckDB ignore all typed columns
        incomplete: set[VariantPath] = set()
        for completion in completions(self.profile, dict(self.leaves)):
            path, count = completion.path, len(completion.keys)
            if not count or any(is_within(path, outer) for outer in incomplete):
                continue
            words = f"{count:,} more column{'s' * (count > 1)} for DuckDB would add about {completion.share:.1%}"
            if completion.share > 1:
                words = "the data is too small for more columns for DuckDB"
            if completion.twins is not None:
                words = f"{' and '.join(completion.twins)} differ only in case, which DuckDB cannot tell apart"
            elif completion.share <= budget and len(self.leaves) + count <= self.policy.max_columns:
                budget -= completion.share
                self.add_columns(completion)
                continue
            incomplete.add(path)
            self.reasons[path] += f"; {words}"

    def add_columns(self, completion: Completion) -> None:
        """Add the columns that complete an object, and replace the reasons of its rare keys."""
        leaves, depth = completion.leaves(), len(completion.path) + 1
        self.leaves |= leaves
        keys = {path.segments[:depth] for path in leaves}
        self.reasons = {path: reason for path, reason in self.reasons.items() if path.segments[:depth] not in keys}
        reason = f"completes {completion.path.shorthand} for engines that read whole values otherwise"
        for path in leaves:
            for length in range(depth, len(path) + 1):
                self.reasons[VariantPath(path.segments[:length])] = reason

    def keep_the_best(self) -> None:
        """Remove the leaves over the budget, and the groups that become empty."""
        if len(self.leaves) <= self.policy.max_columns:
            return

        def rank(path: VariantPath) -> tuple[float, int, str]:
            path_profile = self.profile.get(path)
            assert path_profile is not None
            return -path_profile.row_share, -bytes_saved(path_profile, self.leaves[path]), str(path)

        order = sorted(self.leaves, key=rank)
        over = order[self.policy.max_columns :]
        self.leaves = {path: leaf for path, leaf in self.leaves.items() if path not in set(over)}
        needed = {outer for path in self.leaves for outer in outer_paths(path)}
        reason = f"over the budget of {self.policy.max_columns} columns: other paths are in more rows or save more"
        self.reasons |= {outer: reason for path in over for outer in [*outer_paths(path), path] if outer not in needed}


def _least_share(policy: AutoPolicy, profile: Profile) -> float:
    """Return the minimum share of rows of a path: less than the policy's if few paths reach that."""
    table, rows = profile.table, profile.rows - profile.null_rows
    scalar = table.kinds[:, PrimitiveId.NULL + 1 : len(PrimitiveId)].any(axis=1)
    shares = np.sort(table.counts[scalar, ROWS])[::-1]
    if not 0 < policy.least_columns <= len(shares):
        return policy.min_row_share
    frequent = float(shares[policy.least_columns - 1]) / rows
    return min(policy.min_row_share, max(frequent, policy.min_row_share / 4))


def mix(column: ColumnType) -> str:
    """Return the types at a path with their shares, as text."""
    if not column.other_types:
        return f"all {column.name}"
    total = column.typed + sum(column.other_types.values())
    first = "number" if column.name.startswith(("bigint", "decimal")) else column.name
    parts = [(first, column.typed), *sorted(column.other_types.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join(f"{count / total:.1%} {name}" for name, count in parts)
