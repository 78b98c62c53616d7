"""`write`: Variant columns into a Vortex file, read back before it is there.

Owns the public operation, the choice of each column's layout, and that a file that lost something never gets its name.
Leaves the layouts to `storing`, JSON text to `json_columns`, and what stands beside the columns to `trailer`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import is_named
from parquet_variant.array.chunked_array import ChunkedVariantArray
from parquet_variant.array.field_names import with_field_names
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import FileMode, VortexLayout
from parquet_variant.compute.arrow_input import as_arrow
from parquet_variant.encoding.cast.forms import in_form, plain_form, with_fields
from parquet_variant.errors import SchemaError, VariantError, VariantFileError, check_choice, check_names
from parquet_variant.interop.table_of import table_of
from parquet_variant.io.filesystems import cannot_write, refuse_no_path, write_errors
from parquet_variant.io.staging import replaces, staging_beside
from parquet_variant.parquet.writing.write import shredded_as
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.policies.decision import Policy
from parquet_variant.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.vortex.files.library import BLOCK_ROWS, open_file, vortex, vortex_errors
from parquet_variant.vortex.files.storing import LAYOUTS, StoredLayout, first_difference, stored_column, within_dtype
from parquet_variant.vortex.files.trailer import ColumnNote, append_trailer, text_column, write_notes
from parquet_variant.vortex.logical.encodings import EncodingName, encode, encoding_of
from parquet_variant.vortex.logical.json_columns import JsonColumn, compress_json, is_json
from parquet_variant.vortex.logical.range_statistics import collect_statistics

_OPTIONS = ("layout", "compact", "exact")
# How Rust tells errors of the system.
_OF_THE_SYSTEM = "(os error "


@dataclass(frozen=True, slots=True)
class VortexFileInfo:
    """What was written.

    Parameters
    ----------
    path, rows, bytes
        The file.
    layouts
        How each Variant column lies in it.
    fallbacks
        Why a column does not lie as it was meant to.
    in_bytes
        By column the paths that were to be typed and are not, because the layout cannot hold them, with the reason.
    """

    path: str
    rows: int
    bytes: int
    layouts: dict[str, StoredLayout]
    fallbacks: dict[str, str] = field(default_factory=dict)
    in_bytes: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Column:
    """A column as it was given: a Variant in some encoding, or an Arrow array; with the texts of JSON."""

    values: Any
    layout: StoredLayout | None = None
    nullable: bool = True
    note: ColumnNote = field(default_factory=ColumnNote)
    texts: pa.Array | None = None


def write(
    path: Any,
    data: Any,
    *,
    column: str = "v",
    schema: ShreddingSchema | str | Mapping[str, ShreddingSchema | str] | None = None,
    layout: VortexLayout = "auto",
    json: Collection[str] = (),
    policy: str | Policy = "auto",
    exact: bool = False,
    compact: bool = True,
    mode: FileMode = "error",
) -> VortexFileInfo:
    """Write a Vortex file with Variant columns. All of it is read back and compared before the file gets its name.

    Parameters
    ----------
    path
        The file to make; its directory is created.
    data
        A `VariantArray` or `ColumnarVariant`; a mapping of column names to these, `ChunkedVariantArray` or Arrow
        arrays; or a pyarrow table whose Variant columns carry the extension name. A field that is not nullable stays
        so.
    column
        The column's name, if `data` is one array.
    schema
        What to shred, as in `pv.parquet.write`: a schema, its DDL, ``"infer"``, or several by column name.
    layout
        ``"variant"``: Vortex's Variant type; of a schema it holds scalars at the top. ``"struct"``: the storage struct,
        typed columns beside the residual. ``"columnar"``: a discriminator and a column a type, for every path.
        ``"auto"``: columnar for a `ColumnarVariant`, the struct for what is shredded and the Variant type for the rest;
        of the last two the other one where the library does not hold a column so.
    json
        Names of columns of strings that are JSON: they become Variants, as columns of the type ``arrow.json`` do; see
        `compress_json`.
    policy
        What is shredded of them.
    exact
        Whether to keep their texts byte by byte, for `read_json` with ``exact=True``.
    compact
        Whether Vortex may use its slower, smaller encodings.
    mode
        If the file is there: ``"error"``, or ``"overwrite"``.

    Raises
    ------
    VariantFileError
        If the file exists already, the library fails, or the file does not hold every row (``lost-in-file``).
    VariantError
        If vortex-data is not installed, for options that do not go together (``bad-option``), or an array in a draft
        layout (``draft-layout``).

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = write(f"{folder}/a.vortex", pv.parse_json(['{"a": 1}', "null", None]), schema="a bigint")
    ...     pv.vortex.read(f"{folder}/a.vortex")
    <VariantArray final, 3 rows: [{"a":1}, null, NULL]>
    >>> info.rows, info.layouts
    (3, {'v': 'struct'})
    """
    vortex()
    check_options(layout=layout, compact=compact, exact=exact)
    refuse_no_path(os.fspath(path))
    target = Path(os.fspath(path))
    if not replaces(mode) and target.exists():
        raise VariantFileError(
            f"{target} exists: choose another name, or replace it: mode='overwrite'", reason="file-exists"
        )
    columns = _columns(data, column)
    if absent := sorted(set(json) - set(columns)):
        raise VariantFileError(
            f"there is no column {absent[0]!r} of JSON in {', '.join(columns)}", reason="no-such-column"
        )
    for name, each in columns.items():
        own = schema.get(name) if isinstance(schema, Mapping) else schema
        if isinstance(each.values, JsonColumn) or name in json or is_json(each.values):
            own = ShreddingSchema.from_ddl(own) if isinstance(own, str) and own != "infer" else own
            each = _of_json(each, policy if own is None or own == "infer" else own, layout, exact=exact)
            own = None
        if isinstance(each.values, (VariantArray, ColumnarVariant)):
            each = _laid_out(each, own, layout)
            if not each.nullable and each.values.null_count:
                raise VariantFileError(
                    f"column {name!r} has null rows, and its field is not nullable", reason="null-in-column"
                )
        columns[name] = each
    return _stored(target, _tries(columns, layout), compact)


def check_options(**options: Any) -> None:
    """Check the options that say how a file is written, which do not depend on the file.

    Raises `VariantError` with reason ``"bad-option"``, also for a name that no option has.
    """
    check_names("option for Vortex files", options, _OPTIONS)
    check_choice("layout", options.get("layout", "auto"), ("auto", *LAYOUTS))


# -- what is given


def _columns(data: Any, column: str) -> dict[str, _Column]:
    if isinstance(data, (VariantArray, ChunkedVariantArray, ColumnarVariant, JsonColumn)):
        data = {column: data}
    columns: dict[str, _Column] = {}
    if isinstance(data, Mapping) and data:
        columns = {name: _Column(_values(each)) for name, each in data.items()}
    else:
        table = table_of(data)
        for each, array in zip(table.schema, table.columns, strict=True):
            values = VariantArray.from_arrow(array) if is_named(each) else array
            columns[each.name] = _Column(_values(values), nullable=each.nullable)
    sizes = {name: len(each.values) for name, each in columns.items()}
    if len(set(sizes.values())) > 1:
        raise VariantFileError(f"columns must have one length, these differ: {sizes}", reason="lengths-differ")
    for name, each in columns.items():
        if isinstance(each.values, pa.Array):
            _check_type(name, each.values.type)
    return columns


def _check_type(name: str, kind: pa.DataType) -> None:
    types = pa.types
    if any(
        is_one(kind) for is_one in (types.is_fixed_size_binary, types.is_duration, types.is_interval, types.is_union)
    ):
        raise SchemaError(
            f"column {name!r} has the Arrow type {kind}, which Vortex has no type for: cast it first",
            reason="unsupported-type",
        )
    for index in range(kind.num_fields):
        _check_type(name, kind.field(index).type)


def _values(each: Any) -> Any:
    if isinstance(each, ChunkedVariantArray):
        return each.combine()
    return each if isinstance(each, (VariantArray, ColumnarVariant, JsonColumn)) else _storable(as_arrow(each))


def _storable(array: pa.Array) -> pa.Array:
    """An Arrow column as the library takes it."""
    if isinstance(array.type, pa.BaseExtensionType):
        return array
    array = in_form(array, _storable_type(plain_form(array.type, stored=True)))
    # A copy: it fails on slices of nested columns.
    return pa.concat_arrays([array, array[:0]]) if pa.types.is_nested(array.type) else array


def _storable_type(kind: pa.DataType, in_list: bool = False) -> pa.DataType:
    """A type whose Variants have no dictionaries; in lists and maps, where the library has none, they are structs."""
    in_list = in_list or not pa.types.is_struct(kind)

    def storable(each: pa.Field) -> pa.Field:
        if not is_named(each):
            return each.with_type(_storable_type(each.type, in_list))
        return pa.field(each.name, plain_form(each.type), each.nullable, None if in_list else each.metadata)

    return with_fields(kind, storable)


def _of_json(each: _Column, policy: Any, layout: str, *, exact: bool) -> _Column:
    """The Variants of a column of JSON text."""
    values = each.values
    if not isinstance(values, JsonColumn):
        encoding: EncodingName = "columnar" if layout == "columnar" else "final"
        compressed = compress_json(values, policy, encoding=encoding, exact=exact)
        values = compressed if isinstance(compressed, JsonColumn) else JsonColumn(compressed)
    note = ColumnNote(is_json=True, has_texts=values.texts is not None)
    return _Column(values.values, nullable=each.nullable, note=note, texts=values.texts)


def _laid_out(column: _Column, schema: Any, layout: str) -> _Column:
    """The column in the encoding that its layout stores, with what is noted of it."""
    encoding, values = encoding_of(column.values)
    if layout == "columnar" or (layout == "auto" and encoding.name == "columnar"):
        if schema not in (None, "infer"):
            raise VariantError("the columnar layout shreds every path: give no schema", reason="bad-option")
        return _noted(column, encode(values, "columnar"), "columnar", {})
    if isinstance(values, ColumnarVariant):
        raise VariantError(
            f"a ColumnarVariant is stored in the layout columnar, not as {layout}: encode it first", reason="bad-option"
        )
    shredded = shredded_as(values, schema, "final")
    if shredded.is_shredded:
        shredded = VariantArray(with_field_names(shredded.storage))
    if layout == "auto":
        layout = "struct" if shredded.is_shredded else "variant"
    stored, in_bytes = within_dtype(shredded) if layout == "variant" else (shredded, {})
    return _noted(column, stored, layout, in_bytes)


def _noted(column: _Column, values: Any, layout: Any, in_bytes: Mapping[str, str]) -> _Column:
    typed = isinstance(values, ColumnarVariant) or values.is_shredded
    data = collect_statistics(values).to_bytes() if typed else b""
    schema = values.schema if layout == "variant" and typed else None
    note = ColumnNote(schema, in_bytes, column.note.is_json, column.note.has_texts, data)
    return _Column(values, layout, column.nullable, note, column.texts)


def _tries(columns: dict[str, _Column], layout: str) -> list[dict[str, _Column]]:
    """What is wanted, then all columns in one layout; the library does not tell which column it cannot hold.

    It does not give typed columns of its own type beside some values (decimals of a scale above their digits), so that
    the last try has none.
    """
    every = [columns]
    for other in () if layout in LAYOUTS else ("struct", "variant"):
        tried = {
            name: each if each.layout in (None, "columnar", other) else _laid_out(each, None, other)
            for name, each in columns.items()
        }
        every += [tried] if any(tried[name] is not columns[name] for name in columns) else []
    if any(each.note.schema is not None for each in every[-1].values()):
        every.append({name: _untyped(each) for name, each in every[-1].items()})
    return every


def _untyped(each: _Column) -> _Column:
    if each.note.schema is None:
        return each
    why = "vortex-data cannot give typed columns of these values"
    in_bytes = {str(path): why for path, node in each.note.schema.leaves()}
    return _noted(each, each.values.to_unshredded(), "variant", {**each.note.in_bytes, **in_bytes})


# -- the file


def _stored(target: Path, tries: list[dict[str, _Column]], compact: bool) -> VortexFileInfo:
    """The file, made of the first try that the library holds."""
    with write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    staging = staging_beside(str(target))
    try:
        staged = Path(staging.begin().attempt(0)) / "staged.vortex"
        failed: VariantFileError | None = None
        for tried in tries:
            try:
                rows = _write(staged, tried, compact)
                break
            except VariantFileError as error:
                if _OF_THE_SYSTEM in error.message:  # in another layout it would be no different
                    raise cannot_write(target, error.message) from None
                failed = failed or error
        else:
            assert failed is not None
            raise failed.at(file=str(target))
        size = staged.stat().st_size
        staged.replace(target)
    finally:
        staging.discard()
    layouts = {name: each.layout for name, each in tried.items() if each.layout is not None}
    changed = [name for name in layouts if layouts[name] != tries[0][name].layout]
    reasons = {} if failed is None else dict.fromkeys(changed, failed.message)
    in_bytes = {name: dict(each.note.in_bytes) for name, each in tried.items() if each.note.in_bytes}
    return VortexFileInfo(str(target), rows, size, layouts, reasons, in_bytes)


def _write(path: Path, columns: dict[str, _Column], compact: bool) -> int:
    fields, arrays = [], []
    for name, each in columns.items():
        stored, array = pa.field("", each.values.type) if each.layout is None else None, each.values
        if each.layout is not None:
            stored, array = stored_column(each.values, each.layout, nullable=each.nullable)
        assert stored is not None
        fields.append(stored.with_name(name))
        arrays.append(array)
        if each.texts is not None:
            fields.append(pa.field(text_column(name), each.texts.type))
            arrays.append(each.texts)
    table = pa.table(arrays, schema=pa.schema(fields))
    path.unlink(missing_ok=True)
    with vortex_errors(path):
        options = vortex().io.VortexWriteOptions
        (options.compact() if compact else options.default()).write(table, str(path))
    append_trailer(path, write_notes({name: each.note for name, each in columns.items() if each.layout is not None}))
    _verify(path, columns)
    return int(table.num_rows)


def _verify(path: Path, columns: dict[str, _Column]) -> None:
    file = open_file(path)
    if "variant" in str(file.file.dtype) and any(end - start > BLOCK_ROWS for start, end in file.file.splits()):
        raise VariantFileError("Vortex joined blocks of its Variant type, which it cannot give", reason="vortex-failed")
    start = 0
    texts = {text_column(name): each.texts for name, each in columns.items() if each.texts is not None}
    arrays = {name: each.values for name, each in columns.items()} | texts
    for batch in file.batches():
        stop = start + batch.num_rows
        for name, values in arrays.items():
            row = first_difference(values[start:stop], batch.column(name))
            if row is not None:
                raise VariantFileError(
                    f"Vortex did not keep column {name!r}: the file is not made", reason="lost-in-file", row=start + row
                )
        start = stop
    rows = len(next(iter(arrays.values())))
    if start != rows:
        raise VariantFileError(f"Vortex kept {start} of {rows} rows: the file is not made", reason="lost-in-file")
