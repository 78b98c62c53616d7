"""Casts of slots to Arrow arrays of a target type.

Owns lists, structs and maps, which are cast field by field, and the fallback: slots that `column_casts` does not take,
and all that fail, go through `encoding.cast`, once per distinct value, so the scalar implementation decides. Owns also
which slots have a target type already, for `get_variant_element`. `value_positions` and `shredded_walk` find the
values.
"""

from __future__ import annotations

import ctypes
import dataclasses
import datetime as dt
import struct
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_of_all, patched, storage_of
from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import CastError, VariantError
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, to_numpy
from parquet_variant.kernels.operations import get
from parquet_variant.kernels.records import KIND
from parquet_variant.ops.columns.column_casts import bytes_of_slots, cast_column
from parquet_variant.ops.columns.value_positions import ScalarSlots, ValuePositions
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import DECIMAL_IDS, INTEGER_IDS, MAX_OFFSET, TYPE_OF_ID, PrimitiveId
from parquet_variant.types.forms import fixed_size_lists
from parquet_variant.types.targets import VARIANT_STORAGE, Target

_P = PrimitiveId
Lossless: TypeAlias = bool | Literal["numbers"]
_NUMBERS = (*INTEGER_IDS, *DECIMAL_IDS, _P.FLOAT, _P.DOUBLE)
_KINDS: dict[str, tuple[int, ...]] = {
    "boolean": (_P.TRUE, _P.FALSE),
    "null": (),
    "float16": (),
    "float32": (_P.FLOAT,),
    "float64": (_P.FLOAT, _P.DOUBLE),
    "string": (_P.STRING,),
    "binary": (_P.BINARY,),
    "uuid": (_P.UUID,),
    "date": (_P.DATE,),
    "time": (_P.TIME,),
    "timestamp": (_P.TIMESTAMP, _P.TIMESTAMP_NANOS),
    "timestamp_ntz": (_P.TIMESTAMP_NTZ, _P.TIMESTAMP_NTZ_NANOS),
    "list": (KIND.ARRAY,),
    "struct": (KIND.OBJECT,),
    "map": (KIND.OBJECT,),
}


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
        if target.family in ("time", "timestamp", "timestamp_ntz"):
            from parquet_variant.encoding.cast.values import NANOS_OF

            holds = np.zeros(len(slots), np.bool_)
            for kind in _KINDS[target.family]:
                nanos = NANOS_OF[TYPE_OF_ID[_P(kind)].type]
                exact = np.ones(len(slots), np.bool_) if nanos >= target.tick else slots.a % (target.tick // nanos) == 0
                holds |= (slots.kinds == kind) & exact
            same &= holds
    kinds = np.where(same, slots.kinds, get.MISSING).astype(np.uint8)
    return dataclasses.replace(slots, kinds=kinds)


_IN_MEMORY = (_P.STRING, _P.BINARY, _P.UUID)


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
    elif target.family == "struct" and target.names and positions is not None:
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
            valid_positions = np.flatnonzero(is_valid)
            _, _, elements = value_positions.take(valid_positions).elements()
        children = array_of_slots(elements.slots(), self.target.children[0], self.options)
        if size < 0:
            return list_array(offsets, children, is_valid, arrow), is_valid
        lists = fixed_size_lists(children, arrow, from_numpy(np.zeros(len(valid_positions), np.bool_)))
        return lists.take(from_numpy(np.cumsum(is_valid) - 1, ~is_valid)), is_valid

    def structs(self, value_positions: ValuePositions) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        is_object = self.slots.kinds == KIND.OBJECT
        columns = [
            array_of_slots(value_positions.key(name).slots(), child, self.options)
            for name, child in zip(self.target.names, self.target.children, strict=True)
        ]
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
        """Return the base with some positions cast by the scalar fallback, each distinct scalar once."""
        if not len(remaining):
            return base
        kinds = self.slots.kinds[remaining]
        nested = (kinds == KIND.ARRAY) | (kinds == KIND.OBJECT)
        base = self._nested(remaining[nested], base)
        for kind in _IN_MEMORY:
            positions = remaining[~nested & (kinds == kind)]
            if len(positions):
                keys = bytes_of_slots(self.slots, positions, as_text=kind == _P.STRING)
                base = self._scalars(positions, keys, kind, base)
        positions = remaining[~nested & ~np.isin(kinds, _IN_MEMORY)]
        return self._scalars(positions, _pack_slots(self.slots, positions), None, base) if len(positions) else base

    def _scalars(self, positions: Int64s, keys: pa.Array, kind: _P | None, base: pa.Array) -> pa.Array:
        """Cast scalars; ``keys`` identify the values: their bytes if they have a kind, else from `_pack_slots`."""
        from parquet_variant.encoding.cast.values import array_of_raw, cast_scalar, no_cast

        slots, target = self.slots, self.target
        encoded = keys.dictionary_encode()
        results: list[Any] = [None] * len(encoded.dictionary)
        if not target.children and target.family != "struct":
            for index, key in enumerate(encoded.dictionary.to_pylist()):
                scalar_kind, raw = _unpack_slot(key) if kind is None else (kind, key)
                results[index] = cast_scalar(TYPE_OF_ID[_P(scalar_kind)].type, raw, target, self.options.zone)
        if self.options.safe and None in results:
            failed = np.array([result is None for result in results])[to_numpy(encoded.indices)]
            position = int(positions[np.argmax(failed)])
            raise no_cast(_variant_of(slots, position), target).at(row=slots.row(position), path=self.options.path)
        return patched(base, positions, array_of_raw(results, target).take(encoded.indices))

    def _nested(self, positions: Int64s, base: pa.Array) -> pa.Array:
        """Cast arrays and objects."""
        from parquet_variant.encoding.cast.values import array_of_raw, cast_raw

        slots, target, options = self.slots, self.target, self.options
        if not options.safe and not target.children and target.family not in ("string", "struct"):
            return base  # arrays and objects have no cast to a scalar
        if target.family == "string" and slots.value_positions is not None and len(positions):
            base, positions = self._json_texts(slots.value_positions, positions, base)
        raws = []
        for position in positions.tolist():
            try:
                raws.append(cast_raw(_variant_of(slots, position), target, options.zone, options.safe))
            except VariantError as error:
                raise error.at(row=slots.row(position), path=options.path) from None
        return patched(base, positions, array_of_raw(raws, target)) if raws else base

    def _json_texts(
        self, value_positions: ValuePositions, positions: Int64s, base: pa.Array
    ) -> tuple[pa.Array, Int64s]:
        """Return the base with the JSON text of arrays and objects, and the positions left to the scalar fallback."""
        # Few casts need JSON; importing its modules here keeps commands quick to start.
        from parquet_variant.ops.columns.json_text import json_column

        try:
            texts = json_column(trusted_array(value_positions.take(positions).storage()))
        except VariantError as error:
            if error.row is not None:
                error.row = self.slots.row(int(positions[error.row]))
            raise
        # The text has instants in UTC: the scalar fallback writes them in the session zone.
        done = np.ones(len(positions), np.bool_)
        if self.options.zone is not dt.UTC:
            done = ~to_numpy(pc.match_substring(texts, '+00:00"'))
        base = patched(base, positions[done], texts.filter(from_numpy(done)).cast(self.target.arrow))
        return base, positions[~done]


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


def _pack_slots(slots: ScalarSlots, positions: Int64s) -> pa.Array:
    """Return each slot as 18 bytes, so that the hashing of Arrow finds the distinct ones."""
    table = np.empty((len(positions), 18), np.uint8)
    table[:, 0] = slots.kinds[positions]
    table[:, 1] = slots.scales[positions]
    table[:, 2:10] = slots.a[positions].view(np.uint8).reshape(-1, 8)
    table[:, 10:18] = slots.b[positions].view(np.uint8).reshape(-1, 8)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(18), len(positions), [None, pa.py_buffer(table)])


def _unpack_slot(key: bytes) -> tuple[int, Any]:
    """Return the kind and raw payload (see `encoding.scalars`) of a packed slot."""
    kind, scale = key[0], key[1]
    if kind in (_P.TRUE, _P.FALSE):
        return kind, kind == _P.TRUE
    if kind == _P.DOUBLE:
        return kind, struct.unpack("<d", key[2:10])[0]
    if kind == _P.FLOAT:
        return kind, struct.unpack("<f", key[2:6])[0]
    if kind in DECIMAL_IDS:
        return kind, (int.from_bytes(key[2:18], "little", signed=True), scale)
    return kind, None if kind == _P.NULL else int.from_bytes(key[2:10], "little", signed=True)


def _variant_of(slots: ScalarSlots, position: int) -> Variant:
    """Return the value of a slot, with bytes of its own."""
    kind = int(slots.kinds[position])
    if slots.value_positions is not None:
        variant = slots.value_positions.variant(position)
        assert variant is not None
        return variant
    if kind in _IN_MEMORY:
        raw: Any = ctypes.string_at(int(slots.a[position]), int(slots.b[position]))
        raw = raw.decode(errors="replace") if kind == _P.STRING else raw
    else:
        kind, raw = _unpack_slot(_pack_slots(slots, np.array([position]))[0].as_py())
    return Variant(EMPTY_METADATA, encode_scalar(TYPE_OF_ID[_P(kind)].type, raw))
