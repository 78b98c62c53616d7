"""Bounds by path of a Variant column: what a table's log may say of a file's values.

Owns which paths may have bounds, the Variants that bound them, and cutting long texts so that they still bound. Leaves
where counts and extremes of a leaf column come from to its caller (a file's footer, or `array_statistics` for arrays in
memory), and the form in a log to the table formats.

A path has bounds only if it is a primitive of one type wherever it occurs (a missing path has no type; a Variant null
has another), does not go through an array, is not binary, and held no NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Context
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.path import VariantPath, is_within
from parquet_variant.schema.depth_limits import MAX_PHYSICAL_DEPTH, UNSHREDDED_DEPTH
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.leaf_statistics import LeafStatistics
from parquet_variant.types import (
    DECIMAL_TYPES,
    INTEGERS,
    TYPE_OF_ARROW,
    TYPES,
    BasicType,
    VariantType,
    decimal_type_for_precision,
)

if TYPE_CHECKING:
    from parquet_variant.shredding.profile_path import PathProfile

# Characters that a bound of a text keeps.
TEXT_LENGTH = 32

# Objects inside each other that may have bounds: as many as a shredded column may have.
_MAX_LEVELS = (MAX_PHYSICAL_DEPTH - UNSHREDDED_DEPTH) // 2
_MAX_DIGITS = 38
_EMPTY_METADATA = Variant.from_python(None).metadata
_LAST_CHARACTER = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


@dataclass(frozen=True, slots=True)
class Bounds:
    """A Variant that no value at a path is below, and one that none is above; both of the path's type.

    A long text whose cut-off form cannot be raised has no upper bound.
    """

    lower: Variant | None
    upper: Variant | None


# Tells of a leaf column by its place; floats that hold NaN must have no bounds.
LeafLookup = Callable[[tuple[str, ...]], LeafStatistics | None]


def shredded_bounds(
    schema: ShreddingSchema,
    leaf_statistics: LeafLookup,
    *,
    unsafe: Collection[VariantPath] = (),
    limit: int | None = None,
) -> dict[VariantPath, Bounds]:
    r"""The bounds of every path that may have some, in the order of the schema.

    `leaf_statistics`: given the place of a leaf below the column (``("typed_value", "a", "value")``), what is known of
      it; None if there is no such leaf.
    `unsafe`: places of objects (see `residual_objects`) below which nothing can be said.
    `limit`: how many paths to give at most.
    Returns `Bounds` by path.

    >>> storage = pa.array(
    ...     [{"metadata": b"\x01\x00\x00", "value": None, "typed_value": n} for n in (3, 1)],
    ...     pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()}),
    ... )
    >>> array = VariantArray.from_storage(storage)
    >>> {str(k): (b.lower.to_python(), b.upper.to_python()) for k, b in
    ...  shredded_bounds(array.schema, array_statistics(array)).items()}
    {'$': (1, 3)}
    """
    by_path: dict[VariantPath, Bounds] = {}
    for path, node in schema.walk():
        if node.type is None or path.has_wildcard or any(is_within(path, place) for place in unsafe):
            continue
        if limit is not None and len(by_path) >= limit:
            break
        place = _place(path)
        typed, rest = leaf_statistics((*place, "typed_value")), leaf_statistics((*place, "value"))
        if rest is not None and rest.nulls != rest.values:
            continue
        if typed is None or typed.nulls == typed.values or typed.lower is None or typed.upper is None:
            continue
        bounds = _bounds(typed.lower, typed.upper, node.type)
        if bounds is not None:
            by_path[path] = bounds
    return by_path


def array_statistics(column: VariantArray) -> LeafLookup:
    """What a shredded array of the final layout tells of its own leaf columns, as `shredded_bounds` wants it."""

    def leaf_statistics(place: tuple[str, ...]) -> LeafStatistics | None:
        leaf = part_at(column.storage, place)
        if leaf is None:
            return None
        nulls = leaf.null_count
        if nulls == len(leaf) or place[-1] == "value":
            return LeafStatistics(len(leaf), nulls)
        if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py():
            return LeafStatistics(len(leaf), nulls)
        return LeafStatistics(len(leaf), nulls, *_extremes(leaf))

    return leaf_statistics


def residual_objects(column: VariantArray) -> frozenset[VariantPath]:
    """Places of shredded objects where some row keeps a whole object in ``value``.

    The specification wants such an object in ``typed_value``, so this package never writes one; an array from elsewhere
    may hold one, and then the typed columns below do not tell of every row.

    >>> residual_objects(VariantArray.from_pylist([{"a": 1}]))
    frozenset()
    """
    if column.schema is None:
        return frozenset()
    return frozenset(
        path
        for path, node in column.schema.walk()
        if node.kind == "object" and not path.has_wildcard and _keeps_object(column.storage, path)
    )


def uniform_schema(array: VariantArray, limit: int) -> ShreddingSchema | None:
    """The schema of the paths of an unshredded array that may have bounds, or None if no path may.

    It has ``limit`` leaves at most; under it, `array_statistics` tells the bounds.

    >>> uniform_schema(VariantArray.from_pylist([{"a": 1, "b": "x"}, {"a": 200, "b": 2}]), 10).to_ddl()
    'a bigint'
    """
    from parquet_variant.shredding.profile import Profile

    root = Profile.of_array(array).root
    return None if root is None else _uniform(root, [limit], _MAX_LEVELS)


def _uniform(path_profile: PathProfile, left: list[int], levels: int) -> ShreddingSchema | None:
    fields = {}
    for field in path_profile.fields if levels and left[0] > 0 else ():
        child = _uniform(field, left, levels - 1)
        if child is not None:
            fields[str(field.segment)] = child
    if fields:
        return ShreddingSchema.object(fields)
    kind = _one_type(path_profile)
    if kind is None or left[0] <= 0:
        return None
    left[0] -= 1
    return ShreddingSchema.primitive(kind)


def _one_type(path_profile: PathProfile) -> pa.DataType | None:
    """The type of a path whose values are all of one; integers of any width are one, and decimals are."""
    types = set(path_profile.types)
    if not types or types & {VariantType.NULL, VariantType.BINARY, VariantType.OBJECT, VariantType.ARRAY}:
        return None
    if types <= set(INTEGERS):
        return pa.int64()
    if types <= set(DECIMAL_TYPES):
        digits = path_profile.whole_digits + path_profile.scale
        return pa.decimal128(max(digits, 1), path_profile.scale) if digits <= _MAX_DIGITS else None
    return TYPES[types.pop()].arrow if len(types) == 1 else None


def lower_text(text: str, length: int = TEXT_LENGTH) -> str:
    """A text that is not above `text`, of at most `length` characters.

    >>> lower_text("abcdef", 3)
    'abc'
    """
    return text[:length]


def upper_text(text: str, length: int = TEXT_LENGTH) -> str | None:
    r"""A text that is not below `text`, of at most `length` characters; None if there is none.

    >>> upper_text("abcdef", 3), upper_text("abc", 3), upper_text("a\U0010ffffz", 2)
    ('abd', 'abc', 'b')
    >>> upper_text("\U0010ffffz", 1) is None
    True
    """
    if len(text) <= length:
        return text
    for end in range(length, 0, -1):
        code = ord(text[end - 1])
        if code < _LAST_CHARACTER:
            # The next character: surrogates are none. Order by code points is order by UTF-8 bytes.
            code = _LAST_SURROGATE + 1 if code + 1 == _FIRST_SURROGATE else code + 1
            return text[: end - 1] + chr(code)
    return None


def _bounds(lower: pa.Scalar, upper: pa.Scalar, arrow: pa.DataType) -> Bounds | None:
    if pa.types.is_binary(arrow):
        return None
    if not pa.types.is_string(arrow):
        return Bounds(_variant(lower, arrow), _variant(upper, arrow))
    raised = upper_text(upper.as_py())
    low = _variant(scalar(lower_text(lower.as_py()), pa.string()), arrow)
    return Bounds(low, None if raised is None else _variant(scalar(raised, pa.string()), arrow))


def _variant(bound: pa.Scalar, arrow: pa.DataType) -> Variant:
    if pa.types.is_decimal(arrow):
        unscaled = int(bound.as_py().scaleb(arrow.scale, Context(prec=80)))
        return Variant(
            _EMPTY_METADATA, encode_scalar(decimal_type_for_precision(arrow.precision), (unscaled, arrow.scale))
        )
    info = TYPE_OF_ARROW.get(arrow)
    if info is None:
        raise SchemaError(f"no Variant type is stored as {arrow}", reason="unsupported-type")
    if pa.types.is_temporal(arrow):
        raw: Any = bound.value
    elif info.type == VariantType.UUID:
        raw = bound.as_py().bytes
    else:
        raw = bound.as_py()
    return Variant(_EMPTY_METADATA, encode_scalar(info.type, raw))


def _extremes(leaf: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    kind = leaf.type
    if kind == pa.uuid():
        extremes = pc.min_max(leaf.storage.cast(pa.binary()))
        return tuple(extremes[name].cast(pa.binary(16)).cast(kind) for name in ("min", "max"))
    extremes = pc.min_max(leaf)
    return extremes["min"], extremes["max"]


def part_at(storage: pa.Array, place: tuple[str, ...]) -> pa.Array | None:
    """What is at a place in a column of structs, null where any struct above it is; None if it is not there."""
    for name in place:
        if not pa.types.is_struct(storage.type) or storage.type.get_field_index(name) < 0:
            return None
        storage = pc.struct_field(storage, name)
    return storage


def _place(path: VariantPath) -> tuple[str, ...]:
    """Where the storage has the group of a path without wildcards."""
    return tuple(part for name in path.segments for part in ("typed_value", str(name)))


def _keeps_object(storage: pa.StructArray, path: VariantPath) -> bool:
    place = _place(path)
    value, typed = part_at(storage, (*place, "value")), part_at(storage, (*place, "typed_value"))
    if value is None or typed is None:
        return False
    alone = pc.and_(value.is_valid(), typed.is_null())
    return BasicType.OBJECT in basic_types(value.filter(alone))


def basic_types(values: pa.Array) -> set[int]:
    """The basic types of the values in a residual column."""
    firsts = pc.binary_slice(values.cast(pa.large_binary()), 0, 1).unique().to_pylist()
    return {first[0] & 0b11 for first in firsts if first}
