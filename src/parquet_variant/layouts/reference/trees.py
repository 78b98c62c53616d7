"""Values in pieces, values whose columns conflict, and primitives in a ``typed_value``.

Owns the tree of Variants that all layouts share, and joining it to one Variant; the two policies for conflicts, with
their reasons and messages. Leaves the bytes to `encoding`, and finding conflicts to the layouts.

===========================  ===============================================================================
reason                       meaning
===========================  ===============================================================================
``both-set``                 two columns that exclude each other are set
``non-object-value``         fields are shredded, and the residual is not an object
``shredded-field-in-value``  the residual of an object has a field that is shredded
``object-in-value``          the residual is an object although objects are shredded
``array-in-value``           the residual is an array although arrays are shredded
``array-size``               the residual of an array has a different number of elements (draft ``paths``)
===========================  ===============================================================================

An exact number (int or decimal) can be stored in any int or decimal column that holds it exactly; float and double are
stored only in columns of their own type, and so is every other type (spark-shredding-draft-1-paths, "Shredding
Semantics"; timestamps keep unit and zone). Owns those rules and the Python form of a slot: bool, int (also days, and
microseconds or nanoseconds of times and timestamps), float, Decimal, str, and bytes (also of a uuid). Leaves Arrow
arrays to `storages`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeAlias, get_args

import pyarrow as pa

from parquet_variant.encoding.header import array_bytes, object_bytes, read_container, value_size
from parquet_variant.encoding.metadata import EMPTY_METADATA, dictionary_of
from parquet_variant.encoding.scalars import encode_scalar, read_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError, MalformedVariantError, check_choice
from parquet_variant.support.choices import OnConflict
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPE_OF_ARROW, TYPES, VariantType, decimal_type_for_precision
from parquet_variant.types.path import VariantPath

_CONTAINERS = (VariantType.ARRAY, VariantType.OBJECT, VariantType.NULL)


def slot_of(variant: Variant, arrow: pa.DataType) -> Any | None:
    """Return the slot that holds a value exactly, or None if a column of that canonical Arrow type cannot hold it.

    >>> slot_of(Variant.from_python(123), pa.decimal128(9, 2)), slot_of(Variant.from_python(1.0), pa.int64())
    (Decimal('123.00'), None)
    >>> [slot_of(Variant.from_python(values), pa.list_(pa.int64())) for values in ([1, 2], [1, "x"])]
    [[1, 2], None]
    """
    kind = variant.type
    slots: Any
    if pa.types.is_list(arrow) and kind == VariantType.ARRAY:
        slots = [slot_of(element, arrow.value_type) for element in elements_of_array(variant)]
        return None if None in slots else slots
    if pa.types.is_struct(arrow) and kind == VariantType.OBJECT:
        fields = fields_of_object(variant)
        if fields.keys() != {field.name for field in arrow}:
            return None
        slots = {field.name: slot_of(fields[field.name], field.type) for field in arrow}
        return None if None in slots.values() else slots
    if kind in _CONTAINERS or pa.types.is_nested(arrow):
        return None
    if not pa.types.is_decimal(arrow):
        target = TYPE_OF_ARROW[arrow].type
        if target not in INTEGERS:
            return _raw_value(variant) if kind == target else None
        number = _number(variant, kind, 0)
        width = TYPES[target].width
        assert width is not None
        return number if number is not None and -1 << (8 * width - 1) <= number < 1 << (8 * width - 1) else None
    unscaled = _number(variant, kind, arrow.scale)
    if unscaled is None or abs(unscaled) >= 10**arrow.precision:
        return None
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -arrow.scale))


def _raw_value(variant: Variant) -> Any:
    value = variant.value
    return read_scalar(value, 0, len(value)).raw


def _number(variant: Variant, kind: VariantType, scale: int) -> int | None:
    """Return the unscaled integer of an exact number at a scale, or None if digits would be lost."""
    if kind not in EXACT_NUMERIC:
        return None
    raw = _raw_value(variant)
    unscaled, value_scale = (raw, 0) if kind in INTEGERS else raw
    if value_scale <= scale:
        return unscaled * 10 ** (scale - value_scale)
    quotient, remainder = divmod(unscaled, 10 ** (value_scale - scale))
    return None if remainder else quotient


def tree_of_slot(slot: Any, arrow: pa.DataType) -> Tree:
    """Return the value of a slot; its type is that of the column.

    Raises `MalformedVariantError` for a slot that the column's type cannot hold: a time outside the day, a decimal with
    too many digits.

    >>> tree_of_slot(Decimal("1.50"), pa.decimal128(9, 2)), tree_of_slot(7, pa.int16())
    (<Variant decimal4: 1.5>, <Variant int16: 7>)
    """
    if slot is None:
        return VARIANT_NULL
    if pa.types.is_list(arrow):
        return [tree_of_slot(element, arrow.value_type) for element in slot]
    if pa.types.is_struct(arrow):
        return {field.name: tree_of_slot(slot[field.name], field.type) for field in arrow}
    if pa.types.is_decimal(arrow):
        sign, digits, exponent = slot.as_tuple()
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + arrow.scale) * (-1 if sign else 1)
        if abs(unscaled) >= 10**arrow.precision:
            message = f"the decimal {slot} has too many digits for decimal({arrow.precision},{arrow.scale})"
            raise MalformedVariantError(message, reason="bad-decimal")
        kind, raw = decimal_type_for_precision(arrow.precision), (unscaled, arrow.scale)
    else:
        kind, raw = TYPE_OF_ARROW[arrow].type, slot
    value = encode_scalar(kind, raw)
    if kind == VariantType.TIME:
        read_scalar(value, 0, len(value))
    if kind == VariantType.UUID and len(raw) != TYPES[kind].width:
        raise MalformedVariantError(f"a uuid has {len(raw)} bytes instead of 16", reason="bad-uuid")
    return Variant(EMPTY_METADATA, value)


# A Variant is a piece with its own metadata; a list is an array of pieces, a dict an object of pieces.
Tree: TypeAlias = "Variant | list[Tree] | dict[str, Tree]"

VARIANT_NULL = Variant(EMPTY_METADATA, b"\x00")


def fields_of_object(variant: Variant) -> dict[str, Variant]:
    """Return the fields of an object by name.

    Raises `MalformedVariantError` if a name occurs twice (``duplicate-key``), or values share bytes (``overlap``).
    """
    fields = dict(variant.items())
    check_disjoint(variant, fields.values())
    return fields


def elements_of_array(variant: Variant) -> list[Variant]:
    """Return the elements of an array. Raises `MalformedVariantError` if they share bytes (``overlap``)."""
    elements = list(variant)
    check_disjoint(variant, elements)
    return elements


def bytes_of(variant: Variant) -> bytes:
    """Return the bytes of a value without any bytes that follow it."""
    value = variant.value
    return value[: value_size(value, 0, len(value))]


def check_disjoint(variant: Variant, children: Iterable[Variant]) -> None:
    """Raise an error if the children together have more bytes than their container, so that some bytes must be shared.

    Children that share bytes could make a few bytes stand for any number of values.
    """
    value = variant.value
    container = read_container(value, 0, len(value))
    assert container is not None
    if sum(len(child.value) for child in children) > container.stop - container.values_at:
        raise MalformedVariantError("values overlap: some bytes belong to more than one value", reason="overlap")


def joined(metadata: bytes, tree: Tree) -> Variant:
    """Return a Variant that keeps `metadata` and copies the bytes of its pieces, whose ids are those of `metadata`.

    If `metadata` lacks a name, which the specification does not allow, the result has metadata of only its names.

    >>> metadata = bytes.fromhex("01020001026261")  # b before a
    >>> joined(metadata, {"b": VARIANT_NULL, "a": VARIANT_NULL}).value.hex()
    '020201000001020000'
    """
    dictionary = dictionary_of(metadata)

    def encoded(node: Tree) -> bytes:
        if isinstance(node, Variant):
            return bytes_of(node)
        if isinstance(node, list):
            return array_bytes([encoded(child) for child in node])
        names = sorted(node)
        ids = [dictionary.ids(name.encode())[0] for name in names]
        return object_bytes(ids, [encoded(node[name]) for name in names])

    try:
        return Variant(metadata, encoded(tree))
    except IndexError:
        return Variant.from_python(tree)


_MESSAGES = {
    "both-set": "two columns that exclude each other are set",
    "non-object-value": "fields are shredded, but the residual value is not an object",
    "shredded-field-in-value": "the residual value has a field that is shredded",
    "object-in-value": "an object is stored in the value column although objects are shredded",
    "array-in-value": "an array is stored in the value column although arrays are shredded",
    "array-size": "the residual value is not an array of the size of the shredded array",
}


class Policy:
    """The policy for conflicts.

    ``"error"``: raise `ConflictError`. ``"typed"``: use the typed columns, as the specification requires of engines
    that continue; a value whose typed columns are all null is used as it is stored.
    """

    def __init__(self, on_conflict: OnConflict) -> None:
        check_choice("on_conflict", on_conflict, get_args(OnConflict))
        self.uses_typed = on_conflict == "typed"

    def meet(self, reason: str, path: VariantPath) -> None:
        """Raise `ConflictError`, or return if the typed columns are to be used."""
        if not self.uses_typed:
            raise ConflictError(
                f"{_MESSAGES[reason]}: use on_conflict='typed' to read the typed columns", reason=reason, path=str(path)
            )
