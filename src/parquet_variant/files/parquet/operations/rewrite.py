"""`rewrite`: write files again in another layout or schema; `annotate`: change only the annotation in a footer.

Owns the choice of files, the form of each Variant, and replacing a file by a copy with a new footer. Leaves the bytes
of the footer to `format.footer`, and writing to `writing.writer`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError, check_choice
from parquet_variant.files.parquet.format.columns import choose_column, find_variants, no_variant_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.files.parquet.format.footer import (
    MAGIC,
    TAIL,
    annotate_footer,
    footer_bytes,
    parse_schema,
    refuse_signed,
)
from parquet_variant.files.parquet.format.nested import Place, map_variants
from parquet_variant.files.parquet.reading.read import profile_column, tagged_table
from parquet_variant.files.parquet.writing.conform import FileKeywords, WriterOptions
from parquet_variant.files.parquet.writing.write import SchemaLike
from parquet_variant.files.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.inference.infer import infer
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.io.filesystems import filesystem_of, info_of, write_errors
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import check_target, recover
from parquet_variant.io.temporaries import linked_file, open_temporary, temporary_beside
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant, unshred_variant
from parquet_variant.support.choices import FileMode, Layout, OnConflict
from parquet_variant.support.keywords import with_keywords

_COPY_BYTES = 4 << 20


def annotate(
    path: str | os.PathLike[str], columns: Collection[str] | None = None, *, filesystem: fs.FileSystem | None = None
) -> tuple[str, ...]:
    """Set which columns of a Parquet file have the VARIANT(1) annotation; nothing else in the file changes.

    See `ParquetTable.annotate`.
    """
    system, name = filesystem_of(path, filesystem)
    recover([path], filesystem)
    name = linked_file(system, name)
    size = locate(name, system)[0].size
    with system.open_input_file(name) as source:
        footer = footer_bytes(source, name)
        root = parse_schema(footer, name)
        if columns is None:
            variants = find_variants(root)
            paths = {column.path for column in variants if column.layout in ("unshredded", "final")}
        else:
            dotted = {node.dotted: node.path for node in root.walk() if node.physical is None and node.path}
            paths = {dotted.get(column, (column,)) for column in columns}
        patched = annotate_footer(footer, paths, name)
        if patched != footer:
            refuse_signed(footer, name)
            _replace(system, name, source, size - TAIL - len(footer), patched)
    return tuple(".".join(column) for column in sorted(paths))


def _replace(system: fs.FileSystem, name: str, source: pa.NativeFile, body: int, footer: bytes) -> None:
    """Write a copy with another footer to a temporary file, then rename it."""
    temporary = temporary_beside(name)
    try:
        with write_errors(name), open_temporary(system, temporary, name) as stream:
            source.seek(0)
            while body > 0:
                piece = source.read(min(body, _COPY_BYTES))
                if not piece:
                    raise VariantFileError(
                        "the file became shorter while it was copied: try again", reason="changed", file=name
                    )
                stream.write(piece)
                body -= len(piece)
            stream.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
            stream.close()
            system.move(temporary, name)
    except BaseException:
        if system.get_file_info(temporary).type == fs.FileType.File:
            system.delete_file(temporary)
        raise


@with_keywords(FileKeywords, WriterOptions)
def rewrite(
    source: Source,
    dest: str | os.PathLike[str],
    *,
    layout: Layout | None = None,
    schema: SchemaLike = None,
    column: str | None = None,
    on_conflict: OnConflict = "error",
    filesystem: fs.FileSystem | None = None,
    mode: FileMode = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **write: Unpack[FileKeywords],
) -> list[FileInfo]:
    """Rewrite files; memory is limited to one row group per thread; see `Table.rewrite`."""
    engine = engine_or_threads(engine, threads, progress)
    if layout is not None:
        check_choice("layout", layout, get_args(Layout))
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    WriterOptions.of(write)  # Check options before files are read.
    targets = plan_rewrite(source, dest, filesystem, mode=mode)
    recover([target for _, target in targets], filesystem)
    if schema == "infer":
        profile, sources = partial(profile_task, column=column), [file for file, _ in targets]
        schema = infer(engine.reduce("infer the schema", profile, sources, Profile.merge)).schema
    elif schema is not None:
        schema = ShreddingSchema.of(schema)
    work = partial(
        _rewrite_file,
        threads=max(1, engine.parallelism // len(targets)) if engine.local is engine else 1,
        form=VariantForm(layout, schema, column, on_conflict),
        filesystem=filesystem,
        # A task may run again after it has moved its file into place.
        mode="overwrite",
        **write,
    )
    return engine.run("rewrite", work, targets)


def plan_rewrite(
    source: Source, dest: str | os.PathLike[str], filesystem: fs.FileSystem | None = None, *, mode: FileMode = "error"
) -> list[tuple[ParquetSource, str]]:
    """Return pairs of source file and destination; nothing is written.

    Raises `VariantFileError` if there are no files to read, or a destination exists and may not be replaced.
    """
    sources, (system, root) = locate(source, filesystem), filesystem_of(dest, filesystem)
    source_path = filesystem_of(source, filesystem)[1] if isinstance(source, str | os.PathLike) else None
    if [file.path for file in sources] == [source_path] and info_of(system, root).type != fs.FileType.Directory:
        targets = [str(dest)]
    else:  # Files keep their paths relative to the source directory.
        folders = [posixpath.dirname(file.path) for file in sources]
        base = posixpath.commonpath(folders) if all(folders) else ""
        names = [posixpath.relpath(file.path, base) if base else file.path for file in sources]
        targets = [f"{str(dest).rstrip('/')}/{name}" for name in names]
    for target in targets:
        check_target(*filesystem_of(target, filesystem), mode)
    return list(zip(sources, targets, strict=True))


def profile_task(task: int, attempt: int, source: ParquetSource, *, column: str | None) -> Profile:
    """Return the profile of a file, as a task of an engine."""
    return profile_column(source, column)


@dataclass(frozen=True, slots=True)
class VariantForm:
    """The new form of the Variants in a file; `rewrite` documents the options."""

    layout: Layout | None
    schema: ShreddingSchema | None
    column: str | None
    on_conflict: OnConflict

    def main(self, file: OpenFile) -> Place | None:
        """Return the column that the schema applies to; None if no column is chosen."""
        if self.schema is not None or self.column is not None:
            return choose_column(file.schema, self.column, file.name).path
        if not find_variants(file.schema):
            raise no_variant_column([node.name for node in file.schema.children], file.name)
        return None

    def of(self, array: VariantArray, *, is_main: bool) -> pa.StructArray:
        """Return the new storage of a Variant column."""
        schema = self.schema if is_main else None
        layout = self.layout
        if layout is None:
            layout = array.layout if schema is None or array.layout != "unshredded" else "final"
        if schema is None:
            schema = None if array.schema is None else array.schema.limited_to()
        unshredded = unshred_variant(array, on_conflict=self.on_conflict, threads=1) if array.is_shredded else array
        if layout == "unshredded" or schema is None:
            return unshredded.storage
        return shred_variant(unshredded, schema, layout=layout, threads=1).storage


def _rewrite_file(
    task: int, attempt: int, target: tuple[ParquetSource, str], *, form: VariantForm, threads: int, **options: Any
) -> FileInfo:
    source, dest = target
    with open_file(source) as file:
        main = form.main(file)

        def converted(groups: list[int]) -> pa.Table:
            with file.place_errors(groups):
                table = tagged_table(file.for_one_thread(), groups)
                return map_variants(table, lambda array, path: form.of(VariantArray(array), is_main=path == main))

        row_groups = [[number] for number in file.facts.groups] or [[]]
        with VariantWriter(dest, threads=threads, **options) as writer:
            for groups, table in zip(row_groups, in_order(converted, row_groups, threads, ahead=0), strict=True):
                with file.place_errors(groups):
                    writer.write_batch(table)
    assert writer.info is not None
    return writer.info
