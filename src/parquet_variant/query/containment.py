"""`variant_contains`: whether a value has another one in it, as in DuckDB.

Owns the meaning, for one value, and the search in a column for needles that repeat. Leaves equality to
`ops.columns.sort_keys`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.value_positions import ValuePositions
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, to_numpy
from parquet_variant.ops.columns.sort_keys import sort_key, sort_keys
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.types import EXACT_NUMERIC, INSTANT_TYPES, LOCAL_TYPES, TYPE_OF_ID, VariantType

_CONTAINERS = (VariantType.OBJECT, VariantType.ARRAY)
_NUMBERS = frozenset({*EXACT_NUMERIC, VariantType.FLOAT, VariantType.DOUBLE})
# Types that are equal to values of another type, which have one order.
_ALIKE = (_NUMBERS, frozenset(INSTANT_TYPES), frozenset(LOCAL_TYPES))
_SEARCHED_NEEDLES = 4  # With more different needles in a batch, rows are searched one by one.


def contains(haystack: Variant, needle: Variant) -> bool:
    """Return whether a value, or a value at any depth inside it, matches another one, as in DuckDB.

    A scalar matches its equals; an array matches an array of some of its elements in any order; an object matches an
    object of some of its fields.

    >>> value = Variant.from_python({"a": [1, {"b": 2}], "c": None})
    >>> parts = 1, {"b": 2.0}, {"a": [{"b": 2}]}, {"a": 2}, {"c": None}, [], "a"
    >>> [contains(value, Variant.from_python(part)) for part in parts]
    [True, True, True, False, True, True, False]
    """
    pending = [haystack]
    while pending:
        value = pending.pop()
        if _matches(value, needle):
            return True
        if value.type in _CONTAINERS:
            pending += value.values() if value.type == VariantType.OBJECT else list(value)
    return False


def contains_each(haystacks: VariantArray, needles: VariantArray) -> pa.BooleanArray:
    """Return for each row whether the value contains the other one; null if either is SQL NULL.

    Raises `MalformedVariantError` if the bytes of a value are malformed.

    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": ["x", 1.0]}', '{"b": {"c": "xy"}}', None])
    >>> contains_each(rows, pv.parse_json(['"x"'] * 3)).to_pylist(), contains_each(rows, pv.parse_json(["1"] * 3))[0]
    ([True, False, None], <pyarrow.BooleanScalar: True>)
    """
    plain, needle_rows = haystacks.to_unshredded(), needles.to_unshredded()
    valid = to_numpy(pc.and_(plain.storage.is_valid(), needle_rows.storage.is_valid()))
    encoded = needle_rows.storage.field("value").dictionary_encode()
    if len(encoded.dictionary) > _SEARCHED_NEEDLES:
        return from_numpy(_checked(plain, needle_rows, valid), ~valid)
    answers = np.zeros(len(plain), np.bool_)
    indices = to_numpy(encoded.indices.fill_null(-1))
    for number in range(len(encoded.dictionary)):
        rows = np.flatnonzero(valid & (indices == number))
        if not len(rows):
            continue
        needle = needle_rows[int(rows[0])]
        assert isinstance(needle, Variant)
        is_candidate = np.zeros(len(plain), np.bool_)
        is_candidate[rows] = _may_contain(ValuePositions.of_storage(plain.storage).take(rows), needle)
        answers |= _checked(plain, needle_rows, is_candidate) if needle.type in _CONTAINERS else is_candidate
    return from_numpy(answers, ~valid)


def _checked(haystacks: VariantArray, needles: VariantArray, candidates: Mask) -> Mask:
    """Return those of the candidate rows whose value contains the other one."""
    answers = np.zeros(len(candidates), np.bool_)
    for row in np.flatnonzero(candidates).tolist():
        haystack, needle = haystacks[row], needles[row]
        assert isinstance(haystack, Variant)
        assert isinstance(needle, Variant)
        answers[row] = contains(haystack, needle)
    return answers


def _may_contain(values: ValuePositions, needle: Variant) -> Mask:
    """Return a mask of the values that have a scalar at any depth: the needle, or the first scalar in it."""
    scalar: Variant | None = needle
    while scalar is not None and scalar.type in _CONTAINERS:
        parts = scalar.values() if scalar.type == VariantType.OBJECT else list(scalar)
        scalar = next((part for part in parts if part.type not in _CONTAINERS), parts[0] if parts else None)
    if scalar is None:
        return np.ones(len(values), np.bool_)
    has_scalar = np.zeros(len(values), np.bool_)
    level, owners = values, np.arange(len(values))
    while len(level):
        has_scalar[owners[_equals(level, scalar)]] = True
        offsets, _, elements = level.elements()
        field_offsets, _, _, fields = level.fields()
        repeated = [np.repeat(owners, np.diff(part)) for part in (offsets, field_offsets)]
        level, owners = _concatenated(elements, fields), np.concatenate(repeated)
        is_open = np.flatnonzero(~has_scalar[owners])
        level, owners = level.take(is_open), owners[is_open]
    return has_scalar


def _concatenated(first: ValuePositions, second: ValuePositions) -> ValuePositions:
    starts, stops = (np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("starts", "stops"))
    metas = np.concatenate([first.metas, second.metas])
    assert first.rows is not None
    assert second.rows is not None
    return replace(first, starts=starts, stops=stops, metas=metas, rows=np.concatenate([first.rows, second.rows]))


def _equals(values: ValuePositions, scalar: Variant) -> npt.NDArray[np.int64]:
    """Return the positions of the values that equal a scalar."""
    slots = values.slots()
    equal_types = next((types for types in _ALIKE if scalar.type in types), frozenset({scalar.type}))
    kinds = [kind for kind, info in TYPE_OF_ID.items() if info.type in equal_types]
    candidates = np.isin(slots.kinds, kinds)
    if scalar.type == VariantType.STRING:
        candidates &= slots.b == len(str(scalar.to_python()).encode())
    positions = np.flatnonzero(candidates)
    key = sort_key(scalar)
    if key is None or not len(positions):
        return positions
    keys = sort_keys(VariantArray(values.take(positions).storage()))
    return positions[to_numpy(pc.equal(keys, pa.scalar(key, pa.binary())))]


def _matches(value: Variant, needle: Variant) -> bool:
    """Return whether a value has the fields, the elements or the scalar of another one."""
    if needle.type == VariantType.OBJECT:
        fields = dict(value.items()) if value.type == VariantType.OBJECT else None
        return fields is not None and all(key in fields and _matches(fields[key], part) for key, part in needle.items())
    if needle.type == VariantType.ARRAY:
        elements = list(value) if value.type == VariantType.ARRAY else None
        return elements is not None and all(any(_matches(e, part) for e in elements) for part in needle)
    return value.type not in _CONTAINERS and sort_key(value) == sort_key(needle)
