"""The type of a value as Spark's ``schema_of_variant`` returns it, and the merging of types.

Owns the types (`SparkType`), their merging and their text. Leaves columns to `ops.value_types`.

Exact numbers merge to the decimal that holds both, or to DOUBLE if that would have more than 38 digits; types that have
no common type merge to VARIANT. Merging is commutative and associative, so that the order of rows does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from typing import Any

from parquet_variant.encoding.scalars import MAX_DIGITS
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import tree_of_events
from parquet_variant.errors import VariantError
from parquet_variant.support.records import Record
from parquet_variant.types import DECIMAL_TYPES, TYPES, VariantType
from parquet_variant.types.path import quote_name

# Types are nested like their values, but compared and written recursively.
MAX_DEPTH = 200
# A BIGINT among decimals counts as this many digits.
BIGINT_DIGITS = 20
# Each type holds the types before it, as Spark widens them.
_DATETIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ_NANOS", "TIMESTAMP", "TIMESTAMP_NANOS")


class SparkType(Record):
    """A type as Spark spells it."""

    name: str  # Spark's name: ``BIGINT``, ``DECIMAL``, ``ARRAY``, ``OBJECT``, ``VOID``, ``VARIANT``, …
    # Digits of a decimal before and after the point.
    integer_digits: int = 0
    scale: int = 0
    element: SparkType | None = None  # The element type of an array.
    fields: tuple[tuple[str, SparkType], ...] = ()  # The fields of an object, in the order of their names.

    def __str__(self) -> str:
        if self.name == "DECIMAL":
            return f"DECIMAL({self.integer_digits + self.scale},{self.scale})"
        if self.name == "ARRAY":
            return f"ARRAY<{self.element}>"
        if self.name == "OBJECT":
            return f"OBJECT<{', '.join(f'{quote_name(name)}: {field}' for name, field in self.fields)}>"
        return self.name


VOID = SparkType("VOID")
_VARIANT = SparkType("VARIANT")
_DOUBLE = SparkType("DOUBLE")


def object_type(fields: dict[str, SparkType]) -> SparkType:
    """Return the type of an object; its fields are in Spark's order, the order of UTF-16."""
    return SparkType("OBJECT", fields=tuple(sorted(fields.items(), key=lambda item: name_order(item[0]))))


def name_order(name: str) -> bytes:
    """Return the key by which the fields of a type are sorted."""
    return name.encode("utf-16-be", "surrogatepass")


def decimal_type(unscaled: int, scale: int) -> SparkType:
    """Return the narrowest decimal for a number without the trailing zeros of its fraction."""
    while scale and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    digits = max(len(str(abs(unscaled))), scale)
    return SparkType("DECIMAL", integer_digits=digits - scale, scale=scale)


@cache
def scalar_type(kind: VariantType) -> SparkType:
    """Return the type of a scalar that is not a decimal; a type that Spark lacks has its own name."""
    return SparkType(TYPES[kind].spark or kind.value.upper())


def schema_of(variant: Variant) -> SparkType:
    """Return the type of a value; raises `VariantError` with reason ``depth`` for a value deeper than 200.

    >>> str(schema_of(Variant.from_python({"a": [1, 2.5], "b c": None})))
    'OBJECT<a: ARRAY<DOUBLE>, `b c`: VOID>'
    """
    tree = tree_of_events(
        variant._walk(),
        lambda kind, raw, start, stop: decimal_type(*raw) if kind in DECIMAL_TYPES else scalar_type(VariantType(kind)),
    )
    return _type_of_tree(tree, MAX_DEPTH)


def _type_of_tree(tree: SparkType | list[Any] | dict[str, Any], levels: int) -> SparkType:
    """Return the type of lists and dicts of types."""
    if isinstance(tree, SparkType):
        return tree
    if not levels:
        raise VariantError(f"the value is nested deeper than {MAX_DEPTH} levels", reason="depth")
    if isinstance(tree, dict):
        return object_type({name: _type_of_tree(child, levels - 1) for name, child in tree.items()})
    return SparkType("ARRAY", element=merge_all([_type_of_tree(child, levels - 1) for child in tree]))


def merge_all(types: Iterable[SparkType]) -> SparkType:
    """Return the type that holds all types; VOID for no types."""
    return reduce(merged, types, VOID)


def merged(left: SparkType, right: SparkType) -> SparkType:
    """Return the type that holds two types.

    >>> str(merged(SparkType("BIGINT"), decimal_type(25, 1))), str(merged(SparkType("STRING"), SparkType("BOOLEAN")))
    ('DECIMAL(21,1)', 'VARIANT')
    """
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    names = {left.name, right.name}
    if names <= {"BIGINT", "DECIMAL"}:
        digits = max(BIGINT_DIGITS if side.name == "BIGINT" else side.integer_digits for side in (left, right))
        scale = max(left.scale, right.scale)
        return SparkType("DECIMAL", integer_digits=digits, scale=scale) if digits + scale <= MAX_DIGITS else _DOUBLE
    if names <= {"BIGINT", "FLOAT"}:
        return SparkType("FLOAT")
    if names <= {"BIGINT", "DECIMAL", "FLOAT", "DOUBLE"}:
        return _DOUBLE
    if names <= set(_DATETIMES):
        widest = max(left.name, right.name, key=_DATETIMES.index)
        if "TIMESTAMP_NTZ_NANOS" in names and widest == "TIMESTAMP":
            widest = "TIMESTAMP_NANOS"
        return SparkType(widest)
    if names == {"ARRAY"}:
        return SparkType("ARRAY", element=merged(left.element or VOID, right.element or VOID))
    if names == {"OBJECT"}:
        fields = dict(left.fields)
        for name, field in right.fields:
            fields[name] = merged(fields[name], field) if name in fields else field
        return object_type(fields)
    return _VARIANT
