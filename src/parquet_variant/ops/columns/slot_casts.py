"""Slots of typed columns, and casts of slots to Arrow arrays of a target type.

Owns the conversion of each stored Arrow type to slots (`layouts.storage_shape` decides which types may be stored), and
the entries of typed columns that their type does not allow. Owns the casts of lists, structs and maps, field by field,
and the fallback: slots that `column_casts` does not take, and all that fail, go through `encoding.cast`, once per
distinct value, so the scalar implementation decides. Owns also which slots have a target type already, for
`get_variant_element`. `value_positions` and `extract_path` find the values.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts, metadata_of_all, patched, scatter, storage_of, valid_bytes
from parquet_variant.arrays.value_positions import ScalarSlots, ValuePositions
from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.errors import CastError, MalformedVariantError, SchemaError, rows_of_errors
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, to_numpy
from parquet_variant.kernels.memory import KIND, buffer_address
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.pages.values import are_ascii
from parquet_variant.layouts.storage_shape import is_list, stored_primitive
from parquet_variant.ops.columns.column_casts import bytes_of_slots, cast_column
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import (
    DECIMAL_IDS,
    INTEGER_IDS,
    MAX_OFFSET,
    NANOS_OF,
    TYPE_OF_ARROW,
    TYPE_OF_ID,
    TYPES,
    PrimitiveId,
    VariantType,
    decimal_type_for_precision,
)
from parquet_variant.types.forms import fixed_size_lists
from parquet_variant.types.targets import VARIANT_STORAGE, Target, target_of

_IN_MEMORY = (KIND.STRING, KIND.BINARY, KIND.UUID)
Lossless: TypeAlias = bool | Literal["numbers"]
FailedCasts: TypeAlias = list[tuple[int, str]]  # Numbers of values, with an example at the first.
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, KIND.FLOAT, KIND.DOUBLE)
# The kinds of the values that have the type of a target, by the target's family.
_KINDS: defaultdict[str, tuple[int, ...]] = defaultdict(tuple)
for _info in TYPES.values():
    if _info.arrow is not None:
        _KINDS[target_of(_info.arrow).family] += _info.ids
_KINDS |= {"float64": (KIND.FLOAT, KIND.DOUBLE), "list": (KIND.ARRAY,), "struct": (KIND.OBJECT,), "map": (KIND.OBJECT,)}


def only_lossless(slots: ScalarSlots, target: Target, options: CastOptions) -> ScalarSlots:
    """Return the slots without those of another type, or whose value the target would change."""
    if target.family == "variant":
        return slots
    if target.family in ("integer", "decimal"):
        precision, scale = (target.precision, target.scale) if target.family == "decimal" else (38, 0)
        _, same = slots.as_decimals(min(precision, 38), min(scale, 38), rounds=False)
    else:
        takes_numbers = options.lossless == "numbers" and target.family.startswith("float")
        same = np.isin(slots.kinds, _NUMBERS if takes_numbers else _KINDS[target.family])
        for kind in _KINDS[target.family] if target.family in ("time", "timestamp", "timestamp_ntz") else ():
            nanos = NANOS_OF[TYPE_OF_ID[PrimitiveId(kind)].type]
            if nanos < target.tick:
                same &= (slots.kinds != kind) | (slots.a % (target.tick // nanos) == 0)
    if options.lossless == "numbers" and options.failed is not None:
        lost = np.flatnonzero(~same & (slots.kinds != get.MISSING) & (slots.kinds != KIND.NULL))
        if len(lost):
            _SlotCast(slots, target, options._replace(safe=False))._refuse(lost)
    kinds = np.where(same, slots.kinds, get.MISSING).astype(np.uint8)
    return dataclasses.replace(slots, kinds=kinds)


class CastOptions(NamedTuple):
    """Options of a cast."""

    zone: dt.tzinfo  # The session time zone.
    safe: bool  # Whether a value that cannot be cast is an error; otherwise it becomes null, at any depth.
    path: str  # The path of the values, for errors.
    # Whether values that do not have the type already become null; "numbers" casts numbers to floats.
    lossless: Lossless = False
    failed: FailedCasts | None = None  # Receives the number of values that become null.


def array_of_slots(slots: ScalarSlots, target: Target, options: CastOptions) -> pa.Array:
    """Return slots as an array of the plain form of the target type; null for Variant null and missing values.

    Raises `CastError`, with row and path, if a slot cannot be cast and `options.safe` is set. Raises
    `MalformedVariantError` if a string is not UTF-8.
    """
    if options.lossless:
        slots = only_lossless(slots, target, options)
    if target.family == "variant":
        return _variants(slots)
    cast = _SlotCast(slots, target, options)
    positions = slots.value_positions
    if target.family == "list" and positions is not None:
        array, done = cast.lists(positions)
    elif target.family == "struct" and positions is not None:
        array, done = cast.structs(positions)
    elif target.family == "map" and positions is not None:
        array, done = cast.maps(positions)
    else:
        array, done = cast_column(slots, target, options.zone)
    if done.all():
        return array
    done = done | (slots.kinds == get.MISSING) | (slots.kinds == KIND.NULL)
    return cast.by_fallback(np.flatnonzero(~done), array)


def list_array(offsets: Int64s, elements: pa.Array, valid: npt.NDArray[np.bool_], arrow: pa.DataType) -> pa.Array:
    """Make an array of a list or large list type from offsets, elements and a mask of the valid lists.

    Raises `CastError` if a list type with 4-byte offsets has too many elements.
    """
    mask = None if valid.all() else from_numpy(~valid)
    if pa.types.is_large_list(arrow):
        return pa.LargeListArray.from_arrays(from_numpy(offsets), elements, type=arrow, mask=mask)
    if offsets[-1] > MAX_OFFSET:
        raise CastError(f"{offsets[-1]:,} elements are too many for {arrow}: use a large_list type", reason="too-large")
    return pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32)), elements, type=arrow, mask=mask)


class _SlotCast(NamedTuple):
    """A cast of slots: lists, structs and maps field by field, and the scalar fallback."""

    slots: ScalarSlots
    target: Target
    options: CastOptions

    def lists(self, value_positions: ValuePositions) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        arrow, size = self.target.arrow, self.target.size
        offsets, is_valid, elements = value_positions.elements()
        if size >= 0:
            is_valid &= np.diff(offsets) == size
            valid = np.flatnonzero(is_valid)
            _, _, elements = value_positions.take(valid).elements()
        children = array_of_slots(elements.slots(), self.target.children[0], self.options)
        if size < 0:
            return list_array(offsets, children, is_valid, arrow), is_valid
        lists = fixed_size_lists(children, arrow, from_numpy(np.zeros(len(valid), np.bool_)))
        return scatter(lists, valid, len(is_valid)), is_valid

    def structs(self, value_positions: ValuePositions) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        is_object = self.slots.kinds == KIND.OBJECT
        columns = [
            array_of_slots(value_positions.key(name).slots(), child, self.options)
            for name, child in zip(self.target.names, self.target.children, strict=True)
        ]
        if not columns:
            return pa.array([{} if valid else None for valid in is_object.tolist()], self.target.arrow), is_object
        fields = [self.target.arrow.field(index) for index in range(len(columns))]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=from_numpy(~is_object)), is_object

    def maps(self, value_positions: ValuePositions) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        offsets, is_object, ids, values = value_positions.fields()
        names = value_positions.dictionaries.distinct_names.cast(self.target.arrow.key_type)
        keys = names.take(from_numpy(value_positions.dictionaries.name_numbers(values.metas, ids)))
        items = array_of_slots(values.slots(), self.target.children[0], self.options)
        arrow, narrow = self.target.arrow, from_numpy(offsets.astype(np.int32))
        return pa.MapArray.from_arrays(narrow, keys, items, type=arrow, mask=from_numpy(~is_object)), is_object

    def by_fallback(self, remaining: Int64s, base: pa.Array) -> pa.Array:
        """Return the base with the values at some positions cast by the scalar fallback, each distinct scalar once."""
        if not len(remaining):
            return base
        kinds = self.slots.kinds[remaining]
        is_nested = (kinds == KIND.ARRAY) | (kinds == KIND.OBJECT)
        nested, scalars = remaining[is_nested], remaining[~is_nested]
        is_text = self.slots.kinds[scalars] == KIND.STRING
        base = self._scalars(scalars[~is_text], self._scalars(scalars[is_text], base, is_text=True), is_text=False)
        if len(nested) and self.target.family == "string" and self.slots.value_positions is not None:
            return self._json_texts(self.slots.value_positions, nested, base)
        if len(nested):
            self._refuse(nested)
        return base

    def _scalars(self, positions: Int64s, base: pa.Array, *, is_text: bool) -> pa.Array:
        if not len(positions):
            return base
        from parquet_variant.encoding.cast.values import array_of_raw, cast_scalar

        slots, target = self.slots, self.target
        # Strings are not encoded, because they are the most frequent of these values.
        keys = bytes_of_slots(slots, positions, as_text=True) if is_text else slots.encoded(positions)
        encoded = keys.dictionary_encode()
        results: list[Any] = [None] * len(encoded.dictionary)
        indices = to_numpy(encoded.indices)
        if not target.children and target.family != "struct":
            for index, value in enumerate(encoded.dictionary.to_pylist()):
                try:
                    scalar = (VariantType.STRING, value) if is_text else read_scalar(value, 0, len(value))
                except MalformedVariantError as error:
                    slots.refuse(int(positions[np.argmax(indices == index)]), error.message, error.reason)
                results[index] = cast_scalar(*scalar, target, self.options.zone)
        if None in results:
            self._refuse(positions[np.array([result is None for result in results])[indices]])
        return patched(base, positions, array_of_raw(results, target).take(encoded.indices))

    def _json_texts(self, value_positions: ValuePositions, positions: Int64s, base: pa.Array) -> pa.Array:
        # Few casts need JSON; importing its modules here keeps commands quick to start.
        from parquet_variant.encoding.cast.values import json_text
        from parquet_variant.ops.columns.json_text import json_column

        with rows_of_errors(lambda row: self.slots.row(int(positions[row]))):
            json_rows = json_column(trusted_array(value_positions.take(positions).storage()))
        base, zone = patched(base, positions, json_rows.cast(self.target.arrow)), self.options.zone
        if zone is dt.UTC:
            return base
        # The JSON has instants in UTC.
        positions = positions[to_numpy(pc.match_substring(json_rows, '+00:00"'))]
        local_texts = [json_text(self.slots.variant(position), zone) for position in positions.tolist()]
        return patched(base, positions, pa.array(local_texts, self.target.arrow))

    def _refuse(self, positions: Int64s) -> None:
        """Raise `CastError` for the first of the values that cannot be cast, or count them."""
        from parquet_variant.encoding.cast.values import no_cast, preview

        first, failed = int(positions[0]), self.options.failed
        if self.options.safe:
            raise no_cast(self.slots.variant(first), self.target).at(row=self.slots.row(first), path=self.options.path)
        if failed is not None:
            failed.append((len(positions), "" if failed else preview(self.slots.variant(first))))


def _variants(slots: ScalarSlots) -> pa.Array:
    """Return the values unchanged, with metadata of only their own names, as Spark's cast to Variant does."""
    from parquet_variant.arrays.tapes import array_tapes
    from parquet_variant.kernels.shredding.json_batch import shredded_rows

    if slots.value_positions is not None:
        storage = slots.value_positions.storage()
    else:
        storage = storage_of(metadata_of_all((), len(slots)), slots.encoded(), from_numpy(slots.kinds == get.MISSING))
    with rows_of_errors(slots.row):
        pieces = [
            shredded_rows(tape).storage().cast(VARIANT_STORAGE) for tape in array_tapes(trusted_array(storage), 0)
        ]
    if sum(piece.nbytes for piece in pieces) > MAX_OFFSET:
        raise CastError("the nested Variants take more than 2 GiB: cast fewer rows at a time", reason="too-large")
    return pa.concat_arrays(pieces or [pa.nulls(0, VARIANT_STORAGE)])


def slots_of_column(array: pa.Array, rows: Int64s | None = None) -> ScalarSlots:
    """Return the slots of a shredded column; null entries are missing. Without ``rows``, entry i belongs to row i.

    Raises `SchemaError` if the type cannot be a shredded column; `MalformedVariantError` as `refuse_faulty_slots`.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = kind_of_column(array.type)
    refuse_faulty_slots(array, rows)
    valid = valid_bytes(array)
    b, scales = np.zeros(len(array), np.int64), np.zeros(len(array), np.uint8)
    if pa.types.is_boolean(array.type):
        bits = to_numpy(array.fill_null(False)).view(np.uint8)
        kinds, a = np.where(bits, KIND.TRUE, KIND.FALSE).astype(np.uint8), np.zeros(len(array), np.int64)
        owner = None
    elif pa.types.is_decimal(array.type):
        wide = array.cast(pa.decimal128(38, array.type.scale))
        pairs = np.frombuffer(wide.buffers()[1], np.int64, 2 * len(wide), 16 * wide.offset)
        kinds, a, b = np.full(len(array), KIND.DECIMAL16, np.uint8), pairs[::2].copy(), pairs[1::2].copy()
        scales[:] = array.type.scale
        owner = wide
    else:
        kinds = np.full(len(array), kind, np.uint8)
        if kind in _IN_MEMORY:
            parts = binary_parts(array)
            a, b, owner = parts.offsets[:-1] + parts.address, np.diff(parts.offsets), parts.owner
        else:
            width = array.type.bit_width // 8
            dtype, offset = np.dtype(f"{'u' if kind == KIND.FLOAT else 'i'}{width}"), array.offset * width
            a = np.frombuffer(array.buffers()[1] or b"", dtype, len(array), offset).astype(np.int64)
            owner = array
    if len(valid):
        kinds[valid == 0] = get.MISSING
    return ScalarSlots(kinds, a, b, scales, rows=rows, owner=owner)


def kind_of_column(arrow: pa.DataType) -> int:
    """Return the kind of the values of a typed column."""
    if pa.types.is_struct(arrow) or is_list(arrow):
        return KIND.OBJECT if pa.types.is_struct(arrow) else KIND.ARRAY
    stored = stored_primitive(arrow)
    if stored is None:
        raise SchemaError(f"typed_value is {arrow}, which is not a shredded value type", reason="unsupported-type")
    if pa.types.is_decimal(stored):
        return TYPES[decimal_type_for_precision(stored.precision)].ids[0]
    return TYPE_OF_ARROW[stored].ids[0]


def refuse_faulty_slots(array: pa.Array, rows: Int64s | None = None) -> None:
    """Raise an error for the first of `faulty_slots`, with its row.

    Raises `MalformedVariantError` with reason ``bad-time``, ``bad-decimal`` or ``bad-utf8``.
    """
    for position, reason, message in faulty_slots(array):
        row = position if rows is None else int(rows[position])
        raise MalformedVariantError(message, reason=reason, row=row)


def faulty_slots(array: pa.Array) -> Iterator[tuple[int, str, str]]:
    """Yield position, reason and message of each entry of a leaf column that its type does not allow.

    Invalid are times outside the day, decimals with too many digits and strings that are not UTF-8.
    """
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        if next(faulty_slots(array.dictionary), None) is not None:
            yield from faulty_slots(array.dictionary_decode())
        return
    if types.is_time(kind):
        reason, message = "bad-time", "a typed_value is not a time of day"
    elif types.is_decimal(kind):
        reason, message = "bad-decimal", f"a typed_value has too many digits for {kind}"
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        reason, message = "bad-utf8", "a typed_value is not UTF-8"
    else:
        return
    pending = [(0, len(array))] if len(array) else []
    while pending:
        first, stop = pending.pop()
        if _is_sound(array.slice(first, stop - first)):
            continue
        if stop - first == 1:
            yield first, reason, message
            continue
        middle = (first + stop) // 2
        pending += [(middle, stop), (first, middle)]


def _is_sound(array: pa.Array) -> bool:
    if pa.types.is_string(array.type):
        # One pass over the joint bytes instead of one per string: most strings are ASCII.
        _, offsets, data = array.buffers()
        stops = (
            np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4) if len(array) else np.zeros(1, np.int32)
        )
        if are_ascii(stops, buffer_address(data), 0 if data is None else data.size):
            return True
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
