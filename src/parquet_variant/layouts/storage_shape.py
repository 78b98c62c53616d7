"""The plain tree of a shredding schema: its primitive types, its depth, and its union.

Owns the plain tree, which lets modules parse a schema without importing the class whose methods call them; the join of
two schemas, which widens integers and decimals to a type that holds every value of both; and the limit of Parquet
levels that every writer keeps. Owns also the canonical Arrow type of every primitive node, and two conversions to it:
strict (types stored in files) and lenient (types in a user's schema). Leaves storage structs to `layouts.storages`.

A nested object takes two levels in Parquet (the group of the field and its ``typed_value``), a nested array three (the
group, ``typed_value`` and ``list``). Readers limit how many levels they accept:

- pyarrow's C data interface and its IPC format accept 62 levels of Arrow types.
- pyarrow 26 opens Parquet files of up to 98 levels (``schema_depth_limit`` counts more); Apache Doris up to 100.
- DuckDB 2.0 and ClickHouse store a level in one byte: 255.
- parquet-java, Spark and arrow-rs have no limit but the depth of their recursion.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.types import TYPE_OF_ARROW, of_arrow
from parquet_variant.types.forms import nested_types
from parquet_variant.types.path import VariantPath

MAX_PRECISION = 38

DDL_NAMES: dict[str, pa.DataType] = {name: arrow for arrow, row in TYPE_OF_ARROW.items() for name in row.ddl}


def ddl_name(arrow: pa.DataType) -> str:
    """Return the DDL name of a canonical primitive type."""
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return TYPE_OF_ARROW[arrow].ddl[0]


def canonical_primitive(arrow: pa.DataType) -> pa.DataType:
    """Return `arrow` if it is the canonical type of a primitive node. Raises `SchemaError` for any other type."""
    if isinstance(arrow, pa.DataType) and of_arrow(TYPE_OF_ARROW, arrow) is not None:
        return arrow
    if isinstance(arrow, pa.Decimal128Type):
        return decimal(arrow.precision, arrow.scale)
    names = ", ".join(row.ddl[0] for row in TYPE_OF_ARROW.values())
    raise SchemaError(
        f"{arrow} is not a shredded value type: use one of {names}, decimal(p,s), "
        "or ShreddingSchema.from_arrow to convert the type",
        reason="unsupported-type",
    )


def stored_primitive(arrow: pa.DataType) -> pa.DataType | None:
    """Return the canonical type of a stored ``typed_value`` column, or None for one that the specification forbids.

    Only the Arrow form may differ (large, view, dictionary-encoded; any decimal width), not the values: the result is
    None for unsigned integers, milliseconds and the like (spec: "Shredded Value Types").
    """
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return stored_primitive(arrow.value_type)
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow):
        return pa.binary()
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        arrow = pa.timestamp(arrow.unit, "UTC")  # the zone only affects how an instant is displayed
    if pa.types.is_decimal(arrow):
        fits = 0 <= arrow.scale <= arrow.precision <= MAX_PRECISION
        return pa.decimal128(arrow.precision, arrow.scale) if fits else None
    if arrow == pa.binary(16):
        return pa.uuid()  # Arrow readers that do not support UUID return its bytes
    return None if of_arrow(TYPE_OF_ARROW, arrow) is None else arrow


# Types that a user's Arrow schema may have beyond the stored types; each target holds every value of its source.
_LENIENT: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
    pa.timestamp("s"): pa.timestamp("us"),
    pa.timestamp("ms"): pa.timestamp("us"),
}


def lenient_primitive(arrow: pa.DataType) -> pa.DataType | None:
    """Return the canonical type that holds the values of a user's Arrow type, or None."""
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return lenient_primitive(arrow.value_type)
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return pa.timestamp("ns" if arrow.unit == "ns" else "us", "UTC")
    if pa.types.is_decimal(arrow) and arrow.scale < 0 and arrow.precision - arrow.scale <= MAX_PRECISION:
        return pa.decimal128(arrow.precision - arrow.scale, 0)
    return of_arrow(_LENIENT, arrow) or stored_primitive(arrow)


def decimal(precision: int, scale: int) -> pa.DataType:
    """Return the canonical decimal type.

    Raises `SchemaError` if precision is not 1 to 38, or scale not 0 to precision (``bad-decimal``).
    """
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise SchemaError(
            f"decimal({precision},{scale}) cannot be stored: the precision is 1 to 38, the scale 0 to the precision",
            reason="bad-decimal",
        )
    return pa.decimal128(precision, scale)


# Levels of a Variant column, from its own group to its deepest leaf: 24 nested objects, or 16 nested arrays.
MAX_PHYSICAL_DEPTH = 50
# Levels of a file, from a top-level column to the deepest leaf: Variants inside structs and lists have fewer.
MAX_FILE_DEPTH = 62
# Levels of an unshredded Variant: its group and `value`.
UNSHREDDED_DEPTH = 2


def depth_limit(levels_above: int = 0) -> int:
    """Return how many levels a Variant column may have under a number of levels of structs, lists and maps."""
    return max(UNSHREDDED_DEPTH, min(MAX_PHYSICAL_DEPTH, MAX_FILE_DEPTH - levels_above))


def path_depth(path: VariantPath) -> int:
    """Return the levels of a Variant column that has a leaf at a path."""
    return UNSHREDDED_DEPTH + sum(2 if isinstance(segment, str) else 3 for segment in path.segments)


def too_deep(path: VariantPath) -> SchemaError:
    """Make the error for an explicit schema whose node at a path is deeper than the limit."""
    deepest = path
    while path_depth(deepest) > MAX_PHYSICAL_DEPTH:
        deepest = deepest.parent
    return SchemaError(
        f"the shredding schema is too deep: {path.shorthand} takes {path_depth(path)} Parquet levels, and the limit is "
        f"{MAX_PHYSICAL_DEPTH}, because readers refuse deeper files; make {deepest.shorthand} a variant",
        reason="too-deep",
        path=str(path),
    )


# None: an untyped variant. An Arrow type: a typed column. A list of one node: an array. A dict: an object's fields.
TypeTree: TypeAlias = "pa.DataType | list[TypeTree] | dict[str, TypeTree] | None"


# Two Arrow structs per level: deeper than Parquet readers support, and shallow enough for recursive functions.
MAX_DEPTH = 200


def refuse_deep(arrow: pa.DataType) -> None:
    """Raise `SchemaError` (``too-deep``) for an Arrow type with more levels than a schema may have."""
    if max(depth for _, depth in nested_types(arrow)) > MAX_DEPTH:
        message = f"the Arrow type is nested more than {MAX_DEPTH} levels deep: use Variants for the inner levels"
        raise SchemaError(message, reason="too-deep")


def is_binary(arrow: pa.DataType) -> bool:
    """Return whether a type holds bytes, in any Arrow form."""
    return stored_primitive(arrow) == pa.binary()


def is_list(arrow: pa.DataType) -> bool:
    """Return whether a type is a list of variable length, in any Arrow form."""
    return (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def is_any_list(arrow: pa.DataType) -> bool:
    """Return whether a type is a list of variable or fixed length, in any Arrow form."""
    return is_list(arrow) or pa.types.is_fixed_size_list(arrow)


# Decimal digits that hold every value of an integer type.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def common_numeric(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the narrowest integer or decimal type that holds every value of both types, or None."""
    if a == b:
        return a
    if a in _DIGITS and b in _DIGITS:
        return max(a, b, key=_DIGITS.__getitem__)
    integer_digits, fraction_digits = 0, 0
    for arrow in (a, b):
        if arrow in _DIGITS:
            integer_digits = max(integer_digits, _DIGITS[arrow])
        elif pa.types.is_decimal(arrow):
            integer_digits = max(integer_digits, arrow.precision - arrow.scale)
            fraction_digits = max(fraction_digits, arrow.scale)
        else:
            return None
    precision = integer_digits + fraction_digits
    return pa.decimal128(precision, fraction_digits) if precision <= MAX_PRECISION else None


def merge_trees(a: TypeTree, b: TypeTree) -> TypeTree:
    """Return the union of two schemas."""
    if a == b:
        return a
    if isinstance(a, dict) and isinstance(b, dict):
        return a | {name: merge_trees(a[name], child) if name in a else child for name, child in b.items()}
    if isinstance(a, list) and isinstance(b, list):
        return [merge_trees(a[0], b[0])]
    if isinstance(a, pa.DataType) and isinstance(b, pa.DataType):
        return common_numeric(a, b)
    return None
