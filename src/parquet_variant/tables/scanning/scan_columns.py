"""The columns of a query in the schema of a table: the types of ordinary ones, and the Variant column of paths.

Owns finding columns by name and the errors for unknown ones. Leaves the query and the columns of files to the scans of
the table formats.
"""

from __future__ import annotations

from dataclasses import replace

from parquet_variant.errors import TableError
from parquet_variant.path import VariantPath
from parquet_variant.query.selection import Selected
from parquet_variant.tables.schema import VARIANT, StructType, arrow_type, reachable_variants, variant_paths


def typed_columns(schema: StructType, selection: tuple[Selected, ...], column: str | None) -> tuple[Selected, ...]:
    """Return the selection with the types of ordinary columns in the schema; a Variant column becomes a path.

    Raises `TableError`: reason ``"unknown-column"``.
    """
    typed = []
    for selected in selection:
        if selected.path is None:
            name = selected.stored_name
            stored = schema.get(name)
            if stored is None:
                names = ", ".join(f.name for f in schema.fields)
                raise TableError(f"the table has no column {name!r}: its columns are {names}", reason="unknown-column")
            if stored.type == VARIANT and column in (None, stored.name):
                selected = Selected(selected.name, VariantPath())
            elif stored.type == VARIANT:
                selected = Selected(selected.name, None, None, stored.name)
            else:
                selected = replace(selected, type=arrow_type(stored.type), column=stored.name)
        typed.append(selected)
    return tuple(typed)


def only_variant(schema: StructType, selection: tuple[Selected, ...]) -> str | None:
    """Return the Variant column that is selected by name; the first of several if no path is selected."""
    named = [selected for selected in selection if selected.path is None]
    stored = [schema.get(selected.stored_name) for selected in named]
    names = [f.name for f in stored if f is not None and f.type == VARIANT]
    several = len(list(variant_paths(schema))) > 1
    return names[0] if several and names and (len(set(names)) == 1 or len(named) == len(selection)) else None


def variant_place(schema: StructType, column: str | None) -> tuple[str, ...]:
    """Return the place of the Variant column of a name, or of the only one.

    Raises `TableError`: reason ``"unknown-column"``.
    """
    places = list(reachable_variants(schema))
    if column is None and len(places) == 1:
        return places[0]
    matching = [place for place in places if ".".join(place) == column]
    if not matching:
        names = ", ".join(".".join(place) for place in places) or "none"
        problem = "the table has several Variant columns"
        if column is not None or not places:
            problem = "the table has no Variant column" + ("" if column is None else f" {column!r}")
        raise TableError(f"{problem}: choose one with column=, from {names}", reason="unknown-column")
    return matching[0]


def named_variant(schema: StructType, column: str | None, error: type[TableError]) -> str:
    """Return the name of the top-level Variant column that a user chose, or of the only one.

    Raises `error`: reason ``"unknown-column"``.
    """
    names = [f.name for f in schema.fields if f.type == VARIANT]
    if column is None and len(names) == 1:
        return names[0]
    if column is None or column not in names:
        problem = (
            f"the table has {len(names)} Variant columns" if column is None else f"unknown Variant column {column!r}"
        )
        raise error(f"{problem}: choose one with column=, from {', '.join(names) or 'none'}", reason="unknown-column")
    return column
