"""`Table.publish`: one data set as tables of several formats; and directories of files as sources.

Owns the choice of the source and of the target; the schema of a directory, and which files of it count: those that
other formats would read. A Vortex file is converted once to a Parquet file with shredded Variants. The other modules
are a source or a target in each format.
"""

from __future__ import annotations

import os
import posixpath
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
from pyarrow.fs import LocalFileSystem

from parquet_variant.errors import TableError, VariantError, VariantFileError, check_choice
from parquet_variant.files.parquet.format.arrow_schema import FIELD_ID
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.facts import OWN_WRITER
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.reading.read import read_rows
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.files.vortex.library import open_files
from parquet_variant.files.vortex.paths import local_name, vortex_files
from parquet_variant.files.vortex.rewriting import write_shredded_parquet
from parquet_variant.inference.statistics import ValueBounds, shredded_bounds, typed_place
from parquet_variant.io.commit_journal import hidden_files
from parquet_variant.io.directories import (
    PARQUET_SUFFIXES,
    VORTEX_SUFFIX,
    Partition,
    data_file_names,
    declared_partitions,
    partition_texts,
    typed_partitions,
)
from parquet_variant.io.filesystems import path_text
from parquet_variant.io.parallel import ThreadEngine
from parquet_variant.io.staging import recover
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.options import PublishFormat
from parquet_variant.support.records import cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.tables.delta.log.snapshot import snapshot as delta_snapshot
from parquet_variant.tables.file_metrics import footer_leaf, footer_metrics, leaf_columns
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, find_table
from parquet_variant.tables.iceberg.locations import absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, raw_values, type_name, type_of_arrow
from parquet_variant.tables.iceberg.reading.snapshot import snapshot as iceberg_snapshot
from parquet_variant.tables.iceberg.writing.write_plan import WriteProperties, manifest_metrics
from parquet_variant.tables.opening import format_of_table, published_from
from parquet_variant.tables.publishing.delta import DeltaSource, publish_delta
from parquet_variant.tables.publishing.ducklake_target import publish_ducklake
from parquet_variant.tables.publishing.iceberg import IcebergSource, publish_iceberg
from parquet_variant.tables.publishing.source import (
    ListedFile,
    PublishResult,
    Rows,
    Source,
    SourceColumns,
    TakeId,
    cannot_publish,
    field_ids,
    is_promotion,
)
from parquet_variant.tables.storage import Storage, StorageFile, open_storage
from parquet_variant.types.path import VariantPath

_ATTEMPTS = 5


def publish(
    table: str | os.PathLike[str],
    format: PublishFormat,
    *,
    to: str | os.PathLike[str] | None = None,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> PublishResult:
    """Write the metadata of another table format over the data files of a table, which are not copied.

    See `Table.publish`.
    """
    if str(format) == "vortex":
        raise TableError(
            "Vortex files have no metadata that could name the files of a table: copy the rows with variant rewrite "
            "TABLE FILE.vortex",
            reason="bad-argument",
        )
    check_choice("format", format, get_args(PublishFormat), TableError)
    target = None if to is None else path_text(to)
    for attempt in range(_ATTEMPTS):
        try:
            source = _source_of(path_text(table), format, target, catalog, storage_options)
            if format == "iceberg":
                place = find_table(
                    target or normal_location(source.location), catalog, storage_options or source.options
                )
                return publish_iceberg(source, *place)
            if format == "delta":
                return publish_delta(source, target, storage_options)
            return publish_ducklake(source, target)
        except VariantError as error:
            if error.reason == "cannot-publish":
                raise error.at(file=source.location) from None
            # Another publication was at work: what it left to do is found again.
            is_created = error.reason in ("exists", "table-exists") and not attempt
            if not is_created and (error.reason not in ("conflict", "too-many-retries") or attempt + 1 == _ATTEMPTS):
                raise
    raise AssertionError


def _source_of(
    table: str, format: str, to: str | None, catalog: CatalogOption, options: Mapping[str, str] | None
) -> Source:
    """Return the source that a user names, for publishing in a format that the table does not have already."""
    if catalog is not None and format != "iceberg":
        return IcebergSource(iceberg_snapshot(table, catalog=catalog, storage_options=options))
    kind = format_of_table(table, options)
    if kind is None and vortex_files(table):
        # A table of a catalog is next to the files.
        return VortexFilesSource(table, None if catalog is not None or format == "ducklake" else to, options)
    # A repeated publication in the table's directory has the source of the first one.
    mark = published_from(table, format, options) if to is None else None
    if mark == VortexFilesSource.format:
        problem = f"{table} was published from Vortex files: publish these files again, not the table"
        raise TableError(problem, reason="bad-argument", file=table)
    if kind == format and mark is None:
        raise TableError(f"{table} is a table of the format {format} already", reason="bad-argument", file=table)
    if (mark or kind) == "delta":
        return DeltaSource(delta_snapshot(table, storage_options=options))
    if (mark or kind) == "iceberg":
        return IcebergSource(iceberg_snapshot(table, storage_options=options))
    return ParquetFilesSource(table, options)


_METADATA = "metadata/"


class ParquetFilesSource(Source):
    """The Parquet files of a directory."""

    format = "parquet"
    version = ""
    may_be_replaced = True  # Whether another file can get the name of a file.

    def __init__(self, directory: str, options: Mapping[str, str] | None = None) -> None:
        self.location = absolute_location(directory)
        self.options = dict(options or {})
        self._storage = open_storage(directory, self.options)

    @cached_property
    def _stored(self) -> list[StorageFile]:
        files = parquet_files(self._storage)
        if not files:
            problem = f"{self._storage.uri} is not a directory with Parquet files (*.parquet): check the path"
            raise VariantFileError(problem, reason="no-files", file=self._storage.uri)
        return files

    @cached_property
    def _sources(self) -> dict[str, ParquetSource]:
        strings = [partition_texts(file.path.split("/")[:-1]) for file in self._stored]
        partitions: list[Partition] = [()] * len(strings)
        if any(strings):
            _, declared = declared_partitions(*self._storage.filesystem(""))
            partitions = typed_partitions(strings, [declared] * len(strings))
        return {
            f"{self.location}/{file.path}": ParquetSource(path, filesystem, file.size, partition)
            for file, partition in zip(self._stored, partitions, strict=True)
            for filesystem, path in [self._storage.filesystem(file.path)]
        }

    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """See `Source.columns`: the columns of all files, each nullable."""
        union = _UnionOfColumns()
        for source in self._sources.values():
            with open_file(source) as opened:
                union.add(opened)
        fields = {f.name: f for f in union.schema.fields}
        take = union.number if union.numbers else field_ids(former, last_id)
        partition = next(iter(self._sources.values())).partition
        for name, value in partition:
            f = shared.from_arrow_field(pa.field(name, value.type), type_of_arrow)
            stored = fields.setdefault(name, f).type
            if stored != f.type:
                raise cannot_publish(
                    f"the partition column {name} is {type_name(f.type)} in the directories and {type_name(stored)} in "
                    "the files"
                )
        return SourceColumns(
            Schema(0, shared.StructType(tuple(_with_ids(fields.values(), take)))),
            files_lack_ids=not union.numbers,
            partition_by=tuple(name for name, _ in partition),
        )

    def listed(self) -> Iterator[ListedFile]:
        """See `Source.listed`."""
        for file in self._stored:
            modified = file.modified if self.may_be_replaced else None
            yield ListedFile(f"{self.location}/{file.path}", file.size, modified=modified)

    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """See `Source.described`: the metrics of a file are those of its footer."""
        for file in files:
            source = self._sources[file.location]
            values = (pa.array([value.as_py()], value.type) for _, value in source.partition)
            partition = tuple(
                raw_values(array, f.type)[0]
                for array, f in zip(values, columns.partition_fields, strict=True)
                if isinstance(f.type, shared.PrimitiveType)
            )
            with open_file(source) as opened:
                variants = tuple(variant.path for variant in find_variants(opened.schema))
                info = FileInfo(
                    path=opened.name, rows=opened.facts.rows(), bytes=source.size,
                    row_groups=opened.metadata.num_row_groups, variants=variants,
                    may_hold_nan=opened.facts.may_hide_nan, footer=opened.facts.footer,
                )  # fmt: skip
                bounds = {place: _variant_bounds(info, place, opened) for place in variants}
            collected = footer_metrics(info, leaf_columns(columns.schema.struct), {}, bounds)
            metrics = manifest_metrics(columns.schema, WriteProperties({}), info, collected)
            yield DataFile(file.location, "parquet", info.rows, info.bytes, 0, partition, **metrics)

    def deleted_rows(self, file: ListedFile) -> Rows:
        """See `Source.deleted_rows`: no file has deleted rows."""
        raise AssertionError(file)


def parquet_files(storage: Storage) -> list[StorageFile]:
    """Return the data files of a directory, in order of their paths, without those of tables below it.

    Commits to the directory that were interrupted are completed or undone before.
    """
    filesystem, root = storage.filesystem("")
    if isinstance(filesystem, LocalFileSystem):
        recover([f"{root}/{_METADATA}"], filesystem)
    files = {file.path: file for file in storage.list("")}
    hidden = hidden_files(filesystem, [posixpath.join(root, name) for name in files])
    names = [name for name in files if not name.startswith(_METADATA) and posixpath.join(root, name) not in hidden]
    return [files[name] for name in data_file_names(names, PARQUET_SUFFIXES, storage.uri)]


class _UnionOfColumns:
    """The columns of several files."""

    def __init__(self) -> None:
        self.schema = shared.StructType(())
        self.numbers: dict[shared.Place, int] = {}
        self._some_lack_ids = False

    def add(self, opened: OpenFile) -> None:
        """Add the columns of a file."""
        variants = find_variants(opened.schema)
        draft = next((v for v in variants if v.layout not in ("final", "unshredded")), None)
        if draft is not None or any(variant.repeated for variant in variants):
            raise cannot_publish(
                f"the Variants of {opened.name} have a draft layout, or are inside of lists or maps: rewrite the file "
                "with variant rewrite"
            )

        def wider(old: shared.TableType, new: shared.TableType, place: shared.Place) -> shared.TableType:
            if new == shared.VOID or (old != shared.VOID and is_promotion(new, old)):
                return old
            if old == shared.VOID or is_promotion(old, new):
                return new
            name, types = ".".join(place), f"{type_name(old)} in one file and {type_name(new)} in {opened.name}"
            raise cannot_publish(f"column {name} is {types}")

        fields = (shared.from_arrow_field(arrow, type_of_arrow) for arrow in read_rows(opened, []).schema)
        columns = shared.StructType(tuple(replace(f, nullable=True) for f in fields))
        merged = shared.merged_type(self.schema, columns, (), wider, lambda f: replace(f, nullable=True))
        assert isinstance(merged, shared.StructType)
        self.schema = merged
        numbers = dict(_ids_of(opened.arrow_schema))
        self._some_lack_ids |= not numbers
        differing = [p for p, number in numbers.items() if self.numbers.get(p, number) != number]
        if differing or (self._some_lack_ids and (numbers or self.numbers)):
            raise cannot_publish(f"{opened.name} has other field ids than other files")
        self.numbers |= numbers

    def number(self, place: shared.Place, kind: shared.TableType) -> int:
        """Return the field id that the files have; see `field_ids`."""
        if place not in self.numbers:
            raise cannot_publish(f"the files have field ids, but none for {'.'.join(place)}")
        return self.numbers[place]


def _ids_of(fields: Iterable[pa.Field], place: shared.Place = ()) -> Iterator[tuple[shared.Place, int]]:
    """Yield the field ids of Arrow fields at every depth, by place."""
    for f in fields:
        number, inner = (f.metadata or {}).get(FIELD_ID), []
        if number is not None and int(number) >= 0:
            yield (*place, f.name), int(number)
        if pa.types.is_struct(f.type):
            inner = list(f.type)
        elif pa.types.is_list(f.type):
            inner = [f.type.value_field.with_name("element")]
        elif pa.types.is_map(f.type):
            inner = [f.type.key_field, f.type.item_field]
        yield from _ids_of(inner, (*place, f.name))


def _with_ids(fields: Iterable[shared.Field], take: TakeId, place: shared.Place = ()) -> list[shared.Field]:
    """Return fields with field ids at every depth, parents before their parts."""
    made = []
    for f in fields:
        number, inner = take((*place, f.name), f.type), shared.parts(f.type)
        kind = shared.with_parts(f.type, _with_ids(inner, take, (*place, f.name)))
        made.append(replace(f, field_id=number, type=kind))
    return made


def _variant_bounds(info: FileInfo, place: shared.Place, opened: OpenFile) -> Mapping[VariantPath, ValueBounds]:
    """Return the bounds of the paths of a shredded Variant."""
    kind = opened.arrow_schema.field(place[0]).type
    for name in place[1:]:
        kind = kind.field(name).type
    shredding = ShreddingSchema.from_storage(kind)
    # Other writers may keep objects in `value` whose fields are shredded, which the footer does not show.
    unsafe = []
    for path, node in shredding.walk() if not opened.facts.writer.startswith(OWN_WRITER) else ():
        residual = info.statistics.get((*place, *typed_place(path), "value"))
        if node.kind == "object" and residual is not None and not residual.all_null:
            unsafe.append(path)
    return shredded_bounds(shredding, lambda column: footer_leaf(info, (*place, *column)), unsafe=unsafe)


_NAMESPACE = uuid.UUID("f2b2b8b0-4d2b-4f0b-8a35-6a3a3a8f0c7e")
_DIRECTORY = "data"
_CONVERTED = re.compile(rf"{_DIRECTORY}/.*-[0-9a-f-]{{36}}\.parquet", re.DOTALL)


class VortexFilesSource(ParquetFilesSource):
    """The Vortex files of a path, as Parquet files in `location`.

    `path`: a Vortex file, a directory or a glob.
    `location`: the directory of the published table; by default ``PATH.published``, next to the Vortex files.
    `options`: configuration of the object store of `location`.
    """

    format = "vortex"
    may_be_replaced = False

    def __init__(self, path: str, location: str | None, options: Mapping[str, str] | None = None) -> None:
        self._path = path.removeprefix("file://").rstrip("/")
        super().__init__(location or f"{self.default_name}.published", options)

    @property
    def default_name(self) -> str:
        """See `Source.default_name`."""
        return absolute_location(self._path.removesuffix(VORTEX_SUFFIX))

    @cached_property
    def _stored(self) -> list[StorageFile]:
        base = Path(self._path) if Path(self._path).is_dir() else Path(self._path).parent
        names = [n for n in data_file_names([f.path for f in self._storage.list("")]) if not _CONVERTED.fullmatch(n)]
        if names and format_of_table(self._storage.uri, self.options) is None:
            problem = f"{self._storage.uri} has files that the table would hide ({names[0]}): choose another path"
            raise TableError(problem, reason="exists", file=self._storage.uri)
        converted: dict[str, str] = {}  # Paths of Parquet files in the storage, and their Vortex files.
        for file in open_files(local_name(self._path)):
            assert file.source is not None
            key = f"{os.path.relpath(file.path, base)}\0{file.source.version}"
            converted[f"{_DIRECTORY}/{Path(file.path).stem}-{uuid.uuid5(_NAMESPACE, key)}.parquet"] = file.path

        def convert(task: int, attempt: int, target: str) -> None:
            with self._storage.create(target) as local:
                # The writer renames a complete file: a killed publication leaves no part of a file under the name.
                write_shredded_parquet(converted[target], str(local))

        existing = {file.path for file in self._storage.list(_DIRECTORY)}
        ThreadEngine().run("convert", convert, [target for target in converted if target not in existing])
        stored = [file for file in parquet_files(self._storage) if file.path in converted]
        if missing := converted.keys() - {file.path for file in stored}:
            problem = f"{min(missing)}, which was just written to {self._storage.uri}, is missing: publish again"
            raise VariantFileError(problem, reason="missing-file", file=self._storage.uri)
        return stored
