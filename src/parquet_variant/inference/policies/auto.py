"""`AutoPolicy`: shred frequent paths, as the type of most values, within a budget of columns.

Owns the default rules and their constants, which objects are maps, and the columns that complete an object, with the
estimate of their size. `columns` chooses the type of a column.

Source: measurements on the shared data sets (docs/inference.md). A rare path costs more as a column than in the
residual, where the compressor sees the other values of its row next to it; from about a seventh of the rows on, columns
are smaller, and they are what queries read. If data has few common paths, its most frequent paths are shredded at any
cost. A minority type does no harm, because it is stored in a residual of its own.

Source of completions: docs/interop.md. DuckDB reads a typed path alone if no object on the way to it has a residual; it
rebuilds whole values otherwise. A residual of the field itself does not matter. So a rare key needs any column with a
type, and its other values stay in the residual of that column. Columns inside objects cost more than they save, except
for large strings.

Most objects of a record type share its keys. A map has many keys, each in few of its objects, and the values under them
look alike. Both signs are needed, because a union of event types also has many rare keys, but with different values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from math import ceil, log2
from typing import ClassVar

import numpy as np
import pyarrow as pa

from parquet_variant.errors import check_names, strings_of
from parquet_variant.inference.columns import (
    ColumnType,
    best_column,
    bytes_saved,
    is_unreadable_by_spark,
    type_groups,
)
from parquet_variant.inference.path_table import ROWS
from parquet_variant.inference.policies.decision import InferenceResult, check_constants, result_of
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record
from parquet_variant.types import PrimitiveId, VariantType
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, is_within, outer_paths

# Number of keys that are compared: those with most values.
_COMPARED_KEYS = 64


class MapRules(Record):
    """The criteria for a map.

    `keys`: minimum number of distinct keys.
    `filled`: maximum share of the keys that an object has on average.
    `alike`: minimum share of the values under the keys that have one type; for objects, also of their keys.
    `surely`: number of keys with similar values from which on objects are maps even if they share the keys (such as a
      single document).
    `common`: minimum share of the objects that have a key for it to be treated as a field, if its values are scalars.
    """

    keys: int = 32
    filled: float = 0.2
    alike: float = 0.9
    surely: int = 1000
    common: float = 0.5

    def __post_init__(self) -> None:
        check_constants(self)


def map_reason(path_profile: PathProfile, rules: MapRules) -> str | None:
    """Return why the objects at a path are a map, as text; None if they are records.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.profile import Profile
    >>> rows = ['{"by_day": {"2024-%02d-%02d": 1}, "n": 1}' % (1 + n % 12, 1 + n % 28) for n in range(200)]
    >>> root = Profile.of_array(pv.parse_json(rows)).root
    >>> map_reason(root.field("by_day"), MapRules())
    'a map: 84 keys, 1.2% of them in an object, 100% alike'
    >>> map_reason(root, MapRules()) is None
    True
    """
    keys = path_profile.key_count
    objects = path_profile.types.get(VariantType.OBJECT, 0)
    if keys < rules.keys or not objects:
        return None
    filled = path_profile.field_count / objects / keys
    if filled > rules.filled and keys < rules.surely:
        return None
    alike = _similarity(path_profile.largest_fields(_COMPARED_KEYS, by_rows=False))
    if alike < rules.alike:
        return None
    return f"a map: {keys:,} keys, {filled:.1%} of them in an object, {alike:.0%} alike"


def _similarity(fields: list[PathProfile]) -> float:
    """Return the share of values of the most frequent type, times the share of their common keys for objects."""
    types: Counter[str] = Counter()
    names: Counter[object] = Counter()
    values_by_name: Counter[object] = Counter()
    objects = 0
    for child in fields:
        types.update(type_groups(child))
        inner_fields = child.fields
        if inner_fields:
            objects += 1
            for inner in inner_fields:
                names[inner.segment] += 1
                values_by_name[inner.segment] += inner.count
    if not types:
        return 0.0
    kind, values_of_type = types.most_common(1)[0]
    share = values_of_type / types.total()
    if kind != VariantType.OBJECT or not objects:
        return share
    common = sum(count for name, count in values_by_name.items() if names[name] >= objects / 4)
    return share * (common / values_by_name.total())


_READERS = ("duckdb", "spark")
# Number of fields of an object for which columns are considered, per column of the budget, and at least.
_CONSIDERED_PER_COLUMN, _LEAST_CONSIDERED = 4, 1000


class AutoPolicy(Record):
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
        readers = strings_of("readers", self.readers)
        check_names("reader", readers, _READERS)
        object.__setattr__(self, "readers", readers)

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        table, rows = profile.table, profile.rows - profile.null_rows
        scalar = table.kinds[:, PrimitiveId.NULL + 1 : len(PrimitiveId)].any(axis=1)
        shares = np.sort(table.counts[scalar, ROWS])[::-1]
        least = self.min_row_share
        if 0 < self.least_columns <= len(shares):  # less if few paths have the share
            least = min(least, max(float(shares[self.least_columns - 1]) / rows, least / 4))
        walk = _Walk(self, profile, least, "duckdb" in self.readers)
        if profile.root is not None:
            walk.node(profile.root, VariantPath())
        walk.keep_the_best()
        walk.complete()
        return result_of(self, profile, walk.leaves, walk.reasons)


class _Walk(Record, frozen=False):
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
            fields = [
                child
                for child in fields
                if child.share >= common and (best := best_column(child)) is not None and best.arrow is not None
            ]
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
        """Add columns of rare keys to objects on the way to typed scalars, within the budgets of bytes and columns.

        Outer objects come first, then those in most rows; objects below an incomplete one are read slowly in any case.
        """
        profile, leaves = self.profile, dict(self.leaves)
        budget = float("inf") if self.for_duckdb else self.policy.completion
        if not budget or profile.root is None or any(leaf.kind == "variant" for leaf in leaves.values()):
            return  # one column without a type makes DuckDB ignore all typed columns
        rows = max(profile.rows - profile.null_rows, 1)
        # The rows may be a sample; footers and pages have a fixed size in the files of all data.
        groups = max(ceil(profile.root.encoded_bytes / profile.data.share / _ROW_GROUP_BYTES), profile.data.files)
        key_bytes = _KEY_BYTES * groups * profile.data.share
        size = max(_estimated_bytes(profile), _OF_COMPRESSED_TEXT * profile.data.compressed_bytes, 1.0)
        scalars = [path for path, leaf in leaves.items() if leaf.kind == "primitive" and not path.has_wildcard]
        above = {outer for path in scalars for outer in outer_paths(path)}
        objects = {path: path_profile for path in above if (path_profile := profile.get(path)) is not None}
        incomplete: set[VariantPath] = set()
        for path in sorted(objects, key=lambda path: (len(path), -objects[path].rows)):
            shredded = {str(leaf.segments[len(path)]) for leaf in leaves if leaf != path and is_within(leaf, path)}
            keys = [
                child
                for child in objects[path].largest_fields(_CONSIDERED_KEYS, by_rows=True)
                if str(child.segment) not in shredded and child.row_share >= LEAST_ROW_SHARE
            ]
            if not keys or any(is_within(path, outer) for outer in incomplete):
                continue
            shares = (objects[path].rows / rows, 1 - objects[path].rows / rows)
            entropy = -sum(share * log2(share) for share in shares) if min(shares) > 0 else 0.0
            leaf_bytes = (key_bytes + _LEVEL_BYTES * rows * entropy) / 2  # of a column without values
            added = 2 * leaf_bytes * len(keys)
            if added < size:
                added = max(added - _SEPARATED * sum(map(_distinct_bytes, keys)), 0.0)
            obstacle = self.obstacle(
                [*shredded, *(str(child.segment) for child in keys)], len(keys), added / size, budget
            )
            if obstacle is None:
                budget -= added / size
                self.add_columns(path, keys, leaf_bytes)
            else:
                incomplete.add(path)
                self.reasons[path] += f"; {obstacle}"

    def obstacle(self, names: list[str], count: int, share: float, budget: float) -> str | None:
        """Return why an object is not completed by a number of columns that let the file grow by a share."""
        by_case: dict[str, str] = {}
        for name in names:  # DuckDB 2.0 renames one of two columns whose names differ only in case
            if (other := by_case.setdefault(name.casefold(), name)) != name:
                return f"{other} and {name} differ only in case, which DuckDB cannot tell apart"
        if share <= budget and len(self.leaves) + count <= self.policy.max_columns:
            return None
        if share > 1:
            return "the data is too small for more columns for DuckDB"
        return f"{count:,} more column{'s' * (count > 1)} for DuckDB would add about {share:.1%}"

    def add_columns(self, path: VariantPath, keys: list[PathProfile], leaf_bytes: float) -> None:
        """Add the columns that complete an object, and replace the reasons of its rare keys."""
        depth = len(path) + 1
        leaves = dict(typed_leaf(child, path / str(child.segment), leaf_bytes) for child in keys)
        self.leaves |= leaves
        added = {leaf.segments[:depth] for leaf in leaves}
        self.reasons = {place: reason for place, reason in self.reasons.items() if place.segments[:depth] not in added}
        reason = f"completes {path.shorthand} for engines that read whole values otherwise"
        for leaf in leaves:
            for length in range(depth, len(leaf) + 1):
                self.reasons[VariantPath(leaf.segments[:length])] = reason

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


def mix(column: ColumnType) -> str:
    """Return the types at a path with their shares, as text."""
    if not column.other_types:
        return f"all {column.name}"
    total = column.typed + sum(column.other_types.values())
    first = "number" if column.name.startswith(("bigint", "decimal")) else column.name
    parts = [(first, column.typed), *sorted(column.other_types.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join(f"{count / total:.1%} {name}" for name, count in parts)


# Minimum share of rows of a key. A row with a residual affects the 2,048 rows around it: at this share 2 % of the rows.
LEAST_ROW_SHARE = 0.00001
# Bytes of the two columns of a key in one row group: footer, page headers, statistics and dictionary. Measured.
_KEY_BYTES = 540
# Bytes of the levels of both columns of a key, per row and bit of information about the presence of its object.
_LEVEL_BYTES = 2 * 1.5 / 8
# Compressed bytes per byte of values that are plain or in a dictionary; 0.17 to 0.34 on the measured data sets.
_COMPRESSED = 0.2
# Bytes saved per byte of distinct values in a column of their own; 0.03 to 0.1 on the measured data sets.
_SEPARATED = 0.03
# The size of a file as a share of its compressed text; 0.5 to 1.0 on the measured data sets.
_OF_COMPRESSED_TEXT = 0.8
_ROW_GROUP_BYTES = 128 << 20
# Number of paths whose distinct values are counted, and of keys of an object that may get columns.
_COUNTED_PATHS, _CONSIDERED_KEYS = 1000, 1000


def typed_leaf(path_profile: PathProfile, path: VariantPath, leaf_bytes: float) -> tuple[VariantPath, ShreddingSchema]:
    """Return one leaf with a type for a key: the type of most values, or of the largest scalar of an object.

    It is a string for arrays, for objects whose scalars are smaller than another column costs (`leaf_bytes`), and for
    types that not all engines read: these values stay in the residual of the column.

    >>> import parquet_variant as pv
    >>> rows = ['{"a": {"b": 1, "text": "%s%d"}, "c": [2]}' % ("x" * 1000, n) for n in range(9)]
    >>> root = Profile.of_array(pv.parse_json(rows)).root
    >>> for cost, key in [(100, "a"), (1000, "a"), (100, "c")]:
    ...     path, node = typed_leaf(root.field(key), VariantPath((key,)), cost)
    ...     print(path.shorthand, node.to_ddl())
    $.a.text string
    $.a string
    $.c string
    """
    column = best_column(path_profile)
    if column is not None and column.name == "object" and path_profile.fields:
        child = max(path_profile.fields, key=_distinct_bytes)
        if _distinct_bytes(child) * _SEPARATED > leaf_bytes:
            path, column = path / str(child.segment), best_column(child)
    arrow = None if column is None else column.arrow
    return path, ShreddingSchema.primitive(pa.string() if arrow is None or is_unreadable_by_spark(arrow) else arrow)


def _estimated_bytes(profile: Profile) -> float:
    """Return an estimate of the size of a file, from the values of each path and the number of distinct ones."""
    table = profile.table
    plain, counts = table.scalar_bytes, table.value_counts
    largest = np.argsort(-plain)[:_COUNTED_PATHS]
    total = float(plain.sum() - plain[largest].sum())
    largest = largest[(plain[largest] > 0) & (table.kinds[largest, PrimitiveId.NULL] < counts[largest])]
    count, size = counts[largest], plain[largest]
    distinct = np.clip(table.distinct_counts[largest], 1, count)
    total += float(np.minimum(size, distinct * size / count + count * np.log2(distinct + 1) / 8).sum())
    return total * _COMPRESSED


def _distinct_bytes(path_profile: PathProfile) -> float:
    """Return the size of the distinct scalars at a path."""
    count = max(path_profile.count, 1)
    return path_profile.scalar_bytes * min(path_profile.distinct, count) / count
