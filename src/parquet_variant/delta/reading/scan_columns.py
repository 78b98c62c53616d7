"""What the columns of a query are in a table: the types of ordinary ones, and the Variant column that paths are of.

Owns finding them by name, and their errors. Leaves the query to `scan`, and columns of files, too.
"""

from __future__ import annotations

from dataclasses import replace

from parquet_variant.errors import DeltaError
from parquet_variant.path import VariantPath
from parquet_variant.query.selection import Selected
from parquet_variant.tables.schema import VARIANT, StructType, arrow_type, reachable_variants, variant_paths


def typed_columns(schema: StructType, selection: tuple[Selected, ...], column: str | None) -> tuple[Selected, ...]:
    """The selection with the types that the table's schema gives ordinary columns; a variant column is a path.

    Raises `DeltaError`: reason ``"unknown-column"``.
    """
    typed = []
    for each in selection:
        if each.path is None:
            stored = schema.get(each.column or each.name)
            if stored is None:
                known = ", ".join(f.name for f in schema.fields)
                raise DeltaError(
                    f"the table has no column {each.column or each.name!r}: its columns are {known}",
                    reason="unknown-column",
                )
            if stored.type == VARIANT and column in (None, stored.name):
                each = Selected(each.name, VariantPath())
            elif stored.type == VARIANT:
                each = Selected(each.name, None, None, stored.name)
            else:
                each = replace(each, type=arrow_type(stored.type), column=stored.name)
        typed.append(each)
    return tuple(typed)


def only_variant(schema: StructType, selection: tuple[Selected, ...]) -> str | None:
    """The variant column that is selected by name, or the first of several if there are no paths in any."""
    named = [each for each in selection if each.path is None]
    stored = [schema.get(each.column or each.name) for each in named]
    names = [f.name for f in stored if f is not None and f.type == VARIANT]
    several = len(list(variant_paths(schema))) > 1
    return names[0] if several and names and (len(set(names)) == 1 or len(named) == len(selection)) else None


def variant_place(schema: StructType, column: str | None) -> tuple[str, ...]:
    """Where the variant column of a name is, or the only one. Raises `DeltaError`: reason ``"unknown-column"``."""
    places = list(reachable_variants(schema))
    if column is None and len(places) == 1:
        return places[0]
    matching = [p for p in places if ".".join(p) == column]
    if not matching:
        names = ", ".join(".".join(p) for p in places) or "none"
        lacking = "several variant columns" if column is None else f"no variant column {column!r}"
        raise DeltaError(f"{lacking}: choose one with column=, from {names}", reason="unknown-column")
    return matching[0]
