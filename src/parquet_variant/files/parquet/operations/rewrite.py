"""`rewrite`: write files again in another layout or schema; `optimize`: compact the small files of a directory, and
re-shred files where that saves space.

Owns the choice of files, the form of each Variant, and replacing files, for `optimize` in any file format. Leaves
writing to `writing.writer`, the judgement of the old schema to `inference.infer`, staging to `io.staging`, and running
tasks to `io.parallel`.
"""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Any, ClassVar, Unpack, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.parts import empty_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError, check_choice, check_count
from parquet_variant.files.parquet.format.arrow_schema import Place, map_variants
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.files.parquet.reading.read import (
    column_of_files,
    main_place,
    read_rows,
    row_group_arrays,
    variant_in,
    variant_of_files,
)
from parquet_variant.files.parquet.writing.conform import FileKeywords, WriterOptions
from parquet_variant.files.parquet.writing.writer import FileInfo, SchemaLike, VariantWriter
from parquet_variant.inference.infer import DriftReport, find_drift_of_files, infer
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.inference.profile import Profile
from parquet_variant.io.commit_journal import Journal, visible_files
from parquet_variant.io.directories import data_file_names, partition_texts, types_to_declare
from parquet_variant.io.filesystems import filesystem_of, info_of, path_text, write_errors
from parquet_variant.io.parallel import Engine, ThreadEngine, check_interrupted, grouped, in_order
from parquet_variant.io.staging import COMPACTED, StagedFile, Staging, check_target, recover, staged_job
from parquet_variant.io.temporaries import keep_mode
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import shred_variant, unshred_variant
from parquet_variant.support.options import FileMode, Layout, OnConflict, with_keywords
from parquet_variant.support.records import Record, counted, human_bytes


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
    engine: Engine | None = None,
    **write: Unpack[FileKeywords],
) -> list[FileInfo]:
    """Rewrite files; memory is limited to one row group per thread; see `Table.rewrite`."""
    engine = engine or ThreadEngine()
    check_choice("layout", layout, get_args(Layout), optional=True)
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    WriterOptions.of(write)  # Check options before files are read.
    targets = plan_rewrite(source, dest, filesystem, mode=mode)
    recover([target for _, target in targets], filesystem)
    sources = [file for file, _ in targets]
    column = column_of_files(sources, column, schema)
    if schema == "infer":
        profile = partial(profile_task, column=column)
        schema = infer(engine.reduce("infer the schema", profile, sources, Profile.merge)).schema
    schema = None if schema is None else ShreddingSchema.of(schema)
    if types := types_to_declare({name: value.type for name, value in sources[0].partition}):
        with write_errors(path_text(dest)):
            Journal((), (), (), types).complete(*filesystem_of(dest, filesystem))
    work = partial(
        VariantForm(layout, schema, column, on_conflict).rewrite,
        threads=max(1, engine.parallelism // len(targets)) if engine.local is engine else 1,
        filesystem=filesystem,
        # A task may run again after it has moved its file into place.
        mode="overwrite",
        **write,
    )
    return write_targets(engine, work, targets, filesystem)


def write_targets(engine: Engine, work: Any, targets: Sequence[tuple[Any, str]], filesystem: Any = None) -> list[Any]:
    """Run the tasks that write the targets of `plan_rewrite`; if one fails, remove the new files of the other tasks."""
    places = {target: filesystem_of(target, filesystem) for _, target in targets}
    existing = {target for target, place in places.items() if info_of(*place).type != fs.FileType.NotFound}
    written: list[str] = []  # Only by tasks of this process: the files of nobody else may be removed.

    def write(task: int, attempt: int, target: tuple[Any, str]) -> Any:
        info = work(task, attempt, target)
        written.append(target[1])
        return info

    try:
        return engine.run("rewrite", write, targets)
    except BaseException:
        for system, path in (places[target] for target in written if target not in existing):
            with suppress(OSError):
                system.delete_file(path)
        raise


def plan_rewrite(
    source: Source,
    dest: str | os.PathLike[str],
    filesystem: fs.FileSystem | None = None,
    *,
    mode: FileMode = "error",
    files: Sequence[Any] | None = None,
    suffix: str | None = None,
) -> list[tuple[Any, str]]:
    """Return pairs of source file and destination; nothing is written.

    `files`: the source files, with their ``path`` (default: the Parquet files of `source`).
    `suffix`: the suffix of new files in a directory (default: that of their source).
    Raises `VariantFileError` if there are no files to read, or a destination exists and may not be replaced.
    """
    sources, (system, root) = files or locate(source, filesystem), filesystem_of(dest, filesystem)
    source_path = filesystem_of(source, filesystem)[1] if isinstance(source, str | os.PathLike) else None
    is_directory = str(dest).endswith("/") or info_of(system, root).type == fs.FileType.Directory
    if [file.path for file in sources] == [source_path] and not is_directory:
        targets = [str(dest)]
    else:  # Files keep their paths relative to the source directory, with all directories of partitions.
        folders = [posixpath.dirname(file.path) for file in sources]
        base, partition = posixpath.commonpath(folders) if all(folders) else "", getattr(sources[0], "partition", ())
        while base and len(partition_texts(posixpath.relpath(folders[0], base).split("/"))) < len(partition):
            base = posixpath.dirname(base)
        names = [posixpath.relpath(file.path, base) if base else file.path for file in sources]
        names = [name if suffix is None else posixpath.splitext(name)[0] + suffix for name in names]
        targets = [f"{str(dest).rstrip('/')}/{name}" for name in names]
        listed = [posixpath.relpath(info.path, root) for info in visible_files(system, root)]
        data_file_names([*listed, *names], place=root)  # refuses the directory if it has files of the other format
    for target in targets:
        check_target(*filesystem_of(target, filesystem), mode)
    return list(zip(sources, targets, strict=True))


def profile_task(task: int, attempt: int, source: ParquetSource, *, column: str | None) -> Profile:
    """Return the profile of a Variant column of a file; `column` is optional if there is only one."""
    with open_file(source) as file:
        arrays = row_group_arrays(file, variant_in(file, column))
        return reduce(Profile.merge, (Profile.of_array(array) for _, array in arrays), Profile())


class VariantForm(Record):
    """The new form of the Variants in a file; `rewrite` documents the options."""

    layout: Layout | None
    schema: ShreddingSchema | None
    column: str | None
    on_conflict: OnConflict
    keeps_others: bool = False  # Whether the Variants of other columns keep their storage.

    def rewrite(self, task: int, attempt: int, target: tuple[ParquetSource, str], **options: Any) -> FileInfo:
        """Write the rows of a file to a new file."""
        source, dest = target
        return self.write([source], dest, **options)

    def write(self, sources: Sequence[ParquetSource], dest: str, *, threads: int = 1, **options: Any) -> FileInfo:
        """Write the rows of files to a new file."""
        with VariantWriter(dest, threads=threads, **options) as writer:
            for source in sources:
                with open_file(source) as file:
                    self._copy_rows(file, writer, threads)
        assert writer.info is not None
        return writer.info

    def _copy_rows(self, file: OpenFile, writer: VariantWriter, threads: int) -> None:
        main = main_place(file, self.column)

        def new(storage: pa.StructArray, place: Place) -> pa.StructArray:
            if self.keeps_others and place != main:
                return storage
            schema = self.schema if place == main else None
            return new_storage(VariantArray(storage), schema, self.layout, self.on_conflict)

        def converted(groups: list[int]) -> pa.Table:
            with file.place_errors(groups):
                return map_variants(read_rows(file.for_one_thread(), groups), new)

        row_groups = [[number] for number in file.facts.groups] or [[]]
        for groups, table in zip(row_groups, in_order(converted, row_groups, threads, ahead=0), strict=True):
            check_interrupted()
            with file.place_errors(groups):
                writer.write_batch(table)


def new_storage(
    array: VariantArray, schema: ShreddingSchema | None, layout: Layout | None, on_conflict: OnConflict
) -> pa.StructArray:
    """Return the storage of a Variant column in another schema or layout; None keeps the column's own."""
    if layout is None:
        layout = array.layout if schema is None or array.layout != "unshredded" else "final"
    if schema is None:
        schema = None if array.schema is None else array.schema.limited_to()
    unshredded = unshred_variant(array, on_conflict=on_conflict, threads=1) if array.is_shredded else array
    if layout == "unshredded" or schema is None:
        return unshredded.storage
    return shred_variant(unshredded, schema, layout=layout, threads=1).storage


# Also the default of Delta tables.
DEFAULT_FILE_BYTES = 256 << 20


class OptimizeResult(Record):
    """The result of `optimize`.

    Parameters
    ----------
    files_removed, files_added, bytes_removed, bytes_added
        Counts; all zero if no file was rewritten.
        Removed files of a table remain in storage until a vacuum.
    schema
        The shredding schema of the new files of a directory.
    drift
        The drift of the data from the old schema; for several Variant columns, that of the column where a change saves
        most. None if it was not measured.
    version
        The version of a table afterwards: of Iceberg, the id of its snapshot. None for a directory.
    """

    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    schema: ShreddingSchema | None = None
    drift: DriftReport | None = None
    version: int | None = None

    def __str__(self) -> str:
        place = "" if self.version is None else f" in version {self.version}"
        if not self.files_removed and not self.files_added:
            return f"nothing to do{place}"
        before = f"{counted(self.files_removed, 'file')} ({human_bytes(self.bytes_removed)})"
        return f"{before} became {counted(self.files_added, 'file')} ({human_bytes(self.bytes_added)}){place}"

    def __repr__(self) -> str:
        return f"<OptimizeResult {self}{'' if self.drift is None else f'; {self.drift!r}'}>"


class ShreddedFile(Record):
    """A file with its shredding schema, its rows, and its other columns, which must be equal in files to be merged."""

    source: Any  # The file, with its ``path`` and ``size``, as the functions of its format take it.
    schema: ShreddingSchema | None  # None if the layout has no schema, so that the file cannot be re-shredded.
    rows: int
    other_columns: str


class FilesToOptimize(ABC):
    """The files of a format, of which `optimize` compacts a directory; tasks of other processes call the methods.

    `column`: the name of the Variant column; it is optional if there is only one.
    `write`: the options of the writer.
    """

    extension: ClassVar[str]

    def __init__(self, column: str | None, write: Mapping[str, Any]) -> None:
        self.column, self._options = column, write

    @abstractmethod
    def _files(self, root: str) -> Sequence[Any]:
        """Return the files of a directory, with their ``path`` and ``size``."""

    @abstractmethod
    def _describe(self, source: Any) -> ShreddedFile:
        """Return the description of a file."""

    @abstractmethod
    def _profile(self, task: int, attempt: int, source: Any) -> Profile:
        """Return the profile of the Variant column of a file."""

    @abstractmethod
    def _write(self, sources: Sequence[Any], dest: str, schema: ShreddingSchema | None) -> Any:
        """Write one file from several; return its description, with ``rows`` and ``bytes``."""

    def _merge(
        self, task: int, attempt: int, sources: Sequence[Any], *, staging: Staging, schema: Any, root: str
    ) -> tuple[StagedFile, int, int]:
        """Write one file from several; return its staged place, rows and bytes."""
        folder = posixpath.relpath(posixpath.dirname(sources[0].path), root)
        name = staging.file_name(task, extension=self.extension, prefix=COMPACTED)
        staged = StagedFile(staging.attempt(task, attempt), name if folder == "." else f"{folder}/{name}")
        info = self._write(sources, staged.path, schema)
        keep_mode(*filesystem_of(staged.path), sources[0].path)
        return staged, info.rows, info.bytes

    @classmethod
    @with_keywords(FileKeywords, WriterOptions)
    def optimize(
        cls,
        path: str | os.PathLike[str],
        *,
        file_bytes: int = DEFAULT_FILE_BYTES,
        reshred: bool = False,
        schema: ShreddingSchema | str | None = None,
        policy: str | Policy | None = None,
        min_saving: float = 0.02,
        column: str | None = None,
        dry_run: bool = False,
        engine: Engine | None = None,
        **write: Unpack[FileKeywords],
    ) -> OptimizeResult:
        """Compact the small files of a directory, re-shredding files where that saves space; no row changes.

        See `Table.optimize`.
        """
        self, engine = cls(column, write), engine or ThreadEngine()
        root = path_text(path).rstrip("/")
        system, base = filesystem_of(root)
        if info_of(system, base).type != fs.FileType.Directory:
            problem = f"{root} is not a directory: pass a directory of Parquet files, or a Delta table"
            raise VariantFileError(problem, reason="not-found", file=root)
        if not dry_run:
            recover([f"{root}/*"])
        sources = self._files(root)
        files = [self._describe(source) for source in sources]
        drift: DriftReport | None = None
        target: ShreddingSchema | None = None
        reshreds, shredded = False, [file for file in files if file.schema is not None]
        if shredded and schema is None:
            profile = engine.reduce("profile", self._profile, [file.source for file in shredded], Profile.merge)
            infos = system.get_file_info([file.source.path for file in shredded])
            pairs = zip(shredded, infos, strict=True)
            rows = [(file.schema, file.rows, info.mtime) for file, info in pairs if file.schema]
            drift, current = find_drift_of_files(rows, profile, policy, min_saving)
            target = drift.to_shred(current, reshred=reshred)
            reshreds = reshred or drift.pays
        elif shredded and schema is not None:
            target, reshreds = ShreddingSchema.of(schema), True
        packed = pack_files(
            [((posixpath.dirname(file.source.path), file.other_columns), file.source.size) for file in files],
            file_bytes,
            [reshreds and file.schema not in (None, target) for file in files],
        )
        packs = [[files[at] for at in pack] for pack in packed]
        if dry_run or not packs:
            return OptimizeResult(schema=target, drift=drift)
        base = base.rstrip("/")
        old = [file.source for pack in packs for file in pack]
        with staged_job(root, "append") as staging:
            work = partial(self._merge, staging=staging, schema=target, root=base)
            results = engine.run("optimize", work, [[file.source for file in pack] for pack in packs])
            before, after = sum(file.rows for pack in packs for file in pack), sum(rows for _, rows, _ in results)
            if before != after:
                problem = f"{root} changed while it was read ({before:,} rows, then {after:,}): try again"
                raise VariantFileError(problem, reason="files-changed", file=root)
            replaced = [file.path[len(base) :].strip("/") for file in old]
            staging.commit([file for file, _, _ in results], marker=False, replaced=replaced)
        added = sum(size for _, _, size in results)
        return OptimizeResult(len(old), len(results), sum(file.size for file in old), added, target, drift)


class ParquetFiles(FilesToOptimize):
    """Parquet files of a directory."""

    extension = "parquet"

    def __init__(self, column: str | None, write: Mapping[str, Any]) -> None:
        WriterOptions.of(write)  # Check options before files are read.
        super().__init__(column, write)

    def _files(self, root: str) -> Sequence[ParquetSource]:
        sources = locate(root)
        self.column = variant_of_files(sources, self.column).name
        return sources

    def _describe(self, source: ParquetSource) -> ShreddedFile:
        with open_file(source) as file:
            table, schema, main = empty_table(file.arrow_schema), None, main_place(file, self.column)
            if main is not None:
                _, array = next(row_group_arrays(file, variant_in(file, self.column)))
                schema = array.schema if array.schema is not None else ShreddingSchema.variant()
            other_fields = [str(field) for field in table.schema if main is None or field.name != main[0]]
            return ShreddedFile(source, schema, file.metadata.num_rows, f"{table.schema.names} {other_fields}")

    def _profile(self, task: int, attempt: int, source: ParquetSource) -> Profile:
        return profile_task(task, attempt, source, column=self.column)

    def _write(self, sources: Sequence[ParquetSource], dest: str, schema: ShreddingSchema | None) -> FileInfo:
        form = VariantForm("final", schema, self.column, "error", keeps_others=True)
        return form.write(sources, dest, **self._options)


def pack_files(files: Sequence[tuple[Hashable, int]], file_bytes: int, rewritten: Sequence[bool]) -> list[list[int]]:
    """Return groups of files to merge, by number: small files, and files to rewrite; only the latter alone.

    `files`: a key that files of a group must share, and the size, of every file.
    `rewritten`: whether each file is rewritten in any case.
    """
    check_count("file_bytes", file_bytes, 1)
    by_key: dict[Hashable, list[int]] = {}
    for number, (key, size) in enumerate(files):
        if rewritten[number] or size < file_bytes * 3 // 4:
            by_key.setdefault(key, []).append(number)
    packs = (pack for numbers in by_key.values() for pack in grouped(numbers, lambda at: files[at][1], file_bytes))
    return [pack for pack in packs if len(pack) > 1 or rewritten[pack[0]]]
