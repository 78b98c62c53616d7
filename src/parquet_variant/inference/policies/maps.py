"""Recognition of maps: objects whose keys are data (versions, dates, ids), as opposed to records.

Owns this decision. The policies decide how maps are shredded.

Most objects of a record type share its keys. A map has many keys, each in few of its objects, and the values under them
look alike. Both signs are needed, because a union of event types also has many rare keys, but with different values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from parquet_variant.inference.policies.decision import check_constants
from parquet_variant.inference.profile_path import PathProfile
from parquet_variant.types import EXACT_NUMERIC, VariantType

# Number of keys that are compared: those with most values.
_COMPARED_KEYS = 64


@dataclass(frozen=True, slots=True)
class MapRules:
    """The criteria for a map.

    Parameters
    ----------
    keys
        Minimum number of distinct keys.
    filled
        Maximum share of the keys that an object has on average.
    alike
        Minimum share of the values under the keys that have one type; for objects, also of their keys.
    surely
        Number of keys with similar values from which on objects are maps even if they share the keys (such as a single
        document).
    common
        Minimum share of the objects that have a key for it to be treated as a field, if its values are scalars.

    Examples
    --------
    >>> MapRules().keys
    32
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
        for name, count in field.types.items():
            if name != VariantType.NULL:
                types["number" if name in EXACT_NUMERIC else name] += count
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
