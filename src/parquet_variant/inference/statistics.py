"""Statistics of leaf columns, and from them the bounds by path of a Variant column.

Owns counts and bounds of a leaf, each of which may be unknown, and merging them; which paths may have bounds in the
file statistics of a table's log, the Variants that bound them, and truncating long strings so that they remain bounds.
Files, logs and arrays provide the statistics, `query.prune` draws conclusions, and table formats define the form in a
log.

A path has bounds only if it is a primitive of one type wherever it occurs (a missing path has no type; a Variant null
has another), does not go through an array, is not binary, and has no NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Context
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_PHYSICAL_DEPTH, UNSHREDDED_DEPTH
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import (
    DECIMAL_TYPES,
    INTEGERS,
    TYPE_OF_ARROW,
    TYPES,
    BasicType,
    VariantType,
    decimal_type_for_precision,
)
from parquet_variant.types.path import VariantPath, is_within

if TYPE_CHECKING:
    from parquet_variant.inference.profile import PathProfile

# Bounds of every path would make the log of a table larger than small files.
_MAX_PATHS = 100


def order_key(scalar: pa.Scalar) -> Any:
    """Return a Python value with the order of the Parquet column."""
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        return scalar.as_buffer().to_pybytes()  # the bytes may be invalid UTF-8
    value = scalar.as_py()
    return value.bytes if hasattr(value, "bytes") else value


def forget_inverted(bounds: Any) -> None:
    """Make the bounds of new statistics unknown if the lower one is above the upper one: one of them is wrong."""
    if bounds.lower is not None and bounds.upper is not None and order_key(bounds.lower) > order_key(bounds.upper):
        object.__setattr__(bounds, "lower", None)
        object.__setattr__(bounds, "upper", None)


class LeafStatistics(Record):
    """Statistics of a leaf column in a row group or a file."""

    values: int  # Number of entries, nulls included (more than rows inside lists).
    nulls: int | None = None  # Number of null entries, including those with a null parent; None if unknown.
    # Bounds as scalars of the leaf's Arrow type (NaN excluded); None if unknown. Writers may truncate long
    # strings, so a bound need not be a value.
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None

    def __post_init__(self) -> None:
        forget_inverted(self)

    @property
    def all_null(self) -> bool:
        """Whether it is certain that every entry is null."""
        return self.nulls == self.values

    def merge(self, other: LeafStatistics) -> LeafStatistics:
        """Return the statistics of two row groups together; a value that one of them lacks is unknown."""
        nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls
        if self.all_null or other.all_null:  # Nulls do not affect bounds.
            bounded = other if self.all_null else self
            lower, upper = bounded.lower, bounded.upper
        else:
            lower, upper = _pick(self.lower, other.lower, smaller=True), _pick(self.upper, other.upper, smaller=False)
        return LeafStatistics(self.values + other.values, nulls, lower, upper)


def _pick(left: pa.Scalar | None, right: pa.Scalar | None, *, smaller: bool) -> pa.Scalar | None:
    if left is None or right is None:
        return None
    return left if (order_key(left) <= order_key(right)) == smaller else right


# Maximum number of characters of a bound.
TEXT_LENGTH = 32

# Objects inside each other that may have bounds: as many as a shredded column may have.
_MAX_LEVELS = (MAX_PHYSICAL_DEPTH - UNSHREDDED_DEPTH) // 2
_MAX_DIGITS = 38
_EMPTY_METADATA = Variant.from_python(None).metadata
_LAST_CHARACTER = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


class ValueBounds(Record):
    """A lower and an upper bound of the values at a path, as Variants of the type of the path.

    A long string whose truncated form cannot be increased has no upper bound.
    """

    lower: Variant | None
    upper: Variant | None


# Returns the statistics of a leaf column by its place; floats with NaN must have no bounds.
LeafLookup = Callable[[tuple[str, ...]], LeafStatistics | None]


def shredded_bounds(
    schema: ShreddingSchema,
    leaf_statistics: LeafLookup,
    *,
    unsafe: Collection[VariantPath] = (),
) -> dict[VariantPath, ValueBounds]:
    """Return the bounds of the first 100 paths that may have bounds, in the order of the schema.

    `leaf_statistics`: returns the statistics of a leaf by its place below the column (``("typed_value", "a",
      "value")``); None if the leaf does not exist.
    `unsafe`: paths of objects (see `residual_objects`) below which no bounds are known.

    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.from_python([3, 1]), "bigint")
    >>> {str(path): (bounds.lower.to_python(), bounds.upper.to_python()) for path, bounds in
    ...  shredded_bounds(array.schema, array_statistics(array)).items()}
    {'$': (1, 3)}
    """
    by_path: dict[VariantPath, ValueBounds] = {}
    for path, node in schema.walk():
        if node.type is None or path.has_wildcard or any(is_within(path, place) for place in unsafe):
            continue
        if len(by_path) >= _MAX_PATHS:
            break
        place = typed_place(path)
        typed, residual = leaf_statistics((*place, "typed_value")), leaf_statistics((*place, "value"))
        if pa.types.is_binary(node.type) or (residual is not None and not residual.all_null):
            continue
        if typed is None or typed.nulls == typed.values or typed.lower is None or typed.upper is None:
            continue
        lower, upper = typed.lower, typed.upper
        if pa.types.is_string(node.type):
            lower = scalar(lower_text(lower.as_py()), pa.string())
            raised = upper_text(upper.as_py())
            upper = None if raised is None else scalar(raised, pa.string())
        by_path[path] = ValueBounds(_variant(lower, node.type), None if upper is None else _variant(upper, node.type))
    return by_path


def array_statistics(column: VariantArray) -> LeafLookup:
    """Return the leaf statistics of a shredded array of the final layout, for `shredded_bounds`."""

    def leaf_statistics(place: tuple[str, ...]) -> LeafStatistics | None:
        leaf = part_at(column.storage, place)
        if leaf is None:
            return None
        nulls = leaf.null_count
        if nulls == len(leaf) or place[-1] == "value":
            return LeafStatistics(len(leaf), nulls)
        if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py():
            return LeafStatistics(len(leaf), nulls)
        is_uuid = leaf.type == pa.uuid()
        extremes = pc.min_max(leaf.storage.cast(pa.binary()) if is_uuid else leaf)
        bounds = [extremes[name] for name in ("min", "max")]
        bounds = [bound.cast(pa.binary(16)).cast(leaf.type) for bound in bounds] if is_uuid else bounds
        return LeafStatistics(len(leaf), nulls, *bounds)

    return leaf_statistics


def residual_objects(column: VariantArray) -> frozenset[VariantPath]:
    """Return the paths of shredded objects for which some row stores the object in ``value``.

    The specification requires such an object in ``typed_value``, so this package never writes one. In an array of
    another writer, the typed columns below do not describe every row then.

    >>> residual_objects(VariantArray.from_pylist([{"a": 1}]))
    frozenset()
    """
    paths = set()
    for path, node in column.schema.walk() if column.schema is not None else ():
        if node.kind != "object" or path.has_wildcard:
            continue
        value, typed = (part_at(column.storage, (*typed_place(path), name)) for name in ("value", "typed_value"))
        if value is not None and typed is not None:
            only_value = pc.and_(value.is_valid(), typed.is_null())
            if BasicType.OBJECT in basic_types(value.filter(only_value)):
                paths.add(path)
    return frozenset(paths)


def uniform_schema(array: VariantArray, limit: int = _MAX_PATHS) -> ShreddingSchema | None:
    """Return the schema of the paths of an unshredded array that may have bounds, or None if no path may.

    It has at most ``limit`` leaves; `array_statistics` of the array shredded with it has the bounds.

    >>> uniform_schema(VariantArray.from_pylist([{"a": 1, "b": "x"}, {"a": 200, "b": 2}])).to_ddl()
    'a bigint'
    """
    from parquet_variant.inference.profile import Profile

    root = Profile.of_array(array).root
    return None if root is None else _uniform_schema(root, [limit], _MAX_LEVELS)


def _uniform_schema(path_profile: PathProfile, budget: list[int], levels: int) -> ShreddingSchema | None:
    fields = {}
    for field in path_profile.fields if levels and budget[0] > 0 else ():
        child = _uniform_schema(field, budget, levels - 1)
        if child is not None:
            fields[str(field.segment)] = child
    if fields:
        return ShreddingSchema.object(fields)
    # Integers of any width are one type, and decimals are.
    types, kind = set(path_profile.types), None
    if types <= set(INTEGERS):
        kind = pa.int64()
    elif types <= set(DECIMAL_TYPES):
        digits, scale = path_profile.whole_digits + path_profile.scale, path_profile.scale
        kind = pa.decimal128(max(digits, 1), scale) if digits <= _MAX_DIGITS else None
    elif len(types) == 1 and types.isdisjoint((VariantType.NULL, VariantType.BINARY)):
        kind = TYPES[types.pop()].arrow  # None for objects and arrays
    if kind is None or budget[0] <= 0:
        return None
    budget[0] -= 1
    return ShreddingSchema.primitive(kind)


def lower_text(text: str, length: int = TEXT_LENGTH) -> str:
    """Return a string that is not above `text`, of at most `length` characters.

    >>> lower_text("abcdef", 3)
    'abc'
    """
    return text[:length]


def upper_text(text: str, length: int = TEXT_LENGTH) -> str | None:
    r"""Return a string that is not below `text`, of at most `length` characters; None if no such string exists.

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
            # The next character, skipping surrogates. The order of code points is the order of UTF-8 bytes.
            code = _LAST_SURROGATE + 1 if code + 1 == _FIRST_SURROGATE else code + 1
            return text[: end - 1] + chr(code)
    return None


def _variant(bound: pa.Scalar, arrow: pa.DataType) -> Variant:
    if pa.types.is_decimal(arrow):
        unscaled = int(bound.as_py().scaleb(arrow.scale, Context(prec=80)))
        return Variant(
            _EMPTY_METADATA, encode_scalar(decimal_type_for_precision(arrow.precision), (unscaled, arrow.scale))
        )
    info = TYPE_OF_ARROW.get(arrow)
    if info is None:
        raise SchemaError(f"type {arrow} has no Variant type", reason="unsupported-type")
    raw = bound.as_py() if pa.types.is_string(arrow) else order_key(bound)
    return Variant(_EMPTY_METADATA, encode_scalar(info.type, raw))


def part_at(storage: pa.Array, place: tuple[str, ...]) -> pa.Array | None:
    """Return the array at a place in nested structs, null where a parent is null; None if the place does not exist."""
    for name in place:
        if not pa.types.is_struct(storage.type) or storage.type.get_field_index(name) < 0:
            return None
        storage = pc.struct_field(storage, [name])
    return storage


def typed_place(path: VariantPath) -> tuple[str, ...]:
    """Return the place of the group of a path without wildcards in the storage."""
    return tuple(part for name in path.segments for part in ("typed_value", str(name)))


def basic_types(values: pa.Array) -> set[int]:
    """Return the basic types of the values in a residual column."""
    firsts = pc.binary_slice(values.cast(pa.large_binary()), 0, 1).unique().to_pylist()
    return {first[0] & 0b11 for first in firsts if first}
