"""Finding the Variant columns of a Parquet file, by annotation or by structure, and the shredded groups inside.

Owns finding and choosing Variant columns in a schema tree, and the walk over the groups of every layout, which names
the columns of drafts as the final layout does. Leaves the detection of layouts to `layouts.layout`, shredding schemas
to `ShreddingSchema`, and rules that only the validator checks to `validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.layouts.layout import find_layout, is_lone_typed_value
from parquet_variant.layouts.storage_shape import ddl_name
from parquet_variant.layouts.storages import OBJECT_FIELDS, check_fields
from parquet_variant.support.options import Layout
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath


class VariantColumn(Record):
    """A Variant column of a file."""

    name: str  # The dotted path without the levels of lists and maps.
    node: SchemaNode  # The group in the schema tree.
    layout: Layout
    repeated: bool  # Whether the column is inside a list or map, so that a row may have several values.

    def check_fields(self, file: str) -> None:
        """Raise `SchemaError` (``unknown-field``) if a group has a field that the layout does not know."""
        try:
            check_fields(self.node, self.layout)
        except SchemaError as error:
            raise error.at(file=file) from None

    @property
    def path(self) -> tuple[str, ...]:
        """The schema path, list levels included."""
        return self.node.path


def find_variants(root: SchemaNode) -> list[VariantColumn]:
    """Return all Variant columns inside `root`, in file order.

    If any group has the VARIANT annotation, only annotated groups are returned. Otherwise every group with the
    structure of a Variant: a binary ``metadata`` with ``value`` or ``typed_value``, or a layout of the drafts.
    """
    by_annotation = any(node.annotated for node in root.walk())
    variants: list[VariantColumn] = []

    def search(node: SchemaNode, names: tuple[str, ...], repeated: bool) -> None:
        if node.physical is not None:
            return
        repeated = repeated or node.repetition == "repeated"
        # A level of a Parquet list or map is not a field.
        is_element = node.name == "element" and node.path[-2:-1] == ("list",)
        names = names if names and (node.repetition == "repeated" or is_element) else (*names, node.name)
        layout = find_layout(node)
        if not (node.annotated or (not by_annotation and layout)):
            for child in node.children:
                search(child, names, repeated)
            return
        if not layout:
            layout = "final" if node.child("typed_value") else "unshredded"
            layout = "draft-object" if is_lone_typed_value(node) else layout
        variants.append(VariantColumn(".".join(names), node, layout, repeated))

    for node in root.children:
        search(node, (), False)
    if not variants:
        lone = [node for node in root.children if node.repetition != "repeated" and is_lone_typed_value(node)]
        variants = [VariantColumn(node.name, node, "draft-object", False) for node in lone]
    return variants


def choose_column(root: SchemaNode, name: str | None, file: str) -> VariantColumn:
    """Return the Variant column with a name, or the only one.

    Raises `VariantFileError` if the column does not exist, or several exist and `name` is None; `SchemaError` if the
    column has a field or type that a Variant cannot have.
    """
    variants = find_variants(root)
    if not variants:
        raise no_variant_column([node.name for node in root.children], file)
    names = ", ".join(column.name for column in variants)
    matching = [column for column in variants if name in (None, column.name, column.node.dotted)]
    if not matching:
        problem = f"{name} is not a Variant column: choose from {names}"
        raise VariantFileError(problem, reason="no-such-column", file=file)
    if name is None and len(variants) > 1:
        problem = f"the file has several Variant columns: choose one with column=, from {names}"
        raise VariantFileError(problem, reason="several-variant-columns", file=file)
    column = matching[0]
    column.check_fields(file)
    for leaf in column.node.leaves():
        # Arrow reads some of these as supported types, or as nulls, so they are refused here.
        if leaf_type(leaf) is None and leaf.logical not in ("ENUM", "JSON", "BSON"):
            problem = f"column {leaf.dotted} is {leaf.spelled()}, which the shredding specification does not list"
            raise SchemaError(problem, reason="unsupported-type", file=file)
    return column


def choose_values(root: SchemaNode, name: str | None, file: str) -> VariantColumn:
    """Return a Variant column as `choose_column` does, or else a column of JSON text, whose node is a leaf.

    The text is that of the type ``arrow.json``; `variant_storage` parses it.
    """
    json_nodes = [node for node in root.children if node.logical == "JSON" and name in (None, node.name)]
    if not json_nodes or (name is None and find_variants(root)):
        return choose_column(root, name, file)
    if len(json_nodes) > 1:
        names = ", ".join(node.name for node in json_nodes)
        problem = f"the file has several columns of JSON text: choose one with column=, from {names}"
        raise VariantFileError(problem, reason="several-variant-columns", file=file)
    return VariantColumn(json_nodes[0].name, json_nodes[0], "unshredded", json_nodes[0].repetition == "repeated")


def top_column(root: SchemaNode, name: str, file: str, other_columns: Collection[str] = ()) -> SchemaNode:
    """Return the top-level column with a name; `other_columns` are suggested in the error too.

    Raises `VariantFileError` with reason ``"no-such-column"``, or ``"several-columns"`` if two have the name.
    """
    nodes = [node for node in root.children if node.name == name]
    if len(nodes) > 1:
        problem = f"{len(nodes)} columns have the name {name}: write the file again with unique names"
        raise VariantFileError(problem, reason="several-columns", file=file)
    if not nodes:
        names = ", ".join([*(node.name for node in root.children), *other_columns]) or "none"
        problem = f"no column {name}: choose from {names}, or use a path, such as $.{name.rpartition(':')[2]}"
        raise VariantFileError(problem, reason="no-such-column", file=file)
    return nodes[0]


def no_variant_column(names: Sequence[str], file: str, column: str | None = None) -> VariantFileError:
    """Make the error for a file with columns `names` that has no Variant column, or none with the name `column`."""
    return VariantFileError(
        f"the file has no Variant column{f' {column}' if column else ''}: its columns are "
        f"{', '.join(names) or 'none'}; make one from JSON text with pv.parse_json or `variant ingest --json-column`",
        reason="no-variant-column",
        file=file,
    )


class ShreddedGroup(Record):
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
        if self.typed.leaf is None:
            return "array" if self.typed.is_list else "object"
        arrow = leaf_type(self.typed)
        return self.typed.spelled() if arrow is None else ddl_name(arrow)


def shredded_groups(column: VariantColumn) -> Iterator[ShreddedGroup]:
    """Yield the shredded values of a column, parents first; the root alone for an unshredded column."""
    for group in _groups(final_form(column), VariantPath()):
        # Objects and arrays of the first draft have no columns of their own.
        has_columns = column.layout != "draft-paths" or group.residual or (group.typed and group.typed.is_leaf)
        if has_columns or not group.path.segments:
            yield group


def _groups(group: SchemaNode, path: VariantPath) -> Iterator[ShreddedGroup]:
    shapes = [child for child in group.children if child.name == "typed_value"]
    yield ShreddedGroup(path, group, shapes[0] if shapes else None, group.child("value"))
    for typed in shapes:
        if typed.is_list:
            yield from _groups(typed.element, path / WILDCARD)
        else:
            for child in typed.children:
                yield from _groups(child, path / child.name)


def final_form(column: VariantColumn) -> SchemaNode:
    """Return the group of a column with the names of the final layout; its leaves keep their numbers and paths.

    A group of the second draft may have several shapes, which are all called ``typed_value``.
    """
    if column.layout == "draft-object":
        return _object_form(column.node)
    paths = column.node.child("paths") if column.layout == "draft-paths" else None
    if paths is None:
        return column.node
    form, value = _path_form(paths), column.node.child("value")
    return form if form.child("value") or value is None else replace(form, children=[value, *form.children])


def _object_form(group: SchemaNode) -> SchemaNode:
    children = []
    for node in filter(None, map(group.child, OBJECT_FIELDS)):
        if node.name == "object":
            node = replace(node, children=list(map(_object_form, node.children)), _leaves=None)
        elif node.name == "array":
            node = _with_element(node, _object_form)
        children.append(replace(node, name="value" if node.name == "untyped_value" else "typed_value"))
    return replace(group, children=children, _leaves=None)


def _path_form(group: SchemaNode) -> SchemaNode:
    names = {child.name for child in group.children}
    if names <= {"typed_value", "untyped_value"} and any(child.is_leaf for child in group.children):
        children = [replace(child, name="value") if child.name != "typed_value" else child for child in group.children]
        return replace(group, children=children, _leaves=None)
    if group.is_leaf:
        return group
    children = list(map(_path_form, group.children)) if not group.is_list else _with_element(group, _path_form).children
    typed = replace(group, name="typed_value", children=children, _leaves=None)
    return replace(group, logical="", children=[typed], _leaves=None)


def _with_element(node: SchemaNode, convert: Callable[[SchemaNode], SchemaNode]) -> SchemaNode:
    repeated, element = node.children[0], convert(node.element)
    repeated = element if node.element is repeated else replace(repeated, children=[element], _leaves=None)
    return replace(node, children=[repeated], _leaves=None)
