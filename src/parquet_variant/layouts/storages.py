"""Storage structs of the three shredded layouts: their canonical types, and how structs of any Arrow form are read.

=============  ===========================================================================================
Layout         Storage of a value
=============  ===========================================================================================
final          ``value``, and ``typed_value``: a primitive, a group of fields, or a list; at the top also
               ``metadata`` (spec: parquet-variant-shredding, "Value Shredding" to "Nesting")
draft-object   one or more of ``untyped_value``, ``object``, ``array`` and ``typed_value``, all optional
               (spark-encoding-and-shredding-draft-2, "Parquet Layout")
draft-paths    at the top ``value``, ``metadata`` and ``paths``; an object in ``paths`` is a group of its
               fields, an array a list, and a leaf has a binary ``untyped_value``, a ``typed_value`` that is
               not nested, or both (spark-shredding-draft-1-paths, "Parquet Layout")
=============  ===========================================================================================

Names that start with ``_`` are ignored next to these, and any other field is an error. Owns also groups of columns, the
common form of Arrow types and of nodes of a Parquet footer. Leaves the values to `layouts.reference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol, Self

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.layouts.storage_shape import (
    TypeTree,
    is_any_list,
    is_binary,
    is_list,
    lenient_primitive,
    refuse_deep,
    stored_primitive,
)
from parquet_variant.support.options import Layout
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath

ROOT = VariantPath()
OBJECT_FIELDS = ("untyped_value", "object", "array", "typed_value")


class ColumnGroup(Protocol):
    """A column or group of columns: a node of a Parquet footer, or an Arrow type."""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a column, not a group."""

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""

    @property
    def is_binary(self) -> bool:
        """Whether it is a column of bytes."""

    @property
    def element(self) -> Self:
        """The element of a list."""

    @property
    def fields(self) -> Mapping[str, Self]:
        """The fields of a group by name; empty for anything else."""

    @property
    def field_count(self) -> int:
        """The number of fields, including fields of the same name."""

    def child(self, name: str) -> Self | None:
        """Return a field of a group by name, or None."""


class ArrowGroup(Record):
    """An Arrow type, and the names on the path to it from the top."""

    type: pa.DataType
    path: tuple[str, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether it is a column, not a group."""
        return not (pa.types.is_struct(self.type) or self.is_list)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return is_list(self.type)

    @property
    def is_binary(self) -> bool:
        """Whether it is a column of bytes."""
        return is_binary(self.type)

    @property
    def fields(self) -> dict[str, ArrowGroup]:
        """The fields of a struct by name; empty for anything else."""
        if not pa.types.is_struct(self.type):
            return {}
        return {field.name: ArrowGroup(field.type, (*self.path, field.name)) for field in self.type}

    @property
    def field_count(self) -> int:
        """The number of fields of a struct, including fields of the same name."""
        return int(self.type.num_fields) if pa.types.is_struct(self.type) else 0

    @property
    def element(self) -> ArrowGroup:
        """The element of a list."""
        return ArrowGroup(self.type.value_type, (*self.path, self.type.value_field.name))

    def child(self, name: str) -> ArrowGroup | None:
        """Return a field of a struct by name; None if it does not exist or is a column of nulls only."""
        indices = self.type.get_all_field_indices(name) if pa.types.is_struct(self.type) else []
        kind = self.type.field(indices[0]).type if indices else pa.null()
        return None if pa.types.is_null(kind) else ArrowGroup(kind, (*self.path, name))

    def leaves(self) -> list[tuple[str, ...]]:
        """Return the leaf columns inside it, each as the names from the top."""
        if self.is_list:
            return self.element.leaves()
        if self.is_leaf:
            return [self.path]
        return [leaf for field in self.type for leaf in ArrowGroup(field.type, (*self.path, field.name)).leaves()]


def known_fields(group: ColumnGroup) -> dict[str, ColumnGroup]:
    """Return the fields of a group by name, without names that start with ``_``."""
    return {name: field for name, field in group.fields.items() if not name.startswith("_")}


class StorageNode(Record):
    """A shredded value in a storage: its columns, and its children.

    A group of the second draft may have several of ``typed``, ``fields`` and ``element``. In the first draft only
    leaves have columns.
    """

    typed: pa.DataType | None = None  # The canonical type of a leaf's ``typed_value``, nested ones in the first draft.
    has_value: bool = False  # Whether there is a ``value`` (in a draft, an ``untyped_value``).
    fields: dict[str, StorageNode] | None = None  # The fields of an object, or None.
    element: StorageNode | None = None  # The element of an array, or None.

    @property
    def is_leaf(self) -> bool:
        """Whether the node is neither an object nor an array."""
        return self.fields is None and self.element is None

    def tree(self) -> TypeTree:
        """Return the shredding schema as a plain tree, with nested typed values as nodes.

        Of several shapes in one group, which a schema cannot express, the first is used.
        """
        if self.fields is not None:
            return {name: child.tree() for name, child in self.fields.items()}
        if self.element is not None:
            return [self.element.tree()]
        return self.typed if self.typed is None or not pa.types.is_nested(self.typed) else tree_from_arrow(self.typed)


def storage_type(tree: TypeTree, layout: Layout) -> pa.StructType:
    """Return the canonical storage struct of a schema in a layout.

    In the final layout ``value`` always exists, and is required only if nothing is shredded. In the drafts all fields
    are optional.
    """
    if layout == "draft-object":
        return _group_type(tree, layout)
    metadata, value = pa.field("metadata", pa.binary()), pa.field("value", pa.binary())
    if layout == "draft-paths":
        return pa.struct([value, metadata, *([] if tree is None else [pa.field("paths", _group_type(tree, layout))])])
    if layout == "unshredded" or tree is None:
        return pa.struct([metadata.with_nullable(False), value.with_nullable(False)])
    return pa.struct([metadata.with_nullable(False), *_group_type(tree, layout)])


def _group_type(tree: TypeTree, layout: Layout) -> pa.DataType:
    is_final = layout == "final"
    name, typed = "typed_value", tree
    if isinstance(tree, dict):
        fields = [pa.field(key, _group_type(child, layout), not is_final) for key, child in tree.items()]
        name, typed = "object", pa.struct(fields)
    elif isinstance(tree, list):
        name, typed = "array", pa.list_(pa.field("element", _group_type(tree[0], layout), not is_final))
    if layout == "draft-paths" and name != "typed_value":
        return typed
    columns = [pa.field("value" if is_final else "untyped_value", pa.binary())]
    if typed is not None:
        columns.append(pa.field("typed_value" if is_final else name, typed))
    return pa.struct(columns[::-1] if layout == "draft-paths" else columns)


@lru_cache(maxsize=64)
def read_storage(storage: pa.DataType, layout: Layout) -> StorageNode:
    """Return the plan for reading a storage struct; a leaf without columns for a first draft without ``paths``.

    Raises `SchemaError` with the path of the group, and a reason: ``unknown-field``, ``duplicate-field``,
    ``not-binary``, ``not-a-group``, ``not-a-list``, ``unsupported-type``, ``empty-object``, ``no-metadata``, and
    ``no-value`` for a group without any column.
    """
    return _Reader(is_strict=True).top(ArrowGroup(storage), layout)


def check_fields(group: ColumnGroup, layout: Layout) -> None:
    """Raise `SchemaError` for a group with a field that its layout does not know, or with two of the same name."""
    _Reader(is_strict=False).top(group, layout)


class _Reader:
    """Reads the groups of a storage; unless it is strict, it checks only the names of fields."""

    def __init__(self, *, is_strict: bool) -> None:
        self.is_strict = is_strict

    def top(self, group: ColumnGroup, layout: Layout) -> StorageNode:
        """Read the group of a Variant column."""
        if layout == "draft-object":
            return self._object_group(group, ROOT)
        last = "paths" if layout == "draft-paths" else "typed_value"
        names = ("value", "metadata", last) if last == "paths" else ("metadata", "value", last)
        fields = self._fields(group, ROOT, names)
        if last == "typed_value":
            self._require("metadata" in fields, "the group is not a Variant: it has no 'metadata'", ROOT, "no-metadata")
            return self._final_value(fields, ROOT)
        has_metadata = "metadata" in fields or "value" not in fields
        self._require(has_metadata, "the group has a 'value' but no 'metadata'", ROOT, "no-metadata")
        return self._path_node(fields["paths"], ROOT) if "paths" in fields else StorageNode()

    def _require(self, holds: bool, message: str, path: VariantPath, reason: str) -> None:
        if self.is_strict and not holds:
            raise _refuse(message, path, reason)

    def _fields(
        self, group: ColumnGroup, path: VariantPath, allowed: tuple[str, ...] = ()
    ) -> Mapping[str, ColumnGroup]:
        """Return the fields of a group by name: all of them, or those that are allowed."""
        if group.is_leaf or group.is_list:
            raise _refuse(f"expected a group, got {_name(group)}", path, "not-a-group")
        fields: Mapping[str, ColumnGroup] = group.fields
        if len(fields) < group.field_count:
            raise _refuse("the group has duplicate field names", path, "duplicate-field")
        if not allowed or (not self.is_strict and fields.keys() <= set(allowed)):
            return fields
        fields = known_fields(group)
        for name, field in fields.items():
            if name not in allowed:
                raise _refuse(
                    f"unknown field {name!r} next to {', '.join(allowed[:-1])} and {allowed[-1]}: a newer writer may "
                    "store values in it, so read the column with the library that wrote it",
                    path,
                    "unknown-field",
                )
            if self.is_strict and name in ("metadata", "value", "untyped_value") and not field.is_binary:
                raise _refuse(f"{name!r} has the type {_name(field)} instead of binary", path, "not-binary")
        return fields

    def _children(
        self, group: ColumnGroup, path: VariantPath, read: Callable[[Any, VariantPath], StorageNode], name: str
    ) -> dict[str, StorageNode]:
        fields = self._fields(group, path)
        self._require(bool(fields), f"{name!r} is a group without fields", path, "empty-object")
        return {name: read(child, path / name) for name, child in fields.items()}

    def _final_group(self, group: ColumnGroup, path: VariantPath) -> StorageNode:
        return self._final_value(self._fields(group, path, ("value", "typed_value")), path)

    def _final_value(self, fields: Mapping[str, ColumnGroup], path: VariantPath) -> StorageNode:
        typed, has_value = fields.get("typed_value"), "value" in fields
        if typed is None:
            self._require(has_value, "the group has neither 'value' nor 'typed_value'", path, "no-value")
            return StorageNode(None, has_value)
        if typed.is_list:
            return StorageNode(None, has_value, element=self._final_group(typed.element, path / WILDCARD))
        if not typed.is_leaf:
            return StorageNode(None, has_value, self._children(typed, path, self._final_group, "typed_value"))
        return StorageNode(self._type(typed, path), has_value)

    def _object_group(self, group: ColumnGroup, path: VariantPath) -> StorageNode:
        columns = self._fields(group, path, OBJECT_FIELDS)
        message = "the group has none of untyped_value, object, array and typed_value"
        self._require(bool(columns), message, path, "no-value")
        typed, inner, array = (columns.get(name) for name in ("typed_value", "object", "array"))
        if self.is_strict and array is not None and not array.is_list:
            raise _refuse(f"'array' is {_name(array)}, not a list", path, "not-a-list")
        return StorageNode(
            None if typed is None else self._type(typed, path),
            "untyped_value" in columns,
            None if inner is None else self._children(inner, path, self._object_group, "object"),
            self._object_group(array.element, path / WILDCARD) if array is not None and array.is_list else None,
        )

    def _path_node(self, group: ColumnGroup, path: VariantPath) -> StorageNode:
        if group.is_list:
            return StorageNode(element=self._path_node(group.element, path / WILDCARD))
        if self.is_strict and group.is_leaf:
            raise _refuse(f"expected a group or a list in 'paths', got {_name(group)}", path, "not-a-group")
        untyped, typed = group.fields.get("untyped_value"), group.fields.get("typed_value")
        has_untyped = untyped is not None and untyped.is_binary
        if has_untyped or (typed is not None and typed.is_leaf):
            self._fields(group, path, ("typed_value", "untyped_value"))
            return StorageNode(None if typed is None else self._type(typed, path, may_nest=True), has_untyped)
        return StorageNode(fields=self._children(group, path, self._path_node, "paths"))

    def _type(self, column: ColumnGroup, path: VariantPath, *, may_nest: bool = False) -> pa.DataType | None:
        """Return the canonical type of a ``typed_value``."""
        if not self.is_strict or not isinstance(column, ArrowGroup):
            return None
        if may_nest and column.is_list:
            return pa.list_(pa.field("element", self._type(column.element, path / WILDCARD, may_nest=True)))
        if may_nest and not column.is_leaf:
            fields = self._fields(column, path).items()
            return pa.struct([pa.field(name, self._type(field, path / name, may_nest=True)) for name, field in fields])
        primitive = stored_primitive(column.type)
        if primitive is None:
            message = f"typed_value has the type {column.type}, which is not a shredded value type"
            raise _refuse(message, path, "unsupported-type")
        return primitive


def _name(group: ColumnGroup) -> str:
    return str(group.type) if isinstance(group, ArrowGroup) else "a column"


def _refuse(message: str, path: VariantPath, reason: str) -> SchemaError:
    return SchemaError(message, reason=reason, path=str(path))


def tree_from_arrow(arrow: pa.Schema | pa.DataType) -> TypeTree:
    """Return the shredding schema of an Arrow schema or type, as a plain tree.

    Raises `SchemaError` for a type that no Variant type holds: nanosecond times, durations, intervals, unions, decimals
    over 38 digits (``unsupported-type``); and for one with too many levels (``too-deep``).
    """
    if not isinstance(arrow, pa.Schema | pa.DataType):
        raise SchemaError(f"expected an Arrow schema or type, got {arrow!r}", reason="unsupported-type")
    kind = pa.struct(list(arrow)) if isinstance(arrow, pa.Schema) else arrow
    refuse_deep(kind)
    return _tree_of_arrow(kind, ROOT)


def _tree_of_arrow(arrow: pa.DataType, path: VariantPath) -> TypeTree:
    if is_any_list(arrow):
        return [_tree_of_arrow(arrow.value_type, path / WILDCARD)]
    if pa.types.is_struct(arrow):
        columns = ArrowGroup(arrow).fields
        is_variant = len(columns) > 1 and columns.keys() <= {"metadata", "value", "typed_value"}
        if is_variant and "metadata" in columns and columns["metadata"].is_binary:
            return read_storage(arrow, "final").tree()
        fields = {field.name: _tree_of_arrow(field.type, path / field.name) for field in arrow}
        if len(fields) < arrow.num_fields:
            raise _refuse("duplicate field names in a struct", path, "duplicate-field")
        return fields or None
    if pa.types.is_map(arrow) or pa.types.is_null(arrow):
        return None
    primitive = lenient_primitive(arrow)
    if primitive is None:
        raise _refuse(f"no Variant type holds {arrow}: cast the column first", path, "unsupported-type")
    return primitive


def tree_to_arrow(tree: TypeTree) -> pa.DataType:
    """Return the logical Arrow type of a schema."""
    if isinstance(tree, list):
        return pa.list_(pa.field("element", tree_to_arrow(tree[0])))
    if isinstance(tree, dict):
        return pa.struct([pa.field(name, tree_to_arrow(child)) for name, child in tree.items()])
    return storage_type(None, "unshredded") if tree is None else tree
