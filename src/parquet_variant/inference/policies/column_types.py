"""The typed column that fits the values at one path best.

Owns the groups of types that share a column, and the exact numeric type. The policies decide whether a path gets a
column.

Integers and decimals are one group ("Exact Numeric" in the specification); no other types share a column. Strings are
not parsed as dates or numbers, because the values would not be written back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from parquet_variant.inference.path_profile import PathProfile
from parquet_variant.layouts.primitive_types import MAX_PRECISION, ddl_name, decimal
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types import DECIMAL_TYPES, EXACT_NUMERIC, INTEGERS, TYPES, VariantType
from parquet_variant.types.path import VariantPath

# Digits of a decimal that is stored as an INT64.
_NARROW = 18
# Share of the decimals that may stay in the residual to make the column 8 instead of 16 bytes wide.
_OUTLIERS = 0.01

# The name and Arrow type of the column for values of one type; decimals have one per precision.
_COLUMN_OF_TYPE: dict[VariantType, tuple[str, pa.DataType | None]] = {
    **{
        name: (ddl_name(info.arrow), info.arrow)
        for name, info in TYPES.items()
        if info.arrow is not None and info.precision is None
    },
    **dict.fromkeys(INTEGERS, (ddl_name(pa.int64()), pa.int64())),
    VariantType.ARRAY: ("array", None),
    VariantType.OBJECT: ("object", None),
}


@dataclass(frozen=True, slots=True)
class ColumnType:
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
    types = path_profile.types
    if len(types) == 1:
        [(variant_type, count)] = types.items()
        if (column := _COLUMN_OF_TYPE.get(variant_type)) is not None:
            return ColumnType(*column, count, {})
    groups = _groups(path_profile)
    if not groups:
        return None
    name = _largest(groups)
    typed = groups.pop(name)
    if name == "number":
        arrow, held = exact_numeric(path_profile)
        if held < typed:
            groups[f"number beyond {ddl_name(arrow)}"] = typed - held
        return ColumnType(ddl_name(arrow), arrow, held, groups)
    return ColumnType(*_COLUMN_OF_TYPE[VariantType(name)], typed, groups)


def has_scalar_column(path_profile: PathProfile) -> bool:
    """Return whether the best column is one of scalars."""
    groups = _groups(path_profile)
    return bool(groups) and _largest(groups) not in ("array", "object")


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


def _groups(path_profile: PathProfile) -> dict[str, int]:
    """Return the number of values by group of types, without Variant nulls."""
    groups: dict[str, int] = {}
    for variant_type, count in path_profile.types.items():
        if variant_type != VariantType.NULL:
            name = "number" if variant_type in EXACT_NUMERIC else str(variant_type)
            groups[name] = groups.get(name, 0) + count
    return groups


def _largest(groups: dict[str, int]) -> str:
    return max(groups, key=lambda group: (groups[group], group))


def exact_numeric(path_profile: PathProfile) -> tuple[pa.DataType, int]:
    """Return the numeric type for the integers and decimals of a path, and the number of values that it surely holds.

    It holds all values if 38 digits suffice; a few outliers are excluded if the other values then fit an INT64.
    """
    types = path_profile.types
    if types.keys().isdisjoint(DECIMAL_TYPES):
        return pa.int64(), sum(count for name, count in types.items() if name in INTEGERS)
    wholes, scales = path_profile.decimals_by_whole_digits, path_profile.decimals_by_scale
    decimals = sum(scales)
    ints = sum(count for name, count in types.items() if name in EXACT_NUMERIC) - decimals
    whole_digits, scale = max(path_profile.whole_digits, 1), path_profile.scale
    if whole_digits + scale <= _NARROW:
        return decimal(whole_digits + scale, scale), ints + decimals
    narrow = _most_frequent([(pa.int64(), ints), _most_typed(wholes, scales, path_profile.int_digits, ints, _NARROW)])
    if narrow[1] >= (1 - _OUTLIERS) * (ints + decimals):
        return narrow
    if whole_digits + scale <= MAX_PRECISION:
        return decimal(whole_digits + scale, scale), ints + decimals
    return _most_frequent(
        [(pa.int64(), ints), _most_typed(wholes, scales, path_profile.int_digits, ints, MAX_PRECISION)]
    )


def _most_frequent(columns: list[tuple[pa.DataType, int]]) -> tuple[pa.DataType, int]:
    return max(columns, key=lambda column: column[1])


def _most_typed(
    wholes: list[int], scales: list[int], int_digits: int, ints: int, precision: int
) -> tuple[pa.DataType, int]:
    """Return the decimal type of a precision that surely holds most values, and their number."""
    below_whole, below_scale = list(accumulate(wholes)), list(accumulate(scales))
    decimals = below_scale[-1]
    best = (0, 0)
    for scale in range(min(precision, len(scales) - 1) + 1):
        whole_digits = precision - scale
        # Each count includes values that break only one limit; in the worst case no value breaks both.
        fitting = below_whole[min(whole_digits, len(wholes) - 1)] + below_scale[scale] - decimals
        fitting = max(fitting, 0) + (ints if int_digits <= whole_digits else 0)
        best = max(best, (fitting, -scale))
    return decimal(precision, -best[1]), best[0]


def is_unreadable_by_spark(kind: pa.DataType) -> bool:
    """Return whether plain Spark 4.3 refuses files with a column of a type.

    >>> is_unreadable_by_spark(pa.uuid()), is_unreadable_by_spark(pa.timestamp("us"))
    (True, False)
    """
    return kind == pa.uuid() or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")
