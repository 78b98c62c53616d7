"""Columns of a path: the type that fits its values best, the values that a column holds, and the bytes that it saves.

Owns the groups of types that share a column, the exact numeric type, and what a column holds and saves. All figures are
estimates from a profile. The policies decide whether a path gets a column; `explain` formats the results.

Integers and decimals are one group ("Exact Numeric" in the specification); no other types share a column. Strings are
not parsed as dates or numbers, because the values would not be written back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log2
from operator import itemgetter

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_PRECISION, ddl_name, decimal
from parquet_variant.support.records import Record, human_bytes
from parquet_variant.types import DECIMAL_TYPES, EXACT_NUMERIC, INTEGERS, TYPE_OF_ARROW, TYPES, VariantType
from parquet_variant.types.path import VariantPath

# Digits of a decimal that is stored as an INT64.
_NARROW = 18
# Share of the decimals that may stay in the residual to make the column 8 instead of 16 bytes wide.
_OUTLIERS = 0.01


class ColumnType(Record):
    """The best column for a path."""

    name: str  # A DDL name, ``"array"`` or ``"object"``.
    arrow: pa.DataType | None  # The type of a primitive column, else None.
    typed: int  # Number of values that it holds.
    # Number of values of other types, which stay in the residual, by type; without Variant nulls.
    other_types: dict[str, int]

    @property
    def share(self) -> float:
        """Share of the values, Variant nulls excluded, that the column holds."""
        total = self.typed + sum(self.other_types.values())
        return self.typed / total if total else 0.0


def best_column(path_profile: PathProfile) -> ColumnType | None:
    """Return the column that holds most values; None if all values are Variant null."""
    groups = type_groups(path_profile)
    if not groups:
        return None
    name = max(groups, key=lambda group: (groups[group], group))
    typed = groups.pop(name)
    arrow, held = exact_numeric(path_profile) if name == "number" else (TYPES[VariantType(name)].arrow, typed)
    if arrow is None:
        return ColumnType(name, None, held, groups)
    if held < typed:
        groups[f"number beyond {ddl_name(arrow)}"] = typed - held
    return ColumnType(ddl_name(arrow), arrow, held, groups)


def typed_leaves(
    top: PathProfile | None, is_left_out: Callable[[PathProfile, ColumnType | None], bool] = lambda *_: False
) -> Iterator[tuple[VariantPath, PathProfile, ShreddingSchema]]:
    """Yield the paths at and below a path whose best column has scalars, with these columns.

    `is_left_out`: returns whether to leave out a path and the paths below it.
    """
    stack = [top] if top is not None else []
    while stack:
        path_profile = stack.pop()
        column = best_column(path_profile)
        if is_left_out(path_profile, column) or column is None:
            continue
        if column.arrow is not None:
            yield path_profile.path, path_profile, ShreddingSchema.primitive(column.arrow)
        else:
            stack += path_profile.fields if column.name == "object" else filter(None, [path_profile.element])


def type_groups(path_profile: PathProfile) -> dict[str, int]:
    """Return the number of values by group of types, without Variant nulls; exact numbers are one group."""
    groups: dict[str, int] = {}
    for variant_type, count in path_profile.types.items():
        if variant_type != VariantType.NULL:
            name = "number" if variant_type in EXACT_NUMERIC else str(variant_type)
            groups[name] = groups.get(name, 0) + count
    return groups


def exact_numeric(path_profile: PathProfile) -> tuple[pa.DataType, int]:
    """Return the numeric type for the integers and decimals of a path, and the number of values that it surely holds.

    It holds all values if 38 digits suffice; a few outliers are excluded if the other values then fit an INT64.
    """
    types = path_profile.types
    if types.keys().isdisjoint(DECIMAL_TYPES):
        return pa.int64(), sum(count for name, count in types.items() if name in INTEGERS)
    decimals = int(path_profile.decimals[1].sum())
    ints = sum(count for name, count in types.items() if name in EXACT_NUMERIC) - decimals
    whole_digits, scale = max(path_profile.whole_digits, 1), path_profile.scale
    if whole_digits + scale <= _NARROW:
        return decimal(whole_digits + scale, scale), ints + decimals
    narrow = max((pa.int64(), ints), _most_typed(path_profile, ints, _NARROW), key=itemgetter(1))
    if narrow[1] >= (1 - _OUTLIERS) * (ints + decimals):
        return narrow
    if whole_digits + scale <= MAX_PRECISION:
        return decimal(whole_digits + scale, scale), ints + decimals
    return max((pa.int64(), ints), _most_typed(path_profile, ints, MAX_PRECISION), key=itemgetter(1))


def _most_typed(path_profile: PathProfile, ints: int, precision: int) -> tuple[pa.DataType, int]:
    """Return the decimal type of a precision that surely holds most values, and their number."""

    def fitting(scale: int) -> int:
        fitting_ints = ints if path_profile.int_digits <= precision - scale else 0
        return _typed_decimals(path_profile, decimal(precision, scale)) + fitting_ints

    scale = max(range(precision + 1), key=fitting)
    return decimal(precision, scale), fitting(scale)


def is_unreadable_by_spark(kind: pa.DataType) -> bool:
    """Return whether plain Spark 4.3 refuses files with a column of a type.

    >>> is_unreadable_by_spark(pa.uuid()), is_unreadable_by_spark(pa.timestamp("us"))
    (True, False)
    """
    return kind == pa.uuid() or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")


_INTEGER_DIGITS = {pa.int8(): 2, pa.int16(): 4, pa.int32(): 9, pa.int64(): 18}


class PathEstimate(Record):
    """The estimated effect of typing one more path: `values` at it, of which the column would hold `typed`.

    `taken`, `column`: encoded bytes that would leave the residual, and bytes of the column, before compression.

    >>> print(PathEstimate(VariantPath(("brand",)), "string", 100, 98, 2400, 1000))
    $.brand as string: would hold 98 of 100 values; takes 2.4 kB out of the residual, costs 1.0 kB, saves 1.4 kB
    """

    path: VariantPath
    type: str
    values: int
    typed: int
    taken: int
    column: int

    @property
    def saved(self) -> int:
        """The bytes saved; negative if the column costs more than it saves."""
        return self.taken - self.column

    def __str__(self) -> str:
        head = f"{self.path.shorthand} as {self.type}"
        if not self.values:
            return f"{head}: the data has no values at this path"
        taken, column, saved = map(human_bytes, (self.taken, self.column, abs(self.saved)))
        gain = f"costs {column}, {'saves' if self.saved >= 0 else 'loses'} {saved}"
        return f"{head}: would hold {self.typed:,} of {self.values:,} values; takes {taken} out of the residual, {gain}"


def estimate_path(profile: Profile, path: str | VariantPath, kind: str) -> PathEstimate:
    """Estimate what typing one more path would cost and save.

    Raises `SchemaError` for an unknown type, and for a type that is not a column type.

    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"n": 1}', '{"n": "x", "brand": "one of two"}', '{"brand": "one of two"}'] * 50)
    >>> estimate = estimate_path(Profile.of_array(rows), "$.brand", "string")
    >>> estimate.values, estimate.typed, estimate.saved > 0
    (100, 100, True)
    """
    parsed = VariantPath.parse(path)
    node = ShreddingSchema.from_ddl(f"x {kind}").fields[0][1]
    if node.type is None:
        raise SchemaError(f"{kind} is not a column type: use one such as string or bigint", reason="bad-type")
    path_profile = profile.get(parsed)
    if path_profile is None:
        return PathEstimate(parsed, kind, 0, 0, 0, 0)
    typed = typed_count(path_profile, node)
    taken = round(path_profile.scalar_bytes * typed / max(path_profile.count, 1)) + typed * path_profile.entry_bytes
    return PathEstimate(parsed, kind, path_profile.count, typed, taken, max(taken - bytes_saved(path_profile, node), 0))


def typed_count(path_profile: PathProfile, node: ShreddingSchema | None) -> int:
    """Return the minimum number of values of a path that the typed column or group of a schema node holds.

    The number is exact, except for decimals that fit partly, for which only the digits before and after the point are
    known separately, and for integers that fit partly, for which only the range is known.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.profile import Profile
    >>> root = Profile.of_array(pv.parse_json(["1", "2.5", "3.25", '"x"', "null"])).root
    >>> [typed_count(root, ShreddingSchema.from_ddl(ddl)) for ddl in ("bigint", "decimal(3,1)", "string", "variant")]
    [1, 2, 1, 0]
    """
    types = path_profile.types
    if node is not None and node.kind in ("array", "object"):
        return types.get(VariantType(node.kind), 0)
    if node is None or node.type is None:
        return 0
    if not (pa.types.is_integer(node.type) or pa.types.is_decimal(node.type)):
        return types.get(TYPE_OF_ARROW[node.type].type, 0)
    return _typed_integers(path_profile, node.type) + _typed_decimals(path_profile, node.type)


def typed_share(path_profile: PathProfile, node: ShreddingSchema | None) -> float:
    """Return `typed_count` as a share of the values of the path, Variant nulls excluded."""
    total = path_profile.count - path_profile.null_count
    return typed_count(path_profile, node) / total if total else 0.0


def bytes_saved(path_profile: PathProfile, node: ShreddingSchema | None) -> int:
    """Estimate how many bytes, before compression, a typed column takes less than its values in the residual.

    In the residual a value has its header, a field id and an offset. In the column it has its width, or a dictionary
    index if values repeat. Groups save nothing themselves.
    """
    typed = typed_count(path_profile, node)
    if node is None or node.type is None or not typed:
        return 0
    share = typed / path_profile.count
    distinct = max(min(path_profile.distinct, typed), 1)
    if node.type in (pa.string(), pa.binary()):
        width = 4 + path_profile.string_bytes * share / typed
    else:
        width = node.type.bit_width / 8
    plain = typed * width
    indexed = distinct * width + typed * log2(distinct + 1) / 8
    return max(round(path_profile.scalar_bytes * share + typed * path_profile.entry_bytes - min(plain, indexed)), 0)


def _typed_integers(path_profile: PathProfile, arrow: pa.DataType) -> int:
    if path_profile.int_range is None:
        return 0
    if pa.types.is_decimal(arrow):
        highest = 10 ** (arrow.precision - arrow.scale) - 1
        lowest = -highest
    else:
        lowest, highest = _range_of(arrow)
    low, high = path_profile.int_range
    if lowest <= low and high <= highest:
        fitting = list(INTEGERS)
    else:  # Integers of a narrower encoding are in the range of that encoding.
        ranges = {name: _range_of(TYPES[name].arrow) for name in INTEGERS}
        fitting = [name for name, (low, high) in ranges.items() if lowest <= low and high <= highest]
    return sum(path_profile.types.get(name, 0) for name in fitting)


def _range_of(integer: pa.DataType | None) -> tuple[int, int]:
    assert integer is not None
    bits = integer.bit_width - 1
    return -(2**bits), 2**bits - 1


def _typed_decimals(path_profile: PathProfile, arrow: pa.DataType) -> int:
    count = sum(path_profile.types.get(name, 0) for name in DECIMAL_TYPES)
    if not count:
        return 0
    if pa.types.is_decimal(arrow):
        whole_digits, scale = arrow.precision - arrow.scale, arrow.scale
    else:
        whole_digits, scale = _INTEGER_DIGITS[arrow], 0
    within = path_profile.decimals.cumsum(axis=1).tolist()
    # Each count includes values that break only one limit; in the worst case no value breaks both.
    fitting: int = within[0][min(whole_digits, MAX_PRECISION)] + within[1][min(scale, MAX_PRECISION)] - count
    return max(fitting, 0)
