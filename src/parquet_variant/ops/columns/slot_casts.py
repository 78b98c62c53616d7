"""Casts of slots to Arrow arrays of a target type.

Owns lists, structs and maps, which are cast field by field, and the fallback: slots that `column_casts` does not take,
and all that fail, go through `encoding.cast`, once per distinct value, so the scalar implementation decides. Owns also
which slots have a target type already, for `get_variant_element`. `value_positions` and `extract_path` find the
values.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import defaultdict
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_of_all, patched, scatter, storage_of
from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.errors import CastError, MalformedVariantError, VariantError
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, to_numpy
from parquet_variant.kernels.memory import KIND
from parquet_variant.kernels.operations import get
from parquet_variant.ops.columns.column_casts import bytes_of_slots, cast_column
from parquet_variant.ops.columns.value_positions import ScalarSlots, ValuePositions
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import (
    DECIMAL_IDS,
    INTEGER_IDS,
    MAX_OFFSET,
    NANOS_OF,
    TYPE_OF_ID,
    TYPES,
    PrimitiveId,
    VariantType,
)
from parquet_variant.types.forms import fixed_size_lists
from parquet_variant.types.targets import VARIANT_STORAGE, Target, target_of

_P = PrimitiveId
Lossless: TypeAlias = bool | Literal["numbers"]
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, _P.FLOAT, _P.DOUBLE)
# The kinds of the values that have the type of a target, by the target's family.
_KINDS: defaultdict[str, tuple[int, ...]] = defaultdict(tuple)
for _info in TYPES.values():
    if _info.arrow is not None:
        _KINDS[target_of(_info.arrow).family] += _info.ids
_KINDS |= {"float64": (_P.FLOAT, _P.DOUBLE), "list": (KIND.ARRAY,), "struct": (KIND.OBJECT,), "map": (KIND.OBJECT,)}


def only_lossless(slots: ScalarSlots, target: Target, numbers: bool = False) -> ScalarSlots:
    """Return the slots without those of another type, or whose value the target would change.

    `numbers`: whether all numbers are kept if the target is a float.
    """
    if target.family == "variant":
        return slots
    if target.family in ("integer", "decimal"):
        precision, scale = (target.precision, target.scale) if target.family == "decimal" else (38, 0)
        _, same = slots.as_decimals(min(precision, 38), min(scale, 38), rounds=False)
    else:
        is_float = target.family.startswith("float")
        same = np.isin(slots.kinds, _NUMBERS if numbers and is_float else _KINDS[target.family])
        for kind in _KINDS[target.family] if target.family in ("time", "timestamp", "timestamp_ntz") else ():
            nanos = NANOS_OF[TYPE_OF_ID[_P(kind)].type]
            if nanos < target.tick:
                same &= (slots.kinds != kind) | (slots.a % (target.tick // nanos) == 0)
    kinds = np.where(same, slots.kinds, get.MISSING).astype(np.uint8)
    return dataclasses.replace(slots, kinds=kinds)


class CastOptions(NamedTuple):
    """Options of a cast."""

    zone: dt.tzinfo  # The session time zone.
    safe: bool  # Whether a value that cannot be cast is an error; otherwise it becomes null, at any depth.
    path: str  # The path of the values, for errors.
    # Whether values that do not have the type already become null; "numbers" casts numbers to floats.
    lossless: Lossless = False


def array_of_slots(slots: ScalarSlots, target: Target, options: CastOptions) -> pa.Array:
    """Return slots as an array of the plain form of the target type; null for Variant null and missing values.

    Raises `CastError`, with row and path, if a slot cannot be cast and `options.safe` is set. Raises
    `MalformedVariantError` if a string is not UTF-8.
    """
    if options.lossless:
        slots = only_lossless(slots, target, options.lossless == "numbers")
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
    done = done | (slots.kinds == get.MISSING) | (slots.kinds == _P.NULL)
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
        if len(nested) and self.target.family == "string" and self.slots.value_positions is not None:
            base = self._json_texts(self.slots.value_positions, nested, base)
        elif len(nested) and self.options.safe:
            raise self._no_cast(int(nested[0]))
        is_text = self.slots.kinds[scalars] == _P.STRING
        return self._scalars(scalars[~is_text], self._scalars(scalars[is_text], base, is_text=True), is_text=False)

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
        if self.options.safe and None in results:
            failed = np.array([result is None for result in results])[indices]
            raise self._no_cast(int(positions[np.argmax(failed)]))
        return patched(base, positions, array_of_raw(results, target).take(encoded.indices))

    def _json_texts(self, value_positions: ValuePositions, positions: Int64s, base: pa.Array) -> pa.Array:
        # Few casts need JSON; importing its modules here keeps commands quick to start.
        from parquet_variant.encoding.cast.values import json_text
        from parquet_variant.ops.columns.json_text import json_column

        try:
            texts = json_column(trusted_array(value_positions.take(positions).storage()))
        except VariantError as error:
            if error.row is not None:
                error.row = self.slots.row(int(positions[error.row]))
            raise
        base, zone = patched(base, positions, texts.cast(self.target.arrow)), self.options.zone
        if zone is dt.UTC:
            return base
        # The texts have instants in UTC.
        positions = positions[to_numpy(pc.match_substring(texts, '+00:00"'))]
        local_texts = [json_text(self.slots.variant(position), zone) for position in positions.tolist()]
        return patched(base, positions, pa.array(local_texts, self.target.arrow))

    def _no_cast(self, position: int) -> CastError:
        from parquet_variant.encoding.cast.values import no_cast

        error = no_cast(self.slots.variant(position), self.target)
        error.at(row=self.slots.row(position), path=self.options.path)
        return error


def _variants(slots: ScalarSlots) -> pa.Array:
    """Return the values unchanged, with metadata of only their own names, as Spark's cast to Variant does."""
    from parquet_variant.arrays.tapes import array_tapes
    from parquet_variant.kernels.shredding.json_batch import shredded_rows

    if slots.value_positions is not None:
        storage = slots.value_positions.storage()
    else:
        storage = storage_of(metadata_of_all((), len(slots)), slots.encoded(), from_numpy(slots.kinds == get.MISSING))
    try:
        pieces = [
            shredded_rows(tape).storage().cast(VARIANT_STORAGE) for tape in array_tapes(trusted_array(storage), 0)
        ]
    except VariantError as error:
        if error.row is not None:
            error.row = slots.row(error.row)
        raise
    if sum(piece.nbytes for piece in pieces) > MAX_OFFSET:
        raise CastError("the nested Variants take more than 2 GiB: cast fewer rows at a time", reason="too-large")
    return pa.concat_arrays(pieces or [pa.nulls(0, VARIANT_STORAGE)])
