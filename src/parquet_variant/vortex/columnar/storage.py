"""The columnar encoding as ordinary columns: the struct that lies in a file, and back.

Owns the struct's shape, and giving it as whole rows without columns for what lies there as bytes. Leaves the encoding
in memory to `columnar_variant`, and bytes to `encoding`. One group a path, with one entry a row (an element, below an
array)::

    struct<
      discriminator: uint16      kind of the value, a decimal's scale above it (`code_of`)
      boolean, integer, decimal_2, double, string, ...    one a family of types: null where the value is of another
      object: struct<name: group, ...>                    what is below, by the objects' own names
      array: list<group>                                  empty where there is no array
      rest: struct<metadata, value>                       what has no columns of its own, as Variant bytes
    >

Nothing is there where the discriminator is null, or of a scalar that its column does not have: so a field whose values
are of one kind has one code in all rows, which takes no room. All integers share a column, and all decimals of a scale:
the discriminator keeps their widths. A field gets columns if it has as many values as the policy ``auto`` asks for
(thin columns are larger together than their bytes), while there are fewer than `MAX_FIELDS`, the most frequent first,
and no deeper than `MAX_DEPTH`; ``rest`` holds the others (of an object), or the whole of an array that is too deep.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.capsules import is_storage, without_views
from parquet_variant.array.parts import metadata_of_all, storage_of, stored_columns
from parquet_variant.array.remapping import Undecided, dictionary_names, remapped, spans_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.shredded_walk import scatter
from parquet_variant.compute.value_positions import ValuePositions
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.values.value_nodes import RAW
from parquet_variant.shredding.policies.auto import AutoPolicy
from parquet_variant.types import TYPE_OF_ID, PrimitiveId
from parquet_variant.vortex.columnar.column import Child, Column, Field, Int64s, nested_ranges
from parquet_variant.vortex.columnar.columnar_variant import ColumnarVariant
from parquet_variant.vortex.columnar.encoding import decode_columnar, scalar_type

# Vortex's readers refuse types that are nested deeper than about 14 of these groups.
MAX_FIELDS, MAX_DEPTH = 200, 10
_P = PrimitiveId
_DISCRIMINATOR = pa.uint16()
_SMALL_DECIMAL = 10**18
_INTEGERS = (_P.INT8, _P.INT16, _P.INT32, _P.INT64)
_DECIMALS = (_P.DECIMAL4, _P.DECIMAL8, _P.DECIMAL16)
_WITHOUT_COLUMN = (int(_P.NULL), KIND.OBJECT, KIND.ARRAY)
_NOT_SCALARS = ("discriminator", "object", "array", "rest")

# The column of some values in bytes.
OfBytes = Callable[[pa.StructArray], Column]


def family_of(code: int) -> str:
    """The name of the column that holds the scalars of a code."""
    kind, scale = PrimitiveId(code & 0xFF), code >> 8
    if kind in _INTEGERS:
        return "integer"
    return f"decimal_{scale}" if kind in _DECIMALS else str(TYPE_OF_ID[kind].type)


FAMILIES = frozenset(
    family_of(int(kind) | scale << 8)
    for kind in PrimitiveId
    if kind is not _P.NULL
    for scale in (range(39) if kind in _DECIMALS else (0,))
)
"""The names of all columns of scalars."""


def is_columnar_storage(kind: pa.DataType) -> bool:
    """Whether a type is the struct of a columnar column.

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
    below = nested.get("object")
    if "rest" in nested and not is_storage(nested["rest"]):
        return False
    return below is None or (pa.types.is_struct(below) and all(is_columnar_storage(field.type) for field in below))


# -- to columns


def to_storage(array: ColumnarVariant) -> pa.StructArray:
    """The columns of an array.

    >>> import parquet_variant as pv
    >>> array = ColumnarVariant.from_variant(pv.parse_json(['{"a": 1}', '{"a": 1.5}', "[true]"]))
    >>> storage = to_storage(array)
    >>> [field.name for field in storage.type], storage.field("object").field("a").to_pylist()[1]
    (['discriminator', 'array', 'object'], {'discriminator': 264, 'integer': None, 'decimal_1': Decimal('1.5')})
    """
    group = _group(array.column, array.present, len(array), _chosen(array.column), 0)
    if array.rows is None:
        return group
    mask = np.ones(len(array), np.bool_)
    mask[array.rows] = False
    return pa.StructArray.from_arrays(group.flatten(), fields=list(group.type), mask=pa.array(mask))


def _chosen(root: Column) -> set[int]:
    """The fields, by identity, that get columns."""
    chosen: list[tuple[int, int, Field]] = []
    least = AutoPolicy().min_row_share * root.size
    columns = [root]
    for column in columns:  # the list grows while it is read
        for child in column.children:
            if child.elements is not None:
                columns.append(child.elements)
            for name, field in child.fields.items():
                columns.append(field.column)
                if field.column.size >= least and "\0" not in name:  # Arrow's C interface ends names there
                    chosen.append((field.column.size, -len(chosen), field))
    return {id(field) for *_, field in heapq.nlargest(MAX_FIELDS, chosen)}


def _group(column: Column, at: Int64s, size: int, chosen: set[int], depth: int) -> pa.StructArray:
    """A column whose values are at some entries of `size`."""
    codes = np.array([child.code for child in column.children] or [0], np.uint16)
    discriminators = codes[np.zeros(column.size, np.uint8) if column.types is None else column.types]
    names, arrays = ["discriminator"], [_discriminator(codes, discriminators, at, size)]
    scalars: dict[str, list[tuple[pa.Array, Int64s]]] = {}
    rests: list[tuple[VariantArray, Int64s]] = []
    for index, child in enumerate(column.children):
        places = at[column.positions(index)]
        if child.values is not None:
            scalars.setdefault(family_of(child.code), []).append((_as_family(child), places))
        elif child.elements is not None and child.offsets is not None:
            if depth >= MAX_DEPTH:
                rests.append((_bytes(child), places))
                continue
            lengths = np.zeros(size, np.int64)
            lengths[places] = np.diff(child.offsets)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            count = child.elements.size
            elements = _group(child.elements, np.arange(count), count, chosen, depth + 1)
            names.append("array")
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets), elements))
        elif child.kind == KIND.OBJECT:
            kept = {name: field for name, field in child.fields.items() if id(field) in chosen and depth < MAX_DEPTH}
            if kept:
                below = [
                    _group(field.column, places[field.places(child.size)], size, chosen, depth + 1)
                    for field in kept.values()
                ]
                names.append("object")
                fields = [pa.field(name, group.type, nullable=False) for name, group in zip(kept, below, strict=True)]
                arrays.append(pa.StructArray.from_arrays(below, fields=fields))
            if len(kept) < len(child.fields):
                rest, own = _without(child, set(kept))
                rests.append((_bytes(rest), places[own]))
    for name, pieces in scalars.items():
        values, places = _together([piece for piece, _ in pieces]), np.concatenate([where for _, where in pieces])
        order = np.argsort(places, kind="stable")
        names.append(name)
        arrays.append(scatter(values if len(pieces) == 1 else values.take(pa.array(order)), places[order], size))
    if rests:
        every = VariantArray.concat(rest for rest, _ in rests)
        places = np.concatenate([where for _, where in rests])
        order = np.argsort(places, kind="stable")
        plain = _plain(every)
        names.append("rest")
        arrays.append(scatter(plain.take(pa.array(order)), places[order], size))
    return pa.StructArray.from_arrays(arrays, names=names)


def _discriminator(codes: npt.NDArray[np.uint16], codes_at: npt.NDArray[np.uint16], at: Int64s, size: int) -> pa.Array:
    """The codes at their places, and in all others that of a scalar, if there are any."""
    scalars = codes[~np.isin(codes, _WITHOUT_COLUMN)]
    if not len(scalars):
        return scatter(pa.array(codes_at), at, size)
    filled = np.full(size, scalars[0], np.uint16)
    filled[at] = codes_at
    return pa.array(filled)


def _as_family(child: Child) -> pa.Array:
    values, kind = child.values, child.kind
    assert values is not None
    if kind in _INTEGERS:
        return values.cast(pa.int64())
    if kind == _P.UUID:  # which vortex-data does not have
        return pa.Array.from_buffers(pa.binary(16), len(values), values.storage.buffers()[:2], 0, values.offset).cast(
            pa.binary()
        )
    return values


def _together(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _without(child: Child, kept: set[str]) -> tuple[Child, Int64s]:
    """Objects with the fields that are not kept, and which of the objects have any."""
    places = {name: field.places(child.size) for name, field in child.fields.items() if name not in kept}
    own = np.unique(np.concatenate(list(places.values())))
    fields = {name: Field(np.searchsorted(own, at), child.fields[name].column) for name, at in places.items()}
    return Child(KIND.OBJECT, len(own), fields=fields), own


def _bytes(child: Child) -> VariantArray:
    return ColumnarVariant(child.size, Column(child.size, (child,))).to_variant()


def _plain(array: VariantArray) -> pa.StructArray:
    storage = array.storage
    columns = [storage.field(name) for name in ("metadata", "value")]
    columns = [
        (each.dictionary_decode() if pa.types.is_dictionary(each.type) else each).cast(pa.binary()) for each in columns
    ]
    return pa.StructArray.from_arrays(columns, names=["metadata", "value"])


# -- from columns


def from_storage(storage: pa.StructArray, of_bytes: OfBytes | None = None) -> ColumnarVariant:
    """The array of columns, of which some may be missing: those that a path does not need.

    ``of_bytes`` says what becomes of the values in ``rest``; by default they are columns.

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
    there = _is_there(storage)
    if valid is not None:
        there = there & valid.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(there)
    column = _column(storage, rows, of_bytes or (lambda rest: ColumnarVariant.from_variant(VariantArray(rest)).column))
    return ColumnarVariant(len(storage), column, None if len(rows) == len(storage) else rows)


def _is_there(group: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Which entries of a group have a value."""
    discriminator = group.field("discriminator")
    there = discriminator.is_valid().to_numpy(zero_copy_only=False)
    scalars = [values for name, values in stored_columns(group).items() if name in FAMILIES]
    if not scalars:
        return there
    codes = discriminator.fill_null(0).to_numpy()
    has_value = np.isin(codes, _WITHOUT_COLUMN)
    for values in scalars:
        has_value |= values.is_valid().to_numpy(zero_copy_only=False)
    return there & has_value


def _column(group: pa.StructArray, at: Int64s, of_bytes: OfBytes) -> Column:
    """The values at some entries of a group, all of which are there."""
    columns = stored_columns(group)
    numbers = columns["discriminator"].take(pa.array(at)).to_numpy(zero_copy_only=False).astype(np.int64)
    codes, types = np.unique(numbers, return_inverse=True)
    children = []
    split = None
    for index, code in enumerate(codes.tolist()):
        own = at if len(codes) == 1 else at[types == index]
        rest = columns.get("rest")
        extra = _NONE if rest is None else np.flatnonzero(rest.take(pa.array(own)).is_valid().to_numpy(False))
        if code == KIND.OBJECT:
            children.append(_objects(columns, own, extra, of_bytes))
        elif code == KIND.ARRAY:
            if len(extra):
                split = own[extra]
            children.append(_arrays(columns, own, of_bytes))
        elif code == _P.NULL or (values := columns.get(family_of(code))) is None:
            children.append(Child(code, len(own)))
        else:
            children.append(Child(code, len(own), _from_family(values.take(pa.array(own)), code)))
    column = Column(len(at), tuple(children), types.astype(np.uint8) if len(codes) > 1 else None)
    if split is None:
        return column
    return _with_arrays_of_bytes(column, at, split, of_bytes(columns["rest"].take(pa.array(split))))


_NONE = np.zeros(0, np.int64)


def _objects(columns: dict[str, pa.Array], own: Int64s, extra: Int64s, of_bytes: OfBytes) -> Child:
    fields: dict[str, Field] = {}
    for name, group in stored_columns(columns["object"]).items() if "object" in columns else ():
        places = np.flatnonzero(_is_there(group)[own])
        if len(places):
            column = _column(group, own[places], of_bytes)
            fields[name] = Field(None if len(places) == len(own) else places, column)
    if len(extra):
        child = of_bytes(columns["rest"].take(pa.array(own[extra]))).children[0]
        for name, field in child.fields.items():
            places = extra[field.places(child.size)]
            fields[name] = Field(None if len(places) == len(own) else places, field.column)
    return Child(KIND.OBJECT, len(own), fields={name: fields[name] for name in sorted(fields)})


def _arrays(columns: dict[str, pa.Array], own: Int64s, of_bytes: OfBytes) -> Child:
    lists = columns.get("array")
    if lists is None:
        return Child(KIND.ARRAY, len(own), offsets=np.zeros(len(own) + 1, np.int64), elements=Column(0))
    offsets, elements = nested_ranges(lists.offsets.to_numpy().astype(np.int64), own)
    return Child(KIND.ARRAY, len(own), offsets=offsets, elements=_column(lists.values, elements, of_bytes))


def _with_arrays_of_bytes(column: Column, at: Int64s, deep: Int64s, arrays: Column) -> Column:
    """The column with the arrays that lie as bytes in the places of the empty ones."""
    order = np.arange(len(at))
    order[np.searchsorted(at, deep)] = len(at) + np.arange(len(deep))
    return Column.concat([column, arrays]).take(order)


def _from_family(values: pa.Array, code: int) -> pa.Array:
    kind = scalar_type(code)
    if code == _P.UUID:
        return pa.ExtensionArray.from_storage(kind, values.cast(kind.storage_type))
    return values if values.type == kind else values.cast(kind)


def whole_rows(storage: pa.StructArray) -> VariantArray:
    """The values of a columnar column, unshredded.

    >>> import parquet_variant as pv
    >>> from parquet_variant.vortex.columnar.storage import to_storage
    >>> rows = pv.parse_json(['{"a": 1, "b": [1, "x"]}', None, '{"a": {"b": null}}'])
    >>> whole_rows(to_storage(pv.vortex.encode(rows, "columnar"))).to_pylist()
    [{'a': 1, 'b': [1, 'x']}, None, {'a': {'b': None}}]
    """
    try:
        names = sorted(set(_names(storage)))
        columnar = from_storage(storage, partial(_as_bytes, names))
    except Undecided:  # bytes whose names cannot be given other ids: they must become columns
        return from_storage(storage).to_variant()
    return decode_columnar(columnar.size, columnar.column, columnar.present, names)


def _names(group: pa.StructArray) -> Iterator[str]:
    """All names of fields, those of columns and those in bytes."""
    for field in group.type:
        if field.name == "object":
            below = group.field("object")
            for index, each in enumerate(below.type):
                yield each.name
                yield from _names(below.field(index))
        elif field.name == "array":
            yield from _names(group.field("array").values)
        elif field.name == "rest":
            for names in _dictionaries(group.field("rest"))[1]:
                yield from names


def _dictionaries(rest: pa.StructArray) -> tuple[pa.DictionaryArray, list[list[str]]]:
    metadata = rest.field("metadata")
    encoded = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
    return encoded, dictionary_names(encoded.dictionary.cast(pa.binary()).filter(encoded.dictionary.is_valid()))


def _as_bytes(names: list[str], rest: pa.StructArray) -> Column:
    """Objects whose fields are encoded values, or other values that are: under the ids of `names`."""
    encoded, own = _dictionaries(rest)
    id_of = {name: number for number, name in enumerate(names)}
    indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    value = remapped(spans_of(rest.field("value"), indices), [[id_of[name] for name in each] for each in own])
    storage = storage_of(metadata_of_all(names, len(value)), value)
    offsets, are_objects, ids, values_of_fields = ValuePositions.of_storage(storage).fields()
    if not are_objects.any():
        return Column(len(value), (Child(RAW, len(value), values=value),))
    order = np.argsort(ids, kind="stable")
    values = values_of_fields.storage().field("value").take(pa.array(order))
    rows, ids = np.repeat(np.arange(len(value)), np.diff(offsets))[order], ids[order]
    bounds = np.flatnonzero(np.diff(ids, prepend=-1, append=-1))
    fields = {}
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values_of_name = Child(RAW, stop - start, values=values.slice(start, stop - start))
        fields[names[ids[start]]] = Field(rows[start:stop], Column(stop - start, (values_of_name,)))
    return Column(len(value), (Child(KIND.OBJECT, len(value), fields=fields),))
