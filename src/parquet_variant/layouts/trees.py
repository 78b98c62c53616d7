"""Values in pieces: what shredding takes apart and reconstruction puts together, and values that contradict themselves.

Owns the tree of Variants that all layouts share, and how it becomes one Variant again; the two policies for conflicts,
the reasons and their wording. Leaves the bytes to `encoding`, finding the contradictions to the layouts.

===========================  ===============================================================================
reason                       meaning
===========================  ===============================================================================
``both-set``                 two columns that exclude each other are set
``non-object-value``         fields are shredded, and the residual is not an object
``shredded-field-in-value``  the residual of an object has a field that has a column of its own
``object-in-value``          the residual is a whole object where objects are shredded
``array-in-value``           the residual is a whole array where arrays are shredded
``array-size``               the residual of an array has another number of elements (draft ``paths``)
===========================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import TypeAlias, get_args

from parquet_variant.choices import OnConflict
from parquet_variant.encoding.header import array_bytes, object_bytes, read_container, value_size
from parquet_variant.encoding.metadata import EMPTY_METADATA, dictionary_of
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError, MalformedVariantError, check_choice
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

# A Variant is a piece with its own metadata; a list is an array, a dict an object of pieces.
Tree: TypeAlias = "Variant | list[Tree] | dict[str, Tree]"

VARIANT_NULL = Variant(EMPTY_METADATA, b"\x00")


def is_null(variant: Variant) -> bool:
    """Tell whether a value is Variant null (``00``)."""
    return variant.type == VariantType.NULL


def fields_of_object(variant: Variant) -> dict[str, Variant]:
    """Give an object's fields by name.

    Raises `MalformedVariantError` if a name comes twice (``duplicate-key``), or values share bytes (``overlap``).
    """
    items = variant.items()
    fields = dict(items)
    if len(fields) < len(items):
        raise MalformedVariantError("an object has two fields of one name", reason="duplicate-key")
    check_apart(variant, fields.values())
    return fields


def elements_of_array(variant: Variant) -> list[Variant]:
    """Give an array's elements. Raises `MalformedVariantError` if they share bytes (``overlap``)."""
    elements = list(variant)
    check_apart(variant, elements)
    return elements


def bytes_of(variant: Variant) -> bytes:
    """Give a value's bytes without what follows them.

    >>> bytes_of(Variant(EMPTY_METADATA, bytes.fromhex("0c01ff"))).hex()
    '0c01'
    """
    value = variant.value
    return value[: value_size(value, 0, len(value))]


def check_apart(variant: Variant, children: Iterable[Variant]) -> None:
    """Raise if children have more bytes together than there are: taken apart, a few could stand for any number."""
    value = variant.value
    container = read_container(value, 0, len(value))
    assert container is not None
    if sum(len(child.value) for child in children) > container.stop - container.values_at:
        raise MalformedVariantError("values overlap: some bytes belong to more than one value", reason="overlap")


def compact(tree: Tree) -> Variant:
    """Make one Variant with metadata of its own: just the names that it uses.

    >>> compact({"a": VARIANT_NULL}).metadata.hex()
    '1101000161'
    """
    return Variant.from_python(tree)


@lru_cache(maxsize=64)
def _ids(metadata: bytes) -> dict[bytes, int]:
    dictionary = dictionary_of(metadata)
    ids: dict[bytes, int] = {}
    for field_id in range(len(dictionary)):
        with suppress(MalformedVariantError):  # a name that nothing uses
            ids.setdefault(dictionary.name_bytes(field_id), field_id)
    return ids


def joined(metadata: bytes, tree: Tree) -> Variant:
    """Make one Variant that keeps `metadata` and copies its pieces, whose ids are those of `metadata` already.

    A name that `metadata` does not have, though the specification asks for all, makes it `compact` instead.

    >>> metadata = bytes.fromhex("01020001026261")  # b before a
    >>> joined(metadata, {"b": VARIANT_NULL, "a": VARIANT_NULL}).value.hex()
    '020201000001020000'
    """
    ids = _ids(metadata)

    def encoded(node: Tree) -> bytes:
        if isinstance(node, Variant):
            return bytes_of(node)
        if isinstance(node, list):
            return array_bytes([encoded(child) for child in node])
        names = sorted(node)
        return object_bytes([ids[name.encode()] for name in names], [encoded(node[name]) for name in names])

    try:
        return Variant(metadata, encoded(tree))
    except KeyError:
        return compact(tree)


_MESSAGES = {
    "both-set": "two columns are set that exclude each other",
    "non-object-value": "fields are shredded, but the value beside them is not an object",
    "shredded-field-in-value": "the value beside the shredded fields has one of them too",
    "object-in-value": "an object is stored in the value column, though objects are shredded here",
    "array-in-value": "an array is stored in the value column, though arrays are shredded here",
    "array-size": "the value beside the shredded array is not an array of that size",
}


class Policy:
    """How to go on when a conflict is met.

    ``"error"``: raise `ConflictError`; ``"typed"``: the typed columns are right, as the specification says for engines
    that choose to go on; a value that has no typed column set is taken as it is.
    """

    def __init__(self, on_conflict: OnConflict) -> None:
        check_choice("on_conflict", on_conflict, get_args(OnConflict))
        self.goes_on = on_conflict == "typed"

    def meet(self, reason: str, path: VariantPath) -> None:
        """Raise `ConflictError`, or return to go on with what is typed."""
        if not self.goes_on:
            raise ConflictError(
                f"{_MESSAGES[reason]}; on_conflict='typed' goes on with the typed columns",
                reason=reason,
                path=str(path),
            )

    def fields_left(self, residual: Variant | None, path: VariantPath) -> dict[str, Tree]:
        """The fields beside the shredded ones, of a residual that must be an object if there is one."""
        if residual is not None and residual.type != VariantType.OBJECT:
            self.meet("non-object-value", path)
            return {}
        return {} if residual is None else {**fields_of_object(residual)}
