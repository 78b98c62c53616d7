"""Columns for rare keys, and objects whose keys are data.

Owns the columns that complete an object, the estimate of their size, and which objects are maps. `AutoPolicy` decides
how much the columns may cost, and the policies how maps are shredded.

Source: docs/interop.md. DuckDB reads a typed path alone if no object on the way to it has a residual; it rebuilds whole
values otherwise. A residual of the field itself does not matter. So a rare key needs any column with a type, and its
other values stay in the residual of that column. Columns inside objects cost more than they save, except for large
strings.

Most objects of a record type share its keys. A map has many keys, each in few of its objects, and the values under them
look alike. Both signs are needed, because a union of event types also has many rare keys, but with different values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
import pyarrow as pa

from parquet_variant.inference.columns import best_column, is_unreadable_by_spark, type_groups
from parquet_variant.inference.policies.decision import check_constants
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types import PrimitiveId, VariantType
from parquet_variant.types.path import WILDCARD, VariantPath, is_within, outer_paths

# Number of keys that are compared: those with most values.
_COMPARED_KEYS = 64


@dataclass(frozen=True, slots=True)
class MapRules:
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
    for field in fields:
        types.update(type_groups(field))
        inner_fields = field.fields
        if inner_fields:
            objects += 1
            for child in inner_fields:
                names[child.segment] += 1
                values_by_name[child.segment] += child.count
    if not types:
        return 0.0
    kind, values_of_type = types.most_common(1)[0]
    share = values_of_type / types.total()
    if kind != VariantType.OBJECT or not objects:
        return share
    common = sum(count for name, count in values_by_name.items() if names[name] >= objects / 4)
    return share * (common / values_by_name.total())


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


@dataclass(frozen=True, slots=True)
class Completion:
    """The columns that an object needs so that it has no residual.

    `leaf_bytes`, `share`: the estimated size of a column without values, and growth as a share of the file's size.
    `twins`: two keys whose names differ only in case, because of which no columns complete the object.
    """

    path: VariantPath
    keys: tuple[PathProfile, ...]
    leaf_bytes: float
    share: float
    twins: tuple[str, str] | None = None

    def leaves(self) -> dict[VariantPath, ShreddingSchema]:
        """Return the new leaves of the schema, by path."""
        leaves: dict[VariantPath, ShreddingSchema] = {}
        for child in self.keys:
            leaves |= typed_leaf(child, self.path / str(child.segment), self.leaf_bytes)
        return leaves


def completions(profile: Profile, leaves: dict[VariantPath, ShreddingSchema]) -> Iterator[Completion]:
    """Yield what completes each object on the way to typed scalars: outer objects first, then those in most rows.

    Objects below an incomplete one are read slowly in any case. The caller may add leaves while it iterates.
    """
    if profile.root is None:
        return
    rows = max(profile.rows - profile.null_rows, 1)
    # The rows may be a sample; footers and pages have a fixed size in the files of all data.
    groups = max(ceil(profile.root.encoded_bytes / profile.data.share / _ROW_GROUP_BYTES), profile.data.files)
    key_bytes = _KEY_BYTES * groups * profile.data.share
    size = max(estimated_bytes(profile), _OF_COMPRESSED_TEXT * profile.data.compressed_bytes, 1.0)
    # The objects on the way to typed scalars outside of arrays.
    scalars = [path for path, leaf in leaves.items() if leaf.kind == "primitive" and WILDCARD not in path.segments]
    paths = {outer for path in scalars for outer in outer_paths(path)}
    objects = {path: path_profile for path in paths if (path_profile := profile.get(path)) is not None}
    for path in sorted(objects, key=lambda path: (len(path), -objects[path].rows)):
        path_profile = objects[path]
        shredded = {str(leaf.segments[len(path)]) for leaf in leaves if leaf != path and is_within(leaf, path)}
        keys = [
            child
            for child in path_profile.largest_fields(_CONSIDERED_KEYS, by_rows=True)
            if str(child.segment) not in shredded and child.row_share >= LEAST_ROW_SHARE
        ]
        twins = _twins([*shredded, *(str(child.segment) for child in keys)])
        leaf_bytes = (key_bytes + _LEVEL_BYTES * rows * _entropy(path_profile.rows / rows)) / 2
        added = 2 * leaf_bytes * len(keys)
        if added < size:
            added = max(added - _SEPARATED * sum(map(_distinct_bytes, keys)), 0.0)
        yield Completion(path, tuple(keys), leaf_bytes, added / size, twins)


def typed_leaf(path_profile: PathProfile, path: VariantPath, leaf_bytes: float) -> dict[VariantPath, ShreddingSchema]:
    """Return one leaf with a type for a key: the type of most values, or of the largest scalar of an object.

    It is a string for arrays, for objects whose scalars are smaller than another column costs (`leaf_bytes`), and for
    types that not all engines read: these values stay in the residual of the column.

    >>> import parquet_variant as pv
    >>> rows = ['{"a": {"b": 1, "text": "%s%d"}, "c": [2]}' % ("x" * 1000, n) for n in range(9)]
    >>> root = Profile.of_array(pv.parse_json(rows)).root
    >>> for cost, key in [(100, "a"), (1000, "a"), (100, "c")]:
    ...     leaf = typed_leaf(root.field(key), VariantPath((key,)), cost)
    ...     print([(path.shorthand, node.to_ddl()) for path, node in leaf.items()])
    [('$.a.text', 'string')]
    [('$.a', 'string')]
    [('$.c', 'string')]
    """
    column = best_column(path_profile)
    if column is not None and column.name == "object" and path_profile.fields:
        child = max(path_profile.fields, key=_distinct_bytes)
        if _distinct_bytes(child) * _SEPARATED > leaf_bytes:
            path, column = path / str(child.segment), best_column(child)
    if column is None or column.arrow is None or is_unreadable_by_spark(column.arrow):
        return {path: ShreddingSchema.primitive(pa.string())}
    return {path: ShreddingSchema.primitive(column.arrow)}


def estimated_bytes(profile: Profile) -> float:
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


def _twins(names: list[str]) -> tuple[str, str] | None:
    """Return two names that differ only in case: DuckDB 2.0 renames one of two such columns."""
    by_case: dict[str, str] = {}
    for name in names:
        other = by_case.setdefault(name.casefold(), name)
        if other != name:
            return other, name
    return None


def _entropy(share: float) -> float:
    return 0.0 if not 0 < share < 1 else -share * log2(share) - (1 - share) * log2(1 - share)
