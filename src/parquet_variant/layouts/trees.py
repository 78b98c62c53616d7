"""Values in pieces: what shredding takes apart and reconstruction puts together.

Owns the tree of Variants that all layouts share, and how it becomes one Variant again. Leaves the bytes to `encoding`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from parquet_variant.encoding.header import array_bytes, object_bytes
from parquet_variant.encoding.metadata import EMPTY_METADATA, decode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.types import VariantType

__all__ = ["VARIANT_NULL", "Tree", "compact", "fields_of_object", "is_null", "joined"]

# A Variant is a piece with its own metadata; a list is an array, a dict an object of pieces.
Tree: TypeAlias = "Variant | list[Tree] | dict[str, Tree]"

VARIANT_NULL = Variant(EMPTY_METADATA, b"\x00")


def is_null(variant: Variant) -> bool:
    """Tell whether a value is Variant null (``00``)."""
    return variant.type == VariantType.NULL


def fields_of_object(variant: Variant) -> dict[str, Variant]:
    """Give an object's fields by name.

    Raises
    ------
    MalformedVariantError
        If a name comes twice (``duplicate-key``).
    """
    items = variant.items()
    fields = dict(items)
    if len(fields) < len(items):
        raise MalformedVariantError("an object has two fields of one name", reason="duplicate-key")
    return fields


def compact(tree: Tree) -> Variant:
    """Make one Variant with metadata of its own: just the names that it uses.

    Examples
    --------
    >>> compact({"a": VARIANT_NULL}).metadata.hex()
    '1101000161'
    """
    return Variant.from_python(tree)


@lru_cache(maxsize=64)
def _ids(metadata: bytes) -> dict[str, int]:
    names = decode_metadata(metadata)
    return {names[field_id]: field_id for field_id in reversed(range(len(names)))}


def joined(metadata: bytes, tree: Tree) -> Variant:
    """Make one Variant that keeps `metadata` and copies its pieces, whose ids are those of `metadata` already.

    A name that `metadata` does not have, though the specification asks for all, makes it `compact` instead.

    Examples
    --------
    >>> metadata = bytes.fromhex("01020001026261")  # b before a
    >>> joined(metadata, {"b": VARIANT_NULL, "a": VARIANT_NULL}).value.hex()
    '020201000001020000'
    """
    ids = _ids(metadata)

    def encoded(node: Tree) -> bytes:
        if isinstance(node, Variant):
            return node.value
        if isinstance(node, list):
            return array_bytes([encoded(child) for child in node])
        names = sorted(node)
        return object_bytes([ids[name] for name in names], [encoded(node[name]) for name in names])

    try:
        return Variant(metadata, encoded(tree))
    except KeyError:
        return compact(tree)
