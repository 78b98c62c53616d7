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
from parquet_variant.files.vortex.files.library import OpenVortexFile, open_file, vortex
from parquet_variant.files.vortex.files.paths import SUFFIX, some_vortex_files
from parquet_variant.files.vortex.files.reader import choose_variant, original_texts, read, read_table
from parquet_variant.files.vortex.files.storing import StoredLayout
from parquet_variant.files.vortex.files.trailer import ColumnNote
from parquet_variant.files.vortex.files.writer import VortexColumn, write
from parquet_variant.files.vortex.logical.json_columns import JsonColumn
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

    Columns in the columnar layout, and with typed fields inside Vortex's Variant type, keep their layout and are only
    compacted. Each new file is written in memory.

    Parameters
    ----------
    path
        A directory of Vortex files. Files of a subdirectory stay in it.
    file_bytes, reshred, schema, policy, min_saving, column, dry_run, threads, progress, engine
        As for `pv.parquet.optimize`.

    Returns
    -------
    OptimizeResult
        The result of `pv.parquet.optimize`.

    Raises
    ------
    VariantFileError
        If the path is not a directory of Vortex files.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("1", "2"):
    ...         _ = pv.vortex.write(f"{folder}/{name}.vortex", pv.parse_json(['{"n": 1}'] * 100), schema="n bigint")
    ...     result = optimize(folder)
    >>> result.files_removed, result.files_added, result.schema.to_ddl()
    (2, 1, 'n bigint')
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
    kept = {column: _kept_layout(file, column) for column in file.layouts}
    schema = None if kept[name] else file.shredding_schema(name)
    return ShreddedFile(source, schema, len(file), f"{others} {kept} {texts}")


def _kept_layout(file: OpenVortexFile, column: str) -> tuple[StoredLayout, ShreddingSchema | None] | None:
    """Return layout and schema of a column that is only compacted: columnar, or typed inside Vortex's Variant type."""
    layout, schema = file.layouts[column], file.notes.get(column, ColumnNote()).schema
    return (layout, schema) if layout == "columnar" or (layout == "variant" and schema is not None) else None


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
        layout, kept_schema = _kept_layout(files[0], field.name) or (None, None)
        values = _joined(arrays, schema if field.name == main and layout is None else kept_schema)
        notes = files[0].notes.get(field.name, ColumnNote())
        content: VariantArray | JsonColumn = values
        if notes.is_json:
            texts = [original_texts(file, field.name) for file in files]
            content = JsonColumn(values, pa.concat_arrays(texts) if notes.has_texts else None)
        columns[field.name] = VortexColumn(content, layout, field.nullable)
    info = write(filesystem_of(staged.path)[1], columns)
    return staged, info.rows, info.bytes


def _joined(arrays: list[VariantArray], schema: ShreddingSchema | None) -> VariantArray:
    """Return the rows of all arrays, shredded by a schema, or by their own if it is the same."""
    if schema is None and all(array.storage.type == arrays[0].storage.type for array in arrays):
        return VariantArray.concat(arrays)
    rows = VariantArray.concat([array.to_unshredded() for array in arrays])
    if schema is None or schema.kind == "variant":
        return rows

    return shred_variant(rows, schema)
