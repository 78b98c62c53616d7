"""`rewrite` and `optimize`: Vortex files in another layout or format, and small files compacted or re-shredded.

Owns the public operations, and the tables of a file of either format. `files.parquet.operations.rewrite` owns the new
form of a Variant, `writer` Vortex files, and `files.parquet.writing.writer` Parquet files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_choice, check_names
from parquet_variant.files.parquet.format.arrow_schema import Place, map_variants
from parquet_variant.files.parquet.format.files import ParquetSource, locate
from parquet_variant.files.parquet.format.files import open_file as open_parquet
from parquet_variant.files.parquet.operations.rewrite import (
    FilesToOptimize,
    ShreddedFile,
    new_storage,
    plan_rewrite,
    profile_task,
    write_targets,
)
from parquet_variant.files.parquet.reading.read import main_place, read_rows
from parquet_variant.files.parquet.writing.writer import FileInfo, SchemaLike, VariantWriter
from parquet_variant.files.vortex import reader
from parquet_variant.files.vortex.dtype import JsonColumn, compress_json, json_errors
from parquet_variant.files.vortex.library import open_file, open_files, vortex
from parquet_variant.files.vortex.paths import local_name, vortex_files
from parquet_variant.files.vortex.writer import VortexColumn, VortexFileInfo, check_options, write
from parquet_variant.inference.infer import infer
from parquet_variant.inference.profile import Profile
from parquet_variant.io.directories import VORTEX_SUFFIX
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.parallel import Engine, ThreadEngine, check_interrupted
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.shred_variant import infer_shredding_schema
from parquet_variant.support.options import AnyLayout, FileMode, Layout, OnConflict, VortexLayout
from parquet_variant.support.records import Record


class VortexFile(NamedTuple):
    """A Vortex file of a local disk."""

    path: str
    size: int = 0  # Of files to optimize.


SourceFile: TypeAlias = VortexFile | ParquetSource


class VortexFiles(FilesToOptimize):
    """Vortex files of a directory."""

    extension = VORTEX_SUFFIX[1:]

    def __init__(self, column: str | None, write: Mapping[str, Any]) -> None:
        vortex()
        check_names("option to optimize Vortex files", write, ())
        super().__init__(column, write)

    def _files(self, root: str) -> list[VortexFile]:
        return [VortexFile(file.path, file.size) for file in open_files(filesystem_of(local_name(root))[1])]

    def _describe(self, source: VortexFile) -> ShreddedFile:
        file = open_file(source.path)
        name = reader.choose_variant(file, self.column)
        # The columns that must be equal in files to be merged; of the chosen column only the layout.
        renamed_fields = [(field if field.name != name else field.name) for field in file.schema]
        exact = [note.has_texts for note in file.notes.values()]
        key = f"{renamed_fields} {file.layouts} {exact}"
        return ShreddedFile(source, file.shredding_schema(name), len(file), key)

    def _profile(self, task: int, attempt: int, source: VortexFile) -> Profile:
        return _profile(task, attempt, source, column=self.column)

    def _write(self, sources: Sequence[VortexFile], dest: str, schema: ShreddingSchema | None) -> VortexFileInfo:
        first = open_file(sources[0].path)
        main = reader.choose_variant(first, self.column)
        form = _Form("vortex", schema=schema or first.shredding_schema(main), column=main)
        return _write_vortex(sources, filesystem_of(dest)[1], form, keeps_layouts=True)


FileFormat: TypeAlias = Literal["parquet", "vortex"]
_VORTEX_LAYOUTS: dict[str, VortexLayout] = {"unshredded": "variant", "final": "struct"}


def rewrite(
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    format: FileFormat | None = None,
    layout: AnyLayout | None = None,
    schema: SchemaLike = None,
    column: str | None = None,
    on_conflict: OnConflict = "error",
    mode: FileMode = "error",
    engine: Engine | None = None,
    **options: Any,
) -> list[VortexFileInfo | FileInfo]:
    """Rewrite Parquet files as Vortex files, Vortex files as Parquet files, or Vortex files in another layout.

    See `Table.rewrite`.
    """
    vortex()
    engine = engine or ThreadEngine()
    files: list[SourceFile] = [VortexFile(name) for name in vortex_files(source)] or list(locate(source))
    dest = path_text(dest).removeprefix("file://")
    check_choice("format", format, get_args(FileFormat), optional=True)
    is_parquet = dest.endswith(".parquet") or (isinstance(files[0], ParquetSource) and not dest.endswith(VORTEX_SUFFIX))
    kind: FileFormat = format or ("parquet" if is_parquet else "vortex")
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    choices = get_args(Layout) if kind == "parquet" else (*_VORTEX_LAYOUTS, *get_args(VortexLayout))
    check_choice(f"the layout of {kind.title()} files", layout, choices, optional=True)
    if kind == "vortex":
        check_options(**options)
        dest = local_name(dest)
    targets = plan_rewrite(source, dest, mode=mode, files=files, suffix=f".{kind}")
    if schema == "infer":
        schema = infer(engine.reduce("infer the schema", partial(_profile, column=column), files, Profile.merge)).schema
    values: Any = layout if kind == "parquet" else "unshredded" if layout == "unshredded" else None
    stored: Any = None if kind == "parquet" or layout is None else _VORTEX_LAYOUTS.get(layout, layout)
    form = _Form(
        kind, layout=values, vortex_layout=stored, on_conflict=on_conflict,
        schema=None if schema is None else ShreddingSchema.of(schema), column=column, options=options,
    )  # fmt: skip
    return write_targets(engine, partial(_rewrite, form=form), targets)


def _profile(task: int, attempt: int, file: SourceFile, *, column: str | None) -> Profile:
    if isinstance(file, ParquetSource):
        return profile_task(task, attempt, file, column=column)
    return Profile.of_array(reader.read(file.path, column))


class _Form(Record):
    """The new form of the files and their Variants; `rewrite` documents the options."""

    format: FileFormat
    layout: Layout | None = None  # The layout of the values: of Parquet, or before Vortex stores them.
    vortex_layout: VortexLayout | None = None
    on_conflict: OnConflict = "error"
    schema: ShreddingSchema | None = None
    column: str | None = None
    options: Mapping[str, Any] | None = None  # Keywords of the writer of the format.
    shreds_all: bool = False  # Whether columns that are unshredded in a Vortex file get a schema in Parquet.

    def main(self, file: SourceFile) -> Place | None:
        """Return the column that the schema applies to, in Parquet also one of JSON text; None without a schema."""
        if self.schema is None:
            return None
        if isinstance(file, ParquetSource):
            with open_parquet(file) as opened:
                return main_place(opened, self.column)
        return (reader.choose_variant(open_file(file.path), self.column, json=self.format == "parquet"),)

    def tables(self, file: SourceFile, main: Place | None, like: SourceFile | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a file, as at least one table, with all Variants in their new form.

        `main`: the column that the schema is for.
        `like`: the file whose schemas the other columns have.
        """
        # Schemas of columns that have none in a table of the file.
        schemas: dict[str, ShreddingSchema] = {}
        if isinstance(file, VortexFile) and self.layout in (None, "final"):
            opened = open_file((like or file).path)
            for name, note in opened.notes.items():  # columns of Vortex's Variant type that were written with a schema
                if note.schema is not None and note.schema.kind != "variant":
                    schemas[name] = note.schema
            for name in opened.layouts if self.shreds_all else ():
                if (name,) != main and opened.shredding_schema(name).kind == "variant":
                    schemas[name] = infer_shredding_schema(reader.read(file.path, name))
            for name in opened.json_columns if self.format == "parquet" else ():
                with json_errors(name, file.path):
                    schemas[name] = infer_shredding_schema(compress_json(reader.json_texts(opened, name), shred=False))

        def convert(storage: pa.StructArray, place: Place) -> pa.StructArray:
            check_interrupted()
            array = VariantArray(storage)
            schema = self.schema if place == main else schemas.get(place[0]) if len(place) == 1 else None
            layout = self.layout
            # Drafts keep their layout in Parquet.
            if layout is None and (schema is not None or (array.is_shredded and self.format == "vortex")):
                layout = "final"
            return new_storage(array, schema, layout, self.on_conflict)

        if isinstance(file, ParquetSource):
            partition = file.partition if self.format == "vortex" else ()  # Vortex has no columns in directories.
            with open_parquet(file) as parquet:
                for group in [[number] for number in parquet.facts.groups] or [[]]:
                    with parquet.place_errors(group):
                        yield map_variants(read_rows(parquet, group, partition=partition), convert)
        else:
            for table in reader.iter_tables(file.path, json=self.format == "vortex"):
                yield map_variants(table, convert)


def _rewrite(task: int, attempt: int, target: tuple[SourceFile, str], *, form: _Form) -> FileInfo | VortexFileInfo:
    file, dest = target
    # A task may run again after it has moved its file into place.
    if form.format == "vortex":
        return _write_vortex([file], dest, form, mode="overwrite")
    with VariantWriter(dest, mode="overwrite", **form.options or {}) as writer:
        for table in form.tables(file, form.main(file)):
            writer.write_batch(table)
    assert writer.info is not None
    return writer.info


def _write_vortex(
    files: Sequence[SourceFile], dest: str, form: _Form, *, mode: FileMode = "error", keeps_layouts: bool = False
) -> VortexFileInfo:
    """Write rows of files to a Vortex file; the column of a new schema keeps its layout only with `keeps_layouts`."""
    main = form.main(files[0])
    table = pa.concat_tables([table for file in files for table in form.tables(file, main, files[0])])
    opened = [open_file(file.path) for file in files if isinstance(file, VortexFile)]
    columns = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        name, layout = field.name, None
        values: Any = VariantArray.from_arrow(column) if is_variant_field(field) else one_chunk(column)
        if opened and name in opened[0].layouts:
            if form.vortex_layout is None and (keeps_layouts or (name,) != main):
                layout = opened[0].layouts[name]
            if opened[0].note(name).is_json:  # with its original texts if they were kept
                originals = [part for file in opened if (part := reader.original_texts(file, name)) is not None]
                values = JsonColumn(values, pa.concat_arrays(originals) if originals else None)
        columns[name] = VortexColumn(values, layout, field.nullable)
    return write(dest, columns, layout=form.vortex_layout or "auto", mode=mode, **form.options or {})


def write_shredded_parquet(file: str, dest: str) -> None:
    """Write the rows of a Vortex file to a Parquet file, in which all Variants that are columns are shredded."""
    _rewrite(0, 0, (VortexFile(file), dest), form=_Form("parquet", shreds_all=True))
