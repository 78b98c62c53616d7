"""Methods of `Table` that need the Variants of any source: paths, number of rows, profile.

Owns these methods. Leaves the rows to `sources`, and profiles to `inference`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.ingest import profile as profile_files
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import infer_shredding_schema
from parquet_variant.quality.sources import data_of
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath

_INFERRED_ROWS = 20_000  # The rows from which the paths of unshredded data are inferred.


def column_name(table: Table) -> str:
    """Return the name of the Variant column; see `Table.column`."""
    return data_of(table).column


def paths(table: Table, column: str | None = None) -> dict[str, str]:
    """Return the typed paths of a Variant column; see `Table.paths`."""
    data = data_of(table, column)
    shredded = []
    for file in data.files:
        with file.open() as (_, variant):
            if variant is not None:
                source = file.source
                schema = ShreddingSchema.from_parquet(source.path, variant.name, filesystem=source.filesystem)
                shredded += [schema] * (schema.kind != "variant")
    if shredded:
        return _types_of(reduce(ShreddingSchema.merge, shredded))
    rows = next(data.batches(), None)
    if rows is None:
        return {}
    return _types_of(infer_shredding_schema(rows.values[:_INFERRED_ROWS], AutoPolicy(min_row_share=0.0)))


def _types_of(schema: ShreddingSchema) -> dict[str, str]:
    """Return the type of each leaf as DDL; arrays are leaves."""
    types: dict[str, str] = {}

    def walk(node: ShreddingSchema, path: VariantPath) -> None:
        if node.kind == "object":
            for key, child in node.fields:
                walk(child, path / key)
        elif node.kind != "variant":
            types[path.shorthand] = node.to_ddl()

    walk(schema, VariantPath())
    return types


def count_rows(table: Table) -> int:
    """Return the number of rows; see `Table`."""
    if table.format in ("parquet", "vortex"):
        rows: int = table.inspect().rows
        return rows
    names = [f.name for f in sorted(table.schema, key=lambda f: f.type.num_fields)]
    return sum(len(part) for part in table.scan(names[:1]).batches())


def profile(table: Table, **options: Any) -> Profile:
    """Profile the paths; see `Table.profile`."""
    if table.format in ("json", "parquet"):
        return profile_files(table.source, column=table.options.column, **table.options.text, **options)
    data = data_of(table)
    return reduce(Profile.merge, (Profile.of_array(batch.values) for batch in data.batches()), Profile())
