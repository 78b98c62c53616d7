"""`Table.typed`: a table whose columns are the ordinary columns and the shredded paths of a Variant.

Owns which columns there are, their names, and the view object. Leaves scans to `tables`, and statements for other
engines to `sql_view`, which has the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, check_choice
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.selection import Selected
from parquet_variant.query.variant_functions import plain_variants
from parquet_variant.sql_query.batches import ScanOptions
from parquet_variant.sql_query.binding import bind_table
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

Names = Literal["short", "path"]


def typed(table: Table, *, column: str | None = None, names: Names = "short") -> TypedView:
    """View a table of Variants as typed columns; see `Table.typed`."""
    typed, warning = typed_table(bind_table(table, table.uri), column, names)
    return TypedView(typed, () if warning is None else (warning,))


@dataclass(frozen=True)
class TypedView(ArrowResult):
    """A table of Variants as typed columns, which are read when they are asked for."""

    table: BoundTable
    warnings: tuple[str, ...] = ()  # A line about fields that are not among the columns.

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.order)

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        fields = [
            pa.field(name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            if name in self.table.columns.variants
            else pa.field(name, self.table.columns.ordinary[name])
            for name in self.table.order
        ]
        return pa.schema(fields)

    def to_arrow(self) -> pa.Table:
        """Read all columns as a pyarrow table."""
        needed = {name: self.table.needs(name) for name in self.table.order}
        plan = self.table.scan(needed, None, ScanOptions())
        parts = list(plan.batches())
        if not parts:
            return self.schema.empty_table()
        columns = [
            pa.chunked_array([plain_variants(VariantArray(chunk)) for chunk in column.chunks], VARIANT_STORAGE)
            if is_variant_field(field)
            else column
            for field, column in zip(self.schema, pa.concat_tables(parts).select(self.column_names), strict=True)
        ]
        return pa.table(columns, schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "\n".join(f"{field.name}: {field.type}" for field in self.schema)


def typed_table(table: BoundTable, column: str | None = None, names: Names = "short") -> tuple[BoundTable, str | None]:
    """Return a bound table with the ordinary columns, the shredded paths of a Variant and its other fields as columns.

    The second result is a line about fields that are not among the columns, if there are any.
    """
    check_choice("names", names, ("short", "path"))
    variants = [name for name in table.columns.variants if column in (None, name)]
    if not variants:
        raise VariantError(f"{table.name} has no Variant column: typed() needs one", reason="no-variant-column")
    if len(variants) > 1:
        raise VariantError(
            f"{table.name} has several Variant columns: choose one from {', '.join(variants)}", reason="no-such-column"
        )
    fields, warning = table.fields_at(variants[0]).selected(variants[0])
    schema = table.schema_of(variants[0])
    taken = [*table.columns.ordinary, *table.columns.variants]
    others = [
        (VariantPath((key,)), table.common_type(variants[0], VariantPath((key,))))
        for key in fields
        if not _has_typed_paths(schema, key)
    ]
    selection = typed_paths(schema, taken, names, others)
    view = table.with_columns({selected.name: selected for selected in selection}, variants[0])
    order = (*table.columns.ordinary, *(selected.name for selected in selection))
    names_of_paths = {selected.name for selected in selection}
    shown = [name for name in order if name in view.columns.ordinary or name in names_of_paths]
    return replace(view, order=tuple(shown)), warning


def _has_typed_paths(schema: ShreddingSchema, key: str) -> bool:
    """Return whether a field of the objects has typed paths."""
    node = dict(schema.fields).get(key) if schema.kind == "object" else None
    if node is None or node.kind == "variant":
        return False
    return node.kind != "object" or any(_has_typed_paths(node, child) for child, _ in node.fields)


def typed_paths(
    schema: ShreddingSchema,
    taken: Sequence[str],
    names: Names = "short",
    others: Sequence[tuple[VariantPath, pa.DataType | None]] = (),
) -> list[Selected]:
    """Return the shredded paths of a schema with their names and types; objects by their fields, arrays as a whole.

    `taken`: the names of other columns, which no path gets.
    `others`: further paths, with the type of all their values if there is one.
    """
    paths: list[tuple[VariantPath, pa.DataType | None]] = []

    def walk(node: ShreddingSchema, path: VariantPath) -> None:
        if node.kind == "object":
            for key, child in node.fields:
                walk(child, path / key)
        elif node.kind in ("array", "primitive"):
            paths.append((path, node.to_arrow()))

    walk(schema, VariantPath())
    paths += others
    keys = [[str(segment) for segment in path.segments] or ["value"] for path, _ in paths]
    base_names = ["_".join(path_keys) for path_keys in keys] if names == "path" else _shortest_names(keys, taken)
    used_names = {name.lower() for name in taken}
    order = sorted(range(len(paths)), key=lambda number: base_names[number] != base_names[number].lower())
    unique: dict[int, str] = {}
    for place in order:  # of names that differ only in letter case, one without capitals is not numbered
        base = base_names[place] or "_"  # no engine has a column named ""
        name, number = base, 0
        while name.lower() in used_names:  # engines ignore letter case
            number += 1
            name = f"{base}_{number}"
        used_names.add(name.lower())
        unique[place] = name
    return [Selected(unique[place], path, kind, exact=True) for place, (path, kind) in enumerate(paths)]


def _shortest_names(keys: Sequence[Sequence[str]], taken: Sequence[str]) -> list[str]:
    """Join the fewest last keys of each path that no other path ends with.

    >>> _shortest_names([["a", "id"], ["b", "id"], ["c", "n"], ["id"]], [])
    ['a_id', 'b_id', 'n', 'id']
    """
    lower = [tuple(key.lower() for key in path) for path in keys]
    counts: dict[tuple[str, ...], int] = {}
    for path in lower:
        for length in range(1, len(path) + 1):
            counts[path[-length:]] = counts.get(path[-length:], 0) + 1
    other_names = {name.lower() for name in taken}

    def is_clear(path: tuple[str, ...], length: int) -> bool:
        return counts[path[-length:]] == 1 and "_".join(path[-length:]) not in other_names

    lengths = [next((length for length in range(1, len(path)) if is_clear(path, length)), len(path)) for path in lower]
    return ["_".join(path[-length:]) for path, length in zip(keys, lengths, strict=True)]
