"""The logical type Variant, and the layouts in which a Vortex file stores a column of it.

Owns the type, the choice of layouts, the limits of vortex-data's own Variant type, the conversion of columns into a
layout and back, and the comparison of columns with those that are read back; and the compressor of the RFC, which
converts a column of JSON text to Variants and back, with the original spelling of a text if it is asked for.

=========  ===================================================================  ============================
layout     storage                                                              another Vortex reader sees
=========  ===================================================================  ============================
variant    Vortex's own Variant type; scalar fields at the top may be typed in  a Variant
           it
struct     the Arrow storage struct: typed columns next to the residual         that struct
=========  ===================================================================  ============================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np
import pyarrow as pa

from parquet_variant.arrays import capsules
from parquet_variant.arrays.chunked_array import ChunkedVariantArray
from parquet_variant.arrays.chunked_array import variant_table as table_of_columns
from parquet_variant.arrays.parts import columns_of, stored_columns, with_columns
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import JsonError, SchemaError, VariantError
from parquet_variant.files.parquet.writing.conform import null_where_missing
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.ops.columns.arguments import as_arrow, as_variant_array
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.equals import equals
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types.forms import is_json_type, without_encoding
from parquet_variant.types.path import VariantPath

StoredLayout = Literal["variant", "struct"]
LAYOUTS: tuple[StoredLayout, ...] = get_args(StoredLayout)

# Limits of vortex-data 0.93.
_NOT_IN_DTYPE = {
    "array": "vortex-data fails or crashes on shredded lists",
    "object": "vortex-data returns null below shredded objects",
    "variant": "vortex-data loses fields that are shredded without a type",
}
_NUL = "a name ends at NUL in Arrow's C interface"
_ROOT = "vortex-data can type only fields"


class VariantDType(Record):
    """The logical type: Variant, nullable or not.

    Parameters
    ----------
    nullable
        True if rows may be absent (the outer null). A Variant null is a value, so both types allow it.

    Examples
    --------
    >>> str(VariantDType(nullable=True))
    'variant?'
    """

    nullable: bool

    def __str__(self) -> str:
        return "variant?" if self.nullable else "variant"


def final_variant(array: Any) -> VariantArray:
    """Return a column as a `VariantArray`, unshredded or in the final layout.

    Raises `SchemaError` if the column is not a Variant column, or is in a draft layout (``draft-layout``).
    """
    column = as_variant_array(array)
    if column.layout not in ("unshredded", "final"):
        raise SchemaError(
            f"the array is in Parquet's draft layout {column.layout}, which Vortex does not have: convert it with "
            "shred_variant(array, array.schema) or array.to_unshredded()",
            reason="draft-layout",
        )
    return column


def layout_of(field: pa.Field) -> StoredLayout | None:
    """Return the layout of a file's column; None if the column is not a Variant."""
    if capsules.is_variant_field(field):
        return "variant"
    return "struct" if capsules.is_storage(field.type) else None


def within_dtype(array: VariantArray) -> tuple[VariantArray, dict[str, str]]:
    """Return the array, shredded as far as Vortex's own type allows, and the reason for each path that is not typed.

    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1, "b": [1]}']), "a bigint, b array<bigint>")
    >>> storage, in_bytes = within_dtype(array)
    >>> storage.schema.to_ddl(), list(in_bytes)
    ('a bigint', ["$['b']"])
    """
    if array.schema is None:
        return array, {}
    in_bytes: dict[str, str] = {}
    typed_fields = {}
    top = columns_of(array.storage).get("typed_value")
    for name, node in array.schema.fields:
        reason = _NUL if "\0" in name else _reason(node, columns_of(columns_of(top)[name]))
        if reason is None:
            typed_fields[name] = node
        else:
            in_bytes[str(VariantPath() / name)] = reason
    if array.schema.kind != "object":
        in_bytes["$"] = _NOT_IN_DTYPE.get(array.schema.kind, _ROOT)
    if not in_bytes:
        return array, {}
    unshredded = array.to_unshredded()
    if not typed_fields:
        return unshredded, in_bytes
    return shred_variant(unshredded, ShreddingSchema.object(typed_fields)), in_bytes


def without_nul(schema: ShreddingSchema) -> ShreddingSchema:
    r"""Return the schema without the fields whose name contains NUL, which ends names in Arrow's C interface.

    >>> schema = ShreddingSchema.object({"a": pa.int64(), "b\0": pa.int64()})
    >>> without_nul(ShreddingSchema.array(schema)).to_ddl()
    'array<struct<a: bigint>>'
    """
    if schema.element is not None:
        return ShreddingSchema.array(without_nul(schema.element))
    if schema.kind != "object":
        return schema
    fields = {name: without_nul(child) for name, child in schema.fields if "\0" not in name}
    return ShreddingSchema.object(fields) if fields else ShreddingSchema.variant()


def _reason(node: ShreddingSchema, field: dict[str, pa.Array]) -> str | None:
    """Return the reason why a field of the top level cannot be typed; None if it can."""
    if node.type == pa.uuid():
        return "vortex-data has no uuid type"
    if node.type is not None and pa.types.is_timestamp(node.type) and node.type.unit == "ns":
        return "vortex-data returns whole microseconds as another type"
    if node.kind in _NOT_IN_DTYPE:
        return _NOT_IN_DTYPE[node.kind]
    if "value" in field and field["value"].null_count < len(field["value"]):
        return "some values have other types: vortex-data then fails on a part of the rows"
    return None


# The library closes a block at 8,192 rows if its buffers have a megabyte; it counts whole buffers.
_BLOCK_BYTES = 1 << 20


def variant_table(columns: Mapping[str, Any], *, plain: bool = True) -> pa.Table:
    """Return a pyarrow table whose Variant columns have the extension name, in a form that vortex-data reads.

    Parameters
    ----------
    columns
        Columns by name: `VariantArray`, `ChunkedVariantArray`, or anything that pyarrow accepts as a column.
    plain
        If true, metadata is plain binary, and fields that Vortex's Variant type cannot type (lists, objects, fields
        with values of other types) are not shredded, because vortex-data refuses or loses them. If false, metadata is
        dictionary-encoded and every column keeps its schema, for pyarrow, polars, DuckDB and arro3.

    Raises
    ------
    SchemaError
        If the storage types of the chunks of a column differ (``different-storage``).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1, "b": [1]}']), "a bigint, b array<bigint>")
    >>> table = variant_table({"v": array})
    >>> table.schema.field("v").type.field("metadata").type, pv.VariantArray.from_arrow(table).schema.to_ddl()
    (DataType(binary), 'a bigint')
    """
    stored = {}
    for name, column in columns.items():
        if plain and isinstance(column, ChunkedVariantArray):
            column = column.combine()
        if plain and isinstance(column, VariantArray) and column.layout == "final":
            column = within_dtype(column)[0]
        stored[name] = column
    return table_of_columns(stored, plain=plain)


def stored_column(
    array: VariantArray, layout: StoredLayout, *, nullable: bool = True
) -> tuple[pa.Field, pa.StructArray]:
    """Return the field (without a name) and the array that store a column in a layout; ``nullable`` if rows may be
    absent.

    >>> field, _ = stored_column(VariantArray.from_pylist([{"a": 1}]), "variant")
    >>> field.metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    if layout == "struct":
        storage = _without_empty_values(array.storage, rows=array.storage)
        return pa.field("", storage.type, nullable=nullable), storage
    # Vortex's Variant type does not allow dictionary-encoded metadata; Vortex compresses the column itself.
    storage = _without_empty_values(capsules.plain_metadata(array.storage), rows=array.storage, keeps_top=True)
    columns = stored_columns(storage)
    # The library joins blocks of less than a megabyte, and cannot convert rows of joined blocks. A buffer that no view
    # refers to counts, and is not written: with it, a block is closed every 8,192 rows, however short the rows are.
    name = "value" if "value" in columns else "metadata"
    views = columns[name].cast(pa.binary_view())
    buffers = [*views.buffers(), pa.py_buffer(bytes(_BLOCK_BYTES))]
    columns[name] = pa.Array.from_buffers(views.type, len(views), buffers, views.null_count, views.offset)
    storage = with_columns(storage, columns)
    return pa.field("", storage.type, nullable=nullable, metadata=capsules.EXTENSION_METADATA), storage


def unstored_rows(column: Any) -> VariantArray:
    """Return the Variant column for the array or chunked array read from a file."""
    return VariantArray.concat(VariantArray(storage) for storage in capsules.import_variant(column))


def _without_empty_values(group: pa.Array, rows: pa.Array | None = None, *, keeps_top: bool = False) -> pa.Array:
    """Return the storage without empty ``value`` columns, so that they are not read; `rows` marks the rows of a group
    that must have values, and `keeps_top` keeps the ``value`` column of the group itself.
    """
    if is_list(group.type):
        values = group.values
        if pa.types.is_struct(values.type):
            values = pa.StructArray.from_arrays(values.flatten(), fields=list(values.type))
        elements = _without_empty_values(values, rows=values)
        kind = (pa.large_list if pa.types.is_large_list(group.type) else pa.list_)(
            group.type.value_field.with_type(elements.type)
        )
        return pa.Array.from_buffers(
            kind, len(group), group.buffers()[:2], group.null_count, group.offset, children=[elements]
        )
    if not pa.types.is_struct(group.type):
        return group
    columns = stored_columns(group)
    if rows is not None and "typed_value" in columns:
        typed = columns["typed_value"]
        value = null_where_missing(columns.get("value", pa.nulls(len(typed), pa.binary())), typed, rows)
        if value.null_count < len(value):
            columns["value"] = value
    if not keeps_top and "typed_value" in columns and "value" in columns and columns["value"].null_count == len(group):
        del columns["value"]
    return with_columns(group, {name: _without_empty_values(column) for name, column in columns.items()})


def first_difference(written: Any, stored: pa.Array) -> int | None:
    """Return the first row that was read back with another value; None if all rows are equal.

    `written`: a `VariantArray`, whose values are compared by their bytes and, if these differ, by meaning; or an Arrow
      array.
    `stored`: the array that was read.
    """
    if len(written) != len(stored):
        return min(len(written), len(stored))
    if isinstance(written, VariantArray):
        columns = written, unstored_rows(stored) if len(stored) else written
        left, right = (column.to_unshredded() for column in columns)
        nulls = [column.storage.is_null() for column in (left, right)]
        same = pc.or_(equals(left, right).fill_null(False), pc.and_(*nulls)).to_numpy(zero_copy_only=False)
    else:
        written = without_encoding(written.combine_chunks() if isinstance(written, pa.ChunkedArray) else written)
        if not pa.types.is_nested(written.type) and not isinstance(written.type, pa.BaseExtensionType):
            stored = stored.cast(written.type)
        if written.equals(stored):
            return None
        # NaN is not equal to itself, and pyarrow cannot cast nested views.
        pairs = zip(written.to_pylist(), stored.to_pylist(), strict=True)
        same = np.array([repr(left) == repr(right) for left, right in pairs], np.bool_)
    return None if same.all() else int(np.argmin(same))


AnyPolicy: TypeAlias = "str | Policy | ShreddingSchema"


class JsonColumn(Record, eq=False):
    """JSON text as Variants, with the original text where it differs from the canonical text.

    Parameters
    ----------
    values
        The Variants.
    texts
        The original texts that differ from the canonical texts of the values, null for all other rows; None if the
        original texts were not kept.
    """

    values: VariantArray
    texts: pa.Array | None = None

    @classmethod
    def of(cls, values: VariantArray, texts: pa.Array) -> JsonColumn:
        """Make the column from values and the texts that they were parsed from."""
        texts = (texts.storage if is_json_type(texts.type) else texts).cast(pa.large_string())
        printed = to_json(values).cast(pa.large_string())
        is_canonical = pc.equal(texts, printed).fill_null(True)
        return cls(values, pc.if_else(is_canonical, pa.scalar(None, pa.large_string()), texts))

    def __len__(self) -> int:
        return len(self.values)


@overload
def compress_json(
    column: Any, policy: AnyPolicy = ..., *, shred: bool = ..., exact: Literal[False] = ...
) -> VariantArray: ...
@overload
def compress_json(
    column: Any, policy: AnyPolicy = ..., *, shred: bool = ..., exact: bool
) -> VariantArray | JsonColumn: ...
def compress_json(
    column: Any, policy: AnyPolicy = "auto", *, shred: bool = True, exact: bool = False
) -> VariantArray | JsonColumn:
    """Convert a column of JSON text to Variants, shredded by a policy.

    Parameters
    ----------
    column
        Strings of any Arrow form, plain or ``arrow.json``; null is SQL NULL.
    policy
        A shredding policy, by name (``"auto"``, ``"hints"``, …) or as an instance, or a shredding schema.
    shred
        If false, the result is unshredded.
    exact
        Keep each text byte for byte; the result is then a `JsonColumn`.

    Raises
    ------
    JsonError
        For text that is not valid JSON, with its row and byte offset.
    SchemaError
        For a column that is not text (``not-json``).

    Examples
    --------
    >>> texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"id": %d}' % n for n in range(200)]))
    >>> column = compress_json(texts)
    >>> column.schema.to_ddl()
    'id bigint'
    >>> decompress_json(column).type, decompress_json(column)[7].as_py()
    (JsonType(extension<arrow.json>), '{"id":7}')
    >>> decompress_json(compress_json(texts, exact=True), exact=True)[7].as_py()
    '{"id": 7}'
    """
    rows = as_arrow(column, pa.string())
    if is_json_type(rows.type):
        rows = rows.storage
    if pa.types.is_dictionary(rows.type):
        rows = rows.dictionary_decode()
    if not (pa.types.is_string(rows.type) or pa.types.is_large_string(rows.type) or pa.types.is_string_view(rows.type)):
        problem = f"the column has the type {rows.type}, not JSON text: use cast_to_variant for other values"
        raise SchemaError(problem, reason="not-json")
    unshredded = values = parse_json(rows)
    if shred:
        schema = policy if isinstance(policy, ShreddingSchema) else infer_shredding_schema(unshredded, policy)
        values = shred_variant(unshredded, schema, layout="final")
    return JsonColumn(values, JsonColumn.of(unshredded, rows).texts) if exact else values


@contextmanager
def json_errors(column: str, file: str | None = None, *, start: int = 0) -> Iterator[None]:
    """Raise a `JsonError` of a part of a column that begins at the row ``start`` with the column and the file."""
    try:
        yield
    except JsonError as error:
        row = None if error.row is None else start + error.row
        problem = (
            f"column {column!r} holds invalid JSON: {error.message}; fix the row, or ingest the column and quarantine "
            "invalid rows"
        )
        raise JsonError(problem, reason=error.reason, file=file, row=row, offset=error.offset) from None


def decompress_json(array: Any, *, extension: bool = True, exact: bool = False) -> pa.Array:
    """Return a Variant column as JSON text.

    Parameters
    ----------
    array
        The column, or a `JsonColumn`.
    extension
        If true, the result has the type ``arrow.json``; otherwise it is strings.
    exact
        If true, return the original texts, byte for byte; otherwise canonical JSON.

    Raises
    ------
    VariantError
        If `exact` is true and the original texts were not kept (``no-texts``).
    MalformedVariantError
        For values that are not valid Variants.

    Examples
    --------
    >>> decompress_json(compress_json(['{"a": 1.50}', None]), extension=False).to_pylist()
    ['{"a":1.5}', None]
    """
    originals = array.texts if isinstance(array, JsonColumn) else None
    if exact and originals is None:
        raise VariantError(
            "the original texts were not kept: compress or write the column with exact=True", reason="no-texts"
        )
    rows = to_json(final_variant(array.values if isinstance(array, JsonColumn) else array))
    if originals is not None and exact:
        rows = pc.coalesce(originals.cast(pa.large_string()), rows.cast(pa.large_string())).cast(rows.type)
    return pa.ExtensionArray.from_storage(pa.json_(rows.type), rows) if extension else rows
