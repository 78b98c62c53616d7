"""`Table.typed`: a table whose columns are the ordinary columns and the shredded paths of a Variant; and
`Table.sql_view`: a CREATE VIEW statement with the same columns, for DuckDB or Spark.

Owns which columns there are, their names, and the statement. Leaves scans to `tables`.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import pyarrow as pa

from parquet_variant.arrays.capsules import chosen_variant
from parquet_variant.errors import VariantError, check_choice
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.query.duckdb_engine import sql_name
from parquet_variant.query.selection import PlannedQuery, Selected, TableColumns, distinct_names, read_selection
from parquet_variant.sql_query.binding import bind_table
from parquet_variant.sql_query.scans import ScanOptions
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import SqlEngine
from parquet_variant.tables.table.scan import Scan
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath, quote_name, quoted

Names = Literal["short", "path"]


def typed(table: Table, *, column: str | None = None, names: Names = "short") -> Scan:
    """Scan the typed columns of a table of Variants; see `Table.typed`."""

    def plan() -> tuple[PlannedQuery, str | None]:
        bound, warning = typed_table(bind_table(table, table.uri), column, names)
        return bound.scan({name: bound.needs(name) for name in bound.order}, None, ScanOptions()), warning

    scan = Scan(lambda: plan()[0])  # with the columns of the newest version, if another process removes this one
    scan.plan, warning = plan()
    if warning is not None:
        warnings.warn(warning, UserWarning, stacklevel=4)
    return scan


def typed_table(table: BoundTable, column: str | None = None, names: Names = "short") -> tuple[BoundTable, str | None]:
    """Return a bound table with the ordinary columns, the shredded paths of a Variant and its other fields as columns.

    The second result is a line about fields that are not among the columns, if there are any.
    """
    check_choice("names", names, ("short", "path"))
    variant = chosen_variant(table.columns.variants, column, VariantError, "no-such-column")
    fields, warning = table.fields_at(variant).selected(variant)
    schema = table.schema_of(variant)
    taken = [*table.columns.ordinary, *table.columns.variants]
    typed_keys = {path.segments[0] for path, _ in _typed_nodes(schema) if path.segments}
    untyped = [VariantPath((key,)) for key in fields if key not in typed_keys]
    untyped += [path for path, _, _ in _case_twins(table, variant, schema) if len(path) > 1]
    more_paths = [(path, table.common_type(variant, path)) for path in untyped]
    selection = typed_paths(schema, taken, names, more_paths)
    variants = [*table.columns.variants, *(selected.name for selected in selection if selected.type is None)]
    types = {selected.name: selected.type for selected in selection if selected.type is not None}
    columns = TableColumns(variants, {**table.columns.ordinary, **types}, table.columns.nested)
    derived = {s.name: Selected.of(variant, s.path, s.type, exact=s.exact) for s in selection}
    return replace(table, columns=columns, order=(*table.columns.ordinary, *derived), derived=derived), warning


def _typed_nodes(schema: ShreddingSchema) -> Iterator[tuple[VariantPath, ShreddingSchema]]:
    """Yield the primitives and arrays that are not inside other arrays."""
    nodes = ((path, node) for path, node in schema.walk() if not path.has_wildcard)
    return ((path, node) for path, node in nodes if node.kind in ("array", "primitive"))


def typed_paths(
    schema: ShreddingSchema,
    taken: Sequence[str],
    names: Names = "short",
    more_paths: Sequence[tuple[VariantPath, pa.DataType | None]] = (),
) -> list[Selected]:
    """Return the shredded paths of a schema with their names and types; objects by their fields, arrays as a whole.

    `taken`: the names of other columns, which no path gets.
    `more_paths`: further paths, with the type of all their values if there is one.
    """
    paths = [*((path, node.to_arrow()) for path, node in _typed_nodes(schema)), *more_paths]
    keys = [[str(segment) for segment in path.segments] or ["value"] for path, _ in paths]
    base_names = ["_".join(path_keys) for path_keys in keys] if names == "path" else _shortest_names(keys, taken)
    unique = distinct_names([base or "_" for base in base_names], taken)  # no engine has a column named ""
    return [Selected(name, path, kind, exact=True) for name, (path, kind) in zip(unique, paths, strict=True)]


def _shortest_names(keys: Sequence[Sequence[str]], taken: Sequence[str]) -> list[str]:
    """Join the fewest last keys of each path that no other path ends with.

    >>> _shortest_names([["a", "id"], ["b", "id"], ["c", "n"], ["id"]], [])
    ['a_id', 'b_id', 'n', 'id']
    """
    lower = [tuple(key.lower() for key in path) for path in keys]
    counts = Counter(path[start:] for path in lower for start in range(len(path)))
    other_names = {name.lower() for name in taken}

    def is_clear(path: tuple[str, ...], length: int) -> bool:
        return counts[path[-length:]] == 1 and "_".join(path[-length:]) not in other_names

    lengths = [next((length for length in range(1, len(path)) if is_clear(path, length)), len(path)) for path in lower]
    return ["_".join(path[-length:]) for path, length in zip(keys, lengths, strict=True)]


def sql_view(
    opened: Table,
    columns: Mapping[str, Any] | None = None,
    *,
    name: str = "events",
    engine: SqlEngine = "duckdb",
    column: str | None = None,
) -> str:
    """Return a ``CREATE VIEW`` statement with typed columns; see `Table.sql_view`."""
    check_choice("engine", engine, get_args(SqlEngine))
    if not isinstance(name, str):
        raise VariantError(f"name is {name!r}: give the name of the view", reason="bad-option")
    path = opened.uri
    if opened.format not in ("parquet", "delta"):
        kind = {"memory": "rows in memory", "json": "JSON"}.get(opened.format, opened.format.capitalize())
        problem = f"{path} is {kind}: a view needs Parquet files or a Delta table; convert it with `variant ingest`"
        raise VariantError(problem, reason="not-parquet")
    table = bind_table(opened, path)
    variant = chosen_variant(table.columns.variants, column, VariantError, "no-such-column")
    shredding = table.shredded_schema(variant)
    if engine == "duckdb" and shredding is not None and (keys := _unreadable_keys(shredding)) is not None:
        raise VariantError(
            f"{path} shreds {keys}, and DuckDB 2.0 cannot read these files: use the engine spark, or `variant query`",
            reason="bad-option",
        )
    if columns is None:  # the ordinary columns and the shredded paths, with the names of `typed`
        schema = table.schema_of(variant)
        if schema.kind == "variant":
            raise VariantError(f"{path} has no shredded paths: name the columns of the view", reason="no-files")
        ordinary = [Selected(name, None, kind, name) for name, kind in table.columns.ordinary.items()]
        selected = (*ordinary, *typed_paths(schema, [column.name for column in ordinary]))
    else:
        selected = read_selection(columns)
    _check_columns(selected, [*table.columns.top, *table.columns.nested], path)
    hidden = [] if columns is not None or shredding is None else _case_twins(table, variant, shredding)
    comments = [
        f"-- not a column: {hidden_path} ({count:,} values) differs from {shown} only in letter case\n"
        for hidden_path, shown, count in hidden
    ]
    lines = [f"  {_value(column, variant, engine)} AS {_name(column.name, engine)}" for column in selected]
    source = _source(path, opened.format, engine)
    create = "CREATE OR REPLACE VIEW" if engine == "duckdb" else "CREATE OR REPLACE TEMPORARY VIEW"
    statement = f"{create} {_name(name, engine)} AS SELECT\n" + ",\n".join(lines) + f"\nFROM {source}"
    return "".join(comments) + statement


def _check_columns(selected: Sequence[Selected], names: Sequence[str], path: str) -> None:
    """Raise `VariantError` unless the columns exist, and engines that ignore letter case can name them."""
    if not selected:
        raise VariantError("a view has at least one column: name one", reason="bad-selection")
    seen: set[str] = set()
    for column in selected:
        if not column.name:
            problem = "a view column has an empty name, which no engine allows: name it"
            raise VariantError(problem, reason="bad-selection")
        if column.name.lower() in seen:
            problem = f"two view columns are called {column.name} (engines ignore letter case): rename one of them"
            raise VariantError(problem, reason="bad-selection")
        if column.path is None and column.stored_name not in names:
            raise VariantError(
                f"{path} has no column {column.stored_name}: choose from {', '.join(names)}, or give a path: $.a.b",
                reason="no-such-column",
            )
        seen.add(column.name.lower())


def _case_twins(
    table: BoundTable, variant: str, shredding: ShreddingSchema
) -> list[tuple[VariantPath, VariantPath, int]]:
    """Return the paths with values that differ from a shredded path only in letter case: path, shredded path, count."""
    from parquet_variant.files.parquet.scanning.projection import residual_objects

    files = table.shredding_files(variant)
    objects = [
        (path, fields)
        for path, fields in _objects(shredding)
        if not path.has_wildcard and (not files or residual_objects(files, variant, path) != [])
    ]
    by_case: dict[str, list[str]] = {}
    for key in sorted((objects and table.keys(variant)) or ()):
        by_case.setdefault(key.lower(), []).append(key)
    candidates = [
        (path / other, path / key)
        for path, fields in objects
        for key in fields
        for other in by_case.get(key.lower(), ())
        if other not in fields
    ]
    if not candidates:
        return []
    counts = ", ".join(f"count(variant_get({quoted(variant)}, {_text(str(path), 'duckdb')}))" for path, _ in candidates)
    row = registered_method("Table.sql")(f"SELECT {counts} FROM t", t=table).to_arrow()
    values = [column[0].as_py() for column in row.columns]
    return [(*pair, count) for pair, count in zip(candidates, values, strict=True) if count]


def _objects(schema: ShreddingSchema) -> list[tuple[VariantPath, Mapping[str, ShreddingSchema]]]:
    """Return the fields of each object in a schema with its path."""
    return [(path, dict(node.fields)) for path, node in schema.walk() if node.kind == "object"]


def _unreadable_keys(schema: ShreddingSchema) -> str | None:
    """Return the shredded keys of one object that DuckDB cannot read, if there are any."""
    for _, fields in _objects(schema):
        if "" in fields:
            return "the key '' (an empty string)"
        by_case = {key.lower(): key for key in fields}
        if twin := next((key for key in fields if by_case[key.lower()] != key), None):
            return f"{twin} and {by_case[twin.lower()]}, which differ in letter case"
    return None


def _value(column: Selected, variant: str, engine: str) -> str:
    from sqlglot import exp

    from parquet_variant.query.sql_dialect import sql_type_name

    if column.path is None:
        return _name(column.stored_name, engine)
    if column.path.has_wildcard:
        problem = f"{column.path}: a view cannot have [*]; select the array, as in $.a:array<int>"
        raise VariantError(problem, reason="bad-path")
    place = _name(variant, engine)
    if engine == "spark":
        kind = "variant" if column.type is None else sql_type_name(column.type)
        return f"try_variant_get({place}, {_text(str(column.path), engine)}, '{kind}')"
    # In DuckDB itself, indexes count from 1.
    steps = (_text(step, engine) if isinstance(step, str) else int(str(step)) + 1 for step in column.path.segments)
    place += "".join(f"[{step}]" for step in steps)
    if column.type is None:
        return place
    kind = exp.DataType.build(sql_type_name(column.type), dialect="databricks").sql("duckdb")
    return f"TRY_CAST({place} AS {kind})"


def _text(text: str, engine: str) -> str:
    from sqlglot import exp

    return exp.Literal.string(text).sql(engine)


def _name(name: str, engine: str) -> str:
    return quote_name(name) if engine == "spark" else sql_name(name)


def _source(source: str, file_format: str, engine: str) -> str:
    if engine == "spark":
        return f"{file_format}.`{source.replace('`', '``')}`"
    if file_format == "delta":
        return f"delta_scan({_text(source, engine)})"
    if not any(sign in source for sign in "*?[") and os.path.isdir(source):  # noqa: PTH112 - perhaps a URI
        source = source.rstrip("/") + "/**/*.parquet"
    return f"read_parquet({_text(source, engine)}, union_by_name = true)"
