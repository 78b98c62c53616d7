"""The groups of a shredded Variant column in a file's schema, with their paths, typed columns and residual columns.

Owns the walk over the schema tree of every layout. Leaves shredding schemas of Arrow types to `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.statistics import leaf_type
from parquet_variant.layouts.primitive_types import ddl_name
from parquet_variant.path import WILDCARD, VariantPath


@dataclass(frozen=True, slots=True)
class ShreddedGroup:
    """A shredded value in the file's schema."""

    path: VariantPath  # The path of the value in the Variant.
    group: SchemaNode  # The group in the file's schema.
    typed: SchemaNode | None  # The typed column or group; None if the value is not shredded.
    residual: SchemaNode | None  # The binary column of values of other types; None if it is missing.

    @property
    def type_name(self) -> str:
        """``object``, ``array``, ``variant``, or the type of the typed column as DDL spells it."""
        if self.typed is None:
            return "variant"
        if self.typed.leaf is not None:
            arrow = leaf_type(self.typed)
            try:
                return self.typed.spelled() if arrow is None else ddl_name(arrow)
            except KeyError:
                return self.typed.spelled()
        return "array" if self.typed.is_list else "object"


def shredded_groups(column: VariantColumn) -> Iterator[ShreddedGroup]:
    """Yield the shredded values of a column, parents first; the root alone for an unshredded column."""
    if column.layout == "draft-object":
        yield from _draft_object(column.node, VariantPath())
    elif column.layout == "draft-paths":
        paths = column.node.child("paths")
        yield ShreddedGroup(VariantPath(), column.node, paths, column.node.child("value"))
        if paths is not None:
            yield from _draft_paths(paths, VariantPath(), root=True)
    else:
        yield from _final_groups(column.node, VariantPath())


def _final_groups(group: SchemaNode, path: VariantPath) -> Iterator[ShreddedGroup]:
    typed = group.child("typed_value")
    yield ShreddedGroup(path, group, typed, group.child("value"))
    if typed is None or typed.leaf is not None:
        return
    if typed.is_list:
        yield from _final_groups(typed.element, path / WILDCARD)
        return
    for child in typed.children:
        yield from _final_groups(child, path / child.name)


def _draft_object(group: SchemaNode, path: VariantPath) -> Iterator[ShreddedGroup]:
    parts = {child.name: child for child in group.children}
    typed = parts.get("object") or parts.get("array") or parts.get("typed_value")
    yield ShreddedGroup(path, group, typed, parts.get("untyped_value"))
    for child in parts["object"].children if "object" in parts else ():
        yield from _draft_object(child, path / child.name)
    if "array" in parts:
        yield from _draft_object(parts["array"].element, path / WILDCARD)


def _draft_paths(group: SchemaNode, path: VariantPath, *, root: bool = False) -> Iterator[ShreddedGroup]:
    names = {child.name: child for child in group.children}
    if (
        names
        and names.keys() <= {"typed_value", "untyped_value"}
        and any(child.leaf is not None for child in group.children)
    ):
        if not root:
            yield ShreddedGroup(path, group, names.get("typed_value"), names.get("untyped_value"))
    elif group.is_list:
        yield from _draft_paths(group.element, path / WILDCARD)
    else:
        for child in group.children:
            yield from _draft_paths(child, path / child.name)
