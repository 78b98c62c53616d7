"""Telling maps from records: objects whose keys are data (versions, dates, ids).

Owns that one judgement. Leaves what becomes of a map to the policies.

A record has keys that most of its kind share. A map has many keys, each in few of the objects, and what they lead to
looks alike. Both signs are needed, since a union of event types also has many rare keys, but of all kinds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from parquet_variant.shredding.policies.decision import check_constants
from parquet_variant.shredding.profile_path import PathProfile
from parquet_variant.types import EXACT_NUMERIC, VariantType

# Keys that are compared: those with most values.
_LOOKED_AT = 64


@dataclass(frozen=True, slots=True)
class MapRules:
    """What makes an object a map.

    Parameters
    ----------
    keys
        It has at least so many distinct keys.
    filled
        An object has at most this share of them, on average.
    alike
        At least this share of the values under the keys are of one type; and if they are objects, of the keys in these.
    surely
        With so many keys that look alike it is a map even if the objects share them (a single document, for one).
    common
        A key of a map in this share of its objects is treated as the field of a record if it leads to scalars.

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
    """Why the objects at a path are a map, in words; None if they are records.

    >>> import parquet_variant as pv
    >>> from parquet_variant.shredding.profile import Profile
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
    fields = sorted(path_profile.fields, key=lambda field: -field.count)[:_LOOKED_AT]
    alike = _alike(fields)
    if alike < rules.alike:
        return None
    return f"a map: {keys:,} keys, {filled:.1%} of them in an object, {alike:.0%} alike"


def _alike(fields: list[PathProfile]) -> float:
    """Share of the values that are of the most frequent type, times that of their keys that most of them have."""
    types: Counter[str] = Counter()
    names: Counter[object] = Counter()
    values_by_name: Counter[object] = Counter()
    objects = 0
    for field in fields:
        for name, count in field.types.items():
            if name != VariantType.NULL:
                types["number" if name in EXACT_NUMERIC else name] += count
        below = field.fields
        if below:
            objects += 1
            for child in below:
                names[child.segment] += 1
                values_by_name[child.segment] += child.count
    if not types:
        return 0.0
    kind, most = types.most_common(1)[0]
    share = most / types.total()
    if kind != VariantType.OBJECT or not objects:
        return share
    common = sum(count for name, count in values_by_name.items() if names[name] >= objects / 4)
    return share * (common / values_by_name.total())
