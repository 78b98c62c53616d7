"""`variant_type`, `is_variant_null`, `schema_of_variant` and `schema_of_variant_agg`: the types of values.

Owns the public operations, and the aggregate's walk over a column path by path. `types` has the types of Variants,
`encoding.schema_of` the types in Spark's notation, their merging and their strings; batches of type strings are written
by `kernels.operations.type_text`, and rows that the kernel refuses by `encoding.schema_of`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts, valid_bytes, variant_at, with_fallback_rows
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.value_positions import NameNumbers, ValuePositions, canonical_nodes, value_chunks
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.header import value_size
from parquet_variant.encoding.scalars import MAX_SCALE, MICROS_PER_DAY, read_scalar
from parquet_variant.encoding.schema_of import (
    BIGINT_DIGITS,
    MAX_DEPTH,
    VOID,
    SparkType,
    decimal_type,
    merge_all,
    merged,
    name_order,
    object_type,
    scalar_type,
    schema_of,
)
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, VariantError
from parquet_variant.kernels.arrow_buffers import Int64s, from_bytes, from_numpy, offsets_of
from parquet_variant.kernels.buffer_pool import adopt_bytes
from parquet_variant.kernels.memory import KIND, address_of
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.operations.type_text import CODES, MergeRules, Strings, write_types
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.ops.columns.arguments import as_variant_array, check_errors, or_none, or_null, text_column
from parquet_variant.ops.columns.extract_path import Group, follow, storage_group
from parquet_variant.ops.columns.slot_casts import kind_of_column
from parquet_variant.support.options import Errors
from parquet_variant.types import DECIMAL_IDS, TYPE_OF_ID, PrimitiveId, VariantType
from parquet_variant.types.path import AnyPath, Segment, VariantPath, quote_name

_BAD_SCALE = f"the scale of a decimal is greater than {MAX_SCALE}"
_NAMES = [member.value for member in VariantType]
_NUMBER_OF_KIND = np.full(256, -1, np.int32)
for _kind, _info in TYPE_OF_ID.items():
    _NUMBER_OF_KIND[_kind] = _NAMES.index(_info.type)
_NUMBER_OF_KIND[KIND.ARRAY] = _NAMES.index(VariantType.ARRAY)
_NUMBER_OF_KIND[KIND.OBJECT] = _NAMES.index(VariantType.OBJECT)


@overload
def variant_type(array: Variant, *, errors: Errors = ...) -> VariantType | Any: ...
@overload
def variant_type(array: Any, *, errors: Errors = ...) -> pa.StringArray: ...
def variant_type(array: Any, *, errors: Errors = "raise") -> VariantType | pa.StringArray | None:
    """Return the type of each value, as a name of `VariantType`.

    Integers and decimals of every width are separate types; `schema_of_variant` describes arrays and objects further.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.StringArray or VariantType
        Null for SQL NULL; ``"null"`` for Variant null.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.variant_type(pv.parse_json(['{"a": 1}', "1.5", "null", None])).to_pylist()
    ['object', 'decimal4', 'null', None]
    """
    if isinstance(array, Variant):
        return or_none(partial(type_of, array), errors)
    return or_null(array, _types, errors)


def _types(column: VariantArray) -> pa.StringArray:
    group = storage_group(column.storage)
    if group.typed is not None and not pa.types.is_nested(group.typed.type):
        _ = group.checked_column  # raises for faulty values
    numbers = _NUMBER_OF_KIND[_kinds(group)]
    names = from_bytes([name.encode() for name in _NAMES], pa.string())  # `pa.array` would import pandas
    return pa.DictionaryArray.from_arrays(from_numpy(numbers, numbers < 0), names).dictionary_decode()


def _kinds(values: Group | ValuePositions) -> npt.NDArray[np.uint8]:
    """Return the kind of each value, ``MISSING`` for SQL NULL and missing values; typed values are not read."""
    if isinstance(values, ValuePositions):
        return values.slots().kinds
    kinds = np.full(values.size, get.MISSING, np.uint8)
    if values.is_required:  # a required value that is in neither column is Variant null
        kinds[slice(None) if values.present is None else values.present] = PrimitiveId.NULL
    if values.typed is not None:
        valid = values.typed_valid()
        kinds[slice(None) if valid is None else valid] = kind_of_column(values.typed.type)
    positions, in_bytes = values.in_bytes()
    kinds[positions] = in_bytes.slots().kinds
    return kinds


def type_of(variant: Variant) -> VariantType:
    """Return the type of one value, after checking that its bytes are complete; children and UTF-8 are not checked."""
    kind, value = variant.type, variant.value
    if kind in (VariantType.OBJECT, VariantType.ARRAY, VariantType.STRING):
        value_size(value, 0, len(value))
        return kind
    return read_scalar(value, 0, len(value)).type


@overload
def is_variant_null(array: Variant, path: AnyPath = ..., *, errors: Errors = ...) -> bool | Any: ...
@overload
def is_variant_null(array: Any, path: AnyPath = ..., *, errors: Errors = ...) -> pa.BooleanArray: ...
def is_variant_null(array: Any, path: AnyPath = "$", *, errors: Errors = "raise") -> bool | pa.BooleanArray | None:
    """Return which values are Variant null, as opposed to SQL NULL and missing fields.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        The path of the values, without wildcards.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.BooleanArray or bool
        False for SQL NULL and missing paths, as in Spark; null only for rows with errors.

    Raises
    ------
    MalformedVariantError
        If bytes that are read are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.is_variant_null(pv.parse_json(["null", '{"a": null}', None])).to_pylist()
    [True, False, False]
    >>> pv.is_variant_null(pv.parse_json(["null", '{"a": null}', None]), "$.a").to_pylist()
    [False, True, False]
    """
    parsed = VariantPath.parse(path)
    if isinstance(array, Variant):
        test = lambda: (value := array.get(parsed)) is not None and type_of(value) == VariantType.NULL  # noqa: E731
        return or_none(test, errors, MalformedVariantError)
    return or_null(array, partial(_nulls, segments=parsed.segments), errors)


def _nulls(column: VariantArray, segments: tuple[Segment, ...]) -> pa.BooleanArray:
    group = storage_group(column.storage)
    return follow(group, segments, lambda values: from_numpy(_kinds(values) == PrimitiveId.NULL)).fill_null(False)


@overload
def schema_of_variant(array: Variant, *, errors: Errors = ...) -> str | Any: ...
@overload
def schema_of_variant(array: Any, *, errors: Errors = ...) -> pa.StringArray: ...
def schema_of_variant(array: Any, *, errors: Errors = "raise") -> str | pa.StringArray | None:
    """Return the type of each value, as Spark's ``schema_of_variant`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become null.

    Returns
    -------
    pyarrow.StringArray or str
        Null for SQL NULL.

    Raises
    ------
    MalformedVariantError
        If a value is malformed, with its row.
    VariantError
        With reason ``depth`` for values nested deeper than 200.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.schema_of_variant(pv.parse_json(['{"a": [1, 2.5]}', "null", None])).to_pylist()
    ['OBJECT<a: ARRAY<DECIMAL(21,1)>>', 'VOID', None]
    """
    if isinstance(array, Variant):
        return or_none(lambda: str(schema_of(array)), errors)
    return or_null(array, _type_names, errors)


def _type_names(column: VariantArray) -> pa.StringArray:
    storage = column.to_unshredded().storage
    pieces = [_chunk_types(storage.slice(start, stop - start)) for start, stop in value_chunks(storage)]
    types, refused = pa.concat_arrays([text for text, _ in pieces]), np.concatenate([flags for _, flags in pieces])
    return with_fallback_rows(types, refused, lambda row: pa.array([str(schema_of(variant_at(storage, row)))]))


def _chunk_types(storage: pa.StructArray) -> tuple[pa.Array, npt.NDArray[np.uint8]]:
    """Return the types of the rows of a chunk, and a flag for each row that the kernel refused."""
    batch = ValuePositions.of_storage(storage)
    table = NameNumbers([batch])
    starts, ranks = table.maps[0]
    # The names in the order of their fields in a type, and the position of each name in it.
    strings = table.values.cast(pa.large_string()).to_pylist()
    in_order = sorted(range(len(strings)), key=lambda number: name_order(strings[number]))
    order = np.empty(len(strings), np.int64)
    order[in_order] = np.arange(len(strings))
    quoted_names = [f"{quote_name(strings[number])}: " for number in in_order]
    quoted = binary_parts(pa.array([*quoted_names, " " * 8], pa.large_string()))  # the kernel reads beyond a name
    nodes, row_start, refused = canonical_nodes(batch, (starts, order[ranks]))
    rules, text, text_starts = _words()
    offsets = np.empty(len(storage) + 1, np.int64)
    words, quoted_text = Strings(address_of(text), text_starts), Strings(quoted.address, quoted.offsets)
    exported = write_types(nodes, row_start, rules, MAX_DEPTH, words, quoted_text, offsets, refused)
    return text_column(adopt_bytes(*exported), offsets, valid_bytes(storage)), refused


@cache
def _words() -> tuple[MergeRules, npt.NDArray[np.uint8], Int64s]:
    """Return the tables of the kernel: the rules, the text of all names, and the start of each name."""
    scalars = {int(kind): scalar_type(info.type).name for kind, info in TYPE_OF_ID.items()}
    names = [*CODES, *sorted(set(scalars.values()) - set(CODES))]
    code_of_kind = np.array([names.index(scalars[kind]) for kind in range(len(scalars))], np.int64)
    types = [SparkType(name, element=VOID if name == "ARRAY" else None) for name in names]
    table = np.array([[names.index(merged(left, right).name) for right in types] for left in types], np.int64)
    starts = offsets_of([len(name) for name in names])
    text = np.frombuffer(("".join(names) + " " * 8).encode(), np.uint8)
    return MergeRules(code_of_kind, table, BIGINT_DIGITS), text, starts


def schema_of_variant_agg(array: Any, *, errors: Errors = "raise") -> str:
    """Return the common type of all values, as Spark's ``schema_of_variant_agg`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`. SQL NULL rows are ignored.
    errors
        ``"raise"``, or ``"null"``: rows for which `schema_of_variant` would raise are ignored.

    Returns
    -------
    str
        The type; ``VOID`` without values.

    Raises
    ------
    MalformedVariantError
        If a value is malformed, with its row.
    VariantError
        With reason ``depth`` for values nested deeper than 200.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.schema_of_variant_agg(pv.parse_json(['{"a": 1}', '{"a": 2.5, "b": "x"}', None]))
    'OBJECT<a: DECIMAL(21,1), b: STRING>'
    """
    null_on_error = check_errors(errors)
    column = as_variant_array(VariantArray.from_variants([array]) if isinstance(array, Variant) else array, errors)
    try:
        return _common_type(column)
    except VariantError:
        if not null_on_error:
            raise
    return _common_type(column.filter(or_null(column, _type_names).is_valid()))


def _common_type(column: VariantArray) -> str:
    types, first_row = [], 0
    for tape in array_tapes(column, 0):
        types.append(_type_of_tape(tape, first_row))
        first_row += len(tape.row_start) - 1
    return str(merge_all(types))


def _type_of_tape(tape: Tape, first_row: int) -> SparkType:
    """Return the common type of the rows of a tape, path by path."""
    tags, parents, key_ids = tape.nodes[:, 0], tape.paths[:, PATH.PARENT].tolist(), tape.paths[:, PATH.KEY].tolist()
    kinds, paths, names = tags & 0xFF, path_ids(tags), [key.decode() for key in tape.key_list]
    types, elements = [VOID] * len(parents), [VOID] * len(parents)
    fields: list[dict[str, SparkType]] = [{} for _ in parents]
    is_decimal, payload = np.isin(kinds, DECIMAL_IDS), tape.nodes[:, 1]
    is_bad = (kinds == PrimitiveId.TIME) & ((payload < 0) | (payload >= MICROS_PER_DAY))
    for node in np.flatnonzero(is_bad | (is_decimal & ((tags >> 8 & 0xFF) > MAX_SCALE)))[:1].tolist():
        row = first_row + int(np.searchsorted(tape.row_start, node, "right")) - 1
        reason, message = ("bad-time", "a time is outside a day") if is_bad[node] else ("bad-decimal", _BAD_SCALE)
        raise MalformedVariantError(message, reason=reason, row=row)
    pairs = {divmod(pair, 256) for pair in np.unique((paths * 256 + kinds)[~is_decimal]).tolist()}
    for path, kind in pairs:
        if kind < KIND.ARRAY:
            types[path] = merged(types[path], scalar_type(TYPE_OF_ID[PrimitiveId(kind)].type))
    positions = np.flatnonzero(is_decimal)
    positions = positions[np.argsort(paths[positions], kind="stable")]
    for part in np.split(positions, np.flatnonzero(np.diff(paths[positions])) + 1) if len(positions) else ():
        numbers = np.stack([tape.nodes[part, 1], tape.nodes[part, 2], tags[part] >> 8 & 0xFF])
        decimals = {
            decimal_type((high << 64) | (low & 0xFFFFFFFFFFFFFFFF), scale)
            for low, high, scale in np.unique(numbers, axis=1).T.tolist()
        }
        types[paths[part[0]]] = merged(types[paths[part[0]]], merge_all(decimals))
    depths = [0] * len(parents)
    for path in range(1, len(parents)):  # a path comes after the path around it
        depths[path] = depths[parents[path]] + 1
    if max(depths) > MAX_DEPTH:
        raise VariantError(f"a value is nested more than {MAX_DEPTH} levels deep", reason="depth")
    for path in reversed(range(len(parents))):
        if (path, KIND.ARRAY) in pairs:
            types[path] = merged(types[path], SparkType("ARRAY", element=elements[path]))
        if (path, KIND.OBJECT) in pairs:
            types[path] = merged(types[path], object_type(fields[path]))
        if path and key_ids[path] < 0:
            elements[parents[path]] = types[path]
        elif path:
            fields[parents[path]][names[key_ids[path]]] = types[path]
    return types[0]
