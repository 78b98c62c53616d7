"""`rewrite`: files with Variant columns into another layout, schema or annotation, a row group at a time.

Owns going through files and row groups, and what becomes of each Variant in a row, also in structs, lists and maps.
Leaves shredding to the functions, and what runs the tasks to `io.thread_engine` and `spark.engine`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import fs

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import FileMode, Layout, OnConflict
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.io.engine import Engine, Progress
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.parallel import in_order
from parquet_variant.io.staging import replaces
from parquet_variant.io.thread_engine import ThreadEngine
from parquet_variant.parquet.format.columns import choose_column, find_variants, no_variant_column
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.parquet.reading.read import row_group_arrays
from parquet_variant.parquet.reading.read_table import tagged_table
from parquet_variant.parquet.writing.nested import Place, map_variants
from parquet_variant.parquet.writing.options import DEFAULT_ROW_GROUP_BYTES
from parquet_variant.parquet.writing.write import SchemaLike
from parquet_variant.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.renamed import REPLACED, renamed
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.profile import Profile

__all__ = ["plan_rewrite", "rewrite", "rewrite_file", "run_rewrite"]


@renamed(overwrite=REPLACED)
def rewrite(
    source: Source,
    dest: Any,
    *,
    layout: Layout | None = None,
    schema: SchemaLike = None,
    column: str | None = None,
    annotation: bool = True,
    compression: str = "zstd",
    compression_level: int | None = None,
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES,
    sort_by: Sequence[str] | str = (),
    bloom_filters: Collection[str] | str = (),
    on_conflict: OnConflict = "error",
    filesystem: fs.FileSystem | None = None,
    mode: FileMode = "error",
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[FileInfo]:
    """Rewrite files; memory is bounded by a row group for each thread.

    Parameters
    ----------
    source
        A file, directory, glob, URI or list of these; in any layout.
    dest
        A file for one file; otherwise a directory, in which the files keep their names below the source directory.
    layout
        ``"final"``, ``"unshredded"``, ``"draft-paths"`` or ``"draft-object"``; by default each column's own, or
        ``"final"`` where a schema is given.
    schema
        A `ShreddingSchema`, its DDL, or ``"infer"`` to choose one from all the values of all the files. By default what
        each column has.
    column
        The Variant column that `schema` is for; may be left out if there is only one. Other Variant columns change
        their layout only.
    annotation
        Put the VARIANT annotation on; without, readers that know no Variant see a struct.
    compression, compression_level, row_group_bytes
        As for `write`.
    sort_by, bloom_filters
        As for `VariantWriter`: each file is sorted, in memory.
    on_conflict
        As for `read`.
    filesystem
        A pyarrow filesystem, for both sides.
    mode
        If a file is there: ``"error"``, or ``"overwrite"``.
    threads
        How many work on row groups and columns, or on files if there are several; by default one for each CPU that this
        process may use.
    progress
        Called with the step, the files done and the files in all.

    Returns
    -------
    list of FileInfo
        One a file.

    Raises
    ------
    VariantFileError
        If there is nothing to read, or the destination exists.
    ConflictError, MalformedVariantError
        For values that are not valid, with file and row.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']), schema="a bigint")
    ...     _ = pv.parquet.rewrite(f"{folder}/a.parquet", f"{folder}/b.parquet", layout="unshredded", annotation=False)
    ...     pv.parquet.read(f"{folder}/b.parquet")
    <VariantArray unshredded, 1 rows: [{"a":1}]>
    """
    return run_rewrite(
        ThreadEngine(threads, progress),
        source,
        dest,
        layout=layout,
        schema=schema,
        column=column,
        annotation=annotation,
        compression=compression,
        compression_level=compression_level,
        row_group_bytes=row_group_bytes,
        sort_by=sort_by,
        bloom_filters=bloom_filters,
        on_conflict=on_conflict,
        filesystem=filesystem,
        mode=mode,
    )


@renamed(overwrite=REPLACED)
def run_rewrite(
    engine: Engine,
    source: Source,
    dest: Any,
    *,
    layout: Layout | None = None,
    schema: SchemaLike = None,
    column: str | None = None,
    on_conflict: OnConflict = "error",
    filesystem: fs.FileSystem | None = None,
    mode: FileMode = "error",
    **write: Any,
) -> list[FileInfo]:
    """Rewrite files, a task each, on whatever runs the tasks; `rewrite` says what the options mean."""
    targets = plan_rewrite(source, dest, filesystem, mode=mode)
    if isinstance(schema, str):
        schema = (
            _inferred(engine, [each for each, _ in targets], column)
            if schema == "infer"
            else ShreddingSchema.from_ddl(schema)
        )
    work = partial(
        _rewrite_task,
        threads=max(1, engine.parallelism // len(targets)) if engine.local is engine else 1,
        layout=layout,
        schema=schema,
        column=column,
        on_conflict=on_conflict,
        filesystem=filesystem,
        # A task may run again after it has put its file in place.
        mode="overwrite",
        **write,
    )
    return engine.run("rewrite", work, targets)


def _rewrite_task(task: int, attempt: int, item: tuple[ParquetSource, str], **options: Any) -> FileInfo:
    return rewrite_file(*item, **options)


def plan_rewrite(
    source: Source, dest: Any, filesystem: fs.FileSystem | None = None, *, mode: FileMode = "error"
) -> list[tuple[ParquetSource, str]]:
    """Each file with the one to write; nothing is written.

    Raises
    ------
    VariantFileError
        If there is nothing to read, or a file to write is there and may not be replaced.
    """
    targets = _targets(source, locate(source, filesystem), dest, filesystem)
    for _, target in targets:
        system, path = filesystem_of(target, filesystem)
        if not replaces(mode) and system.get_file_info(path).type != fs.FileType.NotFound:
            raise VariantFileError(
                f"{path} exists already: choose another name, or replace it: mode='overwrite'",
                reason="exists",
                file=path,
            )
    return targets


def _targets(
    source: Any, sources: list[ParquetSource], dest: Any, filesystem: fs.FileSystem | None
) -> list[tuple[ParquetSource, str]]:
    """Each file with the one to write; a directory's files keep their places below it."""
    system, root = filesystem_of(dest, filesystem)
    single = (
        len(sources) == 1 and sources[0].path == filesystem_of(source, filesystem)[1] if _is_path(source) else False
    )
    if single and system.get_file_info(root).type != fs.FileType.Directory:
        return [(sources[0], str(dest))]
    folders = [posixpath.dirname(each.path) for each in sources]
    base = posixpath.commonpath(folders) if all(folders) else ""
    below = [posixpath.relpath(each.path, base) if base else each.path for each in sources]
    return [(each, f"{str(dest).rstrip('/')}/{name}") for each, name in zip(sources, below, strict=True)]


def _is_path(source: Any) -> bool:
    return isinstance(source, str) or hasattr(source, "__fspath__")


def _inferred(engine: Engine, sources: list[ParquetSource], column: str | None) -> ShreddingSchema:
    from parquet_variant.functions.storage.infer_shredding_schema import infer_shredding_schema

    work = partial(_profile_task, column=column)
    return infer_shredding_schema(engine.reduce("infer the schema", work, sources, Profile.merge))


def _profile_task(task: int, attempt: int, source: ParquetSource, *, column: str | None) -> Profile:
    profile: Profile | None = None
    with open_file(source) as file:
        for _, array in row_group_arrays(file, choose_column(file.schema, column, file.name)):
            found = Profile.of_array(array)
            profile = found if profile is None else profile.merge(found)
    return Profile.of_array(VariantArray.from_variants([])) if profile is None else profile


def rewrite_file(
    source: ParquetSource,
    dest: str,
    *,
    layout: Layout | None,
    schema: ShreddingSchema | None,
    column: str | None,
    on_conflict: OnConflict,
    threads: int,
    **options: Any,
) -> FileInfo:
    """Rewrite one file; `rewrite` says what the options mean.

    Raises
    ------
    VariantFileError
        If the file has no Variant column (of that name).
    """
    with open_file(source) as file:
        main = choose_column(file.schema, column, file.name) if schema is not None or column is not None else None
        variants = find_variants(file.schema)
        if not variants:
            raise no_variant_column([node.name for node in file.schema.children], file.name)

        def converted(groups: list[int]) -> pa.Table:
            with _placed(file, groups):
                path = None if main is None else main.path
                return _converted(file.for_one_thread(), groups, layout, schema, path, on_conflict)

        every = [[number] for number in range(file.metadata.num_row_groups)] or [[]]
        with VariantWriter(dest, threads=threads, **options) as writer:
            for groups, table in zip(every, in_order(converted, every, threads, ahead=0), strict=True):
                with _placed(file, groups):
                    writer.write_batch(table)
    assert writer.info is not None
    return writer.info


@contextmanager
def _placed(file: OpenFile, groups: list[int]) -> Iterator[None]:
    """What is wrong with a row of a row group, with its place in the file."""
    try:
        yield
    except VariantError as error:
        if error.row is not None and error.file is None:
            error.row += sum(file.metadata.row_group(number).num_rows for number in range(groups[0]))
        raise error.at(file=file.name) from None


def _converted(
    file: OpenFile,
    groups: list[int],
    layout: Layout | None,
    schema: ShreddingSchema | None,
    main: tuple[str, ...] | None,
    on_conflict: OnConflict,
) -> pa.Table:
    """A row group with every Variant in its new form."""
    table = tagged_table(file, groups)

    def convert(array: pa.StructArray, path: Place) -> pa.StructArray:
        return _conversion(VariantArray(array), layout, schema if path == main else None, on_conflict)

    return map_variants(table, convert)


def _conversion(
    array: VariantArray, layout: Layout | None, schema: ShreddingSchema | None, on_conflict: OnConflict
) -> pa.StructArray:
    from parquet_variant.functions.storage.shred_variant import shred_variant
    from parquet_variant.functions.storage.unshred_variant import unshred_variant

    if layout is None:
        layout = array.layout if schema is None or array.layout != "unshredded" else "final"
    wanted = array.schema if schema is None else schema
    plain = unshred_variant(array, on_conflict=on_conflict, threads=1) if array.is_shredded else array
    if layout == "unshredded" or wanted is None:
        return plain.storage
    return shred_variant(plain, wanted, layout=layout, threads=1).storage
