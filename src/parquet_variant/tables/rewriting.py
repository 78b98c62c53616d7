"""The choice of the function that rewrites files, by the formats of the source and the destination."""

from __future__ import annotations

from typing import Any, get_args

from pyarrow import fs

from parquet_variant.files.parquet.operations.rewrite import rewrite as rewrite_parquet
from parquet_variant.files.vortex.rewriting import rewrite as rewrite_vortex
from parquet_variant.io.engine import Engine
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import AnyLayout, FileMode, OnConflict, VortexLayout
from parquet_variant.tables.opening import is_vortex


def rewrite(
    source: Any,
    dest: Any,
    *,
    format: str | None = None,
    layout: AnyLayout | None = None,
    schema: ShreddingSchema | str | None = None,
    column: str | None = None,
    on_conflict: OnConflict = "error",
    mode: FileMode = "error",
    filesystem: fs.FileSystem | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> list[Any]:
    """Rewrite Parquet or Vortex files; see `Table.rewrite`."""
    to_vortex = str(dest).endswith(".vortex") or layout in get_args(VortexLayout)
    options |= {"layout": layout, "schema": schema, "column": column, "on_conflict": on_conflict, "mode": mode}
    is_single = not isinstance(source, list | tuple)
    if format == "vortex" or to_vortex or (is_single and filesystem is None and is_vortex(source)):
        run: Any = rewrite_vortex
        options["format"] = format
    else:
        run = rewrite_parquet
        options["filesystem"] = filesystem
    return run(source, dest, engine=engine, **options)
