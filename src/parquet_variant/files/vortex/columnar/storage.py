"""The columnar encoding as ordinary columns: the struct that a file stores.

Owns the structure of the struct, conversion to it and back, and decoding it to whole rows. `columnar_variant` owns the
encoding in memory, and `encoding` the conversion to bytes. The struct has one group per path, with one entry per row
(below an array: per element)::

    struct<
      discriminator: uint16      kind of the value, with a decimal's scale in the high byte (`code_of`)
      boolean, integer, decimal_2, double, string, ...    one per family of types: null for values of other families
      object: struct<name: group, ...>                    fields of objects, by name
      array: list<group>                                  elements of arrays, empty for other values
      rest: struct<metadata, value>                       values without columns, as Variant bytes
    >

An entry has no value if the discriminator is null, or names a scalar whose column is null. Therefore a field whose
values have one kind has the same code in all rows, which takes no space. All integers share a column, and so do all
decimals of one scale; the discriminator keeps their widths. A field gets columns if it is as frequent as the policy
``auto`` requires (many sparse columns are larger than bytes), is among the `MAX_FIELDS` most frequent fields, and is
not deeper than `MAX_DEPTH`. ``rest`` holds the other fields of an object, or an array that is too deep.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.capsules import is_storage, without_views
from parquet_variant.arrays.parts import metadata_of_all, storage_of, stored_columns
from parquet_variant.arrays.remapping import Undecided, dictionary_names, remapped, spans_of
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.vortex.columnar.column import Child, Int64s, ObjectField, PathColumn, nested_ranges
from parquet_variant.files.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.files.vortex.columnar.encoding import decode_columnar, scalar_type
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.values.value_nodes import RAW
from parquet_variant.ops.columns.shredded_walk import scatter
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.types import DECIMAL_IDS, INTEGER_IDS, TYPE_OF_ID, PrimitiveId

# Vortex's readers refuse types with more than about 14 nested groups.
MAX_FIELDS, MAX_DEPTH = 200, 10
_P = PrimitiveId
_DISCRIMINATOR = pa.uint16()
_SMALL_DECIMAL = 10**18
_WITHOUT_COLUMN = (int(_P.NULL), KIND.OBJECT, KIND.ARRAY)
_NOT_SCALARS = ("discriminator", "object", "array", "rest")

# Converts values in bytes to a column.
BytesDecoder = Callable[[pa.StructArray], PathColumn]


def family_of(code: int) -> str:
    """Return the name of the column that holds the scalars of a code."""
    kind, scale = PrimitiveId(code & 0xFF), code >> 8
    if kind in INTEGER_IDS:
        return "integer"
    return f"decimal_{scale}" if kind in DECIMAL_IDS else str(TYPE_OF_ID[kind].type)


FAMILIES = frozenset(
    family_of(int(kind) | scale << 8)
    for kind in PrimitiveId
    if kind is not _P.NULL
    for scale in (range(39) if kind in DECIMAL_IDS else (0,))
)
"""The names of all columns of scalars."""


def is_columnar_storage(kind: pa.DataType) -> bool:
    """Return True if a type is the struct of a columnar column.

    >>> is_columnar_storage(pa.struct({"discriminator": pa.uint16(), "integer": pa.int64()}))
    True
    >>> is_columnar_storage(pa.struct({"discriminator": pa.uint16(), "id": pa.int64()}))
    False
    """
    if not pa.types.is_struct(kind) or not kind.num_fields or kind.field(0).name != "discriminator":
        return False
    names = {field.name for field in kind}
    if kind.field(0).type != _DISCRIMINATOR or not names <= FAMILIES.union(_NOT_SCALARS):
        return False
    nested = {field.name: field.type for field in kind if field.name in ("object", "rest")}
    objects = nested.get("object")
    if "rest" in nested and not is_storage(nested["rest"]):
        return False
    if objects is None:
        return True
    return pa.types.is_struct(objects) and all(is_columnar_storage(field.type) for field in objects)


# -- to columns


def to_storage(array: ColumnarVariant) -> pa.StructArray:
    """Convert an array to the storage struct.

    >>> import parquet_variant as pv
    >>> array = ColumnarVariant.from_variant(pv.parse_json(['{"a": 1}', '{"a": 1.5}', "[true]"]))
    >>> storage = to_storage(array)
    >>> [field.name for field in storage.type], storage.field("object").field("a").to_pylist()[1]
    (['discriminator', 'array', 'object'], {'discriminator': 264, 'integer': None, 'decimal_1': Decimal('1.5')})
    """
    group = _group(array.column, array.present, len(array), _fields_with_columns(array.column), 0)
    if array.rows is None:
        return group
    mask = np.ones(len(array), np.bool_)
    mask[array.rows] = False
    return pa.StructArray.from_arrays(group.flatten(), fields=list(group.type), mask=pa.array(mask))


def _fields_with_columns(root: PathColumn) -> set[int]:
    """Return the fields, by identity, that get columns."""
    candidates: list[tuple[int, int, ObjectField]] = []
    min_values = AutoPolicy().min_row_share * root.size
    columns = [root]
    for column in columns:  # the list grows while it is processed
        for child in column.children:
            if child.elements is not None:
                columns.append(child.elements)
            for name, field in child.fields.items():
                columns.append(field.column)
                if field.column.size >= min_values and "\0" not in name:  # NUL ends names in Arrow's C interface
                    candidates.append((field.column.size, -len(candidates), field))
    return {id(field) for *_, field in heapq.nlargest(MAX_FIELDS, candidates)}


def _group(column: PathColumn, entries: Int64s, size: int, with_columns: set[int], depth: int) -> pa.StructArray:
    """Return the group of `size` entries with the values of a column at some entries."""
    codes = np.array([child.code for child in column.children] or [0], np.uint16)
    discriminators = codes[np.zeros(column.size, np.uint8) if column.types is None else column.types]
    names, arrays = ["discriminator"], [_discriminator(codes, discriminators, entries, size)]
    scalars: dict[str, list[tuple[pa.Array, Int64s]]] = {}
    in_bytes: list[tuple[VariantArray, Int64s]] = []
    for index, child in enumerate(column.children):
        positions = entries[column.positions(index)]
        if child.values is not None:
            scalars.setdefault(family_of(child.code), []).append((_as_family(child), positions))
        elif child.elements is not None and child.offsets is not None:
            if depth >= MAX_DEPTH:
                in_bytes.append((_encode_child(child), positions))
                continue
            lengths = np.zeros(size, np.int64)
            lengths[positions] = np.diff(child.offsets)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            count = child.elements.size
            elements = _group(child.elements, np.arange(count), count, with_columns, depth + 1)
            names.append("array")
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets), elements))
        elif child.kind == KIND.OBJECT:
            fields = {} if depth >= MAX_DEPTH else child.fields
            stored = {name: field for name, field in fields.items() if id(field) in with_columns}
            if stored:
                groups = [
                    _group(field.column, positions[field.object_positions(child.size)], size, with_columns, depth + 1)
                    for field in stored.values()
                ]
                names.append("object")
                arrow_fields = [pa.field(name, group.type, False) for name, group in zip(stored, groups, strict=True)]
                arrays.append(pa.StructArray.from_arrays(groups, fields=arrow_fields))
            if len(stored) < len(child.fields):
                other_fields, objects = _without(child, set(stored))
                in_bytes.append((_encode_child(other_fields), positions[objects]))
    for name, pieces in scalars.items():
        values = _concat([piece for piece, _ in pieces])
        positions = np.concatenate([piece_positions for _, piece_positions in pieces])
        order = np.argsort(positions, kind="stable")
        names.append(name)
        arrays.append(scatter(values if len(pieces) == 1 else values.take(pa.array(order)), positions[order], size))
    if in_bytes:
        storage = _plain_storage(VariantArray.concat(encoded for encoded, _ in in_bytes))
        positions = np.concatenate([encoded_positions for _, encoded_positions in in_bytes])
        order = np.argsort(positions, kind="stable")
        names.append("rest")
        arrays.append(scatter(storage.take(pa.array(order)), positions[order], size))
    return pa.StructArray.from_arrays(arrays, names=names)


def _discriminator(
    codes: npt.NDArray[np.uint16], codes_of_values: npt.NDArray[np.uint16], entries: Int64s, size: int
) -> pa.Array:
    """Return the codes of the values at their entries; other entries get the code of a scalar, if there is one."""
    scalars = codes[~np.isin(codes, _WITHOUT_COLUMN)]
    if not len(scalars):
        return scatter(pa.array(codes_of_values), entries, size)
    filled = np.full(size, scalars[0], np.uint16)
    filled[entries] = codes_of_values
    return pa.array(filled)


def _as_family(child: Child) -> pa.Array:
    values, kind = child.values, child.kind
    assert values is not None
    if kind in INTEGER_IDS:
        return values.cast(pa.int64())
    if kind == _P.UUID:  # vortex-data has no uuid type
        return pa.Array.from_buffers(pa.binary(16), len(values), values.storage.buffers()[:2], 0, values.offset).cast(
            pa.binary()
        )
    return values


def _concat(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _without(child: Child, excluded: set[str]) -> tuple[Child, Int64s]:
    """Return objects without the excluded fields, and the positions of the objects that have other fields."""
    positions = {
        name: field.object_positions(child.size) for name, field in child.fields.items() if name not in excluded
    }
    objects = np.unique(np.concatenate(list(positions.values())))
    fields = {
        name: ObjectField(np.searchsorted(objects, of_field), child.fields[name].column)
        for name, of_field in positions.items()
    }
    return Child(KIND.OBJECT, len(objects), fields=fields), objects


def _encode_child(child: Child) -> VariantArray:
    return ColumnarVariant(child.size, PathColumn(child.size, (child,))).to_variant()


def _plain_storage(array: VariantArray) -> pa.StructArray:
    columns = []
    for name in ("metadata", "value"):
        column = array.storage.field(name)
        decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        columns.append(decoded.cast(pa.binary()))
    return pa.StructArray.from_arrays(columns, names=["metadata", "value"])


# -- from columns


def from_storage(storage: pa.StructArray, decode_bytes: BytesDecoder | None = None) -> ColumnarVariant:
    """Convert a storage struct to an array. Columns that a path does not need may be missing.

    ``decode_bytes`` converts the values in ``rest``; by default they become columns.

    >>> import parquet_variant as pv
    >>> rows = ['{"a": 1, "b": [1, "x"]}', None, '{"a": {"b": null}}']
    >>> from_storage(to_storage(ColumnarVariant.from_variant(pv.parse_json(rows)))).to_variant().to_pylist()
    [{'a': 1, 'b': [1, 'x']}, None, {'a': {'b': None}}]
    """
    kind = without_views(storage.type, large=False)
    if storage.type != kind:
        storage = storage.cast(kind)
    valid = storage.is_valid() if storage.null_count else None
    columns = storage.flatten() if valid is None else list(stored_columns(storage).values())
    storage = pa.StructArray.from_arrays(columns, fields=list(kind))
    present = _has_value(storage)
    if valid is not None:
        present = present & valid.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    column = _column(
        storage, rows, decode_bytes or (lambda residual: ColumnarVariant.from_variant(VariantArray(residual)).column)
    )
    return ColumnarVariant(len(storage), column, None if len(rows) == len(storage) else rows)


def _has_value(group: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Return True for the entries of a group with a value."""
    discriminator = group.field("discriminator")
    has_code = discriminator.is_valid().to_numpy(zero_copy_only=False)
    scalars = [values for name, values in stored_columns(group).items() if name in FAMILIES]
    if not scalars:
        return has_code
    codes = discriminator.fill_null(0).to_numpy()
    has_value = np.isin(codes, _WITHOUT_COLUMN)
    for values in scalars:
        has_value |= values.is_valid().to_numpy(zero_copy_only=False)
    return has_code & has_value


def _column(group: pa.StructArray, entries: Int64s, decode_bytes: BytesDecoder) -> PathColumn:
    """Return the values at some entries of a group, all of which have a value."""
    columns = stored_columns(group)
    numbers = columns["discriminator"].take(pa.array(entries)).to_numpy(zero_copy_only=False).astype(np.int64)
    codes, types = np.unique(numbers, return_inverse=True)
    children = []
    arrays_in_bytes = None
    for index, code in enumerate(codes.tolist()):
        of_code = entries if len(codes) == 1 else entries[types == index]
        in_bytes = _NO_POSITIONS
        if "rest" in columns:
            in_bytes = np.flatnonzero(columns["rest"].take(pa.array(of_code)).is_valid().to_numpy(False))
        if code == KIND.OBJECT:
            children.append(_objects(columns, of_code, in_bytes, decode_bytes))
        elif code == KIND.ARRAY:
            if len(in_bytes):
                arrays_in_bytes = of_code[in_bytes]
            children.append(_arrays(columns, of_code, decode_bytes))
        elif code == _P.NULL or (values := columns.get(family_of(code))) is None:
            children.append(Child(code, len(of_code)))
        else:
            children.append(Child(code, len(of_code), _from_family(values.take(pa.array(of_code)), code)))
    column = PathColumn(len(entries), tuple(children), types.astype(np.uint8) if len(codes) > 1 else None)
    if arrays_in_bytes is None:
        return column
    decoded = decode_bytes(columns["rest"].take(pa.array(arrays_in_bytes)))
    return _with_decoded_arrays(column, entries, arrays_in_bytes, decoded)


_NO_POSITIONS = np.zeros(0, np.int64)


def _objects(columns: dict[str, pa.Array], entries: Int64s, in_bytes: Int64s, decode_bytes: BytesDecoder) -> Child:
    fields: dict[str, ObjectField] = {}
    for name, group in stored_columns(columns["object"]).items() if "object" in columns else ():
        positions = np.flatnonzero(_has_value(group)[entries])
        if len(positions):
            column = _column(group, entries[positions], decode_bytes)
            fields[name] = ObjectField(None if len(positions) == len(entries) else positions, column)
    if len(in_bytes):
        child = decode_bytes(columns["rest"].take(pa.array(entries[in_bytes]))).children[0]
        for name, field in child.fields.items():
            positions = in_bytes[field.object_positions(child.size)]
            fields[name] = ObjectField(None if len(positions) == len(entries) else positions, field.column)
    return Child(KIND.OBJECT, len(entries), fields={name: fields[name] for name in sorted(fields)})


def _arrays(columns: dict[str, pa.Array], entries: Int64s, decode_bytes: BytesDecoder) -> Child:
    lists = columns.get("array")
    if lists is None:
        return Child(KIND.ARRAY, len(entries), offsets=np.zeros(len(entries) + 1, np.int64), elements=PathColumn(0))
    offsets, elements = nested_ranges(lists.offsets.to_numpy().astype(np.int64), entries)
    return Child(KIND.ARRAY, len(entries), offsets=offsets, elements=_column(lists.values, elements, decode_bytes))


def _with_decoded_arrays(column: PathColumn, entries: Int64s, array_entries: Int64s, arrays: PathColumn) -> PathColumn:
    """Return the column with decoded arrays in place of the empty arrays at their entries."""
    order = np.arange(len(entries))
    order[np.searchsorted(entries, array_entries)] = len(entries) + np.arange(len(array_entries))
    return PathColumn.concat([column, arrays]).take(order)


def _from_family(values: pa.Array, code: int) -> pa.Array:
    kind = scalar_type(code)
    if code == _P.UUID:
        return pa.ExtensionArray.from_storage(kind, values.cast(kind.storage_type))
    return values if values.type == kind else values.cast(kind)


def whole_rows(storage: pa.StructArray) -> VariantArray:
    """Return the values of a columnar column as an unshredded array.

    >>> import parquet_variant as pv
    >>> from parquet_variant.files.vortex.columnar.storage import to_storage
    >>> rows = pv.parse_json(['{"a": 1, "b": [1, "x"]}', None, '{"a": {"b": null}}'])
    >>> whole_rows(to_storage(pv.vortex.encode(rows, "columnar"))).to_pylist()
    [{'a': 1, 'b': [1, 'x']}, None, {'a': {'b': None}}]
    """
    try:
        names = sorted(set(_names(storage)))
        columnar = from_storage(storage, partial(_encoded_fields, names))
    except Undecided:  # the names in the bytes cannot get other ids, so the bytes must become columns
        return from_storage(storage).to_variant()
    return decode_columnar(columnar.size, columnar.column, columnar.present, names)


def _names(group: pa.StructArray) -> Iterator[str]:
    """Yield all names of fields, in columns and in bytes."""
    for field in group.type:
        if field.name == "object":
            objects = group.field("object")
            for index, child in enumerate(objects.type):
                yield child.name
                yield from _names(objects.field(index))
        elif field.name == "array":
            yield from _names(group.field("array").values)
        elif field.name == "rest":
            for names in _dictionaries(group.field("rest"))[1]:
                yield from names


def _dictionaries(residual: pa.StructArray) -> tuple[pa.DictionaryArray, list[list[str]]]:
    metadata = residual.field("metadata")
    encoded = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
    return encoded, dictionary_names(encoded.dictionary.cast(pa.binary()).filter(encoded.dictionary.is_valid()))


def _encoded_fields(names: list[str], residual: pa.StructArray) -> PathColumn:
    """Return objects whose fields are encoded values, or other encoded values, with the ids of `names`."""
    encoded, dictionaries = _dictionaries(residual)
    id_of = {name: number for number, name in enumerate(names)}
    indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    new_ids = [[id_of[name] for name in dictionary] for dictionary in dictionaries]
    value = remapped(spans_of(residual.field("value"), indices), new_ids)
    storage = storage_of(metadata_of_all(names, len(value)), value)
    offsets, are_objects, ids, values_of_fields = ValuePositions.of_storage(storage).fields()
    if not are_objects.any():
        return PathColumn(len(value), (Child(RAW, len(value), values=value),))
    order = np.argsort(ids, kind="stable")
    values = values_of_fields.storage().field("value").take(pa.array(order))
    rows, ids = np.repeat(np.arange(len(value)), np.diff(offsets))[order], ids[order]
    bounds = np.flatnonzero(np.diff(ids, prepend=-1, append=-1))
    fields = {}
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values_of_name = Child(RAW, stop - start, values=values.slice(start, stop - start))
        fields[names[ids[start]]] = ObjectField(rows[start:stop], PathColumn(stop - start, (values_of_name,)))
    return PathColumn(len(value), (Child(KIND.OBJECT, len(value), fields=fields),))
