"""The columns of a table that a query or a condition can name, and those that it needs.

Owns what is known of a table before it is read, and which types hold Variants. Leaves reading to the formats, and names
to `rewriting.scopes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from parquet_variant.query.selection import Selected
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

# The Variants in the result of an expression: an Arrow type that is a Variant or has Variants inside, else None.
Kind: TypeAlias = pa.DataType | None


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table that an expression can name."""

    variants: Sequence[str] = ()  # Names of the Variant columns, those of `nested` included.
    ordinary: Mapping[str, pa.DataType] = field(default_factory=dict)  # Arrow types of the other columns by name.
    # Variants inside structs: the dotted name that scans use for them -> names of the struct and its fields.
    nested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def top(self) -> list[str]:
        """Names of the columns that are not inside a struct."""
        return list(dict.fromkeys([*self.ordinary, *(name for name in self.variants if name not in self.nested)]))

    def find(self, name: str) -> str | None:
        """Return the column of exactly this name, or else the only one that differs from it by letter case alone."""
        if name in self.top:
            return name
        matching = [column for column in self.top if column.lower() == name.lower()]
        return matching[0] if len(matching) == 1 else None


@dataclass(frozen=True, slots=True)
class NeededColumn:
    """A column of a table that an expression needs."""

    column: str  # The name of the table's column.
    path: VariantPath | None = None  # The path into the Variant; None for an ordinary column.
    type: pa.DataType | None = None  # The requested Arrow type; None for a Variant or an ordinary column.
    exact: bool = False  # Whether values of other types are null.

    @property
    def is_variant(self) -> bool:
        """Whether the expression uses the column as a Variant."""
        return self.path is not None and self.type is None

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the column, a list for each wildcard; None for a Variant, or an ordinary column."""
        return None if self.path is None else Selected("", self.path, self.type).output

    @property
    def select(self) -> Selected:
        """The column as scans take it; a column whose name begins with ``$`` is not read as a path."""
        return Selected(self.column, self.path, self.type, None if self.path is not None else self.column, self.exact)


class TableFacts:
    """The columns of a table, and what is known of its values without reading them: here nothing."""

    columns: TableColumns
    order: tuple[str, ...]  # The names of the columns, in the table's order.
    skips: bool = True  # Whether its scans can use a filter to skip data.

    @classmethod
    def of(cls, columns: TableColumns) -> TableFacts:
        """Return a table of which only the columns are known."""
        facts = cls()
        facts.columns, facts.order = columns, tuple(dict.fromkeys([*columns.variants, *columns.ordinary]))
        return facts

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> NeededColumn:
        """Return the column of the scan for a column, or for a path into it."""
        return NeededColumn(name, path, kind)

    def common_type(self, name: str, path: VariantPath, *, nulls: bool = True) -> pa.DataType | None:
        """Return the type of every value at a path of a Variant column; None if there is none, or it is not known.

        `nulls`: whether values may also be Variant null, which the typed column has as NULL.
        """
        return None

    def type_of_entries(self, name: str, path: VariantPath, below: VariantPath) -> pa.DataType | None:
        """Return the type of every value at a path of the elements or fields of values; None if it is not known.

        `path`: the path of the arrays or objects.
        `below`: the path inside each element or field.
        """
        return None

    def leaf_of_elements(self, name: str, path: VariantPath) -> tuple[VariantPath, pa.DataType] | None:
        """Return a typed path inside the elements of the arrays at a path; None if the files do not prove there is one.

        The path is relative to the Variant column.
        """
        return None

    def keys(self, variant: str) -> frozenset[str] | None:
        """Return every key of the objects in a Variant column; None if they are unknown without reading values."""
        return None

    def kind(self, name: str) -> Kind:
        """Return the Variants in a column."""
        return VARIANT_STORAGE if name in self.columns.variants else None


def is_variant(kind: Kind) -> bool:
    """Return whether a type is the storage of a Variant.

    >>> is_variant(pa.struct([("metadata", pa.binary()), ("value", pa.binary())])), is_variant(pa.binary())
    (True, False)
    """
    if kind is None or not pa.types.is_struct(kind) or {child.name for child in kind} != {"metadata", "value"}:
        return False
    kinds = [child.type.value_type if pa.types.is_dictionary(child.type) else child.type for child in kind]
    return all(map(pa.types.is_binary, kinds))


def holds_variants(kind: pa.DataType) -> bool:
    """Return whether a type is the storage of a Variant, or has one inside."""
    return is_variant(kind) or any(holds_variants(kind.field(index).type) for index in range(kind.num_fields))


def only_variants(kind: Kind) -> Kind:
    """Return the type if it has a Variant inside, else None."""
    return kind if kind is not None and holds_variants(kind) else None


def element_of(kind: Kind) -> Kind:
    """Return the kind of the elements of a list, or of the values of a map."""
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    return only_variants(kind.item_type if pa.types.is_map(kind) else kind.value_type)


def field_of(kind: Kind, name: str) -> Kind:
    """Return the kind of a field of a struct; names ignore letter case, as in the engines."""
    if kind is None or not pa.types.is_struct(kind):
        return None
    return next((only_variants(field.type) for field in kind if field.name.lower() == name.lower()), None)
