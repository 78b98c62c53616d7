"""The Arrow types that a shredded ``typed_value`` may have.

Owns the canonical Arrow type of every primitive node, and two conversions to it: strict (types stored in files) and
lenient (types in a user's schema). Leaves types and their names to `types`, and nested types to `arrow_schema` and
`final_storage`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.types import TYPE_OF_ARROW, of_arrow

MAX_PRECISION = 38

DDL_NAMES: dict[str, pa.DataType] = {name: arrow for arrow, row in TYPE_OF_ARROW.items() for name in row.ddl}


def ddl_name(arrow: pa.DataType) -> str:
    """Return the DDL name of a canonical primitive type."""
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return TYPE_OF_ARROW[arrow].ddl[0]


def canonical_primitive(arrow: pa.DataType) -> pa.DataType:
    """Return `arrow` if it is the canonical type of a primitive node.

    Raises `SchemaError` for any other type.
    """
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

    >>> stored_primitive(pa.large_string()), stored_primitive(pa.uint32())
    (DataType(string), None)
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
