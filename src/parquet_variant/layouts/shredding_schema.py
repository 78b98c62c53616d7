"""`ShreddingSchema`: the paths of a Variant that become typed columns.

Owns the tree, its invariants, walking it, and the difference of two schemas. Leaves its text forms (DDL, JSON, printed
tree), Arrow and storage types, and the union to the other modules of this package; the methods here forward to them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.errors import SchemaError, check_column_name, check_count, check_mapping
from parquet_variant.layouts import storage_shape
from parquet_variant.layouts.layout import tree_of_layout, tree_of_parquet
from parquet_variant.layouts.storages import storage_type, tree_from_arrow, tree_to_arrow
from parquet_variant.layouts.type_grammar import parse_ddl, render_ddl, render_tree, tree_from_json, tree_to_json
from parquet_variant.support.records import Printed, Record
from parquet_variant.types.path import WILDCARD, VariantPath

# The number of characters of a schema that fit on a screen.
_REPR_WIDTH = 1000

Kind = Literal["variant", "primitive", "array", "object"]


@dataclass(frozen=True, slots=True, eq=False)
class ShreddingSchema(Printed):
    """An immutable, hashable tree of the typed columns of a Variant.

    Build it with `variant`, `primitive`, `array` and `object`, or read it with one of the ``from_`` methods.

    Parameters
    ----------
    kind
        ``"variant"``: not typed, stored in ``value``; ``"primitive"``: a typed column; ``"array"``: a list of shredded
        elements; ``"object"``: a group of shredded fields.
    type
        The canonical Arrow type of a primitive, else None.
    element
        The schema of an array's elements, else None.
    fields
        The fields of an object, sorted by the UTF-8 bytes of their names, else empty.

    Examples
    --------
    >>> schema = ShreddingSchema.from_ddl("id bigint, tags array<string>")
    >>> schema == ShreddingSchema.object(
    ...     {"tags": ShreddingSchema.array(ShreddingSchema.primitive(pa.string())), "id": pa.int64()}
    ... )
    True
    >>> print(schema)
    object
    ├─ id: bigint
    └─ tags: array
       └─ [*]: string
    """

    kind: Kind
    type: pa.DataType | None = None
    element: ShreddingSchema | None = None
    fields: tuple[tuple[str, ShreddingSchema], ...] = ()
    depth: int = field(init=False, repr=False, compare=False, default=1)
    physical_depth: int = field(init=False, repr=False, compare=False, default=2)

    def __post_init__(self) -> None:
        parts = (self.type is not None, self.element is not None, bool(self.fields))
        expected = (self.kind == "primitive", self.kind == "array", self.kind == "object")
        if self.kind == "object" and not self.fields:
            message = "an object schema needs a field, since Parquet does not have empty groups: use a variant node"
            raise SchemaError(message, reason="empty-object")
        if parts != expected or self.kind not in ("variant", "primitive", "array", "object"):
            raise SchemaError(
                f"these parts do not make a node of kind {self.kind!r}: use the constructors of ShreddingSchema"
            )
        if self.type is not None:
            object.__setattr__(self, "type", storage_shape.canonical_primitive(self.type))
        names = [name for name, _ in self.fields]
        if sorted(set(names)) != names:  # code point order is the order of UTF-8 bytes
            raise SchemaError(f"object fields must be sorted and unique, got {names[:5]}: use ShreddingSchema.object")
        object.__setattr__(self, "depth", 1 + max((child.depth for child in self.children()), default=0))
        # The group and its leaf; below an object the group and `typed_value`; below an array `list`, too.
        inner = max((child.physical_depth for child in self.children()), default=0)
        object.__setattr__(self, "physical_depth", 2 + inner + (self.kind == "array"))
        if self.depth > storage_shape.MAX_DEPTH:
            raise SchemaError(
                f"the shredding schema is nested deeper than {storage_shape.MAX_DEPTH} levels", reason="too-deep"
            )

    def __eq__(self, other: object) -> bool:
        # Iterative: comparing nested tuples of schemas that are 200 levels deep exceeds Python's limit on recursion.
        if not isinstance(other, ShreddingSchema):
            return NotImplemented
        pairs = [(self, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if left.kind != right.kind or left.type != right.type or left.depth != right.depth:
                return False
            if [name for name, _ in left.fields] != [name for name, _ in right.fields]:
                return False
            pairs += zip(left.children(), right.children(), strict=True)
        return True

    def __hash__(self) -> int:
        return hash((self.kind, self.type, self.element, self.fields))

    @classmethod
    def variant(cls) -> ShreddingSchema:
        """Return the node of a value that is not shredded."""
        return cls("variant")

    @classmethod
    def primitive(cls, type: pa.DataType) -> ShreddingSchema:
        """Return the node of a typed column.

        Parameters
        ----------
        type
            The Arrow type, as in the type table: bool, int8 to int64, float32, float64, decimal128 (precision 1 to 38,
            scale 0 to precision), date32, time64[us], timestamp us or ns with UTC or without a zone, binary, string,
            uuid.

        Raises
        ------
        SchemaError
            For any other type (``unsupported-type``, ``bad-decimal``).
        """
        return _primitive(type) if isinstance(type, pa.DataType) else cls("primitive", type=type)

    @classmethod
    def array(cls, element: ShreddingSchema | pa.DataType) -> ShreddingSchema:
        """Return the node of a list whose elements are shredded as `element`."""
        return cls("array", element=_node(element))

    @classmethod
    def object(cls, fields: Mapping[str, ShreddingSchema | pa.DataType]) -> ShreddingSchema:
        """Return the node of a group of shredded fields, in any order.

        Raises
        ------
        SchemaError
            If there are no fields (``empty-object``), or a name is not valid Unicode (``bad-name``).
        """
        check_mapping("fields", fields, SchemaError)
        for name in fields:
            check_column_name(name)
        return cls("object", fields=tuple((name, _node(fields[name])) for name in sorted(fields)))

    @classmethod
    def from_tree(cls, tree: storage_shape.TypeTree) -> ShreddingSchema:
        """Return the schema of a plain tree; see `parquet_variant.layouts.storage_shape`."""
        if tree is None:
            return cls.variant()
        if isinstance(tree, list):
            return cls.array(cls.from_tree(tree[0]))
        if isinstance(tree, dict):
            return cls.object({name: cls.from_tree(child) for name, child in tree.items()})
        return cls.primitive(tree)

    def type_tree(self) -> storage_shape.TypeTree:
        """Return the plain tree of the schema, the inverse of `from_tree`."""
        if self.element is not None:
            return [self.element.type_tree()]
        return {name: child.type_tree() for name, child in self.fields} if self.fields else self.type

    @property
    def type_name(self) -> str:
        """The name of the node without its children: its DDL type, ``array``, ``object`` or ``variant``."""
        return self.kind if self.type is None else storage_shape.ddl_name(self.type)

    def children(self) -> tuple[ShreddingSchema, ...]:
        """Return the child nodes."""
        return (self.element,) if self.element is not None else tuple(child for _, child in self.fields)

    def field(self, name: str) -> ShreddingSchema | None:
        """Return the schema of a field of an object, or None if the field is not shredded."""
        return dict(self.fields).get(name)

    def walk(self) -> Iterator[tuple[VariantPath, ShreddingSchema]]:
        """Yield every node with its path, parents first, fields in the order of their UTF-8 bytes; ``[*]`` is every
        element.

        Examples
        --------
        >>> [(str(path), node.kind) for path, node in ShreddingSchema.from_ddl("a array<int>").walk()]
        [('$', 'object'), ("$['a']", 'array'), ("$['a'][*]", 'primitive')]
        """
        stack = [(VariantPath(), self)]
        while stack:
            path, node = stack.pop()
            yield path, node
            if node.element is not None:
                stack.append((path / WILDCARD, node.element))
            stack.extend((path / name, child) for name, child in reversed(node.fields))

    def leaves(self) -> Iterator[tuple[VariantPath, ShreddingSchema]]:
        """Yield the nodes without children: primitives and untyped variants."""
        return ((path, node) for path, node in self.walk() if not node.children())

    def get(self, path: str | VariantPath) -> ShreddingSchema | None:
        """Return the node at a path (an index is any element), or None if the path is not shredded.

        Raises
        ------
        PathError
            If the path cannot be parsed.

        Examples
        --------
        >>> ShreddingSchema.from_ddl("a array<int>").get("$.a[0]").to_ddl()
        'int'
        """
        node: ShreddingSchema | None = self
        for segment in VariantPath.parse(path).segments:
            if node is None:
                return None
            node = node.field(segment) if isinstance(segment, str) else node.element
        return node

    def limited_to(self, levels: int = storage_shape.MAX_PHYSICAL_DEPTH) -> ShreddingSchema:
        """Return the schema without the nodes that take more Parquet levels; their values stay in the residual.

        Parameters
        ----------
        levels
            The most levels from the group of the Variant column to its deepest leaf, both counted. An object adds two
            levels, an array three. The default is what every reader that is supported accepts.

        Examples
        --------
        >>> schema = ShreddingSchema.from_ddl("id bigint, a struct<b: struct<c: int>, d: int>, e array<array<int>>")
        >>> schema.physical_depth, schema.limited_to(6).to_ddl()
        (10, 'a struct<d: int>, id bigint')
        """
        check_count("levels", levels, error=SchemaError)
        return _limit_levels(self, levels) or self.variant()

    @classmethod
    def from_ddl(cls, text: str) -> ShreddingSchema:
        """Parse DDL: columns (``"a bigint, b array<string>"``) or one type (``"struct<a: bigint>"``, ``"bigint"``).

        See `parquet_variant.layouts.type_grammar` for the type names.

        Raises
        ------
        SchemaError
            If the DDL cannot be parsed (``bad-ddl``), with the byte offset of the fault.
        """
        if not isinstance(text, str):
            raise SchemaError(f"the DDL is a {type(text).__name__}: give a string", reason="bad-ddl")
        return _schema_of_ddl(text)

    @classmethod
    def of(cls, schema: ShreddingSchema | str) -> ShreddingSchema:
        """Return the schema of an argument that may be a schema, its DDL or its JSON.

        Raises
        ------
        SchemaError
            For DDL that cannot be read, a schema with too many Parquet levels (``too-deep``), and anything else.

        Examples
        --------
        >>> ShreddingSchema.of({"a": "bigint"})
        Traceback (most recent call last):
        ...
        parquet_variant.errors.SchemaError: schema is a dict: give DDL, such as 'id bigint, ...', or a ShreddingSchema
        """
        if isinstance(schema, str):
            schema = cls.from_json(schema) if schema.lstrip().startswith(("{", '"')) else cls.from_ddl(schema)
        if not isinstance(schema, cls):
            kind = type(schema).__name__
            message = f"schema is a {kind}: give DDL, such as 'id bigint, tags array<string>', or a ShreddingSchema"
            raise SchemaError(message, reason="bad-schema")
        if schema.physical_depth > storage_shape.MAX_PHYSICAL_DEPTH:
            raise storage_shape.too_deep(max((path for path, _ in schema.leaves()), key=storage_shape.path_depth))
        return schema

    def to_ddl(self) -> str:
        """Return the schema as DDL, which `from_ddl` parses.

        Examples
        --------
        >>> ShreddingSchema.from_ddl("struct<`a b`: decimal(10, 2), v variant>").to_ddl()
        '`a b` decimal(10,2), v variant'
        """
        return render_ddl(self.type_tree())

    @classmethod
    def from_arrow(cls, arrow: pa.Schema | pa.DataType) -> ShreddingSchema:
        """Return the schema of a logical Arrow schema or type; see `parquet_variant.layouts.storages`.

        Raises
        ------
        SchemaError
            For an Arrow type that no Variant type holds (``unsupported-type``).
        """
        return cls.from_tree(tree_from_arrow(arrow))

    def to_arrow(self) -> pa.DataType:
        """Return the logical Arrow type: typed fields, with ``struct<metadata, value>`` for untyped nodes."""
        return tree_to_arrow(self.type_tree())

    @classmethod
    def from_storage(cls, storage: pa.DataType) -> ShreddingSchema:
        """Return the schema of a storage struct of any layout; see `parquet_variant.layouts.layout`.

        Raises
        ------
        SchemaError
            If the layout does not allow the struct.

        Examples
        --------
        >>> ShreddingSchema.from_storage(pa.struct({"metadata": pa.binary(), "typed_value": pa.int64()})).to_ddl()
        'bigint'
        """
        return cls.from_tree(tree_of_layout(storage))

    @classmethod
    def from_parquet(cls, file: Any, column: str | None = None, *, filesystem: Any = None) -> ShreddingSchema:
        """Return the schema of a Variant column of a Parquet file; see `parquet_variant.layouts.layout`.

        Parameters
        ----------
        file
            A path, or an open file.
        column
            The column, with dots for a column inside structs; optional if the file has only one Variant column.
        filesystem
            A pyarrow filesystem.

        Raises
        ------
        SchemaError
            If the column does not exist, or no column is named and there is not exactly one (``no-such-column``).
        """
        return cls.from_tree(tree_of_parquet(file, column, filesystem))

    def storage_type(self) -> pa.StructType:
        """Return the canonical storage struct of the final layout."""
        return storage_type(self.type_tree(), "final")

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> ShreddingSchema:
        """Parse the JSON of `to_json`, as text or as a parsed object.

        Raises
        ------
        SchemaError
            For text that is not JSON or not a schema (``bad-json-schema``).
        """
        return cls.from_tree(tree_from_json(text))

    def to_json(self) -> str:
        """Return the schema as JSON: a type name, ``{"array": …}`` or ``{"object": {name: …}}``.

        Examples
        --------
        >>> ShreddingSchema.from_ddl("a int, b array<date>").to_json()
        '{"object": {"a": "int", "b": {"array": "date"}}}'
        """
        return tree_to_json(self.type_tree())

    def to_tree(self) -> str:
        """Return the schema as a printed tree, with one line per node."""
        return render_tree(self.type_tree())

    def __repr__(self) -> str:
        return f"<ShreddingSchema {textwrap.shorten(self.to_ddl(), _REPR_WIDTH, placeholder=' …')}>"

    def __str__(self) -> str:
        return self.to_tree()

    def merge(self, other: ShreddingSchema) -> ShreddingSchema:
        """Return the union of two schemas; if types differ, the narrowest numeric type that holds both, else untyped.

        The union is associative, commutative and idempotent.

        Examples
        --------
        >>> a, b = ShreddingSchema.from_ddl("a int, b date"), ShreddingSchema.from_ddl("a decimal(4,2), b string")
        >>> a.merge(b).to_ddl()
        'a decimal(12,2), b variant'
        """
        return self.from_tree(storage_shape.merge_trees(self.type_tree(), self.of(other).type_tree()))

    def diff(self, other: ShreddingSchema) -> list[SchemaChange]:
        """Return the changes from this schema to `other`, in the order of the paths.

        Examples
        --------
        >>> old, new = ShreddingSchema.from_ddl("a int, b date"), ShreddingSchema.from_ddl("a bigint, c date")
        >>> for change in old.diff(new):
        ...     print(change)
        $.a: int -> bigint
        $.b: date -> (not shredded)
        $.c: (not shredded) -> date
        """
        changes: list[SchemaChange] = []
        _add_changes(VariantPath(), self, self.of(other), changes)
        return changes


@lru_cache(maxsize=64)
def _schema_of_ddl(text: str) -> ShreddingSchema:
    """Return the schema of DDL; calls on small columns would spend a tenth of their time parsing it again."""
    return ShreddingSchema.from_tree(parse_ddl(text))


class SchemaChange(Record):
    """A difference between two schemas."""

    path: VariantPath  # The path of the node; ``[*]`` is every element.
    # The node in either schema; None if the path is not shredded there.
    before: ShreddingSchema | None
    after: ShreddingSchema | None

    def __str__(self) -> str:
        return f"{self.path.shorthand}: {_change_text(self.before)} -> {_change_text(self.after)}"


def _add_changes(
    path: VariantPath, a: ShreddingSchema | None, b: ShreddingSchema | None, changes: list[SchemaChange]
) -> None:
    """Append the topmost differences below a path."""
    if a == b:
        return
    if a is not None and b is not None and a.kind == b.kind == "object":
        for name in sorted({*dict(a.fields), *dict(b.fields)}):
            _add_changes(path / name, a.field(name), b.field(name), changes)
    elif a is not None and b is not None and a.kind == b.kind == "array":
        _add_changes(path / WILDCARD, a.element, b.element, changes)
    else:
        changes.append(SchemaChange(path, a, b))


def _change_text(schema: ShreddingSchema | None) -> str:
    if schema is None:
        return "(not shredded)"
    return f"struct<{schema.to_ddl()}>" if schema.kind == "object" else schema.to_ddl()


@lru_cache(maxsize=256)
def _primitive(arrow: pa.DataType) -> ShreddingSchema:
    return ShreddingSchema("primitive", type=arrow)


def _node(schema: ShreddingSchema | pa.DataType) -> ShreddingSchema:
    if isinstance(schema, ShreddingSchema):
        return schema
    if isinstance(schema, pa.DataType):
        return ShreddingSchema.primitive(schema)
    raise SchemaError(f"{schema!r} is neither a ShreddingSchema nor an Arrow type")


def _limit_levels(schema: ShreddingSchema, levels: int) -> ShreddingSchema | None:
    """Return the part of a node that takes at most a number of levels; None if nothing is left of it."""
    if schema.physical_depth <= levels:
        return schema
    if schema.element is not None:
        element = _limit_levels(schema.element, levels - 3)
        return None if element is None else ShreddingSchema.array(element)
    fields = {name: node for name, child in schema.fields if (node := _limit_levels(child, levels - 2)) is not None}
    return ShreddingSchema.object(fields) if fields else None
