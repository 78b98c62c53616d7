"""Statistics of columns in many files at once, and which of the files may hold a match.

Owns `FileStatistics`, one entry per file, since a table may have a million files, and their derivation from the bounds
of Variant paths: an object of primitive values by normalized path, as the bytes of its metadata and its value. Leaves
computing bounds to `inference.statistics`, reading statistics and the text around the bytes to the formats, and the
reasoning to `query.prune`. Unknown never prunes.

The prose of Delta's RFC, its real tables and Iceberg have metadata first: that is what is written. The two printed
examples of the RFC have value first, with an unpadded tail: they are read too. The first byte shows the order: metadata
begins with version 1 in its low four bits, an object never does.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts
from parquet_variant.arrays.value_positions import ScalarSlots, ValuePositions
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.header import value_size
from parquet_variant.encoding.metadata import VERSION, metadata_length
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, TableError, VariantError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.kernels.arrow_buffers import Mask, filled_binary, from_numpy, scalar, to_numpy
from parquet_variant.kernels.memory import KIND, copy_spans
from parquet_variant.kernels.operations.edit import metadata_sizes
from parquet_variant.kernels.operations.get import ABSENT, measure
from parquet_variant.ops.columns.arguments import canonical_storage, or_none, or_null
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.prune import MOST_LOOKUPS, Side, Truth, cast_keeps_order, may_match
from parquet_variant.query.selection import Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import DECIMAL_TYPES, TYPE_OF_ID, VariantType
from parquet_variant.types.path import VariantPath

_BOUNDS = pa.struct([("metadata", pa.large_binary()), ("value", pa.large_binary())])


def bounds_to_bytes(bounds: Mapping[VariantPath, Variant]) -> bytes:
    r"""Return the bounds of paths as the bytes of one Variant object: metadata, then value; the root's path is ``$``.

    >>> bounds_to_bytes({VariantPath.parse("$.key"): Variant.from_python(7)})[-1:]
    b'\x07'
    """
    return Variant.from_python({str(path): bound for path, bound in bounds.items()}).to_bytes()


def complete_bounds(
    paths: Mapping[VariantPath, ValueBounds],
) -> tuple[dict[VariantPath, Variant], dict[VariantPath, Variant]]:
    """Return the lower and the upper bounds by path: of paths with both, because both objects need the same paths."""
    lower, upper = {}, {}
    for path, sides in paths.items():
        if sides.lower is not None and sides.upper is not None:
            lower[path], upper[path] = sides.lower, sides.upper
    return lower, upper


def bounds_from_bytes(data: bytes) -> dict[VariantPath, Variant]:
    """Return the bounds by path that the bytes of an object hold.

    Raises `TableError`: reason ``"bad-stats"`` if the bytes are not an object of primitive values by path.

    >>> data = bounds_to_bytes({VariantPath.parse("$.a"): Variant.from_python(1)})
    >>> {str(path): bound.to_python() for path, bound in bounds_from_bytes(data).items()}
    {"$['a']": 1}
    """
    try:
        bounds = Variant(*split_bounds(data))
        if bounds.type != VariantType.OBJECT:
            raise TableError(f"variant statistics are of type {bounds.type}, not an object", reason="bad-stats")
        return {VariantPath.parse(name): bound for name, bound in bounds.items()}
    except TableError:
        raise
    except VariantError as error:
        raise TableError(f"variant statistics cannot be read: {error}", reason="bad-stats") from error


def split_bounds(data: bytes) -> tuple[bytes, bytes]:
    """Return metadata and value of concatenated bytes, in either order, without padding.

    Raises `MalformedVariantError` if one of them is truncated.
    """
    if data[:1] and data[0] & 0x0F == VERSION:
        middle = metadata_length(data)
        return data[:middle], data[middle : middle + value_size(data, middle, len(data))]
    middle = value_size(data, 0, len(data))
    metadata = data[middle:]
    return metadata[: metadata_length(metadata)], data[:middle]


def bounds_array(blobs: pa.Array) -> pa.StructArray:
    """Return a column of bounds as a struct of metadata and value; unreadable bytes become null (unknown)."""
    parts = binary_parts(blobs)
    starts, stops = parts.address + parts.offsets[:-1], parts.address + parts.offsets[1:]
    valid = to_numpy(blobs.is_valid())
    starts = np.where(valid, starts, -1)
    lengths, value_lengths = np.empty(len(blobs), np.int64), np.empty(len(blobs), np.int64)
    metadata_sizes(starts, stops, lengths)
    middles = np.where(valid, starts + lengths, ABSENT)
    if (lengths < 0).any() or measure(middles, stops, value_lengths) >= 0:
        # The RFC's byte order, or damage: rare enough to read one by one.
        rows = (None if data is None else or_none(partial(split_bounds, data)) for data in blobs.to_pylist())
        return pa.array(rows, _BOUNDS)
    spans = [(starts, lengths), (middles, value_lengths)]
    pieces = [filled_binary(sizes, partial(copy_spans, at, sizes), arrow_type=pa.large_binary()) for at, sizes in spans]
    return pa.StructArray.from_arrays(pieces, ["metadata", "value"], mask=from_numpy(~valid))


def parsed_bounds(storage: pa.StructArray) -> pa.StructArray:
    """Return bounds in Parquet form, shredded or not, as `bounds_array` returns them; damaged bounds become null."""
    try:
        unshredded = or_null(VariantArray(storage), canonical_storage)
    except SchemaError:
        return pa.nulls(len(storage), _BOUNDS)
    pieces = [pc.cast(pc.struct_field(unshredded, [name]), pa.large_binary()) for name in _BOUNDS.names]
    is_known = pc.and_(unshredded.is_valid(), pc.and_(pieces[0].is_valid(), pieces[1].is_valid()))
    return pa.StructArray.from_arrays(pieces, fields=list(_BOUNDS), mask=pc.invert(is_known))


# Number of files whose statistics are in memory as columns at a time.
FILES_AT_ONCE = 1 << 15
# Writers may cut timestamps to milliseconds; then the true maximum is up to this much later.
_CUT = timedelta(microseconds=999)
_FUNCTIONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


class FileStatistics(Record):
    """The statistics of one column in each of many files."""

    files: int
    # Bounds, null where unknown; doubles for float columns. None if unknown everywhere.
    lower: pa.Array | None = None
    upper: pa.Array | None = None
    # Whether a row may be null, or anything else: for all files, or for each.
    may_be_null: bool | Mask = True
    may_be_value: bool | Mask = True
    # Whether there may be a NaN that the bounds do not cover: for all files, or for each.
    may_be_nan: bool | Mask = True

    def __post_init__(self) -> None:
        if self.lower is not None and self.upper is not None:
            lower, upper = without_inverted(self.lower, self.upper)
            object.__setattr__(self, "lower", lower)
            object.__setattr__(self, "upper", upper)

    def may_be(self, side: Side, literal: pa.Scalar) -> Truth:
        """Return whether any value, NaN apart, may lie on that side of a literal."""
        bounds = self.lower if side in ("<", "<=") else self.upper
        if bounds is None:
            return True
        if literal.type == pa.uuid():
            bounds, literal = bounds.cast(pa.binary(16)), literal.cast(pa.binary(16))
        elif pa.types.is_string(bounds.type) or pa.types.is_large_string(bounds.type):
            literal = literal.cast(bounds.type)
        return true_or_unknown(pc.call_function(_FUNCTIONS[side], [bounds, literal]))

    def may_equal(self, literal: pa.Scalar) -> Truth:
        """Return whether any value may equal a literal; only the bounds exclude one."""
        return True

    def among(self, literals: Any) -> tuple[Truth, Truth]:
        """See `PruningStatistics`; unknown for bounds that cannot be compared with the literals."""
        lower, upper = (None if bounds is None else _comparable(bounds) for bounds in (self.lower, self.upper))
        valid = [bounds for bounds in (lower, upper) if bounds is not None]
        may_equal: Truth = True
        if len(literals) <= MOST_LOOKUPS:
            may_equal = reduce(operator.or_, (self.may_equal(literal) for literal in literals))
        try:
            values = literals if isinstance(literals, pa.Array) else pa.array(literals, literals[0].type)
            values = _comparable(values).cast(valid[0].type) if valid else values
            # A literal lies between the bounds if these have different positions among the literals.
            first = 0 if lower is None else _positions(values, lower, "left", 0)
            last = len(values) if upper is None else _positions(values, upper, "right", len(values))
        except pa.ArrowException:
            return may_equal, False
        inside = first < last
        if len(valid) < len((lower, upper)):
            return inside & may_equal, False
        is_one = to_numpy(pc.equal(lower, upper).fill_null(scalar(False, pa.bool_())))
        return inside & may_equal, inside & is_one & np.logical_not(self.may_be_nan)

    def part(self, rows: Mask | slice) -> FileStatistics:
        """Return the statistics of some of the files."""
        numbers = np.arange(self.files)[rows]
        values = {name: getattr(self, name) for name in ("lower", "upper", "may_be_null", "may_be_value", "may_be_nan")}
        parts = {
            name: value.take(from_numpy(numbers)) if isinstance(value, pa.Array) else value[numbers]
            for name, value in values.items()
            if not (value is None or isinstance(value, bool))
        }
        return replace(self, files=len(numbers), **parts)


class Pruned(Record, frozen=False):
    """The data files of a table that may hold a match; the other files were ruled out before any file was opened."""

    files: Any  # As the format lists them.
    total: int = 0  # The number of files before.
    # The number of files that were ruled out.
    by_partition: int = 0
    by_statistics: int = 0


def may_match_files(predicate: Predicate, statistics: Mapping[str, FileStatistics], files: int) -> Mask:
    """Return, for each file, whether some row may satisfy the predicate; False only if it is certain that none does."""
    answer = may_match(predicate, lambda name: statistics.get(name, FileStatistics(files)))
    return np.full(files, answer) if np.ndim(answer) == 0 else answer  # one answer for all files


def path_statistics(
    selected: Selected,
    lower: Sequence[VariantArray],
    upper: Sequence[VariantArray],
    files: int,
    may_be_value: bool | Mask,
) -> FileStatistics:
    """Return the statistics of a path of a Variant column, for the type that it is cast to.

    `lower`, `upper`: the bounds of the column in each file, as objects by path (`bounds_array`); several
      sources may each have a part of them.
    `may_be_value`: whether the column may have any value.
    """
    assert selected.path is not None
    keys_only = all(isinstance(segment, str) for segment in selected.path.segments)
    if selected.type is None or pa.types.is_nested(selected.type) or not keys_only:
        return FileStatistics(files, may_be_value=may_be_value)
    low, _ = _typed_bounds(lower, selected.path, selected.type, files)
    high, maybe_nan = _typed_bounds(upper, selected.path, selected.type, files)
    if pa.types.is_floating(selected.type):
        return FileStatistics(files, double_bounds(low), double_bounds(high), True, may_be_value, maybe_nan)
    if pa.types.is_timestamp(selected.type):
        high = shifted_times(high)
    if not (pa.types.is_string(selected.type) or pa.types.is_large_string(selected.type)):
        # A cast that fails gives null; one that succeeds for both bounds succeeds for all values between. Casts to
        # strings never fail.
        both = pc.and_(low.is_valid(), high.is_valid())
        low = pc.if_else(both, low, scalar(None, low.type))
        high = pc.if_else(both, high, scalar(None, high.type))
    return FileStatistics(files, low, high, True, may_be_value, False)


def without_inverted(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bounds of files, unknown where the lower one is above the upper one: one of them is wrong."""
    kind = lower.type
    if isinstance(kind, pa.BaseExtensionType):
        pair = without_inverted(lower.storage, upper.storage)
        return tuple(pa.ExtensionArray.from_storage(kind, bounds) for bounds in pair)
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return lower, upper
    inverted = pc.greater(lower, upper).fill_null(scalar(False, pa.bool_()))
    if not inverted.true_count:
        return lower, upper
    is_ordered = pc.invert(inverted)
    return tuple(pc.if_else(is_ordered, bounds, scalar(None, bounds.type)) for bounds in (lower, upper))


def true_or_unknown(answers: pa.BooleanArray) -> Mask:
    """Return where an answer is true or null, which is unknown."""
    return to_numpy(answers.fill_null(scalar(True, pa.bool_())))


def double_bounds(bounds: pa.Array) -> pa.Array:
    """Return bounds as doubles; a NaN among them is unknown."""
    bounds = bounds.cast(pa.float64())
    return pc.if_else(pc.is_nan(bounds), scalar(None, pa.float64()), bounds)


def shifted_times(times: Any, shift: Any = _CUT) -> Any:
    """Return times shifted by an interval (default: so far that maxima which were cut hold again).

    All are unknown if one of them leaves the range of the type.
    """
    try:
        return pc.add_checked(times, pa.scalar(shift, pa.duration("us")).cast(pa.duration(times.type.unit)))
    except pa.ArrowInvalid:
        return pa.nulls(len(times), times.type)


def _typed_bounds(
    sources: Sequence[VariantArray], path: VariantPath, target: pa.DataType, files: int
) -> tuple[pa.Array, Mask]:
    """Return the bound of a path as the target type, null where the cast may change the order, and whether the path may
    hold a NaN, which writers may leave out of the bounds of floats and doubles.
    """
    bounds, nan = pa.nulls(files, _stored(target)), np.zeros(files, dtype=bool)
    for source in sources:
        typed, floating = _bound_at(source, path, target)
        bounds = pc.if_else(bounds.is_null(), typed, bounds)
        nan |= floating
    return bounds, nan


def _bound_at(bounds: VariantArray, path: VariantPath, target: pa.DataType) -> tuple[pa.Array, Mask]:
    """Return the bound of a path as the target type, null where it is damaged, and where it is a float."""
    try:
        slots = ValuePositions.of_storage(bounds.storage).key(str(path)).slots()
        typed = variant_get(bounds, VariantPath((str(path),)), target, errors="null").cast(_stored(target))
        typed = pc.if_else(from_numpy(_order_kept(slots, target)), typed, scalar(None, typed.type))
        return typed, np.isin(slots.kinds, (KIND.FLOAT, KIND.DOUBLE))
    except VariantError:
        if len(bounds) == 1:
            return pa.nulls(1, _stored(target)), np.zeros(1, dtype=bool)
    middle = len(bounds) // 2
    halves = [_bound_at(bounds[part], path, target) for part in (slice(0, middle), slice(middle, None))]
    return pa.concat_arrays([half[0] for half in halves]), np.concatenate([half[1] for half in halves])


def _stored(target: pa.DataType) -> pa.DataType:
    """Return the type of bounds of a type; UUIDs are bytes, since Arrow does not compute with extension types."""
    return pa.binary(16) if target == pa.uuid() else target


def _order_kept(slots: ScalarSlots, target: pa.DataType) -> Mask:
    """Return where a scalar's cast to the target keeps the order of values."""
    decimal = pa.decimal128(38, 0)
    stored = {kind: decimal if info.type in DECIMAL_TYPES else info.arrow for kind, info in TYPE_OF_ID.items()}
    ordered = [kind for kind, arrow in stored.items() if arrow is not None and cast_keeps_order(arrow, target)]
    is_kept = np.isin(slots.kinds, ordered) & (slots.kinds != KIND.BINARY)
    if pa.types.is_decimal(target) or pa.types.is_integer(target):
        is_kept &= slots.scales <= (target.scale if pa.types.is_decimal(target) else 0)
    return is_kept


def _comparable(values: pa.Array) -> pa.Array:
    """Return values in a type that can be ranked, in which equal numbers have one form."""
    if values.type == pa.uuid():
        return values.cast(pa.binary(16))
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    return pc.add(values, scalar(0, values.type)) if pa.types.is_floating(values.type) else values


def _positions(ordered: pa.Array, bounds: pa.Array, side: str, unknown: int) -> npt.NDArray[np.int64]:
    """Return the positions of bounds among ordered values, from the ranks of both together, for values of any type."""
    both = pa.concat_arrays([ordered, bounds.cast(ordered.type)])
    ranks = to_numpy(pc.rank(both, sort_keys="ascending", tiebreaker="dense"))
    positions = np.searchsorted(ranks[: len(ordered)], ranks[len(ordered) :], side=side)  # type: ignore[call-overload]
    return np.where(to_numpy(bounds.is_valid()), positions, unknown)
