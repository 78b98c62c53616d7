"""Detection of the layout of a Variant column from the shape of its group, and paths through its columns.

Owns the one detector, for Arrow types in memory and for groups in a Parquet footer; the shredding schema of a column of
a file; and the step from a group to the group of a field or element, or to the bytes that may hold it. By the
specification ("Objects", "Arrays"), a shredded field is never stored in the ``value`` above it. Leaves the rules of
each layout to the module that reads it: the detector recognizes a Variant group that has unknown fields or unsupported
types, and reading the group then raises the error.

=============  ===========================================================================================
Layout         Fields; names that begin with ``_`` are ignored
=============  ===========================================================================================
unshredded     ``metadata`` and ``value``, both binary
final          binary ``metadata``, ``typed_value``, and ``value`` if it is binary
draft-paths    ``paths`` (a group or list), binary ``metadata``, and ``value`` if it is binary
draft-object   ``untyped_value`` (binary), ``object`` (a group of such groups), ``array`` (a list of them),
               ``typed_value``: at least one, and not only ``typed_value``
=============  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Generic, TypeVar

import pyarrow as pa

from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.layouts.parquet_reader import MAX_SCHEMA_DEPTH, open_parquet, too_deep
from parquet_variant.layouts.storage_shape import TypeTree
from parquet_variant.layouts.storages import OBJECT_FIELDS, ArrowGroup, ColumnGroup, known_fields, read_storage
from parquet_variant.support.options import Layout
from parquet_variant.support.records import Record
from parquet_variant.types.path import Segment, VariantPath


class Step(Enum):
    """The result of a step of a path."""

    FOUND = auto()  # The value has its own group of columns.
    NOT_SHREDDED = auto()  # The value may be in the bytes of the group's ``value``.
    MISSING = auto()  # The value does not exist: the group has no ``value`` column.


Columns = TypeVar("Columns", bound=ColumnGroup)


def next_group(group: Columns, segment: Segment) -> tuple[Step, Columns | None]:
    """Return the result of a step from a group with ``value`` and ``typed_value``, and the group of a found value."""
    typed = group.child("typed_value")
    if typed is not None and typed.is_list != isinstance(segment, str):
        group_of_value = typed.child(segment) if isinstance(segment, str) else typed.element
        if group_of_value is not None:
            return Step.FOUND, group_of_value
    return (Step.MISSING if group.child("value") is None else Step.NOT_SHREDDED), None


class PathEnd(Generic[Columns], Record):
    """The end of a path in a schema."""

    group: Columns  # The group of the value, or the last group that the path reaches.
    step: Step  # `Step.FOUND` if `group` is the group of the value, else the result of the next step from `group`.
    is_repeated: bool  # Whether the path passes through a list.


def walk_path(group: Columns, path: VariantPath) -> PathEnd[Columns]:
    """Follow a path from the group of a Variant column."""
    is_repeated = False
    for segment in path.segments:
        step, child = next_group(group, segment)
        if child is None or child.is_leaf:  # a column in place of a group, which the specification does not allow
            return PathEnd(group, Step.NOT_SHREDDED if child else step, is_repeated)
        is_repeated = is_repeated or not isinstance(segment, str)
        group = child
    return PathEnd(group, Step.FOUND, is_repeated)


def find_layout(group: ColumnGroup) -> Layout | None:
    """Return the layout of a group that nothing marks as a Variant; None if its shape is not one.

    A Variant group with unknown fields has a layout, so that it is refused when it is read: a group inside of it must
    not be mistaken for a column of its own. A group of ``metadata``, ``value`` and other fields is an ordinary struct.
    """
    fields = known_fields(group)
    metadata, value = fields.get("metadata"), fields.get("value")
    if metadata is not None and metadata.is_binary and (value is None or value.is_binary):
        if "paths" in fields and (fields["paths"].is_list or fields["paths"].fields):
            return "draft-paths"
        if "typed_value" in fields:
            return "final"
        if fields.keys() == {"metadata", "value"}:
            return "unshredded"
    return "draft-object" if _is_draft_object(fields) else None


def is_lone_typed_value(group: ColumnGroup) -> bool:
    """Return whether a group is a draft-2 root of only a primitive ``typed_value``.

    Its name is the only sign of a Variant, so a file must have no other Variant column, and the group be a column.
    """
    fields = known_fields(group)
    typed = fields.get("typed_value")
    return typed is not None and len(fields) == 1 and not typed.is_list and not typed.fields


def _is_draft_object(fields: Mapping[str, ColumnGroup]) -> bool:
    """Return whether fields are those of a draft-2 group.

    Unknown fields are possible only if the others are unmistakable: an ordinary struct may have a field ``object`` too.
    """
    untyped, inner, array = fields.get("untyped_value"), fields.get("object"), fields.get("array")
    if (untyped is not None and not untyped.is_binary) or (array is not None and not array.is_list):
        return False
    groups = [*(inner.fields.values() if inner is not None else ()), *([array.element] if array is not None else ())]
    if inner is not None and not inner.fields:
        return False
    for group in groups:  # each can be nested in a draft, perhaps with fields that are refused later
        parts = known_fields(group)
        if parts.keys().isdisjoint(("typed_value", "untyped_value")) and not _is_draft_object(parts):
            return False
    if fields.keys() <= set(OBJECT_FIELDS):
        return untyped is not None or bool(groups)
    if untyped is not None:
        return len(fields.keys() & set(OBJECT_FIELDS)) > 1
    return any("untyped_value" in group.fields for group in groups)


def detect_layout(storage: pa.DataType) -> Layout:
    """Return the layout of a struct that the caller passes as a Variant; raises `SchemaError` (``not-a-variant``).

    Beyond `find_layout`, only the caller's word may make a field, such as a lone ``typed_value``, that of a Variant.
    """
    layout = _layout_of_names(storage)
    if layout is None:
        names = ", ".join(ArrowGroup(storage).fields) or "no fields"
        message = f"a struct of {names} is not a Variant column in any layout: expected metadata and value"
        raise SchemaError(message, reason="not-a-variant")
    return layout


def _layout_of_names(storage: pa.DataType) -> Layout | None:
    names = {name for name in storage.names if name[:1] != "_"} if isinstance(storage, pa.StructType) else set()
    if "paths" in names:
        return "draft-paths"
    if "metadata" in names and names & {"value", "typed_value"}:
        return "final" if "typed_value" in names else "unshredded"
    if names and names <= set(OBJECT_FIELDS):
        return "draft-object"
    return find_layout(ArrowGroup(storage))


def tree_of_layout(storage: pa.DataType) -> TypeTree:
    """Return the shredding schema of a storage struct of any layout, as a plain tree; raises `SchemaError`."""
    if not isinstance(storage, pa.StructType):
        raise SchemaError(f"expected a struct, got {storage!r}", reason="not-a-group", path="$")
    return read_storage(storage, _layout_of_names(storage) or "final").tree()


def tree_of_parquet(file: Any, column: str | None = None, filesystem: Any = None) -> TypeTree:
    """Return the shredding schema of a Variant column, as a plain tree.

    Raises `VariantFileError` if the file cannot be read; `SchemaError` (``no-such-column``) without exactly one column.
    """
    try:
        with open_parquet(file, filesystem=filesystem) as opened:
            schema = opened.schema_arrow
    except VariantFileError:
        raise
    except (pa.ArrowException, OSError, TypeError, UnicodeError) as error:
        name = file if isinstance(file, str) else None
        raise VariantFileError(f"cannot read the footer: {error}", reason="bad-footer", file=name) from None
    return tree_of_schema(schema, column)


def tree_of_schema(schema: pa.Schema, column: str | None = None) -> TypeTree:
    """Return the shredding schema of a Variant column of a file with an Arrow schema, as `tree_of_parquet` does."""
    if column is not None:
        groups = dict(_groups(schema, only_variants=False))
        if column not in groups:
            raise SchemaError(f"{column!r} is not a group column of the file", reason="no-such-column")
        return tree_of_layout(groups[column])
    groups = dict(_groups(schema, only_variants=True))
    if not groups:
        groups = {field.name: field.type for field in schema if is_lone_typed_value(ArrowGroup(field.type))}
    if len(groups) != 1:
        names = ", ".join(groups) or "none"
        raise SchemaError(
            f"the file has {len(groups)} Variant columns ({names}): name one with column=", reason="no-such-column"
        )
    return tree_of_layout(next(iter(groups.values())))


def _groups(schema: pa.Schema, *, only_variants: bool) -> Iterator[tuple[str, pa.StructType]]:
    """Yield names and types of groups, outer ones first; `only_variants`: Variant columns without their groups."""
    remaining = [(field.name, field.type, 1) for field in reversed(list(schema))]
    while remaining:
        name, kind, depth = remaining.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise too_deep(None)
        if pa.types.is_struct(kind):
            is_variant = find_layout(ArrowGroup(kind)) is not None
            if is_variant or not only_variants:
                yield name, kind
            if not (is_variant and only_variants):
                remaining += [(f"{name}.{field.name}", field.type, depth + 1) for field in reversed(list(kind))]
