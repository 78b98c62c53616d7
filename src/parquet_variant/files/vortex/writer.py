"""`write`: write Variant columns to a Vortex file, which is verified before it gets its name.

Owns the public operation, the choice of each column's layout, and the verification. `dtype` owns the layouts
and JSON text, and `library` the checksums and notes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.chunked_array import ChunkedVariantArray
from parquet_variant.arrays.final_columns import with_field_names
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, VariantFileError, check_choice, check_names, strings_of
from parquet_variant.files.parquet.writing.writer import shredded_as
from parquet_variant.files.vortex import library
from parquet_variant.files.vortex.dtype import (
    LAYOUTS,
    AnyPolicy,
    JsonColumn,
    StoredLayout,
    compress_json,
    final_variant,
    first_difference,
    json_errors,
    stored_column,
    within_dtype,
    without_nul,
)
from parquet_variant.files.vortex.paths import local_target
from parquet_variant.files.vortex.range_statistics import collect_statistics
from parquet_variant.inference.infer import infer
from parquet_variant.inference.profile import Profile
from parquet_variant.io.filesystems import cannot_write, write_errors
from parquet_variant.io.staging import atomic_file, replaces
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.arguments import as_arrow
from parquet_variant.ops.interop.tables import table_of
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.support.options import FileMode, VortexLayout
from parquet_variant.support.records import Record
from parquet_variant.types.forms import in_form, is_json_type, plain_form, with_fields

_OPTIONS = ("layout", "compact", "exact")
# Part of the messages of Rust for errors of the operating system.
_SYSTEM_ERROR = "(os error "


class VortexFileInfo(Record):
    """A Vortex file that was written.

    Parameters
    ----------
    path, rows, bytes
        Path, number of rows, and size of the file.
    layouts
        Layout of each Variant column.
    fallbacks
        Columns that are not in the first choice of layout, with the reason.
    in_bytes
        By column, the paths of the schema that are not typed because the layout cannot hold them, with the reason.
    """

    path: str
    rows: int
    bytes: int
    layouts: dict[str, StoredLayout]
    fallbacks: dict[str, str] = field(default_factory=dict)
    in_bytes: dict[str, dict[str, str]] = field(default_factory=dict)


class VortexColumn(Record):
    """A column to write: a Variant, JSON text as Variants, or an Arrow array.

    ``layout`` is the layout of a Variant in the file, and before that the layout to use instead of the caller's.
    """

    values: Any
    layout: StoredLayout | None = None
    nullable: bool = True
    note: library.ColumnNote = field(default_factory=library.ColumnNote)
    shredded: VariantArray | None = None  # The Variants with the whole schema.


def write(
    path: Any,
    data: Any,
    *,
    column: str = "v",
    schema: ShreddingSchema | str | Mapping[str, ShreddingSchema | str] | None = None,
    layout: VortexLayout = "auto",
    json: Collection[str] = (),
    policy: AnyPolicy = "auto",
    exact: bool = False,
    compact: bool = True,
    mode: FileMode = "error",
) -> VortexFileInfo:
    """Write a Vortex file with Variant columns. The file is read back and compared before it gets its name.

    See `pv.write`.
    """
    library.vortex()
    check_options(layout=layout, compact=compact, exact=exact)
    target = local_target(path, mode)
    columns = _columns(data, column)
    json = strings_of("json", json)
    if missing := sorted(set(json) - set(columns)):
        problem = f"json= names the column {missing[0]!r}, which does not exist: the columns are {', '.join(columns)}"
        raise VariantFileError(problem, reason="no-such-column")
    originals: dict[str, VortexColumn] = {}  # Columns of original texts.
    for name, item in columns.items():
        column_schema = schema.get(name) if isinstance(schema, Mapping) else schema
        values = item.values
        if isinstance(values, JsonColumn) or name in json or is_json_type(getattr(values, "type", None)):
            if not isinstance(values, JsonColumn):  # without a schema, the policy infers it
                shredding = policy if column_schema in (None, "infer") else ShreddingSchema.of(column_schema)
                with json_errors(name):
                    values = compress_json(values, shredding, exact=exact)
            if isinstance(values, JsonColumn):
                if values.texts is not None:
                    originals[library.text_column(name)] = VortexColumn(values.texts)
                values = values.values
            note = library.ColumnNote(is_json=True, has_texts=library.text_column(name) in originals)
            item, column_schema = replace(item, note=note), None
        if isinstance(values, VariantArray):
            shredded = shredded_as(final_variant(values), column_schema, "final")
            if shredded.is_shredded:
                shredded = VariantArray(with_field_names(shredded.storage))
            item = _noted(item, shredded, "struct" if (item.layout or layout) == "struct" else "variant")
        if item.note.has_texts and library.text_column(name) in columns:
            raise VariantFileError(
                f"the original texts of {name!r} need the column {library.text_column(name)!r}, which the data has: "
                "rename that column, or leave exact= out",
                reason="several-columns",
            )
        if not item.nullable and values.null_count:
            problem = f"column {name!r} has null rows, but its field is not nullable: make the field nullable"
            raise VariantFileError(problem, reason="null-in-column")
        columns[name] = item
    return _write_first_that_fits(target, mode, _attempts(columns | originals, layout), compact)


def check_options(**options: Any) -> None:
    """Check the options of writing that do not depend on the file.

    Raises `VariantError` with reason ``"bad-option"``, also for an unknown option.
    """
    check_names("option for Vortex files", options, _OPTIONS)
    check_choice("layout", options.get("layout", "auto"), ("auto", *LAYOUTS))


def _columns(data: Any, column: str) -> dict[str, VortexColumn]:
    if isinstance(data, (VariantArray, ChunkedVariantArray, JsonColumn)):
        data = {column: data}
    elif not (isinstance(data, Mapping) and data):
        table = table_of(data)
        data = {
            field.name: VortexColumn(
                VariantArray.from_arrow(values) if is_variant_field(field) else values, nullable=field.nullable
            )
            for field, values in zip(table.schema, table.columns, strict=True)
        }
    columns: dict[str, VortexColumn] = {}
    for name, values in data.items():
        if "\0" in name:
            raise SchemaError(f"column {name!r} has a NUL in its name: rename the column", reason="bad-name")
        item = values if isinstance(values, VortexColumn) else VortexColumn(values)
        columns[name] = replace(item, values=_values(name, item.values))
    lengths = {name: len(item.values) for name, item in columns.items()}
    if len(set(lengths.values())) > 1:
        raise VariantFileError(f"columns have different lengths: {lengths}", reason="lengths-differ")
    return columns


def _values(name: str, values: Any) -> Any:
    """Return a column of Variants or of JSON, or an Arrow column in a form that the library accepts."""
    if isinstance(values, ChunkedVariantArray):
        return values.combine()
    if isinstance(values, (VariantArray, JsonColumn)):
        return values
    array = as_arrow(values)
    if isinstance(array.type, pa.BaseExtensionType):
        return array
    array = in_form(array, _storable_type(name, plain_form(array.type, stored=True)))
    # A copy, because the library fails on slices of nested columns.
    return pa.concat_arrays([array, array[:0]]) if pa.types.is_nested(array.type) else array


def _storable_type(name: str, kind: pa.DataType, as_structs: bool = False) -> pa.DataType:
    """Return a type that the library accepts, of a column or a part of it.

    Nested Variants have no dictionaries. They are structs in lists, if they are shredded, and with vortex-data 0.90.
    """
    types = pa.types
    unsupported = (types.is_fixed_size_binary, types.is_duration, types.is_interval, types.is_union)
    if any(is_unsupported(kind) for is_unsupported in unsupported):
        problem = f"column {name!r} has the Arrow type {kind}, which Vortex does not support: cast the column first"
        raise SchemaError(problem, reason="unsupported-type")
    as_structs = as_structs or not types.is_struct(kind) or library.vortex().__version__.startswith("0.90.")

    def storable(child: pa.Field) -> pa.Field:
        if not is_variant_field(child):
            return child.with_type(_storable_type(name, child.type, as_structs))
        is_struct = as_structs or child.type.get_field_index("typed_value") >= 0
        return pa.field(child.name, plain_form(child.type), child.nullable, None if is_struct else child.metadata)

    return with_fields(kind, storable)


def _noted(column: VortexColumn, shredded: VariantArray, layout: StoredLayout) -> VortexColumn:
    """Return the values of a column in a layout, with the statistics of all their shredded children."""
    if layout == "struct" and shredded.schema is not None:
        stored = without_nul(shredded.schema)
        shredded = shredded if stored == shredded.schema else shred_variant(shredded, stored)
    values, in_bytes = within_dtype(shredded) if layout == "variant" else (shredded, {})
    described = shredded
    if layout == "variant" and not shredded.is_shredded:
        described = shred_variant(shredded, infer(Profile.of_array(shredded)).schema)
    data = collect_statistics(described).to_bytes() if described.is_shredded else b""
    schema = shredded.schema if layout == "variant" else None
    note = library.ColumnNote(schema, in_bytes, column.note.is_json, column.note.has_texts, data)
    return VortexColumn(values, layout, column.nullable, note, shredded)


def _attempts(columns: dict[str, VortexColumn], layout: str) -> list[dict[str, VortexColumn]]:
    """Return the layouts to try in order: the chosen ones, then all columns in one layout, since the library does not
    say which column it cannot hold, and last no typed columns, next to which it cannot return some decimals.
    """
    attempts, untyped = [columns], {}
    for name, column in columns.items():
        if (typed := column.note.typed_schema) is not None:
            reason = "vortex-data cannot return typed columns of these values"
            note = replace(column.note, in_bytes=column.note.in_bytes | {str(p): reason for p, _ in typed.leaves()})
            untyped[name] = replace(column, values=column.values.to_unshredded(), note=note)
    attempts += [columns | untyped] if untyped else []
    for other in () if layout in LAYOUTS else LAYOUTS:
        attempt = {
            name: column if column.shredded is None else _noted(column, column.shredded, other)
            for name, column in columns.items()
        }
        attempts += [attempt] if any(attempt[name].layout != columns[name].layout for name in columns) else []
    return attempts


def _write_first_that_fits(
    target: Path, mode: FileMode, attempts: list[dict[str, VortexColumn]], compact: bool
) -> VortexFileInfo:
    """Write the file with the first attempt that the library preserves."""
    with write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    failed: VariantFileError | None = None
    with atomic_file(target) as staged:
        for attempt in attempts:
            try:
                rows = _write(staged, attempt, compact)
                break
            except VariantFileError as error:
                if _SYSTEM_ERROR in error.message:  # another layout would fail in the same way
                    raise cannot_write(target, error.message) from None
                failed = failed or error
        else:
            assert failed is not None
            failed.file = str(target)  # instead of the staged file
            raise failed
        size = staged.stat().st_size
        if not replaces(mode):  # Another writer may have taken the name since it was checked.
            try:
                os.link(staged, target)
            except OSError:  # or the filesystem has no links, or its answer was lost
                if not target.exists() or not staged.samefile(target):
                    local_target(target, mode)
    layouts = {name: column.layout for name, column in attempt.items() if column.layout is not None}
    changed = [name for name in layouts if layouts[name] != attempts[0][name].layout]
    reasons = {} if failed is None else dict.fromkeys(changed, failed.message)
    in_bytes = {name: column.note.in_bytes for name, column in attempt.items() if column.note.in_bytes}
    return VortexFileInfo(str(target), rows, size, layouts, reasons, in_bytes)


def _write(path: Path, columns: dict[str, VortexColumn], compact: bool) -> int:
    fields, arrays = [], []
    for name, column in columns.items():
        if column.layout is None:
            stored, array = pa.field("", column.values.type, column.nullable), column.values
        else:
            stored, array = stored_column(column.values, column.layout, nullable=column.nullable)
        fields.append(stored.with_name(name))
        arrays.append(array)
    table = pa.table(arrays, schema=pa.schema(fields))
    path.unlink(missing_ok=True)
    with library.vortex_errors(path):
        options = library.vortex().io.VortexWriteOptions
        (options.compact() if compact else options.default()).write(table, str(path))
    notes = {name: column.note for name, column in columns.items() if column.layout is not None}
    library.append_trailer(path, library.write_notes(notes))
    # The file is read back and compared.
    file = library.open_file(path)
    if "variant" in str(file.file.dtype) and any(end - start > library.BLOCK_ROWS for start, end in file.file.splits()):
        raise VariantFileError(
            "vortex-data joined blocks of its Variant type, which it cannot convert", reason="vortex-failed"
        )
    start = 0
    for batch in file.batches():
        stop = start + batch.num_rows
        for name, column in columns.items():
            row = first_difference(column.values[start:stop], batch.column(name))
            if row is not None:
                problem = f"vortex-data did not preserve column {name!r}: no file is written"
                raise VariantFileError(problem, reason="lost-in-file", row=start + row)
        start = stop
    rows = int(table.num_rows)
    if start != rows:
        raise VariantFileError(f"vortex-data wrote {start} of {rows} rows: no file is written", reason="lost-in-file")
    return rows
