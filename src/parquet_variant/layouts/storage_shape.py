"""The plain tree of a schema, and checks that the storage structs of all layouts share.

Owns the plain tree, which lets modules parse a schema without importing the class whose methods call them; finding
fields by name, and the predicates for binaries, groups and lists. Leaves the rules of each layout to its own module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.layouts.primitive_types import stored_primitive
from parquet_variant.path import VariantPath
from parquet_variant.types.forms import nesting_depth

# None: an untyped variant. An Arrow type: a typed column. A list of one node: an array. A dict: an object's fields.
TypeTree: TypeAlias = "pa.DataType | list[TypeTree] | dict[str, TypeTree] | None"


class SchemaNode(Protocol):
    """A node of a shredding schema, as the modules that spell and store schemas read it.

    `ShreddingSchema` is the implementation. It imports those modules, so they may not import it.
    """

    @property
    def kind(self) -> str:
        """``"variant"``, ``"primitive"``, ``"array"`` or ``"object"``."""

    @property
    def type(self) -> pa.DataType | None:
        """The Arrow type of a primitive, else None."""

    @property
    def element(self) -> SchemaNode | None:
        """The schema of an array's elements, else None."""

    @property
    def fields(self) -> Sequence[tuple[str, SchemaNode]]:
        """The fields of an object by name, else empty."""


def tree_of_node(node: SchemaNode) -> TypeTree:
    """Return the plain tree of a schema node."""
    if node.element is not None:
        return [tree_of_node(node.element)]
    if node.kind == "object":
        return {name: tree_of_node(child) for name, child in node.fields}
    return node.type


# Two Arrow structs per level: deeper than Parquet readers support, and shallow enough for recursive functions.
MAX_DEPTH = 200


def refuse_deep(arrow: pa.DataType) -> None:
    """Raise `SchemaError` (``too-deep``) for an Arrow type with more levels than a schema may have."""
    if nesting_depth(arrow) > MAX_DEPTH:
        raise SchemaError(
            f"the Arrow type is nested more than {MAX_DEPTH} levels deep: use Variants for the inner levels",
            reason="too-deep",
        )


def refuse(message: str, path: VariantPath, reason: str) -> SchemaError:
    """Return the error for a storage struct that a layout does not allow."""
    return SchemaError(message, reason=reason, path=str(path))


def shredded_type(arrow: pa.DataType, path: VariantPath) -> pa.DataType:
    """Return the canonical type of a ``typed_value``. Raises `SchemaError` (``unsupported-type``) if it cannot be
    shredded.
    """
    primitive = stored_primitive(arrow)
    if primitive is None:
        raise refuse(f"typed_value has the type {arrow}, which is not a shredded value type", path, "unsupported-type")
    return primitive


def is_binary(arrow: pa.DataType) -> bool:
    """Return whether a type holds bytes, in any Arrow form.

    >>> is_binary(pa.dictionary(pa.int32(), pa.binary())), is_binary(pa.string())
    (True, False)
    """
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return is_binary(arrow.value_type)
    return pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow)


def is_list(arrow: pa.DataType) -> bool:
    """Return whether a type is a list of variable length, in any Arrow form."""
    return (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def fields_of(arrow: pa.DataType, path: VariantPath) -> dict[str, pa.Field]:
    """Return the fields of a group by name.

    Raises `SchemaError` if the type is not a struct (``not-a-group``) or has duplicate names (``duplicate-field``).
    """
    if not isinstance(arrow, pa.StructType):
        raise refuse(f"expected a group, got {arrow}", path, "not-a-group")
    fields = {field.name: field for field in arrow}
    if len(fields) < arrow.num_fields:
        raise refuse("the group has duplicate field names", path, "duplicate-field")
    return fields


def check_known(names: Iterable[str], allowed: tuple[str, ...], path: VariantPath) -> None:
    """Raise `SchemaError` (``unknown-field``) for the first name that is not allowed in a group."""
    for name in names:
        if name not in allowed:
            allowed_names = f"{', '.join(allowed[:-1])} and {allowed[-1]}"
            raise refuse(
                f"unknown field {name!r} next to {allowed_names}: a newer writer may store values in it, so read the "
                "column with the library that wrote it",
                path,
                "unknown-field",
            )


def value_fields(arrow: pa.DataType, allowed: tuple[str, ...], path: VariantPath) -> dict[str, pa.Field]:
    """Return the fields of one shredded value: those in `allowed`, without names that start with ``_``.

    Raises `SchemaError` for any other field (``unknown-field``), or a binary column that is not binary
    (``not-binary``).
    """
    fields = {name: field for name, field in fields_of(arrow, path).items() if not name.startswith("_")}
    check_known(fields, allowed, path)
    for name, field in fields.items():
        if name in ("metadata", "value", "untyped_value") and not is_binary(field.type):
            raise refuse(f"{name!r} has the type {field.type} instead of binary", path, "not-binary")
    return fields
