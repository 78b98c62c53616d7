"""What expressions give as far as Variants are in it: an Arrow type that is a Variant or holds some; None for all else.

Owns what is taken out of lists, maps and structs with Variants in them. Leaves which expressions do so to `values`.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

Kind: TypeAlias = pa.DataType | None


def is_variant(kind: Kind) -> bool:
    """Whether a type is a Variant's storage.

    >>> is_variant(pa.struct([("metadata", pa.binary()), ("value", pa.binary())])), is_variant(pa.binary())
    (True, False)
    """
    if kind is None or not pa.types.is_struct(kind) or {child.name for child in kind} != {"metadata", "value"}:
        return False
    kinds = [child.type.value_type if pa.types.is_dictionary(child.type) else child.type for child in kind]
    return all(pa.types.is_binary(each) for each in kinds)


def holds_variants(kind: pa.DataType) -> bool:
    """Whether a type is a Variant's storage, or has one in it."""
    return is_variant(kind) or any(holds_variants(kind.field(index).type) for index in range(kind.num_fields))


def only_variants(kind: Kind) -> Kind:
    """The type, if a Variant is in it."""
    return kind if kind is not None and holds_variants(kind) else None


def element_of(kind: Kind) -> Kind:
    """What the elements of a list, or the values of a map, are."""
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    return only_variants(kind.item_type if pa.types.is_map(kind) else kind.value_type)


def field_of(kind: Kind, name: str) -> Kind:
    """What a field of a struct is; names in any case, as in the engines."""
    if kind is None or not pa.types.is_struct(kind):
        return None
    return next((only_variants(each.type) for each in kind if each.name.lower() == name.lower()), None)
