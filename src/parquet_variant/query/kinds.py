"""The Variants in the result of an expression: an Arrow type that is a Variant or has Variants inside, else None.

Owns the types of elements and fields. Leaves which expressions access them to `values` and `nested`.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

Kind: TypeAlias = pa.DataType | None


def is_variant(kind: Kind) -> bool:
    """Return whether a type is the storage of a Variant.

    >>> is_variant(pa.struct([("metadata", pa.binary()), ("value", pa.binary())])), is_variant(pa.binary())
    (True, False)
    """
    if kind is None or not pa.types.is_struct(kind) or {child.name for child in kind} != {"metadata", "value"}:
        return False
    kinds = [child.type.value_type if pa.types.is_dictionary(child.type) else child.type for child in kind]
    return all(map(pa.types.is_binary, kinds))


def holds_variants(kind: pa.DataType) -> bool:
    """Return whether a type is the storage of a Variant, or has one inside."""
    return is_variant(kind) or any(holds_variants(kind.field(index).type) for index in range(kind.num_fields))


def only_variants(kind: Kind) -> Kind:
    """Return the type if it has a Variant inside, else None."""
    return kind if kind is not None and holds_variants(kind) else None


def element_of(kind: Kind) -> Kind:
    """Return the kind of the elements of a list, or of the values of a map."""
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    return only_variants(kind.item_type if pa.types.is_map(kind) else kind.value_type)


def field_of(kind: Kind, name: str) -> Kind:
    """Return the kind of a field of a struct; names ignore letter case, as in the engines."""
    if kind is None or not pa.types.is_struct(kind):
        return None
    return next((only_variants(field.type) for field in kind if field.name.lower() == name.lower()), None)
