"""`optimize`: compact the small Vortex files of a directory, and re-shred files where that saves space.

Owns describing and merging Vortex files. `files.parquet.operations.optimize` owns the choice of files and schema, and
the replacement of files.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.operations.optimize import (
    DEFAULT_FILE_BYTES,
    FormatToOptimize,
    OptimizeOptions,
    OptimizeResult,
    ShreddedFile,
    optimize_directory,
    staged_file,
)
from parquet_variant.files.vortex.json_columns import JsonColumn
from parquet_variant.files.vortex.library import open_file, vortex
from parquet_variant.files.vortex.paths import SUFFIX, some_vortex_files
from parquet_variant.files.vortex.reader import choose_variant, original_texts, read, read_table
from parquet_variant.files.vortex.writer import VortexColumn, write
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.staging import StagedFile, Staging
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant


class _VortexFile(NamedTuple):
    """A file of the directory."""

    path: str
    size: int


def optimize(
    path: str | os.PathLike[str],
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    reshred: bool = False,
    schema: ShreddingSchema | str | None = None,
    policy: str | Policy | None = None,
    min_saving: float = 0.02,
    column: str | None = None,
    dry_run: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> OptimizeResult:
    """Compact the small Vortex files of a directory, re-shredding files where that saves space; no row changes.

    See `Table.optimize`.
    """
    vortex()
    files = FormatToOptimize(
        _files, partial(_described, column=column), partial(_profile, column=column), partial(_merged, column=column)
    )
    options = OptimizeOptions(file_bytes, reshred, schema, policy, min_saving, dry_run)
    local = path_text(path).removeprefix("file://")
    return optimize_directory(local, files, options, engine_or_threads(engine, threads, progress))


def _files(root: str) -> list[_VortexFile]:
    if "://" in root:
        raise VariantFileError(f"{root} is not on a local disk: copy the Vortex files to one", reason="not-found")
    base = filesystem_of(root)[1]
    return [_VortexFile(name, Path(name).stat().st_size) for name in some_vortex_files(base)]


def _described(source: _VortexFile, column: str | None) -> ShreddedFile:
    file = open_file(source.path)
    name = choose_variant(file, column)
    # The columns that must be equal in files to be merged; of the chosen column only the layout.
    others = [(field if field.name != name else field.name) for field in file.schema]
    texts = [note.has_texts for note in file.notes.values()]
    key = f"{others} {file.layouts} {texts}"
    return ShreddedFile(source, file.shredding_schema(name), len(file), key)


def _profile(task: int, attempt: int, source: _VortexFile, *, column: str | None) -> Profile:
    return Profile.of_array(read(source.path, column))


def _merged(
    task: int,
    attempt: int,
    sources: Sequence[_VortexFile],
    *,
    staging: Staging,
    schema: ShreddingSchema | None,
    root: str,
    column: str | None,
) -> tuple[StagedFile, int, int]:
    """Write one new file from several; return its staged place, rows and bytes."""
    staged = staged_file(
        staging, task, attempt, posixpath.relpath(posixpath.dirname(sources[0].path), root), SUFFIX[1:]
    )
    files = [open_file(source.path) for source in sources]
    main = choose_variant(files[0], column)
    tables = [read_table(source.path) for source in sources]
    columns: dict[str, VortexColumn] = {}
    for field in tables[0].schema:
        parts = [table.column(field.name) for table in tables]
        if field.name not in files[0].layouts:
            columns[field.name] = VortexColumn(
                one_chunk(pa.chunked_array([chunk for part in parts for chunk in part.chunks], field.type)),
                nullable=field.nullable,
            )
            continue
        arrays = [VariantArray.from_arrow(part) for part in parts]
        layout = files[0].layouts[field.name]
        own_schema = files[0].shredding_schema(field.name)
        values = _joined(arrays, schema if field.name == main and schema is not None else own_schema)
        notes = files[0].note(field.name)
        content: VariantArray | JsonColumn = values
        if notes.is_json:
            texts = [original_texts(file, field.name) for file in files]
            content = JsonColumn(values, pa.concat_arrays(texts) if notes.has_texts else None)
        columns[field.name] = VortexColumn(content, layout, field.nullable)
    info = write(filesystem_of(staged.path)[1], columns)
    return staged, info.rows, info.bytes


def _joined(arrays: list[VariantArray], schema: ShreddingSchema) -> VariantArray:
    """Return the rows of all arrays, shredded by a schema."""
    is_shredded = all(array.schema == schema and array.storage.type == arrays[0].storage.type for array in arrays)
    if is_shredded:
        return VariantArray.concat(arrays)
    rows = VariantArray.concat([array.to_unshredded() for array in arrays])
    return rows if schema.kind == "variant" else shred_variant(rows, schema)
