"""Data as the writer takes it: its options, and input data in the form of a file.

Owns the storage type of every Variant, at the top level or in structs, lists and maps, their schema paths, and the
order of rows. Leaves the kinds of input data to `ops.interop.tables`. Values are not decoded. Owns also names, defaults
and errors of options, so that a job can check them before its first task. Leaves their effect to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.final_columns import with_field_names
from parquet_variant.arrays.parts import columns_of, stored_columns
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.metadata import NULL_VALUE
from parquet_variant.errors import SchemaError, VariantFileError, bad_option, check_choice, check_count, check_names
from parquet_variant.files.parquet.format.arrow_schema import Place, map_variants
from parquet_variant.files.parquet.writing.encodings import UNCOMPRESSED, ColumnEncodings
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.layouts.layout import Step, walk_path
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import depth_limit
from parquet_variant.layouts.storages import ArrowGroup
from parquet_variant.ops.interop.tables import table_of
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.ops.validate import refuse_malformed
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import DEFAULT_COMPRESSION, Effort
from parquet_variant.support.records import Record
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import chunks_in_form, in_form, plain_form, without_encoding
from parquet_variant.types.path import VariantPath

Writer: TypeAlias = Literal["native", "pyarrow"]
DEFAULT_ROW_GROUP_BYTES = 128 << 20
DEFAULT_WRITER: Writer = "native"
# The level of zstd for all columns; None chooses a level per column (see `encodings`).
_LEVEL_OF_EFFORT: dict[Effort, int | None] = {"fast": 1, "balanced": None, "small": None}


class FileKeywords(TypedDict, total=False):
    """`WriterOptions` as keywords."""

    compression: str
    compression_level: int | None
    effort: Effort
    row_group_bytes: int
    annotation: bool | Literal["shredded"]
    sort_by: Sequence[str] | str
    bloom_filters: Collection[str] | str
    writer: Writer


class WriterKeywords(FileKeywords, total=False):
    """The keywords of `FileKeywords`, and the keywords of `VariantWriter` for one file."""

    variants: Collection[str]
    value_first: bool
    filesystem: fs.FileSystem | None
    threads: int
    encodings: ColumnEncodings | None


class WriterOptions(Record):
    """Options of the writer; see `VariantWriter`.

    Raises `VariantFileError` with reason ``"bad-option"`` for an invalid value, and `PathError` for an invalid path.

    >>> WriterOptions(bloom_filters="$.id").bloom_filters
    ('$.id',)
    """

    compression: str = DEFAULT_COMPRESSION
    compression_level: int | None = None
    effort: Effort = "balanced"
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    annotation: bool | Literal["shredded"] = True
    sort_by: Sequence[str] | str = ()
    bloom_filters: Collection[str] | str = ()
    writer: Writer = DEFAULT_WRITER

    def __post_init__(self) -> None:
        check_count("row_group_bytes", self.row_group_bytes, 1, None, VariantFileError)
        if self.annotation not in (True, False, "shredded"):
            raise bad_option(f"annotation is {self.annotation!r}: use True, False or 'shredded'", VariantFileError)
        check_choice("writer", self.writer, get_args(Writer), VariantFileError)
        _check_codec(self.compression, self.compression_level)
        check_choice("effort", self.effort, get_args(Effort), VariantFileError)
        if self.effort != "balanced":
            level = _LEVEL_OF_EFFORT[self.effort]
            if self.compression_level not in (None, level) or self.compression.lower() != DEFAULT_COMPRESSION:
                has_level = self.compression_level is not None
                other = "compression_level=" if has_level else f"compression={self.compression!r}"
                raise bad_option(
                    f"effort={self.effort!r} sets the level of zstd and cannot be combined with {other}: leave one out",
                    VariantFileError,
                )
            object.__setattr__(self, "compression_level", level)
        for name in ("sort_by", "bloom_filters"):
            paths = getattr(self, name)
            paths = paths if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
            if not all(isinstance(path, str | VariantPath) for path in paths):
                raise bad_option(f"{name} is {paths!r}: give a path or a list of paths", VariantFileError)
            object.__setattr__(self, name, tuple(paths))
        read_selection({f"key{number}": key for number, key in enumerate(self.sort_by)})
        for path in self.bloom_filters:
            VariantPath.parse(path)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> WriterOptions:
        """Make options from names and values. Raises `VariantFileError`, ``"bad-option"``, for an unknown name."""
        check_names("option for files", options, [item.name for item in fields(cls)], VariantFileError)
        return cls(**options)


def _check_codec(compression: str, level: int | None) -> None:
    try:
        codec = compression.lower()
        if codec in UNCOMPRESSED:
            return
        pa.Codec(codec)
        if level is None:
            return
        lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise bad_option(
            f"compression is {compression!r}: use zstd, snappy, gzip, lz4, brotli or none ({error})", VariantFileError
        ) from None
    if type(level) is not int or not lowest <= level <= highest:
        raise bad_option(
            f"compression_level is {level!r}: use an integer from {lowest} to {highest} for {codec}", VariantFileError
        )


_EMPTY_METADATA = b"\x01\x00\x00"


def conform_table(
    columns: object, variants: Collection[str], *, value_first: bool = False
) -> tuple[pa.Table, tuple[Place, ...]]:
    """Return the table to write, from any input of `table_of`, and the places of Variants that may be annotated.

    `variants`: dotted schema paths of structs that are Variants without the extension name.
    Raises `VariantFileError` for a path that does not exist, `SchemaError` for a Variant of an invalid type, and
    `MalformedVariantError` for metadata or an unshredded value that could not be read again.
    """
    if not variants and not value_first and isinstance(columns, Mapping):
        arrays = {
            name: array
            for name, array in columns.items()
            if isinstance(array, VariantArray)
            and array.fits_files
            and (array.schema is None or array.schema.physical_depth <= depth_limit())
        }  # These columns can be written as they are.
        if arrays and len(arrays) == len(columns) and len(set(map(len, arrays.values()))) == 1:
            return variant_table(arrays), tuple((name,) for name in arrays)
    named = {tuple(name.split(".")) for name in variants}
    seen: dict[Place, bool] = {}

    def conformed(storage: pa.StructArray, place: Place) -> pa.StructArray:
        # Reading the schema raises an error for invalid types.
        variant, levels = VariantArray(storage), depth_limit(len(place) - 1)
        if (schema := variant.schema) is not None and schema.physical_depth > levels:
            # Deeper values move to the residual.
            variant = shred_variant(variant.to_unshredded(), schema.limited_to(levels), layout=variant.layout)
        storage = variant.storage
        seen[place] = variant.layout in ("unshredded", "final")
        if seen[place]:
            refuse_malformed(variant)
        named = with_field_names(storage) if variant.layout == "final" else storage
        return conform(named, variant.layout, value_first=value_first)

    table = map_variants(table_of(columns), conformed, named)
    for missing in sorted(named - seen.keys()):
        problem = f"{'.'.join(missing)} is not a struct column of the data: name a struct column in variants="
        raise VariantFileError(problem, reason="no-such-column")
    return table, tuple(place for place, annotated in seen.items() if annotated)


def conform(storage: pa.StructArray, layout: str, *, value_first: bool = False) -> pa.StructArray:
    """Return the values in the form that the specification requires of a file; drafts are not changed.

    `value_first` puts ``value`` before ``metadata``, for readers that use positions. Spec, "Value
    Shredding": ``metadata`` is required; ``value`` is required if there is no ``typed_value``; "Objects": field groups
    are required; "Arrays": the element group is required. A row or element without a required value
    becomes Variant null, as readers must interpret it.
    """
    if layout not in ("unshredded", "final"):
        return storage
    children = columns_of(storage)
    metadata = children["metadata"]
    if pa.types.is_run_end_encoded(metadata.type):
        metadata = without_encoding(metadata)
    metadata = _dictionary(_fill_nulls(metadata, _EMPTY_METADATA))
    value = _binary(children.get("value"), len(storage))
    parts = {"metadata": metadata}
    if "typed_value" in children:
        typed = _conformed_typed(children["typed_value"])
        parts |= {"value": null_where_missing(value, typed, storage), "typed_value": typed}
    else:
        parts["value"] = _fill_nulls(value, NULL_VALUE)
        parts = dict(reversed(parts.items())) if value_first else parts
    required = {"metadata"} if "typed_value" in parts else {"metadata", "value"}
    return _struct(parts, storage, required)


def _struct(parts: Mapping[str, pa.Array], rows: pa.Array | None, required: Collection[str]) -> pa.StructArray:
    """Return a struct that is null where `rows` is, if it is given."""
    fields = [pa.field(name, part.type, nullable=name not in required) for name, part in parts.items()]
    mask = rows.is_null() if rows is not None and rows.null_count else None
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=mask)


def null_where_missing(value: pa.Array, typed: pa.Array, rows: pa.Array | None = None) -> pa.Array:
    """Return the residual, with Variant null where neither column has a value; `rows` is null where none is required.

    Spec, "Value Shredding": a row or element must have a value; readers interpret a missing value as Variant null.
    """
    if not (value.null_count and typed.null_count):
        return value
    missing = pc.and_(value.is_null(), typed.is_null())
    if rows is not None and rows.null_count:
        missing = pc.and_(missing, rows.is_valid())
    if not pc.any(missing).as_py():
        return value
    plain = plain_form(value.type)
    return in_form(pc.if_else(missing, scalar(NULL_VALUE, plain), in_form(value, plain)), value.type)


def _binary(value: pa.Array | None, rows: int) -> pa.Array:
    """Return a residual as binary, or large binary if it exceeds 2 GiB; nulls without a residual."""
    value = pa.nulls(rows, pa.binary()) if value is None else without_encoding(value)
    if value.type == pa.binary() or (pa.types.is_large_binary(value.type) and value.nbytes >= MAX_OFFSET):
        return value
    return value.cast(pa.binary())


def _dictionary(metadata: pa.Array) -> pa.Array:
    """Return metadata as a dictionary of binary, so that batches of any origin have one type."""
    kind = pa.dictionary(pa.int32(), pa.binary())
    if metadata.type == kind:
        return metadata
    if pa.types.is_dictionary(metadata.type):
        dictionary, indices = metadata.dictionary.cast(pa.binary()), metadata.indices.cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    return metadata.cast(pa.binary()).dictionary_encode()


def _fill_nulls(array: pa.Array, filler: bytes) -> pa.Array:
    """Fill nulls, also in null rows, because a required column of a null group must not have nulls."""
    if not array.null_count:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
        return _fill_nulls(array, filler).dictionary_encode()
    return pc.fill_null(array, scalar(filler, array.type))


def _pair(group: pa.StructArray, *, element: bool = False) -> pa.StructArray:
    """Return a field or element group: required, and with ``value``, which some readers need."""
    # Flattening makes both columns null in a null group: a missing field, as the specification defines it.
    columns = columns_of(group) if group.null_count else stored_columns(group)
    value = _binary(columns.get("value"), len(group))
    pair: dict[str, pa.Array] = {"value": value}
    if "typed_value" in columns:
        pair["typed_value"] = _conformed_typed(columns["typed_value"])
    if element:
        pair["value"] = null_where_missing(value, pair.get("typed_value", pa.nulls(len(group))))
    return _struct(pair, None, ())


def _conformed_typed(array: pa.Array) -> pa.Array:
    if pa.types.is_struct(array.type):
        groups = {
            name: _pair(child)
            for name, child in stored_columns(array).items()
            if not name.startswith("_") or pa.types.is_struct(child.type)
        }
        return _struct(groups, array, groups)
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        list_of = pa.large_list if pa.types.is_large_list_view(array.type) else pa.list_
        array = array.cast(list_of(array.type.value_type))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        list_of = pa.large_list if pa.types.is_large_list(array.type) else pa.list_
        elements = _pair(array.values, element=True)
        list_type = list_of(pa.field("element", elements.type, nullable=False))
        # Keep offsets and validity, and replace the elements.
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(list_type, len(array), buffers, array.null_count, array.offset, [elements])
    return array


def bloom_leaves(schema: pa.Schema, variants: Sequence[tuple[str, ...]], paths: Collection[str]) -> list[str]:
    """Return the dotted leaf columns of shredded paths, such as ``"$.id"``, in the Variants of a new file.

    Raises `VariantFileError` if no column shreds a path as a primitive type.
    """
    leaves: list[str] = []
    for path in paths:
        first_new = len(leaves)
        for column in variants:
            group: ArrowGroup | None = ArrowGroup(pa.struct(list(schema)))
            for name in column:
                group = None if group is None else group.child(name)
            end = None if group is None else walk_path(group, VariantPath.parse(path))
            typed = None if end is None or end.is_repeated else end.group.child("typed_value")
            if end is not None and end.step is Step.FOUND and typed is not None and typed.is_leaf:
                leaves.append(".".join(typed.path))
        if len(leaves) == first_new:
            raise _not_shredded(path)
    return leaves


def check_bloom_paths(schema: ShreddingSchema, paths: Collection[str]) -> None:
    """Check, before a file is opened, that a schema shreds the paths that get a Bloom filter.

    Raises `VariantFileError` as `bloom_leaves` does.
    """
    for path in paths:
        node = schema.get(path)
        if node is None or node.type is None or VariantPath.parse(path).has_wildcard:
            raise _not_shredded(path)


def _not_shredded(path: str) -> VariantFileError:
    return VariantFileError(
        f"cannot write a Bloom filter for {path}: add it to the shredding schema as a primitive type",
        reason="not-shredded",
    )


def same_type(table: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """Return the table with the schema of the first batch, if they differ only in nullability or dictionaries."""
    if table.schema.names != schema.names:
        problem = (
            f"batches must have the same columns: the first batch has {', '.join(schema.names)}, this one has "
            f"{', '.join(table.schema.names)}"
        )
        raise SchemaError(problem, reason="batches-differ", file=path)
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException:
            problem = f"column {field.name} is {column.type}, but {field.type} in the first batch: cast it to one type"
            raise SchemaError(problem, reason="batches-differ", file=path) from None
    return pa.table(columns, schema=schema)


def sorted_rows(table: pa.Table, sort_by: Sequence[str]) -> pa.Table:
    """Return the table in ascending order of keys, nulls last; equal rows keep their order."""
    keys: dict[str, pa.Array] = {}
    for selected in read_selection({f"key{number}": key for number, key in enumerate(sort_by)}):
        for number, key in enumerate(_keys(table, selected)):
            if isinstance(key.type, pa.BaseExtensionType):  # pyarrow sorts neither extension types nor half floats
                key = pc.cast(key, key.type.storage_type)
            elif pa.types.is_float16(key.type):
                key = pc.cast(key, pa.float32())
            keys[f"{selected.name}.{number}"] = key
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _keys(table: pa.Table, selected: Selected) -> list[pa.Array]:
    """Return the sort keys of a column; a path without a type is sorted as its shredded type, else numbers first."""
    from parquet_variant.ops.variant_get import variant_get

    if selected.path is None:
        if selected.column not in table.column_names:
            names = ", ".join(table.column_names)
            problem = f"cannot sort by {selected.column}: choose from {names}; a path is written '$.{selected.column}'"
            raise VariantFileError(problem, reason="no-such-column")
        column = table.column(selected.column)
        if pa.types.is_nested(column.type):
            raise VariantFileError(
                f"cannot sort by {selected.column}: its values are nested; use a path of a Variant, such as "
                "'$.id:bigint', or a column of scalars",
                reason="bad-option",
            )
        return [chunks_in_form(column, plain_form(column.type))]
    top = [field.name for field in table.schema if is_variant_field(field)]
    if len(top) != 1:
        problem = f"cannot sort by {selected.path}: {len(top)} top-level columns are Variants, not one"
        raise VariantFileError(problem, reason="several-variant-columns" if top else "no-variant-column")
    array = VariantArray(table.column(top[0]))
    if selected.type is not None:
        return [variant_get(array, selected.path, selected.type, errors="null")]
    shredded = None if array.schema is None else array.schema.get(selected.path)
    first_type = pa.float64() if shredded is None or shredded.type is None else shredded.type
    # Values of other types are sorted as strings.
    return [variant_get(array, selected.path, kind, errors="null") for kind in dict.fromkeys((first_type, pa.string()))]
