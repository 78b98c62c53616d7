"""Which columns of a Parquet file are Variants: by their annotation, or by their shape.

Owns finding and choosing Variant columns in a schema tree. Leaves the shredding schema inside of one to
`schema.ShreddingSchema`, and rules that only a validator holds against a file to `validate`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from parquet_variant.choices import Layout
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.schema.layout import check_fields, find_layout


@dataclass(frozen=True, slots=True)
class VariantColumn:
    """A Variant column of a file.

    Parameters
    ----------
    name
        How a person names it: the schema path without the levels that only lists and maps have.
    node
        The group in the schema tree.
    layout
        ``"unshredded"``, ``"final"``, ``"draft-paths"`` or ``"draft-object"``.
    repeated
        Whether it lies inside a list or map, and so has not one value a row.
    """

    name: str
    node: SchemaNode
    layout: Layout
    repeated: bool

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
    """All Variant columns below `root`, in file order.

    If any group carries the VARIANT annotation, the annotated groups are the answer. Otherwise every group that has
    the shape of one: a binary ``metadata`` beside ``value`` or ``typed_value``, or one of the two older drafts.
    """
    by_annotation = any(node.annotated for node in root.walk())
    variants: list[VariantColumn] = []
    for node in root.children:
        _search(node, (), False, by_annotation, variants)
    return variants


def _search(
    node: SchemaNode, names: tuple[str, ...], repeated: bool, by_annotation: bool, variants: list[VariantColumn]
) -> None:
    if node.physical is not None:
        return
    repeated = repeated or node.repetition == "repeated"
    layout = find_layout(node)
    if node.annotated or (not by_annotation and layout):
        name = ".".join((*names, node.name) if not _is_level(names, node) else names)
        variants.append(
            VariantColumn(name, node, layout or ("final" if node.child("typed_value") else "unshredded"), repeated)
        )
        return
    names = names if _is_level(names, node) else (*names, node.name)
    for child in node.children:
        _search(child, names, repeated, by_annotation, variants)


def _is_level(names: tuple[str, ...], node: SchemaNode) -> bool:
    """Whether a group is a level of Parquet's list or map form, not a field that someone named."""
    return bool(names) and (node.repetition == "repeated" or (node.name == "element" and node.path[-2] == "list"))


def choose_column(root: SchemaNode, name: str | None, file: str) -> VariantColumn:
    """The Variant column of that name, or the only one.

    Raises `VariantFileError` if there is none, none of that name, or more than one and no name; `SchemaError` if it has
    a leaf of a type that no Variant can hold.
    """
    variants = find_variants(root)
    if not variants:
        raise no_variant_column([node.name for node in root.children], file)
    names = _listed([column.name for column in variants])
    matching = [column for column in variants if name in (None, column.name, column.node.dotted)]
    if not matching:
        raise VariantFileError(
            f"{name} is not a Variant column: choose from {names}", reason="no-such-column", file=file
        )
    if name is None and len(variants) > 1:
        raise VariantFileError(
            f"several Variant columns: choose one with column=, from {names}",
            reason="several-variant-columns",
            file=file,
        )
    chosen = matching[0]
    chosen.check_fields(file)
    _check_leaves(chosen, file)
    return chosen


def top_column(root: SchemaNode, name: str, file: str, others: Collection[str] = ()) -> SchemaNode:
    """The one column at the top that has a name; `others` are columns beside those of the file, for the error.

    Raises `VariantFileError` with reason ``"no-such-column"``, or ``"several-columns"`` if two have the name.
    """
    nodes = [node for node in root.children if node.name == name]
    if len(nodes) > 1:
        raise VariantFileError(
            f"{len(nodes)} columns are called {name}: write the file again under other names",
            reason="several-columns",
            file=file,
        )
    if not nodes:
        names = _listed([*(node.name for node in root.children), *others])
        raise VariantFileError(
            f"no column {name}: choose from {names}, or write a path such as $.a", reason="no-such-column", file=file
        )
    return nodes[0]


def no_variant_column(names: Sequence[str], file: str, column: str | None = None) -> VariantFileError:
    """The error for a file whose columns `names` have no Variant, or none called `column`, among them."""
    return VariantFileError(
        f"no Variant column{f' {column}' if column else ''}: columns are {_listed(names)}; "
        "make one from JSON with `variant ingest` or pv.parse_json",
        reason="no-variant-column",
        file=file,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _check_leaves(column: VariantColumn, file: str) -> None:
    for leaf in column.node.leaves():
        # All are read as types that look right in Arrow, so they must be told apart here.
        unsigned = leaf.logical.startswith("INT(") and leaf.logical.endswith("false)")
        if leaf.physical == "INT96" or unsigned or (leaf.physical == "FIXED_LEN_BYTE_ARRAY" and not leaf.logical):
            raise SchemaError(
                f"column {leaf.dotted} is {leaf.spelled()}, which the shredding specification does not list",
                reason="unsupported-type",
                file=file,
            )
